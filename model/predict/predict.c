#include "model/predict/internal.h"

#include <math.h>
#include <string.h>

#include "model/plan/speculation.h"

bool k25_plan_group(const struct k25_machine *machine, const struct k25_plan_levers *levers, int ranks,
                    struct k25_group *group, struct k25_error *error)
{
    if (!k25_machine_group(machine, ranks, group, error))
        return false;
    group->ring_bandwidth *= levers->link_bandwidth;
    group->peer_bandwidth *= levers->link_bandwidth;
    group->lone_bandwidth *= levers->link_bandwidth;
    group->ring_latency *= levers->link_latency;
    group->peer_latency *= levers->link_latency;
    return true;
}

/* Computes the groups under the levers of the plan. A group for the same ranks and levers is kept: searching the graph
 * takes longer than the rest of a prediction. */
static bool make_group(const struct k25_question *question, const struct k25_plan *plan, int ranks,
                       struct k25_group *group, struct k25_error *error)
{
    const struct k25_plan_levers *before = &question->plan.levers;
    if (group->n == ranks && before->link_bandwidth == plan->levers.link_bandwidth &&
        before->link_latency == plan->levers.link_latency)
        return true;
    return k25_plan_group(question->machine, &plan->levers, ranks, group, error);
}

bool k25_question_replan(struct k25_question *question, const struct k25_plan *plan, const struct k25_inputs *inputs,
                         struct k25_error *error)
{
    const struct k25_plan_speculation *speculation = &plan->speculation;
    bool drafts = speculation->method == K25_SPEC_EAGLE3 || speculation->method == K25_SPEC_DRAFT;
    if (!k25_plan_check(plan, question->architecture, question->machine, inputs, error))
        return false;
    if (drafts && question->draft.architecture == NULL)
        return k25_inputs_fail(inputs, "plan.speculation.method", error,
                               "%s needs a draft model, expected the "
                               "scenario's draft to name one",
                               k25_speculation_names[speculation->method]);
    const struct k25_plan draft = k25_draft_plan(plan);
    if (drafts && !k25_plan_divides(&draft, question->draft.architecture, inputs, error))
        return false;
    const int ranks[K25_RANKS_GROUPS] = {
        [K25_RANKS_TP] = plan->tp, [K25_RANKS_DCP] = plan->dcp, [K25_RANKS_PAIR] = plan->pp > 1 ? 2 : 1};
    for (int i = 0; i < K25_RANKS_GROUPS; i++) {
        if (!make_group(question, plan, ranks[i], &question->group[i], error))
            return false;
    }
    question->plan = *plan;
    return k25_tokens_per_step(speculation, &question->tokens_per_step, error);
}

bool k25_question_make(const struct k25_architecture *architecture, const struct k25_weights *weights,
                       const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                       const struct k25_inputs *inputs, struct k25_question *question, struct k25_error *error)
{
    memset(question, 0, sizeof *question);
    question->architecture = architecture;
    question->weights = weights;
    if (draft != NULL)
        question->draft = *draft;
    question->machine = machine;
    return k25_question_replan(question, plan, inputs, error);
}

static double collective_time(const struct k25_question *question, enum k25_operator_kind kind, enum k25_ranks ranks,
                              enum k25_backend backend, double bytes, const struct k25_params *params)
{
    const struct k25_group *group = &question->group[ranks];
    switch (kind) {
    case K25_OP_ALLREDUCE:
        return k25_allreduce_time(backend, bytes, group, params);
    case K25_OP_ALLTOALL:
        return k25_alltoall_time(bytes, group, params);
    case K25_OP_SEND:
        return k25_send_time(bytes, group, params);
    case K25_OP_ALLGATHER:
    case K25_OP_REDUCESCATTER:
        return k25_allgather_time(backend, bytes, group, params);
    case K25_OP_KERNEL:
    case K25_OP_KINDS:
        break;
    }
    return NAN;
}

