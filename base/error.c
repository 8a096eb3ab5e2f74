#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* A message quotes user input, which may contain terminal escape sequences: replace control characters. */
static void tame(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\n') || c == 0x7f) {
            *text = '?';
        }
    }
}

/* Ends a text that did not fit with "...", without half a UTF-8 character before the dots. */
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
        end--;
    }
    memcpy(text + end, "...", 4);
}

static bool fill(struct k25_error *error, enum k25_status status, const char *prefix, const char *format,
                 va_list arguments)
{
    if (error == NULL) {
        return false;
    }
    /* Formatted into a second buffer: an argument may be the former message of `error`. */
    char text[sizeof error->message];
    int used = snprintf(text, sizeof text, "%s", prefix);
    if (used >= 0 && (size_t)used < sizeof text) {
        int more = vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
        used = more < 0 ? more : used + more;
    }
    if (used < 0) {
        snprintf(text, sizeof text, "a message that cannot be formatted");
    } else if ((size_t)used >= sizeof text) {
        mark_cut(text, sizeof text);
    }
    tame(text);
    error->status = status;
    memcpy(error->message, text, sizeof text);
    return false;
}

bool k25_fail(struct k25_error *error, enum k25_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, status, "", format, arguments);
    va_end(arguments);
    return false;
}

bool k25_fail_at(struct k25_error *error, const char *file, int line, int column, const char *format, ...)
{
    char prefix[sizeof error->message];
    if (file == NULL || file[0] == '\0') {
        prefix[0] = '\0';
    } else if (line <= 0) {
        snprintf(prefix, sizeof prefix, "%s: ", file);
    } else if (column <= 0) {
        snprintf(prefix, sizeof prefix, "%s:%d: ", file, line);
    } else {
        snprintf(prefix, sizeof prefix, "%s:%d:%d: ", file, line, column);
    }
    va_list arguments;
    va_start(arguments, format);
    fill(error, K25_BAD_INPUT, prefix, format, arguments);
    va_end(arguments);
    return false;
}
