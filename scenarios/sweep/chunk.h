/* A stretch of the grid, from points to rows: what one thread does between two writes. */
#ifndef K25_SCENARIOS_SWEEP_CHUNK_H
#define K25_SCENARIOS_SWEEP_CHUNK_H

#include "scenarios/sweep/digest.h"
#include "scenarios/sweep/frame.h"
#include "scenarios/sweep/grid.h"

struct k25_sweep_chunk {
    uint64_t from, to; /* points */
    char *text;        /* rows */
    size_t size, room;
    struct k25_sweep_counts counts;
    struct k25_digest digest; /* refers to `text` */
};

/* The cells of the axes as text, once for all threads. */
struct k25_sweep_texts;
struct k25_sweep_texts *k25_sweep_texts_make(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                                             struct k25_error *error);
void k25_sweep_texts_free(struct k25_sweep_texts *texts);

/* What one thread owns; nothing of it shares a cache line with another's. `sweep`, `frame` and `texts` outlive it.
 */
struct k25_sweep_worker;
struct k25_sweep_worker *k25_sweep_worker_open(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                                               const struct k25_sweep_texts *texts, struct k25_error *error);
void k25_sweep_worker_close(struct k25_sweep_worker *worker);

/* Goes through the points from..to-1. The chunk is the worker's, until its next run; NULL with an error. */
const struct k25_sweep_chunk *k25_sweep_worker_run(struct k25_sweep_worker *worker, uint64_t from, uint64_t to,
                                                   struct k25_error *error);

#endif
