#include "calib/fit/observe.h"
#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/rules/operators.h"
#include "hw/collective/slopes.h"
#include "model/predict/slopes.h"
#include "model/predict/uncertainty.h"

static const double NO_BETTER = 1e-4; /* the smallest sigma: less is rounding of nanoseconds */

/* The seconds of a sum of parts, and its slopes where they are asked for. */
static double sum_parts(const struct k25_question *question, const struct k25_params *params,
                        const struct k25_prediction *p, const struct k25_part_weights *weights,
                        struct k25_slopes *slopes)
{
    double sum = 0;
    for (size_t i = 0; i < p->step_work.count; i++) {
        if (p->step_work.op[i].kind == K25_OP_KERNEL)
            sum += weights->kernel[i] * p->op[i].time;
        else
            sum += weights->transfer[i] * p->op[i].transfer + weights->wait[i] * p->op[i].wait;
    }
    if (slopes != NULL)
        k25_slopes_of_parts(question, params, p, weights, slopes);
    return sum;
}

static void weigh_bucket(const struct k25_prediction *p, enum k25_bucket bucket, struct k25_part_weights *weights)
{
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        weights->kernel[i] = k25_operator_kernel(op, p->op[i].backend).bucket == bucket;
    }
}

/* The mean over the AllReduces of the step: transfer, wait, or both. Messages within 1 % of `bytes` (all of the hidden
 * size where a capture does not say). */
static void weigh_allreduces(const struct k25_prediction *p, double bytes, bool transfer, bool wait,
                             struct k25_part_weights *weights)
{
    double calls = 0;
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        bool counts = op->kind == K25_OP_ALLREDUCE && (bytes <= 0 || fabs(op->message / bytes - 1) <= 0.01);
        weights->transfer[i] = counts && transfer;
        weights->wait[i] = counts && wait;
        calls += counts ? op->calls : 0;
    }
    for (size_t i = 0; i < p->step_work.count && calls > 0; i++) {
        weights->transfer[i] /= calls;
        weights->wait[i] /= calls;
    }
}

/* Root mean square over collectives of a kind of the spread of one rank's arrival, s^2 = sigma^2 + (rho segment)^2. The
 * kinds differ in their segments, which tells the two parts apart. With f the root, C all calls and c those of one,
 *
 *     d f^2 = sum c/C ( 2 sigma^2 dln sigma + 2 (rho segment)^2 (dln rho + dln segment) )  */
static double jitter(const struct k25_question *question, const struct k25_prediction *p, enum k25_operator_kind kind,
                     const struct k25_params *params, struct k25_slopes *slopes)
{
    struct k25_part_weights weights = {0};
    double sigma = params->value[K25_SKEW_SIGMA], rho = params->value[K25_SKEW_RHO];
    double fixed = 0, grown = 0, calls = 0, segment = 0;
    size_t first = 0;
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        if (op->kind == K25_OP_KERNEL) {
            segment += p->op[i].time / op->calls;
            continue;
        }
        if (op->kind == kind) {
            fixed += op->calls * sigma * sigma;
            grown += op->calls * rho * rho * segment * segment;
            calls += op->calls;
            for (size_t k = first; k < i; k++)
                weights.kernel[k] = op->calls * 2 * rho * rho * segment / p->step_work.op[k].calls;
        }
        first = i + 1;
        segment = 0;
    }
    double root = calls > 0 ? sqrt((fixed + grown) / calls) : 0;
    if (slopes != NULL && root > 0) {
        for (size_t i = 0; i < p->step_work.count; i++)
            weights.kernel[i] /= 2 * root * calls;
        k25_slopes_of_parts(question, params, p, &weights, slopes);
        slopes->param[K25_SKEW_SIGMA] += fixed / calls / root;
        slopes->param[K25_SKEW_RHO] += grown / calls / root;
    }
    return root;
}

/* nccl-tests runs NCCL, whatever the engine would. */
static double burst(const struct k25_observed *o, const struct k25_params *params, struct k25_slopes *slopes)
{
    struct k25_question question = o->question;
    question.group[K25_RANKS_TP] = o->group;
    double rows = o->bytes / (2.0 * question.architecture->hidden);
    question.plan.allreduce.backend = K25_AR_NCCL;
    enum k25_backend backend = k25_allreduce_choice(&question, rows, o->bytes, params);
    if (slopes != NULL)
        k25_allreduce_slopes(backend, o->bytes, &o->group, params, 1, slopes);
    return k25_allreduce_time(backend, o->bytes, &o->group, params);
}

