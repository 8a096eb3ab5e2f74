#include "hw/kernel/internal.h"

#include <math.h>

const char *const k25_kernel_class_names[K25_KERNEL_CLASSES + 1] = {
    [K25_KERNEL_GEMM_BF16] = "gemm_bf16", [K25_KERNEL_GEMM_FP8] = "gemm_fp8", [K25_KERNEL_GEMM_FP4] = "gemm_fp4",
    [K25_KERNEL_GEMM_INT4] = "gemm_int4", [K25_KERNEL_BMM] = "bmm",           [K25_KERNEL_ELEMENTWISE] = "elementwise",
    [K25_KERNEL_MOE_BF16] = "moe_bf16",   [K25_KERNEL_MOE_FP8] = "moe_fp8",   [K25_KERNEL_MOE_INT4] = "moe_int4",
    [K25_KERNEL_MOE_FP4] = "moe_fp4",     [K25_KERNEL_MLA] = "mla",           [K25_KERNEL_GQA] = "gqa",
    [K25_KERNEL_INDEXER] = "indexer",     [K25_KERNEL_LINEAR] = "linear",
};
const char *const k25_bound_names[K25_BOUNDS + 1] = {
    [K25_BOUND_FLOOR] = "floor",
    [K25_BOUND_MEMORY] = "memory",
    [K25_BOUND_COMPUTE] = "compute",
    [K25_BOUND_LATENCY] = "latency",
};

#define NONE K25_NO_PARAM

const struct k25_class_params k25_class_params[K25_KERNEL_CLASSES] = {
    [K25_KERNEL_GEMM_BF16] = {K25_GEMM_T0, NONE, NONE, K25_GEMM_MEM, K25_GEMM_MAC, K25_GEMM_K, K25_PEAK_BF16},
    [K25_KERNEL_GEMM_FP8] = {K25_FP8_T0, NONE, NONE, K25_FP8_MEM, K25_FP8_MAC, K25_FP8_K, K25_PEAK_FP8},
    [K25_KERNEL_GEMM_FP4] = {K25_FP4_T0, NONE, NONE, K25_FP4_MEM, K25_FP4_MAC, K25_FP4_K, K25_PEAK_FP4},
    [K25_KERNEL_GEMM_INT4] = {K25_INT4_T0, NONE, NONE, K25_INT4_MEM, K25_INT4_MAC, K25_INT4_K, K25_PEAK_BF16},
    [K25_KERNEL_BMM] = {K25_BMM_T0, NONE, NONE, K25_GEMM_MEM, K25_GEMM_MAC, NONE, K25_PEAK_BF16},
    [K25_KERNEL_ELEMENTWISE] = {K25_ELEMENT_T0, NONE, NONE, K25_GEMM_MEM, K25_GEMM_MAC, NONE, K25_PEAK_BF16},
    [K25_KERNEL_MOE_BF16] = {K25_MOE_BF16_T0, NONE, K25_MOE_EXPERT, K25_MOE_BF16_MEM, K25_MOE_BF16_MAC, K25_MOE_K,
                             K25_PEAK_BF16},
    [K25_KERNEL_MOE_FP8] = {K25_MOE_FP8_T0, NONE, K25_MOE_EXPERT, K25_MOE_FP8_MEM, K25_MOE_FP8_MAC, K25_MOE_K,
                            K25_PEAK_FP8},
    [K25_KERNEL_MOE_INT4] = {K25_MOE_INT4_T0, NONE, NONE, K25_MOE_INT4_MEM, K25_MOE_INT4_MAC, K25_MOE_K, K25_PEAK_BF16},
    [K25_KERNEL_MOE_FP4] = {K25_MOE_FP4_T0, NONE, K25_MOE_EXPERT, K25_MOE_FP4_MEM, K25_MOE_FP4_MAC, K25_MOE_K,
                            K25_PEAK_FP4},
    [K25_KERNEL_MLA] = {K25_MLA_T0, K25_MLA_BATCHED, K25_MLA_SEQUENCE, K25_MLA_MEM, K25_GEMM_MAC, K25_MLA_TOKEN,
                        K25_PEAK_BF16},
    [K25_KERNEL_GQA] = {K25_GQA_T0, NONE, K25_GQA_TILE, K25_GQA_MEM, K25_GEMM_MAC, K25_GQA_TOKEN, K25_PEAK_BF16},
    [K25_KERNEL_INDEXER] = {K25_INDEXER_T0, NONE, NONE, K25_INDEXER_MEM, K25_FP8_MAC, NONE, K25_PEAK_FP8},
    [K25_KERNEL_LINEAR] = {K25_LINEAR_T0, NONE, NONE, K25_LINEAR_MEM, K25_GEMM_MAC, NONE, K25_PEAK_BF16},
};

