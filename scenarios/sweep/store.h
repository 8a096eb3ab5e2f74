/* The rows of a sweep on disk. A run killed at any moment loses only the chunks that were being computed.
 *
 * Rows are appended to FILE.part, chunk by chunk in the order of the grid; after each chunk a line with its size,
 * checksum and counts is appended to the journal, FILE.state. A resumed run keeps the rows that agree with the journal,
 * truncates the rest and computes it again. When all rows are stored FILE.part is renamed to FILE. The journal of a
 * whole sweep is then removed; that of a shard is kept, because merging needs its counts.
 */
#ifndef K25_SCENARIOS_SWEEP_STORE_H
#define K25_SCENARIOS_SWEEP_STORE_H

#include "scenarios/sweep/summary.h"

/* Read-only for the caller. */
struct k25_sweep_store {
    const struct k25_sweep_layout *layout; /* the caller's, must outlive the store; NULL: closed */
    char file[1024], part[1040], state[1040];
    int rows_fd, state_fd;            /* -1: none */
    uint64_t shard, shards, from, to; /* shard, from 1, of `shards`; points from..to-1 */
    uint64_t next;                    /* the first point that is not stored */
    size_t declared;                  /* reasons of the summary that are in the journal */
    struct k25_sweep_summary summary; /* of all stored points */
};

/* Opens a store for the points from..to-1 in `file`. With `resume` it continues an earlier run of the same sweep, if
 * there was one, at point `next`. A pipe or device is written directly, without a journal. Returns false with
 * K25_BAD_INPUT for an unfinished earlier run without `resume` or for the journal of another sweep, with K25_RESOURCE
 * when the files cannot be opened or locked. Close it also after a failure. */
bool k25_sweep_store_open(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, const char *file,
                          uint64_t shard, uint64_t shards, uint64_t from, uint64_t to, bool resume,
                          struct k25_error *error);
/* Opens a store without a journal: rows are written to the descriptor `fd`, which remains the caller's; -1: rows are
 * not written, only summed up. */
bool k25_sweep_store_stream(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, int fd, uint64_t from,
                            uint64_t to, struct k25_error *error);

/* Appends the rows of the chunk next..to-1 (`size` bytes) and adds their summary. Returns false with K25_RESOURCE when
 * writing fails or out of memory. */
bool k25_sweep_store_add(struct k25_sweep_store *store, uint64_t to, const char *rows, size_t size,
                         const struct k25_sweep_summary *summary, struct k25_error *error);

/* To be called when all points are stored: syncs the rows to disk and renames FILE.part to FILE. Returns false with
 * K25_RESOURCE. */
bool k25_sweep_store_finish(struct k25_sweep_store *store, struct k25_error *error);
/* Closes the files and frees the summary; an unfinished sweep can be resumed. */
void k25_sweep_store_close(struct k25_sweep_store *store);

/* Writes the rows of all shards (`count` files) in the order of the grid to `out`, as one sweep, and fills `layout` and
 * `store` with theirs. Returns false with K25_BAD_INPUT when a shard is missing, unfinished, damaged, given twice or of
 * another sweep, with K25_RESOURCE when a file cannot be read or written. The caller closes the store and then frees
 * the layout, also after a failure. */
bool k25_sweep_merge(const char *const *files, size_t count, const char *out, struct k25_sweep_layout *layout,
                     struct k25_sweep_store *store, struct k25_error *error);

#endif
