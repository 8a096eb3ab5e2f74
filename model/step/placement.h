/* The load of a layer with experts: how many tokens route independently, how many experts they touch, and the work of
 * the fullest rank. Tokens and experts are expected values, real numbers. Nothing here fails.
 */
#ifndef K25_MODEL_STEP_PLACEMENT_H
#define K25_MODEL_STEP_PLACEMENT_H

#include <stdbool.h>

#include "hw/params/params.h"
#include "model/arch/arch.h"
#include "model/plan/plan.h"

/* Return the number of tokens among `rows` of the main model that route independently (neighbours in a sequence share
 * part of their experts), and d tokens / d ln routing.overlap. */
double k25_distinct_tokens(const struct k25_plan *plan, const struct k25_params *params, double rows);
double k25_distinct_tokens_slope(const struct k25_plan *plan, const struct k25_params *params, double rows);

/* Returns whether a layer with `rows` tokens on a rank is too large for the small-batch expert kernel. */
bool k25_expert_fallback(const struct k25_plan *plan, double rows);

/* Experts on ranks: the ep ranks have whole experts each, the other ranks the columns of an expert. */
struct k25_placement {
    double local;           /* experts on a rank */
    double columns;         /* of one of them */
    double rows;            /* tokens of all ranks that the layer routes */
    double pairs, distinct; /* (token, expert) pairs and distinct experts on the fullest rank */
    double touched;         /* distinct experts over all ranks */
};

/* Fills `placement` for `rows` tokens on a rank, of which `distinct` route independently. */
void k25_place_experts(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                       double rows, double distinct, struct k25_placement *placement);

/* Derivatives of the pairs and distinct experts of a placement. */
struct k25_placement_slopes {
    double pairs_cv, distinct_cv;         /* d / d ln routing.cv */
    double pairs_tokens, distinct_tokens; /* d / d ln `distinct` of k25_place_experts */
};

/* Fills `slopes` for the placement of the same arguments; the derivatives in the tokens only if `growth`, else 0. */
void k25_placement_slopes(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                          double rows, double distinct, bool growth, struct k25_placement_slopes *slopes);

#endif
