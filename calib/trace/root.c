#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "calib/trace/internal.h"

const char *k25_trace_blanks(const char *p, const char *end)
{
    for (; p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'); p++) {
    }
    return p;
}

static struct k25_trace_span without_quotes(const char *start, const char *after)
{
    bool string = after - start >= 2 && *start == '"' && after[-1] == '"';
    return string ? (struct k25_trace_span){start + 1, (size_t)(after - start - 2)}
                  : (struct k25_trace_span){start, (size_t)(after - start)};
}

/* The value at `*p`. */
static bool value_at(const char **p, const char *end, struct k25_trace_span *value)
{
    struct k25_trace_skipper skip = {0};
    const char *start = *p, *after = k25_trace_skip(&skip, p, end);
    if (after == NULL && (skip.bad_string || skip.depth > 0 || skip.in_string)) {
        return false;
    }
    after = after == NULL ? end : after;
    const char *last = after; /* a number ends at the blank after it */
    for (; last > start && (last[-1] == ' ' || last[-1] == '\n' || last[-1] == '\r' || last[-1] == '\t'); last--) {
    }
    *value = without_quotes(start, last);
    *p = after;
    return true;
}

bool k25_trace_member(const char **p, const char *end, struct k25_trace_span *key, struct k25_trace_span *value)
{
    const char *at = *p;
    do {
        at = k25_trace_blanks(at, end);
    } while (at < end && *at == ',' && at++ < end);
    if (at >= end || *at != '"' || !value_at(&at, end, key)) {
        return false;
    }
    at = k25_trace_blanks(at, end);
    if (at >= end || *at != ':') {
        return false;
    }
    at = k25_trace_blanks(at + 1, end);
    *p = at;
    return at < end && value_at(p, end, value);
}

static bool is(struct k25_trace_span span, const char *word)
{
    return span.size == strlen(word) && memcmp(span.at, word, span.size) == 0;
}

static const char *const wanted[] = {
    "schemaVersion", "deviceProperties", "computeProperties", "distributedInfo",     "trace_id",
    "traceName",     "vllm_version",     "displayTimeUnit",   "baseTimeNanoseconds", "schema",
};

bool k25_trace_root_wanted(struct k25_trace_span key)
{
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (is(key, wanted[i])) {
            return true;
        }
    }
    return false;
}

static bool whole_number(struct k25_trace_span text, int64_t *value)
{
    bool negative;
    uint64_t magnitude;
    if (k25_trace_decimal(text.at, text.size, 0, &negative, &magnitude) != K25_NUMBER_OK || magnitude > INT64_MAX) {
        return false;
    }
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static void set_int(struct k25_trace_span text, int *value)
{
    int64_t number;
    if (whole_number(text, &number) && number >= 0 && number <= INT32_MAX) {
        *value = (int)number;
    }
}

static void set_text(struct k25_trace_info *info, struct k25_trace_span text, const char **value)
{
    char *copy = k25_arena_take(&info->arena, text.size * 3 + 1);
    if (copy != NULL) {
        k25_trace_unescape(text.at, text.size, copy);
        *value = copy;
    }
}

static void set_distributed(struct k25_trace_info *info, struct k25_trace_span object)
{
    if (object.size == 0 || object.at[0] != '{') {
        return;
    }
    const char *p = object.at + 1, *end = object.at + object.size;
    struct k25_trace_span key, value;
    while (k25_trace_member(&p, end, &key, &value)) {
        if (is(key, "rank")) {
            set_int(value, &info->rank);
        } else if (is(key, "world_size")) {
            set_int(value, &info->world_size);
        } else if (is(key, "backend")) {
            set_text(info, value, &info->backend);
        } else if (is(key, "nccl_version")) {
            set_text(info, value, &info->nccl_version);
        }
    }
}

/* A list of objects, one per device; the name of the first that has one is used. */
static void set_devices(struct k25_trace_info *info, struct k25_trace_span list)
{
    const char *p = list.at, *end = list.at + list.size;
    while ((p = memchr(p, '{', (size_t)(end - p))) != NULL) {
        struct k25_trace_span key, value;
        info->devices++;
        p++;
        while (k25_trace_member(&p, end, &key, &value)) {
            if (is(key, "name") && info->device[0] == '\0') {
                set_text(info, value, &info->device);
            } else if ((is(key, "numSms") || is(key, "multiProcessorCount")) && info->multiprocessors == 0) {
                set_int(value, &info->multiprocessors);
            }
        }
    }
}

void k25_trace_root_set(struct k25_trace_info *info, struct k25_trace_span key, struct k25_trace_span value)
{
    if (is(key, "schemaVersion")) {
        set_int(value, &info->schema_version);
    } else if (is(key, "deviceProperties") || is(key, "computeProperties")) {
        set_devices(info, value);
    } else if (is(key, "distributedInfo")) {
        set_distributed(info, value);
    } else if (is(key, "trace_id")) {
        set_text(info, value, &info->trace_id);
    } else if (is(key, "traceName")) {
        set_text(info, value, &info->trace_name);
    } else if (is(key, "vllm_version")) {
        set_text(info, value, &info->vllm_version);
    } else if (is(key, "displayTimeUnit")) {
        set_text(info, value, &info->time_unit);
    } else if (is(key, "baseTimeNanoseconds")) {
        info->has_base_time = whole_number(value, &info->base_time_ns);
    }
}

static bool starts(const char *text, size_t size, const char *word)
{
    return size >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

static bool starts_with_bytes(const char *text, size_t size, const char *bytes, size_t count)
{
    return size >= count && memcmp(text, bytes, count) == 0;
}

const char *k25_trace_not_json(const char *text, size_t size)
{
    const char *trimmed = k25_trace_blanks(text, text + size);
    size_t left = size - (size_t)(trimmed - text);
    if (left == 0) {
        return "empty file: holds nothing but blanks";
    }
    if (starts(trimmed, left, "version https://git-lfs")) {
        return "git-lfs pointer, not the file itself: fetch it with 'git lfs pull'";
    }
    if (*trimmed == '<') {
        return "HTML or XML (an error page of a download?), not a trace";
    }
    if (starts_with_bytes(text, size, "SQLite format 3", 15)) {
        return "SQLite database (an nsys export?), not a trace";
    }
    if (starts_with_bytes(text, size, "PK\003\004", 4)) {
        return "zip archive, not a trace: unpack it first";
    }
    if (starts_with_bytes(text, size, "\x28\xb5\x2f\xfd", 4) || starts_with_bytes(text, size, "BZh", 3) ||
        starts_with_bytes(text, size,
                          "\xfd"
                          "7zXZ",
                          5)) {
        return "compressed with zstd, bzip2 or xz; only gzip and plain JSON are read";
    }
    if (starts_with_bytes(text, size, "\xff\xfe", 2) || starts_with_bytes(text, size, "\xfe\xff", 2)) {
        return "UTF-16 text; a trace is UTF-8";
    }
    if (starts_with_bytes(text, size, "\x80\x02", 2) || starts_with_bytes(text, size, "\x80\x04", 2)) {
        return "Python pickle (a memory snapshot?), not a trace";
    }
    for (size_t i = 0; i < size && i < 512; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 32 && c != '\t' && c != '\n' && c != '\r') {
            return text[0] == '\n' ? "Perfetto protobuf, not a Chrome JSON trace"
                                   : "binary data, not a Chrome JSON trace";
        }
    }
    return "not JSON: a trace starts with '{' or '['";
}
