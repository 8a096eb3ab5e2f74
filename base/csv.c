#include "base/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/list.h"
#include "base/text.h"
#include "base/utf8.h"

struct scanner {
    struct k25_csv *csv;
    const char *text, *end, *next; /* the text as it was given; the next byte to read */
    int line;                      /* of `next` */
    char *out;                     /* where the next cell goes; cells are never longer than their text */
    size_t cells;                  /* in csv->names: header and cells so far */
    struct k25_error *error;
};

static bool memory_fail(struct scanner *scanner)
{
    return k25_fail(scanner->error, K25_RESOURCE, "%s: out of memory", scanner->csv->file);
}

/* Fails with the position of a byte of the text. Only errors need it, so counting from the start is cheap enough. */
static bool fail_at(struct scanner *scanner, const char *place, const char *what)
{
    int line, column;
    k25_locate(scanner->text, (size_t)(place - scanner->text), &line, &column);
    return k25_fail_at(scanner->error, scanner->csv->file, line, column, "%s", what);
}

static bool add_cell(struct scanner *scanner, const char *cell)
{
    const char **added = K25_LIST_ADD(scanner->csv->names, scanner->cells);
    if (added == NULL) {
        return memory_fail(scanner);
    }
    *added = cell;
    return true;
}

static bool add_row(struct scanner *scanner, int line)
{
    int *added = K25_LIST_ADD(scanner->csv->lines, scanner->csv->rows);
    if (added == NULL) {
        return memory_fail(scanner);
    }
    *added = line;
    return true;
}

/* The bytes of the line end at `at`: \n, \r\n or a last \r; 0 when the line goes on. */
static size_t line_end(const struct scanner *scanner, const char *at)
{
    if (at == scanner->end) {
        return 0;
    }
    if (*at == '\n') {
        return 1;
    }
    if (*at == '\r') {
        return at + 1 == scanner->end ? 1 : at[1] == '\n' ? 2 : 0;
    }
    return 0;
}

static bool cell_ends(const struct scanner *scanner)
{
    return scanner->next == scanner->end || *scanner->next == ',' || line_end(scanner, scanner->next) > 0;
}

/* A cell in quotes; two quotes inside mean one. */
static bool read_quoted(struct scanner *scanner)
{
    const char *opening = scanner->next++;
    for (;;) {
        if (scanner->next == scanner->end) {
            return fail_at(scanner, opening, "the quote that opens here never closes");
        }
        char c = *scanner->next++;
        if (c == '"') {
            if (scanner->next == scanner->end || *scanner->next != '"') {
                break;
            }
            scanner->next++;
        }
        scanner->line += c == '\n';
        *scanner->out++ = c;
    }
    return cell_ends(scanner) ||
           fail_at(scanner, scanner->next, "text after a closing quote, expected a comma or the end of the line");
}

static bool read_cell(struct scanner *scanner)
{
    const char *cell = scanner->out;
    if (scanner->next < scanner->end && *scanner->next == '"') {
        if (!read_quoted(scanner)) {
            return false;
        }
    } else {
        while (!cell_ends(scanner)) {
            *scanner->out++ = *scanner->next++;
        }
    }
    *scanner->out++ = '\0';
    return add_cell(scanner, cell);
}

/* Reads the cells of one row and the end of its line; an empty line is not a row. */
static bool read_row(struct scanner *scanner, bool header)
{
    struct k25_csv *csv = scanner->csv;
    const char *start = scanner->next;
    int line = scanner->line;
    size_t first = scanner->cells;
    bool more = line_end(scanner, start) == 0;
    while (more) {
        if (!read_cell(scanner)) {
            return false;
        }
        more = scanner->next < scanner->end && *scanner->next == ',';
        scanner->next += more;
    }
    size_t found = scanner->cells - first;
    size_t skip = line_end(scanner, scanner->next);
    scanner->next += skip;
    scanner->line += skip > 0;
    if (found == 0) {
        return true;
    }
    if (header) {
        csv->columns = found;
        return true;
    }
    if (found != csv->columns) {
        int at, column;
        k25_locate(scanner->text, (size_t)(start - scanner->text), &at, &column);
        return k25_fail_at(scanner->error, csv->file, at, column, "a row of %zu cell%s, expected %zu as in the header",
                           found, found == 1 ? "" : "s", csv->columns);
    }
    return add_row(scanner, line);
}

static bool scan(struct scanner *scanner)
{
    const char *zero = memchr(scanner->text, '\0', (size_t)(scanner->end - scanner->text));
    if (zero != NULL) {
        return fail_at(scanner, zero, "a zero byte, expected text");
    }
    struct k25_csv *csv = scanner->csv;
    while (scanner->next < scanner->end) {
        if (!read_row(scanner, csv->columns == 0)) {
            return false;
        }
    }
    if (csv->columns == 0) {
        return k25_fail_at(scanner->error, csv->file, 1, 1, "the file is empty, expected a line of column names");
    }
    csv->cells = csv->names + csv->columns;
    return true;
}

struct k25_csv *k25_csv_parse(const char *text, size_t size, const char *name, struct k25_error *error)
{
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark is not part of the first name */
        text += 3;
        size -= 3;
    }
    struct k25_csv *csv = calloc(1, sizeof *csv);
    if (csv != NULL) {
        csv->file = k25_copy(name);
        csv->bytes =
            malloc(size + 2); /* the comma or line end after a cell becomes its zero byte; the last cell has none */
    }
    if (csv == NULL || csv->file == NULL || csv->bytes == NULL) {
        k25_csv_free(csv);
        k25_fail(error, K25_RESOURCE, "%s: out of memory", name);
        return NULL;
    }
    if (size == 0) {
        text = "";
    }
    struct scanner scanner = {
        .csv = csv, .text = text, .end = text + size, .next = text, .line = 1, .out = csv->bytes, .error = error};
    if (!scan(&scanner)) {
        k25_csv_free(csv);
        return NULL;
    }
    return csv;
}

struct k25_csv *k25_csv_read(const char *path, struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, K25_CSV_BYTES, &size, error);
    if (text == NULL) {
        return NULL;
    }
    struct k25_csv *csv = k25_csv_parse(text, size, path, error);
    free(text);
    return csv;
}

void k25_csv_free(struct k25_csv *csv)
{
    if (csv != NULL) {
        free(csv->file);
        free(csv->names); /* the cells are in the same allocation */
        free(csv->lines);
        free(csv->bytes);
        free(csv);
    }
}

int k25_csv_column(const struct k25_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->columns; i++) {
        if (strcmp(csv->names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *k25_csv_cell(const struct k25_csv *csv, size_t row, int column)
{
    return csv->cells[row * csv->columns + (size_t)column];
}
