/* The step: the operators of one decode step on one rank, in the order in which they run.
 *
 * Built from the architecture, its weights, the machine and the plan; of the parameters only those of the routing
 * change the amount of work. The time of the work is computed in model/predict/predict.h.
 *
 * Under pipeline parallelism the operators are those of one micro-batch through all stages. A step with speculation
 * first drafts (the first pass processes the tokens that the last step verified, k-1 more add a token each), then
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
#include "model/step/operator.h"

/* The draft model. Owns nothing. */
struct k25_draft {
    const struct k25_architecture *architecture;
    const struct k25_weights *weights;
};

/* The work of an operator that depends on the context: attention over the cache, scores and selection of an indexer. */
struct k25_context_work {
    size_t op;                      /* index of the operator */
    struct k25_attention_work work; /* its context is min(plan.context, limit) / ranks */
    double limit;                   /* tokens that the layer reads: its window, top-k of the indexer, INFINITY */
    double ranks;                   /* that share the cache */
};

/* 8 layer groups, and two passes of a draft with 8: at most 892 operators, 78 of them follow the context. */
#define K25_MAX_OPERATORS 896
#define K25_MAX_CONTEXT_WORK 80

struct k25_step {
    size_t count;                              /* operators */
    struct k25_operator op[K25_MAX_OPERATORS]; /* [count], in the order in which they run */
    int layers;                                /* of the model */
    int sequences;       /* on one rank: of one replica and micro-batch, of one rank when attention is data-parallel */
    int tokens;          /* T of them: k+1 per sequence, and the prompt tokens in the step */
    int rows;            /* T after padding to a captured graph */
    double experts;      /* distinct experts a layer touches; 0 without experts */
    double experts_rank; /* of those, on the fullest rank */
    double kv_per_token; /* bytes of cache a token takes on one rank, all layers */
    double state_per_sequence; /* bytes of recurrent state a sequence takes on one rank, all layers */
    size_t context_works;      /* operators that change with plan.context when nothing else does */
    struct k25_context_work context_work[K25_MAX_CONTEXT_WORK];
};

/* Returns the call of an operator of class `class` that depends on the context, with the context of `plan`. */
struct k25_kernel_call k25_context_call(enum k25_kernel_class class, const struct k25_context_work *work,
                                        const struct k25_plan *plan, const struct k25_params *params);

/* Builds the step of a plan that has passed k25_plan_check. `draft` is read for K25_SPEC_EAGLE3 and K25_SPEC_DRAFT,
 * else it may be NULL. `step` owns nothing. */
void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                    const struct k25_params *params, struct k25_step *step);

#endif
