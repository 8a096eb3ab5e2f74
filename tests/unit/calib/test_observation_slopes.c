/* The slopes of every kind of observation, and of every term and output of a prediction, against differences over plans
 * drawn at random. */
#include "tests/unit/any_plan.h"
#include "tests/unit/slope_check.h"

#include "calib/fit/observe.h"
#include "calib/kernels/work.h"
#include "model/predict/uncertainty.h"

static double observed(const void *context, const struct k25_params *params)
{
    return k25_observed_predict(context, params, NULL);
}

struct term_of {
    const struct k25_question *question;
    enum k25_term term;
};

static double term(const void *context, const struct k25_params *params)
{
    static struct k25_prediction p;
    const struct term_of *of = context;
    k25_predict(of->question, params, &p);
    return k25_term_time(&p, of->term);
}

struct output_of {
    const struct k25_question *question;
    enum k25_output output;
};

static double output(const void *context, const struct k25_params *params)
{
    static struct k25_prediction p;
    const struct output_of *of = context;
    k25_predict(of->question, params, &p);
    p.memory.fits = true; /* memory.reserve may decide it; the times do not depend on it */
    return k25_output_value(of->question, &p, of->output);
}

static void check_all(slope_number *number, const void *context, const struct k25_params *params, const double *slope,
                      const char *what, int *checks)
{
    for (int id = 0; id < K25_PARAMS; id++) {
        double found;
        if (!slope_agrees(number, context, params, id, slope[id], 1e-6, &found))
            fail_msg("%s, %s: slope %.12g, difference %.12g", what, k25_param_names[id], slope[id], found);
        (*checks)++;
    }
}

static void observations_have_their_derivatives(void **state)
{
    (void)state;
    enum { PLANS = 60 };
    static struct k25_observed o;
    uint64_t seed = 20261201;
    int models[ZOO_SIZE] = {0}, checks = 0, seen[K25_OBSERVED_BURST + 1] = {0};
    for (int plans = 0; plans < PLANS;) {
        struct k25_params params;
        o = (struct k25_observed){0};
        if (!any_question(&o.question, &params, &seed, models))
            continue;
        plans++;
        o.bucket = (enum k25_bucket)(plans % K25_BUCKETS);
        o.collective = plans % 2 ? K25_OP_ALLREDUCE : K25_OP_ALLGATHER;
        for (o.kind = K25_OBSERVED_BUCKET; o.kind <= K25_OBSERVED_BURST; o.kind++) {
            char what[64];
            double slope[K25_PARAMS];
            o.bytes = o.kind == K25_OBSERVED_BURST ? 1000.0 * plans * plans : 0;
            o.group = o.question.group[K25_RANKS_TP];
            if (!(k25_observed_predict(&o, &params, slope) > 0))
                continue;
            seen[o.kind]++;
            snprintf(what, sizeof what, "plan %d, kind %d", plans, (int)o.kind);
            check_all(observed, &o, &params, slope, what, &checks);
        }
    }
    for (int kind = 0; kind <= K25_OBSERVED_BURST; kind++)
        assert_true(seen[kind] > PLANS / 6);
    print_message("%d slopes of observations\n", checks);
}

static void check_terms(const struct k25_question *question, const struct k25_params *params,
                        const struct k25_prediction *p, double slope[K25_TERMS][K25_PARAMS], int plan, int *checks)
{
    for (enum k25_term t = 0; t < K25_TERMS; t++) {
        struct term_of of = {question, t};
        char what[64];
        /* A gap, or the host of a step, may be what is left of two large numbers. */
        if (!(k25_term_time(p, t) > 1e-4 * p->step))
            continue;
        snprintf(what, sizeof what, "plan %d, term %d", plan, (int)t);
        check_all(term, &of, params, slope[t], what, checks);
    }
}

/* Those with an interval: as the terms over and under say. */
static void check_outputs(const struct k25_question *question, const struct k25_params *params,
                          const struct k25_prediction *p, double slope[K25_TERMS][K25_PARAMS], int seen[K25_OUTPUTS],
                          int plan, int *checks)
{
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        const struct k25_output_info *info = &k25_output_info[o];
        struct output_of of = {question, o};
        double quotient[K25_PARAMS];
        char what[96];
        if (!k25_output_has_interval(o) || !(k25_term_time(p, info->over) > 1e-4 * p->step) ||
            isnan(output(&of, params)))
            continue;
        for (int id = 0; id < K25_PARAMS; id++)
            quotient[id] = slope[info->over][id] - slope[info->under][id];
        snprintf(what, sizeof what, "plan %d, %s", plan, info->name);
        check_all(output, &of, params, quotient, what, checks);
        seen[o]++;
    }
}

