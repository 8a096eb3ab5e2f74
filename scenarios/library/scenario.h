/* A scenario: one question, as references to an architecture, its weights, a machine and a calibration set, and a
 * plan. Loading one resolves every reference and leaves plain structs.
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

/* How a load test relates to the step that is priced: the first three for measured points (scenarios/points/suite.h),
 * the others for a service at a fixed concurrency (model/predict/serving.h). */
struct k25_load {
    double short_prompt; /* tokens of a prompt that a table calls "0" */
    double output_max;   /* tokens after which a request ends */
    double cell_seconds; /* how long a cell ran when the row does not say; 0: unknown */

    double prompt, output; /* tokens of a request */
    int chunk;             /* prompt tokens that a step may carry; 0: a whole prompt at once */
    double prefix_hit;     /* share of the prompt found in the cache */
    double rounds;         /* requests of one user in a test; 0: a long run */
    double front_ms;       /* of a request in front of the engine */
    bool disaggregated;    /* prefill on an equal machine of its own */
    double transfer_gbs;   /* GB/s into each GPU at which its cache comes over */
};

#define K25_MAX_ASSUMPTIONS 16

struct k25_scenario {
    char file[512];
    char name[64];
    char title[256];
    char architecture_name[512], weights_name[512], machine_name[512], calibration_name[512]; /* as written */
    char draft_name[512], draft_weights_name[512];

    char architecture_file[1024]; /* where the architecture was found */
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
    char assumption[K25_MAX_ASSUMPTIONS][256]; /* what the author wants said beside the answer */
    struct k25_inputs inputs;                  /* every value under its key, and every file that was read */
};

#define K25_UNKNOWN_KEY 700 /* bytes of a message about one */

extern const struct k25_field k25_scenario_fields[];

/* Loads `name` (a path, or a name of the library). `set` is a list of `count` overrides "key=value", the key with its
 * first part naming what it belongs to: plan.tp, machine.gpu.sms, architecture.hidden, weights, parameters.nccl.hop,
 * load.output_max; `machine=NAME` and the like exchange a reference. Release with k25_scenario_free, also after a
 * failure. */
bool k25_scenario_load(const struct k25_library *library, const char *name, const char *const *set, size_t count,
                       struct k25_scenario *scenario, struct k25_error *error);
void k25_scenario_free(struct k25_scenario *scenario);

/* Whether a key of overrides may start as `key` does ("plan" of "plan.tp"); the rest of the key is not looked at. */
bool k25_scenario_has_key(const char *key);
/* Whether `key` is one of those whose value names a file: architecture, weights, draft, draft_weights, machine,
 * machine.gpu, calibration. */
bool k25_scenario_is_reference(const char *key);
/* "unknown key 'pln.tp', did you mean 'plan'?; keys start with plan, machine, ..." in `out`, which it returns. */
const char *k25_scenario_unknown_key(const char *key, char *out, size_t size);

/* The residual tables of its calibration set; NULL: it has none. */
const struct k25_residuals *k25_scenario_residuals(const struct k25_scenario *scenario);

/* The draft model, or no draft; points into the scenario. */
struct k25_draft k25_scenario_draft(const struct k25_scenario *scenario);

/* The question points into the scenario. */
bool k25_scenario_question(const struct k25_scenario *scenario, struct k25_question *question, struct k25_error *error);

/* The question for another plan; what is wrong with the plan is said without a place. */
bool k25_scenario_question_for(const struct k25_scenario *scenario, const struct k25_plan *plan,
                               struct k25_question *question, struct k25_error *error);

/* What its load asks of the plan, at a concurrency of plan.batch. */
struct k25_service k25_scenario_service(const struct k25_scenario *scenario);

#endif
