#include "calib/readers/nsys/nsys.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/list.h"

enum { COLUMNS = 24, MOST_TABLES = 4096 };

#define HOW "nsys stats -r cuda_gpu_kern_sum -f csv"

enum column { IGNORED, NAME, CATEGORY, INSTANCES, TOTAL, AVG, MED, MIN, MAX, STDDEV, OTHER_REPORT };

struct reader {
    struct k25_evidence evidence;
    struct k25_nsys *nsys;
    bool open;      /* between headings and the end of their rows */
    char separator; /* ',' ';' or a tab: CSV; '|': a box; ' ': columns */
    size_t columns, name;
    enum column column[COLUMNS];
    double unit[COLUMNS]; /* ns */
    bool other_report;    /* the report announced last is no kernel summary */
    struct k25_span skipped;
    int skipped_line;
};

/* Cells of a CSV line, without their quotes; the last one takes what is left when a name is not quoted. */
static size_t split_csv(struct k25_span line, char separator, struct k25_span *cells, size_t room)
{
    size_t count = 0, at = 0;
    while (at <= line.size && count < room) {
        size_t start = at, end;
        if (at < line.size && line.text[at] == '"') {
            start = ++at;
            while (at < line.size && (line.text[at] != '"' || (at + 1 < line.size && line.text[at + 1] == '"')))
                at += line.text[at] == '"' ? 2 : 1;
            end = at < line.size ? at : line.size;
            while (at < line.size && line.text[at] != separator)
                at++;
        } else {
            while (at < line.size && line.text[at] != separator)
                at++;
            end = at;
        }
        cells[count++] = k25_trim((struct k25_span){line.text + start, end - start});
        at++;
    }
    return count;
}

/* Cells between '|'; the last of `columns` ends at the last '|' of the line. */
static size_t split_box(struct k25_span line, struct k25_span *cells, size_t columns)
{
    struct k25_span rest = k25_trim(line);
    if (rest.size < 2 || rest.text[0] != '|' || rest.text[rest.size - 1] != '|')
        return 0;
    rest.size--;
    size_t count = 0;
    while (rest.size > 0 && count < columns) {
        rest = k25_after(rest, 1);
        const char *bar = count + 1 == columns ? NULL : memchr(rest.text, '|', rest.size);
        size_t size = bar == NULL ? rest.size : (size_t)(bar - rest.text);
        cells[count++] = k25_trim((struct k25_span){rest.text, size});
        rest = k25_after(rest, size);
    }
    return count;
}

static size_t split(char separator, struct k25_span line, struct k25_span *cells, size_t room)
{
    return separator == '|'   ? split_box(line, cells, room)
           : separator == ' ' ? k25_split_wide(line, cells, room)
                              : split_csv(line, separator, cells, room);
}

static enum column column_of(struct k25_span heading, double *unit)
{
    static const struct {
        const char *name;
        enum column column;
    } names[] = {
        {"name", NAME},
        {"kernel name", NAME},
        {"operation", NAME},
        {"category", CATEGORY},
        {"instances", INSTANCES},
        {"calls", INSTANCES},
        {"total time", TOTAL},
        {"avg", AVG},
        {"average", AVG},
        {"med", MED},
        {"median", MED},
        {"min", MIN},
        {"minimum", MIN},
        {"max", MAX},
        {"maximum", MAX},
        {"stddev", STDDEV},
        {"range", OTHER_REPORT},
        {"style", OTHER_REPORT},
        {"num calls", OTHER_REPORT},
    };
    const char *parenthesis = memchr(heading.text, '(', heading.size);
    *unit = 1;
    if (parenthesis != NULL) { /* "Total Time (ns)" */
        struct k25_span inside = k25_after(heading, (size_t)(parenthesis - heading.text) + 1);
        inside.size -= inside.size > 0 && inside.text[inside.size - 1] == ')';
        double ns = k25_time_unit(inside);
        *unit = ns > 0 ? ns : 1;
        heading = k25_trim((struct k25_span){heading.text, (size_t)(parenthesis - heading.text)});
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (heading.size == strlen(names[i].name) && strncasecmp(heading.text, names[i].name, heading.size) == 0)
            return names[i].column;
    }
    return IGNORED;
}

static char separator_of(struct k25_span line)
{
    static const char separators[] = {',', ';', '\t'};
    struct k25_span cells[COLUMNS];
    if (k25_span_starts(k25_trim(line), "|"))
        return '|';
    for (int i = 0; i < 3; i++) {
        if (split_csv(line, separators[i], cells, COLUMNS) >= 4)
            return separators[i];
    }
    return ' ';
}

