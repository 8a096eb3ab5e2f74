/* The keys of a Hugging Face config.json: those that are read, and those without effect on the cost. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/hf/internal.h"

#define NUMBER(name, standard) K25_FIELD(INT, k25_hf_config, name, .fallback = (standard), .min = 0, .max = 1e7)
#define FLAG(name, standard) K25_FIELD(BOOL, k25_hf_config, name, .fallback = (standard))
#define WORD(name, standard) K25_FIELD(TEXT, k25_hf_config, name, .fallback = (standard))
#define NODE(name) K25_FIELD(NODE, k25_hf_config, name, .fallback = "")
/* Without effect on the cost of a decode step. */
#define IGNORED(name) K25_FIELD_AS(NODE, k25_hf_config, ignored, name, .fallback = "")

static const struct k25_field text_fields[] = {
    WORD(model_type, NULL),
    WORD(hidden_act, "silu"),
    WORD(dtype, ""),
    WORD(torch_dtype, ""),
    NUMBER(hidden_size, NULL),
    NUMBER(vocab_size, NULL),
    NUMBER(num_hidden_layers, NULL),
    K25_FIELD(INT, k25_hf_config, max_position_embeddings, .min = 1, .max = 1e9),
    NUMBER(intermediate_size, "0"),
    FLAG(tie_word_embeddings, "false"),
    NODE(quantization_config),
    /* attention */
    NUMBER(num_attention_heads, NULL),
    NUMBER(num_key_value_heads, "0"),
    NUMBER(head_dim, "0"),
    FLAG(attention_bias, "false"),
    FLAG(qkv_bias, "false"),
    FLAG(use_qk_norm, "true"),
    WORD(qk_norm_type, ""),
    FLAG(attn_output_gate, "false"),
    FLAG(attention_output_gate, "false"),
    NODE(layer_types),
    NODE(attn_type_list),
    NUMBER(sliding_window, "0"),
    FLAG(use_sliding_window, "false"),
    NUMBER(max_window_layers, "0"),
    NUMBER(q_lora_rank, "0"),
    NUMBER(kv_lora_rank, "0"),
    NUMBER(qk_nope_head_dim, "0"),
    NUMBER(qk_rope_head_dim, "0"),
    NUMBER(v_head_dim, "0"),
    NUMBER(qk_head_dim, "0"),
    NUMBER(index_head_dim, "0"),
    NUMBER(index_n_heads, "0"),
    NUMBER(index_topk, "0"),
    NODE(indexer_types),
    NUMBER(index_topk_freq, "0"),
    NODE(index_topk_pattern),
    NODE(sparse_attention_config),
    NODE(mla_use_output_gate),
    NODE(mla_use_nope),
    NODE(attn_res_block_size),
    /* linear attention */
    NUMBER(full_attention_interval, "0"),
    NODE(linear_attn_config),
    NUMBER(linear_num_value_heads, "0"),
    NUMBER(linear_num_key_heads, "0"),
    NUMBER(linear_value_head_dim, "0"),
    NUMBER(linear_key_head_dim, "0"),
    NUMBER(linear_conv_kernel_dim, "0"),
    WORD(mamba_ssm_dtype, ""),
    /* experts */
    NUMBER(n_routed_experts, "0"),
    NUMBER(num_experts, "0"),
    NUMBER(num_local_experts, "0"),
    NUMBER(num_experts_per_tok, "0"),
    NUMBER(num_experts_per_token, "0"),
    NUMBER(experts_per_token, "0"),
    NUMBER(moe_intermediate_size, "0"),
    NUMBER(dense_intermediate_size, "0"),
    NUMBER(n_shared_experts, "0"),
    NUMBER(num_shared_experts, "0"),
    NUMBER(shared_expert_intermediate_size, "0"),
    NUMBER(shared_intermediate_size, "0"),
    NUMBER(first_k_dense_replace, "0"),
    NUMBER(decoder_sparse_step, "1"),
    NODE(moe_layer_freq),
    NODE(mlp_only_layers),
    NODE(mlp_layer_types),
    WORD(topk_method, ""),
    FLAG(use_routing_bias, "false"),
    WORD(moe_router_dtype, ""),
    NODE(routed_expert_hidden_size),
    FLAG(mlp_bias, "false"),
    /* multi-token prediction */
    NUMBER(num_nextn_predict_layers, "0"),
    NUMBER(mtp_num_hidden_layers, "0"),
    NUMBER(num_mtp_modules, "0"),
    NUMBER(mtp_transformer_layers, "1"),
    FLAG(use_mtp, "true"),
    FLAG(mtp_use_dedicated_embeddings, "false"),
    /* must be false: this is a decoder */
    FLAG(is_encoder_decoder, "false"),
    FLAG(add_cross_attention, "false"),
    /* where the file and its classes come from */
    IGNORED("_name_or_path"),
    IGNORED("_note"),
    IGNORED("_source"),
    IGNORED("architectures"),
    IGNORED("auto_map"),
    IGNORED("transformers_version"),
    IGNORED("tokenizer_class"),
    IGNORED("task_specific_params"),
    IGNORED("finetuning_task"),
    IGNORED("problem_type"),
    IGNORED("prefix"),
    IGNORED("id2label"),
    IGNORED("label2id"),
    /* training */
    IGNORED("attention_dropout"),
    IGNORED("aux_loss_alpha"),
    IGNORED("seq_aux"),
    IGNORED("initializer_range"),
    IGNORED("pretraining_tp"),
    IGNORED("ep_size"),
    IGNORED("router_aux_loss_coef"),
    IGNORED("router_jitter_noise"),
    IGNORED("output_router_logits"),
    IGNORED("pruned_heads"),
    IGNORED("chunk_size_feed_forward"),
    IGNORED("tf_legacy_loss"),
    IGNORED("torchscript"),
    IGNORED("use_bfloat16"),
    IGNORED("is_decoder"),
    IGNORED("tie_encoder_decoder"),
    IGNORED("cross_attention_hidden_size"),
    IGNORED("use_cache"),
    /* special tokens and text generation */
    IGNORED("bos_token_id"),
    IGNORED("eos_token_id"),
    IGNORED("pad_token_id"),
    IGNORED("sep_token_id"),
    IGNORED("decoder_start_token_id"),
    IGNORED("forced_bos_token_id"),
    IGNORED("forced_eos_token_id"),
    IGNORED("bad_words_ids"),
    IGNORED("begin_suppress_tokens"),
    IGNORED("suppress_tokens"),
    IGNORED("diversity_penalty"),
    IGNORED("do_sample"),
    IGNORED("early_stopping"),
    IGNORED("encoder_no_repeat_ngram_size"),
    IGNORED("no_repeat_ngram_size"),
    IGNORED("exponential_decay_length_penalty"),
    IGNORED("length_penalty"),
    IGNORED("max_length"),
    IGNORED("min_length"),
    IGNORED("num_beam_groups"),
    IGNORED("num_beams"),
    IGNORED("num_return_sequences"),
    IGNORED("output_attentions"),
    IGNORED("output_hidden_states"),
    IGNORED("output_scores"),
    IGNORED("remove_invalid_values"),
    IGNORED("repetition_penalty"),
    IGNORED("return_dict"),
    IGNORED("return_dict_in_generate"),
    IGNORED("temperature"),
    IGNORED("top_k"),
    IGNORED("top_p"),
    IGNORED("typical_p"),
    /* element-wise work whose size does not depend on the value: rotary position, norms, activations */
    IGNORED("rope_theta"),
    IGNORED("rope_scaling"),
    IGNORED("rope_parameters"),
    IGNORED("rope_interleave"),
    IGNORED("indexer_rope_interleave"),
    IGNORED("rotary_dim"),
    IGNORED("partial_rotary_factor"),
    IGNORED("initial_context_length"),
    IGNORED("rms_norm_eps"),
    IGNORED("use_gemma_norm"),
    IGNORED("swiglu_alpha"),
    IGNORED("swiglu_limit"),
    IGNORED("activation_situ_beta"),
    IGNORED("activation_situ_linear_beta"),
    /* the choice of the experts, not their number */
    IGNORED("n_group"),
    IGNORED("topk_group"),
    IGNORED("num_expert_group"),
    IGNORED("use_grouped_topk"),
    IGNORED("norm_topk_prob"),
    IGNORED("moe_renormalize"),
    IGNORED("moe_router_activation_func"),
    IGNORED("scoring_func"),
    IGNORED("routed_scaling_factor"),
    /* details of keys that are read: routed_expert_hidden_size, indexer_types */
    IGNORED("latent_moe_use_norm"),
    IGNORED("index_share_for_mtp_iteration"),
    IGNORED("index_skip_topk_offset"),
    {0},
};

