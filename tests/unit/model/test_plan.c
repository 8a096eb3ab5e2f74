/* Plans: defaults, ranges, the stairs of captured graphs, and what is refused, word for word. */
#include "tests/unit/physics_check.h"

#include "base/yaml.h"

static bool parse(const char *text, struct k25_plan *plan, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "plan.yaml", error);
    bool ok =
        yaml != NULL && k25_schema_load(k25_plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", plan, inputs, error);
    k25_yaml_free(yaml);
    return ok;
}

static void defaults_are_those_of_the_formats(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_plan plan;
    assert_true(parse("{tp: 8, batch: 3, context: 1.5e3}", &plan, NULL, &error));
    assert_true(plan.tp == 8 && plan.batch == 3 && plan.context == 1500);
    assert_true(plan.ep == 1 && plan.dp == 1 && plan.dcp == 1 && plan.pp == 1 && !plan.attention_dp);
    assert_true(plan.kv_dtype == K25_KV_BF16 && plan.memory_utilisation == 0.92);
    assert_true(plan.allreduce.backend == K25_AR_NCCL && plan.allreduce.protocol == K25_PROTO_AUTO);
    assert_true(plan.allreduce.limit[K25_BACKEND_ONESHOT].max_bytes == 57344 &&
                plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows == 0);
    assert_true(plan.graph.mode == K25_GRAPH_FULL && plan.graph.max_rows == 512);
    assert_true(plan.speculation.method == K25_SPEC_NONE && plan.speculation.tokens == 0);
    assert_true(plan.speculation.acceptance[0] == '\0' && plan.speculation.verify == K25_VERIFY_SHARED);
    assert_true(plan.speculation.drafting == K25_DRAFT_SERIAL && plan.speculation.draft_tp == 0);
    assert_true(plan.microbatches == 0 && plan.dcp_exchange == K25_DCP_GATHER);
    assert_true(plan.expert_exchange == K25_EXPERTS_ALLTOALL && plan.expert_rows == 0 && plan.redundant_experts == 0);
    assert_true(plan.prefill.tokens == 0 && plan.prefill.context == 0);
    const struct k25_plan_levers *l = &plan.levers; /* nothing is pulled */
    assert_true(!l->allreduce_free && l->allreduce_overlap == 0 && !l->allreduce_norm && !l->persistent_experts);
    assert_true(!l->shared_stream && l->l2_pinned_mib == 0 && l->power_limit_w == 0);
    assert_true(l->link_bandwidth == 1 && l->link_latency == 1 && l->skew == 1);
}

static void every_key_can_be_set(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_plan plan;
    assert_true(parse("{tp: 1, batch: 1, context: 1}", &plan, NULL, &error));
    static const struct {
        const char *key, *value;
    } sets[] = {{"tp", "2"},
                {"ep", "3"},
                {"dp", "4"},
                {"dcp", "5"},
                {"pp", "6"},
                {"attention_dp", "true"},
                {"batch", "7"},
                {"context", "8.5"},
                {"kv_dtype", "fp8"},
                {"memory_utilisation", "0.5"},
                {"allreduce.backend", "fastest"},
                {"allreduce.oneshot_max_bytes", "9"},
                {"allreduce.oneshot_max_rows", "10"},
                {"allreduce.protocol", "all"},
                {"graph.mode", "none"},
                {"graph.max_rows", "11"},
                {"speculation.method", "draft"},
                {"speculation.tokens", "12"},
                {"speculation.acceptance", "a=0.8"},
                {"speculation.verify", "rows"},
                {"speculation.drafting", "async"},
                {"speculation.draft_tp", "1"},
                {"microbatches", "13"},
                {"dcp_exchange", "all_to_all"},
                {"expert_exchange", "gather"},
                {"expert_rows", "14"},
                {"redundant_experts", "15"},
                {"prefill.tokens", "16"},
                {"prefill.context", "17.5"},
                {"levers.allreduce_free", "true"},
                {"levers.allreduce_overlap", "0.25"},
                {"levers.allreduce_norm", "true"},
                {"levers.persistent_experts", "true"},
                {"levers.shared_stream", "true"},
                {"levers.l2_pinned_mib", "18"},
                {"levers.link_bandwidth", "19"},
                {"levers.link_latency", "20"},
                {"levers.skew", "21"},
                {"levers.power_limit_w", "22"}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (!k25_schema_set(k25_plan_fields, "plan", sets[i].key, sets[i].value, &plan, NULL, &error))
            fail_msg("%s", error.message);
    }
    assert_true(plan.tp == 2 && plan.ep == 3 && plan.dp == 4 && plan.dcp == 5 && plan.pp == 6 && plan.attention_dp);
    assert_true(plan.batch == 7 && plan.context == 8.5 && plan.kv_dtype == K25_KV_FP8);
    assert_true(plan.memory_utilisation == 0.5 && plan.allreduce.backend == K25_AR_FASTEST);
    assert_true(plan.allreduce.limit[K25_BACKEND_ONESHOT].max_bytes == 9 &&
                plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows == 10);
    assert_true(plan.allreduce.protocol == K25_PROTO_ALL && plan.graph.mode == K25_GRAPH_NONE);
    assert_true(plan.graph.max_rows == 11 && plan.speculation.method == K25_SPEC_DRAFT);
    assert_true(plan.speculation.tokens == 12 && plan.speculation.verify == K25_VERIFY_ROWS);
    assert_string_equal(plan.speculation.acceptance, "a=0.8");
    assert_true(plan.speculation.drafting == K25_DRAFT_ASYNC && plan.speculation.draft_tp == 1);
    assert_true(plan.microbatches == 13 && plan.dcp_exchange == K25_DCP_ALLTOALL);
    assert_true(plan.expert_exchange == K25_EXPERTS_GATHER && plan.expert_rows == 14 && plan.redundant_experts == 15);
    assert_true(plan.prefill.tokens == 16 && plan.prefill.context == 17.5);
    const struct k25_plan_levers *l = &plan.levers;
    assert_true(l->allreduce_free && l->allreduce_overlap == 0.25 && l->allreduce_norm && l->persistent_experts);
    assert_true(l->shared_stream && l->l2_pinned_mib == 18 && l->link_bandwidth == 19 && l->link_latency == 20);
    assert_true(l->skew == 21 && l->power_limit_w == 22);
}

