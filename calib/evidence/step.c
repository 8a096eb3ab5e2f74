/* Captures and profiler's tables: whether their step is the scenario's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/evidence/check.h"
#include "calib/evidence/traits.h"

static const char OTHER_MODEL[] =
    "choose the scenario of the model and plan that ran (--set architecture=..., plan.tp=...), or leave the file out";

static int layers_of(const struct k25_architecture *architecture)
{
    int count = 0;
    for (size_t i = 0; i < architecture->layer_groups; i++)
        count += architecture->layers[i].count;
    return count;
}

static void check_ranks(struct k25_check *check, const char *name, const struct k25_capture *capture)
{
    const struct k25_plan *plan = &check->question->plan;
    int one = plan->tp * plan->pp, all = one * (plan->dp > 1 ? plan->dp : 1), last = -1;
    for (int i = 0; i < capture->ranks; i++)
        last = capture->rank[i].rank > last ? capture->rank[i].rank : last;
    if (capture->world_size > 0 && capture->world_size != one && capture->world_size != all &&
        capture->world_size != plan->tp)
        k25_find(
            check->findings,
            "%.80s: captured of %d ranks, the scenario's plan has %d (tp %d, pp %d, dp %d); set plan.tp=%d if that "
            "is what ran, or leave the capture out",
            name, capture->world_size, all, plan->tp, plan->pp, plan->dp, capture->world_size);
    else if (last >= all)
        k25_find(
            check->findings,
            "%.80s: a capture of rank %d, the scenario's plan has ranks 0 to %d (tp %d, pp %d, dp %d); set the plan "
            "that ran, or leave the capture out",
            name, last, all - 1, plan->tp, plan->pp, plan->dp);
}

/* `found` of `expected`, give or take a tenth; `times`: any whole multiple will do, for kernels come in pieces. */
static bool fits(double found, double expected, bool times)
{
    static const double NEAR = 0.1;
    double ratio = found / expected, whole = times && ratio > 1 ? round(ratio) : 1;
    return fabs(ratio / whole - 1) <= NEAR / whole;
}

static void check_allreduces(struct k25_check *check, const char *name, const struct k25_traits *seen,
                             const struct k25_traits *ours)
{
    double found = k25_traits_allreduces(seen), expected = k25_traits_allreduces(ours);
    if (found == 0 && expected == 0)
        return;
    if (found > 0 && expected > 0 && fits(found, expected, seen->other_custom > found / 2))
        return;
    k25_find(check->findings,
             "%.80s: %.4g AllReduces a step, the scenario's step of %.60s has %.4g (two a layer of %d layers, and the "
             "embedding's); %s",
             name, found, check->question->architecture->name, expected, layers_of(check->question->architecture),
             OTHER_MODEL);
}

/* Gathers, scatters and all-to-alls a step. */
static double exchanges(const struct k25_traits *traits)
{
    return k25_traits_class(traits, "allgather", traits->calls) +
           k25_traits_class(traits, "reducescatter", traits->calls) +
           k25_traits_class(traits, "alltoall", traits->calls);
}

/* Whether there is an exchange in the layers at all: how many kernels one takes differs between engines. */
static void check_exchanges(struct k25_check *check, const char *name, const struct k25_traits *seen,
                            const struct k25_traits *ours)
{
    double found = exchanges(seen), expected = exchanges(ours), some = layers_of(check->question->architecture) / 4.0;
    const struct k25_plan *plan = &check->question->plan;
    if ((found > some) == (expected > some) || seen->cut)
        return;
    k25_find(check->findings,
             "%.80s: %.4g gathers, scatters and all-to-alls a step, the scenario's step has %.4g (dcp %d, ep %d); set "
             "plan.dcp, plan.ep and plan.attention_dp as they ran, or leave the file out",
             name, found, expected, plan->dcp, plan->ep);
}

/* Time on the GPU outside of collectives, and of it what no rule has a name for. */
static double work_time(const struct k25_traits *traits)
{
    double sum = 0;
    for (enum k25_bucket bucket = 0; bucket < K25_BUCKET_NONE; bucket++)
        sum += k25_traits_bucket(traits, bucket, traits->ns);
    return sum;
}

static void check_experts(struct k25_check *check, const char *name, const struct k25_traits *seen,
                          const struct k25_traits *ours)
{
    static const double SOME = 0.02, UNNAMED = 0.1;
    const char *model = check->question->architecture->name;
    double work = work_time(seen), experts = k25_traits_bucket(seen, K25_BUCKET_EXPERTS, seen->ns);
    bool expected = k25_traits_bucket(ours, K25_BUCKET_EXPERTS, ours->calls) > 0;
    if (!expected && experts > SOME * work)
        k25_find(check->findings,
                 "%.80s: %.3g %% of the kernels' time are routed experts, the scenario's model %.60s has none; %s",
                 name, 100 * experts / work, model, OTHER_MODEL);
    if (expected && experts == 0 && seen->ns[0] < UNNAMED * work)
        k25_find(check->findings, "%.80s: no kernel is one of routed experts, the scenario's model %.60s has them; %s",
                 name, model, OTHER_MODEL);
}

/* Kinds of attention that no other kind is mistaken for. */
static void check_attention(struct k25_check *check, const char *name, const struct k25_traits *seen,
                            const struct k25_traits *ours)
{
    static const struct {
        const char *class, *words;
    } kinds[] = {{"mla", "multi-head latent attention"},
                 {"linear_attn", "linear attention"},
                 {"sparse_index", "an indexer of sparse attention"}};
    static const double SOME = 0.05;
    double attention = k25_traits_bucket(seen, K25_BUCKET_ATTENTION, seen->ns);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double found = k25_traits_class(seen, kinds[i].class, seen->ns);
        if (found > SOME * attention && k25_traits_class(ours, kinds[i].class, ours->calls) == 0)
            k25_find(
                check->findings,
                "%.80s: %.3g %% of the attention's time are kernels of %s, the scenario's model %.60s has none; %s",
                name, 100 * found / attention, kinds[i].words, check->question->architecture->name, OTHER_MODEL);
    }
}

