#include "calib/fit/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_vector.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double HUBER = 2.5; /* sigmas beyond which a row counts linearly */
static const int REWEIGHTS = 6;  /* passes of reweighting at most; weights settle after two or three */
/* Rows that the stated noise counts as when its factor is fitted: of a dozen rows most go into parameters,
 * and what is left would often say 0.3. */
static const double NOISE_ROWS = 4;
static const double SETTLED = 0.02; /* change of a weight that moves no parameter */

/* One problem: which rows take part, which parameters move, and the weights of this pass. */
struct problem {
    const struct k25_priors *priors;
    const struct k25_observation *observations;
    size_t rows;
    size_t *row;    /* indices of the observations that take part */
    double *weight; /* of each row: 1, or less for an outlier */
    size_t free;
    enum k25_param id[K25_PARAMS];
    const struct k25_params *start; /* where the search begins; NULL: the prior centres */
};

static void params_at(const struct problem *problem, const gsl_vector *x, struct k25_params *params)
{
    memcpy(params->value, problem->priors->centre, sizeof params->value);
    for (size_t j = 0; j < problem->free; j++)
        params->value[problem->id[j]] = exp(gsl_vector_get(x, j));
}

/* `slope` as in k25_observation_model. */
static double residual(const struct problem *problem, size_t i, const struct k25_params *params, double *slope)
{
    const struct k25_observation *o = &problem->observations[problem->row[i]];
    return (log(o->predict(o->context, params, slope)) - log(o->measured)) / o->sigma;
}

static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
    const struct problem *problem = data;
    struct k25_params params;
    params_at(problem, x, &params);
    bool finite = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : finite)
    for (size_t i = 0; i < problem->rows; i++) {
        double r = residual(problem, i, &params, NULL) * sqrt(problem->weight[i]);
        finite = finite && isfinite(r);
        gsl_vector_set(f, i, r);
    }
    if (!finite)
        return GSL_EDOM;
    for (size_t j = 0; j < problem->free; j++) {
        enum k25_param id = problem->id[j];
        double prior = (gsl_vector_get(x, j) - log(problem->priors->centre[id])) / problem->priors->spread[id];
        gsl_vector_set(f, problem->rows + j, prior);
    }
    return GSL_SUCCESS;
}

/* One row of the Jacobian: how the residual of an observation moves with every free parameter. */
static void jacobian_row(const struct problem *problem, const struct k25_params *at, size_t i, gsl_matrix *J)
{
    double slope[K25_PARAMS], scale = sqrt(problem->weight[i]) / problem->observations[problem->row[i]].sigma;
    residual(problem, i, at, slope);
    for (size_t j = 0; j < problem->free; j++)
        gsl_matrix_set(J, i, j, slope[problem->id[j]] * scale);
}

static int jacobian(const gsl_vector *x, void *data, gsl_matrix *J)
{
    const struct problem *problem = data;
    struct k25_params params;
    params_at(problem, x, &params);
    gsl_matrix_set_zero(J);
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t i = 0; i < problem->rows; i++)
        jacobian_row(problem, &params, i, J);
    for (size_t j = 0; j < problem->free; j++)
        gsl_matrix_set(J, problem->rows + j, j, 1 / problem->priors->spread[problem->id[j]]);
    return GSL_SUCCESS;
}

/* Parameters that no observation moves with stay at their prior and out of the matrices. */
static void find_free(struct problem *problem)
{
    struct k25_params params;
    bool moves[K25_PARAMS] = {false};
    memcpy(params.value, problem->priors->centre, sizeof params.value);
    for (size_t i = 0; i < problem->rows; i++) {
        double slope[K25_PARAMS];
        residual(problem, i, &params, slope);
        for (int id = 0; id < K25_PARAMS; id++)
            moves[id] = moves[id] || slope[id] != 0;
    }
    problem->free = 0;
    for (enum k25_param id = 0; id < K25_PARAMS; id++) {
        if (moves[id] && problem->priors->spread[id] > 0)
            problem->id[problem->free++] = id;
    }
}

