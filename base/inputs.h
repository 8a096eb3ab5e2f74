/* Where every figure came from.
 *
 * Loading a file records that it was read, and each value it took: its path ("plan.tp"), its text, and its origin. The
 * record answers three questions later: what `predict --inputs` prints, which line an error about the meaning of a
 * value ("tp: 7 does not divide 64 heads") points at, and whether two runs read the same bytes.
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
    K25_FROM_DEFAULT,     /* nobody said; the format's default */
    K25_FROM_PRIOR,       /* a parameter nobody measured */
    K25_FROM_CALIBRATION, /* a parameter set by a calibration set */
    K25_ORIGINS,
};

struct k25_input {
    char *path;  /* "plan.tp", "machine.gpu.sms" */
    char *value; /* as written */
    char *unit;  /* may be empty */
    enum k25_origin origin;
    char *file; /* empty when there is none */
    int line, column;
};

struct k25_input_file {
    char *path;
    uint64_t sum; /* CRC-64 of its bytes as they were read */
};

/* Start from all zero. */
struct k25_inputs {
    struct k25_input *list;
    size_t count;
    struct k25_input_file *file; /* in the order in which they were read, none twice */
    size_t files;
};

/* Records a value; one recorded again under the same path replaces the former in its place. The strings are
 * copied (NULL counts as empty). */
bool k25_inputs_record(struct k25_inputs *inputs, struct k25_input input, struct k25_error *error);
const struct k25_input *k25_inputs_find(const struct k25_inputs *inputs, const char *path);
void k25_inputs_free(struct k25_inputs *inputs);

/* Records that the `size` bytes of `path` were read; again the same bytes of the same path change nothing. Readers of
 * files call it (k25_yaml_read), so that no list of what a loader reads is kept by hand. */
bool k25_inputs_record_file(struct k25_inputs *inputs, const char *path, const char *bytes, size_t size,
                            struct k25_error *error);
/* Adds the files of `more`, not its values. */
bool k25_inputs_add_files(struct k25_inputs *inputs, const struct k25_inputs *more, struct k25_error *error);
/* CRC-64 (ECMA-182, reflected) of the sums of all files in their order: the same bytes have the same sum, wherever the
 * files are. */
uint64_t k25_inputs_sum(const struct k25_inputs *inputs);
const char *k25_origin_name(enum k25_origin origin);

/* An error about the value at `path`, with the position it came from:
 * "scenarios/a.yaml:9:7: plan.tp: <message>", or "--set plan.tp=7: <message>" for an override, or
 * "plan.tp (default 7): <message>". */
bool k25_inputs_fail(const struct k25_inputs *inputs, const char *path, struct k25_error *error, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

#endif
