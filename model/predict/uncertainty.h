/* The uncertainty of a prediction.
 *
 * The parameters have a joint normal distribution in their logarithms: the prior, or the posterior of a calibration.
 * To first order the logarithm of any predicted number y is then normal too:
 *
 *     var(ln y) = g' C g + noise^2,    g_j = d ln y / d ln theta_j
 *
 * and its 90 % interval is y exp(-+1.645 sd). `noise` is the residual of one measurement that no parameter explains; it
 * applies to numbers that a load test measures (the step and what is derived from it), not to the parts of a step.
 */
#ifndef K25_MODEL_PREDICT_UNCERTAINTY_H
#define K25_MODEL_PREDICT_UNCERTAINTY_H

#include <stddef.h>

#include "base/error.h"
#include "hw/params/params.h"
#include "model/predict/outputs.h"
#include "model/predict/predict.h"

struct k25_uncertainty {
    size_t count;                               /* parameters that vary */
    enum k25_param id[K25_PARAMS];              /* [count] */
    double covariance[K25_PARAMS * K25_PARAMS]; /* count x count, of ln theta */
    double noise;                               /* relative, of one measured step time */
};

struct k25_interval {
    double low, high; /* 5 and 95 % */
};

struct k25_intervals {
    struct k25_interval output[K25_OUTPUTS];   /* by enum k25_output, in its unit; NAN where it has none */
    struct k25_interval op[K25_MAX_OPERATORS]; /* of the time of each operator, s */
};

/* Computes intervals around `prediction`, which must be k25_predict(question, params). A number that is 0 has the
 * interval [0, 0]. Fails only when out of memory (K25_RESOURCE). */
bool k25_predict_intervals(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_uncertainty *uncertainty, const struct k25_prediction *prediction,
                           struct k25_intervals *intervals, struct k25_error *error);

/* Returns g' C h: the covariance of the logarithms of two numbers with elasticities g and h, by parameter. */
double k25_covariance_of(const double g[K25_PARAMS], const double h[K25_PARAMS],
                         const struct k25_uncertainty *uncertainty);

/* Returns sd(ln f) of a number f with these elasticities under the same distribution, without noise. */
double k25_spread_of(const double slope[K25_PARAMS], const struct k25_uncertainty *uncertainty);

#define K25_Z90 1.6448536269514722 /* 95 % quantile of the standard normal */

#endif
