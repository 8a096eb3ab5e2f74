/* Shared by the files of the trace reader.
 *
 *     trace.c    the file: one piece is inflated while the one before is walked
 *     walk.c     the document: root, lists of events
 *     resync.c   the next event after a damaged one
 *     deliver.c  from the fields of an event to the visitor
 *     event.c    one event, byte by byte: the reference, which handles damage
 *     quick.c    one event, with AVX2: the same result for regular events; leaves all others to event.c
 *     simd.h     AVX2 primitives of quick.c
 *     fields.c   keys, categories, decimal numbers
 *     names.c    the table of texts
 *     root.c     metadata of a file; recognition of files that are not traces
 *     info.c     rank from the name, check, summary of damage
 */
#ifndef K25_CALIB_TRACE_INTERNAL_H
#define K25_CALIB_TRACE_INTERNAL_H

#include <string.h>

#include "calib/trace/trace.h"

struct k25_trace_walk;

/* Zero bytes that must follow any text that is walked: the quick walker loads beyond the bytes that it uses. */
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

/* The fields of one event. Texts are spans of the walked text, with their escapes. */
struct k25_trace_raw {
    int category;
    char ph; /* 0: not given */
    bool has_ts, has_dur, has_texts /* of a collective */, odd_name /* escapes or bytes above 127 */;
    bool guessed;  /* the name is the one that was guessed */
    bool fraction; /* ts or dur was written with a decimal point */
    bool has_tid, has_pid;
    int64_t ts_ns, dur_ns, tid, pid;
    int64_t device, stream; /* -1: not given */
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
    K25_EVENT_ODD,     /* quick walker only: the event is left to the reference */
    K25_EVENT_DAMAGED, /* `*after` is where it was seen */
    K25_EVENT_NESTED,  /* the event is a document: it holds traceEvents */
};

/* ---- fields.c ---- */

enum k25_trace_number { K25_NUMBER_OK, K25_NUMBER_NONE, K25_NUMBER_NONFINITE, K25_NUMBER_HUGE };

/* The decimal `text` times 10^shift, rounded towards zero, as sign and magnitude; no conversion to double. NONFINITE:
 * inf, nan and their variants, in upper or lower case. HUGE: more than 64 bits. */
enum k25_trace_number k25_trace_decimal(const char *text, size_t size, int shift, bool *negative, uint64_t *magnitude);

/* The category (a kind, or an enum k25_trace_category) and the field of a text, in upper or lower case. */
int k25_trace_category(const char *text, size_t size);
enum k25_trace_field k25_trace_field(const char *key, size_t size, bool in_args);

static inline void k25_trace_raw_clear(struct k25_trace_raw *raw)
{
    memset(raw, 0, offsetof(struct k25_trace_raw, texts));
    raw->category = K25_CATEGORY_NONE;
    raw->device = raw->stream = -1;
    raw->in_elements = raw->out_elements = raw->group_size = raw->sequence = -1;
}

/* Sets a field from its value: `text` is a number or bare word, or the content of a string. */
void k25_trace_raw_set(struct k25_trace_raw *raw, enum k25_trace_field field, const char *text, size_t size,
                       bool string);

/* Whether the category is sufficient to ignore the event. */
static inline bool k25_trace_raw_useless(const struct k25_trace_raw *raw)
{
    return raw->category >= K25_TRACE_KINDS && raw->category != K25_CATEGORY_OPERATOR;
}

/* ---- event.c ---- */

/* The state of skipping a value, which can continue in the next piece. Initialise with zeros. */
struct k25_trace_skipper {
    int64_t depth;
    bool in_string, escaped, bad_string, bad_escape;
    char before; /* the last non-blank byte outside strings; '"' for a string */
    uint32_t damaged_strings, invalid_utf8;
};

/* Skips one value. Returns the byte after it; NULL when the text ends first (`*p` is where to continue) or at quotes in
 * an invalid place (`skip->bad_string`, `*p` is their position). */
const char *k25_trace_skip(struct k25_trace_skipper *skip, const char **p, const char *end);

/* Parses the event at `text`, which is '{'. On DONE `*after` is the byte after its '}'. */
enum k25_trace_verdict k25_trace_event_plain(const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after);

/* ---- quick.c ---- */

/* State of the quick walker between events: the bytes between two values hardly ever change. */
enum { K25_SHAPE_STEPS = 96, K25_SHAPE_TEXT = 32 };
struct k25_trace_step {
    unsigned char text[K25_SHAPE_TEXT]; /* from the end of a value to the next one */
    uint32_t size, field, mask;         /* size 0: not learned; `mask` has a bit for each byte of the text */
    int16_t next;                       /* the step that followed last time, -1: none */
    bool in_args, closes;
};
struct k25_trace_shape {
    struct k25_trace_step steps[K25_SHAPE_STEPS];
    int count;
};

