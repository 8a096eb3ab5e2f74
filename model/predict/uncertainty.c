#include "model/predict/uncertainty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/predict/internal.h"
#include "model/predict/slopes.h"

double k25_output_value(const struct k25_prediction *p, enum k25_output output)
{
    switch (output) {
    case K25_OUT_STEP:
        return p->step;
    case K25_OUT_TPOT:
        return p->tpot;
    case K25_OUT_TOK_S:
        return p->tok_s;
    case K25_OUT_GPU_BUSY:
        return p->gpu_busy;
    case K25_OUT_KERNELS:
        return p->kernels;
    case K25_OUT_ALLREDUCE:
        return p->allreduce;
    case K25_OUT_ALLREDUCE_TRANSFER:
        return p->allreduce_transfer;
    case K25_OUT_ALLREDUCE_WAIT:
        return p->allreduce_wait;
    case K25_OUT_ALLREDUCE_SHARE:
        return p->allreduce_share;
    case K25_OUT_OTHER_COLLECTIVES:
        return p->other_collectives;
    case K25_OUT_GAPS:
        return p->gaps;
    case K25_OUT_DRAFT:
        return p->draft;
    case K25_OUT_BUBBLE:
        return p->bubble;
    default:
        return p->host;
    }
}

double k25_covariance_of(const double g[K25_PARAMS], const double h[K25_PARAMS], const struct k25_uncertainty *u)
{
    double sum = 0;
    for (size_t i = 0; i < u->count; i++) {
        double row = 0;
        for (size_t j = 0; j < u->count; j++)
            row += u->covariance[i * u->count + j] * h[u->id[j]];
        sum += g[u->id[i]] * row;
    }
    return sum;
}

/* Rounding may leave g' C g a little below 0. */
double k25_spread_of(const double slope[K25_PARAMS], const struct k25_uncertainty *u)
{
    return sqrt(fmax(k25_covariance_of(slope, slope, u), 0));
}

static struct k25_interval interval(double value, double sd)
{
    return (struct k25_interval){value * exp(-K25_Z90 * sd), value * exp(K25_Z90 * sd)};
}

/* d time / d ln theta, s, of the operators of one kind; the parts of a step that are sums of operators. */
enum part { KERNELS, TRANSFER, WAIT, OTHER, DRAFT, PARTS };

static double weight_in(enum part part, const struct k25_operator *op, bool wait)
{
    switch (part) {
    case KERNELS:
        return op->kind == K25_OP_KERNEL;
    case TRANSFER:
        return op->kind == K25_OP_ALLREDUCE && !wait;
    case WAIT:
        return op->kind == K25_OP_ALLREDUCE && wait;
    case OTHER:
        return op->kind != K25_OP_KERNEL && op->kind != K25_OP_ALLREDUCE;
    case DRAFT:
        return op->part == K25_PART_DRAFT;
    case PARTS:
        break;
    }
    return 0;
}

static void slopes_of_part(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_prediction *p, enum part part, struct k25_slopes *slopes)
{
    struct k25_part_weights weights;
    memset(slopes, 0, sizeof *slopes);
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        weights.kernel[i] = weights.transfer[i] = weight_in(part, op, false);
        weights.wait[i] = weight_in(part, op, true);
    }
    weights.tail = 0;
    k25_slopes_of_parts(question, params, p, &weights, slopes);
}

/* From slopes in seconds to elasticities. */
static void relate(const double slopes[K25_PARAMS], double value, double slope[K25_PARAMS])
{
    for (int id = 0; id < K25_PARAMS; id++)
        slope[id] = value > 0 ? slopes[id] / value : 0;
}

void k25_step_slopes(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *p, double slope[K25_PARAMS])
{
    struct k25_slopes slopes;
    k25_slopes(question, params, p, &slopes);
    relate(slopes.param, p->step, slope);
}

