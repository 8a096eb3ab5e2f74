/* What the two kinds of files that validate reads have in common: options and bars. */
#ifndef K25_CLI_VALIDATE_H
#define K25_CLI_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/table.h"

enum cli_statistic { CLI_MEDIAN, CLI_MEAN, CLI_WORST, CLI_STATISTICS };
extern const char *const cli_statistic_names[]; /* NULL-terminated */

/* What was asked. */
struct cli_validation {
    const char *path, *scenario, *machine;
    const char *const *where, *const *set; /* end with NULL; NULL: none */
    bool fit, points, params;
    bool halves;                /* held out by random halves */
    size_t folds;               /* cross-validation: 0 none, SIZE_MAX one a row */
    double bar[CLI_STATISTICS]; /* shares; 0: none */
    enum cli_format format;
};

enum k25_status cli_validate_points(const struct cli *cli, const struct cli_validation *validation,
                                    struct k25_error *error);
enum k25_status cli_validate_kernels(const struct cli *cli, const struct cli_validation *validation,
                                     struct k25_error *error);

/* Errors in the order of enum cli_statistic against the bars; says on standard error which are missed. */
bool cli_bars_met(const struct cli_validation *validation, const char *what, const double errors[CLI_STATISTICS]);

/* "fitting kimi-k26-v4 1 (45 rows)" on a terminal, nothing otherwise; NULL clears the line. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Tables of a report: for people one below the other, as JSON members of one object. Takes the table over. */
struct cli_report {
    enum cli_format format;
    json_t *root;
    bool printed;
};
bool cli_report_add(struct cli_report *report, const char *key, const char *title, struct cli_table *table,
                    struct k25_error *error);
bool cli_report_end(struct cli_report *report, struct k25_error *error);

#endif
