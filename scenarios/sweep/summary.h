/* The summary of the rows of a sweep: counts, and the best rows of each group. It has the size of the answer, not of
 * the rows, and is the same whether rows are summed up as they are made, part by part, or read again. */
#ifndef K25_SCENARIOS_SWEEP_SUMMARY_H
#define K25_SCENARIOS_SWEEP_SUMMARY_H

#include "scenarios/sweep/counts.h"
#include "scenarios/sweep/layout.h"
#include "scenarios/sweep/pareto.h"

#define K25_SWEEP_GROUPS 100000
#define K25_SWEEP_GROUP_KEY 1024   /* bytes of the cells that name a group */
#define K25_SWEEP_SEPARATOR '\x1f' /* after each cell of a group's key; no cell has it */

struct k25_sweep_group {
    char *key; /* its cells, each with a separator after it */
    size_t key_length, key_room;
    struct k25_front front; /* of two or three objectives */
    struct k25_top top;     /* by the first objective */
};

struct k25_sweep_summary {
    struct k25_sweep_counts counts;
    size_t objectives, top;
    bool maximise[K25_SWEEP_OBJECTIVES];
    size_t groups, room; /* in the order of their first row */
    struct k25_sweep_group *group;
    size_t slots;  /* a power of two */
    size_t *table; /* index + 1 of a group, 0: free */
    size_t last;   /* the group of the last row: neighbours mostly share it */
};

/* Writes the cells of a row that name its group, each with a separator after it, cut where they would be longer than
 * `key`. Returns the length. */
size_t k25_sweep_group_key(const struct k25_sweep_layout *layout, const struct k25_sweep_cell *cells,
                           char key[K25_SWEEP_GROUP_KEY]);

/* An empty summary of rows of this layout; close it also after a failure. */
void k25_sweep_summary_open(const struct k25_sweep_layout *layout, struct k25_sweep_summary *summary);
/* Ranks one row, number counts.rows of this summary, which the caller counts. `value` are the objectives as they are
 * printed; a NAN among them keeps the row out. The row is `length` bytes at `at` of a text that the caller keeps. Fails
 * when memory is out or there are too many groups. */
bool k25_sweep_summary_rank(struct k25_sweep_summary *summary, const char *key, size_t key_length,
                            const double value[K25_SWEEP_OBJECTIVES], size_t at, size_t length,
                            struct k25_error *error);
/* Ranks and counts the rows of a text of whole lines. Fails as above, and for a line that is no row of the layout. */
bool k25_sweep_summary_read(struct k25_sweep_summary *summary, const struct k25_sweep_layout *layout, const char *rows,
                            size_t size, struct k25_error *error);
/* Adds the summary of the rows that come next; `rows` is the text that they are in. The best get a copy of theirs. */
bool k25_sweep_summary_add(struct k25_sweep_summary *summary, const struct k25_sweep_summary *more, const char *rows,
                           struct k25_error *error);
/* Forgets everything and keeps the memory. */
void k25_sweep_summary_clear(struct k25_sweep_summary *summary);
void k25_sweep_summary_close(struct k25_sweep_summary *summary);

#endif
