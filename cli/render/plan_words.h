/* A plan in words. */
#ifndef K25_CLI_RENDER_PLAN_WORDS_H
#define K25_CLI_RENDER_PLAN_WORDS_H

#include "cli/render/sentences.h"
#include "model/plan/plan.h"
#include "model/step/step.h"

/* "TP8, DCP4, batch 8, context 8,000, KV fp8, CUDA graph of 8 rows; AllReduce one-shot": `step` is that of the plan. */
void cli_plan_words(const struct k25_plan *plan, const struct k25_step *step, char *out, size_t size);

/* A sentence for each lever that is pulled: which terms it changed. */
void cli_say_levers(const struct k25_plan_levers *levers, struct cli_sentences *sentences);

/* What of a plan no served measurement has been compared with (docs/accuracy.md). */
void cli_say_unmeasured(const struct k25_plan *plan, struct cli_sentences *sentences);

#endif
