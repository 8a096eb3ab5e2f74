/* Any bytes at all as a config.json, and the part behind a zero byte as a hf_quant_config.json: an architecture
 * that passes its own checks, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/hf/hf.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    size_t first = zero ? (size_t)(zero - data) : size;
    struct k25_error error = {0};
    struct k25_architecture architecture;
    struct k25_weights weights;
    struct k25_yaml *quant = NULL;
    struct k25_yaml *yaml = k25_yaml_parse((const char *)data, first, "config.json", &error);
    if (yaml && zero)
        quant = k25_yaml_parse((const char *)zero + 1, size - first - 1, "quant.json", &error);
    if (!yaml || (zero && !quant)) {
        k25_yaml_free(yaml);
        return 0;
    }
    if (k25_hf_import_parsed(yaml, quant, "fuzz", &architecture, &weights, &error)) {
        require(k25_architecture_check(&architecture, NULL, &error));
        require(k25_weights_check(&weights, NULL, &error));
        require(k25_layer_count(&architecture) > 0 && k25_checkpoint_bytes(&architecture, &weights) > 0);
    } else {
        require(error.status == K25_BAD_INPUT && error.message[0] != '\0');
    }
    k25_yaml_free(quant);
    k25_yaml_free(yaml);
    return 0;
}
