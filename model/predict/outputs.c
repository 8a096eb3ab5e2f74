#include "model/predict/outputs.h"

#include <math.h>
#include <string.h>

static double count_gpus(const struct k25_question *question)
{
    const struct k25_plan *plan = &question->plan;
    return (double)plan->tp * plan->pp * plan->dp;
}

static double price_per_token(const struct k25_question *question, const struct k25_prediction *p)
{
    double price = question->machine->price_per_hour; /* USD/h over tokens/h */
    return price > 0 ? price / (p->tok_s * 3600) : NAN;
}

/* X(id, name, unit, value, of_step, kind, over, under, doc), as in struct k25_output_info. `value` is an expression of
 * the question q and the prediction p. */
#define OUTPUT_LIST(X)                                                                                                 \
    X(FITS, "fits", "", p->memory.fits, false, TRUTH, NONE, NONE,                                                      \
      "weights, reserve and the cache of this batch fit in memory; when false there is no figure of the step")         \
    X(TOK_S, "tok_s", "tok/s", p->tok_s, true, NUMBER, NONE, STEP, "tokens a second of all sequences together")        \
    X(TPOT, "tpot_ms", "ms", p->tpot * 1e3, true, NUMBER, STEP, NONE,                                                  \
      "step / tokens_per_step: time per output token of one sequence, the first token not in it")                      \
    X(STEP, "step_ms", "ms", p->step * 1e3, true, NUMBER, STEP, NONE,                                                  \
      "one decode step: gpu_busy + gaps + host + bubble")                                                              \
    X(TOK_S_PER_USER, "tok_s_per_user", "tok/s", 1 / p->tpot, true, NUMBER, NONE, STEP,                                \
      "tokens a second of one sequence: 1 / TPOT")                                                                     \
    X(TOK_S_PER_GPU, "tok_s_per_gpu", "tok/s", p->tok_s / count_gpus(q), true, NUMBER, NONE, STEP, "tok_s / gpus")     \
    X(USD_PER_MTOK, "usd_per_mtok", "USD", price_per_token(q, p) * 1e6, true, NUMBER, STEP, NONE,                      \
      "price of a million tokens: price_per_hour of the whole machine, whatever part of it the plan uses; none "       \
      "without a price")                                                                                               \
    X(TOK_S_PER_W, "tok_s_per_w", "tok/s/W", p->tok_s / (count_gpus(q) * k25_power_limit(q)), true, NUMBER, NONE,      \
      STEP,                                                                                                            \
      "tok_s / (gpus x power limit of a GPU): gpu.power_w, or plan.levers.power_limit_w where that is lower; host "    \
      "and idle GPUs not counted")                                                                                     \
    X(GPUS, "gpus", "", count_gpus(q), false, NUMBER, NONE, NONE, "GPUs that the plan uses: tp x pp x dp")             \
    X(TOKENS_PER_STEP, "tokens_per_step", "", p->tokens_per_step, true, NUMBER, NONE, NONE,                            \
      "tokens of one sequence that a step yields; none, as of TPOT and tok/s, when a speculating plan gives no "       \
      "acceptance")                                                                                                    \
    X(GPU_BUSY, "gpu_busy_ms", "ms", p->gpu_busy * 1e3, true, NUMBER, GPU_BUSY, NONE,                                  \
      "kernels + AllReduce + other collectives")                                                                       \
    X(KERNELS, "kernels_ms", "ms", p->kernels * 1e3, true, NUMBER, KERNELS, NONE,                                      \
      "everything on the GPU but collectives")                                                                         \
    X(ALLREDUCE, "allreduce_ms", "ms", p->allreduce * 1e3, true, NUMBER, ALLREDUCE, NONE,                              \
      "all AllReduces of a step: transfer + wait")                                                                     \
    X(ALLREDUCE_TRANSFER, "allreduce_transfer_ms", "ms", p->allreduce_transfer * 1e3, true, NUMBER,                    \
      ALLREDUCE_TRANSFER, NONE, "of it, the transfer, as if all ranks arrived together")                               \
    X(ALLREDUCE_WAIT, "allreduce_wait_ms", "ms", p->allreduce_wait * 1e3, true, NUMBER, ALLREDUCE_WAIT, NONE,          \
      "of it, the wait for the last rank")                                                                             \
    X(ALLREDUCE_SHARE, "allreduce_share", "", p->allreduce_share, true, SHARE, ALLREDUCE, GPU_BUSY,                    \
      "allreduce / gpu_busy")                                                                                          \
    X(OTHER_COLLECTIVES, "other_collectives_ms", "ms", p->other_collectives * 1e3, true, NUMBER, OTHER_COLLECTIVES,    \
      NONE, "gathers, exchanges and sends, transfer and wait")                                                         \
    X(DRAFT, "draft_ms", "ms", p->draft * 1e3, true, NUMBER, DRAFT, NONE, "of gpu_busy, the passes of the draft")      \
    X(BUBBLE, "bubble_ms", "ms", p->bubble * 1e3, true, NUMBER, BUBBLE, NONE,                                          \
      "what a rank of a pipeline waits for the other stages")                                                          \
    X(GAPS, "gaps_ms", "ms", p->gaps * 1e3, true, NUMBER, GAPS, NONE, "idle time between kernels")                     \
    X(HOST, "host_ms", "ms", p->host * 1e3, true, NUMBER, HOST, NONE, "what the host adds to the step")                \
    X(LAUNCHES, "launches", "", p->launches, true, NUMBER, NONE, NONE,                                                 \
      "kernels a step, collectives counted with them")                                                                 \
    X(ALLREDUCES, "allreduces", "", p->allreduces, true, NUMBER, NONE, NONE, "AllReduces a step")                      \
    X(DISTINCT_EXPERTS, "distinct_experts", "", p->step_work.experts, true, NUMBER, NONE, NONE,                        \
      "routed experts that a layer touches, 0 without experts")                                                        \
    X(DISTINCT_EXPERTS_FULLEST_RANK, "distinct_experts_fullest_rank", "", p->step_work.experts_rank, true, NUMBER,     \
      NONE, NONE, "of them on the rank with the most")                                                                 \
    X(WEIGHTS, "weights_gb", "GB", p->memory.weights / 1e9, false, NUMBER, NONE, NONE, "weights on one GPU")           \
    X(KV_POOL, "kv_pool_gb", "GB", p->memory.pool_bytes / 1e9, false, NUMBER, NONE, NONE,                              \
      "what is left for the cache on one GPU")                                                                         \
    X(KV_POOL_TOKENS, "kv_pool_tokens", "tokens", p->memory.pool_tokens, false, NUMBER, NONE, NONE,                    \
      "tokens of cache that fit")                                                                                      \
    X(NEED_TOKENS, "need_tokens", "tokens", p->memory.need_tokens, false, NUMBER, NONE, NONE, "batch x context")       \
    X(LARGEST_BATCH, "largest_batch", "sequences", p->memory.max_batch, false, NUMBER, NONE, NONE,                     \
      "sequences of this context that fit")

