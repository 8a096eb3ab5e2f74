/* An explanation of a step, for people, as CSV and as JSON. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands/explain/step.h"
#include "cli/render/notes.h"
#include "cli/render/outputs.h"
#include "cli/render/render.h"
#include "cli/render/report.h"
#include "cli/render/table.h"

static const double MINOR = 1e-3; /* elasticities below this are counted in one line */

/* One row of any table; what a table has no column for is left out. NULL and NAN: nothing. */
struct row {
    const char *section, *name, *kind, *bound, *unit, *change;
    double time_ms, share, floor_ms, memory_ms, compute_ms, latency_ms, link_ms, wait_ms;
    double value, elasticity, slope, step_ms, tpot_ms, tok_s, gain_pct, change_pct, target;
    double drafted, tokens_per_step, break_even;
};

static const struct {
    const char *key;
    size_t offset;
    bool text;
} json_members[] = {
#define TEXT(key, member)                                                                                              \
    {                                                                                                                  \
        key, offsetof(struct row, member), true                                                                        \
    }
#define NUMBER(key, member)                                                                                            \
    {                                                                                                                  \
        key, offsetof(struct row, member), false                                                                       \
    }
    TEXT("section", section),
    TEXT("name", name),
    TEXT("kind", kind),
    TEXT("bound", bound),
    TEXT("unit", unit),
    TEXT("change", change),
    NUMBER("time_ms", time_ms),
    NUMBER("share", share),
    NUMBER("floor_ms", floor_ms),
    NUMBER("memory_ms", memory_ms),
    NUMBER("compute_ms", compute_ms),
    NUMBER("latency_ms", latency_ms),
    NUMBER("link_ms", link_ms),
    NUMBER("wait_ms", wait_ms),
    NUMBER("value", value),
    NUMBER("elasticity_pct_per_pct", elasticity),
    NUMBER("slope_ms_per_pct", slope),
    NUMBER("step_ms", step_ms),
    NUMBER("tpot_ms", tpot_ms),
    NUMBER("tok_s", tok_s),
    NUMBER("gain_pct", gain_pct),
    NUMBER("change_pct", change_pct),
    NUMBER("target", target),
    NUMBER("drafted_tokens", drafted),
    NUMBER("tokens_per_step", tokens_per_step),
    NUMBER("break_even_tokens_per_step", break_even),
#undef TEXT
#undef NUMBER
};

