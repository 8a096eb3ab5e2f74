/* What the tests of captures share: a folder of their own, ranks written from known numbers, a capture read back.
 */
#ifndef K25_TESTS_CAPTURE_CHECK_H
#define K25_TESTS_CAPTURE_CHECK_H

#include <dirent.h>
#include <sys/stat.h>

#include "calib/capture/capture.h"
#include "calib/trace/write.h"
#include "tests/unit/evidence_check.h"

#define MOE "void marlin_moe_wna16::Marlin<1, 2>(int4 const*)"
#define ATTENTION "_fwd_grouped_kernel_stage1"
#define ALLREDUCE "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 3>(vllm::RankData*)"
#define ALLGATHER "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define GEMM "nvjet_sm120_tst_mma_64x32x128_3_32x16x128_tmaAB_bz_TNT"

enum { START = 1000000, PERIOD = 100000 }; /* ns */

static char folder[64];
static struct k25_kernel_rules *rules;

static inline int make_folder(void **state)
{
    (void)state;
    struct k25_error error;
    rules = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    snprintf(folder, sizeof folder, "/tmp/k25_capture_XXXXXX");
    return rules != NULL && mkdtemp(folder) != NULL ? 0 : -1;
}

static inline void empty_folder(void)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(dir);
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    k25_kernel_rules_free(rules);
    return rmdir(folder);
}

static inline const char *in_folder(const char *name)
{
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline struct k25_trace_writer *open_named(const char *name, int rank, int world)
{
    struct k25_error error;
    struct k25_trace_writer_options options = {.rank = rank, .world_size = world, .device = "A GPU"};
    struct k25_trace_writer *writer = k25_trace_writer_open(in_folder(name), &options, &error);
    assert_non_null(writer);
    return writer;
}

static inline struct k25_trace_writer *open_rank(int rank, int world)
{
    char name[64];
    snprintf(name, sizeof name, "rank%d.1767195832618853487.pt.trace.json%s", rank, rank % 2 ? ".gz" : "");
    return open_named(name, rank, world);
}

static inline void close_rank(struct k25_trace_writer *writer)
{
    struct k25_error error;
    if (!k25_trace_writer_close(writer, &error))
        fail_msg("%s", error.message);
}

static inline void kernel(struct k25_trace_writer *writer, const char *name, int64_t ts, int64_t dur,
                          uint64_t correlation)
{
    struct k25_written_kernel k = {.name = name, .ts_ns = ts, .dur_ns = dur, .stream = 7, .correlation = correlation};
    k25_trace_write_kernel(writer, &k);
}

/* A step of 54 us: an expert kernel, an allreduce that ends on all ranks 9 us after the last has arrived at 35, a
 * GEMM, an allgather of 8 KiB that all reach at 51. Rank 1 computes 4 us longer, rank 2 1 us. */
static inline void write_step(struct k25_trace_writer *writer, int rank, int64_t start, uint64_t correlation)
{
    static const int64_t late[] = {0, 4000, 1000};
    static const struct k25_written_collective gather = {"_allgather_base", "BFloat16", 1024, 4096, 3};
    struct k25_written_kernel k = {.name = ALLGATHER,
                                   .ts_ns = start + 51000,
                                   .dur_ns = 6000,
                                   .stream = 7,
                                   .correlation = correlation + 1,
                                   .collective = &gather};
    kernel(writer, ALLREDUCE, start + 31000 + late[rank], 13000 - late[rank], correlation);
    kernel(writer, MOE, start, 30000 + late[rank], correlation);
    k25_trace_write_kernel(writer, &k);
    kernel(writer, GEMM, start + 45000, 5000, correlation);
}

static inline bool read_paths(const char *const *paths, size_t count, bool forgiving, struct k25_capture *capture,
                              struct k25_error *error)
{
    struct k25_capture_options options = {.lenient = forgiving, .rank = -1, .rules = rules};
    *error = (struct k25_error){0};
    return k25_capture_read(paths, count, &options, capture, error);
}

static inline void read_path(const char *path, struct k25_capture *capture)
{
    struct k25_error error;
    if (!read_paths(&path, 1, false, capture, &error))
        fail_msg("%s", error.message);
}

static inline void read_folder(struct k25_capture *capture)
{
    read_path(folder, capture);
}

static inline void refuse_folder(const char *message)
{
    struct k25_capture capture;
    struct k25_error error;
    const char *path = folder;
    assert_false(read_paths(&path, 1, false, &capture, &error));
    assert_string_equal(error.message, message);
}

#endif
