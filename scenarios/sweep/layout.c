#include "scenarios/sweep/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"

const char *const k25_sweep_format_names[K25_SWEEP_FORMATS + 1] = {
    [K25_SWEEP_CSV] = "csv", [K25_SWEEP_JSONL] = "jsonl"};

/* ---- cells ---- */

static char *csv_text(const char *text)
{
    size_t quotes = 0;
    for (const char *c = text; *c != '\0'; c++)
        quotes += *c == '"';
    bool plain = strpbrk(text, ",\"\n\r") == NULL;
    char *out = malloc(strlen(text) + quotes + 3), *at = out;
    if (out == NULL || plain)
        return out != NULL ? strcpy(out, text) : NULL;
    *at++ = '"';
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"')
            *at++ = '"';
        *at++ = *c;
    }
    strcpy(at, "\"");
    return out;
}

static char *json_text(const char *text)
{
    char *out = malloc(strlen(text) * 6 + 3), *at = out;
    if (out == NULL)
        return NULL;
    *at++ = '"';
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20) {
            at += sprintf(at, "\\u%04x", (unsigned)(unsigned char)*c);
            continue;
        }
        if (*c == '"' || *c == '\\')
            *at++ = '\\';
        *at++ = *c;
    }
    strcpy(at, "\"");
    return out;
}

/* Text as a cell: in quotes where the format needs them. The caller frees; NULL when out of memory. */
static char *cell_text(enum k25_sweep_format format, const char *text)
{
    return format == K25_SWEEP_CSV ? csv_text(text) : json_text(text);
}

const char *k25_sweep_cell_read(const struct k25_sweep_layout *layout, struct k25_sweep_cell cell, char *out,
                                size_t size)
{
    size_t used = 0;
    bool quoted = cell.length >= 2 && cell.text[0] == '"',
         null = layout->format == K25_SWEEP_JSONL && !quoted && cell.length == 4 && memcmp(cell.text, "null", 4) == 0;
    size_t end = quoted ? cell.length - 1 : null ? 0 : cell.length;
    for (size_t i = quoted; i < end && used + 1 < size; i++) {
        char c = cell.text[i];
        if (quoted && i + 1 < end && (c == '\\' || c == '"')) {
            c = cell.text[++i];
            unsigned code;
            char digits[5] = "";
            if (c == 'u' && layout->format == K25_SWEEP_JSONL && i + 4 < end) {
                memcpy(digits, cell.text + i + 1, 4);
                c = sscanf(digits, "%x", &code) == 1 ? (char)code : '?';
                i += 4;
            }
        }
        out[used++] = c;
    }
    out[used] = '\0';
    return out;
}

/* The first byte after the cell that starts at `at`. */
static size_t cell_end(const struct k25_sweep_layout *layout, const char *row, size_t at, size_t length)
{
    bool csv = layout->format == K25_SWEEP_CSV;
    if (at >= length || row[at] != '"') {
        while (at < length && row[at] != ',' && (csv || row[at] != '}'))
            at++;
        return at;
    }
    for (at++; at < length; at++) {
        if (!csv && row[at] == '\\')
            at++;
        else if (row[at] == '"' && csv && at + 1 < length && row[at + 1] == '"')
            at++;
        else if (row[at] == '"')
            return at + 1;
    }
    return length;
}

bool k25_sweep_split(const struct k25_sweep_layout *layout, const char *row, size_t length,
                     struct k25_sweep_cell cells[K25_SWEEP_COLUMNS])
{
    size_t at = 0;
    for (size_t i = 0; i < layout->columns; i++) {
        size_t lead = layout->lead_length[i];
        if (length - at < lead || memcmp(row + at, layout->lead[i], lead) != 0)
            return false;
        at += lead;
        size_t end = cell_end(layout, row, at, length);
        cells[i] = (struct k25_sweep_cell){row + at, end - at};
        at = end;
    }
    size_t tail = strlen(layout->tail) - 1; /* without its newline */
    return length - at == tail && memcmp(row + at, layout->tail, tail) == 0;
}

/* ---- the layout as text ---- */

/* The text on one line: newlines and backslashes are escaped. */
static void print_line(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s ", key);
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\\')
            fputc('\\', out);
        fputc(*text == '\n' ? 'n' : *text, out);
    }
    fputc('\n', out);
}

