/* What the prediction (model/predict/predict.c) and its slopes (model/predict/slopes.c) share; not for others. */
#ifndef K25_MODEL_PREDICT_INTERNAL_H
#define K25_MODEL_PREDICT_INTERNAL_H

#include "model/predict/predict.h"

/* The GPU under the power limit of the plan: its peaks go with the clock, and so does the loop over K or the cache;
 * memory and launches do not. */
struct k25_clocked {
    struct k25_gpu gpu;
    double clock; /* / full clock */
};
void k25_clock_gpu(const struct k25_question *question, const struct k25_params *params, struct k25_clocked *clocked);

/* Share of its transfer that a collective is charged, and of its wait. */
double k25_transfer_share(const struct k25_plan *plan, const struct k25_operator *op);
double k25_wait_share(const struct k25_plan *plan, const struct k25_operator *op);

/* Host work before passes of the draft that the step pays, and how much of each the GPU hides. */
struct k25_draft_host {
    double passes, hidden;
};
struct k25_draft_host k25_draft_host(const struct k25_plan *plan, const struct k25_prediction *prediction);

/* Whether an eager step waits for the host's launches; else the gaps of a graph set what is between kernels. */
bool k25_host_bound(const struct k25_plan *plan, const struct k25_prediction *prediction,
                    const struct k25_params *params);

/* s that the host adds to a step but for the wait for the last rank's tail. */
double k25_host_work(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *prediction);

/* What a pipeline makes of the time of a rank, bubble with it: this many times that. */
double k25_pipeline_factor(const struct k25_plan *plan, const struct k25_prediction *prediction);

#endif
