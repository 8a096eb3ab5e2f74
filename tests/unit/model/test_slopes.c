/* The slopes of a step against differences of predictions, over plans of every kind; one chain of them by hand; and
 * what physics says of their sums. */
#include "tests/unit/any_plan.h"

#include "model/predict/slopes.h"

static struct k25_prediction p, q; /* 256 operators each: too large for a stack */

/* ---- differences ---- */

/* One thing that a step follows: parameters first, then the figures. */
static double step_at(const struct k25_question *question, const struct k25_params *params, int what, double log_change)
{
    static struct k25_machine machine;
    struct k25_question moved = *question;
    struct k25_params values = *params;
    double factor = exp(log_change);
    if (what < K25_PARAMS)
        values.value[what] *= factor;
    machine = *question->machine;
    moved.machine = &machine;
    switch (what - K25_PARAMS) {
    case K25_FIGURE_BANDWIDTH:
        machine.gpu.bandwidth_gbs *= factor;
        break;
    case K25_FIGURE_PEAK_BF16:
        machine.gpu.peak_bf16_tflops *= factor;
        break;
    case K25_FIGURE_PEAK_FP8:
        machine.gpu.peak_fp8_tflops *= factor;
        break;
    case K25_FIGURE_PEAK_FP4:
        machine.gpu.peak_fp4_tflops *= factor;
        break;
    default:
        break;
    }
    for (int i = 0; i < K25_RANKS_GROUPS; i++) {
        double wide = what == K25_PARAMS + K25_FIGURE_LINK_BANDWIDTH ? factor : 1;
        double far = what == K25_PARAMS + K25_FIGURE_LINK_LATENCY ? factor : 1;
        moved.group[i].ring_bandwidth *= wide;
        moved.group[i].peer_bandwidth *= wide;
        moved.group[i].lone_bandwidth *= wide;
        moved.group[i].ring_latency *= far;
        moved.group[i].peer_latency *= far;
    }
    k25_predict(&moved, &values, &q);
    return q.step;
}

/* Central differences at h, h/2 and h/4, Richardson's table. */
static double difference(const struct k25_question *question, const struct k25_params *params, int what, double h)
{
    double d[3];
    for (int i = 0; i < 3; i++, h /= 2)
        d[i] = (step_at(question, params, what, h) - step_at(question, params, what, -h)) / (2 * h);
    double first = (4 * d[1] - d[0]) / 3, second = (4 * d[2] - d[1]) / 3;
    return (16 * second - first) / 15;
}

/* The same on one side: differences at h, h/2, h/4 and h/8. */
static double side(const struct k25_question *question, const struct k25_params *params, int what, double h)
{
    enum { LEVELS = 4 };
    double d[LEVELS];
    for (int i = 0; i < LEVELS; i++, h /= 2)
        d[i] = (step_at(question, params, what, h) - p.step) / h;
    for (int level = 1; level < LEVELS; level++)
        for (int i = 0; i + level < LEVELS; i++)
            d[i] = (ldexp(d[i + 1], level) - d[i]) / (ldexp(1, level) - 1);
    return d[0];
}

enum verdict { SAME, CORNER, OTHER };

/* Where a corner is near, the side that the step is on must still agree. */
static enum verdict compare(const struct k25_question *question, const struct k25_params *params, int what,
                            double slope, double *found)
{
    static const double widths[] = {4e-2, 4e-3, 4e-4, 4e-5};
    double tolerance = 1e-6 * fmax(fabs(slope), 1e-6 * p.step);
    /* Counts of experts are differences of lgamma: 1e-13 of them is rounding. */
    double noise = what == K25_ROUTING_CV || what == K25_ROUTING_OVERLAP ? 1e-13 * p.step : 0;
    for (int i = 0; i < 4; i++) {
        *found = difference(question, params, what, widths[i]);
        if (fabs(*found - slope) <= tolerance + noise / widths[i])
            return SAME;
    }
    tolerance = 1e-5 * fmax(fabs(slope), 1e-6 * p.step);
    for (int i = 0; i < 8; i++) {
        double at = side(question, params, what, i % 2 ? -widths[i / 2] : widths[i / 2]);
        if (fabs(at - slope) <= tolerance)
            return CORNER;
    }
    return OTHER;
}

