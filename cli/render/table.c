#include "cli/render/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/text.h"

enum { CELL = 512 };

void cli_table_open(struct cli_table *table, const struct cli_column *columns)
{
    memset(table, 0, sizeof *table);
    table->columns = columns;
    while (columns[table->width].key != NULL)
        table->width++;
}

void cli_table_close(struct cli_table *table)
{
    k25_arena_free(&table->words);
    free(table->cells);
    memset(table, 0, sizeof *table);
}

static void add(struct cli_table *table, const char *text, double number)
{
    struct cli_cell *cell = K25_LIST_ADD(table->cells, table->count);
    if (cell == NULL)
        table->failed = true;
    else
        *cell = (struct cli_cell){text, number};
}

void cli_table_text(struct cli_table *table, const char *format, ...)
{
    char text[CELL];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = k25_arena_copy(&table->words, text, strlen(text));
    table->failed = table->failed || copy == NULL;
    add(table, copy, NAN);
}

void cli_table_number(struct cli_table *table, double number)
{
    add(table, NULL, number);
}

void cli_table_truth(struct cli_table *table, bool truth)
{
    add(table, truth ? "true" : "false", truth);
}

void cli_table_nothing(struct cli_table *table)
{
    add(table, NULL, NAN);
}

size_t cli_table_rows(const struct cli_table *table)
{
    return table->count / table->width;
}

const char *cli_figure(double value, char *out, size_t size)
{
    if (value == 0) {
        snprintf(out, size, "0");
        return out;
    }
    double magnitude = fabs(value);
    /* 9.9996 is 10.00 with four digits. */
    int whole = magnitude < 1 ? 1 : (int)floor(log10(magnitude) + 5e-5) + 1;
    int decimals = whole >= 4 ? 0 : magnitude < 1 - 5e-5 ? 4 : 4 - whole;
    if (decimals == 0)
        return k25_text_count(value, out, size);
    snprintf(out, size, "%.*f", decimals, value);
    return out;
}

/* A cell for people, as yet without padding. */
static const char *show(const struct cli_column *column, const struct cli_cell *cell, char out[CELL])
{
    if (cell->text != NULL) {
        snprintf(out, CELL, "%s", cell->text);
        if (column->widest > 3 && strlen(out) > column->widest)
            strcpy(out + column->widest - 3, "...");
    } else if (isnan(cell->number)) {
        snprintf(out, CELL, "-");
    } else if (column->style == CLI_COUNT) {
        k25_text_count(cell->number, out, CELL);
    } else {
        cli_figure(cell->number, out, CELL);
    }
    return out;
}

/* What a cell takes in front of its decimal point, and from there on. */
static size_t left_of_point(const char *text)
{
    const char *point = strchr(text, '.');
    return point != NULL ? (size_t)(point - text) : strlen(text);
}

struct extent {
    size_t left, right; /* of the decimal point; a text is all left */
};

static struct extent measure(const struct cli_table *table, size_t column)
{
    char text[CELL];
    struct extent extent = {0, 0};
    const struct cli_column *c = &table->columns[column];
    for (size_t i = column; i < table->count; i += table->width) {
        show(c, &table->cells[i], text);
        size_t left = c->style == CLI_FIGURE ? left_of_point(text) : strlen(text);
        size_t right = strlen(text) - left;
        extent.left = left > extent.left ? left : extent.left;
        extent.right = right > extent.right ? right : extent.right;
    }
    size_t title = strlen(c->title);
    if (title > extent.left + extent.right)
        extent.left = title - extent.right;
    return extent;
}

static void pad(size_t count)
{
    printf("%*s", (int)count, "");
}

/* Spaces behind the last text of a line are held back: nobody wants them. */
static void print_cell(enum cli_style style, const char *text, struct extent extent, bool title, size_t *held)
{
    size_t length = strlen(text), width = extent.left + extent.right;
    size_t before = 0;
    if (length == 0) {
        *held += width + 2;
        return;
    }
    if (style != CLI_TEXT)
        before = title || style == CLI_COUNT ? width - length : extent.left - left_of_point(text);
    pad(*held + before);
    printf("%s", text);
    *held = width - length - before + 2;
}

