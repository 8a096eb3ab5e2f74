#include "model/step/placement.h"

#include <math.h>

#include "model/step/routing.h"

double k25_distinct_tokens(const struct k25_plan *plan, const struct k25_params *params, double rows)
{
    if (plan->speculation.method == K25_SPEC_NONE)
        return rows;
    int k = plan->speculation.tokens;
    return rows * (1 + k * (1 - fmin(1, params->value[K25_ROUTING_OVERLAP]))) / (k + 1);
}

double k25_distinct_tokens_slope(const struct k25_plan *plan, const struct k25_params *params, double rows)
{
    double overlap = params->value[K25_ROUTING_OVERLAP], k = plan->speculation.tokens;
    return plan->speculation.method == K25_SPEC_NONE || overlap > 1 ? 0 : -rows * k * overlap / (k + 1);
}

static double routing_ranks(const struct k25_plan *plan)
{
    return plan->attention_dp ? plan->tp : 1;
}

bool k25_expert_fallback(const struct k25_plan *plan, double rows)
{
    return plan->expert_rows > 0 && rows * routing_ranks(plan) > plan->expert_rows;
}

void k25_place_experts(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                       double rows, double distinct, struct k25_placement *p)
{
    double cv = params->value[K25_ROUTING_CV], ranks = routing_ranks(plan), tokens = distinct * ranks;
    p->local = (moe->experts + plan->redundant_experts) / (double)plan->ep;
    p->columns = moe->intermediate / (double)(plan->tp / plan->ep);
    p->rows = rows * ranks;
    p->pairs = p->rows * moe->experts_per_token;
    p->distinct = p->touched = k25_distinct_experts(moe->experts, moe->experts_per_token, tokens, cv);
    if (plan->ep > 1) {
        struct k25_ep_load load;
        k25_ep_load(moe->experts, moe->experts_per_token, tokens, cv, plan->ep, plan->redundant_experts, &load);
        p->pairs *= load.pairs_max / (tokens * moe->experts_per_token);
        p->distinct = load.distinct_max;
    }
}

void k25_placement_slopes(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                          double rows, double distinct, bool growth, struct k25_placement_slopes *slopes)
{
    double cv = params->value[K25_ROUTING_CV], tokens = distinct * routing_ranks(plan), copies = rows / distinct;
    int experts = moe->experts, top = moe->experts_per_token;
    *slopes = (struct k25_placement_slopes){0};
    if (plan->ep == 1) {
        slopes->distinct_cv = cv * k25_distinct_experts_slope(experts, top, tokens, cv);
        if (growth)
            slopes->distinct_tokens = tokens * k25_distinct_experts_growth(experts, top, tokens, cv);
        return;
    }
    struct k25_ep_load load;
    k25_ep_load_slope(experts, top, tokens, cv, plan->ep, plan->redundant_experts, &load);
    slopes->distinct_cv = cv * load.distinct_max;
    slopes->pairs_cv = cv * copies * load.pairs_max;
    if (!growth)
        return;
    k25_ep_load_growth(experts, top, tokens, cv, plan->ep, plan->redundant_experts, &load);
    slopes->distinct_tokens = tokens * load.distinct_max;
    slopes->pairs_tokens = tokens * copies * load.pairs_max;
    /* pairs = rows x pairs of one distinct token: the tokens also divide */
    k25_ep_load(experts, top, tokens, cv, plan->ep, plan->redundant_experts, &load);
    slopes->pairs_tokens -= copies * load.pairs_max;
}
