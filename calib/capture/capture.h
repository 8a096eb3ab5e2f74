/* A capture: what the ranks of one profiling session left behind, boiled down to numbers a fit can use.
 *
 * One rank (`struct k25_rank`) is aggregated while its trace streams by: time by kernel name, the decode steps,
 * and every collective. The ranks together (`struct k25_capture`) separate what one rank cannot: the transfer of a
 * collective, which all ranks share, from the wait for the last one. docs/captures.md has the rules and the
 * formulas.
 *
 * A step runs from the first kernel of one step to the first kernel of the next. Its boundaries come, in this
 * order, from the engine's annotations on the GPU timeline, from annotations on the CPU joined to kernels by
 * correlation, from ProfilerStep ranges, from replays of CUDA graphs, from a kernel that runs once a step.
 * Incomplete first and last steps, steps of another batch and outliers (3 times the median) are left out and
 * counted.
 *
 * Memory: events, launches and annotations of a rank are kept in at most K25_CAPTURE_BYTES (16 bytes a kernel, 24
 * more for one launched alone); totals by name cover the whole file, and `cut` says when the rest did not.
 */
#ifndef K25_CALIB_CAPTURE_CAPTURE_H
#define K25_CALIB_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "calib/rules/kernel_rules.h"
#include "calib/trace/trace.h"

#define K25_CAPTURE_BYTES (36u << 20)
#define K25_CAPTURE_RANKS 1024 /* the most files of one capture */

/* All kernels, copies and sets of one name. */
struct k25_capture_kernel {
    const char *name; /* lives in the rank's trace info */
    int class;        /* of the rules; 0: none matched */
    enum k25_trace_kind kind;
    uint64_t calls, step_calls; /* in the file; in the decode steps that are kept */
    int64_t total_ns, step_ns;
    int64_t min_ns, max_ns;
};

enum k25_step_fate { K25_STEP_KEPT, K25_STEP_PARTIAL, K25_STEP_OTHER_BATCH, K25_STEP_SLOW };

struct k25_capture_step {
    int64_t start_ns;  /* of its first kernel, on the rank's clock */
    int64_t period_ns; /* to the first kernel of the next step; 0 for the last one */
    int64_t busy_ns;   /* union of its kernels', copies' and sets' intervals */
    int64_t end_ns;    /* of what ends last in it */
    int kernels;
    bool decode;             /* nothing but decoding, as far as the source says */
    int sequences, tokens;   /* from the annotation, -1 when it does not say */
    double context;          /* mean tokens in the cache of a sequence, 0 when it does not say */
    enum k25_step_fate fate; /* only the kept take part in means */
};

struct k25_capture_collective {
    int class;         /* allreduce, allgather, ... of the rules */
    int step, ordinal; /* k-th of its class and bytes in the step */
    int64_t start_ns, dur_ns;
    int64_t bytes; /* of the full buffer of one rank, -1 when not said (always inside CUDA graphs) */
};

enum k25_step_source {
    K25_STEPS_GPU_ANNOTATION,
    K25_STEPS_CPU_ANNOTATION, /* joined to kernels by correlation */
    K25_STEPS_CPU_TIME,       /* the same without correlations: the first kernel behind the start of the range */
    K25_STEPS_PROFILER,
    K25_STEPS_GRAPH,
    K25_STEPS_ANCHOR,
    K25_STEPS_NONE, /* no steps found: the whole file stands as one */
    K25_STEPS_SOURCES,
};
extern const char *const k25_step_source_names[K25_STEPS_SOURCES + 1]; /* "gpu_annotation", ... NULL-terminated */

