/* Import of Hugging Face configs: small ones written here, and those of public models in tests/unit/model/configs. */
#include "tests/unit/model_check.h"

#include "model/hf/hf.h"

static const char dense[] = "{\n"
                            "  \"model_type\": \"llama\",\n"
                            "  \"hidden_size\": 64,\n"
                            "  \"vocab_size\": 100,\n"
                            "  \"num_hidden_layers\": 4,\n"
                            "  \"num_attention_heads\": 8,\n"
                            "  \"num_key_value_heads\": 2,\n"
                            "  \"intermediate_size\": 256,\n"
                            "  \"max_position_embeddings\": 1000,\n"
                            "  \"rope_scaling\": null,\n"
                            "  \"torch_dtype\": \"bfloat16\"\n"
                            "}\n";

static const char moe[] = "{\n"
                          "  \"model_type\": \"deepseek_v3\",\n"
                          "  \"hidden_size\": 64,\n"
                          "  \"vocab_size\": 100,\n"
                          "  \"num_hidden_layers\": 4,\n"
                          "  \"num_attention_heads\": 8,\n"
                          "  \"kv_lora_rank\": 16,\n"
                          "  \"q_lora_rank\": null,\n"
                          "  \"qk_nope_head_dim\": 8,\n"
                          "  \"qk_rope_head_dim\": 4,\n"
                          "  \"v_head_dim\": 8,\n"
                          "  \"intermediate_size\": 256,\n"
                          "  \"moe_intermediate_size\": 32,\n"
                          "  \"n_routed_experts\": 16,\n"
                          "  \"num_experts_per_tok\": 2,\n"
                          "  \"n_shared_experts\": 2,\n"
                          "  \"first_k_dense_replace\": 1,\n"
                          "  \"topk_method\": \"noaux_tc\",\n"
                          "  \"max_position_embeddings\": 1000\n"
                          "}\n";

struct result {
    bool done;
    struct k25_architecture a;
    struct k25_weights w;
    struct k25_error error;
};

/* `quant` may be NULL. Neither text is a file: they are called config.json and quant.json. */
static struct result import(const char *text, const char *quant)
{
    struct result r = {0};
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "config.json", &r.error);
    assert_non_null(yaml);
    struct k25_yaml *separate = quant ? k25_yaml_parse(quant, strlen(quant), "quant.json", &r.error) : NULL;
    r.done = k25_hf_import_parsed(yaml, separate, "tiny", &r.a, &r.w, &r.error);
    k25_yaml_free(separate);
    k25_yaml_free(yaml);
    return r;
}

/* `base` with `from` replaced by `to`. */
static struct result import_with(const char *base, const char *from, const char *to)
{
    char *text = replaced(base, from, to);
    struct result r = import(text, NULL);
    free(text);
    return r;
}

static void assert_kind(const struct result *r, int class, int kind)
{
    if (!r->done)
        fail_msg("%s", r->error.message);
    assert_string_equal(k25_format_kind_names[r->w.format[class].kind], k25_format_kind_names[kind]);
}

static void a_dense_model(void **state)
{
    (void)state;
    struct result r = import(dense, NULL);
    if (!r.done)
        fail_msg("%s", r.error.message);
    assert_string_equal(r.a.name, "tiny");
    assert_string_equal(r.a.source, "config.json");
    assert_int_equal(r.a.layer_groups, 1);
    assert_int_equal(r.a.layers[0].count, 4);
    assert_int_equal(r.a.layers[0].attention, K25_GQA);
    assert_int_equal(r.a.layers[0].ffn, K25_DENSE);
    assert_int_equal(r.a.gqa.kv_heads, 2);
    assert_int_equal(r.a.gqa.head_dim, 8); /* 64 / 8 */
    assert_int_equal(r.a.dense.intermediate, 256);
    assert_int_equal(r.a.moe.experts, 0);
    assert_string_equal(r.w.name, "bf16");
}

