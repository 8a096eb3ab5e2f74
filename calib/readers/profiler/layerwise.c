#include "calib/readers/profiler/internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Cells between '|', from the right, because names begin with "|- ". */
static size_t split_bars(struct k25_span line, size_t columns, struct k25_span *cells)
{
    size_t found = 0;
    struct k25_span rest = line;
    while (found + 1 < columns) {
        size_t at = rest.size;
        while (at > 0 && rest.text[at - 1] != '|')
            at--;
        if (at == 0)
            return 0;
        found++;
        cells[columns - found] = k25_trim(k25_after(rest, at));
        rest.size = at - 1;
    }
    cells[0] = rest;
    return columns;
}

static enum k25_profiler_column column_of(struct k25_span heading)
{
    if (k25_span_is(heading, "cuda_time_us"))
        return COLUMN_SELF_DEVICE;
    if (k25_span_is(heading, "invocations"))
        return COLUMN_CALLS;
    return COLUMN_IGNORED;
}

/* "name | cuda_time_us | pct_cuda_time | invocations", possibly after a tag. */
static bool heading(struct k25_profiler_reader *reader, struct k25_span line)
{
    const char *bar = memchr(line.text, '|', line.size);
    if (bar == NULL || k25_span_find(line, "cuda_time_us") == NULL)
        return true;
    struct k25_span first = {line.text, (size_t)(bar - line.text)}, words = k25_trim(first);
    size_t word = words.size;
    while (word > 0 && isalpha((unsigned char)words.text[word - 1]))
        word--;
    struct k25_span name = k25_after(words, word);
    if (!k25_span_is(name, "name") && !k25_span_is(name, "layer"))
        return true;
    struct k25_span front = {line.text, (size_t)(name.text - line.text)}, cells[K25_TABLE_COLUMNS];
    size_t columns = 1, times = 0;
    for (size_t i = 0; i < line.size; i++)
        columns += line.text[i] == '|';
    if (columns > K25_TABLE_COLUMNS)
        return true;
    split_bars(line, columns, cells);
    for (size_t i = 1; i < columns; i++)
        times += column_of(cells[i]) == COLUMN_SELF_DEVICE;
    if (times != 1)
        return true;
    struct k25_open_table *open = k25_profiler_open(reader, front);
    if (open == NULL)
        return false;
    open->table.layerwise = true;
    open->table.line = reader->evidence.line;
    open->state = TABLE_ROWS;
    open->device = true;
    open->columns = columns;
    for (size_t i = 1; i < columns; i++)
        open->column[i] = column_of(cells[i]);
    return true;
}

/* "|-- name": as deep as there are dashes. */
static int depth_of(struct k25_span *name)
{
    int depth = 0;
    *name = k25_trim(*name);
    if (name->size < 2 || name->text[0] != '|' || name->text[1] != '-')
        return 0;
    for (*name = k25_after(*name, 1); name->size > 0 && name->text[0] == '-'; depth++)
        *name = k25_after(*name, 1);
    *name = k25_trim(*name);
    return depth;
}

static bool row(struct k25_profiler_reader *reader, struct k25_open_table *open, struct k25_span line)
{
    struct k25_span cells[K25_TABLE_COLUMNS];
    int number = reader->evidence.line;
    split_bars(line, open->columns, cells);
    double us = -1, calls = -1;
    for (size_t i = 1; i < open->columns; i++) {
        double *value = open->column[i] == COLUMN_SELF_DEVICE ? &us : open->column[i] == COLUMN_CALLS ? &calls : NULL;
        if (value != NULL && (!k25_span_real(cells[i], value) || *value < 0 || *value > 1e12)) {
            open->damaged++;
            return k25_evidence_fault(&reader->evidence, number, line, cells[i].text, "'%.*s' is not a number of %s",
                                      (int)cells[i].size, cells[i].text, value == &us ? "microseconds" : "calls");
        }
    }
    struct k25_span name = cells[0];
    int depth = depth_of(&name);
    struct k25_profiler_row *added = k25_profiler_add(reader, open, name);
    if (added == NULL)
        return false;
    added->depth = depth;
    added->self_device_ns = added->device_total_ns = llround(us * 1e3);
    added->calls = calls < 0 ? -1 : llround(calls);
    return true;
}

/* "=====" under the headings. */
static bool is_line(struct k25_span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.text[i] != '=')
            return false;
    }
    return text.size > 0;
}

bool k25_layerwise_line(struct k25_profiler_reader *reader, struct k25_span line, bool *taken)
{
    *taken = true;
    for (size_t i = 0; i < reader->count; i++) {
        struct k25_open_table *open = &reader->open[i];
        ptrdiff_t front = open->table.layerwise && open->state == TABLE_ROWS ? k25_front_match(open->front, line) : -1;
        if (front < 0)
            continue;
        struct k25_span rest = k25_after(line, (size_t)front), cells[K25_TABLE_COLUMNS];
        struct k25_span trimmed = k25_trim(rest);
        if (is_line(trimmed))
            return true;
        if (trimmed.size > 0 && split_bars(rest, open->columns, cells) != 0)
            return row(reader, open, rest);
        open->state = TABLE_DONE;
        open->table.closed = true;
    }
    size_t before = reader->count;
    if (!heading(reader, line))
        return false;
    *taken = reader->count > before;
    return true;
}
