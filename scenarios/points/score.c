/* The prediction of a point, and the errors of a set of points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/predict/uncertainty.h"
#include "scenarios/points/suite.h"

/* The mean context of a cell whose sequences start at `start` tokens: plus half of the tokens that one generates. */
static double mean_context(const struct k25_point *point, double start, double tpot)
{
    double generated = point->load.cell_seconds > 0 ? fmin(point->load.cell_seconds / tpot, point->load.output_max) : 0;
    return fmin(start + generated / 2, point->question.architecture->max_context);
}

/* The prediction of a point at the mean context of its cell; `answered` is the question with that context. */
static void predict(const struct k25_point *point, const struct k25_params *params, struct k25_prediction *prediction,
                    struct k25_question *answered)
{
    /* The context grows with the tokens a cell generates, and those depend on the step: after two rounds
     * the result moves by less than a part in 10^4, since a step depends only weakly on the context. */
    static const int ROUNDS = 2;
    struct k25_question question[2] = {point->question, point->question};
    double start = point->question.plan.context;
    int round = 0;
    k25_predict(&question[0], params, prediction);
    for (; round < ROUNDS && point->load.cell_seconds > 0; round++) {
        struct k25_question *next = &question[(round + 1) % 2];
        next->plan.context = mean_context(point, start, prediction->tpot);
        k25_predict_next(&question[round % 2], next, params, prediction);
    }
    *answered = question[round % 2];
}

/* The feedback of the step on its context: a longer step generates fewer tokens, so the mean context L is shorter. With
 * e the elasticity of the step at a fixed context, k = d ln step / d ln L and m = d ln L / d ln step < 0, the total
 * elasticity is e / (1 - k m); returns 1 / (1 - k m). k is a difference over 1 % of L, which is less than the spread of
 * context within a cell. `prediction` is overwritten. */
static double feedback(const struct k25_point *point, const struct k25_params *params,
                       const struct k25_question *question, struct k25_prediction *prediction)
{
    static const double FURTHER = 0.01;
    double start = point->question.plan.context, context = question->plan.context, step = prediction->step;
    double longer = mean_context(point, start, prediction->tpot * (1 + FURTHER));
    double grows = log(longer / mean_context(point, start, prediction->tpot)) / log1p(FURTHER);
    if (grows == 0)
        return 1;
    struct k25_question next = *question;
    next.plan.context = context * (1 - FURTHER);
    k25_predict_next(question, &next, params, prediction);
    double follows = log(prediction->step / step) / log1p(-FURTHER);
    return 1 / (1 - follows * grows);
}

double k25_point_predict(const void *context, const struct k25_params *params, double *slope)
{
    const struct k25_point *point = context;
    struct k25_prediction prediction;
    struct k25_question question;
    predict(point, params, &prediction, &question);
    bool rate = point->metric == K25_METRIC_AGGREGATE_TOK_S || point->metric == K25_METRIC_PER_USER_TOK_S;
    double value = prediction.tpot * 1e3;
    if (rate)
        value = prediction.tok_s / (point->metric == K25_METRIC_PER_USER_TOK_S ? point->question.plan.batch : 1);
    else if (point->metric == K25_METRIC_STEP_MS)
        value = prediction.step * 1e3;
    if (slope == NULL)
        return value;
    k25_step_slopes(&question, params, &prediction, slope);
    double factor = (rate ? -1 : 1) * feedback(point, params, &question, &prediction);
    for (int id = 0; id < K25_PARAMS; id++)
        slope[id] *= factor;
    return value;
}

double k25_point_context(const struct k25_point *point, const struct k25_params *params)
{
    struct k25_prediction prediction;
    struct k25_question question;
    predict(point, params, &prediction, &question);
    return prediction.memory.need_tokens / point->question.plan.batch;
}

double k25_point_roofline(const struct k25_point *point)
{
    const struct k25_question *question = &point->question;
    struct k25_step step;
    k25_step_build(question->architecture, question->weights, &question->draft, question->machine, &question->plan,
                   &point->scenario->params, &step);
    double bytes = step.sequences * (step.kv_per_token * question->plan.context + step.state_per_sequence);
    for (size_t i = 0; i < step.count; i++)
        bytes += step.op[i].calls * step.op[i].read;
    double seconds = bytes / k25_gpu_bandwidth(&question->machine->gpu);
    switch (point->metric) {
    case K25_METRIC_AGGREGATE_TOK_S:
        return question->plan.batch / seconds;
    case K25_METRIC_PER_USER_TOK_S:
        return 1 / seconds;
    case K25_METRIC_TPOT_MS:
    case K25_METRIC_ITL_MS:
    case K25_METRIC_STEP_MS:
    case K25_METRICS:
        break;
    }
    return seconds * 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void k25_score(const double *predicted, const double *measured, size_t count, struct k25_score *score)
{
    memset(score, 0, sizeof *score);
    score->count = count;
    double *errors = count == 0 ? NULL : malloc(count * sizeof *errors);
    if (errors == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        double relative = (predicted[i] - measured[i]) / measured[i];
        errors[i] = fabs(relative);
        score->bias += relative / (double)count;
        score->mean += errors[i] / (double)count;
        if (errors[i] > score->worst) {
            score->worst = errors[i];
            score->worst_index = i;
        }
    }
    qsort(errors, count, sizeof *errors, by_value);
    score->median = (errors[(count - 1) / 2] + errors[count / 2]) / 2;
    free(errors);
}
