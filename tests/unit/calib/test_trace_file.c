/* The trace reader over files: sizes, pieces, threads, what is cut off, gzip. */
#include "tests/unit/trace_check.h"

static struct reading reading;

#define GPU(ts, dur)                                                                                                   \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":" ts ",\"dur\":" dur ",\"args\":{}" \
    "}"
#define OP(name)                                                                                                       \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name                                                                \
    "\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1,\"args\":{\"External id\":5}}"
#define TRACE(events) "{\"schemaVersion\":1,\"traceEvents\":[\n" events "\n],\"traceName\":\"t\"}"

static void read_ok(const char *text, int kernels)
{
    read_text(text, false, &reading);
    assert_string_equal(reading.error.message, "");
    assert_true(reading.done);
    assert_int_equal(reading.info.events[K25_TRACE_KERNEL], kernels);
}

static void read_refused(const char *text, const char *message)
{
    read_text(text, false, &reading);
    assert_false(reading.done);
    assert_error(reading.error, K25_BAD_INPUT, message);
    k25_trace_info_free(&reading.info);
}

static void done(void)
{
    k25_trace_info_free(&reading.info);
}

static void deep_and_long(void **state)
{
    (void)state;
    size_t deep = 100000, size = 0, longest = 3 << 20;
    char *text = malloc(longest * 3);
    size += (size_t)sprintf(
        text, "{\"x\":[\"%*s\"],\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"args\":{\"d\":", (int)longest, "");
    memset(text + size, '[', deep);
    memset(text + size + deep, ']', deep);
    size += 2 * deep;
    size += (size_t)sprintf(
        text + size,
        "}}," GPU("1", "2") ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"args\":{\"d\":\"%*s\"}}," GPU("4", "2") "]}",
        (int)longest, "");
    put_file("t.json", text, size);
    read_file("t.json", false, &reading);
    assert_true(reading.done);
    assert_int_equal(reading.info.events[K25_TRACE_KERNEL], 2);
    assert_int_equal(reading.info.damaged_events, 1); /* 3 MB in one event */
    done();
    free(text);
}

/* Events over many pieces, so that every place of an event meets the end of a piece. */
static void pieces(void **state)
{
    (void)state;
    enum { EVENTS = 40000 };
    size_t size = 0, room = (size_t)EVENTS * 300;
    char *text = malloc(room);
    uint64_t seed = 7;
    int64_t total = 0;
    size += (size_t)sprintf(text, "{\"traceEvents\":[");
    for (int i = 0; i < EVENTS; i++) {
        int dur = 1 + (int)(chance(&seed) % 100000);
        total += dur;
        size += (size_t)sprintf(text + size,
                                "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d%s\",\"ts\":%d.%03d,\"dur\":%d.%03d,"
                                "\"args\":{\"stream\":%d,\"correlation\":%d}}",
                                i == 0 ? "" : ",\n", i % 37, i % 5 == 0 ? "\\u00e9" : "", i + 1, i % 1000, dur / 1000,
                                dur % 1000, i % 3, i);
    }
    size += (size_t)sprintf(text + size, "]}");
    put_file("t.json", text, size);
    read_file("t.json", false, &reading);
    assert_true(reading.done);
    assert_int_equal(reading.info.events[K25_TRACE_KERNEL], EVENTS);
    assert_int_equal(reading.info.busy_ns[K25_TRACE_KERNEL], total);
    assert_int_equal(reading.info.name_count, 37 * 2);
    assert_int_equal(reading.info.json_bytes, size);
    done();
    bool fine = true; /* several at once, inside a parallel region */
#pragma omp parallel for num_threads(4) reduction(&& : fine)
    for (int i = 0; i < 8; i++) {
        struct k25_trace_info info;
        fine =
            k25_trace_read("t.json", NULL, NULL, NULL, &info, NULL) && info.busy_ns[K25_TRACE_KERNEL] == total && fine;
        k25_trace_info_free(&info);
    }
    assert_true(fine);
    free(text);
}

static bool stop_at_once(void *context, const struct k25_trace_event *event)
{
    (void)event;
    *(int *)context += 1;
    return false;
}

static void visitor_stops(void **state)
{
    (void)state;
    static const char text[] = TRACE(GPU("1", "2") "," GPU("4", "2"));
    put_file("t.json", text, sizeof text - 1);
    int calls = 0;
    struct k25_error error = {.message = "mine"};
    assert_false(k25_trace_read("t.json", NULL, stop_at_once, &calls, &reading.info, &error));
    assert_int_equal(calls, 1);
    assert_string_equal(error.message, "mine");
    done();
}

static void cut_off(void **state)
{
    (void)state;
    static const char text[] = "{\"traceEvents\":[\n" GPU("1", "2") ",\n" GPU("4", "2");
    size_t size = sizeof text - 1, first = (size_t)(strstr(text, "},") - text);
    for (size_t i = 17; i < size; i++) {
        char part[sizeof text] = {0};
        memcpy(part, text, i);
        read_text(part, false, &reading);
        bool whole = i == 17 || (i >= first + 1 && i <= first + 3); /* between events: only the end is missing */
        assert_int_equal(reading.done, whole);
        assert_int_equal(reading.info.truncated, !whole);
        assert_int_equal(reading.info.damaged_events, 0);
        assert_int_equal(reading.info.events[K25_TRACE_KERNEL], i >= first + 1);
        done();
    }
    read_refused("{\"traceEvents\":[\n" GPU("1", "2") ",\n{\"ph\":\"X\",\"na",
                 "t.json:3:14: the trace is cut off (truncated) here; 1 kernels were whole, --lenient keeps them");
    read_ok("{\"traceEvents\":[\n" GPU("1", "2") ",\n", 1);
    assert_true(reading.info.unterminated);
    done();
}

static void gzip_members(void **state)
{
    (void)state;
    static const char text[] = TRACE(GPU("1", "2") ",\n" GPU("4", "2.5"));
    unsigned char bytes[4096] = {0};
    size_t half = 60, size = gzip_member(text, half, bytes, sizeof bytes);
    size += gzip_member(text + half, sizeof text - 1 - half, bytes + size, sizeof bytes - size);
    put_file("t.json", bytes, size + 512); /* zeros behind */
    read_file("t.json", false, &reading);
    assert_true(reading.done);
    assert_int_equal(reading.info.busy_ns[K25_TRACE_KERNEL], 4500);
    assert_int_equal(reading.info.json_bytes, sizeof text - 1);
    done();
    bytes[size] = 'x';
    put_file("t.json", bytes, size + 1);
    read_file("t.json", false, &reading);
    assert_false(reading.done);
    assert_true(reading.info.bad_container);
    assert_non_null(strstr(reading.error.message, "other data follows the last gzip member; 2 kernels were read"));
    done();
    bytes[size - 8] ^= 1; /* the checksum */
    put_file("t.json", bytes, size);
    read_file("t.json", false, &reading);
    assert_false(reading.done);
    assert_true(reading.info.bad_crc);
    assert_int_equal(reading.info.events[K25_TRACE_KERNEL], 2);
    done();
    read_file("t.json", true, &reading);
    assert_true(reading.done);
    done();
    put_file("t.json", bytes, 20);
    read_file("t.json", false, &reading);
    assert_false(reading.done);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_and_long), cmocka_unit_test(pieces),       cmocka_unit_test(visitor_stops),
        cmocka_unit_test(cut_off),       cmocka_unit_test(gzip_members),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
