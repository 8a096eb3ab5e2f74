/* One event at memory speed.
 *
 * Two ideas. First, an event that is not needed is left as soon as its category is known: the rest of it is searched,
 * 64 bytes at a time, for the brace that ends it (a mask of strings from the quotes by a carry-less product with all
 * ones, Langdale & Lemire, "Parsing gigabytes of JSON per second", VLDB J. 28, 2019, section 3.1). Second, the bytes
 * between two values (comma, blanks, key, colon) are mostly those of the last event of the same kind: one 32-byte
 * comparison replaces the parsing of a key. Neither depends on line breaks or on the order of keys; a wrong guess costs
 * one comparison.
 *
 * Every irregular event is ODD and parsed by the reference: escapes, bytes above 127, null and nan where nothing is
 * read, quotes where no string can begin or end, a comma before a brace.
 */
#include <string.h>

#include "calib/trace/internal.h"

#if defined(__x86_64__)
#include "calib/trace/simd.h"

bool k25_trace_quick_available(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("pclmul");
}

/* Microseconds to nanoseconds: the plain forms; others are for k25_trace_decimal. */
INLINE bool time_ns(const char **p, int64_t *ns, bool *point)
{
    const char *at = *p;
    uint64_t whole;
    if (!whole_number(&at, &whole) || whole > (uint64_t)INT64_MAX / 1000 - 1) {
        return false;
    }
    uint64_t fraction = 0;
    if (*at == '.') {
        uint64_t scale = 100;
        *point = true;
        for (at++; *at >= '0' && *at <= '9'; at++) {
            fraction += (uint64_t)(*at - '0') * scale;
            scale /= 10;
        }
    }
    if ((*at | 0x20) == 'e' || at[-1] == '.') {
        return false;
    }
    *ns = (int64_t)(whole * 1000 + fraction);
    *p = at;
    return true;
}

/* The byte after a number that is not needed, if it ends with a comma or a brace within 32 bytes, the common case; NULL
 * otherwise. The result depends on the position of the comma alone; the rest is a check off the critical path. */
INLINE const char *pass_number(const char *p)
{
    __m256i x = load(p);
    uint32_t ends = bits(either(equal(x, ','), equal(x, '}')));
    uint32_t fine = bits(_mm256_and_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('-' - 1)),
                                          _mm256_cmpgt_epi8(_mm256_set1_epi8('9' + 1), x)));
    return ends != 0 && (~fine & (ends ^ (ends - 1)) >> 1) == 0 ? p + _tzcnt_u32(ends) : NULL;
}

/* The destination of a field that is a plain integer; NULL for other fields. */
INLINE uint64_t *integer_of(struct k25_trace_raw *raw, enum k25_trace_field field)
{
    switch (field) {
    case K25_FIELD_CORRELATION:
        return &raw->correlation;
    case K25_FIELD_EXTERNAL:
        return &raw->external_id;
    case K25_FIELD_GRAPH:
        return &raw->graph_id;
    case K25_FIELD_NODE:
        return &raw->graph_node;
    case K25_FIELD_BYTES:
        return &raw->bytes;
    case K25_FIELD_DEVICE:
        return (uint64_t *)&raw->device;
    case K25_FIELD_STREAM:
        return (uint64_t *)&raw->stream;
    case K25_FIELD_PID:
        raw->has_pid = true;
        return (uint64_t *)&raw->pid;
    case K25_FIELD_TID:
        raw->has_tid = true;
        return (uint64_t *)&raw->tid;
    default:
        return NULL;
    }
}

/* Stores the number at `*p` in the event, directly when it is a plain one. */
INLINE enum k25_trace_verdict number(struct k25_trace_raw *raw, enum k25_trace_field field, const char **p)
{
    const char *start = *p, *after = start;
    int64_t ns;
    uint64_t value;
    if (field == K25_FIELD_OTHER && (after = pass_number(start)) != NULL) {
        *p = after;
        return *start >= '0' || (*start == '-' && start[1] >= '0') ? K25_EVENT_DONE : K25_EVENT_ODD;
    }
    after = start;
    if ((field == K25_FIELD_TS || field == K25_FIELD_DUR) && time_ns(&after, &ns, &raw->fraction)) {
        *(field == K25_FIELD_TS ? &raw->ts_ns : &raw->dur_ns) = ns;
        *(field == K25_FIELD_TS ? &raw->has_ts : &raw->has_dur) = true;
        *p = after;
        return K25_EVENT_DONE;
    }
    after = start;
    if (whole_number(&after, &value) && *after != '.' && (*after | 0x20) != 'e') {
        uint64_t *integer = integer_of(raw, field);
        if (integer != NULL) {
            *integer = value;
            *p = after;
            return K25_EVENT_DONE;
        }
    }
    after = number_end(start);
    if (after == start) {
        return K25_EVENT_ODD;
    }
    if (field != K25_FIELD_OTHER) {
        k25_trace_raw_set(raw, field, start, (size_t)(after - start), false);
    }
    *p = after;
    return K25_EVENT_DONE;
}

