/* Distinct experts of a batch, and the load of the ranks of an expert-parallel group.
 *
 * A token selects an expert with probability p. Over the experts, p follows a Beta distribution with mean
 * mu = top-k / experts and standard deviation cv * mu: cv = 0 is uniform routing; real routing is skewed, which
 * reduces the distinct experts of a large batch and does not change those of one token.
 *
 * Everything here is smooth in cv, and the functions named _slope give the exact derivative of the formula in cv, those
 * named _growth in the tokens. Arguments: `experts` and `experts_per_token` at least 1, `tokens` at least 0, `cv` at
 * least 0. Nothing here fails or allocates.
 */
#ifndef K25_MODEL_STEP_ROUTING_H
#define K25_MODEL_STEP_ROUTING_H

/* Returns the expected distinct experts of `tokens` tokens (a real number is allowed):
 *
 *     D(T) = E (1 - E[(1-p)^T]),   p ~ Beta(a, b),   a = mu nu,   b = (1-mu) nu,   nu = (1-mu)/(mu cv^2) - 1
 *     E[(1-p)^T] = B(a, b+T) / B(a, b)
 *
 * D(1) = top-k for every cv. `cv` is capped below the largest spread a Beta with this mean can have.
 * Draws of exactly top-k experts per token with these p agree within 0.5 %. */
double k25_distinct_experts(int experts, int experts_per_token, double tokens, double cv);

/* Returns dD/dcv. With psi the digamma function and (1-p)^T averaged as above,
 *
 *     d ln E[(1-p)^T] / d nu = (1-mu) (psi(b+T) - psi(b)) + psi(nu) - psi(nu+T),   d nu / d cv = -2 (nu+1) / cv */
double k25_distinct_experts_slope(int experts, int experts_per_token, double tokens, double cv);

/* Returns dD/dT. */
double k25_distinct_experts_growth(int experts, int experts_per_token, double tokens, double cv);

/* Expected load of one of R ranks that share E experts. A pair is one (token, expert) assignment; `distinct` counts the
 * experts of the rank (with redundant slots: slots) with at least one token. */
struct k25_ep_load {
    double distinct_mean, distinct_max; /* of the mean rank, of the fullest rank */
    double pairs_mean, pairs_max;       /* likewise; pairs_mean = tokens top-k / R */
};

/* Computes the load of R = `ranks` ranks. `ranks` should divide experts + redundant; else the share of the fullest rank
 * is rounded up.
 *
 * redundant = 0: every rank has m = E/R experts, placed independently of popularity.
 *
 * Distinct. Experts are exchangeable: given D touched experts the set of them is a random one, and the ranks'
 * shares are multivariate hypergeometric whatever cv is. cv acts through D(T) alone. That law is R independent
 * Binomial(m, h), h = D/E, given their sum D. With F the binomial distribution function, V = D (1-h), and S2, S3,
 * S4 the derivatives of S in D,
 *
 *     S(D) = sum_{j<m} 1 - F(j)^R       the maximum of the R independent ones: M averaged over their free sum
 *     M(D) = S - V/2 (1 + 1/E) S2 + V (1-2h)/3 S3 + V^2/8 S4       that average inverted, to fourth order
 *     distinct_max = M(D) + (exact(k) - M(k)) (k/D)^4 (1-h)/(1-k/E)
 *
 * exact(k) is the maximum for one token of k experts: P(max <= j) is the coefficient of z^k in
 * (sum_{i<=j} C(m,i) z^i)^R, over C(E, k). E = 384, k = 8, R = 8 gives 2.57. The terms after S are
 * multiplied by V^4 / (16 + V^4), for the range where nearly every expert is touched; there distinct_max may exceed m
 * by a relative 1e-4.
 *
 * Pairs. An expert's count is beta-binomial(T, a, b); a rank's is the sum of m of them, given the total T k. With
 * its cumulants m kappa_i, g1 = skewness and g2 = excess kurtosis of the sum, s = sqrt(m kappa_2), and d_i the
 * mean of the i-th power of the largest of R standard normals (Cornish and Fisher 1937),
 *
 *     dense = s ( d1 + g1 (d2 - 1)/6 + g2 (d3 - 3 d1)/24 - g1^2 (2 d3 - 5 d1)/36 - d1 (g2 - 3/2 g1^2)/(4 R) )
 *
 * The last term corrects for the fixed total. With few tokens counts are small whole numbers and such a series is
 * inaccurate, but pairs are nearly distinct experts. With y = T k / D,
 *
 *     sparse = (distinct_max - distinct_mean) y^1.5
 *     pairs_max = T k / R + dense + y^-48 (sparse - dense)
 *
 * The powers were fitted to simulated routing; one token is exact.
 *
 * redundant = X > 0: E + X slots, n on each rank. A greedy balancer (EPLB) gives each further copy to the expert
 * with the most popularity per copy, and places slots, most popular first, on the rank with the least popularity
 * and a free slot. A pair goes to each copy of its expert with equal probability. With x = X/E, L = ln(1 + 1/x):
 *
 *     split experts        Y  = X / (1 + x cv^2/(1 + 0.08 cv^2))
 *     their popularity     pb = mu (1 + cv (k0 + (L - k0) cv)),   k0 = sqrt(max(0, 1.85 L - 1.37)),
 *                          lo + (1-lo) Beta(1, .), of excess th = pb - lo = mu cv (0.5 + 0.45 cv)
 *     their X + Y slots    v = Y pb / (X + Y), relative variance r = 0.035 cv^2/(cv^2 + 0.15)
 *     D_s(T) = D(T) - Y (1 - E[(1-p)^T]) + (X + Y) (1 - E[(1-v)^T])
 *
 * Y and L are those of exponential popularity (cv = 1, where P(p > u) = exp(-u/mu) and copies add up to X), Y also
 * that of equal experts (cv = 0); k0 is the mean of the top share x of a normal; the other numbers were fitted to
 * the greedy balancer run on Beta draws, x from 1/32 to 1/2, cv to 2. Popularity is then equal on all ranks except
 * for about 1/n^2 of the load of a rank at the maximum, which is added to the variance of pairs. The sampling noise of
 * the tokens remains: per token the variance of independent choices,
 * (k - sum p_s^2)/R + (sum p_e^2 - sum p_s^2)/(R ), over slots s and experts e. The spread of h between slots
 * adds no noise as long as the slots of a rank are a fair sample of all slots, which fails for few slots with many
 * tokens (T k / (E + X) against 0.12 n^2).
 *
 * Accuracy against 20,000 draws of routing per cell is in docs/model.md. tokens < 1 scale the load of one token;
 * experts_per_token >= experts is every expert and slot; with redundant slots cv beyond 2.5 counts as 2.5.
 * Cost: 0.5 to 4 us, most of it S. */
void k25_ep_load(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                 struct k25_ep_load *load);

/* Sets each field of `slope` to its derivative in cv. */
void k25_ep_load_slope(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                       struct k25_ep_load *slope);

/* Sets each field of `slope` to its derivative in `tokens`. */
void k25_ep_load_growth(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                        struct k25_ep_load *slope);

#endif
