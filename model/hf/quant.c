/* Quantisation formats of Hugging Face checkpoints: compressed-tensors, fp8, modelopt, mxfp4, awq. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/hf/internal.h"

/* The description being read. Members carry the names of the keys of all methods. */
struct quant {
    const struct k25_hf_config *config;
    const char *file;
    char path[64]; /* of the description, for messages */
    int mtp_layers;

    char quant_method[32], quant_algo[32], format[48];
    int bits, group_size;
    bool zero_point;
    const struct k25_yaml_node *weight_block_size, *modules_to_not_convert, *config_groups, *ignore;
    const struct k25_yaml_node *quantization, *sparsity_config, *transform_config, *ignored;
};

#define NUMBER(name, standard) K25_FIELD(INT, quant, name, .fallback = (standard), .min = 0, .max = 1e6)
#define WORD(name, standard) K25_FIELD(TEXT, quant, name, .fallback = (standard))
#define NODE(name) K25_FIELD(NODE, quant, name, .fallback = "")
#define IGNORED(name) K25_FIELD_AS(NODE, quant, ignored, name, .fallback = "")

static const struct k25_field fp8_fields[] = {
    WORD(quant_method, NULL),
    NODE(weight_block_size),
    NODE(modules_to_not_convert),
    IGNORED("activation_scheme"),
    IGNORED("fmt"),
    IGNORED("scale_fmt"),
    {0},
};
static const struct k25_field mxfp4_fields[] = {WORD(quant_method, NULL), NODE(modules_to_not_convert), {0}};
static const struct k25_field awq_fields[] = {
    WORD(quant_method, NULL),     NUMBER(bits, NULL),
    NUMBER(group_size, NULL),     K25_FIELD(BOOL, quant, zero_point, .fallback = "true"),
    NODE(modules_to_not_convert), IGNORED("version"),
    IGNORED("backend"),           {0},
};
/* The format of the cache (kv_cache_...) is set by the plan, not by the checkpoint. */
static const struct k25_field compressed_fields[] = {
    WORD(quant_method, NULL),
    WORD(format, ""),
    NODE(config_groups),
    NODE(ignore),
    NODE(sparsity_config),
    NODE(transform_config),
    IGNORED("kv_cache_scheme"),
    IGNORED("quantization_status"),
    IGNORED("global_compression_ratio"),
    IGNORED("version"),
    {0},
};
static const struct k25_field modelopt_fields[] = {
    WORD(quant_method, NULL),
    WORD(quant_algo, ""),
    NODE(config_groups),
    NODE(ignore),
    IGNORED("kv_cache_scheme"),
    IGNORED("producer"),
    {0},
};
static const struct k25_field separate_fields[] = {NODE(quantization), IGNORED("producer"), {0}};
static const struct k25_field separate_inner_fields[] = {
    WORD(quant_algo, ""),
    NUMBER(group_size, "0"),
    IGNORED("kv_cache_quant_algo"),
    K25_FIELD_AS(NODE, quant, ignore, "exclude_modules", .fallback = ""),
    {0},
};

/* One entry of config_groups. */
struct group {
    char format[48];
    struct scheme {
        char type[16], strategy[16];
        int num_bits, group_size;
        bool symmetric;
        const struct k25_yaml_node *block_structure, *ignored;
    } weights;
    const struct k25_yaml_node *targets, *ignored;
};

#define OF_SCHEME(name) K25_FIELD_AS(NODE, scheme, ignored, name, .fallback = "")

static const struct k25_field scheme_fields[] = {
    K25_FIELD(TEXT, scheme, type, .fallback = NULL),
    K25_FIELD(TEXT, scheme, strategy, .fallback = ""),
    K25_FIELD(INT, scheme, num_bits, .min = 1, .max = 32),
    K25_FIELD(INT, scheme, group_size, .fallback = "0", .min = -1, .max = 1e6), /* -1: as long as the row */
    K25_FIELD(BOOL, scheme, symmetric, .fallback = "true"),
    K25_FIELD(NODE, scheme, block_structure, .fallback = ""),
    OF_SCHEME("dynamic"),
    OF_SCHEME("actorder"),
    OF_SCHEME("observer"),
    OF_SCHEME("observer_kwargs"),
    OF_SCHEME("scale_dtype"),
    OF_SCHEME("zp_dtype"),
    {0},
};
static const struct k25_field group_fields[] = {
    K25_FIELD(MAP, group, weights, .fields = scheme_fields),
    K25_FIELD(NODE, group, targets, .fallback = NULL),
    K25_FIELD(TEXT, group, format, .fallback = ""),
    K25_FIELD_AS(NODE, group, ignored, "input_activations", .fallback = ""),
    K25_FIELD_AS(NODE, group, ignored, "output_activations", .fallback = ""),
    {0},
};

