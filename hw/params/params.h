/* The parameters: the named unknowns of the model, each with a log-normal prior.
 *
 * A parameter is a physical quantity that is not in a data sheet: the launch cost of a kernel, the share of the memory
 * bandwidth that it reaches, the spread of the ranks' arrivals. Its prior (centre and spread) and source are in
 * hw/params/params.yaml, its value for one host and build in a calibration set (calib/). The table here defines names,
 * units and meanings; the values are never in C.
 */
#ifndef K25_HW_PARAMS_PARAMS_H
#define K25_HW_PARAMS_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"

/* The range of valid values: k25_param_valid. */
enum k25_param_range {
    K25_RANGE_FREE,    /* 0 too */
    K25_RANGE_DIVISOR, /* something is divided by it, or its power is taken: above 0 */
    K25_RANGE_NORM,    /* exponent of a norm: 1 to 64 */
    K25_RANGE_COUNT,   /* of splits or tokens: from 1 */
};

/*  X(identifier, name, unit in files and output, that unit in SI, range, meaning) */
#define K25_PARAM_LIST(X)                                                                                              \
    X(P_NORM, "kernel.p_norm", "", 1, NORM, "exponent of the smooth maximum of a kernel's limits")                     \
    X(KERNEL_SCALE, "kernel.scale", "", 1, DIVISOR, "factor on the time of every kernel but the collectives")          \
    X(BANDWIDTH, "memory.bandwidth", "share", 1, DIVISOR, "DRAM rate of the card / its data sheet")                    \
    X(GEMM_T0, "gemm.t0", "us", 1e-6, FREE, "launch cost of a BF16 matrix product")                                    \
    X(GEMM_MEM, "gemm.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate that it reaches")                         \
    X(GEMM_MAC, "gemm.eta_mac", "share", 1, DIVISOR, "share of the BF16 peak that it reaches")                         \
    X(GEMM_K, "gemm.k_latency", "ns", 1e-9, FREE, "its serial loop over K, per element")                               \
    X(FP8_T0, "gemm_fp8.t0", "us", 1e-6, FREE, "launch cost of an FP8 product, with quantisation of the activations")  \
    X(FP8_MEM, "gemm_fp8.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate that it reaches")                      \
    X(FP8_MAC, "gemm_fp8.eta_mac", "share", 1, DIVISOR, "share of the FP8 peak that it reaches")                       \
    X(FP8_K, "gemm_fp8.k_latency", "ns", 1e-9, FREE, "its serial loop over K, per element")                            \
    X(FP4_T0, "gemm_fp4.t0", "us", 1e-6, FREE,                                                                         \
      "launch cost of a product with 4-bit floating-point weights and activations")                                    \
    X(FP4_MEM, "gemm_fp4.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate that it reaches")                      \
    X(FP4_MAC, "gemm_fp4.eta_mac", "share", 1, DIVISOR, "share of the FP4 peak that it reaches")                       \
    X(FP4_K, "gemm_fp4.k_latency", "ns", 1e-9, FREE, "its serial loop over K, per element")                            \
    X(INT4_T0, "gemm_int4.t0", "us", 1e-6, FREE, "launch cost of a product with INT4 weights and BF16 activations")    \
    X(INT4_MEM, "gemm_int4.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate that it reaches")                    \
    X(INT4_MAC, "gemm_int4.eta_mac", "share", 1, DIVISOR, "share of the BF16 peak that it reaches")                    \
    X(INT4_K, "gemm_int4.k_latency", "ns", 1e-9, FREE, "its serial loop over K, per element")                          \
    X(K_SPLIT, "gemm.k_split", "elements", 1, DIVISOR, "length of K at which split-K has halved the serial loop")      \
    X(BMM_T0, "bmm.t0", "us", 1e-6, FREE,                                                                              \
      "launch cost of a batched product that absorbs kv_b; its rates are those of gemm")                               \
    X(ELEMENT_T0, "elementwise.t0", "us", 1e-6, FREE, "one small kernel: norm, rope, activation, top-k, cache write")  \
    X(MOE_INT4_T0, "moe_int4.t0", "us", 1e-6, FREE,                                                                    \
      "launch cost of a layer of INT4 experts: sort, two products, activation, sum")                                   \
    X(MOE_INT4_MEM, "moe_int4.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the touched experts")     \
    X(MOE_INT4_MAC, "moe_int4.eta_mac", "share", 1, DIVISOR, "share of the BF16 peak on rows padded to the block")     \
    X(MOE_FP4_T0, "moe_fp4.t0", "us", 1e-6, FREE,                                                                      \
      "launch cost of a layer of 4-bit floating-point experts: sort, two products, activation, sum")                   \
    X(MOE_FP4_MEM, "moe_fp4.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the touched experts")       \
    X(MOE_FP4_MAC, "moe_fp4.eta_mac", "share", 1, DIVISOR, "share of the FP4 peak on rows padded to the block")        \
    X(MOE_FP8_T0, "moe_fp8.t0", "us", 1e-6, FREE,                                                                      \
      "launch cost of a layer of FP8 experts: sort, two products, activation, sum")                                    \
    X(MOE_FP8_MEM, "moe_fp8.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the touched experts")       \
    X(MOE_FP8_MAC, "moe_fp8.eta_mac", "share", 1, DIVISOR, "share of the FP8 peak on rows padded to the block")        \
    X(MOE_BF16_T0, "moe_bf16.t0", "us", 1e-6, FREE,                                                                    \
      "launch cost of a layer of BF16 experts: sort, two products, activation, sum")                                   \
    X(MOE_BF16_MEM, "moe_bf16.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the touched experts")     \
    X(MOE_BF16_MAC, "moe_bf16.eta_mac", "share", 1, DIVISOR, "share of the BF16 peak on rows padded to the block")     \
    X(MOE_K, "moe.k_latency", "ns", 1e-9, FREE, "serial loops over hidden and expert width, per element")              \
    X(MOE_REREAD, "moe.reread", "share", 1, FREE,                                                                      \
      "of the weight reads of a further row block of one expert, those that miss the L2")                              \
    X(MOE_ACTIVATION, "moe.activation", "bytes", 1, FREE,                                                              \
      "memory traffic of each routed activation element: gather, zeroing, final sum")                                  \
    X(MOE_GROUPED_ACTIVATION, "moe_grouped.activation", "bytes", 1, FREE,                                              \
      "the same in grouped products (CUTLASS, Triton), which write fewer intermediates than Marlin")                   \
    X(MOE_EXPERT, "moe.expert", "ns", 1e-9, FREE,                                                                      \
      "overhead of a grouped product for each expert on the rank (not INT4 Marlin)")                                   \
    X(MOE_FALLBACK, "moe.fallback", "times", 1, FREE,                                                                  \
      "traffic of experts once tokens are too many for the small-batch kernel (plan.expert_rows)")                     \
    X(MLA_T0, "mla.t0", "us", 1e-6, FREE, "launch cost of MLA decode attention: the split kernel and the merge")       \
    X(MLA_BATCHED, "mla.batched", "us", 1e-6, FREE,                                                                    \
      "added to an MLA block at 2 and more sequences: the one-row fast paths end")                                     \
    X(MLA_SEQUENCE, "mla.sequence", "ns", 1e-9, FREE, "merging the splits of one sequence and head block")             \
    X(MLA_TOKEN, "mla.token", "ns", 1e-9, FREE, "one token of the serial loop of a split over the cache")              \
    X(MLA_MEM, "mla.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the latent cache")                  \
    X(MLA_SPLITS, "mla.splits", "splits", 1, COUNT,                                                                    \
      "key-value splits of a sequence that CUDA graphs are captured with")                                             \
    X(MLA_SPLIT_TOKENS, "mla.split_tokens", "tokens", 1, COUNT,                                                        \
      "context of one split when the splits follow the context (no graph)")                                            \
    X(MLA_GATHERED, "mla.gathered_heads", "heads", 1, FREE,                                                            \
      "query heads to which MLA attention pads gathered queries, at most doubling them")                               \
    X(INDEXER_T0, "indexer.t0", "us", 1e-6, FREE, "launch cost of scoring the cache for sparse attention")             \
    X(INDEXER_MEM, "indexer.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading the index keys")            \
    X(INDEXER_PICK, "indexer.pick", "bytes", 1, FREE,                                                                  \
      "of one picked token where the picks of ranks that share a cache are put together")                              \
    X(LINEAR_T0, "linear.t0", "us", 1e-6, FREE, "launch cost of one step of gated delta-rule attention")               \
    X(LINEAR_MEM, "linear.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading and writing its state")       \
    X(GQA_T0, "gqa.t0", "us", 1e-6, FREE, "launch cost of grouped-query decode attention")                             \
    X(GQA_TILE, "gqa.tile", "ns", 1e-9, FREE, "scheduling and merging, per sequence and key-value head")               \
    X(GQA_TOKEN, "gqa.token", "ns", 1e-9, FREE, "one token of the serial loop of a split, for heads of 128")           \
    X(GQA_MEM, "gqa.eta_mem", "share", 1, DIVISOR, "share of the DRAM rate reading keys and values")                   \
    X(GQA_SPLIT_TOKENS, "gqa.split_tokens", "tokens", 1, COUNT, "smallest context of one split")                       \
    X(NCCL_BASE, "nccl.base", "us", 1e-6, FREE, "start of a ring collective with LL or LL128, before the first hop")   \
    X(NCCL_HOP, "nccl.hop", "us", 1e-6, FREE, "one LL hop without the latency of the link: write, poll, reduce")       \
    X(NCCL_LL, "nccl.eta_ll", "share", 1, DIVISOR, "share of the ring bandwidth with LL on 2 GPUs (half are flags)")   \
    X(NCCL_LL_SCALING, "nccl.ll_scaling", "exponent", 1, FREE, "LL bandwidth falls with the ranks as (n/2)^-exponent") \
    X(NCCL_LL_NORM, "nccl.ll_norm", "", 1, NORM, "exponent that combines latency and volume under LL")                 \
    X(NCCL_LL_MAX, "nccl.ll_max", "KB", 1e3, FREE, "largest message that NCCL sends with LL by default")               \
    X(NCCL_LL128_HOP, "nccl.ll128_hop", "us", 1e-6, FREE, "one LL128 hop without the latency of the link")             \
    X(NCCL_SIMPLE_BASE, "nccl.simple_base", "us", 1e-6, FREE, "start with the Simple protocol")                        \
    X(NCCL_SIMPLE_HOP, "nccl.simple_hop", "us", 1e-6, FREE, "one Simple hop without the latency of the link")          \
    X(NCCL_ETA, "nccl.eta", "share", 1, DIVISOR, "share of the ring bandwidth with LL128 or Simple on 2 GPUs")         \
    X(NCCL_RING, "nccl.ring", "share", 1, DIVISOR, "of that, with more than 2 GPUs, which use both directions")        \
    X(NCCL_GATHER, "nccl.gather", "times", 1, FREE,                                                                    \
      "hops of a ring gather or reduce-scatter / what they cost in an AllReduce")                                      \
    X(GATHER_VOLUME, "nccl.gather_volume", "times", 1, DIVISOR,                                                        \
      "bytes through a link of a gather or reduce-scatter / what they cost in an AllReduce")                           \
    X(GATHER_LL_MAX, "nccl.gather_ll_max", "KB", 1e3, FREE,                                                            \
      "largest gathered buffer that takes LL where NCCL may choose among all protocols")                               \
    X(ONESHOT_BASE, "oneshot.base", "us", 1e-6, FREE, "one-shot AllReduce: launch, flags, reduction")                  \
    X(ONESHOT_PEER, "oneshot.peer", "us", 1e-6, FREE, "one-shot: flag written to and awaited from one peer")           \
    X(ONESHOT_ETA, "oneshot.eta", "share", 1, DIVISOR, "share of its own link that a rank reading its peers reaches")  \
    X(ONESHOT_SHARED, "oneshot.shared", "share", 1, DIVISOR,                                                           \
      "share that the reads of all ranks reach of a link they share")                                                  \
    X(SKEW_SIGMA, "skew.sigma", "us", 1e-6, FREE, "spread of a rank's arrival, independent of the segment")            \
    X(SKEW_RHO, "skew.rho", "share", 1, FREE, "spread of a rank's arrival / the compute segment before it")            \
    X(SKEW_LAG, "skew.lag", "us", 1e-6, FREE, "persistent lag of the slowest rank in each segment")                    \
    X(ROUTING_CV, "routing.cv", "", 1, FREE,                                                                           \
      "spread of the experts' popularity: standard deviation / mean; 0 = uniform")                                     \
    X(ROUTING_OVERLAP, "routing.overlap", "share", 1, FREE,                                                            \
      "of the experts of a verified token, those shared with its neighbour in the sequence")                           \
    X(DRAFT_PASS, "draft.pass", "us", 1e-6, FREE, "host time before one pass of the draft")                            \
    X(DRAFT_SEQUENCE, "draft.sequence", "us", 1e-6, FREE,                                                              \
      "rejection sampling and bookkeeping of a speculating sequence")                                                  \
    X(POWER_EXPONENT, "power.exponent", "exponent", 1, FREE,                                                           \
      "clock / full clock = (limit / draw at full clock)^exponent")                                                    \
    X(STEP_FLOORS, "step.floors", "times", 1, FREE,                                                                    \
      "what a step pays of its kernels' launch floors / measured alone: launches overlap, kernels are fused")          \
    X(GRAPH_GAP, "host.graph_gap", "us", 1e-6, FREE, "gap between two kernels inside a CUDA graph")                    \
    X(EAGER_LAUNCH, "host.eager_launch", "us", 1e-6, FREE, "host time of one kernel launch without a graph")           \
    X(HOST_STEP, "host.step", "us", 1e-6, FREE, "scheduler and sampling of a step that are not hidden")                \
    X(HOST_SEQUENCE, "host.sequence", "us", 1e-6, FREE, "the same, per sequence")                                      \
    X(RESERVE, "memory.reserve", "GB", 1e9, FREE, "memory of context, graphs, communication buffers and activations")