enum k25_peak k25_peak_in_force(enum k25_peak peak, const struct k25_gpu *gpu)
{
    if (peak == K25_PEAK_FP4 && gpu->peak_fp4_tflops > 0)
        return K25_PEAK_FP4;
    return peak != K25_PEAK_BF16 && gpu->peak_fp8_tflops > 0 ? K25_PEAK_FP8 : K25_PEAK_BF16;
}

/* flop/s */
static double peak_rate(enum k25_peak peak, const struct k25_gpu *gpu)
{
    switch (k25_peak_in_force(peak, gpu)) {
    case K25_PEAK_FP4:
        return gpu->peak_fp4_tflops * 1e12;
    case K25_PEAK_FP8:
        return gpu->peak_fp8_tflops * 1e12;
    case K25_PEAK_BF16:
    case K25_PEAKS:
        break;
    }
    return gpu->peak_bf16_tflops * 1e12;
}

double k25_value_of(enum k25_param id, const struct k25_params *params)
{
    return id == K25_NO_PARAM ? 0 : params->value[id];
}

static enum k25_bound largest(const struct k25_kernel_cost *cost)
{
    const double terms[K25_BOUNDS] = {[K25_BOUND_FLOOR] = cost->floor,
                                      [K25_BOUND_MEMORY] = cost->memory,
                                      [K25_BOUND_COMPUTE] = cost->compute,
                                      [K25_BOUND_LATENCY] = cost->latency};
    enum k25_bound bound = K25_BOUND_FLOOR;
    for (enum k25_bound i = K25_BOUND_MEMORY; i < K25_BOUNDS; i++)
        bound = terms[i] > terms[bound] ? i : bound;
    return bound;
}

/* (a^p + b^p + c^p)^(1/p), with a fast path for the usual p = 4: a fit calls it millions of times. */
static double norm(double p, double a, double b, double c)
{
    if (p != 4) {
        double most = fmax(a, fmax(b, c)); /* powers of ratios neither underflow nor overflow */
        return most > 0 ? most * pow(pow(a / most, p) + pow(b / most, p) + pow(c / most, p), 1 / p) : 0;
    }
    double aa = a * a, bb = b * b, cc = c * c;
    return sqrt(sqrt(aa * aa + bb * bb + cc * cc));
}

struct k25_kernel_cost k25_kernel_cost(const struct k25_kernel_call *call, const struct k25_gpu *gpu,
                                       const struct k25_params *params)
{
    const struct k25_class_params *class = &k25_class_params[call->class];
    double scale = params->value[K25_KERNEL_SCALE];
    double rate = k25_gpu_bandwidth(gpu) * params->value[K25_BANDWIDTH] * params->value[class->eta_mem];

    struct k25_kernel_cost cost;
    cost.floor = scale * (call->launches * params->value[class->t0] + call->items * k25_value_of(class->item, params) +
                          call->batched * k25_value_of(class->batched, params));
    cost.compute = scale * call->flops / (params->value[class->eta_mac] * peak_rate(class->peak, gpu));
    cost.latency = scale * call->serial * k25_value_of(class->step, params);
    cost.memory = scale * call->bytes / rate;
    double joined = norm(params->value[K25_P_NORM], cost.memory, cost.compute, cost.latency);
    double tail = scale * call->tail_bytes / rate;
    cost.memory += tail;
    cost.time = cost.floor + joined + tail;
    cost.bound = largest(&cost);
    return cost;
}

