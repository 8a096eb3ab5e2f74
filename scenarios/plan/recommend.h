/* The best plan for a scenario: its model on its machine, at a number of sequences, under a limit on TPOT.
 *
 * Every combination of tp, pp, dp, dcp, ep and attention_dp that the machine has GPUs for is predicted, without
 * speculation and, when the scenario says how many drafts are accepted, with chains of 1 to 8 tokens. What fits in
 * memory and keeps the limit is ranked by tok_s, ties by TPOT; plans with the same of both are stood for by the
 * first, which is the simplest. Everything else of the plan stays the scenario's.
 */
#ifndef K25_SCENARIOS_PLAN_RECOMMEND_H
#define K25_SCENARIOS_PLAN_RECOMMEND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/predict/predict.h"
#include "model/predict/uncertainty.h"
#include "scenarios/library/scenario.h"
#include "scenarios/sweep/counts.h"

#define K25_RECOMMENDED 10 /* plans that are kept */
#define K25_RECOMMEND_CHAIN 8
#define K25_DRIVERS 3

struct k25_wish {
    int concurrency;   /* sequences that decode together; 0: the scenario's batch */
    double context;    /* tokens; 0: the scenario's */
    double tpot_limit; /* s; 0: none */
    bool kv_dtypes;    /* try every KV dtype, not only the scenario's */
    bool backends;     /* try every AllReduce that an engine may have, not only the scenario's */
};

struct k25_candidate {
    struct k25_plan plan;
    double tok_s, tpot; /* NAN when it does not fit */
    double missing;     /* bytes a GPU would need on top; 0 or less: it fits */
};

struct k25_recommendation {
    struct k25_sweep_counts counts; /* points: tried; rows: ranked; rejected is not used */
    size_t misfits, slow;           /* of the evaluated: do not fit; fit and are above the limit */
    size_t count;
    struct k25_candidate best[K25_RECOMMENDED]; /* best first */
    struct k25_candidate fastest;               /* least TPOT of those that fit; plan.tp is 0 when none does */
    struct k25_candidate smallest; /* least missing memory of those that do not fit; plan.tp is 0 when none is */
    struct k25_candidate own;      /* the scenario's plan at this concurrency and context; plan.tp is 0: invalid */
};

/* False for a wish or an acceptance that makes no sense, or when memory is out; that nothing fits is no failure.
 */
bool k25_recommend(const struct k25_scenario *scenario, const struct k25_wish *wish,
                   struct k25_recommendation *recommendation, struct k25_error *error);

/* A parameter, and its part of the variance of a comparison (they add up to 1; correlation may make one negative).
 */
struct k25_driver {
    int id;
    double share;
};

/* How sure it is that one plan is faster than another. Both share their parameters, so what they share cancels:
 *
 *     var ln(a/b) = (g_a - g_b)' C (g_a - g_b)         g = d ln tok_s / d ln theta
 *
 * `measured` adds twice the square of the noise: it is the interval of the ratio of two load tests. */
struct k25_comparison {
    double ratio;                 /* tok_s of a / tok_s of b */
    double spread;                /* standard deviation of its logarithm, noise left out */
    struct k25_interval interval; /* 90 %, of the ratio as the parameters leave it open */
    struct k25_interval measured; /* 90 %, with the noise of two measurements */
    bool apart;                   /* `interval` does not hold 1 */
    int repeats;    /* load tests of each that tell them apart 90 times in 100; 0: no number does, or it takes no
                       noise */
    size_t drivers; /* the largest shares first */
    struct k25_driver driver[K25_DRIVERS];
};

bool k25_recommend_compare(const struct k25_question *a, const struct k25_question *b, const struct k25_params *params,
                           const struct k25_uncertainty *uncertainty, struct k25_comparison *comparison,
                           struct k25_error *error);

#endif