static void a_moe_model(void **state)
{
    (void)state;
    struct result r = import(moe, NULL);
    if (!r.done)
        fail_msg("%s", r.error.message);
    assert_int_equal(r.a.layer_groups, 2);
    assert_int_equal(r.a.layers[0].count, 1);
    assert_int_equal(r.a.layers[1].count, 3);
    assert_int_equal(r.a.mla.q_lora_rank, 0);
    assert_int_equal(r.a.mla.kv_lora_rank, 16);
    assert_int_equal(r.a.moe.experts, 16);
    assert_int_equal(r.a.moe.shared_experts, 2);
    assert_int_equal(r.a.moe.shared_intermediate, 64); /* 2 x 32 */
    assert_true(r.a.moe.router_bias);
}

static void layers_of_several_kinds(void **state)
{
    (void)state;
    struct result r = import_with(dense, "\"rope_scaling\": null",
                                  "\"sliding_window\": 128, \"layer_types\": [\"full_attention\", "
                                  "\"sliding_attention\", \"sliding_attention\", \"full_attention\"]");
    if (!r.done)
        fail_msg("%s", r.error.message);
    assert_int_equal(r.a.layer_groups, 2); /* the kind of the last layer stands last */
    assert_int_equal(r.a.layers[0].count, 2);
    assert_int_equal(r.a.layers[0].window, 128);
    assert_int_equal(r.a.layers[1].count, 2);
    assert_int_equal(r.a.layers[1].window, 0);
    assert_null(k25_architecture_unsupported(&r.a));

    r = import_with(dense, "\"rope_scaling\": null", "\"sliding_window\": 128");
    assert_true(r.done && r.a.layer_groups == 1 && r.a.layers[0].window == 128);
    r = import_with(dense, "\"rope_scaling\": null", "\"sliding_window\": 128, \"use_sliding_window\": false");
    assert_true(r.done && r.a.layers[0].window == 0);
    r = import_with(dense, "\"rope_scaling\": null",
                    "\"sliding_window\": 128, \"use_sliding_window\": true, \"max_window_layers\": 3");
    assert_true(r.done && r.a.layer_groups == 2 && r.a.layers[1].count == 1 && r.a.layers[1].window == 128);

    r = import_with(moe, "\"first_k_dense_replace\": 1", "\"moe_layer_freq\": [1, 0, 0, 1]");
    assert_true(r.done && r.a.layers[0].count == 2 && r.a.layers[0].ffn == K25_DENSE);
    r = import_with(moe, "\"first_k_dense_replace\": 1", "\"mlp_only_layers\": [1, 2, 3]");
    assert_true(r.done && r.a.layers[1].count == 3 && r.a.layers[1].ffn == K25_DENSE);
}

