#include "calib/kernels/work.h"

#include <math.h>
#include <string.h>

#include "hw/collective/slopes.h"
#include "hw/kernel/slopes.h"

static const double ACTIVATION = 2; /* bytes: BF16 between kernels */

/* DeepSeek-V3, which the tables of MLA blocks measure. */
static const double HIDDEN = 7168, Q_LORA = 1536, LATENT = 512, ROPE = 64, NOPE = 128, VALUE = 128;

#define NONE K25_KERNEL_CLASSES
static const struct k25_table_dtype dtypes[] = {
    {"bfloat16", 2, K25_KERNEL_GEMM_BF16, K25_KERNEL_MOE_BF16},
    {"fp8", 1, K25_KERNEL_GEMM_FP8, K25_KERNEL_MOE_FP8},
    {"fp8_block", 1 + 4.0 / (128 * 128), K25_KERNEL_GEMM_FP8, K25_KERNEL_MOE_FP8}, /* FP32 scale for 128 x 128 */
    {"nvfp4", 0.5 + 1.0 / 16, K25_KERNEL_GEMM_FP4, K25_KERNEL_MOE_FP4},            /* FP8 scale for 16 */
    {"int4_wo", 0.5 + 2.0 / 32, NONE, K25_KERNEL_MOE_INT4},                        /* BF16 scale for 32 */
    /* 4-bit weights with BF16 activations run in the Marlin kernel of INT4 */
    {"w4a16_mxfp4", 0.5 + 1.0 / 32, NONE, K25_KERNEL_MOE_INT4},
};

const struct k25_table_dtype *k25_table_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    }
    return NULL;
}

double k25_mla_module_weights(double heads, double weight_bytes)
{
    double projections = (Q_LORA + LATENT + ROPE) * HIDDEN + heads * (NOPE + ROPE) * Q_LORA + heads * VALUE * HIDDEN;
    return projections * weight_bytes + heads * (NOPE + VALUE) * LATENT * 2;
}

struct k25_expert_load k25_balanced_load(int tokens, int experts, int topk, int ep)
{
    double pairs = (double)tokens * topk / ep;
    return (struct k25_expert_load){pairs, fmin((double)experts / ep, ceil(pairs)), 0};
}

struct k25_expert_load k25_power_law_load(int tokens, int experts, int topk, int ep, double alpha, double block)
{
    double total = (double)tokens * topk, power = 1 - alpha;
    double low = total > experts ? 1 : 0.01, high = total > experts ? 0.8 * tokens : 2;
    double a = pow(low, power), b = pow(high, power);

    double pairs[K25_TABLE_EXPERTS], sum = 0, capped = 0, running = 0, before = 0;
    for (int i = 0; i < experts; i++) {
        pairs[i] = pow((b - a) * (1 - (i + 0.5) / experts) + a, 1 / power);
        sum += pairs[i];
    }
    for (int i = 0; i < experts; i++) {
        pairs[i] = fmin(pairs[i] / sum * total, tokens);
        capped += pairs[i];
    }

    /* Whole loads that keep the total: differences of the rounded running sum. */
    struct k25_expert_load load = {0, 0, 0};
    for (int i = 0; i < experts; i++) {
        running += pairs[i];
        double rounded = rint(running * total / capped);
        if (i % ep == 0 && rounded > before) {
            load.pairs += rounded - before;
            load.distinct += 1;
            load.blocks += ceil((rounded - before) / block);
        }
        before = rounded;
    }
    return load;
}

/* The parameters and tables that a call is priced with. */
struct pricing {
    const struct k25_gpu *gpu;
    const struct k25_params *params;
    const struct k25_residuals *residuals;
    struct k25_slopes *slopes; /* the slopes of every call's formula are added; NULL: not needed */
};

static double call_time(struct k25_kernel_call call, const struct pricing *p)
{
    double formula = k25_kernel_cost(&call, p->gpu, p->params).time;
    if (p->slopes != NULL) {
        struct k25_kernel_split split = k25_kernel_split(&call, false, p->gpu, p->params);
        k25_kernel_slopes(&call, &split, p->gpu, p->params, 1, p->slopes);
    }
    return p->residuals == NULL ? formula : formula * exp(k25_residual(p->residuals, &call));
}

static double gemm_time(const struct k25_gemm_work *w, const struct pricing *p)
{
    return call_time(k25_gemm_call(w->class, w->m, w->n, w->k, w->bytes, p->params), p);
}

static double bmm_time(double heads, double m, double n, double k, double bytes, const struct pricing *p)
{
    return call_time(k25_bmm_call(heads, m, n, k, bytes), p);
}

static double small_time(double launches, double bytes, const struct pricing *p)
{
    struct k25_kernel_call call = {.class = K25_KERNEL_ELEMENTWISE, .launches = launches, .bytes = bytes};
    return launches == 0 ? 0 : call_time(call, p);
}