static void slopes_are_derivatives(void **state)
{
    (void)state;
    enum { PLANS = 700 };
    uint64_t seed = 20261129;
    int models[ZOO_SIZE] = {0}, seen[K25_PARAMS + K25_FIGURES] = {0}, corners = 0, checks = 0, plans = 0;
    while (plans < PLANS) {
        struct k25_question question;
        struct k25_params params;
        struct k25_slopes slopes;
        if (!any_question(&question, &params, &seed, models))
            continue;
        plans++;
        k25_predict(&question, &params, &p);
        k25_slopes(&question, &params, &p, &slopes);
        for (int what = 0; what < K25_PARAMS + K25_FIGURES; what++) {
            double slope = what < K25_PARAMS ? slopes.param[what] : slopes.figure[what - K25_PARAMS], found;
            enum verdict verdict = compare(&question, &params, what, slope, &found);
            checks++;
            corners += verdict == CORNER;
            seen[what] += fabs(slope) > 1e-7 * p.step;
            if (verdict == OTHER)
                fail_msg("plan %d, %s: slope %.12g, difference %.12g of a step of %g", plans,
                         what < K25_PARAMS ? k25_param_names[what] : k25_figure_names[what - K25_PARAMS], slope, found,
                         p.step);
        }
    }
    /* All move some step but those that only choose or do not price it. */
    for (int what = 0; what < K25_PARAMS + K25_FIGURES; what++) {
        bool never =
            what == K25_NCCL_LL_MAX || what == K25_GATHER_LL_MAX || what == K25_RESERVE || what == K25_MLA_SPLIT_TOKENS;
        if (never != (seen[what] == 0))
            fail_msg("%s moved %d of %d steps",
                     what < K25_PARAMS ? k25_param_names[what] : k25_figure_names[what - K25_PARAMS], seen[what],
                     plans);
    }
    for (size_t model = 0; model < ZOO_SIZE; model++)
        assert_true(models[model] > 0);
    print_message("%d slopes of %d plans, %d at corners\n", checks, plans, corners);
    assert_in_range(corners, 0, checks / 1000);
    k25_residuals_free(&any_tables);
}

/* ---- by hand, and by what physics says ---- */

/* One GPU, one sequence, BF16 Llama: no collective, and every kernel of one class pays its floor once a launch. */
static void floors_by_hand(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    struct k25_slopes slopes;
    make_box(&any_box, "llama-3.1-70b", "bf16", "h200-8x-nvlink");
    any_box.plan.tp = 1;
    struct k25_question question = ask(&any_box);
    k25_predict(&question, &params, &p);
    k25_slopes(&question, &params, &p, &slopes);
    /* 80 layers of qkv, o_proj, ffn_gate_up and ffn_down, and the lm_head: 2 us each. */
    assert_close(slopes.param[K25_GEMM_T0], (80 * 4 + 1) * 2e-6, 1e-12);
    assert_close(slopes.param[K25_GQA_T0], 80 * 9e-6, 1e-12);
    assert_close(slopes.param[K25_GQA_TILE], 80 * 8 * 12e-9, 1e-12); /* 8 key-value heads of one sequence */
    assert_close(slopes.param[K25_HOST_STEP], 300e-6, 1e-12);
    assert_close(slopes.param[K25_GRAPH_GAP], p.launches * 0.3e-6, 1e-12);
    assert_close(slopes.param[K25_KERNEL_SCALE], p.kernels, 1e-12);
    assert_true(slopes.param[K25_NCCL_BASE] == 0 && slopes.param[K25_SKEW_LAG] == 0);
    assert_true(slopes.figure[K25_FIGURE_LINK_LATENCY] == 0 && slopes.param[K25_MLA_T0] == 0);
}