static bool open_table(struct reader *r)
{
    struct k25_evidence *evidence = &r->evidence;
    struct k25_nsys *nsys = r->nsys;
    if (nsys->tables == MOST_TABLES)
        return k25_fail_at(evidence->error, evidence->file, evidence->line, 1, "more than %d reports in one file",
                           MOST_TABLES);
    struct k25_nsys_table *table = K25_LIST_ADD(nsys->table, nsys->tables);
    if (table == NULL)
        return k25_out_of_memory(evidence->file, evidence->error);
    table->line = evidence->line;
    r->open = true;
    return true;
}

/* Headings of a kernel summary: a total, a number of instances, a name, and nothing that only other reports have.
 */
static bool headings(struct reader *r, struct k25_span line)
{
    struct k25_span cells[COLUMNS];
    bool has[OTHER_REPORT + 1] = {false};
    r->open = false;
    r->separator = separator_of(line);
    r->columns = split(r->separator, line, cells, COLUMNS);
    if (r->columns > COLUMNS)
        return true;
    for (size_t i = 0; i < r->columns; i++) {
        r->column[i] = column_of(cells[i], &r->unit[i]);
        has[r->column[i]] = true;
        if (r->column[i] == NAME)
            r->name = i;
    }
    bool operation = r->columns > 0 && has[NAME] && k25_span_is(cells[r->name], "Operation") && !has[CATEGORY];
    bool summary = has[TOTAL] && has[INSTANCES] && has[NAME] && !has[OTHER_REPORT] && !operation && !r->other_report;
    return summary ? open_table(r) : true;
}

/* Digits with separators of thousands, whichever comma means what: of two kinds the last one is the decimal;
 * "1.234.567" and "1,234,567" are groups; a lone comma is a decimal one only in front of a unit ("94,645 ms", from
 * a window in a locale that writes so: there thousands are never grouped). */
static bool plain_number(struct k25_span digits, bool has_unit, char *out, size_t size)
{
    size_t commas = 0, points = 0, used = 0;
    char last = '\0';
    for (size_t i = 0; i < digits.size; i++) {
        char c = digits.text[i];
        commas += c == ',';
        points += c == '.';
        last = c == ',' || c == '.' ? c : last;
    }
    bool comma = commas == 1 && ((points > 0 && last == ',') || (points == 0 && has_unit));
    bool point = points == 1 && (commas == 0 || last == '.');
    if ((points > 1 && commas > 1) || (points == 0 && !comma && commas > 0 && digits.size < 5))
        return false;
    for (size_t i = 0; i < digits.size && used + 1 < size; i++) {
        char c = digits.text[i];
        if (isdigit((unsigned char)c) || c == '-' || c == '+')
            out[used++] = c;
        else if ((c == ',' && comma) || (c == '.' && point))
            out[used++] = '.';
        else if (c != ',' && c != '.')
            return false;
    }
    out[used] = '\0';
    return used + 1 < size;
}

/* A cell as ns (or as a count, when `unit` is 1 and the cell has none). */
static bool number(struct k25_span cell, double unit, double *value)
{
    size_t digits = 0;
    char plain[64];
    while (digits < cell.size && (isdigit((unsigned char)cell.text[digits]) || cell.text[digits] == ',' ||
                                  cell.text[digits] == '.' || cell.text[digits] == '-'))
        digits++;
    struct k25_span suffix = k25_trim(k25_after(cell, digits));
    double own = suffix.size == 0 ? unit : k25_time_unit(suffix);
    bool fraction = suffix.size > 0 && own > 1;
    if (digits == 0 || own == 0 || !plain_number((struct k25_span){cell.text, digits}, fraction, plain, sizeof plain) ||
        !k25_span_real(k25_span_of(plain), value))
        return false;
    *value *= own;
    return true;
}

/* A name with its doubled quotes made single. */
static const char *name_of(struct reader *r, struct k25_span cell)
{
    char *name = k25_arena_copy(&r->nsys->arena, cell.text, cell.size);
    if (name == NULL) {
        k25_out_of_memory(r->evidence.file, r->evidence.error);
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < cell.size; i++) {
        name[used++] = name[i];
        i += r->separator != '|' && r->separator != ' ' && name[i] == '"' && name[i + 1] == '"';
    }
    name[used] = '\0';
    return name;
}

static double *field_of(struct k25_nsys_row *row, enum column column)
{
    return column == TOTAL    ? &row->total_ns
           : column == AVG    ? &row->avg_ns
           : column == MED    ? &row->med_ns
           : column == MIN    ? &row->min_ns
           : column == MAX    ? &row->max_ns
           : column == STDDEV ? &row->stddev_ns
                              : NULL;
}

