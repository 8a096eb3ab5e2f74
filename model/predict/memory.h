/* The memory of a rank: weights, a reserve, and the cache in the rest. Nothing here fails. */
#ifndef K25_MODEL_PREDICT_MEMORY_H
#define K25_MODEL_PREDICT_MEMORY_H

#include <stdbool.h>

#include "hw/params/params.h"
#include "hw/topology/machine.h"
#include "model/plan/plan.h"
#include "model/step/step.h"

struct k25_memory {
    double capacity;     /* bytes of the GPU */
    double budget;       /* bytes the engine may use: capacity x memory_utilisation */
    double weights;      /* bytes of weights on one rank, replicated parts in full; of the largest pipeline stage */
    double reserve;      /* bytes for context, graphs, communication buffers, activations */
    double kv_per_token; /* bytes of cache a token takes on one rank */
    double state_per_sequence; /* bytes of recurrent state a sequence takes on one rank */
    double pool_bytes;         /* budget - weights - reserve, never below 0 */
    double pool_tokens;        /* tokens of cache that fit, all replicas together, after the states of the batch */
    double need_tokens;        /* batch x context */
    double max_batch;          /* sequences of this context that fit, all replicas together */
    bool fits;                 /* weights fit and the batch's cache fits */
};

/* Recomputes the members that depend on the context, when only the context of the plan has changed since k25_memory. */
void k25_memory_context(const struct k25_step *step, const struct k25_plan *plan, struct k25_memory *memory);

/* Fills `memory` for a step built for the same plan. */
void k25_memory(const struct k25_step *step, const struct k25_machine *machine, const struct k25_plan *plan,
                const struct k25_params *params, struct k25_memory *memory);

#endif
