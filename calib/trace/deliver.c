#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "calib/trace/internal.h"

static bool on_gpu(enum k25_trace_kind kind)
{
    return kind != K25_TRACE_RUNTIME && kind != K25_TRACE_ANNOTATION;
}

/* The kind of the event; -1 when it is not needed, then it is counted here. */
static int kind_of(struct k25_trace_info *info, const struct k25_trace_raw *raw)
{
    bool complete = raw->ph == 'X' || (raw->ph == 0 && raw->has_ts && raw->has_dur);
    if (complete && raw->category >= 0 && raw->category < K25_TRACE_KINDS) {
        return raw->category;
    }
    if (complete && raw->category == K25_CATEGORY_OPERATOR && raw->name.size > 13 &&
        memcmp(raw->name.at, "ProfilerStep#", 13) == 0) {
        return K25_TRACE_ANNOTATION; /* traces of 2021 have no user_annotation */
    }
    if (complete && (raw->category == K25_CATEGORY_CPU_OP || raw->category == K25_CATEGORY_OPERATOR)) {
        info->cpu_ops++;
    } else if (complete && raw->category == K25_CATEGORY_PYTHON) {
        info->python_functions++;
    } else {
        info->ignored++;
        info->unknown += complete && raw->category == K25_CATEGORY_UNKNOWN;
    }
    return -1;
}

/* Kineto writes 0 when it lost the time of a kernel; other events can start at 0 and be shorter than 1 ns. */
static bool bad_time(const struct k25_trace_raw *raw, enum k25_trace_kind kind)
{
    if (!raw->has_ts || !raw->has_dur || raw->dur_ns < 0) {
        return true;
    }
    bool start = raw->ts_ns == 0, duration = raw->dur_ns == 0;
    return kind == K25_TRACE_KERNEL ? start || duration : on_gpu(kind) && start && duration;
}

static int small(int64_t first, bool has_second, int64_t second)
{
    int64_t value = first >= 0 ? first : has_second ? second : -1;
    return value >= 0 && value <= INT_MAX ? (int)value : -1;
}

static bool scratch_room(struct k25_trace_walk *walk, size_t size)
{
    if (size > walk->scratch_size) {
        char *larger = realloc(walk->scratch, size);
        if (larger == NULL) {
            walk->out_of_memory = true;
            return false;
        }
        walk->scratch = larger;
        walk->scratch_size = size;
    }
    return true;
}

/* Resolves the texts of the event into the scratch: its name first, then those of the collective. */
static bool resolve(struct k25_trace_walk *walk, size_t *name_length, const char *texts[K25_TRACE_TEXTS])
{
    const struct k25_trace_raw *raw = &walk->raw;
    size_t size = raw->name.size * 3 + 1;
    for (int i = 0; i < K25_TRACE_TEXTS && raw->has_texts; i++) {
        size += raw->texts[i].size * 3 + 1;
    }
    if (!scratch_room(walk, size)) {
        return false;
    }
    char *at = walk->scratch;
    *name_length = k25_trace_unescape(raw->name.at, raw->name.size, at);
    at += *name_length + 1;
    for (int i = 0; i < K25_TRACE_TEXTS && raw->has_texts; i++) {
        texts[i] = at;
        at += k25_trace_unescape(raw->texts[i].at, raw->texts[i].size, at) + 1;
    }
    return true;
}

static bool name_of(struct k25_trace_walk *walk, const char *text, size_t size, struct k25_trace_event *event)
{
    int id = walk->raw.guessed ? walk->guess : k25_trace_names_id(&walk->names, text, size);
    if (id == -2) {
        walk->out_of_memory = true;
        return false;
    }
    if (walk->raw.guessed) {
        walk->names.last = id;
    }
    event->name_id = id;
    event->name = id >= 0 ? walk->names.texts[id] : walk->scratch;
    event->name_length = size;
    walk->info->dropped_names += id < 0;
    return true;
}

/* The name and the collective of the event. */
static bool texts_of(struct k25_trace_walk *walk, struct k25_trace_event *event,
                     struct k25_trace_collective *collective)
{
    const struct k25_trace_raw *raw = &walk->raw;
    if (!raw->odd_name && !raw->has_texts && raw->name.at != NULL) {
        if (!name_of(walk, raw->name.at, raw->name.size, event)) {
            return false;
        }
        if (event->name_id >= 0) {
            return true;
        }
        walk->info->dropped_names--; /* counted again below, where the name is terminated */
    }
    const char *texts[K25_TRACE_TEXTS];
    size_t length;
    if (!resolve(walk, &length, texts) || !name_of(walk, walk->scratch, length, event)) {
        return false;
    }
    if (!raw->has_texts || raw->texts[0].at == NULL) {
        return true;
    }
    *collective = (struct k25_trace_collective){
        .name = texts[0],
        .dtype = texts[1],
        .group = texts[2],
        .group_description = texts[3],
        .ranks = texts[4],
        .in_elements = raw->in_elements,
        .out_elements = raw->out_elements,
        .group_size = raw->group_size,
        .sequence = raw->sequence,
    };
    event->collective = collective;
    return true;
}

static void count_damage(struct k25_trace_info *info, const struct k25_trace_raw *raw)
{
    info->damaged_strings += raw->damaged_strings;
    info->damaged_values += raw->damaged_values;
    info->invalid_utf8 += raw->invalid_utf8;
    info->nonfinite += raw->nonfinite;
    info->huge_ids += raw->huge_ids;
}

void k25_trace_deliver(struct k25_trace_walk *walk)
{
    const struct k25_trace_raw *raw = &walk->raw;
    struct k25_trace_info *info = walk->info;
    count_damage(info, raw);
    walk->event_seen |= raw->ph != 0 || (raw->has_ts && raw->name.at != NULL);
    int kind = kind_of(info, raw);
    if (kind < 0) {
        return;
    }
    bool gpu = on_gpu((enum k25_trace_kind)kind), bad = bad_time(raw, (enum k25_trace_kind)kind);
    struct k25_trace_collective collective;
    struct k25_trace_event event = {
        .kind = (enum k25_trace_kind)kind,
        .bad_time = bad,
        .ts_ns = bad ? 0 : raw->ts_ns,
        .dur_ns = bad ? 0 : raw->dur_ns,
        .device = gpu ? small(raw->device, raw->has_pid, raw->pid) : -1,
        .stream = gpu ? small(raw->stream, raw->has_tid, raw->tid) : -1,
        .thread = raw->tid,
        .correlation = raw->correlation,
        .external_id = raw->external_id,
        .graph_id = raw->graph_id,
        .graph_node = raw->graph_node,
        .bytes = raw->bytes,
    };
    if (!texts_of(walk, &event, &collective)) {
        return;
    }
    info->events[kind]++;
    info->bad_times[kind] += bad;
    int64_t sum;
    if (!__builtin_add_overflow(info->busy_ns[kind], event.dur_ns, &sum)) {
        info->busy_ns[kind] = sum;
    }
    walk->any_fraction |= raw->fraction;
    walk->off_quarter |= gpu && event.ts_ns % 250 != 0;
    walk->off_micro |= gpu && event.ts_ns % 1000 != 0;
    walk->stopped = walk->visit != NULL && !walk->visit(walk->context, &event);
}
