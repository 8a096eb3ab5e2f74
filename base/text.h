/* Names and numbers as text: nearest names, parsing, formatting. Nothing here depends on the locale. */
#ifndef K25_BASE_TEXT_H
#define K25_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the name in `names` (NULL-terminated) that `word` most likely means: the word itself; else the shortest name
 * that starts with it (two letters or more), ties to the last, which is the newest of "box-v3" and "box-v4"; else the
 * closest by optimal string alignment distance (insert, delete, replace, swap neighbours), ties to the first. Returns
 * NULL when no name is close enough: more than max(2, length / 3) edits away, or no letter in common. Upper and lower
 * case, '-' and '_' compare equal. */
const char *k25_nearest(const char *word, const char *const *names);

/* Whether `word` equals `name`; case is ignored and '-' equals '_'. */
bool k25_is_name(const char *word, const char *name);

/* Writes ", did you mean 'x'?" to `out` (`size` bytes) when k25_nearest finds a name, an empty string otherwise.
 * Returns `out`. */
const char *k25_did_you_mean(const char *word, const char *const *names, char *out, size_t size);

/* Parse the whole of `text` as a finite number, an integer, or true or false. Return false, with `*value` unchanged,
 * when it is something else or out of range. ".nan", "nan" and "inf" are not numbers here. */
bool k25_parse_real(const char *text, double *value);
bool k25_parse_int(const char *text, long long *value);
bool k25_parse_bool(const char *text, bool *value);

/* Write a number of bytes as "71.3 GB" (1e9 bytes), a count with separated thousands as "491,344", to `out` (`size`
 * bytes). Both return `out`. */
const char *k25_text_bytes(double bytes, char *out, size_t size);
const char *k25_text_count(double count, char *out, size_t size);
/* Writes to `out` the fewest digits, 15 to 17, that parse to the same number. Returns `out`. */
const char *k25_text_real(double value, char *out, size_t size);

/* Returns a copy of `text`, which the caller frees with free(); NULL when out of memory. */
char *k25_copy(const char *text);

#endif