bool k25_trace_quick_available(void);
/* As k25_trace_event_plain. `guess` is the probable name of the event, without escapes and quotes, or none. */
enum k25_trace_verdict k25_trace_event_quick(struct k25_trace_shape *shape, const struct k25_trace_span *guess,
                                             const char *text, const char *end, struct k25_trace_raw *raw,
                                             const char **after);

/* ---- names.c ---- */

struct k25_trace_slot {
    uint64_t hash;
    int32_t id; /* -1: free */
};
struct k25_trace_names {
    struct k25_arena *arena;
    const char **texts; /* by id */
    uint32_t *sizes;
    bool *plain; /* has no quote, no backslash and no byte above 127 */
    int count, room;
    struct k25_trace_slot *slots;
    uint32_t mask;
    size_t bytes;
    int last, *follower; /* [room]: the id that followed each id last time */
};

bool k25_trace_names_start(struct k25_trace_names *names, struct k25_arena *arena);
/* Returns the id of the text, which is added if it is new; -1 when the table is full, -2 when out of memory. */
int k25_trace_names_id(struct k25_trace_names *names, const char *text, size_t size);
/* The text that probably comes next, with its id; only a plain one, NULL otherwise. */
struct k25_trace_span k25_trace_names_guess(const struct k25_trace_names *names, int *id);
void k25_trace_names_free(struct k25_trace_names *names); /* the texts remain in the arena */

/* Writes the content of a string as NUL-terminated UTF-8 to `out` (`size` * 3 + 1 bytes), with escapes resolved and
 * invalid UTF-8 replaced by U+FFFD. Returns its length. */
size_t k25_trace_unescape(const char *text, size_t size, char *out);

/* ---- root.c ---- */

/* Skips blanks. */
const char *k25_trace_blanks(const char *p, const char *end);
/* Reads the next member of the object at `*p` (after its '{'); false at its end. Strings are without quotes. */
bool k25_trace_member(const char **p, const char *end, struct k25_trace_span *key, struct k25_trace_span *value);
/* Whether the value of `key` of the root is needed, in one piece. */
bool k25_trace_root_wanted(struct k25_trace_span key);
/* Sets the metadata of a key of the root. */
void k25_trace_root_set(struct k25_trace_info *info, struct k25_trace_span key, struct k25_trace_span value);
/* A description of a file that does not start like JSON, for the message. */
const char *k25_trace_not_json(const char *text, size_t size);

/* ---- resync.c ---- */

/* From `p` on, the next place that looks like the beginning of an event ('{') or the end of the list (']') by the bytes
 * around it; NULL when there is none before `end`. Looks back as far as `text`. */
const char *k25_trace_resync(const char *text, const char *p, const char *end, bool last);

/* ---- deliver.c ---- */

/* Counts the event that was just walked and calls the visitor if it is needed. */
void k25_trace_deliver(struct k25_trace_walk *walk);

/* ---- walk.c ---- */

enum k25_trace_state {
    K25_WALK_START,
    K25_WALK_MEMBER,    /* in an object that holds, or may hold, the list */
    K25_WALK_SKIP,      /* in the value of a member that is not needed */
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
    bool in_list[K25_WALK_DEPTH]; /* open lists (true) and objects, outermost first */
    int depth;
    const char *text; /* the piece being walked, and where it begins in the JSON */
    uint64_t offset;
    bool last; /* nothing follows the piece */
    bool quick;
    bool list_seen, null_list, event_seen, nodes_seen, chakra_seen;
    bool any_fraction, off_quarter, off_micro; /* times with a decimal point; GPU starts off 250 ns, off 1 us */
    bool stopped, out_of_memory;
    char first_key[32];  /* of the root, for the refusal */
    const char *refusal; /* why the file is not a trace */
    uint64_t refused_at;
    struct k25_trace_skipper skip;
    struct k25_trace_raw raw;
    struct k25_trace_shape shape;
    int guess;     /* id of the probable name of the event */
    char *scratch; /* texts of one event that must be unescaped or NUL-terminated */
    size_t scratch_size;
};

bool k25_trace_walk_start(struct k25_trace_walk *walk, const struct k25_trace_options *options, k25_trace_visit *visit,
                          void *context, struct k25_trace_info *info);
/* Walks as much as possible of `text`, whose first byte is at `offset` of the JSON; K25_TRACE_SLACK zeros must follow
 * it. Returns the number of bytes consumed; the caller puts the rest before the next piece. `last`: nothing follows. */
size_t k25_trace_walk_feed(struct k25_trace_walk *walk, const char *text, size_t size, uint64_t offset, bool last);
void k25_trace_walk_free(struct k25_trace_walk *walk);

#endif
