/* The layers of a Hugging Face config, one by one: which attention, which feed-forward part, which window. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/hf/internal.h"

int k25_hf_word(const struct k25_hf_config *c, const char *key, const struct k25_yaml_node *entry,
                const char *const *words, struct k25_error *error)
{
    char hint[64];
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], entry->text) == 0)
            return i;
    k25_fail_at(error, c->file, entry->line, entry->column, "%s.%s: '%s' is not known%s", c->prefix, key, entry->text,
                k25_did_you_mean(entry->text, words, hint, sizeof hint));
    return -1;
}

static bool list_of_layers(const struct k25_hf_config *c, const char *key, const struct k25_yaml_node *list,
                           struct k25_error *error)
{
    if (list->kind != K25_YAML_SEQUENCE)
        return k25_hf_fail(c, key, error, "expected a list, found %s", k25_yaml_kind_name(list->kind));
    if (list->count != (size_t)c->num_hidden_layers)
        return k25_hf_fail(c, key, error, "%zu entries for %d layers", list->count, c->num_hidden_layers);
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i]->kind != K25_YAML_SCALAR)
            return k25_fail_at(error, c->file, list->values[i]->line, list->values[i]->column,
                               "%s.%s: expected a value, found %s", c->prefix, key,
                               k25_yaml_kind_name(list->values[i]->kind));
    return true;
}

/* Kimi-K3 numbers its layers from 1 in two lists. */
static bool read_linear_list(struct k25_hf_config *c, const char *key, enum k25_attention attention, bool *seen,
                             struct k25_error *error)
{
    const struct k25_yaml_node *list = k25_yaml_get(c->linear_attn_config, key);
    for (size_t i = 0; list && i < list->count; i++) {
        const struct k25_yaml_node *entry = list->values[i];
        long long layer = 0;
        if (entry->kind != K25_YAML_SCALAR || !k25_parse_int(entry->text, &layer) || layer < 1 ||
            layer > c->num_hidden_layers || seen[layer - 1])
            return k25_fail_at(error, c->file, entry->line, entry->column,
                               "%s.linear_attn_config.%s: expected a layer from 1 to %d, each once", c->prefix, key,
                               c->num_hidden_layers);
        seen[layer - 1] = true;
        c->layer[layer - 1].attention = attention;
    }
    return true;
}

static const struct k25_field linear_fields[] = {
    K25_FIELD_AS(INT, k25_hf_config, linear_num_value_heads, "num_heads", .min = 1, .max = 1e6),
    K25_FIELD_AS(INT, k25_hf_config, linear_value_head_dim, "head_dim", .min = 1, .max = 1e6),
    K25_FIELD_AS(INT, k25_hf_config, linear_conv_kernel_dim, "short_conv_kernel_size", .max = 1e6),
    K25_FIELD_AS(NODE, k25_hf_config, ignored, "full_attn_layers", ),
    K25_FIELD_AS(NODE, k25_hf_config, ignored, "kda_layers", ),
    K25_FIELD_AS(NODE, k25_hf_config, ignored, "gate_lower_bound", .fallback = ""),
    K25_FIELD_AS(NODE, k25_hf_config, ignored, "use_full_rank_gate", .fallback = ""),
    {0},
};

static bool read_linear_config(struct k25_hf_config *c, enum k25_attention base, struct k25_error *error)
{
    bool seen[K25_HF_LAYERS] = {false};
    if (!k25_schema_load(linear_fields, "linear_attn_config", c->linear_attn_config, c->file, c, NULL, error))
        return false;
    c->linear_num_key_heads = c->linear_num_value_heads;
    c->linear_key_head_dim = c->linear_value_head_dim;
    if (!read_linear_list(c, "full_attn_layers", base, seen, error) ||
        !read_linear_list(c, "kda_layers", K25_GATED_DELTA, seen, error))
        return false;
    for (int i = 0; i < c->num_hidden_layers; i++)
        if (!seen[i])
            return k25_hf_fail(c, "linear_attn_config", error, "layer %d is in neither list", i + 1);
    return true;
}

static bool read_layer_types(struct k25_hf_config *c, enum k25_attention base, struct k25_error *error)
{
    enum { FULL, LINEAR, SLIDING, SPARSE };
    static const char *const words[] = {"full_attention", "linear_attention", "sliding_attention",
                                        "deepseek_sparse_attention", NULL};
    if (!list_of_layers(c, "layer_types", c->layer_types, error))
        return false;
    for (int i = 0; i < c->num_hidden_layers; i++) {
        const struct k25_yaml_node *entry = c->layer_types->values[i];
        int word = k25_hf_word(c, "layer_types", entry, words, error);
        if (word < 0)
            return false;
        c->layer[i].attention = word == LINEAR ? K25_GATED_DELTA : base;
        c->layer[i].window = 0;
        if (word == SLIDING && c->sliding_window == 0)
            return k25_fail_at(error, c->file, entry->line, entry->column,
                               "%s.layer_types: sliding_attention needs a 'sliding_window'", c->prefix);
        if (word == SPARSE && c->index_topk == 0)
            return k25_fail_at(error, c->file, entry->line, entry->column,
                               "%s.layer_types: deepseek_sparse_attention needs an 'index_topk'", c->prefix);
        if (word == SLIDING)
            c->layer[i].window = c->sliding_window;
    }
    return true;
}

