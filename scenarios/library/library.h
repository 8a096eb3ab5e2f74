/* The library: the YAML files that come with the program, found by kind and name.
 *
 * A name that contains '/' or ends in ".yaml" is a path, relative to the file that refers to it. Any other name is the
 * name of a file of the library without ".yaml".
 */
#ifndef K25_SCENARIOS_LIBRARY_LIBRARY_H
#define K25_SCENARIOS_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "hw/topology/machine.h"

/* Kinds of files, with their place below the root. */
enum k25_files {
    K25_FILES_ARCHITECTURE, /* model/zoo/NAME.yaml */
    K25_FILES_WEIGHTS,      /* model/zoo/ARCHITECTURE.NAME.yaml */
    K25_FILES_MACHINE,      /* hw/machines/NAME.yaml */
    K25_FILES_GPU,          /* hw/gpus/NAME.yaml */
    K25_FILES_CALIBRATION,  /* calib/sets/NAME.yaml */
    K25_FILES_SCENARIO,     /* scenarios/NAME.yaml */
    K25_FILES_SWEEP,        /* scenarios/NAME.yaml */
    K25_FILES_COUNT,
};

/* The name of each kind, as the key 'k25sim' of its files has it ("architecture", ...); NULL at the end. */
extern const char *const k25_files_names[K25_FILES_COUNT + 1];

struct k25_library {
    char root[512]; /* the folder with hw/, model/, calib/ and scenarios/; filled by the caller */
};

/* Writes the path of the file `name` of a kind to `path` (`size` bytes). `from` is the file that refers to it, "" for
 * the command line: paths are relative to its folder. `architecture` is the name of the architecture whose weights are
 * looked for; not used for other kinds. A path is returned without a check that the file exists. Returns false with
 * K25_BAD_INPUT when the library has no such file (the message has the nearest name) or the path is too long. */
bool k25_library_find(const struct k25_library *library, enum k25_files kind, const char *name,
                      const char *architecture, const char *from, char *path, size_t size, struct k25_error *error);

/* Returns the names of all files of a kind in alphabetical order, weights as "ARCHITECTURE.NAME", with NULL at the end;
 * `*count` is their number without it. The caller frees the list with k25_library_free. Returns NULL with
 * K25_RESOURCE when the folder cannot be read or out of memory, with K25_BAD_INPUT when the root is too long. */
char **k25_library_list(const struct k25_library *library, enum k25_files kind, size_t *count, struct k25_error *error);
/* Frees a list and its names; NULL is allowed. */
void k25_library_free(char **names);

/* Returns the path of a table of measurements: `name` when it is "-", absolute, or an existing file; else the file of
 * that name below the root (calib/points/kimi_k26_v4.csv); `name` when neither exists. The result is `name` itself or
 * is written to `path` (`size` bytes). Does not fail. */
const char *k25_library_table(const struct k25_library *library, const char *name, char *path, size_t size);

/* Write the path of the file of priors (hw/params/params.yaml) and of link figures (hw/topology/links.yaml) to `path`
 * (`size` bytes). Return false when it does not fit; the files are not looked at. */
bool k25_library_params(const struct k25_library *library, char *path, size_t size);
bool k25_library_links(const struct k25_library *library, char *path, size_t size);

/* Fills `parts` with what machine files refer to: the link figures, read from their file, and a finder of GPU files.
 * `parts` owns nothing but keeps a pointer to `library`, which must outlive it. The file read is recorded in `inputs`
 * (may be NULL). Returns false with the error of the file of link figures. */
bool k25_library_parts(const struct k25_library *library, struct k25_machine_parts *parts, struct k25_inputs *inputs,
                       struct k25_error *error);

#endif