static void bad_values_have_a_position(void **state)
{
    (void)state;
    struct k25_plan plan;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{tp: 0, batch: 1, context: 1}", "plan.yaml:1:6: plan.tp: 0 is out of range, expected 1 to 64"},
        {"{tp: 65, batch: 1, context: 1}", "plan.yaml:1:6: plan.tp: 65 is out of range, expected 1 to 64"},
        {"{tp: 8, batch: 0, context: 1}", "plan.yaml:1:16: plan.batch: 0 is out of range, expected 1 to 65536"},
        {"{tp: 8, batch: 1, context: 0}", "plan.yaml:1:28: plan.context: 0 is out of range, expected 1 to 100000000"},
        {"{tp: 8.5, batch: 1, context: 1}", "plan.yaml:1:6: plan.tp: '8.5' is not a whole number"},
        {"{tp: 8, batch: 1}", "plan.yaml:1:1: missing key 'context' in plan"},
        {"{tp: 8, batch: 1, context: 1, kvdtype: fp8}",
         "plan.yaml:1:31: unknown key 'kvdtype' in plan, did you mean 'kv_dtype'?"},
        {"{tp: 8, batch: 1, context: 1, kv_dtype: fp4}",
         "plan.yaml:1:41: plan.kv_dtype: unknown value 'fp4', expected one of bf16, fp8, did you mean 'fp8'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        assert_false(parse(cases[i].text, &plan, NULL, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
}

static void graphs_are_captured_in_stairs(void **state)
{
    (void)state;
    struct k25_plan_graph graph = {K25_GRAPH_FULL, 512};
    /* 1, 2, 4, every 8 to 256, every 16 to 512 (vllm/config: [1, 2, 4] + range(8, 256, 8) + range(256, max + 1,
     * 16)) */
    int size[128], sizes = 0;
    size[sizes++] = 1;
    size[sizes++] = 2;
    size[sizes++] = 4;
    for (int rows = 8; rows < 256; rows += 8)
        size[sizes++] = rows;
    for (int rows = 256; rows <= 512; rows += 16)
        size[sizes++] = rows;
    for (int rows = 1, next = 0; rows <= 512; rows++) {
        if (rows > size[next])
            next++;
        assert_true(k25_graph_runs(&graph, rows));
        assert_int_equal(k25_graph_rows(&graph, rows), size[next]);
    }
    static const int hand[][2] = {{3, 4}, {5, 8}, {9, 16}, {255, 256}, {257, 272}, {272, 272}, {273, 288}, {500, 512}};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(k25_graph_rows(&graph, hand[i][0]), hand[i][1]);
}

static void beyond_the_largest_graph_runs_eager(void **state)
{
    (void)state;
    struct k25_plan_graph graph = {K25_GRAPH_FULL, 100}, none = {K25_GRAPH_NONE, 512};
    assert_true(k25_graph_runs(&graph, 100));
    assert_int_equal(k25_graph_rows(&graph, 97), 100); /* 104 is not captured, 100 is: max_rows ends the list */
    assert_false(k25_graph_runs(&graph, 101));
    assert_int_equal(k25_graph_rows(&graph, 101), 101);
    assert_false(k25_graph_runs(&none, 1));
    assert_int_equal(k25_graph_rows(&none, 5), 5);
    graph.max_rows = 3;
    assert_int_equal(k25_graph_rows(&graph, 3), 3);
}

static void cache_elements_have_bytes(void **state)
{
    (void)state;
    assert_true(k25_kv_bytes[K25_KV_BF16] == 2 && k25_kv_bytes[K25_KV_FP8] == 1);
    assert_string_equal(k25_kv_dtype_names[K25_KV_FP8], "fp8");
    assert_string_equal(k25_allreduce_policy_names[K25_AR_FASTEST], "fastest");
    assert_string_equal(k25_protocol_names[K25_PROTO_ALL], "all");
    assert_string_equal(k25_graph_mode_names[K25_GRAPH_NONE], "none");
    assert_string_equal(k25_speculation_names[K25_SPEC_DRAFT], "draft");
    assert_null(k25_speculation_names[K25_SPEC_DRAFT + 1]);
}

static void refuse(const char *name, const char *scheme, const char *plan_text, const char *message)
{
    struct box box;
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    make_box(&box, name, scheme, "rtx-pro-6000-8x-two-socket");
    if (!parse(plan_text, &box.plan, &inputs, &error))
        fail_msg("%s", error.message);
    assert_false(k25_plan_check(&box.plan, &box.architecture, &box.machine, &inputs, &error));
    assert_string_equal(error.message, message);
    assert_int_equal(error.status, K25_BAD_INPUT);
    struct k25_question question;
    assert_false(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, &inputs, &question, &error));
    assert_string_equal(error.message, message);
    k25_inputs_free(&inputs);
}

