/* What the builders of the step share (model/step.c and its neighbours); not for others. */
#ifndef K25_MODEL_STEP_INTERNAL_H
#define K25_MODEL_STEP_INTERNAL_H

#include "model/step.h"

/* The question, and where the next operator goes. */
struct k25_builder {
    const struct k25_architecture *architecture; /* whose layers are being added: the model's or the draft's */
    const struct k25_weights *weights;
    const struct k25_draft *draft;
    const struct k25_machine *machine;
    const struct k25_plan *plan;
    const struct k25_params *params;
    struct k25_step *step;
    const char *layers; /* name of the group of layers */
    int part;           /* of the operators being added */
    int tp;             /* ranks that share attention, dense and shared networks, vocabulary */
    double calls;       /* layers in the group, times passes of a draft */
    double copies;      /* layers in the group that hold weights of their own */
    double rows;        /* tokens through the operators being added, on one rank */
    double distinct;    /* independent tokens among them, for the routing */
    double queries;     /* tokens of one sequence among them; rows that pad a graph attend to nothing */
    double logits;      /* rows that need logits */
    double widen;       /* the first layer projects queries, keys and values from this many times H: 2 in EAGLE-3 */
    bool mtp;           /* a multi-token-prediction layer: weights of class K25_T_MTP */
    bool prefill;       /* the prompt tokens of the plan are among the rows */
    double pinned;      /* bytes of weights that the L2 has still room for */
};

#define K25_ACTIVATION 2.0 /* bytes of an activation: BF16 between kernels */

struct k25_operator *k25_add(struct k25_builder *b, const char *name);
/* y[rows,n] = x[rows,k] W, W of `tensor`'s format. */
void k25_add_gemm(struct k25_builder *b, const char *name, enum k25_tensor tensor, double n, double k);
/* `launches` small kernels that each move `elements` activations a row. */
void k25_add_elementwise(struct k25_builder *b, const char *name, double launches, double elements);
/* A norm that the AllReduce before it can take in. */
void k25_add_norm(struct k25_builder *b, const char *name);
/* Over the tp ranks; nothing when there is one. */
void k25_add_collective(struct k25_builder *b, const char *name, int kind, double bytes_per_row);
const struct k25_format *k25_format_of(const struct k25_builder *b, enum k25_tensor tensor);

void k25_add_attention(struct k25_builder *b, const struct k25_layers *layers);
void k25_add_ffn(struct k25_builder *b, const struct k25_layers *layers);
/* Once a pass, in front of the layers and behind them. */
void k25_add_embedding(struct k25_builder *b);
void k25_add_head(struct k25_builder *b);
void k25_add_layers(struct k25_builder *b);
/* The plan as the draft has it: of one rank where every rank drafts alone. */
struct k25_plan k25_draft_plan(const struct k25_plan *plan);
/* All passes of the draft. */
void k25_add_draft(struct k25_builder *b);

/* Tokens among `rows` of the main model that route on their own: neighbours in a sequence share a part of their experts;
 * and d tokens / d ln routing.overlap. */
double k25_distinct_tokens(const struct k25_plan *plan, const struct k25_params *params, double rows);
double k25_distinct_tokens_slope(const struct k25_plan *plan, const struct k25_params *params, double rows);

/* Whether a layer with `rows` tokens on a rank is too large for the small-batch expert kernel. */
bool k25_expert_fallback(const struct k25_plan *plan, double rows);

/* Where the tokens of a layer go: over the ep ranks whole experts, over the others the columns of one. */
struct k25_placement {
    double local;           /* experts a rank holds */
    double columns;         /* of one of them */
    double rows;            /* tokens of all ranks that the layer routes */
    double pairs, distinct; /* on the rank with the most */
    double touched;         /* distinct experts over all ranks */
};
/* `distinct` of the `rows` on a rank route on their own. */
void k25_place_experts(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                       double rows, double distinct, struct k25_placement *placement);

/* d / d ln routing.cv and d / d ln `distinct` of the pairs and distinct experts of that placement; the second pair only
 * if `growth`, else 0. */
struct k25_placement_slopes {
    double pairs_cv, distinct_cv, pairs_tokens, distinct_tokens;
};
void k25_placement_slopes(const struct k25_moe *moe, const struct k25_plan *plan, const struct k25_params *params,
                          double rows, double distinct, bool growth, struct k25_placement_slopes *slopes);

#endif
