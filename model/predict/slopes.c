#include "model/predict/slopes.h"

#include <math.h>
#include <string.h>

#include "hw/collective/slopes.h"
#include "model/predict/internal.h"
#include "model/step/placement.h"

/* Shared by all operators of one question. */
struct pass {
    const struct k25_question *question;
    const struct k25_params *params;
    const struct k25_prediction *prediction;
    const struct k25_part_weights *weights;
    struct k25_slopes *slopes;
    struct k25_clocked clocked;
    /* The last placement that was differentiated; layers often share it. */
    int tp; /* of the placement */
    const struct k25_architecture *placed;
    double rows, distinct;
    struct k25_placement_slopes placement;
};

/* The slopes of a layer's placement. Only the tokens that the main model verifies share experts with their neighbours.
 */
static const struct k25_placement_slopes *place(struct pass *pass, const struct k25_operator *op)
{
    const struct k25_question *question = pass->question;
    bool draft = op->part == K25_PART_DRAFT;
    const struct k25_plan plan = draft ? k25_draft_plan(&question->plan) : question->plan;
    const struct k25_architecture *architecture =
        draft && plan.speculation.method != K25_SPEC_MTP ? question->draft.architecture : question->architecture;
    double distinct = draft ? op->rows : k25_distinct_tokens(&plan, pass->params, op->rows);
    if (pass->placed == architecture && pass->tp == plan.tp && pass->rows == op->rows && pass->distinct == distinct)
        return &pass->placement;
    double slope = draft ? 0 : k25_distinct_tokens_slope(&plan, pass->params, op->rows);
    k25_placement_slopes(&architecture->moe, &plan, pass->params, op->rows, distinct, slope != 0, &pass->placement);
    pass->tp = plan.tp;
    pass->placement.pairs_tokens *= slope / distinct;
    pass->placement.distinct_tokens *= slope / distinct;
    pass->placed = architecture;
    pass->rows = op->rows;
    pass->distinct = distinct;
    return &pass->placement;
}

/* Slopes through pairs and distinct experts: of the kernel, and of its coordinates in a residual table. `pairs` and
 * `distinct` are d step / d ln of each. */
static void slopes_of_routing(struct pass *pass, const struct k25_operator *op, double pairs, double distinct)
{
    const struct k25_placement_slopes *placement = place(pass, op);
    const double *shape = op->call.shape;
    double *param = pass->slopes->param;
    if (shape[1] >= shape[0]) { /* no more distinct experts than pairs */
        pairs += distinct;
        distinct = 0;
    }
    param[K25_ROUTING_CV] += pairs / shape[0] * placement->pairs_cv + distinct / shape[1] * placement->distinct_cv;
    param[K25_ROUTING_OVERLAP] +=
        pairs / shape[0] * placement->pairs_tokens + distinct / shape[1] * placement->distinct_tokens;
}

static bool is_experts(enum k25_kernel_class class)
{
    return class >= K25_KERNEL_MOE_BF16 && class <= K25_KERNEL_MOE_FP4;
}

static double time_of(const struct k25_kernel_split *split)
{
    return split->floor + split->memory + split->compute + split->latency;
}

static struct k25_kernel_split split_of(const struct k25_operator *op, const struct k25_clocked *clocked,
                                        const struct k25_params *params)
{
    struct k25_kernel_call call = k25_call_in_step(op, clocked, params);
    return k25_kernel_split(&call, op->beside, &clocked->gpu, params);
}

/* d step / d ln of the coordinates of a kernel in its residual table; `time` is d step / d ln time. */
static void slopes_of_shape(struct pass *pass, const struct k25_operator *op, double time, double slopes[K25_SHAPE])
{
    k25_residual_slope(pass->question->residuals, &op->call, slopes);
    for (int axis = 0; axis < K25_SHAPE; axis++)
        slopes[axis] *= time;
}

