/* The cost of one GPU kernel.
 *
 *     t = scale ( t0 launches + item items + norm_p( memory, compute, latency ) + tail )
 *
 *     memory  = bytes / (eta_mem BW)
 *     compute = flops on padded tiles / (eta_mac peak)
 *     latency = serial steps x time of one: K of a product, the context that a split of attention reads
 *     tail    = tail_bytes / (eta_mem BW): traffic after the main loop, not overlapped with it
 *     BW      = data-sheet bandwidth x memory.bandwidth
 *     norm_p(x) = (sum x_i^p)^(1/p), p = kernel.p_norm: a smooth maximum, since kernels near two limits reach neither
 *
 * t0 is the fixed time of a launch. The first two terms together are the member `floor` and the bound "floor": the cost
 * of the call without work. The kernel class selects the parameters, the call gives the amount of work. hw is
 * independent of models: shapes come from the model or from a table of measured kernels. Nothing here fails or
 * allocates; times in s, sizes in bytes.
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

/* Elasticities of the work of a call, d ln work / d ln x, for hw/kernel/slopes.h. Set by the functions below together
 * with the work; all 0 when the work depends on no parameter. */
struct k25_call_elasticity {
    enum k25_param serial_param;                      /* the parameter that `serial` refers to */
    double serial;                                    /* of the serial steps */
    double bytes_reread, bytes_distinct, bytes_pairs; /* of the bytes of routed experts, with respect to moe.reread, the
                                                         distinct experts and the pairs */
    double flops_distinct;                            /* of their flops, with respect to the distinct experts */
};

struct k25_kernel_call {
    enum k25_kernel_class class;
    double launches;   /* floors paid */
    double batched;    /* 1: more than one sequence, for which the class may charge as it leaves its one-row path */
    double items;      /* things that cost a fixed time each: experts on the rank, tiles of attention */
    double bytes;      /* read and written by the main loop */
    double tail_bytes; /* moved after it */
    double flops;      /* on padded tiles */
    double serial;     /* steps of the serial loop, whose time does not depend on bandwidth */
    /* Coordinates in a residual table (hw/kernel/residual.h): m, n, k of a product; pairs, distinct experts and columns
     * of experts; sequences, context and heads of MLA. All 0 where the class has no table. */
    double shape[K25_SHAPE];
    struct k25_call_elasticity elasticity;
};

struct k25_kernel_cost {
    double time;                            /* s, by the formula above */
    double floor, memory, compute, latency; /* s, each term alone; floor: launches and items, memory with the tail */
    enum k25_bound bound;                   /* the largest of the four */
};

extern const char *const k25_kernel_class_names[K25_KERNEL_CLASSES + 1]; /* NULL-terminated */
extern const char *const k25_bound_names[K25_BOUNDS + 1];                /* NULL-terminated */

/* Returns the cost of a call on a GPU. */
struct k25_kernel_cost k25_kernel_cost(const struct k25_kernel_call *call, const struct k25_gpu *gpu,
                                       const struct k25_params *params);

/* Returns the call of y[m,n] = x[m,k] W with W of `weight_bytes`, rows and columns padded to tiles of 64. Activations
 * are BF16. `class` is one of K25_KERNEL_GEMM_*. */
struct k25_kernel_call k25_gemm_call(enum k25_kernel_class class, double m, double n, double k, double weight_bytes,
                                     const struct k25_params *params);

/* Returns the call of `heads` products y[m,n] = x[m,k] W in BF16, `weight_bytes` for all: the absorption of kv_b. */
struct k25_kernel_call k25_bmm_call(double heads, double m, double n, double k, double weight_bytes);

/* One fused layer of routed experts on one rank: gate and up (2 columns of hidden), activation, down. */
struct k25_moe_work {
    double pairs;        /* (token, expert) pairs on this rank */
    double distinct;     /* experts of this rank with at least one token */
    double local;        /* experts this rank holds */
    double hidden;       /* H */
    double columns;      /* width of an expert on this rank */
    double matrices;     /* 3: gate, up, down; 2 for an expert without a gate */
    double expert_bytes; /* weights of one expert on this rank */
    double routed;       /* tokens x top-k of the whole layer: activations moved on every rank */
    double blocks;       /* blocks of rows over all experts, when loads are known; 0: each expert has the mean load */
};

/* Returns the rows to which an expert is padded. INT4 uses the first of 8, 16, 32, 48, 64 with
 * routed / local / block < 0.9 (vllm fused_marlin_moe, which counts the pairs of other ranks too), other classes 16. */
double k25_moe_block(enum k25_kernel_class class, double routed, double local);

/* Returns the call of one layer of routed experts. `class` is one of K25_KERNEL_MOE_*. */
struct k25_kernel_call k25_moe_call(enum k25_kernel_class class, const struct k25_moe_work *work,
                                    const struct k25_params *params);

/* Decode attention over a cache, one step of `sequences` sequences with `rows` query rows each. */
struct k25_attention_work {
    double sequences, rows;    /* sequences on this rank, query rows of each */
    bool separate_rows;        /* each row of a sequence reads the cache separately, like a sequence of one row */
    double context;            /* tokens read of each sequence's cache */
    double heads;              /* query heads on this rank */
    double kv_heads;           /* key-value heads on this rank (grouped-query only) */
    double key_dim, value_dim; /* elements a head multiplies; MLA: latent + rope, latent */
    double cache_bytes;        /* of one token of one sequence on this rank, one layer */
    double splits;             /* of the context; 0: the kernel's own rule */
    double sms;                /* streaming multiprocessors of the GPU */
};

/* Returns the call of MLA attention as in the Triton kernel: blocks of 16 query rows (heads x rows of a sequence), each
 * reading `splits` parts of the context in as many thread blocks, one per SM; every block reads the cache again. */
struct k25_kernel_call k25_mla_call(const struct k25_attention_work *work, const struct k25_params *params);

/* Returns the call of grouped-query attention: split over the context, one pass for the query heads of a key-value
 * head. */
struct k25_kernel_call k25_gqa_call(const struct k25_attention_work *work, const struct k25_params *params);

/* Returns the call that scores the cache for a sparse-attention indexer: `heads` x `key_dim` queries per row against
 * one key of `cache_bytes` per token, FP8 arithmetic; the scores are written in FP32. Rows of a sequence share one
 * pass. */
struct k25_kernel_call k25_indexer_call(const struct k25_attention_work *work);

/* Returns the call of one step of gated delta-rule attention: every row updates `heads` states of key_dim x value_dim
 * elements of `state_bytes`, read once per sequence and written after each row (to return to after a rejected draft).
 */
struct k25_kernel_call k25_linear_call(double sequences, double rows, double heads, double key_dim, double value_dim,
                                       double state_bytes);

/* Returns the call of attention of `tokens` prompt tokens of one sequence over `context` cached tokens and the earlier
 * ones of the prompt; a token attends to at most `reach`. `cache_bytes` is of one token on this rank. */
struct k25_kernel_call k25_prefill_call(enum k25_kernel_class class, double tokens, double context, double reach,
                                        double heads, double key_dim, double value_dim, double cache_bytes);

#endif
