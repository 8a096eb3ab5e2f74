#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "calib/trace/internal.h"

/* Bytes that a search for the next event keeps for the next piece: more than it reads around a brace. */
enum { LOOK_AROUND = 512 };

bool k25_trace_walk_start(struct k25_trace_walk *walk, const struct k25_trace_options *options, k25_trace_visit *visit,
                          void *context, struct k25_trace_info *info)
{
    *walk = (struct k25_trace_walk){.options = options, .visit = visit, .context = context, .info = info};
    walk->quick = !options->plain_scan && k25_trace_quick_available();
    return k25_trace_names_start(&walk->names, &info->arena);
}

void k25_trace_walk_free(struct k25_trace_walk *walk)
{
    k25_trace_names_free(&walk->names);
    free(walk->scratch);
}

static uint64_t offset_of(const struct k25_trace_walk *walk, const char *p)
{
    return walk->offset + (uint64_t)(p - walk->text);
}

static const char *refuse(struct k25_trace_walk *walk, const char *p, const char *what)
{
    walk->refusal = what;
    walk->refused_at = offset_of(walk, p);
    return p;
}

static bool push(struct k25_trace_walk *walk, bool list)
{
    if (walk->depth == K25_WALK_DEPTH) {
        return false;
    }
    walk->in_list[walk->depth++] = list;
    walk->list_seen |= list;
    walk->state = list ? K25_WALK_LIST : K25_WALK_MEMBER;
    return true;
}

static void pop(struct k25_trace_walk *walk)
{
    walk->depth--;
    walk->state = walk->depth == 0 ? K25_WALK_END : walk->in_list[walk->depth - 1] ? K25_WALK_LIST : K25_WALK_MEMBER;
}

static const char *separators(const char *p, const char *end)
{
    while (p < end && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    return p;
}

/* Every function below continues at `p` and returns how far it came, or NULL when it needs the bytes after `end`. */

static const char *start(struct k25_trace_walk *walk, const char *p, const char *end)
{
    const char *text = p;
    if (end - p < 3 && !walk->last) {
        return NULL;
    }
    if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        p += 3;
    }
    p = k25_trace_blanks(p, end);
    if (p == end && !walk->last) {
        return NULL;
    }
    if (p == end || (*p != '{' && *p != '[')) {
        return refuse(walk, p, k25_trace_not_json(text, (size_t)(end - text)));
    }
    push(walk, *p == '[');
    return p + 1;
}

/* Metadata that cannot be read: the list may still be found. */
static const char *damaged_root(struct k25_trace_walk *walk, const char *p)
{
    walk->info->damaged_root = true;
    walk->depth = 1;
    walk->in_list[0] = false;
    walk->state = K25_WALK_FIND_LIST;
    return p;
}

static bool is(struct k25_trace_span span, const char *word)
{
    return span.size == strlen(word) && memcmp(span.at, word, span.size) == 0;
}

static void note_key(struct k25_trace_walk *walk, struct k25_trace_span key, char value)
{
    if (walk->first_key[0] == '\0') {
        size_t size = key.size < sizeof walk->first_key - 1 ? key.size : sizeof walk->first_key - 1;
        for (size_t i = 0; i < size; i++) {
            walk->first_key[i] = key.at[i] < ' ' || key.at[i] > '~' ? '?' : key.at[i];
        }
    }
    walk->nodes_seen |= is(key, "nodes") && value == '[';
}

/* The value at `p` of a root key that is needed: used when it is complete. */
static const char *wanted(struct k25_trace_walk *walk, struct k25_trace_span key, const char *p, const char *end)
{
    struct k25_trace_skipper skip = {0};
    const char *at = p, *after = k25_trace_skip(&skip, &at, end);
    if (after == NULL) {
        return skip.bad_string ? damaged_root(walk, at) : NULL;
    }
    walk->info->damaged_strings += skip.damaged_strings;
    walk->info->invalid_utf8 += skip.invalid_utf8;
    struct k25_trace_span value = {p, (size_t)(after - p)};
    if (value.size >= 2 && *p == '"') {
        value = (struct k25_trace_span){p + 1, value.size - 2};
    }
    if (is(key, "schema")) {
        walk->chakra_seen |= memmem(value.at, value.size, "chakra", 6) != NULL;
    } else {
        k25_trace_root_set(walk->info, key, value);
    }
    return after;
}

