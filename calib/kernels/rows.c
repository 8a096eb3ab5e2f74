#include "calib/kernels/rows.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const double GEMM_ROWS = 256, ABSORB_ROWS = 1024;
static const double COLD_ROWS = 64;       /* of x, at most, for which loading the weights takes most of the time */
static const double MODULE_FLOOR = 18e-6; /* s: a dozen kernels of an MLA block; its fastest rows are all warm */
/* Empirical: with an expert map vLLM's Marlin layer takes 48 us even when no expert is touched, without one 34 at
 * its lightest. The 14 us are booked as small kernels; its source shows one of them (output.zero_), not seven. */
static const double EP_KERNELS = 7;
/* Largest median error wanted. */
static const double GEMM_BAR = 0.08, MOE_BAR = 0.10, MLA_BAR = 0.10, COLLECTIVE_BAR = 0.10;

static const char *text(const struct k25_row_reader *r, int i)
{
    return k25_csv_cell(r->csv, r->row, r->column[i]);
}

/* Cell `i` as a number that is whole and at least `least`. */
static bool whole(const struct k25_row_reader *r, int i, double least, double *value)
{
    const char *cell = text(r, i);
    int line = r->csv->lines[r->row];
    if (!k25_parse_real(cell, value))
        return k25_fail_at(r->error, r->csv->file, line, 0, "%s: '%s' is not a number", r->names[i], cell);
    if (*value < least || *value > 1e12 || *value != floor(*value))
        return k25_fail_at(r->error, r->csv->file, line, 0, "%s: %s, expected a whole number from %g to 1e12",
                           r->names[i], cell, least);
    return true;
}

/* `count` cells from `first` on into `value`. */
static bool wholes(const struct k25_row_reader *r, int first, int count, double *value)
{
    for (int i = 0; i < count; i++) {
        if (!whole(r, first + i, 1, &value[i]))
            return false;
    }
    return true;
}

static bool latency(const struct k25_row_reader *r, int i, double *seconds)
{
    const char *cell = text(r, i);
    int line = r->csv->lines[r->row];
    double us;
    if (!k25_parse_real(cell, &us))
        return k25_fail_at(r->error, r->csv->file, line, 0, "%s: '%s' is not a number", r->names[i], cell);
    if (us <= 0)
        return k25_fail_at(r->error, r->csv->file, line, 0, "%s: %s, expected more than 0", r->names[i], cell);
    *seconds = us * 1e-6;
    return true;
}

__attribute__((format(printf, 2, 3))) static void name_family(struct k25_described_row *d, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->family.name, sizeof d->family.name, format, arguments);
    va_end(arguments);
    snprintf(d->group, sizeof d->group, "%s", d->family.name);
    d->family.cold_percentile = 0.5;
}

/* ---- one function a kind: columns in the order of the lists below ---- */

static bool describe_gemm(const struct k25_row_reader *r, struct k25_described_row *d)
{
    double s[3]; /* m n k */
    if (!wholes(r, 3, 3, s) || !latency(r, 6, &d->row.latency))
        return false;
    const struct k25_table_dtype *dtype = k25_table_dtype(text(r, 2));
    name_family(d, "%s %s %s", text(r, 0), text(r, 1), text(r, 2));
    if (dtype == NULL || dtype->gemm == K25_KERNEL_CLASSES) {
        d->skip = K25_SKIP_DTYPE;
        return true;
    }
    d->family.bar = dtype->gemm == K25_KERNEL_GEMM_BF16 ? GEMM_BAR : 0;
    d->skip = s[0] > GEMM_ROWS ? K25_SKIP_ROWS : K25_SKIPS;
    memcpy(d->row.key, s, sizeof s);
    d->row.traffic = s[1] * s[2] * dtype->bytes;
    d->row.cold_line = s[0] <= COLD_ROWS;
    d->row.work.kind = K25_WORK_GEMM;
    d->row.work.gemm = (struct k25_gemm_work){dtype->gemm, s[0], s[1], s[2], d->row.traffic};
    return true;
}

/* "balanced" is 0, "power_law_A" is A; negative: unknown. */
static double routing_alpha(const char *routing)
{
    static const char power_law[] = "power_law_";
    double alpha;
    if (strcmp(routing, "balanced") == 0)
        return 0;
    if (strncmp(routing, power_law, sizeof power_law - 1) != 0 ||
        !k25_parse_real(routing + sizeof power_law - 1, &alpha) || alpha <= 0 || alpha == 1)
        return -1;
    return alpha;
}

