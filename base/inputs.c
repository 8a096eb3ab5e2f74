#include "base/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc64.h>

#include "base/list.h"
#include "base/text.h"

static void release(struct k25_input *input)
{
    free(input->path);
    free(input->value);
    free(input->unit);
    free(input->file);
}

static struct k25_input *find(const struct k25_inputs *inputs, const char *path)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcmp(inputs->list[i].path, path) == 0) {
            return &inputs->list[i];
        }
    }
    return NULL;
}

static char *copy_or_empty(const char *text)
{
    return k25_copy(text == NULL ? "" : text);
}

/* The entry for `path`: the existing one, or a new empty one at the end. NULL when out of memory. */
static struct k25_input *place(struct k25_inputs *inputs, const char *path)
{
    struct k25_input *former = find(inputs, path);
    if (former != NULL) {
        return former;
    }
    return K25_LIST_ADD(inputs->list, inputs->count);
}

bool k25_inputs_record(struct k25_inputs *inputs, struct k25_input input, struct k25_error *error)
{
    struct k25_input own = input;
    own.path = copy_or_empty(input.path);
    own.value = copy_or_empty(input.value);
    own.unit = copy_or_empty(input.unit);
    own.file = copy_or_empty(input.file);
    bool copied = own.path != NULL && own.value != NULL && own.unit != NULL && own.file != NULL;
    struct k25_input *target = copied ? place(inputs, own.path) : NULL;
    if (target == NULL) {
        release(&own);
        return k25_fail(error, K25_RESOURCE, "out of memory while recording an input");
    }
    release(target);
    *target = own;
    return true;
}

const struct k25_input *k25_inputs_find(const struct k25_inputs *inputs, const char *path)
{
    return find(inputs, path);
}

void k25_inputs_free(struct k25_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        release(&inputs->list[i]);
    }
    for (size_t i = 0; i < inputs->files; i++) {
        free(inputs->file[i].path);
    }
    free(inputs->list);
    free(inputs->file);
    *inputs = (struct k25_inputs){0};
}

static bool has_file(const struct k25_inputs *inputs, struct k25_input_file file)
{
    for (size_t i = 0; i < inputs->files; i++) {
        if (inputs->file[i].sum == file.sum && strcmp(inputs->file[i].path, file.path) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_file(struct k25_inputs *inputs, struct k25_input_file file, struct k25_error *error)
{
    if (has_file(inputs, file)) {
        return true;
    }
    file.path = k25_copy(file.path);
    struct k25_input_file *added = file.path == NULL ? NULL : K25_LIST_ADD(inputs->file, inputs->files);
    if (added == NULL) {
        free(file.path);
        return k25_fail(error, K25_RESOURCE, "out of memory while recording a file");
    }
    *added = file;
    return true;
}

bool k25_inputs_record_file(struct k25_inputs *inputs, const char *path, const char *bytes, size_t size,
                            struct k25_error *error)
{
    struct k25_input_file file = {(char *)path, crc64_ecma_refl(0, (const unsigned char *)bytes, size)};
    return add_file(inputs, file, error);
}

bool k25_inputs_add_files(struct k25_inputs *inputs, const struct k25_inputs *more, struct k25_error *error)
{
    for (size_t i = 0; i < more->files; i++) {
        if (!add_file(inputs, more->file[i], error)) {
            return false;
        }
    }
    return true;
}

uint64_t k25_inputs_sum(const struct k25_inputs *inputs)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < inputs->files; i++) {
        unsigned char bytes[8];
        for (int b = 0; b < 8; b++) {
            bytes[b] = (unsigned char)(inputs->file[i].sum >> 8 * b);
        }
        sum = crc64_ecma_refl(sum, bytes, sizeof bytes);
    }
    return sum;
}

const char *k25_origin_name(enum k25_origin origin)
{
    static const char *const names[K25_ORIGINS] = {
        [K25_FROM_FILE] = "file",   [K25_FROM_OVERRIDE] = "override",       [K25_FROM_DEFAULT] = "default",
        [K25_FROM_PRIOR] = "prior", [K25_FROM_CALIBRATION] = "calibration",
    };
    return names[origin];
}

bool k25_inputs_fail(const struct k25_inputs *inputs, const char *path, struct k25_error *error, const char *format,
                     ...)
{
    char text[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    const struct k25_input *input = inputs == NULL ? NULL : find(inputs, path);
    if (input == NULL) {
        return k25_fail(error, K25_BAD_INPUT, "%s: %s", path, text);
    }
    if (input->origin == K25_FROM_OVERRIDE) {
        const char *flag = input->file[0] == '\0' ? "--set" : input->file;
        return k25_fail(error, K25_BAD_INPUT, "%s %s=%s: %s", flag, path, input->value, text);
    }
    if (input->origin == K25_FROM_DEFAULT && input->file[0] == '\0') {
        return k25_fail(error, K25_BAD_INPUT, "%s (default %s): %s", path, input->value, text);
    }
    return k25_fail_at(error, input->file, input->line, input->column, "%s: %s", path, text);
}
