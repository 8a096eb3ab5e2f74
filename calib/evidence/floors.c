#include "calib/evidence/floors.h"

#include <math.h>
#include <string.h>

struct k25_params k25_floor_params(const struct k25_params *params)
{
    static const double CORNER = 16; /* exponent of the norms: nearly the larger of two limits */
    struct k25_params floor = *params;
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        bool time = strcmp(info->unit, "us") == 0 || strcmp(info->unit, "ns") == 0 || strcmp(info->unit, "bytes") == 0;
        if (info->range == K25_RANGE_NORM)
            floor.value[id] = CORNER;
        else if (info->range == K25_RANGE_DIVISOR && strcmp(info->unit, "share") == 0)
            floor.value[id] = 1;
        else if (info->range == K25_RANGE_FREE && time)
            floor.value[id] = 0;
    }
    floor.value[K25_KERNEL_SCALE] = 1;
    floor.value[K25_NCCL_LL_SCALING] = 0;
    floor.value[K25_NCCL_GATHER] = 1;
    floor.value[K25_MOE_REREAD] = 0;
    floor.value[K25_SKEW_RHO] = 0;
    return floor;
}

double k25_allreduce_floor(double bytes, const struct k25_group *group, const struct k25_params *params)
{
    struct k25_params floor = k25_floor_params(params);
    double least = INFINITY;
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++)
        least = fmin(least, k25_allreduce_time(backend, bytes, group, &floor));
    return least;
}

double k25_observed_floor(const struct k25_observed *observed, const struct k25_params *params)
{
    struct k25_params floor = k25_floor_params(params);
    struct k25_observed ideal = *observed;
    ideal.question.plan.allreduce.backend = K25_AR_FASTEST;
    ideal.question.residuals = NULL;
    switch (observed->kind) {
    case K25_OBSERVED_BURST:
        return k25_allreduce_floor(observed->bytes, &observed->group, params);
    case K25_OBSERVED_BUCKET:
        /* Small kernels stay in the cache, so no rate of the DRAM bounds them. */
        return observed->bucket == K25_BUCKET_SMALL ? 0 : k25_observed_predict(&ideal, &floor, NULL);
    case K25_OBSERVED_TRANSFER:
    case K25_OBSERVED_ALLREDUCE:
    case K25_OBSERVED_STEP:
        return k25_observed_predict(&ideal, &floor, NULL);
    case K25_OBSERVED_WAIT:
    case K25_OBSERVED_JITTER:
    case K25_OBSERVED_LAG:
    case K25_OBSERVED_IDLE:
    case K25_OBSERVED_KINDS:
        break;
    }
    return 0;
}