/* Nemotron's experts have no gate: 22 of 512, and 6 of 128 of 2688 x 1856. */
static double expert_matrices(double hidden, double intermediate, double topk)
{
    return topk == 22 || (hidden == 2688 && intermediate == 1856 && topk == 6) ? 2 : 3;
}

static bool describe_moe(const struct k25_row_reader *r, struct k25_described_row *d)
{
    enum { TOKENS, HIDDEN, WIDTH, EXPERTS, TOPK, TP, EP };
    double s[7];
    if (!wholes(r, 3, 7, s) || !latency(r, 11, &d->row.latency))
        return false;
    const struct k25_table_dtype *dtype = k25_table_dtype(text(r, 2));
    double alpha = routing_alpha(text(r, 10));
    name_family(d, "%s %s %s", text(r, 0), text(r, 1), text(r, 2));
    if (dtype != NULL && strcmp(dtype->name, "int4_wo") == 0)
        d->family.bar = MOE_BAR;
    d->skip = dtype == NULL || dtype->moe == K25_KERNEL_CLASSES                           ? K25_SKIP_DTYPE
              : alpha < 0                                                                 ? K25_SKIP_ROUTING
              : fmod(s[EXPERTS], s[EP]) != 0 || s[WIDTH] < s[TP]                          ? K25_SKIP_SHARD
              : s[TOPK] > s[EXPERTS] || s[EXPERTS] > K25_TABLE_EXPERTS || s[TOKENS] > 1e7 ? K25_SKIP_OP
                                                                                          : K25_SKIPS;
    if (d->skip != K25_SKIPS)
        return true;

    int tokens = (int)s[TOKENS], experts = (int)s[EXPERTS], topk = (int)s[TOPK], ep = (int)s[EP];
    double routed = s[TOKENS] * s[TOPK], local = s[EXPERTS] / s[EP];
    struct k25_expert_load load =
        alpha == 0 ? k25_balanced_load(tokens, experts, topk, ep)
                   : k25_power_law_load(tokens, experts, topk, ep, alpha, k25_moe_block(dtype->moe, routed, local));
    double matrices = expert_matrices(s[HIDDEN], s[WIDTH], s[TOPK]), columns = s[WIDTH] / s[TP];
    double expert_bytes = matrices * s[HIDDEN] * columns * dtype->bytes;
    const double key[] = {s[HIDDEN], s[WIDTH], s[EXPERTS], s[TOPK], s[TP], s[EP], alpha, s[TOKENS]};
    memcpy(d->row.key, key, sizeof key);
    d->row.traffic = load.distinct * expert_bytes;
    /* Marlin's rate comes from rows whose distinct experts are certain. */
    d->row.cold_line = s[TOKENS] <= COLD_ROWS && (alpha == 0 || dtype->moe != K25_KERNEL_MOE_INT4);
    bool vllm_marlin = dtype->moe == K25_KERNEL_MOE_INT4 && strncmp(text(r, 0), "vllm", 4) == 0;
    d->row.work.moe.small = vllm_marlin && s[EP] > 1 ? EP_KERNELS : 0;
    d->row.work.kind = K25_WORK_MOE;
    d->row.work.moe.class = dtype->moe;
    d->row.work.moe.work = (struct k25_moe_work){load.pairs, load.distinct, local,  s[HIDDEN],  columns,
                                                 matrices,   expert_bytes,  routed, load.blocks};
    return true;
}

static double cache_element(const char *kv_dtype)
{
    return strcmp(kv_dtype, "bfloat16") == 0 ? 2 : strcmp(kv_dtype, "fp8") == 0 ? 1 : 0;
}

