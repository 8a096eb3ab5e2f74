#include <string.h>

#include "base/utf8.h"
#include "calib/trace/internal.h"

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Before a string, after one, after a word, after a backslash. */
static inline bool may_precede(char c)
{
    return c == '[' || c == '{' || c == ',' || c == ':';
}

static inline bool may_follow(char c)
{
    return c == ',' || c == ':' || c == ']' || c == '}';
}

static inline bool ends_word(char c)
{
    return is_blank(c) || may_precede(c) || may_follow(c) || c == '"' || c == '\0';
}

static inline bool is_escape(char c)
{
    return c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't' || c == 'u';
}

static inline bool is_plain(char c)
{
    return c != '"' && c != '\\' && (unsigned char)c < 0x80;
}

/* One byte inside a string; more than one for a character above 127. NULL when the text ends inside a character.
 */
static const char *string_byte(struct k25_trace_skipper *skip, const char *p, const char *end)
{
    if (skip->escaped) {
        skip->escaped = false;
        if (!is_escape(*p) && !skip->bad_escape) {
            skip->bad_escape = true; /* once a string */
            skip->damaged_strings++;
        }
        return p + 1;
    }
    if ((unsigned char)*p < 0x80) {
        skip->escaped = *p == '\\';
        skip->in_string = *p != '"';
        return p + 1;
    }
    size_t left = (size_t)(end - p), length = k25_utf8_length((const unsigned char *)p, left);
    if (length == 0) {
        skip->invalid_utf8++;
        for (length = 1; length < left && length < 4 && ((unsigned char)p[length] & 0xc0) == 0x80; length++) {
        }
    }
    return p + length;
}

/* One byte outside strings. True when the value ends before or with it; `*p` is then the byte after the value. */
static bool outside_byte(struct k25_trace_skipper *skip, const char **p)
{
    char c = **p;
    if (is_blank(c)) {
        *p += 1;
        return skip->depth == 0 && skip->before != '\0';
    }
    if (skip->before == '"' && !may_follow(c)) {
        skip->bad_string = true; /* `"a"b`: the quote before is not one */
        return true;
    }
    if (c == '"' && skip->before != '\0' && !may_precede(skip->before)) {
        skip->bad_string = true; /* `a"b"` */
        return true;
    }
    if (skip->depth == 0 && (c == ',' || c == ']' || c == '}')) {
        return true; /* after a number or a word, or where a value is missing */
    }
    *p += 1;
    skip->before = c;
    if (c == '"') {
        skip->in_string = true;
        skip->bad_escape = false;
    } else if (c == '{' || c == '[') {
        skip->depth++;
    } else if (c == '}' || c == ']') {
        skip->depth--;
        return skip->depth == 0;
    }
    return false;
}

const char *k25_trace_skip(struct k25_trace_skipper *skip, const char **p, const char *end)
{
    const char *at = *p;
    while (at < end) {
        if (skip->in_string) {
            for (; !skip->escaped && end - at > 1 && is_plain(*at); at++) {
            }
            at = string_byte(skip, at, end);
            if (!skip->in_string && skip->depth == 0) {
                return at;
            }
        } else if (outside_byte(skip, &at)) {
            *p = at;
            return skip->bad_string ? NULL : at;
        }
    }
    *p = at;
    return NULL;
}

/* The event being walked. */
struct cursor {
    const char *p, *end;
    struct k25_trace_raw *raw;
    enum k25_trace_verdict verdict; /* of a function that returned false */
};

static bool stop(struct cursor *cursor, enum k25_trace_verdict verdict)
{
    cursor->verdict = verdict;
    return false;
}

/* Skips blanks; false when the text ends. */
static bool blanks(struct cursor *cursor)
{
    while (cursor->p < cursor->end && is_blank(*cursor->p)) {
        cursor->p++;
    }
    return cursor->p < cursor->end || stop(cursor, K25_EVENT_MORE);
}

/* The content of the string at the cursor. */
static bool string(struct cursor *cursor, struct k25_trace_span *inside, bool *odd)
{
    struct k25_trace_skipper skip = {0};
    const char *p = cursor->p;
    const char *after = k25_trace_skip(&skip, &p, cursor->end);
    if (after == NULL) {
        return stop(cursor, K25_EVENT_MORE);
    }
    *inside = (struct k25_trace_span){cursor->p + 1, (size_t)(after - cursor->p - 2)};
    *odd = memchr(inside->at, '\\', inside->size) != NULL || memchr(inside->at, '\0', inside->size) != NULL;
    for (size_t i = 0; i < inside->size && !*odd; i++) {
        *odd = (inside->at[i] & 0x80) != 0;
    }
    cursor->raw->damaged_strings += skip.damaged_strings;
    cursor->raw->invalid_utf8 += skip.invalid_utf8;
    cursor->p = after;
    return true;
}

