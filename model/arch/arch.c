/* The architecture format: its table, the checks between values, and the writer. */
#include "model/arch/arch.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"

const char *const k25_attention_names[K25_ATTENTIONS + 1] = {
    [K25_MLA] = "mla",
    [K25_GQA] = "gqa",
    [K25_GATED_DELTA] = "gated_delta",
};
const char *const k25_ffn_names[K25_FFNS + 1] = {[K25_DENSE] = "dense", [K25_MOE] = "moe"};
const char *const k25_qk_norm_names[K25_QK_NORMS + 1] = {
    [K25_QK_NORM_NONE] = "none",
    [K25_QK_NORM_HEAD] = "head",
    [K25_QK_NORM_FULL] = "full",
};

/* Enough for any model so far, and small enough that a product of four sizes stays below the 2^53 of a double. */
#define SIZE_MAX_ELEMENTS 10000000

#define SIZE(record, member, low, text)                                                                                \
    K25_FIELD(INT, record, member, .min = (low), .max = SIZE_MAX_ELEMENTS, .doc = (text))
#define SIZE_OR(record, member, standard, text)                                                                        \
    K25_FIELD(INT, record, member, .fallback = (standard), .max = SIZE_MAX_ELEMENTS, .doc = (text))
#define FLAG(record, member, text) K25_FIELD(BOOL, record, member, .fallback = "false", .doc = (text))
#define SECTION(member, table, text)                                                                                   \
    K25_FIELD(MAP, k25_architecture, member, .fallback = "", .fields = (table), .doc = (text))
#define TEXT(record, member, standard, text) K25_FIELD(TEXT, record, member, .fallback = (standard), .doc = (text))

static const struct k25_field mla_fields[] = {
    SIZE(k25_mla, heads, 1, "attention heads"),
    SIZE_OR(k25_mla, q_lora_rank, "0", "rank of the query down-projection; 0: queries in one step"),
    SIZE(k25_mla, kv_lora_rank, 1, "elements of the latent"),
    SIZE(k25_mla, qk_nope_dim, 1, "elements of a query or key head without rotary position"),
    SIZE(k25_mla, qk_rope_dim, 0, "elements with rotary position, one key for all heads"),
    SIZE(k25_mla, v_dim, 1, "elements of a value head"),
    {0},
};

static const struct k25_field gqa_fields[] = {
    SIZE(k25_gqa, heads, 1, "query heads"),
    SIZE(k25_gqa, kv_heads, 1, "key and value heads; divides heads"),
    SIZE(k25_gqa, head_dim, 1, "elements a head"),
    K25_FIELD(ENUM, k25_gqa, qk_norm, .fallback = "none", .names = k25_qk_norm_names,
              .doc = "norm on queries and keys: per head, or full over all heads"),
    FLAG(k25_gqa, bias, "biases on the q, k and v projections"),
    FLAG(k25_gqa, output_gate, "the q projection is twice as wide and its second half gates the output"),
    {0},
};

static const struct k25_field linear_fields[] = {
    SIZE(k25_linear_attention, value_heads, 1, "value heads"),
    SIZE(k25_linear_attention, key_heads, 1, "key heads; divides value_heads"),
    SIZE(k25_linear_attention, value_dim, 1, "elements a value head"),
    SIZE(k25_linear_attention, key_dim, 1, "elements a key head"),
    SIZE(k25_linear_attention, conv_kernel, 0, "taps of the short convolution"),
    K25_FIELD(INT, k25_linear_attention, state_bits, .fallback = "32", .min = 8, .max = 64, .unit = "bits",
              .doc = "one element of the recurrent state"),
    {0},
};

static const struct k25_field indexer_fields[] = {
    SIZE(k25_indexer, heads, 1, "heads that score the cached tokens"),
    SIZE(k25_indexer, dim, 1, "elements a head"),
    SIZE(k25_indexer, topk, 1, "tokens that attention then reads"),
    {0},
};

static const struct k25_field dense_fields[] = {
    SIZE(k25_dense_ffn, intermediate, 1, "width of the feed-forward network"),
    {0},
};

static const struct k25_field moe_fields[] = {
    SIZE(k25_moe, experts, 1, "routed experts"),
    SIZE(k25_moe, experts_per_token, 1, "routed experts a token is sent to"),
    SIZE(k25_moe, intermediate, 1, "width of one routed expert"),
    SIZE_OR(k25_moe, shared_experts, "0", "experts every token goes through"),
    SIZE_OR(k25_moe, shared_intermediate, "0", "width of all shared experts together"),
    FLAG(k25_moe, shared_gate, "a hidden x 1 gate on the shared experts"),
    FLAG(k25_moe, router_bias, "one correction bias an expert, added to the scores before the top-k"),
    {0},
};

