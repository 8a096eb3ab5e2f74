/* The trace reader over small traces with the traits of real and of malformed ones. Every reading is done by the
 * AVX2 walker and by the reference, which must agree (trace_check.h). */
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

static void kernel_fields(void **state)
{
    (void)state;
    read_ok(TRACE("{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel\", \"pid\": 0, \"tid\": 7,\n"
                  "    \"ts\": 6520618854744.421, \"dur\": 12.640,\n    \"args\": {\n      \"External id\": 5129,\n"
                  "      \"queued\": 0, \"device\": 3, \"context\": 1,\n      \"stream\": 20, \"correlation\": 40213,"
                  " \"grid\": [188, 1, 1], \"blocks per SM\": 1.5e-05, \"graph id\": 3,\n"
                  "      \"graph node id\": 12884901889, \"Collective name\": \"allreduce\", \"In msg nelems\": 1024,"
                  " \"Out msg nelems\": 2048, \"Group size\": 8, \"dtype\": \"BFloat16\", \"Seq\": 17,"
                  " \"Process Group Name\": \"tp\", \"Process Group Ranks\": \"[0, 1]\"\n    }\n  }"),
            1);
    const struct k25_trace_event *event = &reading.events[0];
    assert_int_equal(event->ts_ns, 6520618854744421);
    assert_int_equal(event->dur_ns, 12640);
    assert_int_equal(event->device, 3);
    assert_int_equal(event->stream, 20);
    assert_int_equal(event->correlation, 40213);
    assert_int_equal(event->external_id, 5129);
    assert_int_equal(event->graph_id, 3);
    assert_int_equal(event->graph_node, 12884901889);
    assert_int_equal(reading.collectives[0].in_elements, 1024);
    assert_int_equal(reading.collectives[0].out_elements, 2048);
    assert_int_equal(reading.collectives[0].group_size, 8);
    assert_int_equal(reading.collectives[0].sequence, 17);
    assert_string_equal(reading.collective_name, "allreduce");
    assert_string_equal(reading.dtype, "BFloat16");
    assert_string_equal(reading.group, "tp");
    assert_string_equal(reading.ranks, "[0, 1]");
    assert_string_equal(reading.names[0], "ncclDevKernel");
    assert_string_equal(reading.info.names[0], "ncclDevKernel");
    done();
}

/* Microseconds as text become nanoseconds, exactly. */
static void times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"12.5", 12500},
        {"1e3", 1000000},
        {"1.2E+2", 120000},
        {"\"123.4\"", 123400},
        {"0.001", 1},
        {"1712195495000046.421", 1712195495000046421},
        {"1712195495520871", 1712195495520871000},
        {"1.7121954955208719e15", 1712195495520871900},
        {"7.9999", 7999},
        {"125e-1", 12500},
        {"5.", 5000},
        {"9223372036854775.807", INT64_MAX},
        {"12345678", 12345678000},
        {"123456789.25", 123456789250},
        {"\" 8.5 \"", 8500},
        {"-3.5", -3500},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, TRACE(GPU("%s", "2")), cases[i].text);
        read_ok(text, 1);
        assert_false(reading.events[0].bad_time);
        assert_int_equal(reading.events[0].ts_ns, cases[i].ns);
        done();
    }
}

static void lost_records(void **state)
{
    (void)state;
    static const char *const bad[] = {"0,\"dur\":0",
                                      "0,\"dur\":4",
                                      "5,\"dur\":0",
                                      "5,\"dur\":-4.5",
                                      "5,\"dur\":NaN",
                                      "inf,\"dur\":1",
                                      "99999999999999999999,\"dur\":1",
                                      "\"x\",\"dur\":1",
                                      "5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 TRACE(GPU("1", "2.25") ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":%s}"), bad[i]);
        read_ok(text, 2);
        assert_int_equal(reading.info.bad_times[K25_TRACE_KERNEL], 1);
        assert_int_equal(reading.info.busy_ns[K25_TRACE_KERNEL], 2250);
        assert_true(reading.events[1].bad_time);
        assert_int_equal(reading.events[1].dur_ns, 0);
        done();
    }
}

