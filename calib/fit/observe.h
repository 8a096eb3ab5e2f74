/* Evidence as observations: what a capture, a profiler's table, nccl-tests or a load test says, put as "the model
 * predicts this number, that was measured", so that one fit takes all of it (calib/fit/fit.h).
 *
 * A measurement's sigma joins its own noise with `discrepancy`: how far the formulas are off on a number of this kind
 * even at the right parameters. Observations own nothing of what they were read from.
 */
#ifndef K25_CALIB_FIT_OBSERVE_H
#define K25_CALIB_FIT_OBSERVE_H

#include <stddef.h>

#include "base/error.h"
#include "calib/capture/capture.h"
#include "calib/fit/fit.h"
#include "calib/readers/bench/bench.h"
#include "calib/readers/nccl/nccl_tests.h"
#include "calib/readers/profiler/table.h"
#include "model/predict/predict.h"

enum k25_observed_kind {
    K25_OBSERVED_BUCKET,    /* s a step */
    K25_OBSERVED_TRANSFER,  /* s of one AllReduce of `bytes` inside the step */
    K25_OBSERVED_ALLREDUCE, /* the same with the wait, where one rank cannot tell them apart */
    K25_OBSERVED_WAIT,      /* s that the mean rank waits in an AllReduce */
    K25_OBSERVED_JITTER,    /* s, spread of a rank's arrival around its own mean lag */
    K25_OBSERVED_LAG,       /* s that the slow rank arrives later, in one segment */
    K25_OBSERVED_IDLE,      /* s a step in which the GPU is idle */
    K25_OBSERVED_STEP,      /* s */
    K25_OBSERVED_BURST,     /* s of one isolated AllReduce of `bytes` on `group` */
    K25_OBSERVED_KINDS,
};

/* What one observation compares; its context in the fit. */
struct k25_observed {
    enum k25_observed_kind kind;
    enum k25_bucket bucket;            /* K25_OBSERVED_BUCKET */
    enum k25_operator_kind collective; /* K25_OBSERVED_JITTER: of AllReduces or of gathers */
    double bytes;
    struct k25_group group;       /* K25_OBSERVED_BURST */
    struct k25_question question; /* what ran */
    double measured, sigma;       /* s; relative */
    char label[128];              /* "capture DIR: experts": for reports */
    int evidence;                 /* which file or folder it came from: the folds of a cross-validation */
};

struct k25_observations {
    struct k25_observed *list;
    size_t count;
};

void k25_observations_free(struct k25_observations *observations);

/* The predicted number of a struct k25_observed, in s: a k25_observation_model. */
double k25_observed_predict(const void *observed, const struct k25_params *params, double *slope);

struct k25_evidence_source {
    const char *name;   /* of the file, for labels */
    int number;         /* becomes `evidence` */
    double discrepancy; /* relative; 0: the formulas are exact (a closed loop) */
};

/* The question with the batch and context that the capture's annotations say, where they say them. */
void k25_capture_question(const struct k25_capture *capture, const struct k25_question *question,
                          struct k25_question *captured);

/* A capture of the question's step. Batch and context of annotations replace the plan's. Steps must have been found. */
bool k25_observe_capture(const struct k25_capture *capture, const struct k25_question *question,
                         const struct k25_evidence_source *source, struct k25_observations *observations,
                         struct k25_error *error);

/* A table of kernel times by name; how many steps it covers follows from its AllReduce calls. `params`: any valid set,
 * to build the step. */
bool k25_observe_table(const struct k25_profiler_table *table, const struct k25_kernel_rules *rules,
                       const struct k25_question *question, const struct k25_params *params,
                       const struct k25_evidence_source *source, struct k25_observations *observations,
                       struct k25_error *error);

/* AllReduce rows of at most `most` bytes: isolated, on as many of the question's machine's GPUs as ranks took part. */
bool k25_observe_nccl(const struct k25_nccl_tests *tests, const struct k25_question *question, double most,
                      const struct k25_evidence_source *source, struct k25_observations *observations,
                      struct k25_error *error);

/* Load tests at fixed concurrency: the median TPOT at that batch, context = prompt + half of the output. Runs without
 * speculation, with a concurrency and a TPOT; others are passed over. */
bool k25_observe_bench(const struct k25_bench *bench, const struct k25_question *question,
                       const struct k25_evidence_source *source, struct k25_observations *observations,
                       struct k25_error *error);

#endif
