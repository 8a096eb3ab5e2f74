#include "calib/readers/nccl/nccl_tests.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/list.h"
#include "calib/readers/nccl/internal.h"

/* The last run with that front, NULL: none yet. */
static struct k25_open_run *find(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span line)
{
    for (size_t i = reader->count; i-- > 0;) {
        struct k25_open_run *open = &reader->open[i];
        if (k25_front_match(open->front, line) == (ptrdiff_t)front.size)
            return open;
    }
    return NULL;
}

/* The run that a line of the head belongs to: a new one when the last with that front has its headings already. */
static struct k25_open_run *head_of(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span line)
{
    struct k25_open_run *open = find(reader, front, line);
    return open == NULL || open->headed ? k25_nccl_open(reader, front) : open;
}

/* The whole number after `label`. */
static void number_behind(struct k25_span body, const char *label, int *value)
{
    const char *at = k25_span_find(body, label);
    struct k25_span word;
    long long number;
    if (at == NULL)
        return;
    size_t skip = (size_t)(at - body.text) + strlen(label);
    if (k25_split(k25_after(body, skip), &word, 1) > 0 && k25_span_count(word, &number) && number <= INT_MAX)
        *value = (int)number;
}

/* "nThread 1 nGpus 8 minBytes 8192 maxBytes 65536 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 ..." */
static bool facts(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span body, struct k25_span line)
{
    struct k25_open_run *open = head_of(reader, front, line);
    if (open != NULL && open->facts)
        open = k25_nccl_open(reader, front);
    if (open == NULL)
        return false;
    struct k25_nccl_run *run = &open->run;
    open->facts = true;
    number_behind(body, "nThread ", &run->threads);
    number_behind(body, "nGpus ", &run->gpus);
    number_behind(body, "warmup iters: ", &run->warmup);
    number_behind(body, "agg iters: ", &run->aggregated);
    number_behind(body, "graph: ", &run->graph);
    const char *warmup = k25_span_find(body, "warmup iters: ");
    if (warmup != NULL)
        number_behind(k25_after(body, (size_t)(warmup - body.text) + strlen("warmup iters: ")),
                      " iters: ", &run->iterations);
    return true;
}

/* "Rank  0 Group  0 Pid   1000 on     hostA device  0 [0x01] NVIDIA RTX PRO 6000 ..." */
static bool device(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span body, struct k25_span line)
{
    struct k25_open_run *open = head_of(reader, front, line);
    if (open == NULL)
        return false;
    int rank = -1;
    number_behind(body, "Rank ", &rank);
    if (rank > open->largest_rank && rank < 1 << 24)
        open->largest_rank = rank;
    const char *bracket = k25_span_find(body, "] ");
    if (open->run.device[0] != '\0' || bracket == NULL)
        return true;
    open->run.device = k25_nccl_text(reader, k25_trim(k25_after(body, (size_t)(bracket - body.text) + 2)));
    return open->run.device != NULL;
}

static enum k25_nccl_column column_of(struct k25_span word)
{
    static const struct {
        const char *name;
        enum k25_nccl_column column;
    } names[] = {
        {"size", NCCL_BYTES},  {"count", NCCL_COUNT},  {"type", NCCL_TYPE},    {"redop", NCCL_REDOP},
        {"root", NCCL_ROOT},   {"time", NCCL_TIME},    {"cputime", NCCL_TIME}, {"algbw", NCCL_ALGBW},
        {"busbw", NCCL_BUSBW}, {"#wrong", NCCL_WRONG}, {"wrong", NCCL_WRONG},  {"error", NCCL_ERROR},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (k25_span_is(word, names[i].name))
            return names[i].column;
    }
    return NCCL_IGNORED;
}

/* "size count type redop root time algbw busbw #wrong time algbw busbw #wrong": out of place, then in place. */
static bool headings(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span body, struct k25_span line)
{
    struct k25_span words[K25_NCCL_COLUMNS];
    size_t count = k25_split(body, words, K25_NCCL_COLUMNS);
    struct k25_open_run *last = find(reader, front, line), *open;
    struct k25_nccl_run before = last == NULL ? (struct k25_nccl_run){0} : last->run;
    int largest_rank = last == NULL ? -1 : last->largest_rank;
    bool again = last != NULL && last->headed; /* another table of the same run: its facts hold on */
    if (count > K25_NCCL_COLUMNS || (open = head_of(reader, front, line)) == NULL)
        return count > K25_NCCL_COLUMNS;
    if (again) {
        struct k25_nccl_run fresh = open->run;
        open->run = before;
        open->run.row = NULL;
        open->run.rows = 0;
        open->run.out_of_bounds = fresh.out_of_bounds;
        open->run.avg_busbw = fresh.avg_busbw;
        open->largest_rank = largest_rank;
    }
    open->headed = true;
    open->run.line = reader->evidence.line;
    int times = 0;
    for (size_t i = 0; i < count; i++) {
        if (k25_span_is(words[i], "timestamp")) {
            open->open_ended = true;
            break;
        }
        open->column[i] = column_of(words[i]);
        times += open->column[i] == NCCL_TIME;
        open->in_place[i] = times > 1;
        open->has_root |= open->column[i] == NCCL_ROOT;
        open->run.cpu_time |= k25_span_is(words[i], "cputime");
        open->columns++;
    }
    return true;
}

