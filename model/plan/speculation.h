/* Speculative decoding: what a chain of drafted tokens is worth.
 *
 * A step drafts k tokens, verifies them with one of its own and emits 1 + (accepted ones):
 *
 *     tokens per step = 1 + P_1 + ... + P_k
 *
 * P_j is the marginal probability that the j-th draft is accepted. What is published is the share r of drafted tokens
 * that are accepted (1 + k r), the mean tokens of a step, the P_j themselves, or a constant conditional rate a, for
 * which P_j = a^j; the last over-estimates long chains.
 */
#ifndef K25_MODEL_PLAN_SPECULATION_H
#define K25_MODEL_PLAN_SPECULATION_H

#include <stdbool.h>

#include "base/error.h"

#define K25_MAX_DRAFT 16 /* tokens of a chain */

struct k25_plan_speculation;

/* Tokens a sequence gets from a step, from 1 to k + 1; 1 without speculation, NAN when the acceptance is not given.
 * False with K25_BAD_INPUT when the acceptance is not one of the four forms or fits no chain of k tokens. */
bool k25_tokens_per_step(const struct k25_plan_speculation *speculation, double *tokens, struct k25_error *error);

/* Marginal rates P_1 .. P_k of a chain of `k` tokens, which may be another length than the plan's: rates that are given
 * position by position are taken, and extended by the last conditional rate; of a mean the constant conditional rate
 * is that which has the same mean at the plan's k. False when the acceptance is not given. */
bool k25_marginal_rates(const struct k25_plan_speculation *speculation, int k, double *rates);

#endif
