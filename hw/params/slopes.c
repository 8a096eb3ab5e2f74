#include "hw/params/slopes.h"

#include <stddef.h>

const char *const k25_figure_names[K25_FIGURES + 1] = {
    [K25_FIGURE_BANDWIDTH] = "gpu.bandwidth",       [K25_FIGURE_PEAK_BF16] = "gpu.peak_bf16",
    [K25_FIGURE_PEAK_FP8] = "gpu.peak_fp8",         [K25_FIGURE_PEAK_FP4] = "gpu.peak_fp4",
    [K25_FIGURE_LINK_BANDWIDTH] = "link.bandwidth", [K25_FIGURE_LINK_LATENCY] = "link.latency",
};
