#include "hw/collective/crossover.h"

#include <math.h>

static bool takes_part(enum k25_contest contest, const struct k25_contestants *contestants, double bytes,
                       enum k25_backend backend)
{
    if (backend >= K25_NCCL_PROTOCOLS)
        return contest != K25_CONTEST_PROTOCOLS && contestants->custom[backend];
    return contest != K25_CONTEST_AUTO || backend == k25_nccl_protocol(bytes, contestants->params);
}

struct k25_contestants k25_all_contestants(const struct k25_group *group, const struct k25_params *params, bool p2p)
{
    struct k25_contestants all = {.group = group, .params = params};
    for (enum k25_backend backend = K25_NCCL_PROTOCOLS; backend < K25_BACKENDS; backend++)
        all.custom[backend] = p2p || !k25_backend_info[backend]->needs_p2p;
    return all;
}

enum k25_backend k25_cheapest_allreduce(enum k25_contest contest, const struct k25_contestants *contestants,
                                        double bytes)
{
    enum k25_backend best = K25_BACKEND_NCCL_LL;
    double least = INFINITY;
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++) {
        if (!takes_part(contest, contestants, bytes, backend))
            continue;
        double time = k25_allreduce_time(backend, bytes, contestants->group, contestants->params);
        if (time < least) {
            best = backend;
            least = time;
        }
    }
    return best;
}

/* The first change in (low, high], whose ends have different fastest backends; a bisection in the logarithm. */
static struct k25_crossover first_change(enum k25_contest contest, const struct k25_contestants *contestants,
                                         double low, double high)
{
    enum k25_backend below = k25_cheapest_allreduce(contest, contestants, low);
    while (high / low - 1 > 1e-9) {
        double middle = sqrt(low * high);
        if (k25_cheapest_allreduce(contest, contestants, middle) == below)
            low = middle;
        else
            high = middle;
    }
    return (struct k25_crossover){
        .bytes = low, .below = below, .above = k25_cheapest_allreduce(contest, contestants, high)};
}

/* Appends the changes of a range in which prices have no jump. */
static size_t walk(enum k25_contest contest, const struct k25_contestants *contestants, double least, double most,
                   struct k25_crossover *crossovers, size_t count)
{
    int steps = (int)ceil(16 * log2(most / least));
    double low = least;
    for (int i = 1; i <= steps && count < K25_MAX_CROSSOVERS; i++) {
        double high = i == steps ? most : k25_geometric_size(least, most, steps + 1, i);
        enum k25_backend last = k25_cheapest_allreduce(contest, contestants, high);
        enum k25_backend winner = k25_cheapest_allreduce(contest, contestants, low);
        /* A step may contain several changes: continue the search after each. */
        while (winner != last && low < high && count < K25_MAX_CROSSOVERS) {
            crossovers[count] = first_change(contest, contestants, low, high);
            low = crossovers[count].bytes * (1 + 2e-9);
            winner = crossovers[count++].above;
        }
        low = high;
    }
    return count;
}

size_t k25_crossovers(enum k25_contest contest, const struct k25_contestants *contestants, double least, double most,
                      struct k25_crossover crossovers[K25_MAX_CROSSOVERS])
{
    double jump = contestants->params->value[K25_NCCL_LL_MAX], after = nextafter(jump, INFINITY);
    if (contest != K25_CONTEST_AUTO || jump < least || after > most)
        return walk(contest, contestants, least, most, crossovers, 0);
    /* NCCL changes its protocol here even if the new one is slower. */
    size_t count = walk(contest, contestants, least, jump, crossovers, 0);
    enum k25_backend below = k25_cheapest_allreduce(contest, contestants, jump);
    enum k25_backend above = k25_cheapest_allreduce(contest, contestants, after);
    if (below != above && count < K25_MAX_CROSSOVERS)
        crossovers[count++] = (struct k25_crossover){.bytes = jump, .below = below, .above = above};
    return walk(contest, contestants, after, most, crossovers, count);
}

bool k25_win_range(enum k25_backend backend, enum k25_contest contest, const struct k25_contestants *contestants,
                   double least, double most, double *from, double *to)
{
    struct k25_crossover crossovers[K25_MAX_CROSSOVERS];
    size_t count = k25_crossovers(contest, contestants, least, most, crossovers), i = 0;
    bool wins = k25_cheapest_allreduce(contest, contestants, least) == backend;
    *from = least;
    for (; !wins && i < count; i++) {
        wins = crossovers[i].above == backend;
        *from = crossovers[i].bytes;
    }
    *to = i < count ? crossovers[i].bytes : most;
    return wins;
}

void k25_contest_prices(const struct k25_contestants *contestants, double bytes, struct k25_contest_prices *prices)
{
    prices->bytes = bytes;
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++)
        prices->time[backend] = takes_part(K25_CONTEST_ALL, contestants, bytes, backend)
                                    ? k25_allreduce_time(backend, bytes, contestants->group, contestants->params)
                                    : NAN;
    prices->left = k25_nccl_protocol(bytes, contestants->params);
    prices->cheapest_auto = k25_cheapest_allreduce(K25_CONTEST_AUTO, contestants, bytes);
    prices->cheapest_all = k25_cheapest_allreduce(K25_CONTEST_ALL, contestants, bytes);
}

double k25_geometric_size(double least, double most, int count, int i)
{
    return least * exp2(log2(most / least) * i / (count - 1));
}