const struct k25_field k25_layers_fields[] = {
    SIZE(k25_layers, count, 1, "layers of this kind"),
    K25_FIELD(ENUM, k25_layers, attention, .names = k25_attention_names,
              .doc = "which section describes the attention (gated_delta: linear)"),
    K25_FIELD(ENUM, k25_layers, ffn, .names = k25_ffn_names, .doc = "which section describes the feed-forward part"),
    K25_FIELD(INT, k25_layers, window, .fallback = "0", .max = SIZE_MAX_ELEMENTS, .unit = "tokens",
              .doc = "how far back attention looks; 0: all tokens"),
    FLAG(k25_layers, indexer, "attention reads only the tokens that the indexer picks"),
    FLAG(k25_layers, shared_indexer, "the picks are those of an earlier layer's indexer"),
    {0},
};

/* Loading needs a member for the list, --set does not: it is placed after the architecture, so that the offsets of the
 * table apply to both. */
struct document {
    struct k25_architecture architecture;
    const struct k25_yaml_node *layers;
};

const struct k25_field k25_architecture_fields[] = {
    TEXT(k25_architecture, name, NULL, "name of the architecture, as scenarios use it"),
    TEXT(k25_architecture, source, NULL, "where the figures were read"),
    SIZE(k25_architecture, hidden, 1, "width of the residual stream (H)"),
    SIZE(k25_architecture, vocabulary, 1, "rows of the embedding"),
    FLAG(k25_architecture, tied_embeddings, "lm_head is the embedding matrix"),
    K25_FIELD(INT, k25_architecture, max_context, .min = 1, .max = 1e9, .unit = "tokens",
              .doc = "longest context that the model supports"),
    K25_FIELD(NODE, document, layers, .doc = "list of {count, attention, ffn, window, indexer, shared_indexer}"),
    SECTION(mla, mla_fields, "multi-head latent attention"),
    SECTION(gqa, gqa_fields, "grouped-query attention"),
    SECTION(linear, linear_fields, "gated delta-rule linear attention"),
    SECTION(indexer, indexer_fields, "sparse-attention indexer"),
    SECTION(dense, dense_fields, "dense feed-forward network"),
    SECTION(moe, moe_fields, "mixture of experts"),
    SIZE_OR(k25_architecture, mtp_layers, "0", "multi-token-prediction modules in the checkpoint"),
    TEXT(k25_architecture, unmodelled, "", "parts that k25sim has no physics for, in words"),
    {0},
};

/* Layers use sections of the file: each used section must exist, and each existing section must be used. */
static bool check_sections(const struct k25_architecture *a, const struct k25_inputs *inputs, struct k25_error *error)
{
    enum { INDEXER = K25_ATTENTIONS, DENSE, MOE, SECTIONS }; /* after one for each kind of attention */
    const struct {
        const char *name, *size; /* its key, and a key that it cannot be without */
        bool given;
    } section[SECTIONS] = {
        [K25_MLA] = {"mla", "mla.heads", a->mla.heads > 0},
        [K25_GQA] = {"gqa", "gqa.heads", a->gqa.heads > 0},
        [K25_GATED_DELTA] = {"linear", "linear.value_heads", a->linear.value_heads > 0},
        [INDEXER] = {"indexer", "indexer.heads", a->indexer.heads > 0},
        [DENSE] = {"dense", "dense.intermediate", a->dense.intermediate > 0},
        [MOE] = {"moe", "moe.experts", a->moe.experts > 0},
    };
    bool used[SECTIONS] = {false};
    for (size_t i = 0; i < a->layer_groups; i++) {
        const struct k25_layers *layers = &a->layers[i];
        const unsigned needs[3] = {layers->attention, layers->ffn == K25_MOE ? MOE : DENSE,
                                   layers->indexer ? INDEXER : SECTIONS};
        static const char *const keys[3] = {"attention", "ffn", "indexer"};
        for (int j = 0; j < 3; j++) {
            char path[64];
            if (needs[j] == SECTIONS)
                continue;
            used[needs[j]] = true;
            if (section[needs[j]].given)
                continue;
            snprintf(path, sizeof path, "architecture.layers[%zu].%s", i, keys[j]);
            return k25_inputs_fail(inputs, path, error, "these layers need a section '%s', and there is none",
                                   section[needs[j]].name);
        }
    }
    for (int i = 0; i < SECTIONS; i++) {
        char path[64];
        if (!section[i].given || used[i])
            continue;
        snprintf(path, sizeof path, "architecture.%s", section[i].size);
        return k25_inputs_fail(inputs, path, error, "no entry of 'layers' uses the section '%s'", section[i].name);
    }
    return true;
}

