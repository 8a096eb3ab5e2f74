/* What profilers call the operators of a step: the way from an operator to the name of its kernel, to the class that
 * calib/rules/kernels.yaml has for that name, and to the bucket that the fit adds it to.
 *
 * An operator of the model may be several kernels in a capture (the experts with their sorting and summing); the row
 * names the one that takes most of the time. Reading a capture, the class of a kernel says which operators it may be.
 */
#ifndef K25_CALIB_RULES_OPERATORS_H
#define K25_CALIB_RULES_OPERATORS_H

#include "calib/rules/kernel_rules.h"
#include "hw/collective/backend.h"
#include "model/step/operator.h"

struct k25_operator_kernel {
    const char *class; /* of calib/rules/kernels.yaml: "dense_gemm" */
    enum k25_bucket bucket;
    const char *name; /* as torch.profiler prints it */
};

/* `backend` decides the name of an AllReduce and is not looked at otherwise. Every operator has all three. */
struct k25_operator_kernel k25_operator_kernel(const struct k25_operator *op, enum k25_backend backend);

#endif
