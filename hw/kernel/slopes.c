#include "hw/kernel/slopes.h"

#include <math.h>

#include "hw/kernel/internal.h"

/* (x / norm)^p */
static double weight_of(double p, double x, double norm)
{
    double ratio = x / norm, square = ratio * ratio;
    return p == 4 ? square * square : pow(ratio, p);
}

static double entropy(double w)
{
    return w > 0 && w < 1 ? w * log(w) : 0;
}

struct k25_kernel_split k25_kernel_split(const struct k25_kernel_call *call, bool overlapped, const struct k25_gpu *gpu,
                                         const struct k25_params *params)
{
    struct k25_kernel_cost cost = k25_kernel_cost(call, gpu, params);
    double moved = call->bytes + call->tail_bytes, p = params->value[K25_P_NORM];
    double tail = moved > 0 ? cost.memory * call->tail_bytes / moved : 0;
    if (overlapped)
        return (struct k25_kernel_split){.memory = cost.memory, .tail = tail};
    double joined = cost.time - cost.floor - tail;
    struct k25_kernel_split split = {.floor = cost.floor, .tail = tail, .memory = tail};
    if (joined <= 0)
        return split;
    double memory = weight_of(p, fmax(0, cost.memory - tail), joined), compute = weight_of(p, cost.compute, joined);
    double latency = weight_of(p, cost.latency, joined);
    split.memory += memory * joined;
    split.compute = compute * joined;
    split.latency = latency * joined;
    split.corner = joined / p * (entropy(memory) + entropy(compute) + entropy(latency));
    return split;
}

void k25_kernel_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split,
                       const struct k25_gpu *gpu, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes)
{
    static const enum k25_figure figure_of[K25_PEAKS] = {[K25_PEAK_BF16] = K25_FIGURE_PEAK_BF16,
                                                         [K25_PEAK_FP8] = K25_FIGURE_PEAK_FP8,
                                                         [K25_PEAK_FP4] = K25_FIGURE_PEAK_FP4};
    const struct k25_class_params *class = &k25_class_params[call->class];
    double *param = slopes->param, scale = params->value[K25_KERNEL_SCALE];
    double memory = weight * split->memory, compute = weight * split->compute, latency = weight * split->latency;

    param[K25_KERNEL_SCALE] += weight * split->floor + memory + compute + latency;
    param[K25_P_NORM] += weight * split->corner;
    if (split->floor > 0) {
        param[class->t0] += weight * scale * call->launches * params->value[class->t0];
        if (class->item != K25_NO_PARAM)
            param[class->item] += weight * scale * call->items * params->value[class->item];
        if (class->batched != K25_NO_PARAM)
            param[class->batched] += weight * scale * call->batched * params->value[class->batched];
    }
    param[K25_BANDWIDTH] -= memory;
    param[class->eta_mem] -= memory;
    slopes->figure[K25_FIGURE_BANDWIDTH] -= memory;
    param[class->eta_mac] -= compute;
    slopes->figure[figure_of[k25_peak_in_force(class->peak, gpu)]] -= compute;
    if (class->step != K25_NO_PARAM)
        param[class->step] += latency;

    const struct k25_call_elasticity *of = &call->elasticity;
    param[of->serial_param] += latency * of->serial;
    param[K25_MOE_REREAD] += weight * (split->memory - split->tail) * of->bytes_reread;
    param[k25_activation_of(call->class)] += weight * split->tail; /* only experts have a tail */
}

double k25_launch_floor(const struct k25_kernel_call *call, const struct k25_kernel_split *split,
                        const struct k25_params *params)
{
    const struct k25_class_params *class = &k25_class_params[call->class];
    double items = params->value[K25_KERNEL_SCALE] * call->items * k25_value_of(class->item, params);
    return split->floor > 0 ? split->floor - items : 0;
}

void k25_moe_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split, double *distinct,
                    double *pairs)
{
    const struct k25_call_elasticity *of = &call->elasticity;
    double main_loop = split->memory - split->tail;
    *distinct = main_loop * of->bytes_distinct + split->compute * of->flops_distinct;
    *pairs = main_loop * of->bytes_pairs;
}
