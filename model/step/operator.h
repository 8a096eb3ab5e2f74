/* The operators of a step: their list, and the work of one in a step.
 *
 * A new operator is a line in K25_OPERATOR_LIST, a line in the file of this folder that adds it (attention.c, ffn.c,
 * ...) and a row in calib/rules/operators.c, which gives the name of its kernel in profiles.
 */
#ifndef K25_MODEL_STEP_OPERATOR_H
#define K25_MODEL_STEP_OPERATOR_H

#include <stdbool.h>

#include "hw/kernel/kernel.h"

/*  X(identifier, name), roughly in the order in which they run */
#define K25_OPERATOR_LIST(X)                                                                                           \
    X(EMBEDDING, embedding)                                                                                            \
    X(ALLREDUCE_EMBEDDING, allreduce_embedding)                                                                        \
    X(FUSE_HIDDEN, fuse_hidden)                                                                                        \
    X(MTP_NORMS, mtp_norms)                                                                                            \
    X(MTP_PROJECTION, mtp_projection)                                                                                  \
    X(ATTENTION_NORM, attention_norm)                                                                                  \
    X(QKV_A, qkv_a)                                                                                                    \
    X(QKV_A_NORM, qkv_a_norm)                                                                                          \
    X(KV_A_NORM, kv_a_norm)                                                                                            \
    X(Q_B, q_b)                                                                                                        \
    X(INDEXER_Q, indexer_q)                                                                                            \
    X(INDEXER_K, indexer_k)                                                                                            \
    X(INDEXER_QUANTISE, indexer_quantise)                                                                              \
    X(INDEXER_SCORES, indexer_scores)                                                                                  \
    X(INDEXER_TOP_K, indexer_top_k)                                                                                    \
    X(GATHER_PICKS, gather_picks)                                                                                      \
    X(MERGE_PICKS, merge_picks)                                                                                        \
    X(PREFILL_INDEXER_SCORES, prefill_indexer_scores)                                                                  \
    X(PREFILL_INDEXER_TOP_K, prefill_indexer_top_k)                                                                    \
    X(ABSORB_K, absorb_k)                                                                                              \
    X(QKV, qkv)                                                                                                        \
    X(QK_NORM, qk_norm)                                                                                                \
    X(ALLREDUCE_QK_NORM, allreduce_qk_norm)                                                                            \
    X(ROPE_AND_CACHE_WRITE, rope_and_cache_write)                                                                      \
    X(GATHER_QUERIES, gather_queries)                                                                                  \
    X(REORDER_QUERIES, reorder_queries)                                                                                \
    X(MLA_ATTENTION, mla_attention)                                                                                    \
    X(GQA_ATTENTION, gqa_attention)                                                                                    \
    X(PREFILL_KV_B, prefill_kv_b)                                                                                      \
    X(GATHER_PREFILL_CACHE, gather_prefill_cache)                                                                      \
    X(PREFILL_ATTENTION, prefill_attention)                                                                            \
    X(EXCHANGE_OUTPUTS, exchange_outputs)                                                                              \
    X(GATHER_LSE, gather_lse)                                                                                          \
    X(MERGE_OUTPUTS, merge_outputs)                                                                                    \
    X(REORDER_OUTPUTS, reorder_outputs)                                                                                \
    X(SCATTER_OUTPUTS, scatter_outputs)                                                                                \
    X(ABSORB_V, absorb_v)                                                                                              \
    X(OUTPUT_GATE, output_gate)                                                                                        \
    X(O_PROJ, o_proj)                                                                                                  \
    X(LINEAR_IN, linear_in)                                                                                            \
    X(CONVOLUTION, convolution)                                                                                        \
    X(DELTA_RULE, delta_rule)                                                                                          \
    X(PREFILL_DELTA_RULE, prefill_delta_rule)                                                                          \
    X(GATED_NORM, gated_norm)                                                                                          \
    X(LINEAR_OUT, linear_out)                                                                                          \
    X(ALLREDUCE_ATTENTION, allreduce_attention)                                                                        \
    X(FFN_NORM, ffn_norm)                                                                                              \
    X(FFN_GATE_UP, ffn_gate_up)                                                                                        \
    X(FFN_ACTIVATION, ffn_activation)                                                                                  \
    X(FFN_DOWN, ffn_down)                                                                                              \
    X(ROUTER, router)                                                                                                  \
    X(TOP_K, top_k)                                                                                                    \
    X(DISPATCH, dispatch)                                                                                              \
    X(ROUTED_EXPERTS, routed_experts)                                                                                  \
    X(COMBINE, combine)                                                                                                \
    X(SHARED_GATE_UP, shared_gate_up)                                                                                  \
    X(SHARED_ACTIVATION, shared_activation)                                                                            \
    X(SHARED_DOWN, shared_down)                                                                                        \
    X(ADD_SHARED, add_shared)                                                                                          \
    X(ALLREDUCE_FFN, allreduce_ffn)                                                                                    \
    X(SEND_STAGE, send_stage)                                                                                          \
    X(FINAL_NORM, final_norm)                                                                                          \
    X(LM_HEAD, lm_head)                                                                                                \
    X(GATHER_LOGITS, gather_logits)                                                                                    \
    X(SAMPLING, sampling)

enum k25_operator_id {
#define X(id, name) K25_OPERATOR_##id,
    K25_OPERATOR_LIST(X)
#undef X
        K25_OPERATORS,
};

enum k25_operator_kind {
    K25_OP_KERNEL,
    K25_OP_ALLREDUCE,
    K25_OP_ALLGATHER,
    K25_OP_REDUCESCATTER,
    K25_OP_ALLTOALL,
    K25_OP_SEND, /* to the next pipeline stage */
    K25_OP_KINDS,
};

enum k25_part { K25_PART_ATTENTION, K25_PART_FFN, K25_PART_HEAD, K25_PART_DRAFT, K25_PARTS };

/* The ranks of a collective. */
enum k25_ranks {
    K25_RANKS_TP,   /* the tp ranks of a replica and stage */
    K25_RANKS_DCP,  /* the ranks that share a cache */
    K25_RANKS_PAIR, /* two stages of a pipeline */
    K25_RANKS_GROUPS,
};

extern const char *const k25_operator_names[K25_OPERATORS + 1];     /* "q_b"; NULL-terminated, as the next two */
extern const char *const k25_operator_kind_names[K25_OP_KINDS + 1]; /* "kernel", "allreduce": for output */
extern const char *const k25_part_names[K25_PARTS + 1];

struct k25_operator {
    enum k25_operator_id id;
    const char *layers; /* group of layers: "dense", "moe"; "" for what runs once a step; static */
    enum k25_part part;
    enum k25_operator_kind kind;
    enum k25_ranks ranks; /* collectives */
    double calls;         /* a step */
    double copies;        /* layers with weights of this operator: calls, unless a draft runs it more than once */
    bool beside;          /* runs on a second stream, concurrent with the routed experts */
    struct k25_kernel_call call; /* K25_OP_KERNEL: the work of one call */
    double message;  /* collectives, bytes per rank of one call: AllReduce the full buffer, gather what a rank
                        contributes, reduce-scatter what a rank keeps, all-to-all what a rank sends in total */
    double rows;     /* tokens through one call, after padding to the graph */
    double n, k;     /* shape of a product y[rows,n] = x[rows,k] W; 0 for others */
    double resident; /* bytes of weights of one call in the memory of the rank */
    double read;     /* bytes of weights that one call reads */
};

#endif