static void key_order_and_layout(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"args\":{\"device\":1,\"stream\":9,\"correlation\":77},\"dur\":2.5,\"ts\":4,\"tid\":7,\"pid\":0,"
        "\"name\":\"k\",\"cat\":\"kernel\",\"ph\":\"X\"}",
        "{\"cat\":\"Kernel\",\"dur\":2.5,\"ph\":\"X\",\"args\":{\"correlation\":\"77\",\"device\":\"1\",\"x\":{"
        "\"device\":5},"
        "\"stream\":9},\"ts\":4,\"name\":\"k\"}",
        "{ \"ph\" : \"X\" ,\r\n\t\"cat\"\n:\n\"KERNEL\", \"name\":\"k\",\"ts\":4,\"dur\":2.5,"
        "\"args\":{\"device\":9,\"device\":1,\"stream\":9,\"correlation\":77,} }",
        "{\"name\":\"k\",\"cat\":\"kernel\",\"ts\":4,\"dur\":2.5,\"pid\":\"GPU 1\",\"tid\":\"stream 9\","
        "\"args\":{\"correlation\":77}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{\"traceEvents\":[%s,%s],\"distributedInfo\":{\"rank\":5,\"world_size\":8}}",
                 texts[i], texts[i]);
        read_ok(text, 2);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(reading.events[k].ts_ns, 4000);
            assert_int_equal(reading.events[k].dur_ns, 2500);
            assert_int_equal(reading.events[k].device, 1);
            assert_int_equal(reading.events[k].stream, 9);
            assert_int_equal(reading.events[k].correlation, 77);
            assert_int_equal(reading.events[k].name_id, 0);
        }
        assert_int_equal(reading.info.rank, 5);
        assert_int_equal(reading.info.world_size, 8);
        done();
    }
}

static void kinds(void **state)
{
    (void)state;
    read_ok(TRACE("{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"c\",\"ts\":1,\"dur\":2,\"args\":{\"bytes\":"
                  "\"9216\"}},"
                  "{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"s\",\"ts\":1,\"dur\":2},"
                  "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":\"l\",\"ts\":1,\"dur\":0,\"tid\":"
                  "18446744072323252544},"
                  "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#2\",\"ts\":1,\"dur\":2,\"tid\":-5},"
                  "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"ts\":1,\"dur\":2},"
                  "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"g\",\"ts\":1,\"dur\":2},"
                  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"u\",\"ts\":1,\"dur\":2},"
                  "{\"ph\":\"f\",\"cat\":\"ac2g\",\"id\":1,\"bp\":\"e\",\"ts\":1},{\"ph\":\"M\",\"name\":"
                  "\"process_name\"},"
                  "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"p\",\"ts\":1,\"dur\":2,\"args\":{\"Python "
                  "parent id\":null}},"
                  "{\"ph\":\"X\",\"cat\":\"martian\",\"name\":\"m\",\"ts\":1,\"dur\":2}," OP("a{b}\\\"c")),
            0);
    static const enum k25_trace_kind want[] = {K25_TRACE_MEMCPY,     K25_TRACE_MEMSET,         K25_TRACE_RUNTIME,
                                               K25_TRACE_ANNOTATION, K25_TRACE_GPU_ANNOTATION, K25_TRACE_ANNOTATION};
    assert_int_equal(reading.count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(reading.events[i].kind, want[i]);
    }
    assert_int_equal(reading.events[0].bytes, 9216);
    assert_int_equal(reading.events[2].thread, -1386299072);
    assert_int_equal(reading.events[3].thread, -5);
    assert_int_equal(reading.info.cpu_ops, 2);
    assert_int_equal(reading.info.python_functions, 1);
    assert_int_equal(reading.info.ignored, 3);
    assert_int_equal(reading.info.unknown, 1);
    assert_int_equal(reading.info.damaged_events, 0);
    done();
}

/* One bad event among good ones: skipped, counted, the place said; the trace is used. */
static void damaged_events(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"ph\":\"f\",\"id\":1,\"pid\":0,tid\":7,\"ts\":1,\"cat\":\"ac2g\"}",
                                      OP("f(\"my_op\")"),
                                      OP("a \" b"),
                                      OP("say \"\" twice"),
                                      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"args\":{\"x\":1}",
                                      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"args\":\"x\":1}}",
                                      "{\"ph\":\"X\",\"cat\":\"cpu_op\" \"name\":\"a\"}",
                                      "7",
                                      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, TRACE(GPU("1", "2") ",\n  %s,\n  " GPU("4", "2") "," GPU("7", "2")), bad[i]);
        print_message("%s\n", bad[i]);
        read_ok(text, 3);
        assert_int_equal(reading.info.damaged_events, 1);
        assert_int_equal(reading.info.first_damage, strstr(text, ",\n  ") + 4 - text);
        assert_int_equal(reading.info.damaged_kernels, 0);
        done();
    }
}