/* One attention block as TRITON_MLA runs it: the down-projection, q_b, absorption of kv_b before and after the
 * attention, o_proj, and 5 small kernels (two norms, rope, cache write, output copy). */
static double module_time(const struct k25_kernel_work *w, const struct pricing *p)
{
    const struct k25_attention_work *a = &w->mla.attention;
    double tokens = a->sequences, h = a->heads, weight = w->mla.weight_bytes;
    const double shape[3][2] = {{Q_LORA + LATENT + ROPE, HIDDEN}, {h * (NOPE + ROPE), Q_LORA}, {HIDDEN, h * VALUE}};

    double time = call_time(k25_mla_call(a, p->params), p);
    for (int i = 0; i < 3; i++) {
        struct k25_gemm_work gemm = {w->mla.class, tokens, shape[i][0], shape[i][1],
                                     shape[i][0] * shape[i][1] * weight};
        time += gemm_time(&gemm, p);
    }
    time += bmm_time(h, tokens, LATENT, NOPE, h * LATENT * NOPE * 2, p);
    time += bmm_time(h, tokens, VALUE, LATENT, h * LATENT * VALUE * 2, p);

    double elements = 2 * 2 * Q_LORA + 2 * 2 * (h * ROPE + LATENT + ROPE) + 2 * h * VALUE;
    return time + small_time(5, tokens * elements * ACTIVATION, p);
}

/* The tables count the whole buffer of a gather, the formula one rank's part. */
static double collective_time(const struct k25_kernel_work *w, const struct pricing *p)
{
    const struct k25_group *group = &w->collective.group;
    double bytes = w->collective.bytes;
    bool custom = w->kind == K25_WORK_CUSTOM;
    enum k25_backend backend = custom ? w->collective.backend : k25_nccl_protocol(bytes, p->params);
    if (w->kind == K25_WORK_ALLGATHER) {
        if (p->slopes != NULL)
            k25_allgather_slopes(backend, bytes / group->n, group, p->params, 1, p->slopes);
        return k25_allgather_time(backend, bytes / group->n, group, p->params);
    }
    if (p->slopes != NULL)
        k25_allreduce_slopes(backend, bytes, group, p->params, 1, p->slopes);
    return k25_allreduce_time(backend, bytes, group, p->params);
}

static double work_time(const struct k25_kernel_work *w, const struct pricing *p)
{
    switch (w->kind) {
    case K25_WORK_GEMM:
        return gemm_time(&w->gemm, p);
    case K25_WORK_MOE:
        return call_time(k25_moe_call(w->moe.class, &w->moe.work, p->params), p) + small_time(w->moe.small, 0, p);
    case K25_WORK_MLA:
        return call_time(k25_mla_call(&w->mla.attention, p->params), p);
    case K25_WORK_MLA_MODULE:
        return module_time(w, p);
    case K25_WORK_BMM:
        return bmm_time(w->heads, w->gemm.m, w->gemm.n, w->gemm.k, w->gemm.bytes, p);
    case K25_WORK_GQA:
        return call_time(k25_gqa_call(&w->gqa, p->params), p);
    case K25_WORK_ALLREDUCE:
    case K25_WORK_ALLGATHER:
    case K25_WORK_CUSTOM:
        return collective_time(w, p);
    }
    return NAN;
}

double k25_kernel_work_time(const void *work, const struct k25_params *params, double *slope)
{
    const struct k25_kernel_work *w = work;
    struct k25_slopes slopes = {0};
    const struct pricing p = {w->gpu, params, NULL, slope != NULL ? &slopes : NULL};
    double time = work_time(w, &p);
    for (int id = 0; slope != NULL && id < K25_PARAMS; id++)
        slope[id] = slopes.param[id] / time;
    return time;
}

double k25_kernel_work_time_with(const struct k25_kernel_work *w, const struct k25_params *params,
                                 const struct k25_residuals *residuals)
{
    const struct pricing p = {w->gpu, params, residuals, NULL};
    return work_time(w, &p);
}

bool k25_kernel_work_call(const struct k25_kernel_work *w, const struct k25_params *params,
                          struct k25_kernel_call *call)
{
    switch (w->kind) {
    case K25_WORK_GEMM:
        *call = k25_gemm_call(w->gemm.class, w->gemm.m, w->gemm.n, w->gemm.k, w->gemm.bytes, params);
        break;
    case K25_WORK_MOE:
        *call = k25_moe_call(w->moe.class, &w->moe.work, params);
        break;
    case K25_WORK_MLA:
    case K25_WORK_MLA_MODULE:
        *call = k25_mla_call(&w->mla.attention, params);
        break;
    case K25_WORK_BMM:
    case K25_WORK_GQA:
    case K25_WORK_ALLREDUCE:
    case K25_WORK_ALLGATHER:
    case K25_WORK_CUSTOM:
        return false;
    }
    return k25_residual_class(call->class) && call->shape[0] > 0 && call->shape[1] > 0 && call->shape[2] > 0;
}
