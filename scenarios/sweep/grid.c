#include "scenarios/sweep/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/predict/outputs.h"
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
    case K25_TEXT:
    case K25_MAP:
    case K25_NODE:
        break;
    }
    return 0;
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
    case K25_TEXT:
    case K25_MAP:
    case K25_NODE:
        break;
    }
}

struct k25_symbol *k25_sweep_symbols(const struct k25_sweep *sweep, const double *values, size_t *count)
{
    struct k25_symbol *symbols = calloc(K25_OUTPUTS + sweep->plan_keys + 1, sizeof *symbols);
    *count = K25_OUTPUTS + sweep->plan_keys;
    for (size_t i = 0; symbols != NULL && i < *count; i++) {
        symbols[i].name = i < K25_OUTPUTS ? k25_output_names[i] : sweep->plan_key[i - K25_OUTPUTS].path;
        symbols[i].words = i < K25_OUTPUTS ? NULL : sweep->plan_key[i - K25_OUTPUTS].field->names;
        symbols[i].value = values != NULL ? &values[i] : NULL;
    }
    return symbols;
}

/* ---- points ---- */

double k25_sweep_number(const struct k25_sweep_axis *axis, uint64_t position, size_t key)
{
    return axis->values == NULL ? (axis->from + axis->step * (double)position) / axis->scale
                                : axis->values[position * axis->keys + key].number;
}

/* Writes the values of an axis into the plan. */
static void apply(struct k25_sweep_cursor *cursor, size_t a)
{
    const struct k25_sweep_axis *axis = &cursor->sweep->axis[a];
    for (size_t k = 0; k < axis->keys; k++) {
        if (axis->key[k].plan != NULL)
            k25_plan_put(axis->key[k].plan, k25_sweep_number(axis, cursor->position[a], k), &cursor->plan);
    }
}

/* The index of the scenario at the positions of the cursor. */
static size_t scenario_at(const struct k25_sweep_cursor *cursor)
{
    uint64_t index = 0;
    for (size_t a = 0; a < cursor->sweep->axes; a++)
        index += cursor->position[a] * cursor->sweep->axis[a].load_stride;
    return (size_t)index;
}

/* Resets the plan to that of the scenario at these positions: scenarios may differ in the texts of their plans. */
static void enter_scenario(struct k25_sweep_cursor *cursor)
{
    cursor->scenario = scenario_at(cursor);
    cursor->plan = cursor->sweep->scenario[cursor->scenario].plan;
    for (size_t a = 0; a < cursor->sweep->axes; a++)
        apply(cursor, a);
}

void k25_sweep_seek(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep, uint64_t point)
{
    cursor->sweep = sweep;
    cursor->point = point;
    cursor->changed = 0;
    for (size_t a = sweep->axes; a > 0; a--) {
        cursor->position[a - 1] = point % sweep->axis[a - 1].count;
        point /= sweep->axis[a - 1].count;
    }
    enter_scenario(cursor);
}

void k25_sweep_next(struct k25_sweep_cursor *cursor)
{
    const struct k25_sweep *sweep = cursor->sweep;
    size_t a = sweep->axes;
    bool loads = false;
    cursor->point = cursor->point + 1 < sweep->points ? cursor->point + 1 : 0;
    while (a > 0) {
        a--;
        loads |= sweep->axis[a].loads;
        if (++cursor->position[a] < sweep->axis[a].count)
            break;
        cursor->position[a] = 0;
    }
    cursor->changed = a;
    if (loads) {
        enter_scenario(cursor);
        return;
    }
    for (; a < sweep->axes; a++)
        apply(cursor, a);
}

/* points x index / count without overflow: points = q x count + r. */
static uint64_t cut(uint64_t points, uint64_t index, uint64_t count)
{
    return points / count * index + points % count * index / count;
}

void k25_sweep_shard(uint64_t points, uint64_t index, uint64_t count, uint64_t *from, uint64_t *to)
{
    *from = cut(points, index - 1, count);
    *to = cut(points, index, count);
}

/* ---- rows ---- */

static bool same_text(struct k25_sweep_cell a, struct k25_sweep_cell b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Whether a column of the axis has the content of the cell at `position`. */
static bool matches(const struct k25_sweep *sweep, const struct k25_sweep_axis_cells *axis_cells, size_t column,
                    uint64_t position, struct k25_sweep_cell cell)
{
    char text[64];
    double number;
    if (axis_cells->cell[column] != NULL)
        return same_text(axis_cells->cell[column][position], cell);
    if (cell.length >= sizeof text)
        return false;
    memcpy(text, cell.text, cell.length);
    text[cell.length] = '\0';
    return k25_parse_real(text, &number) &&
           number == k25_sweep_number(&sweep->axis[sweep->column[column].axis], position, 0);
}

static bool find_position(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                          const struct k25_sweep_axis_cells *axis_cells, const struct k25_sweep_cell *cells,
                          size_t axis, uint64_t *position)
{
    for (*position = 0; *position < sweep->axis[axis].count; ++*position) {
        bool all = true;
        for (size_t c = 0; c < layout->keys && all; c++)
            all = sweep->column[c].axis != axis || matches(sweep, axis_cells, c, *position, cells[c]);
        if (all)
            return true;
    }
    return false;
}

bool k25_sweep_seek_row(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep,
                        const struct k25_sweep_layout *layout, const struct k25_sweep_axis_cells *axis_cells,
                        const struct k25_sweep_cell *cells)
{
    uint64_t point = 0, position;
    for (size_t a = 0; a < sweep->axes; a++) {
        if (!find_position(sweep, layout, axis_cells, cells, a, &position))
            return false;
        point = point * sweep->axis[a].count + position;
    }
    k25_sweep_seek(cursor, sweep, point);
    return true;
}
