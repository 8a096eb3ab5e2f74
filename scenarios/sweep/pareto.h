/* The best of many rows: the Pareto front in up to three values, and the first N by one value. Memory grows with the
 * rows kept, not with the rows offered. Smaller values are better; the caller negates values to be maximised.
 *
 * A row is on the front unless another row is at least as good in every value and is better in one or came before it.
 * Rows are offered with rising `order`.
 */
#ifndef K25_SCENARIOS_SWEEP_PARETO_H
#define K25_SCENARIOS_SWEEP_PARETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define K25_PARETO_VALUES 3

struct k25_ranked {
    double value[K25_PARETO_VALUES]; /* not NAN */
    uint64_t order;
    size_t at, length; /* offset and bytes of the row's text in a buffer of the caller */
    char *text;        /* `length` bytes, or NULL; a row that is kept has its own copy */
};

enum k25_offer { K25_REFUSED, K25_TAKEN, K25_NO_MEMORY };

/* Initialise both with zeros, except the fields marked "set". */
struct k25_front {
    size_t values; /* set: 1 to 3 */
    size_t count;
    struct k25_ranked *item; /* by value[0], then value[1], when there are two values; else in no order */
    size_t last;             /* the item that dominated the last refused row, compared first: it often does so again */
};

struct k25_top {
    size_t most; /* set: rows kept at most */
    size_t count;
    struct k25_ranked *item; /* by value[0], then order */
};

/* Offer a row. Return whether it was kept (with a copy of its text) or refused; K25_NO_MEMORY leaves the list valid. */
enum k25_offer k25_front_offer(struct k25_front *front, const struct k25_ranked *row);
enum k25_offer k25_top_offer(struct k25_top *top, const struct k25_ranked *row);

/* Sorts the rows of the front by value[0], then value[1], then order. */
void k25_front_sort(struct k25_front *front);

/* Remove all rows; `clear` keeps the array for further rows, `free` releases it. */
void k25_front_clear(struct k25_front *front);
void k25_front_free(struct k25_front *front);
void k25_top_clear(struct k25_top *top);
void k25_top_free(struct k25_top *top);

#endif
