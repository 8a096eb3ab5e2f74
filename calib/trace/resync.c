#include <string.h>

#include "calib/trace/internal.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Whether the key at `p` (a quote), with its colon, is one of `keys`. */
static bool is_key(const char *p, const char *end, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        size_t size = strlen(*keys);
        if ((size_t)(end - p) > size + 2 && memcmp(p + 1, *keys, size) == 0 && p[size + 1] == '"') {
            p = k25_trace_blanks(p + size + 2, end);
            return p < end && *p == ':';
        }
    }
    return false;
}

/* The last non-blank byte before `p` (0: none), and whether there is a newline between them. */
static char before(const char *text, const char *p, bool *line)
{
    *line = false;
    for (; p > text && is_blank(p[-1]); p--) {
        *line |= p[-1] == '\n' || p[-1] == '\r';
    }
    return p > text ? p[-1] : '\0';
}

/* `,{"ph":` or a line that begins with `{"ph":`. */
static bool begins_event(const char *text, const char *p, const char *end)
{
    static const char *const keys[] = {"ph", "cat", "name", "pid", "tid", "ts", "args", "dur", "id", "bp", "s", NULL};
    bool line;
    char c = before(text, p, &line);
    if (c != ',' && c != '[' && !line) {
        return false;
    }
    p = k25_trace_blanks(p + 1, end);
    return p < end && *p == '"' && is_key(p, end, keys);
}

/* `]` before a key of the root, or before the end of the file. */
static bool ends_list(const char *text, const char *p, const char *end, bool last)
{
    static const char *const keys[] = {"traceName",
                                       "displayTimeUnit",
                                       "baseTimeNanoseconds",
                                       "distributedInfo",
                                       "schemaVersion",
                                       "trace_id",
                                       "deviceProperties",
                                       "record_shapes",
                                       "with_stack",
                                       "INFO",
                                       "WARNING",
                                       "ERROR",
                                       "computeProperties",
                                       "vllm_version",
                                       NULL};
    bool line;
    char c = before(text, p, &line);
    if (c != '}' && c != ',' && !line) {
        return false;
    }
    p = k25_trace_blanks(p + 1, end);
    if (p < end && *p == ',') {
        p = k25_trace_blanks(p + 1, end);
        return p < end && *p == '"' && is_key(p, end, keys);
    }
    return last && (p == end || (*p == '}' && k25_trace_blanks(p + 1, end) == end));
}

const char *k25_trace_resync(const char *text, const char *p, const char *end, bool last)
{
    for (; p < end; p++) {
        if ((*p == '{' && begins_event(text, p, end)) || (*p == ']' && ends_list(text, p, end, last))) {
            return p;
        }
    }
    return NULL;
}
