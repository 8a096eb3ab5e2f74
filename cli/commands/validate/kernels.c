#include <math.h>
#include <string.h>

#include "base/text.h"
#include "calib/kernels/table.h"
#include "cli/commands/validate/validate.h"

/* The box that most tables describe; only the collectives depend on more of it than the GPU. */
static const char *const usual_machine = "rtx-pro-6000-8x-two-socket";

static const struct cli_column family_columns[] = {
    {"kind", NULL, CLI_TEXT, 0},
    {"rows", NULL, CLI_COUNT, 0},
    {"skipped", NULL, CLI_COUNT, 0},
    {"warm", "warm", CLI_COUNT, 0},
    {"fitted", NULL, CLI_COUNT, 0},
    {"scored", "scored", CLI_COUNT, 0},
    {"median_pct", "med %", CLI_FIGURE, 0},
    {"mean_pct", NULL, CLI_FIGURE, 0},
    {"p90_pct", "p90 %", CLI_FIGURE, 0},
    {"worst_pct", "worst %", CLI_FIGURE, 0},
    {"bar_median_pct", "bar", CLI_FIGURE, 0},
    {"table_median_pct", "with table, med %", CLI_FIGURE, 0},
    {"table_mean_pct", NULL, CLI_FIGURE, 0},
    {"table_p90_pct", NULL, CLI_FIGURE, 0},
    {"cold_rate_gbs", NULL, CLI_FIGURE, 0},
    {"family", "family", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static size_t skipped(const struct k25_kernel_family *family)
{
    size_t count = 0;
    for (enum k25_skip reason = 0; reason < K25_SKIPS; reason++)
        count += family->skipped[reason];
    return count;
}

static void add_family(struct cli_table *table, enum k25_table_kind kind, const struct k25_kernel_family *family,
                       const struct k25_kernel_score *score)
{
    bool any = score->scored > 0;
    cli_table_text(table, "%s", k25_table_kind_names[kind]);
    cli_table_number(table, (double)family->rows);
    cli_table_number(table, (double)skipped(family));
    cli_table_number(table, (double)score->warm);
    cli_table_number(table, (double)score->fitted);
    cli_table_number(table, (double)score->scored);
    cli_table_number(table, any ? score->median * 100 : NAN);
    cli_table_number(table, any ? score->mean * 100 : NAN);
    cli_table_number(table, any ? score->p90 * 100 : NAN);
    cli_table_number(table, any ? score->max * 100 : NAN);
    cli_table_number(table, family->bar > 0 ? family->bar * 100 : NAN);
    cli_table_number(table, score->tabulated ? score->residual_median * 100 : NAN);
    cli_table_number(table, score->tabulated ? score->residual_mean * 100 : NAN);
    cli_table_number(table, score->tabulated ? score->residual_p90 * 100 : NAN);
    cli_table_number(table, score->cold_rate > 0 ? score->cold_rate / 1e9 : NAN);
    cli_table_text(table, "%s", family->name);
}

/* People are spared the families in which nothing could be scored; their rows are counted under the reasons. */
static bool report_families(const struct k25_kernel_table *kernels, const struct k25_kernel_scores *scores,
                            struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, family_columns);
    for (int i = 0; i < kernels->families; i++) {
        if (report->format != CLI_TABLE || scores->family[i].scored > 0)
            add_family(&table, kernels->kind, &kernels->family[i], &scores->family[i]);
    }
    return cli_report_add(report, "errors", "", &table, error);
}

static const struct cli_column skip_columns[] = {
    {"rows", "rows", CLI_COUNT, 0},
    {"reason", "reason", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool report_skips(const struct k25_kernel_table *kernels, const struct k25_kernel_scores *scores,
                         struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    size_t warm = 0;
    cli_table_open(&table, skip_columns);
    for (enum k25_skip reason = 0; reason < K25_SKIPS; reason++) {
        size_t rows = 0;
        for (int i = 0; i < kernels->families; i++)
            rows += kernels->family[i].skipped[reason];
        if (rows == 0)
            continue;
        cli_table_number(&table, (double)rows);
        cli_table_text(&table, "%s", k25_skip_reasons[reason]);
    }
    for (int i = 0; i < kernels->families; i++)
        warm += scores->family[i].warm;
    if (warm > 0) {
        cli_table_number(&table, (double)warm);
        cli_table_text(&table, "warm: weights or cache below twice the L2, faster than 0.9 of the cold line");
    }
    return cli_report_add(report, "skipped", "set aside", &table, error);
}

static const struct cli_column param_columns[] = {
    {"parameter", "parameter", CLI_TEXT, 0},
    {"unit", "unit", CLI_TEXT, 0},
    {"prior", "prior", CLI_FIGURE, 0},
    {"fitted", "fitted", CLI_FIGURE, 0},
    {"prior_spread", "prior spread", CLI_FIGURE, 0},
    {"spread", "spread", CLI_FIGURE, 0},
    {"family", "family", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool report_params(const struct k25_kernel_table *kernels, const struct k25_kernel_scores *scores,
                          const struct k25_priors *priors, struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, param_columns);
    for (int i = 0; i < kernels->families; i++) {
        const struct k25_kernel_score *score = &scores->family[i];
        for (size_t j = 0; j < score->free; j++) {
            int id = score->id[j];
            const struct k25_param_info *info = &k25_param_info[id];
            cli_table_text(&table, "%s", info->name);
            cli_table_text(&table, "%s", info->unit);
            cli_table_number(&table, priors->centre[id] / info->scale);
            cli_table_number(&table, score->params.value[id] / info->scale);
            cli_table_number(&table, priors->spread[id]);
            cli_table_number(&table, score->log_sd[id]);
            cli_table_text(&table, "%s", kernels->family[i].name);
        }
    }
    return cli_report_add(report, "parameters", "fitted parameters (spread: standard deviation of the logarithm)",
                          &table, error);
}

static const struct cli_column row_columns[] = {
    {"line", "line", CLI_COUNT, 0},
    {"use", "use", CLI_TEXT, 0},
    {"measured_us", "measured us", CLI_FIGURE, 0},
    {"predicted_us", "predicted us", CLI_FIGURE, 0},
    {"error_pct", "error %", CLI_FIGURE, 0},
    {"family", "family", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool report_rows(const struct k25_kernel_table *kernels, const struct k25_kernel_scores *scores,
                        struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, row_columns);
    for (size_t i = 0; i < kernels->rows; i++) {
        const struct k25_kernel_row *row = &kernels->row[i];
        cli_table_number(&table, row->line);
        cli_table_text(&table, "%s", k25_row_use_names[scores->use[i]]);
        cli_table_number(&table, row->latency * 1e6);
        cli_table_number(&table, scores->predicted[i] * 1e6);
        cli_table_number(&table, (scores->predicted[i] / row->latency - 1) * 100);
        cli_table_text(&table, "%s", kernels->family[row->family].name);
    }
    return cli_report_add(report, "points", "rows", &table, error);
}

/* Every family against the bars of the command line and its own. */
static bool bars_met(const struct cli_validation *v, const struct k25_kernel_table *kernels,
                     const struct k25_kernel_scores *scores)
{
    bool met = true;
    for (int i = 0; i < kernels->families; i++) {
        const struct k25_kernel_score *score = &scores->family[i];
        double bar[CLI_STATISTICS];
        memcpy(bar, v->bar, sizeof bar);
        if (score->scored == 0)
            continue;
        if (bar[CLI_MEDIAN] == 0)
            bar[CLI_MEDIAN] = kernels->family[i].bar;
        const double errors[CLI_STATISTICS] = {
            [CLI_MEDIAN] = score->median, [CLI_MEAN] = score->mean, [CLI_WORST] = score->max};
        met = cli_bars_met(bar, kernels->family[i].name, errors) && met;
    }
    return met;
}

static bool report_all(const struct cli_validation *v, const struct k25_kernel_table *kernels,
                       const struct k25_kernel_scores *scores, const struct k25_priors *priors, struct k25_error *error)
{
    struct cli_report report = {.format = v->format};
    bool rows_first = v->format == CLI_CSV && v->points;
    bool ok = (!rows_first || report_rows(kernels, scores, &report, error)) &&
              report_families(kernels, scores, &report, error) && report_skips(kernels, scores, &report, error) &&
              (!v->params || report_params(kernels, scores, priors, &report, error)) &&
              (!v->points || rows_first || report_rows(kernels, scores, &report, error));
    return ok && cli_report_end(&report, error);
}

static bool load_machine(const struct cli *cli, const char *name, struct k25_machine *machine,
                         struct k25_priors *priors, struct k25_error *error)
{
    char path[1024];
    struct k25_machine_parts parts;
    return k25_library_params(&cli->library, path, sizeof path) && k25_priors_load(path, priors, NULL, error) &&
           k25_library_parts(&cli->library, &parts, NULL, error) &&
           k25_library_find(&cli->library, K25_FILES_MACHINE, name, "", "", path, sizeof path, error) &&
           k25_machine_load(path, &parts, machine, NULL, error);
}

enum k25_status cli_validate_kernels(const struct cli *cli, const struct cli_validation *v, struct k25_error *error)
{
    static struct k25_machine machine; /* too large for a stack, as the priors */
    static struct k25_priors priors;
    struct k25_kernel_scores scores = {0};
    bool met = true;
    if (v->where != NULL || v->set != NULL || v->scenario != NULL || v->folds > 0)
        return cli_misused(&cli_validate, error,
                           "%s is a table of kernels: --scenario, --where, --set and --cv are for "
                           "measured points",
                           v->path);
    if (!load_machine(cli, v->machine != NULL ? v->machine : usual_machine, &machine, &priors, error))
        return cli_failed(error);
    struct k25_kernel_table *kernels = k25_kernel_table_read(v->path, &machine, error);
    if (kernels == NULL)
        return cli_failed(error);
    cli_progress("fitting %d families", kernels->families);
    bool ok = k25_kernel_table_score(kernels, &priors, &scores, error);
    cli_progress(NULL);
    ok = ok && report_all(v, kernels, &scores, &priors, error);
    if (ok) {
        fflush(stdout);
        met = bars_met(v, kernels, &scores);
    }
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(kernels);
    return !ok ? cli_failed(error) : met ? K25_OK : K25_NEGATIVE;
}
