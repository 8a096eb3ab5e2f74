/* The kernels of the operators of a step: the name of an operator's kernel in a profile, the class that
 * calib/rules/kernels.yaml has for that name, and the bucket of the fit.
 *
 * An operator of the model can be several kernels in a capture (the experts with their sorting and summing); this is
 * the one that takes most of the time.
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

/* Returns the kernel of an operator; all fields are string constants or values. `backend` is used for AllReduces only.
 * Does not fail. */
struct k25_operator_kernel k25_operator_kernel(const struct k25_operator *op, enum k25_backend backend);

#endif
