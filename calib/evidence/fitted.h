/* The fit against its evidence: what it cannot describe, and what it had to believe to describe it. */
#ifndef K25_CALIB_EVIDENCE_FITTED_H
#define K25_CALIB_EVIDENCE_FITTED_H

#include "calib/evidence/findings.h"
#include "calib/fit/fit.h"

/* The rows of a fit with where they come from. */
struct k25_fitted_rows {
    const struct k25_observation *row;
    size_t count;
    const int *source;                           /* [count] index into `file`; negative: none */
    const char (*label)[192];                    /* [count] */
    const struct k25_calibration_evidence *file; /* [files] */
    int files;
};

/* Findings:
 *   a parameter fitted more than four spreads away from its prior; a share well above 1. A warning where tables of
 *   kernels took part, and where it says that host or links are slow
 *   a file whose median residual stays above 25 %, or a capture of which a main number does; a factor of 2 for tables
 *   of kernels, which leave residual tables, and for served points, whose builds differ by more than the parameters
 *   two files that pull the same number apart: mean residuals of opposite sign, each beyond 10 % and three times its
 *   noise
 * `priors` are those of the library, not of a set that the fit started from. */
void k25_check_fit(const struct k25_priors *priors, const struct k25_fit *fit, const struct k25_fitted_rows *rows,
                   struct k25_findings *findings);

/* How far the fit is off what it was fitted to, as a standard deviation: the median |ln(predicted / measured)| /
 * 0.6745, or that of the kernels of one capture's step together where it is larger. What is predicted is not known
 * better. */
double k25_residual_scatter(const struct k25_fit *fit, const struct k25_fitted_rows *rows);

#endif
