#include "scenarios/sweep/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "model/predict/outputs.h"
#include "scenarios/sweep/internal.h"

enum { LINE = 64 /* bytes of a cache line */, SYMBOLS = 256 };

/* A cell that is written only when its number changes. */
struct memo {
    double number, printed;
    size_t length;
    char text[40];
};

struct k25_sweep_worker {
    const struct k25_sweep *sweep;
    const struct k25_sweep_layout *layout;
    const struct k25_sweep_axis_cells *axis_cells;
    struct k25_sweep_cursor cursor;
    struct k25_sweep_chunk chunk;

    /* The last question and its prediction: parts that the next point shares with it are not computed again. */
    struct k25_question question[2];
    int current;
    bool asked;
    struct k25_prediction prediction;

    struct k25_symbol *symbols; /* bound to `values` */
    double values[SYMBOLS];     /* outputs, then keys of the plan */
    size_t outputs, plan_keys;
    enum k25_output output[K25_OUTPUTS]; /* those needed by columns or constraints */
    size_t plan_key[SYMBOLS];            /* those used in constraints */
    struct k25_expression *constraint[K25_SWEEP_CONSTRAINTS];

    struct k25_sweep_cell cell[K25_SWEEP_COLUMNS]; /* of the axes */
    struct memo memo[K25_SWEEP_COLUMNS];
    double printed[K25_SWEEP_COLUMNS]; /* objectives, rounded as in their cells */
    size_t longest;                    /* bytes of a row */
};

/* ---- opening ---- */

