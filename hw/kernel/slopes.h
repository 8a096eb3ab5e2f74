/* Derivatives of the time of a kernel (hw/kernel/kernel.h).
 *
 * With x the terms of the p-norm, J their norm and w_i = (x_i / J)^p, which sum to 1,
 *
 *     dJ / d ln x_i = w_i J          dJ / d ln p = J / p sum w_i ln w_i
 *
 * so that the derivatives in floor, memory, compute and latency sum to the time: they also divide it into parts.
 * Nothing here fails or allocates.
 */
#ifndef K25_HW_KERNEL_SLOPES_H
#define K25_HW_KERNEL_SLOPES_H

#include "hw/kernel/kernel.h"
#include "hw/params/slopes.h"

/* s. The first four sum to the time of k25_kernel_cost. */
struct k25_kernel_split {
    double floor, memory, compute, latency; /* d time / d ln of each term; memory includes the tail */
    double tail;                            /* of memory, what is moved after the main loop */
    double corner;                          /* d time / d ln p_norm, never above 0 */
};

/* Returns the split of a call. `overlapped`: of a kernel that runs concurrently with another only the memory traffic
 * counts. */
struct k25_kernel_split k25_kernel_split(const struct k25_kernel_call *call, bool overlapped, const struct k25_gpu *gpu,
                                         const struct k25_params *params);

/* Adds `weight` times the derivatives of a call with the given split: with respect to the parameters and figures of its
 * cost, and to the parameters of its work other than through distinct experts and pairs. */
void k25_kernel_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split,
                       const struct k25_gpu *gpu, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes);

/* Returns the seconds of the launch cost that grow with call->launches and call->batched, without those of items. */
double k25_launch_floor(const struct k25_kernel_call *call, const struct k25_kernel_split *split,
                        const struct k25_params *params);

/* Sets d time / d ln distinct and d time / d ln pairs, in s, of a call of routed experts. */
void k25_moe_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split, double *distinct,
                    double *pairs);

#endif
