/* The fit: known parameters come back, intervals cover, one outlier does no harm, and threads change nothing. */
#include "tests/unit/physics_check.h"

#include <omp.h>

#include "calib/fit/hold_out.h"
#include "model/predict/uncertainty.h"

/* A box to be measured: y = a + b x with a = nccl.base, b = nccl.hop, two of the 70 parameters. */
static double line(const void *context, const struct k25_params *params, double *slope)
{
    double a = params->value[K25_NCCL_BASE], b = params->value[K25_NCCL_HOP] * *(const double *)context;
    if (slope != NULL) {
        memset(slope, 0, K25_PARAMS * sizeof *slope);
        slope[K25_NCCL_BASE] = a / (a + b);
        slope[K25_NCCL_HOP] = b / (a + b);
    }
    return a + b;
}

static double constant(const void *context, const struct k25_params *params, double *slope)
{
    (void)params;
    if (slope != NULL)
        memset(slope, 0, K25_PARAMS * sizeof *slope);
    return *(const double *)context;
}

static double broken(const void *context, const struct k25_params *params, double *slope)
{
    line(context, params, slope);
    return params->value[K25_NCCL_BASE] > 0 ? NAN : 1;
}

enum { ROWS = 12 };
static double at[ROWS];
static struct k25_observation rows[ROWS];

/* Priors that know a and b to a factor of `spread`, and every other parameter as loosely. */
static struct k25_priors weak_priors(double spread)
{
    struct k25_priors priors = {0};
    for (int id = 0; id < K25_PARAMS; id++) {
        priors.centre[id] = 1;
        priors.spread[id] = spread;
    }
    return priors;
}

static void observe(double a, double b, double noise, uint64_t *seed)
{
    for (int i = 0; i < ROWS; i++) {
        at[i] = i * i / 4.0;
        rows[i] = (struct k25_observation){line, &at[i], (a + b * at[i]) * exp(noise > 0 ? noise * normal(seed) : 0),
                                           noise > 0 ? noise : 0.01};
    }
}

static void solve(const struct k25_priors *priors, size_t count, const bool *leave, struct k25_fit *fit)
{
    struct k25_error error = {0};
    if (!k25_fit_solve(priors, rows, count, leave, fit, &error))
        fail_msg("%s", error.message);
}

static void known_parameters_come_back(void **state)
{
    (void)state;
    static const struct {
        double a, b;
    } truths[] = {{3, 0.5}, {0.2, 4}, {8, 8}, {1, 1}};
    for (size_t i = 0; i < 4; i++) {
        struct k25_priors priors = weak_priors(5);
        struct k25_fit fit;
        observe(truths[i].a, truths[i].b, 0, NULL);
        solve(&priors, ROWS, NULL, &fit);
        assert_close(fit.params.value[K25_NCCL_BASE], truths[i].a, 1e-3);
        assert_close(fit.params.value[K25_NCCL_HOP], truths[i].b, 1e-3);
        assert_true(fit.chi2 < 0.01);
        k25_fit_free(&fit);
    }
}

static void only_what_moves_is_free(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(1);
    struct k25_fit fit;
    observe(3, 0.5, 0, NULL);
    solve(&priors, ROWS, NULL, &fit);
    assert_int_equal(fit.free, 2);
    assert_true(fit.id[0] == K25_NCCL_BASE && fit.id[1] == K25_NCCL_HOP);
    for (int id = 0; id < K25_PARAMS; id++) {
        if (id == K25_NCCL_BASE || id == K25_NCCL_HOP)
            assert_true(fit.log_sd[id] > 0 && fit.log_sd[id] < 0.1);
        else
            assert_true(fit.params.value[id] == 1 && fit.log_sd[id] == 1);
    }
    k25_fit_free(&fit);
    /* A spread of 0 is a constant, whatever the data say. */
    priors.spread[K25_NCCL_BASE] = 0;
    solve(&priors, ROWS, NULL, &fit);
    assert_true(fit.free == 1 && fit.params.value[K25_NCCL_BASE] == 1 && fit.log_sd[K25_NCCL_BASE] == 0);
    k25_fit_free(&fit);
}

