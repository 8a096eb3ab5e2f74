#include <string.h>
#include <strings.h>

#include "calib/trace/internal.h"

static bool same(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(text, word, size) == 0;
}

static const struct {
    const char *text;
    int category;
} categories[] = {
    {"kernel", K25_TRACE_KERNEL},
    {"gpu_memcpy", K25_TRACE_MEMCPY},
    {"memcpy", K25_TRACE_MEMCPY}, /* 2021 */
    {"gpu_memset", K25_TRACE_MEMSET},
    {"memset", K25_TRACE_MEMSET},
    {"cuda_runtime", K25_TRACE_RUNTIME},
    {"cuda_driver", K25_TRACE_RUNTIME},
    {"runtime", K25_TRACE_RUNTIME},
    {"gpu_user_annotation", K25_TRACE_GPU_ANNOTATION},
    {"user_annotation", K25_TRACE_ANNOTATION},
    {"cpu_op", K25_CATEGORY_CPU_OP},
    {"operator", K25_CATEGORY_OPERATOR},
    {"python_function", K25_CATEGORY_PYTHON},
    {"ac2g", K25_CATEGORY_IGNORED},
    {"async_cpu_to_gpu", K25_CATEGORY_IGNORED},
    {"async_gpu", K25_CATEGORY_IGNORED},
    {"async", K25_CATEGORY_IGNORED},
    {"fwdbwd", K25_CATEGORY_IGNORED},
    {"forward_backward", K25_CATEGORY_IGNORED},
    {"cpu_instant_event", K25_CATEGORY_IGNORED},
    {"overhead", K25_CATEGORY_IGNORED},
    {"cuda_sync", K25_CATEGORY_IGNORED},
    {"cuda_event", K25_CATEGORY_IGNORED},
    {"cuda_profiler_range", K25_CATEGORY_IGNORED},
    {"trace", K25_CATEGORY_IGNORED},
    {"mtia_runtime", K25_CATEGORY_IGNORED},
    {"mtia_ccp_events", K25_CATEGORY_IGNORED},
    {"mtia_workloadd", K25_CATEGORY_IGNORED},
};

int k25_trace_category(const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        if (same(text, size, categories[i].text)) {
            return categories[i].category;
        }
    }
    return K25_CATEGORY_UNKNOWN;
}

struct key {
    const char *text;
    enum k25_trace_field field;
};

static const struct key event_keys[] = {
    {"ph", K25_FIELD_PH},   {"cat", K25_FIELD_CAT},   {"name", K25_FIELD_NAME},
    {"pid", K25_FIELD_PID}, {"tid", K25_FIELD_TID},   {"ts", K25_FIELD_TS},
    {"dur", K25_FIELD_DUR}, {"args", K25_FIELD_ARGS}, {"traceEvents", K25_FIELD_NESTED},
};

static const struct key args_keys[] = {
    {"device", K25_FIELD_DEVICE},
    {"stream", K25_FIELD_STREAM},
    {"correlation", K25_FIELD_CORRELATION},
    {"External id", K25_FIELD_EXTERNAL},
    {"external id", K25_FIELD_EXTERNAL}, /* 2021 */
    {"graph id", K25_FIELD_GRAPH},
    {"graph node id", K25_FIELD_NODE},
    {"bytes", K25_FIELD_BYTES},
    {"In msg nelems", K25_FIELD_IN},
    {"Out msg nelems", K25_FIELD_OUT},
    {"Group size", K25_FIELD_SIZE},
    {"Seq", K25_FIELD_SEQUENCE},
    {"Collective name", K25_FIELD_COLLECTIVE},
    {"dtype", K25_FIELD_DTYPE},
    {"Process Group Name", K25_FIELD_GROUP},
    {"Process Group Description", K25_FIELD_DESCRIPTION},
    {"Process Group Ranks", K25_FIELD_RANKS},
};

