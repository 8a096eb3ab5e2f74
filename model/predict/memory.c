#include "model/predict/memory.h"

#include <math.h>

/* Bytes of weights on a rank of the largest stage: its layers, and the embedding of the first stage or the head of the
 * last, which also runs the draft. */
static double held_weights(const struct k25_step *step, double stage)
{
    double layers = 0, embedding = 0, head = 0;
    for (size_t i = 0; i < step->count; i++) {
        const struct k25_operator *op = &step->op[i];
        double held = op->copies * op->resident;
        if (op->part == K25_PART_ATTENTION || op->part == K25_PART_FFN)
            layers += held;
        else if (op->part == K25_PART_HEAD && op->n == 0)
            embedding += held;
        else
            head += held;
    }
    return stage < 1 ? layers * stage + fmax(embedding, head) : layers + embedding + head;
}

/* Number of separate caches: replicas, and ranks with separate sequences. */
static double count_caches(const struct k25_plan *plan)
{
    return plan->dp * (plan->attention_dp ? plan->tp : 1);
}

void k25_memory_context(const struct k25_step *step, const struct k25_plan *plan, struct k25_memory *memory)
{
    double caches = count_caches(plan), sequences = step->sequences * k25_microbatches(plan);
    memory->need_tokens = plan->batch * plan->context;
    memory->max_batch =
        caches * floor(memory->pool_bytes / (plan->context * memory->kv_per_token + memory->state_per_sequence));
    memory->fits = memory->weights + memory->reserve <= memory->budget &&
                   sequences * plan->context <= memory->pool_tokens / caches;
}

void k25_memory(const struct k25_step *step, const struct k25_machine *machine, const struct k25_plan *plan,
                const struct k25_params *params, struct k25_memory *memory)
{
    double stage = k25_stage_share(plan, step->layers);
    memory->capacity = k25_gpu_memory(&machine->gpu);
    memory->budget = memory->capacity * plan->memory_utilisation;
    memory->weights = held_weights(step, stage);
    memory->reserve = params->value[K25_RESERVE];
    memory->kv_per_token = step->kv_per_token * stage;
    memory->state_per_sequence = step->state_per_sequence * stage;
    memory->pool_bytes = fmax(0, memory->budget - memory->weights - memory->reserve);
    double sequences = step->sequences * k25_microbatches(plan);
    double pool = fmax(0, memory->pool_bytes - sequences * memory->state_per_sequence);
    memory->pool_tokens = memory->kv_per_token > 0 ? count_caches(plan) * floor(pool / memory->kv_per_token) : INFINITY;
    k25_memory_context(step, plan, memory);
}