/* The value at `p` of the key. With `pass` it is skipped although it is needed, because it is too long. */
static const char *member_value(struct k25_trace_walk *walk, struct k25_trace_span key, const char *p, const char *end,
                                bool pass)
{
    note_key(walk, key, *p);
    if (is(key, "rocprofiler-sdk-tool")) {
        return refuse(walk, p, "rocprofv3 output, not a torch.profiler trace");
    }
    if (is(key, "traceEvents")) {
        if ((*p == '[' || *p == '{') && push(walk, *p == '[')) {
            return p + 1;
        }
        walk->null_list = true;
    } else if (k25_trace_root_wanted(key) && !pass) {
        return wanted(walk, key, p, end);
    }
    walk->skip = (struct k25_trace_skipper){0};
    walk->state = K25_WALK_SKIP;
    return p;
}

static const char *member(struct k25_trace_walk *walk, const char *p, const char *end, bool pass)
{
    p = separators(p, end);
    if (p == end) {
        return end;
    }
    if (*p == '}') {
        pop(walk);
        return p + 1;
    }
    if (*p != '"') {
        return damaged_root(walk, p);
    }
    struct k25_trace_skipper skip = {0};
    const char *at = p, *after = k25_trace_skip(&skip, &at, end);
    const char *colon = after == NULL ? end : k25_trace_blanks(after, end);
    const char *value = colon == end ? end : k25_trace_blanks(colon + 1, end);
    if (colon < end && *colon != ':') {
        return damaged_root(walk, p);
    }
    if (value == end) {
        return pass ? damaged_root(walk, p) : NULL;
    }
    struct k25_trace_span key = {p + 1, (size_t)(after - p - 2)};
    return member_value(walk, key, value, end, pass);
}

static const char *skip_value(struct k25_trace_walk *walk, const char *p, const char *end)
{
    if (!walk->last) {
        end -= 3; /* do not split a character */
    }
    if (p >= end) {
        return NULL;
    }
    const char *after = k25_trace_skip(&walk->skip, &p, end);
    if (after == NULL && !walk->skip.bad_string) {
        return p;
    }
    walk->info->damaged_strings += walk->skip.damaged_strings;
    walk->info->invalid_utf8 += walk->skip.invalid_utf8;
    if (after == NULL) {
        return damaged_root(walk, p);
    }
    walk->state = K25_WALK_MEMBER;
    return after;
}

