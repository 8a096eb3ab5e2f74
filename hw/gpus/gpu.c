/* The file format of GPUs: tables, loading, overriding, printing. */
#include "hw/gpus/gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/print.h"
#include "base/text.h"

/* ---- the tables ---- */

/* clang-format off */
#define FIGURES \
    K25_FIELD(TEXT, k25_gpu, name, .doc = "the vendor's name"), \
    K25_FIELD(INT, k25_gpu, sms, .min = 1, .max = 10000, .doc = "streaming multiprocessors"), \
    K25_FIELD(REAL, k25_gpu, memory_mib, .min = 1, .max = 1e9, .unit = "MiB", .doc = "memory as the driver reports it"), \
    K25_FIELD(REAL, k25_gpu, bandwidth_gbs, .min = 1e-3, .max = 1e6, .unit = "GB/s", \
              .doc = "memory bandwidth by the data sheet of this edition"), \
    K25_FIELD(REAL, k25_gpu, l2_mib, .min = 1e-3, .max = 1e6, .unit = "MiB", .doc = "L2 cache"), \
    K25_FIELD(REAL, k25_gpu, peak_bf16_tflops, .min = 1e-3, .max = 1e9, .unit = "TFLOP/s", \
              .doc = "dense BF16 tensor peak, FP32 accumulate"), \
    K25_FIELD(REAL, k25_gpu, peak_fp8_tflops, .fallback = "0", .min = 0, .max = 1e9, .unit = "TFLOP/s", \
              .doc = "dense FP8 tensor peak, FP32 accumulate; 0: not supported"), \
    K25_FIELD(REAL, k25_gpu, peak_fp4_tflops, .fallback = "0", .min = 0, .max = 1e9, .unit = "TFLOP/s", \
              .doc = "dense FP4 tensor peak; 0: not supported"), \
    K25_FIELD(REAL, k25_gpu, power_w, .min = 1, .max = 1e5, .unit = "W", .doc = "power limit"), \
    K25_FIELD(TEXT, k25_gpu, compute_capability, .fallback = "", .doc = "of CUDA: 9.0"), \
    K25_FIELD(INT, k25_gpu, pcie_generation, .fallback = "0", .min = 0, .max = 9, .doc = "of its PCIe port; 0: unknown"), \
    K25_FIELD(INT, k25_gpu, pcie_lanes, .fallback = "0", .min = 0, .max = 32, .doc = "of its PCIe port; 0: unknown"), \
    K25_FIELD(REAL, k25_gpu, nvlink_gbs, .fallback = "0", .min = 0, .max = 1e6, .unit = "GB/s", \
              .doc = "all its NVLinks, both directions; 0: none"), \
    K25_FIELD(BOOL, k25_gpu, p2p, .fallback = "true", \
              .doc = "its driver lets GPUs reach each other's memory over PCIe"), \
    K25_FIELD(REAL, k25_gpu, price_usd, .fallback = "0", .min = 0, .max = 1e7, .unit = "USD", .doc = "0: unknown")
/* clang-format on */

const struct k25_field k25_gpu_fields[] = {FIGURES, {0}};
enum { GPU_FIGURES = sizeof k25_gpu_fields / sizeof *k25_gpu_fields - 1 };
_Static_assert(GPU_FIGURES <= 8 * sizeof((struct k25_gpu *)0)->unconfirmed, "a bit for every figure");

/* A GPU file: figures and more keys. The GPU is the first member, so that the rows of its figures apply here too. */
struct gpu_file {
    struct k25_gpu gpu;
    const struct k25_yaml_node *unconfirmed;
};
_Static_assert(offsetof(struct gpu_file, gpu) == 0, "the offsets of the figures");

static const struct k25_field file_fields[] = {
    K25_FIELD_AS(TEXT, gpu_file, gpu.source, "source", .doc = "source of the figures without a comment"),
    FIGURES,
    K25_FIELD(NODE, gpu_file, unconfirmed, .fallback = "", .doc = "list of the figures that are not confirmed"),
    {0},
};

/* The GPU of a machine file that changes some figures of a GPU file. */
struct gpu_change {
    struct k25_gpu gpu;
    const struct k25_yaml_node *base;
};
_Static_assert(offsetof(struct gpu_change, gpu) == 0, "the offsets of the figures");

static const struct k25_field change_fields[] = {
    K25_FIELD(NODE, gpu_change, base, .fallback = "", .doc = "the GPU file whose figures are changed"),
    FIGURES,
    {0},
};

/* ---- loading ---- */

