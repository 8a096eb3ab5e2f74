/* What a function says when it cannot do what it was asked.
 *
 * Every function of libk25sim that can fail takes a `struct k25_error *` as its last argument and returns
 * false (or NULL) after filling it. The message is written for the person who made the mistake: where it is
 * (file:line:column when there is one), what is wrong, what was expected, and the nearest valid name.
 */
#ifndef K25_BASE_ERROR_H
#define K25_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/* The values are the exit statuses of the program. */
enum k25_status {
    K25_OK = 0,
    K25_NEGATIVE = 1,  /* the question has a negative answer: does not fit, bar missed */
    K25_BAD_INPUT = 2, /* a file, key, value or argument is wrong */
    K25_RESOURCE = 3,  /* input/output, memory or another resource failed */
};

struct k25_error {
    enum k25_status status;
    char message[1024]; /* one or more lines, no newline at the end */
};

/* Fills `error` and returns false, so that a caller can write `return k25_fail(...)`. `error` may be NULL. */
bool k25_fail(struct k25_error *error, enum k25_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the position "file:line:column: " in front; line and column count from 1, and a line of 0
 * leaves both out. */
bool k25_fail_at(struct k25_error *error, const char *file, int line, int column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
