#include "scenarios/plan/launch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* An engine, and the plan whose arguments are written. */
struct subject {
    enum k25_engine engine;
    const struct k25_scenario *scenario;
    const struct k25_plan *plan;
    const struct k25_memory *memory;
    struct k25_launch *launch;
};

static void environment(const struct subject *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void environment(const struct subject *s, const char *format, ...)
{
    va_list arguments;
    if (s->launch->environments == K25_LAUNCH_WORDS)
        return;
    va_start(arguments, format);
    vsnprintf(s->launch->environment[s->launch->environments++], sizeof s->launch->environment[0], format, arguments);
    va_end(arguments);
}

static void argument(const struct subject *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void argument(const struct subject *s, const char *format, ...)
{
    va_list arguments;
    if (s->launch->arguments == K25_LAUNCH_WORDS)
        return;
    va_start(arguments, format);
    vsnprintf(s->launch->argument[s->launch->arguments++], sizeof s->launch->argument[0], format, arguments);
    va_end(arguments);
}

static void without(const struct subject *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void without(const struct subject *s, const char *format, ...)
{
    va_list arguments;
    if (s->launch->missing == K25_LAUNCH_WORDS)
        return;
    va_start(arguments, format);
    vsnprintf(s->launch->without[s->launch->missing++], sizeof s->launch->without[0], format, arguments);
    va_end(arguments);
}

static int ceiling(int part, int whole)
{
    return (part + whole - 1) / whole;
}

static bool has_experts(const struct subject *s)
{
    return s->scenario->architecture.moe.experts > 0;
}

/* ---- numbers that the two engines count differently ---- */

/* vLLM: attention data-parallel ranks are engines of one GPU each. */
static double tensor(const struct subject *s)
{
    return s->engine == K25_VLLM && s->plan->attention_dp ? 1 : s->plan->tp;
}

static double stages(const struct subject *s)
{
    return s->plan->pp > 1 ? s->plan->pp : 0;
}

static double shared_cache(const struct subject *s)
{
    return s->plan->dcp > 1 ? s->plan->dcp : 0;
}

/* Per engine of a data-parallel group in vLLM; per server in SGLang, which divides it among the ranks of data-parallel
 * attention. */
static double sequences(const struct subject *s)
{
    int replica = ceiling(s->plan->batch, s->plan->dp);
    return s->engine == K25_VLLM && s->plan->attention_dp ? ceiling(replica, s->plan->tp) : replica;
}

/* The largest context of a request: the mean, plus the tokens that a request has more at its end. */
static double longest(const struct subject *s)
{
    double most = s->scenario->architecture.max_context;
    return fmin(ceil(s->plan->context) + s->scenario->load.output_max, most);
}

/* SGLang's share covers weights and cache; the rest is the model's reserve. */
static double memory_share(const struct subject *s)
{
    const struct k25_memory *m = s->memory;
    double share = s->engine == K25_VLLM ? s->plan->memory_utilisation : (m->budget - m->reserve) / m->capacity;
    return floor(share * 1000) / 1000;
}

/* vLLM captures up to a number of tokens, SGLang up to a number of sequences. */
static double captured(const struct subject *s)
{
    const struct k25_plan *plan = s->plan;
    int k = plan->speculation.method != K25_SPEC_NONE ? plan->speculation.tokens : 0;
    if (plan->graph.mode == K25_GRAPH_NONE)
        return 0;
    return s->engine == K25_VLLM ? plan->graph.max_rows : plan->graph.max_rows / (k + 1);
}

/* ---- aspects that need more than a flag and a number ---- */

static void add_replicas(const struct subject *s)
{
    int dp = s->plan->dp;
    bool joined = s->engine == K25_VLLM && has_experts(s); /* their experts would be one group */
    if (s->plan->attention_dp && s->engine == K25_VLLM)
        argument(s, "--data-parallel-size %d", s->plan->tp);
    if (s->plan->attention_dp && s->engine == K25_SGLANG) {
        argument(s, "--dp %d", s->plan->tp);
        argument(s, "--enable-dp-attention");
    }
    if (dp > 1 && (joined || s->plan->attention_dp))
        without(s,
                "%d independent replicas of a model with experts: start %d servers, each on its own GPUs, and a "
                "router in front of them",
                dp, dp);
    else if (dp > 1)
        argument(s, s->engine == K25_VLLM ? "--data-parallel-size %d" : "--dp %d", dp);
}

static void add_experts(const struct subject *s)
{
    const struct k25_plan *plan = s->plan;
    bool exchange = plan->attention_dp && plan->tp > 1 && has_experts(s);
    if (plan->ep > 1 && s->engine == K25_SGLANG)
        argument(s, "--ep-size %d", plan->ep);
    else if (plan->ep > 1 && plan->ep == plan->tp)
        argument(s, "--enable-expert-parallel");
    else if (plan->ep > 1)
        without(s, "experts over %d of %d ranks: --enable-expert-parallel takes all of them", plan->ep, plan->tp);
    if (exchange && plan->expert_exchange == K25_EXPERTS_GATHER && s->engine == K25_VLLM)
        argument(s, "--all2all-backend allgather_reducescatter");
    if (exchange && plan->expert_exchange == K25_EXPERTS_ALLTOALL)
        without(s,
                "an all-to-all of tokens over PCIe: %s is the nearest, documented for GPUs that DeepEP runs on; "
                "plan.expert_exchange=gather is what runs anywhere",
                s->engine == K25_VLLM ? "--all2all-backend deepep_low_latency" : "--moe-a2a-backend deepep");
    if (plan->redundant_experts > 0 && s->engine == K25_VLLM)
        argument(s, "--enable-eplb --eplb-config '{\"num_redundant_experts\": %d}'", plan->redundant_experts);
    if (plan->redundant_experts > 0 && s->engine == K25_SGLANG)
        argument(s, "--enable-eplb --ep-num-redundant-experts %d", plan->redundant_experts);
}

static void add_cache(const struct subject *s)
{
    static const char *const dtypes[K25_ENGINES][K25_KV_DTYPES] = {
        [K25_VLLM] = {[K25_KV_BF16] = "bfloat16", [K25_KV_FP8] = "fp8"},
        [K25_SGLANG] = {[K25_KV_BF16] = "bf16", [K25_KV_FP8] = "fp8_e4m3"}};
    argument(s, "--kv-cache-dtype %s", dtypes[s->engine][s->plan->kv_dtype]);
    if (s->plan->dcp > 1)
        argument(s, "--dcp-comm-backend %s", s->plan->dcp_exchange == K25_DCP_GATHER ? "ag_rs" : "a2a");
}

static void add_vllm_speculation(const struct subject *s)
{
    static const char *const methods[K25_SPEC_METHODS] = {[K25_SPEC_NONE] = "",
                                                          [K25_SPEC_MTP] = "mtp",
                                                          [K25_SPEC_EAGLE3] = "eagle3",
                                                          [K25_SPEC_NGRAM] = "ngram",
                                                          [K25_SPEC_DRAFT] = "draft_model"};
    const struct k25_plan_speculation *speculation = &s->plan->speculation;
    bool drafts = speculation->method == K25_SPEC_EAGLE3 || speculation->method == K25_SPEC_DRAFT;
    char ranks[64] = "";
    if (drafts)
        snprintf(ranks, sizeof ranks, ", \"draft_tensor_parallel_size\": %d",
                 speculation->draft_tp > 0 ? speculation->draft_tp : (int)tensor(s));
    argument(s, "--speculative-config '{\"method\": \"%s\"%s, \"num_speculative_tokens\": %d%s}'",
             methods[speculation->method], drafts ? ", \"model\": \"DRAFT\"" : "", speculation->tokens, ranks);
    if (s->plan->pp > 1)
        without(s,
                "speculation in a pipeline: a build with pull request 50514 has it for EAGLE-3, earlier ones refuse");
}

/* A chain: one token a step of the draft, and one more row to verify. */
static void add_sglang_speculation(const struct subject *s)
{
    static const char *const algorithms[K25_SPEC_METHODS] = {[K25_SPEC_NONE] = "",
                                                             [K25_SPEC_MTP] = "NEXTN",
                                                             [K25_SPEC_EAGLE3] = "EAGLE3",
                                                             [K25_SPEC_NGRAM] = "NGRAM",
                                                             [K25_SPEC_DRAFT] = "STANDALONE"};
    const struct k25_plan_speculation *speculation = &s->plan->speculation;
    bool drafts = speculation->method == K25_SPEC_EAGLE3 || speculation->method == K25_SPEC_DRAFT;
    argument(s, "--speculative-algorithm %s", algorithms[speculation->method]);
    if (drafts)
        argument(s, "--speculative-draft-model-path DRAFT");
    if (speculation->method != K25_SPEC_NGRAM) {
        argument(s, "--speculative-num-steps %d", speculation->tokens);
        argument(s, "--speculative-eagle-topk 1");
    }
    argument(s, "--speculative-num-draft-tokens %d", speculation->tokens + 1);
    if (s->plan->pp > 1)
        without(s, "speculation in a pipeline: it refuses --speculative-algorithm together with --pp-size");
    if (speculation->draft_tp == 1 && s->plan->tp > 1)
        without(s, "a draft that every rank runs alone (plan.speculation.draft_tp: 1)");
}

static void add_speculation(const struct subject *s)
{
    if (s->plan->speculation.method == K25_SPEC_NONE)
        return;
    if (s->engine == K25_VLLM)
        add_vllm_speculation(s);
    else
        add_sglang_speculation(s);
}

static void add_graph(const struct subject *s)
{
    if (s->plan->graph.mode == K25_GRAPH_NONE)
        argument(s, s->engine == K25_VLLM ? "--enforce-eager" : "--disable-cuda-graph");
}

static void add_backend(const struct subject *s, enum k25_backend backend)
{
    const struct k25_backend_info *info = k25_backend_info[backend];
    struct k25_group group;
    struct k25_error error;
    int ranks = s->plan->tp, most = info->most_without_nvlink;
    bool nvlink = k25_machine_group(&s->scenario->machine, ranks, &group, &error) && group.nvlink;
    if (!info->start[s->engine].offered)
        without(s, "a %s AllReduce: it has no such kernel", k25_backend_names[backend]);
    else if (info->start[s->engine].argument != NULL)
        argument(s, "%s", info->start[s->engine].argument);
    if (most > 0 && ranks > most && !nvlink)
        without(s, "a %s AllReduce %s", k25_backend_names[backend], info->beyond);
}

/* The largest message of a custom kernel is a constant in the engines' code. */
static void add_allreduce(const struct subject *s)
{
    static const char *const protocols[K25_PROTOCOLS] = {/* each with a comma before it */
                                                         [K25_PROTO_AUTO] = "",
#define X(id, key, words) [K25_PROTO_##id] = "," words,
                                                         K25_NCCL_PROTOCOL_LIST(X)
#undef X
#define X(id, key, words) "," words
                                                             [K25_PROTO_ALL] = K25_NCCL_PROTOCOL_LIST(X)
#undef X
    };
    const struct k25_plan_allreduce *allreduce = &s->plan->allreduce;
    const struct k25_policy_info *policy = &k25_policy_info[allreduce->backend];
    if (s->plan->tp == 1)
        return;
    if (allreduce->protocol != K25_PROTO_AUTO)
        environment(s, "NCCL_PROTO=%s", protocols[allreduce->protocol] + 1);
    if (policy->kind == K25_POLICY_FASTEST)
        without(s, "an AllReduce that picks the fastest backend call by call: a what-if");
    else
        add_backend(s, policy->backend);
    if (policy->kind == K25_POLICY_LIMITED)
        without(s, "where %s ends and NCCL begins (plan.allreduce.%s_max_bytes): a constant of its code",
                k25_backend_names[policy->backend], k25_backend_keys[policy->backend]);
}

static void add_rest(const struct subject *s)
{
    const struct k25_plan *plan = s->plan;
    const struct k25_plan_levers *l = &plan->levers;
    if (plan->pp > 1 && plan->microbatches > 0)
        without(s, "the number of micro-batches under way (plan.microbatches: %d)", plan->microbatches);
    if (l->allreduce_free || l->allreduce_overlap > 0 || l->allreduce_norm || l->persistent_experts ||
        l->shared_stream || l->l2_pinned_mib > 0 || l->link_bandwidth != 1 || l->link_latency != 1 || l->skew != 1)
        without(s, "plan.levers: what would be if");
    if (l->power_limit_w > 0)
        without(s, "the power limit: nvidia-smi -pl %g", l->power_limit_w);
}

/* ---- the table ---- */

/* A flag of each engine and its number (0: no flag needed), or a function for aspects with more than one number. */
static const struct {
    const char *flag[K25_ENGINES];
    double (*number)(const struct subject *s);
    void (*add)(const struct subject *s);
} rows[] = {
    {{"--tensor-parallel-size", "--tp"}, tensor, NULL},
    {{"--pipeline-parallel-size", "--pp-size"}, stages, NULL},
    {{NULL, NULL}, NULL, add_replicas},
    {{NULL, NULL}, NULL, add_experts},
    {{"--decode-context-parallel-size", "--dcp-size"}, shared_cache, NULL},
    {{NULL, NULL}, NULL, add_cache},
    {{NULL, NULL}, NULL, add_speculation},
    {{"--max-num-seqs", "--max-running-requests"}, sequences, NULL},
    {{"--max-model-len", "--context-length"}, longest, NULL},
    {{"--gpu-memory-utilization", "--mem-fraction-static"}, memory_share, NULL},
    {{"--max-cudagraph-capture-size", "--cuda-graph-max-bs"}, captured, NULL},
    {{NULL, NULL}, NULL, add_graph},
    {{NULL, NULL}, NULL, add_allreduce},
    {{NULL, NULL}, NULL, add_rest},
};

void k25_launch_make(enum k25_engine engine, const struct k25_scenario *scenario, const struct k25_plan *plan,
                     const struct k25_memory *memory, struct k25_launch *launch)
{
    static const char *const commands[] = {"vllm serve MODEL", "python -m sglang.launch_server --model-path MODEL"};
    const struct subject subject = {engine, scenario, plan, memory, launch};
    *launch = (struct k25_launch){.command = commands[engine]};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].add != NULL) {
            rows[i].add(&subject);
            continue;
        }
        double number = rows[i].number(&subject);
        if (number > 0)
            argument(&subject, "%s %.15g", rows[i].flag[engine], number);
    }
}
