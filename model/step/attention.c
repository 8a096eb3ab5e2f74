#include <math.h>

#include "model/step/internal.h"

/* The products that absorb kv_b into the query and the output: one small product per head. */
static void add_absorb(struct k25_builder *b, enum k25_operator_id id, double heads, double n, double k)
{
    struct k25_operator *op = k25_add(b, id);
    op->n = n;
    op->k = k;
    op->resident = op->read = heads * n * k * k25_weight_bytes(k25_format_of(b, K25_T_ATTENTION));
    op->call = k25_bmm_call(heads, op->rows, n, k, op->read);
}

/* Inside a CUDA graph the split count is that of the capture; eager kernels choose it from the context (0). */
static double attention_splits(const struct k25_builder *b)
{
    bool graph = k25_graph_runs(&b->plan->graph, b->step->tokens);
    return graph ? b->params->value[K25_MLA_SPLITS] : 0;
}

/* Tokens that a layer reads at most: its window, the top-k of the indexer. */
static double reach(const struct k25_builder *b, const struct k25_layers *layers)
{
    double window = layers->window > 0 ? (double)layers->window : INFINITY;
    return layers->indexer ? fmin(window, b->architecture->indexer.topk) : window;
}

/* All but context, heads and cache, which the callers set. */
static struct k25_attention_work attention_work(const struct k25_builder *b)
{
    return (struct k25_attention_work){
        .sequences = b->step->sequences,
        .rows = b->queries,
        .separate_rows = b->plan->speculation.verify == K25_VERIFY_ROWS,
        .sms = b->machine->gpu.sms,
    };
}

/* FP32 scores of the whole context are read twice: a histogram, then the selection. */
static struct k25_kernel_call top_k_call(const struct k25_attention_work *work)
{
    static const double PASSES = 2, SCORE = 4;
    return (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE,
        .launches = PASSES,
        .bytes = PASSES * work->sequences * work->rows * work->context * SCORE,
    };
}

struct k25_kernel_call k25_context_call(enum k25_kernel_class class, const struct k25_context_work *known,
                                        const struct k25_plan *plan, const struct k25_params *params)
{
    struct k25_attention_work work = known->work;
    work.context = fmin(plan->context, known->limit) / known->ranks;
    switch (class) {
    case K25_KERNEL_MLA:
        return k25_mla_call(&work, params);
    case K25_KERNEL_GQA:
        return k25_gqa_call(&work, params);
    case K25_KERNEL_INDEXER:
        return k25_indexer_call(&work);
    default: /* K25_KERNEL_ELEMENTWISE: the top-k of an indexer */
        return top_k_call(&work);
    }
}

/* Adds an operator that depends on the context. Their number is limited by layer groups and passes of a draft. */
static void add_context_work(struct k25_builder *b, enum k25_operator_id id, enum k25_kernel_class class,
                             const struct k25_attention_work *work, double limit)
{
    struct k25_operator *op = k25_add(b, id);
    struct k25_context_work *known = &b->step->context_work[b->step->context_works++];
    *known = (struct k25_context_work){(size_t)(op - b->step->op), *work, limit, b->plan->dcp};
    op->call = k25_context_call(class, known, b->plan, b->params);
}

/* Ranks that share a cache: each gets the queries of all, and its own outputs back. Prompt tokens do without: every
 * rank has their keys. */
static void add_exchange(struct k25_builder *b, enum k25_operator_id id, enum k25_operator_kind kind,
                         double bytes_per_row)
{
    if (b->plan->dcp == 1)
        return;
    k25_add_collective(b, id, kind, bytes_per_row);
    struct k25_operator *op = &b->step->op[b->step->count - 1];
    op->ranks = K25_RANKS_DCP;
    op->rows -= b->prefill ? b->plan->prefill.tokens : 0;
    op->message = op->rows * bytes_per_row;
}

/* The cache of a layer, `bytes` a token, is held once for every layer with weights of its own. */
static void hold_cache(struct k25_builder *b, double bytes)
{
    b->step->kv_per_token += b->copies * bytes / b->plan->dcp;
}