/* As k25_trace_raw_clear, in a few wide stores; they may overwrite the texts, which are not valid yet. */
INLINE void clear(struct k25_trace_raw *raw)
{
    _Static_assert(sizeof raw->texts >= 32, "room for the last store");
    for (size_t i = 0; i < offsetof(struct k25_trace_raw, texts); i += 32) {
        _mm256_storeu_si256((__m256i *)((char *)raw + i), _mm256_setzero_si256());
    }
    raw->category = K25_CATEGORY_NONE;
    raw->device = raw->stream = -1;
    raw->in_elements = raw->out_elements = raw->group_size = raw->sequence = -1;
}

/* Whether the string whose content begins at `p` is the guess. */
INLINE bool is_guess(const struct k25_trace_span *guess, const char *p, const char *end)
{
    if (guess->at == NULL || (size_t)(end - p) <= guess->size || p[guess->size] != '"') {
        return false;
    }
    __m256i different = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= guess->size; i += 32) {
        different = either(different, _mm256_xor_si256(load(p + i), load(guess->at + i)));
    }
    return _mm256_testz_si256(different, different) && memcmp(p + i, guess->at + i, guess->size - i) == 0;
}

INLINE enum k25_trace_verdict string(struct k25_trace_raw *raw, enum k25_trace_field field,
                                     const struct k25_trace_span *guess, const char **p, const char *end)
{
    const char *inside = *p + 1;
    if (field == K25_FIELD_NAME && is_guess(guess, inside, end)) {
        raw->name = (struct k25_trace_span){inside, guess->size};
        raw->guessed = true;
        *p = inside + guess->size + 1;
        return K25_EVENT_DONE;
    }
    const char *quote = string_end(inside, end);
    if (quote >= end) {
        return K25_EVENT_MORE;
    }
    if (*quote != '"') {
        return K25_EVENT_ODD;
    }
    *p = quote + 1;
    size_t size = (size_t)(quote - inside);
    if (field == K25_FIELD_NAME) {
        if (memchr(inside, '\0', size) != NULL) {
            return K25_EVENT_ODD;
        }
        raw->name = (struct k25_trace_span){inside, size};
        raw->guessed = false;
    } else if (field == K25_FIELD_PH && raw->ph == 0 && size == 1 && *inside == 'X') {
        raw->ph = 'X';
    } else if (raw->category == K25_CATEGORY_NONE && field == K25_FIELD_CAT && size == 6 &&
               memcmp(inside, "kernel", 6) == 0) {
        raw->category = K25_TRACE_KERNEL;
    } else if (raw->category == K25_CATEGORY_NONE && field == K25_FIELD_CAT && size == 15 &&
               memcmp(inside, "python_function", 15) == 0) {
        raw->category = K25_CATEGORY_PYTHON;
    } else if (field != K25_FIELD_OTHER) {
        k25_trace_raw_set(raw, field, inside, size, true);
    }
    return K25_EVENT_DONE;
}

/* An array; one of numbers that ends within 32 bytes (grids) is skipped in one step. */
INLINE enum k25_trace_verdict array(const char **p, const char *end)
{
    __m256i x = load(*p + 1), lower = either(x, _mm256_set1_epi8(0x20));
    uint32_t marks =
        bits(either(either(equal(lower, '{'), equal(lower, '}')), either(equal(lower, 'n'), equal(x, '"'))));
    const char *at = *p + 1 + _tzcnt_u32(marks);
    if (marks != 0 && at < end && *at == ']') {
        *p = at + 1;
        return K25_EVENT_DONE;
    }
    return close_at(*p, end, 0, true, false, p);
}

INLINE enum k25_trace_verdict word(const char **p)
{
    bool is_false = memcmp(*p, "false", 5) == 0;
    if (!is_false && memcmp(*p, "true", 4) != 0 && memcmp(*p, "null", 4) != 0) {
        return K25_EVENT_ODD;
    }
    *p += is_false ? 5 : 4;
    return K25_EVENT_DONE;
}

INLINE enum k25_trace_verdict value(struct k25_trace_raw *raw, enum k25_trace_field field,
                                    const struct k25_trace_span *guess, const char **p, const char *end)
{
    switch (**p) {
    case '"':
        return string(raw, field, guess, p, end);
    case '[':
        return array(p, end);
    case '{':
        return close_at(*p, end, 0, true, false, p);
    case 't':
    case 'f':
    case 'n':
        return word(p);
    default:
        return number(raw, field, p);
    }
}

