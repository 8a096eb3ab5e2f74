#include "cli/render/operators.h"

#include <stdio.h>
#include <string.h>

/* ---- summed up by name ---- */

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

/* ---- one by one ---- */

static const struct cli_column operator_columns[] = {
    {"operator", NULL, CLI_TEXT, 0},
    {"layers", NULL, CLI_TEXT, 0},
    {"", "operator", CLI_TEXT, 0},
    {"part", NULL, CLI_TEXT, 0},
    {"kind", NULL, CLI_TEXT, 0},
    {"class", NULL, CLI_TEXT, 0},
    {"calls", "calls", CLI_COUNT, 0},
    {"rows", "rows", CLI_COUNT, 0},
    {"n", NULL, CLI_COUNT, 0},
    {"k", NULL, CLI_COUNT, 0},
    {"", "n x k", CLI_TEXT, 0},
    {"weights_read_bytes", "weights", CLI_COUNT, 0},
    {"weights_resident_bytes", NULL, CLI_COUNT, 0},
    {"message_bytes", "message", CLI_COUNT, 0},
    {"", "bound by", CLI_TEXT, 0},
    {"bound", NULL, CLI_TEXT, 0},
    {"backend", NULL, CLI_TEXT, 0},
    {"us_per_call", "us/call", CLI_FIGURE, 0},
    {"time_ms", "ms", CLI_FIGURE, 0},
    {"time_low_ms", NULL, CLI_FIGURE, 0},
    {"time_high_ms", NULL, CLI_FIGURE, 0},
    {"transfer_ms", NULL, CLI_FIGURE, 0},
    {"wait_ms", NULL, CLI_FIGURE, 0},
    {"floor_ms", NULL, CLI_FIGURE, 0},
    {"share", NULL, CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void number_or_nothing(struct cli_table *table, bool number, double value)
{
    if (number)
        cli_table_number(table, value);
    else
        cli_table_nothing(table);
}

static void text_or_nothing(struct cli_table *table, bool text, const char *value)
{
    if (text)
        cli_table_text(table, "%s", value);
    else
        cli_table_nothing(table);
}

static void add_operator(struct cli_table *table, const struct cli_answer *answer, size_t i)
{
    const struct k25_operator *op = &answer->prediction.step_work.op[i];
    const struct k25_priced *priced = &answer->prediction.op[i];
    const struct k25_interval *interval = &answer->intervals.op[i];
    bool kernel = op->kind == K25_OP_KERNEL, product = kernel && op->n > 0;
    const char *bound = kernel ? k25_bound_names[priced->bound] : priced->wait > priced->transfer ? "wait" : "transfer";
    const char *backend = kernel ? "" : k25_backend_names[priced->backend];
    bool of_layers = op->layers[0] != '\0';
    cli_table_text(table, "%s", k25_operator_names[op->id]);
    cli_table_text(table, "%s", op->layers);
    cli_table_text(table, "%s%s%s%s", k25_operator_names[op->id], of_layers ? " [" : "", op->layers,
                   of_layers ? "]" : "");
    cli_table_text(table, "%s", k25_part_names[op->part]);
    cli_table_text(table, "%s", k25_operator_kind_names[op->kind]);
    text_or_nothing(table, kernel, k25_kernel_class_names[kernel ? op->call.class : 0]);
    cli_table_number(table, op->calls);
    cli_table_number(table, op->rows);
    number_or_nothing(table, product, op->n);
    number_or_nothing(table, product, op->k);
    if (product)
        cli_table_text(table, "%.0f x %.0f", op->n, op->k);
    else
        cli_table_nothing(table);
    number_or_nothing(table, op->read > 0, op->read);
    number_or_nothing(table, op->resident > 0, op->resident);
    number_or_nothing(table, !kernel, op->message);
    cli_table_text(table, "%s", kernel ? bound : backend);
    cli_table_text(table, "%s", bound);
    text_or_nothing(table, !kernel, backend);
    cli_table_number(table, priced->time / op->calls * 1e6);
    cli_table_number(table, priced->time * 1e3);
    cli_table_number(table, interval->low * 1e3);
    cli_table_number(table, interval->high * 1e3);
    number_or_nothing(table, !kernel, priced->transfer * 1e3);
    number_or_nothing(table, !kernel, priced->wait * 1e3);
    number_or_nothing(table, kernel, priced->floor * 1e3);
    cli_table_number(table, priced->time / answer->prediction.gpu_busy);
}

static void add_total(struct cli_table *table, const struct cli_answer *answer, const char *name,
                      enum k25_output output)
{
    const struct k25_interval *interval = &answer->intervals.output[output];
    double time = k25_output_value(&answer->question, &answer->prediction, output);
    for (size_t c = 0; c < table->width; c++) {
        const char *key = table->columns[c].key;
        if (strcmp(key, "operator") == 0)
            cli_table_text(table, "%s", name);
        else if (strcmp(key, "kind") == 0)
            cli_table_text(table, "total");
        else if (strcmp(key, "time_ms") == 0)
            cli_table_number(table, time);
        else if (strcmp(key, "time_low_ms") == 0)
            cli_table_number(table, interval->low);
        else if (strcmp(key, "time_high_ms") == 0)
            cli_table_number(table, interval->high);
        else if (strcmp(key, "share") == 0)
            cli_table_number(table, time / 1e3 / answer->prediction.gpu_busy);
        else
            cli_table_nothing(table);
    }
}

void cli_operator_table(const struct cli_answer *answer, bool totals, struct cli_table *table)
{
    const struct k25_prediction *p = &answer->prediction;
    cli_table_open(table, operator_columns);
    /* A plan that does not fit runs no step. */
    for (size_t i = 0; p->memory.fits && i < p->step_work.count; i++)
        add_operator(table, answer, i);
    if (totals && p->memory.fits) {
        add_total(table, answer, "gpu_busy", K25_OUT_GPU_BUSY);
        add_total(table, answer, "gaps", K25_OUT_GAPS);
        add_total(table, answer, "host", K25_OUT_HOST);
        add_total(table, answer, "step", K25_OUT_STEP);
    }
}
