#include "model/predict/uncertainty.h"

#include <math.h>
#include <stdlib.h>

#include "model/predict/slopes.h"

double k25_covariance_of(const double g[K25_PARAMS], const double h[K25_PARAMS], const struct k25_uncertainty *u)
{
    double sum = 0;
    for (size_t i = 0; i < u->count; i++) {
        double row = 0;
        for (size_t j = 0; j < u->count; j++)
            row += u->covariance[i * u->count + j] * h[u->id[j]];
        sum += g[u->id[i]] * row;
    }
    return sum;
}

/* Rounding may leave g' C g a little below 0. */
double k25_spread_of(const double slope[K25_PARAMS], const struct k25_uncertainty *u)
{
    return sqrt(fmax(k25_covariance_of(slope, slope, u), 0));
}

static struct k25_interval interval(double value, double sd)
{
    return (struct k25_interval){value * exp(-K25_Z90 * sd), value * exp(K25_Z90 * sd)};
}

/* sd(ln y) of y = over / under times a constant. */
static double quotient_spread(const double over[K25_PARAMS], const double under[K25_PARAMS],
                              const struct k25_uncertainty *u)
{
    double slope[K25_PARAMS];
    for (int id = 0; id < K25_PARAMS; id++)
        slope[id] = over[id] - under[id];
    return k25_spread_of(slope, u);
}

/* `slope` are those of the terms. */
static struct k25_interval output_interval(enum k25_output output, double value, double slope[K25_TERMS][K25_PARAMS],
                                           const struct k25_uncertainty *u)
{
    const struct k25_output_info *info = &k25_output_info[output];
    bool measured = info->over == K25_TERM_STEP || info->under == K25_TERM_STEP;
    double sd = hypot(quotient_spread(slope[info->over], slope[info->under], u), measured ? u->noise : 0);
    struct k25_interval result = interval(value, sd);
    if (info->kind == K25_OUTPUT_SHARE) /* stays within 0..1, which the first order does not ensure */
        result.high = fmin(1, result.high);
    return result;
}

/* sd(ln time) of one operator, including the wait of a collective. */
static double operator_spread(const struct k25_question *question, const struct k25_params *params,
                              const struct k25_uncertainty *u, const struct k25_prediction *p, size_t i,
                              struct k25_part_weights *weights)
{
    struct k25_slopes slopes = {0};
    double slope[K25_PARAMS];
    weights->kernel[i] = weights->transfer[i] = weights->wait[i] = 1;
    k25_slopes_of_parts(question, params, p, weights, &slopes);
    weights->kernel[i] = weights->transfer[i] = weights->wait[i] = 0;
    for (int id = 0; id < K25_PARAMS; id++)
        slope[id] = p->op[i].time > 0 ? slopes.param[id] / p->op[i].time : 0;
    return k25_spread_of(slope, u);
}

bool k25_predict_intervals(const struct k25_question *question, const struct k25_params *params,
                           const struct k25_uncertainty *u, const struct k25_prediction *prediction,
                           struct k25_intervals *intervals, struct k25_error *error)
{
    double(*slope)[K25_PARAMS] = calloc(K25_TERMS, sizeof *slope);
    struct k25_part_weights *weights = calloc(1, sizeof *weights);
    bool ok = slope != NULL && weights != NULL;
    if (ok) {
        k25_term_slopes(question, params, prediction, slope);
        for (enum k25_output o = 0; o < K25_OUTPUTS; o++)
            intervals->output[o] = k25_output_has_interval(o)
                                       ? output_interval(o, k25_output_value(question, prediction, o), slope, u)
                                       : (struct k25_interval){NAN, NAN};
        for (size_t i = 0; i < prediction->step_work.count; i++)
            intervals->op[i] =
                interval(prediction->op[i].time, operator_spread(question, params, u, prediction, i, weights));
    }
    free(slope);
    free(weights);
    return ok || k25_fail(error, K25_RESOURCE, "out of memory");
}
