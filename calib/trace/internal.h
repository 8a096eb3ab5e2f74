/* The parts of the trace reader, between themselves.
 *
 *     trace.c         the file: a piece is inflated while the one before is walked; how it ends
 *     trace_walk.c    the document: root, lists of events
 *     trace_resync.c  where to go on behind a damaged event
 *     trace_deliver.c from what an event says to what the visitor gets
 *     trace_event.c   one event, byte by byte: the reference, which puts up with damage
 *     trace_quick.c   one event, with AVX2: the same answers for events without anything odd, or "not me"
 *     trace_simd.h    what that one sees at a glance
 *     trace_fields.c  keys, categories, decimal numbers
 *     trace_names.c   texts, each kept once
 *     trace_root.c    what a file says about itself, and what is no trace
 *     trace_info.c    rank from the name, verdict, damage for people
 */
#ifndef K25_CALIB_TRACE_INTERNAL_H
#define K25_CALIB_TRACE_INTERNAL_H

#include <string.h>

#include "calib/trace/trace.h"

struct k25_trace_walk;

/* Zero bytes that must follow whatever is walked: the quick walker loads past what it looks at. */
enum { K25_TRACE_SLACK = 64 };

/* An event longer than this is damage (one without an end, usually); metadata longer than this is not read. */
enum { K25_TRACE_LONGEST = 1 << 20 };

enum k25_trace_category {
    K25_CATEGORY_NONE = -1, /* the event has no "cat" (metadata events) */
    /* 0 to K25_TRACE_KINDS - 1 are the kinds */
    K25_CATEGORY_CPU_OP = K25_TRACE_KINDS,
    K25_CATEGORY_PYTHON,
    K25_CATEGORY_OPERATOR, /* 2021: CPU operators and steps alike */
    K25_CATEGORY_IGNORED,  /* known and not needed */
    K25_CATEGORY_UNKNOWN,
};

enum k25_trace_field {
    K25_FIELD_OTHER,
    K25_FIELD_PH,
    K25_FIELD_CAT,
    K25_FIELD_NAME,
    K25_FIELD_PID,
    K25_FIELD_TID,
    K25_FIELD_TS,
    K25_FIELD_DUR,
    K25_FIELD_ARGS,
    K25_FIELD_NESTED, /* traceEvents inside an event */
    /* of args */
    K25_FIELD_DEVICE,
    K25_FIELD_STREAM,
    K25_FIELD_CORRELATION,
    K25_FIELD_EXTERNAL,
    K25_FIELD_GRAPH,
    K25_FIELD_NODE,
    K25_FIELD_BYTES,
    K25_FIELD_IN,
    K25_FIELD_OUT,
    K25_FIELD_SIZE,
    K25_FIELD_SEQUENCE,
    /* texts of a collective, in the order of `texts` below */
    K25_FIELD_COLLECTIVE,
    K25_FIELD_DTYPE,
    K25_FIELD_GROUP,
    K25_FIELD_DESCRIPTION,
    K25_FIELD_RANKS,
    K25_FIELDS,
};
enum { K25_TRACE_TEXTS = K25_FIELDS - K25_FIELD_COLLECTIVE };

struct k25_trace_span {
    const char *at; /* NULL: not there */
    size_t size;
};

/* What the text of one event says. Texts are spans of the walked text, as written (escapes and all). */
struct k25_trace_raw {
    int category;
    char ph; /* 0: not said */
    bool has_ts, has_dur, has_texts /* of a collective */, odd_name /* escapes or bytes above 127 */;
    bool guessed;  /* the name is the one that was guessed */
    bool fraction; /* ts or dur was written with a decimal point */
    bool has_tid, has_pid;
    int64_t ts_ns, dur_ns, tid, pid;
    int64_t device, stream; /* -1: not said */
    uint64_t correlation, external_id, graph_id, graph_node, bytes;
    int64_t in_elements, out_elements, group_size, sequence;
    uint32_t damaged_strings, damaged_values, invalid_utf8, nonfinite, huge_ids;
    struct k25_trace_span name;
    struct k25_trace_span texts[K25_TRACE_TEXTS]; /* only with has_texts */
};