static int find_figure(const char *key)
{
    for (int i = 0; i < GPU_FIGURES; i++)
        if (strcmp(k25_gpu_fields[i].key, key) == 0)
            return i;
    return -1;
}

static bool load_unconfirmed(const struct k25_yaml_node *list, const char *file, struct k25_gpu *gpu,
                             struct k25_error *error)
{
    if (list == NULL)
        return true;
    if (list->kind != K25_YAML_SEQUENCE)
        return k25_fail_at(error, file, list->line, list->column, "unconfirmed: expected a list of keys, found %s",
                           k25_yaml_kind_name(list->kind));
    for (size_t i = 0; i < list->count; i++) {
        const struct k25_yaml_node *entry = list->values[i];
        int figure = entry->kind == K25_YAML_SCALAR ? find_figure(entry->text) : -1;
        if (figure >= 0) {
            gpu->unconfirmed |= 1u << figure;
            continue;
        }
        const char *keys[GPU_FIGURES + 1] = {NULL};
        char hint[64] = "";
        for (int k = 0; k < GPU_FIGURES; k++)
            keys[k] = k25_gpu_fields[k].key;
        if (entry->kind != K25_YAML_SCALAR)
            return k25_fail_at(error, file, entry->line, entry->column, "unconfirmed[%zu]: expected a key, found %s", i,
                               k25_yaml_kind_name(entry->kind));
        return k25_fail_at(error, file, entry->line, entry->column, "unconfirmed[%zu]: '%s' is no figure of a GPU%s", i,
                           entry->text, k25_did_you_mean(entry->text, keys, hint, sizeof hint));
    }
    return true;
}

static bool load_yaml(const struct k25_yaml *yaml, const char *prefix, struct k25_gpu *gpu, struct k25_inputs *inputs,
                      struct k25_error *error)
{
    struct gpu_file record = {0};
    const char *file = k25_yaml_file(yaml);
    bool done = k25_schema_head(yaml, "gpu", error) &&
                k25_schema_load(file_fields, prefix, k25_yaml_root(yaml), file, &record, inputs, error) &&
                load_unconfirmed(record.unconfirmed, file, &record.gpu, error);
    *gpu = record.gpu;
    return done;
}

/* The NAME of .../NAME.yaml; "" for a name too long to be one. */
static void take_stem(const char *path, char *stem, size_t size)
{
    const char *slash = strrchr(path, '/'), *start = slash != NULL ? slash + 1 : path, *dot = strrchr(start, '.');
    size_t length = dot != NULL ? (size_t)(dot - start) : strlen(start);
    snprintf(stem, size, "%.*s", length < size ? (int)length : 0, start);
}

bool k25_gpu_load(const char *path, const char *prefix, struct k25_gpu *gpu, struct k25_inputs *inputs,
                  struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    bool done = yaml != NULL && load_yaml(yaml, prefix, gpu, inputs, error);
    k25_yaml_free(yaml);
    if (done)
        take_stem(path, gpu->file, sizeof gpu->file);
    return done;
}

bool k25_gpu_parse(const char *text, size_t size, const char *name, const char *prefix, struct k25_gpu *gpu,
                   struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, size, name, error);
    bool done = yaml != NULL && load_yaml(yaml, prefix, gpu, inputs, error);
    k25_yaml_free(yaml);
    return done;
}

/* Finds the file of a name and checks that it exists. The caller adds to an error where the name was given. */
static bool find_file(const struct k25_gpu_finder *finder, const char *name, const char *from, char *path, size_t size,
                      struct k25_error *error)
{
    return finder->find(finder->context, name, from, path, size, error) &&
           (k25_file_exists(path) || k25_fail(error, K25_BAD_INPUT, "%s: no such file", path));
}

/* A GPU from the file of its name. One that was given by path has no name for other files: `file` is then "". */
static bool load_named(const char *path, const char *name, const char *prefix, struct k25_gpu *gpu,
                       struct k25_inputs *inputs, struct k25_error *error)
{
    if (!k25_gpu_load(path, prefix, gpu, inputs, error))
        return false;
    if (strcmp(gpu->file, name) != 0)
        gpu->file[0] = '\0';
    return true;
}

