/* What is printed about a sweep besides its rows. */
#ifndef K25_CLI_COMMANDS_SWEEP_SUMMARY_H
#define K25_CLI_COMMANDS_SWEEP_SUMMARY_H

#include <stdio.h>

#include "scenarios/sweep/store.h"

/* How many points, and what became of them. */
void cli_sweep_counts(FILE *out, const struct k25_sweep_layout *layout, const struct k25_sweep_store *store);
/* The Pareto front and the best rows of every group, on standard output, with how well their throughput is known where
 * the `sweep` itself is at hand (NULL: merged rows). Puts the fronts of the store in order. */
bool cli_sweep_best(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout, struct k25_sweep_store *store,
                    struct k25_error *error);

#endif