static bool check_attention(const struct k25_architecture *a, const struct k25_inputs *inputs, struct k25_error *error)
{
    if (a->gqa.heads > 0 && a->gqa.heads % a->gqa.kv_heads != 0)
        return k25_inputs_fail(inputs, "architecture.gqa.kv_heads", error, "%d does not divide %d heads",
                               a->gqa.kv_heads, a->gqa.heads);
    if (a->linear.value_heads > 0 && a->linear.value_heads % a->linear.key_heads != 0)
        return k25_inputs_fail(inputs, "architecture.linear.key_heads", error, "%d does not divide %d value heads",
                               a->linear.key_heads, a->linear.value_heads);
    bool picks = false; /* some layer has an indexer that others can share */
    for (size_t i = 0; i < a->layer_groups; i++)
        picks = picks || (a->layers[i].indexer && !a->layers[i].shared_indexer);
    for (size_t i = 0; i < a->layer_groups; i++) {
        char path[64];
        snprintf(path, sizeof path, "architecture.layers[%zu].shared_indexer", i);
        if (a->layers[i].shared_indexer && !(a->layers[i].indexer && picks))
            return k25_inputs_fail(inputs, path, error,
                                   "expected indexer: true with it, and other layers with an "
                                   "indexer to share");
        if (!a->layers[i].indexer)
            continue;
        snprintf(path, sizeof path, "architecture.layers[%zu].indexer", i);
        if (a->layers[i].attention != K25_MLA)
            return k25_inputs_fail(inputs, path, error, "an indexer works on mla attention, not on %s",
                                   k25_attention_names[a->layers[i].attention]);
        if (a->mla.q_lora_rank == 0)
            return k25_inputs_fail(inputs, path, error, "an indexer reads the query latent, and mla.q_lora_rank is 0");
    }
    return true;
}

static bool check_experts(const struct k25_architecture *a, const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct k25_moe *moe = &a->moe;
    if (moe->experts_per_token > moe->experts)
        return k25_inputs_fail(inputs, "architecture.moe.experts_per_token", error,
                               "a token cannot go to %d of %d experts", moe->experts_per_token, moe->experts);
    if (moe->shared_experts > 0 && moe->shared_intermediate == 0)
        return k25_inputs_fail(inputs, "architecture.moe.shared_experts", error,
                               "%d shared experts need 'shared_intermediate', their width together",
                               moe->shared_experts);
    if (moe->shared_experts == 0 && moe->shared_intermediate > 0)
        return k25_inputs_fail(inputs, "architecture.moe.shared_intermediate", error,
                               "there are no shared experts to be %d wide", moe->shared_intermediate);
    if (moe->shared_experts == 0 && moe->shared_gate)
        return k25_inputs_fail(inputs, "architecture.moe.shared_gate", error, "there are no shared experts to gate");
    return true;
}

bool k25_architecture_check(const struct k25_architecture *architecture, const struct k25_inputs *inputs,
                            struct k25_error *error)
{
    static const struct k25_inputs nowhere;
    if (!inputs)
        inputs = &nowhere;
    return check_sections(architecture, inputs, error) && check_attention(architecture, inputs, error) &&
           check_experts(architecture, inputs, error);
}

static bool load_layers(const struct k25_yaml_node *list, const char *file, struct k25_architecture *a,
                        struct k25_inputs *inputs, struct k25_error *error)
{
    if (list->kind != K25_YAML_SEQUENCE)
        return k25_fail_at(error, file, list->line, list->column, "architecture.layers: expected a list, found %s",
                           k25_yaml_kind_name(list->kind));
    if (list->count == 0 || list->count > K25_MAX_LAYER_GROUPS)
        return k25_fail_at(error, file, list->line, list->column,
                           "architecture.layers: expected 1 to %d groups of layers, found %zu", K25_MAX_LAYER_GROUPS,
                           list->count);
    for (size_t i = 0; i < list->count; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "architecture.layers[%zu]", i);
        if (!k25_schema_load(k25_layers_fields, prefix, list->values[i], file, &a->layers[i], inputs, error))
            return false;
    }
    a->layer_groups = list->count;
    return true;
}

bool k25_architecture_load(const char *path, struct k25_architecture *architecture, struct k25_inputs *inputs,
                           struct k25_error *error)
{
    struct k25_inputs own = {0};
    struct k25_inputs *record = inputs ? inputs : &own; /* the checks below need positions either way */
    struct document *document = calloc(1, sizeof *document);
    struct k25_yaml *yaml = document ? k25_yaml_read(path, record, error) : NULL;
    bool done = false;
    if (!document)
        k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    if (yaml) {
        const char *file = k25_yaml_file(yaml);
        done = k25_schema_head(yaml, "architecture", error) &&
               k25_schema_load(k25_architecture_fields, "architecture", k25_yaml_root(yaml), file, document, record,
                               error) &&
               load_layers(document->layers, file, &document->architecture, record, error) &&
               k25_architecture_check(&document->architecture, record, error);
    }
    if (done)
        *architecture = document->architecture;
    k25_yaml_free(yaml);
    k25_inputs_free(&own);
    free(document);
    return done;
}

