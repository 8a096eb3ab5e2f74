#include "calib/trace/trace.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "calib/trace/inflate.h"
#include "calib/trace/internal.h"

/* A piece stays in the cache of the core that inflates it until that core has walked it. Before it there is room for
 * the rest of the piece before. */
enum { PIECE = 512 << 10, ROOM = K25_TRACE_LONGEST + PIECE + K25_TRACE_SLACK, THREADS = 2 };

/* Two threads take turns: the thread that inflates a piece also walks it, because moving the JSON from one core to
 * another is slower than walking it. Pieces are inflated in order and walked in order, so while one thread walks piece
 * n the other inflates piece n + 1. */
struct reader {
    const char *path;
    struct k25_inflate *stream;
    struct k25_trace_walk walk;
    char *rooms[THREADS];
    char *left; /* the rest of the last piece: up to K25_TRACE_LONGEST bytes */
    size_t left_size;
    uint64_t offset; /* of the next byte to walk in the JSON */
    size_t inflated; /* pieces; this and the stream belong to the thread that holds `inflating` */
    bool ended;      /* the last piece is inflated */
    bool failed;
    omp_lock_t inflating;
    atomic_size_t walked;     /* pieces; `walk`, `left` and `offset` belong to the thread that inflated the next one */
    bool over;                /* nothing more to walk */
    struct k25_error failure; /* of the system, while inflating */
};

/* Inflates the next piece into `text`; false when there is none. */
static bool inflate_piece(struct reader *reader, char *text, size_t *number, size_t *size, bool *last)
{
    omp_set_lock(&reader->inflating);
    bool any = !reader->ended;
    if (any) {
        *size = 0;
        reader->failed = !k25_inflate_next(reader->stream, text, PIECE, size, &reader->failure);
        memset(text + *size, 0, K25_TRACE_SLACK);
        *number = reader->inflated++;
        *last = reader->ended = *size < PIECE || reader->failed;
    }
    omp_unset_lock(&reader->inflating);
    return any;
}

static void walk_piece(struct reader *reader, char *text, size_t size, bool last)
{
    struct k25_trace_walk *walk = &reader->walk;
    text -= reader->left_size;
    size += reader->left_size;
    memcpy(text, reader->left, reader->left_size);
    size_t done = k25_trace_walk_feed(walk, text, size, reader->offset, last);
    reader->offset += done;
    reader->left_size = size - done;
    reader->over = last || walk->refusal != NULL || walk->stopped || walk->out_of_memory;
    if (!reader->over) {
        memcpy(reader->left, text + done, reader->left_size);
    }
}

/* Waits until the other thread has walked the pieces before: a tenth of a millisecond, unless that thread was
 * descheduled. */
static void wait_for_turn(struct reader *reader, size_t number)
{
    for (int i = 0; atomic_load_explicit(&reader->walked, memory_order_acquire) != number; i++) {
        if (i > 200) {
            sched_yield();
        }
    }
}

static void take_turns(struct reader *reader, char *room)
{
    char *text = room + K25_TRACE_LONGEST;
    size_t number, size;
    bool last, over = false;
    while (!over && inflate_piece(reader, text, &number, &size, &last)) {
        wait_for_turn(reader, number);
        if (!reader->over) {
            walk_piece(reader, text, size, last);
        }
        over = reader->over;
        atomic_store_explicit(&reader->walked, number + 1, memory_order_release);
    }
}

/* Inside a parallel region of the caller there is only one thread (unless nesting is enabled), which does both. */
static void read_all(struct reader *reader)
{
    omp_init_lock(&reader->inflating);
#pragma omp parallel num_threads(THREADS) default(none) firstprivate(reader)
    take_turns(reader, reader->rooms[omp_get_thread_num()]);
    omp_destroy_lock(&reader->inflating);
    reader->walk.info->json_bytes = reader->offset + reader->left_size;
}

