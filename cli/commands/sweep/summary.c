#include "cli/commands/sweep/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/render/answer.h"
#include "cli/render/table.h"
#include "model/predict/uncertainty.h"
#include "scenarios/sweep/grid.h"

enum { SHOWN = 40 /* rows of a front */, GROUPS = 40 };

static const char *count_text(uint64_t count, char out[40])
{
    return k25_text_count((double)count, out, 40);
}

void cli_sweep_counts(FILE *out, const struct k25_sweep_layout *layout, const struct k25_sweep_store *store)
{
    const struct k25_sweep_counts *counts = &store->summary.counts;
    char points[40], evaluated[40], invalid[40], rejected[40], rows[40];
    uint64_t bad = 0, refused = 0;
    for (size_t i = 0; i < counts->reasons; i++)
        bad += counts->reason[i].count;
    for (size_t i = 0; i < layout->constraints; i++)
        refused += counts->rejected[i];
    fprintf(out, "%s: %s%s%s points, %s evaluated, %s invalid, %s rejected, %s rows\n", layout->name, layout->title,
            layout->title[0] != '\0' ? ": " : "", count_text(counts->points, points),
            count_text(counts->evaluated, evaluated), count_text(bad, invalid), count_text(refused, rejected),
            count_text(counts->rows, rows));
    for (size_t i = 0; i < counts->reasons; i++) {
        if (counts->reason[i].count > 0)
            fprintf(out, "  %12s invalid   %s\n", count_text(counts->reason[i].count, invalid), counts->reason[i].text);
    }
    for (size_t i = 0; i < layout->constraints; i++)
        fprintf(out, "  %12s rejected  %s\n", count_text(counts->rejected[i], rejected), layout->constraint[i]);
}

/* The columns people see: the keys, the objectives, and what is always asked. */
static size_t pick_columns(const struct k25_sweep_layout *layout, size_t picked[K25_SWEEP_COLUMNS])
{
    static const char *const wanted[] = {"tok_s", "tpot_ms", "usd_per_mtok", "tok_s_per_w", NULL};
    bool taken[K25_SWEEP_COLUMNS] = {false};
    size_t count = 0;
    for (size_t i = 0; i < layout->groups; i++)
        taken[layout->group[i]] = true; /* the heading says it */
    for (size_t i = 0; i < layout->keys; i++) {
        if (!taken[i])
            picked[count++] = i;
        taken[i] = true;
    }
    for (size_t i = 0; i < layout->objectives; i++) {
        if (!taken[layout->objective[i].column])
            picked[count++] = layout->objective[i].column;
        taken[layout->objective[i].column] = true;
    }
    for (size_t w = 0; wanted[w] != NULL; w++) {
        for (size_t i = layout->keys; i < layout->columns; i++) {
            if (!taken[i] && strcmp(layout->column[i], wanted[w]) == 0) {
                picked[count++] = i;
                taken[i] = true;
            }
        }
    }
    return count;
}

static void add_cell(const struct k25_sweep_layout *layout, struct k25_sweep_cell cell, size_t column,
                     struct cli_table *table)
{
    char text[300];
    double number;
    k25_sweep_cell_read(layout, cell, text, sizeof text);
    if (text[0] == '\0')
        cli_table_nothing(table);
    else if (column >= layout->keys && k25_parse_real(text, &number))
        cli_table_number(table, number);
    else
        cli_table_text(table, "%s", text);
}

/* What leads from a row back to its plan. */
struct summary {
    const struct k25_sweep *sweep; /* NULL: nothing does */
    const struct k25_sweep_layout *layout;
    struct k25_sweep_axis_cells *axis_cells;
};

/* Half of the 90 % interval of a row's throughput, in per cent of it; NAN when nobody knows. */
static double sureness(const struct summary *summary, const struct k25_sweep_cell *cells)
{
    static struct k25_uncertainty uncertainty; /* too large for a stack, like the prediction */
    static struct k25_prediction prediction;
    double slope[K25_PARAMS]; /* of the step: what moves it moves the throughput as much the other way */
    static struct k25_sweep_cursor cursor;
    struct k25_question question;
    struct k25_error error;
    if (summary->sweep == NULL ||
        !k25_sweep_seek_row(&cursor, summary->sweep, summary->layout, summary->axis_cells, cells))
        return NAN;
    const struct k25_scenario *scenario = &summary->sweep->scenario[cursor.scenario];
    if (!k25_scenario_question_for(scenario, &cursor.plan, &question, &error))
        return NAN;
    cli_uncertainty(scenario, &uncertainty);
    k25_predict(&question, &scenario->params, &prediction);
    k25_step_slopes(&question, &scenario->params, &prediction, slope);
    return 100 * expm1(K25_Z90 * k25_spread_of(slope, &uncertainty));
}

