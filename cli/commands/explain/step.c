#include "cli/commands/explain/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is wanted off the step: a millisecond, of a short step a share. */
static const double wanted_time = 1e-3, short_step = 10e-3, wanted_share = 0.05; /* s, s, of the step */

/* Constants of the formulas, and what the text and its sampling decide. */
static const enum k25_param fixed[] = {K25_P_NORM,          K25_KERNEL_SCALE,    K25_K_SPLIT,         K25_MOE_REREAD,
                                       K25_MLA_GATHERED,    K25_NCCL_LL_SCALING, K25_NCCL_LL_NORM,    K25_ROUTING_CV,
                                       K25_ROUTING_OVERLAP, K25_POWER_EXPONENT,  K25_GQA_SPLIT_TOKENS};

static bool is_fixed(enum k25_param id)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i] == id)
            return true;
    }
    return false;
}

/* As it is under the levers of the plan; of links the ring of the tp ranks. */
static double figure_value(const struct k25_question *question, const struct k25_params *params, enum k25_figure figure)
{
    struct k25_clocked clocked;
    const struct k25_gpu *gpu = &clocked.gpu;
    const struct k25_group *group = &question->group[K25_RANKS_TP];
    bool links = group->n > 1;
    k25_clock_gpu(question, params, &clocked);
    switch (figure) {
    case K25_FIGURE_BANDWIDTH:
        return gpu->bandwidth_gbs;
    case K25_FIGURE_PEAK_BF16:
        return gpu->peak_bf16_tflops;
    case K25_FIGURE_PEAK_FP8:
        return gpu->peak_fp8_tflops;
    case K25_FIGURE_PEAK_FP4:
        return gpu->peak_fp4_tflops;
    case K25_FIGURE_LINK_BANDWIDTH:
        return links ? group->ring_bandwidth / 1e9 : NAN;
    case K25_FIGURE_LINK_LATENCY:
        return links ? group->ring_latency * 1e6 : NAN;
    case K25_FIGURES:
        break;
    }
    return NAN;
}

static int by_elasticity(const void *a, const void *b)
{
    const struct cli_elasticity *x = a, *y = b;
    double left = fabs(x->elasticity), right = fabs(y->elasticity);
    return left != right ? (left < right) - (left > right) : strcmp(x->name, y->name);
}

static void list_elasticities(const struct cli_answer *answer, const struct k25_slopes *slopes,
                              struct cli_elasticity list[CLI_FOLLOWED])
{
    static const char *const units[K25_FIGURES] = {
        [K25_FIGURE_BANDWIDTH] = "GB/s",   [K25_FIGURE_PEAK_BF16] = "TFLOP/s",   [K25_FIGURE_PEAK_FP8] = "TFLOP/s",
        [K25_FIGURE_PEAK_FP4] = "TFLOP/s", [K25_FIGURE_LINK_BANDWIDTH] = "GB/s", [K25_FIGURE_LINK_LATENCY] = "us",
    };
    for (enum k25_param id = 0; id < K25_PARAMS; id++)
        list[id] = (struct cli_elasticity){.name = k25_param_names[id],
                                           .kind = "parameter",
                                           .unit = k25_param_info[id].unit,
                                           .id = (int)id,
                                           .value = answer->scenario.params.value[id] / k25_param_info[id].scale,
                                           .slope = slopes->param[id],
                                           .changeable = !is_fixed(id)};
    for (enum k25_figure figure = 0; figure < K25_FIGURES; figure++)
        list[K25_PARAMS + figure] =
            (struct cli_elasticity){.name = k25_figure_names[figure],
                                    .kind = "figure",
                                    .unit = units[figure],
                                    .id = (int)figure,
                                    .value = figure_value(&answer->question, &answer->scenario.params, figure),
                                    .slope = slopes->figure[figure],
                                    .changeable = true};
    for (int i = 0; i < CLI_FOLLOWED; i++)
        list[i].elasticity = list[i].slope / answer->prediction.step;
    qsort(list, CLI_FOLLOWED, sizeof *list, by_elasticity);
}

/* More than all of something, or a share of a limit above the limit; the DRAM rate may pass its data sheet. */
static bool is_reachable(const struct cli_purchase *purchase, const struct cli_elasticity *e)
{
    bool bounded = strcmp(purchase->unit, "share") == 0 && e->slope < 0 && e->id != K25_BANDWIDTH;
    return purchase->share <= 1 && !(bounded && purchase->target > 1);
}

static int by_share(const void *a, const void *b)
{
    const struct cli_purchase *x = a, *y = b;
    return x->share != y->share ? (x->share > y->share) - (x->share < y->share) : strcmp(x->name, y->name);
}

static void list_purchases(const struct cli_answer *answer, struct cli_explanation *x)
{
    double step = answer->prediction.step;
    x->wanted = step < short_step ? wanted_share * step : wanted_time;
    for (int i = 0; i < CLI_FOLLOWED; i++) {
        const struct cli_elasticity *e = &x->elasticities[i];
        if (e->slope == 0 || !e->changeable)
            continue;
        double share = x->wanted / fabs(e->slope);
        struct cli_purchase purchase = {e->name,
                                        e->kind,
                                        e->unit,
                                        e->slope > 0 ? "less" : "more",
                                        share,
                                        e->value,
                                        e->value * (e->slope > 0 ? 1 - share : 1 + share)};
        if (is_reachable(&purchase, e))
            x->purchase[x->purchases++] = purchase;
        else
            x->unreachable++;
    }
    for (enum k25_lever lever = 0; lever < K25_LEVERS; lever++) {
        double gain = step - x->ceilings[lever].step;
        bool figure =
            lever == K25_LEVER_LINK_BANDWIDTH || lever == K25_LEVER_LINK_LATENCY; /* listed with the figures */
        if (figure || gain <= 1e-12 * step)
            continue;
        if (gain >= x->wanted)
            x->purchase[x->purchases++] = (struct cli_purchase){k25_lever_names[lever], "lever", "", "of its ceiling",
                                                                x->wanted / gain,       NAN,     NAN};
        else
            x->unreachable++;
    }
    qsort(x->purchase, x->purchases, sizeof *x->purchase, by_share);
}

bool cli_explain_step(const struct cli_answer *answer, struct cli_explanation *x, struct k25_error *error)
{
    const struct k25_params *params = &answer->scenario.params;
    struct k25_slopes slopes;
    x->purchases = x->unreachable = 0;
    k25_slopes(&answer->question, params, &answer->prediction, &slopes);
    k25_shares(&answer->question, params, &answer->prediction, &slopes, x->shares);
    list_elasticities(answer, &slopes, x->elasticities);
    if (!k25_ceilings(&answer->question, params, x->ceilings, error))
        return false;
    list_purchases(answer, x);
    x->speculates = answer->question.plan.speculation.method != K25_SPEC_NONE;
    return !x->speculates || k25_chains(&answer->question, params, x->chains, &x->best, error);
}