static void damaged_kernels(void **state)
{
    (void)state;
    static const char text[] =
        TRACE(GPU("1", "2") ",\n  {\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\"b\"}\n,\n" GPU("4", "2"));
    read_refused(text, "t.json:3:3: 1 of 3 kernel events cannot be read, more than 1 %; this is the first damage, "
                       "--lenient keeps the rest");
    read_text(text, true, &reading);
    assert_true(reading.done);
    assert_int_equal(reading.info.damaged_kernels, 1);
    char damage[256];
    assert_string_equal(k25_trace_damage(&reading.info, damage, sizeof damage),
                        "1 damaged event skipped, first at byte 119");
    done();
}

static void kept_damage(void **state)
{
    (void)state;
    read_ok(TRACE(OP("<eval>: C:\\exp\\q.py") "," OP("caf\xe9") "," OP(
                "new\nline\tand \x01 control") ","
                                               "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
                                               "\"\\u00e9\\ud83d\\ude00\\ud800\\n\xe9\",\"ts\":1,\"dur\":2,\"args\":{"
                                               "\"Process Group Description\": "
                                               ",\"x\":-nan(ind),\"y\":Infinity,\"z\":None,"
                                               "\"correlation\":340282366920938463463374607431768211455,\"device\":2}"
                                               "}"),
            1);
    assert_int_equal(reading.info.damaged_events, 0);
    assert_int_equal(reading.info.damaged_strings, 1);
    assert_int_equal(reading.info.invalid_utf8, 2);
    assert_int_equal(reading.info.nonfinite, 2);
    assert_int_equal(reading.info.damaged_values, 2);
    assert_int_equal(reading.info.huge_ids, 1);
    assert_int_equal(reading.events[0].correlation, 0);
    assert_int_equal(reading.events[0].device, 2);
    assert_string_equal(reading.names[0], "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\n\xef\xbf\xbd");
    done();
}

static void roots(void **state)
{
    (void)state;
    read_ok("[" GPU("1", "2") "," GPU("4", "2") "]", 2);
    assert_int_equal(reading.info.rank, -1);
    done();
    read_ok("\xef\xbb\xbf\r\n" TRACE(GPU("1", "2")), 1);
    done();
    read_ok("{\"a\":{\"traceEvents\":1},\"traceEvents\":{\"traceEvents\":[" GPU("1", "2") "]}}", 1);
    done();
    read_ok("{\"traceEvents\":[{\"x\":1,\"traceEvents\":[" GPU("1", "2") "]},{\"traceEvents\":[" GPU("1", "2") "]}]}",
            2);
    done();
    read_ok("{\"traceEvents\":[" GPU("1", "2") "],\"INFO\":[\"a\",\"event \"id\": 64, lost\"],\"traceName\":\"t\"}", 1);
    assert_true(reading.info.damaged_root);
    done();
    read_ok("{\"x\":[\"a\"b],\"traceEvents\":[" GPU("1", "2") "]}", 1);
    assert_true(reading.info.damaged_root);
    done();
    read_ok(TRACE(GPU("1", "2")) TRACE(GPU("1", "2")), 1);
    assert_true(reading.info.extra_document);
    done();
    read_ok(
        "{\"computeProperties\":[{\"id\":0,\"name\":\"V100\",\"multiProcessorCount\":80},{\"name\":\"B\"}],"
        "\"distributedInfo\":{\"backend\":\"nccl\",\"pg_config\":[{\"rank\":9}],\"rank\":3,\"nccl_version\":"
        "\"2.28\"},"
        "\"baseTimeNanoseconds\":1767189312000000000,\"traceEvents\":[" GPU("1", "2") "],\"displayTimeUnit\":\"ms\"}",
        1);
    assert_string_equal(reading.info.device, "V100");
    assert_int_equal(reading.info.devices, 2);
    assert_int_equal(reading.info.multiprocessors, 80);
    assert_int_equal(reading.info.rank, 3);
    assert_string_equal(reading.info.nccl_version, "2.28");
    assert_string_equal(reading.info.time_unit, "ms");
    assert_int_equal(reading.info.base_time_ns, 1767189312000000000);
    done();
}

static void resolution(void **state)
{
    (void)state;
    static const struct {
        const char *ts;
        int ns;
    } cases[] = {{"1712195495520871", 1000},
                 {"1712195495520871.0", 1000},
                 {"1712195495520871.25", 250},
                 {"1712195495520871.250,\"dur\":1.125,\"x\":1,\"ts\":1712195495520871.421", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, TRACE(GPU("%s", "2")), cases[i].ts);
        read_ok(text, 1);
        assert_int_equal(reading.info.resolution_ns, cases[i].ns);
        done();
    }
}