/* Returns the largest change of a weight. */
static double reweight(struct problem *problem, const gsl_vector *x)
{
    struct k25_params params;
    double change = 0;
    params_at(problem, x, &params);
    for (size_t i = 0; i < problem->rows; i++) {
        double r = fabs(residual(problem, i, &params, NULL));
        double weight = r <= HUBER ? 1 : HUBER / r;
        change = fmax(change, fabs(weight - problem->weight[i]));
        problem->weight[i] = weight;
    }
    return change;
}

static bool gsl_failed(int status, struct k25_error *error)
{
    /* No further progress is where a fit ends when the start was already the optimum. */
    if (status == GSL_SUCCESS || status == GSL_ENOPROG || status == GSL_EMAXITER)
        return false;
    k25_fail(error, K25_RESOURCE, "the fit failed: %s", gsl_strerror(status));
    return true;
}

static bool minimise(struct problem *problem, gsl_multifit_nlinear_workspace *workspace, gsl_vector *x,
                     struct k25_fit *fit, struct k25_error *error)
{
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals, .df = jacobian, .n = problem->rows + problem->free, .p = problem->free, .params = problem};
    fit->iterations = 0;
    for (int pass = 0; pass < REWEIGHTS; pass++) {
        int info = 0;
        int status = gsl_multifit_nlinear_init(x, &fdf, workspace);
        if (status == GSL_SUCCESS)
            status = gsl_multifit_nlinear_driver(100, 1e-5, 1e-8, 0, NULL, NULL, &info, workspace);
        if (gsl_failed(status, error))
            return false;
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(workspace));
        fit->iterations += (int)gsl_multifit_nlinear_niter(workspace);
        if (reweight(problem, x) < SETTLED)
            break;
    }
    return true;
}

/* Posterior of ln theta at the optimum: the inverse of J'J, whose lower rows are the priors. */
static bool finish(struct problem *problem, gsl_multifit_nlinear_workspace *workspace, const gsl_vector *x,
                   struct k25_fit *fit, struct k25_error *error)
{
    size_t n = problem->free;
    params_at(problem, x, &fit->params);
    fit->free = n;
    memcpy(fit->id, problem->id, sizeof fit->id);
    fit->chi2 = 0;
    for (size_t i = 0; i < problem->rows; i++)
        fit->chi2 += problem->weight[i] * pow(residual(problem, i, &fit->params, NULL), 2);
    fit->covariance = calloc(n * n, sizeof *fit->covariance);
    if (fit->covariance == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    gsl_matrix_view covariance = gsl_matrix_view_array(fit->covariance, n, n);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(workspace), 0, &covariance.matrix);
    for (size_t j = 0; j < n; j++)
        fit->log_sd[problem->id[j]] = sqrt(fit->covariance[j * n + j]);
    return true;
}

static bool solve(struct problem *problem, struct k25_fit *fit, struct k25_error *error)
{
    find_free(problem);
    memcpy(fit->params.value, problem->priors->centre, sizeof fit->params.value);
    memcpy(fit->log_sd, problem->priors->spread, sizeof fit->log_sd);
    if (problem->free == 0)
        return true;

    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *workspace =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, problem->rows + problem->free, problem->free);
    gsl_vector *x = gsl_vector_alloc(problem->free);
    bool ok = workspace != NULL && x != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    const double *start = problem->start != NULL ? problem->start->value : problem->priors->centre;
    for (size_t j = 0; ok && j < problem->free; j++)
        gsl_vector_set(x, j, log(start[problem->id[j]]));
    ok = ok && minimise(problem, workspace, x, fit, error) && finish(problem, workspace, x, fit, error);
    if (x != NULL)
        gsl_vector_free(x);
    if (workspace != NULL)
        gsl_multifit_nlinear_free(workspace);
    return ok;
}