/* A text in the last column goes on below itself when the line is full. */
static void print_row(const struct cli_table *table, const struct cli_cell *cells, const struct extent *extent,
                      size_t last)
{
    size_t held = 0, start = 0;
    for (size_t c = 0; c <= last; c++) {
        char text[CELL];
        const struct cli_column *column = &table->columns[c];
        if (column->title == NULL)
            continue;
        show(column, &cells[c], text);
        if (c == last && column->style == CLI_TEXT && start + 20 < CLI_WIDTH && text[0] != '\0') {
            pad(held);
            cli_print_wrapped(text, (int)start);
            return;
        }
        print_cell(column->style, text, extent[c], false, &held);
        start += extent[c].left + extent[c].right + 2;
    }
    printf("\n");
}

bool cli_table_print(const struct cli_table *table, struct k25_error *error)
{
    struct extent *extent = calloc(table->width, sizeof *extent);
    if (table->failed || extent == NULL) {
        free(extent);
        return k25_fail(error, K25_RESOURCE, "out of memory");
    }
    size_t held = 0, last = 0;
    for (size_t c = 0; c < table->width; c++) {
        const struct cli_column *column = &table->columns[c];
        if (column->title == NULL)
            continue;
        extent[c] = measure(table, c);
        print_cell(column->style, column->title, extent[c], true, &held);
        last = c;
    }
    printf("\n");
    for (size_t i = 0; i < table->count; i += table->width)
        print_row(table, &table->cells[i], extent, last);
    free(extent);
    return true;
}

void cli_print_wrapped(const char *text, int indent)
{
    size_t width = (size_t)(CLI_WIDTH - indent);
    while (strlen(text) > width) {
        size_t cut = width;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = strcspn(text, " "); /* a word longer than the line stays whole */
        printf("%.*s\n%*s", (int)cut, text, indent, "");
        text += cut + (text[cut] == ' ');
    }
    printf("%s\n", text);
}

static void csv_text(const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        printf("%s", text);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

bool cli_table_csv(const struct cli_table *table, struct k25_error *error)
{
    if (table->failed)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    bool first = true;
    for (size_t c = 0; c < table->width; c++) {
        if (table->columns[c].key[0] != '\0')
            printf("%s%s", first ? "" : ",", table->columns[c].key);
        first = false;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct cli_cell *cell = &table->cells[i];
        size_t c = i % table->width;
        if (c == 0)
            printf("\n");
        if (table->columns[c].key[0] == '\0')
            continue;
        if (c > 0)
            putchar(',');
        if (cell->text != NULL)
            csv_text(cell->text);
        else if (!isnan(cell->number))
            printf("%.10g", cell->number);
    }
    printf("\n");
    return true;
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *cell_json(const struct cli_column *column, const struct cli_cell *cell)
{
    if (cell->text != NULL)
        return isnan(cell->number) ? json_string(cell->text) : json_boolean(cell->number != 0);
    bool whole = column->style == CLI_COUNT && cell->number == floor(cell->number) && fabs(cell->number) < 9e15;
    return whole ? json_integer((json_int_t)cell->number) : cli_json_real(cell->number);
}

json_t *cli_table_json(const struct cli_table *table, struct k25_error *error)
{
    json_t *rows = table->failed ? NULL : json_array();
    json_t *row = NULL;
    bool ok = rows != NULL;
    for (size_t i = 0; ok && i < table->count; i++) {
        const struct cli_column *column = &table->columns[i % table->width];
        if (i % table->width == 0) {
            row = json_object();
            ok = json_array_append_new(rows, row) == 0;
        }
        if (ok && column->key[0] != '\0')
            ok = json_object_set_new(row, column->key, cell_json(column, &table->cells[i])) == 0;
    }
    if (ok)
        return rows;
    json_decref(rows);
    k25_fail(error, K25_RESOURCE, "out of memory");
    return NULL;
}

bool cli_print_json(json_t *root, struct k25_error *error)
{
    if (root == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    /* A stream that fails is reported by main, which looks at standard output in the end. */
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    printf("\n");
    json_decref(root);
    return true;
}

bool cli_table_emit(const struct cli_table *table, enum cli_format format, struct k25_error *error)
{
    if (format == CLI_CSV)
        return cli_table_csv(table, error);
    if (format == CLI_TABLE)
        return cli_table_print(table, error);
    json_t *rows = cli_table_json(table, error);
    return rows != NULL && cli_print_json(rows, error);
}
