#include "cli/render/answer.h"

#include <math.h>
#include <stdio.h>

bool cli_is_overridden(const struct k25_scenario *scenario, enum k25_param id)
{
    char path[96];
    snprintf(path, sizeof path, "parameters.%s", k25_param_info[id].name);
    const struct k25_input *input = k25_inputs_find(&scenario->inputs, path);
    return input != NULL && input->origin == K25_FROM_OVERRIDE;
}

/* How far the parameters may be off. Who sets one asks what would be if it were so: it drops out of the matrix. */
void cli_uncertainty(const struct k25_scenario *scenario, struct k25_uncertainty *u)
{
    k25_uncertainty_resolve(&scenario->priors, scenario->calibrated ? &scenario->calibration : NULL, u);
    size_t from[K25_PARAMS], kept = 0, all = u->count;
    for (size_t i = 0; i < all; i++) {
        if (cli_is_overridden(scenario, (enum k25_param)u->id[i]))
            continue;
        u->id[kept] = u->id[i];
        from[kept++] = i;
    }
    for (size_t i = 0; i < kept; i++) {
        for (size_t j = 0; j < kept; j++)
            u->covariance[i * kept + j] = u->covariance[from[i] * all + from[j]];
    }
    u->count = kept;
}

bool cli_answer_load(const struct cli *cli, const char *name, const char *const *set, struct cli_answer *answer,
                     struct k25_error *error)
{
    answer->set = set;
    if (!k25_scenario_load(&cli->library, name, set, cli_count(set), &answer->scenario, error) ||
        !k25_scenario_question(&answer->scenario, &answer->question, error))
        return false;
    k25_predict(&answer->question, &answer->scenario.params, &answer->prediction);
    if (!answer->prediction.memory.fits)
        return true;
    cli_uncertainty(&answer->scenario, &answer->uncertainty);
    return k25_predict_intervals(&answer->question, &answer->scenario.params, &answer->uncertainty, &answer->prediction,
                                 &answer->intervals, error);
}

void cli_answer_free(struct cli_answer *answer)
{
    k25_scenario_free(&answer->scenario);
}

void cli_what_fits(const struct cli_answer *answer, struct cli_fitting *fitting)
{
    const struct k25_scenario *scenario = &answer->scenario;
    const struct k25_memory *memory = &answer->prediction.memory;
    double sequences = answer->prediction.step_work.sequences * k25_microbatches(&scenario->plan);
    fitting->missing = memory->weights + memory->reserve - memory->budget +
                       sequences * (scenario->plan.context * memory->kv_per_token + memory->state_per_sequence);
    fitting->batch = memory->max_batch;
    fitting->context = fmin(floor(memory->pool_tokens / scenario->plan.batch), scenario->architecture.max_context);
    fitting->tp = 0;
    struct k25_prediction other;
    for (int tp = scenario->plan.tp + 1; tp <= scenario->machine.gpus && fitting->tp == 0; tp++) {
        struct k25_plan plan = scenario->plan;
        struct k25_question question = answer->question;
        plan.tp = tp;
        if (!k25_question_replan(&question, &plan, NULL, NULL))
            continue;
        k25_predict(&question, &scenario->params, &other);
        if (other.memory.fits)
            fitting->tp = tp;
    }
}
