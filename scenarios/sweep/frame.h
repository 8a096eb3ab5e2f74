/* What the rows of a sweep look like, and how they are ranked: all that is needed to read them again without the
 * sweep. It is what a shard, or a sweep that was interrupted, has in its state file. */
#ifndef K25_SCENARIOS_SWEEP_FRAME_H
#define K25_SCENARIOS_SWEEP_FRAME_H

#include "scenarios/sweep/sweep.h"

enum k25_sweep_format { K25_SWEEP_CSV, K25_SWEEP_JSONL };
extern const char *const k25_sweep_format_names[]; /* "csv", "jsonl", NULL */

struct k25_sweep_frame {
    enum k25_sweep_format format;
    uint64_t inputs, points;
    const char *name, *title;
    size_t columns, keys; /* the first `keys` columns are those of the axes */
    const char *column[K25_SWEEP_COLUMNS];
    const char *lead[K25_SWEEP_COLUMNS]; /* what stands before the cell: `,` or `,"name":` */
    size_t lead_length[K25_SWEEP_COLUMNS];
    size_t constraints;
    const char *constraint[K25_SWEEP_CONSTRAINTS];
    size_t objectives;
    struct k25_sweep_objective objective[K25_SWEEP_OBJECTIVES];
    size_t groups, group[K25_SWEEP_AXES], top;
    const char *head; /* the first line of the rows; "" for JSON lines */
    const char *tail; /* what ends a row */
    char *text;       /* the frame as text, one property a line */
    struct k25_arena arena;
};

/* A cell as it stands in a row. */
struct k25_sweep_cell {
    const char *text;
    size_t length;
};

/* `program` is the version of the program: rows of different versions do not mix. */
bool k25_sweep_frame_make(const struct k25_sweep *sweep, enum k25_sweep_format format, const char *program,
                          struct k25_sweep_frame *frame, struct k25_error *error);
/* Reads `text` as k25_sweep_frame_make wrote it; `*size` becomes what it took. `file` stands in messages. */
bool k25_sweep_frame_parse(const char *text, const char *file, size_t *size, struct k25_sweep_frame *frame,
                           struct k25_error *error);
void k25_sweep_frame_free(struct k25_sweep_frame *frame);

/* Text as a cell: in quotes where the format needs them. The caller frees; NULL when memory is out. */
char *k25_sweep_cell_text(enum k25_sweep_format format, const char *text);
/* The other way: writes what a cell says to `out`, cut to `size`. Returns `out`. */
const char *k25_sweep_cell_read(const struct k25_sweep_frame *frame, struct k25_sweep_cell cell, char *out,
                                size_t size);

/* Cuts a row, without its newline, into its cells; false when it is none of this frame. */
bool k25_sweep_split(const struct k25_sweep_frame *frame, const char *row, size_t length,
                     struct k25_sweep_cell cells[K25_SWEEP_COLUMNS]);

#endif
