/* Reads the sweep format (docs/formats.md). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/predict/outputs.h"
#include "scenarios/sweep/internal.h"

/* ---- errors and texts ---- */

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

/* ---- the file ---- */

struct record {
    char name[64], title[256], base[512];
    const struct k25_yaml_node *set, *axes, *constraints, *objectives, *group_by, *columns;
    int top;
};

static const struct k25_field record_fields[] = {
    K25_FIELD(TEXT, record, name, .doc = "name of the sweep"),
    K25_FIELD(TEXT, record, title, .fallback = "", .doc = "one line for people"),
    K25_FIELD(TEXT, record, base, .doc = "name in scenarios, or a path"),
    K25_FIELD(NODE, record, set, .fallback = "", .doc = "overrides of the base"),
    K25_FIELD(NODE, record, axes, .doc = "list of axes, outermost first"),
    K25_FIELD(NODE, record, constraints, .fallback = "", .doc = "list of expressions"),
    K25_FIELD(NODE, record, objectives, .fallback = "", .doc = "list of {maximise: OUTPUT} or {minimise: OUTPUT}"),
    K25_FIELD(NODE, record, group_by, .fallback = "", .doc = "list of keys of the axes"),
    K25_FIELD(NODE, record, columns, .fallback = "", .doc = "list of outputs and keys of the plan"),
    K25_FIELD(INT, record, top, .fallback = "5", .min = 0, .max = K25_SWEEP_TOP, .doc = "points listed for each group"),
    {.key = NULL},
};

/* Checks an optional list of scalars. */
static bool expect_scalars(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list, const char *what,
                           size_t most)
{
    if (list == NULL)
        return true;
    if (list->kind != K25_YAML_SEQUENCE || list->count > most)
        return k25_sweep_fail(reader, list, "%s: expected a list of at most %zu entries", what, most);
    for (size_t i = 0; i < list->count; i++) {
        if (list->values[i]->kind != K25_YAML_SCALAR)
            return k25_sweep_fail(reader, list->values[i], "%s: expected a value, found %s", what,
                                  k25_yaml_kind_name(list->values[i]->kind));
    }
    return true;
}

static bool read_constraints(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list)
{
    struct k25_sweep *sweep = reader->sweep;
    size_t count;
    if (!expect_scalars(reader, list, "constraints", K25_SWEEP_CONSTRAINTS))
        return false;
    struct k25_symbol *symbols = k25_sweep_symbols(sweep, NULL, &count);
    bool *used = calloc(count + 1, sizeof *used);
    bool ok = (symbols != NULL && used != NULL) || k25_fail(reader->error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && list != NULL && i < list->count; i++) {
        const struct k25_yaml_node *node = list->values[i];
        struct k25_sweep_constraint *constraint = &sweep->constraint[sweep->constraints++];
        constraint->text = k25_arena_copy(&sweep->arena, node->text, strlen(node->text));
        constraint->line = node->line;
        constraint->column = node->column + node->quoted;
        constraint->early = true;
        struct k25_expression *e = constraint->text == NULL
                                       ? NULL
                                       : k25_expression_compile(constraint->text, symbols, used, sweep->file,
                                                                constraint->line, constraint->column, reader->error);
        ok = e != NULL;
        k25_expression_free(e);
        for (size_t o = 0; ok && o < K25_OUTPUTS; o++)
            constraint->early &= !used[o];
    }
    free(symbols);
    free(used);
    return ok;
}

/* ---- columns ---- */