struct k25_rank {
    char file[512];
    int rank;
    bool rank_assumed; /* nothing said which: 0, or the options' */
    struct k25_trace_info info;
    size_t kernels;
    struct k25_capture_kernel *kernel; /* by time in kept steps, then in the file, largest first */
    enum k25_step_source source;
    int launches_per_step; /* graph launches; 0 unless the source is K25_STEPS_GRAPH */
    size_t steps;
    struct k25_capture_step *step; /* in time */
    size_t kept, left_out_partial, left_out_batch, left_out_slow;
    size_t collectives;
    struct k25_capture_collective *collective; /* of kept steps, in time */
    int64_t span_ns, busy_ns;                  /* first start to last end of the GPU's work; union of its intervals */
    int classes;                               /* of the rules */
    int64_t *class_ns;                         /* [classes] in kept steps: sum of durations */
    int64_t *class_own_ns;   /* [classes] what no event that began earlier covers: sums to busy time */
    uint64_t *class_calls;   /* [classes] in kept steps */
    int64_t kernel_ns;       /* sum over the kernels of the whole file */
    int64_t unclassified_ns; /* of it, of class 0 */
    bool cut;                /* steps and collectives cover the first part of the file only */
    /* Means over the kept steps, s. NAN where there is none. */
    double step_period; /* median */
    double gpu_busy;    /* median */
};

/* One class and size of collective over all ranks and kept steps. */
struct k25_capture_group {
    int class;
    int64_t bytes;         /* of the full buffer of one rank, -1 when not said */
    size_t calls;          /* on the rank with the fewest, in kept steps */
    size_t matched;        /* found on every rank */
    double per_step;       /* calls a step */
    double duration;       /* s, mean over ranks and calls */
    double transfer;       /* s, mean: from the last arrival to the mean end. The minimum over ranks without its bias */
    double transfer_least; /* s, mean of the plain minimum over ranks: low by what end_jitter does to a minimum */
    double wait;           /* s, duration - transfer */
    double spread;         /* s, mean of last arrival - first arrival */
    double end_jitter;     /* s, standard deviation of a rank's end around the mean end of its collective */
    double wait_sigma;     /* s, spread of one rank's arrival around its own mean lag, over calls */
    double *rank_wait;     /* [ranks] s, mean a call */
};

struct k25_left_file {
    char file[512];
    char why[256];
};

struct k25_capture {
    int ranks;             /* files read */
    struct k25_rank *rank; /* by rank */
    int world_size;        /* -1: no file says */
    int missings;
    int *missing; /* ranks below world_size without a file: transfer is an upper bound then */
    size_t left_files;
    struct k25_left_file *left_file; /* of folders: what was passed over, and why */
    double *clock_offset;            /* [ranks] s, of each rank's clock against that of the first */
    double clock_sigma;              /* s, standard error of an offset; NAN with one rank */
    size_t groups;
    struct k25_capture_group *group; /* by time in kept steps, largest first */
    size_t matched, unmatched;       /* collectives of kept steps: on every rank; not on every rank */
    size_t steps_common;             /* steps kept on every rank */
    double *rank_wait;               /* [ranks] s a step, over all groups; NAN with one rank */
    int slow_rank;                   /* index in `rank` of the one that waits least by more than chance; -1: none */
    double slow_lag;                 /* s a step that the others wait longer than it, in the mean */
    double step_period, gpu_busy;    /* s, medians over kept steps, mean over ranks; NAN: unknown */
    int sequences, tokens;           /* of the kept steps, -1 unknown or ranks differ */
    double context;                  /* mean over kept steps; 0 unknown */
    const struct k25_kernel_rules *rules;
};

struct k25_capture_options {
    bool lenient;
    int rank;                             /* of a single file that does not tell; -1: take 0 */
    const struct k25_kernel_rules *rules; /* must outlive the capture */
};

/* Reads `count` paths: trace files, or folders whose newest complete set of ranks is taken. Files are read in
 * parallel, with the same result for any number of threads. Two files of one rank, and files of different world
 * sizes, are errors that name both. A capture of one rank has groups without transfer and wait: they are NAN.
 * `capture` is empty after a failure. */
bool k25_capture_read(const char *const *paths, size_t count, const struct k25_capture_options *options,
                      struct k25_capture *capture, struct k25_error *error);
void k25_capture_free(struct k25_capture *capture);

#endif
