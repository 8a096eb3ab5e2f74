/* Adding single operators. */
#include <math.h>
#include <string.h>

#include "model/step/internal.h"

struct k25_operator *k25_add(struct k25_builder *b, enum k25_operator_id id)
{
    enum { BLOCK = 32 }; /* cleared together: faster than many short runs of zeros */
    _Static_assert(K25_MAX_OPERATORS % BLOCK == 0, "the last block is a whole one");
    struct k25_operator *op = &b->step->op[b->step->count];
    if (b->step->count % BLOCK == 0)
        memset(op, 0, BLOCK * sizeof *op);
    b->step->count++;
    op->id = id;
    op->layers = b->layers;
    op->part = b->part;
    op->calls = b->calls;
    op->copies = b->copies;
    op->rows = b->rows;
    return op;
}

const struct k25_format *k25_format_of(const struct k25_builder *b, enum k25_tensor tensor)
{
    return &b->weights->format[b->mtp && tensor != K25_T_LM_HEAD && tensor != K25_T_EMBEDDING ? K25_T_MTP : tensor];
}

/* Bytes that one call finds in the L2, of the weights that are pinned there. */
static double pinned(struct k25_builder *b, const struct k25_operator *op)
{
    double bytes = fmin(b->pinned, op->calls * op->read);
    b->pinned -= bytes;
    return bytes / op->calls;
}

void k25_add_gemm(struct k25_builder *b, enum k25_operator_id id, enum k25_tensor tensor, double n, double k)
{
    static const enum k25_kernel_class class_of[K25_FORMAT_KINDS] = {
        [K25_BF16] = K25_KERNEL_GEMM_BF16, [K25_FP32] = K25_KERNEL_GEMM_BF16, [K25_FP8] = K25_KERNEL_GEMM_FP8,
        [K25_INT4] = K25_KERNEL_GEMM_INT4, [K25_NVFP4] = K25_KERNEL_GEMM_FP4, [K25_MXFP4] = K25_KERNEL_GEMM_FP4,
    };
    const struct k25_format *format = k25_format_of(b, tensor);
    struct k25_operator *op = k25_add(b, id);
    op->n = n;
    op->k = k;
    op->resident = op->read = n * k * k25_weight_bytes(format);
    op->call = k25_gemm_call(class_of[format->kind], op->rows, n, k, op->read, b->params);
    if (b->pinned > 0)
        op->call.bytes -= pinned(b, op);
}

void k25_add_elementwise(struct k25_builder *b, enum k25_operator_id id, double launches, double elements)
{
    struct k25_operator *op = k25_add(b, id);
    op->call = (struct k25_kernel_call){
        .class = K25_KERNEL_ELEMENTWISE,
        .launches = launches,
        .bytes = launches * op->rows * elements * K25_ACTIVATION,
    };
}

void k25_add_norm(struct k25_builder *b, enum k25_operator_id id)
{
    if (!b->plan->levers.allreduce_norm || b->tp == 1)
        k25_add_elementwise(b, id, 1, 4 * b->architecture->hidden);
}

void k25_add_collective(struct k25_builder *b, enum k25_operator_id id, enum k25_operator_kind kind,
                        double bytes_per_row)
{
    if (b->plan->tp == 1)
        return;
    struct k25_operator *op = k25_add(b, id);
    op->kind = kind;
    op->message = op->rows * bytes_per_row;
}
