/* The writer of a torch.profiler (Kineto) Chrome trace of one rank, for simulated captures. The file can be read by
 * calib/trace/trace.h, Perfetto and k25sim inspect.
 *
 * Events may be written in any order. Times are ns since `base_time_ns` and are read back exactly. Texts are escaped. A
 * file whose name ends in ".gz" is compressed (ISA-L). The file is created complete when the writer is closed; until
 * then its bytes are held in memory.
 */
#ifndef K25_CALIB_TRACE_WRITE_H
#define K25_CALIB_TRACE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define K25_TRACE_BASE_NS                                                                                              \
    INT64_C(1767189312000000000) /* Kineto's origin of time in late 2025 and 2026, ns since 1970 */

struct k25_trace_writer_options {
    int rank, world_size; /* world_size 0: no distributedInfo, as without torch.distributed */
    const char *device;   /* of the GPU; NULL: "" */
    int64_t base_time_ns; /* 0: K25_TRACE_BASE_NS; -1: none is written, times are absolute */
};

/* The collective of an eager NCCL kernel. */
struct k25_written_collective {
    const char *name, *dtype; /* "allreduce", "BFloat16" */
    int64_t in_elements, out_elements;
    int group_size;
};

struct k25_written_kernel {
    const char *name;
    int64_t ts_ns, dur_ns;
    int stream;
    uint64_t correlation;                            /* 0: not written */
    uint64_t graph_id, graph_node;                   /* 0: not in a graph */
    const struct k25_written_collective *collective; /* NULL: none */
};

struct k25_trace_writer;

/* Makes a writer of the file `path`. `options` may be NULL: rank 0 without torch.distributed. The caller ends it with
 * k25_trace_writer_close or k25_trace_writer_abandon. Returns NULL with K25_RESOURCE when out of memory. */
struct k25_trace_writer *k25_trace_writer_open(const char *path, const struct k25_trace_writer_options *options,
                                               struct k25_error *error);

/* The functions below copy their arguments and do not fail; k25_trace_writer_close reports an earlier failure. Times
 * and durations are ns. */

void k25_trace_write_kernel(struct k25_trace_writer *writer, const struct k25_written_kernel *kernel);
/* A copy ("Memcpy HtoD (Pinned -> Device)") or a memset ("Memset (Device)"), by its name. */
void k25_trace_write_copy(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns, int stream,
                          uint64_t correlation, uint64_t bytes);
/* A call of the runtime: "cudaGraphLaunch", "cudaLaunchKernel", "cudaStreamSynchronize". */
void k25_trace_write_call(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns,
                          uint64_t correlation);
/* An annotation of the engine on the CPU, or on the GPU's timeline. `id` is the same for both; 0: not written. */
void k25_trace_write_annotation(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns,
                                bool gpu, uint64_t id);

/* Writes the file and frees the writer. Returns false with K25_RESOURCE when writing fails or a call before failed; no
 * file is created then. */
bool k25_trace_writer_close(struct k25_trace_writer *writer, struct k25_error *error);
/* Frees the writer without creating a file; NULL is allowed. */
void k25_trace_writer_abandon(struct k25_trace_writer *writer);

#endif
