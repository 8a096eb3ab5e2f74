/* How the time of a kernel (hw/kernel/kernel.h) follows what it is made of.
 *
 * With x the terms that the p-norm joins, J their norm and w_i = (x_i / J)^p, which sum to 1,
 *
 *     dJ / d ln x_i = w_i J          dJ / d ln p = J / p sum w_i ln w_i
 *
 * so that the slopes in floor, memory, compute and latency sum to the time: they also share it out.
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

/* `beside`: of a kernel that runs beside another only the memory traffic counts. */
struct k25_kernel_split k25_kernel_split(const struct k25_kernel_call *call, bool beside, const struct k25_gpu *gpu,
                                         const struct k25_params *params);

/* The slopes of a call whose split is given, in all that prices it and in the parameters that its work was made from,
 * other than through distinct experts and pairs. */
void k25_kernel_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split,
                       const struct k25_gpu *gpu, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes);

/* d time / d ln distinct and / d ln pairs, in s, of a call of routed experts. */
void k25_moe_slopes(const struct k25_kernel_call *call, const struct k25_kernel_split *split, double *distinct,
                    double *pairs);

#endif
