/* A simulated capture on disk: the events of model/predict/simulate.h as one torch.profiler trace a rank, which
 * `k25sim inspect`, `k25sim calibrate` and Perfetto read like any other.
 */
#ifndef K25_CALIB_CAPTURE_SIMULATED_H
#define K25_CALIB_CAPTURE_SIMULATED_H

#include "base/error.h"
#include "model/predict/simulate.h"

/* What came out, over ranks and steps, s. */
struct k25_sim_summary {
    double step_median, step_p95, step_worst; /* from the first kernel of a step to that of the next */
    double allreduce;                         /* mean over ranks and steps, of one step */
};

/* The name of the trace of a rank: `folder`/rank{r}.{stamp}.pt.trace.json.gz. False: it does not fit `out`. */
bool k25_simulated_path(const char *folder, int rank, char *out, size_t size, struct k25_error *error);

/* Plays the simulation and writes the trace of every rank, over those that are there; the folder must exist.
 * Kernels carry names of the kind a real one has, so that the rules of calib/rules/kernels.yaml class them; steps carry
 * vLLM's annotation with batch and context. `folder` may be NULL: nothing is written. */
bool k25_simulate_capture(const struct k25_question *question, const struct k25_params *params,
                          const struct k25_simulation *simulation, const char *folder, struct k25_sim_summary *summary,
                          struct k25_error *error);

#endif
