#include "scenarios/plan/recommend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/plan/speculation.h"

/* ---- speculation ---- */

/* The speculation method of the plans that are tried: the scenario's, else the one that its files allow. EAGLE-3 drafts
 * have one layer; a draft with more is a separate model. */
static enum k25_speculation_method draft_method(const struct k25_scenario *scenario)
{
    enum k25_speculation_method method = scenario->plan.speculation.method;
    if (scenario->plan.speculation.acceptance[0] == '\0' || method != K25_SPEC_NONE)
        return scenario->plan.speculation.acceptance[0] == '\0' ? K25_SPEC_NONE : method;
    if (scenario->drafts)
        return k25_layer_count(&scenario->draft_architecture) == 1 ? K25_SPEC_EAGLE3 : K25_SPEC_DRAFT;
    return scenario->architecture.mtp_layers > 0 ? K25_SPEC_MTP : K25_SPEC_NONE;
}

/* An accepted share or a mean belongs to the chain it was measured with. */
static bool check_acceptance(const struct k25_scenario *scenario, enum k25_speculation_method method,
                             struct k25_error *error)
{
    struct k25_plan_speculation speculation = scenario->plan.speculation;
    double tokens;
    bool any_chain = strchr(speculation.acceptance, '/') != NULL || strncmp(speculation.acceptance, "a=", 2) == 0;
    if (method == K25_SPEC_NONE)
        return true;
    if (speculation.tokens == 0 && !any_chain)
        return k25_fail(error, K25_BAD_INPUT,
                        "plan.speculation.acceptance '%s' is that of a chain, expected its length "
                        "in plan.speculation.tokens, or rates r1/r2/... or a=rate",
                        speculation.acceptance);
    speculation.method = method;
    if (speculation.tokens == 0)
        speculation.tokens = 1;
    return k25_tokens_per_step(&speculation, &tokens, error);
}

/* The plan with a chain of k tokens, its acceptance written position by position. */
static bool speculate(const struct k25_scenario *scenario, enum k25_speculation_method method, int k,
                      struct k25_plan *plan)
{
    struct k25_plan_speculation *speculation = &plan->speculation;
    struct k25_plan_speculation given = scenario->plan.speculation;
    double rates[K25_MAX_DRAFT];
    *speculation = given;
    speculation->method = k > 0 ? method : K25_SPEC_NONE;
    speculation->tokens = k;
    speculation->draft_tp = given.draft_tp == 1 ? 1 : 0; /* any other number is the plan's tp */
    if (k == 0 || strncmp(given.acceptance, "a=", 2) == 0)
        return true;
    given.method = method;
    if (given.tokens == 0)
        given.tokens = 1;
    if (!k25_marginal_rates(&given, k, rates))
        return false;
    size_t used = 0;
    for (int j = 0; j < k; j++)
        used += (size_t)snprintf(speculation->acceptance + used, sizeof speculation->acceptance - used, "%s%.7f",
                                 j > 0 ? "/" : "", rates[j]);
    if (k == 1) /* one rate is a share, and reads the same */
        snprintf(speculation->acceptance, sizeof speculation->acceptance, "%.7f", rates[0]);
    return used < sizeof speculation->acceptance;
}

/* ---- ranking ---- */

struct search {
    const struct k25_scenario *scenario;
    const struct k25_wish *wish;
    struct k25_question question; /* of the last plan that was valid */
    struct k25_prediction prediction;
    struct k25_recommendation *out;
    enum k25_speculation_method method;
};

static bool better(const struct k25_candidate *a, const struct k25_candidate *b)
{
    return a->tok_s != b->tok_s ? a->tok_s > b->tok_s : a->tpot < b->tpot;
}

static void rank(struct k25_recommendation *out, const struct k25_candidate *candidate)
{
    size_t at = out->count;
    while (at > 0 && better(candidate, &out->best[at - 1]))
        at--;
    /* Of plans with exactly the same cost (two AllReduces that choose alike) only the first is kept. */
    bool twin = at > 0 && candidate->tok_s == out->best[at - 1].tok_s && candidate->tpot == out->best[at - 1].tpot;
    if (at == K25_RECOMMENDED || twin)
        return;
    if (out->count < K25_RECOMMENDED)
        out->count++;
    memmove(&out->best[at + 1], &out->best[at], (out->count - 1 - at) * sizeof *out->best);
    out->best[at] = *candidate;
}

static double missing_memory(const struct k25_prediction *p, const struct k25_plan *plan)
{
    double sequences = (double)p->step_work.sequences * k25_microbatches(plan);
    return p->memory.weights + p->memory.reserve - p->memory.budget +
           sequences * (plan->context * p->memory.kv_per_token + p->memory.state_per_sequence);
}