enum k25_trace_field k25_trace_field(const char *key, size_t size, bool in_args)
{
    const struct key *keys = in_args ? args_keys : event_keys;
    size_t count = in_args ? sizeof args_keys / sizeof args_keys[0] : sizeof event_keys / sizeof event_keys[0];
    for (size_t i = 0; i < count; i++) {
        if (strlen(keys[i].text) == size && memcmp(keys[i].text, key, size) == 0) {
            return keys[i].field;
        }
    }
    return K25_FIELD_OTHER;
}

/* inf, infinity, nan, nan(ind), 1.#INF after the sign. */
static bool is_nonfinite(const char *text, size_t size)
{
    const char *open = memchr(text, '(', size);
    if (open != NULL && size > 0 && text[size - 1] == ')') {
        size = (size_t)(open - text);
    }
    return same(text, size, "inf") || same(text, size, "infinity") || same(text, size, "nan") ||
           same(text, size, "1.#INF") || same(text, size, "1.#IND") || same(text, size, "1.#QNAN");
}

/* value * 10^exponent, rounded towards zero. */
static enum k25_trace_number scale(uint64_t value, int64_t exponent, uint64_t *magnitude)
{
    for (; exponent > 0 && value != 0; exponent--) {
        if (__builtin_mul_overflow(value, 10, &value)) {
            return K25_NUMBER_HUGE;
        }
    }
    for (; exponent < 0 && value != 0; exponent++) {
        value /= 10;
    }
    *magnitude = value;
    return K25_NUMBER_OK;
}

/* The exponent after 'e', clamped: larger ones have the same result. */
static bool parse_exponent(const char *p, const char *end, int64_t *exponent)
{
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end) {
        return false;
    }
    int64_t value = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        value = value < 100000 ? value * 10 + (*p - '0') : value;
    }
    *exponent += negative ? -value : value;
    return true;
}

enum k25_trace_number k25_trace_decimal(const char *text, size_t size, int shift, bool *negative, uint64_t *magnitude)
{
    const char *p = text, *end = text + size;
    for (; p < end && (*p == ' ' || *p == '\t'); p++) {
    }
    for (; end > p && (end[-1] == ' ' || end[-1] == '\t'); end--) {
    }
    *negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *first = p;
    uint64_t value = 0;
    int64_t exponent = shift;
    bool digits = false, point = false, full = false;
    for (; p < end; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';
        if (digit > 9) {
            if (*p != '.' || point) {
                break;
            }
            point = true;
            continue;
        }
        digits = true;
        uint64_t next;
        if (full || __builtin_mul_overflow(value, 10, &next) || __builtin_add_overflow(next, digit, &next)) {
            full = true; /* digits beyond 64 bits only shift the decimal point */
            exponent += !point;
        } else {
            value = next;
            exponent -= point;
        }
    }
    if (digits && p < end && (*p == 'e' || *p == 'E') && parse_exponent(p + 1, end, &exponent)) {
        p = end;
    }
    if (!digits || p < end) {
        return is_nonfinite(first, (size_t)(end - first)) ? K25_NUMBER_NONFINITE : K25_NUMBER_NONE;
    }
    return scale(value, exponent, magnitude);
}

/* A missing or invalid number leaves the field unchanged; the fault is counted. */
static bool number(struct k25_trace_raw *raw, const char *text, size_t size, int shift, int64_t *value)
{
    bool negative;
    uint64_t magnitude;
    enum k25_trace_number kind = k25_trace_decimal(text, size, shift, &negative, &magnitude);
    if (kind == K25_NUMBER_OK && magnitude <= (negative ? (uint64_t)1 << 63 : (uint64_t)INT64_MAX)) {
        *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
        return true;
    }
    if (kind == K25_NUMBER_OK && shift == 0 && !negative) {
        *value = (int64_t)magnitude; /* a negative number that was printed as unsigned */
        return true;
    }
    raw->huge_ids += kind == K25_NUMBER_HUGE || kind == K25_NUMBER_OK;
    return false;
}

