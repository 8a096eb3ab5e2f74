/* The quantisation schemes and the counts of parameters, worked by hand and against what the makers publish. */
#include "tests/unit/model_check.h"

#include "base/csv.h"
#include "base/file.h"
#include "model/arch/weights.h"

static void load(const char *name, const char *scheme, struct k25_architecture *a, struct k25_weights *w)
{
    struct k25_error error = {0};
    char path[512];
    snprintf(path, sizeof path, ZOO "%s.yaml", name);
    if (!k25_architecture_load(path, a, NULL, &error))
        fail_msg("%s", error.message);
    if (!scheme)
        return;
    snprintf(path, sizeof path, ZOO "%s.%s.yaml", name, scheme);
    if (!k25_weights_load(path, w, NULL, &error))
        fail_msg("%s", error.message);
}

static void kimi_by_hand(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_weights w;
    double n[K25_TENSORS];
    load("kimi-k2.5", "int4_g32", &a, &w);
    k25_count_parameters(&a, n);
    /* 163840 x 7168 */
    assert_true(n[K25_T_EMBEDDING] == 1174405120.0 && n[K25_T_LM_HEAD] == 1174405120.0);
    /* q_a 7168 x 1536 = 11,010,048; q_b 1536 x 64 x 192 = 18,874,368; kv_a 7168 x 576 = 4,128,768;
     * kv_b 512 x 64 x 256 = 8,388,608; o 8192 x 7168 = 58,720,256: 101,122,048 a layer, 61 of them */
    assert_true(n[K25_T_ATTENTION] == 61 * 101122048.0);
    assert_true(n[K25_T_DENSE_FFN] == 396361728.0);          /* 3 x 7168 x 18432 */
    assert_true(n[K25_T_ROUTER] == 165150720.0);             /* 60 x 7168 x 384 */
    assert_true(n[K25_T_ROUTED_EXPERTS] == 1014686023680.0); /* 60 x 384 x 44,040,192 */
    assert_true(n[K25_T_SHARED_EXPERTS] == 2642411520.0);    /* 60 x 44,040,192 */
    assert_true(n[K25_T_NORM] == 1029632.0);                 /* 61 x (2 x 7168 + 1536 + 512) + 60 x 384 + 7168 */
    assert_true(n[K25_T_MTP] == 0 && n[K25_T_INDEXER] == 0 && n[K25_T_LINEAR_ATTENTION] == 0);
    double total = 0;
    for (int i = 0; i < K25_TENSORS; i++)
        total += n[i];
    assert_true(total == 1026408232448.0);
    /* without the embedding and 376 of 384 experts: 1,026,408,232,448 - 1,174,405,120 - 993,546,731,520 */
    assert_close(k25_active_parameters(&a), 31687095808.0, 1e-12);
    /* experts 1,014,686,023,680 x 4.5 / 8 = 570,760,888,320; the rest 11,722,208,768 x 2 = 23,444,417,536 */
    assert_close(k25_checkpoint_bytes(&a, &w), 594205305856.0, 1e-12);
}

static void llama_by_hand(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_weights w;
    double n[K25_TENSORS], total = 0;
    load("llama-3.1-70b", "bf16", &a, &w);
    k25_count_parameters(&a, n);
    for (int i = 0; i < K25_TENSORS; i++)
        total += n[i];
    /* a layer: q and o 8192^2 each, k and v 8192 x 1024 each, 3 x 8192 x 28672, two norms = 855,654,400; 80 of
     * them, twice 128256 x 8192, the last norm. The model card says 70.6 B; safetensors say 70,553,706,496. */
    assert_true(total == 70553706496.0);
    assert_true(k25_checkpoint_bytes(&a, &w) == 2 * 70553706496.0);
}

