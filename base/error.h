/* Errors: status and message.
 *
 * Every function of libk25sim that can fail takes a `struct k25_error *` as its last argument and returns
 * false (or NULL) after filling it. The message is written for the user who made the mistake: where it is
 * (file:line:column when there is one), what is wrong, what was expected, and the nearest valid name.
 */
#ifndef K25_BASE_ERROR_H
#define K25_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/* The values are the exit statuses of the program. */
enum k25_status {
    K25_OK = 0,
    K25_NEGATIVE = 1,  /* the result is negative: does not fit, target missed */
    K25_BAD_INPUT = 2, /* a file, key, value or argument is wrong */
    K25_RESOURCE = 3,  /* input/output, memory or another resource failed */
};

struct k25_error {
    enum k25_status status; /* K25_OK until filled, if initialised to zero */
    char message[1024];     /* one or more lines, no newline at the end */
};

/* Fills `error` and returns false, so that a caller can write `return k25_fail(...)`. `error` may be NULL, then nothing
 * is filled. Control characters other than newline become '?'; a message that is too long ends in "...". The arguments
 * may include the former message of `error`. */
bool k25_fail(struct k25_error *error, enum k25_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As k25_fail with K25_BAD_INPUT and the prefix "file:line:column: ". Line and column count from 1. A line of 0 leaves
 * out both, a column of 0 the column; a `file` of NULL or "" leaves out the prefix. */
bool k25_fail_at(struct k25_error *error, const char *file, int line, int column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
