#include "model/predict/terms.h"

#include <string.h>

#include "model/predict/internal.h"
#include "model/predict/slopes.h"

double k25_term_time(const struct k25_prediction *p, enum k25_term term)
{
    switch (term) {
    case K25_TERM_STEP:
        return p->step;
    case K25_TERM_GPU_BUSY:
        return p->gpu_busy;
    case K25_TERM_KERNELS:
        return p->kernels;
    case K25_TERM_ALLREDUCE:
        return p->allreduce;
    case K25_TERM_ALLREDUCE_TRANSFER:
        return p->allreduce_transfer;
    case K25_TERM_ALLREDUCE_WAIT:
        return p->allreduce_wait;
    case K25_TERM_OTHER_COLLECTIVES:
        return p->other_collectives;
    case K25_TERM_DRAFT:
        return p->draft;
    case K25_TERM_GAPS:
        return p->gaps;
    case K25_TERM_HOST:
        return p->host;
    case K25_TERM_BUBBLE:
        return p->bubble;
    case K25_TERM_NONE:
    case K25_TERMS:
        break;
    }
    return 1;
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

void k25_term_slopes(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *p, double slope[K25_TERMS][K25_PARAMS])
{
    struct k25_slopes step, part[PARTS];
    double s[K25_TERMS][K25_PARAMS] = {{0}}, bubble = k25_pipeline_factor(&question->plan, p) - 1;
    bool host_bound = k25_host_bound(&question->plan, p, params);
    k25_slopes(question, params, p, &step);
    for (enum part i = 0; i < PARTS; i++)
        slopes_of_part(question, params, p, i, &part[i]);
    for (int id = 0; id < K25_PARAMS; id++) {
        s[K25_TERM_STEP][id] = step.param[id];
        s[K25_TERM_KERNELS][id] = part[KERNELS].param[id];
        s[K25_TERM_ALLREDUCE_TRANSFER][id] = part[TRANSFER].param[id];
        s[K25_TERM_ALLREDUCE_WAIT][id] = part[WAIT].param[id];
        s[K25_TERM_ALLREDUCE][id] = part[TRANSFER].param[id] + part[WAIT].param[id];
        s[K25_TERM_OTHER_COLLECTIVES][id] = part[OTHER].param[id];
        s[K25_TERM_DRAFT][id] = part[DRAFT].param[id];
        double busy = part[KERNELS].param[id] + s[K25_TERM_ALLREDUCE][id] + part[OTHER].param[id];
        double launch = id == (host_bound ? K25_EAGER_LAUNCH : K25_GRAPH_GAP) ? p->launches * params->value[id] : 0;
        s[K25_TERM_GPU_BUSY][id] = busy;
        s[K25_TERM_GAPS][id] = host_bound ? launch - busy : launch;
        s[K25_TERM_BUBBLE][id] = bubble * (busy + s[K25_TERM_GAPS][id]);
        s[K25_TERM_HOST][id] = step.param[id] - busy - s[K25_TERM_GAPS][id] - s[K25_TERM_BUBBLE][id];
    }
    for (enum k25_term term = 0; term < K25_TERMS; term++)
        relate(s[term], k25_term_time(p, term), slope[term]);
}
