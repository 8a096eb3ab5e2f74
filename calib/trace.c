#include "calib/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "calib/inflate.h"
#include "calib/trace_internal.h"

/* Small enough that a piece is still in a cache when it is walked, large enough for the hand-over between threads
 * not to matter; enough of them that neither thread waits when the system takes the other one off its core for a
 * while. In front of a piece there is room for what the piece before it left over. */
enum { PIECE = 512 << 10, PIECES = 16, ROOM = K25_TRACE_LONGEST + PIECE + K25_TRACE_SLACK };

struct piece {
    char *text; /* PIECE + K25_TRACE_SLACK bytes, K25_TRACE_LONGEST in front of them */
    size_t size;
    bool last;
};

struct reader {
    const char *path;
    struct k25_inflate *stream;
    struct k25_trace_walk walk;
    struct piece pieces[PIECES];
    bool failed;
    struct k25_error failure; /* of the system, while inflating */
};

static void inflate_piece(struct reader *reader, struct piece *piece)
{
    piece->size = 0;
    if (!reader->failed) {
        reader->failed = !k25_inflate_next(reader->stream, piece->text, PIECE, &piece->size, &reader->failure);
    }
    memset(piece->text + piece->size, 0, K25_TRACE_SLACK);
    piece->last = piece->size < PIECE || reader->failed;
}

/* Leaves the piece to be inflated, after those before it, by whichever thread of the team is free; with one thread
 * only, at once or when it is waited for. */
static void ask_for(struct reader *reader, struct piece *piece)
{
#pragma omp task default(none) firstprivate(reader, piece) depend(inout : reader->failed) depend(out : piece[0])
    inflate_piece(reader, piece);
}

/* Walks piece by piece while the next ones are inflated. */
static void overlap(struct reader *reader)
{
    struct k25_trace_walk *walk = &reader->walk;
    uint64_t offset = 0;
    size_t left = 0; /* bytes in front of the piece */
    for (int i = 0; i < PIECES; i++) {
        ask_for(reader, &reader->pieces[i]);
    }
    for (int i = 0;; i = (i + 1) % PIECES) {
        struct piece *piece = &reader->pieces[i];
#pragma omp taskwait depend(in : piece[0])
        const char *text = piece->text - left;
        size_t size = left + piece->size;
        size_t done = k25_trace_walk_feed(walk, text, size, offset, piece->last);
        offset += done;
        left = size - done;
        if (piece->last || walk->refusal != NULL || walk->stopped || walk->out_of_memory) {
            break;
        }
        memcpy(reader->pieces[(i + 1) % PIECES].text - left, text + done, left);
        ask_for(reader, piece);
    }
#pragma omp taskwait
    walk->info->json_bytes = offset + left;
}

static void read_all(struct reader *reader)
{
#ifdef _OPENMP
    if (!omp_in_parallel()) {
        /* the master walks, so that the visitor is called by the caller's thread; the other one takes the tasks */
#pragma omp parallel num_threads(2) default(none) firstprivate(reader)
#pragma omp master
        overlap(reader);
        return;
    }
#endif
    overlap(reader);
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

/* What the file is instead of a trace. */
static bool refused(const struct reader *reader, struct k25_error *error)
{
    const struct k25_trace_walk *walk = &reader->walk;
    const struct k25_trace_info *info = walk->info;
    if (walk->refusal != NULL && info->json_bytes == 0 && (info->truncated || info->bad_container)) {
        return k25_fail(error, K25_BAD_INPUT, "%s: the gzip file is damaged or cut off at its beginning",
                        reader->path);
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
    return k25_fail(
        error, K25_BAD_INPUT,
        "%s: a list without a single trace event (an object with \"ph\"), so not a torch.profiler trace",
        reader->path);
}

/* What is refused unless lenient. */
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
        return k25_fail(
            error, K25_BAD_INPUT,
            "%s: byte %" PRIu64 " of the file: %s; %" PRIu64 " kernels were read, --lenient keeps them",
            reader->path, info->file_bytes,
            k25_inflate_end(reader->stream) == K25_INFLATE_FOLLOWED ? "other data follows the last gzip member"
                                                                    : "the gzip data is damaged",
            kernels);
    }
    if (info->damaged_kernels * 100 > all) {
        snprintf(what, sizeof what,
                 "%" PRIu64 " of %" PRIu64
                 " kernel events cannot be read, more than 1 %%; this is the first damage, "
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

/* What can be said once everything is read. */
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
    char *rooms = malloc((size_t)PIECES * ROOM); /* most of the room in front of pieces is never touched */
    bool done = false;
    if (rooms == NULL || !k25_trace_walk_start(&reader->walk, options, visit, context, info)) {
        k25_fail(error, K25_RESOURCE, "%s: out of memory", reader->path);
    } else {
        for (int i = 0; i < PIECES; i++) {
            reader->pieces[i].text = rooms + (size_t)i * ROOM + K25_TRACE_LONGEST;
        }
        read_all(reader);
        complete(reader);
        done = judge(reader, options->lenient, error);
        k25_trace_walk_free(&reader->walk);
    }
    free(rooms);
    return done;
}

bool k25_trace_read(const char *path, const struct k25_trace_options *options, k25_trace_visit *visit,
                    void *context, struct k25_trace_info *info, struct k25_error *error)
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
    bool done = reader->stream != NULL &&
                with_room(reader, options == NULL ? &strict : options, visit, context, info, error);
    k25_inflate_close(reader->stream);
    free(reader);
    return done;
}
