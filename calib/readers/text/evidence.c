#include "calib/readers/text/evidence.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/utf8.h"

bool k25_out_of_memory(const char *file, struct k25_error *error)
{
    return k25_fail(error, K25_RESOURCE, "%s: out of memory", file);
}

/* What the first bytes give away, in words that say what to do; NULL: nothing. */
static const char *look_alike(struct k25_span text)
{
    struct k25_span head = k25_trim((struct k25_span){text.text, text.size < 512 ? text.size : 512});
    if (head.size == 0)
        return "the file is empty";
    if (k25_span_starts(head, "version https://git-lfs"))
        return "a git-lfs pointer, fetch the real file (git lfs pull)";
    if (head.text[0] == '<' && head.size > 5 &&
        (strncasecmp(head.text, "<!doc", 5) == 0 || strncasecmp(head.text, "<html", 5) == 0))
        return "an HTML page, not the file itself";
    if (k25_span_starts(head, "SQLite format 3"))
        return "an SQLite database (k25sim inspect reads those of nsys)";
    if (k25_span_find(head, "QDSTRM") != NULL)
        return "an nsys stream that was never finalised (qdstrm)";
    if (k25_span_starts(head, "\xff\xfe") || k25_span_starts(head, "\xfe\xff"))
        return "text in UTF-16, save it as UTF-8";
    if (memchr(text.text, 0, text.size) != NULL)
        return "a binary file";
    return NULL;
}

bool k25_evidence_open(struct k25_evidence *evidence, const char *what)
{
    struct k25_span text = {evidence->text, evidence->size};
    const char *other = look_alike(text);
    if (other != NULL)
        return k25_fail(evidence->error, K25_BAD_INPUT, "%s: %s, expected %s", evidence->file, other, what);
    evidence->at = k25_span_starts(text, "\xef\xbb\xbf") ? 3 : 0;
    evidence->line = 0;
    return true;
}

bool k25_evidence_next(struct k25_evidence *evidence, struct k25_span *line)
{
    if (evidence->at >= evidence->size)
        return false;
    const char *start = evidence->text + evidence->at, *end = evidence->text + evidence->size, *p = start;
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    *line = (struct k25_span){start, (size_t)(p - start)};
    if (p < end)
        p += *p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1;
    evidence->at = (size_t)(p - evidence->text);
    evidence->line++;
    return true;
}

/* The column of `where` in `line`, from 1, in characters. */
static int column_of(struct k25_span line, const char *where)
{
    int column = 1;
    for (size_t i = 0; where != NULL && i < line.size && line.text + i < where; column++) {
        size_t length = k25_utf8_length((const unsigned char *)line.text + i, line.size - i);
        i += length == 0 ? 1 : length;
    }
    return column;
}

bool k25_evidence_fault(struct k25_evidence *evidence, int number, struct k25_span line, const char *where,
                        const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    int column = column_of(line, where);
    if (!evidence->options.lenient)
        return k25_fail_at(evidence->error, evidence->file, number, column, "%s", message);
    if (evidence->left_out->count++ == 0)
        snprintf(evidence->left_out->first, sizeof evidence->left_out->first, "%.60s:%d:%d: %s", evidence->file, number,
                 column, message);
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The length of the word that `text` starts with. */
static size_t word(struct k25_span text)
{
    size_t i = 0;
    while (i < text.size && !is_blank(text.text[i]))
        i++;
    return i;
}

/* A date or a time, perhaps in brackets: two groups of digits or more, joined by '-', '/' or ':'. Tags of
 * launchers
 * ("[1,0]<stdout>:", "3:") are none. */
static bool is_time(struct k25_span token)
{
    int groups = 0, digits = 0, joints = 0;
    for (size_t i = 0; i < token.size; i++) {
        char c = token.text[i];
        if (isdigit((unsigned char)c)) {
            groups += i == 0 || !isdigit((unsigned char)token.text[i - 1]);
            digits++;
        } else if (c == '-' || c == '/' || c == ':') {
            joints++;
        } else if (c != '[' && c != ']' && c != '.' && c != ',' && c != '+' && c != 'T' && c != 'Z') {
            return false;
        }
    }
    return groups >= 2 && digits >= 4 && joints >= 1;
}

ptrdiff_t k25_front_match(struct k25_span front, struct k25_span line)
{
    size_t at = 0;
    for (size_t i = 0; i < front.size;) {
        struct k25_span rest = k25_after(front, i), other = k25_after(line, at);
        size_t mine = word(rest), theirs = word(other);
        if (mine == 0) { /* a blank */
            if (theirs != 0 || other.size == 0)
                return -1;
            i++;
            at++;
        } else if (is_time((struct k25_span){rest.text, mine}) && is_time((struct k25_span){other.text, theirs})) {
            i += mine;
            at += theirs;
        } else { /* the front may end inside their word: "[1,0]<stdout>:text" */
            if (other.size < mine || memcmp(rest.text, other.text, mine) != 0)
                return -1;
            i += mine;
            at += mine;
        }
    }
    return (ptrdiff_t)at;
}

const char *k25_front_tag(struct k25_arena *arena, struct k25_span front)
{
    char *tag = k25_arena_copy(arena, front.text, front.size);
    if (tag == NULL)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < front.size;) {
        struct k25_span rest = k25_after(front, i);
        size_t length = word(rest);
        bool gap = i == 0 || is_blank(front.text[i - 1]);
        if (rest.text[0] == '\x1b') { /* up to the letter that ends a colour code */
            for (i++; i < front.size && !isalpha((unsigned char)front.text[i]);)
                i++;
            i++;
        } else if (gap && length > 0 && is_time((struct k25_span){rest.text, length})) {
            i += length;
        } else {
            if (!is_blank(rest.text[0]) || (used > 0 && !is_blank(tag[used - 1])))
                tag[used++] = rest.text[0];
            i++;
        }
    }
    while (used > 0 && is_blank(tag[used - 1]))
        used--;
    tag[used] = '\0';
    return tag;
}

