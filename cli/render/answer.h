/* A scenario with its prediction: what the renderers print. */
#ifndef K25_CLI_RENDER_ANSWER_H
#define K25_CLI_RENDER_ANSWER_H

#include <stdbool.h>

#include "cli/cli.h"
#include "model/predict/predict.h"
#include "model/predict/uncertainty.h"
#include "scenarios/library/scenario.h"

struct cli_answer {
    struct k25_scenario scenario;
    struct k25_question question; /* points into the scenario: an answer is never copied */
    struct k25_prediction prediction;
    struct k25_uncertainty uncertainty; /* of the parameters; what --set gave is exact */
    struct k25_intervals intervals;     /* only of a plan that fits */
    const char *const *set;             /* overrides of the command line, NULL-terminated; NULL: none */
};

/* Returns whether --set gave the parameter. */
bool cli_is_overridden(const struct k25_scenario *scenario, enum k25_param id);

/* How far the parameters of a scenario may be off; what an override gives is exact. */
void cli_uncertainty(const struct k25_scenario *scenario, struct k25_uncertainty *u);

/* Also after a failure the answer must be freed. */
bool cli_answer_load(const struct cli *cli, const char *name, const char *const *set, struct cli_answer *answer,
                     struct k25_error *error);
void cli_answer_free(struct cli_answer *answer);

/* What would fit in memory when the plan does not. 0: nothing does. */
struct cli_fitting {
    double missing; /* bytes a GPU would need on top */
    double batch;   /* at this context */
    double context; /* at this batch, tokens */
    int tp;         /* smallest larger one that fits this batch and context on this machine */
};
void cli_what_fits(const struct cli_answer *answer, struct cli_fitting *fitting);

#endif
