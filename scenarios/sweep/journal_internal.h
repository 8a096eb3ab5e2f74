/* Inside of scenarios/sweep/store.h: the lines of a state file behind its frame. */
#ifndef K25_SCENARIOS_SWEEP_JOURNAL_INTERNAL_H
#define K25_SCENARIOS_SWEEP_JOURNAL_INTERNAL_H

#include <stdio.h>

#include "scenarios/sweep/digest.h"

/* One chunk. */
struct k25_sweep_record {
    uint64_t to;   /* the first point behind it */
    uint64_t size; /* bytes of its rows */
    uint64_t sum;  /* CRC-64 of them */
    struct k25_sweep_counts counts;
};

/* "shard 1 4 from 0 to 250": the first line. */
int k25_sweep_print_shard(char *out, size_t size, uint64_t shard, uint64_t shards, uint64_t from, uint64_t to);
bool k25_sweep_parse_shard(const char *text, uint64_t *shard, uint64_t *shards, uint64_t *from, uint64_t *to,
                           size_t *size);

/* Adds a chunk's lines to `out`. `known` are all reasons so far, the chunk's with them, and the first `told` of
 * them are in the file already. */
void k25_sweep_print_record(FILE *out, const struct k25_sweep_record *record, const struct k25_sweep_counts *known,
                            size_t told);

/* Reads the next chunk at `*at`, which goes behind it. `known` grows by reasons that are declared on the way.
 * False at the end, or where the text is cut off or is none of ours. */
bool k25_sweep_parse_record(const char **at, struct k25_sweep_counts *known, struct k25_sweep_record *record);

#endif
