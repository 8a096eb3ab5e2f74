/* The plan: how a model is distributed over a machine and served.
 *
 * Plain numbers and switches; `--set plan.KEY=VALUE` sets each of them. Keys and defaults are in k25_plan_fields
 * (model/plan/plan.c) and docs/formats.md.
 */
#ifndef K25_MODEL_PLAN_PLAN_H
#define K25_MODEL_PLAN_PLAN_H

#include <stdbool.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"
#include "hw/collective/backend.h"
#include "hw/topology/machine.h"
#include "model/arch/arch.h"

enum k25_kv_dtype { K25_KV_BF16, K25_KV_FP8, K25_KV_DTYPES };

/* The backend that an engine calls for an AllReduce: NCCL; a custom kernel, always or up to its limits (hw/collective/
 * backend.h lists the kernels); or the one that the model predicts to be faster, for each call. */
enum k25_allreduce_policy {
    K25_AR_NCCL,
#define X(id, key, words) K25_AR_##id, K25_AR_##id##_THEN_NCCL,
    K25_CUSTOM_LIST(X)
#undef X
        K25_AR_FASTEST,
    K25_AR_POLICIES,
};

enum k25_policy_kind {
    K25_POLICY_NCCL,
    K25_POLICY_ALWAYS,  /* the custom kernel */
    K25_POLICY_LIMITED, /* the custom kernel while bytes <= max_bytes or rows <= max_rows, then NCCL */
    K25_POLICY_FASTEST,
};

struct k25_policy_info {
    enum k25_policy_kind kind;
    enum k25_backend backend; /* the custom kernel; one of NCCL's for policies without one */
};
extern const struct k25_policy_info k25_policy_info[K25_AR_POLICIES];

enum k25_protocol {
    K25_PROTO_AUTO, /* NCCL's own choice on PCIe: LL for small messages, Simple for large ones */
#define X(id, key, words) K25_PROTO_##id,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
        K25_PROTO_ALL, /* NCCL_PROTO=LL,LL128,Simple: the fastest */
    K25_PROTOCOLS,
};

enum k25_graph_mode { K25_GRAPH_FULL, K25_GRAPH_NONE, K25_GRAPH_MODES };

enum k25_speculation_method {
    K25_SPEC_NONE,
    K25_SPEC_MTP,
    K25_SPEC_EAGLE3,
    K25_SPEC_NGRAM,
    K25_SPEC_DRAFT,
    K25_SPEC_METHODS,
};

/* How attention reads the cache while it verifies the k + 1 tokens of a sequence. */
enum k25_verify {
    K25_VERIFY_ROWS,   /* every token as a separate sequence (vLLM TRITON_MLA, pull request 52218) */
    K25_VERIFY_SHARED, /* one pass over the cache for all of them */
    K25_VERIFIES,
};

/* When the host's work between two passes of the draft takes time. */
enum k25_drafting {
    K25_DRAFT_SERIAL, /* before every pass */
    K25_DRAFT_FUSED,  /* once a step: all passes are one launch */
    K25_DRAFT_ASYNC,  /* only the part longer than the pass: the host prepares the next pass while the GPU runs */
    K25_DRAFTINGS,
};

/* How decode context parallelism merges partial attention. */
enum k25_dcp_exchange {
    K25_DCP_GATHER,   /* gather the log-sum-exps, reduce-scatter the outputs (vLLM ag_rs) */
    K25_DCP_ALLTOALL, /* outputs and log-sum-exps in one all-to-all (vLLM a2a, SGLang) */
    K25_DCP_EXCHANGES,
};

/* How tokens reach their experts when attention is data-parallel. */
enum k25_expert_exchange {
    K25_EXPERTS_ALLTOALL, /* each token to the ranks of its experts, and back */
    K25_EXPERTS_GATHER,   /* all tokens to all ranks, then a reduce-scatter (vLLM allgather_reducescatter) */
    K25_EXPERT_EXCHANGES,
};

/* Limits of a custom kernel: it is called while a message is within at least one of them, NCCL otherwise. */
struct k25_allreduce_limit {
    double max_bytes; /* per rank of the full buffer */
    int max_rows;     /* tokens */
};

struct k25_plan_allreduce {
    enum k25_allreduce_policy backend;
    struct k25_allreduce_limit limit[K25_BACKENDS]; /* of the custom kernels: KEY_max_bytes, KEY_max_rows */
    enum k25_protocol protocol;                     /* the value of NCCL_PROTO */
};

struct k25_plan_graph {
    enum k25_graph_mode mode;
    int max_rows; /* the largest captured batch; above it the step runs eager */
};

struct k25_plan_speculation {
    enum k25_speculation_method method;
    int tokens; /* k: drafted tokens in a chain */
    /* How many drafts are accepted, as text: "" unknown; "0.49" the accepted share of the drafted tokens; "2.48" mean
     * tokens of a step; "0.83/0.60/0.45" the marginal rate of each position; "a=0.8" a constant conditional rate. */
    char acceptance[96];
    enum k25_verify verify;
    enum k25_drafting drafting;
    int draft_tp; /* GPUs of the draft: 0 the plan's tp, 1 a copy of the draft on every rank */
};