/* Without AllReduces the calls of attention count the layers; a call may be several kernels. */
static void check_layers(struct k25_check *check, const char *name, const struct k25_traits *seen,
                         const struct k25_traits *ours)
{
    double found = k25_traits_bucket(seen, K25_BUCKET_ATTENTION, seen->calls);
    double expected = k25_traits_bucket(ours, K25_BUCKET_ATTENTION, ours->calls);
    if (seen->cut || k25_traits_allreduces(ours) > 0 || found == 0 || expected == 0 || fits(found, expected, true))
        return;
    k25_find(check->findings,
             "%.80s: %.4g kernels of attention a step, the scenario's step of %.60s has %.4g on %d layers; %s", name,
             found, check->question->architecture->name, expected, layers_of(check->question->architecture),
             OTHER_MODEL);
}

/* The backend with most of the calls. */
static enum k25_backend main_backend(const struct k25_traits *traits)
{
    enum k25_backend most = 0;
    for (enum k25_backend i = 0; i < K25_BACKENDS; i++)
        most = traits->allreduce[i] > traits->allreduce[most] ? i : most;
    return most;
}

/* Whether NCCL or a custom kernel does the AllReduces, and with which protocol. NCCL has one kernel for all protocols
 * and names it after LL; only a name with another protocol says which. */
static void check_backend(struct k25_check *check, const char *name, const struct k25_traits *seen,
                          const struct k25_traits *ours)
{
    double all = k25_traits_allreduces(seen), expected = k25_traits_allreduces(ours);
    if (all == 0 || expected == 0)
        return;
    enum k25_backend found = main_backend(seen), asked = main_backend(ours);
    bool custom = k25_traits_nccl(seen) < all / 2, ours_custom = k25_traits_nccl(ours) < expected / 2;
    bool named = seen->allreduce[found] > all / 2 && (custom || found != K25_BACKEND_NCCL_LL);
    if (custom == ours_custom && (!named || ours->allreduce[found] > 0))
        return;
    k25_find(check->findings,
             "%.80s: most AllReduces are %s ('%.80s'), the scenario's plan calls %s (%s); set plan.allreduce.backend "
             "and plan.allreduce.protocol as they ran, or leave the file out",
             name,
             !custom ? (named ? k25_backend_names[found] : "NCCL")
             : named ? k25_backend_names[found]
                     : "custom",
             seen->allreduce_name, k25_backend_names[asked],
             k25_allreduce_policy_names[check->question->plan.allreduce.backend]);
}

/* Kernels of one engine's own name. vLLM's are in SGLang, too. */
static void check_engine_names(struct k25_check *check, const char *name, const struct k25_capture *capture)
{
    for (int r = 0; r < capture->ranks; r++) {
        const struct k25_rank *rank = &capture->rank[r];
        if (rank->info.vllm_version[0] != '\0') {
            k25_check_engine(check, name, k25_engine_names[K25_VLLM]);
            return;
        }
        for (size_t i = 0; i < rank->kernels; i++) {
            if (strstr(rank->kernel[i].name, "sglang::") != NULL) {
                k25_check_engine(check, name, k25_engine_names[K25_SGLANG]);
                return;
            }
        }
    }
}

static void check_step(struct k25_check *check, const char *name, const struct k25_traits *seen,
                       const struct k25_question *question)
{
    struct k25_prediction *p = malloc(sizeof *p);
    struct k25_traits ours;
    if (p == NULL || work_time(seen) == 0) { /* nothing to compare */
        free(p);
        return;
    }
    k25_predict(question, check->params, p);
    k25_traits_of_prediction(p, seen->rules, &ours);
    check_allreduces(check, name, seen, &ours);
    check_exchanges(check, name, seen, &ours);
    check_experts(check, name, seen, &ours);
    check_attention(check, name, seen, &ours);
    check_layers(check, name, seen, &ours);
    check_backend(check, name, seen, &ours);
    free(p);
}

void k25_check_capture(struct k25_check *check, const char *name, const struct k25_capture *capture)
{
    struct k25_traits seen;
    struct k25_question question;
    const char *gpu = "";
    for (int i = 0; i < capture->ranks; i++) {
        const char *said = capture->rank[i].info.device;
        char rank[128];
        if (strcmp(said, gpu) == 0)
            continue;
        snprintf(rank, sizeof rank, "%.80s: rank %d", name, capture->rank[i].rank);
        k25_check_gpu(check, rank, gpu = said);
    }
    check_ranks(check, name, capture);
    check_engine_names(check, name, capture);
    k25_capture_question(capture, check->question, &question);
    k25_traits_of_capture(capture, &seen);
    check_step(check, name, &seen, &question);
}

void k25_check_table(struct k25_check *check, const char *name, const struct k25_profiler_table *table,
                     const struct k25_kernel_rules *rules)
{
    struct k25_traits seen;
    struct k25_prediction *p = malloc(sizeof *p);
    if (p == NULL)
        return;
    k25_predict(check->question, check->params, p);
    k25_traits_of_table(table, rules, 1, &seen);
    double steps = p->allreduces > 0 ? k25_traits_allreduces(&seen) / p->allreduces : 0;
    free(p);
    if (steps > 0)
        k25_traits_of_table(table, rules, steps, &seen);
    check_step(check, name, &seen, check->question);
}
