#include "cli/render/notes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/render/plan_words.h"

static void say_parameters(const struct k25_scenario *scenario, struct cli_sentences *sentences)
{
    int calibrated = 0, overridden = 0;
    for (enum k25_param id = 0; id < K25_PARAMS; id++) {
        bool set = cli_is_overridden(scenario, id);
        overridden += set;
        calibrated += !set && scenario->calibrated && scenario->calibration.set[id];
    }
    char set[48] = "", from[192] = "";
    if (overridden > 0)
        snprintf(set, sizeof set, ", %d from --set", overridden);
    if (scenario->calibrated)
        snprintf(from, sizeof from, "%d from calibration %s, ", calibrated, scenario->calibration.name);
    cli_say(sentences, "parameters: %s%d priors%s", from, K25_PARAMS - calibrated - overridden, set);
}

/* The answer to the same question without speculation; false when that plan does not suit. */
static bool plain_step(const struct cli_answer *answer, double *step)
{
    static struct k25_prediction plain; /* too large for a stack */
    struct k25_question question = answer->question;
    struct k25_plan plan = question.plan;
    struct k25_error error;
    plan.speculation.method = K25_SPEC_NONE;
    if (!k25_question_replan(&question, &plan, NULL, &error))
        return false;
    k25_predict(&question, &answer->scenario.params, &plain);
    *step = plain.step;
    return true;
}

/* Of a speculating plan: what the step takes without, and the tokens a step from which it pays. */
static void say_speculation(const struct cli_answer *answer, struct cli_sentences *sentences)
{
    double plain, step = answer->prediction.step, tokens = answer->prediction.tokens_per_step;
    if (answer->question.plan.speculation.method == K25_SPEC_NONE || !plain_step(answer, &plain))
        return;
    const char *verdict = isnan(tokens) ? "" : tokens * plain >= step ? ": it pays" : ": it does not pay";
    cli_say(sentences, "speculation pays from %.2f tokens a step (%.4g ms against %.4g without)%s", step / plain,
            step * 1e3, plain * 1e3, verdict);
}

void cli_assumptions(const struct cli_answer *answer, struct cli_sentences *sentences)
{
    const struct k25_scenario *scenario = &answer->scenario;
    char context[40];
    sentences->count = 0;
    for (size_t i = 0; i < scenario->assumptions; i++)
        cli_say(sentences, "%s%s", cli_count(answer->set) > 0 ? "of the scenario as written: " : "",
                scenario->assumption[i]);
    cli_say(sentences, "context %s is the mean number of tokens in the cache of a sequence while the steps run",
            k25_text_count(scenario->plan.context, context, sizeof context));
    if (answer->prediction.memory.fits) {
        if (isnan(answer->prediction.tokens_per_step))
            cli_say(sentences, "plan.speculation.acceptance is not given: a step, but no tokens and no TPOT");
        else
            cli_say(sentences,
                    "TPOT = step time / tokens accepted a step (%.4g); the time to the first token is not in it",
                    answer->prediction.tokens_per_step);
        cli_say(sentences, "AllReduce and wait are means over the ranks%s",
                scenario->plan.prefill.tokens > 0 ? "" : "; no prefill runs between the steps");
        say_speculation(answer, sentences);
        cli_say_levers(&scenario->plan.levers, sentences);
        cli_say(sentences, "intervals hold what is not known of the parameters, not what is wrong with the formulas");
    }
    say_parameters(scenario, sentences);
    int tables = k25_residuals_count(k25_scenario_residuals(scenario));
    if (tables > 0)
        cli_say(sentences, "residual tables on %d kernel class%s: measured shapes count for what they measured", tables,
                tables == 1 ? "" : "es");
    if (scenario->machine.assumed_links)
        cli_say(sentences, "latency and bandwidth of the links of %s are assumed, not measured",
                scenario->machine.name);
    char unconfirmed[256];
    if (k25_gpu_unconfirmed(&scenario->machine.gpu, unconfirmed, sizeof unconfirmed)[0] != '\0')
        cli_say(sentences, "figures of %s that nobody has confirmed: %s", scenario->machine.gpu.name, unconfirmed);
}

