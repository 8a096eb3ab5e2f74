/* Where the tokens of a layer with experts go: how many of them route on their own, which experts they touch, and what
 * the rank with the most has to do.
 */
#ifndef K25_MODEL_STEP_PLACEMENT_H
#define K25_MODEL_STEP_PLACEMENT_H

#include <stdbool.h>

#include "hw/params/params.h"
#include "model/arch/arch.h"
#include "model/plan/plan.h"

/* Tokens among `rows` of the main model that route on their own: neighbours in a sequence share a part of their
 * experts; and d tokens / d ln routing.overlap. */
double k25_distinct_tokens(const struct k25_plan *plan, const struct k25_params *params, double rows);
double k25_distinct_tokens_slope(const struct k25_plan *plan, const struct k25_params *params, double rows);

/* Whether a layer with `rows` tokens on a rank is too large for the small-batch expert kernel. */
bool k25_expert_fallback(const struct k25_plan *plan, double rows);

/* Where the tokens of a layer go: over the ep ranks whole experts, over the others the columns of one. */
struct k25_placement {
    double local;           /* experts a rank holds */
    double columns;         /* of one of them */
    double rows;            /* tokens of all ranks that the layer routes */
    double pairs, distinct; /* on the rank with the most */
    double touched;         /* distinct experts over all ranks */
};
/* `distinct` of the `rows` on a rank route on their own. */
void k25_place_experts(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                       double rows, double distinct, struct k25_placement *placement);

/* d / d ln routing.cv and d / d ln `distinct` of the pairs and distinct experts of that placement; the second pair only
 * if `growth`, else 0. */
struct k25_placement_slopes {
    double pairs_cv, distinct_cv, pairs_tokens, distinct_tokens;
};
void k25_placement_slopes(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                          double rows, double distinct, bool growth, struct k25_placement_slopes *slopes);

#endif
