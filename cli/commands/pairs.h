/* Measured points by box and build: rows of one group and variant share their parameters, rows of two never do. */
#ifndef K25_CLI_COMMANDS_PAIRS_H
#define K25_CLI_COMMANDS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "calib/fit/fit.h"
#include "calib/fit/hold_out.h"
#include "scenarios/points/suite.h"

extern const double CLI_POINT_NOISE; /* of one measured cell: its weight in a fit */

/* The relative noise of a measured point: that of a cell, and of the acceptance where it counts. */
double cli_point_noise(const struct k25_point *point);

struct cli_pair {
    const char *group, *variant;
    size_t count, skipped;
    const struct k25_point **point; /* count: those with a prediction, in the order of the file */
    double *measured;               /* count, as the next four; NULL: not asked for */
    double *predicted;              /* by the scenario's own parameters */
    double *spread;                 /* standard deviation of ln(measured) around ln(predicted) */
    double *fitted;                 /* by parameters fitted to all rows of the pair */
    double *roofline;
    size_t held;                   /* predictions by fits that have not seen their row; a row may have several */
    size_t *held_row;              /* held: which row */
    struct k25_held_out *held_out; /* held */
    struct k25_fit fit;
    struct k25_priors priors; /* the fit started from them */
};

struct cli_pairs {
    struct cli_pair *list; /* in the order of the file */
    size_t count;
};

/* Sorts the points of suites into pairs and predicts them. The pairs point into the suites. */
bool cli_pairs_make(const struct k25_suite *suites, size_t count, struct cli_pairs *pairs, struct k25_error *error);
void cli_pairs_free(struct cli_pairs *pairs);

/* Fits the parameters of a pair and the size of its noise to its rows, and predicts them so: fills `fit`, `priors` and
 * `fitted`. */
bool cli_pair_fit(struct cli_pair *pair, struct k25_error *error);

/* Fills `held_out`: row i belongs to fold i modulo `folds`; as many folds as rows leave out one at a time. */
bool cli_pair_cross_validate(struct cli_pair *pair, size_t folds, struct k25_error *error);

/* Fills `held_out` from CLI_HALVES random halves: each is predicted by a fit to the other half. */
bool cli_pair_halves(struct cli_pair *pair, struct k25_error *error);
enum { CLI_HALVES = 20 };

/* Loads `scenario` (NULL: the one that points start from) with the overrides that do not depend on a row, so that
 * a slip of the pen is an error of its own and not the reason why every row is skipped. */
bool cli_check_overrides(const struct k25_library *library, const char *scenario, const char *const *set, size_t count,
                         struct k25_error *error);

/* Where a fit for this scenario starts: at its values (calibration set and --set included). What --set gave is a
 * constant; what a calibration set measured is as uncertain as the set says. */
void cli_starting_priors(const struct k25_scenario *scenario, struct k25_priors *priors);

#endif