/* gaps and host: all of the step but the GPU's work and a pipeline's bubble. */
static double idle(const struct k25_question *question, const struct k25_params *params, const struct k25_prediction *p,
                   struct k25_slopes *slopes)
{
    double slope[K25_TERMS][K25_PARAMS];
    if (slopes != NULL) {
        k25_term_slopes(question, params, p, slope);
        for (int id = 0; id < K25_PARAMS; id++)
            slopes->param[id] = p->gaps * slope[K25_TERM_GAPS][id] + p->host * slope[K25_TERM_HOST][id];
    }
    return p->gaps + p->host;
}

/* The number in s, and d number / d ln theta where slopes are asked for. */
static double observe(const struct k25_observed *o, const struct k25_params *params, struct k25_slopes *slopes)
{
    struct k25_prediction p;
    struct k25_part_weights weights = {0};
    if (o->kind == K25_OBSERVED_BURST)
        return burst(o, params, slopes);
    k25_predict(&o->question, params, &p);
    switch (o->kind) {
    case K25_OBSERVED_BUCKET:
        weigh_bucket(&p, o->bucket, &weights);
        break;
    case K25_OBSERVED_TRANSFER:
        weigh_allreduces(&p, o->bytes, true, false, &weights);
        break;
    case K25_OBSERVED_ALLREDUCE:
        weigh_allreduces(&p, o->bytes, true, true, &weights);
        break;
    case K25_OBSERVED_WAIT:
        weigh_allreduces(&p, o->bytes, false, true, &weights);
        break;
    case K25_OBSERVED_JITTER:
        return jitter(&o->question, &p, o->collective, params, slopes);
    case K25_OBSERVED_LAG:
        if (slopes != NULL)
            slopes->param[K25_SKEW_LAG] = params->value[K25_SKEW_LAG];
        return params->value[K25_SKEW_LAG];
    case K25_OBSERVED_IDLE:
        return idle(&o->question, params, &p, slopes);
    case K25_OBSERVED_STEP:
        if (slopes != NULL)
            k25_slopes(&o->question, params, &p, slopes);
        return p.step;
    case K25_OBSERVED_BURST: /* above */
    case K25_OBSERVED_KINDS:
        break;
    }
    return sum_parts(&o->question, params, &p, &weights, slopes);
}

double k25_observed_predict(const void *observed, const struct k25_params *params, double *slope)
{
    struct k25_slopes slopes = {0};
    double value = observe(observed, params, slope != NULL ? &slopes : NULL);
    for (int id = 0; slope != NULL && id < K25_PARAMS; id++)
        slope[id] = value > 0 ? slopes.param[id] / value : 0;
    return value;
}

void k25_observations_free(struct k25_observations *observations)
{
    free(observations->list);
    memset(observations, 0, sizeof *observations);
}

