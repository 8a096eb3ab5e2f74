/* Shared by the files of this folder only: the config of the language model with the keys of the file, and its layers
 * one by one. */
#ifndef K25_MODEL_HF_INTERNAL_H
#define K25_MODEL_HF_INTERNAL_H

#include "base/yaml.h"
#include "model/hf/hf.h"

#define K25_HF_LAYERS 512

/* Members carry the names of the keys. A node is NULL, a number 0, a text "" when the key is absent or null. */
struct k25_hf_config {
    const char *file;                 /* for messages */
    const char *prefix;               /* "config" or "text_config", for messages */
    const struct k25_yaml_node *node; /* the mapping with the keys */
    bool vision;                      /* the file also has a vision tower, which is left out */

    char model_type[48], hidden_act[32], dtype[32], torch_dtype[32], topk_method[32], qk_norm_type[32];
    char moe_router_dtype[32], mamba_ssm_dtype[32];
    int hidden_size, vocab_size, num_hidden_layers, max_position_embeddings, intermediate_size;
    int num_attention_heads, num_key_value_heads, head_dim, sliding_window, max_window_layers;
    int q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, qk_head_dim;
    int index_head_dim, index_n_heads, index_topk, index_topk_freq;
    int linear_num_value_heads, linear_num_key_heads, linear_value_head_dim, linear_key_head_dim;
    int linear_conv_kernel_dim, full_attention_interval;
    int n_routed_experts, num_experts, num_local_experts;
    int num_experts_per_tok, num_experts_per_token, experts_per_token;
    int moe_intermediate_size, dense_intermediate_size, n_shared_experts, num_shared_experts;
    int shared_expert_intermediate_size, shared_intermediate_size;
    int first_k_dense_replace, decoder_sparse_step;
    int num_nextn_predict_layers, mtp_num_hidden_layers, num_mtp_modules, mtp_transformer_layers;
    bool tie_word_embeddings, attention_bias, qkv_bias, mlp_bias, use_qk_norm, use_sliding_window;
    bool attn_output_gate, attention_output_gate, use_routing_bias, use_mtp, mtp_use_dedicated_embeddings;
    bool is_encoder_decoder, add_cross_attention;
    const struct k25_yaml_node *layer_types, *attn_type_list, *linear_attn_config, *moe_layer_freq;
    const struct k25_yaml_node *mlp_only_layers, *mlp_layer_types, *indexer_types, *index_topk_pattern;
    const struct k25_yaml_node *sparse_attention_config, *routed_expert_hidden_size, *attn_res_block_size;
    const struct k25_yaml_node *mla_use_output_gate, *mla_use_nope, *quantization_config;
    const struct k25_yaml_node *ignored; /* keys without effect are read into this member */

    const struct k25_hf_family *family;     /* by model_type; static */
    struct k25_layers layer[K25_HF_LAYERS]; /* the first num_hidden_layers, each of count 1 */
};

/* Reads the root of a config.json into `config`, which the caller has zeroed. Its nodes are valid as long as `yaml`. */
bool k25_hf_config_read(const struct k25_yaml *yaml, struct k25_hf_config *config, struct k25_error *error);

/* Fills `layer` of a config that has been read. */
bool k25_hf_layers_read(struct k25_hf_config *config, struct k25_error *error);

/* Returns the index of an entry in `words`, -1 with an error at the entry when it is not among them. */
int k25_hf_word(const struct k25_hf_config *config, const char *key, const struct k25_yaml_node *entry,
                const char *const *words, struct k25_error *error);

/* Fills `architecture` but for its name and source, which the caller sets. */
bool k25_hf_config_build(struct k25_hf_config *config, struct k25_architecture *architecture, struct k25_error *error);

/* Whether the config names MTP modules that the checkpoints of this family do not contain. */
bool k25_hf_unshipped_mtp(const struct k25_hf_config *config);

/* Fails with K25_BAD_INPUT at the value of `key`, or at the mapping when the key is absent. */
bool k25_hf_fail(const struct k25_hf_config *config, const char *key, struct k25_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fills `weights` from the `quantization_config` `node` (NULL: none) or the root of a hf_quant_config.json. */
bool k25_hf_quantisation(const struct k25_hf_config *config, const struct k25_yaml_node *node, const char *file,
                         int mtp_layers, struct k25_weights *weights, struct k25_error *error);

/* The modules that a list of patterns names, by enum k25_tensor (model/hf/modules.c). */
struct k25_hf_coverage {
    int hit[K25_TENSORS], all[K25_TENSORS];                       /* matched matrices of a class, all its matrices */
    char first_hit[K25_TENSORS][96], first_miss[K25_TENSORS][96]; /* names for messages; "" when there is none */
};

/* Matches the list `patterns` against all modules of the model and of its `mtp_layers` multi-token-prediction modules.
 * `file` and `path` are the position of the list for messages. A pattern that names no module of the model is
 * K25_BAD_INPUT with its position. */
bool k25_hf_cover(const struct k25_hf_config *config, const struct k25_yaml_node *patterns, int mtp_layers,
                  const char *file, const char *path, struct k25_hf_coverage *coverage, struct k25_error *error);

#endif
