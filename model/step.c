#include "model/step.h"

#include <math.h>
#include <string.h>

#include "model/routing.h"
#include "model/step_internal.h"

const char *const k25_part_names[] = {"attention", "ffn", "head", "draft", NULL};

struct k25_operator *k25_add(struct k25_builder *b, const char *name)
{
    struct k25_operator *op = &b->step->op[b->step->count++];
    memset(op, 0, sizeof *op);
    op->name = name;
    op->layers = b->layers;
    op->part = b->part;
    op->calls = b->calls;
    op->copies = b->copies;
    op->rows = b->rows;
    return op;
}

const struct k25_format *k25_format_of(const struct k25_builder *b, enum k25_tensor tensor)
{
    return &b->weights->format[b->mtp && tensor != K25_T_LM_HEAD && tensor != K25_T_EMBEDDING ? K25_T_MTP : tensor];
}

/* Bytes that one call finds in the L2, of the weights that are pinned there. */
static double pinned(struct k25_builder *b, const struct k25_operator *op)
{
    double bytes = fmin(b->pinned, op->calls * op->read);
    b->pinned -= bytes;
    return bytes / op->calls;
}

void k25_add_gemm(struct k25_builder *b, const char *name, enum k25_tensor tensor, double n, double k)
{
    static const int class_of[K25_FORMAT_KINDS] = {
        [K25_BF16] = K25_KERNEL_GEMM_BF16, [K25_FP32] = K25_KERNEL_GEMM_BF16, [K25_FP8] = K25_KERNEL_GEMM_FP8,
        [K25_INT4] = K25_KERNEL_GEMM_INT4, [K25_NVFP4] = K25_KERNEL_GEMM_FP4, [K25_MXFP4] = K25_KERNEL_GEMM_FP4,
    };
    const struct k25_format *format = k25_format_of(b, tensor);
    struct k25_operator *op = k25_add(b, name);
    op->n = n;
    op->k = k;
    op->resident = op->read = n * k * k25_weight_bytes(format);
    op->call = k25_gemm_call(class_of[format->kind], op->rows, n, k, op->read, b->params);
    if (b->pinned > 0)
        op->call.bytes -= pinned(b, op);
}

void k25_add_elementwise(struct k25_builder *b, const char *name, double launches, double elements)
{
    struct k25_operator *op = k25_add(b, name);
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE,
        .launches = launches,
        .bytes = launches * op->rows * elements * K25_ACTIVATION,
    };
}

void k25_add_norm(struct k25_builder *b, const char *name)
{
    if (!b->plan->levers.allreduce_norm || b->tp == 1)
        k25_add_elementwise(b, name, 1, 4 * b->architecture->hidden);
}

void k25_add_collective(struct k25_builder *b, const char *name, int kind, double bytes_per_row)
{
    if (b->plan->tp == 1)
        return;
    struct k25_operator *op = k25_add(b, name);
    op->kind = kind;
    op->message = op->rows * bytes_per_row;
}

/* Vocabulary-parallel: every rank looks up its part, then an AllReduce. */
void k25_add_embedding(struct k25_builder *b)
{
    const struct k25_architecture *a = b->architecture;
    k25_add_elementwise(b, "embedding", 1, 2 * a->hidden);
    struct k25_operator *op = &b->step->op[b->step->count - 1];
    if (!a->tied_embeddings)
        op->resident = (double)a->vocabulary / b->tp * a->hidden *
                       k25_weight_bytes(&b->weights->format[K25_T_EMBEDDING]);
    if (b->tp > 1)
        k25_add_collective(b, "allreduce_embedding", K25_OP_ALLREDUCE, a->hidden * K25_ACTIVATION);
}

/* Logits of a vocabulary slice, gathered, sampled. Padding rows produce no logits, nor do prompt tokens. */
void k25_add_head(struct k25_builder *b)
{
    const struct k25_architecture *a = b->architecture;
    double slice = (double)a->vocabulary / b->tp;
    k25_add_norm(b, "final_norm");
    b->rows = b->logits;
    k25_add_gemm(b, "lm_head", K25_T_LM_HEAD, slice, a->hidden);
    if (b->tp > 1)
        k25_add_collective(b, "gather_logits", K25_OP_ALLGATHER, slice * K25_ACTIVATION);
    /* Softmax, top-p and the draw pass over FP32 logits of the whole vocabulary. */
    struct k25_operator *op = k25_add(b, "sampling");
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE, .launches = 4, .bytes = 4 * op->rows * a->vocabulary * 4.0};
}

