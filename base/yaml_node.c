/* Queries of a tree built by yaml.c. */
#include <string.h>

#include "base/yaml.h"

const struct k25_yaml_node *k25_yaml_get(const struct k25_yaml_node *node, const char *key)
{
    if (node == NULL || node->kind != K25_YAML_MAPPING) {
        return NULL;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (strcmp(node->keys[i]->text, key) == 0) {
            return node->values[i];
        }
    }
    return NULL;
}

const char *k25_yaml_kind_name(enum k25_yaml_kind kind)
{
    static const char *const names[K25_YAML_KINDS] = {
        [K25_YAML_SCALAR] = "a value", [K25_YAML_SEQUENCE] = "a list", [K25_YAML_MAPPING] = "a mapping"};
    return names[kind];
}
