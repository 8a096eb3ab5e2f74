/* The architecture of a language model: its layers and their sizes, independent of quantisation, sharding and serving.
 *
 * Read from model/zoo/NAME.yaml (docs/formats-architecture.md). Sizes are elements, not bytes; how tensors are
 * stored is the subject of model/arch/weights.h.
 */
#ifndef K25_MODEL_ARCH_ARCH_H
#define K25_MODEL_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"

enum k25_attention {
    K25_MLA,         /* multi-head latent attention: one latent of kv_lora_rank + qk_rope_dim a token */
    K25_GQA,         /* grouped-query attention, with multi-head and multi-query as special cases */
    K25_GATED_DELTA, /* gated delta-rule linear attention: a state of fixed size instead of a cache */
    K25_ATTENTIONS,
};

enum k25_ffn {
    K25_DENSE, /* one gated feed-forward network of `dense.intermediate` */
    K25_MOE,   /* routed experts, and shared ones if the architecture has them */
    K25_FFNS,
};

/* `count` layers that do the same work. Their position in the model does not change the cost. */
struct k25_layers {
    int count;
    enum k25_attention attention;
    enum k25_ffn ffn;
    int window;          /* tokens a layer looks back, 0 = all of them */
    bool indexer;        /* attention reads only the tokens that the sparse indexer selects */
    bool shared_indexer; /* ... that of an earlier layer (GLM-5.2): no scores, weights and keys here */
};

#define K25_MAX_LAYER_GROUPS 8

struct k25_mla {
    int heads;
    int q_lora_rank;                     /* 0: the queries are projected in one step */
    int kv_lora_rank;                    /* elements of the latent */
    int qk_nope_dim, qk_rope_dim, v_dim; /* elements a head */
};

enum k25_qk_norm {
    K25_QK_NORM_NONE,
    K25_QK_NORM_HEAD, /* each head normalised separately: no communication */
    K25_QK_NORM_FULL, /* over all heads: one small AllReduce of the variances under tensor parallelism */
    K25_QK_NORMS,
};

struct k25_gqa {
    int heads, kv_heads, head_dim; /* query heads, key-value heads, elements of a head */
    enum k25_qk_norm qk_norm;
    bool bias;        /* biases on the q, k and v projections */
    bool output_gate; /* the q projection is twice as wide and its second half gates the output */
};

struct k25_linear_attention {
    int value_heads, key_heads, value_dim, key_dim; /* heads, and elements a head */
    int conv_kernel;                                /* taps of the short convolution */
    int state_bits;                                 /* of one element of the recurrent state of a sequence */
};

/* A sparse-attention indexer (DeepSeek sparse attention): scores every cached token with small heads and lets
 * attention read the best `topk`. */
struct k25_indexer {
    int heads, dim; /* heads of the indexer, and elements of each */
    int topk;       /* tokens that attention reads */
};

struct k25_dense_ffn {
    int intermediate; /* width */
};

struct k25_moe {
    int experts;           /* routed */
    int experts_per_token; /* top-k */
    int intermediate;      /* of one routed expert */
    int shared_experts;
    int shared_intermediate; /* of all shared experts together */
    bool shared_gate;        /* a H x 1 gate on the shared experts */
    bool router_bias;        /* one correction bias an expert, added to the scores before the top-k */
};

struct k25_architecture {
    char name[64];
    char source[256];     /* of the figures */
    int hidden;           /* H */
    int vocabulary;       /* tokens */
    bool tied_embeddings; /* lm_head is the embedding matrix */
    int max_context;      /* tokens */
    struct k25_mla mla;
    struct k25_gqa gqa;
    struct k25_linear_attention linear;
    struct k25_indexer indexer;
    struct k25_dense_ffn dense;
    struct k25_moe moe;
    int mtp_layers;       /* multi-token-prediction modules in the checkpoint, each one more layer of the last kind */
    char unmodelled[160]; /* a part of this architecture that the step does not model, in words; "" = none */
    size_t layer_groups;
    struct k25_layers layers[K25_MAX_LAYER_GROUPS];
};

/* The file format, for loading, documentation and --set. `layers` is a list, read by k25_architecture_load. */
extern const struct k25_field k25_architecture_fields[];
extern const struct k25_field k25_layers_fields[];                /* one entry of `layers`, a struct k25_layers */
extern const char *const k25_attention_names[K25_ATTENTIONS + 1]; /* NULL-terminated, as the next two */
extern const char *const k25_ffn_names[K25_FFNS + 1];
extern const char *const k25_qk_norm_names[K25_QK_NORMS + 1];

/* Reads and checks an architecture file (`k25sim: architecture`). `inputs` may be NULL; its paths start with
 * "architecture". Fails with K25_BAD_INPUT and the position, K25_RESOURCE for read errors and out of memory. */
bool k25_architecture_load(const char *path, struct k25_architecture *architecture, struct k25_inputs *inputs,
                           struct k25_error *error);

/* Checks that the values are consistent (kv_heads divides heads, a layer's section exists); K25_BAD_INPUT otherwise.
 * Loading does this; call it again after --set. Positions come from `inputs`, which may be NULL. */
bool k25_architecture_check(const struct k25_architecture *architecture, const struct k25_inputs *inputs,
                            struct k25_error *error);

/* Returns the text of an architecture file, which the caller frees with free(); NULL (K25_RESOURCE) when out of
 * memory. */
char *k25_architecture_print(const struct k25_architecture *architecture, struct k25_error *error);

/* Returns the number of layers, without MTP modules. */
int k25_layer_count(const struct k25_architecture *architecture);

/* Returns the part of an architecture that the step does not model yet, in words for an error message
 * ("sparse-attention indexer"); NULL when it can be predicted. Valid as long as `architecture`. */
const char *k25_architecture_unsupported(const struct k25_architecture *architecture);

#endif