/* `value` further than `factor` outside of where the calibration data lay. */
static void say_range(const char *what, double value, struct k25_range range, double factor, const char *set,
                      struct cli_sentences *sentences)
{
    char text[40], low[40], high[40];
    if (range.high <= 0 || (value <= range.high * factor && value >= range.low / factor))
        return;
    k25_text_count(value, text, sizeof text);
    k25_text_count(range.low, low, sizeof low);
    k25_text_count(range.high, high, sizeof high);
    if (range.low == range.high)
        cli_say(sentences, "extrapolation: %s %s; the data of calibration %s lie at %s", what, text, set, low);
    else
        cli_say(sentences, "extrapolation: %s %s; the data of calibration %s lie from %s to %s", what, text, set, low,
                high);
}

static void say_other(const char *what, const char *is, const char *was, const char *set,
                      struct cli_sentences *sentences)
{
    if (was[0] != '\0' && strcmp(is, was) != 0)
        cli_say(sentences, "extrapolation: %s %s; the data of calibration %s come from %s", what, is, set, was);
}

/* Kernels for block-wise scales want whole blocks on every rank; an engine refuses a plan that cuts one. */
static void say_blocks(const struct k25_scenario *scenario, struct cli_sentences *sentences)
{
    const struct k25_format *format = &scenario->weights.format[K25_T_ROUTED_EXPERTS];
    double block = format->kind == K25_FP8 ? sqrt(format->group) : format->group;
    int columns = scenario->architecture.moe.intermediate / (scenario->plan.tp / scenario->plan.ep);
    if (scenario->architecture.moe.experts > 0 && block >= 1 && fmod(columns, block) != 0)
        cli_say(sentences,
                "%d columns of an expert on a rank are no whole number of quantisation blocks of %g: engines may "
                "refuse TP%d",
                columns, block, scenario->plan.tp);
}

/* A scheme given as a path may be another model's; one of the library never is. */
static void say_weights(const struct k25_scenario *scenario, struct cli_sentences *sentences)
{
    const char *name = strrchr(scenario->weights_name, '/');
    size_t length = strlen(scenario->architecture.name);
    if (name != NULL && strncmp(name + 1, scenario->architecture.name, length) != 0)
        cli_say(sentences, "the weights are those of %s; is it a scheme of %s?", name + 1, scenario->architecture.name);
}

void cli_notes(const struct cli_answer *answer, struct cli_sentences *sentences)
{
    const struct k25_scenario *scenario = &answer->scenario;
    const struct k25_plan *plan = &scenario->plan;
    const struct k25_calibration *set = &scenario->calibration;
    sentences->count = 0;
    if (!scenario->calibrated) {
        cli_say(sentences, "no calibration: every parameter is a prior");
    } else {
        say_other("model", scenario->architecture.name, set->model, set->name, sentences);
        say_other("machine", scenario->machine.name, set->machine, set->name, sentences);
        say_range("batch", plan->batch, set->batch, 2, set->name, sentences);
        say_range("context", plan->context, set->context, 2, set->name, sentences);
        say_range("tp", plan->tp, set->tp, 1, set->name, sentences);
        if (set->doubts > 0)
            cli_say(sentences, "calibration %s was written in spite of what is wrong with its evidence: %s", set->name,
                    set->accepted);
        for (size_t i = 0; i < set->doubts; i++)
            cli_say(sentences, "%s", set->doubt[i]);
    }
    cli_say_unmeasured(plan, sentences);
    if (plan->dcp == 2 && scenario->architecture.mla.heads > 0 && scenario->architecture.indexer.heads == 0)
        cli_say(sentences, "DCP 2: how MLA attention pads its gathered heads was measured with DCP 4 and 8 alone");
    say_blocks(scenario, sentences);
    say_weights(scenario, sentences);
    if (plan->graph.mode == K25_GRAPH_NONE && answer->prediction.step_work.tokens > 0 &&
        scenario->architecture.mla.heads > 0)
        cli_say(sentences,
                "eager MLA chooses its splits by the context in powers of two: the step is a sawtooth over it");
    if (plan->graph.mode == K25_GRAPH_FULL && !k25_graph_runs(&plan->graph, answer->prediction.step_work.tokens))
        cli_say(sentences, "%d rows are more than the largest captured CUDA graph (%d): the step runs eager",
                answer->prediction.step_work.tokens, plan->graph.max_rows);
}
