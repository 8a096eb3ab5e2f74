/* Simulation of a step, event by event on every rank.
 *
 * The prediction is the mean of a step; this draws single steps. Every rank runs the operators of k25_step_build in
 * order, layer after layer. A kernel takes its predicted time times a log-normal factor, a compute segment is
 * lengthened or shortened by the arrival jitter of the rank (skew.sigma, skew.rho) and by the lag of one slow rank
 * (skew.lag); a collective ends on all ranks together, its transfer after the last arrival. Produces events, not files.
 */
#ifndef K25_MODEL_PREDICT_SIMULATE_H
#define K25_MODEL_PREDICT_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/predict/predict.h"

struct k25_simulation {
    int steps;           /* at least 1 */
    uint64_t seed;       /* of the random numbers */
    double kernel_noise; /* standard deviation of ln(duration) of one kernel, one draw for all ranks: ranks differ only
                            by their jitter */
    double transfer_noise; /* the same for the transfer of one collective, one draw for all ranks */
    bool jitter;           /* draw arrivals; without it ranks differ only by the lag */
    int slow_rank;         /* the rank that arrives skew.lag later than the others; -1: none. The mean over ranks is the
                              predicted time, so the others are earlier than it by skew.lag / n */
};

struct k25_sim_event {
    int rank, step;                /* from 0 */
    const struct k25_operator *op; /* of the prediction */
    double start;                  /* s since the first step began */
    double duration;               /* s */
};

/* Called for the events of a segment rank by rank, and for segments in the order of time. Returning false stops the
 * simulation. */
typedef bool k25_sim_visit(void *context, const struct k25_sim_event *event);

/* Simulates `simulation->steps` steps of `prediction`, which must be k25_predict(question, params), and calls `visit`
 * with `context` for each event. The same seed gives the same events. Returns false when the visitor stopped it, and
 * fails with K25_RESOURCE when out of memory, K25_BAD_INPUT when the plan has a pipeline. */
bool k25_simulate(const struct k25_question *question, const struct k25_params *params,
                  const struct k25_simulation *simulation, k25_sim_visit *visit, void *context,
                  const struct k25_prediction *prediction, struct k25_error *error);

#endif