/* The outer mapping of a multimodal model: its language model is under text_config. */
struct wrapper {
    struct k25_hf_config inner; /* only model_type, dtype and quantization_config are filled */
    const struct k25_yaml_node *text_config, *vision_config, *tie_word_embeddings;
};

#define OUTER(name) K25_FIELD(NODE, wrapper, name, .fallback = "")

static const struct k25_field wrapper_fields[] = {
    OUTER(text_config),
    OUTER(vision_config),
    OUTER(tie_word_embeddings),
    WORD(model_type, ""),
    WORD(dtype, ""),
    WORD(torch_dtype, ""),
    NODE(quantization_config),
    IGNORED("architectures"),
    IGNORED("auto_map"),
    IGNORED("transformers_version"),
    IGNORED("bos_token_id"),
    IGNORED("eos_token_id"),
    IGNORED("pad_token_id"),
    IGNORED("ignore_index"),
    IGNORED("media_placeholder_token_id"),
    IGNORED("image_placeholder"),
    IGNORED("video_placeholder"),
    IGNORED("image_token_id"),
    IGNORED("video_token_id"),
    IGNORED("vision_start_token_id"),
    IGNORED("vision_end_token_id"),
    IGNORED("use_unified_vision_chunk"),
    {0},
};

bool k25_hf_fail(const struct k25_hf_config *config, const char *key, struct k25_error *error, const char *format, ...)
{
    const struct k25_yaml_node *at = k25_yaml_get(config->node, key);
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!at)
        at = config->node;
    return k25_fail_at(error, config->file, at->line, at->column, "%s.%s: %s", config->prefix, key, message);
}

