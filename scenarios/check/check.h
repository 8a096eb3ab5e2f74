/* Checks any YAML file of the program's formats, by the kind given under its key 'k25sim'. */
#ifndef K25_SCENARIOS_CHECK_CHECK_H
#define K25_SCENARIOS_CHECK_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "scenarios/library/library.h"

/* Loads the file `path` with the reader of its kind, together with the files that it refers to, and frees the result.
 * `*kind` is set to the kind ("scenario"), a string constant, as soon as it is known; before that it is unchanged.
 * Returns false with the error of the reader: K25_BAD_INPUT with file, line and column when anything is invalid,
 * K25_RESOURCE when a file cannot be read or out of memory. */
bool k25_check_file(const struct k25_library *library, const char *path, const char **kind, struct k25_error *error);

#endif
