#include "scenarios/sweep/run.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "scenarios/sweep/chunk.h"
#include "scenarios/sweep/parcel.h"

/* Chunks between two meetings: of each thread, and of each process of a team. Alone, meetings are for the wish to
 * stop; in a team a process keeps its rows until the round is over. */
enum { ALONE = 64, IN_TEAM = 32 };

struct run {
    const struct k25_sweep *sweep;
    const struct k25_sweep_options *options;
    const struct k25_sweep_team *team;
    struct k25_sweep_store *store; /* NULL: another process writes */
    struct k25_sweep_parcel parcel;
    int threads;
    struct k25_sweep_worker **worker; /* of each thread */
    uint64_t from, to, chunk;
    bool failed;
    struct k25_error *error;
};

static bool asked_to_stop(const struct run *run)
{
    return run->options->stop != NULL && *run->options->stop != 0;
}

/* Chunks arrive here in the order of the grid, one at a time. */
static bool deliver(struct run *run, const struct k25_sweep_chunk *chunk, struct k25_error *error)
{
    if (run->store == NULL)
        return k25_sweep_pack(&run->parcel, chunk, error);
    uint64_t order = run->store->counts.rows;
    if (!k25_sweep_store_add(run->store, chunk->to, chunk->text, chunk->size, &chunk->counts, error) ||
        !k25_digest_merge(&run->store->digest, &chunk->digest, chunk->text, order, error))
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

/* The first failure counts. */
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

/* The points first..last-1, chunk by chunk. After a failure or the wish to stop nothing more is delivered, so that
 * what is stored has no gap. */
static void run_stretch(struct run *run, uint64_t first, uint64_t last)
{
    int64_t chunks = (int64_t)((last - first + run->chunk - 1) / run->chunk);
    bool halted = false; /* only inside of the ordered part */
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

/* What the other processes made of this round, in their order. A short parcel is of one that stopped or failed:
 * what comes behind it would leave a gap. */
static void gather(struct run *run, uint64_t first, uint64_t share)
{
    for (int rank = 1; rank < run->team->size; rank++) {
        const char *bytes;
        size_t size;
        struct k25_error error;
        uint64_t start = first + share * (uint64_t)rank;
        if (!run->team->receive(run->team->context, rank, &bytes, &size, &error))
            note_failure(run, &error);
        else if (!has_failed(run) && run->store->next == start && start < run->to &&
                 !k25_sweep_unpack(bytes, size, run->store, &error))
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
    int rank = run->team != NULL ? run->team->rank : 0;
    uint64_t from = least(run->to, first + share * (uint64_t)rank), to = least(run->to, from + share);
    run->parcel.size = 0;
    run_stretch(run, from, to);
    if (run->team == NULL)
        return;
    struct k25_error error;
    if (run->store != NULL)
        gather(run, first, share);
    else if (!run->team->send(run->team->context, run->parcel.bytes, run->parcel.size, &error))
        note_failure(run, &error);
}

static bool go_on(struct run *run)
{
    bool halt = has_failed(run) || asked_to_stop(run);
    return run->team != NULL ? run->team->agree(run->team->context, halt) < 0 : !halt;
}

static void run_rounds(struct run *run)
{
    uint64_t processes = run->team != NULL ? (uint64_t)run->team->size : 1;
    uint64_t share = (run->team != NULL ? IN_TEAM : (uint64_t)run->threads * ALONE) * run->chunk;
    for (uint64_t first = run->from; go_on(run) && first < run->to; first += least(run->to - first, share * processes))
        run_round(run, first, share);
}

static bool open_workers(struct run *run, const struct k25_sweep_frame *frame, const struct k25_sweep_texts *texts)
{
    run->threads = omp_get_max_threads();
    run->worker = calloc((size_t)run->threads, sizeof(struct k25_sweep_worker *));
    if (run->worker == NULL)
        return k25_fail(run->error, K25_RESOURCE, "out of memory");
    for (int i = 0; i < run->threads; i++) {
        run->worker[i] = k25_sweep_worker_open(run->sweep, frame, texts, run->error);
        if (run->worker[i] == NULL)
            return false;
    }
    return true;
}

bool k25_sweep_run(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                   const struct k25_sweep_options *options, struct k25_sweep_store *store, uint64_t from, uint64_t to,
                   struct k25_error *error)
{
    struct run run = {.sweep = sweep,
                      .options = options,
                      .team = options->team,
                      .store = store,
                      .from = from,
                      .to = to,
                      .chunk = options->chunk > 0 ? options->chunk : K25_SWEEP_CHUNK,
                      .error = error};
    struct k25_sweep_texts *texts = k25_sweep_texts_make(sweep, frame, error);
    run.failed = texts == NULL || !open_workers(&run, frame, texts);
    if (!run.failed || run.team != NULL)
        run_rounds(&run);
    for (int i = 0; run.worker != NULL && i < run.threads; i++)
        k25_sweep_worker_close(run.worker[i]);
    free(run.worker);
    free(run.parcel.bytes);
    k25_sweep_texts_free(texts);
    return !run.failed;
}
