#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/pairs.h"
#include "cli/commands/validate/validate.h"

static const struct cli_column error_columns[] = {
    {"group", "group", CLI_TEXT, 34},         {"variant", "variant", CLI_TEXT, 0},
    {"errors_of", "errors of", CLI_TEXT, 0},  {"rows", "rows", CLI_COUNT, 0},
    {"skipped", "skipped", CLI_COUNT, 0},     {"median_pct", "median %", CLI_FIGURE, 0},
    {"mean_pct", "mean %", CLI_FIGURE, 0},    {"worst_pct", "worst %", CLI_FIGURE, 0},
    {"worst_ids", "worst rows", CLI_TEXT, 0}, {"bias_pct", "bias %", CLI_FIGURE, 0},
    {"inside_pct", "in 90 %", CLI_COUNT, 0},  {NULL, NULL, CLI_TEXT, 0},
};

/* Predictions of rows of a pair: `row[i]` of each (NULL: one a row, in order), its value, and the spread of its
 * interval (NULL: it has none). */
struct answers {
    const char *of;
    size_t count;
    const size_t *row;
    const double *value, *spread;
};

static double error_of(const struct cli_pair *pair, const struct answers *a, size_t i)
{
    return a->value[i] / pair->measured[a->row != NULL ? a->row[i] : i] - 1;
}

/* The rows with the largest errors, each once, with the largest of its errors. */
static void add_worst(struct cli_table *table, const struct cli_pair *pair, const struct answers *a)
{
    enum { WORST = 3 };
    char text[160] = "";
    size_t taken[WORST], used = 0;
    for (int n = 0; n < WORST; n++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < a->count; i++) {
            size_t row = a->row != NULL ? a->row[i] : i;
            bool seen = false;
            for (int k = 0; k < n; k++)
                seen = seen || taken[k] == row;
            if (!seen && (best == SIZE_MAX || fabs(error_of(pair, a, i)) > fabs(error_of(pair, a, best))))
                best = i;
        }
        if (best == SIZE_MAX)
            break;
        taken[n] = a->row != NULL ? a->row[best] : best;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.32s %+.1f", n > 0 ? ", " : "",
                                 pair->point[taken[n]]->id, 100 * error_of(pair, a, best));
    }
    cli_table_text(table, "%s", text);
}

static void add_errors(struct cli_table *table, const struct cli_pair *pair, const struct answers *a)
{
    struct k25_score score;
    double *measured = calloc(a->count + 1, sizeof *measured);
    size_t inside = 0;
    for (size_t i = 0; measured != NULL && i < a->count; i++) {
        measured[i] = pair->measured[a->row != NULL ? a->row[i] : i];
        inside += a->spread != NULL && fabs(log(a->value[i] / measured[i])) <= K25_Z90 * a->spread[i];
    }
    k25_score(a->value, measured, measured != NULL ? a->count : 0, &score);
    free(measured);
    bool any = score.count > 0;
    cli_table_text(table, "%s", pair->group);
    cli_table_text(table, "%s", pair->variant);
    cli_table_text(table, "%s", a->of);
    cli_table_number(table, (double)score.count);
    cli_table_number(table, (double)pair->skipped);
    cli_table_number(table, any ? score.median * 100 : NAN);
    cli_table_number(table, any ? score.mean * 100 : NAN);
    cli_table_number(table, any ? score.worst * 100 : NAN);
    if (any)
        add_worst(table, pair, a);
    else
        cli_table_nothing(table);
    cli_table_number(table, any ? score.bias * 100 : NAN);
    cli_table_number(table, any && a->spread != NULL ? 100 * (double)inside / (double)score.count : NAN);
}

static void add_held_out(struct cli_table *table, const struct cli_pair *pair)
{
    double *values = calloc(2 * pair->held + 1, sizeof *values), *spreads = values + pair->held;
    if (values == NULL || pair->held == 0) {
        free(values);
        return;
    }
    for (size_t i = 0; i < pair->held; i++) {
        values[i] = pair->held_out[i].predicted;
        spreads[i] = pair->held_out[i].sd;
    }
    add_errors(table, pair, &(struct answers){"held out", pair->held, pair->held_row, values, spreads});
    free(values);
}

static bool report_errors(const struct cli_pairs *pairs, struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, error_columns);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct cli_pair *pair = &pairs->list[i];
        size_t rows = pair->count;
        add_errors(&table, pair, &(struct answers){"prediction", rows, NULL, pair->predicted, pair->spread});
        if (rows == 0)
            continue;
        if (pair->fitted != NULL)
            add_errors(&table, pair, &(struct answers){"fit", rows, NULL, pair->fitted, NULL});
        add_held_out(&table, pair);
        add_errors(&table, pair, &(struct answers){"roofline", rows, NULL, pair->roofline, NULL});
    }
    return cli_report_add(report, "errors", "", &table, error);
}

