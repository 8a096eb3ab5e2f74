#include "scenarios/library/outputs.h"

#include <math.h>
#include <string.h>

#define P view->prediction
#define MACHINE view->question->machine

static double gpus(const struct k25_output_view *view)
{
    const struct k25_plan *plan = &view->question->plan;
    return (double)plan->tp * plan->pp * plan->dp;
}

static double or_nothing(double value)
{
    return value > 0 ? value : NAN;
}

/* X(name, unit, of_step, truth, value, doc), as in struct k25_named_output. The price is USD/h over tokens/h. The power
 * is the limit of the GPUs that the plan uses: an upper bound of what they draw, without the host. */
// clang-format off
#define OUTPUTS(X) \
    X(fits, "", false, true, P->memory.fits, "weights, reserve and the cache of this batch fit in memory") \
    X(tok_s, "tok/s", true, false, P->tok_s, "tokens a second of all sequences together") \
    X(tpot_ms, "ms", true, false, P->tpot * 1e3, "time per output token of one sequence") \
    X(step_ms, "ms", true, false, P->step * 1e3, "one decode step: gpu_busy + gaps + host + bubble") \
    X(tok_s_per_user, "tok/s", true, false, 1 / P->tpot, "tokens a second of one sequence") \
    X(tok_s_per_gpu, "tok/s", true, false, P->tok_s / gpus(view), "tokens a second of all sequences, over the GPUs that the plan uses") \
    X(usd_per_mtok, "USD", true, false, or_nothing(MACHINE->price_per_hour) / (P->tok_s * 3600) * 1e6, "price of a million tokens: the whole machine's price_per_hour; nothing without one") \
    X(tok_s_per_w, "tok/s/W", true, false, P->tok_s / (gpus(view) * MACHINE->gpu.power_w), "tokens a second over gpu.power_w of the GPUs that the plan uses") \
    X(gpus, "", false, false, gpus(view), "GPUs that the plan uses: tp x pp x dp") \
    X(tokens_per_step, "", true, false, P->tokens_per_step, "tokens of one sequence that a step yields") \
    X(gpu_busy_ms, "ms", true, false, P->gpu_busy * 1e3, "kernels and collectives") \
    X(kernels_ms, "ms", true, false, P->kernels * 1e3, "everything on the GPU but collectives") \
    X(allreduce_ms, "ms", true, false, P->allreduce * 1e3, "all AllReduces of a step") \
    X(allreduce_transfer_ms, "ms", true, false, P->allreduce_transfer * 1e3, "of it, as if all ranks arrived together") \
    X(allreduce_wait_ms, "ms", true, false, P->allreduce_wait * 1e3, "of it, the wait for the last rank") \
    X(allreduce_share, "", true, false, P->allreduce_share, "allreduce / gpu_busy") \
    X(other_collectives_ms, "ms", true, false, P->other_collectives * 1e3, "gathers, exchanges and sends, transfer and wait") \
    X(draft_ms, "ms", true, false, P->draft * 1e3, "of gpu_busy, the passes of the draft") \
    X(bubble_ms, "ms", true, false, P->bubble * 1e3, "what a rank of a pipeline waits for the other stages") \
    X(gaps_ms, "ms", true, false, P->gaps * 1e3, "idle time between kernels") \
    X(host_ms, "ms", true, false, P->host * 1e3, "what the host adds to the step") \
    X(launches, "", true, false, P->launches, "kernels a step, collectives counted with them") \
    X(allreduces, "", true, false, P->allreduces, "AllReduces a step") \
    X(distinct_experts, "", true, false, P->step_work.experts, "routed experts that a layer touches") \
    X(weights_gb, "GB", false, false, P->memory.weights / 1e9, "weights on one GPU") \
    X(kv_pool_gb, "GB", false, false, P->memory.pool_bytes / 1e9, "what is left for the cache on one GPU") \
    X(kv_pool_tokens, "tokens", false, false, P->memory.pool_tokens, "tokens of cache that fit") \
    X(need_tokens, "tokens", false, false, P->memory.need_tokens, "batch x context") \
    X(largest_batch, "sequences", false, false, P->memory.max_batch, "sequences of this context that fit")
// clang-format on

#define GETTER(name, unit, of_step, truth, value, doc)                                                                 \
    static double get_##name(const struct k25_output_view *view)                                                       \
    {                                                                                                                  \
        return value;                                                                                                  \
    }
OUTPUTS(GETTER)

#define ROW(name, unit, of_step, truth, value, doc) {#name, unit, doc, of_step, truth, get_##name},
const struct k25_named_output k25_named_outputs[] = {OUTPUTS(ROW){0}};

size_t k25_named_output_count(void)
{
    return sizeof k25_named_outputs / sizeof *k25_named_outputs - 1;
}

int k25_named_output_find(const char *name)
{
    for (int i = 0; k25_named_outputs[i].name != NULL; i++) {
        if (strcmp(k25_named_outputs[i].name, name) == 0)
            return i;
    }
    return -1;
}
