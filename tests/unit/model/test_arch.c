/* The architecture format: what loads, what is refused and in which words, and that printing loses nothing. */
#include "tests/unit/model_check.h"

#include "model/arch/arch.h"

/* Line 9 to 11 are the layers; the tests below count columns from here. */
static const char small[] = "k25sim: architecture\n"
                            "version: 1\n"
                            "name: small\n"
                            "source: made up\n"
                            "hidden: 64\n"
                            "vocabulary: 100\n"
                            "max_context: 1000\n"
                            "layers:\n"
                            "  - {count: 1, attention: gqa, ffn: dense}\n"
                            "  - {count: 2, attention: gqa, ffn: moe, window: 128}\n"
                            "gqa: {heads: 8, kv_heads: 2, head_dim: 8, qk_norm: full}\n"
                            "dense: {intermediate: 256}\n"
                            "moe: {experts: 4, experts_per_token: 2, intermediate: 32}\n";

static void kimi_loads_with_every_value(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_inputs inputs = {0};
    struct k25_error error = {0};
    assert_true(k25_architecture_load(ZOO "kimi-k2.5.yaml", &a, &inputs, &error));
    assert_string_equal(a.name, "kimi-k2.5");
    assert_int_equal(a.hidden, 7168);
    assert_int_equal(a.vocabulary, 163840);
    assert_false(a.tied_embeddings);
    assert_int_equal(a.max_context, 262144);
    assert_int_equal(a.layer_groups, 2);
    assert_int_equal(a.layers[0].count, 1);
    assert_int_equal(a.layers[0].ffn, K25_DENSE);
    assert_int_equal(a.layers[1].count, 60);
    assert_int_equal(a.layers[1].attention, K25_MLA);
    assert_int_equal(a.layers[1].ffn, K25_MOE);
    assert_int_equal(k25_layer_count(&a), 61);
    assert_int_equal(a.mla.heads, 64);
    assert_int_equal(a.mla.q_lora_rank, 1536);
    assert_int_equal(a.mla.kv_lora_rank + a.mla.qk_rope_dim, 576);
    assert_int_equal(a.mla.qk_nope_dim, 128);
    assert_int_equal(a.mla.v_dim, 128);
    assert_int_equal(a.gqa.heads, 0);
    assert_int_equal(a.dense.intermediate, 18432);
    assert_int_equal(a.moe.experts, 384);
    assert_int_equal(a.moe.experts_per_token, 8);
    assert_int_equal(a.moe.shared_intermediate, 2048);
    assert_int_equal(a.mtp_layers, 0);
    assert_null(k25_architecture_unsupported(&a));
    assert_string_equal(k25_inputs_find(&inputs, "architecture.layers[1].count")->value, "60");
    assert_string_equal(k25_inputs_find(&inputs, "architecture.moe.experts")->value, "384");
    k25_inputs_free(&inputs);
}

static void printing_loses_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO_SIZE; i++) {
        struct k25_architecture a, b;
        struct k25_error error = {0};
        char path[512];
        snprintf(path, sizeof path, ZOO "%s.yaml", zoo[i].name);
        if (!k25_architecture_load(path, &a, NULL, &error))
            fail_msg("%s", error.message);
        assert_string_equal(a.name, zoo[i].name);
        char *first = k25_architecture_print(&a, &error);
        put_text("printed.yaml", first);
        if (!k25_architecture_load("printed.yaml", &b, NULL, &error))
            fail_msg("%s", error.message);
        char *second = k25_architecture_print(&b, &error);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

static void awkward_texts_survive_printing(void **state)
{
    (void)state;
    struct k25_architecture a, b;
    struct k25_error error = {0};
    put_text("a.yaml", small);
    assert_true(k25_architecture_load("a.yaml", &a, NULL, &error));
    snprintf(a.source, sizeof a.source, "a \"quoted\" path: C:\\x # no comment\n");
    snprintf(a.unmodelled, sizeof a.unmodelled, "this and that");
    char *text = k25_architecture_print(&a, &error);
    put_text("b.yaml", text);
    if (!k25_architecture_load("b.yaml", &b, NULL, &error))
        fail_msg("%s", error.message);
    assert_string_equal(b.source, a.source);
    assert_string_equal(b.unmodelled, "this and that");
    free(text);
}

static void what_has_no_physics_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO_SIZE; i++) { /* the step has physics for the whole zoo */
        struct k25_architecture a;
        struct k25_error error = {0};
        char path[512];
        snprintf(path, sizeof path, ZOO "%s.yaml", zoo[i].name);
        assert_true(k25_architecture_load(path, &a, NULL, &error));
        assert_null(k25_architecture_unsupported(&a));
        snprintf(a.unmodelled, sizeof a.unmodelled, "magic");
        assert_string_equal(k25_architecture_unsupported(&a), "magic");
    }
}

