#include "calib/readers/profiler/table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/list.h"
#include "base/text.h"
#include "calib/readers/profiler/internal.h"

enum { FEWEST_DASHES = 4, FEWEST_RUNS = 3 };
static const double MOST_NS = 1e15; /* eleven days: more is no time of a profile */

/* The runs of dashes at the end of a line, at least three; returns how many, and where the first one starts. */
static size_t rule_of(struct k25_span line, size_t *starts, size_t *ends, size_t *front)
{
    size_t at = line.size, runs = 0;
    while (at > 0 && isspace((unsigned char)line.text[at - 1]))
        at--;
    while (at > 0 && runs < K25_TABLE_COLUMNS) {
        size_t end = at;
        while (at > 0 && line.text[at - 1] == '-')
            at--;
        if (end - at < FEWEST_DASHES)
            break;
        *front = at;
        starts[runs] = at;
        ends[runs++] = end;
        if (at < 2 || line.text[at - 1] != ' ' || line.text[at - 2] != ' ')
            break;
        at -= 2;
    }
    if (runs < FEWEST_RUNS)
        return 0;
    for (size_t i = 0; i < runs; i++) {
        starts[i] -= *front;
        ends[i] -= *front;
    }
    for (size_t i = 0, j = runs - 1; i < j; i++, j--) {
        size_t start = starts[i], end = ends[i];
        starts[i] = starts[j];
        ends[i] = ends[j];
        starts[j] = start;
        ends[j] = end;
    }
    return runs;
}

/* Torch writes the device's name into the headings: "Self CUDA", "CUDA total", "Self XPU". In 2020 it said "Self
 * CPU total" for "Self CPU". */
static enum k25_profiler_column column_of(struct k25_span heading)
{
    char text[48];
    if (heading.size >= sizeof text)
        return COLUMN_IGNORED;
    for (size_t i = 0; i < heading.size; i++)
        text[i] = (char)tolower((unsigned char)heading.text[i]);
    text[heading.size] = '\0';
    if (strcmp(text, "name") == 0)
        return COLUMN_NAME;
    if (strcmp(text, "# of calls") == 0 || strcmp(text, "number of calls") == 0 || strcmp(text, "calls") == 0)
        return COLUMN_CALLS;
    if (strstr(text, " mem") != NULL || strstr(text, "avg") != NULL)
        return COLUMN_IGNORED;
    bool self = strncmp(text, "self ", 5) == 0, cpu = strstr(text, "cpu") != NULL;
    bool share = strchr(text, '%') != NULL, total = strstr(text, " total") != NULL;
    if (!self && !total)
        return COLUMN_IGNORED;
    if (share)
        return self && !cpu ? COLUMN_DEVICE_SHARE : COLUMN_IGNORED;
    if (self)
        return cpu ? COLUMN_SELF_CPU : COLUMN_SELF_DEVICE;
    return cpu ? COLUMN_CPU_TOTAL : COLUMN_DEVICE_TOTAL;
}

/* The headings: as many as there are runs of dashes, one of them "Name". Anything else before them is noise. */
static bool headings(struct k25_profiler_reader *reader, struct k25_open_table *open, struct k25_span line)
{
    struct k25_span cells[K25_TABLE_COLUMNS];
    size_t count = k25_split_wide(line, cells, K25_TABLE_COLUMNS);
    if (count == 0 || !k25_span_is(cells[0], "Name"))
        return true;
    open->table.line = reader->evidence.line;
    if (count != open->columns) {
        open->state = TABLE_DONE;
        return k25_evidence_fault(&reader->evidence, reader->evidence.line, line, cells[0].text,
                                  "%zu headings under %zu runs of dashes: lines were wrapped or cut", count,
                                  open->columns);
    }
    for (size_t i = 0; i < count; i++) {
        open->column[i] = column_of(cells[i]);
        open->device |= open->column[i] == COLUMN_SELF_DEVICE || open->column[i] == COLUMN_DEVICE_TOTAL;
    }
    open->state = TABLE_HEADED;
    return true;
}

