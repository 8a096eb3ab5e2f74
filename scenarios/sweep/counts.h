/* Counts of the points of a sweep: evaluated, written, rejected by each constraint, invalid for each reason. */
#ifndef K25_SCENARIOS_SWEEP_COUNTS_H
#define K25_SCENARIOS_SWEEP_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#define K25_SWEEP_CONSTRAINTS 32
#define K25_SWEEP_REASONS 64

struct k25_sweep_reason {
    char text[224]; /* why plans are invalid, with N for each number: "plan.tp: N does not divide the N MLA heads" */
    uint64_t count; /* points */
};

/* Initialise with zeros. Owns no memory. */
struct k25_sweep_counts {
    uint64_t points;                          /* evaluated + invalid + rejected by a constraint on the plan alone */
    uint64_t evaluated;                       /* predicted */
    uint64_t rows;                            /* written: evaluated less rejected */
    uint64_t rejected[K25_SWEEP_CONSTRAINTS]; /* by the first constraint that a point does not meet */
    size_t reasons;
    struct k25_sweep_reason reason[K25_SWEEP_REASONS]; /* the last is "other reasons" when the list is full */
};

/* Adds `count` invalid points with the error `message` as their reason; messages that differ only in numbers are one
 * reason. Does not add to `points`. Does not fail: once the list is full, reasons count as "other reasons". */
void k25_sweep_count_invalid(struct k25_sweep_counts *counts, const char *message, uint64_t count);
/* Adds all counts of `more` to `sum`, reasons by their text. */
void k25_sweep_counts_add(struct k25_sweep_counts *sum, const struct k25_sweep_counts *more);
/* Sets all counts to zero. */
void k25_sweep_counts_clear(struct k25_sweep_counts *counts);

#endif
