/* What the tests of the trace reader share: traces put together from text, and everything a reading gives. */
#ifndef K25_TESTS_TRACE_CHECK_H
#define K25_TESTS_TRACE_CHECK_H

#include <inttypes.h>

#include <isa-l/igzip_lib.h>

#include "calib/trace/trace.h"
#include "tests/unit/base_check.h"

enum { MOST_SEEN = 64 };

/* A reading: what came out, and the first events. */
struct reading {
    bool done;
    struct k25_error error;
    struct k25_trace_info info;
    int count; /* events handed out */
    struct k25_trace_event events[MOST_SEEN];
    char names[MOST_SEEN][128];
    struct k25_trace_collective collectives[MOST_SEEN];
    char collective_name[64], group[64], dtype[64], ranks[64]; /* of the last collective */
};

static inline bool remember(void *context, const struct k25_trace_event *event)
{
    struct reading *reading = context;
    if (reading->count < MOST_SEEN) {
        reading->events[reading->count] = *event;
        snprintf(reading->names[reading->count], sizeof reading->names[0], "%s", event->name);
        if (event->collective != NULL) {
            reading->collectives[reading->count] = *event->collective;
            snprintf(reading->collective_name, sizeof reading->collective_name, "%s", event->collective->name);
            snprintf(reading->group, sizeof reading->group, "%s", event->collective->group);
            snprintf(reading->dtype, sizeof reading->dtype, "%s", event->collective->dtype);
            snprintf(reading->ranks, sizeof reading->ranks, "%s", event->collective->ranks);
        }
    }
    reading->count++;
    return true;
}

/* The two walkers must agree on everything that is counted. */
static inline void assert_same_info(const struct k25_trace_info *a, const struct k25_trace_info *b)
{
    for (int i = 0; i < K25_TRACE_KINDS; i++) {
        assert_int_equal(a->events[i], b->events[i]);
        assert_int_equal(a->busy_ns[i], b->busy_ns[i]);
        assert_int_equal(a->bad_times[i], b->bad_times[i]);
    }
    assert_int_equal(a->cpu_ops, b->cpu_ops);
    assert_int_equal(a->python_functions, b->python_functions);
    assert_int_equal(a->ignored, b->ignored);
    assert_int_equal(a->unknown, b->unknown);
    assert_int_equal(a->damaged_events, b->damaged_events);
    assert_int_equal(a->damaged_kernels, b->damaged_kernels);
    assert_int_equal(a->first_damage, b->first_damage);
    assert_int_equal(a->damaged_strings, b->damaged_strings);
    assert_int_equal(a->damaged_values, b->damaged_values);
    assert_int_equal(a->invalid_utf8, b->invalid_utf8);
    assert_int_equal(a->nonfinite, b->nonfinite);
    assert_int_equal(a->huge_ids, b->huge_ids);
    assert_int_equal(a->truncated, b->truncated);
    assert_int_equal(a->unterminated, b->unterminated);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->name_count, b->name_count);
    assert_int_equal(a->json_bytes, b->json_bytes);
}

/* Reads the file with both walkers, checks that they agree and keeps what the default one gave. */
static inline void read_file(const char *path, bool lenient, struct reading *reading)
{
    struct k25_trace_options options = {.lenient = lenient, .plain_scan = true};
    static struct reading plain;
    memset(&plain, 0, sizeof plain);
    memset(reading, 0, sizeof *reading);
    plain.done = k25_trace_read(path, &options, remember, &plain, &plain.info, &plain.error);
    options.plain_scan = false;
    reading->done = k25_trace_read(path, &options, remember, reading, &reading->info, &reading->error);
    assert_int_equal(plain.done, reading->done);
    assert_string_equal(plain.error.message, reading->error.message);
    assert_same_info(&plain.info, &reading->info);
    assert_int_equal(plain.count, reading->count);
    for (int i = 0; i < reading->count && i < MOST_SEEN; i++) {
        struct k25_trace_event a = plain.events[i], b = reading->events[i];
        assert_string_equal(plain.names[i], reading->names[i]);
        assert_true((a.collective == NULL) == (b.collective == NULL));
        a.name = b.name = NULL;
        a.collective = b.collective = NULL;
        assert_true(a.kind == b.kind && a.bad_time == b.bad_time && a.name_id == b.name_id && a.ts_ns == b.ts_ns &&
                    a.dur_ns == b.dur_ns && a.device == b.device && a.stream == b.stream && a.thread == b.thread &&
                    a.correlation == b.correlation && a.external_id == b.external_id && a.graph_id == b.graph_id &&
                    a.graph_node == b.graph_node && a.bytes == b.bytes);
    }
    k25_trace_info_free(&plain.info);
}

static inline void read_text(const char *text, bool lenient, struct reading *reading)
{
    put_file("t.json", text, strlen(text));
    read_file("t.json", lenient, reading);
}

/* One gzip member at `out`. */
static inline size_t gzip_member(const char *bytes, size_t size, unsigned char *out, size_t room)
{
    static struct isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.flush = NO_FLUSH;
    stream.next_in = (uint8_t *)(uintptr_t)bytes;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out;
    stream.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    return stream.total_out;
}

#endif
