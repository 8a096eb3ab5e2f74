#include "scenarios/sweep/run.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "scenarios/sweep/chunk.h"

/* ---- messages: chunks as bytes, for the process that writes ---- */

/* Sender and receiver are the same program with the same byte order. */
struct message {
    char *bytes;
    size_t size, room;
};

static bool put(struct message *message, const void *bytes, size_t size, struct k25_error *error)
{
    if (message->room - message->size < size) {
        size_t room = (message->size + size) * 2;
        char *larger = realloc(message->bytes, room);
        if (larger == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        message->bytes = larger;
        message->room = room;
    }
    if (size > 0)
        memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
    return true;
}

static bool put_items(struct message *message, const struct k25_ranked *items, size_t count, struct k25_error *error)
{
    return put(message, &count, sizeof count, error) && put(message, items, count * sizeof *items, error);
}

static bool put_chunk(struct message *message, const struct k25_sweep_chunk *chunk, struct k25_error *error)
{
    const struct k25_sweep_summary *summary = &chunk->summary;
    bool ok = put(message, &chunk->to, sizeof chunk->to, error) &&
              put(message, &chunk->size, sizeof chunk->size, error) && put(message, chunk->text, chunk->size, error) &&
              put(message, &summary->counts, sizeof summary->counts, error) &&
              put(message, &summary->groups, sizeof summary->groups, error);
    for (size_t g = 0; ok && g < summary->groups; g++) {
        const struct k25_sweep_group *group = &summary->group[g];
        ok = put(message, &group->key_length, sizeof group->key_length, error) &&
             put(message, group->key, group->key_length, error) &&
             put_items(message, group->front.item, group->front.count, error) &&
             put_items(message, group->top.item, group->top.count, error);
    }
    return ok;
}

struct reader {
    const char *at, *end;
    struct k25_error *error;
};

static bool cut_off(const struct reader *reader)
{
    return k25_fail(reader->error, K25_RESOURCE, "a message of another process is cut off");
}

static bool get(struct reader *reader, void *out, size_t size)
{
    if ((size_t)(reader->end - reader->at) < size)
        return cut_off(reader);
    if (size > 0)
        memcpy(out, reader->at, size);
    reader->at += size;
    return true;
}

/* The next `size` bytes, not copied. */
static bool get_bytes(struct reader *reader, const char **bytes, size_t size)
{
    *bytes = reader->at;
    if (size > (size_t)(reader->end - reader->at))
        return cut_off(reader);
    reader->at += size;
    return true;
}

/* Decodes a list of another process. */
static bool get_items(struct reader *reader, struct k25_ranked **items, size_t *count)
{
    if (!get(reader, count, sizeof *count))
        return false;
    if (*count > (size_t)(reader->end - reader->at) / sizeof **items)
        return cut_off(reader);
    *items = calloc(*count + 1, sizeof **items);
    if (*items == NULL)
        return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    return get(reader, *items, *count * sizeof **items);
}

/* Decodes a group; its key points into the message. */
static bool get_group(struct reader *reader, struct k25_sweep_group *group)
{
    const char *key = NULL;
    bool ok = get(reader, &group->key_length, sizeof group->key_length) && get_bytes(reader, &key, group->key_length);
    group->key = (char *)(uintptr_t)key;
    return ok && get_items(reader, &group->front.item, &group->front.count) &&
           get_items(reader, &group->top.item, &group->top.count);
}

static bool get_summary(struct reader *reader, struct k25_sweep_summary *summary)
{
    size_t groups = 0;
    if (!get(reader, &summary->counts, sizeof summary->counts) || !get(reader, &groups, sizeof groups))
        return false;
    if (groups > K25_SWEEP_GROUPS)
        return cut_off(reader);
    summary->group = calloc(groups + 1, sizeof *summary->group);
    if (summary->group == NULL)
        return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    for (; summary->groups < groups; summary->groups++) {
        struct k25_sweep_group *group = &summary->group[summary->groups];
        if (!get_group(reader, group)) {
            summary->groups++; /* counted also after a failure, so that it is freed */
            return false;
        }
    }
    return true;
}

static void free_summary(struct k25_sweep_summary *summary)
{
    for (size_t g = 0; g < summary->groups; g++) {
        free(summary->group[g].front.item);
        free(summary->group[g].top.item);
    }
    free(summary->group);
    memset(summary, 0, sizeof *summary);
}

static bool store_chunk(struct reader *reader, struct k25_sweep_store *store, struct k25_sweep_summary *summary)
{
    uint64_t to = 0;
    size_t size = 0;
    const char *rows = NULL;
    bool ok = get(reader, &to, sizeof to) && get(reader, &size, sizeof size) && get_bytes(reader, &rows, size) &&
              get_summary(reader, summary) && k25_sweep_store_add(store, to, rows, size, summary, reader->error);
    free_summary(summary);
    return ok;
}

/* Stores all chunks of a message in their order. */
static bool store_chunks(const char *bytes, size_t size, struct k25_sweep_store *store, struct k25_error *error)
{
    struct reader reader = {bytes, bytes + size, error};
    struct k25_sweep_summary *summary = calloc(1, sizeof *summary);
    bool ok = summary != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    while (ok && reader.at < reader.end)
        ok = store_chunk(&reader, store, summary);
    free(summary);
    return ok;
}

/* ---- threads ---- */

/* Chunks of a round: per thread when there is one process, which checks `stop` between rounds; per process when there
 * are several, which keep their rows until the end of the round. */
enum { ALONE = 64, TOGETHER = 32 };

struct run {
    const struct k25_sweep *sweep;
    const struct k25_sweep_options *options;
    const struct k25_sweep_processes *processes;
    struct k25_sweep_store *store; /* NULL: another process writes */
    struct message message;
    int threads;
    struct k25_sweep_worker **worker; /* one per thread */
    uint64_t from, to, chunk;
    bool failed;
    struct k25_error *error;
};

static bool asked_to_stop(const struct run *run)
{
    return run->options->stop != NULL && *run->options->stop != 0;
}

/* Called with chunks in the order of the grid, one at a time. */
static bool deliver(struct run *run, const struct k25_sweep_chunk *chunk, struct k25_error *error)
{
    if (run->store == NULL)
        return put_chunk(&run->message, chunk, error);
    if (!k25_sweep_store_add(run->store, chunk->to, chunk->text, chunk->size, &chunk->summary, error))
        return false;
    if (run->options->progress != NULL)
        run->options->progress(run->options->context, run->store);
    return true;
}

static bool has_failed(struct run *run)
{
    bool failed;
#pragma omp atomic read
    failed = run->failed;
    return failed;
}

/* Records the first failure. */
static void note_failure(struct run *run, const struct k25_error *error)
{
#pragma omp critical(k25_sweep_failure)
    {
        if (!has_failed(run))
            *run->error = *error;
#pragma omp atomic write
        run->failed = true;
    }
}

/* The points first..last-1, chunk by chunk. After a failure or a stop no more chunks are delivered, so that the stored
 * rows have no gap. */
static void run_chunks(struct run *run, uint64_t first, uint64_t last)
{
    int64_t chunks = (int64_t)((last - first + run->chunk - 1) / run->chunk);
    bool halted = false; /* accessed only in the ordered region */
#pragma omp parallel num_threads(run->threads)
    {
        struct k25_sweep_worker *worker = run->worker[omp_get_thread_num()];
#pragma omp for ordered schedule(dynamic, 1)
        for (int64_t i = 0; i < chunks; i++) {
            uint64_t from = first + (uint64_t)i * run->chunk, to = last - from < run->chunk ? last : from + run->chunk;
            struct k25_error error;
            const struct k25_sweep_chunk *chunk = NULL;
            if (!has_failed(run) && !asked_to_stop(run)) {
                chunk = k25_sweep_worker_run(worker, from, to, &error);
                if (chunk == NULL)
                    note_failure(run, &error);
            }
#pragma omp ordered
            {
                halted = halted || chunk == NULL || has_failed(run);
                if (!halted && !deliver(run, chunk, &error))
                    note_failure(run, &error);
            }
        }
    }
}

/* ---- processes ---- */

/* Stores the rows of the other processes of this round, in their order. A process that stopped or failed sends fewer
 * points; the rows after a gap are not stored. */
static void gather(struct run *run, uint64_t first, uint64_t share)
{
    for (int rank = 1; rank < run->processes->count; rank++) {
        const char *bytes;
        size_t size;
        struct k25_error error;
        uint64_t start = first + share * (uint64_t)rank;
        if (!run->processes->receive(run->processes->context, rank, &bytes, &size, &error))
            note_failure(run, &error);
        else if (!has_failed(run) && run->store->next == start && start < run->to &&
                 !store_chunks(bytes, size, run->store, &error))
            note_failure(run, &error);
    }
    if (run->options->progress != NULL)
        run->options->progress(run->options->context, run->store);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One round: `share` points for each process. */
static void run_round(struct run *run, uint64_t first, uint64_t share)
{
    int rank = run->processes != NULL ? run->processes->rank : 0;
    uint64_t from = least(run->to, first + share * (uint64_t)rank), to = least(run->to, from + share);
    run->message.size = 0;
    run_chunks(run, from, to);
    if (run->processes == NULL)
        return;
    struct k25_error error;
    if (run->store != NULL)
        gather(run, first, share);
    else if (!run->processes->send(run->processes->context, run->message.bytes, run->message.size, &error))
        note_failure(run, &error);
}

static bool go_on(struct run *run)
{
    bool halt = has_failed(run) || asked_to_stop(run);
    return run->processes != NULL ? run->processes->first_with(run->processes->context, halt) < 0 : !halt;
}

static void run_rounds(struct run *run)
{
    uint64_t count = run->processes != NULL ? (uint64_t)run->processes->count : 1;
    uint64_t share = (run->processes != NULL ? TOGETHER : (uint64_t)run->threads * ALONE) * run->chunk;
    for (uint64_t first = run->from; go_on(run) && first < run->to; first += least(run->to - first, share * count))
        run_round(run, first, share);
}

static bool open_workers(struct run *run, const struct k25_sweep_layout *layout,
                         const struct k25_sweep_axis_cells *axis_cells)
{
    run->threads = omp_get_max_threads();
    run->worker = calloc((size_t)run->threads, sizeof(struct k25_sweep_worker *));
    if (run->worker == NULL)
        return k25_fail(run->error, K25_RESOURCE, "out of memory");
    for (int i = 0; i < run->threads; i++) {
        run->worker[i] = k25_sweep_worker_open(run->sweep, layout, axis_cells, run->error);
        if (run->worker[i] == NULL)
            return false;
    }
    return true;
}

bool k25_sweep_run(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                   const struct k25_sweep_options *options, struct k25_sweep_store *store, uint64_t from, uint64_t to,
                   struct k25_error *error)
{
    struct run run = {.sweep = sweep,
                      .options = options,
                      .processes = options->processes,
                      .store = store,
                      .from = from,
                      .to = to,
                      .chunk = options->chunk > 0 ? options->chunk : K25_SWEEP_CHUNK,
                      .error = error};
    struct k25_sweep_axis_cells *axis_cells = k25_sweep_axis_cells_make(sweep, layout, error);
    run.failed = axis_cells == NULL || !open_workers(&run, layout, axis_cells);
    if (!run.failed || run.processes != NULL)
        run_rounds(&run);
    for (int i = 0; run.worker != NULL && i < run.threads; i++)
        k25_sweep_worker_close(run.worker[i]);
    free(run.worker);
    free(run.message.bytes);
    k25_sweep_axis_cells_free(axis_cells);
    return !run.failed;
}
