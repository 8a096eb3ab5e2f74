/* Where files are found by name.
 *
 * A name that looks like a path (it has a '/' or ends in .yaml) is a path relative to the file that names it. Any
 * other name is a file of the library: the folders that come with the program.
 */
#ifndef K25_SCENARIOS_LIBRARY_LIBRARY_H
#define K25_SCENARIOS_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "hw/topology/machine.h"

enum k25_shelf {
    K25_SHELF_ARCHITECTURE, /* model/zoo/NAME.yaml */
    K25_SHELF_WEIGHTS,      /* model/zoo/ARCHITECTURE.NAME.yaml */
    K25_SHELF_MACHINE,      /* hw/machines/NAME.yaml */
    K25_SHELF_GPU,          /* hw/gpus/NAME.yaml */
    K25_SHELF_CALIBRATION,  /* calib/NAME.yaml */
    K25_SHELF_SCENARIO,     /* scenarios/NAME.yaml */
    K25_SHELF_SWEEP,        /* scenarios/NAME.yaml */
    K25_SHELVES,
};

/* The folder that holds hw/, model/, calib/ and scenarios/. */
struct k25_library {
    char root[512];
};

/* The path of `name` on a shelf. `from` is the file that names it ("" for the command line); for weights,
 * `architecture` is the architecture's name. A name that is not there is an error with the nearest one that is. */
bool k25_library_find(const struct k25_library *library, enum k25_shelf shelf, const char *name,
                      const char *architecture, const char *from, char *path, size_t size, struct k25_error *error);

/* The names on a shelf in alphabetical order, NULL-terminated, weights as "ARCHITECTURE.NAME"; free with
 * k25_library_free. NULL when the folder cannot be read. */
char **k25_library_list(const struct k25_library *library, enum k25_shelf shelf, size_t *count,
                        struct k25_error *error);
void k25_library_free(char **names);

extern const char *const k25_shelf_names[K25_SHELVES + 1]; /* "architecture", ...; NULL at the end */

/* The path of a table of measurements: `name` where there is such a file (or it is "-"), else the file of that name
 * below the library's root, as calib/points/kimi_k26_v4.csv is; `name` when neither is there. Lives in `name` or
 * `path`. */
const char *k25_library_table(const struct k25_library *library, const char *name, char *path, size_t size);

/* The files with the priors and the link figures. */
bool k25_library_params(const struct k25_library *library, char *path, size_t size);
bool k25_library_links(const struct k25_library *library, char *path, size_t size);

/* What machine files refer to: the link figures, read, and the shelf of GPUs. `library` must live as long as `parts`;
 * `inputs` may be NULL. */
bool k25_library_parts(const struct k25_library *library, struct k25_machine_parts *parts, struct k25_inputs *inputs,
                       struct k25_error *error);

#endif
