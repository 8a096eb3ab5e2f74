/* The work that one row of a kernel table measured, as shapes and bytes for hw/, and its predicted time. */
#ifndef K25_CALIB_KERNELS_WORK_H
#define K25_CALIB_KERNELS_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/collective/collective.h"
#include "hw/kernel/kernel.h"
#include "hw/kernel/residual.h"

enum k25_work_kind {
    K25_WORK_GEMM,
    K25_WORK_MOE,
    K25_WORK_MLA,        /* the attention kernel alone */
    K25_WORK_MLA_MODULE, /* with projections and small kernels */
    K25_WORK_BMM,
    K25_WORK_GQA,
    K25_WORK_ALLREDUCE, /* NCCL with its own choice of protocol */
    K25_WORK_ALLGATHER, /* and reduce-scatter */
    K25_WORK_CUSTOM,    /* an AllReduce that is not NCCL's */
};

struct k25_gemm_work {
    enum k25_kernel_class class;
    double m, n, k, bytes;
};

struct k25_kernel_work {
    enum k25_work_kind kind;
    const struct k25_gpu *gpu;
    union {
        struct k25_gemm_work gemm; /* K25_WORK_BMM: one product of n x k for each of `heads` */
        struct {
            enum k25_kernel_class class;
            struct k25_moe_work work;
            double small; /* kernels that serve expert parallelism alone */
        } moe;
        struct {
            struct k25_attention_work attention;
            enum k25_kernel_class class; /* of the projections */
            double weight_bytes;         /* a weight of theirs */
        } mla;
        struct k25_attention_work gqa;
        struct {
            double bytes; /* per rank, as the table counts them */
            struct k25_group group;
            enum k25_backend backend; /* K25_WORK_CUSTOM */
        } collective;
    };
    double heads; /* K25_WORK_BMM */
};

/* Returns the predicted time of `work`, a struct k25_kernel_work, in s. A k25_observation_model (calib/fit/fit.h),
 * which says what `slope` is. */
double k25_kernel_work_time(const void *work, const struct k25_params *params, double *slope);

/* The same, times the factors of residual tables; `residuals` may be NULL. */
double k25_kernel_work_time_with(const struct k25_kernel_work *work, const struct k25_params *params,
                                 const struct k25_residuals *residuals);

/* The call that a residual table of the row's class is about: the product, the experts, the attention of an MLA
 * block. False where there is none. */
bool k25_kernel_work_call(const struct k25_kernel_work *work, const struct k25_params *params,
                          struct k25_kernel_call *call);

/* The formats of weights that the tables name; NULL when there is none of that name. */
struct k25_table_dtype {
    const char *name;
    double bytes;                    /* a weight, scales included */
    enum k25_kernel_class gemm, moe; /* K25_KERNEL_CLASSES: no such kernel */
};
const struct k25_table_dtype *k25_table_dtype(const char *name);

/* Bytes of the projections of one MLA block (DeepSeek-V3) with `heads` heads. */
double k25_mla_module_weights(double heads, double weight_bytes);

/* The load of the busiest expert-parallel rank when `tokens` tokens choose `topk` of `experts` each. */
struct k25_expert_load {
    double pairs, distinct;
    double blocks; /* of `block` rows; 0: all experts alike */
};
struct k25_expert_load k25_balanced_load(int tokens, int experts, int topk, int ep);

/* Expert loads from a density x^-alpha, as AIConfigurator's generator draws them, at the E mid-quantiles instead
 * of at random: u_i = 1 - (i + 1/2) / E, x_i = ((hi^(1-alpha) - lo^(1-alpha)) u_i + lo^(1-alpha))^(1/(1-alpha)),
 * with lo, hi = 1, 0.8 tokens when there are more pairs than experts and 0.01, 2 otherwise; scaled to tokens x
 * topk pairs, no expert above `tokens`. The busiest rank holds experts 0, ep, 2 ep, ... of the falling list.
 * `alpha` is neither 0 nor 1; ep divides experts, of which there are at most K25_TABLE_EXPERTS. */
#define K25_TABLE_EXPERTS 4096
struct k25_expert_load k25_power_law_load(int tokens, int experts, int topk, int ep, double alpha, double block);

#endif
