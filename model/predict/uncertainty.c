#include "model/predict/uncertainty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double STEP = 1e-4; /* of ln theta in the central differences */

double k25_output_value(const struct k25_prediction *p, enum k25_output output)
{
    switch (output) {
    case K25_OUT_STEP:
        return p->step;
    case K25_OUT_TPOT:
        return p->tpot;
    case K25_OUT_TOK_S:
        return p->tok_s;
    case K25_OUT_GPU_BUSY:
        return p->gpu_busy;
    case K25_OUT_KERNELS:
        return p->kernels;
    case K25_OUT_ALLREDUCE:
        return p->allreduce;
    case K25_OUT_ALLREDUCE_TRANSFER:
        return p->allreduce_transfer;
    case K25_OUT_ALLREDUCE_WAIT:
        return p->allreduce_wait;
    case K25_OUT_ALLREDUCE_SHARE:
        return p->allreduce_share;
    case K25_OUT_OTHER_COLLECTIVES:
        return p->other_collectives;
    case K25_OUT_GAPS:
        return p->gaps;
    case K25_OUT_DRAFT:
        return p->draft;
    case K25_OUT_BUBBLE:
        return p->bubble;
    default:
        return p->host;
    }
}

double k25_covariance_of(const double *g, const double *h, const struct k25_uncertainty *u)
{
    double sum = 0;
    for (size_t i = 0; i < u->count; i++) {
        for (size_t j = 0; j < u->count; j++)
            sum += g[i] * u->covariance[i * u->count + j] * h[j];
    }
    return sum;
}

/* g' C g; rounding may leave it a little below 0. */
static double variance(const double *g, const struct k25_uncertainty *u)
{
    return fmax(k25_covariance_of(g, g, u), 0);
}

static double log_slope(double above, double below)
{
    return above > 0 && below > 0 ? log(above / below) / (2 * STEP) : 0;
}

static struct k25_interval interval(double value, double sd)
{
    return (struct k25_interval){value * exp(-K25_Z90 * sd), value * exp(K25_Z90 * sd)};
}

/* Rows of the gradient table: the outputs, then the operators; one column a parameter. */
static void differentiate(const struct k25_question *question, const struct k25_params *params,
                          const struct k25_uncertainty *u, struct k25_prediction *above, struct k25_prediction *below,
                          double *gradient)
{
    struct k25_params moved = *params;
    for (size_t j = 0; j < u->count; j++) {
        double *value = &moved.value[u->id[j]], here = *value;
        *value = here * exp(STEP);
        k25_predict(question, &moved, above);
        *value = here * exp(-STEP);
        k25_predict(question, &moved, below);
        *value = here;
        for (enum k25_output o = 0; o < K25_OUTPUTS; o++)
            gradient[o * u->count + j] = log_slope(k25_output_value(above, o), k25_output_value(below, o));
        for (size_t i = 0; i < above->step_work.count; i++)
            gradient[(K25_OUTPUTS + i) * u->count + j] = log_slope(above->op[i].time, below->op[i].time);
    }
}

static bool is_measured(enum k25_output output)
{
    return output == K25_OUT_STEP || output == K25_OUT_TPOT || output == K25_OUT_TOK_S;
}

bool k25_predict_intervals(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_uncertainty *u, const struct k25_prediction *prediction,
                           struct k25_intervals *intervals, struct k25_error *error)
{
    size_t rows = K25_OUTPUTS + prediction->step_work.count;
    double *gradient = calloc(rows * u->count + 1, sizeof *gradient);
    struct k25_prediction *scratch = malloc(2 * sizeof *scratch);
    bool ok = gradient != NULL && scratch != NULL;
    if (ok) {
        differentiate(question, params, u, &scratch[0], &scratch[1], gradient);
        for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
            double noise = is_measured(o) ? u->noise : 0;
            double sd = sqrt(variance(&gradient[o * u->count], u) + noise * noise);
            intervals->output[o] = interval(k25_output_value(prediction, o), sd);
        }
        for (size_t i = 0; i < prediction->step_work.count; i++)
            intervals->op[i] =
                interval(prediction->op[i].time, sqrt(variance(&gradient[(K25_OUTPUTS + i) * u->count], u)));
        /* A share cannot leave 0..1, whatever the first order says. */
        intervals->output[K25_OUT_ALLREDUCE_SHARE].high = fmin(1, intervals->output[K25_OUT_ALLREDUCE_SHARE].high);
    }
    free(gradient);
    free(scratch);
    return ok || k25_fail(error, K25_RESOURCE, "out of memory");
}

void k25_gradient_of(double (*f)(const void *context, const struct k25_params *params), const void *context,
                     const struct k25_params *params, const struct k25_uncertainty *u, double *gradient)
{
    struct k25_params moved = *params;
    for (size_t j = 0; j < u->count; j++) {
        double *value = &moved.value[u->id[j]], here = *value;
        *value = here * exp(STEP);
        double above = f(context, &moved);
        *value = here * exp(-STEP);
        double below = f(context, &moved);
        *value = here;
        gradient[j] = log_slope(above, below);
    }
}

double k25_spread_of(double (*f)(const void *context, const struct k25_params *params), const void *context,
                     const struct k25_params *params, const struct k25_uncertainty *u)
{
    double gradient[K25_PARAMS];
    k25_gradient_of(f, context, params, u, gradient);
    return sqrt(variance(gradient, u));
}
