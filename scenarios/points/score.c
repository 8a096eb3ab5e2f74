/* What a point's prediction is, and how far a set of them is off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/points/suite.h"

/* The predicted step of a point at the mean context of its cell. */
static void predict(const struct k25_point *point, const struct k25_params *params, struct k25_prediction *prediction)
{
    /* The context grows with the tokens a cell generates, and those depend on the step: after two rounds
     * the result moves by less than a part in 10^4, since a step depends only weakly on the context. */
    static const int ROUNDS = 2;
    struct k25_question question[2] = {point->question, point->question};
    double start = point->question.plan.context;
    k25_predict(&question[0], params, prediction);
    for (int round = 0; round < ROUNDS && point->load.cell_seconds > 0; round++) {
        struct k25_question *next = &question[(round + 1) % 2];
        double generated = fmin(point->load.cell_seconds / prediction->tpot, point->load.output_max);
        next->plan.context = fmin(start + generated / 2, next->architecture->max_context);
        k25_predict_next(&question[round % 2], next, params, prediction);
    }
}

double k25_point_predict(const void *context, const struct k25_params *params)
{
    const struct k25_point *point = context;
    struct k25_prediction prediction;
    predict(point, params, &prediction);
    switch (point->metric) {
    case K25_METRIC_AGGREGATE_TOK_S:
        return prediction.tok_s;
    case K25_METRIC_PER_USER_TOK_S:
        return prediction.tok_s / point->question.plan.batch;
    case K25_METRIC_STEP_MS:
        return prediction.step * 1e3;
    default:
        return prediction.tpot * 1e3;
    }
}

double k25_point_context(const struct k25_point *point, const struct k25_params *params)
{
    struct k25_prediction prediction;
    predict(point, params, &prediction);
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
    default:
        return seconds * 1e3;
    }
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
