/* Whether two names mean the same GPU: drivers, profilers, nccl-tests, tables and our own files spell them apart
 * ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Server", "rtx-pro-6000-server").
 *
 * What counts of a name are its words with a digit ("h100", "6000") and those that make another product of the same
 * number ("ada", "pro", "ti", "laptop", ...). Makers, series and architectures do not count.
 */
#ifndef K25_HW_GPUS_NAME_H
#define K25_HW_GPUS_NAME_H

#include "hw/gpus/gpu.h"

enum k25_gpu_match {
    K25_GPU_UNTOLD,        /* one of the names says no product */
    K25_GPU_SAME,          /* as far as the names tell */
    K25_GPU_OTHER_EDITION, /* Server, Workstation or Max-Q: the same chip and memory under another limit */
    K25_GPU_OTHER,         /* another product, another form (PCIe, SXM, NVL) or another size of memory */
};

enum k25_gpu_match k25_gpu_match(const struct k25_gpu *gpu, const char *name);

#endif
