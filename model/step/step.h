/* The step: the operators of one decode step on one rank, in the order they run.
 *
 * Built from the architecture, its weights, the machine and the plan; no parameter but the routing has a say in
 * how much work there is. What the work costs is asked of hw (model/predict/predict.h).
 *
 * Under pipeline parallelism the operators are those of one micro-batch on its way through all stages. A speculating
 * step first drafts (the first pass takes in the tokens that the last step verified, k-1 more add a token each), then
 * verifies k+1 tokens of every sequence.
 */
#ifndef K25_MODEL_STEP_STEP_H
#define K25_MODEL_STEP_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "hw/kernel/kernel.h"
#include "hw/params/params.h"
#include "model/arch/arch.h"
#include "model/arch/weights.h"
#include "model/plan/plan.h"

enum k25_part { K25_PART_ATTENTION, K25_PART_FFN, K25_PART_HEAD, K25_PART_DRAFT, K25_PARTS };

enum k25_operator_kind {
    K25_OP_KERNEL,
    K25_OP_ALLREDUCE,
    K25_OP_ALLGATHER,
    K25_OP_REDUCESCATTER,
    K25_OP_ALLTOALL,
    K25_OP_SEND, /* to the next pipeline stage */
};

/* Who takes part in a collective. */
enum k25_ranks {
    K25_RANKS_TP,   /* the tp ranks of a replica and stage */
    K25_RANKS_DCP,  /* the ranks that share a cache */
    K25_RANKS_PAIR, /* two stages of a pipeline */
    K25_RANKS_GROUPS,
};

/* A second, small model that drafts. */
struct k25_draft {
    const struct k25_architecture *architecture;
    const struct k25_weights *weights;
};

struct k25_operator {
    const char *name;   /* "q_b" */
    const char *layers; /* which group of layers: "dense", "moe"; "" for what runs once a step */
    int part;           /* enum k25_part */
    int kind;           /* enum k25_operator_kind */
    int ranks;          /* enum k25_ranks (collectives) */
    double calls;       /* a step */
    double copies;      /* layers that hold weights of this operator: calls, unless a draft runs it more than once */
    bool beside;        /* runs on a second stream, beside the routed experts */
    struct k25_kernel_call call; /* K25_OP_KERNEL: the work of one call */
    double message;  /* collectives, bytes per rank of one call: AllReduce the full buffer, gather what a rank gives,
                        reduce-scatter what a rank keeps, all-to-all all that a rank sends */
    double rows;     /* tokens through one call, after padding to the graph */
    double n, k;     /* a product's shape y[rows,n] = x[rows,k] W; 0 elsewhere */
    double resident; /* bytes of weights that the rank holds for one call */
    double read;     /* bytes of weights that one call reads */
};

/* The work of an operator that follows the context: attention over the cache, an indexer's scores and its pick. */
struct k25_context_work {
    size_t op;                      /* index of the operator */
    struct k25_attention_work work; /* its context is min(plan.context, limit) / ranks */
    double limit;                   /* tokens that the layer looks at: its window, the indexer's pick, INFINITY */
    double ranks;                   /* that share the cache */
};

/* 8 layer groups, and two passes of a draft with 8: at most 788 operators, 78 of them follow the context. */
#define K25_MAX_OPERATORS 800
#define K25_MAX_CONTEXT_WORK 80

struct k25_step {
    size_t count;
    struct k25_operator op[K25_MAX_OPERATORS];
    int layers;          /* of the model */
    int sequences;       /* on one rank: of one replica and micro-batch, of one rank when attention is data-parallel */
    int tokens;          /* T of them: (k+1) a sequence, and the prompt tokens that ride along */
    int rows;            /* T after padding to a captured graph */
    double experts;      /* distinct experts a layer touches; 0 without experts */
    double experts_rank; /* of those, on the rank with the most */
    double kv_per_token; /* bytes of cache a token takes on one rank, all layers */
    double state_per_sequence; /* bytes of recurrent state a sequence takes on one rank, all layers */
    size_t context_works;      /* operators that change with plan.context when nothing else does */
    struct k25_context_work context_work[K25_MAX_CONTEXT_WORK];
};

extern const char *const k25_part_names[];

/* The call of such an operator under a plan, by the kernel class that it has. */
struct k25_kernel_call k25_context_call(int class, const struct k25_context_work *work, const struct k25_plan *plan,
                                        const struct k25_params *params);

/* `draft` is read for K25_SPEC_EAGLE3 and K25_SPEC_DRAFT, else NULL. */
void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                    const struct k25_params *params, struct k25_step *step);

#endif