static void print_frame(FILE *out, const struct k25_sweep_layout *layout, const char *program)
{
    fputs("k25sim sweep state 1\n", out);
    print_line(out, "program", program);
    fprintf(out, "inputs %016" PRIx64 "\npoints %" PRIu64 "\nformat %s\n", layout->inputs, layout->points,
            k25_sweep_format_names[layout->format]);
    print_line(out, "name", layout->name);
    print_line(out, "title", layout->title);
    fprintf(out, "keys %zu\ntop %zu\n", layout->keys, layout->top);
    for (size_t i = 0; i < layout->columns; i++)
        print_line(out, "column", layout->column[i]);
    for (size_t i = 0; i < layout->constraints; i++)
        print_line(out, "constraint", layout->constraint[i]);
    for (size_t i = 0; i < layout->objectives; i++)
        fprintf(out, "%s %zu\n", layout->objective[i].maximise ? "maximise" : "minimise", layout->objective[i].column);
    for (size_t i = 0; i < layout->groups; i++)
        fprintf(out, "group %zu\n", layout->group[i]);
    fputs("rows\n", out);
}

/* The text around the cells, derived from the names of the columns. */
static bool lay_out(struct k25_sweep_layout *layout, struct k25_error *error)
{
    struct k25_printer head;
    bool csv = layout->format == K25_SWEEP_CSV;
    layout->tail = csv ? "\n" : "}\n";
    if (!k25_print_open(&head, error))
        return false;
    bool ok = true;
    for (size_t i = 0; i < layout->columns; i++) {
        char *name = cell_text(layout->format, layout->column[i]), *lead = NULL;
        int length = name == NULL ? -1
                     : csv        ? asprintf(&lead, "%s", i > 0 ? "," : "")
                                  : asprintf(&lead, "%s%s:", i > 0 ? "," : "{", name);
        if (length < 0)
            ok = k25_fail(error, K25_RESOURCE, "out of memory");
        else if (csv)
            fprintf(head.out, "%s%s", lead, name);
        layout->lead[i] = length < 0 ? NULL : k25_arena_copy(&layout->arena, lead, (size_t)length);
        layout->lead_length[i] = length < 0 ? 0 : (size_t)length;
        if (ok && layout->lead[i] == NULL)
            ok = k25_fail(error, K25_RESOURCE, "out of memory");
        free(name);
        if (length >= 0)
            free(lead);
    }
    if (csv)
        fputc('\n', head.out);
    char *text = k25_print_close(&head, error);
    layout->head = text == NULL ? NULL : k25_arena_copy(&layout->arena, text, strlen(text));
    free(text);
    return ok && (layout->head != NULL || k25_fail(error, K25_RESOURCE, "out of memory"));
}

static const char *keep(struct k25_sweep_layout *layout, const char *text, bool *ok)
{
    const char *kept = k25_arena_copy(&layout->arena, text, strlen(text));
    *ok = *ok && kept != NULL;
    return kept;
}

bool k25_sweep_layout_make(const struct k25_sweep *sweep, enum k25_sweep_format format, const char *program,
                           struct k25_sweep_layout *layout, struct k25_error *error)
{
    bool ok = true;
    struct k25_printer printer;
    *layout = (struct k25_sweep_layout){.format = format,
                                        .inputs = sweep->inputs,
                                        .points = sweep->points,
                                        .columns = sweep->columns,
                                        .constraints = sweep->constraints,
                                        .objectives = sweep->objectives,
                                        .groups = sweep->groups,
                                        .top = sweep->top};
    layout->name = keep(layout, sweep->name, &ok);
    layout->title = keep(layout, sweep->title, &ok);
    for (size_t i = 0; i < sweep->columns; i++) {
        layout->column[i] = keep(layout, sweep->column[i].name, &ok);
        layout->keys += sweep->column[i].source == K25_CELL_KEY || sweep->column[i].source == K25_CELL_NAME;
    }
    for (size_t i = 0; i < sweep->constraints; i++)
        layout->constraint[i] = keep(layout, sweep->constraint[i].text, &ok);
    memcpy(layout->objective, sweep->objective, sizeof layout->objective);
    memcpy(layout->group, sweep->group, sizeof layout->group);
    if (!ok)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    if (!lay_out(layout, error) || !k25_print_open(&printer, error))
        return false;
    print_frame(printer.out, layout, program);
    layout->text = k25_print_close(&printer, error);
    return layout->text != NULL;
}

