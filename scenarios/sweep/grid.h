/* The grid of a sweep: from the number of a point to the point, and from a row back to it. The innermost axis varies
 * fastest. */
#ifndef K25_SCENARIOS_SWEEP_GRID_H
#define K25_SCENARIOS_SWEEP_GRID_H

#include "scenarios/sweep/layout.h"

struct k25_sweep_cursor {
    const struct k25_sweep *sweep;
    uint64_t point;
    uint64_t position[K25_SWEEP_AXES]; /* on each axis */
    size_t changed;                    /* the outermost axis that the last move moved; all further in moved too */
    size_t scenario;                   /* of sweep->scenario */
    struct k25_plan plan;
};

/* Goes to `point`, below sweep->points. */
void k25_sweep_seek(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep, uint64_t point);
/* Goes to the next point; the first one follows the last. */
void k25_sweep_next(struct k25_sweep_cursor *cursor);
/* Goes to the first point whose cells of the axes are those of a row; false when no point has them. */
bool k25_sweep_seek_row(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep,
                        const struct k25_sweep_layout *layout, const struct k25_sweep_axis_cells *axis_cells,
                        const struct k25_sweep_cell *cells);

/* The number of a value of an axis, for keys of the plan. */
double k25_sweep_number(const struct k25_sweep_axis *axis, uint64_t position, size_t key);

/* The points of shard `index` (from 1) of `count`: *from up to and without *to. */
void k25_sweep_shard(uint64_t points, uint64_t index, uint64_t count, uint64_t *from, uint64_t *to);

#endif
