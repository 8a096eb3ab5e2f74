#include "scenarios/sweep/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"

const char *const k25_sweep_format_names[] = {"csv", "jsonl", NULL};

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

char *k25_sweep_cell_text(enum k25_sweep_format format, const char *text)
{
    return format == K25_SWEEP_CSV ? csv_text(text) : json_text(text);
}

const char *k25_sweep_cell_read(const struct k25_sweep_frame *frame, struct k25_sweep_cell cell, char *out, size_t size)
{
    size_t used = 0;
    bool quoted = cell.length >= 2 && cell.text[0] == '"',
         null = frame->format == K25_SWEEP_JSONL && !quoted && cell.length == 4 && memcmp(cell.text, "null", 4) == 0;
    size_t end = quoted ? cell.length - 1 : null ? 0 : cell.length;
    for (size_t i = quoted; i < end && used + 1 < size; i++) {
        char c = cell.text[i];
        if (quoted && i + 1 < end && (c == '\\' || c == '"')) {
            c = cell.text[++i];
            unsigned code;
            char digits[5] = "";
            if (c == 'u' && frame->format == K25_SWEEP_JSONL && i + 4 < end) {
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

/* Behind the cell that starts at `at`. */
static size_t cell_end(const struct k25_sweep_frame *frame, const char *row, size_t at, size_t length)
{
    bool csv = frame->format == K25_SWEEP_CSV;
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

bool k25_sweep_split(const struct k25_sweep_frame *frame, const char *row, size_t length,
                     struct k25_sweep_cell cells[K25_SWEEP_COLUMNS])
{
    size_t at = 0;
    for (size_t i = 0; i < frame->columns; i++) {
        size_t lead = frame->lead_length[i];
        if (length - at < lead || memcmp(row + at, frame->lead[i], lead) != 0)
            return false;
        at += lead;
        size_t end = cell_end(frame, row, at, length);
        cells[i] = (struct k25_sweep_cell){row + at, end - at};
        at = end;
    }
    size_t tail = strlen(frame->tail) - 1; /* without its newline */
    return length - at == tail && memcmp(row + at, frame->tail, tail) == 0;
}

/* ---- the frame as text ---- */

/* One line whatever the text holds. */
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

static void print_frame(FILE *out, const struct k25_sweep_frame *frame, const char *program)
{
    fputs("k25sim sweep state 1\n", out);
    print_line(out, "program", program);
    fprintf(out, "inputs %016" PRIx64 "\npoints %" PRIu64 "\nformat %s\n", frame->inputs, frame->points,
            k25_sweep_format_names[frame->format]);
    print_line(out, "name", frame->name);
    print_line(out, "title", frame->title);
    fprintf(out, "keys %zu\ntop %zu\n", frame->keys, frame->top);
    for (size_t i = 0; i < frame->columns; i++)
        print_line(out, "column", frame->column[i]);
    for (size_t i = 0; i < frame->constraints; i++)
        print_line(out, "constraint", frame->constraint[i]);
    for (size_t i = 0; i < frame->objectives; i++)
        fprintf(out, "%s %zu\n", frame->objective[i].maximise ? "maximise" : "minimise", frame->objective[i].column);
    for (size_t i = 0; i < frame->groups; i++)
        fprintf(out, "group %zu\n", frame->group[i]);
    fputs("rows\n", out);
}

/* What stands around the cells follows from the names of the columns. */
static bool lay_out(struct k25_sweep_frame *frame, struct k25_error *error)
{
    struct k25_printer head;
    bool csv = frame->format == K25_SWEEP_CSV;
    frame->tail = csv ? "\n" : "}\n";
    if (!k25_print_open(&head, error))
        return false;
    bool ok = true;
    for (size_t i = 0; i < frame->columns; i++) {
        char *name = k25_sweep_cell_text(frame->format, frame->column[i]), *lead = NULL;
        int length = name == NULL ? -1
                     : csv        ? asprintf(&lead, "%s", i > 0 ? "," : "")
                                  : asprintf(&lead, "%s%s:", i > 0 ? "," : "{", name);
        if (length < 0)
            ok = k25_fail(error, K25_RESOURCE, "out of memory");
        else if (csv)
            fprintf(head.out, "%s%s", lead, name);
        frame->lead[i] = length < 0 ? NULL : k25_arena_copy(&frame->arena, lead, (size_t)length);
        frame->lead_length[i] = length < 0 ? 0 : (size_t)length;
        if (ok && frame->lead[i] == NULL)
            ok = k25_fail(error, K25_RESOURCE, "out of memory");
        free(name);
        if (length >= 0)
            free(lead);
    }
    if (csv)
        fputc('\n', head.out);
    char *text = k25_print_close(&head, error);
    frame->head = text == NULL ? NULL : k25_arena_copy(&frame->arena, text, strlen(text));
    free(text);
    return ok && (frame->head != NULL || k25_fail(error, K25_RESOURCE, "out of memory"));
}

static const char *keep(struct k25_sweep_frame *frame, const char *text, bool *ok)
{
    const char *kept = k25_arena_copy(&frame->arena, text, strlen(text));
    *ok = *ok && kept != NULL;
    return kept;
}

bool k25_sweep_frame_make(const struct k25_sweep *sweep, enum k25_sweep_format format, const char *program,
                          struct k25_sweep_frame *frame, struct k25_error *error)
{
    bool ok = true;
    struct k25_printer printer;
    *frame = (struct k25_sweep_frame){.format = format,
                                      .inputs = sweep->inputs,
                                      .points = sweep->points,
                                      .columns = sweep->columns,
                                      .constraints = sweep->constraints,
                                      .objectives = sweep->objectives,
                                      .groups = sweep->groups,
                                      .top = sweep->top};
    frame->name = keep(frame, sweep->name, &ok);
    frame->title = keep(frame, sweep->title, &ok);
    for (size_t i = 0; i < sweep->columns; i++) {
        frame->column[i] = keep(frame, sweep->column[i].name, &ok);
        frame->keys += sweep->column[i].source == K25_CELL_KEY || sweep->column[i].source == K25_CELL_NAME;
    }
    for (size_t i = 0; i < sweep->constraints; i++)
        frame->constraint[i] = keep(frame, sweep->constraint[i].text, &ok);
    memcpy(frame->objective, sweep->objective, sizeof frame->objective);
    memcpy(frame->group, sweep->group, sizeof frame->group);
    if (!ok)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    if (!lay_out(frame, error) || !k25_print_open(&printer, error))
        return false;
    print_frame(printer.out, frame, program);
    frame->text = k25_print_close(&printer, error);
    return frame->text != NULL;
}

/* ---- reading it again ---- */

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

/* One line, without its newline, cut at its first space. False: no line of a frame. */
static bool parse_line(const char *key, char *text, struct k25_sweep_frame *frame, bool *ok)
{
    uint64_t number = 0;
    bool maximise = strcmp(key, "maximise") == 0;
    unescape(text);
    if (strcmp(key, "program") == 0)
        return true;
    if (strcmp(key, "inputs") == 0)
        return sscanf(text, "%16" SCNx64, &frame->inputs) == 1;
    if (strcmp(key, "points") == 0)
        return parse_number(text, K25_SWEEP_MOST, &frame->points);
    if (strcmp(key, "format") == 0) {
        frame->format = strcmp(text, "jsonl") == 0 ? K25_SWEEP_JSONL : K25_SWEEP_CSV;
        return true;
    }
    if (strcmp(key, "name") == 0)
        return (frame->name = keep(frame, text, ok)) != NULL;
    if (strcmp(key, "title") == 0)
        return (frame->title = keep(frame, text, ok)) != NULL;
    if (strcmp(key, "column") == 0)
        return frame->columns < K25_SWEEP_COLUMNS && (frame->column[frame->columns++] = keep(frame, text, ok)) != NULL;
    if (strcmp(key, "constraint") == 0)
        return frame->constraints < K25_SWEEP_CONSTRAINTS &&
               (frame->constraint[frame->constraints++] = keep(frame, text, ok)) != NULL;
    if (!parse_number(text, K25_SWEEP_TOP, &number))
        return false;
    if (strcmp(key, "keys") == 0)
        return (frame->keys = (size_t)number) <= K25_SWEEP_COLUMNS;
    if (strcmp(key, "top") == 0)
        return (frame->top = (size_t)number) <= K25_SWEEP_TOP;
    if (number >= frame->columns)
        return false;
    if (maximise || strcmp(key, "minimise") == 0) {
        if (frame->objectives == K25_SWEEP_OBJECTIVES)
            return false;
        frame->objective[frame->objectives++] = (struct k25_sweep_objective){(size_t)number, maximise};
        return true;
    }
    if (strcmp(key, "group") != 0 || frame->groups == K25_SWEEP_AXES)
        return false;
    frame->group[frame->groups++] = (size_t)number;
    return true;
}

bool k25_sweep_frame_parse(const char *text, const char *file, size_t *size, struct k25_sweep_frame *frame,
                           struct k25_error *error)
{
    const char *at = text;
    bool ok = true, done = false;
    memset(frame, 0, sizeof *frame);
    frame->name = frame->title = "";
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
            ok = parse_line(copy, space + 1, frame, &ok) && ok;
        }
        free(copy);
        at = end + 1;
        if (!ok)
            return k25_fail_at(error, file, line, 1, "not a line of a sweep's state");
    }
    if (frame->keys > frame->columns)
        return k25_fail(error, K25_BAD_INPUT, "%s: more keys than columns", file);
    *size = (size_t)(at - text);
    frame->text = strndup(text, *size);
    if (frame->text == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    return lay_out(frame, error);
}

void k25_sweep_frame_free(struct k25_sweep_frame *frame)
{
    free(frame->text);
    k25_arena_free(&frame->arena);
    memset(frame, 0, sizeof *frame);
}
