/* The quantisation scheme format, and how many weights an architecture has. */
#include "model/arch/weights.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"

const char *const k25_tensor_names[K25_TENSORS + 1] = {
#define X(id, key, words) [K25_T_##id] = #key,
    K25_TENSOR_LIST(X)
#undef X
};
const char *const k25_format_kind_names[K25_FORMAT_KINDS + 1] = {
    [K25_BF16] = "bf16",   [K25_FP8] = "fp8",     [K25_INT4] = "int4",
    [K25_NVFP4] = "nvfp4", [K25_MXFP4] = "mxfp4", [K25_FP32] = "fp32",
};

static const double kind_bits[K25_FORMAT_KINDS] = {
    [K25_BF16] = 16, [K25_FP8] = 8, [K25_INT4] = 4, [K25_NVFP4] = 4, [K25_MXFP4] = 4, [K25_FP32] = 32,
};

static const struct k25_field format_fields[] = {
    K25_FIELD_AS(ENUM, k25_format, kind, "format", .names = k25_format_kind_names,
                 .doc = "format of the weights and arithmetic of the tensor cores"),
    K25_FIELD(REAL, k25_format, bits, .min = 4, .max = 32, .unit = "bits", .doc = "one weight, without scales"),
    K25_FIELD(REAL, k25_format, group, .fallback = "0", .min = 0, .max = 1e9, .unit = "weights",
              .doc = "weights that share one scale; 0: no scales"),
    K25_FIELD(REAL, k25_format, scale_bits, .fallback = "0", .min = 0, .max = 64, .unit = "bits",
              .doc = "scale and zero point of one group"),
    {0},
};

static const struct k25_field tensor_fields[] = {
#define X(id, name, words)                                                                                             \
    {.key = #name,                                                                                                     \
     .type = K25_MAP,                                                                                                  \
     .offset = K25_T_##id * sizeof(struct k25_format),                                                                 \
     .fallback = "",                                                                                                   \
     .fields = format_fields,                                                                                          \
     .doc = words},
    K25_TENSOR_LIST(X)
#undef X
        {0},
};

const struct k25_field k25_weights_fields[] = {
    K25_FIELD(TEXT, k25_weights, name, .doc = "name of the scheme, as scenarios use it"),
    K25_FIELD(TEXT, k25_weights, source, .doc = "source of the formats"),
    K25_FIELD(BOOL, k25_weights, unshipped_mtp, .fallback = "false",
              .doc = "the checkpoint does not contain the MTP modules that the config names"),
    K25_FIELD_AS(MAP, k25_weights, format, "tensors", .fallback = "", .fields = tensor_fields,
                 .doc = "format by tensor class; a class not named is bf16"),
    {0},
};

bool k25_weights_check(const struct k25_weights *weights, const struct k25_inputs *inputs, struct k25_error *error)
{
    static const struct k25_inputs nowhere;
    if (!inputs)
        inputs = &nowhere;
    for (int i = 0; i < K25_TENSORS; i++) {
        const struct k25_format *format = &weights->format[i];
        char path[64];
        snprintf(path, sizeof path, "weights.tensors.%s.bits", k25_tensor_names[i]);
        if (format->bits != kind_bits[format->kind])
            return k25_inputs_fail(inputs, path, error, "%s has %g bits a weight, not %g",
                                   k25_format_kind_names[format->kind], kind_bits[format->kind], format->bits);
        snprintf(path, sizeof path, "weights.tensors.%s.group", k25_tensor_names[i]);
        if ((format->group > 0) != (format->scale_bits > 0))
            return k25_inputs_fail(inputs, path, error, "'group' and 'scale_bits' go together: %g and %g",
                                   format->group, format->scale_bits);
    }
    return true;
}

/* A class that the file does not name is BF16. The range of `bits` starts at 4, so 0 says that it was not named.
 */
static bool fill_defaults(struct k25_weights *weights)
{
    for (int i = 0; i < K25_TENSORS; i++)
        if (weights->format[i].bits == 0)
            weights->format[i] = (struct k25_format){.kind = K25_BF16, .bits = 16};
    return true;
}

bool k25_weights_load(const char *path, struct k25_weights *weights, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_inputs own = {0};
    struct k25_inputs *record = inputs ? inputs : &own; /* the checks below need positions either way */
    struct k25_weights loaded = {0};
    struct k25_yaml *yaml = k25_yaml_read(path, record, error);
    bool done = yaml && k25_schema_head(yaml, "weights", error) &&
                k25_schema_load(k25_weights_fields, "weights", k25_yaml_root(yaml), k25_yaml_file(yaml), &loaded,
                                record, error) &&
                fill_defaults(&loaded) && k25_weights_check(&loaded, record, error);
    if (done)
        *weights = loaded;
    k25_yaml_free(yaml);
    k25_inputs_free(&own);
    return done;
}