static bool solve_from(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                       const bool *leave, const struct k25_params *start, struct k25_fit *fit, struct k25_error *error)
{
    memset(fit, 0, sizeof *fit);
    fit->noise_scale = 1;
    fit->freedom = INFINITY;
    struct problem problem = {.priors = priors, .observations = observations, .start = start};
    problem.row = calloc(count + 1, sizeof *problem.row);
    problem.weight = calloc(count + 1, sizeof *problem.weight);
    bool ok = problem.row != NULL && problem.weight != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        if (leave == NULL || !leave[i]) {
            problem.weight[problem.rows] = 1;
            problem.row[problem.rows++] = i;
        }
    }
    /* GSL's own handler aborts the program; a library reports. */
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    ok = ok && solve(&problem, fit, error);
    gsl_set_error_handler(handler);
    free(problem.row);
    free(problem.weight);
    if (!ok)
        k25_fit_free(fit);
    return ok;
}

bool k25_fit_solve(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                   const bool *leave, struct k25_fit *fit, struct k25_error *error)
{
    return solve_from(priors, observations, count, leave, NULL, fit, error);
}

/* Rows less the parameters they determine, never below 1. */
static double freedom(const struct k25_priors *priors, const struct k25_fit *fit, size_t rows)
{
    double determined = 0;
    for (size_t j = 0; j < fit->free; j++) {
        double ratio = fit->log_sd[fit->id[j]] / priors->spread[fit->id[j]];
        determined += 1 - ratio * ratio;
    }
    return fmax(1, (double)rows - determined);
}

bool k25_fit_widen(const struct k25_priors *priors, size_t rows, struct k25_fit *fit, struct k25_error *error)
{
    size_t n = fit->free;
    double excess = n > 0 ? fit->chi2 / freedom(priors, fit, rows) : 0;
    if (!(excess > 1))
        return true;
    gsl_matrix *inverse = gsl_matrix_alloc(n, n);
    if (inverse == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_matrix_view covariance = gsl_matrix_view_array(fit->covariance, n, n);
    gsl_matrix_memcpy(inverse, &covariance.matrix);
    bool ok = gsl_linalg_cholesky_decomp1(inverse) == GSL_SUCCESS && gsl_linalg_cholesky_invert(inverse) == GSL_SUCCESS;
    for (size_t j = 0; ok && j < n; j++) {
        double prior = 1 / (priors->spread[fit->id[j]] * priors->spread[fit->id[j]]);
        gsl_matrix_set(inverse, j, j, gsl_matrix_get(inverse, j, j) + (excess - 1) * prior);
    }
    ok =
        ok && gsl_linalg_cholesky_decomp1(inverse) == GSL_SUCCESS && gsl_linalg_cholesky_invert(inverse) == GSL_SUCCESS;
    gsl_set_error_handler(handler);
    for (size_t i = 0; ok && i < n * n; i++)
        fit->covariance[i] = excess * inverse->data[i];
    for (size_t j = 0; ok && j < n; j++)
        fit->log_sd[fit->id[j]] = sqrt(fit->covariance[j * n + j]);
    gsl_matrix_free(inverse);
    return ok || k25_fail(error, K25_RESOURCE, "the fit failed: its covariance is singular");
}

bool k25_fit_solve_noise(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                         const bool *leave, struct k25_fit *fit, struct k25_error *error)
{
    static const int ROUNDS = 4; /* the factor settles to a few per cent in three */
    struct k25_observation *scaled = malloc((count + 1) * sizeof *scaled);
    if (scaled == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += leave == NULL || !leave[i];

    double scale = 1;
    struct k25_params start;
    bool ok = true;
    for (int round = 0; ok && round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) {
            scaled[i] = observations[i];
            scaled[i].sigma *= scale;
        }
        if (round > 0)
            k25_fit_free(fit);
        ok = solve_from(priors, scaled, count, leave, round == 0 ? NULL : &start, fit, error);
        if (!ok)
            break;
        start = fit->params;
        fit->noise_scale = scale;
        fit->freedom = freedom(priors, fit, rows) + NOISE_ROWS;
        scale = fmin(5, fmax(0.2, sqrt((scale * scale * fit->chi2 + NOISE_ROWS) / fit->freedom)));
    }
    free(scaled);
    return ok;
}

void k25_fit_free(struct k25_fit *fit)
{
    free(fit->covariance);
    fit->covariance = NULL;
}