/* One row of cells; `*fault` is the index of the first that is not what its heading says, -1: all good. */
static void read_cells(const struct reader *r, const struct k25_span *cells, struct k25_nsys_row *row, int *fault)
{
    *row = (struct k25_nsys_row){r->evidence.line, NULL, false, 0, NAN, NAN, NAN, NAN, NAN, NAN};
    *fault = -1;
    for (size_t i = 0; i < r->columns && *fault < 0; i++) {
        double instances = 0, *field = field_of(row, r->column[i]);
        if (field != NULL && (!number(cells[i], r->unit[i], field) || *field < 0))
            *fault = (int)i;
        if (r->column[i] == INSTANCES) {
            bool whole =
                number(cells[i], 1, &instances) && instances >= 1 && instances < 9e15 && instances == floor(instances);
            *fault = whole ? *fault : (int)i;
            row->instances = whole ? (int64_t)instances : 0;
        }
    }
}

static bool add(struct reader *r, struct k25_nsys_row *row, struct k25_span name)
{
    struct k25_nsys_table *table = &r->nsys->table[r->nsys->tables - 1];
    row->name = name_of(r, name);
    row->truncated = k25_name_cut(name);
    if (row->name == NULL)
        return false;
    struct k25_nsys_row *added = K25_LIST_ADD(table->row, table->rows);
    if (added == NULL)
        return k25_out_of_memory(r->evidence.file, r->evidence.error);
    *added = *row;
    table->total_ns += row->total_ns;
    return true;
}

/* A line below the headings; one with no number where the total or the instances should be ends the table. */
static bool row(struct reader *r, struct k25_span line)
{
    struct k25_evidence *evidence = &r->evidence;
    struct k25_span cells[COLUMNS], trimmed = k25_trim(line);
    struct k25_nsys_row read;
    double ignored;
    int fault, numbers = 0;
    if (trimmed.size == 0 || trimmed.text[0] == '+' || trimmed.text[0] == '-') { /* the frame, or the dashes */
        r->open = trimmed.size > 0;
        return true;
    }
    size_t count = split(r->separator, line, cells, r->separator == '|' ? r->columns : COLUMNS);
    for (size_t i = 0; i < count && i < r->columns; i++)
        numbers += (r->column[i] == TOTAL || r->column[i] == INSTANCES) && number(cells[i], 1, &ignored);
    if (numbers == 0) {
        r->open = false;
        return true;
    }
    if (count < r->columns)
        return k25_evidence_fault(evidence, evidence->line, line, line.text, "a row of %zu cells, expected %zu: cut",
                                  count, r->columns);
    if (r->name + 1 == r->columns && r->separator != '|' && (r->separator == ' ' || *(cells[r->name].text - 1) != '"'))
        cells[r->name].size = (size_t)(trimmed.text + trimmed.size - cells[r->name].text);
    for (size_t i = 0; i < r->columns; i++) {
        if (r->column[i] == CATEGORY && !k25_span_is(cells[i], "CUDA_KERNEL"))
            return true;
    }
    read_cells(r, cells, &read, &fault);
    if (fault >= 0)
        return k25_evidence_fault(evidence, evidence->line, line, cells[fault].text, "'%.*s' is not a %s",
                                  (int)cells[fault].size, cells[fault].text,
                                  r->column[fault] == INSTANCES ? "number of instances" : "time");
    double whole = (double)read.instances * read.avg_ns;
    if (fabs(read.total_ns - whole) > 0.01 * read.total_ns + (double)read.instances)
        return k25_evidence_fault(evidence, evidence->line, line, line.text,
                                  "the total of %.0f ns is not %lld instances of %.1f ns: separators of thousands "
                                  "and decimals mixed up?",
                                  read.total_ns, (long long)read.instances, read.avg_ns);
    return add(r, &read, cells[r->name]);
}

/* "Processing [x.sqlite] with [.../cuda_gpu_kern_sum.py]...", "[3/8] Executing 'nvtx_sum' stats report",
 * " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):": which report comes next. */
static void announcement(struct reader *r, struct k25_span line)
{
    static const char *const kernels[] = {"gpu_kern", "gpukern", "Kernel Summary", "cuda_gpu_sum", "gpusum"};
    bool announces = (k25_span_starts(line, "Processing [") && k25_span_find(line, " with [") != NULL) ||
                     k25_span_find(line, "stats report") != NULL || k25_span_starts(k25_trim(line), "** ");
    if (k25_span_starts(k25_trim(line), "SKIPPED") && k25_span_find(line, "CUDA") != NULL) {
        r->skipped = k25_trim(line);
        r->skipped_line = r->evidence.line;
    }
    if (!announces)
        return;
    r->open = false;
    r->other_report = true;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        r->other_report &= k25_span_find(line, kernels[i]) == NULL;
}

