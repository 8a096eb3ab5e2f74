/* One-shot: every rank reads the whole buffer of every other and adds; hw/collective/collective.h has the formula. */
#include "hw/collective/internal.h"

#include <math.h>
#include <stddef.h>

static double oneshot_time(double bytes, const struct k25_group *group, const struct k25_params *params)
{
    const double *p = params->value;
    int n = group->n;
    double own = p[K25_ONESHOT_ETA] * group->lone_bandwidth;
    double shared = p[K25_ONESHOT_SHARED] * group->peer_bandwidth;
    return p[K25_ONESHOT_BASE] + (n - 1) * p[K25_ONESHOT_PEER] + 2 * group->peer_latency +
           (n - 1) * bytes / fmin(own, shared);
}

static void oneshot_slopes(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                           struct k25_slopes *slopes)
{
    const double *p = params->value;
    int n = group->n;
    double own = p[K25_ONESHOT_ETA] * group->lone_bandwidth;
    double shared = p[K25_ONESHOT_SHARED] * group->peer_bandwidth;
    slopes->param[K25_ONESHOT_BASE] += weight * p[K25_ONESHOT_BASE];
    slopes->param[K25_ONESHOT_PEER] += weight * (n - 1) * p[K25_ONESHOT_PEER];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * 2 * group->peer_latency;
    k25_link_slopes(own < shared ? K25_ONESHOT_ETA : K25_ONESHOT_SHARED, weight * (n - 1) * bytes / fmin(own, shared),
                    slopes);
}

/* SGLang took its kernel from vLLM (csrc/custom_all_reduce.cuh): both enable it by default, and both disable it on more
 * than two GPUs without NVLink. */
const struct k25_backend_info k25_oneshot = {
    .time = oneshot_time,
    .slopes = oneshot_slopes,
    .needs_p2p = true,
    .most_without_nvlink = 2,
    .beyond = "on more than two GPUs without NVLink: its own switches itself off there and leaves everything to NCCL; "
              "the plan needs a build with a kernel for PCIe",
    .kernel = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    .table_backend = "ustom", /* vLLM_custom, SGLang Custom */
    .start = {[K25_VLLM] = {true, NULL}, [K25_SGLANG] = {true, NULL}},
};