/* How the walk of an event ended. */
enum k25_trace_verdict {
    K25_EVENT_DONE,
    K25_EVENT_MORE,    /* the text ends before the event does */
    K25_EVENT_ODD,     /* quick walker only: something the reference must look at */
    K25_EVENT_DAMAGED, /* `*after` is where it was seen */
    K25_EVENT_NESTED,  /* the event is a document: it holds traceEvents */
};

/* ---- trace_fields.c ---- */

enum k25_trace_number { K25_NUMBER_OK, K25_NUMBER_NONE, K25_NUMBER_NONFINITE, K25_NUMBER_HUGE };

/* The decimal `text` times 10^shift, cut towards zero, as sign and magnitude; never through a double. NONFINITE:
 * inf, nan and their kin in any case. HUGE: more than 64 bits. */
enum k25_trace_number k25_trace_decimal(const char *text, size_t size, int shift, bool *negative, uint64_t *magnitude);

/* Case does not matter. */
int k25_trace_category(const char *text, size_t size);
enum k25_trace_field k25_trace_field(const char *key, size_t size, bool in_args);

static inline void k25_trace_raw_clear(struct k25_trace_raw *raw)
{
    memset(raw, 0, offsetof(struct k25_trace_raw, texts));
    raw->category = K25_CATEGORY_NONE;
    raw->device = raw->stream = -1;
    raw->in_elements = raw->out_elements = raw->group_size = raw->sequence = -1;
}

/* Takes the value of `field`: `text` is the number or bare word, or the inside of a string. */
void k25_trace_raw_set(struct k25_trace_raw *raw, enum k25_trace_field field, const char *text, size_t size,
                       bool string);

/* True when the reader has no use for the event, whatever else it says. */
static inline bool k25_trace_raw_useless(const struct k25_trace_raw *raw)
{
    return raw->category >= K25_TRACE_KINDS && raw->category != K25_CATEGORY_OPERATOR;
}

/* ---- trace_event.c ---- */

/* A value being passed over, byte by byte; may stop and go on with the next piece. Start from all zero. */
struct k25_trace_skipper {
    int64_t depth;
    bool in_string, escaped, bad_string, bad_escape;
    char before; /* the last byte outside strings that is no blank; '"' for a string */
    uint32_t damaged_strings, invalid_utf8;
};

/* Passes over one value. The byte behind it; NULL when the text ends first (`*p` is where to go on) or when quotes
 * stand where none can (`skip->bad_string`, `*p` is there). `last` says that nothing follows `end`. */
const char *k25_trace_skip(struct k25_trace_skipper *skip, const char **p, const char *end);

/* The event at `text`, which is '{'. On DONE `*after` is behind its '}'. */
enum k25_trace_verdict k25_trace_event_plain(const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after);

/* ---- trace_quick.c ---- */

/* What the quick walker remembers from event to event: the bytes between two values hardly ever change. */
enum { K25_SHAPE_STEPS = 96, K25_SHAPE_TEXT = 32 };
struct k25_trace_step {
    unsigned char text[K25_SHAPE_TEXT]; /* from behind a value to the next one */
    uint32_t size, field, mask;         /* size 0: not learned; `mask` has a bit for each byte of the text */
    int16_t next;                       /* the step that followed last time, -1: none */
    bool in_args, closes;
};
struct k25_trace_shape {
    struct k25_trace_step steps[K25_SHAPE_STEPS];
    int count;
};

bool k25_trace_quick_available(void);
/* `guess` is the name the event is likely to have: one without escapes or quotes, or none. */
enum k25_trace_verdict k25_trace_event_quick(struct k25_trace_shape *shape, const struct k25_trace_span *guess,
                                             const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after);

/* ---- trace_names.c ---- */

struct k25_trace_slot {
    uint64_t hash;
    int32_t id; /* -1: free */
};
struct k25_trace_names {
    struct k25_arena *arena;
    const char **texts; /* by id */
    uint32_t *sizes;
    bool *plain; /* holds no quote, no backslash and nothing above 127 */
    int count, room;
    struct k25_trace_slot *slots;
    uint32_t mask;
    size_t bytes;
    int last, *follower; /* [room]: the id that followed each id last time */
};

