/* From the keys of a Hugging Face config to an architecture. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/hf/internal.h"

/* Properties of a family that are in its code and not in its config; transformers, models/NAME/modeling_NAME.py. */
struct k25_hf_family {
    const char *model_type;
    enum k25_qk_norm qk_norm; /* unless the config gives one */
    bool shared_gate;         /* shared experts have a gate */
    bool router_bias;         /* the router has a bias or correction bias without a key for it */
    bool unshipped_mtp;       /* MTP modules in the config but in no checkpoint */
    const char *unmodelled;
};

static const struct k25_hf_family families[] = {
    {"deepseek_v3", K25_QK_NORM_NONE, false, false, false, NULL},
    {"deepseek_v32", K25_QK_NORM_NONE, false, false, false, NULL},
    {"kimi_k2", K25_QK_NORM_NONE, false, false, false, NULL},
    {"kimi_linear", K25_QK_NORM_NONE, false, false, false, NULL},
    {"glm_moe_dsa", K25_QK_NORM_NONE, false, false, false, NULL},
    {"glm4_moe", K25_QK_NORM_NONE, false, true, false, NULL},
    {"minimax_m2", K25_QK_NORM_FULL, false, false, true, NULL},
    {"minimax_m3", K25_QK_NORM_HEAD, false, false, false, NULL},
    {"qwen3", K25_QK_NORM_HEAD, false, false, false, NULL},
    {"qwen3_moe", K25_QK_NORM_HEAD, false, false, false, NULL},
    {"qwen3_5_moe_text", K25_QK_NORM_HEAD, true, false, false, NULL},
    {"llama", K25_QK_NORM_NONE, false, false, false, NULL},
    {"gpt_oss", K25_QK_NORM_NONE, false, true, false, "attention sinks, biases of o_proj and of the experts"},
};
#define FAMILIES (sizeof families / sizeof families[0])

