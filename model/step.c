#include "model/step.h"

#include <math.h>
#include <string.h>

#include "model/routing.h"

const char *const k25_part_names[] = {"attention", "ffn", "head", NULL};

/* What the builders share: the question, and where the next operator goes. */
struct builder {
    const struct k25_architecture *architecture;
    const struct k25_weights *weights;
    const struct k25_machine *machine;
    const struct k25_plan *plan;
    const struct k25_params *params;
    struct k25_step *step;
    int part;             /* of the operators being added */
    double calls;         /* layers in the group */
    double rows;          /* tokens through the operators being added */
    const char *layers;   /* the group's name */
};

static const double ACTIVATION = 2; /* bytes of an activation: BF16 between kernels */

static struct k25_operator *add(struct builder *b, const char *name)
{
    struct k25_operator *op = &b->step->op[b->step->count++];
    memset(op, 0, sizeof *op);
    op->name = name;
    op->layers = b->layers;
    op->part = b->part;
    op->calls = b->calls;
    op->rows = b->rows;
    return op;
}

/* y[rows,n] = x[rows,k] W, W of `tensor`'s format. */
static void add_gemm(struct builder *b, const char *name, enum k25_tensor tensor, double n, double k)
{
    static const int class_of[K25_FORMAT_KINDS] = {
        [K25_BF16] = K25_KERNEL_GEMM_BF16, [K25_FP32] = K25_KERNEL_GEMM_BF16, [K25_FP8] = K25_KERNEL_GEMM_FP8,
        [K25_INT4] = K25_KERNEL_GEMM_INT4, [K25_NVFP4] = K25_KERNEL_GEMM_FP4, [K25_MXFP4] = K25_KERNEL_GEMM_FP4,
    };
    const struct k25_format *format = &b->weights->format[tensor];
    struct k25_operator *op = add(b, name);
    op->n = n;
    op->k = k;
    op->resident = op->read = n * k * k25_weight_bytes(format);
    op->call = k25_gemm_call(class_of[format->kind], op->rows, n, k, op->read, b->params);
}

/* `launches` small kernels that each move `elements` activations a row. */
static void add_elementwise(struct builder *b, const char *name, double launches, double elements)
{
    struct k25_operator *op = add(b, name);
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE,
        .launches = launches,
        .bytes = launches * op->rows * elements * ACTIVATION,
    };
}

static void add_allreduce(struct builder *b, const char *name, double bytes_per_row)
{
    if (b->plan->tp == 1)
        return;
    struct k25_operator *op = add(b, name);
    op->kind = K25_OP_ALLREDUCE;
    op->message = op->rows * bytes_per_row;
}

/* The products that absorb kv_b into the query and the output: one small product a head. */
static void add_absorb(struct builder *b, const char *name, double heads, double n, double k)
{
    struct k25_operator *op = add(b, name);
    op->n = n;
    op->k = k;
    op->resident = op->read = heads * n * k * k25_weight_bytes(&b->weights->format[K25_T_ATTENTION]);
    op->call = k25_bmm_call(heads, op->rows, n, k, op->read);
}

/* Inside a CUDA graph the split count is what it was at capture; eager kernels choose by the context (0). */
static double attention_splits(const struct builder *b)
{
    bool graph = k25_graph_runs(&b->plan->graph, b->step->tokens);
    return graph ? b->params->value[K25_MLA_SPLITS] : 0;
}

static void add_mla(struct builder *b)
{
    const struct k25_architecture *a = b->architecture;
    const struct k25_mla *mla = &a->mla;
    double heads = mla->heads / (double)b->plan->tp;
    double query = heads * (mla->qk_nope_dim + mla->qk_rope_dim);
    double latent = mla->kv_lora_rank + mla->qk_rope_dim;

    add_elementwise(b, "attention_norm", 1, 4 * a->hidden);
    /* The down-projections are replicated: every rank computes all of them. */
    add_gemm(b, "qkv_a", K25_T_ATTENTION, (mla->q_lora_rank ? mla->q_lora_rank : query) + latent, a->hidden);
    if (mla->q_lora_rank) {
        add_elementwise(b, "qkv_a_norm", 2, 2 * mla->q_lora_rank);
        add_gemm(b, "q_b", K25_T_ATTENTION, query, mla->q_lora_rank);
    } else {
        add_elementwise(b, "kv_a_norm", 1, 2 * mla->kv_lora_rank);
    }
    add_absorb(b, "absorb_k", heads, mla->kv_lora_rank, mla->qk_nope_dim);
    add_elementwise(b, "rope_and_cache_write", 2, 2 * (heads * mla->qk_rope_dim + latent));

    struct k25_operator *op = add(b, "mla_attention");
    struct k25_attention_work work = {
        .sequences = b->plan->batch,
        .rows = op->rows / b->plan->batch,
        .context = b->plan->context,
        .heads = heads,
        .key_dim = latent,
        .value_dim = mla->kv_lora_rank,
        .cache_bytes = latent * k25_kv_bytes(b->plan->kv_dtype),
        .splits = attention_splits(b),
        .sms = b->machine->gpu.sms,
    };
    op->call = k25_mla_call(&work, b->params);
    b->step->kv_per_token += b->calls * work.cache_bytes;

    add_absorb(b, "absorb_v", heads, mla->v_dim, mla->kv_lora_rank);
    add_gemm(b, "o_proj", K25_T_ATTENTION, a->hidden, heads * mla->v_dim);
    add_allreduce(b, "allreduce_attention", a->hidden * ACTIVATION);
}

