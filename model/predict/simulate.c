#include "model/predict/simulate.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/predict/internal.h"

/* The state of a simulation: the time of each rank, and its kernels since the last collective. */
struct run {
    const struct k25_question *question;
    const struct k25_params *params;
    const struct k25_simulation *simulation;
    const struct k25_prediction *prediction;
    k25_sim_visit *visit;
    void *context;
    gsl_rng *random;
    double gap; /* between two kernels */
    int step;
    double now[K25_MAX_GPUS];          /* when each rank is free */
    size_t segment[K25_MAX_OPERATORS]; /* kernels of the current segment */
    size_t length;
};

static double noise(const struct run *run, double sd)
{
    return sd > 0 ? exp(gsl_ran_gaussian_ziggurat(run->random, sd) - sd * sd / 2) : 1; /* mean 1 */
}

static double per_call(const struct run *run, size_t i)
{
    return run->prediction->op[i].time / run->prediction->step_work.op[i].calls;
}

static bool emit(struct run *run, int rank, size_t op, double start, double duration)
{
    struct k25_sim_event event = {rank, run->step, &run->prediction->step_work.op[op], start, duration};
    return run->visit(run->context, &event);
}

/* Time of the segment on this rank / its mean. A segment cannot shrink to nothing. */
static double stretch(const struct run *run, int rank, double segment)
{
    static const double SHORTEST = 0.05;
    const double *p = run->params->value;
    int slow = run->simulation->slow_rank;
    double skew = run->question->plan.levers.skew, lag = skew * p[K25_SKEW_LAG];
    double late = slow < 0 ? 0 : (rank == slow ? lag : 0) - lag / run->question->group[K25_RANKS_TP].n;
    if (run->simulation->jitter)
        late += skew * gsl_ran_gaussian_ziggurat(run->random, hypot(p[K25_SKEW_SIGMA], p[K25_SKEW_RHO] * segment));
    return segment > 0 ? fmax(SHORTEST, 1 + late / segment) : 1;
}

/* Simulates the kernels since the last collective on every rank. */
static bool play_segment(struct run *run)
{
    double gap = run->gap;
    double segment = 0, nominal[K25_MAX_OPERATORS];
    for (size_t i = 0; i < run->length; i++) {
        segment += per_call(run, run->segment[i]);
        nominal[i] = per_call(run, run->segment[i]) * noise(run, run->simulation->kernel_noise);
    }
    for (int rank = 0; rank < run->question->group[K25_RANKS_TP].n; rank++) {
        double factor = stretch(run, rank, segment);
        for (size_t i = 0; i < run->length; i++) {
            size_t op = run->segment[i];
            double duration = nominal[i] * factor;
            if (!emit(run, rank, op, run->now[rank], duration))
                return false;
            run->now[rank] += duration + gap * run->prediction->step_work.op[op].call.launches;
        }
    }
    run->length = 0;
    return true;
}

/* All ranks leave together, the transfer after the last arrival. */
static bool play_collective(struct run *run, size_t op)
{
    int n = run->question->group[K25_RANKS_TP].n;
    double last = 0;
    for (int rank = 0; rank < n; rank++)
        last = fmax(last, run->now[rank]);
    double transfer = run->prediction->op[op].transfer / run->prediction->step_work.op[op].calls;
    double end = last + transfer * noise(run, run->simulation->transfer_noise);
    for (int rank = 0; rank < n; rank++) {
        if (!emit(run, rank, op, run->now[rank], end - run->now[rank]))
            return false;
        run->now[rank] = end + run->gap;
    }
    return true;
}

static bool play_operator(struct run *run, size_t op)
{
    if (run->prediction->step_work.op[op].kind == K25_OP_KERNEL) {
        /* On one GPU no collective ends a segment, so its limits have no meaning. */
        bool full = run->length == K25_MAX_OPERATORS;
        if (full && !play_segment(run))
            return false;
        run->segment[run->length++] = op;
        return true;
    }
    return play_segment(run) && play_collective(run, op);
}

/* Operators of one layer group, or one pass of a draft. */
static bool together(const struct k25_operator *a, const struct k25_operator *b)
{
    return strcmp(a->layers, b->layers) == 0 && a->calls == b->calls;
}

/* One step: each run of operators of one layer group is a layer, repeated as often as the group has layers. */
static bool play_step(struct run *run)
{
    const struct k25_step *work = &run->prediction->step_work;
    size_t begin = 0;
    while (begin < work->count) {
        size_t end = begin;
        while (end < work->count && together(&work->op[end], &work->op[begin]))
            end++;
        for (int layer = 0; layer < (int)work->op[begin].calls; layer++) {
            for (size_t op = begin; op < end; op++) {
                if (!play_operator(run, op))
                    return false;
            }
        }
        begin = end;
    }
    return play_segment(run);
}

bool k25_simulate(const struct k25_question *question, const struct k25_params *params,
                  const struct k25_simulation *simulation, k25_sim_visit *visit, void *context,
                  const struct k25_prediction *prediction, struct k25_error *error)
{
    if (question->plan.pp > 1)
        return k25_fail(error, K25_BAD_INPUT, "a pipeline (plan.pp %d) is predicted, not simulated", question->plan.pp);
    struct run *run = calloc(1, sizeof *run);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    bool ok = run != NULL && random != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    if (ok) {
        gsl_rng_set(random, (unsigned long)simulation->seed);
        *run = (struct run){question, params,  simulation, prediction,
                            visit,    context, random,     k25_launch_gap(&question->plan, prediction, params),
                            0,        {0},     {0},        0};
    }
    for (int step = 0; ok && step < simulation->steps; step++) {
        run->step = step;
        ok = play_step(run);
        /* The host starts the next step on all ranks at once, after the last has finished. */
        double last = 0, host = k25_host_work(question, params, prediction);
        for (int rank = 0; rank < question->group[K25_RANKS_TP].n; rank++)
            last = fmax(last, run->now[rank]);
        for (int rank = 0; rank < question->group[K25_RANKS_TP].n; rank++)
            run->now[rank] = last + host;
    }
    if (random != NULL)
        gsl_rng_free(random);
    free(run);
    return ok;
}
