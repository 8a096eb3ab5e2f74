#include "model/plan/plan.h"

#include <math.h>
#include <stddef.h>

#include "model/plan/speculation.h"

const char *const k25_kv_dtype_names[K25_KV_DTYPES + 1] = {[K25_KV_BF16] = "bf16", [K25_KV_FP8] = "fp8"};
const double k25_kv_bytes[K25_KV_DTYPES] = {[K25_KV_BF16] = 2, [K25_KV_FP8] = 1};
const char *const k25_allreduce_policy_names[K25_AR_POLICIES + 1] = {
    [K25_AR_NCCL] = "nccl",
#define X(id, key, words) [K25_AR_##id] = #key, [K25_AR_##id##_THEN_NCCL] = #key "_then_nccl",
    K25_CUSTOM_LIST(X)
#undef X
        [K25_AR_FASTEST] = "fastest",
};
const struct k25_policy_info k25_policy_info[K25_AR_POLICIES] = {
    [K25_AR_NCCL] = {K25_POLICY_NCCL, K25_BACKEND_NCCL_LL},
#define X(id, key, words)                                                                                              \
    [K25_AR_##id] = {K25_POLICY_ALWAYS, K25_BACKEND_##id},                                                             \
    [K25_AR_##id##_THEN_NCCL] = {K25_POLICY_LIMITED, K25_BACKEND_##id},
    K25_CUSTOM_LIST(X)
#undef X
        [K25_AR_FASTEST] = {K25_POLICY_FASTEST, K25_BACKEND_NCCL_LL},
};
const char *const k25_protocol_names[K25_PROTOCOLS + 1] = {
    [K25_PROTO_AUTO] = "auto",
#define X(id, key, words) [K25_PROTO_##id] = #key,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
        [K25_PROTO_ALL] = "all",
};
const char *const k25_graph_mode_names[K25_GRAPH_MODES + 1] = {[K25_GRAPH_FULL] = "full", [K25_GRAPH_NONE] = "none"};
const char *const k25_speculation_names[K25_SPEC_METHODS + 1] = {
    [K25_SPEC_NONE] = "none",   [K25_SPEC_MTP] = "mtp",     [K25_SPEC_EAGLE3] = "eagle3",
    [K25_SPEC_NGRAM] = "ngram", [K25_SPEC_DRAFT] = "draft",
};
const char *const k25_verify_names[K25_VERIFIES + 1] = {[K25_VERIFY_ROWS] = "rows", [K25_VERIFY_SHARED] = "shared"};
const char *const k25_drafting_names[K25_DRAFTINGS + 1] = {
    [K25_DRAFT_SERIAL] = "serial",
    [K25_DRAFT_FUSED] = "fused",
    [K25_DRAFT_ASYNC] = "async",
};
const char *const k25_dcp_exchange_names[K25_DCP_EXCHANGES + 1] = {
    [K25_DCP_GATHER] = "gather",
    [K25_DCP_ALLTOALL] = "all_to_all",
};
const char *const k25_expert_exchange_names[K25_EXPERT_EXCHANGES + 1] = {
    [K25_EXPERTS_ALLTOALL] = "all_to_all",
    [K25_EXPERTS_GATHER] = "gather",
};

static const struct k25_field allreduce_fields[] = {
    K25_FIELD(ENUM, k25_plan_allreduce, backend, .fallback = "nccl", .names = k25_allreduce_policy_names,
              .doc = "AllReduce that the engine calls"),
#define X(id, key, words)                                                                                              \
    K25_FIELD_AS(REAL, k25_plan_allreduce, limit[K25_BACKEND_##id].max_bytes, #key "_max_bytes", .fallback = "57344",  \
                 .min = 0, .max = 1e12, .unit = "bytes",                                                               \
                 .doc = #key "_then_nccl: " words " up to this message, bytes per rank of the full buffer"),           \
        K25_FIELD_AS(INT, k25_plan_allreduce, limit[K25_BACKEND_##id].max_rows, #key "_max_rows", .fallback = "0",     \
                     .min = 0, .max = 1e6, .unit = "rows",                                                             \
                     .doc = #key "_then_nccl: " words " up to this many rows, whatever their bytes"),
    K25_CUSTOM_LIST(X)
#undef X
        K25_FIELD(ENUM, k25_plan_allreduce, protocol, .fallback = "auto", .names = k25_protocol_names,
                  .doc = "protocols NCCL may use (NCCL_PROTO)"),
    {.key = NULL},
};

static const struct k25_field graph_fields[] = {
    K25_FIELD(ENUM, k25_plan_graph, mode, .fallback = "full", .names = k25_graph_mode_names,
              .doc = "CUDA graph of the whole step, or eager launches"),
    K25_FIELD(INT, k25_plan_graph, max_rows, .fallback = "512", .min = 1, .max = 65536, .unit = "rows",
              .doc = "largest captured batch; larger ones run eager"),
    {.key = NULL},
};

static const struct k25_field speculation_fields[] = {
    K25_FIELD(ENUM, k25_plan_speculation, method, .fallback = "none", .names = k25_speculation_names,
              .doc = "drafting method"),
    K25_FIELD(INT, k25_plan_speculation, tokens, .fallback = "0", .min = 0, .max = K25_MAX_DRAFT, .unit = "tokens",
              .doc = "drafted tokens in a chain (k)"),
    K25_FIELD(TEXT, k25_plan_speculation, acceptance, .fallback = "",
              .doc = "share of drafts accepted (0.49), tokens a step (2.48), marginal rates (0.83/0.6/0.45) or "
                     "a=conditional rate"),
    K25_FIELD(ENUM, k25_plan_speculation, verify, .fallback = "shared", .names = k25_verify_names,
              .doc = "attention over the tokens of one sequence that are verified"),
    K25_FIELD(ENUM, k25_plan_speculation, drafting, .fallback = "serial", .names = k25_drafting_names,
              .doc = "host work between the passes of the draft"),
    K25_FIELD(INT, k25_plan_speculation, draft_tp, .fallback = "0", .min = 0, .max = K25_MAX_GPUS, .unit = "GPUs",
              .doc = "tensor-parallel ranks of the draft; 0: the plan's"),
    {.key = NULL},
};

static const struct k25_field prefill_fields[] = {
    K25_FIELD(INT, k25_plan_prefill, tokens, .fallback = "0", .min = 0, .max = 1e6, .unit = "tokens",
              .doc = "prompt tokens in the same step"),
    K25_FIELD(REAL, k25_plan_prefill, context, .fallback = "0", .min = 0, .max = 1e8, .unit = "tokens",
              .doc = "tokens of that prompt already in the cache"),
    {.key = NULL},
};

static const struct k25_field lever_fields[] = {
    K25_FIELD(BOOL, k25_plan_levers, allreduce_free, .fallback = "false",
              .doc = "AllReduces take no time: the upper bound of any improvement"),
    K25_FIELD(REAL, k25_plan_levers, allreduce_overlap, .fallback = "0", .min = 0, .max = 1, .unit = "share",
              .doc = "of an AllReduce's transfer that compute hides"),
    K25_FIELD(BOOL, k25_plan_levers, allreduce_norm, .fallback = "false",
              .doc = "the norm after an AllReduce is fused into it"),
    K25_FIELD(BOOL, k25_plan_levers, persistent_experts, .fallback = "false",
              .doc = "the experts of a layer in one persistent kernel, without fixed launch time"),
    K25_FIELD(BOOL, k25_plan_levers, shared_stream, .fallback = "false",
              .doc = "shared experts on a second stream, concurrent with the routed ones"),
    K25_FIELD(REAL, k25_plan_levers, l2_pinned_mib, .fallback = "0", .min = 0, .max = 1e6, .unit = "MiB",
              .doc = "weights that stay in the L2 from step to step"),
    K25_FIELD(REAL, k25_plan_levers, link_bandwidth, .fallback = "1", .min = 1e-3, .max = 1e3, .unit = "times",
              .doc = "every link this many times as fast"),
    K25_FIELD(REAL, k25_plan_levers, link_latency, .fallback = "1", .min = 0, .max = 1e3, .unit = "times",
              .doc = "the latency of every link, times this"),
    K25_FIELD(REAL, k25_plan_levers, skew, .fallback = "1", .min = 0, .max = 1e3, .unit = "times",
              .doc = "the wait for the last rank, times this; 0: all arrive together"),
    K25_FIELD(REAL, k25_plan_levers, power_limit_w, .fallback = "0", .min = 0, .max = 1e5, .unit = "W",
              .doc = "power limit of a GPU; 0: its default"),
    {.key = NULL},
};
#undef LEVER

const struct k25_field k25_plan_fields[] = {
    K25_FIELD(INT, k25_plan, tp, .min = 1, .max = K25_MAX_GPUS, .unit = "GPUs", .doc = "tensor-parallel ranks"),
    K25_FIELD(INT, k25_plan, ep, .fallback = "1", .min = 1, .max = K25_MAX_GPUS, .unit = "GPUs",
              .doc = "expert-parallel ranks, on the same GPUs"),
    K25_FIELD(INT, k25_plan, dp, .fallback = "1", .min = 1, .max = K25_MAX_GPUS, .unit = "replicas",
              .doc = "data-parallel replicas"),
    K25_FIELD(INT, k25_plan, dcp, .fallback = "1", .min = 1, .max = K25_MAX_GPUS, .unit = "GPUs",
              .doc = "decode context parallel: ranks that share one cache"),
    K25_FIELD(INT, k25_plan, pp, .fallback = "1", .min = 1, .max = K25_MAX_GPUS, .unit = "stages",
              .doc = "pipeline stages"),
    K25_FIELD(INT, k25_plan, microbatches, .fallback = "0", .min = 0, .max = 1024, .unit = "batches",
              .doc = "batches in flight in a pipeline; 0: as many as stages or sequences"),
    K25_FIELD(BOOL, k25_plan, attention_dp, .fallback = "false",
              .doc = "attention data-parallel: each of the tp ranks has its own sequences"),
    K25_FIELD(ENUM, k25_plan, dcp_exchange, .fallback = "gather", .names = k25_dcp_exchange_names,
              .doc = "how DCP merges partial attention"),
    K25_FIELD(ENUM, k25_plan, expert_exchange, .fallback = "all_to_all", .names = k25_expert_exchange_names,
              .doc = "how tokens reach their experts when attention is data-parallel"),
    K25_FIELD(INT, k25_plan, expert_rows, .fallback = "0", .min = 0, .max = 1e6, .unit = "tokens",
              .doc = "tokens up to which the small-batch expert kernel runs, a slower one beyond; 0: at any number"),
    K25_FIELD(INT, k25_plan, redundant_experts, .fallback = "0", .min = 0, .max = 65536, .unit = "experts",
              .doc = "copies of popular experts over all ranks, placed to balance them"),
    K25_FIELD(INT, k25_plan, batch, .min = 1, .max = 65536, .unit = "sequences",
              .doc = "sequences that decode together, over all replicas"),
    K25_FIELD(REAL, k25_plan, context, .min = 1, .max = 1e8, .unit = "tokens",
              .doc = "mean tokens in the cache of a sequence while the steps run"),
    K25_FIELD(ENUM, k25_plan, kv_dtype, .fallback = "bf16", .names = k25_kv_dtype_names,
              .doc = "how the cache is stored"),
    K25_FIELD(REAL, k25_plan, memory_utilisation, .fallback = "0.92", .min = 0.05, .max = 1, .unit = "share",
              .doc = "share of GPU memory the engine may use"),
    K25_FIELD(MAP, k25_plan, allreduce, .fallback = "{}", .fields = allreduce_fields,
              .doc = "backend and its thresholds"),
    K25_FIELD(MAP, k25_plan, graph, .fallback = "{}", .fields = graph_fields, .doc = "how kernels are launched"),
    K25_FIELD(MAP, k25_plan, speculation, .fallback = "{}", .fields = speculation_fields,
              .doc = "speculative decoding"),
    K25_FIELD(MAP, k25_plan, prefill, .fallback = "{}", .fields = prefill_fields,
              .doc = "a chunk of a prompt in the same step"),
    K25_FIELD(MAP, k25_plan, levers, .fallback = "{}", .fields = lever_fields, .doc = "what-if switches"),
    {.key = NULL},
};

/* Heads and widths that cannot be split within one. */
bool k25_plan_divides(const struct k25_plan *plan, const struct k25_architecture *architecture,
                      const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct k25_architecture *a = architecture;
    int heads = plan->attention_dp ? 1 : plan->tp, width = plan->tp / plan->ep;
    struct {
        int width, by;
        const char *what;
        bool used;
    } need[] = {
        {a->mla.heads, heads, "MLA heads", false},
        {a->gqa.heads, heads, "query heads", false},
        {a->linear.key_heads, heads, "key heads of the linear attention", false},
        {a->dense.intermediate, heads, "columns of the dense feed-forward network", false},
        {a->moe.intermediate, width, "columns of an expert", false},
        {a->moe.shared_intermediate, heads, "columns of the shared experts", false},
    };
    for (size_t i = 0; i < a->layer_groups; i++) {
        const struct k25_layers *layers = &a->layers[i];
        need[0].used |= layers->attention == K25_MLA;
        need[1].used |= layers->attention == K25_GQA;
        need[2].used |= layers->attention == K25_GATED_DELTA;
        need[3].used |= layers->ffn == K25_DENSE;
        need[4].used |= layers->ffn == K25_MOE;
        need[5].used |= layers->ffn == K25_MOE && a->moe.shared_experts > 0;
    }
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        if (need[i].used && need[i].width % need[i].by != 0)
            return k25_inputs_fail(inputs, "plan.tp", error, "%d does not divide the %d %s of %s", need[i].by,
                                   need[i].width, need[i].what, a->name);
    }
    if (need[1].used && a->gqa.kv_heads % heads != 0 && heads % a->gqa.kv_heads != 0)
        return k25_inputs_fail(inputs, "plan.tp", error,
                               "%d neither divides nor is a multiple of the %d "
                               "key-value heads of %s",
                               heads, a->gqa.kv_heads, a->name);
    return true;
}

static bool divides(const struct k25_inputs *inputs, const char *path, int part, int whole, const char *of,
                    struct k25_error *error)
{
    return whole % part == 0 || k25_inputs_fail(inputs, path, error, "%d does not divide the %d %s", part, whole, of);
}

/* Experts over ranks: whole experts on each, and a model that has experts. */
static bool check_experts(const struct k25_plan *plan, const struct k25_architecture *architecture,
                          const struct k25_inputs *inputs, struct k25_error *error)
{
    int experts = architecture->moe.experts;
    if (plan->ep > 1 && experts == 0)
        return k25_inputs_fail(inputs, "plan.ep", error, "%s has no experts to spread, expected 1, found %d",
                               architecture->name, plan->ep);
    if (!divides(inputs, "plan.ep", plan->ep, plan->tp, "ranks of plan.tp", error) ||
        (experts > 0 && !divides(inputs, "plan.ep", plan->ep, experts, "experts", error)))
        return false;
    if (plan->redundant_experts > 0 && plan->ep == 1)
        return k25_inputs_fail(inputs, "plan.redundant_experts", error,
                               "copies of experts need plan.ep of at least 2, expected 0, found %d",
                               plan->redundant_experts);
    if (plan->redundant_experts > experts)
        return k25_inputs_fail(inputs, "plan.redundant_experts", error, "%d copies of the %d experts of %s",
                               plan->redundant_experts, experts, architecture->name);
    return divides(inputs, "plan.redundant_experts", plan->ep, plan->redundant_experts, "copies", error);
}

/* Ranks that share a cache hold the same keys: under MLA all of them, under grouped-query attention those beyond the
 * key-value heads (vLLM, parallel_config). */
static bool check_dcp(const struct k25_plan *plan, const struct k25_architecture *architecture,
                      const struct k25_inputs *inputs, struct k25_error *error)
{
    if (plan->dcp == 1)
        return true;
    if (plan->attention_dp)
        return k25_inputs_fail(inputs, "plan.dcp", error,
                               "ranks with separate sequences share no cache, expected "
                               "1 with plan.attention_dp, found %d",
                               plan->dcp);
    if (!divides(inputs, "plan.dcp", plan->dcp, plan->tp, "ranks of plan.tp", error))
        return false;
    bool gqa = false;
    for (size_t i = 0; i < architecture->layer_groups; i++)
        gqa = gqa || architecture->layers[i].attention == K25_GQA;
    int copies = gqa && plan->tp > architecture->gqa.kv_heads ? plan->tp / architecture->gqa.kv_heads : 1;
    if (gqa && copies % plan->dcp != 0)
        return k25_inputs_fail(inputs, "plan.dcp", error,
                               "at plan.tp %d %d %s the same keys of %s, expected a "
                               "divisor of that, found %d",
                               plan->tp, copies, copies == 1 ? "rank holds" : "ranks hold", architecture->name,
                               plan->dcp);
    return true;
}

static bool check_speculation(const struct k25_plan *plan, const struct k25_architecture *architecture,
                              const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct k25_plan_speculation *spec = &plan->speculation;
    if (spec->method == K25_SPEC_NONE)
        return true;
    if (spec->tokens < 1)
        return k25_inputs_fail(inputs, "plan.speculation.tokens", error, "%s drafts no token, expected at least 1",
                               k25_speculation_names[spec->method]);
    if (spec->method == K25_SPEC_MTP && architecture->mtp_layers == 0)
        return k25_inputs_fail(inputs, "plan.speculation.method", error,
                               "%s has no multi-token-prediction layer, "
                               "expected eagle3, ngram, draft or none",
                               architecture->name);
    if (spec->draft_tp > 1 && spec->draft_tp != plan->tp)
        return k25_inputs_fail(inputs, "plan.speculation.draft_tp", error, "expected 0, 1 or plan.tp (%d), found %d",
                               plan->tp, spec->draft_tp);
    double tokens;
    struct k25_error found;
    return k25_tokens_per_step(spec, &tokens, &found) ||
           k25_inputs_fail(inputs, "plan.speculation.acceptance", error, "%s", found.message);
}

/* A plan that was not loaded from a file has not been checked by the table: check the minima again. */
static bool check_ranges(const struct k25_plan *plan, const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct {
        const char *path;
        double value;
    } ones[] = {
        {"plan.tp", plan->tp},           {"plan.ep", plan->ep},
        {"plan.dp", plan->dp},           {"plan.dcp", plan->dcp},
        {"plan.pp", plan->pp},           {"plan.batch", plan->batch},
        {"plan.context", plan->context}, {"plan.graph.max_rows", plan->graph.max_rows},
    };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        if (!(ones[i].value >= 1))
            return k25_inputs_fail(inputs, ones[i].path, error, "%g is out of range, expected at least 1",
                                   ones[i].value);
    }
    if (!(plan->levers.link_bandwidth > 0))
        return k25_inputs_fail(inputs, "plan.levers.link_bandwidth", error, "%g is out of range, expected more than 0",
                               plan->levers.link_bandwidth);
    return true;
}

/* Sequences of one pipeline: the batch over replicas and, where attention is data-parallel, ranks. */
static int pipeline_sequences(const struct k25_plan *plan)
{
    int over = plan->dp * (plan->attention_dp ? plan->tp : 1);
    return (plan->batch + over - 1) / over;
}

/* A micro-batch has at least one sequence. A prompt would be in only one of them, and steps of unequal micro-batches
 * are not modelled. */
static bool check_pipeline(const struct k25_plan *plan, const struct k25_architecture *architecture,
                           const struct k25_inputs *inputs, struct k25_error *error)
{
    if (plan->pp > k25_layer_count(architecture))
        return k25_inputs_fail(inputs, "plan.pp", error, "%d stages for the %d layers of %s", plan->pp,
                               k25_layer_count(architecture), architecture->name);
    if (plan->dp > plan->batch)
        return k25_inputs_fail(inputs, "plan.dp", error, "%d replicas for %d sequence%s", plan->dp, plan->batch,
                               plan->batch == 1 ? "" : "s");
    int sequences = pipeline_sequences(plan);
    if (plan->pp > 1 && plan->microbatches > sequences)
        return k25_inputs_fail(inputs, "plan.microbatches", error, "%d micro-batches of the %d sequence%s of a rank",
                               plan->microbatches, sequences, sequences == 1 ? "" : "s");
    if (plan->prefill.tokens > 0 && k25_microbatches(plan) > 1)
        return k25_inputs_fail(inputs, "plan.prefill.tokens", error,
                               "a prompt in one of %d micro-batches of a pipeline is not supported yet, "
                               "expected 0, or plan.microbatches 1",
                               k25_microbatches(plan));
    return true;
}

bool k25_plan_check(const struct k25_plan *plan, const struct k25_architecture *architecture,
                    const struct k25_machine *machine, const struct k25_inputs *inputs, struct k25_error *error)
{
    const char *unsupported = k25_architecture_unsupported(architecture);
    if (unsupported != NULL)
        return k25_fail(error, K25_BAD_INPUT, "%s: its %s is not supported yet", architecture->name, unsupported);
    if (!check_ranges(plan, inputs, error) || !check_experts(plan, architecture, inputs, error) ||
        !k25_plan_divides(plan, architecture, inputs, error) || !check_dcp(plan, architecture, inputs, error) ||
        !check_speculation(plan, architecture, inputs, error) || !check_pipeline(plan, architecture, inputs, error))
        return false;
    enum k25_backend backend = k25_policy_info[plan->allreduce.backend].backend;
    if (plan->tp > 1 && !machine->p2p && k25_backend_info[backend]->needs_p2p)
        return k25_inputs_fail(inputs, "plan.allreduce.backend", error,
                               "%s needs peer access, which is off on %s (p2p: false), expected nccl",
                               k25_backend_names[backend], machine->name);
    if (plan->tp * plan->pp * plan->dp > machine->gpus)
        return k25_inputs_fail(inputs, "plan.tp", error, "%d ranks on %s, which has %d GPUs",
                               plan->tp * plan->pp * plan->dp, machine->name, machine->gpus);
    if (plan->levers.l2_pinned_mib > machine->gpu.l2_mib)
        return k25_inputs_fail(inputs, "plan.levers.l2_pinned_mib", error, "%g MiB in the L2 of %s, which has %g",
                               plan->levers.l2_pinned_mib, machine->gpu.name, machine->gpu.l2_mib);
    if (plan->context > architecture->max_context)
        return k25_inputs_fail(inputs, "plan.context", error, "%.0f tokens are more than the %d that %s can hold",
                               plan->context, architecture->max_context, architecture->name);
    return true;
}

int k25_microbatches(const struct k25_plan *plan)
{
    if (plan->pp == 1)
        return 1;
    int sequences = pipeline_sequences(plan);
    return plan->microbatches > 0 ? plan->microbatches : plan->pp < sequences ? plan->pp : sequences;
}

double k25_stage_share(const struct k25_plan *plan, int layers)
{
    return (layers + plan->pp - 1) / plan->pp / (double)layers;
}

bool k25_graph_runs(const struct k25_plan_graph *graph, int rows)
{
    return graph->mode == K25_GRAPH_FULL && rows <= graph->max_rows;
}

int k25_graph_rows(const struct k25_plan_graph *graph, int rows)
{
    if (!k25_graph_runs(graph, rows))
        return rows;
    int step = rows <= 256 ? 8 : 16;
    int captured = rows <= 2 ? rows : rows <= 4 ? 4 : (rows + step - 1) / step * step;
    return captured > graph->max_rows ? graph->max_rows : captured;
}

struct k25_plan k25_draft_plan(const struct k25_plan *plan)
{
    struct k25_plan alone = *plan;
    if (plan->speculation.draft_tp == 1) {
        alone.tp = alone.ep = alone.dcp = 1;
        alone.attention_dp = false;
        alone.redundant_experts = 0;
    }
    return alone;
}
