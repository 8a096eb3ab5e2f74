/* Collectives and their slopes: AllReduces by the table of backends, gathers by the rings in it, sends by one hop. */
#include "hw/collective/collective.h"

#include "hw/collective/internal.h"
#include "hw/collective/slopes.h"

void k25_link_slopes(enum k25_param share, double seconds, struct k25_slopes *slopes)
{
    slopes->param[share] -= seconds;
    slopes->figure[K25_FIGURE_LINK_BANDWIDTH] -= seconds;
}

double k25_allreduce_time(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params)
{
    const struct k25_backend_info *info = k25_backend_info[backend];
    int n = group->n;
    if (n == 1)
        return 0;
    return info->ring == NULL ? info->time(bytes, group, params)
                              : info->ring(2.0 * (n - 1), 2.0 * (n - 1) / n * bytes, group, params);
}

void k25_allreduce_slopes(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    const struct k25_backend_info *info = k25_backend_info[backend];
    int n = group->n;
    if (n == 1)
        return;
    if (info->ring == NULL)
        info->slopes(bytes, group, params, weight, slopes);
    else
        info->ring_slopes(2.0 * (n - 1), 2.0 * (n - 1) / n * bytes, group, params, weight, slopes);
}

enum k25_backend k25_nccl_protocol(double bytes, const struct k25_params *params)
{
    return bytes <= params->value[K25_NCCL_LL_MAX] ? K25_BACKEND_NCCL_LL : K25_BACKEND_NCCL_SIMPLE;
}

/* A gather as the ring of an AllReduce: its bytes, and all that does not grow with them, times factors of their own. */
struct gather {
    double volume;
    struct k25_group group;
    struct k25_params params;
};

static const enum k25_param ring_latencies[] = {K25_NCCL_BASE, K25_NCCL_HOP, K25_NCCL_LL128_HOP, K25_NCCL_SIMPLE_BASE,
                                                K25_NCCL_SIMPLE_HOP};
enum { RING_LATENCIES = sizeof ring_latencies / sizeof ring_latencies[0] };

static void scale_gather(double bytes, const struct k25_group *group, const struct k25_params *params,
                         struct gather *gather)
{
    double times = params->value[K25_NCCL_GATHER];
    gather->volume = (group->n - 1) * bytes * params->value[K25_GATHER_VOLUME];
    gather->group = *group;
    gather->group.ring_latency *= times;
    gather->params = *params;
    for (int i = 0; i < RING_LATENCIES; i++)
        gather->params.value[ring_latencies[i]] *= times;
}

double k25_allgather_time(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params)
{
    struct gather gather;
    if (group->n == 1)
        return 0;
    scale_gather(bytes, group, params, &gather);
    return k25_backend_info[protocol]->ring(group->n - 1, gather.volume, &gather.group, &gather.params);
}

void k25_allgather_slopes(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    struct gather gather;
    struct k25_slopes ring = {0};
    if (group->n == 1)
        return;
    scale_gather(bytes, group, params, &gather);
    k25_backend_info[protocol]->ring_slopes(group->n - 1, gather.volume, &gather.group, &gather.params, weight, &ring);
    ring.param[K25_NCCL_GATHER] = ring.figure[K25_FIGURE_LINK_LATENCY];
    for (int i = 0; i < RING_LATENCIES; i++)
        ring.param[K25_NCCL_GATHER] += ring.param[ring_latencies[i]];
    ring.param[K25_GATHER_VOLUME] = -ring.figure[K25_FIGURE_LINK_BANDWIDTH];
    for (int id = 0; id < K25_PARAMS; id++)
        slopes->param[id] += ring.param[id];
    for (int figure = 0; figure < K25_FIGURES; figure++)
        slopes->figure[figure] += ring.figure[figure];
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

/* One hop of the Simple protocol. */
static void hop_slopes(double latency, double bytes, double bandwidth, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes)
{
    const double *p = params->value;
    slopes->param[K25_NCCL_SIMPLE_BASE] += weight * p[K25_NCCL_SIMPLE_BASE];
    slopes->param[K25_NCCL_SIMPLE_HOP] += weight * p[K25_NCCL_SIMPLE_HOP];
    slopes->figure[K25_FIGURE_LINK_LATENCY] += weight * latency;
    k25_link_slopes(K25_NCCL_ETA, weight * bytes / (p[K25_NCCL_ETA] * bandwidth), slopes);
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