static void mistakes_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"hidden: 64", "hiden: 64", "a.yaml:5:1: unknown key 'hiden' in architecture, did you mean 'hidden'?"},
        {"vocabulary: 100\n", "", "a.yaml:1:1: missing key 'vocabulary' in architecture"},
        {"hidden: 64", "hidden: 0", "a.yaml:5:9: architecture.hidden: 0 is out of range, expected 1 to 10000000"},
        {"attention: gqa, ffn: dense", "attention: gqaa, ffn: dense",
         "a.yaml:9:27: architecture.layers[0].attention: unknown value 'gqaa', expected one of mla, gqa, "
         "gated_delta, did you mean 'gqa'?"},
        {"window: 128", "windw: 128",
         "a.yaml:10:42: unknown key 'windw' in architecture.layers[1], did you mean 'window'?"},
        {"moe: {experts: 4, experts_per_token: 2, intermediate: 32}\n", "",
         "a.yaml:10:37: architecture.layers[1].ffn: these layers need a section 'moe', and there is none"},
        {"attention: gqa, ffn: dense", "attention: mla, ffn: dense",
         "a.yaml:9:27: architecture.layers[0].attention: these layers need a section 'mla', and there is none"},
        {"window: 128", "indexer: true",
         "a.yaml:10:51: architecture.layers[1].indexer: these layers need a section 'indexer', and there is none"},
        {"window: 128}", "indexer: true}\nindexer: {heads: 1, dim: 2, topk: 3}",
         "a.yaml:10:51: architecture.layers[1].indexer: an indexer works on mla attention, not on gqa"},
        {"window: 128", "shared_indexer: true",
         "a.yaml:10:58: architecture.layers[1].shared_indexer: expected indexer: true with it, and other layers with "
         "an indexer to share"},
        {"ffn: dense", "ffn: moe",
         "a.yaml:12:23: architecture.dense.intermediate: no entry of 'layers' uses the section 'dense'"},
        {"kv_heads: 2", "kv_heads: 3", "a.yaml:11:27: architecture.gqa.kv_heads: 3 does not divide 8 heads"},
        {"experts_per_token: 2", "experts_per_token: 5",
         "a.yaml:13:38: architecture.moe.experts_per_token: a token cannot go to 5 of 4 experts"},
        {"intermediate: 32}", "intermediate: 32, shared_experts: 1}",
         "a.yaml:13:75: architecture.moe.shared_experts: 1 shared experts need 'shared_intermediate', their width "
         "together"},
        {"intermediate: 32}", "intermediate: 32, shared_intermediate: 7}",
         "a.yaml:13:80: architecture.moe.shared_intermediate: there are no shared experts to be 7 wide"},
        {"intermediate: 32}", "intermediate: 32, shared_gate: true}",
         "a.yaml:13:72: architecture.moe.shared_gate: there are no shared experts to gate"},
        {"k25sim: architecture", "k25sim: weights",
         "a.yaml:1:9: k25sim: the file is of kind 'weights', expected 'architecture'"},
        {"version: 1", "version: 2", "a.yaml:2:10: version: 2 is not supported, expected 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_architecture a = {.hidden = 5};
        struct k25_error error = {0};
        char *text = replaced(small, cases[i].from, cases[i].to);
        put_text("a.yaml", text);
        assert_false(k25_architecture_load("a.yaml", &a, NULL, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
        assert_int_equal(a.hidden, 5); /* untouched on failure */
        free(text);
    }
}

static void layers_must_be_a_short_list(void **state)
{
    (void)state;
    static const char head[] = "k25sim: architecture\nversion: 1\nname: a\nsource: b\nhidden: 1\nvocabulary: 1\n"
                               "max_context: 1\ndense: {intermediate: 1}\ngqa: {heads: 1, kv_heads: 1, head_dim: 1}\n";
    static const struct {
        const char *layers, *message;
    } cases[] = {
        {"layers: 3\n", "a.yaml:10:9: architecture.layers: expected a list, found a value"},
        {"layers: []\n", "a.yaml:10:9: architecture.layers: expected 1 to 8 groups of layers, found 0"},
        {"layers: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n",
         "a.yaml:10:9: architecture.layers: expected 1 to 8 groups of layers, found 9"},
        {"layers: [1]\n", "a.yaml:10:10: architecture.layers[0]: expected a mapping, found a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_architecture a;
        struct k25_error error = {0};
        char text[1024];
        snprintf(text, sizeof text, "%s%s", head, cases[i].layers);
        put_text("a.yaml", text);
        assert_false(k25_architecture_load("a.yaml", &a, NULL, &error));
        assert_string_equal(error.message, cases[i].message);
    }
}

static void overrides_are_checked_again(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_inputs inputs = {0};
    struct k25_error error = {0};
    put_text("a.yaml", small);
    assert_true(k25_architecture_load("a.yaml", &a, &inputs, &error));
    assert_true(k25_schema_set(k25_architecture_fields, "architecture", "gqa.kv_heads", "3", &a, &inputs, &error));
    assert_false(k25_architecture_check(&a, &inputs, &error));
    assert_string_equal(error.message, "--set architecture.gqa.kv_heads=3: 3 does not divide 8 heads");
    assert_false(k25_architecture_check(&a, NULL, &error));
    assert_string_equal(error.message, "architecture.gqa.kv_heads: 3 does not divide 8 heads");
    k25_inputs_free(&inputs);
}

static void a_missing_file_is_a_resource(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_error error = {0};
    assert_false(k25_architecture_load("nowhere.yaml", &a, NULL, &error));
    assert_non_null(strstr(error.message, "nowhere.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_loads_with_every_value),    cmocka_unit_test(printing_loses_nothing),
        cmocka_unit_test(awkward_texts_survive_printing), cmocka_unit_test(what_has_no_physics_is_named),
        cmocka_unit_test(mistakes_have_a_position),       cmocka_unit_test(layers_must_be_a_short_list),
        cmocka_unit_test(overrides_are_checked_again),    cmocka_unit_test(a_missing_file_is_a_resource),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