static bool is_missing(struct k25_span cell)
{
    static const char *const words[] = {"N/A", "n/a", "-", "nan", "-nan", "inf", NULL};
    for (int i = 0; words[i] != NULL; i++) {
        if (k25_span_is(cell, words[i]))
            return true;
    }
    return false;
}

/* One cell of a row; false when it is not what its heading says. */
static bool take(struct k25_nccl_reader *reader, struct k25_nccl_row *row, enum k25_nccl_column column, bool in_place,
                 struct k25_span cell)
{
    struct k25_nccl_time *time = in_place ? &row->in_place : &row->out_of_place;
    double value = NAN;
    long long whole = 0;
    switch (column) {
    case NCCL_BYTES:
    case NCCL_COUNT:
        if (!k25_span_count(cell, &whole))
            return false;
        *(column == NCCL_BYTES ? &row->bytes : &row->count) = (uint64_t)whole;
        return true;
    case NCCL_TYPE:
    case NCCL_REDOP:
        *(column == NCCL_TYPE ? &row->type : &row->redop) = k25_nccl_text(reader, cell);
        return true;
    case NCCL_ROOT:
        if (!k25_span_is(cell, "-1") && (!k25_span_count(cell, &whole) || whole > INT_MAX))
            return false;
        row->root = k25_span_is(cell, "-1") ? -1 : (int)whole;
        return true;
    case NCCL_IGNORED:
        return true;
    default:
        break;
    }
    if (is_missing(cell))
        return true;
    if (!k25_span_real(cell, &value) || value < 0 || (column == NCCL_TIME && value == 0) || value > 1e15)
        return false;
    if (column == NCCL_WRONG)
        time->wrong = llround(value);
    else
        *(column == NCCL_TIME    ? &time->us
          : column == NCCL_ALGBW ? &time->algbw
          : column == NCCL_BUSBW ? &time->busbw
                                 : &time->error) = value;
    return true;
}

static bool row(struct k25_nccl_reader *reader, struct k25_open_run *open, struct k25_span line,
                const struct k25_span *words, size_t count)
{
    struct k25_evidence *evidence = &reader->evidence;
    bool fits = open->open_ended ? count >= open->columns : count == open->columns;
    if (!fits) {
        open->damaged++;
        return k25_evidence_fault(evidence, evidence->line, line, words[0].text,
                                  "a row of %zu cells, expected %zu: cut or mixed with another line", count,
                                  open->columns);
    }
    const struct k25_nccl_time none = {NAN, NAN, NAN, NAN, -1};
    struct k25_nccl_row read = {
        .line = evidence->line, .type = "", .redop = "", .root = -1, .out_of_place = none, .in_place = none};
    for (size_t i = 0; i < open->columns; i++) {
        if (take(reader, &read, open->column[i], open->in_place[i], words[i]))
            continue;
        open->damaged++;
        return k25_evidence_fault(evidence, evidence->line, line, words[i].text, "'%.*s' is not a %s",
                                  (int)words[i].size, words[i].text,
                                  open->column[i] == NCCL_TIME ? "time in us (more than 0, or N/A)" : "number");
    }
    if (read.type == NULL || read.redop == NULL)
        return false;
    if (isnan(read.out_of_place.us) && isnan(read.in_place.us)) {
        open->damaged++;
        return k25_evidence_fault(evidence, evidence->line, line, words[0].text, "a row without a time");
    }
    return k25_nccl_row_add(reader, open, &read, line);
}