static const struct cli_column skip_columns[] = {
    {"rows", "rows", CLI_COUNT, 0},
    {"reason", "reason", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

/* Reasons in the order of the file. */
static bool report_skips(const struct k25_suite *suite, struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, skip_columns);
    for (size_t i = 0; i < suite->count; i++) {
        const char *reason = suite->points[i].skip;
        bool seen = reason[0] == '\0';
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(reason, suite->points[j].skip) == 0;
        if (seen)
            continue;
        size_t rows = 0;
        for (size_t j = i; j < suite->count; j++)
            rows += strcmp(reason, suite->points[j].skip) == 0;
        cli_table_number(&table, (double)rows);
        cli_table_text(&table, "%s", reason);
    }
    return cli_report_add(report, "skipped", "skipped", &table, error);
}

static const struct cli_column param_columns[] = {
    {"group", "group", CLI_TEXT, 34},
    {"variant", "variant", CLI_TEXT, 0},
    {"parameter", "parameter", CLI_TEXT, 0},
    {"unit", "unit", CLI_TEXT, 0},
    {"prior", "prior", CLI_FIGURE, 0},
    {"fitted", "fitted", CLI_FIGURE, 0},
    {"prior_spread", "prior spread", CLI_FIGURE, 0},
    {"spread", "spread", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool report_params(const struct cli_pairs *pairs, struct cli_report *report, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, param_columns);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct cli_pair *pair = &pairs->list[i];
        for (size_t j = 0; j < pair->fit.free; j++) {
            enum k25_param id = pair->fit.id[j];
            const struct k25_param_info *info = &k25_param_info[id];
            cli_table_text(&table, "%s", pair->group);
            cli_table_text(&table, "%s", pair->variant);
            cli_table_text(&table, "%s", info->name);
            cli_table_text(&table, "%s", info->unit);
            cli_table_number(&table, pair->priors.centre[id] / info->scale);
            cli_table_number(&table, pair->fit.params.value[id] / info->scale);
            cli_table_number(&table, pair->priors.spread[id]);
            cli_table_number(&table, pair->fit.log_sd[id]);
        }
    }
    return cli_report_add(report, "parameters", "fitted parameters (spread: standard deviation of the logarithm)",
                          &table, error);
}

static const struct cli_column point_columns[] = {
    {"id", "row", CLI_TEXT, 0},
    {"group", "group", CLI_TEXT, 16},
    {"variant", NULL, CLI_TEXT, 0},
    {"line", NULL, CLI_COUNT, 0},
    {"batch", "batch", CLI_COUNT, 0},
    {"context", "context", CLI_COUNT, 0},
    {"mean_context", "mean", CLI_COUNT, 0},
    {"metric", NULL, CLI_TEXT, 0},
    {"measured", "measured", CLI_FIGURE, 0},
    {"predicted", "predicted", CLI_FIGURE, 0},
    {"predicted_low", "5 %", CLI_FIGURE, 0},
    {"predicted_high", "95 %", CLI_FIGURE, 0},
    {"error_pct", "error %", CLI_FIGURE, 0},
    {"fitted", "fitted", CLI_FIGURE, 0},
    {"held_out", "held out", CLI_FIGURE, 0},
    {"held_out_error_pct", "error %", CLI_FIGURE, 0},
    {"skip", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_point(struct cli_table *table, const struct cli_pair *pair, size_t i)
{
    const struct k25_point *point = pair->point[i];
    double measured = point->measured, held_out = NAN;
    for (size_t h = 0; pair->held == pair->count && h < pair->held; h++) /* with halves a row has several */
        held_out = pair->held_row[h] == i ? pair->held_out[h].predicted : held_out;
    cli_table_text(table, "%s", point->id);
    cli_table_text(table, "%s", point->group);
    cli_table_text(table, "%s", point->variant);
    cli_table_number(table, point->line);
    cli_table_number(table, point->question.plan.batch);
    cli_table_number(table, point->question.plan.context);
    cli_table_number(table, k25_point_context(point, &point->scenario->params));
    cli_table_text(table, "%s", k25_metric_names[point->metric]);
    cli_table_number(table, measured);
    cli_table_number(table, pair->predicted[i]);
    cli_table_number(table, pair->predicted[i] * exp(-K25_Z90 * pair->spread[i]));
    cli_table_number(table, pair->predicted[i] * exp(K25_Z90 * pair->spread[i]));
    cli_table_number(table, (pair->predicted[i] / measured - 1) * 100);
    cli_table_number(table, pair->fitted != NULL ? pair->fitted[i] : NAN);
    cli_table_number(table, held_out);
    cli_table_number(table, (held_out / measured - 1) * 100);
    cli_table_text(table, "%s", "");
}

static void add_skipped(struct cli_table *table, const struct k25_point *point)
{
    for (size_t c = 0; c < table->width; c++) {
        const char *key = table->columns[c].key;
        if (strcmp(key, "id") == 0)
            cli_table_text(table, "%s", point->id);
        else if (strcmp(key, "group") == 0)
            cli_table_text(table, "%s", point->group);
        else if (strcmp(key, "variant") == 0)
            cli_table_text(table, "%s", point->variant);
        else if (strcmp(key, "line") == 0)
            cli_table_number(table, point->line);
        else if (strcmp(key, "skip") == 0)
            cli_table_text(table, "%s", point->skip);
        else
            cli_table_nothing(table);
    }
}

/* For people only the rows that have a prediction; programs get the others, too. */
static bool report_points(const struct k25_suite *suite, const struct cli_pairs *pairs, struct cli_report *report,
                          struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, point_columns);
    for (size_t p = 0; p < pairs->count; p++) {
        for (size_t i = 0; i < pairs->list[p].count; i++)
            add_point(&table, &pairs->list[p], i);
    }
    for (size_t i = 0; report->format != CLI_TABLE && i < suite->count; i++) {
        if (suite->points[i].skip[0] != '\0')
            add_skipped(&table, &suite->points[i]);
    }
    return cli_report_add(report, "points", "rows", &table, error);
}

static bool fit_all(const struct cli_validation *v, struct cli_pairs *pairs, struct k25_error *error)
{
    bool ok = true;
    for (size_t i = 0; ok && v->fit && i < pairs->count; i++) {
        struct cli_pair *pair = &pairs->list[i];
        cli_progress("fitting %.60s variant %s (%zu of %zu, %zu rows)", pair->group, pair->variant, i + 1, pairs->count,
                     pair->count);
        ok = cli_pair_fit(pair, error);
        if (ok && v->halves)
            ok = cli_pair_halves(pair, error);
        else if (ok && v->folds > 0)
            ok = cli_pair_cross_validate(pair, v->folds, error);
    }
    cli_progress(NULL);
    return ok;
}

static bool report_all(const struct cli_validation *v, const struct k25_suite *suite, const struct cli_pairs *pairs,
                       struct k25_error *error)
{
    struct cli_report report = {.format = v->format};
    bool points_first = v->format == CLI_CSV && v->points;
    bool ok = (!points_first || report_points(suite, pairs, &report, error)) && report_errors(pairs, &report, error) &&
              report_skips(suite, &report, error) && (!v->params || report_params(pairs, &report, error)) &&
              (!v->points || points_first || report_points(suite, pairs, &report, error));
    return ok && cli_report_end(&report, error);
}

/* Held-out errors where there are any: a fit is not judged by what it has seen. */
static bool judge(const struct cli_pair *pair, struct k25_score *score)
{
    double *predicted = calloc(2 * pair->held + 1, sizeof *predicted), *measured = predicted + pair->held;
    if (predicted == NULL || (pair->held == 0 && pair->count == 0)) {
        free(predicted);
        return false;
    }
    for (size_t i = 0; i < pair->held; i++) {
        predicted[i] = pair->held_out[i].predicted;
        measured[i] = pair->measured[pair->held_row[i]];
    }
    if (pair->held > 0)
        k25_score(predicted, measured, pair->held, score);
    else
        k25_score(pair->predicted, pair->measured, pair->count, score);
    free(predicted);
    return true;
}

static bool bars_met(const struct cli_validation *v, const struct cli_pairs *pairs)
{
    bool met = true;
    size_t judged = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        const struct cli_pair *pair = &pairs->list[i];
        struct k25_score score;
        char what[256];
        if (!judge(pair, &score))
            continue;
        snprintf(what, sizeof what, "%s variant %s", pair->group, pair->variant);
        const double errors[CLI_STATISTICS] = {
            [CLI_MEDIAN] = score.median, [CLI_MEAN] = score.mean, [CLI_WORST] = score.worst};
        met = cli_bars_met(v->bar, what, errors) && met;
        judged++;
    }
    bool asked = v->bar[CLI_MEDIAN] > 0 || v->bar[CLI_MEAN] > 0 || v->bar[CLI_WORST] > 0;
    if (asked && judged == 0)
        fprintf(stderr, "bar missed: no row could be judged\n");
    return met && (!asked || judged > 0);
}

enum k25_status cli_validate_points(const struct cli *cli, const struct cli_validation *v, struct k25_error *error)
{
    struct k25_suite suite = {0};
    struct cli_pairs pairs = {0};
    bool met = true;
    bool ok = cli_check_overrides(&cli->library, v->scenario, v->set, cli_count(v->set), error) &&
              k25_suite_load(&cli->library, v->path, v->scenario, v->where, cli_count(v->where), v->set,
                             cli_count(v->set), &suite, error) &&
              cli_pairs_make(&suite, 1, &pairs, error);
    if (ok && suite.count == 0)
        ok = k25_fail(error, K25_BAD_INPUT, "%s: no row matches", v->path);
    ok = ok && fit_all(v, &pairs, error) && report_all(v, &suite, &pairs, error);
    if (ok) {
        fflush(stdout);
        met = bars_met(v, &pairs);
    }
    cli_pairs_free(&pairs);
    k25_suite_free(&suite);
    return !ok ? cli_failed(error) : met ? K25_OK : K25_NEGATIVE;
}
