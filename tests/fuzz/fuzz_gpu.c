/* Any bytes at all into the reader of GPU files: a GPU that prints to a description of the same GPU, or an error that
 * says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hw/gpus/gpu.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool find(const void *context, const char *name, const char *from, char *path, size_t size,
                 struct k25_error *error)
{
    (void)context, (void)from, (void)path, (void)size;
    return k25_fail(error, K25_BAD_INPUT, "no GPU '%s' here", name);
}

static void check(const struct k25_gpu *gpu)
{
    static const struct k25_gpu_finder finder = {find, NULL};
    struct k25_error error = {0};
    struct k25_gpu again;
    char *text = NULL, keys[256];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    require(out != NULL);
    k25_gpu_print(out, gpu);
    require(fclose(out) == 0);
    struct k25_yaml *yaml = k25_yaml_parse(text, size, "printed", &error);
    require(yaml != NULL);
    require(k25_gpu_read(k25_yaml_get(k25_yaml_root(yaml), "gpu"), "printed", "gpu", &finder, &again, NULL, &error));
    require(strcmp(gpu->name, again.name) == 0 && gpu->sms == again.sms && gpu->p2p == again.p2p);
    require(strcmp(gpu->compute_capability, again.compute_capability) == 0);
    require(strlen(k25_gpu_unconfirmed(gpu, keys, sizeof keys)) < sizeof keys);
    k25_yaml_free(yaml);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_gpu gpu;
    struct k25_inputs inputs = {0};
    if (k25_gpu_parse((const char *)data, size, "fuzz.yaml", "gpu", &gpu, &inputs, &error))
        check(&gpu);
    else
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.yaml:", 10) == 0);
    k25_inputs_free(&inputs);
    return 0;
}