static bool is_default(const struct k25_format *format)
{
    return format->kind == K25_BF16 && format->bits == 16 && format->group == 0;
}

char *k25_weights_print(const struct k25_weights *weights, struct k25_error *error)
{
    struct k25_printer printer;
    bool headed = false;
    if (!k25_print_open(&printer, error))
        return NULL;
    fputs("k25sim: weights\nversion: 1\n", printer.out);
    k25_print_text(printer.out, "name", weights->name);
    k25_print_text(printer.out, "source", weights->source);
    if (weights->unshipped_mtp)
        fputs("unshipped_mtp: true\n", printer.out);
    for (int i = 0; i < K25_TENSORS; i++) {
        const struct k25_format *format = &weights->format[i];
        if (is_default(format))
            continue;
        if (!headed)
            fputs("tensors:\n", printer.out);
        headed = true;
        fprintf(printer.out, "  %s: {format: %s, bits: ", k25_tensor_names[i], k25_format_kind_names[format->kind]);
        k25_print_real(printer.out, format->bits);
        if (format->group > 0) {
            fputs(", group: ", printer.out);
            k25_print_real(printer.out, format->group);
            fputs(", scale_bits: ", printer.out);
            k25_print_real(printer.out, format->scale_bits);
        }
        fputs("}\n", printer.out);
    }
    return k25_print_close(&printer, error);
}

double k25_weight_bytes(const struct k25_format *format)
{
    double scale = format->group > 0 ? format->scale_bits / format->group : 0;
    return (format->bits + scale) / 8;
}

/* Below, H is the hidden size and n counts elements of one layer by class. */

/* q_a H x rq, q_b rq x h(nope+rope) (or q H x h(nope+rope)), kv_a H x (rkv+rope), kv_b rkv x h(nope+v),
 * o hv x H; norms on both latents. DeepSeek-V2, arXiv:2405.04434, 2.1. */
static void count_mla(const struct k25_architecture *a, double n[K25_TENSORS])
{
    const struct k25_mla *m = &a->mla;
    double H = a->hidden, h = m->heads, rq = m->q_lora_rank, rkv = m->kv_lora_rank;
    double query = h * ((double)m->qk_nope_dim + m->qk_rope_dim);
    n[K25_T_ATTENTION] += rq > 0 ? H * rq + rq * query : H * query;
    n[K25_T_ATTENTION] += H * (rkv + m->qk_rope_dim) + rkv * h * ((double)m->qk_nope_dim + m->v_dim);
    n[K25_T_ATTENTION] += h * m->v_dim * H;
    n[K25_T_NORM] += rq + rkv;
}

/* q H x hd (twice that with an output gate), k and v H x gd each, o hd x H. */
static void count_gqa(const struct k25_architecture *a, double n[K25_TENSORS])
{
    const struct k25_gqa *g = &a->gqa;
    double H = a->hidden, d = g->head_dim, out = g->heads * d, kv = g->kv_heads * d;
    double query = g->output_gate ? 2 * out : out;
    n[K25_T_ATTENTION] += H * (query + 2 * kv) + out * H;
    if (g->bias)
        n[K25_T_NORM] += query + 2 * kv;
    if (g->qk_norm == K25_QK_NORM_HEAD)
        n[K25_T_NORM] += 2 * d;
    if (g->qk_norm == K25_QK_NORM_FULL)
        n[K25_T_NORM] += out + kv;
}

/* q and k H x hk dk each, v and its gate z H x hv dv each, b and a H x hv each, o hv dv x H, a depthwise
 * convolution over q, k and v; vectors dt_bias and A_log of hv, a norm of dv. Gated DeltaNet, arXiv:2412.06464. */
static void count_linear(const struct k25_architecture *a, double n[K25_TENSORS])
{
    const struct k25_linear_attention *l = &a->linear;
    double H = a->hidden, value = (double)l->value_heads * l->value_dim, key = (double)l->key_heads * l->key_dim;
    n[K25_T_LINEAR_ATTENTION] += H * (2 * key + 2 * value + 2.0 * l->value_heads) + value * H;
    n[K25_T_LINEAR_ATTENTION] += l->conv_kernel * (2 * key + value);
    n[K25_T_NORM] += 2.0 * l->value_heads + l->value_dim;
}

/* wq_b rq x hd, wk H x d, weights_proj H x h; the layer norm of the key has a weight and a bias.
 * DeepSeek-V3.2-Exp, inference/model.py, class Indexer. */