/* Prompt tokens in the same step (chunked prefill); where attention is data-parallel, on every rank. */
struct k25_plan_prefill {
    int tokens;     /* of one prompt in this step */
    double context; /* tokens of that prompt already in the cache */
};

/* What-if switches; each changes named terms of the step (k25_lever_docs). */
struct k25_plan_levers {
    bool allreduce_free;      /* AllReduces take no time: the upper bound of any improvement */
    double allreduce_overlap; /* share of an AllReduce's transfer that compute hides */
    bool allreduce_norm;      /* the norm after an AllReduce is fused into it */
    bool persistent_experts;  /* the experts of a layer in one persistent kernel: no fixed launch time */
    bool shared_stream;       /* shared experts on a second stream, concurrent with the routed ones */
    double l2_pinned_mib;     /* weights that stay in the L2 from step to step */
    double link_bandwidth;    /* links this many times as fast */
    double link_latency;      /* their latency times this */
    double skew;              /* waits times this; 0: all ranks arrive together */
    double power_limit_w;     /* of a GPU; 0: its default */
};

struct k25_plan {
    int tp, ep, dp, dcp, pp; /* tensor, expert, data, decode context and pipeline parallel sizes, each at least 1 */
    int microbatches;        /* in flight in a pipeline; 0: as many as stages */
    bool attention_dp;       /* attention data-parallel: each of the tp ranks has its own sequences and all heads */
    enum k25_dcp_exchange dcp_exchange;
    enum k25_expert_exchange expert_exchange;
    int expert_rows;       /* tokens up to which the engine's small-batch expert kernel runs; 0: at any number */
    int redundant_experts; /* copies of popular experts, over all ranks, placed to balance them */
    int batch;             /* B: sequences decoding together, over all replicas */
    double context;        /* L: mean tokens in the cache of one sequence */
    enum k25_kv_dtype kv_dtype;
    double memory_utilisation; /* share of the GPU's memory that the engine may use */
    struct k25_plan_allreduce allreduce;
    struct k25_plan_graph graph;
    struct k25_plan_speculation speculation;
    struct k25_plan_prefill prefill;
    struct k25_plan_levers levers; /* the defaults change nothing */
};

extern const struct k25_field k25_plan_fields[];
/* Each NULL-terminated, in the order of its enum. */
extern const char *const k25_kv_dtype_names[K25_KV_DTYPES + 1];
extern const char *const k25_allreduce_policy_names[K25_AR_POLICIES + 1];
extern const char *const k25_protocol_names[K25_PROTOCOLS + 1];
extern const char *const k25_graph_mode_names[K25_GRAPH_MODES + 1];
extern const char *const k25_speculation_names[K25_SPEC_METHODS + 1];
extern const char *const k25_verify_names[K25_VERIFIES + 1];
extern const char *const k25_drafting_names[K25_DRAFTINGS + 1];
extern const char *const k25_dcp_exchange_names[K25_DCP_EXCHANGES + 1];
extern const char *const k25_expert_exchange_names[K25_EXPERT_EXCHANGES + 1];

/* Checks a plan against its architecture and machine: sharding, experts and caches divide evenly, the machine has
 * enough GPUs, the context is within the model's, a chain of drafts has tokens. Fails with K25_BAD_INPUT and the
 * position of the key from `inputs`, which may be NULL. A part of the architecture that is not modelled is refused with
 * the words "not supported yet". */
bool k25_plan_check(const struct k25_plan *plan, const struct k25_architecture *architecture,
                    const struct k25_machine *machine, const struct k25_inputs *inputs, struct k25_error *error);

/* Checks that heads and widths of `architecture` divide over the ranks of the plan; K25_BAD_INPUT otherwise. Part of
 * k25_plan_check, and the check of a draft model. */
bool k25_plan_divides(const struct k25_plan *plan, const struct k25_architecture *architecture,
                      const struct k25_inputs *inputs, struct k25_error *error);

/* Returns the micro-batches in flight in the pipeline: 1 without a pipeline, by default one per stage, at most one per
 * sequence. */
int k25_microbatches(const struct k25_plan *plan);

/* Returns the share of `layers` layers on the stage with the most of them: 1 without a pipeline. */
double k25_stage_share(const struct k25_plan *plan, int layers);

/* Returns whether a step of `rows` tokens runs inside a captured graph. */
bool k25_graph_runs(const struct k25_plan_graph *graph, int rows);

/* Returns the rows that the step computes for `rows` tokens: the next captured CUDA-graph size, or `rows` when eager.
 * Captured sizes are 1, 2, 4, then every 8 up to 256, then every 16 (vLLM's default list, vllm/config). */
int k25_graph_rows(const struct k25_plan_graph *graph, int rows);

extern const double k25_kv_bytes[K25_KV_DTYPES]; /* of one element */

/* Returns the plan of the draft model: of one rank when every rank has a copy of the draft. */
struct k25_plan k25_draft_plan(const struct k25_plan *plan);

#endif
