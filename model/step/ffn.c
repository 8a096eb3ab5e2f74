#include <math.h>

#include "model/step/internal.h"
#include "model/step/routing.h"

static void add_gated_ffn(struct k25_builder *b, const enum k25_operator_id ids[3], enum k25_tensor tensor,
                          double columns)
{
    k25_add_gemm(b, ids[0], tensor, 2 * columns, b->architecture->hidden);
    k25_add_elementwise(b, ids[1], 1, 3 * columns);
    k25_add_gemm(b, ids[2], tensor, b->architecture->hidden, columns);
}

static void add_dense(struct k25_builder *b)
{
    static const enum k25_operator_id ids[] = {K25_OPERATOR_FFN_GATE_UP, K25_OPERATOR_FFN_ACTIVATION,
                                               K25_OPERATOR_FFN_DOWN};
    k25_add_norm(b, K25_OPERATOR_FFN_NORM);
    add_gated_ffn(b, ids, K25_T_DENSE_FFN, b->architecture->dense.intermediate / (double)b->tp);
    if (b->tp > 1)
        k25_add_collective(b, K25_OPERATOR_ALLREDUCE_FFN, K25_OP_ALLREDUCE, b->architecture->hidden * K25_ACTIVATION);
}

static struct k25_placement place_experts(struct k25_builder *b)
{
    struct k25_placement p;
    k25_place_experts(&b->architecture->moe, b->plan, b->params, b->rows, b->distinct, &p);
    if (b->part != K25_PART_DRAFT) {
        b->step->experts = p.touched;
        b->step->experts_rank = p.distinct;
    }
    return p;
}

static void add_routed_experts(struct k25_builder *b, const struct k25_placement *p)
{
    static const enum k25_kernel_class class_of[K25_FORMAT_KINDS] = {
        [K25_BF16] = K25_KERNEL_MOE_BF16, [K25_FP32] = K25_KERNEL_MOE_BF16, [K25_FP8] = K25_KERNEL_MOE_FP8,
        [K25_INT4] = K25_KERNEL_MOE_INT4, [K25_NVFP4] = K25_KERNEL_MOE_FP4, [K25_MXFP4] = K25_KERNEL_MOE_FP4,
    };
    const struct k25_moe *moe = &b->architecture->moe;
    const struct k25_format *format = k25_format_of(b, K25_T_ROUTED_EXPERTS);
    double expert_bytes = 3.0 * b->architecture->hidden * p->columns * k25_weight_bytes(format);

    struct k25_operator *op = k25_add(b, K25_OPERATOR_ROUTED_EXPERTS);
    struct k25_moe_work work = {
        .pairs = p->pairs,
        .distinct = p->distinct,
        .local = p->local,
        .hidden = b->architecture->hidden,
        .columns = p->columns,
        .matrices = 3,
        .expert_bytes = expert_bytes,
        .routed = p->rows * moe->experts_per_token,
    };
    op->n = p->columns;
    op->k = b->architecture->hidden;
    op->resident = p->local * expert_bytes;
    op->read = work.distinct * expert_bytes;
    if (k25_expert_fallback(b->plan, b->rows))
        work.expert_bytes *= b->params->value[K25_MOE_FALLBACK];
    op->call = k25_moe_call(class_of[format->kind], &work, b->params);
    if (b->plan->levers.persistent_experts)
        op->call.launches = op->call.items = 0;
}

/* Tokens to the ranks of their experts, or back. A token goes to R (1 - (1 - 1/R)^K) of R ranks; all but
 * its own rank need a transfer. */
static void add_dispatch(struct k25_builder *b, enum k25_operator_id id, enum k25_operator_kind gathering)
{
    const struct k25_plan *plan = b->plan;
    double hidden = b->architecture->hidden * K25_ACTIVATION, ranks = plan->tp, ep = plan->ep;
    if (!plan->attention_dp)
        return;
    if (plan->expert_exchange == K25_EXPERTS_GATHER) {
        k25_add_collective(b, id, gathering, hidden);
        return;
    }
    double shards = ranks / ep; /* ranks that share the columns of one expert */
    double groups = ep * (1 - pow(1 - 1 / ep, b->architecture->moe.experts_per_token));
    k25_add_collective(b, id, K25_OP_ALLTOALL, groups * shards * (ranks - 1) / ranks * hidden);
}

static void add_shared_experts(struct k25_builder *b)
{
    static const enum k25_operator_id ids[] = {K25_OPERATOR_SHARED_GATE_UP, K25_OPERATOR_SHARED_ACTIVATION,
                                               K25_OPERATOR_SHARED_DOWN};
    const struct k25_moe *moe = &b->architecture->moe;
    if (moe->shared_experts == 0)
        return;
    size_t first = b->step->count;
    add_gated_ffn(b, ids, K25_T_SHARED_EXPERTS, moe->shared_intermediate / (double)b->tp);
    for (size_t i = first; i < b->step->count; i++)
        b->step->op[i].beside = b->plan->levers.shared_stream;
    k25_add_elementwise(b, K25_OPERATOR_ADD_SHARED, moe->shared_gate ? 2 : 1, 3 * b->architecture->hidden);
}

static void add_moe(struct k25_builder *b)
{
    const struct k25_moe *moe = &b->architecture->moe;
    k25_add_norm(b, K25_OPERATOR_FFN_NORM);
    k25_add_gemm(b, K25_OPERATOR_ROUTER, K25_T_ROUTER, moe->experts, b->architecture->hidden);
    k25_add_elementwise(b, K25_OPERATOR_TOP_K, 1, 2 * moe->experts);
    struct k25_placement p = place_experts(b);
    add_dispatch(b, K25_OPERATOR_DISPATCH, K25_OP_ALLGATHER);
    add_routed_experts(b, &p);
    add_dispatch(b, K25_OPERATOR_COMBINE, K25_OP_REDUCESCATTER);
    add_shared_experts(b);
    if (b->tp > 1)
        k25_add_collective(b, K25_OPERATOR_ALLREDUCE_FFN, K25_OP_ALLREDUCE, b->architecture->hidden * K25_ACTIVATION);
}

void k25_add_ffn(struct k25_builder *b, const struct k25_layers *layers)
{
    layers->ffn == K25_MOE ? add_moe(b) : add_dense(b);
}