/* `count` of these layers, `passes` times. */
static void add_group(struct k25_builder *b, const struct k25_layers *layers, int count, double passes, int part)
{
    static const char *const names[3][2] = {{"dense", "moe"}, {"dense", "moe"}, {"linear dense", "linear moe"}};
    if (part != K25_PART_DRAFT)
        b->layers = names[layers->attention][layers->ffn == K25_MOE];
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
    int part = b->part;
    for (size_t i = 0; i < b->architecture->layer_groups; i++) {
        const struct k25_layers *layers = &b->architecture->layers[i];
        int wider = b->widen > 1 && layers->count > 1; /* the first layer alone, then those that are not wider */
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

/* Sequences and tokens of one rank: the batch over replicas, micro-batches and, where attention is data-parallel, the
 * ranks; the one with the most counts. */
static void count_tokens(const struct k25_plan *plan, struct k25_step *step)
{
    int drafted = plan->speculation.method == K25_SPEC_NONE ? 0 : plan->speculation.tokens;
    int over = plan->dp * k25_microbatches(plan) * (plan->attention_dp ? plan->tp : 1);
    step->sequences = (plan->batch + over - 1) / over;
    step->tokens = step->sequences * (drafted + 1) + plan->prefill.tokens;
    step->rows = k25_graph_rows(&plan->graph, step->tokens);
}

double k25_distinct_tokens(const struct k25_plan *plan, const struct k25_params *params, double rows)
{
    if (plan->speculation.method == K25_SPEC_NONE)
        return rows;
    int k = plan->speculation.tokens;
    return rows * (1 + k * (1 - fmin(1, params->value[K25_ROUTING_OVERLAP]))) / (k + 1);
}

double k25_distinct_tokens_slope(const struct k25_plan *plan, const struct k25_params *params, double rows)
{
    double overlap = params->value[K25_ROUTING_OVERLAP], k = plan->speculation.tokens;
    return plan->speculation.method == K25_SPEC_NONE || overlap > 1 ? 0 : -rows * k * overlap / (k + 1);
}

/* Between two stages: hidden states and the residual stream. */
static void add_sends(struct k25_builder *b)
{
    if (b->plan->pp == 1)
        return;
    struct k25_operator *op = k25_add(b, "send_stage");
    op->kind = K25_OP_SEND;
    op->ranks = K25_RANKS_PAIR;
    op->calls = b->plan->pp - 1;
    op->message = 2 * op->rows * b->architecture->hidden * K25_ACTIVATION;
}

void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                    const struct k25_params *params, struct k25_step *step)
{
    struct k25_builder b = {.architecture = architecture, .weights = weights, .draft = draft, .machine = machine,
                            .plan = plan, .params = params, .step = step, .layers = "", .part = K25_PART_HEAD,
                            .tp = plan->attention_dp ? 1 : plan->tp, .calls = 1, .copies = 1, .widen = 1};
    step->count = 0;
    step->kv_per_token = step->state_per_sequence = 0;
    step->experts = step->experts_rank = 0;
    step->context_works = 0;
    step->layers = k25_layer_count(architecture);
    count_tokens(plan, step);
    if (plan->speculation.method != K25_SPEC_NONE)
        k25_add_draft(&b);

    b.rows = step->rows;
    b.distinct = k25_distinct_tokens(plan, params, step->rows);
    b.queries = (step->tokens - plan->prefill.tokens) / step->sequences;
    b.logits = step->tokens - plan->prefill.tokens;
    b.prefill = plan->prefill.tokens > 0;
    b.pinned = plan->levers.l2_pinned_mib * 1048576 * plan->pp; /* every stage has an L2 of its own */
    k25_add_embedding(&b);
    k25_add_layers(&b);
    b.layers = "";
    add_sends(&b);
    k25_add_head(&b);
}