/* False: no plan for this model and machine, with the reason. */
static bool predict(struct search *search, const struct k25_plan *plan, struct k25_candidate *candidate,
                    struct k25_error *why)
{
    if (!k25_question_replan(&search->question, plan, NULL, why))
        return false;
    k25_predict(&search->question, &search->scenario->params, &search->prediction);
    const struct k25_prediction *p = &search->prediction;
    *candidate = (struct k25_candidate){.plan = *plan, .tok_s = NAN, .tpot = NAN};
    if (p->memory.fits) {
        candidate->tok_s = p->tok_s;
        candidate->tpot = p->tpot;
    } else {
        candidate->missing = missing_memory(p, plan);
    }
    return true;
}

static void try_plan(struct search *search, const struct k25_plan *plan)
{
    struct k25_recommendation *out = search->out;
    struct k25_candidate candidate;
    struct k25_error why;
    out->counts.points++;
    if (!predict(search, plan, &candidate, &why)) {
        k25_sweep_count_invalid(&out->counts, why.message, 1);
        return;
    }
    out->counts.evaluated++;
    if (isnan(candidate.tok_s)) {
        out->misfits++;
        if (out->smallest.plan.tp == 0 || candidate.missing < out->smallest.missing)
            out->smallest = candidate;
        return;
    }
    if (out->fastest.plan.tp == 0 || candidate.tpot < out->fastest.tpot)
        out->fastest = candidate;
    if (search->wish->tpot_limit > 0 && candidate.tpot > search->wish->tpot_limit) {
        out->slow++;
        return;
    }
    out->counts.rows++;
    rank(out, &candidate);
}

/* ---- enumeration: from the whole to its parts, simple plans first, so that a tie goes to them ---- */

static bool divides(int part, int whole)
{
    return whole % part == 0;
}

static bool offered(enum k25_allreduce_policy policy)
{
    const struct k25_policy_info *info = &k25_policy_info[policy];
    bool any = false;
    for (int engine = 0; engine < K25_ENGINES; engine++)
        any = any || k25_backend_info[info->backend]->start[engine].offered;
    return any && info->kind != K25_POLICY_FASTEST;
}

/* On one rank all backends are alike. */
static void try_backends(struct search *search, struct k25_plan *plan)
{
    const enum k25_allreduce_policy given = search->scenario->plan.allreduce.backend;
    try_plan(search, plan);
    if (!search->wish->backends || plan->tp == 1)
        return;
    for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
        plan->allreduce.backend = policy;
        if (policy != given && offered(policy))
            try_plan(search, plan);
    }
    plan->allreduce.backend = given;
}

static void try_kv_dtypes(struct search *search, struct k25_plan *plan)
{
    const enum k25_kv_dtype given = search->scenario->plan.kv_dtype;
    try_backends(search, plan);
    for (enum k25_kv_dtype dtype = 0; search->wish->kv_dtypes && dtype < K25_KV_DTYPES; dtype++) {
        plan->kv_dtype = dtype;
        if (dtype != given)
            try_backends(search, plan);
    }
    plan->kv_dtype = given;
}

static void try_chains(struct search *search, struct k25_plan *plan)
{
    int longest = search->method == K25_SPEC_NONE ? 0 : K25_RECOMMEND_CHAIN;
    for (int k = 0; k <= longest; k++) {
        if (speculate(search->scenario, search->method, k, plan))
            try_kv_dtypes(search, plan);
    }
}

/* How one replica's stage of tp ranks shares its work. */
static void try_ranks(struct search *search, struct k25_plan *plan)
{
    for (int alone = 0; alone <= (plan->tp > 1); alone++) {
        for (plan->ep = 1; plan->ep <= plan->tp; plan->ep++) {
            for (plan->dcp = 1; plan->dcp <= plan->tp; plan->dcp++) {
                plan->attention_dp = alone != 0;
                if (divides(plan->ep, plan->tp) && divides(plan->dcp, plan->tp))
                    try_chains(search, plan);
            }
        }
    }
}

static void try_machine(struct search *search, const struct k25_plan *base)
{
    const int gpus = search->scenario->machine.gpus;
    struct k25_plan plan = *base;
    for (plan.dp = 1; plan.dp <= gpus; plan.dp++) {
        for (plan.pp = 1; plan.pp * plan.dp <= gpus; plan.pp++) {
            for (plan.tp = gpus; plan.tp >= 1; plan.tp--) {
                bool even = divides(plan.tp, gpus) && divides(plan.pp, gpus) && divides(plan.dp, gpus);
                if (even && plan.tp * plan.pp * plan.dp <= gpus)
                    try_ranks(search, &plan);
            }
        }
    }
}

/* ---- public functions ---- */

