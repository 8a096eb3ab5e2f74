/* A YAML file as a tree in which every value has its position.
 *
 * libyaml parses; the tree keeps its marks, so that an error found long after parsing ("tp: 7 does not divide 64
 * heads") can name a line. JSON files are read by the same functions: JSON is YAML in flow style. One document a file.
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

#define K25_YAML_DEPTH 64          /* nested collections */
#define K25_YAML_NODES 200000      /* values in a file, aliases expanded */
#define K25_YAML_ANCHORS 256       /* anchors in a file */
#define K25_YAML_BYTES (16u << 20) /* the largest file read */

enum k25_yaml_kind { K25_YAML_SCALAR, K25_YAML_SEQUENCE, K25_YAML_MAPPING, K25_YAML_KINDS };

struct k25_yaml_node {
    enum k25_yaml_kind kind; /* says which of the members below have a value */
    int line, column;        /* of the first character, from 1 */
    const char *text;        /* a scalar's text; NULL otherwise */
    bool quoted;             /* a scalar in quotes, a block (| or >) or tagged !!str: text, whatever it looks like */
    size_t count;            /* entries of a sequence or mapping; 0 for a scalar */
    const struct k25_yaml_node *const *keys;   /* a mapping's keys, all scalars, in file order */
    const struct k25_yaml_node *const *values; /* a sequence's entries or a mapping's values */
};

struct k25_yaml; /* owns the tree and the file's name */

/* Reads the file `path` ("-": standard input), at most K25_YAML_BYTES. `inputs`, unless NULL, records the file. Returns
 * NULL on failure: K25_BAD_INPUT with the position for what is refused above and for what k25_file_read refuses,
 * K25_RESOURCE for read errors and out of memory. The caller frees the tree with k25_yaml_free. */
struct k25_yaml *k25_yaml_read(const char *path, struct k25_inputs *inputs, struct k25_error *error);

/* As k25_yaml_read, from `size` bytes in memory, which are not used after the call. `name` is used as the file name in
 * messages. */
struct k25_yaml *k25_yaml_parse(const char *text, size_t size, const char *name, struct k25_error *error);

/* Frees the tree with all its nodes and texts; NULL does nothing. */
void k25_yaml_free(struct k25_yaml *yaml);

/* Returns the root of the tree, never NULL; valid until k25_yaml_free. */
const struct k25_yaml_node *k25_yaml_root(const struct k25_yaml *yaml);

/* Returns the file name given to k25_yaml_read or k25_yaml_parse; valid until k25_yaml_free. */
const char *k25_yaml_file(const struct k25_yaml *yaml);

/* Returns the value of `key` in a mapping; NULL when the node is NULL, not a mapping, or has no such key. */
const struct k25_yaml_node *k25_yaml_get(const struct k25_yaml_node *node, const char *key);

/* Returns "a mapping", "a list" or "a value", for messages; static. */
const char *k25_yaml_kind_name(enum k25_yaml_kind kind);

#endif
