#include "cli/render/plan_words.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void allreduce_words(const struct k25_plan_allreduce *allreduce, char *out, size_t size)
{
    const struct k25_policy_info *policy = &k25_policy_info[allreduce->backend];
    const struct k25_allreduce_limit *limit = &allreduce->limit[policy->backend];
    const char *custom = k25_backend_names[policy->backend];
    char bytes[40], rows[40] = "", nccl[40];
    size_t used = 0;
    k25_text_count(limit->max_bytes, bytes, sizeof bytes);
    if (limit->max_rows > 0)
        snprintf(rows, sizeof rows, " or %d rows", limit->max_rows);
    snprintf(nccl, sizeof nccl, "NCCL (protocol %s)", k25_protocol_names[allreduce->protocol]);
    switch (policy->kind) {
    case K25_POLICY_NCCL:
        snprintf(out, size, "%s", nccl);
        break;
    case K25_POLICY_ALWAYS:
        snprintf(out, size, "%s", custom);
        break;
    case K25_POLICY_LIMITED:
        snprintf(out, size, "%s up to %s bytes%s, then %s", custom, bytes, rows, nccl);
        break;
    case K25_POLICY_FASTEST:
        for (enum k25_backend i = K25_NCCL_PROTOCOLS; i < K25_BACKENDS; i++)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", k25_backend_names[i]);
        snprintf(out + used, size - used, " or %s, whichever is fast%s", nccl,
                 K25_BACKENDS - K25_NCCL_PROTOCOLS > 1 ? "est" : "er");
        break;
    }
}

/* "TP8, EP8, DCP4": what is more than one. */
static void parallel_words(const struct k25_plan *plan, char *out, size_t size)
{
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"EP", plan->ep}, {"DCP", plan->dcp}, {"PP", plan->pp}, {"DP", plan->dp}};
    size_t used =
        (size_t)snprintf(out, size, "TP%d%s", plan->tp, plan->attention_dp ? " (attention data-parallel)" : "");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value > 1)
            used += (size_t)snprintf(out + used, size - used, ", %s%d", sizes[i].name, sizes[i].value);
    }
    if (plan->speculation.method != K25_SPEC_NONE)
        used += (size_t)snprintf(out + used, size - used, ", %s drafting %d",
                                 k25_speculation_names[plan->speculation.method], plan->speculation.tokens);
    if (plan->prefill.tokens > 0)
        snprintf(out + used, size - used, ", beside %d prompt token%s", plan->prefill.tokens,
                 plan->prefill.tokens == 1 ? "" : "s");
}

void cli_plan_words(const struct k25_plan *plan, const struct k25_step *step, char *out, size_t size)
{
    char context[40], allreduce[160] = "", launch[80], parallel[200];
    k25_text_count(plan->context, context, sizeof context);
    if (plan->tp > 1) {
        strcpy(allreduce, "; AllReduce ");
        allreduce_words(&plan->allreduce, allreduce + strlen(allreduce), sizeof allreduce - strlen(allreduce));
    }
    if (k25_graph_runs(&plan->graph, step->tokens))
        snprintf(launch, sizeof launch, "CUDA graph of %d row%s", step->rows, step->rows == 1 ? "" : "s");
    else
        snprintf(launch, sizeof launch, "eager");
    parallel_words(plan, parallel, sizeof parallel);
    snprintf(out, size, "%s, batch %d, context %s, KV %s, %s%s", parallel, plan->batch, context,
             k25_kv_dtype_names[plan->kv_dtype], launch, allreduce);
}

void cli_say_levers(const struct k25_plan_levers *l, struct cli_sentences *sentences)
{
    if (l->allreduce_free)
        cli_say(sentences, "lever allreduce_free: transfer and wait of every AllReduce are 0");
    if (l->allreduce_overlap > 0)
        cli_say(sentences, "lever allreduce_overlap: the transfer of every AllReduce times %g",
                1 - l->allreduce_overlap);
    if (l->allreduce_norm)
        cli_say(sentences, "lever allreduce_norm: no attention_norm, ffn_norm and final_norm behind an AllReduce");
    if (l->persistent_experts)
        cli_say(sentences, "lever persistent_experts: routed_experts without floor");
    if (l->shared_stream)
        cli_say(sentences, "lever shared_stream: of the shared experts only the memory traffic counts");
    if (l->l2_pinned_mib > 0)
        cli_say(sentences, "lever l2_pinned_mib: products of the first layers read %g MiB of weights less a step",
                l->l2_pinned_mib);
    if (l->link_bandwidth != 1 || l->link_latency != 1)
        cli_say(sentences,
                "levers link_bandwidth, link_latency: every collective on links of %g times the bandwidth and %g "
                "times the latency",
                l->link_bandwidth, l->link_latency);
    if (l->skew != 1)
        cli_say(sentences, "lever skew: every wait for the last rank times %g", l->skew);
    if (l->power_limit_w > 0)
        cli_say(sentences,
                "lever power_limit_w: peaks and serial loops of kernels at the clock of %g W (power.exponent)",
                l->power_limit_w);
}

void cli_say_unmeasured(const struct k25_plan *plan, struct cli_sentences *sentences)
{
    const struct {
        const char *what;
        bool used;
    } parts[] = {
        {"expert parallelism", plan->ep > 1},
        {"data-parallel attention", plan->attention_dp},
        {"pipeline stages", plan->pp > 1},
        {"DCP by all-to-all", plan->dcp > 1 && plan->dcp_exchange == K25_DCP_ALLTOALL},
        {"a separate draft model", plan->speculation.method == K25_SPEC_DRAFT},
        {"n-gram drafts", plan->speculation.method == K25_SPEC_NGRAM},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].used)
            cli_say(sentences, "%s: priced from kernels, links and bytes; no served step of that kind was measured",
                    parts[i].what);
    }
}
