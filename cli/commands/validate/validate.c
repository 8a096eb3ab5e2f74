/* k25sim validate: measured against predicted. */
#include "cli/commands/validate/validate.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/text.h"

static struct {
    const char *scenario, *machine, *folds, *format;
    char **where, **set, **bar;
    int fit, points, params;
} given;

static const struct poptOption options[] = {
    {"scenario", '\0', POPT_ARG_STRING, &given.scenario, 0, "for every row, instead of the one named like its group",
     "SCENARIO"},
    {"where", '\0', POPT_ARG_ARGV, &given.where, 0, "only rows with this value (may be repeated)", "COLUMN=VALUE"},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenarios (may be repeated)", "KEY=VALUE"},
    {"fit", '\0', POPT_ARG_NONE, &given.fit, 0, "errors after a fit of the parameters to the rows, too", NULL},
    {"cv", '\0', POPT_ARG_STRING, &given.folds, 0,
     "and held-out errors: leave one row out, K folds, or 20 random halves", "loo|K|half"},
    {"params", '\0', POPT_ARG_NONE, &given.params, 0, "the fitted parameters, too", NULL},
    {"points", '\0', POPT_ARG_NONE, &given.points, 0, "every row, too", NULL},
    {"bar", '\0', POPT_ARG_ARGV, &given.bar, 0, "exit 1 when an error is larger: mean=4, worst=12, median=8",
     "WHICH=PERCENT"},
    {"machine", '\0', POPT_ARG_STRING, &given.machine, 0, "where a table of kernels was measured", "MACHINE"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

static bool read_bar(const char *text, double bar[CLI_STATISTICS], struct k25_error *error)
{
    char hint[64], name[32];
    const char *equals = strchr(text, '=');
    double percent;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    for (int i = 0; equals != NULL && i < CLI_STATISTICS; i++) {
        if (strcmp(name, cli_statistic_names[i]) == 0 && k25_parse_real(equals + 1, &percent) && percent > 0) {
            bar[i] = percent / 100;
            return true;
        }
    }
    k25_did_you_mean(name, cli_statistic_names, hint, sizeof hint);
    cli_misused(&cli_validate, error, "--bar %s: expected mean, worst or median and a percentage, as in mean=4%s", text,
                strstr(hint, name) == NULL ? hint : "");
    return false;
}

static bool read_folds(const char *text, size_t *folds, bool *halves, struct k25_error *error)
{
    long long number;
    *folds = SIZE_MAX;
    if (strcmp(text, "loo") == 0)
        return true;
    if (strcmp(text, "half") == 0) {
        *halves = true;
        return true;
    }
    if (k25_parse_int(text, &number) && number >= 2 && number <= 1000) {
        *folds = (size_t)number;
        return true;
    }
    cli_misused(&cli_validate, error, "--cv %s: expected loo, half, or a number of folds of at least 2", text);
    return false;
}

/* A table of kernels has one latency a row; the points format has none. */
static bool is_kernel_table(const char *path, bool *answer, struct k25_error *error)
{
    *answer = false;
    if (strcmp(path, "-") == 0)
        return true; /* standard input is read once, by the reader of points */
    struct k25_csv *csv = k25_csv_read(path, error);
    if (csv == NULL)
        return false;
    *answer = k25_csv_column(csv, "latency_us") >= 0;
    k25_csv_free(csv);
    return true;
}

static bool read_options(struct cli_validation *v, struct k25_error *error)
{
    if (!cli_format(&cli_validate, given.format, &v->format, error) ||
        (given.folds != NULL && !read_folds(given.folds, &v->folds, &v->halves, error)))
        return false;
    for (size_t i = 0; given.bar != NULL && given.bar[i] != NULL; i++) {
        if (!read_bar(given.bar[i], v->bar, error))
            return false;
    }
    v->scenario = given.scenario;
    v->machine = given.machine;
    v->where = (const char *const *)given.where;
    v->set = (const char *const *)given.set;
    v->points = given.points != 0;
    v->params = given.params != 0;
    v->fit = given.fit != 0 || v->folds > 0 || v->params;
    return true;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    char path[1024];
    struct cli_validation validation = {.path = k25_library_table(&cli->library, arguments[0], path, sizeof path)};
    bool kernels;
    if (!read_options(&validation, error) || !is_kernel_table(validation.path, &kernels, error))
        return cli_failed(error);
    return kernels ? cli_validate_kernels(cli, &validation, error) : cli_validate_points(cli, &validation, error);
}

const struct cli_command cli_validate = {
    .name = "validate",
    .arguments = "FILE.csv",
    .summary = "measured against predicted: errors, and the rows that have no prediction",
    .details = "FILE.csv is a table of measured points (docs/formats.md) or, with a column latency_us, of\n"
               "measured kernels or collectives (gzip is read, too); calib/points and calib/kernels_measured\n"
               "have public ones, which are found from any folder. Points of one group and variant are\n"
               "one box and build; errors are |predicted - measured| / measured in the metric of the row.\n"
               "`roofline` reads every byte of weights and cache once at the data sheet's bandwidth and\n"
               "nothing else: what a model must beat. Kernels are fitted on the even-numbered shapes of\n"
               "each family and scored on the odd ones. With --format csv the first table is printed; with\n"
               "--points, that of the rows.\n"
               "\n"
               "examples:\n"
               "  k25sim validate calib/points/qwen35_397b.csv\n"
               "  k25sim validate calib/points/kimi_k26_v4.csv --where dcp=1 --where spec_kind=none --cv loo\n"
               "  k25sim validate points.csv --cv 5 --bar mean=4 --bar worst=12\n"
               "  k25sim validate points.csv --scenario my-box.yaml --points --format csv\n"
               "  k25sim validate calib/kernels_measured/gemm.csv.gz --params\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
