/* Running a sweep: threads, and processes on other machines, whatever their number with the same bytes. */
#ifndef K25_SCENARIOS_SWEEP_RUN_H
#define K25_SCENARIOS_SWEEP_RUN_H

#include "scenarios/sweep/store.h"

#define K25_SWEEP_CHUNK 8192 /* points between two writes by default */

/* Processes that share the work; process 0 writes. Every function is called by all of them together, `send` and
 * `receive` by the two that are concerned. */
struct k25_sweep_processes {
    int rank, count;
    void *context;
    /* The lowest rank whose `flag` is set, -1: none. */
    int (*first_with)(void *context, bool flag);
    /* Process 0's number, for all. */
    uint64_t (*broadcast)(void *context, uint64_t number);
    /* From a process other than 0 to process 0; `bytes` are the context's, until the next call. */
    bool (*send)(void *context, const char *bytes, size_t size, struct k25_error *error);
    bool (*receive)(void *context, int from, const char **bytes, size_t *size, struct k25_error *error);
};

struct k25_sweep_options {
    uint64_t chunk;                              /* points; 0: K25_SWEEP_CHUNK */
    const volatile int *stop;                    /* not 0: stop at the next chunk; NULL: never */
    const struct k25_sweep_processes *processes; /* NULL: this process alone */
    void (*progress)(void *context,
                     const struct k25_sweep_store *store); /* after a chunk, one thread at a time; NULL: none */
    void *context;
};

/* Computes and stores the points from..to-1, which are those from store->next up to store->to, with all threads that
 * OpenMP has. Returns true also when it was stopped: store->next says how far it came. `store` is process 0's, NULL in
 * the others; all other arguments are the same for all. */
bool k25_sweep_run(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                   const struct k25_sweep_options *options, struct k25_sweep_store *store, uint64_t from, uint64_t to,
                   struct k25_error *error);

#endif
