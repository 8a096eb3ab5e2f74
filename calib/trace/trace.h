/* The reader of one torch.profiler (Kineto) Chrome trace: `*.pt.trace.json`, gzip or not.
 *
 * A capture of one rank is a JSON of up to gigabytes, of which GPU kernels, copies, launches and annotations
 * matter and 80-95 % do not. The reader streams: it inflates one piece while it walks the one before, calls back
 * for every event that matters, in the order of the file (which is no order of time), and holds a few megabytes
 * whatever the size. What a file says about itself (rank, clock, device) may stand behind its events, so `struct
 * k25_trace_info` is complete only when the reading is done.
 *
 * Real traces are damaged in many small ways. What is wrong inside one event costs that event, is counted and is
 * no reason to refuse the rest. A file that is cut off, whose checksum is wrong, or that lost more than 1 % of its
 * kernels is refused, with the place, unless `lenient`.
 */
#ifndef K25_CALIB_TRACE_TRACE_H
#define K25_CALIB_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum k25_trace_kind {
    K25_TRACE_KERNEL,
    K25_TRACE_MEMCPY,
    K25_TRACE_MEMSET,
    K25_TRACE_RUNTIME,        /* a call of the CUDA/HIP runtime or driver: launches, graph launches, synchronisation */
    K25_TRACE_GPU_ANNOTATION, /* a range on the GPU's timeline: boundaries only, never GPU time */
    K25_TRACE_ANNOTATION,     /* a range of a CPU thread: ProfilerStep#N, execute_context_..., step[DECODE bs=32] */
    K25_TRACE_KINDS,
};

/* What NCCL kernels launched eagerly say about themselves; nothing of it is there inside CUDA graphs. Texts are ""
 * when absent, numbers -1, and valid during the call only. */
struct k25_trace_collective {
    const char *name;  /* "allreduce", "_allgather_base" */
    const char *dtype; /* "BFloat16" */
    const char *group, *group_description;
    const char *ranks; /* "[0, 1, 2, 3]" as written, cut with "..." by the profiler above 30 ranks */
    int64_t in_elements, out_elements, group_size, sequence;
};

struct k25_trace_event {
    enum k25_trace_kind kind;
    bool bad_time;    /* a lost record: no or negative duration, no or zero start. Leave it out of sums and spans */
    int name_id;      /* dense, from 0 in order of appearance; -1 when the table of names is full */
    const char *name; /* UTF-8 with a zero behind it; lives as long as the info (during the call when name_id is -1) */
    size_t name_length;
    int64_t ts_ns;                                 /* since `base_time_ns` of the info, as in the file; 0 when bad */
    int64_t dur_ns;                                /* 0 when bad */
    int device, stream;                            /* -1 when not said (always for CPU events) */
    int64_t thread;                                /* of CPU events: the tid, or a hash of it when it is text */
    uint64_t correlation;                          /* links launches and kernels of this file; 0 when not said */
    uint64_t external_id;                          /* links to the CPU operator; 0 when not said */
    uint64_t graph_id, graph_node;                 /* 0 when not in a CUDA graph or not said */
    uint64_t bytes;                                /* of a copy or set; 0 when not said */
    const struct k25_trace_collective *collective; /* NULL without */
};

/* What a trace is good for; anything but RANK holds no decode step to time. */
enum k25_trace_use {
    K25_TRACE_RANK,      /* a worker's capture */
    K25_TRACE_NO_GPU,    /* nothing ran on a GPU: CPU-only, an idle window, a profiler that failed to start */
    K25_TRACE_FRONT_END, /* the engine's front-end process (async_llm): not a rank */
    K25_TRACE_CAPTURE,   /* CUDA graphs being captured, not run */
};

struct k25_trace_info {
    int rank; /* -1 when neither the file nor its name says */
    bool rank_from_name;
    int world_size; /* -1 when not said */
    enum k25_trace_use use;
    int64_t base_time_ns; /* what ts counts from, ns since 1970; 0 when ts is absolute or unknown */
    bool has_base_time;
    int resolution_ns;            /* 1; 250 (absolute microseconds through a double); 1000 (integer microseconds) */
    int schema_version;           /* -1 when not said */
    int devices, multiprocessors; /* of deviceProperties; 0 when absent */
    const char *device, *backend, *nccl_version, *trace_id, *trace_name, *vllm_version, *time_unit; /* "" if absent */
    uint64_t json_bytes, file_bytes; /* JSON walked, bytes of the file */

    uint64_t events[K25_TRACE_KINDS]; /* handed out, by kind; bad times included */
    int64_t busy_ns[K25_TRACE_KINDS]; /* sum of their durations, bad times left out */
    uint64_t bad_times[K25_TRACE_KINDS];
    uint64_t cpu_ops, python_functions; /* not handed out */
    uint64_t ignored;                   /* other events not handed out, unknown ones included */
    uint64_t unknown;                   /* of those, events of a category the reader does not know */

    uint64_t damaged_events, damaged_kernels;   /* skipped; the second count those that look like kernels */
    uint64_t first_damage;                      /* offset of the first in the JSON */
    uint64_t damaged_strings, damaged_values;   /* kept: invalid escapes; values missing or unreadable */
    uint64_t invalid_utf8, nonfinite, huge_ids; /* kept: byte sequences; inf and nan; integers over 64 bits */
    uint64_t dropped_names;                     /* events with name_id -1 */
    bool damaged_root;                          /* metadata behind this could not be read */
    bool unterminated;                          /* the list of events is not closed, but every event is whole */
    bool truncated;                             /* cut inside an event or inside the gzip stream */
    bool bad_crc, bad_container; /* gzip checksum wrong; gzip data damaged or followed by something else */
    bool extra_document;         /* another document follows the trace: not read */

    const char **names; /* [name_count], by name_id */
    int name_count;
    struct k25_arena arena; /* where the texts above live */
};

struct k25_trace_options {
    bool lenient;    /* keep what was good of a file that is cut, damaged or has a wrong checksum */
    bool plain_scan; /* the reference walker instead of the AVX2 one: same answers, slower (tests) */
};

/* Called in the order of the file, one call at a time, but not always by the same thread: two of them take turns.
 * False stops the reading, which then fails without touching the error. */
typedef bool k25_trace_visit(void *context, const struct k25_trace_event *event);

/* Reads `path`. `options` may be NULL. `info` is filled whatever comes out of it and k25_trace_info_free must be
 * called on it in any case. What is no trace (a page of HTML, a git-lfs pointer, another profiler's file, ...) is
 * K25_BAD_INPUT; a trace without GPU events is readable: ask k25_trace_check. Uses two threads, but one
 * when called inside a parallel region (several ranks at once), unless nested regions are enabled. */
bool k25_trace_read(const char *path, const struct k25_trace_options *options, k25_trace_visit *visit, void *context,
                    struct k25_trace_info *info, struct k25_error *error);
void k25_trace_info_free(struct k25_trace_info *info);

/* True when the trace can be timed; otherwise says why not: K25_NEGATIVE, for the file itself is in order. */
bool k25_trace_check(const char *path, const struct k25_trace_info *info, struct k25_error *error);

/* The damage that was passed over, as one line for people ("3 events skipped, first at byte 812; ..."), "" when
 * there is none. Returns `out`. */
const char *k25_trace_damage(const struct k25_trace_info *info, char *out, size_t size);

/* The rank that a file's name tells (vLLM, SGLang, HTA), -1 when it tells none. */
int k25_trace_rank_from_name(const char *path);

#endif
