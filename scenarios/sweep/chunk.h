/* A chunk of the grid, from points to rows: what one thread computes between two writes. */
#ifndef K25_SCENARIOS_SWEEP_CHUNK_H
#define K25_SCENARIOS_SWEEP_CHUNK_H

#include "scenarios/sweep/grid.h"
#include "scenarios/sweep/summary.h"

struct k25_sweep_chunk {
    uint64_t from, to; /* points */
    char *text;        /* rows */
    size_t size, room;
    struct k25_sweep_summary summary; /* of the rows in `text` */
};

/* What one thread owns; nothing of it shares a cache line with another's. `sweep`, `layout` and `axis_cells` outlive
 * it. NULL with an error when memory is out. */
struct k25_sweep_worker;
struct k25_sweep_worker *k25_sweep_worker_open(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                                               const struct k25_sweep_axis_cells *axis_cells, struct k25_error *error);
void k25_sweep_worker_close(struct k25_sweep_worker *worker);

/* Goes through the points from..to-1. The chunk is the worker's, until its next run; NULL with an error. */
const struct k25_sweep_chunk *k25_sweep_worker_run(struct k25_sweep_worker *worker, uint64_t from, uint64_t to,
                                                   struct k25_error *error);

#endif
