#include "hw/collective/slopes.h"

#include <math.h>

#include "hw/collective/internal.h"

/* Bytes through a link take `seconds`: less with a larger share of it, less on a faster one. */
static void through_link(int share, double seconds, struct k25_slopes *slopes)
{
    slopes->param[share] -= seconds;
    slopes->figure[K25_FIGURE_LINK_BANDWIDTH] -= seconds;
}

/* norm(latency, move) = (latency^q + move^q)^(1/q): as J in hw/kernel/slopes.h. */
static void ll_slopes(double hops, double volume, const struct k25_group *group, const struct k25_params *params,
                      double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    double q = p[K25_NCCL_LL_NORM], path = hops * group->ring_latency;
    double latency = p[K25_NCCL_BASE] + hops * p[K25_NCCL_HOP] + path;
    double scaling = p[K25_NCCL_LL_SCALING], half = group->n / 2.0;
    double move = volume / (p[K25_NCCL_LL] * group->ring_bandwidth * pow(half, -scaling));
    double most = fmax(latency, move);
    if (most <= 0)
        return;
    double a = pow(latency / most, q), b = pow(move / most, q), time = most * pow(a + b, 1 / q);
    a /= a + b;
    b = 1 - a;
    double part = latency > 0 ? weight * time * a / latency : 0;
    slopes->param[K25_NCCL_BASE] += part * p[K25_NCCL_BASE];
    slopes->param[K25_NCCL_HOP] += part * hops * p[K25_NCCL_HOP];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += part * path;
    through_link(K25_NCCL_LL, weight * time * b, slopes);
    slopes->param[K25_NCCL_LL_SCALING] += weight * time * b * scaling * log(half);
    double entropy = (a > 0 ? a * log(a) : 0) + (b > 0 ? b * log(b) : 0);
    slopes->param[K25_NCCL_LL_NORM] += weight * time / q * entropy;
}

static void ring_slopes(enum k25_backend protocol, double hops, double volume, const struct k25_group *group,
                        const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    if (protocol == K25_BACKEND_NCCL_LL) {
        ll_slopes(hops, volume, group, params, weight, slopes);
        return;
    }
    bool ll128 = protocol == K25_BACKEND_NCCL_LL128, shared = group->n > 2;
    int base = ll128 ? K25_NCCL_BASE : K25_NCCL_SIMPLE_BASE, hop = ll128 ? K25_NCCL_LL128_HOP : K25_NCCL_SIMPLE_HOP;
    double wire = volume * (ll128 ? K25_LL128_LINE : 1), share = shared ? p[K25_NCCL_RING] : 1;
    double move = weight * wire / (p[K25_NCCL_ETA] * share * group->ring_bandwidth);
    slopes->param[base] += weight * p[base];
    slopes->param[hop] += weight * hops * p[hop];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * hops * group->ring_latency;
    through_link(K25_NCCL_ETA, move, slopes);
    if (shared)
        slopes->param[K25_NCCL_RING] -= move;
}

void k25_allreduce_slopes(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    int n = group->n;
    if (n == 1)
        return;
    if (backend != K25_BACKEND_ONESHOT) {
        ring_slopes(backend, 2.0 * (n - 1), 2.0 * (n - 1) / n * bytes, group, params, weight, slopes);
        return;
    }
    double own = p[K25_ONESHOT_ETA] * group->lone_bandwidth;
    double shared = p[K25_ONESHOT_SHARED] * group->peer_bandwidth;
    slopes->param[K25_ONESHOT_BASE] += weight * p[K25_ONESHOT_BASE];
    slopes->param[K25_ONESHOT_PEER] += weight * (n - 1) * p[K25_ONESHOT_PEER];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * 2 * group->peer_latency;
    through_link(own < shared ? K25_ONESHOT_ETA : K25_ONESHOT_SHARED, weight * (n - 1) * bytes / fmin(own, shared),
                 slopes);
}

void k25_allgather_slopes(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    double gather = params->value[K25_NCCL_GATHER];
    if (group->n == 1)
        return;
    slopes->param[K25_NCCL_GATHER] += weight * k25_allgather_time(protocol, bytes, group, params);
    ring_slopes(protocol, group->n - 1, (group->n - 1) * bytes, group, params, weight * gather, slopes);
}

/* One hop of the Simple protocol. */
static void hop_slopes(double latency, double bytes, double bandwidth, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes)
{
    const double *p = params->value;
    slopes->param[K25_NCCL_SIMPLE_BASE] += weight * p[K25_NCCL_SIMPLE_BASE];
    slopes->param[K25_NCCL_SIMPLE_HOP] += weight * p[K25_NCCL_SIMPLE_HOP];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * latency;
    through_link(K25_NCCL_ETA, weight * bytes / (p[K25_NCCL_ETA] * bandwidth), slopes);
}

void k25_alltoall_slopes(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                         struct k25_slopes *slopes)
{
    if (group->n > 1)
        hop_slopes(group->peer_latency, bytes, group->peer_bandwidth, params, weight, slopes);
}

void k25_send_slopes(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                     struct k25_slopes *slopes)
{
    hop_slopes(group->ring_latency, bytes, group->ring_bandwidth, params, weight, slopes);
}

double k25_wait_slopes(int n, double segment, const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    if (n == 1)
        return 0;
    double sigma = p[K25_SKEW_SIGMA], grown = p[K25_SKEW_RHO] * segment, spread = hypot(sigma, grown);
    double jitter = k25_normal_max(n) * spread, lag = p[K25_SKEW_LAG] * (n - 1) / n;
    double larger = fmax(jitter, lag), q = k25_wait_exponent(n);
    if (larger <= 0)
        return 0;
    double a = pow(jitter / larger, q), b = pow(lag / larger, q), wait = larger * pow(a + b, 1 / q);
    double jittering = weight * wait * a / (a + b);
    double growing = spread > 0 ? jittering * (grown / spread) * (grown / spread) : 0;
    slopes->param[K25_SKEW_SIGMA] += jittering - growing;
    slopes->param[K25_SKEW_RHO] += growing;
    slopes->param[K25_SKEW_LAG] += weight * wait * b / (a + b);
    return segment > 0 ? growing / segment : 0;
}
