/* How a prediction is printed. Names and units of JSON and CSV are documented in docs/output.md. */
#ifndef K25_CLI_RENDER_RENDER_H
#define K25_CLI_RENDER_RENDER_H

#include "cli/render/answer.h"

struct cli_rendering {
    const char *root; /* the folder of the data, left out in front of file names */
    bool ops;         /* for people: every operator with its shape */
    bool outputs;     /* every output with its meaning; in CSV instead of the operators */
    bool inputs;      /* every input with its origin; in CSV instead of the operators */
};

/* Each prints a prediction, or what is missing when the plan does not fit. */
bool cli_render_table(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);
bool cli_render_json(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);
bool cli_render_csv(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);

/* For people: what was asked. */
void cli_print_question(const struct cli_answer *answer);

/* How far `answer` is from `base`: the outputs, then operator by operator. */
bool cli_render_difference(const struct cli_answer *answer, const struct cli_answer *base, bool ops,
                           enum cli_format format, struct k25_error *error);

#endif