/* Prompt tokens have a separate attention kernel; `key_dim` and `value_dim` elements per head. The cached part of the
 * prompt is distributed over the ranks that share the cache and is gathered (vLLM, mla/common.py). */
static void add_prefill(struct k25_builder *b, const struct k25_layers *layers, enum k25_kernel_class class,
                        double heads, double key_dim, double value_dim, double cache_bytes)
{
    if (!b->prefill)
        return;
    if (b->plan->dcp > 1 && b->plan->prefill.context > 0) {
        k25_add_collective(b, K25_OPERATOR_GATHER_PREFILL_CACHE, K25_OP_ALLGATHER, 0);
        b->step->op[b->step->count - 1].ranks = K25_RANKS_DCP;
        b->step->op[b->step->count - 1].message = b->plan->prefill.context / b->plan->dcp * cache_bytes;
    }
    struct k25_operator *op = k25_add(b, K25_OPERATOR_PREFILL_ATTENTION);
    op->rows = b->plan->prefill.tokens;
    double limit = reach(b, layers), context = fmin(b->plan->prefill.context, limit);
    op->call = k25_prefill_call(class, op->rows, context, limit, heads, key_dim, value_dim, cache_bytes);
}

/* Keys and values of every head from the latents of the prompt, including cached ones: prompts are too long for the
 * absorbed form to pay. The weights are those that decoding absorbs. */
static void add_prefill_heads(struct k25_builder *b, double heads)
{
    const struct k25_mla *mla = &b->architecture->mla;
    if (!b->prefill)
        return;
    struct k25_operator *op = k25_add(b, K25_OPERATOR_PREFILL_KV_B);
    op->rows = b->plan->prefill.tokens + b->plan->prefill.context;
    op->n = heads * (mla->qk_nope_dim + mla->v_dim);
    op->k = mla->kv_lora_rank;
    op->read = op->n * op->k * k25_weight_bytes(k25_format_of(b, K25_T_ATTENTION));
    op->call = k25_gemm_call(K25_KERNEL_GEMM_BF16, op->rows, op->n, op->k, op->read, b->params);
}

/* NCCL gathers rank after rank; a copy puts rows and heads in order, which one row alone does not need (PyTorch's
 * movedim and reshape, as vLLM's group coordinator has them). */
static void add_reorder(struct k25_builder *b, enum k25_operator_id id, double elements)
{
    if (b->plan->dcp > 1 && b->rows > 1)
        k25_add_elementwise(b, id, 1, 2 * elements);
}

/* Partial outputs of d parts of the context, merged by their log-sum-exps: `heads` of this rank. */
static void add_merge(struct k25_builder *b, double heads, double value_dim)
{
    double d = b->plan->dcp;
    if (d == 1)
        return;
    if (b->plan->dcp_exchange == K25_DCP_ALLTOALL) {
        add_exchange(b, K25_OPERATOR_EXCHANGE_OUTPUTS, K25_OP_ALLTOALL,
                     (d - 1) * heads * (value_dim * K25_ACTIVATION + 4));
        k25_add_elementwise(b, K25_OPERATOR_MERGE_OUTPUTS, 1, (d + 1) * heads * value_dim);
        return;
    }
    add_exchange(b, K25_OPERATOR_GATHER_LSE, K25_OP_ALLGATHER, d * heads * 4); /* one FP32 per gathered head */
    k25_add_elementwise(b, K25_OPERATOR_MERGE_OUTPUTS, 1, 2 * d * heads * value_dim);
    add_reorder(b, K25_OPERATOR_REORDER_OUTPUTS, d * heads * value_dim);
    add_exchange(b, K25_OPERATOR_SCATTER_OUTPUTS, K25_OP_REDUCESCATTER, heads * value_dim * K25_ACTIVATION);
}