static const struct k25_format bf16 = {.kind = K25_BF16, .bits = 16};
static const struct k25_format nvfp4 = {.kind = K25_NVFP4, .bits = 4, .group = 16, .scale_bits = 8};
static const struct k25_format mxfp4 = {.kind = K25_MXFP4, .bits = 4, .group = 32, .scale_bits = 8};

/* The classes that a module list can exclude. The embedding is a table and the router a bare parameter in most
 * families; engines always run both in BF16. Norms are vectors. */
static const enum k25_tensor linear_classes[] = {K25_T_LM_HEAD,          K25_T_ATTENTION, K25_T_INDEXER,
                                                 K25_T_LINEAR_ATTENTION, K25_T_DENSE_FFN, K25_T_ROUTED_EXPERTS,
                                                 K25_T_SHARED_EXPERTS,   K25_T_MTP};
#define LINEAR_CLASSES (sizeof linear_classes / sizeof linear_classes[0])

static bool fail_node(const struct quant *q, const struct k25_yaml_node *node, const char *key, struct k25_error *error,
                      const char *what)
{
    return k25_fail_at(error, q->file, node->line, node->column, "%s.%s: %s", q->path, key, what);
}

/* A class must be completely in the list or not at all: it has one format here. */
static bool check_whole(const struct quant *q, const struct k25_yaml_node *list, const char *key,
                        const struct k25_hf_coverage *coverage, struct k25_error *error)
{
    for (size_t i = 0; i < LINEAR_CLASSES; i++) {
        enum k25_tensor class = linear_classes[i];
        if (coverage->hit[class] == 0 || coverage->hit[class] == coverage->all[class])
            continue;
        return k25_fail_at(error, q->file, list->line, list->column,
                           "%s.%s: names %s and not %s; the tensors of a class (%s) have one format here", q->path, key,
                           coverage->first_hit[class], coverage->first_miss[class], k25_tensor_names[class]);
    }
    return true;
}

static bool cover(const struct quant *q, const struct k25_yaml_node *list, const char *key,
                  struct k25_hf_coverage *coverage, struct k25_error *error)
{
    char path[96];
    snprintf(path, sizeof path, "%s.%s", q->path, key);
    return k25_hf_cover(q->config, list, q->mtp_layers, q->file, path, coverage, error) &&
           check_whole(q, list, key, coverage, error);
}

/* Sets `format` for every class that the model has and the list does not name. */
static bool quantise_all_but(const struct quant *q, const struct k25_yaml_node *list, const char *key, bool lm_head,
                             const struct k25_format *format, struct k25_weights *weights, struct k25_error *error)
{
    struct k25_hf_coverage coverage;
    if (!cover(q, list, key, &coverage, error))
        return false;
    for (size_t i = 0; i < LINEAR_CLASSES; i++) {
        enum k25_tensor class = linear_classes[i];
        if (class == K25_T_LM_HEAD && !lm_head)
            continue;
        if (coverage.all[class] > 0 && coverage.hit[class] == 0)
            weights->format[class] = *format;
    }
    return true;
}

/* [rows, columns] of a block that shares one scale. */
static bool block_size(const struct quant *q, const struct k25_yaml_node *node, const char *key, double *group,
                       struct k25_error *error)
{
    *group = 1;
    if (node->kind != K25_YAML_SEQUENCE || node->count != 2)
        return fail_node(q, node, key, error, "expected a list of two sizes");
    for (size_t i = 0; i < 2; i++) {
        const struct k25_yaml_node *entry = node->values[i];
        long long size = 0;
        if (entry->kind != K25_YAML_SCALAR || !k25_parse_int(entry->text, &size) || size < 1 || size > 10000)
            return fail_node(q, entry, key, error, "expected a size from 1 to 10000");
        *group *= (double)size;
    }
    return true;
}

