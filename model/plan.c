#include "model/plan.h"

#include <stddef.h>

const char *const k25_kv_dtype_names[] = {"bf16", "fp8", NULL};
const char *const k25_allreduce_backend_names[] = {"nccl", "oneshot", "oneshot_then_nccl", "fastest", NULL};
const char *const k25_protocol_names[] = {"auto", "ll", "ll128", "simple", "all", NULL};
const char *const k25_graph_mode_names[] = {"full", "none", NULL};
const char *const k25_speculation_names[] = {"none", "mtp", "eagle3", "ngram", "draft", NULL};

static const struct k25_field allreduce_fields[] = {
    {.key = "backend", .type = K25_ENUM, .offset = offsetof(struct k25_plan_allreduce, backend), .fallback = "nccl",
     .names = k25_allreduce_backend_names, .doc = "which AllReduce the engine calls"},
    {.key = "oneshot_max_bytes", .type = K25_REAL, .offset = offsetof(struct k25_plan_allreduce, oneshot_max_bytes),
     .fallback = "57344", .min = 0, .max = 1e12, .unit = "bytes",
     .doc = "oneshot_then_nccl: one-shot up to this message, bytes per rank of the full buffer"},
    {.key = "oneshot_max_rows", .type = K25_INT, .offset = offsetof(struct k25_plan_allreduce, oneshot_max_rows),
     .fallback = "0", .min = 0, .max = 1e6, .unit = "rows",
     .doc = "oneshot_then_nccl: one-shot up to this many rows, whatever their bytes"},
    {.key = "protocol", .type = K25_ENUM, .offset = offsetof(struct k25_plan_allreduce, protocol),
     .fallback = "auto", .names = k25_protocol_names, .doc = "protocols NCCL may use (NCCL_PROTO)"},
    {.key = NULL},
};

static const struct k25_field graph_fields[] = {
    {.key = "mode", .type = K25_ENUM, .offset = offsetof(struct k25_plan_graph, mode), .fallback = "full",
     .names = k25_graph_mode_names, .doc = "CUDA graph of the whole step, or eager launches"},
    {.key = "max_rows", .type = K25_INT, .offset = offsetof(struct k25_plan_graph, max_rows), .fallback = "512",
     .min = 1, .max = 65536, .unit = "rows", .doc = "largest captured batch; larger ones run eager"},
    {.key = NULL},
};

static const struct k25_field speculation_fields[] = {
    {.key = "method", .type = K25_ENUM, .offset = offsetof(struct k25_plan_speculation, method), .fallback = "none",
     .names = k25_speculation_names, .doc = "who drafts"},
    {.key = "tokens", .type = K25_INT, .offset = offsetof(struct k25_plan_speculation, tokens), .fallback = "0",
     .min = 0, .max = 64, .unit = "tokens", .doc = "drafted tokens in a chain (k)"},
    {.key = NULL},
};

const struct k25_field k25_plan_fields[] = {
    {.key = "tp", .type = K25_INT, .offset = offsetof(struct k25_plan, tp), .min = 1, .max = K25_MAX_GPUS,
     .unit = "GPUs", .doc = "tensor-parallel ranks"},
    {.key = "ep", .type = K25_INT, .offset = offsetof(struct k25_plan, ep), .fallback = "1", .min = 1,
     .max = K25_MAX_GPUS, .unit = "GPUs", .doc = "expert-parallel ranks; they are the same GPUs again"},
    {.key = "dp", .type = K25_INT, .offset = offsetof(struct k25_plan, dp), .fallback = "1", .min = 1,
     .max = K25_MAX_GPUS, .unit = "replicas", .doc = "data-parallel replicas"},
    {.key = "dcp", .type = K25_INT, .offset = offsetof(struct k25_plan, dcp), .fallback = "1", .min = 1,
     .max = K25_MAX_GPUS, .unit = "GPUs", .doc = "decode context parallel: ranks that share one cache"},
    {.key = "pp", .type = K25_INT, .offset = offsetof(struct k25_plan, pp), .fallback = "1", .min = 1,
     .max = K25_MAX_GPUS, .unit = "stages", .doc = "pipeline stages"},
    {.key = "attention_dp", .type = K25_BOOL, .offset = offsetof(struct k25_plan, attention_dp),
     .fallback = "false", .doc = "attention data-parallel over the same GPUs"},
    {.key = "batch", .type = K25_INT, .offset = offsetof(struct k25_plan, batch), .min = 1, .max = 65536,
     .unit = "sequences", .doc = "sequences that decode together"},
    {.key = "context", .type = K25_REAL, .offset = offsetof(struct k25_plan, context), .min = 1, .max = 1e8,
     .unit = "tokens", .doc = "mean tokens in the cache of a sequence while the steps run"},
    {.key = "kv_dtype", .type = K25_ENUM, .offset = offsetof(struct k25_plan, kv_dtype), .fallback = "bf16",
     .names = k25_kv_dtype_names, .doc = "how the cache is stored"},
    {.key = "memory_utilisation", .type = K25_REAL, .offset = offsetof(struct k25_plan, memory_utilisation),
     .fallback = "0.92", .min = 0.05, .max = 1, .unit = "share", .doc = "share of GPU memory the engine may use"},
    {.key = "allreduce", .type = K25_MAP, .offset = offsetof(struct k25_plan, allreduce), .fallback = "{}",
     .fields = allreduce_fields, .doc = "backend and its thresholds"},
    {.key = "graph", .type = K25_MAP, .offset = offsetof(struct k25_plan, graph), .fallback = "{}",
     .fields = graph_fields, .doc = "how kernels are launched"},
    {.key = "speculation", .type = K25_MAP, .offset = offsetof(struct k25_plan, speculation), .fallback = "{}",
     .fields = speculation_fields, .doc = "speculative decoding"},
    {.key = NULL},
};

