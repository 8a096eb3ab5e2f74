/* What of a capture or a profiler's table tells of which model, plan and build it is: kernels of a step by class, and
 * which AllReduces they are. */
#ifndef K25_CALIB_EVIDENCE_TRAITS_H
#define K25_CALIB_EVIDENCE_TRAITS_H

#include "calib/capture/capture.h"
#include "calib/readers/profiler/table.h"
#include "calib/rules/kernel_rules.h"
#include "model/predict/predict.h"

#define K25_TRAIT_CLASSES 128 /* of the rules: as many are looked at */

struct k25_traits {
    const struct k25_kernel_rules *rules;
    bool cut;                        /* the list of kernels is not whole: small ones are missing */
    double calls[K25_TRAIT_CLASSES]; /* a step, by class of the rules */
    double ns[K25_TRAIT_CLASSES];    /* a step */
    double allreduce[K25_BACKENDS];  /* calls a step of each backend, by the names of their kernels */
    double other_custom;             /* calls a step of AllReduce kernels of no backend here, not NCCL's */
    char allreduce_name[96];         /* the kernel that is called most of them; "" without AllReduces */
};

/* A mean over the ranks with kept steps; all zero when there is none. */
void k25_traits_of_capture(const struct k25_capture *capture, struct k25_traits *traits);

/* `steps`: how many the table covers. */
void k25_traits_of_table(const struct k25_profiler_table *table, const struct k25_kernel_rules *rules, double steps,
                         struct k25_traits *traits);

/* What the model predicts of a step, in the same terms: calls by class, time by class, calls by backend. */
void k25_traits_of_prediction(const struct k25_prediction *prediction, const struct k25_kernel_rules *rules,
                              struct k25_traits *traits);

/* Sums over classes: of a bucket; of the class of that name. */
double k25_traits_bucket(const struct k25_traits *traits, enum k25_bucket bucket, const double *of);
double k25_traits_class(const struct k25_traits *traits, const char *class, const double *of);

/* Calls a step of all AllReduces, and of those that are NCCL's. */
double k25_traits_allreduces(const struct k25_traits *traits);
double k25_traits_nccl(const struct k25_traits *traits);

#endif
