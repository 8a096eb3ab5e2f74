/* The scenarios of a sweep: one for every combination of values of keys for the loader of scenarios. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "scenarios/sweep/internal.h"

bool k25_sweep_load_base(struct k25_sweep_reader *reader, const struct k25_yaml_node *base)
{
    struct k25_scenario *scenario = malloc(sizeof *scenario);
    struct k25_error error;
    if (scenario == NULL)
        return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    if (!k25_library_find(reader->library, K25_FILES_SCENARIO, base->text, "", reader->sweep->file, reader->base,
                          sizeof reader->base, &error)) {
        free(scenario);
        return k25_sweep_fail(reader, base, "base: %s", error.message);
    }
    bool ok = k25_scenario_load(reader->library, reader->base, NULL, 0, scenario, reader->error);
    if (ok)
        reader->sweep->plan = scenario->plan;
    ok = ok && k25_inputs_add_files(&reader->inputs, &scenario->inputs, reader->error);
    k25_scenario_free(scenario);
    free(scenario);
    return ok;
}

/* A reference that is a path is relative to the folder of the sweep file; as an override it would be relative to the
 * working directory. */
static const char *value_text(const struct k25_sweep_reader *reader, const char *key, const char *value, char *out,
                              size_t size)
{
    size_t length = strlen(value);
    bool path = strchr(value, '/') != NULL || (length > 5 && strcmp(value + length - 5, ".yaml") == 0);
    if (!path || !k25_scenario_is_reference(key))
        return value;
    return k25_path_beside(reader->sweep->file, value, out, size) ? out : NULL;
}

static char *override_text(const struct k25_sweep_reader *reader, const char *key, const char *value)
{
    char path[1024], *text = NULL;
    value = value_text(reader, key, value, path, sizeof path);
    if (value == NULL || asprintf(&text, "%s=%s", key, value) < 0) {
        k25_fail(reader->error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    return text;
}

bool k25_sweep_add_override(struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                            const struct k25_sweep_value *value, const struct k25_yaml_node *node)
{
    char *text = override_text(reader, key->name, value->text);
    if (text == NULL)
        return false;
    reader->override[reader->overrides++] = (struct k25_sweep_override){text, node->line, node->column};
    return true;
}

void k25_sweep_close_reader(struct k25_sweep_reader *reader)
{
    for (size_t i = 0; i < reader->overrides; i++)
        free(reader->override[i].text);
    k25_inputs_free(&reader->inputs);
}

/* The overrides of one combination: those of `set`, then those of the axes. */
static bool collect(const struct k25_sweep_reader *reader, size_t load, struct k25_sweep_override *list, size_t *count)
{
    const struct k25_sweep *sweep = reader->sweep;
    *count = 0;
    for (size_t i = 0; i < reader->overrides; i++) {
        list[*count] = reader->override[i];
        list[*count].text = strdup(reader->override[i].text);
        if (list[(*count)++].text == NULL)
            return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    }
    for (size_t a = 0; a < sweep->axes; a++) {
        const struct k25_sweep_axis *axis = &sweep->axis[a];
        if (!axis->loads)
            continue;
        size_t position = (size_t)(load / axis->load_stride % axis->count);
        for (size_t k = 0; k < axis->keys; k++) {
            const struct k25_sweep_value *value = &axis->values[position * axis->keys + k];
            if (axis->key[k].plan != NULL || value->text == NULL)
                continue;
            list[*count] = (struct k25_sweep_override){override_text(reader, axis->key[k].name, value->text),
                                                       value->line, value->column};
            if (list[(*count)++].text == NULL)
                return false;
        }
    }
    return true;
}

/* The loader's message with the position of the value in the sweep file; its "--set machine=x: ..." has the key. */
static bool fail_load(const struct k25_sweep_reader *reader, const struct k25_sweep_override *list, size_t count,
                      const struct k25_error *error)
{
    const char *message = error->message;
    for (size_t i = count; i > 0; i--) {
        const struct k25_sweep_override *o = &list[i - 1];
        size_t key = strcspn(o->text, "="), length = strlen(o->text);
        const char *at = strstr(message, "--set ");
        bool mine = at != NULL && strncmp(at + 6, o->text, length) == 0 && at[6 + length] == ':';
        bool named = at != NULL && strncmp(at + 6, o->text, key) == 0 && at[6 + key] == '=';
        if (!mine && !named)
            continue;
        const char *rest = mine ? at + 6 + length + 2 : at + 6;
        return k25_fail_at(reader->error, reader->sweep->file, o->line, o->column, "%.*s%s%s", mine ? (int)key : 0,
                           o->text, mine ? ": " : "", rest);
    }
    *reader->error = *error;
    return false;
}

static bool load_one(struct k25_sweep_reader *reader, size_t load, struct k25_sweep_override *list, const char **texts)
{
    size_t count = 0;
    struct k25_error error;
    struct k25_scenario *scenario = &reader->sweep->scenario[load];
    bool ok = collect(reader, load, list, &count);
    for (size_t i = 0; i < count; i++)
        texts[i] = list[i].text;
    if (ok) {
        ok = k25_scenario_load(reader->library, reader->base, texts, count, scenario, &error);
        ok = ok ? k25_inputs_add_files(&reader->inputs, &scenario->inputs, reader->error)
                : fail_load(reader, list, count, &error);
        /* There can be thousands of scenarios: free the records that points do not need. */
        k25_inputs_free(&scenario->inputs);
    }
    for (size_t i = 0; i < count; i++)
        free(list[i].text);
    return ok;
}

bool k25_sweep_load_scenarios(struct k25_sweep_reader *reader)
{
    struct k25_sweep *sweep = reader->sweep;
    size_t most = reader->overrides + 1;
    for (size_t a = 0; a < sweep->axes; a++)
        most += sweep->axis[a].keys;
    struct k25_sweep_override *list = calloc(most, sizeof *list);
    const char **texts = calloc(most, sizeof *texts);
    sweep->scenario = calloc(sweep->loads, sizeof *sweep->scenario);
    bool ok = (list != NULL && texts != NULL && sweep->scenario != NULL) ||
              k25_fail(reader->error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < sweep->loads; i++)
        ok = load_one(reader, i, list, texts);
    sweep->inputs = k25_inputs_sum(&reader->inputs);
    sweep->read = reader->inputs;
    reader->inputs = (struct k25_inputs){0};
    free(list);
    free(texts);
    return ok;
}
