/* Writing YAML to memory: a stream that grows, and the quoting of keys, texts and numbers. */
#ifndef K25_BASE_PRINT_H
#define K25_BASE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct k25_printer {
    FILE *out;   /* write here between open and close */
    char *text;  /* of open_memstream; not for callers */
    size_t size; /* of `text` */
};

/* Opens the stream. Fails only when out of memory (K25_RESOURCE). */
bool k25_print_open(struct k25_printer *printer, struct k25_error *error);

/* Closes the stream. Returns the text, zero-terminated, which the caller frees with free(); NULL (K25_RESOURCE) when a
 * write ran out of memory. */
char *k25_print_close(struct k25_printer *printer, struct k25_error *error);

/* Writes "key: value" and a newline; the value is quoted where YAML would read it as something other than text. */
void k25_print_text(FILE *out, const char *key, const char *value);

/* Writes `value` (UTF-8) in double quotes. Everything but printable ASCII is escaped, since YAML refuses some of it
 * unescaped. */
void k25_print_quoted(FILE *out, const char *value);

/* Writes a number with 15 significant digits and a decimal point in any locale. */
void k25_print_real(FILE *out, double value);

#endif