/* Line and column of a byte of the JSON, by reading the file again; false when that cannot be done. */
static bool locate(const char *path, uint64_t offset, int *line, int *column)
{
    enum { CHUNK = 1 << 16 };
    struct k25_inflate *stream = k25_inflate_open(path, NULL);
    char *bytes = malloc(CHUNK);
    size_t got = CHUNK;
    *line = *column = 1;
    while (stream != NULL && bytes != NULL && offset > 0 && got == CHUNK &&
           k25_inflate_next(stream, bytes, CHUNK, &got, NULL)) {
        size_t part = offset < got ? (size_t)offset : got;
        for (size_t i = 0; i < part; i++) {
            *column += (bytes[i] & 0xc0) != 0x80;
            if (bytes[i] == '\n') {
                *line += 1;
                *column = 1;
            }
        }
        offset -= part;
    }
    free(bytes);
    k25_inflate_close(stream);
    return offset == 0;
}

static bool fail_at(struct k25_error *error, const char *path, uint64_t offset, const char *what)
{
    int line, column;
    if (!locate(path, offset, &line, &column)) { /* a pipe */
        return k25_fail(error, K25_BAD_INPUT, "%s: byte %" PRIu64 ": %s", path, offset, what);
    }
    return k25_fail_at(error, path, line, column, "%s", what);
}

/* The error of a file that is not a trace. */
static bool refused(const struct reader *reader, struct k25_error *error)
{
    const struct k25_trace_walk *walk = &reader->walk;
    const struct k25_trace_info *info = walk->info;
    if (walk->refusal != NULL && info->json_bytes == 0 && (info->truncated || info->bad_container)) {
        return k25_fail(error, K25_BAD_INPUT, "%s: the gzip file is damaged or cut off at its beginning", reader->path);
    }
    if (walk->refusal != NULL) {
        return k25_fail(error, K25_BAD_INPUT, "%s: %s", reader->path, walk->refusal);
    }
    if (walk->chakra_seen || (!walk->list_seen && walk->nodes_seen)) {
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: PyTorch execution trace (Chakra), not a Kineto trace: export one with "
                        "export_chrome_trace()",
                        reader->path);
    }
    if (!walk->list_seen) {
        return k25_fail(error, K25_BAD_INPUT, "%s: no traceEvents%s%s%s%s", reader->path,
                        walk->null_list   ? ": it is not a list"
                        : info->truncated ? ": the file is cut off before them"
                                          : ", so not a torch.profiler trace",
                        walk->first_key[0] == '\0' ? "" : " (the root begins with '", walk->first_key,
                        walk->first_key[0] == '\0' ? "" : "')");
    }
    return k25_fail(error, K25_BAD_INPUT,
                    "%s: a list without a single trace event (an object with \"ph\"), so not a torch.profiler trace",
                    reader->path);
}

/* The errors that `lenient` suppresses. */
static bool damaged(const struct reader *reader, struct k25_error *error)
{
    const struct k25_trace_info *info = reader->walk.info;
    uint64_t kernels = info->events[K25_TRACE_KERNEL], all = kernels + info->damaged_kernels;
    char what[512];
    if (info->truncated) {
        snprintf(what, sizeof what,
                 "the trace is cut off (truncated) here; %" PRIu64 " kernels were whole, --lenient keeps them",
                 kernels);
        return fail_at(error, reader->path, info->json_bytes, what);
    }
    if (info->bad_crc) {
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: the checksum (CRC) of the gzip data is wrong, something in it has changed; %" PRIu64
                        " kernels were read, --lenient keeps them",
                        reader->path, kernels);
    }
    if (info->bad_container) {
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: byte %" PRIu64 " of the file: %s; %" PRIu64 " kernels were read, --lenient keeps them",
                        reader->path, info->file_bytes,
                        k25_inflate_end(reader->stream) == K25_INFLATE_FOLLOWED
                            ? "other data follows the last gzip member"
                            : "the gzip data is damaged",
                        kernels);
    }
    if (info->damaged_kernels * 100 > all) {
        snprintf(what, sizeof what,
                 "%" PRIu64 " of %" PRIu64 " kernel events cannot be read, more than 1 %%; this is the first damage, "
                 "--lenient keeps the rest",
                 info->damaged_kernels, all);
        return fail_at(error, reader->path, info->first_damage, what);
    }
    return true;
}

static enum k25_trace_use use_of(const char *path, const struct k25_trace_info *info)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    uint64_t kernels = info->events[K25_TRACE_KERNEL];
    uint64_t gpu = kernels + info->events[K25_TRACE_MEMCPY] + info->events[K25_TRACE_MEMSET];
    if (strstr(name, "graph_capture") != NULL || strstr(path, "capture_traces/") != NULL ||
        (kernels > 0 && kernels < 10 && info->cpu_ops + info->python_functions > 10000)) {
        return K25_TRACE_CAPTURE;
    }
    if (gpu > 0) {
        return K25_TRACE_RANK;
    }
    return strstr(name, "async_llm") != NULL ? K25_TRACE_FRONT_END : K25_TRACE_NO_GPU;
}

