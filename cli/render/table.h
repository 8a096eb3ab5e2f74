/* A table of results: one set of rows, printed for people, as CSV, or as JSON. */
#ifndef K25_CLI_RENDER_TABLE_H
#define K25_CLI_RENDER_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/cli.h"

/* How a cell is shown to people. CSV and JSON have texts as they are and numbers with all their digits. */
enum cli_style {
    CLI_TEXT,
    CLI_FIGURE, /* four significant digits, decimal points below each other */
    CLI_COUNT,  /* whole numbers with thousands separated */
};

struct cli_column {
    const char *key;   /* the documented name, with its unit; "": for people only */
    const char *title; /* for people; NULL: this column is not shown to them */
    enum cli_style style;
    size_t widest; /* for people: longer texts end in "..."; 0: any length */
};

struct cli_cell {
    const char *text; /* NULL: a number, or nothing */
    double number;    /* NAN: nothing; of a truth 0 or 1 */
};

struct cli_table {
    const struct cli_column *columns; /* the key of the last is NULL */
    size_t width;
    struct cli_cell *cells;
    size_t count; /* of cells; they are added row by row */
    struct k25_arena words;
    bool failed; /* memory ran out on the way */
};

void cli_table_open(struct cli_table *table, const struct cli_column *columns);
void cli_table_close(struct cli_table *table);

/* Each adds the next cell. A text is copied. */
void cli_table_text(struct cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_table_number(struct cli_table *table, double number);
void cli_table_truth(struct cli_table *table, bool truth); /* "true" or "false"; a boolean in JSON */
void cli_table_nothing(struct cli_table *table);

size_t cli_table_rows(const struct cli_table *table);

/* Each writes to standard output. */
bool cli_table_print(const struct cli_table *table, struct k25_error *error);
bool cli_table_csv(const struct cli_table *table, struct k25_error *error);
/* A list of objects; NULL when memory ran out. */
json_t *cli_table_json(const struct cli_table *table, struct k25_error *error);

/* What is not finite is null. */
json_t *cli_json_real(double value);

/* Writes `root` to standard output and releases it; NULL is memory that ran out. */
bool cli_print_json(json_t *root, struct k25_error *error);

/* A table alone, in any format. */
bool cli_table_emit(const struct cli_table *table, enum cli_format format, struct k25_error *error);

/* Prints a text up to column CLI_WIDTH; what does not fit goes on in the next line behind `indent` spaces. The
 * cursor stands at `indent` already. */
enum { CLI_WIDTH = 100 };
void cli_print_wrapped(const char *text, int indent);

/* Four significant digits and at most four decimals: "21.69", "0.0425", "1,536". Returns `out`. */
const char *cli_figure(double value, char *out, size_t size);

#endif
