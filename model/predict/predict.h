/* The prediction: the time of one decode step, operator by operator.
 *
 *     gpu_busy = sum of kernels + sum of collectives (transfer + wait), the mean over ranks
 *     step     = gpu_busy + gaps between kernels + what the host adds
 *
 * A step runs from the first kernel of one step to the first kernel of the next.
 */
#ifndef K25_MODEL_PREDICT_PREDICT_H
#define K25_MODEL_PREDICT_PREDICT_H

#include "base/error.h"
#include "hw/collective/collective.h"
#include "hw/kernel/residual.h"
#include "hw/params/params.h"
#include "hw/topology/machine.h"
#include "model/arch/arch.h"
#include "model/arch/weights.h"
#include "model/plan/plan.h"
#include "model/predict/memory.h"
#include "model/step/step.h"

/* The inputs of a prediction but for the parameters. Owns nothing: what it points at must outlive it. */
struct k25_question {
    const struct k25_architecture *architecture;
    const struct k25_weights *weights;
    struct k25_draft draft; /* of K25_SPEC_EAGLE3 and K25_SPEC_DRAFT, else zero */
    const struct k25_machine *machine;
    const struct k25_residuals *residuals;    /* corrections of the formulas by measurements; NULL: none */
    struct k25_group group[K25_RANKS_GROUPS]; /* of the machine under the levers of the plan, by enum k25_ranks */
    struct k25_plan plan;
    double tokens_per_step; /* k25_tokens_per_step of the plan */
};

/* Of one operator, all its calls of a step together, in seconds on the mean rank. */
struct k25_priced {
    double time;
    double transfer, wait;    /* collectives: time = transfer + wait */
    double floor;             /* kernels: fixed time of launches and items (hw/kernel/kernel.h) */
    enum k25_bound bound;     /* kernels */
    enum k25_backend backend; /* collectives */
};

/* Large: 800 operators. Owns nothing. */
struct k25_prediction {
    struct k25_step step_work;
    struct k25_priced op[K25_MAX_OPERATORS]; /* by the index in step_work.op */
    struct k25_memory memory;

    double kernels;            /* s: everything on the GPU but collectives */
    double allreduce;          /* s: AllReduces, transfer + wait */
    double allreduce_transfer; /* s */
    double allreduce_wait;     /* s */
    double other_collectives;  /* s: gathers, exchanges and sends, transfer + wait */
    double tail;               /* s that the mean rank computes after the last collective */
    double draft;              /* s of gpu_busy for the draft */
    double gpu_busy;           /* s */
    double allreduce_share;    /* allreduce / gpu_busy */
    double gaps;               /* s between kernels */
    double host;            /* s that the host adds to the step, including the wait for the slowest rank at its end */
    double bubble;          /* s that a rank of a pipeline waits for the other stages */
    double step;            /* s; of a pipeline: from one token of a sequence to its next */
    double tokens_per_step; /* of one sequence: 1 without speculation, NAN when the plan gives no acceptance */
    double tpot;            /* s: step / tokens_per_step */
    double tok_s;           /* all sequences together */
    double launches;        /* kernels per step, including collectives */
    double allreduces;      /* calls a step */
};

/* Builds a question without residual tables. `draft` may be NULL when the plan needs none, `inputs` may be NULL. Fails
 * with K25_BAD_INPUT as k25_plan_check does, for a missing draft, and for an acceptance that cannot be read. */
bool k25_question_make(const struct k25_architecture *architecture, const struct k25_weights *weights,
                       const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                       const struct k25_inputs *inputs, struct k25_question *question, struct k25_error *error);

/* Replaces the plan and what depends on it; architecture, weights, draft, machine and residuals stay. Fails as
 * k25_question_make does. */
bool k25_question_replan(struct k25_question *question, const struct k25_plan *plan, const struct k25_inputs *inputs,
                         struct k25_error *error);

/* As k25_machine_group, with the factors of the plan's levers on latency and bandwidth of every link. */
bool k25_plan_group(const struct k25_machine *machine, const struct k25_plan_levers *levers, int ranks,
                    struct k25_group *group, struct k25_error *error);

/* Returns the power limit of a GPU, W: its own, or that of the plan's lever when that is lower. */
double k25_power_limit(const struct k25_question *question);

/* The GPU under the power limit of the plan: its peaks and the serial loops over K or the cache scale with the clock,
 * memory and launches do not. */
struct k25_clocked {
    struct k25_gpu gpu;
    double clock; /* / full clock */
};
/* Sets the GPU of the machine as it runs under the plan. */
void k25_clock_gpu(const struct k25_question *question, const struct k25_params *params, struct k25_clocked *clocked);

/* Computes the prediction of a question. Does not fail; a model that does not fit has memory.fits false. */
void k25_predict(const struct k25_question *question, const struct k25_params *params,
                 struct k25_prediction *prediction);

/* As k25_predict, when `prediction` is that of `before` with the same parameters: what the two questions have in common
 * is not computed again. The result is bit for bit that of k25_predict. Fast when only plan.context differs. */
void k25_predict_next(const struct k25_question *before, const struct k25_question *question,
                      const struct k25_params *params, struct k25_prediction *prediction);

/* Returns the s between the end of a kernel and the start of the next: inside a CUDA graph the gap of the graph; eager,
 * the time of a host launch beyond that of the mean kernel. */
double k25_launch_gap(const struct k25_plan *plan, const struct k25_prediction *prediction,
                      const struct k25_params *params);

/* Returns the backend of an AllReduce of `rows` tokens and `bytes` bytes per rank: that of the plan, or the fastest for
 * K25_AR_FASTEST. */
enum k25_backend k25_allreduce_choice(const struct k25_question *question, double rows, double bytes,
                                      const struct k25_params *params);

#endif
