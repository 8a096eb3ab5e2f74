#include "model/memory.h"

#include <math.h>

void k25_memory(const struct k25_step *step, const struct k25_machine *machine, const struct k25_plan *plan,
                const struct k25_params *params, struct k25_memory *memory)
{
    memory->capacity = k25_gpu_memory(&machine->gpu);
    memory->budget = memory->capacity * plan->memory_utilisation;
    memory->weights = 0;
    for (size_t i = 0; i < step->count; i++)
        memory->weights += step->op[i].calls * step->op[i].resident;
    memory->reserve = params->value[K25_RESERVE];
    memory->kv_per_token = step->kv_per_token;
    memory->pool_bytes = fmax(0, memory->budget - memory->weights - memory->reserve);
    memory->pool_tokens = floor(memory->pool_bytes / memory->kv_per_token);
    memory->need_tokens = plan->batch * plan->context;
    memory->max_batch = floor(memory->pool_tokens / plan->context);
    memory->fits = memory->need_tokens <= memory->pool_tokens;
}
