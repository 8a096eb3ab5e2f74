/* The figures that went into an answer, as rows. */
#ifndef K25_CLI_RENDER_INPUTS_H
#define K25_CLI_RENDER_INPUTS_H

#include "cli/render/answer.h"
#include "cli/render/table.h"

/* Opens `table` with a row for every input and its origin; `root` is the folder of the data, left out in front of file
 * names. */
void cli_input_table(const struct cli_answer *answer, const char *root, struct cli_table *table);

#endif
