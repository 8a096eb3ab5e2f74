/* Warm rows, and the fit of the even rows of a family judged on the odd ones. */
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/kernels/residual.h"
#include "calib/kernels/table.h"

const char *const k25_row_use_names[K25_ROW_USES + 1] = {
    [K25_ROW_WARM] = "warm",
    [K25_ROW_FITTED] = "fitted",
    [K25_ROW_SCORED] = "scored",
};

static const double SIGMA = 0.08;     /* relative noise of a row, with the error of a formula of few parameters */
static const double WARM_SHARE = 0.9; /* of the cold line: below it a row did not come from DRAM */

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Of `count` > 0 sorted values, interpolated; `share` from 0 to 1. */
static double percentile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* The rows of a family: table->row[first] to [end - 1]. */
struct span {
    size_t first, end;
};

static struct span rows_of(const struct k25_kernel_table *table, int family)
{
    struct span span = {0, 0};
    while (span.first < table->rows && table->row[span.first].family < family)
        span.first++;
    span.end = span.first;
    while (span.end < table->rows && table->row[span.end].family == family)
        span.end++;
    return span;
}

static void cold_line(const struct k25_kernel_table *table, struct span span, const struct k25_kernel_family *family,
                      double dram, double *scratch, struct k25_kernel_score *score)
{
    size_t large = 0;
    if (span.first == span.end || table->row[span.first].traffic == 0)
        return;
    score->floor = INFINITY;
    for (size_t i = span.first; i < span.end; i++) {
        const struct k25_kernel_row *row = &table->row[i];
        score->floor = fmin(score->floor, row->latency);
        if (row->cold_line && row->traffic >= 2 * k25_gpu_l2(&table->gpu))
            scratch[large++] = row->traffic / row->latency;
    }
    if (family->floor > 0)
        score->floor = family->floor;
    qsort(scratch, large, sizeof *scratch, by_value);
    score->cold_rate = large > 0 ? percentile(scratch, large, family->cold_percentile) : dram;
}

/* Sets aside the warm rows and numbers the others: even ones are fitted, odd ones scored. */
static void split(const struct k25_kernel_table *table, struct span span, struct k25_kernel_score *score,
                  enum k25_row_use *use)
{
    size_t number = 0;
    for (size_t i = span.first; i < span.end; i++) {
        const struct k25_kernel_row *row = &table->row[i];
        double cold = score->floor + row->traffic / score->cold_rate;
        bool fits = row->traffic > 0 && row->traffic < 2 * k25_gpu_l2(&table->gpu);
        bool warm = fits && row->latency < WARM_SHARE * cold;
        use[i] = warm ? K25_ROW_WARM : number++ % 2 == 0 ? K25_ROW_FITTED : K25_ROW_SCORED;
        score->warm += use[i] == K25_ROW_WARM;
        score->fitted += use[i] == K25_ROW_FITTED;
        score->scored += use[i] == K25_ROW_SCORED;
    }
}

static bool fit_group(const struct k25_kernel_table *table, int group, const struct k25_priors *priors,
                      const enum k25_row_use *use, struct k25_fit *fit, struct k25_error *error)
{
    struct k25_observation *observation = calloc(table->rows + 1, sizeof *observation);
    if (observation == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        if (table->family[table->row[i].family].group == group && use[i] == K25_ROW_FITTED)
            observation[count++] = k25_kernel_observation(&table->row[i], SIGMA);
    }
    bool ok = k25_fit_solve(priors, observation, count, NULL, fit, error);
    free(observation);
    return ok;
}

/* Of `count` errors, which it sorts. */
static void statistics(double *errors, size_t count, double *median, double *mean, double *p90)
{
    if (count == 0)
        return;
    qsort(errors, count, sizeof *errors, by_value);
    *median = percentile(errors, count, 0.5);
    *p90 = percentile(errors, count, 0.9);
    for (size_t i = 0; i < count; i++)
        *mean += errors[i] / (double)count;
}

static void judge(const struct k25_kernel_table *table, struct span span, const struct k25_fit *fit, double bar,
                  const enum k25_row_use *use, double *predicted, double *scratch, struct k25_kernel_score *score)
{
    size_t count = 0;
    for (size_t i = span.first; i < span.end; i++) {
        predicted[i] = k25_kernel_work_time(&table->row[i].work, &fit->params, NULL);
        if (use[i] == K25_ROW_SCORED)
            scratch[count++] = fabs(predicted[i] / table->row[i].latency - 1);
    }
    score->params = fit->params;
    memcpy(score->log_sd, fit->log_sd, sizeof score->log_sd);
    score->free = fit->free;
    memcpy(score->id, fit->id, sizeof score->id);
    statistics(scratch, count, &score->median, &score->mean, &score->p90);
    score->max = count > 0 ? scratch[count - 1] : 0;
    score->missed = bar > 0 && score->median > bar;
}