static enum k25_backend cheapest_protocol(const struct k25_question *question, enum k25_operator_kind kind,
                                          enum k25_ranks ranks, double bytes, const struct k25_params *params)
{
    enum k25_backend best = 0;
    double least = collective_time(question, kind, ranks, best, bytes, params);
    for (enum k25_backend protocol = 1; protocol < K25_NCCL_PROTOCOLS; protocol++) {
        double time = collective_time(question, kind, ranks, protocol, bytes, params);
        best = time < least ? protocol : best;
        least = fmin(time, least);
    }
    return best;
}

/* By default NCCL uses LL up to a size and never LL128 on PCIe. If NCCL_PROTO names all three, it uses the fastest. */
static enum k25_backend nccl_protocol(const struct k25_question *question, enum k25_operator_kind kind,
                                      enum k25_ranks ranks, double bytes, const struct k25_params *params)
{
    if (kind == K25_OP_ALLTOALL || kind == K25_OP_SEND)
        return K25_BACKEND_NCCL_SIMPLE; /* the only protocol of sends and receives */
    switch (question->plan.allreduce.protocol) {
#define X(id, key, words)                                                                                              \
    case K25_PROTO_##id:                                                                                               \
        return K25_BACKEND_NCCL_##id;
        K25_NCCL_PROTOCOL_LIST(X)
#undef X
    case K25_PROTO_ALL:
        if (kind == K25_OP_ALLREDUCE)
            return cheapest_protocol(question, kind, ranks, bytes, params);
        /* Gathers leave LL early and take no LL128, whatever would be cheaper. */
        return bytes * question->group[ranks].n <= params->value[K25_GATHER_LL_MAX] ? K25_BACKEND_NCCL_LL
                                                                                    : K25_BACKEND_NCCL_SIMPLE;
    case K25_PROTO_AUTO:
    case K25_PROTOCOLS:
        break;
    }
    /* The size of a gather is that of the gathered buffer. */
    return k25_nccl_protocol(kind == K25_OP_ALLREDUCE ? bytes : bytes * question->group[ranks].n, params);
}

/* The fastest of NCCL and the custom kernels that the machine can run; of equals NCCL. */
static enum k25_backend fastest_allreduce(const struct k25_question *question, enum k25_backend nccl, double bytes,
                                          const struct k25_params *params)
{
    const struct k25_group *group = &question->group[K25_RANKS_TP];
    enum k25_backend best = nccl;
    double least = k25_allreduce_time(nccl, bytes, group, params);
    for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++) {
        if (k25_backend_info[custom]->needs_p2p && !question->machine->p2p)
            continue;
        double time = k25_allreduce_time(custom, bytes, group, params);
        best = time < least ? custom : best;
        least = fmin(time, least);
    }
    return best;
}

enum k25_backend k25_allreduce_choice(const struct k25_question *question, double rows, double bytes,
                                      const struct k25_params *params)
{
    const struct k25_plan_allreduce *plan = &question->plan.allreduce;
    const struct k25_policy_info *policy = &k25_policy_info[plan->backend];
    const struct k25_allreduce_limit *limit = &plan->limit[policy->backend];
    if (policy->kind == K25_POLICY_ALWAYS ||
        (policy->kind == K25_POLICY_LIMITED && (bytes <= limit->max_bytes || rows <= limit->max_rows)))
        return policy->backend;
    enum k25_backend nccl = nccl_protocol(question, K25_OP_ALLREDUCE, K25_RANKS_TP, bytes, params);
    return policy->kind == K25_POLICY_FASTEST ? fastest_allreduce(question, nccl, bytes, params) : nccl;
}

double k25_power_limit(const struct k25_question *question)
{
    double limit = question->plan.levers.power_limit_w, own = question->machine->gpu.power_w;
    return limit > 0 && limit < own ? limit : own;
}

/* The clock of a GPU under the power limit of the plan / its full clock. */
static double clock_share(const struct k25_question *question, const struct k25_params *params)
{
    double limit = k25_power_limit(question), full = question->machine->gpu.power_w;
    return limit < full ? pow(limit / full, params->value[K25_POWER_EXPONENT]) : 1;
}

