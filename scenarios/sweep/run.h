/* Runs a sweep on threads and processes; the rows are the same bytes for any number of either. */
#ifndef K25_SCENARIOS_SWEEP_RUN_H
#define K25_SCENARIOS_SWEEP_RUN_H

#include "scenarios/sweep/store.h"

#define K25_SWEEP_CHUNK 8192 /* default points of a chunk */

/* Communication of the processes that share the work (MPI in cli/mpi/); process 0 writes. `first_with` and `broadcast`
 * are collective: all processes call them. */
struct k25_sweep_processes {
    int rank, count; /* this process, 0 to count - 1 */
    void *context;   /* passed to the functions */
    /* Returns the lowest rank whose `flag` is set, to all; -1: none. */
    int (*first_with)(void *context, bool flag);
    /* Returns the `number` of process 0 to all. */
    uint64_t (*broadcast)(void *context, uint64_t number);
    /* `send` is called by a process other than 0, `receive` by process 0 with its rank. The received bytes belong to
     * the context and are valid until the next call. Return false with an error. */
    bool (*send)(void *context, const char *bytes, size_t size, struct k25_error *error);
    bool (*receive)(void *context, int from, const char **bytes, size_t *size, struct k25_error *error);
};

struct k25_sweep_options {
    uint64_t chunk;                              /* points; 0: K25_SWEEP_CHUNK */
    const volatile int *stop;                    /* when it becomes non-zero: stop at the next chunk; NULL: never */
    const struct k25_sweep_processes *processes; /* NULL: this process alone */
    void (*progress)(void *context, const struct k25_sweep_store *store); /* called after each chunk, by one thread at a
                                                                             time; NULL: none */
    void *context;                                                        /* of `progress` */
};

/* Computes and stores the points from..to-1, where from is store->next and to is store->to, with all OpenMP threads.
 * `store` is an open store in process 0 and NULL in the others; the other arguments are the same in all processes.
 * Returns true also when stopped: store->next is then the first point not stored. Returns false with K25_RESOURCE when
 * out of memory or when writing or communication fails, with K25_BAD_INPUT when there are too many groups; the rows
 * stored before remain valid. */
bool k25_sweep_run(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                   const struct k25_sweep_options *options, struct k25_sweep_store *store, uint64_t from, uint64_t to,
                   struct k25_error *error);

#endif