/* ---- parsing ---- */

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
    long long number;
    if (!k25_parse_int(text, &number) || number < 0 || (uint64_t)number > most)
        return false;
    *value = (uint64_t)number;
    return true;
}

static void unescape(char *text)
{
    char *out = text;
    for (; *text != '\0'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
            *out++ = *text == 'n' ? '\n' : *text;
        } else {
            *out++ = *text;
        }
    }
    *out = '\0';
}

static bool parse_format(const char *text, enum k25_sweep_format *format)
{
    for (enum k25_sweep_format f = K25_SWEEP_CSV; f < K25_SWEEP_FORMATS; f++) {
        *format = f;
        if (strcmp(text, k25_sweep_format_names[f]) == 0)
            return true;
    }
    return false;
}

/* One line, without its newline, split at its first space. False: not a line of a layout. */
static bool parse_line(const char *key, char *text, struct k25_sweep_layout *layout, bool *ok)
{
    uint64_t number = 0;
    bool maximise = strcmp(key, "maximise") == 0;
    unescape(text);
    if (strcmp(key, "program") == 0)
        return true;
    if (strcmp(key, "inputs") == 0)
        return sscanf(text, "%16" SCNx64, &layout->inputs) == 1;
    if (strcmp(key, "points") == 0)
        return parse_number(text, K25_SWEEP_MOST, &layout->points);
    if (strcmp(key, "format") == 0)
        return parse_format(text, &layout->format);
    if (strcmp(key, "name") == 0)
        return (layout->name = keep(layout, text, ok)) != NULL;
    if (strcmp(key, "title") == 0)
        return (layout->title = keep(layout, text, ok)) != NULL;
    if (strcmp(key, "column") == 0)
        return layout->columns < K25_SWEEP_COLUMNS &&
               (layout->column[layout->columns++] = keep(layout, text, ok)) != NULL;
    if (strcmp(key, "constraint") == 0)
        return layout->constraints < K25_SWEEP_CONSTRAINTS &&
               (layout->constraint[layout->constraints++] = keep(layout, text, ok)) != NULL;
    if (!parse_number(text, K25_SWEEP_TOP, &number))
        return false;
    if (strcmp(key, "keys") == 0)
        return (layout->keys = (size_t)number) <= K25_SWEEP_COLUMNS;
    if (strcmp(key, "top") == 0)
        return (layout->top = (size_t)number) <= K25_SWEEP_TOP;
    if (number >= layout->columns)
        return false;
    if (maximise || strcmp(key, "minimise") == 0) {
        if (layout->objectives == K25_SWEEP_OBJECTIVES)
            return false;
        layout->objective[layout->objectives++] = (struct k25_sweep_objective){(size_t)number, maximise};
        return true;
    }
    if (strcmp(key, "group") != 0 || layout->groups == K25_SWEEP_AXES)
        return false;
    layout->group[layout->groups++] = (size_t)number;
    return true;
}

