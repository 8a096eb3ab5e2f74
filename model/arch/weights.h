/* The quantisation scheme of a checkpoint: how it stores the tensors of an architecture.
 *
 * Read from model/zoo/NAME.SCHEME.yaml (docs/formats-architecture.md). Every tensor of the model belongs to one
 * class; the scheme gives each class a format. MiniMax-M2.5 exists as FP8, AWQ and NVFP4: one architecture, three
 * schemes.
 */
#ifndef K25_MODEL_ARCH_WEIGHTS_H
#define K25_MODEL_ARCH_WEIGHTS_H

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"
#include "model/arch/arch.h"

/*  X(identifier, key of the file, what it holds) */
#define K25_TENSOR_LIST(X)                                                                                             \
    X(EMBEDDING, embedding, "token embedding")                                                                         \
    X(LM_HEAD, lm_head, "projection to the vocabulary")                                                                \
    X(ATTENTION, attention, "projections of mla or gqa attention")                                                     \
    X(INDEXER, indexer, "sparse-attention indexer")                                                                    \
    X(LINEAR_ATTENTION, linear_attention, "projections of gated delta attention")                                      \
    X(DENSE_FFN, dense_ffn, "feed-forward network of the dense layers")                                                \
    X(ROUTER, router, "expert gate")                                                                                   \
    X(ROUTED_EXPERTS, routed_experts, "routed experts")                                                                \
    X(SHARED_EXPERTS, shared_experts, "shared experts and their gate")                                                 \
    X(MTP, mtp, "multi-token-prediction modules, whole")                                                               \
    X(NORM, norm, "norms, biases and other vectors")

enum k25_tensor {
#define X(id, key, words) K25_T_##id,
    K25_TENSOR_LIST(X)
#undef X
        K25_TENSORS,
};

/* Format of the stored weights and arithmetic of the tensor cores; it decides the class of a kernel. */
enum k25_format_kind {
    K25_BF16,
    K25_FP8,   /* weights and activations in 8 bits */
    K25_INT4,  /* weights only (W4A16): arithmetic in BF16 */
    K25_NVFP4, /* 4-bit floating point with 8-bit scales, weights and activations unless the kernel is W4A16 */
    K25_MXFP4,
    K25_FP32,
    K25_FORMAT_KINDS,
};

struct k25_format {
    enum k25_format_kind kind;
    double bits;       /* of one weight, without scales */
    double group;      /* weights that share one scale; 0: no scales */
    double scale_bits; /* scale and zero point of one group */
};

struct k25_weights {
    char name[64]; /* of the scheme: int4_g32 */
    char source[256];
    bool unshipped_mtp; /* the config names multi-token-prediction modules that the checkpoint does not contain */
    struct k25_format format[K25_TENSORS]; /* by enum k25_tensor */
};

extern const struct k25_field k25_weights_fields[];
extern const char *const k25_tensor_names[K25_TENSORS + 1];           /* NULL-terminated */
extern const char *const k25_format_kind_names[K25_FORMAT_KINDS + 1]; /* NULL-terminated */

/* Reads and checks a scheme (`k25sim: weights`); a class that the file does not name is BF16. `inputs` may be NULL; its
 * paths start with "weights". Fails with K25_BAD_INPUT and the position, K25_RESOURCE for read errors and out of
 * memory. */
bool k25_weights_load(const char *path, struct k25_weights *weights, struct k25_inputs *inputs,
                      struct k25_error *error);

/* Checks that bits, groups and scales match the formats; K25_BAD_INPUT otherwise. Loading does this; call it again
 * after
 * --set. Positions come from `inputs`, which may be NULL. */
bool k25_weights_check(const struct k25_weights *weights, const struct k25_inputs *inputs, struct k25_error *error);

/* Returns the text of a scheme file, which the caller frees with free(); NULL (K25_RESOURCE) when out of memory. */
char *k25_weights_print(const struct k25_weights *weights, struct k25_error *error);

/* Returns the bytes of one weight with its share of the scale: (bits + scale_bits / group) / 8. */
double k25_weight_bytes(const struct k25_format *format);

/* Sets the elements of each tensor class in the whole model, MTP modules under K25_T_MTP. Tied embeddings count once,
 * under K25_T_EMBEDDING. */
void k25_count_parameters(const struct k25_architecture *architecture, double elements[K25_TENSORS]);

/* Returns the parameters of the model as published: all but the multi-token-prediction modules. */
double k25_total_parameters(const struct k25_architecture *architecture);

/* Returns the active parameters of a token: all but the embedding, the experts it is not routed to, and MTP. */
double k25_active_parameters(const struct k25_architecture *architecture);

/* Returns the bytes of the checkpoint: elements x bytes of their format over all classes, without MTP modules if
 * `unshipped_mtp`. */
double k25_checkpoint_bytes(const struct k25_architecture *architecture, const struct k25_weights *weights);

#endif
