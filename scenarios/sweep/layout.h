/* The layout of the rows of a sweep: columns, format and ranking. It is sufficient to read the rows without the sweep;
 * a state file starts with it. */
#ifndef K25_SCENARIOS_SWEEP_LAYOUT_H
#define K25_SCENARIOS_SWEEP_LAYOUT_H

#include "scenarios/sweep/sweep.h"

enum k25_sweep_format { K25_SWEEP_CSV, K25_SWEEP_JSONL, K25_SWEEP_FORMATS };
extern const char *const k25_sweep_format_names[K25_SWEEP_FORMATS + 1]; /* "csv", "jsonl", NULL */

/* Owns its texts. */
struct k25_sweep_layout {
    enum k25_sweep_format format;
    uint64_t inputs, points; /* CRC-64 of the input files; points of the grid */
    const char *name, *title;
    size_t columns, keys; /* the first `keys` columns are those of the axes */
    const char *column[K25_SWEEP_COLUMNS];
    const char *lead[K25_SWEEP_COLUMNS]; /* written before the cell: `,` or `,"name":` */
    size_t lead_length[K25_SWEEP_COLUMNS];
    size_t constraints;
    const char *constraint[K25_SWEEP_CONSTRAINTS];
    size_t objectives;
    struct k25_sweep_objective objective[K25_SWEEP_OBJECTIVES];
    size_t groups, group[K25_SWEEP_AXES], top;
    const char *head; /* the first line of the file; "" for JSON lines */
    const char *tail; /* the end of a row */
    char *text;       /* the layout as text, one property per line: the start of a state file */
    struct k25_arena arena;
};

/* A cell as written in a row, not NUL-terminated; points into the row. */
struct k25_sweep_cell {
    const char *text;
    size_t length;
};

/* Makes the layout of a sweep, with copies of all texts. `program` is the version of the program: rows of different
 * versions are not combined. Returns false with K25_RESOURCE when out of memory. Release with k25_sweep_layout_free,
 * also after a failure. */
bool k25_sweep_layout_make(const struct k25_sweep *sweep, enum k25_sweep_format format, const char *program,
                           struct k25_sweep_layout *layout, struct k25_error *error);
/* Parses a layout at the start of `text`, as k25_sweep_layout_make writes it; `*size` is set to its length. `file` is
 * the name in messages. Returns false with K25_BAD_INPUT when the text is not a layout, K25_RESOURCE when out of
 * memory. Release with k25_sweep_layout_free, also after a failure. */
bool k25_sweep_layout_parse(const char *text, const char *file, size_t *size, struct k25_sweep_layout *layout,
                            struct k25_error *error);
void k25_sweep_layout_free(struct k25_sweep_layout *layout);

/* Writes the content of a cell, without quotes and escapes, to `out` (`size` bytes, cut to fit). Returns `out`. */
const char *k25_sweep_cell_read(const struct k25_sweep_layout *layout, struct k25_sweep_cell cell, char *out,
                                size_t size);

/* Splits a row of `length` bytes, without its newline, into its cells; false when it does not have this layout. */
bool k25_sweep_split(const struct k25_sweep_layout *layout, const char *row, size_t length,
                     struct k25_sweep_cell cells[K25_SWEEP_COLUMNS]);

/* The cells of the axes, formatted once for all threads. */
struct k25_sweep_axis_cells {
    struct k25_sweep_cell *cell[K25_SWEEP_COLUMNS]; /* by position on the column's axis; NULL: a range, whose numbers
                                                       are formatted when needed */
    size_t longest[K25_SWEEP_COLUMNS];              /* bytes of the longest cell */
    struct k25_arena arena;
};

/* The caller frees them with k25_sweep_axis_cells_free. NULL with an error when out of memory. */
struct k25_sweep_axis_cells *k25_sweep_axis_cells_make(const struct k25_sweep *sweep,
                                                       const struct k25_sweep_layout *layout, struct k25_error *error);
void k25_sweep_axis_cells_free(struct k25_sweep_axis_cells *axis_cells);

#endif
