/* The grid of a sweep: numbers of points to plans, and rows back to points. Points count from 0; the last axis varies
 * fastest. */
#ifndef K25_SCENARIOS_SWEEP_GRID_H
#define K25_SCENARIOS_SWEEP_GRID_H

#include "scenarios/sweep/layout.h"

/* A point of the grid. Owns nothing; the sweep must outlive it. */
struct k25_sweep_cursor {
    const struct k25_sweep *sweep;
    uint64_t point;
    uint64_t position[K25_SWEEP_AXES]; /* on each axis */
    size_t changed;                    /* the outermost axis changed by the last move; all after it changed too */
    size_t scenario;                   /* index in sweep->scenario */
    struct k25_plan plan;              /* of the point, not checked */
};

/* Initialises the cursor at `point`, which is below sweep->points. */
void k25_sweep_seek(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep, uint64_t point);
/* Moves to the next point; after the last one comes the first. */
void k25_sweep_next(struct k25_sweep_cursor *cursor);
/* Initialises the cursor at the first point whose axes have the values in the cells of a row. Returns false when there
 * is none. */
bool k25_sweep_seek_row(struct k25_sweep_cursor *cursor, const struct k25_sweep *sweep,
                        const struct k25_sweep_layout *layout, const struct k25_sweep_axis_cells *axis_cells,
                        const struct k25_sweep_cell *cells);

/* Returns the value at a position of an axis of one of its keys, by index; only for keys of the plan. Words are their
 * index, truth is 0 or 1. */
double k25_sweep_number(const struct k25_sweep_axis *axis, uint64_t position, size_t key);

/* Sets the points *from..*to-1 of shard `index` of `count`; shards count from 1. */
void k25_sweep_shard(uint64_t points, uint64_t index, uint64_t count, uint64_t *from, uint64_t *to);

#endif