static bool find_family(struct k25_hf_config *c, struct k25_error *error)
{
    const char *names[FAMILIES + 1] = {NULL};
    char hint[128], list[256] = "";
    for (size_t i = 0; i < FAMILIES; i++) {
        names[i] = families[i].model_type;
        if (strcmp(names[i], c->model_type) == 0)
            c->family = &families[i];
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return c->family ? true
                     : k25_hf_fail(c, "model_type", error, "'%s' is not among %s%s", c->model_type, list,
                                   k25_did_you_mean(c->model_type, names, hint, sizeof hint));
}

bool k25_hf_unshipped_mtp(const struct k25_hf_config *config)
{
    return config->family->unshipped_mtp && config->use_mtp && config->num_mtp_modules > 0;
}

/* Adds to `unmodelled` what the architecture cannot express in figures. */
static bool add_unmodelled(const struct k25_hf_config *c, struct k25_architecture *a, const char *key, const char *what,
                           struct k25_error *error)
{
    size_t used = strlen(a->unmodelled);
    int length = snprintf(a->unmodelled + used, sizeof a->unmodelled - used, "%s%s", used > 0 ? ", " : "", what);
    return (size_t)length < sizeof a->unmodelled - used
               ? true
               : k25_hf_fail(c, key, error, "too many parts without physics: %.80s...", a->unmodelled);
}

static bool is_on(const struct k25_yaml_node *node)
{
    return node && !(node->kind == K25_YAML_SCALAR && strcmp(node->text, "false") == 0);
}

static bool find_unmodelled(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    const struct {
        bool present;
        const char *key, *what;
    } parts[] = {
        {c->family->unmodelled != NULL, "model_type", c->family->unmodelled},
        {is_on(c->linear_attn_config), "linear_attn_config", "Kimi delta attention"},
        {is_on(c->mla_use_output_gate), "mla_use_output_gate", "MLA output gate"},
        {is_on(c->mla_use_nope), "mla_use_nope", "MLA without rotary position"},
        {is_on(c->attn_res_block_size), "attn_res_block_size", "attention residuals"},
        {is_on(c->routed_expert_hidden_size), "routed_expert_hidden_size", "experts in a latent space"},
        {is_on(c->sparse_attention_config), "sparse_attention_config", "block-sparse attention with index heads"},
        {c->mtp_use_dedicated_embeddings, "mtp_use_dedicated_embeddings", "MTP modules with separate embeddings"},
        {c->mlp_bias, "mlp_bias", "biases in the feed-forward network"},
        {c->kv_lora_rank > 0 && (c->attention_bias || c->qkv_bias), "attention_bias", "biases in MLA"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].present && !add_unmodelled(c, a, parts[i].key, parts[i].what, error))
            return false;
    /* GLM-5.2 has both keys; without the list the frequency is used. */
    if (!c->indexer_types && (c->index_topk_freq > 1 || c->index_topk_pattern))
        return add_unmodelled(c, a, "index_topk_freq", "indexer shared between layers", error);
    return true;
}

/* Refuses values of other kinds of models. */
static bool check_words(const struct k25_hf_config *c, struct k25_error *error)
{
    /* All of these have a gate and an up-projection: three matrices. */
    static const char *const gated[] = {"silu", "swiglu", "swigluoai", "situ", NULL};
    char hint[64];
    bool known = false;
    for (int i = 0; gated[i]; i++)
        known = known || strcmp(gated[i], c->hidden_act) == 0;
    if (!known)
        return k25_hf_fail(c, "hidden_act", error, "'%s' is not among silu, swiglu, swigluoai, situ%s", c->hidden_act,
                           k25_did_you_mean(c->hidden_act, gated, hint, sizeof hint));
    if (c->is_encoder_decoder)
        return k25_hf_fail(c, "is_encoder_decoder", error, "only decoders are known");
    if (c->add_cross_attention)
        return k25_hf_fail(c, "add_cross_attention", error, "only decoders are known");
    return true;
}

/* Two keys for one figure must agree; either may be absent (0). */
static bool agree(const struct k25_hf_config *c, const char *key, int a, int b, int *value, struct k25_error *error)
{
    if (a > 0 && b > 0 && a != b)
        return k25_hf_fail(c, key, error, "%d here and %d under another name", a, b);
    *value = a > 0 ? a : b;
    return true;
}

static bool same_kind(const struct k25_layers *a, const struct k25_layers *b)
{
    return a->attention == b->attention && a->ffn == b->ffn && a->window == b->window && a->indexer == b->indexer &&
           a->shared_indexer == b->shared_indexer;
}

/* Layers of one kind become one group, in the order of first appearance; the kind of the last layer is moved to the
 * end, because the MTP modules are layers of that kind. */
static bool group_layers(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    const struct k25_layers *last = &c->layer[c->num_hidden_layers - 1];
    size_t n = 0;
    for (int i = 0; i < c->num_hidden_layers; i++) {
        size_t j = 0;
        while (j < n && !same_kind(&a->layers[j], &c->layer[i]))
            j++;
        if (j == K25_MAX_LAYER_GROUPS)
            return k25_hf_fail(c, "num_hidden_layers", error, "more than %d kinds of layers", K25_MAX_LAYER_GROUPS);
        if (j == n) {
            a->layers[n] = c->layer[i];
            a->layers[n++].count = 0;
        }
        a->layers[j].count++;
    }
    for (size_t j = 0; j + 1 < n; j++) {
        if (!same_kind(&a->layers[j], last))
            continue;
        struct k25_layers moved = a->layers[j];
        memmove(&a->layers[j], &a->layers[j + 1], (n - 1 - j) * sizeof moved);
        a->layers[n - 1] = moved;
        break;
    }
    a->layer_groups = n;
    return true;
}

static bool has_attention(const struct k25_architecture *a, enum k25_attention attention)
{
    for (size_t i = 0; i < a->layer_groups; i++)
        if (a->layers[i].attention == attention)
            return true;
    return false;
}

static bool has_ffn(const struct k25_architecture *a, enum k25_ffn ffn)
{
    for (size_t i = 0; i < a->layer_groups; i++)
        if (a->layers[i].ffn == ffn)
            return true;
    return false;
}

static bool build_mla(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    if (c->qk_nope_head_dim == 0 || c->v_head_dim == 0)
        return k25_hf_fail(c, "kv_lora_rank", error, "MLA needs 'qk_nope_head_dim' and 'v_head_dim' too");
    if (c->qk_head_dim > 0 && c->qk_head_dim != c->qk_nope_head_dim + c->qk_rope_head_dim)
        return k25_hf_fail(c, "qk_head_dim", error, "%d is not qk_nope_head_dim %d + qk_rope_head_dim %d",
                           c->qk_head_dim, c->qk_nope_head_dim, c->qk_rope_head_dim);
    a->mla = (struct k25_mla){.heads = c->num_attention_heads,
                              .q_lora_rank = c->q_lora_rank,
                              .kv_lora_rank = c->kv_lora_rank,
                              .qk_nope_dim = c->qk_nope_head_dim,
                              .qk_rope_dim = c->qk_rope_head_dim,
                              .v_dim = c->v_head_dim};
    return true;
}

static bool build_gqa(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    static const char *const types[] = {"per_head", "per_layer", NULL}; /* MiniMax's words */
    struct k25_gqa *g = &a->gqa;
    g->heads = c->num_attention_heads;
    g->kv_heads = c->num_key_value_heads > 0 ? c->num_key_value_heads : g->heads;
    g->head_dim = c->head_dim > 0 ? c->head_dim : c->hidden_size / g->heads; /* transformers' default */
    g->bias = c->attention_bias || c->qkv_bias;
    g->output_gate = c->attn_output_gate || c->attention_output_gate;
    g->qk_norm = c->family->qk_norm;
    const struct k25_yaml_node *said = k25_yaml_get(c->node, "use_qk_norm");
    if (said && said->text && strcmp(said->text, "null") == 0)
        said = NULL;
    if (said && c->use_qk_norm && g->qk_norm == K25_QK_NORM_NONE)
        g->qk_norm = K25_QK_NORM_HEAD;
    if (said && !c->use_qk_norm)
        g->qk_norm = K25_QK_NORM_NONE;
    if (c->qk_norm_type[0] != '\0' && g->qk_norm != K25_QK_NORM_NONE) {
        int type = k25_hf_word(c, "qk_norm_type", k25_yaml_get(c->node, "qk_norm_type"), types, error);
        if (type < 0)
            return false;
        g->qk_norm = type == 1 ? K25_QK_NORM_FULL : K25_QK_NORM_HEAD;
    }
    if (g->head_dim == 0)
        return k25_hf_fail(c, "num_attention_heads", error, "%d heads in a width of %d", g->heads, c->hidden_size);
    if (g->heads % g->kv_heads != 0)
        return k25_hf_fail(c, "num_key_value_heads", error, "%d does not divide %d heads", g->kv_heads, g->heads);
    return true;
}

static bool build_linear(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    static const char *const types[] = {"float32", "bfloat16", NULL};
    int type = 0;
    if (c->mamba_ssm_dtype[0] != '\0') {
        type = k25_hf_word(c, "mamba_ssm_dtype", k25_yaml_get(c->node, "mamba_ssm_dtype"), types, error);
        if (type < 0)
            return false;
    }
    a->linear = (struct k25_linear_attention){.value_heads = c->linear_num_value_heads,
                                              .key_heads = c->linear_num_key_heads,
                                              .value_dim = c->linear_value_head_dim,
                                              .key_dim = c->linear_key_head_dim,
                                              .conv_kernel = c->linear_conv_kernel_dim,
                                              .state_bits = type == 1 ? 16 : 32};
    if (a->linear.value_heads == 0 || a->linear.key_heads == 0 || a->linear.value_dim == 0 || a->linear.key_dim == 0)
        return k25_hf_fail(c, c->layer_types ? "layer_types" : "full_attention_interval", error,
                           "linear attention needs linear_num_value_heads, linear_num_key_heads, "
                           "linear_value_head_dim and linear_key_head_dim");
    if (a->linear.value_heads % a->linear.key_heads != 0)
        return k25_hf_fail(c, "linear_num_key_heads", error, "%d does not divide %d value heads", a->linear.key_heads,
                           a->linear.value_heads);
    return true;
}

static bool build_experts(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    struct k25_moe *m = &a->moe;
    int shared = 0;
    if (!agree(c, "num_experts", c->n_routed_experts, c->num_experts, &m->experts, error) ||
        !agree(c, "num_local_experts", m->experts, c->num_local_experts, &m->experts, error) ||
        !agree(c, "num_experts_per_token", c->num_experts_per_tok, c->num_experts_per_token, &m->experts_per_token,
               error) ||
        !agree(c, "experts_per_token", m->experts_per_token, c->experts_per_token, &m->experts_per_token, error) ||
        !agree(c, "num_shared_experts", c->n_shared_experts, c->num_shared_experts, &shared, error))
        return false;
    /* MiniMax-M2 and gpt-oss have no dense layers, and their intermediate_size is that of an expert. */
    m->intermediate = c->moe_intermediate_size > 0 ? c->moe_intermediate_size : c->intermediate_size;
    if (m->experts < 1 || m->experts_per_token < 1 || m->intermediate < 1)
        return k25_hf_fail(c, "n_routed_experts", error,
                           "%d experts of width %d, %d a token: a layer with experts needs all three above 0",
                           m->experts, m->intermediate, m->experts_per_token);
    if (m->experts_per_token > m->experts)
        return k25_hf_fail(c, "num_experts_per_tok", error, "a token cannot go to %d of %d experts",
                           m->experts_per_token, m->experts);
    long long width = (long long)shared * m->intermediate; /* DeepSeek: each as wide as a routed one */
    if (c->shared_expert_intermediate_size > 0)
        width = c->shared_expert_intermediate_size; /* Qwen: one */
    if (c->shared_intermediate_size > 0)
        width = c->shared_intermediate_size; /* MiniMax: together */
    if (width > 10000000)
        return k25_hf_fail(c, "n_shared_experts", error, "%lld wide together is too much", width);
    m->shared_intermediate = (int)width;
    m->shared_experts = width > 0 ? (shared > 0 ? shared : 1) : 0;
    m->shared_gate = c->family->shared_gate && width > 0;
    m->router_bias = c->family->router_bias || c->use_routing_bias || strcmp(c->topk_method, "noaux_tc") == 0;
    return true;
}

static bool build_ffn(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    if (has_ffn(a, K25_DENSE)) {
        a->dense.intermediate = c->dense_intermediate_size > 0 ? c->dense_intermediate_size : c->intermediate_size;
        if (a->dense.intermediate == 0)
            return k25_hf_fail(c, "intermediate_size", error, "the dense layers need a width above 0");
    }
    return !has_ffn(a, K25_MOE) || build_experts(c, a, error);
}

static bool build_mtp(const struct k25_hf_config *c, struct k25_architecture *a, struct k25_error *error)
{
    /* MiniMax-M3 runs one module seven times: num_nextn_predict_layers 1 is what the checkpoint holds. */
    long long modules = c->num_nextn_predict_layers;
    if (modules == 0)
        modules = c->mtp_num_hidden_layers;
    if (modules == 0 && c->use_mtp)
        modules = (long long)c->num_mtp_modules * c->mtp_transformer_layers;
    if (modules > 64)
        return k25_hf_fail(c, "num_hidden_layers", error, "%lld MTP layers are too many", modules);
    a->mtp_layers = (int)modules;
    return true;
}

static bool check_sizes(const struct k25_hf_config *c, struct k25_error *error)
{
    if (c->hidden_size < 1)
        return k25_hf_fail(c, "hidden_size", error, "expected at least 1");
    if (c->vocab_size < 1)
        return k25_hf_fail(c, "vocab_size", error, "expected at least 1");
    if (c->max_position_embeddings < 1)
        return k25_hf_fail(c, "max_position_embeddings", error, "expected at least 1");
    if (c->num_attention_heads < 1)
        return k25_hf_fail(c, "num_attention_heads", error, "expected at least 1");
    if (c->index_topk > 0 && (c->index_n_heads < 1 || c->index_head_dim < 1))
        return k25_hf_fail(c, "index_topk", error, "an indexer needs 'index_n_heads' and 'index_head_dim' too");
    if (c->index_topk > 0 && (c->kv_lora_rank == 0 || c->q_lora_rank == 0))
        return k25_hf_fail(c, "index_topk", error, "an indexer needs MLA with a 'q_lora_rank'");
    return true;
}

bool k25_hf_config_build(struct k25_hf_config *config, struct k25_architecture *architecture, struct k25_error *error)
{
    const struct k25_hf_config *c = config;
    struct k25_architecture *a = architecture;
    if (!find_family(config, error) || !check_words(c, error) || !check_sizes(c, error) ||
        !k25_hf_layers_read(config, error) || !group_layers(c, a, error))
        return false;
    a->hidden = c->hidden_size;
    a->vocabulary = c->vocab_size;
    a->tied_embeddings = c->tie_word_embeddings;
    a->max_context = c->max_position_embeddings;
    if (c->index_topk > 0)
        a->indexer = (struct k25_indexer){.heads = c->index_n_heads, .dim = c->index_head_dim, .topk = c->index_topk};
    return (!has_attention(a, K25_MLA) || build_mla(c, a, error)) &&
           (!has_attention(a, K25_GQA) || build_gqa(c, a, error)) &&
           (!has_attention(a, K25_GATED_DELTA) || build_linear(c, a, error)) && build_ffn(c, a, error) &&
           build_mtp(c, a, error) && find_unmodelled(c, a, error) && k25_architecture_check(a, NULL, error);
}
