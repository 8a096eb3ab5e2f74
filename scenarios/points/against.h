/* Points against the scenario that they are to calibrate. */
#ifndef K25_SCENARIOS_POINTS_AGAINST_H
#define K25_SCENARIOS_POINTS_AGAINST_H

#include "calib/evidence/check.h"
#include "scenarios/points/suite.h"

/* Adds what is wrong with the rows of `group` and `variant` (NULL: with all rows): model, weights, GPU, number of GPUs,
 * engine. `name` is the file's. One finding a kind, of the first row. */
void k25_suite_check(const struct k25_suite *suite, const char *name, const char *group, const char *variant,
                     const struct k25_scenario *scenario, struct k25_check *check);

#endif
