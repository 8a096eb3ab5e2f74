#include "cli/render/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool is_overridden(const struct k25_scenario *scenario, int id)
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
        if (is_overridden(scenario, u->id[i]))
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

/* "kernels" are bound by a term of their formula; collectives by moving or by waiting. */
static void bound_words(const struct k25_operator *op, const struct k25_priced *priced, char *out, size_t size)
{
    if (op->kind == K25_OP_KERNEL)
        snprintf(out, size, "%s", k25_bound_names[priced->bound]);
    else
        snprintf(out, size, "%s, %s", priced->wait > priced->transfer ? "wait" : "transfer",
                 k25_backend_names[priced->backend]);
}

static struct cli_line *find_line(struct cli_line *lines, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lines[i].name, name) == 0)
            return &lines[i];
    }
    return NULL;
}

size_t cli_lines(const struct k25_prediction *prediction, bool every, struct cli_line lines[K25_MAX_OPERATORS])
{
    size_t count = 0;
    for (size_t i = 0; i < prediction->step_work.count; i++) {
        const struct k25_operator *op = &prediction->step_work.op[i];
        const struct k25_priced *priced = &prediction->op[i];
        char name[sizeof lines->name];
        bool of_layers = every && op->layers[0] != '\0';
        snprintf(name, sizeof name, "%s%s%s%s", k25_operator_names[op->id], of_layers ? " [" : "",
                 of_layers ? op->layers : "", of_layers ? "]" : "");
        struct cli_line *line = every ? NULL : find_line(lines, count, name);
        if (line == NULL) {
            line = &lines[count++];
            *line = (struct cli_line){.kind = op->kind, .longest = -1};
            snprintf(line->name, sizeof line->name, "%s", name);
        }
        line->calls += op->calls;
        line->time += priced->time;
        line->transfer += priced->transfer;
        line->wait += priced->wait;
        if (priced->time > line->longest) {
            line->longest = priced->time;
            bound_words(op, priced, line->bound, sizeof line->bound);
        }
    }
    return count;
}

void cli_say(struct cli_sentences *sentences, const char *format, ...)
{
    if (sentences->count == CLI_SENTENCES)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentences->text[sentences->count++], sizeof sentences->text[0], format, arguments);
    va_end(arguments);
}

static void say_parameters(const struct k25_scenario *scenario, struct cli_sentences *sentences)
{
    int calibrated = 0, overridden = 0;
    for (int id = 0; id < K25_PARAMS; id++) {
        bool set = is_overridden(scenario, id);
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
        cli_say_speculation(answer, sentences);
        cli_say_levers(answer, sentences);
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

const char *cli_short_path(const char *file, const char *root)
{
    size_t length = strlen(root);
    return strncmp(file, root, length) == 0 && file[length] == '/' ? file + length + 1 : file;
}

void cli_origin_words(const struct k25_input *input, const char *root, char *out, size_t size)
{
    const char *file = cli_short_path(input->file, root);
    switch (input->origin) {
    case K25_FROM_OVERRIDE:
        snprintf(out, size, "--set");
        break;
    case K25_FROM_DEFAULT:
        snprintf(out, size, "default");
        break;
    case K25_FROM_FILE:
        snprintf(out, size, "%s:%d", file, input->line);
        break;
    case K25_FROM_PRIOR:
    case K25_FROM_CALIBRATION:
        snprintf(out, size, "%s %s:%d", k25_origin_name(input->origin), file, input->line);
        break;
    case K25_ORIGINS:
        break;
    }
}