static double pad(double x, double to)
{
    return ceil(x / to) * to;
}

struct k25_kernel_call k25_gemm_call(enum k25_kernel_class class, double m, double n, double k, double weight_bytes,
                                     const struct k25_params *params)
{
    static const double TILE = 64, ACTIVATION = 2;
    /* cuBLAS and Marlin split K over thread blocks, a longer K into more; CUTLASS FP8 and FP4 do not. */
    bool splits = class == K25_KERNEL_GEMM_BF16 || class == K25_KERNEL_GEMM_INT4;
    double half = params->value[K25_K_SPLIT];
    return (struct k25_kernel_call){
        .class = class,
        .launches = 1,
        .bytes = weight_bytes + ACTIVATION * m * (n + k),
        .flops = 2 * pad(m, TILE) * pad(n, TILE) * k,
        .serial = splits ? k * half / (k + half) : k,
        .shape = {m, n, k},
        .elasticity = {.serial_param = K25_K_SPLIT, .serial = splits ? k / (k + half) : 0},
    };
}

struct k25_kernel_call k25_bmm_call(double heads, double m, double n, double k, double weight_bytes)
{
    static const double TILE = 64, ACTIVATION = 2;
    return (struct k25_kernel_call){
        .class = K25_KERNEL_BMM,
        .launches = 1,
        .bytes = weight_bytes + ACTIVATION * heads * m * (n + k),
        .flops = 2 * heads * pad(m, TILE) * n * k,
    };
}

double k25_moe_block(enum k25_kernel_class class, double routed, double local)
{
    static const double marlin[] = {8, 16, 32, 48, 64};
    if (class != K25_KERNEL_MOE_INT4)
        return 16;
    for (int i = 0; i < 5; i++) {
        if (routed / local / marlin[i] < 0.9)
            return marlin[i];
    }
    return 64;
}

enum k25_param k25_activation_of(enum k25_kernel_class class)
{
    return class == K25_KERNEL_MOE_INT4 ? K25_MOE_ACTIVATION : K25_MOE_GROUPED_ACTIVATION;
}

struct k25_kernel_call k25_moe_call(enum k25_kernel_class class, const struct k25_moe_work *work,
                                    const struct k25_params *params)
{
    static const double FURTHER_ROWS = 16;
    double block = k25_moe_block(class, work->routed, work->local);
    double distinct = fmin(work->distinct, work->pairs);
    if (distinct <= 0)
        return (struct k25_kernel_call){.class = class, .launches = 1, .items = work->local};
    double blocks = work->blocks > 0 ? work->blocks : distinct * ceil(work->pairs / distinct / block);
    /* When only the mean load is known: loads differ, so the further blocks of experts grow smoothly with the mean
     * load, independent of the block size, and not in one step for all experts. */
    double further = work->blocks > 0 ? blocks - distinct : fmax(0, work->pairs / FURTHER_ROWS - distinct);
    double reread = params->value[K25_MOE_REREAD], read = distinct + reread * further;
    bool mean = work->blocks <= 0, grows = further > 0;
    return (struct k25_kernel_call){
        .class = class,
        .launches = 1,
        .items = work->local,
        .bytes = work->expert_bytes * read,
        .tail_bytes = work->routed * work->hidden * params->value[k25_activation_of(class)],
        .flops = 2 * blocks * block * work->matrices * work->hidden * work->columns,
        .serial = work->hidden + work->columns,
        .shape = {work->pairs, distinct, work->columns},
        .elasticity = {.bytes_reread = reread * further / read,
                       .bytes_distinct = distinct * (grows ? 1 - reread : 1) / read,
                       .bytes_pairs = mean && grows ? reread * work->pairs / FURTHER_ROWS / read : 0,
                       .flops_distinct = mean ? 1 : 0},
    };
}

/* The smallest power of two >= x. */
static double power_of_two(double x)
{
    return x <= 1 ? 1 : exp2(ceil(log2(x)));
}

