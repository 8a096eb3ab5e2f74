/* Plans and parameters drawn at random, of every kind that a step is built from. */
#ifndef K25_TESTS_ANY_PLAN_H
#define K25_TESTS_ANY_PLAN_H

#include <math.h>

#include "tests/unit/physics_check.h"

static inline struct k25_params all_params(void)
{
    static const struct {
        int id;
        double value;
    } more[] = {{K25_ROUTING_OVERLAP, 0.4}, {K25_DRAFT_PASS, 150e-6}, {K25_DRAFT_SEQUENCE, 10e-6},
                {K25_POWER_EXPONENT, 0.8},  {K25_MLA_GATHERED, 64},   {K25_MOE_FALLBACK, 3.5},
                {K25_INDEXER_T0, 10e-6},    {K25_INDEXER_MEM, 0.6},   {K25_LINEAR_T0, 6e-6},
                {K25_LINEAR_MEM, 0.75}};
    struct k25_params params = fixed_params();
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        params.value[more[i].id] = more[i].value;
    return params;
}

/* ---- any plan ---- */

static inline int pick(uint64_t *seed, int count)
{
    return (int)(count * uniform(seed));
}

static inline void any_levers(struct k25_plan_levers *levers, uint64_t *seed)
{
    *levers = (struct k25_plan_levers){
        .allreduce_free = pick(seed, 12) == 0,
        .allreduce_overlap = pick(seed, 3) ? 0 : uniform(seed),
        .allreduce_norm = pick(seed, 3) == 0,
        .persistent_experts = pick(seed, 4) == 0,
        .shared_stream = pick(seed, 3) == 0,
        .l2_pinned_mib = pick(seed, 3) ? 0 : 40 * uniform(seed),
        .link_bandwidth = pick(seed, 3) ? 1 : 0.5 + uniform(seed),
        .link_latency = pick(seed, 3) ? 1 : 0.5 + uniform(seed),
        .skew = pick(seed, 4) ? 1 : 2 * uniform(seed),
        .power_limit_w = pick(seed, 3) ? 0 : 300 + 100 * uniform(seed),
    };
}

static inline void any_speculation(struct k25_plan_speculation *speculation, uint64_t *seed)
{
    static const char *const acceptances[] = {"", "0.6", "a=0.7"};
    static const enum k25_speculation_method methods[] = {K25_SPEC_NONE,   K25_SPEC_NONE,  K25_SPEC_MTP,
                                                          K25_SPEC_EAGLE3, K25_SPEC_NGRAM, K25_SPEC_DRAFT};
    speculation->method = methods[pick(seed, 6)];
    speculation->tokens = 1 + pick(seed, 5);
    snprintf(speculation->acceptance, sizeof speculation->acceptance, "%s", acceptances[pick(seed, 3)]);
    speculation->verify = (enum k25_verify)pick(seed, 2);
    speculation->drafting = (enum k25_drafting)pick(seed, 3);
    speculation->draft_tp = pick(seed, 2);
}

static inline void any_plan(struct k25_plan *plan, uint64_t *seed)
{
    plan->tp = 1 << pick(seed, 4);
    plan->ep = pick(seed, 2) ? 1 : 1 << pick(seed, 4);
    plan->dcp = pick(seed, 3) ? 1 : 1 << pick(seed, 4);
    plan->pp = pick(seed, 4) ? 1 : 2;
    plan->dp = 1 + (pick(seed, 6) == 0);
    plan->microbatches = plan->pp == 1 ? 0 : pick(seed, 5);
    plan->attention_dp = pick(seed, 4) == 0;
    plan->dcp_exchange = (enum k25_dcp_exchange)pick(seed, 2);
    plan->expert_exchange = (enum k25_expert_exchange)pick(seed, 2);
    plan->redundant_experts = plan->ep > 1 && pick(seed, 2) ? plan->ep * (1 + pick(seed, 4)) : 0;
    plan->expert_rows = pick(seed, 3) ? 0 : 1 + pick(seed, 64);
    plan->batch = 1 + (int)(255 * pow(uniform(seed), 3));
    plan->context = floor(1 + 40000 * pow(uniform(seed), 2)) / 2 + 1;
    plan->kv_dtype = (enum k25_kv_dtype)pick(seed, 2);
    plan->allreduce.backend = (enum k25_allreduce_policy)pick(seed, K25_AR_POLICIES);
    plan->allreduce.protocol = (enum k25_protocol)pick(seed, K25_PROTO_ALL + 1);
    for (int custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++)
        plan->allreduce.limit[custom].max_rows = pick(seed, 20);
    plan->graph.mode = pick(seed, 3) ? K25_GRAPH_FULL : K25_GRAPH_NONE;
    plan->prefill.tokens = pick(seed, 4) ? 0 : 1 + pick(seed, 500);
    plan->prefill.context = 3000 * uniform(seed);
    any_speculation(&plan->speculation, seed);
    any_levers(&plan->levers, seed);
}