/* At most `most` rows, evenly spaced when there are more. */
static bool print_rows(const struct summary *summary, const struct k25_ranked *items, size_t count, size_t most,
                       struct k25_error *error)
{
    const struct k25_sweep_layout *layout = summary->layout;
    size_t picked[K25_SWEEP_COLUMNS], columns = pick_columns(layout, picked), shown = count < most ? count : most;
    struct cli_column column[K25_SWEEP_COLUMNS + 2] = {{0}};
    struct k25_sweep_cell cells[K25_SWEEP_COLUMNS];
    struct cli_table table;
    for (size_t i = 0; i < columns; i++) {
        const char *name = layout->column[picked[i]];
        bool key = picked[i] < layout->keys;
        /* A column with nothing in it, a price that no machine has, is not shown. */
        bool empty = !key;
        for (size_t r = 0; r < count && empty; r++)
            empty = k25_sweep_split(layout, items[r].text, items[r].length, cells) &&
                    (cells[picked[i]].length == 0 || strncmp(cells[picked[i]].text, "null", 4) == 0);
        column[i] = (struct cli_column){name, empty ? NULL : name, key ? CLI_TEXT : CLI_FIGURE, 40};
    }
    column[columns] = (struct cli_column){"tok_s_90_pct", summary->sweep != NULL ? "tok_s +- %" : NULL, CLI_FIGURE, 40};
    cli_table_open(&table, column);
    for (size_t r = 0; r < shown; r++) {
        const struct k25_ranked *item = &items[shown == count ? r : r * (count - 1) / (shown - 1)];
        if (!k25_sweep_split(layout, item->text, item->length, cells))
            continue;
        for (size_t i = 0; i < columns; i++)
            add_cell(layout, cells[picked[i]], picked[i], &table);
        double percent = sureness(summary, cells);
        if (isnan(percent))
            cli_table_nothing(&table);
        else
            cli_table_number(&table, percent);
    }
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

static void print_objective(const struct k25_sweep_layout *layout, size_t i)
{
    printf("%s %s", layout->objective[i].maximise ? "most" : "least", layout->column[layout->objective[i].column]);
}

/* " for plan.tp 8, box a" from the key of a group. */
static void print_group(const struct k25_sweep_layout *layout, const struct k25_sweep_group *group)
{
    const char *at = group->key, *end = at + group->key_length;
    char text[300];
    for (size_t i = 0; i < layout->groups && at < end; i++) {
        const char *stop = memchr(at, K25_SWEEP_SEPARATOR, (size_t)(end - at));
        size_t length = (size_t)((stop != NULL ? stop : end) - at);
        printf("%s%s %s", i == 0 ? " for " : ", ", layout->column[layout->group[i]],
               k25_sweep_cell_read(layout, (struct k25_sweep_cell){at, length}, text, sizeof text));
        at += length + 1;
    }
}

static bool print_front(const struct summary *summary, struct k25_sweep_group *group, struct k25_error *error)
{
    const struct k25_sweep_layout *layout = summary->layout;
    char count[40];
    k25_front_sort(&group->front);
    printf("\nPareto front");
    print_group(layout, group);
    printf(": ");
    for (size_t i = 0; i < layout->objectives; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_objective(layout, i);
    }
    printf("; %s point%s", count_text(group->front.count, count), group->front.count == 1 ? "" : "s");
    if (group->front.count > SHOWN)
        printf(", %d of them", SHOWN);
    printf("\n");
    return print_rows(summary, group->front.item, group->front.count, SHOWN, error);
}

static bool print_top(const struct summary *summary, const struct k25_sweep_group *group, struct k25_error *error)
{
    const struct k25_sweep_layout *layout = summary->layout;
    printf("\nbest %zu", group->top.count);
    print_group(layout, group);
    printf(": ");
    print_objective(layout, 0);
    printf("\n");
    return print_rows(summary, group->top.item, group->top.count, group->top.count, error);
}

static bool print_groups(const struct summary *summary, struct k25_sweep_store *store, struct k25_error *error)
{
    struct k25_sweep_summary *rows = &store->summary;
    size_t shown = rows->groups < GROUPS ? rows->groups : GROUPS;
    for (size_t g = 0; g < shown; g++) {
        struct k25_sweep_group *group = &rows->group[g];
        if (summary->layout->objectives > 1 && !print_front(summary, group, error))
            return false;
        if (group->top.count > 0 && !print_top(summary, group, error))
            return false;
    }
    if (shown < rows->groups)
        printf("\n%zu more groups are not shown\n", rows->groups - shown);
    if (summary->sweep != NULL && shown > 0 && summary->layout->objectives > 0)
        printf("\ntok_s +- %%: 90 %% interval, of what is not known of the parameters\n");
    return true;
}

bool cli_sweep_best(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout, struct k25_sweep_store *store,
                    struct k25_error *error)
{
    struct summary summary = {sweep, layout, NULL};
    if (sweep != NULL) {
        summary.axis_cells = k25_sweep_axis_cells_make(sweep, layout, error);
        if (summary.axis_cells == NULL)
            return false;
    }
    bool ok = print_groups(&summary, store, error);
    k25_sweep_axis_cells_free(summary.axis_cells);
    return ok;
}
