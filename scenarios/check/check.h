/* Any file of ours, by the kind it says it is. */
#ifndef K25_SCENARIOS_CHECK_CHECK_H
#define K25_SCENARIOS_CHECK_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "scenarios/library/library.h"

/* Loads the file `path`, of whatever kind, and checks all of it with what it refers to. `*kind` is set to the kind it
 * says it is ("scenario"), a constant. False with an error that has a position when anything is wrong. */
bool k25_check_file(const struct k25_library *library, const char *path, const char **kind, struct k25_error *error);

#endif
