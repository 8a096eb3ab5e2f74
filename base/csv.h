/* Comma-separated tables with a header line (RFC 4180: quotes, doubled quotes, CRLF, newlines inside quotes). */
#ifndef K25_BASE_CSV_H
#define K25_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_CSV_BYTES (1u << 30) /* the largest file read, inflated */

struct k25_csv {
    char *file;
    size_t columns, rows;
    const char **names; /* columns; owns the list of the cells too */
    const char **cells; /* rows x columns; an empty cell is "" */
    int *lines;         /* rows: the line each row starts on, from 1 */
    char *bytes;        /* owns the text */
};

/* Reads a file (gzip too). A row with another number of cells than the header, text behind a closing quote, and a
 * quote that never closes are errors with their position. Empty lines are passed over. */
struct k25_csv *k25_csv_read(const char *path, struct k25_error *error);
struct k25_csv *k25_csv_parse(const char *text, size_t size, const char *name, struct k25_error *error);
void k25_csv_free(struct k25_csv *csv);

/* The index of the first column of that name, -1 when there is none. */
int k25_csv_column(const struct k25_csv *csv, const char *name);
/* `row` and `column` must exist. */
const char *k25_csv_cell(const struct k25_csv *csv, size_t row, int column);

#endif