/* The scenario with the wish; where its plan is invalid, a plan that is valid for every model. */
static bool open_search(struct search *search, struct k25_plan *base, struct k25_error *error)
{
    const struct k25_wish *wish = search->wish;
    const struct k25_scenario *scenario = search->scenario;
    if (wish->concurrency < 0 || wish->context < 0 || wish->tpot_limit < 0)
        return k25_fail(error, K25_BAD_INPUT, "a concurrency, a context or a limit is below 0");
    *base = scenario->plan;
    base->batch = wish->concurrency > 0 ? wish->concurrency : base->batch;
    base->context = wish->context > 0 ? wish->context : base->context;
    search->method = draft_method(scenario);
    struct k25_plan plain = *base;
    plain.tp = plain.pp = plain.dp = plain.dcp = plain.ep = 1;
    plain.attention_dp = false;
    plain.redundant_experts = 0;
    plain.speculation.method = K25_SPEC_NONE;
    return check_acceptance(scenario, search->method, error) &&
           k25_scenario_question_for(scenario, &plain, &search->question, error);
}

bool k25_recommend(const struct k25_scenario *scenario, const struct k25_wish *wish,
                   struct k25_recommendation *recommendation, struct k25_error *error)
{
    struct k25_plan base;
    struct k25_error why;
    struct search *search = malloc(sizeof *search);
    if (search == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    memset(recommendation, 0, sizeof *recommendation);
    *search = (struct search){.scenario = scenario, .wish = wish, .out = recommendation};
    bool ok = open_search(search, &base, error);
    if (ok) {
        if (!predict(search, &base, &recommendation->own, &why))
            recommendation->own.plan.tp = 0;
        try_machine(search, &base);
    }
    free(search);
    return ok;
}

/* tok/s of a plan, and its elasticities in `slope`: those of the step, negated. */
static double tok_s(const struct k25_question *question, const struct k25_params *params,
                    struct k25_prediction *prediction, double slope[K25_PARAMS])
{
    k25_predict(question, params, prediction);
    k25_step_slopes(question, params, prediction, slope);
    for (int id = 0; id < K25_PARAMS; id++)
        slope[id] = -slope[id];
    return prediction->tok_s;
}

static struct k25_interval around(double value, double sd)
{
    return (struct k25_interval){value * exp(-K25_Z90 * sd), value * exp(K25_Z90 * sd)};
}

/* The share of each parameter in g' C g; the largest are kept. */
static void find_drivers(const double *g, const struct k25_uncertainty *u, double variance,
                         struct k25_comparison *comparison)
{
    comparison->drivers = 0;
    for (size_t i = 0; i < u->count && variance > 0; i++) {
        double part = 0;
        for (size_t j = 0; j < u->count; j++)
            part += g[u->id[i]] * u->covariance[i * u->count + j] * g[u->id[j]];
        struct k25_driver driver = {u->id[i], part / variance};
        size_t at = comparison->drivers;
        while (at > 0 && driver.share > comparison->driver[at - 1].share)
            at--;
        if (at == K25_DRIVERS || !(driver.share > 0))
            continue;
        if (comparison->drivers < K25_DRIVERS)
            comparison->drivers++;
        memmove(&comparison->driver[at + 1], &comparison->driver[at],
                (comparison->drivers - 1 - at) * sizeof *comparison->driver);
        comparison->driver[at] = driver;
    }
}

/* The smallest n with z^2 (var + 2 noise^2 / n) < ln^2 ratio. */
static int count_repeats(const struct k25_comparison *comparison, double variance, double noise)
{
    double step = log(comparison->ratio), room = step * step / (K25_Z90 * K25_Z90) - variance;
    double tests = 2 * noise * noise / room;
    return !comparison->differs || !(room > 0) || tests > 1000 ? 0 : (int)fmax(1, ceil(tests));
}

bool k25_recommend_compare(const struct k25_question *a, const struct k25_question *b, const struct k25_params *params,
                           const struct k25_uncertainty *u, struct k25_comparison *comparison, struct k25_error *error)
{
    double gradient[K25_PARAMS], other[K25_PARAMS]; /* of the ratio: the difference of both */
    struct k25_prediction *prediction = malloc(sizeof *prediction);
    if (prediction == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    comparison->ratio = tok_s(a, params, prediction, gradient) / tok_s(b, params, prediction, other);
    free(prediction);
    for (int id = 0; id < K25_PARAMS; id++)
        gradient[id] -= other[id];
    double variance = pow(k25_spread_of(gradient, u), 2);
    comparison->spread = sqrt(variance);
    comparison->interval = around(comparison->ratio, comparison->spread);
    comparison->measured = around(comparison->ratio, sqrt(variance + 2 * u->noise * u->noise));
    comparison->differs = comparison->interval.low > 1 || comparison->interval.high < 1;
    comparison->repeats = count_repeats(comparison, variance, u->noise);
    find_drivers(gradient, u, variance, comparison);
    return true;
}
