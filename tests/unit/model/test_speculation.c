/* Speculation: what acceptance says, and the tokens that are verified, by hand. Drafts: test_model_draft.c. */
#include "tests/unit/question_check.h"

#include "model/plan/speculation.h"
#include "model/step/routing.h"

static struct k25_prediction p, q; /* too large for a stack */
static const struct k25_step *const step = &p.step_work;

static struct k25_plan_speculation speculate(int tokens, const char *acceptance)
{
    struct k25_plan_speculation speculation = {
        .method = K25_SPEC_NGRAM, .tokens = tokens, .verify = K25_VERIFY_SHARED, .drafting = K25_DRAFT_SERIAL};
    snprintf(speculation.acceptance, sizeof speculation.acceptance, "%s", acceptance);
    return speculation;
}

static void tokens_of_a_step(void **state)
{
    (void)state;
    static const struct {
        int k;
        const char *acceptance;
        double tokens;
    } cases[] = {{3, "0.49", 2.47}, /* 1 + 3 x 0.49 */
                 {3, "2.48", 2.48},
                 {3, "0.83/0.60/0.45", 2.88},
                 {2, "0.83/0.60/0.45", 2.43}, /* a shorter chain takes the first */
                 {3, "a=0.83", 3.090687},     /* 1 + 0.83 + 0.6889 + 0.571787: specdec.md, 1 */
                 {7, "a=0.83", 4.557475},     /* (1 - 0.83^8) / 0.17 */
                 {3, "0", 1},
                 {3, "1", 4},
                 {3, "4", 4},
                 {3, "a=1", 4},
                 {3, "a=0", 1},
                 {1, "0.9/0.1", 1.9}};
    struct k25_error error = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_plan_speculation speculation = speculate(cases[i].k, cases[i].acceptance);
        double tokens;
        assert_true(k25_tokens_per_step(&speculation, &tokens, &error));
        assert_close(tokens, cases[i].tokens, 1e-6);
        speculation.method = K25_SPEC_NONE;
        assert_true(k25_tokens_per_step(&speculation, &tokens, &error) && tokens == 1);
    }
    struct k25_plan_speculation speculation = speculate(3, "");
    double tokens;
    assert_true(k25_tokens_per_step(&speculation, &tokens, &error) && isnan(tokens));
}

static void acceptance_that_cannot_be(void **state)
{
    (void)state;
#define EXPECTED                                                                                                       \
    ": expected the share of drafts accepted (0 to 1), tokens a step (1 to 4), rates r1/r2/..., or "                   \
    "a=rate"
#define RATES ": expected marginal rates from 0 to 1 that do not rise"
    static const struct {
        const char *acceptance, *message;
    } cases[] = {{"4.5", "'4.5'" EXPECTED},
                 {"-0.1", "'-0.1'" EXPECTED},
                 {"high", "'high'" EXPECTED},
                 {"a=1.2", "'a=1.2'" EXPECTED},
                 {"a=", "'a='" EXPECTED},
                 {"nan", "'nan'" EXPECTED},
                 {"0.5/0.6/0.4", "'0.5/0.6/0.4'" RATES},
                 {"1.1/0.6/0.4", "'1.1/0.6/0.4'" RATES},
                 {"0.8/", "'0.8/'" RATES},
                 {"0.8//0.5", "'0.8//0.5'" RATES},
                 {"0.8/x/0.5", "'0.8/x/0.5'" RATES},
                 {"0.8/0.6", "'0.8/0.6' has 2 rates, expected one for each of 3 tokens"}};
    struct box box;
    open_kimi(&box);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_error error = {0};
        char message[256];
        double tokens;
        box.plan.speculation = speculate(3, cases[i].acceptance);
        assert_false(k25_tokens_per_step(&box.plan.speculation, &tokens, &error));
        assert_int_equal(error.status, K25_BAD_INPUT);
        assert_string_equal(error.message, cases[i].message);
        snprintf(message, sizeof message, "plan.speculation.acceptance: %s", cases[i].message);
        refuse(&box, message);
    }
}

