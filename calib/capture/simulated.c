#include "calib/capture/simulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/rules/operators.h"
#include "calib/trace/write.h"

static const int64_t START_NS = 1000000; /* of the first kernel, behind the clock's base */
static const uint64_t GRAPH = 7;         /* id of the one graph that every step replays */

struct recorder {
    const struct k25_prediction *prediction;
    const struct k25_plan *plan;
    int ranks;
    struct k25_trace_writer *writer[K25_MAX_GPUS]; /* NULL: nothing is written */
    double *start;                                 /* [steps + 1] of each step on rank 0 */
    int steps, started[K25_MAX_GPUS];
    double first[K25_MAX_GPUS], end[K25_MAX_GPUS]; /* of the step under way */
    double allreduce;
    uint64_t node;
};

static int64_t ns(double seconds)
{
    return START_NS + llround(seconds * 1e9);
}

/* The range that vLLM puts around a step: sequences, tokens, and context as a TraceLens-patched build prints it. */
static void close_step(struct recorder *recorder, int rank)
{
    struct k25_trace_writer *writer = recorder->writer[rank];
    char name[160];
    int batch = recorder->plan->batch;
    if (writer == NULL || recorder->started[rank] == 0)
        return;
    snprintf(name, sizeof name, "execute_%d_context_0(sq0sk0sqsq0sqsk0)_generation_%d(sq%dsk%.0fsqsq%dsqsk%.0f)", batch,
             batch, batch, batch * recorder->plan->context, batch, batch * recorder->plan->context);
    int64_t from = ns(recorder->first[rank]), to = ns(recorder->end[rank]);
    k25_trace_write_annotation(writer, name, from - 1, to - from + 2, true, (uint64_t)recorder->started[rank]);
}

static bool record(void *context, const struct k25_sim_event *event)
{
    struct recorder *recorder = context;
    int rank = event->rank;
    if (event->step >= recorder->started[rank]) {
        close_step(recorder, rank);
        recorder->started[rank] = event->step + 1;
        recorder->first[rank] = event->start;
        if (rank == 0)
            recorder->start[event->step] = event->start;
    }
    recorder->end[rank] = event->start + event->duration;
    if (event->op->kind == K25_OP_ALLREDUCE)
        recorder->allreduce += event->duration / recorder->ranks;
    if (recorder->writer[rank] == NULL)
        return true;
    size_t index = (size_t)(event->op - recorder->prediction->step_work.op);
    int64_t from = ns(event->start);
    struct k25_written_kernel kernel = {
        .name = k25_operator_kernel(event->op, recorder->prediction->op[index].backend).name,
        .ts_ns = from,
        .dur_ns = ns(event->start + event->duration) - from,
        .stream = 7,
        .correlation = (uint64_t)event->step + 1,
        .graph_id = GRAPH,
        .graph_node = ++recorder->node,
    };
    k25_trace_write_kernel(recorder->writer[rank], &kernel);
    return true;
}

bool k25_simulated_path(const char *folder, int rank, char *out, size_t size, struct k25_error *error)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    int length = snprintf(out, size, "%.*s/rank%d.%lld.pt.trace.json.gz", (int)end, folder, rank,
                          (long long)(K25_TRACE_BASE_NS + START_NS));
    return (length >= 0 && (size_t)length < size) ||
           k25_fail(error, K25_BAD_INPUT, "%s: the name of the folder is too long", folder);
}

static bool open_writers(struct recorder *recorder, const char *device, const char *folder, struct k25_error *error)
{
    char path[1024];
    for (int rank = 0; folder != NULL && rank < recorder->ranks; rank++) {
        struct k25_trace_writer_options options = {.rank = rank, .world_size = recorder->ranks, .device = device};
        if (!k25_simulated_path(folder, rank, path, sizeof path, error))
            return false;
        recorder->writer[rank] = k25_trace_writer_open(path, &options, error);
        if (recorder->writer[rank] == NULL)
            return false;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(struct recorder *recorder, struct k25_sim_summary *summary)
{
    int n = recorder->steps - 1; /* periods: the last step has no successor */
    for (int i = 0; i < n; i++)
        recorder->start[i] = recorder->start[i + 1] - recorder->start[i];
    qsort(recorder->start, (size_t)(n > 0 ? n : 0), sizeof *recorder->start, by_value);
    *summary = (struct k25_sim_summary){NAN, NAN, NAN, recorder->allreduce / recorder->steps};
    if (n > 0) {
        summary->step_median = (recorder->start[(n - 1) / 2] + recorder->start[n / 2]) / 2;
        summary->step_p95 = recorder->start[(int)ceil(0.95 * n) - 1];
        summary->step_worst = recorder->start[n - 1];
    }
}

bool k25_simulate_capture(const struct k25_question *question, const struct k25_params *params,
                          const struct k25_simulation *simulation, const char *folder, struct k25_sim_summary *summary,
                          struct k25_error *error)
{
    struct k25_prediction *prediction = malloc(sizeof *prediction);
    struct recorder *recorder = calloc(1, sizeof *recorder);
    double *start = calloc((size_t)simulation->steps + 1, sizeof *start);
    bool ok = prediction != NULL && recorder != NULL && start != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    if (ok) {
        k25_predict(question, params, prediction);
        *recorder = (struct recorder){.prediction = prediction,
                                      .plan = &question->plan,
                                      .ranks = question->group[K25_RANKS_TP].n,
                                      .start = start,
                                      .steps = simulation->steps};
        ok = open_writers(recorder, question->machine->gpu.name, folder, error) &&
             k25_simulate(question, params, simulation, record, recorder, prediction, error);
    }
    for (int rank = 0; recorder != NULL && rank < recorder->ranks; rank++) {
        if (ok)
            close_step(recorder, rank);
        if (recorder->writer[rank] == NULL)
            continue;
        if (ok)
            ok = k25_trace_writer_close(recorder->writer[rank], error);
        else
            k25_trace_writer_abandon(recorder->writer[rank]);
    }
    if (ok)
        summarise(recorder, summary);
    free(start);
    free(recorder);
    free(prediction);
    return ok;
}