/* An error about the name has the position of the name; an error inside the GPU file has its position there. */
static bool load_at(const struct k25_yaml_node *node, const char *file, const char *prefix, const char *key,
                    const struct k25_gpu_finder *finder, struct k25_gpu *gpu, struct k25_inputs *inputs,
                    struct k25_error *error)
{
    char path[1024], full[160];
    struct k25_error found;
    snprintf(full, sizeof full, "%s%s", prefix, key);
    if (node->kind != K25_YAML_SCALAR)
        return k25_fail_at(error, file, node->line, node->column, "%s: expected the name of a GPU, found %s", full,
                           k25_yaml_kind_name(node->kind));
    if (!find_file(finder, node->text, file, path, sizeof path, &found))
        return k25_fail_at(error, file, node->line, node->column, "%s: %s", full, found.message);
    struct k25_input input = {
        .path = full, .value = (char *)node->text, .file = (char *)file, .line = node->line, .column = node->column};
    return (inputs == NULL || k25_inputs_record(inputs, input, error)) &&
           load_named(path, node->text, prefix, gpu, inputs, error);
}

/* After a change the GPU is no longer that of the file, and the changed figure counts as confirmed. */
static void note_change(struct k25_gpu *gpu, const char *key)
{
    int figure = find_figure(key);
    gpu->file[0] = '\0';
    if (figure >= 0)
        gpu->unconfirmed &= ~(1u << figure);
}

bool k25_gpu_read(const struct k25_yaml_node *node, const char *file, const char *prefix,
                  const struct k25_gpu_finder *finder, struct k25_gpu *gpu, struct k25_inputs *inputs,
                  struct k25_error *error)
{
    struct gpu_change change = {0};
    const struct k25_yaml_node *base = k25_yaml_get(node, "base");
    *gpu = change.gpu;
    if (node->kind != K25_YAML_MAPPING)
        return load_at(node, file, prefix, "", finder, gpu, inputs, error);
    if (base == NULL)
        return k25_schema_load(k25_gpu_fields, prefix, node, file, gpu, inputs, error);
    if (!load_at(base, file, prefix, ".base", finder, &change.gpu, inputs, error) ||
        !k25_schema_change(change_fields, prefix, node, file, &change, inputs, error))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (node->values[i] != base)
            note_change(&change.gpu, node->keys[i]->text);
    *gpu = change.gpu;
    return true;
}

/* ---- overriding ---- */

bool k25_gpu_set(struct k25_gpu *gpu, const char *prefix, const char *key, const char *value, struct k25_inputs *inputs,
                 struct k25_error *error)
{
    if (!k25_schema_set(k25_gpu_fields, prefix, key, value, gpu, inputs, error))
        return false;
    note_change(gpu, key);
    return true;
}

bool k25_gpu_exchange(struct k25_gpu *gpu, const char *prefix, const char *name, const struct k25_gpu_finder *finder,
                      struct k25_inputs *inputs, struct k25_error *error)
{
    char path[1024];
    struct k25_gpu other;
    struct k25_error found;
    if (!find_file(finder, name, "", path, sizeof path, &found))
        return k25_fail(error, found.status, "--set %s=%s: %s", prefix, name, found.message);
    struct k25_input input = {
        .path = (char *)prefix, .value = (char *)name, .origin = K25_FROM_OVERRIDE, .file = (char *)"--set"};
    if (!load_named(path, name, prefix, &other, inputs, error) ||
        (inputs != NULL && !k25_inputs_record(inputs, input, error)))
        return false;
    *gpu = other;
    return true;
}

/* ---- printing ---- */

const char *k25_gpu_unconfirmed(const struct k25_gpu *gpu, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < GPU_FIGURES && used < size; i++)
        if (gpu->unconfirmed >> i & 1)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", k25_gpu_fields[i].key);
    return out;
}

void k25_gpu_print(FILE *out, const struct k25_gpu *gpu)
{
    if (gpu->file[0] != '\0') {
        k25_print_text(out, "gpu", gpu->file);
        return;
    }
    fputs("gpu:\n", out);
    for (const struct k25_field *field = k25_gpu_fields; field->key != NULL; field++) {
        const char *member = (const char *)gpu + field->offset;
        int number;
        double real;
        fprintf(out, "  %s: ", field->key);
        switch (field->type) {
        case K25_TEXT:
            k25_print_quoted(out, member);
            break;
        case K25_BOOL:
            fputs(*(const bool *)member ? "true" : "false", out);
            break;
        case K25_INT:
            memcpy(&number, member, sizeof number);
            fprintf(out, "%d", number);
            break;
        case K25_REAL:
            memcpy(&real, member, sizeof real);
            k25_print_real(out, real);
            break;
        case K25_ENUM: /* the table has none of these */
        case K25_MAP:
        case K25_NODE:
            break;
        }
        fputc('\n', out);
    }
}