bool k25_sweep_layout_parse(const char *text, const char *file, size_t *size, struct k25_sweep_layout *layout,
                            struct k25_error *error)
{
    const char *at = text;
    bool ok = true, done = false;
    memset(layout, 0, sizeof *layout);
    layout->name = layout->title = "";
    for (int line = 1; ok && !done; line++) {
        const char *end = strchr(at, '\n');
        char *copy = end == NULL ? NULL : strndup(at, (size_t)(end - at));
        if (copy == NULL)
            return k25_fail(error, K25_BAD_INPUT, "%s: not the state of a sweep, or its start is cut off", file);
        char *space = strchr(copy, ' ');
        if (line == 1) {
            ok = strcmp(copy, "k25sim sweep state 1") == 0;
        } else if (strcmp(copy, "rows") == 0) {
            done = true;
        } else if ((ok = space != NULL)) {
            *space = '\0';
            ok = parse_line(copy, space + 1, layout, &ok) && ok;
        }
        free(copy);
        at = end + 1;
        if (!ok)
            return k25_fail_at(error, file, line, 1, "not a line of a sweep's state");
    }
    if (layout->keys > layout->columns)
        return k25_fail(error, K25_BAD_INPUT, "%s: more keys than columns", file);
    *size = (size_t)(at - text);
    layout->text = strndup(text, *size);
    if (layout->text == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    return lay_out(layout, error);
}

void k25_sweep_layout_free(struct k25_sweep_layout *layout)
{
    free(layout->text);
    k25_arena_free(&layout->arena);
    memset(layout, 0, sizeof *layout);
}

/* ---- cells of the axes ---- */

/* JSON has numbers and truth without quotes, in its own spelling; the rest is text. */
static char *plan_text(const struct k25_sweep_layout *layout, const struct k25_plan_key *key,
                       const struct k25_sweep_value *value)
{
    char number[40];
    switch (key->field->type) {
    case K25_BOOL:
        return k25_copy(value->number != 0 ? "true" : "false");
    case K25_INT:
    case K25_REAL:
        return k25_copy(k25_text_real(value->number, number, sizeof number));
    case K25_ENUM:
        return cell_text(layout->format, key->field->names[(int)value->number]);
    case K25_TEXT:
    case K25_MAP:
    case K25_NODE:
        break;
    }
    return cell_text(layout->format, value->text);
}

static char *other_text(const struct k25_sweep_layout *layout, const char *text)
{
    double number;
    char out[40];
    bool truth, json = layout->format == K25_SWEEP_JSONL;
    if (json && k25_parse_real(text, &number))
        return k25_copy(k25_text_real(number, out, sizeof out));
    if (json && k25_parse_bool(text, &truth))
        return k25_copy(truth ? "true" : "false");
    return cell_text(layout->format, text);
}

static char *make_text(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                       const struct k25_sweep_column *column, size_t position)
{
    const struct k25_sweep_axis *axis = &sweep->axis[column->axis];
    if (column->source == K25_CELL_NAME)
        return cell_text(layout->format, axis->names[position]);
    const struct k25_sweep_value *value = &axis->values[position * axis->keys + column->index];
    const struct k25_sweep_key *key = &axis->key[column->index];
    if (key->plan != NULL)
        return plan_text(layout, key->plan, value);
    bool text = strncmp(key->name, "plan.", 5) == 0; /* an acceptance is a text, also where it looks like a number */
    return text ? cell_text(layout->format, value->text) : other_text(layout, value->text);
}

struct k25_sweep_axis_cells *k25_sweep_axis_cells_make(const struct k25_sweep *sweep,
                                                       const struct k25_sweep_layout *layout, struct k25_error *error)
{
    struct k25_sweep_axis_cells *cells = calloc(1, sizeof *cells);
    bool ok = cells != NULL;
    for (size_t c = 0; ok && c < layout->keys; c++) {
        const struct k25_sweep_column *column = &sweep->column[c];
        const struct k25_sweep_axis *axis = &sweep->axis[column->axis];
        cells->longest[c] = 40;
        if (axis->values == NULL)
            continue;
        cells->cell[c] = k25_arena_take(&cells->arena, (size_t)axis->count * sizeof *cells->cell[c]);
        ok = cells->cell[c] != NULL;
        for (size_t i = 0; ok && i < axis->count; i++) {
            char *text = make_text(sweep, layout, column, i);
            size_t length = text != NULL ? strlen(text) : 0;
            const char *kept = text != NULL ? k25_arena_copy(&cells->arena, text, length) : NULL;
            cells->cell[c][i] = (struct k25_sweep_cell){kept, length};
            cells->longest[c] = length > cells->longest[c] ? length : cells->longest[c];
            ok = kept != NULL;
            free(text);
        }
    }
    if (ok)
        return cells;
    k25_sweep_axis_cells_free(cells);
    k25_fail(error, K25_RESOURCE, "out of memory");
    return NULL;
}

void k25_sweep_axis_cells_free(struct k25_sweep_axis_cells *cells)
{
    if (cells == NULL)
        return;
    k25_arena_free(&cells->arena);
    free(cells);
}