static const char *const kimi = "kimi-k2.5", *const int4 = "int4_g32";

static void what_has_no_physics_is_refused_by_name(void **state)
{
    (void)state;
    struct box box;
    struct k25_error error = {0};
    kimi_box(&box);
    strcpy(box.architecture.unmodelled, "attention sinks");
    assert_false(k25_plan_check(&box.plan, &box.architecture, &box.machine, NULL, &error));
    assert_string_equal(error.message, "kimi-k2.5: its attention sinks is not supported yet");
    assert_int_equal(error.status, K25_BAD_INPUT);
}

static void experts_that_do_not_spread_are_refused(void **state)
{
    (void)state;
    refuse("llama-3.1-70b", "bf16", "{tp: 8, batch: 1, context: 1,\n ep: 2}",
           "plan.yaml:2:6: plan.ep: llama-3.1-70b has no experts to spread, expected 1, found 2");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n ep: 3}",
           "plan.yaml:2:6: plan.ep: 3 does not divide the 8 ranks of plan.tp");
    refuse("minimax-m2.5", "fp8", "{tp: 6, batch: 1, context: 1,\n ep: 3}",
           "plan.yaml:2:6: plan.ep: 3 does not divide the 256 experts");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n redundant_experts: 8}",
           "plan.yaml:2:21: plan.redundant_experts: copies of experts need plan.ep of at least 2, expected 0, found 8");
    refuse(kimi, int4, "{tp: 8, ep: 8, batch: 1, context: 1,\n redundant_experts: 392}",
           "plan.yaml:2:21: plan.redundant_experts: 392 copies of the 384 experts of kimi-k2.5");
    refuse(kimi, int4, "{tp: 8, ep: 8, batch: 1, context: 1,\n redundant_experts: 12}",
           "plan.yaml:2:21: plan.redundant_experts: 8 does not divide the 12 copies");
    /* each of 5 ranks has whole heads, and a fifth of an expert */
    refuse("minimax-m2.5", "fp8", "{tp: 5, batch: 1, context: 1, attention_dp: true}",
           "plan.yaml:1:6: plan.tp: 5 does not divide the 1536 columns of an expert of minimax-m2.5");
}

