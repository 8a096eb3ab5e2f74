/* Which AllReduce is the cheapest at which message size: prices of all backends, and the sizes where the cheapest
 * one changes. Nothing here knows a model or a plan.
 *
 * One-shot sends (n-1) m through a rank's link and a ring 2(n-1)/n m, but the ring makes 2(n-1) hops: small
 * messages go to the one, large ones to the other.
 */
#ifndef K25_HW_COLLECTIVE_CROSSOVER_H
#define K25_HW_COLLECTIVE_CROSSOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/collective/collective.h"

/* Who competes. */
enum k25_contest {
    K25_CONTEST_PROTOCOLS, /* the three protocols of NCCL */
    K25_CONTEST_AUTO,      /* custom kernels and NCCL left to itself (k25_nccl_protocol) */
    K25_CONTEST_ALL,       /* custom kernels and the cheapest protocol: NCCL_PROTO=LL,LL128,Simple, or a tuned host */
    K25_CONTESTS,
};

/* The group that reduces, and which backends may take part beside those of NCCL. */
struct k25_contestants {
    const struct k25_group *group;
    const struct k25_params *params;
    bool custom[K25_BACKENDS]; /* what is said of the protocols of NCCL does not count */
};

/* All backends that a machine with or without peer access can run. */
struct k25_contestants k25_all_contestants(const struct k25_group *group, const struct k25_params *params, bool p2p);

/* The cheapest of a contest for `bytes` per rank; of equals the first in the order of enum k25_backend. */
enum k25_backend k25_cheapest_allreduce(enum k25_contest contest, const struct k25_contestants *contestants,
                                        double bytes);

#define K25_MAX_CROSSOVERS 16

/* A size where the cheapest backend changes. */
struct k25_crossover {
    double bytes; /* `below` wins up to here, `above` beyond; to a relative 1e-9 */
    enum k25_backend below, above;
};

/* All changes between `least` and `most` bytes (0 < least <= most), smallest first; returns how many. The range is
 * walked in steps of 2^(1/16), and a backend that wins over less than that between two wins of another may be
 * passed over; where NCCL left to itself changes its protocol the walk stops, so that this jump is exact. What
 * lies beyond K25_MAX_CROSSOVERS changes is not looked for. */
size_t k25_crossovers(enum k25_contest contest, const struct k25_contestants *contestants, double least, double most,
                      struct k25_crossover crossovers[K25_MAX_CROSSOVERS]);

/* The first range between `least` and `most` in which `backend` wins without a break; false when it wins nowhere. */
bool k25_win_range(enum k25_backend backend, enum k25_contest contest, const struct k25_contestants *contestants,
                   double least, double most, double *from, double *to);

/* Every backend at one size. */
struct k25_contest_prices {
    double bytes;
    double time[K25_BACKENDS];                    /* s by enum k25_backend; NAN for one that does not take part */
    enum k25_backend left;                        /* the protocol that NCCL left to itself takes */
    enum k25_backend cheapest_auto, cheapest_all; /* winners of K25_CONTEST_AUTO and K25_CONTEST_ALL */
};
void k25_contest_prices(const struct k25_contestants *contestants, double bytes, struct k25_contest_prices *prices);

/* Size `i` of `count` (at least 2) on a geometric grid from `least` to `most`. */
double k25_geometric_size(double least, double most, int count, int i);

#endif