static void a_key_is_never_dropped(void **state)
{
    (void)state;
    static const struct {
        const char *base, *from, *to, *message;
    } cases[] = {
        {moe, "n_routed_experts", "n_routed_expert",
         "config.json:14:3: unknown key 'n_routed_expert' in config, did you mean 'n_routed_experts'?"},
        {dense, "\"rope_scaling\"", "\"warp_drive\"", "config.json:10:3: unknown key 'warp_drive' in config"},
        {dense, "\"hidden_size\": 64,\n", "", "config.json:1:1: missing key 'hidden_size' in config"},
        {dense, "\"hidden_size\": 64", "\"hidden_size\": \"64\"",
         "config.json:3:18: config.hidden_size: '64' is text in quotes, expected a whole number"},
        {dense, "llama", "lama",
         "config.json:2:17: config.model_type: 'lama' is not among deepseek_v3, deepseek_v32, kimi_k2, "
         "kimi_linear, "
         "glm_moe_dsa, glm4_moe, minimax_m2, minimax_m3, qwen3, qwen3_moe, qwen3_5_moe_text, llama, gpt_oss, did "
         "you "
         "mean 'llama'?"},
        {dense, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3",
         "config.json:7:26: config.num_key_value_heads: 3 does not divide 8 heads"},
        {dense, "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 0",
         "config.json:5:24: config.num_hidden_layers: 0 is out of range, expected 1 to 512"},
        {dense, "\"rope_scaling\": null", "\"layer_types\": [\"full_attention\"]",
         "config.json:10:18: config.layer_types: 1 entries for 4 layers"},
        {dense, "\"rope_scaling\": null", "\"hidden_act\": \"relu\"",
         "config.json:10:17: config.hidden_act: 'relu' is not among silu, swiglu, swigluoai, situ, did you mean "
         "'silu'?"},
        {dense, "\"rope_scaling\": null", "\"add_cross_attention\": true",
         "config.json:10:26: config.add_cross_attention: only decoders are known"},
        {dense, "bfloat16", "float64",
         "config.json:11:18: config.torch_dtype: 'float64' is not known, expected bfloat16 or float16"},
        {moe, "\"n_routed_experts\": 16", "\"moe_layer_freq\": [0, 1, 1, 1]",
         "config.json:1:1: config.n_routed_experts: 0 experts of width 32, 2 a token: a layer with experts needs "
         "all "
         "three above 0"},
        {moe, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 17",
         "config.json:15:26: config.num_experts_per_tok: a token cannot go to 17 of 16 experts"},
        {moe, "\"n_shared_experts\": 2", "\"n_shared_experts\": 2, \"num_experts\": 8",
         "config.json:16:41: config.num_experts: 16 here and 8 under another name"},
        {moe, "\"v_head_dim\": 8", "\"v_head_dim\": 8, \"qk_head_dim\": 13",
         "config.json:11:35: config.qk_head_dim: 13 is not qk_nope_head_dim 8 + qk_rope_head_dim 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result r = import_with(cases[i].base, cases[i].from, cases[i].to);
        assert_false(r.done);
        assert_string_equal(r.error.message, cases[i].message);
        assert_int_equal(r.error.status, K25_BAD_INPUT);
    }
}

static void a_wrapped_text_model(void **state)
{
    (void)state;
    char text[4096];
    snprintf(text, sizeof text,
             "{\"vision_config\": {\"depth\": 27}, \"dtype\": \"bfloat16\", "
             "\"tie_word_embeddings\": true,\n\"text_config\": %s}",
             moe);
    struct result r = import(text, NULL);
    if (!r.done)
        fail_msg("%s", r.error.message);
    assert_true(r.a.tied_embeddings);
    assert_int_equal(r.a.moe.experts, 16);
    assert_string_equal(r.a.source, "config.json (text_config); the vision tower is left out");
    r = import_with(text, "\"vision_config\"", "\"audio_config\"");
    assert_false(r.done);
    assert_string_equal(r.error.message, "config.json:1:2: unknown key 'audio_config' in config, did you mean "
                                         "'vision_config'?");
    r = import_with(text, "n_routed_experts", "n_routed_expertz");
    assert_string_equal(r.error.message, "config.json:15:3: unknown key 'n_routed_expertz' in text_config, did you "
                                         "mean 'n_routed_experts'?");
}

/* A quantization_config in place of "topk_method", whose loss changes nothing else. */
static struct result quantised(const char *config)
{
    char to[2048];
    snprintf(to, sizeof to, "\"quantization_config\": %s", config);
    return import_with(moe, "\"topk_method\": \"noaux_tc\"", to);
}

static void five_methods(void **state)
{
    (void)state;
    struct result r = quantised("{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}");
    assert_kind(&r, K25_T_ATTENTION, K25_FP8);
    assert_kind(&r, K25_T_SHARED_EXPERTS, K25_FP8);
    assert_kind(&r, K25_T_ROUTER, K25_BF16);
    assert_kind(&r, K25_T_LM_HEAD, K25_BF16);
    assert_kind(&r, K25_T_MTP, K25_BF16); /* there is none */
    assert_true(r.w.format[K25_T_ROUTED_EXPERTS].group == 16384);
    assert_string_equal(r.w.name, "fp8");

    r = quantised(
        "{\"quant_method\": \"mxfp4\", \"modules_to_not_convert\": [\"model.layers.*.self_attn\", \"lm_head\"]}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_MXFP4);
    assert_kind(&r, K25_T_SHARED_EXPERTS, K25_BF16);

    r = quantised("{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128, \"zero_point\": true, "
                  "\"modules_to_not_convert\": [\"self_attn\"]}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_INT4);
    assert_kind(&r, K25_T_ATTENTION, K25_BF16);
    assert_kind(&r, K25_T_DENSE_FFN, K25_INT4);
    assert_true(r.w.format[K25_T_ROUTED_EXPERTS].scale_bits == 20);
    assert_string_equal(r.w.name, "awq_int4");

    r = quantised("{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"ignore\": [\"lm_head\", "
                  "\"model.layers.0.self_attn*\", \"model.layers.1.self_attn*\", \"model.layers.2.self_attn*\", "
                  "\"model.layers.3.self_attn*\"]}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_NVFP4);
    assert_kind(&r, K25_T_ATTENTION, K25_BF16);
    assert_kind(&r, K25_T_LM_HEAD, K25_BF16);

    r = quantised("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], "
                  "\"weights\": {\"type\": \"int\", \"num_bits\": 4, \"group_size\": 32, \"symmetric\": true}}}, "
                  "\"ignore\": [\"re:.*self_attn.*\", \"re:.*shared_experts.*\", "
                  "\"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"]}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_INT4);
    assert_kind(&r, K25_T_ATTENTION, K25_BF16);
    assert_kind(&r, K25_T_SHARED_EXPERTS, K25_BF16);
    assert_kind(&r, K25_T_DENSE_FFN, K25_BF16);
    assert_kind(&r, K25_T_LM_HEAD, K25_INT4); /* a Linear that nobody excluded */
    assert_string_equal(r.w.name, "int4_g32");
}

static void groups_with_targets(void **state)
{
    (void)state;
    struct result r =
        quantised("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {"
                  "\"a\": {\"targets\": [\"Linear\"], \"weights\": {\"type\": \"float\", \"num_bits\": 8}}, "
                  "\"b\": {\"targets\": [\"re:.*\\\\.experts\\\\.\\\\d+\\\\..*\"], \"format\": "
                  "\"nvfp4-pack-quantized\", \"weights\": {\"type\": \"float\", \"num_bits\": 4, "
                  "\"group_size\": 16}}}, \"ignore\": [\"lm_head\"]}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_NVFP4);
    assert_kind(&r, K25_T_ATTENTION, K25_FP8);
    assert_kind(&r, K25_T_LM_HEAD, K25_BF16);
}

static void patterns_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        {"{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.layers.0.cross_attn\"]}",
         "config.json:18:77: quantization_config.modules_to_not_convert: 'model.layers.0.cross_attn' names no "
         "module of "
         "this model"},
        {"{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.layers.2.self_attn\"]}",
         "config.json:18:76: quantization_config.modules_to_not_convert: names layers.2.self_attn.q_a_proj and "
         "not "
         "layers.0.self_attn.q_a_proj; the tensors of a class (attention) have one format here"},
        {"{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"re:(?=x)y\"]}",
         "config.json:18:77: quantization_config.modules_to_not_convert: cannot read the pattern 're:(?=x)y': (? "
         "is not "
         "supported"},
        {"{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"re:x{2}\"]}",
         "config.json:18:77: quantization_config.modules_to_not_convert: cannot read the pattern 're:x{2}': "
         "counted "
         "repeats are not supported"},
        {"{\"quant_method\": \"gptq\"}", "config.json:18:43: quantization_config.quant_method: 'gptq' is not "
                                         "among fp8, mxfp4, awq, compressed-tensors, "
                                         "modelopt"},
        {"{\"quant_method\": \"fp8\", \"weight_blok_size\": [1, 1]}",
         "config.json:18:50: unknown key 'weight_blok_size' in quantization_config, did you mean "
         "'weight_block_size'?"},
        {"{\"quant_method\": \"fp8\", \"weight_block_size\": [128]}",
         "config.json:18:71: quantization_config.weight_block_size: expected a list of two sizes"},
        {"{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\"}",
         "config.json:18:69: quantization_config.quant_algo: 'MIXED_PRECISION' is not among NVFP4, FP8"},
        {"{\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], "
         "\"weights\": "
         "{\"type\": \"int\", \"num_bits\": 8}}}}",
         "config.json:18:88: quantization_config.config_groups: 8-bit int weights are not known, expected 4-bit "
         "int, "
         "4-bit float or 8-bit float"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result r = quantised(cases[i].config);
        assert_false(r.done);
        assert_string_equal(r.error.message, cases[i].message);
    }
}

static void a_separate_quant_config(void **state)
{
    (void)state;
    struct result r =
        import(moe, "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {\"quant_algo\": \"NVFP4\", "
                    "\"group_size\": 16, \"exclude_modules\": [\"lm_head\", \"*.self_attn.*\"]}}");
    assert_kind(&r, K25_T_ROUTED_EXPERTS, K25_NVFP4);
    assert_kind(&r, K25_T_ATTENTION, K25_BF16);
    assert_string_equal(r.w.source, "quant.json");
    r = import(moe, "{\"quantization\": {\"quant_algo\": \"NVFP4\", \"exclude\": []}}");
    assert_false(r.done);
    assert_string_equal(r.error.message, "quant.json:1:42: unknown key 'exclude' in quantization, did you mean "
                                         "'exclude_modules'?");

    char *text = replaced(moe, "\"topk_method\": \"noaux_tc\"", "\"quantization_config\": {\"quant_method\": \"fp8\"}");
    r = import(text, "{\"quantization\": {\"quant_algo\": \"NVFP4\", \"exclude_modules\": [\"lm_head\"]}}");
    assert_false(r.done);
    assert_string_equal(r.error.message,
                        "quant.json: attention is nvfp4 here and fp8 in the quantization_config of config.json");
    free(text);
}

#define CONFIGS K25_SOURCE_DIR "/tests/unit/model/configs/"

static const struct {
    const char *file; /* without _config.json */
    const char *zoo;  /* the architecture it must equal, NULL when the zoo has none */
    const char *scheme, *unsupported;
    bool separate; /* hf_quant_config.json beside it */
} files[] = {
    {"MiniMaxAI--MiniMax-M2.5", "minimax-m2.5", "fp8", NULL, false},
    {"MiniMaxAI--MiniMax-M3", NULL, "bf16", "block-sparse attention with index heads", false},
    {"Qwen--Qwen3-235B-A22B", "qwen3-235b-a22b", "bf16", NULL, false},
    {"Qwen--Qwen3-235B-A22B-FP8", "qwen3-235b-a22b", "fp8", NULL, false},
    {"Qwen--Qwen3-Coder-480B-A35B-Instruct", NULL, "bf16", NULL, false},
    {"Qwen--Qwen3.5-397B-A17B", "qwen3.5-397b-a17b", "bf16", NULL, false},
    {"deepseek-ai--DeepSeek-R1", "deepseek-v3", "fp8", NULL, false},
    {"deepseek-ai--DeepSeek-V3", "deepseek-v3", "fp8", NULL, false},
    {"deepseek-ai--DeepSeek-V3.2", NULL, "fp8", NULL, false},
    {"moonshotai--Kimi-K2-Instruct", NULL, "fp8", NULL, false},
    {"moonshotai--Kimi-K2.5", "kimi-k2.5", "int4_g32", NULL, false},
    {"moonshotai--Kimi-K3", NULL, "mxfp4",
     "Kimi delta attention, MLA output gate, MLA without rotary position, attention residuals, experts in a "
     "latent "
     "space",
     false},
    {"nvidia--GLM-5-NVFP4", "glm-5", "nvfp4", NULL, true},
    {"nvidia--Kimi-K2.5-NVFP4", "kimi-k2.5", "nvfp4", NULL, false},
    {"nvidia--MiniMax-M2.5-NVFP4", "minimax-m2.5", "nvfp4", NULL, true},
    {"nvidia--Qwen3.5-397B-A17B-NVFP4", "qwen3.5-397b-a17b", "nvfp4", NULL, true},
    {"openai--gpt-oss-120b", NULL, "mxfp4", "attention sinks, biases of o_proj and of the experts", false},
    {"zai-org--GLM-5", "glm-5", "bf16", NULL, false},
    {"zai-org--GLM-5-FP8", "glm-5", "fp8", NULL, false},
    {"zai-org--GLM-5.1", "glm-5.1", "bf16", NULL, false},
    {"zai-org--GLM-5.2", "glm-5.2", "bf16", NULL, false},
};

static void assert_equals_zoo(struct result *r, const char *name, const char *scheme)
{
    struct k25_architecture a;
    struct k25_weights w;
    char path[512];
    snprintf(path, sizeof path, ZOO "%s.yaml", name);
    if (!k25_architecture_load(path, &a, NULL, &r->error))
        fail_msg("%s", r->error.message);
    snprintf(path, sizeof path, ZOO "%s.%s.yaml", name, scheme);
    if (!k25_weights_load(path, &w, NULL, &r->error))
        fail_msg("%s", r->error.message);
    /* names and sources differ, rightly; all the rest is in the printed text */
    memcpy(a.name, r->a.name, sizeof a.name);
    memcpy(a.source, r->a.source, sizeof a.source);
    memcpy(w.source, r->w.source, sizeof w.source);
    char *expected = k25_architecture_print(&a, &r->error), *printed = k25_architecture_print(&r->a, &r->error);
    assert_string_equal(printed, expected);
    free(expected);
    free(printed);
    expected = k25_weights_print(&w, &r->error), printed = k25_weights_print(&r->w, &r->error);
    assert_string_equal(printed, expected);
    free(expected);
    free(printed);
}

static void public_configs_import(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct result r = {0};
        char path[640], quant[640];
        snprintf(path, sizeof path, CONFIGS "%s_config.json", files[i].file);
        snprintf(quant, sizeof quant, CONFIGS "%s_hf_quant_config.json", files[i].file);
        if (!k25_hf_import(path, files[i].separate ? quant : NULL, NULL, &r.a, &r.w, &r.error))
            fail_msg("%s", r.error.message);
        assert_string_equal(r.w.name, files[i].scheme);
        const char *unsupported = k25_architecture_unsupported(&r.a);
        assert_string_equal(unsupported ? unsupported : "", files[i].unsupported ? files[i].unsupported : "");
        if (files[i].zoo)
            assert_equals_zoo(&r, files[i].zoo, files[i].scheme);
    }
}

static void reconstructed_configs_import(void **state)
{
    (void)state;
    static const char *const names[] = {"GLM-4.5-Air", "GLM-4.6"};
    static const double totals[] = {106.85e9, 352.8e9}; /* 106 B and 353 B (kimi.md, section 3) */
    for (size_t i = 0; i < 2; i++) {
        struct result r = {0};
        char path[640];
        double n[K25_TENSORS], total = 0;
        snprintf(path, sizeof path, CONFIGS "zai-org--%s_config.reconstructed.json", names[i]);
        if (!k25_hf_import(path, NULL, NULL, &r.a, &r.w, &r.error))
            fail_msg("%s", r.error.message);
        assert_string_equal(r.a.name, i == 0 ? "glm-4.5-air" : "glm-4.6");
        k25_count_parameters(&r.a, n);
        for (int j = 0; j < K25_TENSORS; j++)
            total += j == K25_T_MTP ? 0 : n[j];
        assert_close(total, totals[i], 1e-3);
    }
}

static void names_come_from_paths(void **state)
{
    (void)state;
    struct result r = {0};
    put_text("Some-Model_config.json", dense);
    assert_true(k25_hf_import("Some-Model_config.json", NULL, NULL, &r.a, &r.w, &r.error));
    assert_string_equal(r.a.name, "some-model");
    put_text("config.json", dense);
    char here[256], path[300];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/config.json", here);
    assert_true(k25_hf_import(path, NULL, NULL, &r.a, &r.w, &r.error));
    for (char *at = here; *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    assert_string_equal(r.a.name, strrchr(here, '/') + 1);
    assert_false(k25_hf_import("nowhere.json", NULL, NULL, &r.a, &r.w, &r.error));
    assert_false(k25_hf_import("config.json", "nowhere.json", NULL, &r.a, &r.w, &r.error));
    assert_non_null(strstr(r.error.message, "nowhere.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_model),
        cmocka_unit_test(a_moe_model),
        cmocka_unit_test(layers_of_several_kinds),
        cmocka_unit_test(a_key_is_never_dropped),
        cmocka_unit_test(a_wrapped_text_model),
        cmocka_unit_test(five_methods),
        cmocka_unit_test(groups_with_targets),
        cmocka_unit_test(patterns_that_do_not_fit),
        cmocka_unit_test(a_separate_quant_config),
        cmocka_unit_test(public_configs_import),
        cmocka_unit_test(reconstructed_configs_import),
        cmocka_unit_test(names_come_from_paths),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
