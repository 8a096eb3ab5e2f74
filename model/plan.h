/* The plan: how a model is spread over a machine and served.
 *
 * Plain numbers and switches; `--set plan.KEY=VALUE` reaches each of them. Keys and defaults stand in
 * k25_plan_fields (model/plan.c) and docs/formats.md.
 */
#ifndef K25_MODEL_PLAN_H
#define K25_MODEL_PLAN_H

#include <stdbool.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"
#include "hw/machine.h"
#include "model/arch.h"

enum k25_kv_dtype { K25_KV_BF16, K25_KV_FP8 };

enum k25_allreduce_backend {
    K25_AR_NCCL,
    K25_AR_ONESHOT,
    K25_AR_ONESHOT_THEN_NCCL, /* one-shot while bytes <= oneshot_max_bytes or rows <= oneshot_max_rows */
    K25_AR_FASTEST,           /* whichever the model finds cheaper, call by call */
};

enum k25_protocol {
    K25_PROTO_AUTO, /* NCCL's own choice on PCIe: LL for small messages, Simple for large ones */
    K25_PROTO_LL,
    K25_PROTO_LL128,
    K25_PROTO_SIMPLE,
    K25_PROTO_ALL, /* NCCL_PROTO=LL,LL128,Simple: the cheapest */
};

enum k25_graph_mode { K25_GRAPH_FULL, K25_GRAPH_NONE };

enum k25_speculation_method { K25_SPEC_NONE, K25_SPEC_MTP, K25_SPEC_EAGLE3, K25_SPEC_NGRAM, K25_SPEC_DRAFT };

struct k25_plan_allreduce {
    int backend;              /* enum k25_allreduce_backend */
    double oneshot_max_bytes; /* bytes per rank of the full buffer */
    int oneshot_max_rows;     /* tokens */
    int protocol;             /* enum k25_protocol: what NCCL_PROTO allows */
};

struct k25_plan_graph {
    int mode;     /* enum k25_graph_mode */
    int max_rows; /* the largest captured batch; above it the step runs eager */
};

struct k25_plan_speculation {
    int method; /* enum k25_speculation_method */
    int tokens; /* k: drafted tokens in a chain */
};

struct k25_plan {
    int tp, ep, dp, dcp, pp;
    bool attention_dp; /* attention data-parallel, experts expert-parallel */
    int batch;         /* B: sequences decoding together */
    double context;    /* L: mean tokens in the cache of one sequence */
    int kv_dtype;      /* enum k25_kv_dtype */
    double memory_utilisation; /* share of the GPU's memory that the engine may use */
    struct k25_plan_allreduce allreduce;
    struct k25_plan_graph graph;
    struct k25_plan_speculation speculation;
};

extern const struct k25_field k25_plan_fields[];
/* Each NULL-terminated, in the order of its enum. */
extern const char *const k25_kv_dtype_names[];
extern const char *const k25_allreduce_backend_names[];
extern const char *const k25_protocol_names[];
extern const char *const k25_graph_mode_names[];
extern const char *const k25_speculation_names[];

/* Checks a plan against the architecture and the machine it is for: sharding that does not divide, more GPUs than
 * there are, context beyond the model's. The error carries the position of the key. What the step has no physics
 * for yet is refused by name with status K25_BAD_INPUT and the words "not supported yet". */
bool k25_plan_check(const struct k25_plan *plan, const struct k25_architecture *architecture,
                    const struct k25_machine *machine, const struct k25_inputs *inputs, struct k25_error *error);

/* Whether a step of `rows` tokens runs inside a captured graph. */
bool k25_graph_runs(const struct k25_plan_graph *graph, int rows);

/* Rows that the step computes for `rows` tokens: the next captured CUDA-graph size, or `rows` when it runs eager.
 * Captured sizes are 1, 2, 4, then every 8 up to 256, then every 16 (vLLM's default list, vllm/config). */
int k25_graph_rows(const struct k25_plan_graph *graph, int rows);

double k25_kv_bytes(int kv_dtype); /* of one element */

#endif