/* "Out of bounds values : 248 FAILED", "Avg bus bandwidth    : 2.67 GB/s". */
static bool footer(struct k25_nccl_reader *reader, struct k25_span front, struct k25_span body, struct k25_span line)
{
    struct k25_open_run *open = find(reader, front, line);
    const char *colon = memchr(body.text, ':', body.size);
    struct k25_span word;
    double value;
    if (open == NULL || colon == NULL || k25_split(k25_after(body, (size_t)(colon - body.text) + 1), &word, 1) == 0 ||
        !k25_span_real(word, &value))
        return true;
    if (k25_span_starts(body, "Avg"))
        open->run.avg_busbw = value;
    else if (value >= 0 && value < 9e18)
        open->run.out_of_bounds = (int64_t)value;
    return true;
}

/* A line with '#': `taken` when it is one of nccl-tests' own. */
static bool comment(struct k25_nccl_reader *reader, struct k25_span line, bool *taken)
{
    *taken = true;
    const char *hash = memchr(line.text, '#', line.size);
    struct k25_span front = {line.text, hash == NULL ? 0 : (size_t)(hash - line.text)}, words[2];
    struct k25_span body = hash == NULL ? (struct k25_span){"", 0} : k25_trim(k25_after(line, front.size + 1));
    size_t count = k25_split(body, words, 2);
    if (k25_span_starts(body, "nThread "))
        return facts(reader, front, body, line);
    if (k25_span_starts(body, "Rank ") && k25_span_find(body, "device") != NULL)
        return device(reader, front, body, line);
    if (count >= 2 && k25_span_is(words[0], "size") && k25_span_find(body, "busbw") != NULL)
        return headings(reader, front, body, line);
    if (k25_span_starts(body, "Out of bounds values") || k25_span_starts(body, "Avg bus bandwidth"))
        return footer(reader, front, body, line);
    bool version = k25_span_starts(body, "nccl-tests version "),
         test = k25_span_starts(body, "Collective test starting: ");
    *taken = version || test;
    if (!*taken)
        return true;
    struct k25_open_run *open = head_of(reader, front, line);
    if (open == NULL)
        return false;
    if (version) {
        k25_split(k25_after(body, strlen("nccl-tests version ")), words, 1);
        open->run.tests_version = k25_nccl_text(reader, words[0]);
        return open->run.tests_version != NULL;
    }
    open->run.op = k25_nccl_op_of_program(k25_trim(k25_after(body, strlen("Collective test starting: "))));
    open->run.op_source = open->run.op == NULL ? K25_OP_UNKNOWN : K25_OP_STATED;
    return true;
}

/* Lines of others that say something: the version of NCCL, a command, a complaint. */
static bool other(struct k25_nccl_reader *reader, struct k25_span line)
{
    static const char version[] = "NCCL version ";
    const char *at = k25_span_find(line, version);
    struct k25_span words[64];
    if (at != NULL && reader->count > 0) {
        struct k25_open_run *open = &reader->open[reader->count - 1];
        size_t skip = (size_t)(at - line.text) + strlen(version);
        if (open->run.nccl_version[0] == '\0' && k25_split(k25_after(line, skip), words, 1) > 0)
            open->run.nccl_version = k25_nccl_text(reader, words[0]);
        if (open->run.nccl_version == NULL)
            return false;
    }
    bool warns = k25_span_find(line, " WARN ") != NULL;
    bool complains = warns || k25_span_find(line, "ailure") != NULL || k25_span_find(line, "rror") != NULL;
    bool had = reader->warning.size > 0 && k25_span_find(reader->warning, " WARN ") != NULL;
    if (complains && (warns || !had)) { /* NCCL's own warning says more than what follows from it */
        reader->warning = k25_trim(line);
        reader->warning_line = reader->evidence.line;
    }
    size_t count = k25_span_find(line, "_perf") == NULL ? 0 : k25_split(line, words, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        const char *op = k25_nccl_op_of_program(words[i]);
        reader->command = op != NULL ? op : reader->command;
    }
    return true;
}

static bool one_line(struct k25_nccl_reader *reader, struct k25_span line)
{
    bool taken;
    if (!comment(reader, line, &taken))
        return false;
    if (taken)
        return true;
    for (size_t i = reader->count; i-- > 0;) {
        struct k25_open_run *open = &reader->open[i];
        ptrdiff_t front = open->headed ? k25_front_match(open->front, line) : -1;
        struct k25_span words[K25_NCCL_COLUMNS + 8];
        if (front < 0)
            continue;
        size_t count = k25_split(k25_after(line, (size_t)front), words, K25_NCCL_COLUMNS + 8);
        long long ignored;
        if (count >= 2 && count <= K25_NCCL_COLUMNS + 8 && k25_span_count(words[0], &ignored) &&
            k25_span_count(words[1], &ignored))
            return row(reader, open, line, words, count);
    }
    return other(reader, line);
}