struct k25_kernel_call k25_mla_call(const struct k25_attention_work *work, const struct k25_params *params)
{
    static const double BLOCK = 16;
    double walks = work->sequences * (work->separate_rows ? work->rows : 1);
    double blocks = ceil(work->heads * (work->separate_rows ? 1 : work->rows) / BLOCK);
    double parts = power_of_two(floor(work->context / params->value[K25_MLA_SPLIT_TOKENS]));
    double splits = work->splits > 0 ? work->splits : fmin(parts, 2 * work->sms);
    double waves = ceil(walks * blocks * splits / work->sms);
    return (struct k25_kernel_call){
        .class = K25_KERNEL_MLA,
        .launches = 1,
        .batched = walks > 1,
        .items = walks * blocks,
        .bytes = walks * blocks * work->context * work->cache_bytes,
        .flops = 2 * walks * blocks * BLOCK * work->context * (work->key_dim + work->value_dim),
        .serial = waves * work->context / splits,
        .shape = {walks, work->context, work->heads},
        /* Only the split count of a captured graph is continuous; powers of two and whole waves are constant here. */
        .elasticity = {.serial_param = K25_MLA_SPLITS, .serial = work->splits > 0 ? -1 : 0},
    };
}

struct k25_kernel_call k25_gqa_call(const struct k25_attention_work *work, const struct k25_params *params)
{
    static const double BLOCK = 16, BLOCKS_PER_SM = 2, HEAD_DIM = 128;
    double walks = work->sequences * (work->separate_rows ? work->rows : 1);
    double blocks = ceil(work->heads / work->kv_heads * (work->separate_rows ? 1 : work->rows) / BLOCK);
    double tiles = walks * work->kv_heads * blocks;
    double slots = work->sms * BLOCKS_PER_SM;
    double longest = ceil(work->context / params->value[K25_GQA_SPLIT_TOKENS]);
    double splits = work->splits > 0 ? work->splits : fmax(1, fmin(floor(slots / tiles), longest));
    double waves = fmax(1, tiles * splits / slots);
    /* A split is at least the smallest split long: more splits of a short context do not shorten the serial loop. */
    double least = params->value[K25_GQA_SPLIT_TOKENS];
    double walked = fmax(work->context / splits, fmin(work->context, least));
    return (struct k25_kernel_call){
        .class = K25_KERNEL_GQA,
        .launches = 1,
        .items = tiles,
        .bytes = walks * work->context * work->cache_bytes,
        .flops = 2 * tiles * BLOCK * work->context * (work->key_dim + work->value_dim),
        .serial = waves * walked * work->key_dim / HEAD_DIM,
        .elasticity = {.serial_param = K25_GQA_SPLIT_TOKENS, .serial = walked == least ? 1 : 0},
    };
}

struct k25_kernel_call k25_indexer_call(const struct k25_attention_work *work)
{
    static const double SCORE = 4;
    double rows = work->sequences * work->rows;
    return (struct k25_kernel_call){
        .class = K25_KERNEL_INDEXER,
        .launches = 1,
        .bytes = work->sequences * work->context * work->cache_bytes + rows * work->context * SCORE,
        .flops = 2 * rows * work->heads * work->key_dim * work->context,
    };
}

struct k25_kernel_call k25_linear_call(double sequences, double rows, double heads, double key_dim, double value_dim,
                                       double state_bytes)
{
    double state = heads * key_dim * value_dim;
    return (struct k25_kernel_call){
        .class = K25_KERNEL_LINEAR,
        .launches = 1,
        .bytes = sequences * state * state_bytes * (1 + rows),
        .flops = 2 * 3 * sequences * rows * state, /* decay and read, rank-one update, output */
    };
}

struct k25_kernel_call k25_prefill_call(enum k25_kernel_class class, double tokens, double context, double reach,
                                        double heads, double key_dim, double value_dim, double cache_bytes)
{
    double seen = fmin(context + tokens / 2, reach); /* causal: the mean token attends to half of its own chunk */
    return (struct k25_kernel_call){
        .class = class,
        .launches = 1,
        .bytes = (context + tokens) * cache_bytes,
        .flops = 2 * tokens * seen * heads * (key_dim + value_dim),
    };
}