void k25_clock_gpu(const struct k25_question *question, const struct k25_params *params, struct k25_clocked *clocked)
{
    double clock = clocked->clock = clock_share(question, params);
    clocked->gpu = question->machine->gpu;
    clocked->gpu.peak_bf16_tflops *= clock;
    clocked->gpu.peak_fp8_tflops *= clock;
    clocked->gpu.peak_fp4_tflops *= clock;
}

struct k25_kernel_call k25_call_in_step(const struct k25_operator *op, const struct k25_clocked *clocked,
                                        const struct k25_params *params)
{
    struct k25_kernel_call call = op->call;
    call.serial /= clocked->clock;
    call.launches *= params->value[K25_STEP_FLOORS];
    call.batched *= params->value[K25_STEP_FLOORS];
    return call;
}

static void price_kernel(const struct k25_question *question, const struct k25_operator *op,
                         const struct k25_clocked *clocked, const struct k25_params *params, struct k25_priced *priced)
{
    struct k25_kernel_call call = k25_call_in_step(op, clocked, params);
    struct k25_kernel_cost cost = k25_kernel_cost(&call, &clocked->gpu, params);
    if (op->beside) /* everything but the memory traffic overlaps */
        cost.time = fmin(cost.time, cost.memory), cost.floor = 0;
    double factor = question->residuals == NULL ? 1 : exp(k25_residual(question->residuals, &op->call));
    priced->time = op->calls * factor * cost.time;
    priced->floor = op->calls * fmin(cost.floor, factor * cost.time);
    priced->bound = cost.bound;
}

double k25_transfer_share(const struct k25_plan *plan, const struct k25_operator *op)
{
    if (op->kind != K25_OP_ALLREDUCE)
        return 1;
    return plan->levers.allreduce_free ? 0 : 1 - plan->levers.allreduce_overlap;
}

double k25_wait_share(const struct k25_plan *plan, const struct k25_operator *op)
{
    bool free = op->kind == K25_OP_SEND || (op->kind == K25_OP_ALLREDUCE && plan->levers.allreduce_free);
    return free ? 0 : plan->levers.skew;
}

/* The time of one collective, cached: layers repeat few different ones. */
struct quote {
    enum k25_operator_kind kind;
    enum k25_ranks ranks;
    enum k25_backend backend;
    double rows, message, transfer;
};

#define QUOTES 12

/* The transfer of a collective under the plan, and its backend; looked up among the `count` known ones first. */
static const struct quote *quote(const struct k25_question *question, const struct k25_operator *op,
                                 const struct k25_params *params, struct quote quotes[QUOTES], int *count)
{
    for (int i = 0; i < *count; i++) {
        if (quotes[i].message == op->message && quotes[i].kind == op->kind && quotes[i].ranks == op->ranks &&
            quotes[i].rows == op->rows)
            return &quotes[i];
    }
    struct quote *q = &quotes[*count < QUOTES ? (*count)++ : QUOTES - 1];
    bool allreduce = op->kind == K25_OP_ALLREDUCE;
    *q = (struct quote){.kind = op->kind, .ranks = op->ranks, .rows = op->rows, .message = op->message};
    q->backend = allreduce ? k25_allreduce_choice(question, op->rows, op->message, params)
                           : nccl_protocol(question, op->kind, op->ranks, op->message, params);
    q->transfer = k25_transfer_share(&question->plan, op) *
                  collective_time(question, op->kind, op->ranks, q->backend, op->message, params);
    return q;
}

/* `segment`: s that the mean rank computed since the last collective. */
static void price_collective(const struct k25_question *question, const struct k25_operator *op,
                             const struct quote *quote, double segment, const struct k25_params *params,
                             struct k25_priced *priced)
{
    double share = k25_wait_share(&question->plan, op);
    double wait = share > 0 ? share * k25_wait_time(question->group[op->ranks].n, segment, params) : 0;
    priced->backend = quote->backend;
    priced->transfer = op->calls * quote->transfer;
    priced->wait = op->calls * wait;
    priced->time = priced->transfer + priced->wait;
}

