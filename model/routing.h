/* How many experts a batch touches.
 *
 * An expert is picked by a token with probability p. Over the experts, p follows a Beta distribution with mean
 * mu = top-k / experts and standard deviation cv * mu: cv = 0 is uniform routing, real routing is skewed, which
 * lowers the count of distinct experts of a large batch and leaves that of one token alone.
 */
#ifndef K25_MODEL_ROUTING_H
#define K25_MODEL_ROUTING_H

/* Expected distinct experts of `tokens` tokens (a real number is allowed):
 *
 *     D(T) = E (1 - E[(1-p)^T]),   p ~ Beta(a, b),   a = mu nu,   b = (1-mu) nu,   nu = (1-mu)/(mu cv^2) - 1
 *     E[(1-p)^T] = B(a, b+T) / B(a, b)
 *
 * D(1) = top-k for every cv. `cv` is capped below the largest spread a Beta with this mean can have. */
double k25_distinct_experts(int experts, int experts_per_token, double tokens, double cv);

struct k25_ep_load { double distinct_mean, distinct_max, pairs_mean, pairs_max; };
void k25_ep_load(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant, struct k25_ep_load *load);

#endif
