/* The AllReduces that a plan can call: one table, used by plans, prices, comparisons, launch commands and traces.
 *
 * A new backend is a line in K25_CUSTOM_LIST and a file KEY.c with its formula, its slopes and its row. Everything else
 * follows: the values KEY and KEY_then_nccl of plan.allreduce.backend, the limits KEY_max_bytes and KEY_max_rows, the
 * column KEY_us of `explain --collectives`, what `recommend` tries and what `simulate` writes.
 */
#ifndef K25_HW_COLLECTIVE_BACKEND_H
#define K25_HW_COLLECTIVE_BACKEND_H

#include <stdbool.h>

#include "hw/params/params.h"
#include "hw/params/slopes.h"
#include "hw/topology/machine.h"

/*  X(identifier, key, words): the ring of NCCL with each of its protocols; words as in NCCL_PROTO */
#define K25_NCCL_PROTOCOL_LIST(X)                                                                                      \
    X(LL, ll, "LL")                                                                                                    \
    X(LL128, ll128, "LL128")                                                                                           \
    X(SIMPLE, simple, "Simple")

/*  X(identifier, key, words): kernels of the engines ("custom all-reduce") */
#define K25_CUSTOM_LIST(X) X(ONESHOT, oneshot, "one-shot")

/* The protocols of NCCL are 0 to K25_NCCL_PROTOCOLS - 1, the custom kernels K25_NCCL_PROTOCOLS to K25_BACKENDS - 1. */
enum k25_backend {
#define X(id, key, words) K25_BACKEND_NCCL_##id,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
        K25_NCCL_PROTOCOLS,
    K25_LAST_PROTOCOL = K25_NCCL_PROTOCOLS - 1,
#define X(id, key, words) K25_BACKEND_##id,
    K25_CUSTOM_LIST(X)
#undef X
        K25_BACKENDS,
};

extern const char *const k25_backend_names[K25_BACKENDS + 1];    /* "NCCL LL", "one-shot": for output; ends with NULL */
extern const char *const k25_backend_keys[K25_BACKENDS + 1];     /* "nccl_ll", "oneshot": in files; ends with NULL */
extern const char *const k25_nccl_protocols[K25_NCCL_PROTOCOLS]; /* "LL": in NCCL_PROTO */

enum k25_engine { K25_VLLM, K25_SGLANG, K25_ENGINES };
extern const char *const k25_engine_names[K25_ENGINES + 1]; /* "vllm", "sglang"; ends with NULL */

/* How to make an engine use a backend. */
struct k25_backend_start {
    bool offered;         /* the engine has it */
    const char *argument; /* of its command line, without which it uses another backend; NULL: none needed */
};

/* A backend has either `ring` and `ring_slopes`, or `time` and `slopes`. Their arguments are those of
 * k25_allreduce_time (hw/collective/collective.h) and k25_allreduce_slopes (hw/collective/slopes.h), for more than one
 * rank; times in s. A ring makes `hops` hops and sends `volume` bytes through each link; it is the price of gathers
 * too. */
struct k25_backend_info {
    double (*ring)(double hops, double volume, const struct k25_group *group, const struct k25_params *params);
    void (*ring_slopes)(double hops, double volume, const struct k25_group *group, const struct k25_params *params,
                        double weight, struct k25_slopes *slopes);
    double (*time)(double bytes, const struct k25_group *group, const struct k25_params *params);
    void (*slopes)(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                   struct k25_slopes *slopes);
    bool needs_p2p;            /* GPUs must reach each other's memory */
    int most_without_nvlink;   /* ranks on which the engines run it over PCIe; 0: any number */
    const char *beyond;        /* "on more than ...": what happens there; NULL where there is no such limit */
    const char *kernel;        /* name in profiles; calib/rules/kernels.yaml classes it as an allreduce */
    const char *table_backend; /* custom: part of its name in the column `backend` of kernel tables; NULL: in none */
    struct k25_backend_start start[K25_ENGINES]; /* by enum k25_engine */
};

extern const struct k25_backend_info *const k25_backend_info[K25_BACKENDS]; /* by enum k25_backend; static */

#endif