static bool is_share(struct k25_span cell)
{
    double ignored;
    return cell.size > 1 && cell.text[cell.size - 1] == '%' &&
           (k25_span_real((struct k25_span){cell.text, cell.size - 1}, &ignored) ||
            strncasecmp(cell.text, "nan", 3) == 0);
}

/* Whether a line between the rules wants to be a row: any other line there was written by someone else. */
static bool wants_to_be_row(const struct k25_span *cells, size_t count)
{
    double ignored;
    for (size_t i = 1; i < count && i < K25_TABLE_COLUMNS; i++) {
        if (is_share(cells[i]) || k25_span_duration(cells[i], &ignored))
            return true;
    }
    return false;
}

/* Cells under the runs of dashes: for rows with empty cells, and names with two blanks in a row. */
static bool cut_by_rule(const struct k25_open_table *open, struct k25_span line, struct k25_span *cells)
{
    for (size_t i = 0; i < open->columns; i++) {
        size_t start = i == 0 ? 0 : open->end[i - 1] + 2, end = i + 1 == open->columns ? line.size : open->end[i];
        if (start > line.size)
            return false;
        if (i > 0 && (line.text[start - 1] != ' ' || line.text[start - 2] != ' '))
            return false;
        cells[i] = k25_trim((struct k25_span){line.text + start, (end < line.size ? end : line.size) - start});
    }
    return true;
}

/* One cell into the row; false when it is not what its heading says. */
static bool take(struct k25_profiler_row *row, enum k25_profiler_column column, struct k25_span cell)
{
    long long calls;
    double ns = -1;
    int64_t *time = column == COLUMN_SELF_CPU       ? &row->self_cpu_ns
                    : column == COLUMN_CPU_TOTAL    ? &row->cpu_total_ns
                    : column == COLUMN_SELF_DEVICE  ? &row->self_device_ns
                    : column == COLUMN_DEVICE_TOTAL ? &row->device_total_ns
                                                    : NULL;
    if (column == COLUMN_CALLS) {
        if (!k25_span_count(cell, &calls))
            return false;
        row->calls = calls;
        return true;
    }
    if (column == COLUMN_DEVICE_SHARE)
        return cell.size == 0 || is_share(cell) || k25_span_is(cell, "--") || k25_span_is(cell, "NaN") ||
               k25_span_is(cell, "nan");
    if (time == NULL || k25_span_is(cell, "--"))
        return true;
    if (!k25_span_duration(cell, &ns) || ns < 0 || ns > MOST_NS)
        return false;
    *time = llround(ns);
    return true;
}

static bool row(struct k25_profiler_reader *reader, struct k25_open_table *open, struct k25_span line)
{
    struct k25_span cells[K25_TABLE_COLUMNS];
    struct k25_evidence *evidence = &reader->evidence;
    size_t count = k25_split_wide(line, cells, K25_TABLE_COLUMNS);
    if (!wants_to_be_row(cells, count))
        return true;
    if (count != open->columns && !cut_by_rule(open, line, cells)) {
        open->damaged++;
        return k25_evidence_fault(evidence, evidence->line, line, cells[count < K25_TABLE_COLUMNS ? count - 1 : 0].text,
                                  "a row of %zu cells, expected %zu: cut or mixed with another line", count,
                                  open->columns);
    }
    if (cells[0].size == 0) /* more lines of a source location */
        return true;
    struct k25_profiler_row trial; /* a row with a bad cell must not get in */
    for (size_t i = 0; i < open->columns; i++) {
        if (take(&trial, open->column[i], cells[i]))
            continue;
        open->damaged++;
        return k25_evidence_fault(evidence, evidence->line, line, cells[i].text, "'%.*s' is not a %s",
                                  (int)cells[i].size, cells[i].text,
                                  open->column[i] == COLUMN_CALLS          ? "number of calls"
                                  : open->column[i] == COLUMN_DEVICE_SHARE ? "percentage"
                                                                           : "time with a unit (us, ms, s)");
    }
    struct k25_profiler_row *added = k25_profiler_add(reader, open, cells[0]);
    if (added == NULL)
        return false;
    for (size_t i = 0; i < open->columns; i++)
        take(added, open->column[i], cells[i]);
    return true;
}

