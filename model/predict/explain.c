#include "model/predict/explain.h"

#include <math.h>
#include <string.h>

#include "model/plan/speculation.h"
#include "model/predict/internal.h"

const char *const k25_share_names[K25_SHARES + 1] = {
    [K25_SHARE_ATTENTION] = "attention",
    [K25_SHARE_FFN] = "ffn",
    [K25_SHARE_HEAD] = "head",
    [K25_SHARE_DRAFT] = "draft",
    [K25_SHARE_ALLREDUCE_TRANSFER] = "allreduce transfer",
    [K25_SHARE_ALLREDUCE_WAIT] = "allreduce wait",
    [K25_SHARE_OTHER_COLLECTIVES] = "other collectives",
    [K25_SHARE_GAPS] = "gaps",
    [K25_SHARE_HOST] = "host",
    [K25_SHARE_BUBBLE] = "bubble",
};

const char *const k25_lever_names[K25_LEVERS + 1] = {
    [K25_LEVER_ALLREDUCE_FREE] = "allreduce_free",
    [K25_LEVER_ALLREDUCE_OVERLAP] = "allreduce_overlap",
    [K25_LEVER_ALLREDUCE_NORM] = "allreduce_norm",
    [K25_LEVER_PERSISTENT_EXPERTS] = "persistent_experts",
    [K25_LEVER_SHARED_STREAM] = "shared_stream",
    [K25_LEVER_L2_PINNED] = "l2_pinned_mib",
    [K25_LEVER_LINK_BANDWIDTH] = "link_bandwidth",
    [K25_LEVER_LINK_LATENCY] = "link_latency",
    [K25_LEVER_SKEW] = "skew",
};

/* ---- parts ---- */

static void add_split(struct k25_share *share, const struct k25_operator_split *split, double time)
{
    share->time += time;
    share->split.floor += split->floor;
    share->split.memory += split->memory;
    share->split.compute += split->compute;
    share->split.latency += split->latency;
    share->split.link += split->link;
    share->split.wait += split->wait;
}

static const char *largest(const struct k25_share *share)
{
    const struct k25_operator_split *s = &share->split;
    const struct {
        const char *name;
        double time;
    } parts[] = {{"floor", s->floor},     {"memory", s->memory}, {"compute", s->compute},
                 {"latency", s->latency}, {"link", s->link},     {"wait", s->wait}};
    size_t most = 0;
    for (size_t i = 1; i < sizeof parts / sizeof *parts; i++)
        most = parts[i].time > parts[most].time ? i : most;
    return share->time > 0 ? parts[most].name : "";
}

/* The name of the parameter with the largest slope among several. */
static const char *steepest(const enum k25_param *ids, size_t count, const struct k25_slopes *slopes, double *slope)
{
    enum k25_param most = ids[0];
    for (size_t i = 1; i < count; i++)
        most = slopes->param[ids[i]] > slopes->param[most] ? ids[i] : most;
    *slope = slopes->param[most];
    return k25_param_names[most];
}

static void bound_rest(const struct k25_question *question, const struct k25_prediction *p,
                       const struct k25_slopes *slopes, struct k25_share shares[K25_SHARES])
{
    static const enum k25_param skews[] = {K25_SKEW_SIGMA, K25_SKEW_RHO, K25_SKEW_LAG};
    static const enum k25_param hosts[] = {K25_HOST_STEP, K25_HOST_SEQUENCE, K25_DRAFT_PASS, K25_DRAFT_SEQUENCE};
    double slope, paid = 0;
    if (p->allreduce_wait > 0)
        shares[K25_SHARE_ALLREDUCE_WAIT].bound = steepest(skews, 3, slopes, &slope);
    bool eager = slopes->param[K25_EAGER_LAUNCH] > 0;
    shares[K25_SHARE_GAPS].bound = p->gaps > 0 ? k25_param_names[eager ? K25_EAGER_LAUNCH : K25_GRAPH_GAP] : "";
    for (int i = 0; i < 4; i++)
        paid += slopes->param[hosts[i]];
    const char *host = steepest(hosts, 4, slopes, &slope);
    double tail = p->host - fmin(paid, p->host); /* the wait for the last rank's tail */
    shares[K25_SHARE_HOST].bound = tail > slope ? "wait" : slope > 0 ? host : "";
    shares[K25_SHARE_BUBBLE].bound = question->plan.pp > 1 ? "stages" : "";
}

