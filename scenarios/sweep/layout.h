/* The layout of the rows of a sweep: their columns and format, and how they are ranked. It is all that is needed to
 * read the rows without the sweep, and what a state file starts with. */
#ifndef K25_SCENARIOS_SWEEP_LAYOUT_H
#define K25_SCENARIOS_SWEEP_LAYOUT_H

#include "scenarios/sweep/sweep.h"

enum k25_sweep_format { K25_SWEEP_CSV, K25_SWEEP_JSONL, K25_SWEEP_FORMATS };
extern const char *const k25_sweep_format_names[K25_SWEEP_FORMATS + 1]; /* "csv", "jsonl", NULL */

struct k25_sweep_layout {
    enum k25_sweep_format format;
    uint64_t inputs, points;
    const char *name, *title;
    size_t columns, keys; /* the first `keys` columns are those of the axes */
    const char *column[K25_SWEEP_COLUMNS];
    const char *lead[K25_SWEEP_COLUMNS]; /* what comes before the cell: `,` or `,"name":` */
    size_t lead_length[K25_SWEEP_COLUMNS];
    size_t constraints;
    const char *constraint[K25_SWEEP_CONSTRAINTS];
    size_t objectives;
    struct k25_sweep_objective objective[K25_SWEEP_OBJECTIVES];
    size_t groups, group[K25_SWEEP_AXES], top;
    const char *head; /* the first line of the file; "" for JSON lines */
    const char *tail; /* what ends a row */
    char *text;       /* the layout as text, one property a line: the start of a state file */
    struct k25_arena arena;
};

/* A cell as it is written in a row. */
struct k25_sweep_cell {
    const char *text;
    size_t length;
};

/* The layout of a sweep; it keeps its own copy of all texts. `program` is the version of the program: rows of different
 * versions do not mix. Fails when memory is out. Free it also after a failure. */
bool k25_sweep_layout_make(const struct k25_sweep *sweep, enum k25_sweep_format format, const char *program,
                           struct k25_sweep_layout *layout, struct k25_error *error);
/* Reads `text` as k25_sweep_layout_make wrote it; `*size` becomes the bytes it takes. `file` is its name in messages.
 */
bool k25_sweep_layout_parse(const char *text, const char *file, size_t *size, struct k25_sweep_layout *layout,
                            struct k25_error *error);
void k25_sweep_layout_free(struct k25_sweep_layout *layout);

/* Writes what a cell says to `out`, without quotes and escapes, cut to `size`. Returns `out`. */
const char *k25_sweep_cell_read(const struct k25_sweep_layout *layout, struct k25_sweep_cell cell, char *out,
                                size_t size);

/* Cuts a row, without its newline, into its cells; false when it is none of this layout. */
bool k25_sweep_split(const struct k25_sweep_layout *layout, const char *row, size_t length,
                     struct k25_sweep_cell cells[K25_SWEEP_COLUMNS]);

/* The cells of the axes: written once, for all threads. */
struct k25_sweep_axis_cells {
    struct k25_sweep_cell *cell[K25_SWEEP_COLUMNS]; /* by position on the column's axis; NULL: a range, whose numbers
                                                       are written as they come */
    size_t longest[K25_SWEEP_COLUMNS];              /* bytes of a cell at most */
    struct k25_arena arena;
};

/* NULL with an error when memory is out; the caller frees. */
struct k25_sweep_axis_cells *k25_sweep_axis_cells_make(const struct k25_sweep *sweep,
                                                       const struct k25_sweep_layout *layout, struct k25_error *error);
void k25_sweep_axis_cells_free(struct k25_sweep_axis_cells *axis_cells);

#endif
