/* One pass through a model: embedding, layers, head. */
#include "model/step/internal.h"

/* Vocabulary-parallel: every rank looks up its part, then an AllReduce. */
void k25_add_embedding(struct k25_builder *b)
{
    const struct k25_architecture *a = b->architecture;
    k25_add_elementwise(b, K25_OPERATOR_EMBEDDING, 1, 2 * a->hidden);
    struct k25_operator *op = &b->step->op[b->step->count - 1];
    if (!a->tied_embeddings)
        op->resident =
            (double)a->vocabulary / b->tp * a->hidden * k25_weight_bytes(&b->weights->format[K25_T_EMBEDDING]);
    if (b->tp > 1)
        k25_add_collective(b, K25_OPERATOR_ALLREDUCE_EMBEDDING, K25_OP_ALLREDUCE, a->hidden * K25_ACTIVATION);
}

/* Logits of a vocabulary slice, gathered, sampled. Padding rows produce no logits, nor do prompt tokens. */
void k25_add_head(struct k25_builder *b)
{
    const struct k25_architecture *a = b->architecture;
    double slice = (double)a->vocabulary / b->tp;
    k25_add_norm(b, K25_OPERATOR_FINAL_NORM);
    b->rows = b->logits;
    k25_add_gemm(b, K25_OPERATOR_LM_HEAD, K25_T_LM_HEAD, slice, a->hidden);
    if (b->tp > 1)
        k25_add_collective(b, K25_OPERATOR_GATHER_LOGITS, K25_OP_ALLGATHER, slice * K25_ACTIVATION);
    /* Softmax, top-p and the draw pass over FP32 logits of the whole vocabulary. */
    struct k25_operator *op = k25_add(b, K25_OPERATOR_SAMPLING);
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE, .launches = 4, .bytes = 4 * op->rows * a->vocabulary * 4.0};
}

/* `count` of these layers, `passes` times. */
static void add_group(struct k25_builder *b, const struct k25_layers *layers, int count, double passes,
                      enum k25_part part)
{
    static const char *const names[K25_ATTENTIONS][K25_FFNS] = {
        [K25_MLA] = {[K25_DENSE] = "dense", [K25_MOE] = "moe"},
        [K25_GQA] = {[K25_DENSE] = "dense", [K25_MOE] = "moe"},
        [K25_GATED_DELTA] = {[K25_DENSE] = "linear dense", [K25_MOE] = "linear moe"},
    };
    if (part != K25_PART_DRAFT)
        b->layers = names[layers->attention][layers->ffn];
    b->calls = passes * count;
    b->copies = count;
    b->part = part == K25_PART_DRAFT ? part : K25_PART_ATTENTION;
    k25_add_attention(b, layers);
    b->part = part == K25_PART_DRAFT ? part : K25_PART_FFN;
    k25_add_ffn(b, layers);
}

void k25_add_layers(struct k25_builder *b)
{
    double passes = b->calls, widen = b->widen;
    enum k25_part part = b->part;
    for (size_t i = 0; i < b->architecture->layer_groups; i++) {
        const struct k25_layers *layers = &b->architecture->layers[i];
        int wider = b->widen > 1 && layers->count > 1; /* the wider first layer alone, then the others */
        if (wider)
            add_group(b, layers, 1, passes, part);
        b->widen = wider ? 1 : b->widen;
        add_group(b, layers, layers->count - wider, passes, part);
        b->widen = 1;
    }
    b->widen = widen;
    b->calls = passes;
    b->copies = 1;
    b->part = part;
}
