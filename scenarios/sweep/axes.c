/* The axes of a sweep file, their keys and values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scenarios/sweep/internal.h"

/* ---- keys and values ---- */

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

/* Texts of the plan are handled by the loader of scenarios, like keys outside of the plan. */
static bool is_text_key(const char *name)
{
    struct text_search search = {name, false};
    k25_schema_visit(k25_plan_fields, "plan", match_text_key, &search);
    return search.found;
}

bool k25_sweep_read_key(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node,
                        struct k25_sweep_key *key)
{
    const char *name = node->text;
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
    /* The table of the plan checks the value; its message starts with "--set KEY=VALUE: ", which is removed. */
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

/* ---- allocation ---- */

static void *take(const struct k25_sweep_reader *reader, size_t count, size_t size)
{
    void *memory = k25_arena_take(&reader->sweep->arena, (count > 0 ? count : 1) * size);
    if (memory == NULL)
        k25_fail(reader->error, K25_RESOURCE, "out of memory");
    return memory;
}

static bool open_keys(const struct k25_sweep_reader *reader, struct k25_sweep_axis *axis, size_t keys,
                      const struct k25_yaml_node *node)
{
    if (keys == 0 || keys > K25_SWEEP_KEYS)
        return k25_sweep_fail(reader, node, "expected from 1 to %d keys, found %zu", K25_SWEEP_KEYS, keys);
    axis->keys = keys;
    axis->key = take(reader, keys, sizeof *axis->key);
    return axis->key != NULL;
}

static bool open_values(const struct k25_sweep_reader *reader, struct k25_sweep_axis *axis, size_t count,
                        const struct k25_yaml_node *node)
{
    if (count == 0)
        return k25_sweep_fail(reader, node, "an empty axis, expected at least one value");
    if (count > K25_SWEEP_POSITIONS)
        return k25_sweep_fail(reader, node, "%zu values, expected at most %d", count, K25_SWEEP_POSITIONS);
    axis->count = count;
    axis->values = take(reader, count * axis->keys, sizeof *axis->values);
    return axis->values != NULL;
}

static bool expect_list(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *name)
{
    return node->kind == K25_YAML_SEQUENCE || k25_sweep_fail(reader, node, "%s: expected a list of values, found %s",
                                                             name, k25_yaml_kind_name(node->kind));
}

/* ---- values: [...] ---- */

static bool read_list(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list,
                      struct k25_sweep_axis *axis)
{
    if (!expect_list(reader, list, "values") || !open_values(reader, axis, list->count, list))
        return false;
    for (size_t i = 0; i < list->count; i++) {
        if (!k25_sweep_read_value(reader, axis->key, list->values[i], &axis->values[i]))
            return false;
    }
    return true;
}

/* ---- from, to, step or factor ---- */

static bool read_bound(const struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                       const struct k25_yaml_node *entry, const char *name, double *number)
{
    const struct k25_yaml_node *node = k25_yaml_get(entry, name);
    struct k25_sweep_value value;
    if (node == NULL)
        return k25_sweep_fail(reader, entry, "missing key '%s' of a range", name);
    if (node->kind != K25_YAML_SCALAR || !k25_parse_real(node->text, number))
        return k25_sweep_fail(reader, node, "%s: %s%s%snot a number", name, node->text != NULL ? "'" : "",
                              node->text != NULL ? node->text : "", node->text != NULL ? "' is " : "");
    bool limit = strcmp(name, "from") == 0 || strcmp(name, "to") == 0;
    return !limit || key->plan == NULL || k25_sweep_read_value(reader, key, node, &value);
}

/* A number as the text of a value. */
static bool number_value(const struct k25_sweep_reader *reader, double number, const struct k25_yaml_node *node,
                         struct k25_sweep_value *value)
{
    char text[40];
    *value = (struct k25_sweep_value){k25_sweep_copy(reader, k25_text_real(number, text, sizeof text)), number,
                                      node->line, node->column};
    return value->text != NULL;
}

static bool read_factor(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry, double from,
                        double to, struct k25_sweep_axis *axis)
{
    double factor, last = NAN;
    const struct k25_yaml_node *node = k25_yaml_get(entry, "factor");
    if (!read_bound(reader, axis->key, entry, "factor", &factor))
        return false;
    if (!(factor > 1) || !(from > 0))
        return k25_sweep_fail(reader, node, "factor: expected a factor above 1 and a range from above 0");
    double steps = floor(log(to / from) / log(factor) + 1e-9);
    if (!(steps < K25_SWEEP_POSITIONS))
        return k25_sweep_fail(reader, node, "factor: more than %d values", K25_SWEEP_POSITIONS);
    bool whole = axis->key->plan != NULL && axis->key->plan->field->type == K25_INT;
    if (!open_values(reader, axis, (size_t)steps + 1, node))
        return false;
    axis->count = 0;
    for (int i = 0; i <= (int)steps; i++) {
        double number = from * pow(factor, i);
        number = whole ? rint(number) : number;
        if (number == last || number > to * (1 + 1e-12))
            continue;
        last = number;
        if (!number_value(reader, fmin(number, to), node, &axis->values[axis->count++]))
            return false;
    }
    return true;
}

/* The power of ten that makes two numbers of at most nine decimals integers; 1 when there is none. */
static double decimal_scale(double a, double b)
{
    for (double scale = 1; scale <= 1e9; scale *= 10) {
        if (rint(a * scale) / scale == a && rint(b * scale) / scale == b)
            return scale;
    }
    return 1;
}

static bool read_step(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry, double from, double to,
                      struct k25_sweep_axis *axis)
{
    double step;
    const struct k25_yaml_node *node = k25_yaml_get(entry, "step");
    if (!read_bound(reader, axis->key, entry, "step", &step))
        return false;
    bool whole = axis->key->plan != NULL && axis->key->plan->field->type == K25_INT;
    if (!(step > 0) || (whole && step != floor(step)))
        return k25_sweep_fail(reader, node, "step: expected %s above 0", whole ? "a whole number" : "a number");
    double steps = floor((to - from) / step + 1e-9);
    if (!(steps < (double)K25_SWEEP_MOST))
        return k25_sweep_fail(reader, node, "step: too many values");
    axis->scale = decimal_scale(from, step);
    axis->from = axis->scale > 1 ? rint(from * axis->scale) : from;
    axis->step = axis->scale > 1 ? rint(step * axis->scale) : step;
    axis->count = (uint64_t)steps + 1;
    if (axis->key->plan != NULL)
        return true;
    if (!open_values(reader, axis, (size_t)axis->count, node))
        return false;
    for (uint64_t i = 0; i < axis->count; i++) {
        if (!number_value(reader, (axis->from + axis->step * (double)i) / axis->scale, node, &axis->values[i]))
            return false;
    }
    return true;
}

static bool read_range(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry,
                       struct k25_sweep_axis *axis)
{
    double from, to;
    const struct k25_plan_key *plan = axis->key->plan;
    bool step = k25_yaml_get(entry, "step") != NULL, factor = k25_yaml_get(entry, "factor") != NULL;
    if (plan != NULL && plan->field->type != K25_INT && plan->field->type != K25_REAL)
        return k25_sweep_fail(reader, entry, "%s is no number, expected a list of values", axis->key->name);
    if (!read_bound(reader, axis->key, entry, "from", &from) || !read_bound(reader, axis->key, entry, "to", &to))
        return false;
    if (to < from)
        return k25_sweep_fail(reader, k25_yaml_get(entry, "to"), "an empty axis: to %g is below from %g", to, from);
    if (step == factor)
        return k25_sweep_fail(reader, entry, "expected either a step or a factor");
    return step ? read_step(reader, entry, from, to, axis) : read_factor(reader, entry, from, to, axis);
}

/* ---- zip: {key: [...], key: [...]} ---- */

static bool read_zip(const struct k25_sweep_reader *reader, const struct k25_yaml_node *zip,
                     struct k25_sweep_axis *axis)
{
    if (zip->kind != K25_YAML_MAPPING)
        return k25_sweep_fail(reader, zip, "zip: expected a mapping from keys to lists, found %s",
                              k25_yaml_kind_name(zip->kind));
    if (!open_keys(reader, axis, zip->count, zip))
        return false;
    for (size_t k = 0; k < zip->count; k++) {
        const struct k25_yaml_node *list = zip->values[k];
        if (!k25_sweep_read_key(reader, zip->keys[k], &axis->key[k]) || !expect_list(reader, list, axis->key[k].name))
            return false;
        if (k == 0 && !open_values(reader, axis, list->count, list))
            return false;
        if (list->count != axis->count)
            return k25_sweep_fail(reader, list, "%s: %zu values, but %zu of %s; lists that are zipped are equally long",
                                  axis->key[k].name, list->count, (size_t)axis->count, axis->key[0].name);
        for (size_t i = 0; i < list->count; i++) {
            if (!k25_sweep_read_value(reader, &axis->key[k], list->values[i], &axis->values[i * axis->keys + k]))
                return false;
        }
    }
    return true;
}

/* ---- variants: {name: {key: value}} ---- */

static size_t find_key(const struct k25_sweep_axis *axis, size_t count, const char *name)
{
    size_t k = 0;
    while (k < count && strcmp(axis->key[k].name, name) != 0)
        k++;
    return k;
}

/* The keys that any variant has. */
static bool collect_keys(const struct k25_sweep_reader *reader, const struct k25_yaml_node *variants,
                         struct k25_sweep_axis *axis)
{
    if (!open_keys(reader, axis, K25_SWEEP_KEYS, variants))
        return false;
    size_t count = 0;
    for (size_t i = 0; i < variants->count; i++) {
        const struct k25_yaml_node *variant = variants->values[i];
        if (variant->kind != K25_YAML_MAPPING)
            return k25_sweep_fail(reader, variant, "%s: expected a mapping from keys to values, found %s",
                                  variants->keys[i]->text, k25_yaml_kind_name(variant->kind));
        for (size_t k = 0; k < variant->count; k++) {
            const struct k25_yaml_node *key = variant->keys[k];
            if (find_key(axis, count, key->text) < count)
                continue;
            if (count == K25_SWEEP_KEYS)
                return k25_sweep_fail(reader, key, "more than %d keys", K25_SWEEP_KEYS);
            if (!k25_sweep_read_key(reader, key, &axis->key[count++]))
                return false;
        }
    }
    axis->keys = count;
    return count > 0 || k25_sweep_fail(reader, variants, "variants without a key do not differ");
}

/* A key of the plan that a variant does not set has the base's value. */
static void fill_from_base(const struct k25_sweep *sweep, struct k25_sweep_axis *axis)
{
    for (size_t i = 0; i < axis->count * axis->keys; i++) {
        const struct k25_plan_key *plan = axis->key[i % axis->keys].plan;
        if (axis->values[i].text == NULL && plan != NULL)
            axis->values[i].number = k25_plan_get(plan, &sweep->plan);
    }
}

static bool read_variants(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry,
                          const struct k25_yaml_node *variants, struct k25_sweep_axis *axis)
{
    const struct k25_yaml_node *name = k25_yaml_get(entry, "name");
    if (variants->kind != K25_YAML_MAPPING)
        return k25_sweep_fail(reader, variants, "variants: expected a mapping from names to keys, found %s",
                              k25_yaml_kind_name(variants->kind));
    if (name != NULL && (name->kind != K25_YAML_SCALAR || name->text[0] == '\0' || strlen(name->text) > 60 ||
                         strpbrk(name->text, "\n\r\x1f") != NULL))
        return k25_sweep_fail(reader, name, "name: expected the name of a column");
    axis->name = k25_sweep_copy(reader, name != NULL ? name->text : "variant");
    axis->names = take(reader, variants->count, sizeof *axis->names);
    if (axis->name == NULL || axis->names == NULL)
        return false;
    if (variants->count == 0)
        return k25_sweep_fail(reader, variants, "an empty axis, expected at least one variant");
    if (!collect_keys(reader, variants, axis) || !open_values(reader, axis, variants->count, variants))
        return false;
    for (size_t i = 0; i < variants->count; i++) {
        const struct k25_yaml_node *variant = variants->values[i];
        axis->names[i] = k25_sweep_copy(reader, variants->keys[i]->text);
        if (axis->names[i] == NULL)
            return false;
        if (strlen(axis->names[i]) >= 256 || strpbrk(axis->names[i], "\n\r\x1f") != NULL)
            return k25_sweep_fail(reader, variants->keys[i], "expected a name of one line and at most 255 bytes");
        for (size_t k = 0; k < variant->count; k++) {
            size_t key = find_key(axis, axis->keys, variant->keys[k]->text);
            if (!k25_sweep_read_value(reader, &axis->key[key], variant->values[k], &axis->values[i * axis->keys + key]))
                return false;
        }
    }
    fill_from_base(reader->sweep, axis);
    return true;
}

/* ---- the list of axes ---- */

static bool check_words(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry)
{
    static const char *const words[] = {"key",    "values", "from",     "to",   "step",
                                        "factor", "zip",    "variants", "name", NULL};
    char hint[80];
    if (entry->kind != K25_YAML_MAPPING)
        return k25_sweep_fail(reader, entry, "an axis: expected a mapping, found %s", k25_yaml_kind_name(entry->kind));
    for (size_t i = 0; i < entry->count; i++) {
        bool known = false;
        for (int w = 0; words[w] != NULL; w++)
            known |= strcmp(words[w], entry->keys[i]->text) == 0;
        if (!known)
            return k25_sweep_fail(reader, entry->keys[i], "unknown key '%s' of an axis%s", entry->keys[i]->text,
                                  k25_did_you_mean(entry->keys[i]->text, words, hint, sizeof hint));
    }
    return true;
}

static bool read_axis(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry,
                      struct k25_sweep_axis *axis)
{
    const struct k25_yaml_node *key = k25_yaml_get(entry, "key"), *zip = k25_yaml_get(entry, "zip"),
                               *variants = k25_yaml_get(entry, "variants"), *values = k25_yaml_get(entry, "values");
    axis->line = entry->line;
    axis->column = entry->column;
    if (!check_words(reader, entry))
        return false;
    if ((key != NULL) + (zip != NULL) + (variants != NULL) != 1)
        return k25_sweep_fail(reader, entry, "an axis: expected one of key, zip and variants");
    if (zip != NULL)
        return read_zip(reader, zip, axis);
    if (variants != NULL)
        return read_variants(reader, entry, variants, axis);
    if (key->kind != K25_YAML_SCALAR)
        return k25_sweep_fail(reader, key, "key: expected the name of a key, found %s", k25_yaml_kind_name(key->kind));
    if (!open_keys(reader, axis, 1, entry) || !k25_sweep_read_key(reader, key, axis->key))
        return false;
    if (values != NULL && k25_yaml_get(entry, "from") != NULL)
        return k25_sweep_fail(reader, entry, "%s: expected either values or a range", axis->key->name);
    return values != NULL ? read_list(reader, values, axis) : read_range(reader, entry, axis);
}

/* If two axes set one key, the later one would silently win. */
static bool check_twice(const struct k25_sweep_reader *reader, size_t axes, const struct k25_yaml_node *entry)
{
    const struct k25_sweep *sweep = reader->sweep;
    const struct k25_sweep_axis *last = &sweep->axis[axes];
    for (size_t a = 0; a < axes; a++) {
        for (size_t k = 0; k < last->keys; k++) {
            if (find_key(&sweep->axis[a], sweep->axis[a].keys, last->key[k].name) < sweep->axis[a].keys)
                return k25_sweep_fail(reader, entry, "%s: an axis before has this key already", last->key[k].name);
        }
    }
    return true;
}

bool k25_sweep_read_axes(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node)
{
    struct k25_sweep *sweep = reader->sweep;
    if (node->kind != K25_YAML_SEQUENCE || node->count == 0 || node->count > K25_SWEEP_AXES)
        return k25_sweep_fail(reader, node, "axes: expected a list of from 1 to %d axes", K25_SWEEP_AXES);
    uint64_t loads = 1;
    sweep->points = 1;
    for (size_t a = 0; a < node->count; a++) {
        struct k25_sweep_axis *axis = &sweep->axis[a];
        if (!read_axis(reader, node->values[a], axis) || !check_twice(reader, a, node->values[a]))
            return false;
        if (axis->count > K25_SWEEP_MOST / sweep->points)
            return k25_sweep_fail(reader, node->values[a], "the axes up to here make more than 2^53 points");
        sweep->points *= axis->count;
        for (size_t k = 0; k < axis->keys; k++)
            axis->loads |= axis->key[k].plan == NULL;
        if (axis->loads && axis->count > K25_SWEEP_LOADS / loads)
            return k25_sweep_fail(reader, node->values[a],
                                  "more than %d combinations of keys outside of the plan, each a "
                                  "scenario to load",
                                  K25_SWEEP_LOADS);
        loads *= axis->loads ? axis->count : 1;
    }
    sweep->axes = node->count;
    sweep->loads = (size_t)loads;
    for (size_t a = 0; a < sweep->axes; a++) {
        loads /= sweep->axis[a].loads ? sweep->axis[a].count : 1;
        sweep->axis[a].load_stride = sweep->axis[a].loads ? loads : 0;
    }
    return true;
}
