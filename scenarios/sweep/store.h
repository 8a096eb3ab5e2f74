/* The rows of a sweep on disk, so that they can be lost at no moment.
 *
 * While a sweep runs its rows grow in FILE.part, chunk by chunk in the order of the grid, and behind each chunk a
 * line with its size and sum is added to FILE.state. Killed at any moment, the state says how far the rows can be
 * trusted; what lies behind is cut off and made again. When all rows are there FILE.part becomes FILE. A whole
 * sweep then drops its state; a shard keeps it, because it has the counts that merging needs.
 */
#ifndef K25_SCENARIOS_SWEEP_STORE_H
#define K25_SCENARIOS_SWEEP_STORE_H

#include "scenarios/sweep/digest.h"

struct k25_sweep_store {
    const struct k25_sweep_frame *frame;
    char file[1024], part[1040], state[1040];
    int rows_fd, state_fd;            /* -1: none */
    uint64_t shard, shards, from, to; /* points */
    uint64_t next;                    /* the first point that is not stored */
    size_t told;                      /* reasons of `counts` that the state file has */
    struct k25_sweep_counts counts;
    struct k25_digest digest;
};

/* Opens a store for the points from..to-1. With `resume` it goes on where an earlier run of the same sweep
 * stopped, if there was one: `next` says where. A pipe or a device is written to directly. Without, an unfinished
 * earlier run is an error. The caller closes, also after a failure. */
bool k25_sweep_store_open(struct k25_sweep_store *store, const struct k25_sweep_frame *frame, const char *file,
                          uint64_t shard, uint64_t shards, uint64_t from, uint64_t to, bool resume,
                          struct k25_error *error);
/* The same without a file: rows go to the descriptor `fd`, -1: nowhere. */
bool k25_sweep_store_stream(struct k25_sweep_store *store, const struct k25_sweep_frame *frame, int fd, uint64_t from,
                            uint64_t to, struct k25_error *error);

/* Adds the rows of a chunk that ends before point `to`. Counts and digest are the caller's to add to the store's.
 */
bool k25_sweep_store_add(struct k25_sweep_store *store, uint64_t to, const char *rows, size_t size,
                         const struct k25_sweep_counts *counts, struct k25_error *error);

/* All points are there: gives the rows their name. */
bool k25_sweep_store_finish(struct k25_sweep_store *store, struct k25_error *error);
void k25_sweep_store_close(struct k25_sweep_store *store);

/* Rows of shards, one behind the other in the order of the grid, as the one sweep they are parts of. `frame`
 * becomes theirs; free it with the store. */
bool k25_sweep_merge(const char *const *files, size_t count, const char *out, struct k25_sweep_frame *frame,
                     struct k25_sweep_store *store, struct k25_error *error);

#endif
