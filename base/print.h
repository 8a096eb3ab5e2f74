/* Text in memory, for the writers of our formats. */
#ifndef K25_BASE_PRINT_H
#define K25_BASE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct k25_printer {
    FILE *out;
    char *text;
    size_t size;
};

bool k25_print_open(struct k25_printer *printer, struct k25_error *error);

/* The text, for the caller to free; NULL when memory ran out on the way. */
char *k25_print_close(struct k25_printer *printer, struct k25_error *error);

/* "key: value" and a newline, the value in quotes where YAML would read it as something else. */
void k25_print_text(FILE *out, const char *key, const char *value);

/* The value in double quotes; what is not plain ASCII goes out as an escape, for YAML refuses some of it unescaped. */
void k25_print_quoted(FILE *out, const char *value);

/* A number that k25_parse_real reads back to the same value, with a point in any locale. */
void k25_print_real(FILE *out, double value);

#endif
