/* Import of a Hugging Face model description: opens the files and names the result. */
#include "model/hf/hf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hf/internal.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t size = strlen(end);
    return length >= size && memcmp(text + length - size, end, size) == 0;
}

/* "Kimi-K2.5/config.json" and "moonshotai--Kimi-K2.5_config.json" are both kimi-k2.5. */
static void name_from_path(const char *path, char *out, size_t size)
{
    static const char *const ends[] = {".json", ".reconstructed", "_config"};
    const char *start = base_of(path), *end = path + strlen(path);
    if (strcmp(start, "config.json") == 0 && start - path > 1) { /* the name is that of the folder */
        end = start - 1;
        start = end;
        while (start > path && start[-1] != '/')
            start--;
    }
    size_t length = (size_t)(end - start);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(start, length, ends[i]))
            length -= strlen(ends[i]);
    for (size_t i = 0; i + 1 < length; i++)
        if (start[i] == '-' && start[i + 1] == '-') { /* OWNER--MODEL */
            start += i + 2;
            length -= i + 2;
            break;
        }
    if (length >= size)
        length = size - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)tolower((unsigned char)start[i]);
    out[length] = '\0';
}

static bool name_model(const char *path, const char *name, const struct k25_hf_config *config,
                       struct k25_architecture *architecture, struct k25_error *error)
{
    if (!name)
        name_from_path(path, architecture->name, sizeof architecture->name);
    else if (strlen(name) < sizeof architecture->name)
        strcpy(architecture->name, name);
    else
        return k25_fail(error, K25_BAD_INPUT, "the name '%.70s...' is longer than %zu bytes", name,
                        sizeof architecture->name - 1);
    snprintf(architecture->source, sizeof architecture->source, "%.160s%s%s", base_of(path),
             strcmp(config->prefix, "text_config") == 0 ? " (text_config)" : "",
             config->vision ? "; the vision tower is left out" : "");
    return true;
}

static bool same_formats(const struct k25_weights *a, const struct k25_weights *b, int *differs)
{
    for (int i = 0; i < K25_TENSORS; i++) {
        const struct k25_format *x = &a->format[i], *y = &b->format[i];
        *differs = i;
        if (x->kind != y->kind || x->bits != y->bits || x->group != y->group || x->scale_bits != y->scale_bits)
            return false;
    }
    return true;
}

/* Two descriptions of one checkpoint must not contradict each other. */
static bool read_separate(const struct k25_yaml *quant, const struct k25_hf_config *config, int mtp_layers,
                          struct k25_weights *weights, struct k25_error *error)
{
    const char *file = k25_yaml_file(quant);
    struct k25_weights separate = {0};
    int differs = 0;
    if (!k25_hf_quantisation(config, k25_yaml_root(quant), file, mtp_layers, &separate, error))
        return false;
    if (config->quantization_config && !same_formats(weights, &separate, &differs))
        return k25_fail(error, K25_BAD_INPUT, "%s: %s is %s here and %s in the quantization_config of %s", file,
                        k25_tensor_names[differs], k25_format_kind_names[separate.format[differs].kind],
                        k25_format_kind_names[weights->format[differs].kind], config->file);
    *weights = separate;
    return true;
}

static bool import(const struct k25_yaml *yaml, const struct k25_yaml *quant, const char *name,
                   struct k25_hf_config *config, struct k25_architecture *built, struct k25_weights *weights,
                   struct k25_error *error)
{
    const char *path = k25_yaml_file(yaml);
    if (!k25_hf_config_read(yaml, config, error) || !k25_hf_config_build(config, built, error) ||
        !k25_hf_quantisation(config, config->quantization_config, path, built->mtp_layers, weights, error) ||
        (quant && !read_separate(quant, config, built->mtp_layers, weights, error)))
        return false;
    weights->unshipped_mtp = k25_hf_unshipped_mtp(config);
    snprintf(weights->source, sizeof weights->source, "%.200s", base_of(quant ? k25_yaml_file(quant) : path));
    return name_model(path, name, config, built, error);
}

bool k25_hf_import_parsed(const struct k25_yaml *yaml, const struct k25_yaml *quant, const char *name,
                          struct k25_architecture *architecture, struct k25_weights *weights, struct k25_error *error)
{
    struct k25_architecture built = {0};
    struct k25_weights stored = {0};
    struct k25_hf_config *config = calloc(1, sizeof *config);
    if (!config)
        return k25_fail(error, K25_RESOURCE, "%s: out of memory", k25_yaml_file(yaml));
    bool done = import(yaml, quant, name, config, &built, &stored, error);
    if (done) {
        *architecture = built;
        *weights = stored;
    }
    free(config);
    return done;
}

bool k25_hf_import(const char *path, const char *quant_path, const char *name, struct k25_architecture *architecture,
                   struct k25_weights *weights, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, NULL, error);
    struct k25_yaml *quant = yaml && quant_path ? k25_yaml_read(quant_path, NULL, error) : NULL;
    bool done = yaml && (quant || !quant_path) && k25_hf_import_parsed(yaml, quant, name, architecture, weights, error);
    k25_yaml_free(quant);
    k25_yaml_free(yaml);
    return done;
}
