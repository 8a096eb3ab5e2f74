/* The best plan for a scenario: its model on its machine, at a number of sequences, under a limit on TPOT.
 *
 * Every combination of tp, pp, dp, dcp, ep and attention_dp that the machine has GPUs for is predicted, without
 * speculation and, when the scenario gives an acceptance, with chains of 1 to 8 draft tokens. Plans that fit in memory
 * and meet the limit are ranked by tok_s, ties by TPOT; of plans equal in both only the first, the simplest, is kept.
 * All other keys of the plan are the scenario's.
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
    bool backends;     /* try every AllReduce backend that an engine may have, not only the scenario's */
};

struct k25_candidate {
    struct k25_plan plan;
    double tok_s, tpot; /* tok/s of all sequences; s; NAN when it does not fit */
    double missing;     /* bytes of memory that each GPU lacks; 0 or less: it fits */
};

struct k25_recommendation {
    struct k25_sweep_counts counts;             /* points: tried; rows: ranked; rejected is not used */
    size_t misfits, slow;                       /* evaluated plans that do not fit; that fit and exceed the limit */
    size_t count;                               /* entries of `best` */
    struct k25_candidate best[K25_RECOMMENDED]; /* best first */
    struct k25_candidate fastest;               /* least TPOT of those that fit; plan.tp is 0 when none does */
    struct k25_candidate smallest; /* least missing memory of those that do not fit; plan.tp is 0 when none is */
    struct k25_candidate own;      /* the scenario's plan at this concurrency and context; plan.tp is 0: invalid */
};

/* Fills `recommendation`, which owns nothing. Returns true also when no plan fits. Returns false with K25_BAD_INPUT for
 * a negative value in `wish` or an acceptance that cannot be extended to other chains, with K25_RESOURCE when out of
 * memory. */
bool k25_recommend(const struct k25_scenario *scenario, const struct k25_wish *wish,
                   struct k25_recommendation *recommendation, struct k25_error *error);

/* A parameter and its share of the variance of a comparison. Shares add up to 1; correlations can make one negative. */
struct k25_driver {
    enum k25_param id;
    double share;
};

/* The ratio of the throughputs of two plans and its uncertainty. Both depend on the same parameters, so common errors
 * cancel:
 *
 *     var ln(a/b) = (g_a - g_b)' C (g_a - g_b)         g = d ln tok_s / d ln theta
 *
 * `measured` adds twice the square of the noise: it is the interval of the ratio of two load tests. */
struct k25_comparison {
    double ratio;                 /* tok_s of a / tok_s of b */
    double spread;                /* standard deviation of its logarithm, without noise */
    struct k25_interval interval; /* 90 % interval of the ratio from the uncertainty of the parameters */
    struct k25_interval measured; /* 90 % interval with the noise of two measurements */
    bool differs;                 /* `interval` does not contain 1 */
    int repeats;    /* load tests of each plan until the 90 % interval of their measured ratio excludes 1; 0: `differs`
                       is false, or more than 1000 */
    size_t drivers; /* largest shares first */
    struct k25_driver driver[K25_DRIVERS];
};

/* Compares the plans of two questions about the same machine at `params`. Returns false with K25_RESOURCE when out of
 * memory. */
bool k25_recommend_compare(const struct k25_question *a, const struct k25_question *b, const struct k25_params *params,
                           const struct k25_uncertainty *uncertainty, struct k25_comparison *comparison,
                           struct k25_error *error);

#endif