static inline struct k25_params any_params(uint64_t *seed)
{
    struct k25_params params = all_params();
    for (int id = 0; id < K25_PARAMS; id++)
        params.value[id] *= exp(0.2 * normal(seed));
    params.value[K25_P_NORM] = pick(seed, 2) ? 4 : 3 + 2 * uniform(seed);
    params.value[K25_NCCL_LL_NORM] = 1.1 + uniform(seed);
    if (pick(seed, 2)) /* where most gathers of queries are: the heads of the group */
        params.value[K25_MLA_GATHERED] *= 2;
    params.value[K25_HOST_STEP] *= pick(seed, 2);
    params.value[K25_ROUTING_CV] *= pick(seed, 2) ? 1 : 2;
    params.value[K25_ROUTING_OVERLAP] *= pick(seed, 8) ? 1 : 4;
    params.value[K25_DRAFT_PASS] *= pick(seed, 2) ? 1 : 20;
    params.value[K25_EAGER_LAUNCH] *= pick(seed, 2) ? 1 : 20;
    return params;
}

static struct box any_box, any_drafter;
static struct k25_residuals any_tables;

/* Sites around what the step really runs. */
static inline void any_residuals(const struct k25_prediction *x, uint64_t *seed)
{
    static struct k25_residual_site sites[K25_KERNEL_CLASSES][64];
    size_t count[K25_KERNEL_CLASSES] = {0};
    struct k25_error error = {0};
    for (size_t i = 0; i < x->step_work.count; i++) {
        const struct k25_operator *op = &x->step_work.op[i];
        for (int n = 0; op->kind == K25_OP_KERNEL && op->call.shape[0] > 0 && n < 5; n++) {
            enum k25_kernel_class class = op->call.class;
            if (count[class] == 64)
                break;
            struct k25_residual_site *site = &sites[class][count[class]++];
            site->value = 0.3 * normal(seed);
            for (int axis = 0; axis < K25_SHAPE; axis++)
                site->shape[axis] = op->call.shape[axis] * exp(0.5 * normal(seed));
        }
    }
    for (enum k25_kernel_class class = 0; class < K25_KERNEL_CLASSES; class ++)
        if (count[class] > 0)
            assert_true(k25_residuals_set(&any_tables, class, sites[class], count[class], &error));
}

/* False: not a plan that this model and machine can have. */
static inline bool any_question(struct k25_question *question, struct k25_params *params, uint64_t *seed,
                                int models[ZOO_SIZE])
{
    static const char *const machines[] = {"rtx-pro-6000-8x-two-socket", "rtx-pro-6000-8x-switches", "h200-8x-nvlink"};
    struct k25_error error;
    size_t model = (size_t)pick(seed, ZOO_SIZE);
    int schemes = 0;
    while (schemes < 4 && zoo[model].schemes[schemes] != NULL)
        schemes++;
    make_box(&any_box, zoo[model].name, zoo[model].schemes[pick(seed, schemes)], machines[pick(seed, 3)]);
    any_plan(&any_box.plan, seed);
    bool eagle = any_box.plan.speculation.method == K25_SPEC_EAGLE3;
    make_box(&any_drafter, eagle ? "kimi-k2.6-eagle3-mla" : "minimax-m2.5", eagle ? "bf16" : "nvfp4", machines[0]);
    struct k25_draft draft = {&any_drafter.architecture, &any_drafter.weights};
    *params = any_params(seed);
    bool tables = pick(seed, 3) == 0;
    k25_residuals_free(&any_tables);
    if (!k25_question_make(&any_box.architecture, &any_box.weights, &draft, &any_box.machine, &any_box.plan, NULL,
                           question, &error))
        return false;
    models[model]++;
    if (tables) {
        static struct k25_prediction found;
        k25_predict(question, params, &found);
        any_residuals(&found, seed);
        question->residuals = &any_tables;
    }
    return true;
}

#endif
