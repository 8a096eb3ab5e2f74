/* The record of inputs: where every value came from.
 *
 * Loading a file records that it was read, and each value taken from it: its path ("plan.tp"), its text, and its
 * origin. The record serves three purposes: the output of `predict --inputs`, the position in an error about the
 * meaning of a value ("tp: 7 does not divide 64 heads"), and the checksum that tells whether two runs read the same
 * bytes.
 */
#ifndef K25_BASE_INPUTS_H
#define K25_BASE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum k25_origin {
    K25_FROM_FILE,
    K25_FROM_OVERRIDE,    /* --set or a flag */
    K25_FROM_DEFAULT,     /* not given; the format's default */
    K25_FROM_PRIOR,       /* a parameter that no calibration set gives */
    K25_FROM_CALIBRATION, /* a parameter set by a calibration set */
    K25_ORIGINS,
};

struct k25_input {
    char *path;             /* "plan.tp", "machine.gpu.sms" */
    char *value;            /* as written */
    char *unit;             /* may be empty */
    enum k25_origin origin; /* says what `file` means */
    char *file;             /* the file read; of an override the flag, "" for --set; "" when there is none */
    int line, column;       /* in `file`, from 1; 0 when there is no position */
};

struct k25_input_file {
    char *path;   /* as it was opened */
    uint64_t sum; /* CRC-64 of its bytes as they were read */
};

/* Initialise to all zero. Owns all its strings. */
struct k25_inputs {
    struct k25_input *list;      /* [count], in the order of first recording, paths unique */
    size_t count;                /* values */
    struct k25_input_file *file; /* [files], in the order of reading, no duplicates */
    size_t files;                /* files */
};

/* Records a value. A value with the same path is replaced in place. The strings of `input` are copied (NULL counts as
 * empty). Fails only when out of memory (K25_RESOURCE); the record is then unchanged. */
bool k25_inputs_record(struct k25_inputs *inputs, struct k25_input input, struct k25_error *error);

/* Returns the value recorded for `path`, NULL when there is none; valid until the next change of `inputs`. */
const struct k25_input *k25_inputs_find(const struct k25_inputs *inputs, const char *path);

/* Frees all values and files and leaves the record empty. */
void k25_inputs_free(struct k25_inputs *inputs);

/* Records that the `size` bytes of `path` were read; the same bytes of the same path are recorded once. Called by the
 * reader of files (k25_yaml_read), so that no loader keeps a list of its files by hand. Fails only when out of memory
 * (K25_RESOURCE). */
bool k25_inputs_record_file(struct k25_inputs *inputs, const char *path, const char *bytes, size_t size,
                            struct k25_error *error);

/* Adds the files of `more`, not its values. Fails only when out of memory (K25_RESOURCE). */
bool k25_inputs_add_files(struct k25_inputs *inputs, const struct k25_inputs *more, struct k25_error *error);

/* Returns the CRC-64 (ECMA-182, reflected) of the sums of all files in their order. It depends on the bytes of the
 * files, not on their paths. */
uint64_t k25_inputs_sum(const struct k25_inputs *inputs);

/* Returns "file", "override", "default", "prior" or "calibration"; static. */
const char *k25_origin_name(enum k25_origin origin);

/* Fails with K25_BAD_INPUT and a message about the value at `path`, with its position:
 * "scenarios/a.yaml:9:7: plan.tp: <message>", or "--set plan.tp=7: <message>" for an override, or
 * "plan.tp (default 7): <message>", or "plan.tp: <message>" when nothing is recorded for `path`. Returns false. */
bool k25_inputs_fail(const struct k25_inputs *inputs, const char *path, struct k25_error *error, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

#endif
