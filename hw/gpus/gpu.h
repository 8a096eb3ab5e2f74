/* One GPU: the figures of its data sheet.
 *
 * Read from hw/gpus/NAME.yaml (docs/formats-machine.md), or described in a machine file. The rates that kernels reach
 * are parameters: `memory.bandwidth` is a share of `bandwidth_gbs`, the `eta_mac` are shares of a peak.
 */
#ifndef K25_HW_GPUS_GPU_H
#define K25_HW_GPUS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"
#include "base/yaml.h"

/* Figures in the units of the file; the functions below give SI. Owns nothing. */
struct k25_gpu {
    char name[64];        /* the vendor's */
    int sms;              /* streaming multiprocessors */
    double memory_mib;    /* as the driver reports it */
    double bandwidth_gbs; /* of its memory, of this edition */
    double l2_mib;
    double peak_bf16_tflops, peak_fp8_tflops, peak_fp4_tflops; /* dense tensor cores, FP32 accumulation; 0: none */
    double power_w;                                            /* default power limit */
    char compute_capability[8];                                /* "12.0"; "" when unknown */
    int pcie_generation, pcie_lanes;                           /* 0: unknown */
    double nvlink_gbs;                                         /* of all its NVLinks, both directions; 0: none */
    bool p2p;             /* whether its driver lets GPUs access each other's memory over PCIe */
    double price_usd;     /* 0: unknown */
    char source[256];     /* of the figures without their own source; "" for a GPU described in a machine file */
    char file[64];        /* NAME of the file with exactly these figures; "" when there is none */
    unsigned unconfirmed; /* bit i: the figure of k25_gpu_fields[i] is not confirmed */
};

/* Memory and L2 in bytes, bandwidth in bytes/s, dense peaks in flop/s. */
static inline double k25_gpu_memory(const struct k25_gpu *gpu)
{
    return gpu->memory_mib * 1048576.0;
}
static inline double k25_gpu_l2(const struct k25_gpu *gpu)
{
    return gpu->l2_mib * 1048576.0;
}
static inline double k25_gpu_bandwidth(const struct k25_gpu *gpu)
{
    return gpu->bandwidth_gbs * 1e9;
}
static inline double k25_gpu_bf16(const struct k25_gpu *gpu)
{
    return gpu->peak_bf16_tflops * 1e12;
}
static inline double k25_gpu_fp8(const struct k25_gpu *gpu)
{
    return gpu->peak_fp8_tflops * 1e12;
}
static inline double k25_gpu_fp4(const struct k25_gpu *gpu)
{
    return gpu->peak_fp4_tflops * 1e12;
}

extern const struct k25_field k25_gpu_fields[]; /* the figures, as a machine file describes a GPU */

/* Resolves names of GPU files, since hw/ does not know the folders. `find` writes the path of the GPU file `name` to
 * `path` (`size` bytes); `from` is the file that contains the name, "" for the command line. An unknown name is
 * K25_BAD_INPUT with the nearest known one. */
struct k25_gpu_finder {
    bool (*find)(const void *context, const char *name, const char *from, char *path, size_t size,
                 struct k25_error *error);
    const void *context; /* passed to `find`; not owned */
};

/* Reads a GPU file (`k25sim: gpu`) into `gpu`. `inputs` may be NULL; its paths start with `prefix` ("machine.gpu").
 * Fails as k25_yaml_read and k25_schema_load do. */
bool k25_gpu_load(const char *path, const char *prefix, struct k25_gpu *gpu, struct k25_inputs *inputs,
                  struct k25_error *error);

/* As k25_gpu_load, from `size` bytes in memory; `name` is used as the file name in messages. `gpu->file` is "". */
bool k25_gpu_parse(const char *text, size_t size, const char *name, const char *prefix, struct k25_gpu *gpu,
                   struct k25_inputs *inputs, struct k25_error *error);

/* Reads the GPU of a machine file: the name of a GPU file, a mapping {base: NAME, KEY: VALUE, ...} that changes some of
 * that file's figures, or a mapping with all figures. `file` is the file of `node`, `prefix` and `inputs` as above.
 * Fails with K25_BAD_INPUT at the position of the name or figure, K25_RESOURCE when out of memory. */
bool k25_gpu_read(const struct k25_yaml_node *node, const char *file, const char *prefix,
                  const struct k25_gpu_finder *finder, struct k25_gpu *gpu, struct k25_inputs *inputs,
                  struct k25_error *error);

/* Sets one figure as --set does; `key` is a key of k25_gpu_fields. Fails as k25_schema_set does; `gpu` is then
 * unchanged. */
bool k25_gpu_set(struct k25_gpu *gpu, const char *prefix, const char *key, const char *value, struct k25_inputs *inputs,
                 struct k25_error *error);

/* Replaces the whole GPU by that of the file `name`, as --set does. On failure `gpu` is unchanged. */
bool k25_gpu_exchange(struct k25_gpu *gpu, const char *prefix, const char *name, const struct k25_gpu_finder *finder,
                      struct k25_inputs *inputs, struct k25_error *error);

/* Writes the keys of the unconfirmed figures, "l2_mib, sms", or "" to `out` (`size` bytes). Returns `out`. */
const char *k25_gpu_unconfirmed(const struct k25_gpu *gpu, char *out, size_t size);

/* Writes `gpu: NAME`, or `gpu:` with all figures, as in a machine file: k25_gpu_read reads the same GPU from it,
 * without `source` and `unconfirmed` in the second form. */
void k25_gpu_print(FILE *out, const struct k25_gpu *gpu);

#endif
