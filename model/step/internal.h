/* Shared by the files of this folder that build the step. */
#ifndef K25_MODEL_STEP_INTERNAL_H
#define K25_MODEL_STEP_INTERNAL_H

#include "model/step/placement.h"
#include "model/step/step.h"

/* What the step is built from, and the state that applies to the next operator. */
struct k25_builder {
    const struct k25_architecture *architecture; /* whose layers are being added: the model's or the draft's */
    const struct k25_weights *weights;
    const struct k25_draft *draft;
    const struct k25_machine *machine;
    const struct k25_plan *plan;
    const struct k25_params *params;
    struct k25_step *step;
    const char *layers; /* name of the group of layers */
    enum k25_part part; /* of the operators being added */
    int tp;             /* ranks that share attention, dense and shared networks, vocabulary */
    double calls;       /* layers in the group, times passes of a draft */
    double copies;      /* layers in the group that have separate weights */
    double rows;        /* tokens through the operators being added, on one rank */
    double distinct;    /* independent tokens among them, for the routing */
    double queries;     /* tokens of one sequence among them; padding rows of a graph do no attention */
    double logits;      /* rows that need logits */
    double widen;       /* the first layer projects queries, keys and values from this many times H: 2 in EAGLE-3 */
    bool mtp;           /* a multi-token-prediction layer: weights of class K25_T_MTP */
    bool prefill;       /* the prompt tokens of the plan are among the rows */
    double pinned;      /* bytes of weights for which the L2 still has room */
};

#define K25_ACTIVATION 2.0 /* bytes of an activation: BF16 between kernels */

/* Appends an operator with the state of the builder and no work; returns it for the caller to fill. */
struct k25_operator *k25_add(struct k25_builder *b, enum k25_operator_id id);
/* Adds y[rows,n] = x[rows,k] W, W in the format of `tensor`. */
void k25_add_gemm(struct k25_builder *b, enum k25_operator_id id, enum k25_tensor tensor, double n, double k);
/* Adds `launches` small kernels that each move `elements` activations per row. */
void k25_add_elementwise(struct k25_builder *b, enum k25_operator_id id, double launches, double elements);
/* Adds a norm that can be fused into the AllReduce before it. */
void k25_add_norm(struct k25_builder *b, enum k25_operator_id id);
/* Adds a collective over the tp ranks; nothing when there is one rank. */
void k25_add_collective(struct k25_builder *b, enum k25_operator_id id, enum k25_operator_kind kind,
                        double bytes_per_row);
/* Returns the format of a tensor class; that of K25_T_MTP in an MTP layer, but for embedding and head. */
const struct k25_format *k25_format_of(const struct k25_builder *b, enum k25_tensor tensor);

/* Add the attention and the feed-forward part of a group of layers. */
void k25_add_attention(struct k25_builder *b, const struct k25_layers *layers);
void k25_add_ffn(struct k25_builder *b, const struct k25_layers *layers);
/* Add the operators of a pass before, after and in the layers. */
void k25_add_embedding(struct k25_builder *b);
void k25_add_head(struct k25_builder *b);
void k25_add_layers(struct k25_builder *b);
/* Adds all passes of the draft. */
void k25_add_draft(struct k25_builder *b);

#endif