/* Prices every operator in the order of the step. */
static void price_operators(const struct k25_question *question, const struct k25_params *params,
                            struct k25_prediction *p)
{
    struct k25_clocked clocked;
    struct quote quotes[QUOTES];
    int quoted = 0;
    double segment = 0;
    k25_clock_gpu(question, params, &clocked);
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        struct k25_priced *priced = &p->op[i];
        memset(priced, 0, sizeof *priced);
        if (op->kind == K25_OP_KERNEL) {
            price_kernel(question, op, &clocked, params, priced);
            segment += priced->time / op->calls;
        } else {
            price_collective(question, op, quote(question, op, params, quotes, &quoted), segment, params, priced);
            segment = 0;
        }
    }
    p->tail = segment;
}

/* A rank of a pipeline of p stages runs 1/p of every micro-batch's operators, for each of the m micro-batches of a
 * step. */
static void share_stages(const struct k25_plan *plan, struct k25_prediction *p)
{
    double share = k25_microbatches(plan) / (double)plan->pp;
    if (plan->pp == 1)
        return;
    for (size_t i = 0; i < p->step_work.count; i++) {
        p->step_work.op[i].calls *= share;
        p->op[i].time *= share;
        p->op[i].transfer *= share;
        p->op[i].wait *= share;
        p->op[i].floor *= share;
    }
}

static void sum_operators(struct k25_prediction *p)
{
    p->kernels = p->allreduce_transfer = p->allreduce_wait = p->other_collectives = p->draft = 0;
    p->launches = p->allreduces = 0;
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        const struct k25_priced *priced = &p->op[i];
        p->draft += op->part == K25_PART_DRAFT ? priced->time : 0;
        p->launches += op->calls * (op->kind == K25_OP_KERNEL ? op->call.launches : 1);
        if (op->kind == K25_OP_KERNEL) {
            p->kernels += priced->time;
        } else if (op->kind == K25_OP_ALLREDUCE) {
            p->allreduce_transfer += priced->transfer;
            p->allreduce_wait += priced->wait;
            p->allreduces += op->calls;
        } else {
            p->other_collectives += priced->time;
        }
    }
    p->allreduce = p->allreduce_transfer + p->allreduce_wait;
    p->gpu_busy = p->kernels + p->allreduce + p->other_collectives;
    p->allreduce_share = p->allreduce / p->gpu_busy;
}

struct k25_draft_host k25_draft_host(const struct k25_plan *plan, const struct k25_prediction *p)
{
    const struct k25_plan_speculation *speculation = &plan->speculation;
    bool once = speculation->method == K25_SPEC_NGRAM || speculation->drafting == K25_DRAFT_FUSED;
    struct k25_draft_host host = {once ? 1 : speculation->tokens, 0};
    if (speculation->method == K25_SPEC_NONE)
        host.passes = 0;
    else if (speculation->drafting == K25_DRAFT_ASYNC)
        host.hidden = p->draft / host.passes;
    return host;
}

double k25_host_work(const struct k25_question *question, const struct k25_params *params,
                     const struct k25_prediction *p)
{
    const double *value = params->value;
    double work = value[K25_HOST_STEP] + value[K25_HOST_SEQUENCE] * p->step_work.sequences;
    struct k25_draft_host host = k25_draft_host(&question->plan, p);
    if (host.passes > 0)
        work += host.passes * fmax(0, value[K25_DRAFT_PASS] - host.hidden) +
                value[K25_DRAFT_SEQUENCE] * p->step_work.sequences;
    return work;
}

/* A token of a micro-batch passes all stages; the slowest stage processes every micro-batch in turn. The longer of the
 * two is the step, the rest is bubble. */
double k25_pipeline_factor(const struct k25_plan *plan, const struct k25_prediction *p)
{
    double through = 1.0 / k25_microbatches(plan), slowest = k25_stage_share(plan, p->step_work.layers);
    return plan->pp == 1 ? 1 : plan->pp * fmax(through, slowest);
}

bool k25_host_bound(const struct k25_plan *plan, const struct k25_prediction *p, const struct k25_params *params)
{
    return !k25_graph_runs(&plan->graph, p->step_work.tokens) &&
           params->value[K25_EAGER_LAUNCH] - p->gpu_busy / p->launches > params->value[K25_GRAPH_GAP];
}