static bool read_fp8(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w, struct k25_error *error)
{
    struct k25_format fp8 = {.kind = K25_FP8, .bits = 8}; /* without blocks: one scale per matrix, negligible */
    if (!k25_schema_load(fp8_fields, q->path, node, q->file, q, NULL, error))
        return false;
    if (q->weight_block_size) {
        if (!block_size(q, q->weight_block_size, "weight_block_size", &fp8.group, error))
            return false;
        fp8.scale_bits = 32;
    }
    /* Checkpoints of this method keep lm_head in BF16 whether they list it (MiniMax, GLM, Qwen) or not (DeepSeek). */
    return quantise_all_but(q, q->modules_to_not_convert, "modules_to_not_convert", false, &fp8, w, error);
}

static bool read_mxfp4(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w,
                       struct k25_error *error)
{
    struct k25_hf_coverage coverage;
    if (!k25_schema_load(mxfp4_fields, q->path, node, q->file, q, NULL, error) ||
        !cover(q, q->modules_to_not_convert, "modules_to_not_convert", &coverage, error))
        return false;
    /* The method converts expert tensors only, listed or not. */
    if (coverage.all[K25_T_ROUTED_EXPERTS] > 0 && coverage.hit[K25_T_ROUTED_EXPERTS] == 0)
        w->format[K25_T_ROUTED_EXPERTS] = mxfp4;
    return true;
}

static bool read_awq(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w, struct k25_error *error)
{
    if (!k25_schema_load(awq_fields, q->path, node, q->file, q, NULL, error))
        return false;
    if (q->bits != 4)
        return fail_node(q, k25_yaml_get(node, "bits"), "bits", error, "only 4 bits are known");
    if (q->group_size < 1)
        return fail_node(q, k25_yaml_get(node, "group_size"), "group_size", error, "expected at least 1");
    struct k25_format int4 = {
        .kind = K25_INT4, .bits = 4, .group = q->group_size, .scale_bits = q->zero_point ? 20 : 16};
    /* AWQ converts the blocks, not the head. */
    return quantise_all_but(q, q->modules_to_not_convert, "modules_to_not_convert", false, &int4, w, error);
}

static bool is_empty(const struct k25_yaml_node *node)
{
    return !node || (node->kind != K25_YAML_SCALAR && node->count == 0);
}

/* The format of one config group: `type` and `num_bits` give the kind, the name of the packing the kind of FP4. */
static bool format_of(const struct quant *q, const struct k25_yaml_node *node, const struct group *g,
                      struct k25_format *format, struct k25_error *error)
{
    const struct scheme *s = &g->weights;
    const char *packing = g->format[0] != '\0' ? g->format : q->format;
    bool is_float = strcmp(s->type, "float") == 0, grouped = s->group_size > 0;
    if (is_float && s->num_bits == 4 && strncmp(packing, "mxfp4", 5) == 0)
        *format = mxfp4;
    else if (is_float && s->num_bits == 4)
        *format = nvfp4;
    else if (is_float && s->num_bits == 8)
        *format = (struct k25_format){.kind = K25_FP8, .bits = 8};
    else if (strcmp(s->type, "int") == 0 && s->num_bits == 4)
        *format = (struct k25_format){.kind = K25_INT4, .bits = 4};
    else
        return k25_fail_at(error, q->file, node->line, node->column,
                           "%s.config_groups: %d-bit %s weights are not known, expected 4-bit int, 4-bit float or "
                           "8-bit float",
                           q->path, s->num_bits, s->type);
    if (format->bits == 4 && is_float) { /* the group is part of the format */
        if (grouped && s->group_size != (int)format->group)
            return k25_fail_at(error, q->file, node->line, node->column,
                               "%s.config_groups: %s has groups of %g, not %d", q->path,
                               k25_format_kind_names[format->kind], format->group, s->group_size);
        return true;
    }
    if (grouped)
        format->group = s->group_size;
    if (s->block_structure) {
        if (!block_size(q, s->block_structure, "config_groups", &format->group, error))
            return false;
        format->scale_bits = 32;
    } else if (grouped) {
        format->scale_bits = 16 + (s->symmetric ? 0 : s->num_bits);
    }
    return true;
}

static bool targets_linear(const struct k25_yaml_node *targets)
{
    return targets->kind == K25_YAML_SEQUENCE && targets->count == 1 && targets->values[0]->text &&
           strcmp(targets->values[0]->text, "Linear") == 0;
}