static void nothing_free_leaves_the_priors(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(0.3);
    struct k25_fit fit;
    observe(3, 0.5, 0, NULL);
    for (int i = 0; i < ROWS; i++)
        rows[i].predict = constant;
    at[0] = 1; /* a prediction is above 0 */
    solve(&priors, ROWS, NULL, &fit);
    assert_true(fit.free == 0 && fit.covariance == NULL);
    for (int id = 0; id < K25_PARAMS; id++)
        assert_true(fit.params.value[id] == priors.centre[id] && fit.log_sd[id] == 0.3);
    k25_fit_free(&fit);
    solve(&priors, 0, NULL, &fit); /* and so does no observation at all */
    assert_true(fit.free == 0 && fit.params.value[K25_NCCL_BASE] == 1);
    k25_fit_free(&fit);
}

/* One parameter, one kind of row: the posterior by hand. y = b x, n rows of sigma s, prior (ln c, S):
 * precision n / s^2 + 1 / S^2, mean of ln b weighted by it. */
static double ray(const void *context, const struct k25_params *params, double *slope)
{
    if (slope != NULL) {
        memset(slope, 0, K25_PARAMS * sizeof *slope);
        slope[K25_NCCL_HOP] = 1;
    }
    return params->value[K25_NCCL_HOP] * *(const double *)context;
}

static void the_posterior_by_hand(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(0.1);
    struct k25_fit fit;
    for (int i = 0; i < 4; i++) {
        at[i] = i + 1;
        rows[i] = (struct k25_observation){ray, &at[i], 1.2 * at[i], 0.2};
    }
    solve(&priors, 4, NULL, &fit);
    /* 4 / 0.04 + 1 / 0.01 = 200: sd 0.0707107; ln b = (100 ln 1.2 + 100 ln 1) / 200 = 0.0911608 */
    assert_close(fit.log_sd[K25_NCCL_HOP], 0.07071067811865475, 1e-6);
    assert_close(log(fit.params.value[K25_NCCL_HOP]), 0.09116077839697727, 1e-6);
    assert_close(fit.covariance[0], 0.005, 1e-6);
    /* chi2 of the observations: 4 x (0.0911608 / 0.2)^2 */
    assert_close(fit.chi2, 0.831028751795, 1e-5);
    k25_fit_free(&fit);
}

/* 90 % intervals of both parameters, over 40 draws of truth from the prior and noise: about nine in ten cover. */
static void intervals_cover(void **state)
{
    (void)state;
    int covered = 0, all = 0;
    for (uint64_t draw = 1; draw <= 40; draw++) {
        uint64_t seed = draw * 0x9e3779b97f4a7c15u;
        for (int i = 0; i < 8; i++)
            uniform(&seed); /* xorshift takes some turns to leave its seed */
        struct k25_priors priors = weak_priors(0.5);
        struct k25_fit fit;
        double a = exp(0.5 * normal(&seed)), b = exp(0.5 * normal(&seed));
        observe(a, b, 0.05, &seed);
        solve(&priors, ROWS, NULL, &fit);
        const double truth[2] = {a, b};
        const int id[2] = {K25_NCCL_BASE, K25_NCCL_HOP};
        for (int i = 0; i < 2; i++, all++)
            covered += fabs(log(fit.params.value[id[i]] / truth[i])) <= 1.6448536 * fit.log_sd[id[i]];
        k25_fit_free(&fit);
    }
    print_message("%d of %d intervals cover\n", covered, all);
    assert_true(covered >= 0.82 * all && covered <= 0.97 * all);
}

static void one_outlier_does_little_harm(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(2);
    struct k25_fit fit;
    uint64_t seed = 77;
    observe(3, 0.5, 0.02, &seed);
    solve(&priors, ROWS, NULL, &fit);
    double a = fit.params.value[K25_NCCL_BASE], b = fit.params.value[K25_NCCL_HOP];
    k25_fit_free(&fit);
    rows[6].measured *= 2; /* 35 sigma */
    solve(&priors, ROWS, NULL, &fit);
    /* Least squares would move by about 35 sigma / sqrt(12) = 10 %; Huber's pull is 2.5 sigma / sqrt(12) =
     * 1.4 %. */
    assert_close(fit.params.value[K25_NCCL_BASE], a, 0.03);
    assert_close(fit.params.value[K25_NCCL_HOP], b, 0.03);
    k25_fit_free(&fit);
}

