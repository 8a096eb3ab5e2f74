/* k25sim calibrate: parameters fitted to measured points, as a calibration set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/pairs.h"
#include "cli/validate.h"

static struct {
    char **points, **where, **set;
    const char *start, *out;
} given;

static const struct poptOption options[] = {
    {"points", '\0', POPT_ARG_ARGV, &given.points, 0, "measured points to fit (may be repeated)", "FILE.csv"},
    {"where", '\0', POPT_ARG_ARGV, &given.where, 0, "only rows with this value (may be repeated)", "COLUMN=VALUE"},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario; a parameter set so stays fixed",
     "KEY=VALUE"},
    {"start", '\0', POPT_ARG_STRING, &given.start, 0, "start from this calibration set, not from the priors",
     "SET"},
    {"output", 'o', POPT_ARG_STRING, &given.out, 0, "where to write the set", "SET.yaml"},
    POPT_TABLEEND,
};

static const double KNOWN = 0.95; /* posterior / prior spread below which the data have narrowed a parameter */
static const double OPEN = 0.9;   /* ... and above which they have not determined it */
static const double MOVED = 0.1;  /* of the prior spread: a move worth keeping */

static void widen(struct k25_range *range, double value)
{
    range->low = range->high == 0 ? value : fmin(range->low, value);
    range->high = fmax(range->high, value);
}

static void take_parameters(const struct cli_pair *pair, const struct k25_scenario *scenario,
                            struct k25_calibration *set)
{
    const struct k25_fit *fit = &pair->fit;
    for (int id = 0; id < K25_PARAMS; id++) {
        /* What the set started from stays in it. */
        set->set[id] = scenario->calibrated && scenario->calibration.set[id];
        set->value[id] = fit->params.value[id];
        set->log_sd[id] = fit->log_sd[id];
    }
    for (size_t j = 0; j < fit->free; j++) {
        int id = fit->id[j];
        double spread = pair->priors.spread[id];
        double moved = fabs(log(fit->params.value[id] / pair->priors.centre[id]));
        set->set[id] = set->set[id] || fit->log_sd[id] < KNOWN * spread || moved > MOVED * spread;
        set->covaries[j] = id;
    }
    set->covariances = fit->free;
    set->covariance = fit->covariance; /* lent: the pair frees it */
    set->noise = CLI_POINT_NOISE * fit->noise_scale;
}

static void describe(const struct cli_pair *pair, struct k25_calibration *set)
{
    const struct k25_scenario *scenario = pair->point[0]->scenario;
    size_t used = (size_t)snprintf(set->source, sizeof set->source, "%zu rows of %.100s variant %.40s from",
                                   pair->count, pair->group, pair->variant);
    for (size_t i = 0; given.points[i] != NULL && used + 64 < sizeof set->source; i++) {
        const char *slash = strrchr(given.points[i], '/');
        used += (size_t)snprintf(set->source + used, sizeof set->source - used, "%s %.50s", i > 0 ? "," : "",
                                 slash != NULL ? slash + 1 : given.points[i]);
    }
    for (size_t i = 0; i < pair->count; i++) {
        const struct k25_point *point = pair->point[i];
        widen(&set->batch, point->question.plan.batch);
        widen(&set->tp, point->question.plan.tp);
        widen(&set->context, floor(k25_point_context(point, &pair->fit.params)));
    }
    cli_stem(given.out, set->name, sizeof set->name);
    snprintf(set->model, sizeof set->model, "%s", scenario->architecture.name);
    snprintf(set->machine, sizeof set->machine, "%s", scenario->machine.name);
}

static bool write_set(const struct cli_pair *pair, struct k25_calibration *set, struct k25_error *error)
{
    take_parameters(pair, pair->point[0]->scenario, set);
    describe(pair, set);
    char *text = k25_calibration_print(set, error);
    bool ok = text != NULL && k25_file_write(given.out, text, strlen(text), error);
    free(text);
    return ok;
}

static void print_score(const char *what, const struct cli_pair *pair, const double *values)
{
    struct k25_score score;
    k25_score(values, pair->measured, pair->count, &score);
    printf("  %-8s median %5.2f %%, mean %5.2f %%, worst %5.2f %% (row %s), bias %+.2f %%\n", what,
           score.median * 100, score.mean * 100, score.worst * 100, pair->point[score.worst_index]->id,
           score.bias * 100);
}

/* In words what the user should measure next. */
static void print_open(const struct cli_pair *pair)
{
    const struct k25_fit *fit = &pair->fit;
    char names[2048] = "";
    size_t used = 0, count = 0;
    for (size_t j = 0; j < fit->free; j++) {
        int id = fit->id[j];
        if (fit->log_sd[id] < OPEN * pair->priors.spread[id] || used + 80 > sizeof names)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", count > 0 ? ", " : "",
                                 k25_param_info[id].name);
        count++;
    }
    printf("the data determine %zu of the %zu parameters that they depend on; still as open as %.0f %% of the "
           "prior:\n  ",
           fit->free - count, fit->free, OPEN * 100);
    cli_print_wrapped(count > 0 ? names : "none", 2);
}

