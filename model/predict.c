#include "model/predict.h"

#include <math.h>
#include <string.h>

bool k25_question_make(const struct k25_architecture *architecture, const struct k25_weights *weights,
                       const struct k25_machine *machine, const struct k25_plan *plan,
                       const struct k25_inputs *inputs, struct k25_question *question, struct k25_error *error)
{
    if (!k25_plan_check(plan, architecture, machine, inputs, error))
        return false;
    question->architecture = architecture;
    question->weights = weights;
    question->machine = machine;
    question->residuals = NULL;
    question->plan = *plan;
    return k25_machine_group(machine, plan->tp, &question->group, error);
}

static double collective_time(const struct k25_question *question, int kind, int backend, double bytes,
                              const struct k25_params *params)
{
    return kind == K25_OP_ALLREDUCE
               ? k25_allreduce_time((enum k25_backend)backend, bytes, &question->group, params)
               : k25_allgather_time((enum k25_backend)backend, bytes, &question->group, params);
}

/* Left to itself NCCL keeps LL up to a size and never takes LL128 on PCIe. Where NCCL_PROTO names all three, it takes
 * the cheapest. */
static int nccl_protocol(const struct k25_question *question, int kind, double bytes, const struct k25_params *params)
{
    switch (question->plan.allreduce.protocol) {
    case K25_PROTO_LL:
        return K25_BACKEND_NCCL_LL;
    case K25_PROTO_LL128:
        return K25_BACKEND_NCCL_LL128;
    case K25_PROTO_SIMPLE:
        return K25_BACKEND_NCCL_SIMPLE;
    case K25_PROTO_ALL: {
        int best = K25_BACKEND_NCCL_LL;
        for (int protocol = K25_BACKEND_NCCL_LL128; protocol <= K25_BACKEND_NCCL_SIMPLE; protocol++) {
            if (collective_time(question, kind, protocol, bytes, params) <
                collective_time(question, kind, best, bytes, params))
                best = protocol;
        }
        return best;
    }
    default: /* a gather's size is that of the buffer it fills */
        return (int)k25_nccl_protocol(kind == K25_OP_ALLREDUCE ? bytes : bytes * question->group.n, params);
    }
}

int k25_allreduce_choice(const struct k25_question *question, double rows, double bytes,
                         const struct k25_params *params)
{
    const struct k25_plan_allreduce *plan = &question->plan.allreduce;
    int nccl = nccl_protocol(question, K25_OP_ALLREDUCE, bytes, params);
    switch (plan->backend) {
    case K25_AR_ONESHOT:
        return K25_BACKEND_ONESHOT;
    case K25_AR_ONESHOT_THEN_NCCL:
        return bytes <= plan->oneshot_max_bytes || rows <= plan->oneshot_max_rows ? K25_BACKEND_ONESHOT : nccl;
    case K25_AR_FASTEST:
        return question->machine->p2p &&
                       k25_allreduce_time(K25_BACKEND_ONESHOT, bytes, &question->group, params) <
                       k25_allreduce_time((enum k25_backend)nccl, bytes, &question->group, params)
                   ? K25_BACKEND_ONESHOT
                   : nccl;
    default:
        return nccl;
    }
}

static void price_kernel(const struct k25_question *question, const struct k25_operator *op,
                         const struct k25_params *params, struct k25_priced *priced)
{
    struct k25_kernel_cost cost = k25_kernel_cost(&op->call, &question->machine->gpu, params);
    double factor = question->residuals == NULL ? 1 : exp(k25_residual(question->residuals, &op->call));
    priced->time = op->calls * factor * cost.time;
    priced->floor = op->calls * fmin(cost.floor, factor * cost.time);
    priced->bound = cost.bound;
}

/* `segment`: what the mean rank computed since it left the last collective. */
static void price_collective(const struct k25_question *question, const struct k25_operator *op, double segment,
                             const struct k25_params *params, struct k25_priced *priced)
{
    priced->backend = op->kind == K25_OP_ALLREDUCE ? k25_allreduce_choice(question, op->rows, op->message, params)
                                                   : nccl_protocol(question, op->kind, op->message, params);
    double transfer = collective_time(question, op->kind, priced->backend, op->message, params);
    priced->transfer = op->calls * transfer;
    priced->wait = op->calls * k25_wait_time(question->group.n, segment, params);
    priced->time = priced->transfer + priced->wait;
}

/* Prices every operator in the order of the step; returns what the mean rank computes behind the last collective. */
static double price_operators(const struct k25_question *question, const struct k25_params *params,
                            struct k25_prediction *p)
{
    double segment = 0;
    for (size_t i = 0; i < p->step_work.count; i++) {
        const struct k25_operator *op = &p->step_work.op[i];
        struct k25_priced *priced = &p->op[i];
        memset(priced, 0, sizeof *priced);
        if (op->kind == K25_OP_KERNEL) {
            price_kernel(question, op, params, priced);
            segment += priced->time / op->calls;
            p->kernels += priced->time;
            p->launches += op->calls * op->call.launches;
            continue;
        }
        price_collective(question, op, segment, params, priced);
        segment = 0;
        p->launches += op->calls;
        if (op->kind == K25_OP_ALLREDUCE) {
            p->allreduce_transfer += priced->transfer;
            p->allreduce_wait += priced->wait;
            p->allreduces += op->calls;
        } else {
            p->other_collectives += priced->time;
        }
    }
    return segment;
}

double k25_launch_gap(const struct k25_plan *plan, const struct k25_prediction *p, const struct k25_params *params)
{
    double gap = params->value[K25_GRAPH_GAP];
    if (k25_graph_runs(&plan->graph, p->step_work.tokens))
        return gap;
    /* Eager kernels start no faster than the host launches them: the GPU idles for the difference. */
    return fmax(gap, params->value[K25_EAGER_LAUNCH] - p->gpu_busy / p->launches);
}

void k25_predict(const struct k25_question *question, const struct k25_params *params,
                 struct k25_prediction *p)
{
    const struct k25_plan *plan = &question->plan;
    const double *value = params->value;
    k25_step_build(question->architecture, question->weights, question->machine, plan, params, &p->step_work);
    k25_memory(&p->step_work, question->machine, plan, params, &p->memory);

    p->kernels = p->allreduce_transfer = p->allreduce_wait = p->other_collectives = 0;
    p->launches = p->allreduces = 0;
    double tail = price_operators(question, params, p);

    p->allreduce = p->allreduce_transfer + p->allreduce_wait;
    p->gpu_busy = p->kernels + p->allreduce + p->other_collectives;
    p->allreduce_share = p->allreduce / p->gpu_busy;
    /* The next step starts when the last rank is through with this one. */
    p->host = value[K25_HOST_STEP] + value[K25_HOST_SEQUENCE] * plan->batch +
              k25_wait_time(question->group.n, tail, params);
    p->gaps = k25_launch_gap(plan, p, params) * p->launches;
    p->step = p->gpu_busy + p->gaps + p->host;
    p->tokens_per_step = 1;
    p->tpot = p->step / p->tokens_per_step;
    p->tok_s = plan->batch / p->tpot;
}