static void rates_by_position(void **state)
{
    (void)state;
    static const struct {
        int plan_k, k;
        const char *acceptance;
        double rates[5];
    } cases[] = {{3, 3, "0.83/0.60/0.45", {0.83, 0.6, 0.45}},
                 {3, 5, "0.83/0.60/0.45", {0.83, 0.6, 0.45, 0.3375, 0.253125}}, /* three in four of those before */
                 {3, 1, "0.83/0.60/0.45", {0.83}},
                 {3, 4, "a=0.8", {0.8, 0.64, 0.512, 0.4096}},
                 {2, 3, "0.5/0", {0.5, 0, 0}},
                 {2, 4, "1.75", {0.5, 0.25, 0.125, 0.0625}}, /* 0.5 + 0.25 */
                 {2, 2, "0.375", {0.5, 0.25}},               /* the same mean, as a share */
                 {1, 2, "0.9", {0.9, 0.81}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_plan_speculation speculation = speculate(cases[i].plan_k, cases[i].acceptance);
        double rates[K25_MAX_DRAFT];
        assert_true(k25_marginal_rates(&speculation, cases[i].k, rates));
        for (int j = 0; j < cases[i].k; j++)
            assert_true(fabs(rates[j] - cases[i].rates[j]) < 1e-12);
    }
    struct k25_plan_speculation unknown = speculate(3, "");
    double rates[K25_MAX_DRAFT];
    assert_false(k25_marginal_rates(&unknown, 3, rates));
}

static void verified_tokens_go_through_the_layers(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 3;
    box.plan.speculation = speculate(3, "");
    answer(&box, NULL, &params, &p);
    /* 3 x 4 tokens run as the captured 16; 12 of them need logits */
    assert_true(step->sequences == 3 && step->tokens == 12 && step->rows == 16);
    assert_true(only_op(step, "moe", "allreduce_ffn")->message == 16 * 14336);
    assert_true(only_op(step, "", "lm_head")->rows == 12);
    assert_true(only_op(step, "", "gather_logits")->message == 12 * 40960);
    /* 8 heads x 4 rows are two blocks over each of three caches: padding rows have none */
    const struct k25_kernel_call *call = &only_op(step, "moe", "mla_attention")->call;
    assert_true(call->items == 6 && call->bytes == 3 * 2 * 6400 * 1152 && call->shape[0] == 3);
    box.plan.speculation.verify = K25_VERIFY_ROWS;
    answer(&box, NULL, &params, &q);
    call = &only_op(&q.step_work, "moe", "mla_attention")->call;
    assert_true(call->items == 12 && call->bytes == 12 * 6400 * 1152 && call->shape[0] == 12);
    box.plan.batch = 8; /* no padding: k + 1 times the message */
    answer(&box, NULL, &params, &p);
    box.plan.speculation.method = K25_SPEC_NONE;
    answer(&box, NULL, &params, &q);
    assert_true(only_op(step, "moe", "allreduce_ffn")->message ==
                4 * only_op(&q.step_work, "moe", "allreduce_ffn")->message);
}

static void padding_rows_walk_no_cache(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.tp = 4; /* 16 heads: a block without padding, two if 1.6 rows a sequence counted */
    box.plan.batch = 5;
    for (enum k25_verify verify = K25_VERIFY_ROWS; verify <= K25_VERIFY_SHARED; verify++) {
        box.plan.speculation.verify = verify;
        answer(&box, NULL, &params, &p);
        assert_true(step->rows == 8);
        assert_true(only_op(step, "moe", "mla_attention")->call.bytes == 5 * 6400 * 1152);
    }
}

static void grouped_queries_are_verified_likewise(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3-235b-a22b", "bf16");
    box.plan.batch = 3;
    box.plan.speculation = speculate(3, "");
    answer(&box, NULL, &params, &p);
    /* 8 queries of a key head x 4 rows: two tiles a sequence */
    const struct k25_kernel_call *call = &only_op(step, "moe", "gqa_attention")->call;
    assert_true(call->items == 6 && call->bytes == 3 * 6400 * 512);
    box.plan.speculation.verify = K25_VERIFY_ROWS;
    answer(&box, NULL, &params, &p);
    call = &only_op(step, "moe", "gqa_attention")->call;
    assert_true(call->items == 12 && call->bytes == 12 * 6400 * 512);
}

static void verified_rows_leave_the_oneshot_window(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 4; /* 4 x 14336 = 57344 B, the limit itself; 16 rows are beyond */
    box.plan.allreduce.backend = K25_AR_ONESHOT_THEN_NCCL;
    answer(&box, NULL, &params, &p);
    box.plan.speculation = speculate(3, "");
    answer(&box, NULL, &params, &q);
    for (size_t i = 0; i < step->count; i++) {
        assert_string_equal(k25_operator_names[step->op[i].id],
                            k25_operator_names[q.step_work.op[i].id]); /* n-gram drafts run no kernel */
        if (step->op[i].kind == K25_OP_ALLREDUCE)
            assert_true(p.op[i].backend == K25_BACKEND_ONESHOT && q.op[i].backend == K25_BACKEND_NCCL_LL);
    }
}

static void neighbours_share_experts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 4;
    box.plan.speculation = speculate(3, "");
    static const struct {
        double overlap, tokens;
    } cases[] = {{0, 16}, {0.5, 10}, {1, 4}}; /* 4 (1 + 3 (1 - o)) */
    for (size_t i = 0; i < 3; i++) {
        params.value[K25_ROUTING_OVERLAP] = cases[i].overlap;
        answer(&box, NULL, &params, &p);
        assert_close(step->experts, k25_distinct_experts(384, 8, cases[i].tokens, 1), 1e-12);
        assert_true(only_op(step, "moe", "routed_experts")->call.shape[0] == 16 * 8); /* every row is computed */
    }
    box.plan.speculation.method = K25_SPEC_NONE; /* sequences of their own share nothing */
    answer(&box, NULL, &params, &q);
    assert_close(q.step_work.experts, k25_distinct_experts(384, 8, 4, 1), 1e-12);
}

