/* A chunk: consecutive points of the grid and the rows made of them, the unit of work of one thread. */
#ifndef K25_SCENARIOS_SWEEP_CHUNK_H
#define K25_SCENARIOS_SWEEP_CHUNK_H

#include "scenarios/sweep/grid.h"
#include "scenarios/sweep/summary.h"

struct k25_sweep_chunk {
    uint64_t from, to;                /* points from..to-1 */
    char *text;                       /* rows, each with its newline */
    size_t size, room;                /* bytes used and allocated */
    struct k25_sweep_summary summary; /* of the rows in `text` */
};

/* The state of one thread; workers share no cache line. k25_sweep_worker_open keeps pointers to `sweep`, `layout` and
 * `axis_cells`, which must outlive the worker; the caller frees it with k25_sweep_worker_close (NULL is allowed).
 * Returns NULL with an error when out of memory or when an expression cannot be compiled. */
struct k25_sweep_worker;
struct k25_sweep_worker *k25_sweep_worker_open(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                                               const struct k25_sweep_axis_cells *axis_cells, struct k25_error *error);
void k25_sweep_worker_close(struct k25_sweep_worker *worker);

/* Evaluates the points from..to-1. The chunk belongs to the worker and is valid until its next run. Returns NULL with
 * K25_RESOURCE when out of memory, with K25_BAD_INPUT when there are too many groups. */
const struct k25_sweep_chunk *k25_sweep_worker_run(struct k25_sweep_worker *worker, uint64_t from, uint64_t to,
                                                   struct k25_error *error);

#endif
