/* A cursor over JSON in memory that builds no tree and skips members that are not needed: benchmark results have every
 * token time of every request. Accepts NaN and Infinity, which Python writes, and any Unicode escape, which YAML
 * readers refuse.
 *
 *     k25_json_enter(&json, '{');
 *     while (k25_json_key(&json, &key)) { ... k25_json_scalar(&json, &value) or k25_json_skip(&json) ... }
 *
 * The first fault ends the walk: every function then returns false; `fault` and `at` are its description and position.
 */
#ifndef K25_CALIB_READERS_TEXT_JSON_CURSOR_H
#define K25_CALIB_READERS_TEXT_JSON_CURSOR_H

#include "calib/readers/text/evidence.h"

struct k25_json {
    const char *text;
    size_t size, at;
    const char *fault; /* NULL: none */
};

/* '{', '[', '"', or another first letter of the next value; 0 at the end of the text. */
char k25_json_peek(struct k25_json *json);

/* Steps into an object or a list. */
bool k25_json_enter(struct k25_json *json, char bracket);

/* The next key of the object (raw, escapes as written), or the next entry of the list; false at its end, which is
 * stepped over. */
bool k25_json_key(struct k25_json *json, struct k25_span *key);
bool k25_json_entry(struct k25_json *json);

/* A string without its quotes, or a number, true, false, null, NaN, Infinity as written. */
struct k25_json_value {
    struct k25_span text;
    bool quoted;
};
bool k25_json_scalar(struct k25_json *json, struct k25_json_value *value);

/* Any value, however deep. */
bool k25_json_skip(struct k25_json *json);

/* The number of a value, NAN for null, NaN, Infinity, "N/A" and "inf"; false when it is no number. */
bool k25_json_real(struct k25_json_value value, double *number);

/* k25_evidence_fault at byte `at` of the text. */
bool k25_json_fault(struct k25_evidence *evidence, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
