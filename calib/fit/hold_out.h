/* Held-out errors: what a fit says of measurements it has not seen.
 *
 * Each fold is left out in turn, the rest is fitted and the fold predicted, with the interval that the fit gives it.
 * The folds are the caller's: one row each (leave-one-out), K of them, or random halves.
 */
#ifndef K25_CALIB_FIT_HOLD_OUT_H
#define K25_CALIB_FIT_HOLD_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "calib/fit/fit.h"
#include "model/predict/uncertainty.h"

struct k25_held_out {
    double predicted; /* in the observation's unit */
    double sd;        /* of ln(measured) around ln(predicted): the fit's spread and the noise of one measurement */
};

/* The joint distribution of the parameters after a fit: its covariance, and the prior's spread for what it did not
 * move. `sigma` is the relative noise of one measurement as the fit was given it. Where the fit estimated its size,
 * everything is widened by t_0.95(freedom) / z_0.95, so that 90 % intervals keep their meaning with few rows. */
void k25_fit_uncertainty(const struct k25_priors *priors, const struct k25_fit *fit, double sigma,
                         struct k25_uncertainty *uncertainty);

/* `fold[i]`, 0 to folds - 1, is the fold of observation i; `held_out[i]` its prediction. The noise is fitted
 * (k25_fit_solve_noise). Folds run in parallel; the result does not depend on the number of threads. */
bool k25_hold_out(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                  const int *fold, int folds, struct k25_held_out *held_out, struct k25_error *error);

/* A fit on the rows that are not left out, and the prediction of those that are: one split. */
bool k25_hold_out_split(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                        const bool *leave, struct k25_held_out *held_out, struct k25_error *error);

/* Marks a random half (rounded down) of `count` rows to be left out; the same seed gives the same half. */
void k25_random_half(size_t count, uint64_t seed, bool *leave);

#endif
