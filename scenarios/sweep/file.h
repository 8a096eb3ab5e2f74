/* Reads the sweep format (docs/formats.md). */
#ifndef K25_SCENARIOS_SWEEP_FILE_H
#define K25_SCENARIOS_SWEEP_FILE_H

#include "scenarios/sweep/sweep.h"

/* Loads `name` (a path, or a name of the library's scenarios) with everything it refers to. Release with
 * k25_sweep_free, also after a failure. */
bool k25_sweep_load(const struct k25_library *library, const char *name, struct k25_sweep *sweep,
                    struct k25_error *error);
void k25_sweep_free(struct k25_sweep *sweep);

#endif