static bool describe_mla(const struct k25_row_reader *r, struct k25_described_row *d)
{
    double s[3]; /* heads batch context */
    if (!wholes(r, 6, 3, s) || !latency(r, 9, &d->row.latency))
        return false;
    bool module = strcmp(text(r, 2), "module") == 0;
    const struct k25_table_dtype *dtype = k25_table_dtype(module ? text(r, 5) : "bfloat16");
    double element = cache_element(text(r, 4));
    name_family(d, "%s %s %s %s kv %s%s%s", text(r, 0), text(r, 1), text(r, 2), text(r, 3), text(r, 4),
                module ? " projections " : "", module ? text(r, 5) : "");
    d->family.bar = module ? MLA_BAR : 0;
    d->family.floor = module ? MODULE_FLOOR : 0;
    d->family.cold_percentile = 0.9;
    d->skip = !module && strcmp(text(r, 2), "kernel") != 0                         ? K25_SKIP_SCOPE
              : dtype == NULL || dtype->gemm == K25_KERNEL_CLASSES || element == 0 ? K25_SKIP_DTYPE
                                                                                   : K25_SKIPS;
    if (d->skip != K25_SKIPS)
        return true;

    static const double KEY = 576, VALUE = 512;
    struct k25_attention_work attention = {.sequences = s[1],
                                           .rows = 1,
                                           .context = s[2],
                                           .heads = s[0],
                                           .key_dim = KEY,
                                           .value_dim = VALUE,
                                           .cache_bytes = KEY * element,
                                           .sms = r->machine->gpu.sms};
    memcpy(d->row.key, s, sizeof s);
    d->row.traffic = s[1] * s[2] * attention.cache_bytes;
    d->row.traffic += module ? k25_mla_module_weights(s[0], dtype->bytes) : 0;
    d->row.cold_line = true;
    d->row.work.kind = module ? K25_WORK_MLA_MODULE : K25_WORK_MLA;
    d->row.work.mla.attention = attention;
    d->row.work.mla.class = dtype->gemm;
    d->row.work.mla.weight_bytes = dtype->bytes;
    return true;
}

static bool describe_absorb(const struct k25_row_reader *r, struct k25_described_row *d)
{
    double s[2]; /* heads tokens */
    if (!wholes(r, 4, 2, s) || !latency(r, 6, &d->row.latency))
        return false;
    const struct k25_table_dtype *dtype = k25_table_dtype(text(r, 3));
    bool before = strcmp(text(r, 2), "mla_gen_pre") == 0, after = strcmp(text(r, 2), "mla_gen_post") == 0;
    name_family(d, "%s %s %s", text(r, 0), text(r, 1), text(r, 3));
    /* The class computes in BF16; what an FP8 product gains or pays beyond its bytes is not in it. */
    d->skip = dtype == NULL || dtype->bytes != 2 ? K25_SKIP_DTYPE
              : !before && !after                ? K25_SKIP_OP
              : s[1] > ABSORB_ROWS               ? K25_SKIP_ROWS
                                                 : K25_SKIPS;
    if (d->skip != K25_SKIPS)
        return true;
    static const double LATENT = 512, HEAD = 128;
    d->row.key[0] = after;
    memcpy(&d->row.key[1], s, sizeof s);
    d->row.traffic = s[0] * LATENT * HEAD * dtype->bytes;
    d->row.cold_line = s[1] <= COLD_ROWS;
    d->row.work.kind = K25_WORK_BMM;
    d->row.work.heads = s[0];
    d->row.work.gemm =
        (struct k25_gemm_work){K25_KERNEL_BMM, s[1], before ? LATENT : HEAD, before ? HEAD : LATENT, d->row.traffic};
    return true;
}

static bool describe_gqa(const struct k25_row_reader *r, struct k25_described_row *d)
{
    enum { HEADS, KV_HEADS, HEAD_DIM, BATCH, CONTEXT };
    double s[5], window;
    if (!wholes(r, 4, 3, s) || !whole(r, 7, 0, &window) || !wholes(r, 8, 2, &s[BATCH]) ||
        !latency(r, 10, &d->row.latency))
        return false;
    double element = cache_element(text(r, 3));
    name_family(d, "%s %s %s kv %s", text(r, 0), text(r, 1), text(r, 2), text(r, 3));
    d->skip = strcmp(text(r, 2), "bfloat16") != 0 || element == 0 ? K25_SKIP_DTYPE
              : s[KV_HEADS] > s[HEADS]                            ? K25_SKIP_OP
                                                                  : K25_SKIPS;
    if (d->skip != K25_SKIPS)
        return true;
    double context = window > 0 ? fmin(window, s[CONTEXT]) : s[CONTEXT];
    /* FlashAttention 2 packs the queries of a key-value head into one tile, and splits the context, only for
     * grouped queries without a window (flash_api.cpp, seqlenq_ngroups_swapped). */
    bool plain = strstr(text(r, 1), "flash_attn_fa2") != NULL && (window > 0 || s[HEADS] == s[KV_HEADS]);
    const double key[] = {s[HEADS], s[KV_HEADS], s[HEAD_DIM], window, s[BATCH], s[CONTEXT]};
    memcpy(d->row.key, key, sizeof key);
    d->row.work.kind = K25_WORK_GQA;
    d->row.work.gqa = (struct k25_attention_work){.sequences = s[BATCH],
                                                  .rows = 1,
                                                  .context = context,
                                                  .heads = s[HEADS],
                                                  .kv_heads = plain ? s[HEADS] : s[KV_HEADS],
                                                  .splits = plain ? 1 : 0,
                                                  .key_dim = s[HEAD_DIM],
                                                  .value_dim = s[HEAD_DIM],
                                                  .cache_bytes = 2 * s[KV_HEADS] * s[HEAD_DIM] * element,
                                                  .sms = r->machine->gpu.sms};
    d->row.traffic = s[BATCH] * context * d->row.work.gqa.cache_bytes;
    d->row.cold_line = true;
    return true;
}

