/* What starts an engine with a plan: the arguments of `vllm serve` and of `python -m sglang.launch_server`.
 *
 * Each aspect of a plan is a row of one table in launch.c with the flag of each engine, read in their
 * documentation: https://docs.vllm.ai/en/latest/configuration/engine_args.html,
 * .../serving/data_parallel_deployment,
 *   .../serving/expert_parallel_deployment, .../features/speculative_decoding
 *   https://docs.sglang.io/docs/advanced_features/server_arguments, .../dcp, .../speculative_decoding
 * What an engine has no flag for is said in a sentence. Flags come and go with versions: they were looked up in
 * 2026.
 */
#ifndef K25_SCENARIOS_PLAN_LAUNCH_H
#define K25_SCENARIOS_PLAN_LAUNCH_H

#include <stddef.h>

#include "hw/collective/backend.h"
#include "model/predict/memory.h"
#include "scenarios/library/scenario.h"

#define K25_LAUNCH_WORDS 32

struct k25_launch {
    const char *command; /* "vllm serve MODEL"; MODEL and DRAFT stand for the checkpoints */
    size_t environments;
    char environment[K25_LAUNCH_WORDS][64]; /* "NCCL_PROTO=LL" */
    size_t arguments;
    char argument[K25_LAUNCH_WORDS][192]; /* "--tensor-parallel-size 8", as a shell takes it */
    size_t missing;
    char without[K25_LAUNCH_WORDS][256]; /* what the plan has and the engine has no flag for */
};

/* `memory` is that of the plan's prediction. */
void k25_launch_make(enum k25_engine engine, const struct k25_scenario *scenario, const struct k25_plan *plan,
                     const struct k25_memory *memory, struct k25_launch *launch);

#endif
