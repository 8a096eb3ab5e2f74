/* The slopes of a step: the exact derivatives of its time in every parameter and the figures of the machine.
 *
 *     slope_x = d step / d ln x    in seconds
 *
 * slope_x / step is the elasticity of the step, and of the time per output token: the acceptance of drafts depends on
 * none of them. One pass over the operators of a prediction, reverse-mode differentiation by hand: the weight of a
 * kernel is its share of the step, and of the wait at the end of its segment. Where the step has a corner the slope is
 * that of the active side, and what is rounded to whole numbers (splits, waves, blocks of rows) or chosen (backends,
 * protocols) is constant. Nothing here fails or allocates.
 */
#ifndef K25_MODEL_PREDICT_SLOPES_H
#define K25_MODEL_PREDICT_SLOPES_H

#include "hw/kernel/slopes.h"
#include "hw/params/slopes.h"
#include "model/predict/predict.h"

/* Fills `slopes` of the step. `prediction` must be k25_predict(question, params). The figures of links are those of all
 * groups at once. */
void k25_slopes(const struct k25_question *question, const struct k25_params *params,
                const struct k25_prediction *prediction, struct k25_slopes *slopes);

/* A weighted sum of the parts of a prediction: of kernel times (`time` of an operator, all its calls together), and of
 * the transfers and waits of collectives. */
struct k25_part_weights {
    double kernel[K25_MAX_OPERATORS];                            /* of op[i].time where op[i] is a kernel */
    double transfer[K25_MAX_OPERATORS], wait[K25_MAX_OPERATORS]; /* where it is a collective */
    double tail;                                                 /* of the wait for the slowest rank after the tail */
};

/* Adds the slopes of that sum, s: d sum / d ln x. A wait depends on the kernels before it, whatever their weights. */
void k25_slopes_of_parts(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *prediction, const struct k25_part_weights *weights,
                         struct k25_slopes *slopes);

/* The parts of the time of one operator, s per step, all its calls together; they sum to the time. */
struct k25_operator_split {
    double floor;   /* of a kernel: fixed time of launches and items */
    double memory;  /* of a kernel: memory traffic */
    double compute; /* of a kernel: arithmetic */
    double latency; /* of a kernel its serial loop, of a collective all that does not grow with the message */
    double link;    /* of a collective: bytes through the links */
    double wait;    /* of a collective: for the last rank */
};

/* Fills the split of every operator of `prediction`, by the index in step_work.op. */
void k25_operator_splits(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *prediction, struct k25_operator_split splits[K25_MAX_OPERATORS]);

#endif