enum k25_param {
#define X(id, name, unit, scale, range, doc) K25_##id,
    K25_PARAM_LIST(X)
#undef X
        K25_PARAMS
};

struct k25_param_info {
    const char *name, *unit; /* "gemm.t0", "us"; the unit may be "" */
    double scale;            /* one unit in SI */
    enum k25_param_range range;
    const char *doc; /* one line: what it is */
};

extern const struct k25_param_info k25_param_info[K25_PARAMS];
extern const char *const k25_param_names[K25_PARAMS + 1]; /* NULL-terminated, in the same order */

/* One value of each parameter, in SI units. */
struct k25_params {
    double value[K25_PARAMS]; /* by enum k25_param */
};

/* ln(parameter) is normal around ln(centre) with standard deviation `spread`; a spread of 0 is a constant. */
struct k25_priors {
    double centre[K25_PARAMS]; /* SI */
    double spread[K25_PARAMS];
    char source[K25_PARAMS][160]; /* of the prior */
};

/* Reads hw/params/params.yaml (`k25sim: parameters`): every parameter of the table and no other. `inputs`, unless NULL,
 * records each value as a prior under "parameters.NAME". Fails with K25_BAD_INPUT and the position for an unknown or
 * missing parameter, a wrong unit, a value that is not valid; K25_RESOURCE for read errors and out of memory. */
bool k25_priors_load(const char *path, struct k25_priors *priors, struct k25_inputs *inputs, struct k25_error *error);

/* Returns whether a value (SI) is valid for a parameter: between 1e-12 and 1e12 in its unit; 0 too, where nothing is
 * divided by it; an exponent of a norm from 1 to 64; a count of splits or tokens from 1. */
bool k25_param_valid(int id, double value);

/* Returns the index of a parameter by name, -1 when there is none. */
int k25_param_find(const char *name);

#endif
