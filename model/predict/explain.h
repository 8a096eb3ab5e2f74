/* Why a step takes what it takes, and what would change it: what bounds its parts, the ceiling of each lever of the
 * plan, and what speculation is worth at each length of its chain. Slopes are in model/predict/slopes.h.
 */
#ifndef K25_MODEL_PREDICT_EXPLAIN_H
#define K25_MODEL_PREDICT_EXPLAIN_H

#include "model/predict/predict.h"
#include "model/predict/slopes.h"

/* ---- parts ---- */

/* They sum to the step: kernels by the part of the model they belong to, collectives of the draft with the others. */
enum k25_share_id {
    K25_SHARE_ATTENTION,
    K25_SHARE_FFN,
    K25_SHARE_HEAD,
    K25_SHARE_DRAFT,
    K25_SHARE_ALLREDUCE_TRANSFER,
    K25_SHARE_ALLREDUCE_WAIT,
    K25_SHARE_OTHER_COLLECTIVES, /* transfer and wait */
    K25_SHARE_GAPS,
    K25_SHARE_HOST,
    K25_SHARE_BUBBLE,
    K25_SHARES,
};
extern const char *const k25_share_names[K25_SHARES + 1]; /* NULL-terminated */

struct k25_share {
    double time;                     /* s a step */
    struct k25_operator_split split; /* sums to the time; all 0 for gaps, host and bubble */
    const char
        *bound; /* the largest part of the split; of waits, gaps and the host the parameter with the largest part;
                   "" where there is no time */
};

/* `slopes` are those of the prediction. */
void k25_shares(const struct k25_question *question, const struct k25_params *params,
                const struct k25_prediction *prediction, const struct k25_slopes *slopes,
                struct k25_share shares[K25_SHARES]);

/* ---- levers ---- */

enum k25_lever {
    K25_LEVER_ALLREDUCE_FREE,
    K25_LEVER_ALLREDUCE_OVERLAP,
    K25_LEVER_ALLREDUCE_NORM,
    K25_LEVER_PERSISTENT_EXPERTS,
    K25_LEVER_SHARED_STREAM,
    K25_LEVER_L2_PINNED,
    K25_LEVER_LINK_BANDWIDTH,
    K25_LEVER_LINK_LATENCY,
    K25_LEVER_SKEW,
    K25_LEVERS,
};
extern const char *const k25_lever_names[K25_LEVERS + 1]; /* keys of plan.levers, NULL-terminated */

struct k25_ceiling {
    double ideal; /* value of the lever: 1 for a switch; links twice as fast and half as far as in the plan */
    double step, tpot, tok_s;
};

/* The step with one lever after the other at its ideal, the others as in the plan. */
bool k25_ceilings(const struct k25_question *question, const struct k25_params *params,
                  struct k25_ceiling ceilings[K25_LEVERS], struct k25_error *error);

/* ---- speculation ---- */

enum { K25_LONGEST_CHAIN = 8 };

struct k25_chain {
    double step;            /* s */
    double tokens_per_step; /* by k25_marginal_rates; NAN when the plan gives no acceptance */
    double break_even;      /* tokens a step at which it is as fast as no speculation: step / step without */
    double tok_s;           /* all sequences together, NAN likewise */
};

/* The plan with chains of 0 (no speculation) to K25_LONGEST_CHAIN tokens; the plan must speculate. `*best` is the
 * length with the most tokens a second, -1 when the plan gives no acceptance. */
bool k25_chains(const struct k25_question *question, const struct k25_params *params,
                struct k25_chain chains[K25_LONGEST_CHAIN + 1], int *best, struct k25_error *error);

#endif
