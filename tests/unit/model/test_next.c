/* k25_predict_next against k25_predict, bit for bit, on plans of every kind. */
#include "tests/unit/any_plan.h"

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || a == b;
}

static void check_same(const struct k25_prediction *a, const struct k25_prediction *b)
{
    const double *x = &a->kernels, *y = &b->kernels; /* the sums, from `kernels` to the end */
    size_t sums = (sizeof *a - offsetof(struct k25_prediction, kernels)) / sizeof *x;
    assert_int_equal(a->step_work.count, b->step_work.count);
    for (size_t i = 0; i < a->step_work.count; i++) {
        const struct k25_priced *p = &a->op[i], *q = &b->op[i];
        const struct k25_kernel_call *c = &a->step_work.op[i].call, *d = &b->step_work.op[i].call;
        assert_true(same(p->time, q->time) && same(p->transfer, q->transfer) && same(p->wait, q->wait) &&
                    same(p->floor, q->floor) && p->bound == q->bound && p->backend == q->backend);
        assert_true(same(c->bytes, d->bytes) && same(c->flops, d->flops) && same(c->serial, d->serial) &&
                    same(c->shape[1], d->shape[1]));
    }
    for (size_t i = 0; i < sums; i++)
        assert_true(same(x[i], y[i]) || (isnan(x[i]) && isnan(y[i])));
    assert_true(same(a->memory.need_tokens, b->memory.need_tokens) && same(a->memory.max_batch, b->memory.max_batch) &&
                same(a->memory.pool_tokens, b->memory.pool_tokens) && a->memory.fits == b->memory.fits);
}

/* A hundred thousand points: walks over contexts, with a change of the batch or of a lever now and then. */
static void next_is_predict(void **state)
{
    (void)state;
    static struct k25_question question[2];
    static struct k25_prediction walked, fresh;
    struct k25_params params;
    struct k25_error error;
    int models[ZOO_SIZE] = {0}, points = 0;
    uint64_t seed = 20261129;
    while (points < 100000) {
        if (!any_question(&question[0], &params, &seed, models))
            continue;
        k25_predict(&question[0], &params, &walked);
        for (int i = 0, current = 0; i < 200; i++) {
            struct k25_question *next = &question[!current];
            *next = question[current];
            struct k25_plan plan = next->plan;
            plan.context = 1 + pick(&seed, 40000);
            if (pick(&seed, 10) == 0)
                plan.batch = 1 + pick(&seed, 64);
            if (pick(&seed, 20) == 0)
                plan.levers.skew = uniform(&seed);
            if (!k25_question_replan(next, &plan, NULL, &error))
                continue;
            k25_predict_next(&question[current], next, &params, &walked);
            k25_predict(next, &params, &fresh);
            check_same(&walked, &fresh);
            current = !current;
            points++;
        }
    }
    k25_residuals_free(&any_tables);
    for (size_t model = 0; model < ZOO_SIZE; model++)
        assert_true(models[model] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(next_is_predict)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