static bool read_wrapper(const struct k25_yaml_node *root, struct k25_hf_config *config, struct wrapper *outer,
                         struct k25_error *error)
{
    if (!k25_schema_load(wrapper_fields, "config", root, config->file, outer, NULL, error))
        return false;
    config->node = outer->text_config;
    config->prefix = "text_config";
    config->vision = outer->vision_config != NULL;
    return true;
}

/* Keys that transformers looks up in text_config first, then outside. */
static bool inherit(const struct wrapper *outer, struct k25_hf_config *config, struct k25_error *error)
{
    const struct k25_yaml_node *tie = outer->tie_word_embeddings;
    const struct k25_yaml_node *quantised = outer->inner.quantization_config;
    bool tied = false;
    if (tie && (tie->kind != K25_YAML_SCALAR || !k25_parse_bool(tie->text, &tied)))
        return k25_fail_at(error, config->file, tie->line, tie->column,
                           "config.tie_word_embeddings: expected true or false");
    if (!k25_yaml_get(config->node, "tie_word_embeddings"))
        config->tie_word_embeddings = tied;
    if (config->dtype[0] == '\0' && config->torch_dtype[0] == '\0') {
        memcpy(config->dtype, outer->inner.dtype, sizeof config->dtype);
        memcpy(config->torch_dtype, outer->inner.torch_dtype, sizeof config->torch_dtype);
    }
    if (quantised && config->quantization_config)
        return k25_fail_at(error, config->file, quantised->line, quantised->column,
                           "config.quantization_config: text_config has one too (line %d); only one can hold",
                           config->quantization_config->line);
    if (quantised)
        config->quantization_config = quantised;
    return true;
}

bool k25_hf_config_read(const struct k25_yaml *yaml, struct k25_hf_config *config, struct k25_error *error)
{
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    struct wrapper *outer = NULL;
    bool done = true;
    config->file = k25_yaml_file(yaml);
    config->prefix = "config";
    config->node = root;
    if (k25_yaml_get(root, "text_config")) {
        outer = calloc(1, sizeof *outer);
        done = outer ? read_wrapper(root, config, outer, error)
                     : k25_fail(error, K25_RESOURCE, "%s: out of memory", config->file);
    }
    if (done && !config->node) /* "text_config": null */
        done = k25_fail_at(error, config->file, root->line, root->column, "config.text_config: expected a mapping");
    done = done && k25_schema_load(text_fields, config->prefix, config->node, config->file, config, NULL, error);
    if (done && outer)
        done = inherit(outer, config, error);
    free(outer);
    return done;
}
