/* What to measure next: which further measurement would narrow a prediction most.
 *
 * One more observation with gradient h (of its logarithm) and noise s changes the variance of a number with gradient g
 * to
 *
 *     g'Cg - (g'Ch)^2 / (h'Ch + s^2)
 *
 * to first order, without knowing what it would read.
 */
#ifndef K25_CALIB_FIT_ADVICE_H
#define K25_CALIB_FIT_ADVICE_H

#include <stddef.h>

#include "calib/fit/observe.h"
#include "model/predict/uncertainty.h"

struct k25_advice {
    char what[128];  /* "step time at 32 sequences, context 16,384" */
    double sd_after; /* standard deviation of ln(step) once it is known */
};

#define K25_MAX_ADVICE 16

/* Ranks measurements that somebody with the box can make by how much they narrow the step of `question`, best first;
 * those that narrow it by less than 1 % are left out. Returns how many; `*sd_before` is the spread of ln(step) now. */
size_t k25_advise(const struct k25_question *question, const struct k25_params *params,
                  const struct k25_uncertainty *uncertainty, struct k25_advice advice[K25_MAX_ADVICE],
                  double *sd_before);

#endif