static int find_column(const struct k25_sweep *sweep, const char *name)
{
    for (size_t i = 0; i < sweep->columns; i++) {
        if (strcmp(sweep->column[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool add_column(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node,
                       struct k25_sweep_column column)
{
    struct k25_sweep *sweep = reader->sweep;
    if (find_column(sweep, column.name) >= 0)
        return k25_sweep_fail(reader, node, "'%s' would be two columns", column.name);
    if (sweep->columns == K25_SWEEP_COLUMNS)
        return k25_sweep_fail(reader, node, "more than %d columns", K25_SWEEP_COLUMNS);
    sweep->column[sweep->columns++] = column;
    return true;
}

/* The columns that identify a point: the keys of every axis, or the name of a variant. */
static bool add_axis_columns(const struct k25_sweep_reader *reader, const struct k25_yaml_node *axes)
{
    const struct k25_sweep *sweep = reader->sweep;
    for (size_t a = 0; a < sweep->axes; a++) {
        const struct k25_sweep_axis *axis = &sweep->axis[a];
        size_t keys = axis->name != NULL ? 1 : axis->keys;
        for (size_t k = 0; k < keys; k++) {
            struct k25_sweep_column column = {axis->name != NULL ? axis->name : axis->key[k].name,
                                              axis->name != NULL ? K25_CELL_NAME : K25_CELL_KEY, a, k};
            if (!add_column(reader, axes->values[a], column))
                return false;
        }
    }
    return true;
}

/* An output or a key of the plan as a column; false without an error when there is no such name. */
static bool find_source(const struct k25_sweep *sweep, const char *name, struct k25_sweep_column *column)
{
    enum k25_output output = k25_output_find(name);
    if (output < K25_OUTPUTS) {
        *column = (struct k25_sweep_column){k25_output_names[output], K25_CELL_OUTPUT, 0, output};
        return true;
    }
    for (size_t i = 0; i < sweep->plan_keys; i++) {
        if (strcmp(sweep->plan_key[i].path, name) == 0) {
            *column = (struct k25_sweep_column){sweep->plan_key[i].path, K25_CELL_PLAN, 0, i};
            return true;
        }
    }
    return false;
}

static bool unknown_name(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *what)
{
    size_t count;
    char hint[160] = "";
    struct k25_symbol *symbols = k25_sweep_symbols(reader->sweep, NULL, &count);
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; symbols != NULL && names != NULL && i < count; i++)
        names[i] = symbols[i].name;
    if (names != NULL)
        k25_did_you_mean(node->text, names, hint, sizeof hint);
    free(symbols);
    free(names);
    return k25_sweep_fail(reader, node, "%s: unknown name '%s'%s", what, node->text,
                          hint[0] != '\0' ? hint : ", expected an output or a key of the plan");
}

/* `axes` is the position of an error about an axis that has the name of an output. */
static bool read_columns(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list,
                         const struct k25_yaml_node *axes)
{
    struct k25_sweep_column column;
    for (size_t i = 0; list == NULL && i < K25_OUTPUTS; i++) {
        column = (struct k25_sweep_column){k25_output_names[i], K25_CELL_OUTPUT, 0, i};
        if (!add_column(reader, axes, column))
            return false;
    }
    if (!expect_scalars(reader, list, "columns", K25_SWEEP_COLUMNS))
        return false;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        if (find_column(reader->sweep, list->values[i]->text) >= 0)
            return k25_sweep_fail(reader, list->values[i], "columns: '%s' is a column already", list->values[i]->text);
        if (!find_source(reader->sweep, list->values[i]->text, &column))
            return unknown_name(reader, list->values[i], "columns");
        if (!add_column(reader, list->values[i], column))
            return false;
    }
    return true;
}

/* ---- objectives and groups ---- */

static bool read_objective(const struct k25_sweep_reader *reader, const struct k25_yaml_node *entry)
{
    struct k25_sweep *sweep = reader->sweep;
    const char *word = entry->kind == K25_YAML_MAPPING && entry->count == 1 ? entry->keys[0]->text : "";
    bool maximise = strcmp(word, "maximise") == 0;
    if (!maximise && strcmp(word, "minimise") != 0)
        return k25_sweep_fail(reader, entry, "objectives: expected {maximise: OUTPUT} or {minimise: OUTPUT}");
    const struct k25_yaml_node *name = entry->values[0];
    if (name->kind != K25_YAML_SCALAR)
        return k25_sweep_fail(reader, name, "%s: expected the name of an output", word);
    struct k25_sweep_column column;
    int found = find_column(sweep, name->text);
    if (!find_source(sweep, name->text, &column))
        return unknown_name(reader, name, word);
    if (column.source == K25_CELL_PLAN && sweep->plan_key[column.index].field->type != K25_INT &&
        sweep->plan_key[column.index].field->type != K25_REAL)
        return k25_sweep_fail(reader, name, "%s: %s is no number", word, name->text);
    if (column.source == K25_CELL_OUTPUT && k25_output_info[column.index].kind == K25_OUTPUT_TRUTH)
        return k25_sweep_fail(reader, name, "%s: %s is no number", word, name->text);
    if (found < 0 && !add_column(reader, name, column))
        return false;
    size_t index = found < 0 ? sweep->columns - 1 : (size_t)found;
    for (size_t i = 0; i < sweep->objectives; i++) {
        if (sweep->objective[i].column == index)
            return k25_sweep_fail(reader, name, "%s: %s is an objective already", word, name->text);
    }
    sweep->objective[sweep->objectives++] = (struct k25_sweep_objective){index, maximise};
    return true;
}

static bool read_objectives(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list)
{
    if (list == NULL)
        return true;
    if (list->kind != K25_YAML_SEQUENCE || list->count > K25_SWEEP_OBJECTIVES)
        return k25_sweep_fail(reader, list, "objectives: expected a list of at most %d", K25_SWEEP_OBJECTIVES);
    for (size_t i = 0; i < list->count; i++) {
        if (!read_objective(reader, list->values[i]))
            return false;
    }
    return true;
}

static bool read_groups(const struct k25_sweep_reader *reader, const struct k25_yaml_node *list)
{
    struct k25_sweep *sweep = reader->sweep;
    const char *names[K25_SWEEP_COLUMNS + 1];
    size_t count = 0;
    char hint[160];
    if (!expect_scalars(reader, list, "group_by", K25_SWEEP_AXES))
        return false;
    for (size_t i = 0; i < sweep->columns; i++) {
        if (sweep->column[i].source == K25_CELL_KEY || sweep->column[i].source == K25_CELL_NAME)
            names[count++] = sweep->column[i].name;
    }
    names[count] = NULL;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct k25_yaml_node *node = list->values[i];
        int column = find_column(sweep, node->text);
        if (column < 0 || (size_t)column >= count)
            return k25_sweep_fail(reader, node, "group_by: no axis has the key '%s'%s", node->text,
                                  k25_did_you_mean(node->text, names, hint, sizeof hint));
        for (size_t g = 0; g < sweep->groups; g++) {
            if (sweep->group[g] == (size_t)column)
                return k25_sweep_fail(reader, node, "group_by: '%s' is named twice", node->text);
        }
        sweep->group[sweep->groups++] = (size_t)column;
    }
    return true;
}

/* ---- overrides of the base ---- */

static bool read_set(struct k25_sweep_reader *reader, const struct k25_yaml_node *set)
{
    struct k25_sweep_key key;
    struct k25_sweep_value value;
    if (set == NULL)
        return true;
    if (set->kind != K25_YAML_MAPPING || set->count > K25_SWEEP_KEYS)
        return k25_sweep_fail(reader, set, "set: expected a mapping from at most %d keys to values", K25_SWEEP_KEYS);
    for (size_t i = 0; i < set->count; i++) {
        if (!k25_sweep_read_key(reader, set->keys[i], &key) ||
            !k25_sweep_read_value(reader, &key, set->values[i], &value) ||
            !k25_sweep_add_override(reader, &key, &value, set->values[i]))
            return false;
        if (key.plan != NULL) /* the start value for axes and variants */
            k25_plan_put(key.plan, value.number, &reader->sweep->plan);
    }
    return true;
}

static bool read_all(struct k25_sweep_reader *reader, const struct k25_yaml_node *root)
{
    struct k25_sweep *sweep = reader->sweep;
    struct record record;
    if (!k25_schema_load(record_fields, "", root, sweep->file, &record, NULL, reader->error))
        return false;
    memcpy(sweep->name, record.name, sizeof sweep->name);
    memcpy(sweep->title, record.title, sizeof sweep->title);
    sweep->plan_key = k25_plan_keys(&sweep->plan_keys);
    if (sweep->plan_key == NULL)
        return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    const struct k25_yaml_node *base = k25_yaml_get(root, "base");
    if (!k25_sweep_load_base(reader, base) || !read_set(reader, record.set) ||
        !k25_sweep_read_axes(reader, record.axes) || !add_axis_columns(reader, record.axes) ||
        !read_columns(reader, record.columns, record.axes) || !read_groups(reader, record.group_by) ||
        !read_objectives(reader, record.objectives) || !read_constraints(reader, record.constraints))
        return false;
    sweep->top = sweep->objectives > 0 ? (size_t)record.top : 0;
    return k25_sweep_load_scenarios(reader);
}

bool k25_sweep_load(const struct k25_library *library, const char *name, struct k25_sweep *sweep,
                    struct k25_error *error)
{
    memset(sweep, 0, sizeof *sweep);
    struct k25_sweep_reader reader = {.library = library, .sweep = sweep, .error = error};
    if (!k25_library_find(library, K25_FILES_SWEEP, name, "", "", sweep->file, sizeof sweep->file, error))
        return false;
    struct k25_yaml *yaml = k25_yaml_read(sweep->file, &reader.inputs, error);
    if (yaml == NULL) {
        k25_sweep_close_reader(&reader);
        return false;
    }
    bool ok = k25_schema_head(yaml, "sweep", error) && read_all(&reader, k25_yaml_root(yaml));
    k25_sweep_close_reader(&reader);
    k25_yaml_free(yaml);
    return ok;
}

void k25_sweep_free(struct k25_sweep *sweep)
{
    for (size_t i = 0; sweep->scenario != NULL && i < sweep->loads; i++)
        k25_scenario_free(&sweep->scenario[i]);
    free(sweep->scenario);
    free(sweep->plan_key);
    k25_inputs_free(&sweep->read);
    k25_arena_free(&sweep->arena);
    memset(sweep, 0, sizeof *sweep);
}
