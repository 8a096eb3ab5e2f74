/* The rows of a sweep on disk, so that a kill at any moment loses no more than what was being computed.
 *
 * While a sweep runs its rows grow in FILE.part, chunk by chunk in the order of the grid, and after each chunk a line
 * with its size, checksum and counts is added to the journal, FILE.state. After a kill the journal says how far the
 * rows can be trusted; the rest is cut off and made again. When all rows are there FILE.part becomes FILE. A whole
 * sweep then drops its journal; a shard keeps it, because merging needs its counts.
 */
#ifndef K25_SCENARIOS_SWEEP_STORE_H
#define K25_SCENARIOS_SWEEP_STORE_H

#include "scenarios/sweep/summary.h"

struct k25_sweep_store {
    const struct k25_sweep_layout *layout; /* the caller's; NULL: closed */
    char file[1024], part[1040], state[1040];
    int rows_fd, state_fd;            /* -1: none */
    uint64_t shard, shards, from, to; /* points */
    uint64_t next;                    /* the first point that is not stored */
    size_t declared;                  /* reasons of the summary that the journal has */
    struct k25_sweep_summary summary; /* of all stored points */
};

/* Opens a store for the points from..to-1. With `resume` it goes on where an earlier run of the same sweep stopped, if
 * there was one: `next` says where. Without, an unfinished earlier run is an error, and so is, always, the journal of
 * another sweep. A pipe or a device is written to directly. Close it also after a failure. */
bool k25_sweep_store_open(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, const char *file,
                          uint64_t shard, uint64_t shards, uint64_t from, uint64_t to, bool resume,
                          struct k25_error *error);
/* The same without a file: rows go to the descriptor `fd`, which stays the caller's; -1: nowhere. */
bool k25_sweep_store_stream(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, int fd, uint64_t from,
                            uint64_t to, struct k25_error *error);

/* Adds the rows of a chunk that ends before point `to`, and their summary. */
bool k25_sweep_store_add(struct k25_sweep_store *store, uint64_t to, const char *rows, size_t size,
                         const struct k25_sweep_summary *summary, struct k25_error *error);

/* All points are there: flushes the rows to the disk and gives them their name. */
bool k25_sweep_store_finish(struct k25_sweep_store *store, struct k25_error *error);
void k25_sweep_store_close(struct k25_sweep_store *store);

/* Puts the rows of all shards, in the order of the grid, into `out` as the one sweep that they are parts of. Fails when
 * a shard is missing, unfinished, damaged, given twice or of another sweep. `layout` becomes theirs; free it after the
 * store is closed, both also after a failure. */
bool k25_sweep_merge(const char *const *files, size_t count, const char *out, struct k25_sweep_layout *layout,
                     struct k25_sweep_store *store, struct k25_error *error);

#endif
