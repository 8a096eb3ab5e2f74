/* The slopes of a step: how its time follows every parameter and the figures of the machine, exactly.
 *
 *     slope_x = d step / d ln x    in seconds
 *
 * slope_x / step is the elasticity of the step, and of the time per output token with it: the acceptance of drafts
 * depends on none of them. One pass over the operators of a prediction, the reverse mode by hand: what reaches a kernel
 * is its share of the step, and of the wait at the end of its segment. Where the step has a corner the side in force
 * counts, and what is rounded to whole numbers (splits, waves, blocks of rows) or chosen (backends, protocols) stays as
 * it is.
 */
#ifndef K25_MODEL_PREDICT_SLOPES_H
#define K25_MODEL_PREDICT_SLOPES_H

#include "hw/kernel/slopes.h"
#include "hw/params/slopes.h"
#include "model/predict/predict.h"

/* `prediction` must be k25_predict(question, params). A link's latency and bandwidth are those of every group at once.
 */
void k25_slopes(const struct k25_question *question, const struct k25_params *params,
                const struct k25_prediction *prediction, struct k25_slopes *slopes);

/* Any sum of the parts of a prediction: of kernel times (`time` of an operator, all its calls together), and of the
 * transfers and waits of collectives; each times its own weight. */
struct k25_part_weights {
    double kernel[K25_MAX_OPERATORS];                            /* of op[i].time where op[i] is a kernel */
    double transfer[K25_MAX_OPERATORS], wait[K25_MAX_OPERATORS]; /* where it is a collective */
    double tail;                                                 /* of the wait for the last rank's tail */
};

/* Adds the slopes of that sum, s: d sum / d ln x. A wait follows the kernels before it; they need no weight for that.
 */
void k25_slopes_of_parts(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *prediction, const struct k25_part_weights *weights,
                         struct k25_slopes *slopes);

/* What the time of one operator is made of, s a step, all its calls together; the parts sum to the time. */
struct k25_operator_split {
    double floor, memory, compute;
    double latency; /* of a kernel its serial walk, of a collective all that does not grow with the message */
    double link;    /* of a collective: bytes through the links */
    double wait;    /* of a collective: for the last rank */
};
void k25_operator_splits(const struct k25_question *question, const struct k25_params *params,
                         const struct k25_prediction *prediction, struct k25_operator_split splits[K25_MAX_OPERATORS]);

#endif