void k25_shares(const struct k25_question *question, const struct k25_params *params, const struct k25_prediction *p,
                const struct k25_slopes *slopes, struct k25_share shares[K25_SHARES])
{
    static const enum k25_share_id share_of[K25_PARTS] = {[K25_PART_ATTENTION] = K25_SHARE_ATTENTION,
                                                          [K25_PART_FFN] = K25_SHARE_FFN,
                                                          [K25_PART_HEAD] = K25_SHARE_HEAD,
                                                          [K25_PART_DRAFT] = K25_SHARE_DRAFT};
    struct k25_operator_split splits[K25_MAX_OPERATORS];
    memset(shares, 0, K25_SHARES * sizeof *shares);
    k25_operator_splits(question, params, p, splits);
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        struct k25_operator_split transfer = splits[i], wait = {.wait = splits[i].wait};
        transfer.wait = 0;
        if (op->kind == K25_OP_KERNEL) {
            add_split(&shares[share_of[op->part]], &splits[i], p->op[i].time);
        } else if (op->kind == K25_OP_ALLREDUCE) {
            add_split(&shares[K25_SHARE_ALLREDUCE_TRANSFER], &transfer, p->op[i].transfer);
            add_split(&shares[K25_SHARE_ALLREDUCE_WAIT], &wait, p->op[i].wait);
        } else {
            add_split(&shares[K25_SHARE_OTHER_COLLECTIVES], &splits[i], p->op[i].time);
        }
    }
    shares[K25_SHARE_GAPS].time = p->gaps;
    shares[K25_SHARE_HOST].time = p->host;
    shares[K25_SHARE_BUBBLE].time = p->bubble;
    for (int i = 0; i <= K25_SHARE_OTHER_COLLECTIVES; i++)
        shares[i].bound = largest(&shares[i]);
    shares[K25_SHARE_ALLREDUCE_WAIT].bound = "";
    bound_rest(question, p, slopes, shares);
}

/* ---- levers ---- */

static double pull(enum k25_lever lever, const struct k25_machine *machine, struct k25_plan_levers *levers)
{
    switch (lever) {
    case K25_LEVER_ALLREDUCE_FREE:
        return levers->allreduce_free = true;
    case K25_LEVER_ALLREDUCE_OVERLAP:
        return levers->allreduce_overlap = 1;
    case K25_LEVER_ALLREDUCE_NORM:
        return levers->allreduce_norm = true;
    case K25_LEVER_PERSISTENT_EXPERTS:
        return levers->persistent_experts = true;
    case K25_LEVER_SHARED_STREAM:
        return levers->shared_stream = true;
    case K25_LEVER_L2_PINNED:
        return levers->l2_pinned_mib = machine->gpu.l2_mib;
    case K25_LEVER_LINK_BANDWIDTH:
        return levers->link_bandwidth *= 2;
    case K25_LEVER_LINK_LATENCY:
        return levers->link_latency *= 0.5;
    case K25_LEVER_SKEW:
        return levers->skew = 0;
    case K25_LEVERS:
        break;
    }
    return NAN;
}

bool k25_ceilings(const struct k25_question *question, const struct k25_params *params,
                  struct k25_ceiling ceilings[K25_LEVERS], struct k25_error *error)
{
    struct k25_prediction p;
    for (enum k25_lever lever = 0; lever < K25_LEVERS; lever++) {
        struct k25_question changed = *question;
        struct k25_plan plan = question->plan;
        double ideal = pull(lever, question->machine, &plan.levers);
        if (!k25_question_replan(&changed, &plan, NULL, error))
            return false;
        k25_predict(&changed, params, &p);
        ceilings[lever] = (struct k25_ceiling){ideal, p.step, p.tpot, p.tok_s};
    }
    return true;
}

/* ---- speculation ---- */

bool k25_chains(const struct k25_question *question, const struct k25_params *params,
                struct k25_chain chains[K25_LONGEST_CHAIN + 1], int *best, struct k25_error *error)
{
    struct k25_prediction p;
    double rates[K25_MAX_DRAFT];
    bool known = k25_marginal_rates(&question->plan.speculation, K25_LONGEST_CHAIN, rates);
    double tokens = 1;
    *best = known ? 0 : -1;
    for (int k = 0; k <= K25_LONGEST_CHAIN; k++) {
        struct k25_question changed = *question;
        struct k25_plan plan = question->plan;
        plan.speculation.tokens = k;
        plan.speculation.acceptance[0] = '\0'; /* given for the chain of the plan */
        if (k == 0)
            plan.speculation.method = K25_SPEC_NONE;
        else
            tokens += known ? rates[k - 1] : NAN;
        if (!k25_question_replan(&changed, &plan, NULL, error))
            return false;
        k25_predict(&changed, params, &p);
        chains[k] = (struct k25_chain){.step = p.step,
                                       .tokens_per_step = tokens,
                                       .break_even = k == 0 ? 1 : p.step / chains[0].step,
                                       .tok_s = plan.batch * tokens / p.step};
        if (known && chains[k].tok_s > chains[*best].tok_s)
            *best = k;
    }
    return true;
}
