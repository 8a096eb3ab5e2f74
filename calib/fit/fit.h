/* One fit for all evidence: the maximum a posteriori parameters.
 *
 *     minimise  sum_i rho( ((ln predicted_i - ln measured_i) / sigma_i)^2 )  +  sum_j ((ln theta_j - ln centre_j) /
 *                                                                                      s_j)^2
 *
 * solved in ln theta by Levenberg-Marquardt (gsl_multifit_nlinear, trust region). rho is Huber's: a row further than
 * 2.5 sigma from the fit counts linearly, by reweighting. Every observation is a function of the parameters alone, so
 * a kernel, a collective and a whole served step stand side by side.
 */
#ifndef K25_CALIB_FIT_FIT_H
#define K25_CALIB_FIT_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "hw/params/params.h"

/* The predicted number of an observation, > 0 where the parameters make sense. `slope`, unless it is NULL, is set to
 * d ln(number) / d ln(theta) of every parameter, exact but where a model documents otherwise. */
typedef double k25_observation_model(const void *context, const struct k25_params *params, double *slope);

struct k25_observation {
    k25_observation_model *predict;
    const void *context;
    double measured; /* > 0, in the unit of predict */
    double sigma;    /* relative noise: standard deviation of ln(measured) */
};

struct k25_fit {
    struct k25_params params;      /* at the optimum; parameters nobody moved keep their centre */
    double log_sd[K25_PARAMS];     /* posterior standard deviation of ln theta */
    size_t free;                   /* parameters fitted: prior spread > 0 and some observation moves with them */
    enum k25_param id[K25_PARAMS]; /* which, in the order of the covariance */
    double *covariance;            /* free x free, of ln theta; NULL when nothing is free */
    double chi2;                   /* of the observations, at the optimum, outliers at their reduced weight */
    double noise_scale;            /* what the observations' sigmas were multiplied by: 1, or k25_fit_solve_noise's */
    double freedom; /* rows behind that factor, less the parameters they determine; infinite without it */
    int iterations;
};

/* Fits `count` observations; those with `leave[i]` true are left out (`leave` may be NULL). Starts at the prior
 * centres. k25_fit_free releases the covariance. */
bool k25_fit_solve(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                   const bool *leave, struct k25_fit *fit, struct k25_error *error);
void k25_fit_free(struct k25_fit *fit);

/* Widens the posterior of a fit of `rows` rows that describes them worse than their noise allows: with
 * s^2 = chi2 / (rows less the parameters they determine), where that is above 1, what the data say counts 1 / s^2,
 *
 *     C' = ( (C^-1 - P) / s^2 + P )^-1,   P = diag(1 / spread^2) of the priors.   */
bool k25_fit_widen(const struct k25_priors *priors, size_t rows, struct k25_fit *fit, struct k25_error *error);

/* The same with the size of the noise fitted too: every sigma is multiplied by one factor f, found by iteration and
 * kept between 1/5 and 5,
 *
 *     f^2 = (chi2 + 4) / (rows - determined + 4)
 *
 * with chi2 at the stated sigmas, the parameters that the rows determine being the sum of 1 - posterior / prior
 * variance, and four rows' worth of belief in the sigmas as stated (the mode of a scaled inverse chi-square). For
 * measurements whose noise is known only roughly. */
bool k25_fit_solve_noise(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                         const bool *leave, struct k25_fit *fit, struct k25_error *error);

#endif