/* Adds `made` with its measured value and its own relative noise; nothing when the value is no positive number. */
static bool add(struct k25_observations *list, struct k25_observed made, double measured, double noise,
                const struct k25_evidence_source *source, const char *what, struct k25_error *error)
{
    if (!(measured > 0) || !isfinite(measured))
        return true;
    struct k25_observed *added = K25_LIST_ADD(list->list, list->count);
    if (added == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    made.measured = measured;
    made.sigma = fmax(NO_BETTER, hypot(isfinite(noise) ? noise : 0, source->discrepancy));
    made.evidence = source->number;
    snprintf(made.label, sizeof made.label, "%.80s: %.40s", source->name, what);
    *added = made;
    return true;
}

/* Mean and standard error over ranks of the time of a bucket in a step. */
static double bucket_measured(const struct k25_capture *capture, enum k25_bucket bucket, double *noise)
{
    double sum = 0, squares = 0;
    int n = 0;
    for (int r = 0; r < capture->ranks; r++) {
        const struct k25_rank *rank = &capture->rank[r];
        double time = 0;
        for (int class = 0; class < rank->classes; class ++) {
            if (k25_kernel_rules_describe(capture->rules, class)->bucket == bucket)
                time += (double)rank->class_ns[class] * 1e-9;
        }
        if (rank->kept == 0)
            continue;
        time /= (double)rank->kept;
        sum += time;
        squares += time * time;
        n++;
    }
    double mean = n > 0 ? sum / n : NAN;
    /* Ranks differ by more than their noise; the spread of their mean is the honest doubt in it. */
    *noise = n > 1 ? sqrt(fmax(0, squares / n - mean * mean) / (n - 1)) / mean : 0.02;
    return mean;
}

static bool observe_allreduce(const struct k25_capture *capture, const struct k25_capture_group *group,
                              struct k25_observed made, const struct k25_evidence_source *source,
                              struct k25_observations *list, struct k25_error *error)
{
    double calls = fmax(1, (double)group->matched);
    made.bytes = group->bytes > 0 ? (double)group->bytes : 0;
    if (capture->ranks < 2) {
        made.kind = K25_OBSERVED_ALLREDUCE;
        return add(list, made, group->duration, 0.1, source, "AllReduce with its wait, one rank", error);
    }
    /* The transfer's own noise is that of the ends; a wait is the mean of `calls` draws of a maximum, whose coefficient
     * of variation is below one half for any shape seen. */
    made.kind = K25_OBSERVED_TRANSFER;
    if (!add(list, made, group->transfer, group->end_jitter / group->transfer / sqrt(calls) + 0.002, source,
             "AllReduce transfer", error))
        return false;
    made.kind = K25_OBSERVED_WAIT;
    if (!add(list, made, group->wait, 0.5 / sqrt(calls) + 0.025, source, "AllReduce wait", error))
        return false;
    made.kind = K25_OBSERVED_LAG;
    double segments = 0; /* every collective of a step ends one, whatever its class */
    for (size_t i = 0; i < capture->groups; i++)
        segments += isfinite(capture->group[i].per_step) ? capture->group[i].per_step : 0;
    double lag = capture->slow_rank >= 0 && segments > 0 ? capture->slow_lag / segments : NAN;
    double error_of_lag = group->wait_sigma / sqrt(calls);
    return add(list, made, lag, error_of_lag / lag + 0.002, source, "lag of the slow rank", error);
}

/* How far the arrivals at the collectives of a group spread: the standard deviation of a normal sample from `matched`
 * times ranks - 1 values. */
static bool observe_jitter(const struct k25_capture *capture, const struct k25_capture_group *group,
                           enum k25_operator_kind collective, struct k25_observed made,
                           const struct k25_evidence_source *source, struct k25_observations *list,
                           struct k25_error *error)
{
    if (capture->ranks < 2 || group->matched < 2)
        return true;
    made.kind = K25_OBSERVED_JITTER;
    made.collective = collective;
    double values = ((double)group->matched - 1) * (capture->ranks - 1);
    return add(list, made, group->wait_sigma, 1 / sqrt(2 * values) + 0.005, source,
               collective == K25_OP_ALLREDUCE ? "spread of arrivals at AllReduces" : "spread of arrivals at gathers",
               error);
}

static const char *class_of(enum k25_operator_kind collective)
{
    const struct k25_operator op = {.kind = collective};
    return k25_operator_kernel(&op, 0).class;
}

/* The largest group of a kind of collectives; NULL when there is none. */
static const struct k25_capture_group *main_group(const struct k25_capture *capture, enum k25_operator_kind collective)
{
    int class = k25_kernel_rules_find(capture->rules, class_of(collective));
    for (size_t i = 0; i < capture->groups; i++) {
        if (capture->group[i].class == class)
            return &capture->group[i];
    }
    return NULL;
}

void k25_capture_question(const struct k25_capture *capture, const struct k25_question *question,
                          struct k25_question *captured)
{
    *captured = *question;
    if (capture->sequences > 0)
        captured->plan.batch = capture->sequences;
    if (capture->context > 0)
        captured->plan.context = capture->context;
}

bool k25_observe_capture(const struct k25_capture *capture, const struct k25_question *question,
                         const struct k25_evidence_source *source, struct k25_observations *list,
                         struct k25_error *error)
{
    struct k25_observed made = {0};
    if (isnan(capture->step_period))
        return k25_fail(error, K25_NEGATIVE, "%s: no decode steps were found, so nothing can be fitted to it",
                        source->name);
    k25_capture_question(capture, question, &made.question);
    for (enum k25_bucket bucket = 0; bucket < K25_BUCKET_NONE; bucket++) {
        double noise, measured = bucket_measured(capture, bucket, &noise);
        made.kind = K25_OBSERVED_BUCKET;
        made.bucket = bucket;
        if (!add(list, made, measured, noise, source, k25_bucket_names[bucket], error))
            return false;
    }
    const struct k25_capture_group *allreduce = main_group(capture, K25_OP_ALLREDUCE);
    const struct k25_capture_group *gather = main_group(capture, K25_OP_ALLGATHER);
    if (allreduce != NULL && (!observe_allreduce(capture, allreduce, made, source, list, error) ||
                              !observe_jitter(capture, allreduce, K25_OP_ALLREDUCE, made, source, list, error)))
        return false;
    if (gather != NULL && !observe_jitter(capture, gather, K25_OP_ALLGATHER, made, source, list, error))
        return false;
    made.kind = K25_OBSERVED_IDLE;
    double idle = capture->step_period - capture->gpu_busy;
    return add(list, made, idle, 0.02, source, "idle time of the GPU", error);
}

bool k25_observe_table(const struct k25_profiler_table *table, const struct k25_kernel_rules *rules,
                       const struct k25_question *question, const struct k25_params *params,
                       const struct k25_evidence_source *source, struct k25_observations *list, struct k25_error *error)
{
    double ns[K25_BUCKETS] = {0}, allreduce_ns = 0, allreduces = 0;
    for (size_t i = 0; i < table->rows; i++) {
        const struct k25_profiler_row *row = &table->row[i];
        if (row->level != K25_LEVEL_KERNEL || row->self_device_ns <= 0)
            continue;
        const struct k25_rule_class *class = k25_kernel_rules_describe(rules, k25_kernel_rules_class(rules, row->name));
        if (class->bucket != K25_BUCKET_NONE) {
            ns[class->bucket] += (double)row->self_device_ns;
        } else if (strcmp(class->name, class_of(K25_OP_ALLREDUCE)) == 0) {
            allreduce_ns += (double)row->self_device_ns;
            allreduces += fmax(0, (double)row->calls);
        }
    }
    struct k25_prediction p;
    k25_predict(question, params, &p);
    if (allreduces == 0 || p.allreduces == 0)
        return k25_fail(error, K25_NEGATIVE, "%s: no AllReduce in the table, so the number of steps is unknown",
                        source->name);
    double steps = allreduces / p.allreduces;
    struct k25_observed made = {.question = *question, .kind = K25_OBSERVED_ALLREDUCE};
    for (enum k25_bucket bucket = 0; bucket < K25_BUCKET_NONE; bucket++) {
        struct k25_observed one = {.question = *question, .kind = K25_OBSERVED_BUCKET, .bucket = bucket};
        /* The printed rows are the largest ones; small kernels below the cut are missing, so their sum is not used. */
        if (bucket != K25_BUCKET_SMALL &&
            !add(list, one, ns[bucket] * 1e-9 / steps, 0.03, source, k25_bucket_names[bucket], error))
            return false;
    }
    return add(list, made, allreduce_ns * 1e-9 / allreduces, 0.1, source, "AllReduce with its wait, one rank", error);
}

bool k25_observe_nccl(const struct k25_nccl_tests *tests, const struct k25_question *question, double most,
                      const struct k25_evidence_source *source, struct k25_observations *list, struct k25_error *error)
{
    size_t before = list->count;
    for (size_t r = 0; r < tests->runs; r++) {
        const struct k25_nccl_run *run = &tests->run[r];
        int ranks = run->ranks > 0 ? run->ranks : run->gpus;
        if (strcmp(run->op, "all_reduce") != 0 || ranks < 2 || ranks > question->machine->gpus)
            continue;
        struct k25_observed made = {.question = *question, .kind = K25_OBSERVED_BURST};
        if (!k25_machine_group(question->machine, ranks, &made.group, error))
            return false;
        for (size_t i = 0; i < run->rows; i++) {
            const struct k25_nccl_row *row = &run->row[i];
            double us = isfinite(row->out_of_place.us) ? row->out_of_place.us : row->in_place.us;
            char what[64];
            made.bytes = (double)row->bytes;
            snprintf(what, sizeof what, "AllReduce of %.0f bytes on %d", made.bytes, ranks);
            if (row->bytes > 0 && made.bytes <= most && !row->wrong &&
                !add(list, made, us * 1e-6, 0.05, source, what, error))
                return false;
        }
    }
    return list->count > before || k25_fail(error, K25_NEGATIVE, "%s: no AllReduce on 2 to %d ranks up to %.0f bytes",
                                            source->name, question->machine->gpus, most);
}

bool k25_observe_bench(const struct k25_bench *bench, const struct k25_question *question,
                       const struct k25_evidence_source *source, struct k25_observations *list, struct k25_error *error)
{
    size_t before = list->count;
    for (size_t r = 0; r < bench->runs; r++) {
        const struct k25_bench_run *run = &bench->run[r];
        double batch = isfinite(run->max_concurrency) ? run->max_concurrency : run->concurrency;
        double tpot = isfinite(run->tpot.median) ? run->tpot.median : run->tpot.mean;
        struct k25_observed made = {.question = *question, .kind = K25_OBSERVED_STEP};
        if (!(batch >= 1) || !(tpot > 0) || run->acceptance_length > 1 || !isfinite(run->input_len) ||
            !isfinite(run->output_len))
            continue;
        made.question.plan.batch = (int)lround(batch);
        made.question.plan.context = fmax(1, run->input_len + run->output_len / 2);
        char what[64];
        snprintf(what, sizeof what, "TPOT at %d sequences", made.question.plan.batch);
        if (!add(list, made, tpot * 1e-3, 0.03, source, what, error))
            return false;
    }
    return list->count > before ||
           k25_fail(error, K25_NEGATIVE, "%s: no run with a concurrency, a TPOT and mean lengths", source->name);
}