static void published_totals(void **state)
{
    (void)state;
    /* Parameters in units of 1e9 as the makers round them. Active counts differ in whether the embedding and the
     * head are in: 2 % of DeepSeek's, 6 % of Qwen3.5's. */
    static const struct {
        const char *name;
        double total, active, tolerance;
    } cases[] = {
        {"kimi-k2.5", 1026.4, 31.7, 0.002},   {"deepseek-v3", 671, 37, 0.02},  {"glm-5", 744, 40, 0.03},
        {"glm-5.1", 744, 40, 0.03},           {"minimax-m2.5", 229, 10, 0.05}, {"qwen3-235b-a22b", 235, 22, 0.03},
        {"qwen3.5-397b-a17b", 397, 17, 0.05},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_architecture a;
        double n[K25_TENSORS], total = 0;
        load(cases[i].name, NULL, &a, NULL);
        k25_count_parameters(&a, n);
        for (int j = 0; j < K25_TENSORS; j++)
            total += j == K25_T_MTP ? 0 : n[j];
        assert_close(total, cases[i].total * 1e9, 0.002);
        assert_close(k25_total_parameters(&a), total, 1e-15);
        assert_close(k25_active_parameters(&a), cases[i].active * 1e9, cases[i].tolerance);
    }
}

/* DeepSeek says 11.5 B of unique parameters in the MTP module: 1 layer of experts, attention, and the projection.
 */
static void deepseek_mtp(void **state)
{
    (void)state;
    struct k25_architecture a;
    double n[K25_TENSORS];
    load("deepseek-v3", NULL, &a, NULL);
    k25_count_parameters(&a, n);
    /* experts 257 x 44,040,192 = 11,318,329,344; attention 187,105,280; router 7168 x 256 = 1,835,008;
     * norms 14,336 + 2048 + 256; projection 2 x 7168^2 = 102,760,448; three norms 21,504 */
    assert_true(n[K25_T_MTP] == 11318329344.0 + 187105280 + 1835008 + 16640 + 102760448 + 21504);
}

/* Small enough for every term: H 8, one linear layer and one gqa layer behind, tied embeddings. */
static void linear_attention_by_hand(void **state)
{
    (void)state;
    struct k25_architecture a = {
        .hidden = 8,
        .vocabulary = 10,
        .tied_embeddings = true,
        .layer_groups = 2,
        .layers = {{.count = 1, .attention = K25_GATED_DELTA, .ffn = K25_MOE},
                   {.count = 1, .attention = K25_GQA, .ffn = K25_MOE}},
        .gqa =
            {.heads = 4, .kv_heads = 2, .head_dim = 2, .qk_norm = K25_QK_NORM_FULL, .bias = true, .output_gate = true},
        .linear = {.value_heads = 4, .key_heads = 2, .value_dim = 3, .key_dim = 5, .conv_kernel = 4},
        .moe = {.experts = 3,
                .experts_per_token = 1,
                .intermediate = 7,
                .shared_experts = 1,
                .shared_intermediate = 6,
                .shared_gate = true},
        .mtp_layers = 1,
    };
    double n[K25_TENSORS];
    k25_count_parameters(&a, n);
    assert_true(n[K25_T_EMBEDDING] == 80 && n[K25_T_LM_HEAD] == 0);
    /* value 12, key 10: H (20 + 24 + 8) + 12 H = 416 + 96; convolution 4 x 32 = 128 */
    assert_true(n[K25_T_LINEAR_ATTENTION] == 640);
    assert_true(n[K25_T_ATTENTION] == 8 * (16 + 8) + 64); /* q twice as wide, k and v 4 each, o */
    assert_true(n[K25_T_ROUTER] == 2 * 24 && n[K25_T_ROUTED_EXPERTS] == 2 * 3 * 3 * 8 * 7);
    assert_true(n[K25_T_SHARED_EXPERTS] == 2 * (3 * 8 * 6 + 8));
    /* linear: 4 + 4 + 3; gqa: biases 16 + 8, norms over 8 and 4; 2 x 2 H; final H */
    assert_true(n[K25_T_NORM] == 11 + 24 + 12 + 32 + 8);
    /* the gqa layer again (256 + 24 + 504 + 152 + 24 + 12 + 16), 2 H^2 and 3 H */
    assert_true(n[K25_T_MTP] == 256 + 24 + 504 + 152 + 24 + 12 + 16 + 128 + 24);
    /* tied: the embedding is the head; a third of the experts */
    assert_close(k25_active_parameters(&a), 80 + 640 + 256 + 48 + 1008 / 3.0 + 304 + 87, 1e-12);
}