static void no_traces(void **state)
{
    (void)state;
    read_refused("", "t.json: empty file");
    read_refused(" \n\n ", "t.json: empty file: holds nothing but blanks");
    read_refused("<!DOCTYPE html><html>404</html>", "t.json: HTML or XML (an error page of a download?), not a trace");
    read_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                 "t.json: git-lfs pointer, not the file itself: fetch it with 'git lfs pull'");
    read_refused("{\"schema\":\"1.1.1-chakra.0.0.4\",\"nodes\":[{\"id\":1}]}",
                 "t.json: PyTorch execution trace (Chakra), not a Kineto trace: export one with export_chrome_trace()");
    read_refused("{\"rocprofiler-sdk-tool\":[{\"metadata\":{}}]}",
                 "t.json: rocprofv3 output, not a torch.profiler trace");
    read_refused("{\"traceEvents\":null}",
                 "t.json: no traceEvents: it is not a list (the root begins with 'traceEvents')");
    read_refused("{\"date\":\"x\",\"completed\":4}",
                 "t.json: no traceEvents, so not a torch.profiler trace (the root begins with 'date')");
    read_refused("[{\"file\":\"x\"}]", "t.json: a list without a single trace event (an object with \"ph\"), so not a "
                                       "torch.profiler trace");
    read_refused("\n\x13\x08\x01\x12", "t.json: Perfetto protobuf, not a Chrome JSON trace");
    read_refused("Name  Self CPU", "t.json: not JSON: a trace starts with '{' or '['");
    struct k25_error error;
    assert_false(k25_trace_read("nowhere.json", NULL, NULL, NULL, &reading.info, &error));
    assert_error(error, K25_BAD_INPUT, "nowhere.json: no such file");
    done();
}

static void verdicts(void **state)
{
    (void)state;
    struct k25_error error;
    read_ok(TRACE(""), 0);
    assert_false(k25_trace_check("t.json", &reading.info, &error));
    assert_error(error, K25_NEGATIVE,
                 "t.json: no GPU events (0 CPU operators and Python calls): the capture was CPU-only, taken while the "
                 "engine was idle, or the GPU side of the profiler did not start");
    done();
    put_file("a_async_llm.1.pt.trace.json", TRACE(OP("a")), sizeof TRACE(OP("a")) - 1);
    read_file("a_async_llm.1.pt.trace.json", false, &reading);
    assert_int_equal(reading.info.use, K25_TRACE_FRONT_END);
    done();
    put_file("graph_capture_rank_2.9.json", TRACE(GPU("1", "2")), sizeof TRACE(GPU("1", "2")) - 1);
    read_file("graph_capture_rank_2.9.json", false, &reading);
    assert_int_equal(reading.info.use, K25_TRACE_CAPTURE);
    assert_int_equal(reading.info.rank, 2);
    assert_true(reading.info.rank_from_name);
    done();
}

static void ranks_from_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
    } cases[] = {
        {"dp0_pp0_tp3_dcp0_ep3_rank3.1767195832618853487.pt.trace.json.gz", 3},
        {"a_rank9/rank12.1767195832618853487.pt.trace.json.gz", 12},
        {"host_4711.1767195832618.pt.trace.json.gz", -1},
        {"capture_traces/graph_capture_rank_7.17.pt.trace.json.gz", 7},
        {"1754.5-TP-6.trace.json.gz", 6},
        {"x-1754.5-TP-6-DP-1-EP-3-DECODE.trace.json.gz", 6},
        {"1754.5-TP-6-PP-1.trace.json.gz", -1},
        {"1754.5-TP-6-PP-0.trace.json.gz", 6},
        {"rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34},
        {"inference_rank_1.json.gz", 1},
        {"bs_32_rank0.json.gz", 0},
        {"frank3.json", -1},
        {"rank.json", -1},
        {"rank3x.json", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(k25_trace_rank_from_name(cases[i].name), cases[i].rank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_fields),        cmocka_unit_test(times),       cmocka_unit_test(lost_records),
        cmocka_unit_test(key_order_and_layout), cmocka_unit_test(kinds),       cmocka_unit_test(damaged_events),
        cmocka_unit_test(damaged_kernels),      cmocka_unit_test(kept_damage), cmocka_unit_test(roots),
        cmocka_unit_test(resolution),           cmocka_unit_test(no_traces),   cmocka_unit_test(verdicts),
        cmocka_unit_test(ranks_from_names),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
