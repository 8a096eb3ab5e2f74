/* Everything that `k25sim calibrate` was given, as rows of one fit. */
#ifndef K25_CLI_COMMANDS_CALIBRATE_EVIDENCE_H
#define K25_CLI_COMMANDS_CALIBRATE_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "calib/evidence/check.h"
#include "calib/evidence/fitted.h"
#include "calib/fit/calibration.h"
#include "calib/fit/observe.h"
#include "calib/kernels/table.h"
#include "cli/cli.h"
#include "cli/commands/pairs.h"
#include "scenarios/library/scenario.h"

/* Paths by kind; each list ends with NULL, or is NULL. */
struct cli_evidence_files {
    const char *const *points, *const *captures, *const *summaries, *const *nccl_tests, *const *kernels,
                                                                                            *const *benches;
};

struct cli_evidence {
    struct k25_suite *suites; /* one a file of points */
    size_t suite_count;
    struct cli_pairs pairs;
    struct cli_pair *pair;            /* the one box and build that the points are of; NULL without points */
    struct k25_observations observed; /* of everything but points and kernel tables */
    struct k25_kernel_table **table;
    size_t tables;

    size_t count; /* rows of the fit */
    struct k25_observation *row;
    int *source;        /* [count] number of the file or folder that a row came from */
    char (*label)[192]; /* [count] */
    int sources;
    struct k25_calibration_evidence *file; /* [sources] provenance */
    struct k25_range batch, context;
    struct k25_findings findings;
    struct k25_inputs read; /* every file that was read for it */
};

struct cli_evidence_options {
    const char *const *where, *const *set; /* of points */
    const char *rules;                     /* kernel classes of the user's own; NULL: none */
    double discrepancy;                    /* of the model on a number of a capture, relative */
    const char *const *families;           /* parts of names: other families of kernels are left out; NULL: all */
    bool lenient;
    bool accept; /* evidence with findings against it, too */
};

/* Whether the name of a family contains one of `families`; NULL: yes. */
bool cli_family_wanted(const char *name, const char *const *families);

/* Reads every file and holds it against the scenario (calib/evidence/check.h): evidence of something else is an error
 * with all that is wrong, unless `accept`. `name` is the scenario as given, `scenario` and `question` what it became.
 * Points of more than one box or build are an error that names them. */
bool cli_evidence_read(const struct cli *cli, const char *name, const struct k25_scenario *scenario,
                       const struct k25_question *question, const struct cli_evidence_files *files,
                       const struct cli_evidence_options *options, struct cli_evidence *evidence,
                       struct k25_error *error);

/* The rows for checks of a fit; they stay the evidence's. */
struct k25_fitted_rows cli_evidence_rows(const struct cli_evidence *evidence);
void cli_evidence_free(struct cli_evidence *evidence);

#endif