static void bytes_of_formats(void **state)
{
    (void)state;
    static const struct {
        struct k25_format format;
        double bytes;
    } cases[] = {
        {{K25_BF16, 16, 0, 0}, 2},
        {{K25_FP8, 8, 16384, 32}, 1.000244140625}, /* (8 + 32 / 16384) / 8 */
        {{K25_INT4, 4, 32, 16}, 0.5625},           /* 4.5 bits */
        {{K25_INT4, 4, 128, 20}, 0.51953125},      /* 4.15625 bits */
        {{K25_NVFP4, 4, 16, 8}, 0.5625},
        {{K25_MXFP4, 4, 32, 8}, 0.53125}, /* 4.25 bits */
        {{K25_FP32, 32, 0, 0}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(k25_weight_bytes(&cases[i].format) == cases[i].bytes);
}

static void unshipped_modules_take_no_bytes(void **state)
{
    (void)state;
    struct k25_architecture a;
    struct k25_weights w;
    double n[K25_TENSORS];
    load("minimax-m2.5", "fp8", &a, &w);
    k25_count_parameters(&a, n);
    assert_true(w.unshipped_mtp && n[K25_T_MTP] > 11e9);
    double without = k25_checkpoint_bytes(&a, &w);
    w.unshipped_mtp = false;
    assert_close(k25_checkpoint_bytes(&a, &w) - without, n[K25_T_MTP] * 1.000244140625, 1e-9);
    assert_close(without, 230.0e9, 0.001);
}

static void schemes_load_and_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO_SIZE; i++)
        for (size_t j = 0; j < 4 && zoo[i].schemes[j]; j++) {
            struct k25_architecture a;
            struct k25_weights w, again;
            struct k25_error error = {0};
            load(zoo[i].name, zoo[i].schemes[j], &a, &w);
            assert_string_equal(w.name, zoo[i].schemes[j]);
            char *first = k25_weights_print(&w, &error);
            put_text("printed.yaml", first);
            if (!k25_weights_load("printed.yaml", &again, NULL, &error))
                fail_msg("%s", error.message);
            char *second = k25_weights_print(&again, &error);
            assert_string_equal(first, second);
            free(first);
            free(second);
        }
}

