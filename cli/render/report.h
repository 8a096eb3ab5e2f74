/* What commands that judge predictions share: bars, progress, and reports of several tables. */
#ifndef K25_CLI_RENDER_REPORT_H
#define K25_CLI_RENDER_REPORT_H

#include <stdbool.h>

#include "cli/cli.h"
#include "cli/render/table.h"

enum cli_statistic { CLI_MEDIAN, CLI_MEAN, CLI_WORST, CLI_STATISTICS };
extern const char *const cli_statistic_names[CLI_STATISTICS + 1]; /* NULL-terminated */

/* Errors against the bars, both shares in the order of enum cli_statistic, a bar of 0 being none; says on standard
 * error which are missed. */
bool cli_bars_met(const double bar[CLI_STATISTICS], const char *what, const double errors[CLI_STATISTICS]);

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