/* Whether the run stays, and what it is called. */
static bool judge(struct k25_nccl_reader *reader, struct k25_open_run *open, bool *keep)
{
    struct k25_evidence *evidence = &reader->evidence;
    struct k25_span nowhere = {"", 0};
    struct k25_nccl_run *run = &open->run;
    *keep = false;
    if (run->rows == 0 && open->damaged == 0 && open->wrong_rows == 0)
        return k25_evidence_fault(evidence, run->line, nowhere, NULL, "no rows: no data rows behind the headings%s%.*s",
                                  reader->warning.size > 0 ? ", the run failed: " : ", the run hung or was cut",
                                  (int)(reader->warning.size < 240 ? reader->warning.size : 240),
                                  reader->warning.size > 0 ? reader->warning.text : "");
    if (run->out_of_bounds > 0 && open->wrong_rows == 0 && !evidence->options.allow_wrong)
        return k25_evidence_fault(evidence, run->line, nowhere, NULL,
                                  "wrong results: %lld values out of bounds, says the footer of this run "
                                  "(--lenient keeps it)",
                                  (long long)run->out_of_bounds);
    k25_nccl_name_op(open, evidence->file, reader->command);
    run->tag = k25_front_tag(&reader->tests->arena, open->front);
    *keep = run->rows > 0;
    return run->tag != NULL || k25_out_of_memory(evidence->file, evidence->error);
}

static bool finish(struct k25_nccl_reader *reader)
{
    struct k25_evidence *evidence = &reader->evidence;
    struct k25_nccl_tests *tests = reader->tests;
    bool headed = false;
    for (size_t i = 0; i < reader->count; i++) {
        struct k25_open_run *open = &reader->open[i];
        bool keep;
        if (!open->headed)
            continue;
        headed = true;
        if (!judge(reader, open, &keep))
            return false;
        if (!keep)
            continue;
        struct k25_nccl_run *run = K25_LIST_ADD(tests->run, tests->runs);
        if (run == NULL)
            return k25_out_of_memory(evidence->file, evidence->error);
        *run = open->run;
        open->run.row = NULL;
    }
    if (tests->runs > 0)
        return true;
    if (evidence->left_out->count > 0)
        return k25_fail(evidence->error, K25_BAD_INPUT, "%s", evidence->left_out->first);
    return k25_fail(evidence->error, K25_BAD_INPUT, "%s: no rows%s: expected the output of nccl-tests%s%.*s",
                    evidence->file, headed ? "" : " and no headings ('# size count type ... busbw')",
                    reader->warning.size > 0 ? ", the run failed: " : "",
                    (int)(reader->warning.size < 240 ? reader->warning.size : 240),
                    reader->warning.size > 0 ? reader->warning.text : "");
}

struct k25_nccl_tests *k25_nccl_tests_parse(const char *text, size_t size, const char *name,
                                            const struct k25_evidence_options *options, struct k25_error *error)
{
    struct k25_nccl_tests *tests = calloc(1, sizeof *tests);
    if (tests == NULL) {
        k25_out_of_memory(name, error);
        return NULL;
    }
    struct k25_nccl_reader reader = {.tests = tests};
    reader.evidence =
        (struct k25_evidence){.file = name, .text = text, .size = size, .error = error, .left_out = &tests->left_out};
    if (options != NULL)
        reader.evidence.options = *options;
    bool good = k25_evidence_open(&reader.evidence, "the output of nccl-tests");
    for (struct k25_span line; good && k25_evidence_next(&reader.evidence, &line);) {
        bool json = line.size > 0 && line.text[0] == '{' && reader.count == 0;
        good = json ? k25_nccl_json(&reader, (size_t)(line.text - text)) : one_line(&reader, line);
        if (json)
            break;
    }
    good = good && finish(&reader);
    for (size_t i = 0; i < reader.count; i++)
        free(reader.open[i].run.row);
    free(reader.open);
    if (good)
        return tests;
    k25_nccl_tests_free(tests);
    return NULL;
}

struct k25_nccl_tests *k25_nccl_tests_read(const char *path, const struct k25_evidence_options *options,
                                           struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, K25_EVIDENCE_BYTES, &size, error);
    if (text == NULL)
        return NULL;
    struct k25_nccl_tests *tests = k25_nccl_tests_parse(text, size, path, options, error);
    free(text);
    return tests;
}

void k25_nccl_tests_free(struct k25_nccl_tests *tests)
{
    if (tests == NULL)
        return;
    for (size_t i = 0; i < tests->runs; i++)
        free(tests->run[i].row);
    free(tests->run);
    k25_arena_free(&tests->arena);
    free(tests);
}
