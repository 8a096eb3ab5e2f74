/* Which files of a folder are a capture; traces written and read back; sorting in place. */
#include "calib/capture/internal.h"
#include "tests/unit/capture_check.h"

static void write_small(const char *name, int rank, int world)
{
    struct k25_trace_writer *writer = open_named(name, rank, world);
    write_step(writer, 0, START, 1);
    close_rank(writer);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void newest_complete_set(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    write_small("rank0.1767195000000000000.pt.trace.json", 0, 2);
    write_small("rank1.1767195000000000001.pt.trace.json", 1, 2);
    write_small("rank0.1767195832618853487.pt.trace.json", 0, 2);
    write_small("rank1.1767195840000000000.pt.trace.json.gz", 1, 2);
    write_small("rank0.1767196832618853487.pt.trace.json", 0, 2);
    write_text("host_async_llm.1767195832618853999.pt.trace.json", "{\"traceEvents\": []}");
    write_text("rank3.1767195832618853999.pt.trace.json.gz.tmp", "");
    write_text("notes.txt", "");
    write_text("truth.json", "{\"seed\": 1}");
    read_folder(&capture);
    assert_int_equal(capture.ranks, 2);
    assert_non_null(strstr(capture.rank[0].file, "rank0.1767195832618853487"));
    assert_non_null(strstr(capture.rank[1].file, "rank1.1767195840000000000"));
    assert_int_equal(capture.left_files, 6);
    assert_string_equal(capture.left_file[0].why, "of the engine's front-end, not of a rank");
    assert_string_equal(capture.left_file[1].why, "unfinished: the profiler has not renamed it");
    assert_string_equal(capture.left_file[2].why, "no time in its name, unlike the set that is read");
    assert_string_equal(capture.left_file[3].why, "of an earlier set");
    assert_string_equal(capture.left_file[5].why, "of a later set with fewer than 2 ranks");
    k25_capture_free(&capture);
}

static void folders_refused(void **state)
{
    (void)state;
    char message[1000];
    empty_folder();
    snprintf(message, sizeof message, "%s: no trace in this folder, expected *.pt.trace.json or .json.gz", folder);
    refuse_folder(message);
    write_small("rank0.1767195832618853487.pt.trace.json", 0, 2);
    write_small("rank0.1767195832618853488.pt.trace.json", 0, 2);
    snprintf(message, sizeof message,
             "two files of rank 0: %s/rank0.1767195832618853487.pt.trace.json and "
             "%s/rank0.1767195832618853488.pt.trace.json",
             folder, folder);
    refuse_folder(message);
    empty_folder();
    write_small("a_1.json", 1, 2);
    write_small("b_1.json", 1, 2);
    snprintf(message, sizeof message, "two files of rank 1: %s/a_1.json and %s/b_1.json", folder, folder);
    refuse_folder(message);
    empty_folder();
    write_small("a.json", 0, 2);
    write_small("b.json", 1, 4);
    snprintf(message, sizeof message, "%s/a.json is of 2 ranks, %s/b.json of 4: not one capture", folder, folder);
    refuse_folder(message);
    empty_folder();
    write_small("a.json", 0, 0);
    write_small("b.json", 0, 0);
    snprintf(message, sizeof message,
             "%s/a.json: neither the file nor its name says which rank it is; read such files one at a time, with "
             "--rank",
             folder);
    refuse_folder(message);
}

static void ranks_missing(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    write_small("a.json", 0, 5);
    write_small("b.json", 3, 5);
    read_folder(&capture);
    assert_int_equal(capture.world_size, 5);
    assert_int_equal(capture.missings, 3);
    assert_int_equal(capture.missing[0], 1);
    assert_int_equal(capture.missing[1], 2);
    assert_int_equal(capture.missing[2], 4);
    k25_capture_free(&capture);
    empty_folder();
    write_small("a.json", 0, 0);
    read_path(in_folder("a.json"), &capture);
    assert_int_equal(capture.rank[0].rank, 0);
    assert_true(capture.rank[0].rank_assumed);
    k25_capture_free(&capture);
}

/* What is written comes back to the nanosecond, whatever is in the names. */
static bool collect_event(void *context, const struct k25_trace_event *event)
{
    struct k25_trace_event *out = context;
    if (event->kind == K25_TRACE_KERNEL)
        *out = *event;
    return true;
}

static void written_traces(void **state)
{
    (void)state;
    static const char *const names[] = {"w.json", "w.json.gz"};
    for (int i = 0; i < 2; i++) {
        struct k25_trace_event event = {0};
        struct k25_trace_info info;
        struct k25_error error;
        struct k25_trace_writer *writer = open_named(names[i], 3, 8);
        struct k25_written_kernel k = {
            "a \"quoted\\name\"\n\x01", 6520618000000123, 4567, 21, 18446744073709551615u, 3, 77, NULL};
        k25_trace_write_kernel(writer, &k);
        close_rank(writer);
        assert_true(k25_trace_read(in_folder(names[i]), NULL, collect_event, &event, &info, &error));
        assert_string_equal(event.name, k.name);
        assert_int_equal(event.ts_ns, k.ts_ns);
        assert_int_equal(event.dur_ns, k.dur_ns);
        assert_int_equal(event.stream, 21);
        assert_int_equal(event.correlation, k.correlation);
        assert_int_equal(event.graph_node, 77);
        assert_int_equal(info.rank, 3);
        assert_int_equal(info.world_size, 8);
        assert_int_equal(info.base_time_ns, K25_TRACE_BASE_NS);
        assert_string_equal(info.device, "A GPU");
        k25_trace_info_free(&info);
        unlink(in_folder(names[i]));
    }
}

static void sorting(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static struct k25_gpu_event event[COUNT];
    uint32_t random = 1;
    for (int shape = 0; shape < 4; shape++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            random = random * 1664525 + 1013904223;
            event[i] = (struct k25_gpu_event){.start = shape == 0   ? i
                                                       : shape == 1 ? COUNT - i
                                                       : shape == 2 ? random >> 20
                                                       : i % 2      ? i
                                                                    : COUNT - i};
        }
        k25_sort_events(event, COUNT);
        for (int i = 1; i < COUNT; i++)
            assert_true(event[i - 1].start <= event[i].start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_complete_set), cmocka_unit_test(folders_refused), cmocka_unit_test(ranks_missing),
        cmocka_unit_test(written_traces),      cmocka_unit_test(sorting),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
