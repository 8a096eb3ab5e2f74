/* File formats as tables.
 *
 * A table lists every key of a struct: type, range, default, unit and meaning. Loading, checking, defaults, overrides
 * (--set), the record of origins and the documentation follow from it. An unknown key, a missing key, a wrong type and
 * a value out of range are errors with their position; an unknown name comes with the nearest valid one.
 */
#ifndef K25_BASE_SCHEMA_H
#define K25_BASE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/yaml.h"

enum k25_type {
    K25_TEXT, /* char[size] */
    K25_BOOL, /* bool */
    K25_INT,  /* int */
    K25_REAL, /* double */
    K25_ENUM, /* an enum whose values are the indices of `names` */
    K25_MAP,  /* a mapping with its table in `fields`, its struct embedded at `offset` */
    K25_NODE, /* const struct k25_yaml_node *: for the loader to read by hand (lists, free mappings) */
};

struct k25_field {
    const char *key;                /* as written in the file; NULL ends a table */
    enum k25_type type;             /* of the value and of the member */
    size_t offset;                  /* of the member in the struct */
    size_t size;                    /* of the member, bytes; K25_TEXT: room of the array */
    const char *fallback;           /* taken when the key is absent; NULL: the key is required. "" for K25_MAP and
                                       K25_NODE: may be absent, the member is then all zero. "{}" for K25_MAP: an
                                       absent mapping is an empty one, its members take their defaults */
    double min, max;                /* inclusive range of a number; both 0: any; INFINITY: open on that side. The
                                       fallback is not checked against it, so that it can mean "not given" */
    const char *const *names;       /* K25_ENUM: NULL-terminated */
    const struct k25_field *fields; /* K25_MAP: ends with a key of NULL */
    const char *unit;               /* "" or NULL when it has none */
    const char *doc;                /* one line: what it is */
};

/* A row of a table: K25_FIELD(REAL, k25_gpu, l2_mib, .min = 0, .max = 1e6, .unit = "MiB", .doc = "L2 cache") is the key
 * "l2_mib" of struct k25_gpu. K25_FIELD_AS is for a key whose name differs from its member's. */
#define K25_FIELD_AS(kind, record, member, name, ...)                                                                  \
    {                                                                                                                  \
        .key = (name), .type = K25_##kind, .offset = offsetof(struct record, member),                                  \
        .size = sizeof((struct record *)0)->member, __VA_ARGS__                                                        \
    }
#define K25_FIELD(kind, record, member, ...) K25_FIELD_AS(kind, record, member, #member, __VA_ARGS__)

/* Fills `record` from `node` (NULL: an absent mapping, everything takes its default) of `file`; paths in `inputs`
 * start with `prefix` ("plan" gives "plan.tp"). `inputs` may be NULL. The keys of the head (k25sim, version) are
 * skipped when `node` has them and the table does not. Fails with K25_BAD_INPUT and a position, or K25_RESOURCE when
 * out of memory; `record` may then be partly filled. K25_NODE members point into the tree of `node`. */
bool k25_schema_load(const struct k25_field *fields, const char *prefix, const struct k25_yaml_node *node,
                     const char *file, void *record, struct k25_inputs *inputs, struct k25_error *error);

/* As k25_schema_load for a record that already has values: sets the members whose keys are in `node`, leaves the
 * others. */
bool k25_schema_change(const struct k25_field *fields, const char *prefix, const struct k25_yaml_node *node,
                       const char *file, void *record, struct k25_inputs *inputs, struct k25_error *error);

/* Sets one member by its path below the table ("allreduce.backend") from text, as --set does; `prefix` as above.
 * Recorded as an override from "--set". Fails with K25_BAD_INPUT for an unknown path, a bad value, and lists
 * (K25_NODE), which cannot be set; `record` is then unchanged. */
bool k25_schema_set(const struct k25_field *fields, const char *prefix, const char *path, const char *value,
                    void *record, struct k25_inputs *inputs, struct k25_error *error);

typedef void k25_schema_visitor(void *context, const char *path, const struct k25_field *field);

/* Calls `visit` for every scalar key of the table, depth first, with `context` and the full path, which starts with
 * `prefix` and is valid only during the call. */
void k25_schema_visit(const struct k25_field *fields, const char *prefix, k25_schema_visitor *visit, void *context);

/* Checks the head of a k25sim file: `k25sim: KIND` and `version: 1`. Fails with K25_BAD_INPUT and the position. */
bool k25_schema_head(const struct k25_yaml *yaml, const char *kind, struct k25_error *error);

#endif
