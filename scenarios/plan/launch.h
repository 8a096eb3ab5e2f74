/* The command line that starts an engine with a plan: arguments of `vllm serve` and `python -m sglang.launch_server`.
 *
 * Each aspect of a plan is a row of one table in launch.c with the flag of each engine. Source: their documentation as
 * of 2026; flags change with versions. https://docs.vllm.ai/en/latest/configuration/engine_args.html,
 * .../serving/data_parallel_deployment,
 *   .../serving/expert_parallel_deployment, .../features/speculative_decoding
 *   https://docs.sglang.io/docs/advanced_features/server_arguments, .../dcp, .../speculative_decoding
 * For an aspect without a flag there is a sentence.
 */
#ifndef K25_SCENARIOS_PLAN_LAUNCH_H
#define K25_SCENARIOS_PLAN_LAUNCH_H

#include <stddef.h>

#include "hw/collective/backend.h"
#include "model/predict/memory.h"
#include "scenarios/library/scenario.h"

#define K25_LAUNCH_WORDS 32

struct k25_launch {
    const char *command; /* "vllm serve MODEL"; MODEL and DRAFT are placeholders of the checkpoints */
    size_t environments;
    char environment[K25_LAUNCH_WORDS][64]; /* "NCCL_PROTO=LL" */
    size_t arguments;
    char argument[K25_LAUNCH_WORDS][192]; /* "--tensor-parallel-size 8", quoted for a shell */
    size_t missing;
    char without[K25_LAUNCH_WORDS][256]; /* aspects of the plan for which the engine has no flag */
};

/* Fills `launch` for a plan of the scenario, which is valid; `memory` is from the prediction of that plan. Does not
 * fail. `launch` owns nothing and keeps no pointer to its arguments. */
void k25_launch_make(enum k25_engine engine, const struct k25_scenario *scenario, const struct k25_plan *plan,
                     const struct k25_memory *memory, struct k25_launch *launch);

#endif