/* `segment` is d sum / d seconds of the segment that the kernel belongs to, one call of it. */
static void slopes_of_kernel(struct pass *pass, size_t i, double segment)
{
    const struct k25_operator *op = &pass->prediction->step_work.op[i];
    double shape[K25_SHAPE], *param = pass->slopes->param;
    double time = (op->calls * pass->weights->kernel[i] + segment) * pass->prediction->op[i].time / op->calls;
    if (time == 0)
        return;
    struct k25_kernel_split split = split_of(op, &pass->clocked, pass->params);
    double weight = time / time_of(&split); /* including the factor of the residual table */
    struct k25_kernel_call call = k25_call_in_step(op, &pass->clocked, pass->params);
    k25_kernel_slopes(&call, &split, &pass->clocked.gpu, pass->params, weight, pass->slopes);
    param[K25_STEP_FLOORS] += weight * k25_launch_floor(&call, &split, pass->params);
    if (pass->clocked.clock < 1) /* clock = (limit / full)^exponent: d ln clock / d ln exponent = ln clock */
        param[K25_POWER_EXPONENT] -= weight * (split.compute + split.latency) * log(pass->clocked.clock);
    if (is_experts(op->call.class)) {
        double pairs, distinct;
        k25_moe_slopes(&op->call, &split, &distinct, &pairs);
        const struct k25_plan plan =
            op->part == K25_PART_DRAFT ? k25_draft_plan(&pass->question->plan) : pass->question->plan;
        if (k25_expert_fallback(&plan, op->rows))
            param[K25_MOE_FALLBACK] += weight * (split.memory - split.tail);
        slopes_of_shape(pass, op, time, shape);
        slopes_of_routing(pass, op, weight * pairs + shape[0], weight * distinct + shape[1]);
    } else if (op->call.class == K25_KERNEL_MLA && pass->question->plan.dcp > 1 &&
               op->call.shape[2] == pass->params->value[K25_MLA_GATHERED]) {
        slopes_of_shape(pass, op, time, shape);
        param[K25_MLA_GATHERED] += shape[2];
    }
}

/* Adds `weight` times the slopes of one transfer. */
static void slopes_of_transfer(const struct pass *pass, size_t i, double weight, struct k25_slopes *slopes)
{
    const struct k25_operator *op = &pass->prediction->step_work.op[i];
    const struct k25_group *group = &pass->question->group[op->ranks];
    enum k25_backend backend = pass->prediction->op[i].backend;
    double before = slopes->figure[K25_FIGURE_LINK_BANDWIDTH];
    switch (op->kind) {
    case K25_OP_ALLREDUCE:
        k25_allreduce_slopes(backend, op->message, group, pass->params, weight, slopes);
        break;
    case K25_OP_ALLTOALL:
        k25_alltoall_slopes(op->message, group, pass->params, weight, slopes);
        break;
    case K25_OP_SEND:
        k25_send_slopes(op->message, group, pass->params, weight, slopes);
        break;
    case K25_OP_ALLGATHER:
    case K25_OP_REDUCESCATTER:
        k25_allgather_slopes(backend, op->message, group, pass->params, weight, slopes);
        break;
    case K25_OP_KERNEL:
    case K25_OP_KINDS:
        break;
    }
    if (op->id == K25_OPERATOR_GATHER_PICKS) /* a longer message costs what slower links would */
        slopes->param[K25_INDEXER_PICK] += before - slopes->figure[K25_FIGURE_LINK_BANDWIDTH];
}

