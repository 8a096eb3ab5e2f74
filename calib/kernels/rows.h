/* The columns of each kind of kernel table, and the reading of a row. For table.c. */
#ifndef K25_CALIB_KERNELS_ROWS_H
#define K25_CALIB_KERNELS_ROWS_H

#include "base/csv.h"
#include "calib/kernels/table.h"

#define K25_TABLE_COLUMNS 12 /* of a kind at most */

/* The row being read. */
struct k25_row_reader {
    const struct k25_csv *csv;
    size_t row;                    /* of the file's rows */
    const char *const *names;      /* of the kind's columns, NULL-terminated */
    int column[K25_TABLE_COLUMNS]; /* where each is in the file */
    const struct k25_machine *machine;
    struct k25_error *error;
};

/* A row before it is added to the table. */
struct k25_described_row {
    struct k25_kernel_family family; /* name, bar and cold line */
    char group[192];                 /* families with the same group are fitted together */
    enum k25_skip skip;              /* K25_SKIPS: priced */
    struct k25_kernel_row row;       /* shape, traffic, latency, work */
};

struct k25_table_format {
    const char *columns[K25_TABLE_COLUMNS + 1];
    /* False for a cell that cannot be read. `described` starts all zero. */
    bool (*describe)(const struct k25_row_reader *r, struct k25_described_row *described);
};
extern const struct k25_table_format k25_table_formats[K25_TABLE_KINDS];

#endif
