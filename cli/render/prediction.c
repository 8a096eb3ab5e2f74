/* A prediction for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/render/inputs.h"
#include "cli/render/notes.h"
#include "cli/render/operators.h"
#include "cli/render/outputs.h"
#include "cli/render/plan_words.h"
#include "cli/render/render.h"

static const double MINOR = 0.01; /* operators below this share of GPU time are summed up in one line */

void cli_print_question(const struct cli_answer *answer)
{
    const struct k25_scenario *s = &answer->scenario;
    char words[320];
    /* A title speaks of the scenario as written. */
    bool changed = cli_count(answer->set) > 0;
    printf("%s%s\n", !changed && s->title[0] != '\0' ? s->title : s->name, changed ? ", changed by --set" : "");
    printf("  model    %s, weights %s (%.1f B parameters, %.1f B active, %.1f GB)\n", s->architecture.name,
           s->weights.name, k25_total_parameters(&s->architecture) / 1e9, k25_active_parameters(&s->architecture) / 1e9,
           k25_checkpoint_bytes(&s->architecture, &s->weights) / 1e9);
    printf("  machine  %s: %dx %s\n", s->machine.name, s->machine.gpus, s->machine.gpu.name);
    cli_plan_words(&s->plan, &answer->prediction.step_work, words, sizeof words);
    char *allreduce = strstr(words, "; ");
    if (allreduce != NULL)
        *allreduce = '\0';
    printf("  plan     %s\n", words);
    if (allreduce != NULL)
        printf("           %s\n", allreduce + 2);
    for (size_t i = 0; answer->set != NULL && answer->set[i] != NULL; i++)
        printf("  --set    %s\n", answer->set[i]);
}

static const struct cli_column total_columns[] = {
    {"total", "", CLI_TEXT, 0}, {"time_ms", "ms", CLI_FIGURE, 0}, {"interval", "90 % interval", CLI_TEXT, 0},
    {"words", "", CLI_TEXT, 0}, {NULL, NULL, CLI_TEXT, 0},
};

static void add_total(struct cli_table *table, const struct cli_answer *answer, const char *name,
                      enum k25_output output, const char *words)
{
    const struct k25_interval *interval = &answer->intervals.output[output];
    double value = k25_output_value(&answer->question, &answer->prediction, output);
    char low[40], high[40];
    cli_table_text(table, "%s", name);
    cli_table_number(table, value);
    if (value > 0)
        cli_table_text(table, "%s to %s", cli_figure(interval->low, low, sizeof low),
                       cli_figure(interval->high, high, sizeof high));
    else
        cli_table_text(table, "%s", "");
    cli_table_text(table, "%s", words);
}

static bool print_totals(const struct cli_answer *answer, struct k25_error *error)
{
    const struct k25_prediction *p = &answer->prediction;
    struct cli_table table;
    char words[160], one[40], two[40];
    cli_table_open(&table, total_columns);
    if (isnan(p->tpot))
        snprintf(words, sizeof words, "TPOT unknown: no acceptance is given");
    else
        snprintf(words, sizeof words, "TPOT %s ms, %s tok/s", cli_figure(p->tpot * 1e3, one, sizeof one),
                 cli_figure(p->tok_s, two, sizeof two));
    add_total(&table, answer, "step", K25_OUT_STEP, words);
    add_total(&table, answer, "  GPU busy", K25_OUT_GPU_BUSY, "");
    snprintf(words, sizeof words, "%.0f launches", p->launches);
    add_total(&table, answer, "    kernels", K25_OUT_KERNELS, words);
    if (p->allreduces > 0) {
        snprintf(words, sizeof words, "%.1f %% of GPU time, %.0f calls", p->allreduce_share * 100, p->allreduces);
        add_total(&table, answer, "    AllReduce", K25_OUT_ALLREDUCE, words);
        add_total(&table, answer, "      transfer", K25_OUT_ALLREDUCE_TRANSFER, "");
        add_total(&table, answer, "      wait", K25_OUT_ALLREDUCE_WAIT, "for the last rank");
        add_total(&table, answer, "    other collectives", K25_OUT_OTHER_COLLECTIVES, "");
    }
    if (p->draft > 0)
        add_total(&table, answer, "    of it the draft", K25_OUT_DRAFT, "");
    add_total(&table, answer, "  gaps between kernels", K25_OUT_GAPS, "");
    add_total(&table, answer, "  host", K25_OUT_HOST, "");
    if (p->bubble > 0)
        add_total(&table, answer, "  pipeline bubble", K25_OUT_BUBBLE, "");
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

static int by_time(const void *a, const void *b)
{
    const struct cli_line *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time) - (x->time > y->time) : strcmp(x->name, y->name);
}