/* Every prompt token scores the cache and, on average, half of its own chunk. */
static void add_prefill_scores(struct k25_builder *b, struct k25_attention_work work)
{
    const struct k25_plan_prefill *prefill = &b->plan->prefill;
    if (!b->prefill)
        return;
    work.sequences = 1;
    work.rows = prefill->tokens;
    work.context = (prefill->context + prefill->tokens / 2.0) / b->plan->dcp;
    struct k25_operator *op = k25_add(b, K25_OPERATOR_PREFILL_INDEXER_SCORES);
    op->rows = work.rows;
    op->call = k25_indexer_call(&work);
    op = k25_add(b, K25_OPERATOR_PREFILL_INDEXER_TOP_K);
    op->rows = work.rows;
    op->call = top_k_call(&work);
}

/* Every rank picks from its part of the cache; the picks of all, a score and an index each, are gathered and the best
 * of them taken: lists as long as the pick is meant to be, however short the context. */
static void add_pick_merge(struct k25_builder *b)
{
    double topk = b->architecture->indexer.topk;
    if (b->plan->dcp == 1)
        return;
    add_exchange(b, K25_OPERATOR_GATHER_PICKS, K25_OP_ALLGATHER, topk * b->params->value[K25_INDEXER_PICK]);
    k25_add_elementwise(b, K25_OPERATOR_MERGE_PICKS, 2, 2 * b->plan->dcp * topk);
}

/* Scores of the whole cache, then the best tokens of it. The projections are replicated: DeepSeek-V3.2-Exp,
 * inference/model.py, class Indexer. */
static void add_indexer(struct k25_builder *b)
{
    static const double SCALE = 4; /* bytes: one FP32 scale of an FP8 key */
    const struct k25_indexer *indexer = &b->architecture->indexer;
    double heads = indexer->heads, dim = indexer->dim;
    k25_add_gemm(b, K25_OPERATOR_INDEXER_Q, K25_T_INDEXER, heads * dim, b->architecture->mla.q_lora_rank);
    k25_add_gemm(b, K25_OPERATOR_INDEXER_K, K25_T_INDEXER, dim + heads, b->architecture->hidden);
    k25_add_elementwise(b, K25_OPERATOR_INDEXER_QUANTISE, 3, 2 * (heads + 1) * dim);
    struct k25_attention_work work = attention_work(b);
    work.heads = heads;
    work.key_dim = dim;
    work.cache_bytes = dim + SCALE;
    add_context_work(b, K25_OPERATOR_INDEXER_SCORES, K25_KERNEL_INDEXER, &work, INFINITY);
    hold_cache(b, work.cache_bytes);
    add_context_work(b, K25_OPERATOR_INDEXER_TOP_K, K25_KERNEL_ELEMENTWISE, &work, INFINITY);
    add_pick_merge(b);
    add_prefill_scores(b, work);
}

/* Bytes of a token in the latent cache of one layer. With an indexer FP8 leaves the rotary part in BF16 and keeps a
 * scale for 128 elements: 656 B (vLLM, cache dtype fp8_ds_mla). */
static double latent_bytes(const struct k25_builder *b, const struct k25_layers *layers)
{
    const struct k25_mla *mla = &b->architecture->mla;
    if (layers->indexer && b->plan->kv_dtype == K25_KV_FP8)
        return mla->kv_lora_rank * (1 + 4.0 / 128) + mla->qk_rope_dim * K25_ACTIVATION;
    return (mla->kv_lora_rank + mla->qk_rope_dim) * k25_kv_bytes[b->plan->kv_dtype];
}

/* Query heads that a rank computes: gathered heads of other ranks are padded by the kernel, to twice their number at
 * most. */
static double padded_heads(const struct k25_builder *b, double heads)
{
    double gathered = heads * b->plan->dcp;
    return b->plan->dcp == 1 ? heads : fmax(gathered, fmin(2 * gathered, b->params->value[K25_MLA_GATHERED]));
}