/* Groups that name modules come before the group of all Linear modules, as in compressed-tensors. */
static bool read_group(const struct quant *q, const struct k25_yaml_node *node, bool linear_pass, bool *linear_seen,
                       bool assigned[K25_TENSORS], struct k25_weights *chosen, struct k25_error *error)
{
    struct k25_hf_coverage coverage;
    struct k25_format format;
    struct group g = {0};
    char path[96];
    snprintf(path, sizeof path, "%s.config_groups", q->path);
    if (!k25_schema_load(group_fields, path, node, q->file, &g, NULL, error) || !format_of(q, node, &g, &format, error))
        return false;
    if (targets_linear(g.targets) != linear_pass)
        return true;
    if (linear_pass && *linear_seen)
        return fail_node(q, node, "config_groups", error, "a second group for Linear");
    *linear_seen = linear_pass;
    if (!linear_pass && !cover(q, g.targets, "config_groups.targets", &coverage, error))
        return false;
    for (size_t i = 0; i < LINEAR_CLASSES; i++) {
        enum k25_tensor class = linear_classes[i];
        if (assigned[class] || (!linear_pass && coverage.hit[class] == 0))
            continue;
        assigned[class] = true;
        chosen->format[class] = format;
    }
    return true;
}

static bool read_groups(const struct quant *q, struct k25_weights *w, struct k25_error *error)
{
    struct k25_hf_coverage ignored;
    struct k25_weights chosen = *w;
    bool assigned[K25_TENSORS] = {false}, linear_seen = false;
    const struct k25_yaml_node *groups = q->config_groups;
    if (groups->kind != K25_YAML_MAPPING || groups->count == 0 || groups->count > 16)
        return fail_node(q, groups, "config_groups", error, "expected a mapping of 1 to 16 groups");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < groups->count; i++)
            if (!read_group(q, groups->values[i], pass == 1, &linear_seen, assigned, &chosen, error))
                return false;
    if (!cover(q, q->ignore, "ignore", &ignored, error))
        return false;
    for (size_t i = 0; i < LINEAR_CLASSES; i++) {
        enum k25_tensor class = linear_classes[i];
        if (assigned[class] && ignored.all[class] > 0 && ignored.hit[class] == 0)
            w->format[class] = chosen.format[class];
    }
    return true;
}

static bool read_compressed(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w,
                            struct k25_error *error)
{
    if (!k25_schema_load(compressed_fields, q->path, node, q->file, q, NULL, error))
        return false;
    if (!is_empty(q->sparsity_config))
        return fail_node(q, q->sparsity_config, "sparsity_config", error, "sparse weights are not known");
    if (!is_empty(q->transform_config))
        return fail_node(q, q->transform_config, "transform_config", error, "transformed weights are not known");
    if (!q->config_groups)
        return fail_node(q, node, "config_groups", error, "missing");
    return read_groups(q, w, error);
}

/* The format given by the algorithm alone; NULL for an unknown algorithm. */
static bool algo_format(const struct quant *q, const struct k25_yaml_node *node, struct k25_format *format,
                        struct k25_error *error)
{
    static const char *const algos[] = {"NVFP4", "FP8", NULL};
    char hint[64];
    if (strcmp(q->quant_algo, "NVFP4") == 0)
        *format = nvfp4;
    else if (strcmp(q->quant_algo, "FP8") == 0)
        *format = (struct k25_format){.kind = K25_FP8, .bits = 8};
    else {
        const struct k25_yaml_node *at = k25_yaml_get(node, "quant_algo");
        if (!at)
            at = node;
        return k25_fail_at(error, q->file, at->line, at->column, "%s.quant_algo: '%s' is not among NVFP4, FP8%s",
                           q->path, q->quant_algo, k25_did_you_mean(q->quant_algo, algos, hint, sizeof hint));
    }
    if (q->group_size > 0 && q->group_size != (int)format->group)
        return fail_node(q, k25_yaml_get(node, "group_size"), "group_size", error, "NVFP4 has groups of 16");
    return true;
}

static bool read_modelopt(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w,
                          struct k25_error *error)
{
    struct k25_format format;
    if (!k25_schema_load(modelopt_fields, q->path, node, q->file, q, NULL, error) ||
        !algo_format(q, node, &format, error))
        return false;
    if (q->config_groups)
        return read_groups(q, w, error);
    return quantise_all_but(q, q->ignore, "ignore", true, &format, w, error);
}