static void add_gqa(struct builder *b)
{
    const struct k25_architecture *a = b->architecture;
    const struct k25_gqa *gqa = &a->gqa;
    double heads = gqa->heads / (double)b->plan->tp;
    double kv_heads = fmax(1, gqa->kv_heads / (double)b->plan->tp); /* fewer than ranks: each holds a copy */
    double width = gqa->head_dim;

    add_elementwise(b, "attention_norm", 1, 4 * a->hidden);
    add_gemm(b, "qkv", K25_T_ATTENTION, (heads * (gqa->output_gate ? 2 : 1) + 2 * kv_heads) * width, a->hidden);
    if (gqa->qk_norm != K25_QK_NORM_NONE)
        add_elementwise(b, "qk_norm", gqa->qk_norm == K25_QK_NORM_FULL ? 2 : 1, 2 * (heads + kv_heads) * width);
    if (gqa->qk_norm == K25_QK_NORM_FULL)
        add_allreduce(b, "allreduce_qk_norm", 2 * 4); /* one FP32 variance each for queries and keys */
    add_elementwise(b, "rope_and_cache_write", 2, 2 * (heads + kv_heads) * width);

    struct k25_operator *op = add(b, "gqa_attention");
    struct k25_attention_work work = {
        .sequences = b->plan->batch,
        .rows = op->rows / b->plan->batch,
        .context = b->plan->context,
        .heads = heads,
        .kv_heads = kv_heads,
        .key_dim = width,
        .value_dim = width,
        .cache_bytes = 2 * kv_heads * width * k25_kv_bytes(b->plan->kv_dtype),
        .sms = b->machine->gpu.sms,
    };
    op->call = k25_gqa_call(&work, b->params);
    b->step->kv_per_token += b->calls * work.cache_bytes;

    if (gqa->output_gate)
        add_elementwise(b, "output_gate", 1, 3 * heads * width);
    add_gemm(b, "o_proj", K25_T_ATTENTION, a->hidden, heads * width);
    add_allreduce(b, "allreduce_attention", a->hidden * ACTIVATION);
}

static void add_gated_ffn(struct builder *b, const char *const names[3], enum k25_tensor tensor, double columns)
{
    add_gemm(b, names[0], tensor, 2 * columns, b->architecture->hidden);
    add_elementwise(b, names[1], 1, 3 * columns);
    add_gemm(b, names[2], tensor, b->architecture->hidden, columns);
}

static void add_dense(struct builder *b)
{
    static const char *const names[] = {"ffn_gate_up", "ffn_activation", "ffn_down"};
    add_elementwise(b, "ffn_norm", 1, 4 * b->architecture->hidden);
    add_gated_ffn(b, names, K25_T_DENSE_FFN, b->architecture->dense.intermediate / (double)b->plan->tp);
    add_allreduce(b, "allreduce_ffn", b->architecture->hidden * ACTIVATION);
}

