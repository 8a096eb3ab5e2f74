/* The best of many rows, in memory that grows with the answer and not with the rows: the Pareto front in up to
 * three values, and the first N by one value. Smaller values are better; the caller turns the sign of what is to
 * be large.
 *
 * A row is on the front unless another is at least as good in every value and came before it or is better in one.
 * Rows are offered in the order of `order`.
 */
#ifndef K25_SCENARIOS_SWEEP_PARETO_H
#define K25_SCENARIOS_SWEEP_PARETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define K25_PARETO_VALUES 3

struct k25_ranked {
    double value[K25_PARETO_VALUES]; /* no NAN */
    uint64_t order;
    size_t at, length; /* of the row's text in a buffer of the caller's */
    char *text;        /* `length` bytes or NULL; a row that is taken keeps a copy */
};

enum k25_offer { K25_REFUSED, K25_TAKEN, K25_NO_MEMORY };

/* Start from all zero but the numbers that the comment names. */
struct k25_front {
    size_t values; /* set: 1 to 3 */
    size_t count;
    struct k25_ranked *item; /* by value[0], then value[1], when there are two values; else in no order */
    size_t last;             /* what dominated the last refused row: it often does so again */
};

struct k25_top {
    size_t most; /* set */
    size_t count;
    struct k25_ranked *item; /* by value[0], then order */
};

enum k25_offer k25_front_offer(struct k25_front *front, const struct k25_ranked *row);
enum k25_offer k25_top_offer(struct k25_top *top, const struct k25_ranked *row);

/* Puts the rows of the front in the order of value[0], then value[1], then order. */
void k25_front_sort(struct k25_front *front);

/* Forget the rows; `clear` keeps the memory for the next ones. */
void k25_front_clear(struct k25_front *front);
void k25_front_free(struct k25_front *front);
void k25_top_clear(struct k25_top *top);
void k25_top_free(struct k25_top *top);

#endif