static void id(struct k25_trace_raw *raw, const char *text, size_t size, uint64_t *value)
{
    bool negative;
    uint64_t magnitude;
    enum k25_trace_number kind = k25_trace_decimal(text, size, 0, &negative, &magnitude);
    if (kind == K25_NUMBER_OK) {
        *value = negative ? 0 - magnitude : magnitude;
    } else if (kind == K25_NUMBER_HUGE) {
        raw->huge_ids++;
        *value = 0;
    }
}

/* "stream 7" and "GPU 0" hold a number; other texts are replaced by their hash (FNV-1a). */
static bool thread(const char *text, size_t size, int64_t *value)
{
    struct k25_trace_raw unused = {0};
    if (number(&unused, text, size, 0, value)) {
        return true;
    }
    size_t start = size;
    for (; start > 0 && text[start - 1] >= '0' && text[start - 1] <= '9'; start--) {
    }
    if (start < size && number(&unused, text + start, size - start, 0, value)) {
        return true;
    }
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    *value = (int64_t)(hash >> 1);
    return size > 0;
}

static void set_text(struct k25_trace_raw *raw, enum k25_trace_field field, const char *text, size_t size)
{
    if (!raw->has_texts) {
        memset(raw->texts, 0, sizeof raw->texts);
        raw->has_texts = true;
    }
    raw->texts[field - K25_FIELD_COLLECTIVE] = (struct k25_trace_span){text, size};
}

/* An integer field of args; false when the field is not one of them. */
static bool set_integer(struct k25_trace_raw *raw, enum k25_trace_field field, const char *text, size_t size)
{
    int64_t *numbers[K25_FIELDS] = {
        [K25_FIELD_DEVICE] = &raw->device,   [K25_FIELD_STREAM] = &raw->stream,
        [K25_FIELD_IN] = &raw->in_elements,  [K25_FIELD_OUT] = &raw->out_elements,
        [K25_FIELD_SIZE] = &raw->group_size, [K25_FIELD_SEQUENCE] = &raw->sequence,
    };
    uint64_t *ids[K25_FIELDS] = {
        [K25_FIELD_CORRELATION] = &raw->correlation,
        [K25_FIELD_EXTERNAL] = &raw->external_id,
        [K25_FIELD_GRAPH] = &raw->graph_id,
        [K25_FIELD_NODE] = &raw->graph_node,
        [K25_FIELD_BYTES] = &raw->bytes,
    };
    if (numbers[field] != NULL) {
        number(raw, text, size, 0, numbers[field]);
    } else if (ids[field] != NULL) {
        id(raw, text, size, ids[field]);
    }
    return numbers[field] != NULL || ids[field] != NULL;
}

void k25_trace_raw_set(struct k25_trace_raw *raw, enum k25_trace_field field, const char *text, size_t size,
                       bool string)
{
    switch (field) {
    case K25_FIELD_PH: /* the first of repeated keys counts, because it may decide that the rest is skipped */
        raw->ph = raw->ph != 0 ? raw->ph : string && size == 1 && text[0] != '\0' ? text[0] : '?';
        break;
    case K25_FIELD_CAT:
        if (raw->category == K25_CATEGORY_NONE) {
            raw->category = string ? k25_trace_category(text, size) : K25_CATEGORY_UNKNOWN;
        }
        break;
    case K25_FIELD_NAME:
        raw->name = (struct k25_trace_span){text, size};
        raw->guessed = false;
        break;
    case K25_FIELD_PID:
        raw->has_pid = thread(text, size, &raw->pid);
        break;
    case K25_FIELD_TID:
        raw->has_tid = thread(text, size, &raw->tid);
        break;
    case K25_FIELD_TS:
        raw->has_ts = number(raw, text, size, 3, &raw->ts_ns);
        raw->fraction |= memchr(text, '.', size) != NULL;
        break;
    case K25_FIELD_DUR:
        raw->has_dur = number(raw, text, size, 3, &raw->dur_ns);
        raw->fraction |= memchr(text, '.', size) != NULL;
        break;
    default:
        if (!set_integer(raw, field, text, size) && field >= K25_FIELD_COLLECTIVE && string) {
            set_text(raw, field, text, size);
        }
        break;
    }
}
