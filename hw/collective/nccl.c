/* The ring of NCCL by protocol: hw/collective/collective.h has the formulas. */
#include "hw/collective/internal.h"

#include <math.h>

#define LL128_LINE (128.0 / 120) /* bytes on the wire for one of data: 8 of 128 are the flag */

/* Both engines call NCCL when their custom kernels are disabled. */
#define BY_NCCL                                                                                                        \
    {                                                                                                                  \
        [K25_VLLM] = {true, "--disable-custom-all-reduce"}, [K25_SGLANG] = { true, "--disable-custom-all-reduce" }     \
    }

/* ---- LL ---- */

static double ll_time(double hops, double volume, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    double path = hops * group->ring_latency;
    double latency = p[K25_NCCL_BASE] + hops * p[K25_NCCL_HOP] + path;
    double bandwidth = p[K25_NCCL_LL] * group->ring_bandwidth * pow(group->n / 2.0, -p[K25_NCCL_LL_SCALING]);
    double norm = p[K25_NCCL_LL_NORM], stream = volume / bandwidth, most = fmax(latency, stream);
    return most * pow(1 + pow(fmin(latency, stream) / most, norm), 1 / norm);
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
    k25_link_slopes(K25_NCCL_LL, weight * time * b, slopes);
    slopes->param[K25_NCCL_LL_SCALING] += weight * time * b * scaling * log(half);
    double entropy = (a > 0 ? a * log(a) : 0) + (b > 0 ? b * log(b) : 0);
    slopes->param[K25_NCCL_LL_NORM] += weight * time / q * entropy;
}

const struct k25_backend_info k25_nccl_ll = {
    .ring = ll_time,
    .ring_slopes = ll_slopes,
    .kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    .start = BY_NCCL,
};

/* ---- LL128 and Simple: base + hops (hop + h) + wire / (eta B_ring share) ---- */

static double share_of_ring(const struct k25_group *group, const struct k25_params *params)
{
    return group->n > 2 ? params->value[K25_NCCL_RING] : 1;
}

static double transfer_time(double hops, double wire, const struct k25_group *group, const struct k25_params *params)
{
    double share = share_of_ring(group, params);
    return hops * group->ring_latency + wire / (params->value[K25_NCCL_ETA] * share * group->ring_bandwidth);
}

static void transfer_slopes(double hops, double wire, const struct k25_group *group, const struct k25_params *params,
                            double weight, struct k25_slopes *slopes)
{
    double share = share_of_ring(group, params);
    double move = weight * wire / (params->value[K25_NCCL_ETA] * share * group->ring_bandwidth);
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * hops * group->ring_latency;
    k25_link_slopes(K25_NCCL_ETA, move, slopes);
    if (group->n > 2)
        slopes->param[K25_NCCL_RING] -= move;
}

static double ll128_time(double hops, double volume, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    return p[K25_NCCL_BASE] + hops * p[K25_NCCL_LL128_HOP] + transfer_time(hops, volume * LL128_LINE, group, params);
}

static void ll128_slopes(double hops, double volume, const struct k25_group *group, const struct k25_params *params,
                         double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    slopes->param[K25_NCCL_BASE] += weight * p[K25_NCCL_BASE];
    slopes->param[K25_NCCL_LL128_HOP] += weight * hops * p[K25_NCCL_LL128_HOP];
    transfer_slopes(hops, volume * LL128_LINE, group, params, weight, slopes);
}

const struct k25_backend_info k25_nccl_ll128 = {
    .ring = ll128_time,
    .ring_slopes = ll128_slopes,
    .kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL128(ncclDevKernelArgsStorage<4096ul>)",
    .start = BY_NCCL,
};

static double simple_time(double hops, double volume, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    return p[K25_NCCL_SIMPLE_BASE] + hops * p[K25_NCCL_SIMPLE_HOP] + transfer_time(hops, volume, group, params);
}

static void simple_slopes(double hops, double volume, const struct k25_group *group, const struct k25_params *params,
                          double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    slopes->param[K25_NCCL_SIMPLE_BASE] += weight * p[K25_NCCL_SIMPLE_BASE];
    slopes->param[K25_NCCL_SIMPLE_HOP] += weight * hops * p[K25_NCCL_SIMPLE_HOP];
    transfer_slopes(hops, volume, group, params, weight, slopes);
}

const struct k25_backend_info k25_nccl_simple = {
    .ring = simple_time,
    .ring_slopes = simple_slopes,
    .kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)",
    .start = BY_NCCL,
};
