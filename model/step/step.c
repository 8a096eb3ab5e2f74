#include "model/step/step.h"

#include <math.h>

#include "model/step/internal.h"

/* Sequences and tokens of one rank: the batch divided over replicas, micro-batches and, where attention is
 * data-parallel, ranks, rounded up. */
static void count_tokens(const struct k25_plan *plan, struct k25_step *step)
{
    int drafted = plan->speculation.method == K25_SPEC_NONE ? 0 : plan->speculation.tokens;
    int over = plan->dp * k25_microbatches(plan) * (plan->attention_dp ? plan->tp : 1);
    step->sequences = (plan->batch + over - 1) / over;
    step->tokens = step->sequences * (drafted + 1) + plan->prefill.tokens;
    step->rows = k25_graph_rows(&plan->graph, step->tokens);
}

/* Between two stages: hidden states and the residual stream. */
static void add_sends(struct k25_builder *b)
{
    if (b->plan->pp == 1)
        return;
    struct k25_operator *op = k25_add(b, K25_OPERATOR_SEND_STAGE);
    op->kind = K25_OP_SEND;
    op->ranks = K25_RANKS_PAIR;
    op->calls = b->plan->pp - 1;
    op->message = 2 * op->rows * b->architecture->hidden * K25_ACTIVATION;
}

void k25_step_build(const struct k25_architecture *architecture, const struct k25_weights *weights,
                    const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                    const struct k25_params *params, struct k25_step *step)
{
    struct k25_builder b = {.architecture = architecture,
                            .weights = weights,
                            .draft = draft,
                            .machine = machine,
                            .plan = plan,
                            .params = params,
                            .step = step,
                            .layers = "",
                            .part = K25_PART_HEAD,
                            .tp = plan->attention_dp ? 1 : plan->tp,
                            .calls = 1,
                            .copies = 1,
                            .widen = 1};
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
    b.pinned = plan->levers.l2_pinned_mib * 1048576 * plan->pp; /* every stage has its own L2 */
    k25_add_embedding(&b);
    k25_add_layers(&b);
    b.layers = "";
    add_sends(&b);
    k25_add_head(&b);
}