static const struct cli_column columns[] = {
    {"parameter", "parameter", CLI_TEXT, 0},
    {"prior", "before", CLI_FIGURE, 0},
    {"value", "fitted", CLI_FIGURE, 0},
    {"unit", "unit", CLI_TEXT, 0},
    {"prior_spread", "spread before", CLI_FIGURE, 0},
    {"spread", "spread", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool print_parameters(const struct cli_pair *pair, const struct k25_calibration *set,
                             struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, columns);
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        if (!set->set[id])
            continue;
        cli_table_text(&table, "%s", info->name);
        cli_table_number(&table, pair->priors.centre[id] / info->scale);
        cli_table_number(&table, set->value[id] / info->scale);
        cli_table_text(&table, "%s", info->unit);
        cli_table_number(&table, pair->priors.spread[id]);
        cli_table_number(&table, set->log_sd[id]);
    }
    printf("\n");
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

/* The one pair with rows to fit. */
static struct cli_pair *only_pair(const struct cli_pairs *pairs, struct k25_error *error)
{
    struct cli_pair *only = NULL;
    char names[512] = "";
    size_t found = 0, used = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        struct cli_pair *pair = &pairs->list[i];
        if (pair->count == 0)
            continue;
        only = pair;
        if (used + 120 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s variant %.20s",
                                     found > 0 ? ", " : "", pair->group, pair->variant);
        found++;
    }
    if (found == 1)
        return only;
    if (found == 0)
        k25_fail(error, K25_BAD_INPUT, "no row of the points can be predicted; `k25sim validate` says why");
    else
        k25_fail(error, K25_BAD_INPUT,
                 "the points come from %zu boxes or builds (%s), and parameters belong to one; choose "
                 "with --where group=... and --where variant=...",
                 found, names);
    return NULL;
}

static bool load(const struct cli *cli, const char *scenario, struct k25_suite *suites, size_t files,
                 struct k25_error *error)
{
    const char *set[K25_MAX_SET + 1];
    char start[1024];
    size_t count = cli_count((const char *const *)given.set);
    if (count >= K25_MAX_SET)
        return k25_fail(error, K25_BAD_INPUT, "more than %d overrides", K25_MAX_SET - 1);
    for (size_t i = 0; i < count; i++)
        set[i] = given.set[i];
    if (given.start != NULL) {
        snprintf(start, sizeof start, "calibration=%s", given.start);
        set[count++] = start;
    }
    if (!cli_check_overrides(&cli->library, scenario, set, count, error))
        return false;
    for (size_t i = 0; i < files; i++) {
        if (!k25_suite_load(&cli->library, given.points[i], scenario, (const char *const *)given.where,
                            cli_count((const char *const *)given.where), set, count, &suites[i], error))
            return false;
    }
    return true;
}

static bool calibrate(const struct k25_suite *suites, size_t files, struct cli_pairs *pairs,
                      struct k25_error *error)
{
    static struct k25_calibration set;
    struct cli_pair *pair = cli_pairs_make(suites, files, pairs, error) ? only_pair(pairs, error) : NULL;
    if (pair == NULL)
        return false;
    cli_progress("fitting %zu rows", pair->count);
    bool ok = cli_pair_fit(pair, error);
    cli_progress(NULL);
    if (!ok || !write_set(pair, &set, error))
        return false;
    printf("%s: %s\n", given.out, set.source);
    print_score("before", pair, pair->predicted);
    print_score("fitted", pair, pair->fitted);
    if (!print_parameters(pair, &set, error))
        return false;
    printf("\n");
    print_open(pair);
    return true;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    size_t files = cli_count((const char *const *)given.points);
    if (files == 0)
        return cli_misused(&cli_calibrate, error, "nothing to fit: give measured points with --points FILE.csv");
    if (given.out == NULL)
        return cli_misused(&cli_calibrate, error, "missing -o SET.yaml, the file to write");
    struct cli_pairs pairs = {0};
    struct k25_suite *suites = calloc(files, sizeof *suites);
    bool ok = suites != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    ok = ok && load(cli, arguments[0], suites, files, error) && calibrate(suites, files, &pairs, error);
    cli_pairs_free(&pairs);
    for (size_t i = 0; suites != NULL && i < files; i++)
        k25_suite_free(&suites[i]);
    free(suites);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_calibrate = {
    .name = "calibrate",
    .arguments = "SCENARIO",
    .summary = "fit the parameters to measured points of a box, and write a calibration set",
    .details = "SCENARIO describes the box and the build; what a row of the points says itself wins. All\n"
               "rows must be of one group and variant. The fit is the maximum a posteriori: priors of\n"
               "hw/params.yaml against rows with 3 % noise, outliers weighted down. The set holds the\n"
               "parameters that the data have moved or narrowed, their covariance, and where the data lay.\n"
               "Held-out errors: k25sim validate --cv loo.\n"
               "\n"
               "examples:\n"
               "  k25sim calibrate my-box.yaml --points points.csv -o my-box-set.yaml\n"
               "  k25sim calibrate kimi-k26-v4 --points points.csv --where dcp=1 -o v4.yaml\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
