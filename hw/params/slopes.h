/* How a time follows what it is made of: d time / d ln x, in seconds, of every parameter and of the figures of the
 * machine that a faster one would change. A relative change e of x moves the time by e times its slope, to first order.
 *
 * The functions named _slopes add `weight` times the slopes of one formula; each stands beside the formula that it
 * differentiates. Where a formula has a corner (a minimum, a rounding up, a choice) the side in force counts.
 */
#ifndef K25_HW_PARAMS_SLOPES_H
#define K25_HW_PARAMS_SLOPES_H

#include "hw/params/params.h"

enum k25_figure {
    K25_FIGURE_BANDWIDTH, /* of the GPU's memory */
    K25_FIGURE_PEAK_BF16, /* arithmetic */
    K25_FIGURE_PEAK_FP8,
    K25_FIGURE_PEAK_FP4,
    K25_FIGURE_LINK_BANDWIDTH, /* of all links at once */
    K25_FIGURE_LINK_LATENCY,   /* of all paths at once, staging in host memory with them */
    K25_FIGURES,
};

extern const char *const k25_figure_names[K25_FIGURES + 1]; /* "gpu.bandwidth", ... NULL-terminated */

/* s; starts all zero. */
struct k25_slopes {
    double param[K25_PARAMS];
    double figure[K25_FIGURES];
};

#endif