static void add_mla(struct k25_builder *b, const struct k25_layers *layers)
{
    const struct k25_architecture *a = b->architecture;
    const struct k25_mla *mla = &a->mla;
    double heads = mla->heads / (double)b->tp;
    double query = heads * (mla->qk_nope_dim + mla->qk_rope_dim);
    double latent = mla->kv_lora_rank + mla->qk_rope_dim;

    k25_add_norm(b, K25_OPERATOR_ATTENTION_NORM);
    /* The down-projections are replicated: every rank computes all of them. */
    k25_add_gemm(b, K25_OPERATOR_QKV_A, K25_T_ATTENTION, (mla->q_lora_rank ? mla->q_lora_rank : query) + latent,
                 b->widen * a->hidden);
    if (mla->q_lora_rank) {
        k25_add_elementwise(b, K25_OPERATOR_QKV_A_NORM, 2, 2 * mla->q_lora_rank);
        k25_add_gemm(b, K25_OPERATOR_Q_B, K25_T_ATTENTION, query, mla->q_lora_rank);
    } else {
        k25_add_elementwise(b, K25_OPERATOR_KV_A_NORM, 1, 2 * mla->kv_lora_rank);
    }
    if (layers->indexer && !layers->shared_indexer)
        add_indexer(b);
    add_absorb(b, K25_OPERATOR_ABSORB_K, heads, mla->kv_lora_rank, mla->qk_nope_dim);
    k25_add_elementwise(b, K25_OPERATOR_ROPE_AND_CACHE_WRITE, 2, 2 * (heads * mla->qk_rope_dim + latent));
    add_exchange(b, K25_OPERATOR_GATHER_QUERIES, K25_OP_ALLGATHER, heads * latent * K25_ACTIVATION);
    add_reorder(b, K25_OPERATOR_REORDER_QUERIES, b->plan->dcp * heads * latent);

    struct k25_attention_work work = attention_work(b);
    work.heads = padded_heads(b, heads);
    work.key_dim = latent;
    work.value_dim = mla->kv_lora_rank;
    work.cache_bytes = latent_bytes(b, layers);
    work.splits = attention_splits(b);
    add_context_work(b, K25_OPERATOR_MLA_ATTENTION, K25_KERNEL_MLA, &work, reach(b, layers));
    hold_cache(b, work.cache_bytes);
    add_prefill_heads(b, heads);
    add_prefill(b, layers, K25_KERNEL_MLA, heads, mla->qk_nope_dim + mla->qk_rope_dim, mla->v_dim, work.cache_bytes);
    add_merge(b, heads, mla->kv_lora_rank);

    add_absorb(b, K25_OPERATOR_ABSORB_V, heads, mla->v_dim, mla->kv_lora_rank);
    k25_add_gemm(b, K25_OPERATOR_O_PROJ, K25_T_ATTENTION, a->hidden, heads * mla->v_dim);
}

static void add_gqa(struct k25_builder *b, const struct k25_layers *layers)
{
    const struct k25_architecture *a = b->architecture;
    const struct k25_gqa *gqa = &a->gqa;
    double heads = gqa->heads / (double)b->tp;
    double kv_heads = fmax(1, gqa->kv_heads / (double)b->tp); /* fewer heads than ranks: each rank has a copy */
    double width = gqa->head_dim;

    k25_add_norm(b, K25_OPERATOR_ATTENTION_NORM);
    k25_add_gemm(b, K25_OPERATOR_QKV, K25_T_ATTENTION, (heads * (gqa->output_gate ? 2 : 1) + 2 * kv_heads) * width,
                 b->widen * a->hidden);
    if (gqa->qk_norm != K25_QK_NORM_NONE)
        k25_add_elementwise(b, K25_OPERATOR_QK_NORM, gqa->qk_norm == K25_QK_NORM_FULL ? 2 : 1,
                            2 * (heads + kv_heads) * width);
    if (gqa->qk_norm == K25_QK_NORM_FULL && b->tp > 1) /* one FP32 variance each for queries and keys */
        k25_add_collective(b, K25_OPERATOR_ALLREDUCE_QK_NORM, K25_OP_ALLREDUCE, 2 * 4);
    k25_add_elementwise(b, K25_OPERATOR_ROPE_AND_CACHE_WRITE, 2, 2 * (heads + kv_heads) * width);
    add_exchange(b, K25_OPERATOR_GATHER_QUERIES, K25_OP_ALLGATHER, heads * width * K25_ACTIVATION);
    add_reorder(b, K25_OPERATOR_REORDER_QUERIES, b->plan->dcp * heads * width);

    struct k25_attention_work work = attention_work(b);
    work.heads = heads * b->plan->dcp;
    work.kv_heads = kv_heads;
    work.key_dim = work.value_dim = width;
    work.cache_bytes = 2 * kv_heads * width * k25_kv_bytes[b->plan->kv_dtype];
    add_context_work(b, K25_OPERATOR_GQA_ATTENTION, K25_KERNEL_GQA, &work, reach(b, layers));
    hold_cache(b, work.cache_bytes);
    add_prefill(b, layers, K25_KERNEL_GQA, heads, width, width, work.cache_bytes);
    add_merge(b, heads, width);

    if (gqa->output_gate)
        k25_add_elementwise(b, K25_OPERATOR_OUTPUT_GATE, 1, 3 * heads * width);
    k25_add_gemm(b, K25_OPERATOR_O_PROJ, K25_T_ATTENTION, a->hidden, heads * width);
}