struct k25_span k25_span_of(const char *text)
{
    return (struct k25_span){text, strlen(text)};
}

struct k25_span k25_trim(struct k25_span span)
{
    while (span.size > 0 && isspace((unsigned char)span.text[span.size - 1]))
        span.size--;
    while (span.size > 0 && isspace((unsigned char)span.text[0]))
        span = k25_after(span, 1);
    return span;
}

struct k25_span k25_after(struct k25_span span, size_t bytes)
{
    size_t step = bytes < span.size ? bytes : span.size;
    return (struct k25_span){span.text + step, span.size - step};
}

bool k25_span_is(struct k25_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.text, text, span.size) == 0;
}

bool k25_span_starts(struct k25_span span, const char *text)
{
    size_t size = strlen(text);
    return span.size >= size && memcmp(span.text, text, size) == 0;
}

const char *k25_span_find(struct k25_span span, const char *needle)
{
    return span.size == 0 ? NULL : memmem(span.text, span.size, needle, strlen(needle));
}

size_t k25_split_wide(struct k25_span line, struct k25_span *cells, size_t room)
{
    size_t count = 0, i = 0;
    while (true) {
        while (i < line.size && is_blank(line.text[i]))
            i++;
        if (i == line.size)
            return count;
        size_t start = i, end = i;
        for (; i < line.size; i++) {
            if (line.text[i] == '\t' || (line.text[i] == ' ' && (i + 1 == line.size || is_blank(line.text[i + 1]))))
                break;
            end = i + 1;
        }
        if (count < room)
            cells[count] = (struct k25_span){line.text + start, end - start};
        count++;
    }
}

size_t k25_split(struct k25_span line, struct k25_span *cells, size_t room)
{
    size_t count = 0;
    while (true) {
        line = k25_trim(line);
        if (line.size == 0)
            return count;
        size_t size = word(line);
        if (count < room)
            cells[count] = (struct k25_span){line.text, size};
        count++;
        line = k25_after(line, size);
    }
}

bool k25_span_real(struct k25_span span, double *value)
{
    char text[64];
    if (span.size == 0 || span.size >= sizeof text)
        return false;
    memcpy(text, span.text, span.size);
    text[span.size] = '\0';
    return strlen(text) == span.size && k25_parse_real(text, value);
}

bool k25_span_count(struct k25_span span, long long *value)
{
    char text[32];
    if (span.size == 0 || span.size >= sizeof text || !isdigit((unsigned char)span.text[0]))
        return false;
    memcpy(text, span.text, span.size);
    text[span.size] = '\0';
    return strlen(text) == span.size && k25_parse_int(text, value) && *value >= 0;
}

double k25_time_unit(struct k25_span unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {
        {"ns", 1},          {"nsec", 1},
        {"us", 1e3},        {"usec", 1e3},
        {"\xc2\xb5s", 1e3}, /* micro sign */
        {"\xce\xbcs", 1e3}, /* Greek mu */ {"ms", 1e6},
        {"msec", 1e6},      {"s", 1e9},
        {"sec", 1e9},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (k25_span_is(unit, units[i].name))
            return units[i].ns;
    }
    return 0;
}

bool k25_span_duration(struct k25_span span, double *ns)
{
    size_t digits = 0;
    while (digits < span.size && strchr("0123456789.+-", span.text[digits]) != NULL && span.text[digits] != '\0')
        digits++;
    double unit = k25_time_unit(k25_trim(k25_after(span, digits)));
    if (unit == 0 || !k25_span_real((struct k25_span){span.text, digits}, ns))
        return false;
    *ns *= unit;
    return true;
}

bool k25_name_cut(struct k25_span name)
{
    static const char *const ends[] = {"...", "\xe2\x80\xa6"};
    for (int i = 0; i < 2; i++) {
        if (name.size >= 3 && memcmp(name.text + name.size - 3, ends[i], 3) == 0)
            return true;
    }
    return false;
}