/* The message sizes of decode steps are a separate family with a separate limit. The tables use powers of two. */
static const char *size_range(double bytes)
{
    return bytes < 1000 ? "below 1 KB" : bytes <= 1 << 20 ? "1 KB-1 MB" : "above 1 MB";
}

/* The custom kernel with that name in a table; K25_BACKENDS: none. */
static enum k25_backend custom_of(const char *name)
{
    enum k25_backend backend = K25_NCCL_PROTOCOLS;
    for (; backend < K25_BACKENDS; backend++) {
        const char *part = k25_backend_info[backend]->table_backend;
        if (part != NULL && strstr(name, part) != NULL)
            break;
    }
    return backend;
}

static bool describe_collective(const struct k25_row_reader *r, struct k25_described_row *d)
{
    double s[2]; /* gpus bytes */
    if (!wholes(r, 5, 2, s) || !latency(r, 7, &d->row.latency))
        return false;
    const char *op = text(r, 3), *range = size_range(s[1]);
    enum k25_backend backend = custom_of(text(r, 1));
    bool nccl = strcmp(text(r, 1), "nccl") == 0, custom = backend < K25_BACKENDS;
    int most = custom ? k25_backend_info[backend]->most_without_nvlink : 0;
    bool reduce = strcmp(op, "all_reduce") == 0;
    bool gather = strcmp(op, "all_gather") == 0 || strcmp(op, "reduce_scatter") == 0;
    name_family(d, "%s %s %s %s %g GPUs %s", text(r, 0), text(r, 1), op, text(r, 4), s[0], range);
    snprintf(d->group, sizeof d->group, "%.50s %.50s %s", text(r, 0), text(r, 1), reduce ? "reduce" : "gather");
    d->skip = !nccl && !custom                             ? K25_SKIP_BACKEND
              : !reduce && !(nccl && gather)               ? K25_SKIP_OP
              : custom && strcmp(text(r, 2), "graph") != 0 ? K25_SKIP_EAGER
              : nccl && strcmp(text(r, 4), "half") != 0    ? K25_SKIP_DTYPE
              : most > 0 && s[0] > most                    ? K25_SKIP_FALLBACK
              : s[0] < 2                                   ? K25_SKIP_OP
              : s[0] > r->machine->gpus                    ? K25_SKIP_GPUS
                                                           : K25_SKIPS;
    d->family.bar = d->skip == K25_SKIPS && reduce && strcmp(range, "1 KB-1 MB") == 0 ? COLLECTIVE_BAR : 0;
    if (d->skip != K25_SKIPS)
        return true;
    d->row.key[0] = s[1];
    d->row.work.kind = custom ? K25_WORK_CUSTOM : reduce ? K25_WORK_ALLREDUCE : K25_WORK_ALLGATHER;
    d->row.work.collective.bytes = s[1];
    d->row.work.collective.backend = backend;
    return k25_machine_group(r->machine, (int)s[0], &d->row.work.collective.group, r->error);
}

const struct k25_table_format k25_table_formats[K25_TABLE_KINDS] = {
    [K25_TABLE_GEMM] = {{"engine", "kernel", "dtype", "m", "n", "k", "latency_us"}, describe_gemm},
    [K25_TABLE_MOE] = {{"engine", "kernel", "dtype", "tokens", "hidden", "intermediate", "experts", "topk", "tp", "ep",
                        "routing", "latency_us"},
                       describe_moe},
    [K25_TABLE_MLA] = {{"engine", "kernel", "scope", "dtype", "kv_dtype", "proj_dtype", "heads", "batch", "context",
                        "latency_us"},
                       describe_mla},
    [K25_TABLE_ABSORB] = {{"engine", "kernel", "op", "dtype", "heads", "tokens", "latency_us"}, describe_absorb},
    [K25_TABLE_GQA] = {{"engine", "kernel", "dtype", "kv_dtype", "heads", "kv_heads", "head_dim", "window", "batch",
                        "context", "latency_us"},
                       describe_gqa},
    [K25_TABLE_COLLECTIVE] = {{"engine", "backend", "mode", "op", "dtype", "gpus", "bytes", "latency_us"},
                              describe_collective},
};