static bool compile(struct k25_sweep_worker *worker, struct k25_error *error)
{
    const struct k25_sweep *sweep = worker->sweep;
    size_t count;
    bool need[SYMBOLS] = {false}, used[SYMBOLS];
    worker->symbols = k25_sweep_symbols(sweep, worker->values, &count);
    if (worker->symbols == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    if (count > SYMBOLS)
        return k25_fail(error, K25_RESOURCE, "too many outputs and keys of the plan");
    for (size_t i = 0; i < sweep->constraints; i++) {
        const struct k25_sweep_constraint *c = &sweep->constraint[i];
        worker->constraint[i] =
            k25_expression_compile(c->text, worker->symbols, used, sweep->file, c->line, c->column, error);
        if (worker->constraint[i] == NULL)
            return false;
        for (size_t s = 0; s < count; s++)
            need[s] |= used[s];
    }
    for (size_t c = 0; c < sweep->columns; c++) {
        if (sweep->column[c].source == K25_CELL_OUTPUT)
            need[sweep->column[c].index] = true;
    }
    for (size_t s = 0; s < count; s++) {
        if (need[s] && s < K25_OUTPUTS)
            worker->output[worker->outputs++] = (enum k25_output)s;
        else if (need[s])
            worker->plan_key[worker->plan_keys++] = s;
    }
    return true;
}

struct k25_sweep_worker *k25_sweep_worker_open(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                                               const struct k25_sweep_axis_cells *axis_cells, struct k25_error *error)
{
    size_t size = (sizeof(struct k25_sweep_worker) + 4095) / 4096 * 4096;
    struct k25_sweep_worker *worker = aligned_alloc(4096, size);
    if (worker == NULL) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    memset(worker, 0, size);
    worker->sweep = sweep;
    worker->layout = layout;
    worker->axis_cells = axis_cells;
    worker->longest = strlen(layout->tail);
    for (size_t c = 0; c < layout->columns; c++) {
        worker->longest +=
            layout->lead_length[c] + (c < layout->keys ? axis_cells->longest[c] : sizeof worker->memo[c].text);
        worker->memo[c].number = NAN;
    }
    k25_sweep_summary_open(layout, &worker->chunk.summary);
    if (compile(worker, error))
        return worker;
    k25_sweep_worker_close(worker);
    return NULL;
}

void k25_sweep_worker_close(struct k25_sweep_worker *worker)
{
    if (worker == NULL)
        return;
    for (size_t i = 0; i < K25_SWEEP_CONSTRAINTS; i++)
        k25_expression_free(worker->constraint[i]);
    free(worker->symbols);
    free(worker->chunk.text);
    k25_sweep_summary_close(&worker->chunk.summary);
    free(worker);
}

/* ---- cells ---- */

static size_t write_exact(double number, char out[40])
{
    if (number == rint(number) && fabs(number) < 9e15)
        return k25_write_whole((int64_t)number, out);
    k25_text_real(number, out, 40);
    return strlen(out);
}

static void write_memo(struct memo *memo, double number)
{
    if (number != memo->number) {
        memo->number = number;
        memo->length = write_exact(number, memo->text);
    }
}

/* Updates the cells of the axes that the last move changed. */
static void move_cells(struct k25_sweep_worker *worker)
{
    const struct k25_sweep *sweep = worker->sweep;
    const struct k25_sweep_cursor *cursor = &worker->cursor;
    for (size_t c = worker->layout->keys; c > 0; c--) {
        size_t column = c - 1, a = sweep->column[column].axis;
        if (a < cursor->changed)
            return;
        if (worker->axis_cells->cell[column] != NULL) {
            worker->cell[column] = worker->axis_cells->cell[column][cursor->position[a]];
            continue;
        }
        write_memo(&worker->memo[column], k25_sweep_number(&sweep->axis[a], cursor->position[a], 0));
        worker->cell[column] = (struct k25_sweep_cell){worker->memo[column].text, worker->memo[column].length};
    }
}

static char *put(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

static char *put_plan(const struct k25_sweep_worker *worker, size_t column, char *at, struct memo *memo)
{
    const struct k25_plan_key *key = &worker->sweep->plan_key[worker->sweep->column[column].index];
    double number = k25_plan_get(key, &worker->cursor.plan);
    bool json = worker->layout->format == K25_SWEEP_JSONL;
    if (key->field->type == K25_BOOL)
        return number != 0 ? put(at, "true", 4) : put(at, "false", 5);
    if (key->field->type == K25_ENUM) {
        const char *word = key->field->names[(int)number];
        size_t length = strlen(word);
        if (!json)
            return put(at, word, length);
        *at = '"';
        at = put(at + 1, word, length);
        *at = '"';
        return at + 1;
    }
    write_memo(memo, number);
    return put(at, memo->text, memo->length);
}

static char *put_output(struct k25_sweep_worker *worker, size_t column, char *at)
{
    size_t output = worker->sweep->column[column].index;
    double value = worker->values[output];
    worker->printed[column] = NAN;
    if (!isfinite(value))
        return worker->layout->format == K25_SWEEP_JSONL ? put(at, "null", 4) : at;
    if (k25_output_info[output].kind == K25_OUTPUT_TRUTH)
        return value != 0 ? put(at, "true", 4) : put(at, "false", 5);
    struct memo *memo = &worker->memo[column];
    if (value != memo->number) {
        memo->number = value;
        memo->length = k25_write_six(value, memo->text, &memo->printed);
    }
    worker->printed[column] = memo->printed;
    memcpy(at, memo->text, K25_NUMBER_SIZE); /* a fixed length is copied faster; the buffer is large enough */
    return at + memo->length;
}

static bool make_room(struct k25_sweep_chunk *chunk, size_t bytes, struct k25_error *error)
{
    if (chunk->room - chunk->size >= bytes)
        return true;
    size_t room = chunk->room * 2 > chunk->size + bytes ? chunk->room * 2 : (chunk->size + bytes) * 16;
    char *larger = realloc(chunk->text, room);
    if (larger == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    chunk->text = larger;
    chunk->room = room;
    return true;
}

/* The value as rounded in the cell; keys of the plan are written with all their digits. */
static double objective_value(const struct k25_sweep_worker *worker, size_t index)
{
    const struct k25_sweep *sweep = worker->sweep;
    const struct k25_sweep_column *column = &sweep->column[index];
    if (column->source == K25_CELL_OUTPUT)
        return worker->printed[index];
    const struct k25_plan_key *key = column->source == K25_CELL_PLAN
                                         ? &sweep->plan_key[column->index]
                                         : sweep->axis[column->axis].key[column->index].plan;
    return k25_plan_get(key, &worker->cursor.plan);
}

static bool rank_row(struct k25_sweep_worker *worker, size_t at, struct k25_error *error)
{
    const struct k25_sweep_layout *layout = worker->layout;
    struct k25_sweep_chunk *chunk = &worker->chunk;
    double value[K25_SWEEP_OBJECTIVES] = {0};
    char key[K25_SWEEP_GROUP_KEY];
    for (size_t i = 0; i < layout->objectives; i++) {
        value[i] = objective_value(worker, layout->objective[i].column);
    }
    size_t used = k25_sweep_group_key(layout, worker->cell, key);
    return k25_sweep_summary_rank(&chunk->summary, key, used, value, at, chunk->size - at - 1, error);
}

static bool write_row(struct k25_sweep_worker *worker, struct k25_error *error)
{
    const struct k25_sweep_layout *layout = worker->layout;
    struct k25_sweep_chunk *chunk = &worker->chunk;
    if (!make_room(chunk, worker->longest, error))
        return false;
    size_t start = chunk->size;
    char *at = chunk->text + start;
    for (size_t c = 0; c < layout->columns; c++) {
        at = put(at, layout->lead[c], layout->lead_length[c]);
        if (c < layout->keys)
            at = put(at, worker->cell[c].text, worker->cell[c].length);
        else if (worker->sweep->column[c].source == K25_CELL_PLAN)
            at = put_plan(worker, c, at, &worker->memo[c]);
        else
            at = put_output(worker, c, at);
    }
    at = put(at, layout->tail, strlen(layout->tail));
    chunk->size = (size_t)(at - chunk->text);
    if (layout->objectives > 0 && !rank_row(worker, start, error))
        return false;
    chunk->summary.counts.rows++;
    return true;
}

/* ---- points ---- */

/* False: the plan is invalid for this architecture and machine; counted with its reason. */
static bool ask(struct k25_sweep_worker *worker)
{
    const struct k25_scenario *scenario = &worker->sweep->scenario[worker->cursor.scenario];
    struct k25_question *question = &worker->question[worker->current];
    const struct k25_question *last = &worker->question[!worker->current];
    struct k25_error error;
    bool valid;
    bool again = worker->asked && last->architecture == &scenario->architecture;
    if (again) {
        *question = *last; /* fields independent of the plan, and the links of ranks that stay the same */
        valid = k25_question_replan(question, &worker->cursor.plan, NULL, &error);
    } else {
        valid = k25_scenario_question_for(scenario, &worker->cursor.plan, question, &error);
    }
    if (!valid) {
        k25_sweep_count_invalid(&worker->chunk.summary.counts, error.message, 1);
        return false;
    }
    if (again)
        k25_predict_next(last, question, &scenario->params, &worker->prediction);
    else
        k25_predict(question, &scenario->params, &worker->prediction);
    worker->asked = true;
    worker->current = !worker->current;
    return true;
}

/* The first constraint that is not met, of those with this value of `early`; -1: all are met. */
static int find_rejection(const struct k25_sweep_worker *worker, bool early)
{
    for (size_t i = 0; i < worker->sweep->constraints; i++) {
        if (worker->sweep->constraint[i].early != early)
            continue;
        double value = k25_expression_value(worker->constraint[i]);
        if (!(value > 0 || value < 0))
            return (int)i;
    }
    return -1;
}

static bool run_point(struct k25_sweep_worker *worker, struct k25_error *error)
{
    struct k25_sweep_counts *counts = &worker->chunk.summary.counts;
    counts->points++;
    for (size_t i = 0; i < worker->plan_keys; i++) {
        size_t symbol = worker->plan_key[i];
        worker->values[symbol] = k25_plan_get(&worker->sweep->plan_key[symbol - K25_OUTPUTS], &worker->cursor.plan);
    }
    int rejection = find_rejection(worker, true);
    if (rejection < 0) {
        if (!ask(worker))
            return true;
        const struct k25_question *question = &worker->question[!worker->current];
        for (size_t i = 0; i < worker->outputs; i++)
            worker->values[worker->output[i]] = k25_output_value(question, &worker->prediction, worker->output[i]);
        counts->evaluated++;
        rejection = find_rejection(worker, false);
    }
    if (rejection < 0)
        return write_row(worker, error);
    counts->rejected[rejection]++;
    return true;
}

const struct k25_sweep_chunk *k25_sweep_worker_run(struct k25_sweep_worker *worker, uint64_t from, uint64_t to,
                                                   struct k25_error *error)
{
    struct k25_sweep_chunk *chunk = &worker->chunk;
    chunk->from = from;
    chunk->to = to;
    chunk->size = 0;
    k25_sweep_summary_clear(&chunk->summary);
    if (worker->cursor.sweep == NULL || worker->cursor.point != from)
        k25_sweep_seek(&worker->cursor, worker->sweep, from);
    worker->cursor.changed = 0; /* all cells are out of date: they belong to another chunk */
    for (uint64_t point = from; point < to; point++) {
        move_cells(worker);
        if (!run_point(worker, error))
            return NULL;
        k25_sweep_next(&worker->cursor);
    }
    return chunk;
}