bool k25_trace_names_start(struct k25_trace_names *names, struct k25_arena *arena);
/* The id of the text, new or old; -1 when the table is full, -2 when memory is out. */
int k25_trace_names_id(struct k25_trace_names *names, const char *text, size_t size);
/* The text that is likely to come next, with its id; only a plain one, NULL otherwise. */
struct k25_trace_span k25_trace_names_guess(const struct k25_trace_names *names, int *id);
void k25_trace_names_free(struct k25_trace_names *names); /* the texts stay in the arena */

/* The string's inside as UTF-8 at `out` (room for `size` * 3 + 1 bytes), escapes resolved, what is no UTF-8
 * replaced by U+FFFD, zero behind it. Returns its length. */
size_t k25_trace_unescape(const char *text, size_t size, char *out);

/* ---- trace_root.c ---- */

/* Passes over blanks. */
const char *k25_trace_blanks(const char *p, const char *end);
/* The members of the object at `*p` (behind '{') one by one: false at its end. Strings come without quotes. */
bool k25_trace_member(const char **p, const char *end, struct k25_trace_span *key, struct k25_trace_span *value);
/* True when the root's `key` is worth having in one piece. */
bool k25_trace_root_wanted(struct k25_trace_span key);
void k25_trace_root_set(struct k25_trace_info *info, struct k25_trace_span key, struct k25_trace_span value);
/* What a file that does not start like JSON is, in words. */
const char *k25_trace_not_json(const char *text, size_t size);

/* ---- trace_resync.c ---- */

/* From `p` on, the next place that looks like the beginning of an event ('{') or the end of the list (']'), going
 * by what stands around it; NULL when there is none before `end`. Looks back as far as `text`. */
const char *k25_trace_resync(const char *text, const char *p, const char *end, bool last);

/* ---- trace_deliver.c ---- */

/* Counts the event that was just walked and, if it matters, hands it to the visitor. */
void k25_trace_deliver(struct k25_trace_walk *walk);

/* ---- trace_walk.c ---- */

enum k25_trace_state {
    K25_WALK_START,
    K25_WALK_MEMBER,    /* in an object that holds, or may hold, the list */
    K25_WALK_SKIP,      /* in the value of a member nobody wants */
    K25_WALK_LIST,      /* in a list of events */
    K25_WALK_RESYNC,    /* in a list, looking for the next event */
    K25_WALK_FIND_LIST, /* in a damaged root, looking for the list */
    K25_WALK_END,
};
enum { K25_WALK_DEPTH = 8 };

struct k25_trace_walk {
    const struct k25_trace_options *options;
    k25_trace_visit *visit;
    void *context;
    struct k25_trace_info *info;
    struct k25_trace_names names;
    enum k25_trace_state state;
    bool in_list[K25_WALK_DEPTH]; /* what is open, outermost first */
    int depth;
    const char *text; /* the piece being walked, and where it begins in the JSON */
    uint64_t offset;
    bool last; /* nothing follows the piece */
    bool quick;
    bool list_seen, null_list, event_seen, nodes_seen, chakra_seen;
    bool any_fraction, off_quarter, off_micro; /* times with a decimal point; GPU starts off 250 ns, off 1 us */
    bool stopped, out_of_memory;
    char first_key[32];  /* of the root, for the refusal */
    const char *refusal; /* what it is instead of a trace */
    uint64_t refused_at;
    struct k25_trace_skipper skip;
    struct k25_trace_raw raw;
    struct k25_trace_shape shape;
    int guess;     /* id of the name the event was likely to have */
    char *scratch; /* texts of one event that must be changed or end with a zero */
    size_t scratch_size;
};

bool k25_trace_walk_start(struct k25_trace_walk *walk, const struct k25_trace_options *options, k25_trace_visit *visit,
                          void *context, struct k25_trace_info *info);
/* Walks what it can of `text`, whose first byte is at `offset` of the JSON; K25_TRACE_SLACK zeros follow it.
 * Returns how many bytes are done with; the rest must come again in front of the next piece. */
size_t k25_trace_walk_feed(struct k25_trace_walk *walk, const char *text, size_t size, uint64_t offset, bool last);
void k25_trace_walk_free(struct k25_trace_walk *walk);

#endif
