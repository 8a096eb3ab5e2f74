#include "calib/evidence/fitted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/fit/observe.h"
#include "calib/kernels/work.h"

static const double MOST_SPREADS = 4;
static const double MOST_RESIDUAL = 0.25; /* of the measured */
static const double MOST_OF_OTHERS = 1;   /* the same of served points, and of tables of kernels */

/* ---- parameters ---- */

/* The largest value of a share that makes sense: rates a little above a data sheet are seen. */
static double most_of_share(const struct k25_priors *priors, enum k25_param id)
{
    static const double ABOVE = 1.05;
    return ABOVE * fmax(1, priors->centre[id] * exp(2 * priors->spread[id]));
}

/* Of hosts and links, which may be slower than anyone has seen; a GPU's kernels are its data sheet's. */
static bool of_host(const char *name)
{
    static const char *const starts[] = {"nccl.", "skew.", "host.", "draft.", NULL};
    for (int i = 0; starts[i] != NULL; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    for (int i = K25_NCCL_PROTOCOLS; i < K25_BACKENDS; i++) {
        size_t length = strlen(k25_backend_keys[i]);
        if (strncmp(name, k25_backend_keys[i], length) == 0 && name[length] == '.')
            return true;
    }
    return false;
}

static bool is_slower(const struct k25_param_info *info, double value, double centre)
{
    return strcmp(info->unit, "share") == 0 ? value < centre : value > centre;
}

/* `tables`: kernels of every family had their say, and parameters are of no one family; a warning will do. */
static void check_parameters(const struct k25_priors *priors, const struct k25_fit *fit, bool tables,
                             struct k25_findings *findings)
{
    for (size_t j = 0; j < fit->free; j++) {
        enum k25_param id = fit->id[j];
        const struct k25_param_info *info = &k25_param_info[id];
        double value = fit->params.value[id], centre = priors->centre[id];
        double away = priors->spread[id] > 0 ? fabs(log(value / centre)) / priors->spread[id] : 0;
        bool share = info->range == K25_RANGE_DIVISOR && strcmp(info->unit, "share") == 0;
        bool beyond = share && value > most_of_share(priors, id);
        if (beyond && !tables)
            k25_find(findings,
                     "%s is a share, and the evidence makes it %.4g (prior %.3g): something was measured faster than "
                     "data sheets and links of the scenario's machine allow; is it of another machine or model?",
                     info->name, value, centre);
        else if (away > MOST_SPREADS && !tables && !(of_host(info->name) && is_slower(info, value, centre)))
            k25_find(findings,
                     "%s: the evidence makes it %.4g %s, %.2g prior spreads away from %.4g %s; is the evidence of this "
                     "machine, model and build, and in the right unit? --set parameters.%s=... where it is known",
                     info->name, value / info->scale, info->unit, away, centre / info->scale, info->unit, info->name);
        else if (beyond || away > MOST_SPREADS)
            k25_find_warning(findings, "%s: the evidence makes it %.4g %s, the prior is %.4g %s (%.2g spreads)",
                             info->name, value / info->scale, info->unit, centre / info->scale, info->unit, away);
    }
}

/* ---- residuals ---- */

static const struct k25_observed *observed_of(const struct k25_observation *row)
{
    return row->predict == k25_observed_predict ? row->context : NULL;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool has_tables(const struct k25_fitted_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->row[i].predict == k25_kernel_work_time)
            return true;
    }
    return false;
}

/* ln(predicted / measured) of each row; the caller frees. NULL without memory. */
static double *residuals_of(const struct k25_fit *fit, const struct k25_fitted_rows *rows)
{
    double *residual = malloc((rows->count + 1) * sizeof *residual);
    for (size_t i = 0; residual != NULL && i < rows->count; i++) {
        const struct k25_observation *row = &rows->row[i];
        residual[i] = log(row->predict(row->context, &fit->params, NULL) / row->measured);
    }
    return residual;
}

/* Median of |residual| over the rows of a file, or of all with `file` -1; 0 without any. */
static double median_of(const struct k25_fitted_rows *rows, const double *residual, int file, double *room)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (file < 0 || rows->source[i] == file)
            room[n++] = fabs(residual[i]);
    }
    qsort(room, n, sizeof *room, by_value);
    return n == 0 ? 0 : (room[(n - 1) / 2] + room[n / 2]) / 2;
}

/* How far the kernels of a capture's step are off together: |ln(predicted / measured)| of the sum of its buckets. */
static double step_error(const struct k25_fitted_rows *rows, const double *residual, int file)
{
    double measured = 0, predicted = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct k25_observed *o = observed_of(&rows->row[i]);
        if (rows->source[i] != file || o == NULL || o->kind != K25_OBSERVED_BUCKET)
            continue;
        measured += o->measured;
        predicted += o->measured * exp(residual[i]);
    }
    return measured > 0 ? fabs(log(predicted / measured)) : 0;
}

double k25_residual_scatter(const struct k25_fit *fit, const struct k25_fitted_rows *rows)
{
    static const double NORMAL = 0.6745; /* median |x| of a standard normal x */
    double *residual = residuals_of(fit, rows), *room = malloc((rows->count + 1) * sizeof *room), scatter = 0;
    if (residual != NULL && room != NULL)
        scatter = median_of(rows, residual, -1, room) / NORMAL;
    for (int file = 0; residual != NULL && file < rows->files; file++)
        scatter = fmax(scatter, step_error(rows, residual, file));
    free(room);
    free(residual);
    return scatter;
}

