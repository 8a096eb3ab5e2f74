/* Shared by the cost of a kernel (hw/kernel/kernel.c) and its slopes (hw/kernel/slopes.c) only. */
#ifndef K25_HW_KERNEL_INTERNAL_H
#define K25_HW_KERNEL_INTERNAL_H

#include "hw/kernel/kernel.h"

enum k25_peak { K25_PEAK_BF16, K25_PEAK_FP8, K25_PEAK_FP4, K25_PEAKS };

#define K25_NO_PARAM K25_PARAMS

/* The parameters of a class; K25_NO_PARAM where the class has no such term. */
struct k25_class_params {
    enum k25_param t0, batched, item; /* s of a launch, of leaving the one-row path, of an item */
    enum k25_param eta_mem, eta_mac;  /* shares of the memory bandwidth and of the peak */
    enum k25_param step;              /* s of a serial step */
    enum k25_peak peak;               /* of its arithmetic */
};

extern const struct k25_class_params k25_class_params[K25_KERNEL_CLASSES];

/* Returns the peak that applies: a GPU without tensor cores of a width computes in the next wider one. */
enum k25_peak k25_peak_in_force(enum k25_peak peak, const struct k25_gpu *gpu);

/* Returns the value of a parameter in SI; 0 for K25_NO_PARAM. */
double k25_value_of(enum k25_param id, const struct k25_params *params);

/* The parameter that says how many bytes move for a routed activation element of a class of experts. */
enum k25_param k25_activation_of(enum k25_kernel_class class);

#endif
