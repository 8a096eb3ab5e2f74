/* Explanation of a step: what bounds each of its parts, the ceiling of each lever of the plan, and the gain of
 * speculation for each length of its chain. Slopes are in model/predict/slopes.h.
 */
#ifndef K25_MODEL_PREDICT_EXPLAIN_H
#define K25_MODEL_PREDICT_EXPLAIN_H

#include "model/predict/predict.h"
#include "model/predict/slopes.h"

/* ---- parts ---- */

/* The parts sum to the step: kernels by part of the model, collectives of the draft together with the others. */
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

/* Fills all shares of `prediction`; `slopes` are those of the prediction. */
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
    double ideal;      /* value of the lever: 1 for a switch; links with twice the bandwidth or half the latency of the
                          plan */
    double step, tpot; /* s */
    double tok_s;      /* all sequences together */
};

/* Predicts the step with each lever in turn at its ideal, the others as in the plan. Fails as k25_question_replan
 * does. */
bool k25_ceilings(const struct k25_question *question, const struct k25_params *params,
                  struct k25_ceiling ceilings[K25_LEVERS], struct k25_error *error);

/* ---- speculation ---- */

enum { K25_LONGEST_CHAIN = 8 };

struct k25_chain {
    double step;            /* s */
    double tokens_per_step; /* by k25_marginal_rates; NAN when the plan gives no acceptance */
    double break_even;      /* tokens per step at which speculation gains nothing: step / step without it */
    double tok_s;           /* all sequences together, NAN likewise */
};

/* Predicts the plan with chains of 0 (no speculation) to K25_LONGEST_CHAIN tokens; the plan must use speculation.
 * `*best` is set to the length with the most tokens per second, -1 when the plan gives no acceptance. Fails as
 * k25_question_replan does. */
bool k25_chains(const struct k25_question *question, const struct k25_params *params,
                struct k25_chain chains[K25_LONGEST_CHAIN + 1], int *best, struct k25_error *error);

#endif
