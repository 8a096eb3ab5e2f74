/* How a prediction is printed. Names and units of JSON and CSV are documented in docs/output.md. */
#ifndef K25_CLI_RENDER_RENDER_H
#define K25_CLI_RENDER_RENDER_H

#include "cli/render/answer.h"
#include "cli/render/table.h"

struct cli_rendering {
    const char *root; /* the folder of the data, left out in front of file names */
    bool ops, inputs;
};

/* Each prints a prediction, or what is missing when the plan does not fit. */
bool cli_render_table(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);
bool cli_render_json(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);
/* For people: what was asked; and sentences, one below the other, under a title. */
void cli_print_question(const struct cli_answer *answer);
void cli_print_sentences(const char *title, const struct cli_sentences *sentences);
/* The operators; with `inputs`, the inputs instead. */
bool cli_render_csv(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error);

/* What `answer` takes more than `base`: totals, then operator by operator. */
bool cli_render_difference(const struct cli_answer *answer, const struct cli_answer *base, bool ops,
                           enum cli_format format, struct k25_error *error);

/* Every operator, for any format; `totals` adds the rows gpu_busy, gaps, host and step. */
void cli_operator_table(const struct cli_answer *answer, bool totals, struct cli_table *table);
void cli_input_table(const struct cli_answer *answer, const char *root, struct cli_table *table);

#endif
