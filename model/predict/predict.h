/* The prediction: what one decode step costs, operator by operator.
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

/* Everything that is asked, by reference; `residuals` is what measurements say on top of the formulas, NULL: nothing.
 * `gpu` and `group` are the machine's under the levers of the plan. */
struct k25_question {
    const struct k25_architecture *architecture;
    const struct k25_weights *weights;
    struct k25_draft draft; /* of K25_SPEC_EAGLE3 and K25_SPEC_DRAFT, else zero */
    const struct k25_machine *machine;
    const struct k25_residuals *residuals;
    struct k25_group group[K25_RANKS_GROUPS]; /* by enum k25_ranks */
    struct k25_plan plan;
    double tokens_per_step; /* k25_tokens_per_step of the plan */
};

/* Of one operator, all its calls of a step together, in seconds on the mean rank. */
struct k25_priced {
    double time;
    double transfer, wait;    /* collectives: time = transfer + wait */
    double floor;             /* kernels: the part that is launch floor */
    enum k25_bound bound;     /* kernels */
    enum k25_backend backend; /* collectives */
};

struct k25_prediction {
    struct k25_step step_work;
    struct k25_priced op[K25_MAX_OPERATORS];
    struct k25_memory memory;

    double kernels;   /* s: everything on the GPU but collectives */
    double allreduce; /* s: AllReduces, transfer + wait */
    double allreduce_transfer;
    double allreduce_wait;
    double other_collectives; /* s: gathers, exchanges and sends, transfer + wait */
    double tail;              /* s that the mean rank computes behind the last collective */
    double draft;             /* s of gpu_busy that go to the draft */
    double gpu_busy;          /* s */
    double allreduce_share;   /* allreduce / gpu_busy */
    double gaps;              /* s between kernels */
    double host;              /* s that the host adds to the step, the wait for the last rank's tail among them */
    double bubble;            /* s that a rank of a pipeline waits for the other stages */
    double step;              /* s; of a pipeline: from one token of a sequence to its next */
    double tokens_per_step;   /* accepted, of one sequence: 1 without speculation, NAN when the plan does not say */
    double tpot;              /* s: step / tokens_per_step */
    double tok_s;             /* all sequences together */
    double launches;          /* kernels a step, collectives with them */
    double allreduces;        /* calls a step */
};

/* Builds a question without residual tables; false when the plan does not suit architecture or machine (positions from
 * `inputs`). `draft` may be NULL where the plan needs none. */
bool k25_question_make(const struct k25_architecture *architecture, const struct k25_weights *weights,
                       const struct k25_draft *draft, const struct k25_machine *machine, const struct k25_plan *plan,
                       const struct k25_inputs *inputs, struct k25_question *question, struct k25_error *error);

/* Exchanges the plan and what follows from it, under the same architecture, weights, draft, machine and residuals. */
bool k25_question_replan(struct k25_question *question, const struct k25_plan *plan, const struct k25_inputs *inputs,
                         struct k25_error *error);

void k25_predict(const struct k25_question *question, const struct k25_params *params,
                 struct k25_prediction *prediction);

/* The same, when `prediction` is the answer to `before` by the same parameters: what the two questions share is not
 * computed again. Bit for bit what k25_predict says. Fast where only plan.context differs. */
void k25_predict_next(const struct k25_question *before, const struct k25_question *question,
                      const struct k25_params *params, struct k25_prediction *prediction);

/* s between the start of two kernels beyond what the first one takes: inside a CUDA graph the gap of the graph; eager,
 * what the host's launches take beyond the mean kernel. */
double k25_launch_gap(const struct k25_plan *plan, const struct k25_prediction *prediction,
                      const struct k25_params *params);

/* The backend that the plan (or the cheaper price, for K25_AR_FASTEST) gives an AllReduce of `rows` tokens and
 * `bytes` bytes per rank. */
enum k25_backend k25_allreduce_choice(const struct k25_question *question, double rows, double bytes,
                                      const struct k25_params *params);

#endif
