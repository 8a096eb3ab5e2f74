/* The step: the operators of one decode step on one rank, in the order they run.
 *
 * Built from the architecture, its weights, the machine and the plan; no parameter but the routing has a say in
 * how much work there is. What the work costs is asked of hw (model/predict.h).
 */
#ifndef K25_MODEL_STEP_H
#define K25_MODEL_STEP_H

#include <stddef.h>

#include "base/error.h"
#include "hw/kernel.h"
#include "hw/params.h"
#include "model/arch.h"
#include "model/plan.h"
#include "model/weights.h"

enum k25_part { K25_PART_ATTENTION, K25_PART_FFN, K25_PART_HEAD, K25_PARTS };

enum k25_operator_kind { K25_OP_KERNEL, K25_OP_ALLREDUCE, K25_OP_ALLGATHER };

struct k25_operator {
    const char *name;  /* "q_b" */
    const char *layers; /* which group of layers: "dense", "moe"; "" for what runs once a step */
    int part;         /* enum k25_part */
    int kind;         /* enum k25_operator_kind */
    double calls;     /* a step */
    struct k25_kernel_call call; /* K25_OP_KERNEL: the work of one call */
    double message;   /* collectives: bytes per rank of the full buffer, one call */
    double rows;      /* tokens through one call, after padding to the graph */
    double n, k;      /* a product's shape y[rows,n] = x[rows,k] W; 0 elsewhere */
    double resident;  /* bytes of weights that the rank holds for one call */
    double read;      /* bytes of weights that one call reads */
};

#define K25_MAX_OPERATORS 256

struct k25_step {
    size_t count;
    struct k25_operator op[K25_MAX_OPERATORS];
    int tokens;        /* T that the engine asked for */
    int rows;          /* T after padding to a captured graph */
    double experts;    /* distinct experts a layer touches; 0 without experts */
    double kv_per_token; /* bytes of cache a token takes on one rank, all layers */
};

extern const char *const k25_part_names[];

void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_machine *machine, const struct k25_plan *plan, const struct k25_params *params,
                    struct k25_step *step);

#endif
