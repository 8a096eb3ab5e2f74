/* Which rows of a profiler table are kernels: the only ones whose times may be added up. */
#include <string.h>

#include "calib/readers/profiler/internal.h"

/* What torch and the engines wrap in ranges: on the GPU such a range has no CPU time, like a kernel. */
static bool is_range(const char *name)
{
    static const char *const starts[] = {
        "execute_",
        "nccl:",
        "gloo:",
        "ProfilerStep",
        "## Call",
        "step[",
        "gpu_model_runner:",
        "c10d::",
        "Optimizer.",
        "scheduler.",
        "DistributedDataParallel",
        "Torch-Compiled Region",
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return false;
}

/* In a tree of modules the leaves are kernels. */
static void levels_of_tree(struct k25_profiler_table *table)
{
    for (size_t i = 0; i < table->rows; i++) {
        struct k25_profiler_row *row = &table->row[i];
        bool leaf = i + 1 == table->rows || table->row[i + 1].depth <= row->depth;
        row->level = !leaf || row->depth == 0       ? K25_LEVEL_ANNOTATION
                     : row->level == K25_LEVEL_COPY ? K25_LEVEL_COPY
                                                    : K25_LEVEL_KERNEL;
    }
}

/* A row without CPU time is a kernel, unless it is a range; a range of an unknown name gives itself away by
 * holding more than the footer says all kernels hold (pytorch#60783). */
static enum k25_row_level level_of(const struct k25_profiler_table *table, const struct k25_profiler_row *row)
{
    if (row->level == K25_LEVEL_COPY)
        return row->self_cpu_ns > 0 ? K25_LEVEL_OP : K25_LEVEL_COPY;
    bool more_than_all = table->self_device_total_ns >= 0 && row->self_device_ns > table->self_device_total_ns;
    if (more_than_all || is_range(row->name))
        return K25_LEVEL_ANNOTATION;
    bool on_cpu = row->self_cpu_ns != 0 || row->cpu_total_ns > 0;
    return on_cpu || row->self_device_ns < 0 ? K25_LEVEL_OP : K25_LEVEL_KERNEL;
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void k25_profiler_levels(struct k25_profiler_table *table)
{
    if (table->layerwise)
        levels_of_tree(table);
    for (size_t i = 0; i < table->rows; i++) {
        struct k25_profiler_row *row = &table->row[i];
        if (!table->layerwise)
            row->level = level_of(table, row);
        if (row->self_device_ns > 0) {
            table->kernel_ns = sum(table->kernel_ns, row->level == K25_LEVEL_KERNEL ? row->self_device_ns : 0);
            table->copy_ns = sum(table->copy_ns, row->level == K25_LEVEL_COPY ? row->self_device_ns : 0);
        }
    }
}