/* "Self CUDA time total: 1.389s". */
static bool footer(struct k25_profiler_reader *reader, struct k25_open_table *open, struct k25_span line)
{
    struct k25_span text = k25_trim(line);
    const char *label = k25_span_find(text, " time total:");
    if (!k25_span_starts(text, "Self ") || label == NULL)
        return true;
    double ns;
    struct k25_span value = k25_trim(k25_after(text, (size_t)(label - text.text) + strlen(" time total:")));
    if (!k25_span_duration(value, &ns) || ns < 0 || ns > MOST_NS)
        return k25_evidence_fault(&reader->evidence, reader->evidence.line, line, value.text,
                                  "'%.*s' is not a time with a unit (us, ms, s)", (int)value.size, value.text);
    bool cpu = k25_span_starts(text, "Self CPU");
    *(cpu ? &open->table.self_cpu_total_ns : &open->table.self_device_total_ns) = llround(ns);
    return true;
}

/* A line of dashes: opens a table, or is the second or third of one with the same front. */
static bool rule(struct k25_profiler_reader *reader, struct k25_span line, size_t front)
{
    for (size_t i = reader->count; i-- > 0;) {
        struct k25_open_table *open = &reader->open[i];
        if (open->table.layerwise || open->state >= TABLE_FOOTER ||
            k25_front_match(open->front, line) != (ptrdiff_t)front)
            continue;
        if (open->state == TABLE_RULED) { /* the dashes before were another program's */
            size_t same;
            open->columns = rule_of(line, open->start, open->end, &same);
            return true;
        }
        open->state = open->state == TABLE_HEADED ? TABLE_ROWS : TABLE_FOOTER;
        open->table.closed = open->state == TABLE_FOOTER;
        return true;
    }
    struct k25_open_table *open = k25_profiler_open(reader, (struct k25_span){line.text, front});
    if (open == NULL)
        return false;
    size_t same;
    open->columns = rule_of(line, open->start, open->end, &same);
    return true;
}

static bool one_line(struct k25_profiler_reader *reader, struct k25_span line)
{
    size_t starts[K25_TABLE_COLUMNS], ends[K25_TABLE_COLUMNS], front;
    if (rule_of(line, starts, ends, &front) > 0)
        return rule(reader, line, front);
    bool taken;
    if (!k25_layerwise_line(reader, line, &taken))
        return false;
    if (taken)
        return true;
    struct k25_open_table *best = NULL; /* the longest front wins, then the table that started last */
    ptrdiff_t length = -1;
    for (size_t i = reader->count; i-- > 0;) {
        struct k25_open_table *open = &reader->open[i];
        ptrdiff_t match = open->table.layerwise || open->state == TABLE_DONE ? -1 : k25_front_match(open->front, line);
        if (match > length) {
            length = match;
            best = open;
        }
    }
    if (best == NULL)
        return true;
    struct k25_span rest = k25_after(line, (size_t)length);
    return best->state == TABLE_RULED    ? headings(reader, best, rest)
           : best->state == TABLE_ROWS   ? row(reader, best, rest)
           : best->state == TABLE_FOOTER ? footer(reader, best, rest)
                                         : true;
}

static bool has_device_time(const struct k25_profiler_table *table)
{
    for (size_t i = 0; i < table->rows; i++) {
        if (table->row[i].self_device_ns > 0 || table->row[i].device_total_ns > 0)
            return true;
    }
    return false;
}

/* What a finished table is refused for; true: keep it when `*keep`. */
static bool judge(struct k25_profiler_reader *reader, struct k25_open_table *open, bool *keep)
{
    struct k25_evidence *evidence = &reader->evidence;
    struct k25_profiler_table *table = &open->table;
    struct k25_span nowhere = {"", 0};
    *keep = false;
    if (table->line == 0 || (open->state == TABLE_DONE && !table->layerwise))
        return true; /* no headings ever came, or a fault has been counted */
    if (table->layerwise)
        table->closed = true; /* has no line that closes it */
    if (!open->device)
        return k25_evidence_fault(evidence, table->line, nowhere, NULL,
                                  "no CUDA columns in a table of %zu row%s: the capture holds CPU time only, "
                                  "profile with ProfilerActivity.CUDA",
                                  table->rows, table->rows == 1 ? "" : "s");
    if (!table->closed &&
        !k25_evidence_fault(evidence, table->line, nowhere, NULL,
                            "the table that starts here never closes: the text was cut behind its row %zu",
                            table->rows))
        return false;
    k25_profiler_levels(table);
    if (!has_device_time(table) && open->damaged == 0)
        return k25_evidence_fault(evidence, table->line, nowhere, NULL,
                                  "no kernel time in a table of %zu row%s: kernels inside CUDA graphs are not "
                                  "recorded here, re-run with --enforce-eager or use the kineto trace",
                                  table->rows, table->rows == 1 ? "" : "s");
    *keep = table->rows > 0;
    return true;
}

