/* `explain --collectives`: which AllReduce wins at which size, for every size of group that the machine has. */
#ifndef K25_CLI_COMMANDS_EXPLAIN_COLLECTIVES_H
#define K25_CLI_COMMANDS_EXPLAIN_COLLECTIVES_H

#include <stdbool.h>

#include "cli/cli.h"
#include "scenarios/library/scenario.h"

/* Prices the machine of a scenario by its parameters; of the architecture only the bytes of a row count, of the
 * plan only its link levers. Groups are the first 2, 4, 8, ... GPUs. As CSV the table of sizes alone, as JSON `sizes`
 * and `crossovers` (docs/output.md). */
bool cli_explain_collectives(const struct k25_scenario *scenario, enum cli_format format, struct k25_error *error);

#endif
