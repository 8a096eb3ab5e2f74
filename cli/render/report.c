#include "cli/render/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const char *const cli_statistic_names[CLI_STATISTICS + 1] = {
    [CLI_MEDIAN] = "median",
    [CLI_MEAN] = "mean",
    [CLI_WORST] = "worst",
};

bool cli_bars_met(const double bar[CLI_STATISTICS], const char *what, const double errors[CLI_STATISTICS])
{
    bool met = true;
    for (int i = 0; i < CLI_STATISTICS; i++) {
        if (bar[i] > 0 && errors[i] > bar[i]) {
            fprintf(stderr, "bar missed: %s: %s error %.2f %% is above %g %%\n", what, cli_statistic_names[i],
                    errors[i] * 100, bar[i] * 100);
            met = false;
        }
    }
    return met;
}

void cli_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    if (format == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

bool cli_report_add(struct cli_report *report, const char *key, const char *title, struct cli_table *table,
                    struct k25_error *error)
{
    bool ok = true;
    if (report->format == CLI_JSON) {
        if (report->root == NULL)
            report->root = json_object();
        json_t *rows = cli_table_json(table, error);
        ok = rows != NULL;
        if (ok && json_object_set_new(report->root, key, rows) != 0)
            ok = k25_fail(error, K25_RESOURCE, "out of memory");
    } else if (report->format == CLI_CSV) {
        /* One CSV file has one header: the first table is the answer. */
        ok = report->printed || cli_table_csv(table, error);
    } else if (cli_table_rows(table) > 0) {
        printf("%s%s%s", report->printed ? "\n" : "", title, title[0] != '\0' ? "\n" : "");
        ok = cli_table_print(table, error);
    }
    report->printed = true;
    cli_table_close(table);
    return ok;
}

bool cli_report_end(struct cli_report *report, struct k25_error *error)
{
    json_t *root = report->root;
    report->root = NULL;
    return report->format != CLI_JSON || cli_print_json(root, error);
}