static void terms_and_outputs_have_their_derivatives(void **state)
{
    (void)state;
    enum { PLANS = 60 };
    static struct k25_prediction p;
    static struct k25_machine machine;
    static double slope[K25_TERMS][K25_PARAMS];
    int seen[K25_OUTPUTS] = {0};
    uint64_t seed = 7;
    int models[ZOO_SIZE] = {0}, checks = 0;
    for (int plans = 0; plans < PLANS;) {
        struct k25_question question;
        struct k25_params params;
        if (!any_question(&question, &params, &seed, models))
            continue;
        plans++;
        machine = *question.machine;
        machine.price_per_hour = 12;
        question.machine = &machine;
        k25_predict(&question, &params, &p);
        k25_term_slopes(&question, &params, &p, slope);
        check_terms(&question, &params, &p, slope, plans, &checks);
        check_outputs(&question, &params, &p, slope, seen, plans, &checks);
    }
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++)
        assert_true(seen[o] > 0 || !k25_output_has_interval(o));
    print_message("%d slopes of terms and outputs\n", checks);
}

/* The kernels of the tables, whose slopes are those of their calls. */
static double work_time(const void *context, const struct k25_params *params)
{
    return k25_kernel_work_time(context, params, NULL);
}

static void kernel_rows_have_their_derivatives(void **state)
{
    (void)state;
    static struct box box;
    struct k25_gpu gpu = round_gpu();
    struct k25_params params = all_params();
    struct k25_error error;
    struct k25_kernel_work works[8] = {
        {.kind = K25_WORK_GEMM, .gemm = {K25_KERNEL_GEMM_BF16, 16, 4096, 7168, 2.0 * 4096 * 7168}},
        {.kind = K25_WORK_MOE,
         .moe = {K25_KERNEL_MOE_INT4,
                 {.pairs = 128,
                  .routed = 128,
                  .distinct = 90,
                  .local = 384,
                  .expert_bytes = 3e6,
                  .hidden = 7168,
                  .columns = 256,
                  .matrices = 3,
                  .blocks = 0},
                 7}},
        {.kind = K25_WORK_BMM, .heads = 8, .gemm = {K25_KERNEL_BMM, 16, 512, 128, 8 * 512 * 128 * 2.0}},
        {.kind = K25_WORK_MLA,
         .mla = {.attention = {.sequences = 8,
                               .rows = 1,
                               .heads = 8,
                               .context = 9000,
                               .key_dim = 576,
                               .value_dim = 512,
                               .cache_bytes = 1152,
                               .sms = 188}}},
        {.kind = K25_WORK_MLA_MODULE,
         .mla = {.attention = {.sequences = 8,
                               .rows = 1,
                               .heads = 8,
                               .context = 9000,
                               .key_dim = 576,
                               .value_dim = 512,
                               .cache_bytes = 1152,
                               .sms = 188},
                 .class = K25_KERNEL_GEMM_BF16,
                 .weight_bytes = 2}},
        {.kind = K25_WORK_ALLREDUCE, .collective = {.bytes = 65536}},
        {.kind = K25_WORK_ALLGATHER, .collective = {.bytes = 4194304}},
        {.kind = K25_WORK_CUSTOM, .collective = {.bytes = 65536, .backend = K25_BACKEND_ONESHOT}},
    };
    int checks = 0;
    kimi_box(&box);
    for (int i = 0; i < 8; i++) {
        char what[32];
        double slope[K25_PARAMS];
        works[i].gpu = &gpu;
        if (i >= 5)
            assert_true(k25_machine_group(&box.machine, 8, &works[i].collective.group, &error));
        assert_true(k25_kernel_work_time(&works[i], &params, slope) > 0);
        snprintf(what, sizeof what, "row %d", i);
        check_all(work_time, &works[i], &params, slope, what, &checks);
    }
    print_message("%d slopes of rows of kernel tables\n", checks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(observations_have_their_derivatives),
        cmocka_unit_test(terms_and_outputs_have_their_derivatives),
        cmocka_unit_test(kernel_rows_have_their_derivatives),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
