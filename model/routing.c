#include "model/routing.h"

#include <math.h>

double k25_distinct_experts(int experts, int experts_per_token, double tokens, double cv)
{
    double mu = experts_per_token / (double)experts;
    if (mu >= 1)
        return experts;
    double nu = cv > 0 ? (1 - mu) / (mu * cv * cv) - 1 : INFINITY;
    if (nu > 1e7) /* so narrow that the difference of lgamma below would lose its digits: uniform */
        return -experts * expm1(tokens * log1p(-mu));
    nu = fmax(nu, 1e-3);
    double a = mu * nu, b = (1 - mu) * nu;
    return -experts * expm1(lgamma(b + tokens) - lgamma(b) + lgamma(a + b) - lgamma(a + b + tokens));
}

void k25_ep_load(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant, struct k25_ep_load *load)
{
    (void)redundant;
    load->pairs_mean = tokens * experts_per_token / ranks;
    load->distinct_mean = k25_distinct_experts(experts, experts_per_token, tokens, cv) / ranks;
    load->pairs_max = load->pairs_mean + 1.42 * sqrt(load->pairs_mean);
    load->distinct_max = fmin(experts / (double)ranks, load->distinct_mean + 1.42 * sqrt(load->distinct_mean));
}
