/* The fastest AllReduce at each message size: times of all backends, and the sizes where the fastest one changes.
 * Independent of models and plans. Sizes are bytes per rank, times in s.
 *
 * One-shot sends (n-1) m through a rank's link and a ring 2(n-1)/n m, but the ring makes 2(n-1) hops: one-shot is
 * faster for small messages, the ring for large ones.
 */
#ifndef K25_HW_COLLECTIVE_CROSSOVER_H
#define K25_HW_COLLECTIVE_CROSSOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/collective/collective.h"

/* Which backends are compared. */
enum k25_contest {
    K25_CONTEST_PROTOCOLS, /* the three protocols of NCCL */
    K25_CONTEST_AUTO,      /* custom kernels and NCCL's default protocol (k25_nccl_protocol) */
    K25_CONTEST_ALL,       /* custom kernels and the fastest protocol: NCCL_PROTO=LL,LL128,Simple, or a tuned host */
    K25_CONTESTS,
};

/* The group that reduces, and which custom kernels are available. Owns nothing. */
struct k25_contestants {
    const struct k25_group *group;   /* of the ranks that reduce */
    const struct k25_params *params; /* of the prices */
    bool custom[K25_BACKENDS];       /* the custom kernels that are compared; entries of NCCL protocols are ignored */
};

/* Returns contestants with every custom kernel that a machine with (`p2p`) or without peer access can run; they point
 * at `group` and `params`. */
struct k25_contestants k25_all_contestants(const struct k25_group *group, const struct k25_params *params, bool p2p);

/* Returns the fastest backend of a contest for `bytes` per rank; of equals the first in the order of enum
 * k25_backend. */
enum k25_backend k25_cheapest_allreduce(enum k25_contest contest, const struct k25_contestants *contestants,
                                        double bytes);

#define K25_MAX_CROSSOVERS 16

/* A size where the fastest backend changes. */
struct k25_crossover {
    double bytes;                  /* relative error 1e-9 */
    enum k25_backend below, above; /* the fastest up to `bytes`, and for larger sizes */
};

/* Finds all changes between `least` and `most` bytes (0 < least <= most), smallest first; returns their number. The
 * range is searched in steps of 2^(1/16): a backend that is fastest over less than that between two ranges of another
 * may be missed. The size where NCCL's default protocol changes is handled exactly. Stops after K25_MAX_CROSSOVERS
 * changes. */
size_t k25_crossovers(enum k25_contest contest, const struct k25_contestants *contestants, double least, double most,
                      struct k25_crossover crossovers[K25_MAX_CROSSOVERS]);

/* Sets `*from` and `*to` to the first contiguous range between `least` and `most` in which `backend` is the fastest.
 * Returns false when there is none; the range is then not meaningful. */
bool k25_win_range(enum k25_backend backend, enum k25_contest contest, const struct k25_contestants *contestants,
                   double least, double most, double *from, double *to);

/* Every backend at one size. */
struct k25_contest_prices {
    double bytes;                                 /* per rank */
    double time[K25_BACKENDS];                    /* s by enum k25_backend; NAN for one that is not available */
    enum k25_backend left;                        /* NCCL's default protocol */
    enum k25_backend cheapest_auto, cheapest_all; /* the fastest of K25_CONTEST_AUTO and K25_CONTEST_ALL */
};

/* Fills `prices` for messages of `bytes`. */
void k25_contest_prices(const struct k25_contestants *contestants, double bytes, struct k25_contest_prices *prices);

/* Returns size `i` (from 0) of `count` (at least 2) on a geometric grid from `least` to `most`. */
double k25_geometric_size(double least, double most, int count, int i);

#endif
