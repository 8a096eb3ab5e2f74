/* What happens between ranks: the step played out event by event on every rank.
 *
 * The prediction says what a step costs in the mean; this draws single steps. Every rank runs the operators of
 * k25_step_build in order, layer after layer. A kernel takes its price times a log-normal factor, a compute segment is
 * stretched or shortened by the arrival jitter of the rank (skew.sigma, skew.rho) and by the lag of one slow rank
 * (skew.lag); a collective ends on all ranks together, its transfer after the last arrival. Produces events, not files.
 */
#ifndef K25_MODEL_PREDICT_SIMULATE_H
#define K25_MODEL_PREDICT_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/predict/predict.h"

struct k25_simulation {
    int steps;
    uint64_t seed;
    double kernel_noise;   /* standard deviation of ln(duration) of one kernel, one draw for all ranks: what differs
                              between ranks is their jitter */
    double transfer_noise; /* the same of one collective's transfer, one draw for all ranks */
    bool jitter;           /* draw arrivals; without, ranks differ by the lag alone */
    int slow_rank;         /* the one that arrives skew.lag later than the others; -1: none. The mean rank takes what is
                              predicted, so the others are ahead of it by skew.lag / n */
};

struct k25_sim_event {
    int rank, step;
    const struct k25_operator *op;
    double start, duration; /* s since the first step began */
};

/* Called rank by rank within a segment, segments in time. False stops the simulation. */
typedef bool k25_sim_visit(void *context, const struct k25_sim_event *event);

/* Plays `simulation->steps` steps of `prediction`, which must be k25_predict(question, params); events point at its
 * operators. The same seed gives the same events. False when the visitor stopped it, or with `error` when memory is
 * out or the plan is a pipeline. */
bool k25_simulate(const struct k25_question *question, const struct k25_params *params,
                  const struct k25_simulation *simulation, k25_sim_visit *visit, void *context,
                  const struct k25_prediction *prediction, struct k25_error *error);

#endif