static void count_indexer(const struct k25_architecture *a, double n[K25_TENSORS])
{
    double H = a->hidden, h = a->indexer.heads, d = a->indexer.dim;
    n[K25_T_INDEXER] += a->mla.q_lora_rank * h * d + H * d + H * h;
    n[K25_T_NORM] += 2 * d;
}

/* Gate, up and down: 3 H I each network; the router H x E. */
static void count_ffn(const struct k25_architecture *a, enum k25_ffn ffn, double n[K25_TENSORS])
{
    const struct k25_moe *m = &a->moe;
    double H = a->hidden;
    if (ffn == K25_DENSE) {
        n[K25_T_DENSE_FFN] += 3 * H * a->dense.intermediate;
        return;
    }
    n[K25_T_ROUTER] += H * m->experts;
    n[K25_T_ROUTED_EXPERTS] += 3 * H * m->intermediate * m->experts;
    n[K25_T_SHARED_EXPERTS] += 3 * H * m->shared_intermediate + (m->shared_gate ? H : 0);
    if (m->router_bias)
        n[K25_T_NORM] += m->experts;
}

static void count_layer(const struct k25_architecture *a, const struct k25_layers *layers, double n[K25_TENSORS])
{
    memset(n, 0, K25_TENSORS * sizeof *n);
    if (layers->attention == K25_MLA)
        count_mla(a, n);
    if (layers->attention == K25_GQA)
        count_gqa(a, n);
    if (layers->attention == K25_GATED_DELTA)
        count_linear(a, n);
    if (layers->indexer && !layers->shared_indexer)
        count_indexer(a, n);
    count_ffn(a, layers->ffn, n);
    n[K25_T_NORM] += 2.0 * a->hidden; /* before attention and before the feed-forward part */
}

void k25_count_parameters(const struct k25_architecture *architecture, double elements[K25_TENSORS])
{
    const struct k25_architecture *a = architecture;
    double H = a->hidden, layer[K25_TENSORS];
    memset(elements, 0, K25_TENSORS * sizeof *elements);
    memset(layer, 0, sizeof layer);
    for (size_t i = 0; i < a->layer_groups; i++) {
        count_layer(a, &a->layers[i], layer);
        for (int j = 0; j < K25_TENSORS; j++)
            elements[j] += a->layers[i].count * layer[j];
    }
    elements[K25_T_EMBEDDING] = a->vocabulary * H;
    elements[K25_T_LM_HEAD] = a->tied_embeddings ? 0 : a->vocabulary * H;
    elements[K25_T_NORM] += H; /* the final norm */
    /* A module: a projection 2H -> H of the embedding and the hidden state, a norm on each and one at the end, and a
     * layer of the last kind, which is still in `layer`. The embedding and the head are those of the main model.
     * DeepSeek-V3, arXiv:2412.19437, 2.2. */
    for (int j = 0; j < K25_TENSORS; j++)
        if (j != K25_T_MTP)
            elements[K25_T_MTP] += a->mtp_layers * layer[j];
    elements[K25_T_MTP] += a->mtp_layers * (2 * H * H + 3 * H);
}

double k25_total_parameters(const struct k25_architecture *architecture)
{
    double elements[K25_TENSORS], total = 0;
    k25_count_parameters(architecture, elements);
    for (int i = 0; i < K25_TENSORS; i++)
        total += i == K25_T_MTP ? 0 : elements[i];
    return total;
}

double k25_active_parameters(const struct k25_architecture *architecture)
{
    const struct k25_moe *moe = &architecture->moe;
    double elements[K25_TENSORS], active = 0;
    k25_count_parameters(architecture, elements);
    /* A tied embedding is read whole as the head; of an untied one only a row is read. */
    if (!architecture->tied_embeddings)
        elements[K25_T_EMBEDDING] = 0;
    elements[K25_T_MTP] = 0;
    if (moe->experts > 0)
        elements[K25_T_ROUTED_EXPERTS] *= (double)moe->experts_per_token / moe->experts;
    for (int i = 0; i < K25_TENSORS; i++)
        active += elements[i];
    return active;
}

double k25_checkpoint_bytes(const struct k25_architecture *architecture, const struct k25_weights *weights)
{
    double elements[K25_TENSORS], bytes = 0;
    k25_count_parameters(architecture, elements);
    if (weights->unshipped_mtp)
        elements[K25_T_MTP] = 0;
    for (int i = 0; i < K25_TENSORS; i++)
        bytes += elements[i] * k25_weight_bytes(&weights->format[i]);
    return bytes;
}