/* The same with a residual table of the fitted rows added. */
static bool judge_table(const struct k25_kernel_table *table, int family, struct span span, const enum k25_row_use *use,
                        double *scratch, struct k25_kernel_score *score, struct k25_error *error)
{
    struct k25_residuals residuals = {0};
    size_t count = 0, sites = 0;
    bool *take = calloc(table->rows + 1, sizeof *take);
    if (take == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = span.first; i < span.end; i++)
        take[i] = use[i] == K25_ROW_FITTED;
    bool ok = k25_residuals_build(table, family, take, &score->params, &residuals, &sites, error);
    free(take);
    score->tabulated = ok && sites > 0 && score->scored > 0;
    for (size_t i = span.first; score->tabulated && i < span.end; i++) {
        double predicted = k25_kernel_work_time_with(&table->row[i].work, &score->params, &residuals);
        if (use[i] == K25_ROW_SCORED)
            scratch[count++] = fabs(predicted / table->row[i].latency - 1);
    }
    statistics(scratch, count, &score->residual_median, &score->residual_mean, &score->residual_p90);
    k25_residuals_free(&residuals);
    return ok;
}

/* Which rows of a group are warm, fitted and scored. `scratch` has a place for each row of the table; a group
 * touches only those of its families. */
static void split_group(const struct k25_kernel_table *table, int group, const struct k25_priors *priors,
                        struct k25_kernel_scores *scores, double *scratch)
{
    double dram = k25_gpu_bandwidth(&table->gpu) * priors->centre[K25_BANDWIDTH];
    for (int i = 0; i < table->families; i++) {
        struct span span = rows_of(table, i);
        if (table->family[i].group != group)
            continue;
        cold_line(table, span, &table->family[i], dram, scratch + span.first, &scores->family[i]);
        split(table, span, &scores->family[i], scores->use);
    }
}

static bool score_group(const struct k25_kernel_table *table, int group, const struct k25_priors *priors,
                        struct k25_kernel_scores *scores, double *scratch, struct k25_error *error)
{
    struct k25_fit fit;
    split_group(table, group, priors, scores, scratch);
    if (!fit_group(table, group, priors, scores->use, &fit, error))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < table->families; i++) {
        struct span span = rows_of(table, i);
        if (table->family[i].group != group)
            continue;
        judge(table, span, &fit, table->family[i].bar, scores->use, scores->predicted, scratch + span.first,
              &scores->family[i]);
        ok = judge_table(table, i, span, scores->use, scratch + span.first, &scores->family[i], error);
    }
    k25_fit_free(&fit);
    return ok;
}

bool k25_kernel_table_split(const struct k25_kernel_table *table, const struct k25_priors *priors,
                            enum k25_row_use *use, struct k25_error *error)
{
    double *scratch = calloc(table->rows + 1, sizeof *scratch);
    struct k25_kernel_scores scores = {calloc((size_t)table->families + 1, sizeof *scores.family), use, NULL};
    bool ok = scratch != NULL && scores.family != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    for (int group = 0; ok && group < table->groups; group++)
        split_group(table, group, priors, &scores, scratch);
    free(scores.family);
    free(scratch);
    return ok;
}

bool k25_kernel_table_score(const struct k25_kernel_table *table, const struct k25_priors *priors,
                            struct k25_kernel_scores *scores, struct k25_error *error)
{
    size_t families = (size_t)table->families, rows = table->rows;
    double *scratch = calloc(rows + 1, sizeof *scratch);
    struct k25_priors *own = malloc(sizeof *own);
    scores->family = calloc(families + 1, sizeof *scores->family);
    scores->use = calloc(rows + 1, sizeof *scores->use);
    scores->predicted = calloc(rows + 1, sizeof *scores->predicted);
    bool ok =
        scratch != NULL && own != NULL && scores->family != NULL && scores->use != NULL && scores->predicted != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    if (ok) {
        *own = *priors;
        own->spread[K25_BANDWIDTH] = own->spread[K25_KERNEL_SCALE] = 0;
    }

    /* Each fit switches GSL's handler off and back; here the threads must not undo each other. */
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    int groups = ok ? table->groups : 0, failed = groups;
#pragma omp parallel for schedule(dynamic)
    for (int group = 0; group < groups; group++) {
        struct k25_error failure;
        if (!score_group(table, group, own, scores, scratch, &failure)) {
#pragma omp critical
            if (group < failed) { /* the first group's message, whatever the number of threads */
                failed = group;
                if (error != NULL)
                    *error = failure;
            }
        }
    }
    ok = ok && failed == groups;
    gsl_set_error_handler(handler);
    free(scratch);
    free(own);
    if (!ok)
        k25_kernel_scores_free(scores);
    return ok;
}

void k25_kernel_scores_free(struct k25_kernel_scores *scores)
{
    free(scores->family);
    free(scores->use);
    free(scores->predicted);
    memset(scores, 0, sizeof *scores);
}