static bool read_separate(struct quant *q, const struct k25_yaml_node *root, struct k25_weights *w,
                          struct k25_error *error)
{
    struct k25_format format;
    snprintf(q->path, sizeof q->path, "hf_quant_config");
    if (!k25_schema_load(separate_fields, q->path, root, q->file, q, NULL, error))
        return false;
    if (!q->quantization)
        return fail_node(q, root, "quantization", error, "missing");
    const struct k25_yaml_node *node = q->quantization;
    snprintf(q->path, sizeof q->path, "quantization");
    return k25_schema_load(separate_inner_fields, q->path, node, q->file, q, NULL, error) &&
           algo_format(q, node, &format, error) &&
           quantise_all_but(q, q->ignore, "exclude_modules", true, &format, w, error);
}

static bool read_config(struct quant *q, const struct k25_yaml_node *node, struct k25_weights *w,
                        struct k25_error *error)
{
    static const char *const names[] = {"fp8", "mxfp4", "awq", "compressed-tensors", "modelopt", NULL};
    static bool (*const readers[])(struct quant *, const struct k25_yaml_node *, struct k25_weights *,
                                   struct k25_error *) = {read_fp8, read_mxfp4, read_awq, read_compressed,
                                                          read_modelopt};
    const struct k25_yaml_node *method = k25_yaml_get(node, "quant_method");
    char hint[64];
    snprintf(q->path, sizeof q->path, "quantization_config");
    if (!method || method->kind != K25_YAML_SCALAR)
        return fail_node(q, node, "quant_method", error, "missing");
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], method->text) == 0)
            return readers[i](q, node, w, error);
    return k25_fail_at(error, q->file, method->line, method->column,
                       "%s.quant_method: '%s' is not among fp8, mxfp4, awq, compressed-tensors, modelopt%s", q->path,
                       method->text, k25_did_you_mean(method->text, names, hint, sizeof hint));
}

/* The name of the scheme: by its experts, or by its attention when there are none. */
static void name_scheme(const struct quant *q, struct k25_weights *w)
{
    const struct k25_format *format = &w->format[K25_T_ROUTED_EXPERTS];
    if (format->kind == K25_BF16)
        format = &w->format[K25_T_ATTENTION];
    if (strcmp(q->quant_method, "awq") == 0 && format->kind == K25_INT4)
        snprintf(w->name, sizeof w->name, "awq_int4");
    else if (format->kind == K25_INT4 && format->group > 0)
        snprintf(w->name, sizeof w->name, "int4_g%.0f", format->group);
    else
        snprintf(w->name, sizeof w->name, "%s", k25_format_kind_names[format->kind]);
}

static bool check_dtype(const struct k25_hf_config *c, struct k25_error *error)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    const char *const values[] = {c->dtype, c->torch_dtype};
    for (int i = 0; i < 2; i++)
        if (values[i][0] != '\0' && strcmp(values[i], "bfloat16") != 0 && strcmp(values[i], "float16") != 0)
            return k25_hf_fail(c, keys[i], error, "'%s' is not known, expected bfloat16 or float16", values[i]);
    return true;
}

bool k25_hf_quantisation(const struct k25_hf_config *config, const struct k25_yaml_node *node, const char *file,
                         int mtp_layers, struct k25_weights *weights, struct k25_error *error)
{
    struct quant q = {.config = config, .file = file, .mtp_layers = mtp_layers};
    if (!check_dtype(config, error))
        return false;
    for (int i = 0; i < K25_TENSORS; i++)
        weights->format[i] = bf16;
    if (strcmp(config->moe_router_dtype, "float32") == 0)
        weights->format[K25_T_ROUTER] = (struct k25_format){.kind = K25_FP32, .bits = 32};
    else if (config->moe_router_dtype[0] != '\0' && strcmp(config->moe_router_dtype, "bfloat16") != 0)
        return k25_hf_fail(config, "moe_router_dtype", error, "'%s' is not known, expected float32 or bfloat16",
                           config->moe_router_dtype);
    if (node) {
        bool separate = !k25_yaml_get(node, "quant_method");
        if (!(separate && node != config->quantization_config ? read_separate : read_config)(&q, node, weights, error))
            return false;
    }
    name_scheme(&q, weights);
    return true;
}
