/* The reader of one torch.profiler (Kineto) Chrome trace: `*.pt.trace.json`, gzip or not.
 *
 * The trace of one rank is JSON of up to gigabytes, of which GPU kernels, copies, launches and annotations are needed
 * and 80-95 % are not. The reader streams: it inflates one piece while it parses the one before, and calls back for
 * each event that is needed, in the order of the file (not of time), with a few megabytes of memory for any size. A
 * file's metadata (rank, clock, device) may follow its events, so `struct k25_trace_info` is complete only when the
 * reading is done.
 *
 * Real traces have many kinds of small damage. A damaged event is skipped and counted; the rest is read. A file that is
 * truncated, has a wrong checksum, or lost more than 1 % of its kernels is refused, with the position, unless
 * `lenient`.
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

/* The collective of an NCCL kernel that was launched eagerly; kernels in CUDA graphs do not have it. Texts are "" and
 * numbers -1 when absent; valid during the call only. */
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
    const char *name; /* UTF-8, NUL-terminated; valid as long as the info (during the call when name_id is -1) */
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

/* The kind of a trace; only RANK has decode steps. */
enum k25_trace_use {
    K25_TRACE_RANK,      /* a worker's capture */
    K25_TRACE_NO_GPU,    /* nothing ran on a GPU: CPU-only, an idle window, a profiler that failed to start */
    K25_TRACE_FRONT_END, /* the engine's front-end process (async_llm): not a rank */
    K25_TRACE_CAPTURE,   /* CUDA graphs being captured, not run */
};

struct k25_trace_info {
    int rank; /* -1 when neither the file nor its name has it */
    bool rank_from_name;
    int world_size; /* -1 when not given */
    enum k25_trace_use use;
    int64_t base_time_ns; /* origin of ts, ns since 1970; 0 when ts is absolute or unknown */
    bool has_base_time;
    int resolution_ns;            /* 1; 250 (absolute microseconds through a double); 1000 (integer microseconds) */
    int schema_version;           /* -1 when not given */
    int devices, multiprocessors; /* of deviceProperties; 0 when absent */
    const char *device, *backend, *nccl_version, *trace_id, *trace_name, *vllm_version, *time_unit; /* "" if absent */
    uint64_t json_bytes, file_bytes; /* JSON walked, bytes of the file */

    uint64_t events[K25_TRACE_KINDS]; /* passed to the visitor, by kind, with bad times */
    int64_t busy_ns[K25_TRACE_KINDS]; /* sum of their durations, without bad times */
    uint64_t bad_times[K25_TRACE_KINDS];
    uint64_t cpu_ops, python_functions; /* not passed to the visitor */
    uint64_t ignored;                   /* other events not passed to the visitor */
    uint64_t unknown;                   /* of those, events of an unknown category */

    uint64_t damaged_events, damaged_kernels;   /* skipped; the second counts those that look like kernels */
    uint64_t first_damage;                      /* offset of the first in the JSON */
    uint64_t damaged_strings, damaged_values;   /* kept: invalid escapes; values missing or unreadable */
    uint64_t invalid_utf8, nonfinite, huge_ids; /* kept: byte sequences; inf and nan; integers over 64 bits */
    uint64_t dropped_names;                     /* events with name_id -1 */
    bool damaged_root;                          /* metadata after this could not be read */
    bool unterminated;                          /* the list of events is not closed, but every event is complete */
    bool truncated;                             /* ends inside an event or inside the gzip stream */
    bool bad_crc, bad_container; /* gzip checksum wrong; gzip data damaged or followed by something else */
    bool extra_document;         /* another document follows the trace: not read */

    const char **names; /* [name_count], by name_id */
    int name_count;
    struct k25_arena arena; /* where the texts above live */
};

struct k25_trace_options {
    bool lenient;    /* keep the valid part of a file that is truncated, damaged or has a wrong checksum */
    bool plain_scan; /* the reference parser instead of the AVX2 one: same result, slower (tests) */
};

/* Called for each event in the order of the file, one call at a time, alternately by two threads. When it returns false
 * the reading stops and fails without filling the error. */
typedef bool k25_trace_visit(void *context, const struct k25_trace_event *event);

/* Reads `path` and calls `visit` with `context` for each event. `options` may be NULL. Fills `info`, which the caller
 * releases with k25_trace_info_free, also after a failure. Returns false with K25_BAD_INPUT for a missing or damaged
 * file or one that is not a trace (an HTML page, a git-lfs pointer, another profiler's file, ...), with K25_RESOURCE
 * when it cannot be read or out of memory. A trace without GPU events is valid; see k25_trace_check. Uses two threads;
 * one inside a parallel region (several ranks at once), unless nested regions are enabled. */
bool k25_trace_read(const char *path, const struct k25_trace_options *options, k25_trace_visit *visit, void *context,
                    struct k25_trace_info *info, struct k25_error *error);
void k25_trace_info_free(struct k25_trace_info *info);

/* Returns whether the trace has GPU work of a rank. If not, the error has the reason, with K25_NEGATIVE because the
 * file is valid; `path` is its name in the message. */
bool k25_trace_check(const char *path, const struct k25_trace_info *info, struct k25_error *error);

/* Writes the damage that was skipped as one line ("3 events skipped, first at byte 812; ..."), "" when there is none,
 * to `out` (`size` bytes, cut to fit). Returns `out`. */
const char *k25_trace_damage(const struct k25_trace_info *info, char *out, size_t size);

/* Returns the rank in a file's name (vLLM, SGLang, HTA), -1 when there is none. */
int k25_trace_rank_from_name(const char *path);

#endif
