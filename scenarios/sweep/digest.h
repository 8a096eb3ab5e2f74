/* What is said about the rows of a sweep besides the rows: counts, and the best of each group. */
#ifndef K25_SCENARIOS_SWEEP_DIGEST_H
#define K25_SCENARIOS_SWEEP_DIGEST_H

#include "scenarios/sweep/frame.h"
#include "scenarios/sweep/pareto.h"

#define K25_SWEEP_REASONS 64
#define K25_SWEEP_GROUPS 100000
#define K25_SWEEP_GROUP_KEY 1024 /* bytes of the cells that name a group */

struct k25_sweep_reason {
    char text[224]; /* why plans are invalid, their numbers taken out: "plan.tp: N does not divide the N MLA heads"
                     */
    uint64_t count;
};

struct k25_sweep_counts {
    uint64_t points;    /* gone through: evaluated + invalid + rejected by a constraint on the plan alone */
    uint64_t evaluated; /* predicted */
    uint64_t rows;      /* written: evaluated less rejected */
    uint64_t rejected[K25_SWEEP_CONSTRAINTS]; /* by the first constraint that a point does not meet */
    size_t reasons;
    struct k25_sweep_reason reason[K25_SWEEP_REASONS]; /* the last stands for all further ones when the list is full */
};

/* Adds `count` points that are invalid for the reason that `message` gives. */
void k25_sweep_count_invalid(struct k25_sweep_counts *counts, const char *message, uint64_t count);
void k25_sweep_counts_add(struct k25_sweep_counts *sum, const struct k25_sweep_counts *more);
void k25_sweep_counts_clear(struct k25_sweep_counts *counts);

struct k25_sweep_group {
    char *key; /* its cells, each with a \x1f behind it */
    size_t key_length, key_room;
    struct k25_front front; /* of two or three objectives */
    struct k25_top top;     /* by the first objective */
};

struct k25_digest {
    size_t objectives, most;
    bool maximise[K25_SWEEP_OBJECTIVES];
    size_t count, room; /* in the order of their first row */
    struct k25_sweep_group *group;
    size_t slots;  /* a power of two */
    size_t *table; /* index + 1 of a group, 0: free */
    size_t last;   /* the group of the last row: neighbours mostly share it */
};

/* The cells of a row that name its group, each with a \x1f behind it, cut where they would be longer than `key`.
 * Returns the length. */
size_t k25_digest_key(const struct k25_sweep_frame *frame, const struct k25_sweep_cell *cells,
                      char key[K25_SWEEP_GROUP_KEY]);

void k25_digest_open(const struct k25_sweep_frame *frame, struct k25_digest *digest);
/* `value` are the objectives as they are printed; a NAN among them keeps the row out. `text` may be NULL
 * (scenarios/sweep/pareto.h). */
bool k25_digest_offer(struct k25_digest *digest, const char *key, size_t key_length,
                      const double value[K25_SWEEP_OBJECTIVES], uint64_t order, size_t at, char *text, size_t length,
                      struct k25_error *error);
/* Takes over what another digest kept of rows whose texts stand in `rows`, its orders counted from `order`. */
bool k25_digest_merge(struct k25_digest *digest, const struct k25_digest *other, const char *rows, uint64_t order,
                      struct k25_error *error);
/* The same from the rows themselves, whole lines; `*count` grows by their number. False with an error for a row
 * that is none. */
bool k25_digest_read(struct k25_digest *digest, const struct k25_sweep_frame *frame, const char *rows, size_t size,
                     uint64_t *count, struct k25_error *error);
/* Forgets the rows and keeps the memory. */
void k25_digest_clear(struct k25_digest *digest);
void k25_digest_close(struct k25_digest *digest);

/* An objective's sign: what is to be large counts as small. */
static inline double k25_digest_value(const struct k25_digest *digest, size_t objective, double value)
{
    return digest->maximise[objective] ? -value : value;
}

#endif