/* Time of the row's file in its buckets, s a step. */
static double step_of(const struct k25_fitted_rows *rows, int file)
{
    double sum = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct k25_observed *o = observed_of(&rows->row[i]);
        if (rows->source[i] == file && o != NULL && o->kind == K25_OBSERVED_BUCKET)
            sum += o->measured;
    }
    return sum;
}

/* Whether the fit must describe this number of a capture: the formulas of kernels and transfers, not those of waits,
 * and not what hardly counts. */
static bool is_main(const struct k25_observed *o, double step, double ratio)
{
    static const double COUNTS = 0.1;
    if (o->kind == K25_OBSERVED_BUCKET)
        return o->bucket != K25_BUCKET_SMALL && o->measured * fmax(1, ratio) > COUNTS * step;
    return o->kind == K25_OBSERVED_TRANSFER || o->kind == K25_OBSERVED_STEP;
}

static void check_rows(const struct k25_fitted_rows *rows, const double *residual, const bool *refused,
                       struct k25_findings *findings)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct k25_observed *o = observed_of(&rows->row[i]);
        double ratio = exp(residual[i]), measured = rows->row[i].measured;
        if (o == NULL || o->kind == K25_OBSERVED_BURST || fabs(ratio - 1) <= MOST_RESIDUAL ||
            (rows->source[i] >= 0 && refused[rows->source[i]]))
            continue;
        if (is_main(o, step_of(rows, rows->source[i]), ratio))
            k25_find(findings,
                     "%s: measured %.5g us, but the fit stays at %.5g us (%+.0f %%); is it of another model, plan or "
                     "machine? Leave it out, or set the scenario as it ran",
                     rows->label[i], measured * 1e6, measured * ratio * 1e6, 100 * (ratio - 1));
        else
            k25_find_warning(findings, "%s: measured %.5g us, the fit says %.5g us (%+.0f %%)", rows->label[i],
                             measured * 1e6, measured * ratio * 1e6, 100 * (ratio - 1));
    }
}

static void check_files(const struct k25_fitted_rows *rows, const double *residual, double *room, bool *refused,
                        struct k25_findings *findings)
{
    for (int file = 0; file < rows->files; file++) {
        size_t n = 0, worst = 0;
        bool own = false;
        for (size_t i = 0; i < rows->count; i++) {
            if (rows->source[i] != file)
                continue;
            own = observed_of(&rows->row[i]) != NULL;
            worst = n == 0 || fabs(residual[i]) > fabs(residual[worst]) ? i : worst;
            n++;
        }
        double median = expm1(median_of(rows, residual, file, room));
        if (n == 0 || median <= (own ? MOST_RESIDUAL : MOST_OF_OTHERS))
            continue;
        refused[file] = true;
        k25_find(findings,
                 "%.80s: the fit stays a factor of %.3g off its %zu numbers in the median (%.100s: %+.0f %%); is it of "
                 "another "
                 "machine, model or build, or in another unit? Leave it out, or set the scenario as it ran",
                 rows->file[file].file, 1 + median, n, rows->label[worst], 100 * expm1(residual[worst]));
    }
}

/* ---- files against each other ---- */

static bool same_number(const struct k25_observed *a, const struct k25_observed *b)
{
    return a->kind == b->kind && a->bucket == b->bucket && a->collective == b->collective &&
           (a->kind != K25_OBSERVED_BURST || (a->bytes == b->bytes && a->group.n == b->group.n));
}

/* Two numbers of one kind from two files that the fit is between. */
static void check_pair(const struct k25_fitted_rows *rows, const double *residual, size_t i, size_t j,
                       struct k25_findings *findings)
{
    static const double BEYOND = 0.1, NOISE = 3;
    double a = residual[i], b = residual[j];
    if (a * b >= 0 || fmin(fabs(a), fabs(b)) < BEYOND || fabs(a) < NOISE * rows->row[i].sigma ||
        fabs(b) < NOISE * rows->row[j].sigma)
        return;
    k25_find(
        findings,
        "%.110s: %.4g us, and %.110s: %.4g us contradict each other: the fit says %.4g and %.4g us; one of them is of "
        "another machine, model or build: leave it out",
        rows->label[i], rows->row[i].measured * 1e6, rows->label[j], rows->row[j].measured * 1e6,
        rows->row[i].measured * exp(a) * 1e6, rows->row[j].measured * exp(b) * 1e6);
}

static void check_contradictions(const struct k25_fitted_rows *rows, const double *residual,
                                 struct k25_findings *findings)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct k25_observed *a = observed_of(&rows->row[i]);
        for (size_t j = i + 1; a != NULL && j < rows->count; j++) {
            const struct k25_observed *b = observed_of(&rows->row[j]);
            if (b != NULL && rows->source[i] != rows->source[j] && same_number(a, b))
                check_pair(rows, residual, i, j, findings);
        }
    }
}

void k25_check_fit(const struct k25_priors *priors, const struct k25_fit *fit, const struct k25_fitted_rows *rows,
                   struct k25_findings *findings)
{
    double *residual = residuals_of(fit, rows), *room = malloc((rows->count + 1) * sizeof *room);
    bool *refused = calloc((size_t)rows->files + 1, sizeof *refused);
    check_parameters(priors, fit, has_tables(rows), findings);
    if (residual != NULL && room != NULL && refused != NULL) {
        check_files(rows, residual, room, refused, findings);
        check_rows(rows, residual, refused, findings);
        check_contradictions(rows, residual, findings);
    }
    free(refused);
    free(room);
    free(residual);
}