int k25_layer_count(const struct k25_architecture *architecture)
{
    int count = 0;
    for (size_t i = 0; i < architecture->layer_groups; i++)
        count += architecture->layers[i].count;
    return count;
}

const char *k25_architecture_unsupported(const struct k25_architecture *architecture)
{
    return architecture->unmodelled[0] != '\0' ? architecture->unmodelled : NULL;
}

static void print_sections(FILE *out, const struct k25_architecture *a)
{
    if (a->mla.heads > 0)
        fprintf(out,
                "mla: {heads: %d, q_lora_rank: %d, kv_lora_rank: %d, qk_nope_dim: %d, qk_rope_dim: %d, v_dim: %d}\n",
                a->mla.heads, a->mla.q_lora_rank, a->mla.kv_lora_rank, a->mla.qk_nope_dim, a->mla.qk_rope_dim,
                a->mla.v_dim);
    if (a->gqa.heads > 0)
        fprintf(out, "gqa: {heads: %d, kv_heads: %d, head_dim: %d, qk_norm: %s, bias: %s, output_gate: %s}\n",
                a->gqa.heads, a->gqa.kv_heads, a->gqa.head_dim, k25_qk_norm_names[a->gqa.qk_norm],
                a->gqa.bias ? "true" : "false", a->gqa.output_gate ? "true" : "false");
    if (a->linear.value_heads > 0)
        fprintf(out,
                "linear: {value_heads: %d, key_heads: %d, value_dim: %d, key_dim: %d, conv_kernel: %d, "
                "state_bits: %d}\n",
                a->linear.value_heads, a->linear.key_heads, a->linear.value_dim, a->linear.key_dim,
                a->linear.conv_kernel, a->linear.state_bits);
    if (a->indexer.heads > 0)
        fprintf(out, "indexer: {heads: %d, dim: %d, topk: %d}\n", a->indexer.heads, a->indexer.dim, a->indexer.topk);
    if (a->dense.intermediate > 0)
        fprintf(out, "dense: {intermediate: %d}\n", a->dense.intermediate);
    if (a->moe.experts > 0) {
        fprintf(out, "moe:\n  experts: %d\n  experts_per_token: %d\n  intermediate: %d\n", a->moe.experts,
                a->moe.experts_per_token, a->moe.intermediate);
        fprintf(out, "  shared_experts: %d\n  shared_intermediate: %d\n", a->moe.shared_experts,
                a->moe.shared_intermediate);
        fprintf(out, "  shared_gate: %s\n  router_bias: %s\n", a->moe.shared_gate ? "true" : "false",
                a->moe.router_bias ? "true" : "false");
    }
}

static void print_layers(FILE *out, const struct k25_architecture *a)
{
    fputs("layers:\n", out);
    for (size_t i = 0; i < a->layer_groups; i++) {
        const struct k25_layers *layers = &a->layers[i];
        fprintf(out, "  - {count: %d, attention: %s, ffn: %s", layers->count, k25_attention_names[layers->attention],
                k25_ffn_names[layers->ffn]);
        if (layers->window > 0)
            fprintf(out, ", window: %d", layers->window);
        if (layers->indexer)
            fputs(", indexer: true", out);
        if (layers->shared_indexer)
            fputs(", shared_indexer: true", out);
        fputs("}\n", out);
    }
}

char *k25_architecture_print(const struct k25_architecture *architecture, struct k25_error *error)
{
    const struct k25_architecture *a = architecture;
    struct k25_printer printer;
    if (!k25_print_open(&printer, error))
        return NULL;
    fputs("k25sim: architecture\nversion: 1\n", printer.out);
    k25_print_text(printer.out, "name", a->name);
    k25_print_text(printer.out, "source", a->source);
    fprintf(printer.out, "hidden: %d\nvocabulary: %d\n", a->hidden, a->vocabulary);
    fprintf(printer.out, "tied_embeddings: %s\nmax_context: %d\n", a->tied_embeddings ? "true" : "false",
            a->max_context);
    print_layers(printer.out, a);
    print_sections(printer.out, a);
    fprintf(printer.out, "mtp_layers: %d\n", a->mtp_layers);
    if (a->unmodelled[0] != '\0')
        k25_print_text(printer.out, "unmodelled", a->unmodelled);
    return k25_print_close(&printer, error);
}
