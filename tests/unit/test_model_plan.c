/* Plans: defaults, ranges, the stairs of captured graphs, and what is refused, word for word. */
#include "tests/unit/physics_check.h"

#include "base/yaml.h"

static bool parse(const char *text, struct k25_plan *plan, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "plan.yaml", error);
    bool ok = yaml != NULL &&
              k25_schema_load(k25_plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", plan, inputs, error);
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
    assert_true(plan.allreduce.oneshot_max_bytes == 57344 && plan.allreduce.oneshot_max_rows == 0);
    assert_true(plan.graph.mode == K25_GRAPH_FULL && plan.graph.max_rows == 512);
    assert_true(plan.speculation.method == K25_SPEC_NONE && plan.speculation.tokens == 0);
}

static void every_key_can_be_set(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_plan plan;
    assert_true(parse("{tp: 1, batch: 1, context: 1}", &plan, NULL, &error));
    static const struct { const char *key, *value; } sets[] = {
        {"tp", "2"}, {"ep", "3"}, {"dp", "4"}, {"dcp", "5"}, {"pp", "6"}, {"attention_dp", "true"}, {"batch", "7"},
        {"context", "8.5"}, {"kv_dtype", "fp8"}, {"memory_utilisation", "0.5"}, {"allreduce.backend", "fastest"},
        {"allreduce.oneshot_max_bytes", "9"}, {"allreduce.oneshot_max_rows", "10"}, {"allreduce.protocol", "all"},
        {"graph.mode", "none"}, {"graph.max_rows", "11"}, {"speculation.method", "draft"},
        {"speculation.tokens", "12"}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (!k25_schema_set(k25_plan_fields, "plan", sets[i].key, sets[i].value, &plan, NULL, &error))
            fail_msg("%s", error.message);
    }
    assert_true(plan.tp == 2 && plan.ep == 3 && plan.dp == 4 && plan.dcp == 5 && plan.pp == 6 &&
                plan.attention_dp);
    assert_true(plan.batch == 7 && plan.context == 8.5 && plan.kv_dtype == K25_KV_FP8);
    assert_true(plan.memory_utilisation == 0.5 && plan.allreduce.backend == K25_AR_FASTEST);
    assert_true(plan.allreduce.oneshot_max_bytes == 9 && plan.allreduce.oneshot_max_rows == 10);
    assert_true(plan.allreduce.protocol == K25_PROTO_ALL && plan.graph.mode == K25_GRAPH_NONE);
    assert_true(plan.graph.max_rows == 11 && plan.speculation.method == K25_SPEC_DRAFT);
    assert_true(plan.speculation.tokens == 12);
}

static void bad_values_have_a_position(void **state)
{
    (void)state;
    struct k25_plan plan;
    static const struct { const char *text, *message;
    } cases[] = {
        {"{tp: 0, batch: 1, context: 1}", "plan.yaml:1:6: plan.tp: 0 is out of range, expected 1 to 64"},
        {"{tp: 65, batch: 1, context: 1}", "plan.yaml:1:6: plan.tp: 65 is out of range, expected 1 to 64"},
        {"{tp: 8, batch: 0, context: 1}", "plan.yaml:1:16: plan.batch: 0 is out of range, expected 1 to 65536"},
        {"{tp: 8, batch: 1, context: 0}",
         "plan.yaml:1:28: plan.context: 0 is out of range, expected 1 to 100000000"},
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
    static const int hand[][2] = {{3, 4},     {5, 8},     {9, 16},    {255, 256},
                                  {257, 272}, {272, 272}, {273, 288}, {500, 512}};
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
    assert_true(k25_kv_bytes(K25_KV_BF16) == 2 && k25_kv_bytes(K25_KV_FP8) == 1);
    assert_string_equal(k25_kv_dtype_names[K25_KV_FP8], "fp8");
    assert_string_equal(k25_allreduce_backend_names[K25_AR_FASTEST], "fastest");
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
    assert_false(k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, &inputs, &question,
                                   &error));
    assert_string_equal(error.message, message);
    k25_inputs_free(&inputs);
}

static void what_has_no_physics_is_refused_by_name(void **state)
{
    (void)state;
    const char *kimi = "kimi-k2.5", *int4 = "int4_g32";
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n ep: 8}",
           "plan.yaml:2:6: plan.ep: expert parallelism is not supported yet, expected 1, found 8");
    refuse(kimi, int4, "{tp: 4, batch: 1, context: 1,\n dp: 2}",
           "plan.yaml:2:6: plan.dp: more than one replica is not supported yet, expected 1, found 2");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n dcp: 8}",
           "plan.yaml:2:7: plan.dcp: decode context parallelism is not supported yet, expected 1, found 8");
    refuse(kimi, int4, "{tp: 4, batch: 1, context: 1,\n pp: 2}",
           "plan.yaml:2:6: plan.pp: pipeline parallelism is not supported yet, expected 1, found 2");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n attention_dp: true}",
           "plan.yaml:2:16: plan.attention_dp: data-parallel attention is not supported yet, expected false");
    refuse(kimi, int4, "{tp: 8, batch: 1, context: 1,\n speculation: {method: mtp, tokens: 1}}",
           "plan.yaml:2:24: plan.speculation.method: speculation is not supported yet, expected none, found mtp");
    refuse("glm-5", "fp8", "{tp: 8, batch: 1, context: 1}",
           "glm-5: its sparse-attention indexer is not supported yet");
    refuse("qwen3.5-397b-a17b", "bf16", "{tp: 8, batch: 1, context: 1}",
           "qwen3.5-397b-a17b: its gated delta-rule linear attention is not supported yet");
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
        cmocka_unit_test(what_does_not_divide_is_refused),
        cmocka_unit_test(good_plans_pass),
        cmocka_unit_test(zeros_are_refused_not_divided_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