static bool read_attention_kinds(struct k25_hf_config *c, struct k25_error *error)
{
    static const char *const full[] = {"1", NULL}; /* MiniMax: 0 would be lightning attention, which M2 dropped */
    enum k25_attention base = c->kv_lora_rank > 0 ? K25_MLA : K25_GQA;
    int every = c->full_attention_interval;
    bool has_switch = c->layer_types || k25_yaml_get(c->node, "use_sliding_window");
    for (int i = 0; i < c->num_hidden_layers; i++) {
        struct k25_layers *layer = &c->layer[i];
        *layer = (struct k25_layers){.count = 1, .attention = base, .ffn = K25_DENSE, .indexer = c->index_topk > 0};
        if (every > 0 && (i + 1) % every != 0)
            layer->attention = K25_GATED_DELTA;
        /* Qwen: windows from layer max_window_layers on, and only if enabled. Without a switch a window applies to
         * every layer, unless layer_types gives the layers. */
        if (c->use_sliding_window ? i >= c->max_window_layers : !has_switch)
            layer->window = c->sliding_window;
    }
    if (c->attn_type_list) {
        if (!list_of_layers(c, "attn_type_list", c->attn_type_list, error))
            return false;
        for (int i = 0; i < c->num_hidden_layers; i++)
            if (k25_hf_word(c, "attn_type_list", c->attn_type_list->values[i], full, error) < 0)
                return false;
    }
    if (c->layer_types && !read_layer_types(c, base, error))
        return false;
    if (c->linear_attn_config && !read_linear_config(c, base, error))
        return false;
    if (c->indexer_types) {
        static const char *const words[] = {"full", "shared", NULL};
        if (!list_of_layers(c, "indexer_types", c->indexer_types, error))
            return false;
        for (int i = 0; i < c->num_hidden_layers; i++) {
            int word = k25_hf_word(c, "indexer_types", c->indexer_types->values[i], words, error);
            if (word < 0)
                return false;
            c->layer[i].shared_indexer = word == 1;
        }
    }
    return true;
}

/* 0 or 1 for every layer: dense or moe. */
static bool read_moe_list(struct k25_hf_config *c, const char *key, const struct k25_yaml_node *list,
                          const char *const *words, struct k25_error *error)
{
    if (!list_of_layers(c, key, list, error))
        return false;
    for (int i = 0; i < c->num_hidden_layers; i++) {
        int word = k25_hf_word(c, key, list->values[i], words, error);
        if (word < 0)
            return false;
        c->layer[i].ffn = word == 1 ? K25_MOE : K25_DENSE;
    }
    return true;
}

static bool read_dense_layers(struct k25_hf_config *c, struct k25_error *error)
{
    const struct k25_yaml_node *list = c->mlp_only_layers;
    if (list && list->kind != K25_YAML_SEQUENCE)
        return k25_hf_fail(c, "mlp_only_layers", error, "expected a list, found %s", k25_yaml_kind_name(list->kind));
    for (size_t i = 0; list && i < list->count; i++) {
        const struct k25_yaml_node *entry = list->values[i];
        long long layer = 0;
        if (entry->kind != K25_YAML_SCALAR || !k25_parse_int(entry->text, &layer) || layer < 0 ||
            layer >= c->num_hidden_layers)
            return k25_fail_at(error, c->file, entry->line, entry->column,
                               "%s.mlp_only_layers: expected a layer from 0 to %d", c->prefix,
                               c->num_hidden_layers - 1);
        c->layer[layer].ffn = K25_DENSE;
    }
    return true;
}

static bool read_ffn_kinds(struct k25_hf_config *c, struct k25_error *error)
{
    static const char *const numbers[] = {"0", "1", NULL}, *const words[] = {"dense", "sparse", NULL};
    const struct k25_yaml_node *freq = c->moe_layer_freq;
    long long every = 1;
    if (freq && freq->kind != K25_YAML_SEQUENCE &&
        (freq->kind != K25_YAML_SCALAR || !k25_parse_int(freq->text, &every) || every < 1 || every > K25_HF_LAYERS))
        return k25_hf_fail(c, "moe_layer_freq", error, "expected a list or a number from 1");
    if (c->decoder_sparse_step < 1)
        return k25_hf_fail(c, "decoder_sparse_step", error, "expected at least 1");
    bool experts = c->n_routed_experts > 0 || c->num_experts > 0 || c->num_local_experts > 0;
    for (int i = 0; experts && i < c->num_hidden_layers; i++)
        if (i >= c->first_k_dense_replace && i % every == 0 && (i + 1) % c->decoder_sparse_step == 0)
            c->layer[i].ffn = K25_MOE;
    /* A list gives every layer and has precedence. */
    if (freq && freq->kind == K25_YAML_SEQUENCE && !read_moe_list(c, "moe_layer_freq", freq, numbers, error))
        return false;
    if (c->mlp_layer_types && !read_moe_list(c, "mlp_layer_types", c->mlp_layer_types, words, error))
        return false;
    return read_dense_layers(c, error);
}

bool k25_hf_layers_read(struct k25_hf_config *c, struct k25_error *error)
{
    if (c->num_hidden_layers < 1 || c->num_hidden_layers > K25_HF_LAYERS)
        return k25_hf_fail(c, "num_hidden_layers", error, "%d is out of range, expected 1 to %d", c->num_hidden_layers,
                           K25_HF_LAYERS);
    return read_attention_kinds(c, error) && read_ffn_kinds(c, error);
}