static void mistakes_have_a_position(void **state)
{
    (void)state;
    static const char small[] = "k25sim: weights\n"
                                "version: 1\n"
                                "name: s\n"
                                "source: made up\n"
                                "tensors:\n"
                                "  attention: {format: fp8, bits: 8, group: 16384, scale_bits: 32}\n";
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"attention:", "atention:", "w.yaml:6:3: unknown key 'atention' in weights.tensors, did you mean 'attention'?"},
        {"format: fp8", "format: fp9",
         "w.yaml:6:23: weights.tensors.attention.format: unknown value 'fp9', expected one of bf16, fp8, int4, "
         "nvfp4, "
         "mxfp4, fp32, did you mean 'fp8'?"},
        {"bits: 8,", "bits: 16,", "w.yaml:6:34: weights.tensors.attention.bits: fp8 has 8 bits a weight, not 16"},
        {", scale_bits: 32", "",
         "w.yaml:6:44: weights.tensors.attention.group: 'group' and 'scale_bits' go together: 16384 and 0"},
        {"bits: 8, ", "", "w.yaml:6:14: missing key 'bits' in weights.tensors.attention"},
        {"name: s", "nme: s", "w.yaml:3:1: unknown key 'nme' in weights, did you mean 'name'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_weights w = {.unshipped_mtp = true};
        struct k25_error error = {0};
        char *text = replaced(small, cases[i].from, cases[i].to);
        put_text("w.yaml", text);
        assert_false(k25_weights_load("w.yaml", &w, NULL, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_true(w.unshipped_mtp);
        free(text);
    }
}

static void unnamed_classes_are_bf16(void **state)
{
    (void)state;
    struct k25_weights w;
    struct k25_inputs inputs = {0};
    struct k25_error error = {0};
    put_text("w.yaml", "k25sim: weights\nversion: 1\nname: bf16\nsource: made up\n");
    assert_true(k25_weights_load("w.yaml", &w, &inputs, &error));
    for (int i = 0; i < K25_TENSORS; i++) {
        assert_int_equal(w.format[i].kind, K25_BF16);
        assert_true(w.format[i].bits == 16 && w.format[i].group == 0);
    }
    assert_true(k25_schema_set(k25_weights_fields, "weights", "tensors.lm_head.format", "fp8", &w, &inputs, &error));
    assert_false(k25_weights_check(&w, &inputs, &error)); /* bits are still 16, and nobody said so */
    assert_string_equal(error.message, "weights.tensors.lm_head.bits: fp8 has 8 bits a weight, not 16");
    k25_inputs_free(&inputs);
}

static void names_match_the_enums(void **state)
{
    (void)state;
    size_t tensors = 0, kinds = 0;
    while (k25_tensor_names[tensors])
        tensors++;
    while (k25_format_kind_names[kinds])
        kinds++;
    assert_int_equal(tensors, K25_TENSORS);
    assert_int_equal(kinds, K25_FORMAT_KINDS);
    assert_string_equal(k25_tensor_names[K25_T_ROUTED_EXPERTS], "routed_experts");
    assert_string_equal(k25_tensor_names[K25_T_NORM], "norm");
    assert_string_equal(k25_format_kind_names[K25_FP32], "fp32");
}

/* The points say `model` and `weights_kind`; of a model that the zoo has, both together name a file of the
 * zoo. */
static void every_measured_checkpoint_is_in_the_zoo(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(K25_SOURCE_DIR "/calib/points/*.csv", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct k25_error error = {0};
        struct k25_csv *csv = k25_csv_read(found.gl_pathv[i], &error);
        if (!csv)
            fail_msg("%s", error.message);
        int model = k25_csv_column(csv, "model"), kind = k25_csv_column(csv, "weights_kind");
        for (size_t row = 0; row < csv->rows; row++) {
            char path[512];
            snprintf(path, sizeof path, ZOO "%s.yaml", k25_csv_cell(csv, row, model));
            const char *scheme = k25_csv_cell(csv, row, kind);
            if (!k25_file_exists(path) || scheme[0] == '\0')
                continue;
            snprintf(path, sizeof path, ZOO "%s.%s.yaml", k25_csv_cell(csv, row, model), k25_csv_cell(csv, row, kind));
            if (!k25_file_exists(path))
                fail_msg("%s: no %s", found.gl_pathv[i], path);
        }
        k25_csv_free(csv);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_by_hand),
        cmocka_unit_test(llama_by_hand),
        cmocka_unit_test(published_totals),
        cmocka_unit_test(deepseek_mtp),
        cmocka_unit_test(linear_attention_by_hand),
        cmocka_unit_test(bytes_of_formats),
        cmocka_unit_test(unshipped_modules_take_no_bytes),
        cmocka_unit_test(schemes_load_and_print),
        cmocka_unit_test(mistakes_have_a_position),
        cmocka_unit_test(unnamed_classes_are_bf16),
        cmocka_unit_test(names_match_the_enums),
        cmocka_unit_test(every_measured_checkpoint_is_in_the_zoo),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
