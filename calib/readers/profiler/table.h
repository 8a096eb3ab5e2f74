/* Tables of `torch.profiler`: the print of `key_averages().table()`, which vLLM keeps as
 * `profiler_out_<rank>.txt`, and the layerwise table of nm-vllm ("name | cuda_time_us | ...").
 *
 * Columns are found by their headings, so any set and order of them is read; a cell carries its own unit. Several
 * tables may be in one file, and their lines may alternate if each writer has its own prefix.
 *
 * The rows of one table overlap: an op, the kernel it launched and the range around both are three rows of the
 * same time. So no column is ever summed; `level` says which rows are kernels, and only those make `kernel_ns`.
 * vLLM prints the first 100 rows only, so even that is a lower bound.
 */
#ifndef K25_CALIB_READERS_PROFILER_TABLE_H
#define K25_CALIB_READERS_PROFILER_TABLE_H

#include <stdint.h>

#include "base/arena.h"
#include "calib/readers/text/evidence.h"

enum k25_row_level {
    K25_LEVEL_OP,         /* something on the CPU; its GPU time is that of the kernels it launched */
    K25_LEVEL_KERNEL,     /* a kernel: no CPU time at all, and no range */
    K25_LEVEL_COPY,       /* "Memcpy ...", "Memset ..." on the GPU */
    K25_LEVEL_ANNOTATION, /* a range on the GPU: covers kernels that have their own rows */
};

/* A time of -1: the table has no such column, or the cell is "--". */
struct k25_profiler_row {
    const char *name;
    bool truncated; /* the name was cut by its writer */
    enum k25_row_level level;
    int line;
    int64_t calls; /* -1: not said */
    int64_t self_cpu_ns, cpu_total_ns;
    int64_t self_device_ns, device_total_ns; /* "CUDA", whatever the GPU is called in the headings */
    int depth;                               /* layerwise tables: how deep the row is nested */
};

struct k25_profiler_table {
    const char *tag; /* what stood in front of its lines: "(EngineCore_DP0 pid=111)"; "" for nothing */
    int line;        /* of the headings */
    bool layerwise;
    bool closed;                                     /* false: the text ends inside the table */
    int64_t self_cpu_total_ns, self_device_total_ns; /* the footer; -1: none. A hint: some versions count twice */
    struct k25_profiler_row *row;
    size_t rows;
    int64_t kernel_ns, copy_ns; /* sums of self_device_ns over the rows of that level */
};

struct k25_profiler_tables {
    int rank; /* from a file name profiler_out_<rank>; -1: none */
    struct k25_profiler_table *table;
    size_t tables;
    struct k25_left_out left_out;
    struct k25_arena arena; /* owns the strings */
};

/* NULL with an error: "no CUDA columns" (a table of a CPU run), "no kernel time" (kernels hidden in CUDA graphs),
 * no table at all, a damaged row or a cut table (strict). `options` may be NULL: strict. */
struct k25_profiler_tables *k25_profiler_tables_read(const char *path, const struct k25_evidence_options *options,
                                                     struct k25_error *error);
/* The same from `size` bytes of text. `name` is the name of the file in messages, and can contain the rank. */
struct k25_profiler_tables *k25_profiler_tables_parse(const char *text, size_t size, const char *name,
                                                      const struct k25_evidence_options *options,
                                                      struct k25_error *error);
void k25_profiler_tables_free(struct k25_profiler_tables *tables);

#endif
