/* The times that a step is made of, and how they follow the parameters.
 *
 * Every other number of a prediction that depends on parameters is one of them, or a quotient of two, times a constant
 * (model/predict/outputs.h), so that these are the only ones with slopes.
 */
#ifndef K25_MODEL_PREDICT_TERMS_H
#define K25_MODEL_PREDICT_TERMS_H

#include "hw/params/params.h"
#include "model/predict/predict.h"

enum k25_term {
    K25_TERM_NONE, /* 1: the other side of what is no quotient */
    K25_TERM_STEP,
    K25_TERM_GPU_BUSY,
    K25_TERM_KERNELS,
    K25_TERM_ALLREDUCE,
    K25_TERM_ALLREDUCE_TRANSFER,
    K25_TERM_ALLREDUCE_WAIT,
    K25_TERM_OTHER_COLLECTIVES,
    K25_TERM_DRAFT,
    K25_TERM_GAPS,
    K25_TERM_HOST,
    K25_TERM_BUBBLE,
    K25_TERMS,
};

/* Returns a term, s; 1 for K25_TERM_NONE. */
double k25_term_time(const struct k25_prediction *prediction, enum k25_term term);

/* Sets the elasticities of the terms: slope[term][parameter] = d ln term / d ln theta, exact (model/predict/slopes.h);
 * 0 where a term is 0. `prediction` must be k25_predict(question, params). */
void k25_term_slopes(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *prediction, double slope[K25_TERMS][K25_PARAMS]);

/* Sets the elasticities of the step alone, a sixth of the work. TPOT has the same, tok/s the negative. */
void k25_step_slopes(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *prediction, double slope[K25_PARAMS]);

#endif