static bool keep_table(struct k25_profiler_reader *reader, struct k25_open_table *open)
{
    struct k25_profiler_tables *tables = reader->tables;
    open->table.tag = k25_front_tag(&tables->arena, open->front);
    struct k25_profiler_table *kept = open->table.tag == NULL ? NULL : K25_LIST_ADD(tables->table, tables->tables);
    if (kept == NULL)
        return k25_out_of_memory(reader->evidence.file, reader->evidence.error);
    *kept = open->table;
    open->table.row = NULL;
    return true;
}

static bool finish(struct k25_profiler_reader *reader)
{
    struct k25_evidence *evidence = &reader->evidence;
    for (size_t i = 0; i < reader->count; i++) {
        bool keep;
        if (!judge(reader, &reader->open[i], &keep) || (keep && !keep_table(reader, &reader->open[i])))
            return false;
    }
    if (reader->tables->tables > 0)
        return true;
    if (evidence->left_out->count > 0)
        return k25_fail(evidence->error, K25_BAD_INPUT, "%s", evidence->left_out->first);
    return k25_fail(evidence->error, K25_BAD_INPUT,
                    "%s: no table of rows, expected a print of key_averages().table(): a line of dashes, headings "
                    "that start with 'Name', a line of dashes, rows",
                    evidence->file);
}

/* "profiler_out_3.txt" is of rank 3. */
static int rank_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    const char *mark = strstr(name, "profiler_out_");
    if (mark == NULL)
        return -1;
    mark += strlen("profiler_out_");
    size_t digits = strspn(mark, "0123456789");
    long long rank = -1;
    return digits > 0 && digits < 7 && k25_span_count((struct k25_span){mark, digits}, &rank) ? (int)rank : -1;
}

struct k25_profiler_tables *k25_profiler_tables_parse(const char *text, size_t size, const char *name,
                                                      const struct k25_evidence_options *options,
                                                      struct k25_error *error)
{
    struct k25_profiler_tables *tables = calloc(1, sizeof *tables);
    if (tables == NULL) {
        k25_out_of_memory(name, error);
        return NULL;
    }
    tables->rank = rank_of(name);
    struct k25_profiler_reader reader = {.tables = tables};
    reader.evidence =
        (struct k25_evidence){.file = name, .text = text, .size = size, .error = error, .left_out = &tables->left_out};
    if (options != NULL)
        reader.evidence.options = *options;
    bool good = k25_evidence_open(&reader.evidence, "a key_averages table");
    for (struct k25_span line; good && k25_evidence_next(&reader.evidence, &line);)
        good = one_line(&reader, line);
    good = good && finish(&reader);
    for (size_t i = 0; i < reader.count; i++)
        free(reader.open[i].table.row);
    free(reader.open);
    if (good)
        return tables;
    k25_profiler_tables_free(tables);
    return NULL;
}

struct k25_profiler_tables *k25_profiler_tables_read(const char *path, const struct k25_evidence_options *options,
                                                     struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, K25_EVIDENCE_BYTES, &size, error);
    if (text == NULL)
        return NULL;
    struct k25_profiler_tables *tables = k25_profiler_tables_parse(text, size, path, options, error);
    free(text);
    return tables;
}

void k25_profiler_tables_free(struct k25_profiler_tables *tables)
{
    if (tables == NULL)
        return;
    for (size_t i = 0; i < tables->tables; i++)
        free(tables->table[i].row);
    free(tables->table);
    k25_arena_free(&tables->arena);
    free(tables);
}
