/* Slopes of a time: d time / d ln x, in seconds, with respect to every parameter and to the figures of the machine that
 * hardware could change. A relative change e of x changes the time by e times its slope, to first order.
 *
 * The functions named _slopes add `weight` times the slopes of one formula; each is in the same folder as the formula.
 * Where a formula has a corner (a minimum, a rounding up, a choice) the slope is that of the active side.
 */
#ifndef K25_HW_PARAMS_SLOPES_H
#define K25_HW_PARAMS_SLOPES_H

#include "hw/params/params.h"

enum k25_figure {
    K25_FIGURE_BANDWIDTH, /* of the GPU's memory */
    K25_FIGURE_PEAK_BF16, /* tensor cores */
    K25_FIGURE_PEAK_FP8,
    K25_FIGURE_PEAK_FP4,
    K25_FIGURE_LINK_BANDWIDTH, /* of all links at once */
    K25_FIGURE_LINK_LATENCY,   /* of all paths at once, including staging in host memory */
    K25_FIGURES,
};

extern const char *const k25_figure_names[K25_FIGURES + 1]; /* "gpu.bandwidth", ... NULL-terminated */

/* In s. Initialise to all zero. */
struct k25_slopes {
    double param[K25_PARAMS];   /* by enum k25_param */
    double figure[K25_FIGURES]; /* by enum k25_figure */
};

#endif
