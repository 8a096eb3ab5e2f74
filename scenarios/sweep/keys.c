/* Keys of a sweep: where they stand in the plan, and how a file writes their values. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scenarios/library/outputs.h"
#include "scenarios/sweep/internal.h"

/* ---- keys of the plan ---- */

/* Words and truth count as numbers; text and lists do not. */
static bool is_number(const struct k25_field *field)
{
    return field->type == K25_BOOL || field->type == K25_INT || field->type == K25_REAL || field->type == K25_ENUM;
}

static size_t count_keys(const struct k25_field *fields)
{
    size_t count = 0;
    for (; fields->key != NULL; fields++)
        count += fields->type == K25_MAP ? count_keys(fields->fields) : is_number(fields);
    return count;
}

static void list_keys(const struct k25_field *fields, const char *prefix, size_t offset, struct k25_plan_key *keys,
                      size_t *count)
{
    for (; fields->key != NULL; fields++) {
        struct k25_plan_key *key = &keys[*count];
        char path[sizeof key->path];
        snprintf(path, sizeof path, "%s.%s", prefix, fields->key);
        if (fields->type == K25_MAP) {
            list_keys(fields->fields, path, offset + fields->offset, keys, count);
        } else if (is_number(fields)) {
            memcpy(key->path, path, sizeof path);
            key->field = fields;
            key->offset = offset + fields->offset;
            ++*count;
        }
    }
}

struct k25_plan_key *k25_plan_keys(size_t *count)
{
    struct k25_plan_key *keys = calloc(count_keys(k25_plan_fields) + 1, sizeof *keys);
    *count = 0;
    if (keys != NULL)
        list_keys(k25_plan_fields, "plan", 0, keys, count);
    return keys;
}

double k25_plan_get(const struct k25_plan_key *key, const struct k25_plan *plan)
{
    const char *member = (const char *)plan + key->offset;
    bool truth;
    int whole;
    double real;
    switch (key->field->type) {
    case K25_BOOL:
        memcpy(&truth, member, sizeof truth);
        return truth;
    case K25_INT:
    case K25_ENUM:
        memcpy(&whole, member, sizeof whole);
        return whole;
    case K25_REAL:
        memcpy(&real, member, sizeof real);
        return real;
    default:
        return 0;
    }
}

void k25_plan_put(const struct k25_plan_key *key, double value, struct k25_plan *plan)
{
    char *member = (char *)plan + key->offset;
    bool truth = value != 0;
    int whole;
    switch (key->field->type) {
    case K25_BOOL:
        memcpy(member, &truth, sizeof truth);
        break;
    case K25_INT:
    case K25_ENUM:
        whole = (int)value;
        memcpy(member, &whole, sizeof whole);
        break;
    case K25_REAL:
        memcpy(member, &value, sizeof value);
        break;
    default:
        break;
    }
}

struct k25_symbol *k25_sweep_symbols(const struct k25_sweep *sweep, const double *values, size_t *count)
{
    size_t outputs = k25_named_output_count();
    struct k25_symbol *symbols = calloc(outputs + sweep->plan_keys + 1, sizeof *symbols);
    *count = outputs + sweep->plan_keys;
    for (size_t i = 0; symbols != NULL && i < *count; i++) {
        symbols[i].name = i < outputs ? k25_named_outputs[i].name : sweep->plan_key[i - outputs].path;
        symbols[i].words = i < outputs ? NULL : sweep->plan_key[i - outputs].field->names;
        symbols[i].value = values != NULL ? &values[i] : NULL;
    }
    return symbols;
}

/* ---- as files have them ---- */

bool k25_sweep_fail(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *format, ...)
{
    char text[sizeof reader->error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return k25_fail_at(reader->error, reader->sweep->file, node->line, node->column, "%s", text);
}

const char *k25_sweep_copy(const struct k25_sweep_reader *reader, const char *text)
{
    char *memory = k25_arena_copy(&reader->sweep->arena, text, strlen(text));
    if (memory == NULL)
        k25_fail(reader->error, K25_RESOURCE, "out of memory");
    return memory;
}

static const struct k25_plan_key *find_plan_key(const struct k25_sweep *sweep, const char *name)
{
    for (size_t i = 0; i < sweep->plan_keys; i++) {
        if (strcmp(sweep->plan_key[i].path, name) == 0)
            return &sweep->plan_key[i];
    }
    return NULL;
}

struct text_search {
    const char *path;
    bool found;
};

static void match_text_key(void *context, const char *path, const struct k25_field *field)
{
    struct text_search *search = context;
    search->found |= field->type == K25_TEXT && strcmp(path, search->path) == 0;
}

/* Texts of the plan are no numbers: the scenario's loader takes them, like keys outside of the plan. */
static bool is_text_key(const char *name)
{
    struct text_search search = {name, false};
    k25_schema_visit(k25_plan_fields, "plan", match_text_key, &search);
    return search.found;
}

bool k25_sweep_read_key(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *name,
                        struct k25_sweep_key *key)
{
    char why[K25_UNKNOWN_KEY], hint[160];
    const struct k25_sweep *sweep = reader->sweep;
    if (!k25_scenario_has_key(name))
        return k25_sweep_fail(reader, node, "%s", k25_scenario_unknown_key(name, why, sizeof why));
    if (strlen(name) >= 200)
        return k25_sweep_fail(reader, node, "the name of the key is too long");
    *key = (struct k25_sweep_key){k25_sweep_copy(reader, name), NULL};
    if (key->name == NULL || strncmp(name, "plan.", 5) != 0)
        return key->name != NULL;
    key->plan = find_plan_key(sweep, name);
    if (key->plan != NULL || is_text_key(name))
        return true;
    const char **names = calloc(sweep->plan_keys + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < sweep->plan_keys; i++)
        names[i] = sweep->plan_key[i].path;
    hint[0] = '\0';
    if (names != NULL)
        k25_did_you_mean(name, names, hint, sizeof hint);
    free(names);
    return k25_sweep_fail(reader, node, "unknown key '%s'%s", name,
                          hint[0] != '\0' ? hint
                                          : ", expected a key of the plan that is a number, a word or true or false");
}

bool k25_sweep_read_value(const struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                          const struct k25_yaml_node *node, struct k25_sweep_value *value)
{
    if (node->kind != K25_YAML_SCALAR)
        return k25_sweep_fail(reader, node, "%s: expected a value, found %s", key->name,
                              k25_yaml_kind_name(node->kind));
    if (strlen(node->text) >= 256 || strpbrk(node->text, "\n\r\x1f") != NULL)
        return k25_sweep_fail(reader, node, "%s: expected a value of one line and at most 255 bytes", key->name);
    *value = (struct k25_sweep_value){k25_sweep_copy(reader, node->text), 0, node->line, node->column};
    if (value->text == NULL || key->plan == NULL)
        return value->text != NULL;
    /* The plan's own table judges; its message starts with the override that it takes this for. */
    struct k25_plan plan = reader->sweep->plan;
    struct k25_error error;
    if (k25_schema_set(k25_plan_fields, "plan", key->name + strlen("plan."), node->text, &plan, NULL, &error)) {
        value->number = k25_plan_get(key->plan, &plan);
        return true;
    }
    size_t head = strlen("--set ") + strlen(key->name) + strlen("=") + strlen(node->text) + strlen(": ");
    return k25_sweep_fail(reader, node, "%s: %s", key->name,
                          strlen(error.message) > head ? error.message + head : error.message);
}
