/* Between the files of the reader of profiler tables; not for others. */
#ifndef K25_CALIB_READERS_PROFILER_INTERNAL_H
#define K25_CALIB_READERS_PROFILER_INTERNAL_H

#include "calib/readers/profiler/table.h"

enum { K25_TABLE_COLUMNS = 40 };

enum k25_profiler_column {
    COLUMN_IGNORED,
    COLUMN_NAME,
    COLUMN_CALLS,
    COLUMN_SELF_CPU,
    COLUMN_CPU_TOTAL,
    COLUMN_SELF_DEVICE,
    COLUMN_DEVICE_TOTAL,
    COLUMN_DEVICE_SHARE,
};

enum k25_profiler_state { TABLE_RULED, TABLE_HEADED, TABLE_ROWS, TABLE_FOOTER, TABLE_DONE };

/* A table whose lines are still coming in. */
struct k25_open_table {
    enum k25_profiler_state state;
    struct k25_span front; /* of its first line */
    struct k25_profiler_table table;
    size_t columns;
    enum k25_profiler_column column[K25_TABLE_COLUMNS];
    size_t start[K25_TABLE_COLUMNS], end[K25_TABLE_COLUMNS]; /* of the dashes, in bytes behind the front */
    bool device;                                             /* has a column of device time */
    int damaged;                                             /* rows left out */
};

struct k25_profiler_reader {
    struct k25_evidence evidence;
    struct k25_profiler_tables *tables;
    struct k25_open_table *open;
    size_t count;
};

struct k25_open_table *k25_profiler_open(struct k25_profiler_reader *reader, struct k25_span front);
struct k25_profiler_row *k25_profiler_add(struct k25_profiler_reader *reader, struct k25_open_table *open,
                                          struct k25_span name);

/* A heading of the layerwise table, or a line of one already open. `*taken` says whether it was either. */
bool k25_layerwise_line(struct k25_profiler_reader *reader, struct k25_span line, bool *taken);
/* Fills in the level of every row, and the sums. */
void k25_profiler_levels(struct k25_profiler_table *table);

#endif