static void caches_that_cannot_be_shared_are_refused(void **state)
{
    (void)state;
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n dcp: 3}",
           "plan.yaml:2:7: plan.dcp: 3 does not divide the 8 ranks of plan.tp");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1, attention_dp: true,\n dcp: 2}",
           "plan.yaml:2:7: plan.dcp: ranks with separate sequences share no cache, expected 1 with "
           "plan.attention_dp, found 2");
    /* 8 key-value heads on 8 ranks: nothing is held twice; 4 on 8: in pairs */
    refuse("minimax-m2.5", "fp8", "{tp: 8, batch: 1, context: 1,\n dcp: 2}",
           "plan.yaml:2:7: plan.dcp: at plan.tp 8 1 rank holds the same keys of minimax-m2.5, expected a divisor of "
           "that, found 2");
    refuse("qwen3-235b-a22b", "fp8", "{tp: 8, batch: 1, context: 1,\n dcp: 4}",
           "plan.yaml:2:7: plan.dcp: at plan.tp 8 2 ranks hold the same keys of qwen3-235b-a22b, expected a divisor "
           "of that, found 4");
}

static void stages_and_replicas_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    refuse(kimi, int4, "{tp: 1, batch: 1, context: 1,\n pp: 62}",
           "plan.yaml:2:6: plan.pp: 62 stages for the 61 layers of kimi-k2.5");
    refuse(kimi, int4, "{tp: 4, batch: 1, context: 1,\n dp: 2}", "plan.yaml:2:6: plan.dp: 2 replicas for 1 sequence");
    refuse(kimi, int4, "{tp: 4, batch: 2, context: 1,\n dp: 2, pp: 2}",
           "plan.yaml:1:6: plan.tp: 16 ranks on rtx-pro-6000-8x-two-socket, which has 8 GPUs");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n levers: {l2_pinned_mib: 129}}",
           "plan.yaml:2:26: plan.levers.l2_pinned_mib: 129 MiB in the L2 of RTX PRO 6000 Blackwell Server Edition, "
           "which has 128");
}

static void drafts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
#define SPECULATION(text) "{tp: 8, batch: 1, context: 1, speculation: {" text "}}"
    refuse("glm-5", "fp8", SPECULATION("method: mtp, tokens: 0"),
           "plan.yaml:1:66: plan.speculation.tokens: mtp drafts no token, expected at least 1");
    refuse(kimi, int4, SPECULATION("method: mtp, tokens: 1"),
           "plan.yaml:1:53: plan.speculation.method: kimi-k2.5 has no multi-token-prediction layer, expected eagle3, "
           "ngram, draft or none");
    refuse(kimi, int4, SPECULATION("method: ngram, tokens: 2, draft_tp: 4"),
           "plan.yaml:1:81: plan.speculation.draft_tp: expected 0, 1 or plan.tp (8), found 4");
    refuse(kimi, int4, SPECULATION("method: ngram, tokens: 2, acceptance: 0.6/0.7"),
           "plan.yaml:1:83: plan.speculation.acceptance: '0.6/0.7': expected marginal rates from 0 to 1 that do not "
           "rise");
    refuse(kimi, int4, SPECULATION("method: ngram, tokens: 3, acceptance: 0.7/0.6"),
           "plan.yaml:1:83: plan.speculation.acceptance: '0.7/0.6' has 2 rates, expected one for each of 3 tokens");
    refuse(kimi, int4, SPECULATION("method: ngram, tokens: 2, acceptance: \"3.5\""),
           "plan.yaml:1:83: plan.speculation.acceptance: '3.5': expected the share of drafts accepted (0 to 1), "
           "tokens a step (1 to 3), rates r1/r2/..., or a=rate");
    /* the plan suits the model, but nothing drafts */
    struct box box;
    struct k25_question question;
    struct k25_error error = {0};
    kimi_box(&box);
    box.plan = plan_of(SPECULATION("method: eagle3, tokens: 2"));
    assert_true(k25_plan_check(&box.plan, &box.architecture, &box.machine, NULL, &error));
    assert_false(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, NULL, &question, &error));
    assert_string_equal(error.message, "plan.speculation.method: eagle3 needs a draft model, expected the scenario's "
                                       "draft to name one");
    assert_int_equal(error.status, K25_BAD_INPUT);
#undef SPECULATION
}

