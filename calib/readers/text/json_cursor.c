#include "calib/readers/text/json_cursor.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

static bool fault(struct k25_json *json, const char *what)
{
    if (json->fault == NULL)
        json->fault = what;
    return false;
}

char k25_json_peek(struct k25_json *json)
{
    while (json->at < json->size && strchr(" \t\r\n", json->text[json->at]) != NULL && json->text[json->at] != '\0')
        json->at++;
    return json->at < json->size ? json->text[json->at] : '\0';
}

bool k25_json_enter(struct k25_json *json, char bracket)
{
    if (json->fault != NULL)
        return false;
    if (k25_json_peek(json) != bracket)
        return fault(json, bracket == '{' ? "expected '{'" : "expected '['");
    json->at++;
    return true;
}

static bool string(struct k25_json *json, struct k25_span *text)
{
    size_t start = ++json->at;
    while (json->at < json->size && json->text[json->at] != '"')
        json->at += json->text[json->at] == '\\' ? 2 : 1;
    if (json->at >= json->size) {
        json->at = start - 1;
        return fault(json, "a string that never closes");
    }
    *text = (struct k25_span){json->text + start, json->at - start};
    json->at++;
    return true;
}

/* Steps over the comma before an entry or over the closing bracket. */
static bool more(struct k25_json *json, char open, char close)
{
    if (json->fault != NULL)
        return false;
    char c = k25_json_peek(json);
    size_t before = json->at; /* the last thing in front that is not blank says whether a comma is due */
    while (before > 0 && strchr(" \t\r\n", json->text[before - 1]) != NULL && json->text[before - 1] != '\0')
        before--;
    bool first = before > 0 && json->text[before - 1] == open;
    if (c == close) {
        json->at++;
        return false;
    }
    if (c == '\0')
        return fault(json, "the text ends here: cut");
    if (first)
        return true;
    if (c != ',')
        return fault(json, "expected ',' or the closing bracket");
    json->at++;
    return true;
}

bool k25_json_key(struct k25_json *json, struct k25_span *key)
{
    if (!more(json, '{', '}'))
        return false;
    if (k25_json_peek(json) != '"')
        return fault(json, json->at < json->size ? "expected a key in quotes" : "the text ends here: cut");
    if (!string(json, key))
        return false;
    if (k25_json_peek(json) != ':')
        return fault(json, json->at < json->size ? "expected ':'" : "the text ends here: cut");
    json->at++;
    return true;
}

bool k25_json_entry(struct k25_json *json)
{
    return more(json, '[', ']');
}

bool k25_json_scalar(struct k25_json *json, struct k25_json_value *value)
{
    if (json->fault != NULL)
        return false;
    char c = k25_json_peek(json);
    value->quoted = c == '"';
    if (value->quoted)
        return string(json, &value->text);
    size_t start = json->at;
    while (json->at < json->size && strchr(" \t\r\n,:{}[]\"", json->text[json->at]) == NULL)
        json->at++;
    value->text = (struct k25_span){json->text + start, json->at - start};
    return value->text.size > 0 || fault(json, c == '\0' ? "the text ends here: cut" : "expected a value");
}

bool k25_json_skip(struct k25_json *json)
{
    struct k25_json_value ignored;
    struct k25_span text;
    size_t depth = 0;
    do {
        char c = k25_json_peek(json);
        if (c == '{' || c == '[') {
            depth++;
            json->at++;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
            json->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            json->at++;
        } else if (c == '"') {
            if (!string(json, &text))
                return false;
        } else if (!k25_json_scalar(json, &ignored)) {
            return false;
        }
    } while (depth > 0 && json->fault == NULL);
    return json->fault == NULL;
}

bool k25_json_real(struct k25_json_value value, double *number)
{
    static const char *const missing[] = {"null", "NaN", "Infinity", "inf", "N/A", "None"};
    struct k25_span text = value.text;
    if (text.size > 0 && (text.text[0] == '-' || text.text[0] == '+') && !k25_span_real(text, number))
        text = k25_after(text, 1);
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        if (text.size == strlen(missing[i]) && strncasecmp(text.text, missing[i], text.size) == 0) {
            *number = NAN;
            return true;
        }
    }
    return k25_span_real(value.text, number);
}

bool k25_json_fault(struct k25_evidence *evidence, size_t at, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (evidence->options.lenient && evidence->left_out->count > 0) { /* only the first one is shown */
        evidence->left_out->count++;
        return true;
    }
    at = at < evidence->size ? at : evidence->size;
    size_t start = at;
    while (start > 0 && evidence->text[start - 1] != '\n')
        start--;
    int line, column;
    k25_locate(evidence->text, at, &line, &column);
    struct k25_span span = {evidence->text + start, at - start};
    return k25_evidence_fault(evidence, line, span, evidence->text + at, "%s", message);
}