/* Reads the text between two values at `p` into `step`; `first` when the object was just opened. */
static FAST enum k25_trace_verdict read_step(const char *p, const char *end, bool in_args, bool first,
                                             struct k25_trace_step *step, const char **after)
{
    *step = (struct k25_trace_step){.next = -1, .in_args = in_args};
    for (; p < end && is_blank(*p); p++) {
    }
    if (p < end && *p == '}') {
        step->closes = true;
        *after = p + 1;
        return K25_EVENT_DONE;
    }
    if (!first && p < end) {
        if (*p != ',') {
            return K25_EVENT_ODD;
        }
        for (p++; p < end && is_blank(*p); p++) {
        }
    }
    if (p < end && *p != '"') {
        return K25_EVENT_ODD;
    }
    const char *quote = p < end ? string_end(p + 1, end) : end;
    if (quote < end && *quote != '"') {
        return K25_EVENT_ODD;
    }
    const char *colon = quote + 1;
    for (; colon < end && is_blank(*colon); colon++) {
    }
    const char *start = colon + 1;
    for (; start < end && is_blank(*start); start++) {
    }
    if (start >= end) {
        return K25_EVENT_MORE;
    }
    step->field = k25_trace_field(p + 1, (size_t)(quote - p - 1), in_args);
    *after = start;
    return *colon == ':' && step->field != K25_FIELD_NESTED ? K25_EVENT_DONE : K25_EVENT_ODD;
}

/* Stores `step`, the bytes from `p` to `after`, as the successor of step `from`. Returns its index, -1 when it is too
 * long or the table is full. */
static int learn(struct k25_trace_shape *shape, int from, const struct k25_trace_step *step, const char *p,
                 const char *after)
{
    size_t size = (size_t)(after - p);
    if (size > K25_SHAPE_TEXT) {
        return -1;
    }
    for (int i = 1; i < shape->count; i++) {
        struct k25_trace_step *old = &shape->steps[i];
        if (old->size == size && old->in_args == step->in_args && memcmp(old->text, p, size) == 0) {
            shape->steps[from].next = (int16_t)i;
            return i;
        }
    }
    if (shape->count == K25_SHAPE_STEPS) {
        return -1; /* k25_trace_event_quick starts a new table */
    }
    int index = shape->count++;
    struct k25_trace_step *new = &shape->steps[index];
    *new = *step;
    memcpy(new->text, p, size);
    new->size = (uint32_t)size;
    new->mask = size == 32 ? ~0u : (1u << size) - 1;
    shape->steps[from].next = (int16_t)index;
    return index;
}

/* Step 0 is the beginning of an event. */
static void forget(struct k25_trace_shape *shape)
{
    memset(shape, 0, sizeof *shape);
    shape->count = 1;
    shape->steps[0].next = -1;
}

/* An event whose rest can be skipped: flows, instants, and calls without GPU work. */
INLINE bool leave(const struct k25_trace_raw *raw)
{
    return (raw->ph != 'X' && raw->ph != 0) || (raw->ph == 'X' && k25_trace_raw_useless(raw));
}

FAST enum k25_trace_verdict k25_trace_event_quick(struct k25_trace_shape *shape, const struct k25_trace_span *guess,
                                                  const char *text, const char *end, struct k25_trace_raw *raw,
                                                  const char **after)
{
    const char *p = text + 1;
    bool in_args = false, first = true;
    int at = 0;
    if (shape->count == 0 || shape->count == K25_SHAPE_STEPS) {
        forget(shape);
    }
    clear(raw);
    for (;;) {
        struct k25_trace_step fresh;
        const struct k25_trace_step *step = &fresh;
        int next = at < 0 ? -1 : shape->steps[at].next;
        const struct k25_trace_step *likely = &shape->steps[next < 0 ? 0 : next];
        if (next >= 0 && likely->in_args == in_args && end - p > K25_SHAPE_TEXT &&
            (bits(_mm256_cmpeq_epi8(load(p), load(likely->text))) & likely->mask) == likely->mask) {
            p += likely->size;
            step = likely;
            at = next;
        } else {
            const char *rest;
            enum k25_trace_verdict verdict = read_step(p, end, in_args, first, &fresh, &rest);
            if (verdict != K25_EVENT_DONE) {
                return verdict;
            }
            at = at < 0 ? -1 : learn(shape, at, &fresh, p, rest);
            p = rest;
        }
        first = false;
        if (step->closes) {
            if (!in_args) {
                *after = p;
                return K25_EVENT_DONE;
            }
            in_args = false;
            continue;
        }
        if (step->field == K25_FIELD_ARGS && *p == '{') {
            p++;
            in_args = first = true;
            continue;
        }
        enum k25_trace_verdict verdict = value(raw, (enum k25_trace_field)step->field, guess, &p, end);
        if (verdict != K25_EVENT_DONE) {
            return verdict;
        }
        if (p > end) {
            return K25_EVENT_MORE;
        }
        if ((step->field == K25_FIELD_CAT || step->field == K25_FIELD_PH) && leave(raw)) {
            return goes_on(p, end, '}') ? close_at(p, end, in_args ? 2 : 1, false, true, after) : K25_EVENT_ODD;
        }
    }
}

#else

bool k25_trace_quick_available(void)
{
    return false;
}

enum k25_trace_verdict k25_trace_event_quick(struct k25_trace_shape *shape, const struct k25_trace_span *guess,
                                             const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after)
{
    (void)shape;
    (void)guess;
    return k25_trace_event_plain(text, end, raw, after);
}

#endif
