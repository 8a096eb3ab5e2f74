/* Shared by the readers of text: lines, prefixes of launchers and loggers, numbers with units, and what a lenient
 * reader left out.
 *
 * A reader is strict by default: the first fault is an error with file:line:column. A lenient one leaves out the faulty
 * row or run, counts it and continues; a file without any valid row is an error either way.
 */
#ifndef K25_CALIB_READERS_TEXT_EVIDENCE_H
#define K25_CALIB_READERS_TEXT_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define K25_EVIDENCE_BYTES (256u << 20) /* the largest text file read, inflated */

struct k25_evidence_options {
    bool lenient;
    bool allow_wrong; /* nccl-tests: keep rows whose result was wrong, marked */
};

struct k25_left_out {
    size_t count;
    char first[512]; /* the message of the first one */
};

/* One file on its way in. */
struct k25_evidence {
    const char *file; /* for messages */
    const char *text;
    size_t size, at;
    int line; /* number of the line that k25_evidence_next returned last */
    struct k25_evidence_options options;
    struct k25_left_out *left_out;
    struct k25_error *error;
};

struct k25_span {
    const char *text;
    size_t size;
};

/* Checks that the file is text and skips a byte order mark. `what` is what was expected ("a key_averages table").
 * Returns false with K25_BAD_INPUT for an empty file, an HTML page, a git-lfs pointer, a database or another binary
 * file. */
bool k25_evidence_open(struct k25_evidence *evidence, const char *what);

/* The next line without its end (\n, \r\n or \r); false at the end of the text. */
bool k25_evidence_next(struct k25_evidence *evidence, struct k25_span *line);

/* A fault at a byte of `line`. True: lenient, it has been counted and the reader goes on without the faulty thing.
 * False: strict, the error is filled. */
bool k25_evidence_fault(struct k25_evidence *evidence, int number, struct k25_span line, const char *where,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Returns the length of the prefix `front` at the start of `line`: the same bytes, except that dates and times may
 * differ. -1: `line` does not have it. */
ptrdiff_t k25_front_match(struct k25_span front, struct k25_span line);

/* Returns `front` for display: without colour codes, dates, times and blanks around it. In the arena; NULL when out of
 * memory. */
const char *k25_front_tag(struct k25_arena *arena, struct k25_span front);

struct k25_span k25_span_of(const char *text);
struct k25_span k25_trim(struct k25_span span);
struct k25_span k25_after(struct k25_span span, size_t bytes);
bool k25_span_is(struct k25_span span, const char *text);
bool k25_span_starts(struct k25_span span, const char *text);
const char *k25_span_find(struct k25_span span, const char *needle); /* NULL: nowhere */

/* Splits at two or more blanks or a tab; returns how many there are, at most `room` of them stored. */
size_t k25_split_wide(struct k25_span line, struct k25_span *cells, size_t room);
/* Splits at any blank. */
size_t k25_split(struct k25_span line, struct k25_span *cells, size_t room);

bool k25_span_real(struct k25_span span, double *value);
bool k25_span_count(struct k25_span span, long long *value); /* whole and not negative */
/* "1.389s", "12.5 ms", "845 ns", "3 μs" as ns; false without a unit. */
bool k25_span_duration(struct k25_span span, double *ns);
/* "us", "msec", ...: how many ns one is; 0: no unit of time. */
double k25_time_unit(struct k25_span unit);
/* Whether the name ends in "..." or an ellipsis: it was truncated by its writer. */
bool k25_name_cut(struct k25_span name);

bool k25_out_of_memory(const char *file, struct k25_error *error); /* false */

#endif
