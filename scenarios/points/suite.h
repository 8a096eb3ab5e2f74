/* Measured points: rows of the points format (docs/formats.md) as questions with a measured answer.
 *
 * A row becomes a plan; what the row leaves empty comes from the scenario of its group (a scenario of the library with
 * the group's name, or the one given). A group without one starts from scenarios/points.yaml, which settles only what
 * no row says; what a row should say and does not makes it skipped, with the reason: an empty cell is unknown, never a
 * default.
 */
#ifndef K25_SCENARIOS_POINTS_SUITE_H
#define K25_SCENARIOS_POINTS_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/csv.h"
#include "base/error.h"
#include "calib/fit/fit.h"
#include "model/predict/predict.h"
#include "scenarios/library/library.h"
#include "scenarios/library/scenario.h"

#define K25_MAX_SET 64 /* overrides or filters of one command */

enum k25_metric {
    K25_METRIC_AGGREGATE_TOK_S,
    K25_METRIC_PER_USER_TOK_S,
    K25_METRIC_TPOT_MS,
    K25_METRIC_ITL_MS,
    K25_METRIC_STEP_MS,
    K25_METRICS,
};
extern const char *const k25_metric_names[K25_METRICS + 1]; /* NULL-terminated */

struct k25_point {
    const char *id, *group, *variant;
    int line;
    const struct k25_scenario *scenario; /* whose parameters apply when nothing is fitted; NULL when skipped */
    bool described;                      /* a scenario of its own may fill the row's empty cells */
    struct k25_question question;        /* its plan.context is the context when decoding starts */
    struct k25_load load;                /* of this row: the cell's length from its own column */
    enum k25_metric metric;
    double measured;                  /* in the metric's unit */
    struct k25_acceptance acceptance; /* of the cells that share it, or of the calibration set's */
    double acceptance_sd;             /* of ln(tokens a step) around question.tokens_per_step; 0: no speculation, or a
                                         metric of the step */
    char skip[160];                   /* why the row has no prediction; "" when it has one */
};

/* A scenario with the architecture, weights and machine of some rows, shared by them. */
struct k25_setting {
    char key[1024];
    struct k25_scenario scenario;
};

struct k25_suite {
    struct k25_csv *csv;
    size_t count;
    struct k25_point *points; /* one a row of the file that passed the filter */
    size_t settings;
    struct k25_setting **setting; /* owned; points refer to their scenarios */
};

/* The acceptance that a server reports for a cell is a measurement: cells of one group, method and chain share a mean m
 * of ln(tokens a step), and a cell has
 *
 *     ln tokens = m + w (ln reported - m),   w = spread^2 / (spread^2 + noise^2)
 *
 * with load.acceptance_spread and load.acceptance_noise. Where the calibration
 * set was fitted to cells of that kind, m is theirs: its parameters make up for the error of m. A group of one cell
 * keeps what is reported.
 *
 * Reads `path`. `scenario` names the scenario for every row, NULL: the one named like the row's group, if any.
 * `where` is a list of `count` filters COLUMN=VALUE; rows that do not match are not in the suite. `set` are overrides
 * for every scenario as in k25_scenario_load. Rows with anomaly = 1 are skipped. */
bool k25_suite_load(const struct k25_library *library, const char *path, const char *scenario, const char *const *where,
                    size_t where_count, const char *const *set, size_t set_count, struct k25_suite *suite,
                    struct k25_error *error);
void k25_suite_free(struct k25_suite *suite);

/* The prediction of a point in the unit of its metric. The context grows while the cell runs:
 *     L = max(context, short_prompt) + min(cell_seconds / tpot, output_max) / 2
 * with the predicted tpot, by fixed-point iteration. `point` is a struct k25_point; a k25_observation_model
 * (calib/fit/fit.h), whose slopes take in that a longer step generates fewer tokens. */
double k25_point_predict(const void *point, const struct k25_params *params, double *slope);

/* The mean context that k25_point_predict assumes. */
double k25_point_context(const struct k25_point *point, const struct k25_params *params);

/* The naive answer a roofline gives: every byte of weights and cache once at the data sheet's bandwidth, nothing else.
 */
double k25_point_roofline(const struct k25_point *point);

/* Errors of a set of points, |predicted - measured| / measured. */
struct k25_score {
    size_t count;
    double median, mean, worst; /* shares */
    size_t worst_index;         /* into the arrays given */
    double bias;                /* mean of (predicted - measured) / measured */
};
void k25_score(const double *predicted, const double *measured, size_t count, struct k25_score *score);

#endif