/* Metadata that needs the whole file. */
static void complete(struct reader *reader)
{
    struct k25_trace_walk *walk = &reader->walk;
    struct k25_trace_info *info = walk->info;
    enum k25_inflate_end end = k25_inflate_end(reader->stream);
    info->file_bytes = k25_inflate_taken(reader->stream);
    info->truncated |= end == K25_INFLATE_CUT;
    info->bad_crc = end == K25_INFLATE_BAD_CRC;
    info->bad_container = end == K25_INFLATE_DAMAGED || end == K25_INFLATE_FOLLOWED;
    if (info->rank < 0) {
        info->rank = k25_trace_rank_from_name(reader->path);
        info->rank_from_name = info->rank >= 0;
    }
    if (!info->has_base_time && info->events[K25_TRACE_KERNEL] > 0) {
        info->resolution_ns = !walk->any_fraction || !walk->off_micro ? 1000 : !walk->off_quarter ? 250 : 1;
    }
    info->use = use_of(reader->path, info);
    info->name_count = walk->names.count;
    info->names = k25_arena_take(&info->arena, sizeof *info->names * (size_t)(walk->names.count + 1));
    if (info->names == NULL) {
        info->name_count = 0;
        walk->out_of_memory = true;
    } else if (walk->names.count > 0) {
        memcpy(info->names, walk->names.texts, sizeof *info->names * (size_t)walk->names.count);
    }
}

static bool judge(struct reader *reader, bool lenient, struct k25_error *error)
{
    const struct k25_trace_walk *walk = &reader->walk;
    if (reader->failed) {
        return k25_fail(error, reader->failure.status, "%s", reader->failure.message);
    }
    if (walk->out_of_memory) {
        return k25_fail(error, K25_RESOURCE, "%s: out of memory", reader->path);
    }
    if (walk->stopped) {
        return false;
    }
    const struct k25_trace_info *info = walk->info; /* an empty list is a trace, a list of other things is none */
    bool others = info->damaged_events > 0 || info->damaged_root || info->ignored > 0;
    if (walk->refusal != NULL || !walk->list_seen || walk->chakra_seen || (!walk->event_seen && others)) {
        return refused(reader, error);
    }
    return lenient || damaged(reader, error);
}

static bool with_room(struct reader *reader, const struct k25_trace_options *options, k25_trace_visit *visit,
                      void *context, struct k25_trace_info *info, struct k25_error *error)
{
    char *memory = malloc(K25_TRACE_LONGEST + (size_t)THREADS * ROOM); /* most pages are never touched */
    bool done = false;
    if (memory == NULL || !k25_trace_walk_start(&reader->walk, options, visit, context, info)) {
        k25_fail(error, K25_RESOURCE, "%s: out of memory", reader->path);
    } else {
        reader->left = memory;
        for (int i = 0; i < THREADS; i++) {
            reader->rooms[i] = memory + K25_TRACE_LONGEST + (size_t)i * ROOM;
        }
        read_all(reader);
        complete(reader);
        done = judge(reader, options->lenient, error);
        k25_trace_walk_free(&reader->walk);
    }
    free(memory);
    return done;
}

bool k25_trace_read(const char *path, const struct k25_trace_options *options, k25_trace_visit *visit, void *context,
                    struct k25_trace_info *info, struct k25_error *error)
{
    static const struct k25_trace_options strict = {0};
    *info = (struct k25_trace_info){
        .rank = -1,
        .world_size = -1,
        .schema_version = -1,
        .resolution_ns = 1,
        .device = "",
        .backend = "",
        .nccl_version = "",
        .trace_id = "",
        .trace_name = "",
        .vllm_version = "",
        .time_unit = "",
    };
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    }
    reader->path = path;
    reader->stream = k25_inflate_open(path, error);
    bool done =
        reader->stream != NULL && with_room(reader, options == NULL ? &strict : options, visit, context, info, error);
    k25_inflate_close(reader->stream);
    free(reader);
    return done;
}
