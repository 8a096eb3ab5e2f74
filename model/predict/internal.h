/* Shared by the prediction (model/predict/predict.c) and its slopes (model/predict/slopes.c) only. */
#ifndef K25_MODEL_PREDICT_INTERNAL_H
#define K25_MODEL_PREDICT_INTERNAL_H

#include "model/predict/predict.h"

/* Returns the call of an operator as a step prices it: the clock slows its serial walk, and of its launches a step pays
 * step.floors. They overlap with the kernel before (programmatic dependent launch), or their work is part of another.
 */
struct k25_kernel_call k25_call_in_step(const struct k25_operator *op, const struct k25_clocked *clocked,
                                        const struct k25_params *params);

/* Return the share of the transfer and of the wait of a collective that counts under the levers of the plan. */
double k25_transfer_share(const struct k25_plan *plan, const struct k25_operator *op);
double k25_wait_share(const struct k25_plan *plan, const struct k25_operator *op);

/* Host work before passes of the draft. */
struct k25_draft_host {
    double passes; /* whose host work is in the step */
    double hidden; /* s of the work of each that the GPU hides */
};
struct k25_draft_host k25_draft_host(const struct k25_plan *plan, const struct k25_prediction *prediction);

/* Returns whether an eager step waits for the host's launches; otherwise the time between kernels is the gap of a
 * graph. */
bool k25_host_bound(const struct k25_plan *plan, const struct k25_prediction *prediction,
                    const struct k25_params *params);

/* Returns the s that the host adds to a step, without the wait for the slowest rank at its end. */
double k25_host_work(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *prediction);

/* Returns the step of a pipeline / the time of a rank, with the bubble. */
double k25_pipeline_factor(const struct k25_plan *plan, const struct k25_prediction *prediction);

#endif