void k25_output_slopes(const struct k25_question *question, const struct k25_params *params,
                       const struct k25_prediction *p, double slope[K25_OUTPUTS][K25_PARAMS])
{
    struct k25_slopes step, part[PARTS];
    double s[K25_OUTPUTS][K25_PARAMS] = {{0}}, bubble = k25_pipeline_factor(&question->plan, p) - 1;
    bool host_bound = k25_host_bound(&question->plan, p, params);
    k25_slopes(question, params, p, &step);
    for (enum part i = 0; i < PARTS; i++)
        slopes_of_part(question, params, p, i, &part[i]);
    for (int id = 0; id < K25_PARAMS; id++) {
        s[K25_OUT_STEP][id] = step.param[id];
        s[K25_OUT_KERNELS][id] = part[KERNELS].param[id];
        s[K25_OUT_ALLREDUCE_TRANSFER][id] = part[TRANSFER].param[id];
        s[K25_OUT_ALLREDUCE_WAIT][id] = part[WAIT].param[id];
        s[K25_OUT_ALLREDUCE][id] = part[TRANSFER].param[id] + part[WAIT].param[id];
        s[K25_OUT_OTHER_COLLECTIVES][id] = part[OTHER].param[id];
        s[K25_OUT_DRAFT][id] = part[DRAFT].param[id];
        double busy = part[KERNELS].param[id] + s[K25_OUT_ALLREDUCE][id] + part[OTHER].param[id];
        double launch = id == (host_bound ? K25_EAGER_LAUNCH : K25_GRAPH_GAP) ? p->launches * params->value[id] : 0;
        s[K25_OUT_GPU_BUSY][id] = busy;
        s[K25_OUT_GAPS][id] = host_bound ? launch - busy : launch;
        s[K25_OUT_BUBBLE][id] = bubble * (busy + s[K25_OUT_GAPS][id]);
        s[K25_OUT_HOST][id] = step.param[id] - busy - s[K25_OUT_GAPS][id] - s[K25_OUT_BUBBLE][id];
    }
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++)
        relate(s[o], k25_output_value(p, o), slope[o]);
    for (int id = 0; id < K25_PARAMS; id++) {
        slope[K25_OUT_TPOT][id] = slope[K25_OUT_STEP][id];
        slope[K25_OUT_TOK_S][id] = -slope[K25_OUT_STEP][id];
        slope[K25_OUT_ALLREDUCE_SHARE][id] = slope[K25_OUT_ALLREDUCE][id] - slope[K25_OUT_GPU_BUSY][id];
    }
}

/* sd(ln time) of one operator, including the wait of a collective. */
static double operator_spread(const struct k25_question *question, const struct k25_params *params,
                              const struct k25_uncertainty *u, const struct k25_prediction *p, size_t i,
                              struct k25_part_weights *weights)
{
    struct k25_slopes slopes = {0};
    double slope[K25_PARAMS];
    weights->kernel[i] = weights->transfer[i] = weights->wait[i] = 1;
    k25_slopes_of_parts(question, params, p, weights, &slopes);
    weights->kernel[i] = weights->transfer[i] = weights->wait[i] = 0;
    relate(slopes.param, p->op[i].time, slope);
    return k25_spread_of(slope, u);
}

static bool is_measured(enum k25_output output)
{
    return output == K25_OUT_STEP || output == K25_OUT_TPOT || output == K25_OUT_TOK_S;
}

bool k25_predict_intervals(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_uncertainty *u, const struct k25_prediction *prediction,
                           struct k25_intervals *intervals, struct k25_error *error)
{
    double(*slope)[K25_PARAMS] = calloc(K25_OUTPUTS, sizeof *slope);
    struct k25_part_weights *weights = calloc(1, sizeof *weights);
    bool ok = slope != NULL && weights != NULL;
    if (ok) {
        k25_output_slopes(question, params, prediction, slope);
        for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
            double sd = hypot(k25_spread_of(slope[o], u), is_measured(o) ? u->noise : 0);
            intervals->output[o] = interval(k25_output_value(prediction, o), sd);
        }
        for (size_t i = 0; i < prediction->step_work.count; i++)
            intervals->op[i] =
                interval(prediction->op[i].time, operator_spread(question, params, u, prediction, i, weights));
        /* A share stays within 0..1, which the first order does not ensure. */
        intervals->output[K25_OUT_ALLREDUCE_SHARE].high = fmin(1, intervals->output[K25_OUT_ALLREDUCE_SHARE].high);
    }
    free(slope);
    free(weights);
    return ok || k25_fail(error, K25_RESOURCE, "out of memory");
}