static void add_routed_experts(struct builder *b)
{
    static const int class_of[K25_FORMAT_KINDS] = {
        [K25_BF16] = K25_KERNEL_MOE_BF16, [K25_FP32] = K25_KERNEL_MOE_BF16, [K25_FP8] = K25_KERNEL_MOE_FP8,
        [K25_INT4] = K25_KERNEL_MOE_INT4, [K25_NVFP4] = K25_KERNEL_MOE_FP4, [K25_MXFP4] = K25_KERNEL_MOE_FP4,
    };
    const struct k25_moe *moe = &b->architecture->moe;
    const struct k25_format *format = &b->weights->format[K25_T_ROUTED_EXPERTS];
    double columns = moe->intermediate / (double)b->plan->tp;
    double expert_bytes = 3.0 * b->architecture->hidden * columns * k25_weight_bytes(format);

    struct k25_operator *op = add(b, "routed_experts");
    struct k25_moe_work work = {
        .pairs = op->rows * moe->experts_per_token,
        .distinct = b->step->experts,
        .local = moe->experts,
        .hidden = b->architecture->hidden,
        .columns = columns,
        .matrices = 3,
        .expert_bytes = expert_bytes,
        .routed = op->rows * moe->experts_per_token,
    };
    op->n = columns;
    op->k = b->architecture->hidden;
    op->resident = moe->experts * expert_bytes;
    op->read = work.distinct * expert_bytes;
    op->call = k25_moe_call(class_of[format->kind], &work, b->params);
}

static void add_moe(struct builder *b)
{
    static const char *const shared[] = {"shared_gate_up", "shared_activation", "shared_down"};
    const struct k25_moe *moe = &b->architecture->moe;
    add_elementwise(b, "ffn_norm", 1, 4 * b->architecture->hidden);
    add_gemm(b, "router", K25_T_ROUTER, moe->experts, b->architecture->hidden);
    add_elementwise(b, "top_k", 1, 2 * moe->experts);
    add_routed_experts(b);
    if (moe->shared_experts > 0) {
        add_gated_ffn(b, shared, K25_T_SHARED_EXPERTS, moe->shared_intermediate / (double)b->plan->tp);
        add_elementwise(b, "add_shared", moe->shared_gate ? 2 : 1, 3 * b->architecture->hidden);
    }
    add_allreduce(b, "allreduce_ffn", b->architecture->hidden * ACTIVATION);
}

/* Once a step: the embedding in front (vocabulary-parallel: every rank looks up its part, then an AllReduce). */
static void add_embedding(struct builder *b)
{
    const struct k25_architecture *a = b->architecture;
    add_elementwise(b, "embedding", 1, 2 * a->hidden);
    struct k25_operator *op = &b->step->op[b->step->count - 1];
    if (!a->tied_embeddings)
        op->resident = (double)a->vocabulary / b->plan->tp * a->hidden *
                       k25_weight_bytes(&b->weights->format[K25_T_EMBEDDING]);
    add_allreduce(b, "allreduce_embedding", a->hidden * ACTIVATION);
}

/* ... and the head behind: logits of a vocabulary slice, gathered, sampled. Padding rows produce no logits. */
static void add_head(struct builder *b)
{
    const struct k25_architecture *a = b->architecture;
    double slice = (double)a->vocabulary / b->plan->tp;
    add_elementwise(b, "final_norm", 1, 4 * a->hidden);
    b->rows = b->step->tokens;
    add_gemm(b, "lm_head", K25_T_LM_HEAD, slice, a->hidden);
    if (b->plan->tp > 1) {
        struct k25_operator *op = add(b, "gather_logits");
        op->kind = K25_OP_ALLGATHER;
        op->message = op->rows * slice * ACTIVATION;
    }
    /* Softmax, top-p and the draw pass over FP32 logits of the whole vocabulary. */
    struct k25_operator *op = add(b, "sampling");
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE, .launches = 4, .bytes = 4 * op->rows * a->vocabulary * 4.0};
}

void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_machine *machine, const struct k25_plan *plan, const struct k25_params *params,
                    struct k25_step *step)
{
    struct builder b = {architecture, weights, machine, plan, params, step, K25_PART_HEAD, 1, 0, ""};
    step->count = 0;
    step->kv_per_token = 0;
    step->tokens = plan->batch;
    step->rows = k25_graph_rows(&plan->graph, step->tokens);
    step->experts = architecture->moe.experts == 0 ? 0
        : k25_distinct_experts(architecture->moe.experts, architecture->moe.experts_per_token, step->rows,
                               params->value[K25_ROUTING_CV]);

    b.rows = step->rows;
    add_embedding(&b);
    for (size_t i = 0; i < architecture->layer_groups; i++) {
        const struct k25_layers *layers = &architecture->layers[i];
        b.layers = layers->ffn == K25_MOE ? "moe" : "dense";
        b.calls = layers->count;
        b.part = K25_PART_ATTENTION;
        layers->attention == K25_MLA ? add_mla(&b) : add_gqa(&b);
        b.part = K25_PART_FFN;
        layers->ffn == K25_MOE ? add_moe(&b) : add_dense(&b);
    }
    b.layers = "";
    b.calls = 1;
    b.part = K25_PART_HEAD;
    add_head(&b);
}
