/* A capture: what the ranks of one profiling session left behind, boiled down to numbers a fit can use.
 *
 * One rank (`struct k25_rank`) is aggregated while its trace streams by: time by kernel name, the decode steps, and every
 * collective. The ranks together (`struct k25_capture`) separate what one rank cannot: the transfer of a collective, which
 * all ranks share, from the wait for the last one.
 *
 * A step runs from the first kernel of one step to the first kernel of the next. Its boundaries come, in this order, from
 * the engine's annotations on the GPU timeline, from annotations on the CPU joined to kernels by correlation, from
 * ProfilerStep ranges, from replays of CUDA graphs, from a kernel that runs once a step. Incomplete first and last steps,
 * steps of another batch and outliers (3 times the median) are left out and counted.
 *
 * Memory: at most K25_CAPTURE_EVENTS kernels of a rank are kept for steps and collectives (16 bytes each); totals by name
 * cover the whole file, and `cut` says when the rest did not.
 */
#ifndef K25_CALIB_CAPTURE_H
#define K25_CALIB_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "calib/kernel_rules.h"
#include "calib/trace.h"

#define K25_CAPTURE_EVENTS 2000000

/* All kernels of one name. */
struct k25_capture_kernel {
    const char *name;   /* lives in the rank's trace info */
    int class;          /* of kernel_rules.h; -1: no rule matched */
    uint64_t calls, step_calls;   /* in the file; in the decode steps that are kept */
    int64_t total_ns, step_ns;
    int64_t min_ns, max_ns;
};

struct k25_capture_step {
    int64_t start_ns;   /* of its first kernel, on the rank's clock */
    int64_t period_ns;  /* to the first kernel of the next step; 0 for the last one */
    int64_t busy_ns;    /* union of its kernels' intervals */
    int64_t end_ns;     /* of its last kernel */
    int kernels;
    int sequences, tokens;  /* from the annotation, -1 when it does not say */
    double context;         /* mean tokens in the cache of a sequence, 0 when it does not say */
    bool kept;              /* takes part in means */
};

struct k25_capture_collective {
    int class;          /* allreduce, allgather, ... of kernel_rules.h */
    int step, ordinal;  /* k-th of its class in the step */
    int64_t start_ns, dur_ns;
    int64_t bytes;      /* of the message, -1 when not said */
};

enum k25_step_source { K25_STEPS_GPU_ANNOTATION, K25_STEPS_CPU_ANNOTATION, K25_STEPS_PROFILER, K25_STEPS_GRAPH,
                       K25_STEPS_ANCHOR, K25_STEPS_NONE };
extern const char *const k25_step_source_names[];

struct k25_rank {
    char file[512];
    int rank;
    struct k25_trace_info info;
    size_t kernels;
    struct k25_capture_kernel *kernel;      /* by total time, largest first */
    enum k25_step_source source;
    size_t steps;
    struct k25_capture_step *step;          /* in time */
    size_t kept;                            /* steps that take part in means */
    size_t left_out_partial, left_out_batch, left_out_slow;
    size_t collectives;
    struct k25_capture_collective *collective; /* of kept steps, in time */
    int64_t span_ns, busy_ns;               /* first to last kernel; union of all kernels' intervals */
    int64_t class_ns[K25_MAX_CLASSES];      /* in kept steps, by class */
    int64_t unclassified_ns;                /* in the whole file */
    bool cut;                               /* more kernels than are kept for steps */
};

/* One class of collective over all ranks and kept steps. */
struct k25_capture_group {
    int class;
    int64_t bytes;          /* of the message, -1 when not said */
    size_t matched;         /* collectives found on every rank */
    double per_step;        /* calls a step */
    double duration;        /* s, mean over ranks and calls */
    double transfer;        /* s, mean of the minimum over ranks, corrected for the bias of a minimum of noise */
    double wait;            /* s, duration - transfer */
    double spread;          /* s, mean of last arrival - first arrival */
    double *rank_wait;      /* s, mean a call, one for each rank */
    double wait_sigma;      /* s, spread of one rank's arrival around its own mean lag, over calls */
};

struct k25_capture {
    int ranks;              /* files read */
    struct k25_rank *rank;  /* by rank */
    double *clock_offset;   /* s, of each rank's clock against rank 0: the median of collective ends */
    size_t groups;
    struct k25_capture_group *group;
    int slow_rank;          /* waits least in every group by more than chance; -1: none */
    double slow_lag;        /* s a step that it arrives later than the mean of the others */
    double step_period, gpu_busy; /* s, medians over kept steps, mean over ranks */
    int sequences;          /* of the kept steps, -1 unknown */
    double context;
};

struct k25_capture_options {
    bool lenient;
    const struct k25_kernel_rules *rules;
};

/* Reads `count` paths: trace files, or folders whose newest complete set of ranks is taken (docs/captures.md). Files are
 * read in parallel. Two files of one rank, and files of different world sizes, are errors that name both. A capture of
 * one rank has groups without transfer and wait: they are NAN. */
bool k25_capture_read(const char *const *paths, size_t count, const struct k25_capture_options *options,
                      struct k25_capture *capture, struct k25_error *error);
void k25_capture_free(struct k25_capture *capture);

#endif