static void what_is_left_out_has_no_say(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(3);
    struct k25_fit with, without;
    observe(3, 0.5, 0, NULL);
    bool leave[ROWS] = {false};
    leave[ROWS - 1] = true;
    rows[ROWS - 1].measured = 1e6;
    solve(&priors, ROWS, leave, &with);
    solve(&priors, ROWS - 1, NULL, &without);
    assert_true(memcmp(&with.params, &without.params, sizeof with.params) == 0);
    k25_fit_free(&with);
    k25_fit_free(&without);
}

static void held_out_is_the_fit_without_the_fold(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(1);
    struct k25_error error = {0};
    uint64_t seed = 4;
    observe(3, 0.5, 0.1, &seed);
    int fold[ROWS];
    struct k25_held_out held_out[ROWS];
    for (int i = 0; i < ROWS; i++)
        fold[i] = i % 5;
    assert_true(k25_hold_out(&priors, rows, ROWS, fold, 5, held_out, &error));
    for (int k = 0; k < 5; k++) {
        struct k25_fit fit;
        bool leave[ROWS];
        for (int i = 0; i < ROWS; i++)
            leave[i] = fold[i] == k;
        assert_true(k25_fit_solve_noise(&priors, rows, ROWS, leave, &fit, &error));
        for (int i = 0; i < ROWS; i++) {
            if (leave[i])
                assert_true(held_out[i].predicted == line(&at[i], &fit.params, NULL) && held_out[i].sd > 0);
        }
        k25_fit_free(&fit);
    }
}

/* A whole step, as a load test sees it. */
static double step_ms(const void *context, const struct k25_params *params, double *slope)
{
    static _Thread_local struct k25_prediction p;
    k25_predict(context, params, &p);
    if (slope != NULL)
        k25_step_slopes(context, params, &p, slope);
    return p.step * 1e3;
}

enum { STEPS = 10 };
static struct box box;
static struct k25_question question[STEPS];
static struct k25_observation steps[STEPS];

static void measure_steps(const struct k25_params *truth)
{
    static const struct {
        int batch;
        double context;
    } set[STEPS] = {{1, 500},  {2, 500},  {4, 500},   {8, 500},   {16, 500},
                    {32, 500}, {64, 500}, {1, 64000}, {4, 32000}, {16, 16000}};
    kimi_box(&box);
    for (int i = 0; i < STEPS; i++) {
        box.plan.batch = set[i].batch;
        box.plan.context = set[i].context;
        question[i] = ask(&box);
        steps[i] = (struct k25_observation){step_ms, &question[i], step_ms(&question[i], truth, NULL), 0.002};
    }
}

/* The closed loop through the whole model: steps of known parameters, three of them unknown to the fit. */
static void a_box_is_found_from_its_steps(void **state)
{
    (void)state;
    static const int unknown[] = {K25_NCCL_HOP, K25_ROUTING_CV, K25_MLA_TOKEN};
    struct k25_params truth = fixed_params();
    struct k25_priors priors = {0};
    struct k25_error error = {0};
    struct k25_fit fit;
    memcpy(priors.centre, truth.value, sizeof priors.centre);
    truth.value[K25_NCCL_HOP] *= 1.6;
    truth.value[K25_ROUTING_CV] *= 1.3;
    truth.value[K25_MLA_TOKEN] *= 0.7;
    for (int i = 0; i < 3; i++)
        priors.spread[unknown[i]] = 3;
    measure_steps(&truth);
    if (!k25_fit_solve(&priors, steps, STEPS, NULL, &fit, &error))
        fail_msg("%s", error.message);
    assert_int_equal(fit.free, 3);
    for (int i = 0; i < 3; i++)
        assert_close(fit.params.value[unknown[i]], truth.value[unknown[i]], 1e-3);
    k25_fit_free(&fit);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    struct k25_params truth = fixed_params();
    struct k25_priors priors = {0};
    struct k25_error error = {0};
    memcpy(priors.centre, truth.value, sizeof priors.centre);
    for (int id = 0; id < K25_PARAMS; id++) {
        priors.spread[id] = 0.2;
        truth.value[id] *= 1 + id % 7 / 50.0;
    }
    measure_steps(&truth);
    int fold[STEPS];
    for (int i = 0; i < STEPS; i++)
        fold[i] = i;
    struct k25_held_out one[STEPS], more[STEPS];
    int before = omp_get_max_threads();
    omp_set_num_threads(1);
    assert_true(k25_hold_out(&priors, steps, STEPS, fold, STEPS, one, &error));
    for (int threads = 2; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        memset(more, 0, sizeof more);
        assert_true(k25_hold_out(&priors, steps, STEPS, fold, STEPS, more, &error));
        assert_memory_equal(one, more, sizeof one);
    }
    omp_set_num_threads(before);
}