static bool looks_like_kernel(const char *p, const char *end)
{
    static const char word[] = "\"kernel\"";
    for (; (size_t)(end - p) >= sizeof word - 1 && (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
        if ((size_t)(end - p) >= sizeof word - 1 && strncasecmp(p, word, sizeof word - 1) == 0) {
            return true;
        }
    }
    return false;
}

/* The event at `p` cannot be read: it is counted, and the next one looked for. */
static const char *damaged_event(struct k25_trace_walk *walk, const char *p, const char *end)
{
    struct k25_trace_info *info = walk->info;
    if (info->damaged_events++ == 0) {
        info->first_damage = offset_of(walk, p);
    }
    const char *next = k25_trace_resync(walk->text, p + 1, end, walk->last);
    const char *far = end - p > 4096 ? p + 4096 : end;
    info->damaged_kernels += looks_like_kernel(p, next != NULL ? next : far);
    walk->state = next != NULL ? K25_WALK_LIST : K25_WALK_RESYNC;
    return next != NULL ? next : p + 1;
}

static const char *event(struct k25_trace_walk *walk, const char *p, const char *end)
{
    const char *after;
    enum k25_trace_verdict verdict = K25_EVENT_ODD;
    if (walk->quick) {
        struct k25_trace_span guess = k25_trace_names_guess(&walk->names, &walk->guess);
        verdict = k25_trace_event_quick(&walk->shape, &guess, p, end, &walk->raw, &after);
    }
    if (verdict == K25_EVENT_ODD) {
        verdict = k25_trace_event_plain(p, end, &walk->raw, &after);
    }
    switch (verdict) {
    case K25_EVENT_DONE:
        k25_trace_deliver(walk);
        return after;
    case K25_EVENT_MORE:
        return NULL;
    case K25_EVENT_NESTED:
        return push(walk, false) ? p + 1 : damaged_event(walk, p, end);
    case K25_EVENT_ODD:
    case K25_EVENT_DAMAGED:
        break;
    }
    if (walk->last && end - after < 8) { /* the last bytes of a truncated gzip stream can be wrong */
        return NULL;
    }
    return damaged_event(walk, p, end);
}

static const char *list(struct k25_trace_walk *walk, const char *p, const char *end)
{
    p = separators(p, end);
    if (p == end) {
        return end;
    }
    if (*p == '{') {
        return event(walk, p, end);
    }
    if (*p == ']') {
        pop(walk);
        return p + 1;
    }
    return damaged_event(walk, p, end);
}

static const char *resync(struct k25_trace_walk *walk, const char *p, const char *end)
{
    const char *next = k25_trace_resync(walk->text, p, end, walk->last);
    if (next != NULL) {
        walk->state = K25_WALK_LIST;
        return next;
    }
    if (walk->last) {
        return end;
    }
    return end - p > LOOK_AROUND ? end - LOOK_AROUND : NULL;
}

static const char *find_list(struct k25_trace_walk *walk, const char *p, const char *end)
{
    static const char key[] = "\"traceEvents\"";
    const char *found = memmem(p, (size_t)(end - p), key, sizeof key - 1);
    if (found == NULL) {
        return walk->last ? end : end - p > LOOK_AROUND ? end - LOOK_AROUND : NULL;
    }
    const char *colon = k25_trace_blanks(found + sizeof key - 1, end);
    const char *value = colon < end ? k25_trace_blanks(colon + 1, end) : end;
    if (value == end) {
        return walk->last ? end : NULL;
    }
    if (*colon == ':' && *value == '[') {
        push(walk, true);
        return value + 1;
    }
    return found + sizeof key - 1;
}

/* After the document; zeros are padding. */
static const char *rest(struct k25_trace_walk *walk, const char *p, const char *end)
{
    for (; p < end && !walk->info->extra_document; p++) {
        walk->info->extra_document = *p != '\0' && *p != ' ' && *p != '\n' && *p != '\r' && *p != '\t';
    }
    return end;
}

static const char *go_on(struct k25_trace_walk *walk, const char *p, const char *end)
{
    switch (walk->state) {
    case K25_WALK_START:
        return start(walk, p, end);
    case K25_WALK_MEMBER:
        return member(walk, p, end, false);
    case K25_WALK_SKIP:
        return skip_value(walk, p, end);
    case K25_WALK_LIST:
        return list(walk, p, end);
    case K25_WALK_RESYNC:
        return resync(walk, p, end);
    case K25_WALK_FIND_LIST:
        return find_list(walk, p, end);
    case K25_WALK_END:
        break;
    }
    return rest(walk, p, end);
}

/* The element that begins at `p` is too long to be held in memory. */
static const char *too_long(struct k25_trace_walk *walk, const char *p, const char *end)
{
    if (walk->state == K25_WALK_LIST) {
        return damaged_event(walk, separators(p, end - 1), end);
    }
    return walk->state == K25_WALK_MEMBER ? member(walk, p, end, true) : end;
}

/* The file ends inside the element that begins at `p`; or the element was never closed and others follow it. */
static const char *cut(struct k25_trace_walk *walk, const char *p, const char *end)
{
    p = separators(p, end - 1);
    if (walk->state == K25_WALK_LIST && k25_trace_resync(walk->text, p + 1, end, true) != NULL) {
        return damaged_event(walk, p, end);
    }
    if (walk->state == K25_WALK_MEMBER && !walk->list_seen && end - p > 1) {
        return damaged_root(walk, p + 1);
    }
    walk->info->truncated = true;
    return end;
}

/* The file ends here, inside an element or not. */
static void finish(struct k25_trace_walk *walk)
{
    struct k25_trace_info *info = walk->info;
    if (walk->state == K25_WALK_START && walk->refusal == NULL) {
        refuse(walk, walk->text, "empty file");
    }
    info->truncated |= walk->state == K25_WALK_SKIP;
    info->unterminated |= walk->state == K25_WALK_LIST || walk->state == K25_WALK_MEMBER ||
                          walk->state == K25_WALK_RESYNC || walk->state == K25_WALK_SKIP;
}

size_t k25_trace_walk_feed(struct k25_trace_walk *walk, const char *text, size_t size, uint64_t offset, bool last)
{
    const char *p = text, *end = text + size;
    walk->text = text;
    walk->offset = offset;
    walk->last = last;
    while (p < end && walk->refusal == NULL && !walk->stopped && !walk->out_of_memory) {
        const char *next = go_on(walk, p, end);
        if (next == NULL && last) {
            next = cut(walk, p, end);
        } else if (next == NULL && end - p < K25_TRACE_LONGEST) {
            break;
        } else if (next == NULL) {
            next = too_long(walk, p, end);
        }
        p = next;
    }
    if (last) {
        finish(walk);
    }
    return (size_t)(p - text);
}
