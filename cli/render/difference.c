/* Two predictions and what lies between them. */
#include <math.h>
#include <string.h>

#include "cli/render/operators.h"
#include "cli/render/plan_words.h"
#include "cli/render/render.h"

static const struct cli_column columns[] = {
    {"what", "", CLI_TEXT, 0},       {"value", "this", CLI_FIGURE, 0},
    {"base", "base", CLI_FIGURE, 0}, {"difference", "difference", CLI_FIGURE, 0},
    {"unit", "unit", CLI_TEXT, 0},   {"", "change", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

/* NAN is a value that a side does not have; it counts as 0 in the difference to one that there is. */
static void add(struct cli_table *table, const char *what, double value, double base, const char *unit)
{
    cli_table_text(table, "%s", what);
    cli_table_number(table, value);
    cli_table_number(table, base);
    cli_table_number(table, isnan(value) && isnan(base) ? NAN : (isnan(value) ? 0 : value) - (isnan(base) ? 0 : base));
    cli_table_text(table, "%s", unit);
    if (isnan(value) || isnan(base) || base == 0)
        cli_table_nothing(table);
    else
        cli_table_text(table, "%+6.1f %%", (value / base - 1) * 100);
}

/* For people, without the outputs that neither side has. */
static void add_outputs(struct cli_table *table, const struct cli_answer *answer, const struct cli_answer *base,
                        bool people)
{
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        const struct k25_output_info *info = &k25_output_info[o];
        double value = k25_output_value(&answer->question, &answer->prediction, o);
        double other = k25_output_value(&base->question, &base->prediction, o);
        bool none = (isnan(value) || value == 0) && (isnan(other) || other == 0);
        if (info->kind != K25_OUTPUT_TRUTH && !(people && none))
            add(table, info->name, value, other, info->unit);
    }
}

static double time_of(const struct cli_line *lines, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lines[i].name, name) == 0)
            return lines[i].time * 1e3;
    }
    return NAN;
}

static void add_operators(struct cli_table *table, const struct k25_prediction *p, const struct k25_prediction *q,
                          bool ops)
{
    static struct cli_line these[K25_MAX_OPERATORS], those[K25_MAX_OPERATORS];
    size_t n = cli_lines(p, ops, these), m = cli_lines(q, ops, those);
    for (size_t i = 0; i < n; i++)
        add(table, these[i].name, these[i].time * 1e3, time_of(those, m, these[i].name), "ms");
    for (size_t i = 0; i < m; i++) {
        if (isnan(time_of(these, n, those[i].name)))
            add(table, those[i].name, NAN, those[i].time * 1e3, "ms");
    }
}

static void print_side(const char *title, const struct cli_answer *answer)
{
    char words[320];
    const struct k25_scenario *s = &answer->scenario;
    cli_plan_words(&s->plan, &answer->prediction.step_work, words, sizeof words);
    printf("%s  %s: %s %s on %s\n      ", title, s->name, s->architecture.name, s->weights.name, s->machine.name);
    cli_print_wrapped(words, 6);
    for (size_t i = 0; answer->set != NULL && answer->set[i] != NULL; i++)
        printf("      --set %s\n", answer->set[i]);
}

/* An object for each side by its names, and the two lists. */
static bool emit_json(const struct cli_answer *answer, const struct cli_answer *base, const struct cli_table *totals,
                      const struct cli_table *operators, struct k25_error *error)
{
    json_t *first = cli_table_json(totals, error), *second = cli_table_json(operators, error);
    if (first == NULL || second == NULL) {
        json_decref(first);
        json_decref(second);
        return false;
    }
    return cli_print_json(json_pack("{s:s, s:s, s:o, s:o}", "scenario", answer->scenario.name, "base",
                                    base->scenario.name, "totals", first, "operators", second),
                          error);
}

bool cli_render_difference(const struct cli_answer *answer, const struct cli_answer *base, bool ops,
                           enum cli_format format, struct k25_error *error)
{
    const struct k25_prediction *p = &answer->prediction, *q = &base->prediction;
    struct cli_table totals, operators;
    bool ok;
    cli_table_open(&totals, columns);
    cli_table_open(&operators, columns);
    add_outputs(&totals, answer, base, format == CLI_TABLE);
    /* One CSV file has one header: the operators follow the outputs in the same table. */
    add_operators(format == CLI_CSV ? &totals : &operators, p, q, ops);
    if (format == CLI_JSON) {
        ok = emit_json(answer, base, &totals, &operators, error);
    } else if (format == CLI_CSV) {
        ok = cli_table_csv(&totals, error);
    } else {
        print_side("this", answer);
        print_side("base", base);
        printf("\n");
        ok = cli_table_print(&totals, error);
        printf("\n");
        ok = ok && cli_table_print(&operators, error);
    }
    cli_table_close(&totals);
    cli_table_close(&operators);
    return ok;
}
