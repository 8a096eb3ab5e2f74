/* Chunks as bytes, for the process that writes: rows, counts, and the best of each group. Both ends are the same
 * program on the same kind of machine. */
#ifndef K25_SCENARIOS_SWEEP_PARCEL_H
#define K25_SCENARIOS_SWEEP_PARCEL_H

#include "scenarios/sweep/chunk.h"
#include "scenarios/sweep/store.h"

struct k25_sweep_parcel {
    char *bytes;
    size_t size, room;
};

bool k25_sweep_pack(struct k25_sweep_parcel *parcel, const struct k25_sweep_chunk *chunk, struct k25_error *error);
/* Stores all chunks of a parcel in their order. */
bool k25_sweep_unpack(const char *bytes, size_t size, struct k25_sweep_store *store, struct k25_error *error);

#endif