/* An object or an array that is not needed. */
static bool nested(struct cursor *cursor)
{
    struct k25_trace_skipper skip = {0};
    const char *after = k25_trace_skip(&skip, &cursor->p, cursor->end);
    cursor->raw->damaged_strings += skip.damaged_strings;
    cursor->raw->invalid_utf8 += skip.invalid_utf8;
    return after != NULL || stop(cursor, skip.bad_string ? K25_EVENT_DAMAGED : K25_EVENT_MORE);
}

/* A number, true, false or null; if there is nothing, or a word that is not JSON, the value is missing. */
static bool word(struct cursor *cursor, enum k25_trace_field field)
{
    const char *start = cursor->p;
    while (cursor->p < cursor->end && !ends_word(*cursor->p)) {
        cursor->p++;
    }
    if (cursor->p == cursor->end) {
        return stop(cursor, K25_EVENT_MORE);
    }
    size_t size = (size_t)(cursor->p - start);
    bool negative;
    uint64_t magnitude;
    enum k25_trace_number kind = k25_trace_decimal(start, size, 0, &negative, &magnitude);
    if (kind == K25_NUMBER_NONFINITE) {
        cursor->raw->nonfinite++;
    } else if (kind != K25_NUMBER_NONE) {
        k25_trace_raw_set(cursor->raw, field, start, size, false);
    } else if (!(size == 4 && (memcmp(start, "true", 4) == 0 || memcmp(start, "null", 4) == 0)) &&
               !(size == 5 && memcmp(start, "false", 5) == 0)) {
        cursor->raw->damaged_values++;
    }
    return true;
}

static bool value(struct cursor *cursor, enum k25_trace_field field)
{
    if (*cursor->p == '"') {
        struct k25_trace_span inside;
        bool odd;
        if (!string(cursor, &inside, &odd)) {
            return false;
        }
        cursor->raw->odd_name = field == K25_FIELD_NAME ? odd : cursor->raw->odd_name;
        k25_trace_raw_set(cursor->raw, field, inside.at, inside.size, true);
        return true;
    }
    return *cursor->p == '{' || *cursor->p == '[' ? nested(cursor) : word(cursor, field);
}

/* The key at the cursor and the colon after it. */
static bool key(struct cursor *cursor, bool in_args, enum k25_trace_field *field)
{
    if (*cursor->p != '"') {
        return stop(cursor, K25_EVENT_DAMAGED);
    }
    struct k25_trace_span inside;
    bool odd;
    if (!string(cursor, &inside, &odd) || !blanks(cursor)) {
        return false;
    }
    if (*cursor->p != ':') {
        return stop(cursor, K25_EVENT_DAMAGED);
    }
    cursor->p++;
    *field = k25_trace_field(inside.at, inside.size, in_args);
    return blanks(cursor);
}

/* After a member: a comma, or the end of the object. */
static bool separator(struct cursor *cursor, bool *closed)
{
    if (!blanks(cursor)) {
        return false;
    }
    *closed = *cursor->p == '}';
    if (*cursor->p != ',' && !*closed) {
        return stop(cursor, K25_EVENT_DAMAGED);
    }
    cursor->p++;
    return true;
}

/* The members of the event or, one level down, of its args; the cursor starts after '{' and ends after '}'. */
static bool members(struct cursor *cursor, bool in_args)
{
    bool closed = false;
    while (!closed) {
        enum k25_trace_field field;
        if (!blanks(cursor)) {
            return false;
        }
        if (*cursor->p == '}') { /* an empty object, or a trailing comma */
            cursor->p++;
            return true;
        }
        if (!key(cursor, in_args, &field)) {
            return false;
        }
        if (field == K25_FIELD_NESTED && (*cursor->p == '[' || *cursor->p == '{')) {
            return stop(cursor, K25_EVENT_NESTED);
        }
        if (field == K25_FIELD_ARGS && *cursor->p == '{') {
            cursor->p++;
            if (!members(cursor, true)) { /* only one level: args have no args */
                return false;
            }
        } else if (!value(cursor, field)) {
            return false;
        }
        if (!separator(cursor, &closed)) {
            return false;
        }
    }
    return true;
}

enum k25_trace_verdict k25_trace_event_plain(const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after)
{
    struct cursor cursor = {.p = text + 1, .end = end, .raw = raw};
    k25_trace_raw_clear(raw);
    bool done = members(&cursor, false);
    *after = cursor.p;
    return done ? K25_EVENT_DONE : cursor.verdict;
}
