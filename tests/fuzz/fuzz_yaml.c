/* Any bytes at all into the YAML reader: a tree within its limits or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

static size_t values;

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void walk(const struct k25_yaml_node *node, int depth)
{
    require(node != NULL && ++values <= K25_YAML_NODES && depth <= K25_YAML_DEPTH + 1);
    require(node->line >= 1 && node->column >= 1);
    require((node->kind == K25_YAML_SCALAR) == (node->text != NULL));
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == K25_YAML_MAPPING) {
            require(node->keys[i]->kind == K25_YAML_SCALAR);
            walk(node->keys[i], depth + 1);
            if (node->count < 100) {
                require(k25_yaml_get(node, node->keys[i]->text) == node->values[i]);
            }
        }
        walk(node->values[i], depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_yaml *yaml = k25_yaml_parse((const char *)data, size, "fuzz.yaml", &error);
    if (yaml == NULL) {
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.yaml:", 10) == 0);
        return 0;
    }
    values = 0;
    walk(k25_yaml_root(yaml), 1);
    k25_yaml_free(yaml);
    return 0;
}