/* A machine that is e times as slow in everything that is a time takes e times as long: the slopes of all times and,
 * with the sign turned, of all rates sum to the step. */
static void slopes_of_times_sum_to_the_step(void **state)
{
    (void)state;
    static const int times[] = {K25_GEMM_T0,          K25_GEMM_K,          K25_FP8_T0,       K25_FP8_K,
                                K25_FP4_T0,           K25_FP4_K,           K25_INT4_T0,      K25_INT4_K,
                                K25_BMM_T0,           K25_ELEMENT_T0,      K25_MOE_INT4_T0,  K25_MOE_FP4_T0,
                                K25_MOE_FP8_T0,       K25_MOE_BF16_T0,     K25_MOE_K,        K25_MOE_EXPERT,
                                K25_MLA_T0,           K25_MLA_BATCHED,     K25_MLA_SEQUENCE, K25_MLA_TOKEN,
                                K25_INDEXER_T0,       K25_LINEAR_T0,       K25_GQA_T0,       K25_GQA_TILE,
                                K25_GQA_TOKEN,        K25_NCCL_BASE,       K25_NCCL_HOP,     K25_NCCL_LL128_HOP,
                                K25_NCCL_SIMPLE_BASE, K25_NCCL_SIMPLE_HOP, K25_ONESHOT_BASE, K25_ONESHOT_PEER,
                                K25_SKEW_SIGMA,       K25_SKEW_LAG,        K25_DRAFT_PASS,   K25_DRAFT_SEQUENCE,
                                K25_GRAPH_GAP,        K25_EAGER_LAUNCH,    K25_HOST_STEP,    K25_HOST_SEQUENCE};
    uint64_t seed = 5;
    int models[ZOO_SIZE] = {0};
    for (int plans = 0; plans < 300;) {
        struct k25_question question;
        struct k25_params params;
        struct k25_slopes slopes;
        if (!any_question(&question, &params, &seed, models))
            continue;
        plans++;
        k25_predict(&question, &params, &p);
        k25_slopes(&question, &params, &p, &slopes);
        double sum = slopes.figure[K25_FIGURE_LINK_LATENCY];
        for (size_t i = 0; i < sizeof times / sizeof *times; i++)
            sum += slopes.param[times[i]];
        for (int rate = K25_FIGURE_BANDWIDTH; rate <= K25_FIGURE_LINK_BANDWIDTH; rate++)
            sum -= slopes.figure[rate];
        assert_close(sum, p.step, 1e-9);
    }
    k25_residuals_free(&any_tables);
}

static void splits_sum_to_the_operators(void **state)
{
    (void)state;
    static struct k25_operator_split splits[K25_MAX_OPERATORS];
    uint64_t seed = 9;
    int models[ZOO_SIZE] = {0};
    for (int plans = 0; plans < 100;) {
        struct k25_question question;
        struct k25_params params;
        if (!any_question(&question, &params, &seed, models))
            continue;
        plans++;
        k25_predict(&question, &params, &p);
        k25_operator_splits(&question, &params, &p, splits);
        for (size_t i = 0; i < p.step_work.count; i++) {
            const struct k25_operator_split *s = &splits[i];
            bool kernel = p.step_work.op[i].kind == K25_OP_KERNEL;
            double in_kernel = s->floor + s->memory + s->compute, in_collective = s->link + s->wait;
            assert_true(s->floor >= 0 && s->memory >= 0 && s->compute >= 0 && s->link >= 0 && s->wait >= 0);
            assert_true(s->latency >= -1e-12 * p.op[i].time && (kernel ? in_collective : in_kernel) == 0);
            assert_close(in_kernel + in_collective + s->latency, p.op[i].time, 1e-12);
        }
    }
    k25_residuals_free(&any_tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floors_by_hand),
        cmocka_unit_test(slopes_of_times_sum_to_the_step),
        cmocka_unit_test(splits_sum_to_the_operators),
        cmocka_unit_test(slopes_are_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