static const struct cli_column group_columns[] = {
    {"operator", "operator", CLI_TEXT, 0},
    {"calls", "calls", CLI_COUNT, 0},
    {"us_per_call", "us/call", CLI_FIGURE, 0},
    {"time_ms", "ms", CLI_FIGURE, 0},
    {"share", "share", CLI_TEXT, 0},
    {"bound", "bound by", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_group(struct cli_table *table, const struct cli_line *line, double busy)
{
    cli_table_text(table, "%s", line->name);
    cli_table_number(table, line->calls);
    cli_table_number(table, line->time / line->calls * 1e6);
    cli_table_number(table, line->time * 1e3);
    cli_table_text(table, "%4.1f %%", line->time / busy * 100);
    cli_table_text(table, "%s", line->bound);
}

static bool print_groups(const struct k25_prediction *p, struct k25_error *error)
{
    struct cli_line lines[K25_MAX_OPERATORS];
    struct cli_table table;
    size_t count = cli_lines(p, false, lines), minor = 0;
    struct cli_line rest = {.bound = "--ops shows them"};
    cli_table_open(&table, group_columns);
    qsort(lines, count, sizeof *lines, by_time);
    for (size_t i = 0; i < count; i++) {
        if (lines[i].time >= MINOR * p->gpu_busy) {
            add_group(&table, &lines[i], p->gpu_busy);
        } else {
            rest.calls += lines[i].calls;
            rest.time += lines[i].time;
            minor++;
        }
    }
    snprintf(rest.name, sizeof rest.name, "%zu others below 1 %%", minor);
    if (minor > 0)
        add_group(&table, &rest, p->gpu_busy);
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

static void print_memory(const struct k25_memory *memory)
{
    char a[40], b[40], c[40], d[40];
    printf("memory of a GPU: weights %s, reserve %s, leaving %s of %s for the cache\n",
           k25_text_bytes(memory->weights, a, sizeof a), k25_text_bytes(memory->reserve, b, sizeof b),
           k25_text_bytes(memory->pool_bytes, c, sizeof c), k25_text_bytes(memory->budget, d, sizeof d));
    printf("  cache of %s tokens at %s each; this batch needs %s", k25_text_count(memory->pool_tokens, a, sizeof a),
           k25_text_bytes(memory->kv_per_token, b, sizeof b), k25_text_count(memory->need_tokens, c, sizeof c));
    if (memory->fits)
        printf("; largest batch at this context %s", k25_text_count(memory->max_batch, d, sizeof d));
    printf("\n");
}

static void print_misfit(const struct cli_answer *answer)
{
    const struct k25_plan *plan = &answer->scenario.plan;
    struct cli_fitting fitting;
    char one[40], two[40];
    cli_what_fits(answer, &fitting);
    printf("does not fit: each GPU would need %s more\n", k25_text_bytes(fitting.missing, one, sizeof one));
    if (fitting.batch >= 1)
        printf("  at context %s fits a batch of %s\n", k25_text_count(plan->context, one, sizeof one),
               k25_text_count(fitting.batch, two, sizeof two));
    if (fitting.context >= 1)
        printf("  at batch %d fits a context of %s\n", plan->batch, k25_text_count(fitting.context, one, sizeof one));
    else
        printf("  the weights and the reserve leave no room for a cache at TP%d\n", plan->tp);
    if (fitting.tp > 0)
        printf("  with TP%d the plan fits as it is\n", fitting.tp);
    else
        printf("  no larger TP on %s fits this batch and context\n", answer->scenario.machine.name);
}

/* Takes the table over. */
static bool print_table(struct cli_table *table, struct k25_error *error)
{
    bool ok = cli_table_print(table, error);
    cli_table_close(table);
    return ok;
}

static bool print_outputs(const struct cli_answer *answer, struct k25_error *error)
{
    struct cli_table table;
    printf("\n");
    cli_output_table(answer, &table);
    return print_table(&table, error);
}

static bool print_inputs(const struct cli_answer *answer, const char *root, struct k25_error *error)
{
    struct cli_table table;
    printf("\n");
    cli_input_table(answer, root, &table);
    return print_table(&table, error);
}

static bool print_step(const struct cli_answer *answer, bool ops, struct k25_error *error)
{
    const struct k25_prediction *p = &answer->prediction;
    if (!print_totals(answer, error))
        return false;
    printf("\n");
    if (!ops)
        return print_groups(p, error);
    struct cli_table table;
    cli_operator_table(answer, false, &table);
    return print_table(&table, error);
}

bool cli_render_table(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error)
{
    struct cli_sentences sentences;
    bool fits = answer->prediction.memory.fits;
    cli_print_question(answer);
    printf("\n");
    if (!fits)
        print_misfit(answer);
    else if (!print_step(answer, rendering->ops, error))
        return false;
    printf("\n");
    print_memory(&answer->prediction.memory);
    cli_assumptions(answer, &sentences);
    cli_print_sentences("assumed", &sentences);
    cli_notes(answer, &sentences);
    cli_print_sentences("to be trusted less", &sentences);
    return (!rendering->outputs || print_outputs(answer, error)) &&
           (!rendering->inputs || print_inputs(answer, rendering->root, error));
}
