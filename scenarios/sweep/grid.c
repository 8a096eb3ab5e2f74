#include "scenarios/sweep/grid.h"

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

/* Starts again from the plan of the scenario at these positions: scenarios may differ in the texts of their plans. */
static void enter_scenario(struct k25_sweep_cursor *cursor)
{
    cursor->scenario = (size_t)k25_sweep_scenario(cursor->sweep, cursor->position);
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
