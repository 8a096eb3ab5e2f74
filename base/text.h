/* Small things done to names and numbers. */
#ifndef K25_BASE_TEXT_H
#define K25_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The name in `names` (NULL-terminated) that `word` most likely means: the word itself; else the shortest name that
 * starts with it (two letters or more), ties to the last, which is the newest of "box-v3" and "box-v4"; else the
 * closest by optimal string alignment distance (insert, delete, replace, swap neighbours), ties to the first. NULL
 * when nothing is close enough to be meant: more than max(2, length / 3) edits away, or no letter in common. Upper
 * and lower case, '-' and '_' compare equal. */
const char *k25_nearest(const char *word, const char *const *names);

/* Whether `word` is `name`, case, '-' and '_' aside. */
bool k25_is_name(const char *word, const char *name);

/* Writes ", did you mean 'x'?" into `out` when there is a nearest name, an empty string otherwise.
 * Returns `out`. */
const char *k25_did_you_mean(const char *word, const char *const *names, char *out, size_t size);

/* The whole of `text` as a finite number, an integer, a truth value (true or false); false when it is none.
 * ".nan", "nan" and "inf" are not numbers here. Independent of the locale. */
bool k25_parse_real(const char *text, double *value);
bool k25_parse_int(const char *text, long long *value);
bool k25_parse_bool(const char *text, bool *value);

/* A number of bytes for people: "71.3 GB" (1e9 bytes). A count with thousands separated: "491,344". Both return
 * `out`. */
const char *k25_text_bytes(double bytes, char *out, size_t size);
const char *k25_text_count(double count, char *out, size_t size);
/* The shortest of 15 to 17 digits that reads back as the same number, with a decimal point in every locale. */
const char *k25_text_real(double value, char *out, size_t size);

/* A copy of `text` on the heap; NULL only when memory is out. */
char *k25_copy(const char *text);

#endif
