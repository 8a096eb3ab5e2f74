/* Intervals: first-order propagation against cases whose answer is known. */
#include "tests/unit/physics_check.h"

#include "model/predict/uncertainty.h"

static struct k25_prediction p;
static struct k25_intervals intervals;
static struct k25_uncertainty u;
static const double ms = 1e3; /* of a second */

static void one_parameter(enum k25_param id, double sd)
{
    u = (struct k25_uncertainty){.count = 1, .id = {id}};
    u.covariance[0] = sd * sd;
}

static void predict_intervals(const struct box *box, const struct k25_params *params)
{
    struct k25_error error;
    struct k25_question question = ask(box);
    k25_predict(&question, params, &p);
    assert_true(k25_predict_intervals(&question, params, &u, &p, &intervals, &error));
}

/* Kernels are proportional to kernel.scale, so d ln(kernels) / d ln(scale) = 1 and the interval is exp(-+1.645 sd). */
static void test_a_proportional_number(void **state)
{
    (void)state;
    static struct box box;
    struct k25_params params = fixed_params();
    kimi_box(&box);
    one_parameter(K25_KERNEL_SCALE, 0.1);
    predict_intervals(&box, &params);
    assert_close(intervals.output[K25_OUT_KERNELS].low, p.kernels * ms * exp(-0.16448536), 1e-6);
    assert_close(intervals.output[K25_OUT_KERNELS].high, p.kernels * ms * exp(0.16448536), 1e-6);
    /* transfer does not depend on it */
    assert_close(intervals.output[K25_OUT_ALLREDUCE_TRANSFER].low, p.allreduce_transfer * ms, 1e-12);
    /* the step moves by the share of the kernels in it: d ln(step) = kernels / step, and the wait by rho */
    double sd = log(intervals.output[K25_OUT_STEP].high / (p.step * ms)) / K25_Z90;
    assert_true(sd > 0.1 * p.kernels / p.step * 0.999 && sd < 0.1 * (p.kernels + p.allreduce_wait) / p.step);
}

/* Throughput is batch / step: its interval is the step's, mirrored. Noise adds in quadrature to both. */
static void test_noise_and_mirror(void **state)
{
    (void)state;
    static struct box box;
    struct k25_params params = fixed_params();
    kimi_box(&box);
    one_parameter(K25_HOST_STEP, 1e-9);
    u.noise = 0.03;
    predict_intervals(&box, &params);
    assert_close(intervals.output[K25_OUT_STEP].high, p.step * ms * exp(K25_Z90 * 0.03), 1e-9);
    assert_close(intervals.output[K25_OUT_TOK_S].low * intervals.output[K25_OUT_STEP].high, box.plan.batch * ms, 1e-9);
    /* parts of a step are not what a load test measures */
    assert_close(intervals.output[K25_OUT_KERNELS].high, p.kernels * ms, 1e-9);
}

/* Two parameters whose effects cancel: with correlation +1 of equal and opposite slopes nothing is uncertain. host.step
 * and host.sequence both add to the host; at batch B the slopes are h/(h+sB) and sB/(h+sB). */
static void test_correlation(void **state)
{
    (void)state;
    static struct box box;
    struct k25_params params = fixed_params();
    kimi_box(&box);
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = params.value[K25_SKEW_LAG] = 0;
    box.plan.batch = 100; /* 300 us of host.step, 300 us of host.sequence: slopes 1/2 and 1/2 */
    u = (struct k25_uncertainty){
        .count = 2, .id = {K25_HOST_STEP, K25_HOST_SEQUENCE}, .covariance = {0.04, -0.04, -0.04, 0.04}};
    predict_intervals(&box, &params);
    assert_close(intervals.output[K25_OUT_HOST].high, p.host * ms, 1e-6);
    u.covariance[1] = u.covariance[2] = 0.04;
    predict_intervals(&box, &params);
    assert_close(intervals.output[K25_OUT_HOST].high, p.host * ms * exp(K25_Z90 * 0.2), 1e-6);
    u.covariance[1] = u.covariance[2] = 0;
    predict_intervals(&box, &params);
    assert_close(intervals.output[K25_OUT_HOST].high, p.host * ms * exp(K25_Z90 * 0.2 / sqrt(2)), 1e-6);
}

static void test_nothing_uncertain(void **state)
{
    (void)state;
    static struct box box;
    struct k25_params params = fixed_params();
    kimi_box(&box);
    u = (struct k25_uncertainty){0};
    predict_intervals(&box, &params);
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        struct k25_question question = ask(&box);
        double value = k25_output_value(&question, &p, o);
        if (!k25_output_has_interval(o) || isnan(value)) { /* none, and a machine without a price */
            assert_true(isnan(intervals.output[o].low) && isnan(intervals.output[o].high));
            continue;
        }
        assert_close(intervals.output[o].low, value, 1e-12);
        assert_close(intervals.output[o].high, value, 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_proportional_number),
        cmocka_unit_test(test_noise_and_mirror),
        cmocka_unit_test(test_correlation),
        cmocka_unit_test(test_nothing_uncertain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