static void a_step_of_unknown_worth(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 4;
    box.plan.speculation = speculate(3, "");
    answer(&box, NULL, &params, &q);
    assert_true(q.step > 0 && isfinite(q.step) && isnan(q.tokens_per_step) && isnan(q.tpot) && isnan(q.tok_s));
    box.plan.speculation = speculate(3, "0.49");
    answer(&box, NULL, &params, &p);
    assert_true(p.step == q.step);
    assert_close(p.tpot, p.step / 2.47, 1e-12);
    assert_close(p.tok_s, 4 * 2.47 / p.step, 1e-12);
}

static void speculation_refusals(void **state)
{
    (void)state;
    struct box box;
    open_kimi(&box);
    box.plan.speculation = speculate(3, "");
    box.plan.speculation.method = K25_SPEC_EAGLE3;
    refuse(&box, "plan.speculation.method: eagle3 needs a draft model, expected the scenario's draft to name one");
    box.plan.speculation.method = K25_SPEC_MTP;
    refuse(&box, "plan.speculation.method: kimi-k2.5 has no multi-token-prediction layer, expected eagle3, ngram, "
                 "draft or none");
    box.plan.speculation.method = K25_SPEC_NGRAM;
    box.plan.speculation.draft_tp = 4;
    refuse(&box, "plan.speculation.draft_tp: expected 0, 1 or plan.tp (8), found 4");
    box.plan.speculation.tokens = 0;
    refuse(&box, "plan.speculation.tokens: ngram drafts no token, expected at least 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_a_step),
        cmocka_unit_test(acceptance_that_cannot_be),
        cmocka_unit_test(rates_by_position),
        cmocka_unit_test(verified_tokens_go_through_the_layers),
        cmocka_unit_test(padding_rows_walk_no_cache),
        cmocka_unit_test(grouped_queries_are_verified_likewise),
        cmocka_unit_test(verified_rows_leave_the_oneshot_window),
        cmocka_unit_test(neighbours_share_experts),
        cmocka_unit_test(a_step_of_unknown_worth),
        cmocka_unit_test(speculation_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
