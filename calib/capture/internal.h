/* The parts of the capture reader, between themselves.
 *
 *     capture.c             a capture from its paths: ranks in parallel, then across ranks
 *     capture_set.c         which files of a folder are the capture
 *     capture_rank.c        one rank while its trace streams by: what is kept of it
 *     capture_sort.c        sorting in place
 *     capture_annotation.c  what an engine's annotation says
 *     capture_steps.c       where steps start
 *     capture_replay.c      the same when nobody says: graph replays, a kernel that runs once a step
 *     capture_totals.c      the numbers of steps, classes and kernels
 *     capture_match.c       collectives across ranks
 *     capture_ranks.c       clocks, transfer, wait, the slow rank
 */
#ifndef K25_CALIB_CAPTURE_INTERNAL_H
#define K25_CALIB_CAPTURE_INTERNAL_H

#include "calib/capture/capture.h"

enum {
    K25_SLOTS = 65535, /* kinds of GPU work told apart */
    K25_RUNS = (1 << 24) - 1,
    K25_ANNOTATIONS = 1 << 18,
};

/* One kernel, copy or set; `start` counts from `origin` of the store. */
struct k25_gpu_event {
    uint64_t start : 48, slot : 16;
    uint64_t dur : 40, run : 24;
};

/* Neighbours in the file with one correlation: the kernels of a graph, mostly. After the reading, `launch` is what
 * launched them. */
union k25_run {
    uint64_t correlation; /* 0: not said */
    int64_t launch;       /* index, -1: unknown */
};

struct k25_launch {
    uint64_t correlation;
    int64_t ts_graph; /* time * 2 + whether it launches a graph */
};

/* Kernels told apart: a name, and for collectives that say so their class and size. */
struct k25_slot {
    struct k25_capture_kernel kernel;
    int name_id, next; /* the next slot of the same name, -1: none */
    int64_t bytes;
    bool collective;
};

struct k25_annotation {
    int64_t start, end;
    bool profiler; /* ProfilerStep#N; otherwise the engine's */
    bool decode;   /* nothing but decoding */
    int sequences, tokens;
    double context;
    uint64_t id; /* of the range: the same on every stream; 0: not said */
};

struct k25_annotations {
    struct k25_annotation *list;
    size_t count;
};

/* What is known of a name of the file, by name_id. */
struct k25_name_role {
    int32_t slot; /* the first of its name, -1: none yet */
    int8_t call;  /* of a runtime call: 0 not looked at, 1 no launch, 2 launch, 3 launch of a graph */
};

/* A rank on its way in. */
struct k25_store {
    const struct k25_kernel_rules *rules;
    int collective_class[8]; /* by kind of collective: the class of the rules, -1: none */
    struct k25_gpu_event *event;
    size_t events;
    union k25_run *run;
    size_t runs;
    struct k25_launch *launch;
    size_t launches;
    struct k25_annotations engine_cpu, engine_gpu, profiler_cpu, profiler_gpu;
    struct k25_slot *slot;
    size_t slots;
    struct k25_name_role *role;
    int roles;
    int64_t origin;
    bool started, out_of_memory;
    bool cut, launches_cut; /* events, launches of the rest were not kept */
};

static inline int64_t k25_event_start(const struct k25_store *store, const struct k25_gpu_event *event)
{
    return store->origin + (int64_t)event->start;
}

static inline int64_t k25_launch_time(const struct k25_launch *launch)
{
    return launch->ts_graph >> 1; /* gcc and clang shift in the sign */
}

static inline bool k25_launch_graph(const struct k25_launch *launch)
{
    return (launch->ts_graph & 1) != 0;
}

/* A place where a step starts, and what is known of the step. */
struct k25_boundary {
    int64_t start;
    const struct k25_annotation *says; /* NULL: nothing */
};

struct k25_boundaries {
    struct k25_boundary *list;
    size_t count;
    enum k25_step_source source;
    int launches; /* a step, of K25_STEPS_GRAPH */
};

/* ---- capture_sort.c ---- */
void k25_sort_events(struct k25_gpu_event *events, size_t count);  /* by start, then slot, then duration */
void k25_sort_launches(struct k25_launch *launches, size_t count); /* by correlation, then time */
int64_t k25_median(int64_t *values, size_t count);                 /* the lower one; reorders; 0 of nothing */
int k25_compare_ns(const void *a, const void *b);                  /* of int64_t, for qsort */

/* ---- capture_annotation.c ---- */
/* False: the name is nothing an engine writes around a step. Fills all but the times. */
bool k25_annotation_parse(const char *name, struct k25_annotation *annotation);
/* Sorts, and makes one of those that overlap or have one id: nested ranges, one range for each stream. */
void k25_annotations_merge(struct k25_annotations *annotations);

/* ---- capture_rank.c ---- */
/* Fills `rank` from its file; k25_rank_free in any case. */
bool k25_rank_read(const char *path, const struct k25_capture_options *options, struct k25_rank *rank,
                   struct k25_error *error);
void k25_rank_free(struct k25_rank *rank);

/* ---- capture_steps.c ---- */
/* Runs and launches joined; events sorted. */
bool k25_find_boundaries(struct k25_store *store, struct k25_boundaries *boundaries);

/* ---- capture_replay.c ---- */
/* Each leaves `boundaries->count` 0 when it finds nothing; false: memory. */
bool k25_boundaries_of_graphs(const struct k25_store *store, struct k25_boundaries *boundaries);
bool k25_boundaries_of_anchor(const struct k25_store *store, struct k25_boundaries *boundaries);

/* ---- capture_totals.c ---- */
bool k25_rank_totals(struct k25_store *store, const struct k25_boundaries *boundaries, struct k25_rank *rank);

/* ---- capture_match.c ---- */
/* One collective found on every rank. */
struct k25_match {
    int group, step;
    int64_t *start, *end; /* [ranks], each on its own clock */
};

struct k25_matches {
    size_t count;
    struct k25_match *list;
    int64_t *times; /* owns start and end */
};

bool k25_match_ranks(struct k25_capture *capture, struct k25_matches *matches);
void k25_matches_free(struct k25_matches *matches);

/* ---- capture_ranks.c ---- */
bool k25_compare_ranks(struct k25_capture *capture, const struct k25_matches *matches);

/* ---- capture_set.c ---- */
/* Paths of one capture; those of folders chosen from their names. */
struct k25_capture_files {
    size_t count;
    char (*path)[512];
    bool *from_folder;
};

bool k25_capture_files(const char *const *paths, size_t count, struct k25_capture_files *files,
                       struct k25_capture *capture, struct k25_error *error);
void k25_capture_files_free(struct k25_capture_files *files);
/* Notes a file that is passed over; false: memory. */
bool k25_leave_file(struct k25_capture *capture, const char *file, const char *why);

#endif