/* What a plan may ask for and the step cannot price. */
static bool check_supported(const struct k25_plan *plan, const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct { const char *path, *what; int value; } ones[] = {
        {"plan.ep", "expert parallelism", plan->ep},
        {"plan.dp", "more than one replica", plan->dp},
        {"plan.dcp", "decode context parallelism", plan->dcp},
        {"plan.pp", "pipeline parallelism", plan->pp},
    };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        if (ones[i].value > 1)
            return k25_inputs_fail(inputs, ones[i].path, error, "%s is not supported yet, expected 1, found %d",
                                   ones[i].what, ones[i].value);
    }
    if (plan->attention_dp)
        return k25_inputs_fail(inputs, "plan.attention_dp", error,
                               "data-parallel attention is not supported yet, expected false");
    if (plan->speculation.method != K25_SPEC_NONE)
        return k25_inputs_fail(inputs, "plan.speculation.method", error,
                               "speculation is not supported yet, expected none, found %s",
                               k25_speculation_names[plan->speculation.method]);
    return true;
}

/* Heads and widths that a rank must hold whole. */
static bool check_division(const struct k25_plan *plan, const struct k25_architecture *architecture,
                           const struct k25_inputs *inputs, struct k25_error *error)
{
    struct { int width; const char *what; bool used; } need[] = {
        {architecture->mla.heads, "MLA heads", false},
        {architecture->gqa.heads, "query heads", false},
        {architecture->dense.intermediate, "columns of the dense feed-forward network", false},
        {architecture->moe.intermediate, "columns of an expert", false},
        {architecture->moe.shared_intermediate, "columns of the shared experts", false},
    };
    for (size_t i = 0; i < architecture->layer_groups; i++) {
        const struct k25_layers *layers = &architecture->layers[i];
        need[0].used |= layers->attention == K25_MLA;
        need[1].used |= layers->attention == K25_GQA;
        need[2].used |= layers->ffn == K25_DENSE;
        need[3].used |= layers->ffn == K25_MOE;
        need[4].used |= layers->ffn == K25_MOE && architecture->moe.shared_experts > 0;
    }
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        if (need[i].used && need[i].width % plan->tp != 0)
            return k25_inputs_fail(inputs, "plan.tp", error, "%d does not divide the %d %s of %s", plan->tp,
                                   need[i].width, need[i].what, architecture->name);
    }
    if (need[1].used && architecture->gqa.kv_heads % plan->tp != 0 && plan->tp % architecture->gqa.kv_heads != 0)
        return k25_inputs_fail(inputs, "plan.tp", error, "%d neither divides nor is a multiple of the %d "
                               "key-value heads of %s", plan->tp, architecture->gqa.kv_heads, architecture->name);
    return true;
}

/* A plan that no file was loaded into has been through no table: the smallest values again. */
static bool check_ranges(const struct k25_plan *plan, const struct k25_inputs *inputs, struct k25_error *error)
{
    const struct { const char *path; double value; } ones[] = {
        {"plan.tp", plan->tp},       {"plan.ep", plan->ep},       {"plan.dp", plan->dp},
        {"plan.dcp", plan->dcp},     {"plan.pp", plan->pp},       {"plan.batch", plan->batch},
        {"plan.context", plan->context}, {"plan.graph.max_rows", plan->graph.max_rows},
    };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        if (!(ones[i].value >= 1))
            return k25_inputs_fail(inputs, ones[i].path, error, "%g is out of range, expected at least 1",
                                   ones[i].value);
    }
    return true;
}

bool k25_plan_check(const struct k25_plan *plan, const struct k25_architecture *architecture,
                    const struct k25_machine *machine, const struct k25_inputs *inputs, struct k25_error *error)
{
    const char *unsupported = k25_architecture_unsupported(architecture);
    if (unsupported != NULL)
        return k25_fail(error, K25_BAD_INPUT, "%s: its %s is not supported yet", architecture->name, unsupported);
    if (!check_ranges(plan, inputs, error) || !check_supported(plan, inputs, error) || !check_division(plan, architecture, inputs, error))
        return false;
    if (plan->tp > 1 && !machine->p2p &&
        (plan->allreduce.backend == K25_AR_ONESHOT || plan->allreduce.backend == K25_AR_ONESHOT_THEN_NCCL))
        return k25_inputs_fail(inputs, "plan.allreduce.backend", error,
                               "one-shot needs peer access, which %s has switched off (p2p: false), expected nccl",
                               machine->name);
    if (plan->tp * plan->pp * plan->dp > machine->gpus)
        return k25_inputs_fail(inputs, "plan.tp", error, "%d ranks on %s, which has %d GPUs", plan->tp,
                               machine->name, machine->gpus);
    if (plan->context > architecture->max_context)
        return k25_inputs_fail(inputs, "plan.context", error, "%.0f tokens are more than the %d that %s can hold",
                               plan->context, architecture->max_context, architecture->name);
    return true;
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

double k25_kv_bytes(int kv_dtype)
{
    return kv_dtype == K25_KV_FP8 ? 1 : 2;
}
