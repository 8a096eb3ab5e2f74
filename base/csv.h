/* Comma-separated tables with a header line (RFC 4180: quotes, doubled quotes, CRLF, newlines inside quotes), read
 * whole into memory. */
#ifndef K25_BASE_CSV_H
#define K25_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_CSV_BYTES (1u << 30) /* the largest file read, inflated */

struct k25_csv {
    char *file;         /* path or name, for messages; owned */
    size_t columns;     /* in the header and in every row */
    size_t rows;        /* without the header */
    const char **names; /* [columns]; names and cells are one allocation, which this pointer owns */
    const char **cells; /* [rows][columns]; an empty cell is "" */
    int *lines;         /* [rows]: the line each row starts on, from 1; owned */
    char *bytes;        /* the text of names and cells; owned */
};

/* Reads the file `path` ("-": standard input; gzip is inflated), at most K25_CSV_BYTES. Returns NULL on failure.
 * K25_BAD_INPUT, with the position: an empty file, a zero byte, a row with another number of cells than the header,
 * text after a closing quote, a quote that never closes; and what k25_file_read refuses. K25_RESOURCE: read errors,
 * out of memory. Empty lines are skipped. The caller frees the table with k25_csv_free. */
struct k25_csv *k25_csv_read(const char *path, struct k25_error *error);

/* As k25_csv_read, from `size` bytes in memory, which are copied. `name` is used as the file name in messages. */
struct k25_csv *k25_csv_parse(const char *text, size_t size, const char *name, struct k25_error *error);

/* Frees the table and every cell; NULL does nothing. */
void k25_csv_free(struct k25_csv *csv);

/* Returns the index of the first column called `name` (case matters), -1 when there is none. */
int k25_csv_column(const struct k25_csv *csv, const char *name);

/* Returns a cell, valid until k25_csv_free. `row` (from 0) and `column` must exist. */
const char *k25_csv_cell(const struct k25_csv *csv, size_t row, int column);

#endif