static bool one_line(struct reader *r, struct k25_span line)
{
    announcement(r, line);
    if (k25_span_find(line, "Total Time") != NULL)
        return headings(r, line);
    return r->open ? row(r, line) : true;
}

static bool finish(struct reader *r)
{
    struct k25_evidence *evidence = &r->evidence;
    struct k25_nsys *nsys = r->nsys;
    size_t kept = 0;
    for (size_t i = 0; i < nsys->tables; i++) {
        if (nsys->table[i].rows > 0)
            nsys->table[kept++] = nsys->table[i];
    }
    nsys->tables = kept;
    if (kept > 0)
        return true;
    if (evidence->left_out->count > 0)
        return k25_fail(evidence->error, K25_BAD_INPUT, "%s", evidence->left_out->first);
    if (r->skipped.size > 0)
        return k25_fail_at(evidence->error, evidence->file, r->skipped_line, 1,
                           "no kernel data: nsys says '%.*s'. Record the workers too (nsys profile "
                           "--trace-fork-before-exec=true --cuda-graph-trace=node)",
                           (int)(r->skipped.size < 300 ? r->skipped.size : 300), r->skipped.text);
    return k25_fail(evidence->error, K25_BAD_INPUT, "%s: no kernel summary among its reports, expected that of '%s'",
                    evidence->file, HOW);
}

struct k25_nsys *k25_nsys_parse(const char *text, size_t size, const char *name,
                                const struct k25_evidence_options *options, struct k25_error *error)
{
    struct k25_nsys *nsys = calloc(1, sizeof *nsys);
    if (nsys == NULL) {
        k25_out_of_memory(name, error);
        return NULL;
    }
    struct reader r = {.nsys = nsys};
    r.evidence =
        (struct k25_evidence){.file = name, .text = text, .size = size, .error = error, .left_out = &nsys->left_out};
    if (options != NULL)
        r.evidence.options = *options;
    bool good = k25_evidence_open(&r.evidence, "a kernel summary of " HOW);
    for (struct k25_span line; good && k25_evidence_next(&r.evidence, &line);)
        good = one_line(&r, line);
    good = good && finish(&r);
    if (good)
        return nsys;
    k25_nsys_free(nsys);
    return NULL;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t size = strlen(path), tail = strlen(suffix);
    return size >= tail && strcmp(path + size - tail, suffix) == 0;
}

/* Files of nsys that are no summary, by their first bytes or their name. True: the error is filled. */
static bool refuse_binary(const char *path, struct k25_error *error)
{
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");
    char head[16];
    struct k25_span first = {head, file == NULL ? 0 : fread(head, 1, sizeof head, file)};
    if (file != NULL)
        fclose(file);
    bool refused = true;
    if (k25_span_find(first, "QDSTRM") != NULL || ends_in(path, ".qdstrm"))
        k25_fail(error, K25_BAD_INPUT,
                 "%s: a qdstrm, an nsys stream that was never finalised: run QdstrmImporter on it, then " HOW, path);
    else if (k25_span_starts(first, "SQLite format 3"))
        k25_fail(error, K25_BAD_INPUT,
                 "%s: an SQLite export of nsys, expected text (k25sim inspect reads both): run '" HOW
                 " %s' and read that",
                 path, path);
    else if (ends_in(path, ".nsys-rep") || ends_in(path, ".qdrep"))
        k25_fail(error, K25_BAD_INPUT,
                 "%s: a recording of nsys, not a summary: run 'nsys export -t sqlite %s' or '" HOW
                 " %s' and read what it writes",
                 path, path, path);
    else
        refused = false;
    return refused;
}

struct k25_nsys *k25_nsys_read(const char *path, const struct k25_evidence_options *options, struct k25_error *error)
{
    size_t size;
    if (refuse_binary(path, error))
        return NULL;
    char *text = k25_file_read(path, K25_EVIDENCE_BYTES, &size, error);
    if (text == NULL)
        return NULL;
    struct k25_nsys *nsys = k25_nsys_parse(text, size, path, options, error);
    free(text);
    return nsys;
}

void k25_nsys_free(struct k25_nsys *nsys)
{
    if (nsys == NULL)
        return;
    for (size_t i = 0; i < nsys->tables; i++)
        free(nsys->table[i].row);
    free(nsys->table);
    k25_arena_free(&nsys->arena);
    free(nsys);
}
