/* `explain SCENARIO`: why the step takes what it takes, and what would change it. */
#ifndef K25_CLI_COMMANDS_EXPLAIN_STEP_H
#define K25_CLI_COMMANDS_EXPLAIN_STEP_H

#include <stdbool.h>

#include "cli/render/answer.h"
#include "model/predict/explain.h"

/* How the step follows one thing: a parameter or a figure of the machine. */
struct cli_elasticity {
    const char *name, *kind; /* "parameter", "figure" */
    const char *unit;
    double value;      /* in its unit */
    double elasticity; /* of the step and of TPOT: d ln step / d ln x */
    double slope;      /* s: d step / d ln x */
    int id;            /* number of the parameter or of the figure */
    bool changeable;   /* by a person: no constant of a formula, nothing that the text decides */
};

/* What takes the wanted time off the step, to first order. */
struct cli_purchase {
    const char *name, *kind;   /* "parameter", "figure", "lever" */
    const char *unit, *change; /* "less", "more"; of a lever "of its ceiling" */
    double share;              /* relative change, or share of the ceiling */
    double value, target;      /* before and after, in its unit; NAN for a lever */
};

enum { CLI_FOLLOWED = K25_PARAMS + K25_FIGURES };

struct cli_explanation {
    struct k25_share shares[K25_SHARES];
    struct cli_elasticity elasticities[CLI_FOLLOWED]; /* largest first */
    struct k25_ceiling ceilings[K25_LEVERS];
    double wanted;                 /* s: 1 ms, or 5 % of a step below 10 ms */
    size_t purchases, unreachable; /* those that take more than the whole of something are only counted */
    struct cli_purchase purchase[CLI_FOLLOWED + K25_LEVERS]; /* smallest change first */
    bool speculates;
    struct k25_chain chains[K25_LONGEST_CHAIN + 1];
    int best; /* chain, -1 unknown */
};

/* Of an answer whose plan fits. */
bool cli_explain_step(const struct cli_answer *answer, struct cli_explanation *explanation, struct k25_error *error);

/* The format's tables are those of docs/output.md; of CSV one table with a column `section`. */
bool cli_render_explanation(const struct cli_answer *answer, const struct cli_explanation *explanation,
                            enum cli_format format, struct k25_error *error);
/* The header of the CSV alone: of a plan that does not fit. */
bool cli_render_no_explanation(struct k25_error *error);

#endif