double k25_launch_gap(const struct k25_plan *plan, const struct k25_prediction *p, const struct k25_params *params)
{
    /* Eager kernels start no faster than the host launches them: the GPU idles for the difference. */
    return k25_host_bound(plan, p, params) ? params->value[K25_EAGER_LAUNCH] - p->gpu_busy / p->launches
                                           : params->value[K25_GRAPH_GAP];
}

/* Sums the times of the operators to the step. */
static void conclude(const struct k25_question *question, const struct k25_params *params, struct k25_prediction *p)
{
    const struct k25_plan *plan = &question->plan;
    sum_operators(p);
    p->gaps = k25_launch_gap(plan, p, params) * p->launches;
    /* The next step starts when the last rank has finished this one. */
    p->host = k25_host_work(question, params, p) +
              plan->levers.skew * k25_wait_time(question->group[K25_RANKS_TP].n, p->tail, params);
    p->bubble = (k25_pipeline_factor(plan, p) - 1) * (p->gpu_busy + p->gaps);
    p->step = p->gpu_busy + p->gaps + p->host + p->bubble;
    p->tokens_per_step = question->tokens_per_step;
    p->tpot = p->step / p->tokens_per_step;
    p->tok_s = plan->batch / p->tpot;
}

void k25_predict(const struct k25_question *question, const struct k25_params *params, struct k25_prediction *p)
{
    const struct k25_plan *plan = &question->plan;
    k25_step_build(question->architecture, question->weights, &question->draft, question->machine, plan, params,
                   &p->step_work);
    k25_memory(&p->step_work, question->machine, plan, params, &p->memory);
    price_operators(question, params, p);
    share_stages(plan, p);
    conclude(question, params, p);
}

/* Whether the questions differ at most in the context. Different padding bytes only lose the fast path. */
static bool same_but_context(const struct k25_question *a, const struct k25_question *b)
{
    struct k25_plan plan = a->plan;
    plan.context = b->plan.context;
    return a->architecture == b->architecture && a->weights == b->weights && a->machine == b->machine &&
           a->draft.architecture == b->draft.architecture && a->draft.weights == b->draft.weights &&
           a->residuals == b->residuals && memcmp(&plan, &b->plan, sizeof plan) == 0;
}

/* Recomputes the time of the kernel and the wait at the end of its segment. */
static void reprice(const struct k25_question *question, size_t at, const struct k25_clocked *clocked,
                    const struct k25_params *params, struct k25_prediction *p)
{
    const struct k25_operator *op = p->step_work.op;
    price_kernel(question, &op[at], clocked, params, &p->op[at]);
    size_t first = at, end = at;
    while (first > 0 && op[first - 1].kind == K25_OP_KERNEL)
        first--;
    double segment = 0;
    for (end = first; end < p->step_work.count && op[end].kind == K25_OP_KERNEL; end++)
        segment += p->op[end].time / op[end].calls;
    if (end == p->step_work.count) {
        p->tail = segment;
        return;
    }
    struct k25_priced *wait = &p->op[end];
    struct quote known = {.backend = wait->backend, .transfer = 0};
    double transfer = wait->transfer;
    price_collective(question, &op[end], &known, segment, params, wait);
    wait->transfer = transfer;
    wait->time = wait->transfer + wait->wait;
}

void k25_predict_next(const struct k25_question *before, const struct k25_question *question,
                      const struct k25_params *params, struct k25_prediction *p)
{
    struct k25_step *step = &p->step_work;
    if (question->plan.pp > 1 || !same_but_context(before, question)) {
        k25_predict(question, params, p);
        return;
    }
    struct k25_clocked clocked;
    k25_clock_gpu(question, params, &clocked);
    for (size_t i = 0; i < step->context_works; i++) {
        struct k25_operator *op = &step->op[step->context_work[i].op];
        op->call = k25_context_call(op->call.class, &step->context_work[i], &question->plan, params);
        reprice(question, step->context_work[i].op, &clocked, params, p);
    }
    k25_memory_context(step, &question->plan, &p->memory);
    conclude(question, params, p);
}