static const struct cli_column share_columns[] = {
    {"name", "part", CLI_TEXT, 0},
    {"time_ms", "ms", CLI_FIGURE, 0},
    {"share", "of step", CLI_FIGURE, 0},
    {"bound", "bound by", CLI_TEXT, 0},
    {"floor_ms", "floor", CLI_FIGURE, 0},
    {"memory_ms", "memory", CLI_FIGURE, 0},
    {"compute_ms", "compute", CLI_FIGURE, 0},
    {"latency_ms", "latency", CLI_FIGURE, 0},
    {"link_ms", "link", CLI_FIGURE, 0},
    {"wait_ms", "wait", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};
static const struct cli_column elasticity_columns[] = {
    {"name", "of", CLI_TEXT, 0},
    {"kind", NULL, CLI_TEXT, 0},
    {"value", "value", CLI_FIGURE, 0},
    {"unit", "", CLI_TEXT, 0},
    {"elasticity_pct_per_pct", "% of TPOT per %", CLI_FIGURE, 0},
    {"slope_ms_per_pct", "ms per %", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};
static const struct cli_column lever_columns[] = {
    {"name", "lever", CLI_TEXT, 0},
    {"value", "at", CLI_FIGURE, 0},
    {"step_ms", "step ms", CLI_FIGURE, 0},
    {"tpot_ms", "TPOT ms", CLI_FIGURE, 0},
    {"tok_s", "tok/s", CLI_FIGURE, 0},
    {"gain_pct", "gain %", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};
static const struct cli_column purchase_columns[] = {
    {"name", "what", CLI_TEXT, 0}, {"kind", NULL, CLI_TEXT, 0},      {"change_pct", "%", CLI_FIGURE, 0},
    {"change", "", CLI_TEXT, 0},   {"value", "from", CLI_FIGURE, 0}, {"target", "to", CLI_FIGURE, 0},
    {"unit", "", CLI_TEXT, 0},     {NULL, NULL, CLI_TEXT, 0},
};
static const struct cli_column chain_columns[] = {
    {"drafted_tokens", "drafted", CLI_COUNT, 0},
    {"step_ms", "step ms", CLI_FIGURE, 0},
    {"tokens_per_step", "tokens a step", CLI_FIGURE, 0},
    {"break_even_tokens_per_step", "to break even", CLI_FIGURE, 0},
    {"tpot_ms", "TPOT ms", CLI_FIGURE, 0},
    {"tok_s", "tok/s", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};
static const struct cli_column all_columns[] = {
    {"section", "", CLI_TEXT, 0},
    {"name", "", CLI_TEXT, 0},
    {"kind", "", CLI_TEXT, 0},
    {"time_ms", "", CLI_FIGURE, 0},
    {"share", "", CLI_FIGURE, 0},
    {"bound", "", CLI_TEXT, 0},
    {"floor_ms", "", CLI_FIGURE, 0},
    {"memory_ms", "", CLI_FIGURE, 0},
    {"compute_ms", "", CLI_FIGURE, 0},
    {"latency_ms", "", CLI_FIGURE, 0},
    {"link_ms", "", CLI_FIGURE, 0},
    {"wait_ms", "", CLI_FIGURE, 0},
    {"value", "", CLI_FIGURE, 0},
    {"unit", "", CLI_TEXT, 0},
    {"elasticity_pct_per_pct", "", CLI_FIGURE, 0},
    {"slope_ms_per_pct", "", CLI_FIGURE, 0},
    {"step_ms", "", CLI_FIGURE, 0},
    {"tpot_ms", "", CLI_FIGURE, 0},
    {"tok_s", "", CLI_FIGURE, 0},
    {"gain_pct", "", CLI_FIGURE, 0},
    {"change_pct", "", CLI_FIGURE, 0},
    {"change", "", CLI_TEXT, 0},
    {"target", "", CLI_FIGURE, 0},
    {"drafted_tokens", "", CLI_COUNT, 0},
    {"tokens_per_step", "", CLI_FIGURE, 0},
    {"break_even_tokens_per_step", "", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static struct row empty_row(const char *section, const char *name)
{
    struct row row = {.section = section, .name = name};
    for (size_t i = 0; i < sizeof json_members / sizeof *json_members; i++) {
        if (!json_members[i].text)
            *(double *)((char *)&row + json_members[i].offset) = NAN;
    }
    return row;
}

static void add_row(struct cli_table *table, const struct row *row)
{
    for (const struct cli_column *column = table->columns; column->key != NULL; column++) {
        size_t m = 0;
        while (strcmp(json_members[m].key, column->key) != 0)
            m++;
        const void *at = (const char *)row + json_members[m].offset;
        const char *text = json_members[m].text ? *(const char *const *)at : NULL;
        double number = json_members[m].text ? NAN : *(const double *)at;
        if (text != NULL)
            cli_table_text(table, "%s", text);
        else if (!isnan(number))
            cli_table_number(table, number);
        else
            cli_table_nothing(table);
    }
}

/* `people` are spared what takes no time. */
static void add_shares(struct cli_table *table, const struct cli_explanation *x, double step, bool people)
{
    for (int i = 0; i < K25_SHARES; i++) {
        const struct k25_share *share = &x->shares[i];
        struct row row = empty_row("part", k25_share_names[i]);
        row.time_ms = share->time * 1e3;
        row.share = share->time / step;
        row.bound = share->bound;
        if (i <= K25_SHARE_DRAFT) {
            row.floor_ms = share->split.floor * 1e3;
            row.memory_ms = share->split.memory * 1e3;
            row.compute_ms = share->split.compute * 1e3;
            row.latency_ms = share->split.latency * 1e3;
        } else if (i <= K25_SHARE_OTHER_COLLECTIVES) {
            row.latency_ms = i == K25_SHARE_ALLREDUCE_WAIT ? NAN : share->split.latency * 1e3;
            row.link_ms = i == K25_SHARE_ALLREDUCE_WAIT ? NAN : share->split.link * 1e3;
            row.wait_ms = i == K25_SHARE_ALLREDUCE_TRANSFER ? NAN : share->split.wait * 1e3;
        }
        if (!people || share->time > 0)
            add_row(table, &row);
    }
}

static void add_elasticities(struct cli_table *table, const struct cli_explanation *x, bool people)
{
    for (int i = 0; i < CLI_FOLLOWED; i++) {
        const struct cli_elasticity *e = &x->elasticities[i];
        struct row row = empty_row("elasticity", e->name);
        row.kind = e->kind;
        row.unit = e->unit;
        row.value = e->value;
        row.elasticity = e->elasticity;
        row.slope = e->slope * 1e3 / 100;
        if (!people || fabs(e->elasticity) >= MINOR)
            add_row(table, &row);
    }
}

static void add_ceilings(struct cli_table *table, const struct cli_explanation *x, double step)
{
    for (int i = 0; i < K25_LEVERS; i++) {
        const struct k25_ceiling *ceiling = &x->ceilings[i];
        struct row row = empty_row("lever", k25_lever_names[i]);
        row.value = ceiling->ideal;
        row.step_ms = ceiling->step * 1e3;
        row.tpot_ms = ceiling->tpot * 1e3;
        row.tok_s = ceiling->tok_s;
        row.gain_pct = (step / ceiling->step - 1) * 100;
        add_row(table, &row);
    }
}

static void add_purchases(struct cli_table *table, const struct cli_explanation *x)
{
    for (size_t i = 0; i < x->purchases; i++) {
        const struct cli_purchase *purchase = &x->purchase[i];
        struct row row = empty_row("next", purchase->name);
        row.kind = purchase->kind;
        row.unit = purchase->unit;
        row.change = purchase->change;
        row.change_pct = purchase->share * 100;
        row.value = purchase->value;
        row.target = purchase->target;
        add_row(table, &row);
    }
}

static void add_chains(struct cli_table *table, const struct cli_explanation *x)
{
    for (int k = 0; x->speculates && k <= K25_LONGEST_CHAIN; k++) {
        const struct k25_chain *chain = &x->chains[k];
        struct row row = empty_row("speculation", NULL);
        row.drafted = k;
        row.step_ms = chain->step * 1e3;
        row.tokens_per_step = chain->tokens_per_step;
        row.break_even = chain->break_even;
        row.tpot_ms = chain->step / chain->tokens_per_step * 1e3;
        row.tok_s = chain->tok_s;
        add_row(table, &row);
    }
}

static bool render_csv(const struct cli_answer *answer, const struct cli_explanation *x, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, all_columns);
    if (x != NULL) {
        add_shares(&table, x, answer->prediction.step, false);
        add_elasticities(&table, x, false);
        add_ceilings(&table, x, answer->prediction.step);
        add_purchases(&table, x);
        add_chains(&table, x);
    }
    bool ok = cli_table_csv(&table, error);
    cli_table_close(&table);
    return ok;
}

bool cli_render_no_explanation(struct k25_error *error)
{
    return render_csv(NULL, NULL, error);
}

static const char *counted(size_t count, const char *one, const char *more)
{
    return count == 1 ? one : more;
}

static void print_minor(const struct cli_explanation *x)
{
    size_t minor = 0, none = 0;
    for (int i = 0; i < CLI_FOLLOWED; i++) {
        none += x->elasticities[i].elasticity == 0;
        minor += fabs(x->elasticities[i].elasticity) < MINOR;
    }
    printf("%zu others below 0.1 %%, %zu of them move nothing\n", minor, none);
}

static void print_chain_words(const struct cli_answer *answer, const struct cli_explanation *x)
{
    const struct k25_plan *plan = &answer->question.plan;
    char one[40], two[40];
    int k = plan->speculation.tokens;
    printf("%s of %d token%s breaks even at %s tokens a step", k25_speculation_names[plan->speculation.method], k,
           k == 1 ? "" : "s", cli_figure(answer->prediction.step / x->chains[0].step, one, sizeof one));
    if (x->best < 0)
        printf("; plan.speculation.acceptance does not say how many it has\n");
    else
        printf(" and has %s; at batch %d the best chain is %d\n",
               cli_figure(answer->prediction.tokens_per_step, two, sizeof two), plan->batch, x->best);
}

/* Titles of the tables of people. */
static void name_tables(const struct cli_answer *answer, const struct cli_explanation *x, char parts[120],
                        char next[120])
{
    const struct k25_prediction *p = &answer->prediction;
    char a[40], b[40], c[40];
    int length = snprintf(parts, 120, "step %s ms, ", cli_figure(p->step * 1e3, a, sizeof a));
    if (isnan(p->tpot))
        snprintf(parts + length, (size_t)(120 - length), "TPOT unknown without plan.speculation.acceptance");
    else
        snprintf(parts + length, (size_t)(120 - length), "TPOT %s ms, %s tok/s", cli_figure(p->tpot * 1e3, b, sizeof b),
                 cli_figure(p->tok_s, c, sizeof c));
    snprintf(next, 120, "what takes %s ms off the step, by the slope (first order), smallest change first",
             cli_figure(x->wanted * 1e3, a, sizeof a));
}

static bool set_heads(json_t *root, const struct cli_answer *answer, const struct cli_explanation *x)
{
    static const enum k25_output outputs[] = {K25_OUT_STEP, K25_OUT_TPOT, K25_OUT_TOK_S, K25_OUT_TOKENS_PER_STEP};
    const struct k25_prediction *p = &answer->prediction;
    const struct k25_scenario *s = &answer->scenario;
    json_t *names = json_pack("{s:s, s:s, s:s}", "scenario", s->name, "architecture", s->architecture.name, "machine",
                              s->machine.name);
    json_t *heads = json_pack(
        "{s:f, s:I, s:o, s:o}", "next_wanted_ms", x->wanted * 1e3, "next_unreachable", (json_int_t)x->unreachable,
        "break_even_tokens_per_step", x->speculates ? cli_json_real(p->step / x->chains[0].step) : json_null(),
        "best_drafted_tokens", x->speculates && x->best >= 0 ? json_integer(x->best) : json_null());
    bool ok = names != NULL && heads != NULL && json_object_update(root, names) == 0;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        ok = ok && cli_set_output(root, &answer->question, p, outputs[i]);
    ok = ok && json_object_update(root, heads) == 0;
    json_decref(names);
    json_decref(heads);
    return ok;
}

enum section { SHARES, ELASTICITIES, LEVERS, PURCHASES, CHAINS, SECTIONS };

static bool add_section(enum section section, const struct cli_answer *answer, const struct cli_explanation *x,
                        const char *title, struct cli_report *report, struct k25_error *error)
{
    static const struct {
        const char *key;
        const struct cli_column *columns;
    } sections[SECTIONS] = {[SHARES] = {"parts", share_columns},
                            [ELASTICITIES] = {"elasticities", elasticity_columns},
                            [LEVERS] = {"levers", lever_columns},
                            [PURCHASES] = {"next", purchase_columns},
                            [CHAINS] = {"speculation", chain_columns}};
    bool people = report->format == CLI_TABLE;
    struct cli_table table;
    cli_table_open(&table, sections[section].columns);
    switch (section) {
    case SHARES:
        add_shares(&table, x, answer->prediction.step, people);
        break;
    case ELASTICITIES:
        add_elasticities(&table, x, people);
        break;
    case LEVERS:
        add_ceilings(&table, x, answer->prediction.step);
        break;
    case PURCHASES:
        add_purchases(&table, x);
        break;
    case CHAINS:
        add_chains(&table, x);
        break;
    case SECTIONS:
        break;
    }
    return cli_report_add(report, sections[section].key, title, &table, error);
}

static bool render_json(const struct cli_answer *answer, const struct cli_explanation *x, struct k25_error *error)
{
    struct cli_report report = {.format = CLI_JSON, .root = json_object()};
    bool ok =
        (report.root != NULL && set_heads(report.root, answer, x)) || k25_fail(error, K25_RESOURCE, "out of memory");
    for (enum section section = 0; ok && section < SECTIONS; section++)
        ok = add_section(section, answer, x, "", &report, error);
    if (ok)
        return cli_report_end(&report, error);
    json_decref(report.root);
    return false;
}

bool cli_render_explanation(const struct cli_answer *answer, const struct cli_explanation *x, enum cli_format format,
                            struct k25_error *error)
{
    if (format == CLI_CSV)
        return render_csv(answer, x, error);
    if (format == CLI_JSON)
        return render_json(answer, x, error);
    struct cli_report report = {.format = CLI_TABLE, .printed = true};
    struct cli_sentences notes;
    char parts[120], next[120];
    name_tables(answer, x, parts, next);
    cli_print_question(answer);
    if (!add_section(SHARES, answer, x, parts, &report, error) ||
        !add_section(ELASTICITIES, answer, x, "elasticity of TPOT", &report, error))
        return false;
    print_minor(x);
    if (!add_section(LEVERS, answer, x, "one lever of plan.levers after the other at its best", &report, error) ||
        !add_section(PURCHASES, answer, x, next, &report, error))
        return false;
    printf("%zu other%s would have to change by more than all there is\n", x->unreachable,
           counted(x->unreachable, "", "s"));
    if (!add_section(CHAINS, answer, x, "speculation", &report, error))
        return false;
    if (x->speculates)
        print_chain_words(answer, x);
    cli_notes(answer, &notes);
    cli_print_sentences("to be trusted less", &notes);
    return true;
}