static void bad_data_is_an_error_not_a_crash(void **state)
{
    (void)state;
    struct k25_priors priors = weak_priors(1);
    struct k25_held_out held_out[ROWS];
    int fold[ROWS] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
    for (int kind = 0; kind < 3; kind++) {
        struct k25_error error = {0};
        struct k25_fit fit;
        observe(3, 0.5, 0, NULL);
        if (kind == 0)
            rows[3].measured = 0;
        if (kind == 1)
            rows[3].measured = -1;
        if (kind == 2)
            rows[3].predict = broken;
        assert_false(k25_fit_solve(&priors, rows, ROWS, NULL, &fit, &error));
        assert_true(strncmp(error.message, "the fit failed: ", 16) == 0);
        assert_null(fit.covariance);
        memset(&error, 0, sizeof error);
        assert_false(k25_hold_out(&priors, rows, ROWS, fold, 2, held_out, &error));
        assert_true(strncmp(error.message, "the fit failed: ", 16) == 0);
        assert_false(k25_fit_solve(&priors, rows, ROWS, NULL, &fit, NULL)); /* a caller who does not care */
    }
}

/* Noise of 6 % given as 2 %: the factor that the fit finds is about 3. Of 40 rows less 2 parameters the estimate
 * spreads by 1 / sqrt(76) = 11 %; three times that is allowed. */
static void the_noise_is_found(void **state)
{
    (void)state;
    enum { MANY = 40 };
    static struct k25_observation many[MANY];
    struct k25_priors priors = weak_priors(1);
    struct k25_error error;
    uint64_t seed = 99;
    observe(3, 0.5, 0, NULL);
    for (int i = 0; i < MANY; i++) {
        many[i] = rows[i % ROWS];
        many[i].sigma = 0.02;
        many[i].measured *= exp(0.06 * normal(&seed));
    }
    struct k25_fit fit;
    assert_true(k25_fit_solve_noise(&priors, many, MANY, NULL, &fit, &error));
    assert_true(fit.noise_scale > 3 * 0.67 && fit.noise_scale < 3 * 1.33);
    assert_true(fit.freedom > 40 && fit.freedom < 44); /* with the four rows that stand for the stated noise */
    k25_fit_free(&fit);
}

/* The same seed marks the same half, another seed another one, and a half is half. */
static void halves(void **state)
{
    (void)state;
    bool first[17], again[17], other[17];
    k25_random_half(17, 3, first);
    k25_random_half(17, 3, again);
    k25_random_half(17, 4, other);
    assert_memory_equal(first, again, sizeof first);
    assert_true(memcmp(first, other, sizeof first) != 0);
    int marked = 0;
    for (int i = 0; i < 17; i++)
        marked += other[i];
    assert_int_equal(marked, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_noise_is_found),
        cmocka_unit_test(halves),
        cmocka_unit_test(known_parameters_come_back),
        cmocka_unit_test(only_what_moves_is_free),
        cmocka_unit_test(nothing_free_leaves_the_priors),
        cmocka_unit_test(the_posterior_by_hand),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(one_outlier_does_little_harm),
        cmocka_unit_test(what_is_left_out_has_no_say),
        cmocka_unit_test(held_out_is_the_fit_without_the_fold),
        cmocka_unit_test(a_box_is_found_from_its_steps),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(bad_data_is_an_error_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
