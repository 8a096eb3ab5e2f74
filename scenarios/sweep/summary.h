/* The summary of the rows of a sweep: counts, and the best rows of each group. Its size depends on the rows kept, not
 * on the rows seen, and it is the same whether rows are added one by one, in parts, or read from a file. */
#ifndef K25_SCENARIOS_SWEEP_SUMMARY_H
#define K25_SCENARIOS_SWEEP_SUMMARY_H

#include "scenarios/sweep/counts.h"
#include "scenarios/sweep/layout.h"
#include "scenarios/sweep/pareto.h"

#define K25_SWEEP_GROUPS 100000
#define K25_SWEEP_GROUP_KEY 1024   /* bytes of a group's key */
#define K25_SWEEP_SEPARATOR '\x1f' /* after each cell of a group's key; does not occur in cells */

struct k25_sweep_group {
    char *key; /* the cells of the group_by columns, each followed by a separator */
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
    size_t last;   /* the group of the last row, tried first: neighbouring rows mostly share it */
};

/* Writes the key of a row's group to `key`, cut to fit. Returns its length in bytes. */
size_t k25_sweep_group_key(const struct k25_sweep_layout *layout, const struct k25_sweep_cell *cells,
                           char key[K25_SWEEP_GROUP_KEY]);

/* Initialises an empty summary of rows with this layout. Does not fail. Release with k25_sweep_summary_close. */
void k25_sweep_summary_open(const struct k25_sweep_layout *layout, struct k25_sweep_summary *summary);
/* Ranks row number counts.rows in its group; the caller increments counts.rows. `value` are the objectives as printed;
 * a row with a NAN is not ranked. The row is `length` bytes at offset `at` of a text that the caller keeps. Returns
 * false with K25_RESOURCE when out of memory, with K25_BAD_INPUT when there are more than K25_SWEEP_GROUPS groups. */
bool k25_sweep_summary_rank(struct k25_sweep_summary *summary, const char *key, size_t key_length,
                            const double value[K25_SWEEP_OBJECTIVES], size_t at, size_t length,
                            struct k25_error *error);
/* Ranks and counts the rows of a text of whole lines. Fails as above, and with K25_BAD_INPUT for a line that does not
 * have the layout. */
bool k25_sweep_summary_read(struct k25_sweep_summary *summary, const struct k25_sweep_layout *layout, const char *rows,
                            size_t size, struct k25_error *error);
/* Adds the summary `more` of the rows that follow; `rows` is the text that its offsets refer to. Rows that are kept are
 * copied. Fails as k25_sweep_summary_rank. */
bool k25_sweep_summary_add(struct k25_sweep_summary *summary, const struct k25_sweep_summary *more, const char *rows,
                           struct k25_error *error);
/* Removes all rows and counts and keeps the allocated memory for further rows. */
void k25_sweep_summary_clear(struct k25_sweep_summary *summary);
/* Frees all memory. */
void k25_sweep_summary_close(struct k25_sweep_summary *summary);

#endif