static void what_does_not_divide_is_refused(void **state)
{
    (void)state;
    refuse("kimi-k2.5", "int4_g32", "{tp: 7, batch: 1, context: 1}",
           "plan.yaml:1:6: plan.tp: 7 does not divide the 64 MLA heads of kimi-k2.5");
    refuse("minimax-m2.5", "fp8", "{tp: 5, batch: 1, context: 1}",
           "plan.yaml:1:6: plan.tp: 5 does not divide the 48 query heads of minimax-m2.5");
    /* 48 heads and 1536 columns divide by 3; 8 key-value heads neither divide by it nor repeat over it */
    refuse("minimax-m2.5", "fp8", "{tp: 3, batch: 1, context: 1}",
           "plan.yaml:1:6: plan.tp: 3 neither divides nor is a multiple of the 8 key-value heads of minimax-m2.5");
    refuse("qwen3.5-397b-a17b", "bf16", "{tp: 32, batch: 1, context: 1}",
           "plan.yaml:1:6: plan.tp: 32 does not divide the 16 key heads of the linear attention of qwen3.5-397b-a17b");
    refuse("kimi-k2.5", "int4_g32", "{tp: 16, batch: 1, context: 1}",
           "plan.yaml:1:6: plan.tp: 16 ranks on rtx-pro-6000-8x-two-socket, which has 8 GPUs");
    refuse("kimi-k2.5", "int4_g32", "{tp: 8, batch: 1, context: 262145}",
           "plan.yaml:1:28: plan.context: 262145 tokens are more than the 262144 that kimi-k2.5 can hold");
}

static void good_plans_pass(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct box box;
    kimi_box(&box);
    box.plan.context = 262144;
    for (int tp = 1; tp <= 8; tp *= 2) {
        box.plan.tp = tp;
        assert_true(k25_plan_check(&box.plan, &box.architecture, &box.machine, NULL, &error));
    }
    /* More ranks than key-value heads: each head on two of them. */
    make_box(&box, "qwen3-235b-a22b", "fp8", "rtx-pro-6000-8x-two-socket");
    assert_true(k25_plan_check(&box.plan, &box.architecture, &box.machine, NULL, &error));
    static const struct {
        const char *name, *scheme, *plan;
    } cases[] = {
        {"kimi-k2.5", "int4_g32", "{tp: 8, ep: 8, redundant_experts: 16, batch: 1, context: 1}"},
        {"kimi-k2.5", "int4_g32", "{tp: 8, dcp: 8, batch: 1, context: 1}"},
        {"kimi-k2.5", "int4_g32", "{tp: 8, ep: 8, attention_dp: true, batch: 1, context: 1}"},
        {"kimi-k2.5", "int4_g32", "{tp: 2, dp: 2, pp: 2, batch: 2, context: 1}"},
        {"kimi-k2.5", "int4_g32", "{tp: 8, batch: 1, context: 1, speculation: {method: ngram, tokens: 3}}"},
        {"kimi-k2.5", "int4_g32", "{tp: 8, batch: 1, context: 1, levers: {l2_pinned_mib: 128}}"},
        {"glm-5", "fp8", "{tp: 8, batch: 1, context: 1, speculation: {method: mtp, tokens: 2}}"},
        {"qwen3.5-397b-a17b", "bf16", "{tp: 8, dcp: 4, batch: 1, context: 1}"},
        {"qwen3-235b-a22b", "fp8", "{tp: 8, dcp: 2, batch: 1, context: 1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_box(&box, cases[i].name, cases[i].scheme, "rtx-pro-6000-8x-two-socket");
        box.plan = plan_of(cases[i].plan);
        if (!k25_plan_check(&box.plan, &box.architecture, &box.machine, NULL, &error))
            fail_msg("%s", error.message);
    }
}

/* A plan built in C, as an outside program would, has not been through the ranges of the file. */
static void zeros_are_refused_not_divided_by(void **state)
{
    (void)state;
    struct box box;
    struct k25_question question;
    struct k25_error error = {0};
    kimi_box(&box);
    box.plan.batch = 0;
    assert_false(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, NULL, &question, &error));
    kimi_box(&box);
    box.plan.context = 0;
    assert_false(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, NULL, &question, &error));
    kimi_box(&box);
    box.plan.tp = 0;
    assert_false(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, NULL, &question, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_formats),
        cmocka_unit_test(every_key_can_be_set),
        cmocka_unit_test(bad_values_have_a_position),
        cmocka_unit_test(graphs_are_captured_in_stairs),
        cmocka_unit_test(beyond_the_largest_graph_runs_eager),
        cmocka_unit_test(cache_elements_have_bytes),
        cmocka_unit_test(what_has_no_physics_is_refused_by_name),
        cmocka_unit_test(experts_that_do_not_spread_are_refused),
        cmocka_unit_test(caches_that_cannot_be_shared_are_refused),
        cmocka_unit_test(stages_and_replicas_that_do_not_fit_are_refused),
        cmocka_unit_test(drafts_that_do_not_fit_are_refused),
        cmocka_unit_test(what_does_not_divide_is_refused),
        cmocka_unit_test(good_plans_pass),
        cmocka_unit_test(zeros_are_refused_not_divided_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
