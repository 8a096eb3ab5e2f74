#include "hw/collective/internal.h"

#include <math.h>

const char *const k25_backend_names[] = {"NCCL LL", "NCCL LL128", "NCCL Simple", "one-shot", NULL};

/* A ring that makes `hops` hops and sends `volume` bytes through each link. */
static double ring_time(enum k25_backend protocol, double hops, double volume, const struct k25_group *group,
                        const struct k25_params *params)
{
    const double *p = params->value;
    double path = hops * group->ring_latency;
    if (protocol == K25_BACKEND_NCCL_LL) {
        double latency = p[K25_NCCL_BASE] + hops * p[K25_NCCL_HOP] + path;
        double bandwidth = p[K25_NCCL_LL] * group->ring_bandwidth * pow(group->n / 2.0, -p[K25_NCCL_LL_SCALING]);
        double norm = p[K25_NCCL_LL_NORM], stream = volume / bandwidth, most = fmax(latency, stream);
        return most * pow(1 + pow(fmin(latency, stream) / most, norm), 1 / norm);
    }
    double share = group->n > 2 ? p[K25_NCCL_RING] : 1;
    if (protocol == K25_BACKEND_NCCL_LL128)
        volume *= K25_LL128_LINE;
    double transfer = path + volume / (p[K25_NCCL_ETA] * share * group->ring_bandwidth);
    return protocol == K25_BACKEND_NCCL_LL128 ? p[K25_NCCL_BASE] + hops * p[K25_NCCL_LL128_HOP] + transfer
                                              : p[K25_NCCL_SIMPLE_BASE] + hops * p[K25_NCCL_SIMPLE_HOP] + transfer;
}

double k25_allreduce_time(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params)
{
    const double *p = params->value;
    int n = group->n;
    if (n == 1)
        return 0;
    if (backend == K25_BACKEND_ONESHOT) {
        double own = p[K25_ONESHOT_ETA] * group->lone_bandwidth;
        double shared = p[K25_ONESHOT_SHARED] * group->peer_bandwidth;
        return p[K25_ONESHOT_BASE] + (n - 1) * p[K25_ONESHOT_PEER] + 2 * group->peer_latency +
               (n - 1) * bytes / fmin(own, shared);
    }
    return ring_time(backend, 2.0 * (n - 1), 2.0 * (n - 1) / n * bytes, group, params);
}

enum k25_backend k25_nccl_protocol(double bytes, const struct k25_params *params)
{
    return bytes <= params->value[K25_NCCL_LL_MAX] ? K25_BACKEND_NCCL_LL : K25_BACKEND_NCCL_SIMPLE;
}

double k25_allgather_time(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params)
{
    int n = group->n;
    return n == 1 ? 0 : params->value[K25_NCCL_GATHER] * ring_time(protocol, n - 1, (n - 1) * bytes, group, params);
}

double k25_alltoall_time(double bytes, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    return group->n == 1 ? 0
                         : p[K25_NCCL_SIMPLE_BASE] + p[K25_NCCL_SIMPLE_HOP] + group->peer_latency +
                               bytes / (p[K25_NCCL_ETA] * group->peer_bandwidth);
}

double k25_send_time(double bytes, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    return p[K25_NCCL_SIMPLE_BASE] + p[K25_NCCL_SIMPLE_HOP] + group->ring_latency +
           bytes / (p[K25_NCCL_ETA] * group->ring_bandwidth);
}

double k25_wait_exponent(int n)
{
    return 2.4 + 0.29 * log2(n);
}

double k25_wait_time(int n, double segment, const struct k25_params *params)
{
    const double *p = params->value;
    if (n == 1)
        return 0;
    double sigma = p[K25_SKEW_SIGMA], drawn = p[K25_SKEW_RHO] * segment;
    double jitter = k25_normal_max(n) * sqrt(sigma * sigma + drawn * drawn);
    double lag = p[K25_SKEW_LAG] * (n - 1) / n;
    double larger = fmax(jitter, lag), q = k25_wait_exponent(n);
    return larger > 0 ? larger * pow(1 + pow(fmin(jitter, lag) / larger, q), 1 / q) : 0;
}

/* E[max] = integral of x n phi(x) Phi(x)^(n-1) dx, by Simpson's rule: the integrand is smooth and vanishes at the ends,
 * so 256 intervals give twelve digits. */
static double integrate_normal_max(int n)
{
    enum { INTERVALS = 256 };
    static const double end = 9;
    double h = 2 * end / INTERVALS, sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double x = -end + i * h;
        double phi = exp(-x * x / 2) / sqrt(2 * M_PI);
        double value = x * n * phi * pow(erfc(-x / M_SQRT2) / 2, n - 1);
        sum += value * (i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * h / 3;
}

double k25_normal_max(int n)
{
    /* The sizes of a group that machines have, so that a prediction integrates nothing. */
    switch (n) {
    case 1:
        return 0;
    case 2:
        return 0.5641895835477563;
    case 4:
        return 1.0293753730039641;
    case 8:
        return 1.4236003060451664;
    case 16:
        return 1.7659913931199750;
    default:
        return integrate_normal_max(n);
    }
}