void k25_slopes_of_parts(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *p, const struct k25_part_weights *weights,
                         struct k25_slopes *slopes)
{
    struct pass pass = {.question = question, .params = params, .prediction = p, .weights = weights, .slopes = slopes};
    k25_clock_gpu(question, params, &pass.clocked);
    size_t first = 0; /* of the segment */
    double segment = 0, wait = 0;
    for (size_t i = 0; i <= p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        if (i == p->step_work.count) { /* the next step starts when the last rank has finished its tail */
            double weight = weights->tail * question->plan.levers.skew;
            wait = k25_wait_slopes(question->group[K25_RANKS_TP].n, segment, params, weight, slopes);
        } else if (op->kind == K25_OP_KERNEL) {
            segment += p->op[i].time / op->calls;
            continue;
        } else {
            double transfer = op->calls * weights->transfer[i] * k25_transfer_share(&question->plan, op);
            if (transfer != 0)
                slopes_of_transfer(&pass, i, transfer, slopes);
            double weight = op->calls * weights->wait[i] * k25_wait_share(&question->plan, op);
            wait = weight == 0 ? 0 : k25_wait_slopes(question->group[op->ranks].n, segment, params, weight, slopes);
        }
        for (; first < i; first++)
            slopes_of_kernel(&pass, first, wait);
        first = i + 1;
        segment = 0;
    }
}

/* Slopes of the step through gpu_busy, gaps and host. Gaps of an eager step are the time of the host's launches beyond
 * the kernels: a longer kernel shortens its gap. `busy` is d step / d gpu_busy, `draft` d step / d draft beyond the
 * part of the draft in gpu_busy. */
static void slopes_of_sums(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_prediction *p, double *busy, double *draft, struct k25_slopes *slopes)
{
    const struct k25_plan *plan = &question->plan;
    const double *value = params->value;
    double *param = slopes->param, factor = k25_pipeline_factor(plan, p);
    *busy = factor;
    *draft = 0;
    if (k25_host_bound(plan, p, params)) {
        param[K25_EAGER_LAUNCH] += factor * p->launches * value[K25_EAGER_LAUNCH];
        *busy = 0;
    } else {
        param[K25_GRAPH_GAP] += factor * p->launches * value[K25_GRAPH_GAP];
    }
    param[K25_HOST_STEP] += value[K25_HOST_STEP];
    param[K25_HOST_SEQUENCE] += value[K25_HOST_SEQUENCE] * p->step_work.sequences;
    struct k25_draft_host host = k25_draft_host(plan, p);
    if (host.passes == 0)
        return;
    param[K25_DRAFT_SEQUENCE] += value[K25_DRAFT_SEQUENCE] * p->step_work.sequences;
    if (value[K25_DRAFT_PASS] > host.hidden) {
        param[K25_DRAFT_PASS] += host.passes * value[K25_DRAFT_PASS];
        *draft = host.hidden > 0 ? -1 : 0;
    }
}

void k25_slopes(const struct k25_question *question, const struct k25_params *params, const struct k25_prediction *p,
                struct k25_slopes *slopes)
{
    struct k25_part_weights weights;
    double busy, draft;
    memset(slopes, 0, sizeof *slopes);
    slopes_of_sums(question, params, p, &busy, &draft, slopes);
    for (size_t i = 0; i < p->step_work.count; i++)
        weights.kernel[i] = weights.transfer[i] = weights.wait[i] =
            busy + (p->step_work.op[i].part == K25_PART_DRAFT ? draft : 0);
    weights.tail = 1;
    k25_slopes_of_parts(question, params, p, &weights, slopes);
}

void k25_operator_splits(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *p, struct k25_operator_split splits[K25_MAX_OPERATORS])
{
    struct pass pass = {.question = question, .params = params, .prediction = p};
    k25_clock_gpu(question, params, &pass.clocked);
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        if (op->kind == K25_OP_KERNEL) {
            struct k25_kernel_split split = split_of(op, &pass.clocked, params);
            double scale = p->op[i].time / time_of(&split); /* calls, times the factor of a residual table */
            splits[i] = (struct k25_operator_split){.floor = scale * split.floor,
                                                    .memory = scale * split.memory,
                                                    .compute = scale * split.compute,
                                                    .latency = scale * split.latency};
            continue;
        }
        struct k25_slopes one = {0};
        slopes_of_transfer(&pass, i, op->calls * k25_transfer_share(&question->plan, op), &one);
        double link = -one.figure[K25_FIGURE_LINK_BANDWIDTH];
        splits[i] =
            (struct k25_operator_split){.latency = p->op[i].transfer - link, .link = link, .wait = p->op[i].wait};
    }
}
