/* The writer of a torch.profiler (Kineto) Chrome trace of one rank, for captures made from known numbers: what
 * calib/trace/trace.h reads, Perfetto opens, and k25sim inspect takes for a capture.
 *
 * Events may come in any order. Times are ns since `base_time_ns` and come back exactly. Texts are escaped. A name
 * ending in ".gz" is compressed (ISA-L). The file appears when it is closed, complete or not at all; until then
 * its bytes, as they will be on the disk, are held in memory.
 */
#ifndef K25_CALIB_TRACE_WRITE_H
#define K25_CALIB_TRACE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define K25_TRACE_BASE_NS INT64_C(1767189312000000000) /* what Kineto counts from in late 2025 and 2026 */

struct k25_trace_writer_options {
    int rank, world_size; /* world_size 0: no distributedInfo, as without torch.distributed */
    const char *device;   /* of the GPU; NULL: "" */
    int64_t base_time_ns; /* 0: K25_TRACE_BASE_NS; -1: none is written, times are absolute */
};

/* What an eager NCCL kernel says about its collective. */
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

/* `options` may be NULL: rank 0 without torch.distributed. NULL only when memory is out. */
struct k25_trace_writer *k25_trace_writer_open(const char *path, const struct k25_trace_writer_options *options,
                                               struct k25_error *error);

void k25_trace_write_kernel(struct k25_trace_writer *writer, const struct k25_written_kernel *kernel);
/* A copy ("Memcpy HtoD (Pinned -> Device)") or a set ("Memset (Device)"), told apart by the name. */
void k25_trace_write_copy(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns, int stream,
                          uint64_t correlation, uint64_t bytes);
/* A call of the runtime: "cudaGraphLaunch", "cudaLaunchKernel", "cudaStreamSynchronize". */
void k25_trace_write_call(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns,
                          uint64_t correlation);
/* A range of the engine: on the CPU, or on the GPU's timeline. `id` is the same for both; 0: not written. */
void k25_trace_write_annotation(struct k25_trace_writer *writer, const char *name, int64_t ts_ns, int64_t dur_ns,
                                bool gpu, uint64_t id);

/* Ends the file, writes it and frees the writer. False: what failed, now or in a call before; no file appears. */
bool k25_trace_writer_close(struct k25_trace_writer *writer, struct k25_error *error);
/* Frees the writer without a file; NULL is fine. */
void k25_trace_writer_abandon(struct k25_trace_writer *writer);

#endif
