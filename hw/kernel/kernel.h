/* What one GPU kernel costs.
 *
 *     t = scale ( t0 launches + item items + norm_p( memory, compute, latency ) + tail )
 *
 *     memory  = bytes / (eta_mem BW)
 *     compute = flops on padded tiles / (eta_mac peak)
 *     latency = serial steps x time of one: K of a product, the context that a split of attention walks
 *     tail    = tail_bytes / (eta_mem BW): traffic that comes after the main loop and does not overlap it
 *     BW      = data-sheet bandwidth x memory.bandwidth
 *     norm_p(x) = (sum x_i^p)^(1/p), p = kernel.p_norm: real kernels turn no sharp corner between their limits
 *
 * The kernel class picks the parameters; the call says how much work there is. hw knows no model: the model hands
 * over shapes, and so does a table of measured kernels.
 */
#ifndef K25_HW_KERNEL_KERNEL_H
#define K25_HW_KERNEL_KERNEL_H

#include <stdbool.h>

#include "hw/params/params.h"
#include "hw/topology/machine.h"

enum k25_kernel_class {
    K25_KERNEL_GEMM_BF16,
    K25_KERNEL_GEMM_FP8,
    K25_KERNEL_GEMM_FP4,
    K25_KERNEL_GEMM_INT4,
    K25_KERNEL_BMM,
    K25_KERNEL_ELEMENTWISE,
    K25_KERNEL_MOE_BF16,
    K25_KERNEL_MOE_FP8,
    K25_KERNEL_MOE_INT4,
    K25_KERNEL_MOE_FP4,
    K25_KERNEL_MLA,
    K25_KERNEL_GQA,
    K25_KERNEL_INDEXER,
    K25_KERNEL_LINEAR,
    K25_KERNEL_CLASSES,
};

enum k25_bound { K25_BOUND_FLOOR, K25_BOUND_MEMORY, K25_BOUND_COMPUTE, K25_BOUND_LATENCY, K25_BOUNDS };

#define K25_SHAPE 3

/* How the work of a call follows what it was made from, as d ln work / d ln of that: for hw/kernel/slopes.h. Each
 * stands beside its formula in the functions below; all 0: the work follows no parameter. */
struct k25_call_elasticity {
    enum k25_param serial_param; /* that the serial steps follow */
    double serial;
    double bytes_reread, bytes_distinct, bytes_pairs; /* of routed experts: moe.reread, distinct experts, pairs */
    double flops_distinct;
};

struct k25_kernel_call {
    enum k25_kernel_class class;
    double launches;   /* floors paid */
    bool batched;      /* more than one sequence: the class may charge for leaving its one-row path */
    double items;      /* things that cost a fixed time each: experts on the rank, tiles of attention */
    double bytes;      /* read and written by the main loop */
    double tail_bytes; /* moved after it */
    double flops;      /* on padded tiles */
    double serial;     /* steps of the serial walk that no bandwidth shortens */
    /* Where the call stands in a residual table (hw/kernel/residual.h): m n k of a product; pairs, distinct experts and
     * columns of experts; sequences, context and heads of MLA. All 0 where the class has no table. */
    double shape[K25_SHAPE];
    struct k25_call_elasticity elasticity;
};

struct k25_kernel_cost {
    double time;                            /* s, all terms joined */
    double floor, memory, compute, latency; /* s, each term alone; floor includes the items, memory the tail */
    enum k25_bound bound;                   /* the largest of the four */
};

extern const char *const k25_kernel_class_names[K25_KERNEL_CLASSES + 1]; /* NULL-terminated */
extern const char *const k25_bound_names[K25_BOUNDS + 1];                /* NULL-terminated */

struct k25_kernel_cost k25_kernel_cost(const struct k25_kernel_call *call, const struct k25_gpu *gpu,
                                       const struct k25_params *params);

/* y[m,n] = x[m,k] W of `weight_bytes`, rows and columns padded to tiles of 64. Activations are BF16. `class` is
 * one of K25_KERNEL_GEMM_*. */
struct k25_kernel_call k25_gemm_call(enum k25_kernel_class class, double m, double n, double k, double weight_bytes,
                                     const struct k25_params *params);

/* `heads` products y[m,n] = x[m,k] W, BF16: the absorption of kv_b. */
struct k25_kernel_call k25_bmm_call(double heads, double m, double n, double k, double weight_bytes);

/* One fused layer of routed experts on one rank: gate and up (2 columns of hidden), activation, down. */
struct k25_moe_work {
    double pairs;        /* (token, expert) pairs that land on this rank */
    double distinct;     /* experts of this rank with at least one token */
    double local;        /* experts this rank holds */
    double hidden;       /* H */
    double columns;      /* width of an expert on this rank */
    double matrices;     /* 3: gate, up, down; 2 for an expert without a gate */
    double expert_bytes; /* weights of one expert on this rank */
    double routed;       /* tokens x top-k of the whole layer: activations moved on every rank */
    double blocks;       /* of rows, over all experts, where loads are known; 0: each expert has the mean load */
};
/* Rows of an expert are padded to a block. INT4 takes the first of 8, 16, 32, 48, 64 with
 * routed / local / block < 0.9 (vllm fused_marlin_moe, which counts the pairs of other ranks too), others 16. */
double k25_moe_block(enum k25_kernel_class class, double routed, double local);

/* `class` is one of K25_KERNEL_MOE_*. */
struct k25_kernel_call k25_moe_call(enum k25_kernel_class class, const struct k25_moe_work *work,
                                    const struct k25_params *params);

/* Decode attention over a cache, one step of `sequences` sequences with `rows` query rows each. */
struct k25_attention_work {
    double sequences, rows;
    bool apart;                /* rows of one sequence walk its cache one by one, each as a sequence of its own */
    double context;            /* tokens read of each sequence's cache */
    double heads;              /* query heads on this rank */
    double kv_heads;           /* key-value heads on this rank (grouped-query only) */
    double key_dim, value_dim; /* elements a head multiplies; MLA: latent + rope, latent */
    double cache_bytes;        /* of one token of one sequence on this rank, one layer */
    double splits;             /* of the context; 0: the kernel's own rule */
    double sms;
};
/* MLA, Triton-style: blocks of 16 query rows (heads x rows of a sequence), each walking `splits` parts of the context
 * as thread blocks, one an SM; every block reads the cache again. */
struct k25_kernel_call k25_mla_call(const struct k25_attention_work *work, const struct k25_params *params);
struct k25_kernel_call k25_gqa_call(const struct k25_attention_work *work, const struct k25_params *params);

/* Scores of a sparse-attention indexer: `heads` x `key_dim` queries a row against one key of `cache_bytes` a token, FP8
 * arithmetic; the scores are written in FP32. Rows of a sequence share one pass. */
struct k25_kernel_call k25_indexer_call(const struct k25_attention_work *work);

/* One step of gated delta-rule attention: every row updates `heads` states of key_dim x value_dim elements of
 * `state_bytes`, read once a sequence and written after each of its rows (a rejected draft falls back to one). */
struct k25_kernel_call k25_linear_call(double sequences, double rows, double heads, double key_dim, double value_dim,
                                       double state_bytes);

/* Attention of `tokens` prompt tokens of one sequence over `context` cached ones and those before them, of which a
 * token sees `reach` at most. */
struct k25_kernel_call k25_prefill_call(enum k25_kernel_class class, double tokens, double context, double reach,
                                        double heads, double key_dim, double value_dim, double cache_bytes);

#endif