#define X(id, name, unit, value, of_step, kind, over, under, doc)                                                      \
    static double value_of_##id(const struct k25_question *q, const struct k25_prediction *p)                          \
    {                                                                                                                  \
        (void)q, (void)p;                                                                                              \
        return value;                                                                                                  \
    }
OUTPUT_LIST(X)
#undef X

const struct k25_output_info k25_output_info[K25_OUTPUTS] = {
#define X(id, name, unit, value, of_step, kind, over, under, doc)                                                      \
    [K25_OUT_##id] = {name, unit, doc, of_step, K25_OUTPUT_##kind, K25_TERM_##over, K25_TERM_##under, value_of_##id},
    OUTPUT_LIST(X)
#undef X
};

const char *const k25_output_names[K25_OUTPUTS + 1] = {
#define X(id, name, unit, value, of_step, kind, over, under, doc) [K25_OUT_##id] = name,
    OUTPUT_LIST(X)
#undef X
};

#define X(id, name, unit, value, of_step, kind, over, under, doc) +1
_Static_assert(0 OUTPUT_LIST(X) == K25_OUTPUTS, "an output without a row");
#undef X

double k25_output_value(const struct k25_question *question, const struct k25_prediction *prediction,
                        enum k25_output output)
{
    const struct k25_output_info *info = &k25_output_info[output];
    return info->of_step && !prediction->memory.fits ? NAN : info->value(question, prediction);
}

bool k25_output_has_interval(enum k25_output output)
{
    return k25_output_info[output].over != K25_TERM_NONE || k25_output_info[output].under != K25_TERM_NONE;
}

enum k25_output k25_output_find(const char *name)
{
    enum k25_output output = 0;
    while (output < K25_OUTPUTS && strcmp(k25_output_names[output], name) != 0)
        output++;
    return output;
}
