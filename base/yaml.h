/* A YAML file as a tree that still knows where every value stood.
 *
 * libyaml parses; this keeps its marks, so that an error found long after parsing ("tp: 7 does not divide 64
 * heads") can name a line. JSON is read through the same door: it is YAML in flow style. One document a file.
 * Refused with a position: text that is not UTF-8, an empty file, a second document, a key given twice, nesting
 * deeper than K25_YAML_DEPTH, aliases that contain themselves or expand to more than K25_YAML_NODES values, more
 * than K25_YAML_ANCHORS anchors, and tags other than the core ones (!!str, !!int, !!float, !!bool, !!null, !!map,
 * !!seq).
 */
#ifndef K25_BASE_YAML_H
#define K25_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"

#define K25_YAML_DEPTH 64
#define K25_YAML_NODES 200000
#define K25_YAML_ANCHORS 256
#define K25_YAML_BYTES (16u << 20) /* the largest file read */

enum k25_yaml_kind { K25_YAML_SCALAR, K25_YAML_SEQUENCE, K25_YAML_MAPPING, K25_YAML_KINDS };

struct k25_yaml_node {
    enum k25_yaml_kind kind;
    int line, column; /* of the first character, from 1 */
    const char *text; /* a scalar's text; NULL otherwise */
    bool quoted;      /* a scalar in quotes, a block (| or >) or tagged !!str: text, whatever it looks like */
    size_t count;     /* entries of a sequence or mapping */
    const struct k25_yaml_node *const *keys;   /* a mapping's keys, all scalars, in file order */
    const struct k25_yaml_node *const *values; /* a sequence's entries or a mapping's values */
};

struct k25_yaml; /* owns the tree and the file's name */

/* `inputs` records the file; NULL: what follows from it is not traced to its files. The caller frees. */
struct k25_yaml *k25_yaml_read(const char *path, struct k25_inputs *inputs, struct k25_error *error);
/* `name` stands for the file in error messages. */
struct k25_yaml *k25_yaml_parse(const char *text, size_t size, const char *name, struct k25_error *error);
void k25_yaml_free(struct k25_yaml *yaml);

const struct k25_yaml_node *k25_yaml_root(const struct k25_yaml *yaml);
const char *k25_yaml_file(const struct k25_yaml *yaml);

/* The value of `key` in a mapping, NULL when the node is no mapping or has no such key. */
const struct k25_yaml_node *k25_yaml_get(const struct k25_yaml_node *node, const char *key);

/* "a mapping", "a list", "a value": for messages. */
const char *k25_yaml_kind_name(enum k25_yaml_kind kind);

#endif
