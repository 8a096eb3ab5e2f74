#include "model/step/internal.h"

/* EAGLE-3: three hidden states of the target become one, for every token that it verified. */
static void add_fusion(struct k25_builder *b)
{
    double hidden = b->architecture->hidden;
    k25_add_gemm(b, K25_OPERATOR_FUSE_HIDDEN, K25_T_ATTENTION, hidden, 3 * hidden);
}

/* A multi-token-prediction module: norms of the embedding and the hidden state, their projection 2H -> H, a layer of
 * the last kind. DeepSeek-V3, arXiv:2412.19437, 2.2. */
static void add_mtp_pass(struct k25_builder *b)
{
    const struct k25_architecture *a = b->architecture;
    const struct k25_layers *last = &a->layers[a->layer_groups - 1];
    b->mtp = true;
    k25_add_elementwise(b, K25_OPERATOR_MTP_NORMS, 2, 4 * a->hidden);
    k25_add_gemm(b, K25_OPERATOR_MTP_PROJECTION, K25_T_MTP, a->hidden, 2 * a->hidden);
    k25_add_attention(b, last);
    k25_add_ffn(b, last);
    b->mtp = false;
}

/* One pass over `rows` tokens, `calls` times; its weights are counted when it is the `first`. The vocabulary of the
 * target is in `slices`. */
static void add_pass(struct k25_builder *b, double calls, double rows, bool first, int slices)
{
    bool mtp = b->plan->speculation.method == K25_SPEC_MTP;
    size_t from = b->step->count;
    double cache = b->step->kv_per_token, state = b->step->state_per_sequence;
    b->calls = calls;
    b->copies = 1;
    b->rows = b->distinct = rows;
    b->queries = first ? b->plan->speculation.tokens + 1 : 1;
    b->logits = b->step->sequences;
    k25_add_embedding(b);
    if (mtp)
        add_mtp_pass(b);
    else
        k25_add_layers(b);
    k25_add_head(b);
    for (size_t i = from; i < b->step->count; i++) {
        struct k25_operator *op = &b->step->op[i];
        /* A module uses embedding and head of the target if their slices are the same. */
        bool borrowed = mtp && slices == b->tp && (op->n == 0 || op->n == (double)b->architecture->vocabulary / b->tp);
        op->copies = first && !borrowed ? op->copies : 0;
    }
    if (!first) {
        b->step->kv_per_token = cache;
        b->step->state_per_sequence = state;
    }
}

void k25_add_draft(struct k25_builder *b)
{
    const struct k25_plan_speculation *speculation = &b->plan->speculation;
    const struct k25_plan plan = k25_draft_plan(b->plan);
    if (speculation->method == K25_SPEC_NGRAM) /* a lookup in the text: no kernel */
        return;
    struct k25_builder main = *b;
    if (speculation->method != K25_SPEC_MTP) {
        b->architecture = b->draft->architecture;
        b->weights = b->draft->weights;
    }
    b->plan = &plan;
    b->tp = plan.attention_dp ? 1 : plan.tp;
    b->part = K25_PART_DRAFT;
    b->layers = "draft";
    double verified = k25_graph_rows(&b->plan->graph, b->step->sequences * (speculation->tokens + 1));
    if (speculation->method == K25_SPEC_EAGLE3) {
        b->rows = verified;
        add_fusion(b);
        b->widen = 2; /* the first layer reads the embedding and the hidden state, concatenated */
    }
    add_pass(b, 1, verified, true, main.tp);
    b->layers = "draft again";
    if (speculation->tokens > 1)
        add_pass(b, speculation->tokens - 1, k25_graph_rows(&b->plan->graph, b->step->sequences), false, main.tp);
    *b = main;
}
