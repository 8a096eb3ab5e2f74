/* Speculative decoding: the tokens gained by a chain of drafted tokens.
 *
 * A step drafts k tokens, verifies them and emits the accepted ones and one more:
 *
 *     tokens per step = 1 + P_1 + ... + P_k
 *
 * P_j is the marginal probability that the j-th draft is accepted. Publications give the accepted share r of the
 * drafted tokens (1 + k r), the mean tokens of a step, the P_j, or a constant conditional rate a, for which P_j = a^j;
 * the last over-estimates long chains.
 */
#ifndef K25_MODEL_PLAN_SPECULATION_H
#define K25_MODEL_PLAN_SPECULATION_H

#include <stdbool.h>

#include "base/error.h"

#define K25_MAX_DRAFT 16 /* tokens of a chain */

struct k25_plan_speculation;

/* Sets `*tokens` to the tokens that a sequence gets from a step, 1 to k + 1; 1 without speculation, NAN when the
 * acceptance is not given. Fails with K25_BAD_INPUT when the acceptance is not one of the four forms or does not fit a
 * chain of k tokens. */
bool k25_tokens_per_step(const struct k25_plan_speculation *speculation, double *tokens, struct k25_error *error);

/* Sets rates[0..k-1] to the marginal rates P_1 .. P_k of a chain of `k` tokens (0 to K25_MAX_DRAFT), which may differ
 * from the plan's: rates given by position are used, and extended by the last conditional rate; a mean is converted to
 * the constant conditional rate with the same mean at the plan's k. Returns false when the acceptance is not given. */
bool k25_marginal_rates(const struct k25_plan_speculation *speculation, int k, double *rates);

#endif