/* Prompt tokens update the state in chunks: it is read and written once, with the arithmetic of all tokens. */
static void add_prefill_state(struct k25_builder *b, double state, double state_bytes)
{
    if (!b->prefill)
        return;
    struct k25_operator *op = k25_add(b, K25_OPERATOR_PREFILL_DELTA_RULE);
    op->rows = b->plan->prefill.tokens;
    op->call = k25_linear_call(1, 1, 1, state, 1, state_bytes);
    op->call.flops *= op->rows;
}

/* Gated DeltaNet, arXiv:2412.06464: queries, keys, values, gate and the two rates of a head from one projection, a
 * short convolution, the recurrence over a state of fixed size, a gated norm. */
static void add_linear(struct k25_builder *b)
{
    const struct k25_linear_attention *l = &b->architecture->linear;
    double key = l->key_heads / (double)b->tp * l->key_dim;
    double heads = l->value_heads / (double)b->tp, value = heads * l->value_dim;
    double state_bytes = l->state_bits / 8.0;

    k25_add_norm(b, K25_OPERATOR_ATTENTION_NORM);
    k25_add_gemm(b, K25_OPERATOR_LINEAR_IN, K25_T_LINEAR_ATTENTION, 2 * key + 2 * value + 2 * heads,
                 b->widen * b->architecture->hidden);
    k25_add_elementwise(b, K25_OPERATOR_CONVOLUTION, 1, (2 + l->conv_kernel) * (2 * key + value));
    k25_add(b, K25_OPERATOR_DELTA_RULE)->call =
        k25_linear_call(b->step->sequences, b->queries, heads, l->key_dim, l->value_dim, state_bytes);
    add_prefill_state(b, heads * l->key_dim * l->value_dim, state_bytes);
    b->step->state_per_sequence += b->copies * (heads * l->key_dim * l->value_dim * state_bytes +
                                                (l->conv_kernel - 1) * (2 * key + value) * K25_ACTIVATION);
    k25_add_elementwise(b, K25_OPERATOR_GATED_NORM, 1, 3 * value);
    k25_add_gemm(b, K25_OPERATOR_LINEAR_OUT, K25_T_LINEAR_ATTENTION, b->architecture->hidden, value);
}

void k25_add_attention(struct k25_builder *b, const struct k25_layers *layers)
{
    switch (layers->attention) {
    case K25_MLA:
        add_mla(b, layers);
        break;
    case K25_GQA:
        add_gqa(b, layers);
        break;
    case K25_GATED_DELTA:
        add_linear(b);
        break;
    case K25_ATTENTIONS:
        break;
    }
    if (b->tp > 1)
        k25_add_collective(b, K25_OPERATOR_ALLREDUCE_ATTENTION, K25_OP_ALLREDUCE,
                           b->architecture->hidden * K25_ACTIVATION);
}
