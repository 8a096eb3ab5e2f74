/* A scenario: what one prediction is about. The file refers to an architecture, its weights, a machine and a
 * calibration set, and has a plan. Loading it resolves every reference: the result is plain structs and the record of
 * its inputs.
 */
#ifndef K25_SCENARIOS_LIBRARY_SCENARIO_H
#define K25_SCENARIOS_LIBRARY_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "calib/fit/calibration.h"
#include "hw/params/params.h"
#include "hw/topology/machine.h"
#include "model/arch/arch.h"
#include "model/arch/weights.h"
#include "model/plan/plan.h"
#include "model/predict/predict.h"
#include "model/predict/serving.h"
#include "scenarios/library/library.h"

/* The load of a load test: the first three fields are for measured points (scenarios/points/suite.h), the others for
 * serving at a fixed concurrency (model/predict/serving.h). */
struct k25_load {
    double short_prompt;      /* tokens of a prompt that a table calls "0" */
    double output_max;        /* tokens after which a request ends */
    double cell_seconds;      /* s, duration of a measured cell whose row does not give it; 0: unknown */
    double acceptance_noise;  /* sd of ln(tokens a step) as a server reports it for one cell */
    double acceptance_spread; /* sd of ln(tokens a step) between the cells of one group */

    double prompt, output; /* tokens of a request */
    int chunk;             /* prompt tokens in a step at most; 0: a whole prompt at once */
    double prefix_hit;     /* share of the prompt found in the cache, 0 to 1 */
    double rounds;         /* requests of one user in a test; 0: steady state */
    double front_ms;       /* ms of a request before the engine: network, tokeniser */
    bool disaggregated;    /* prefill runs on a second, equal machine */
    double transfer_gbs;   /* GB/s into each GPU at which the cache arrives from it */
};

#define K25_MAX_ASSUMPTIONS 16

/* A loaded scenario. It has no pointers to memory of the caller; k25_scenario_free releases what it owns. */
struct k25_scenario {
    char file[512]; /* its path */
    char name[64];
    char title[256];
    char architecture_name[512], weights_name[512], machine_name[512], calibration_name[512]; /* as written */
    char draft_name[512], draft_weights_name[512];                                            /* as written */

    char architecture_file[1024]; /* path of the architecture's file */
    struct k25_architecture architecture;
    struct k25_weights weights;
    bool drafts; /* a draft model was named */
    struct k25_architecture draft_architecture;
    struct k25_weights draft_weights;
    struct k25_machine machine;
    struct k25_priors priors;
    struct k25_calibration calibration;
    bool calibrated; /* a calibration set was named */
    struct k25_params params;
    struct k25_plan plan;
    struct k25_load load;
    size_t assumptions;
    char assumption[K25_MAX_ASSUMPTIONS][256]; /* sentences to print with the result */
    struct k25_inputs inputs;                  /* every value under its key, and every file that was read */
};

#define K25_UNKNOWN_KEY 700 /* bytes that hold any message of k25_scenario_unknown_key */

/* The keys of a scenario file, for the documentation of the format. */
extern const struct k25_field k25_scenario_fields[];

/* Loads the scenario `name` (a path, or a name of the library) with all files that it refers to. `set` has `count`
 * overrides "key=value"; the first part of a key says where it belongs: plan.tp, machine.gpu.sms, architecture.hidden,
 * parameters.nccl.hop, load.output_max. `machine=NAME`, `weights=NAME` and the like replace a reference. Returns false
 * with K25_BAD_INPUT (file and position, or the override) or K25_RESOURCE. Release with k25_scenario_free, also after a
 * failure. */
bool k25_scenario_load(const struct k25_library *library, const char *name, const char *const *set, size_t count,
                       struct k25_scenario *scenario, struct k25_error *error);
/* Frees what the scenario owns, not the struct itself. */
void k25_scenario_free(struct k25_scenario *scenario);

/* Returns whether the first part of `key` ("plan" of "plan.tp") is one that overrides have; the rest of the key is not
 * checked. */
bool k25_scenario_has_key(const char *key);
/* Returns whether the value of `key` refers to a file: architecture, weights, draft, draft_weights, machine,
 * machine.gpu, calibration. */
bool k25_scenario_is_reference(const char *key);
/* Writes "unknown key 'pln.tp', did you mean 'plan'?; keys start with plan, machine, ..." to `out` (`size` bytes, cut
 * to fit) and returns `out`. */
const char *k25_scenario_unknown_key(const char *key, char *out, size_t size);

/* Returns the residual tables of the calibration set, owned by the scenario; NULL when it has none. */
const struct k25_residuals *k25_scenario_residuals(const struct k25_scenario *scenario);

/* Returns the draft model, without an architecture when the scenario has none. Points into the scenario. */
struct k25_draft k25_scenario_draft(const struct k25_scenario *scenario);

/* Fills `question`, the input of k25_predict, for the scenario's plan. It points into the scenario, which must outlive
 * it. Returns false with K25_BAD_INPUT and the position of the key when the plan is invalid for this model or machine.
 */
bool k25_scenario_question(const struct k25_scenario *scenario, struct k25_question *question, struct k25_error *error);

/* The same for another plan, which is copied. The error has no position. */
bool k25_scenario_question_for(const struct k25_scenario *scenario, const struct k25_plan *plan,
                               struct k25_question *question, struct k25_error *error);

/* Returns the load as input of the serving model, at a concurrency of plan.batch. */
struct k25_service k25_scenario_service(const struct k25_scenario *scenario);

#endif
