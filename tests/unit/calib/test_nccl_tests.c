/* nccl-tests output: the shapes it has had over the years, what stands between its lines, and how runs fail. */
#include "calib/readers/nccl/nccl_tests.h"
#include "tests/unit/evidence_check.h"

#define FACTS                                                                                                          \
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "               \
    "validation: 1 graph: 0\n"
#define DEVICE "#  Rank  0 Group  0 Pid   7 on   box device  0 [0x01] Some GPU 9000\n"
#define HEAD                                                                                                           \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw "           \
    "  busbw #wrong\n#        (B)    (elements)                       (us)  (GB/s)  (GB/s)\n"
#define ROW1 "  8192   2048   float   sum   -1   24.20   2.00   3.00   0   23.50   2.00   3.00   0\n"
#define ROW2 " 16384   4096   float   sum   -1   1e+03   2.00   3.00   0   25.50   2.00   3.00   0\n"
#define FOOT "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.25 GB/s\n#\n"

static struct k25_nccl_tests *parse_as(const char *name, const char *text, const struct k25_evidence_options *options,
                                       struct k25_error *error)
{
    *error = (struct k25_error){0};
    return k25_nccl_tests_parse(text, strlen(text), name, options, error);
}

static struct k25_nccl_tests *read_good(const char *text)
{
    struct k25_error error;
    struct k25_nccl_tests *tests = parse_as("t.txt", text, NULL, &error);
    if (tests == NULL)
        fail_msg("%s", error.message);
    return tests;
}

static void refuse(const char *text, const char *message)
{
    struct k25_error error;
    assert_null(parse_as("t.txt", text, NULL, &error));
    assert_bad_input(error, message);
}

static void reads_a_run(void **state)
{
    (void)state;
    struct k25_nccl_tests *tests =
        read_good("# nccl-tests version 2.18.3 nccl-headers=1\n"
                  "# Collective test starting: all_reduce_perf\n" FACTS "#\n# Using devices\n" DEVICE
                  "NCCL version 2.30.3+cuda13.0\n" HEAD ROW1 ROW2 FOOT);
    assert_int_equal(tests->runs, 1);
    const struct k25_nccl_run *run = &tests->run[0];
    assert_string_equal(run->op, "all_reduce");
    assert_int_equal(run->op_source, K25_OP_STATED);
    assert_string_equal(run->device, "Some GPU 9000");
    assert_string_equal(run->nccl_version, "2.30.3+cuda13.0");
    assert_string_equal(run->tests_version, "2.18.3");
    assert_int_equal(run->ranks, 4);
    assert_int_equal(run->threads, 1);
    assert_int_equal(run->warmup, 5);
    assert_int_equal(run->iterations, 20);
    assert_int_equal(run->aggregated, 1);
    assert_int_equal(run->graph, 0);
    assert_int_equal(run->out_of_bounds, 0);
    assert_near(run->avg_busbw, 3.25);
    assert_int_equal(run->rows, 2);
    assert_int_equal(run->row[0].bytes, 8192);
    assert_int_equal(run->row[0].count, 2048);
    assert_string_equal(run->row[0].type, "float");
    assert_string_equal(run->row[0].redop, "sum");
    assert_int_equal(run->row[0].root, -1);
    assert_near(run->row[0].out_of_place.us, 24.2);
    assert_near(run->row[0].in_place.us, 23.5);
    assert_int_equal(run->row[0].in_place.wrong, 0);
    assert_true(isnan(run->row[0].in_place.error));
    assert_near(run->row[1].out_of_place.us, 1000);
    k25_nccl_tests_free(tests);
    k25_nccl_tests_free(NULL);
}

static void old_columns(void **state)
{
    (void)state;
    /* no root; an error instead of a count; ranks over several processes */
    struct k25_nccl_tests *tests =
        read_good("# nThread 1 nGpus 1\n#   Rank  0 Pid  7 on box device 0 [0x01] A\n#   Rank  9 Pid  7 on box "
                  "device 0 [0x01] A\n"
                  "# size count type redop time algbw busbw error time algbw busbw error\n"
                  "4096 1024 float sum 93.73 0.04 0.09 1e-06 93.15 0.04 0.09 0e+00\n");
    const struct k25_nccl_run *run = &tests->run[0];
    assert_int_equal(run->ranks, 10);
    assert_near(run->row[0].out_of_place.error, 1e-6);
    assert_int_equal(run->row[0].out_of_place.wrong, -1);
    assert_true(isnan(run->avg_busbw));
    assert_int_equal(run->out_of_bounds, -1);
    assert_string_equal(run->op, "all_reduce");
    k25_nccl_tests_free(tests);
    /* out of place only, the host's time, a time stamp of two words behind */
    tests = read_good("# size count type redop root cputime algbw busbw timestamp\n"
                      "8192 2048 float sum -1 24.2 0.3 0.5 2026-01-01 12:00:00\n");
    assert_true(tests->run[0].cpu_time);
    assert_true(isnan(tests->run[0].row[0].in_place.us));
    assert_int_equal(tests->run[0].ranks, 0);
    k25_nccl_tests_free(tests);
}

static void names_the_collective(void **state)
{
    (void)state;
    static const struct {
        const char *file, *before, *row, *op;
        enum k25_op_source source;
    } cases[] = {
        {"t.txt", "", "8192 2048 float sum -1 24 2 3.5 0 24 2 3.5 0", "all_reduce", K25_OP_ROWS},
        {"t.txt", "", "8192 2048 float sum -1 24 2 2.0 0 24 2 2.0 0", "sendrecv", K25_OP_ROWS},
        {"t.txt", "", "8192 256 float sum -1 24 2 1.7 0 24 2 1.7 0", "reduce_scatter", K25_OP_ROWS},
        {"t.txt", "", "8192 256 float none -1 24 2 1.7 0 24 2 1.7 0", "all_gather", K25_OP_ROWS},
        {"t.txt", "", "8192 256 float none -1 24 2 1.7 0 24 2 1.7 N/A", "alltoall", K25_OP_ROWS},
        {"t.txt", "", "8192 256 float none -1 24 2 1.7 N/A 24 2 1.7 N/A", "", K25_OP_UNKNOWN},
        {"t.txt", "", "8192 2048 float none 0 24 2 2 0 24 2 2 0", "broadcast", K25_OP_ROWS},
        {"t.txt", "", "8192 4096 half sum 0 24 2 2 0 24 2 2 0", "reduce", K25_OP_ROWS},
        {"t.txt", "", "8192 4096 strange sum -1 24 2 2 0 24 2 2 0", "", K25_OP_UNKNOWN},
        {"box_allgather-1.txt", "", "8192 2048 float sum -1 24 2 3 0 24 2 3 0", "all_gather", K25_OP_FILE_NAME},
        {"all_reduce/x.txt", "", "8192 256 float sum -1 24 2 3 0 24 2 3 0", "reduce_scatter", K25_OP_ROWS},
        {"box_allgather.txt", "$ mpirun -np 8 ./build/alltoall_perf -b 8\n", "8192 2048 float sum -1 24 2 3 0 24 2 3 0",
         "alltoall", K25_OP_COMMAND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct k25_error error;
        snprintf(text, sizeof text, "%s# nThread 1 nGpus 8\n" HEAD "%s\n", cases[i].before, cases[i].row);
        struct k25_nccl_tests *tests = parse_as(cases[i].file, text, NULL, &error);
        if (tests == NULL)
            fail_msg("%s", error.message);
        assert_string_equal(tests->run[0].op, cases[i].op);
        assert_int_equal(tests->run[0].op_source, cases[i].source);
        k25_nccl_tests_free(tests);
    }
}

/* Tags of MPI, lines of NCCL and of MPI between the rows, two runs line by line, one behind the other. */
static void among_noise(void **state)
{
    (void)state;
#define A "[1,0]<stdout>:"
#define B "[1,1]<stdout>:"
    struct k25_nccl_tests *tests = read_good(
        A "# nThread 1 nGpus 8 warmup iters: 1\n" B "# nThread 2 nGpus 2 warmup iters: 2\n" A
          "# size count type redop root time algbw busbw #wrong\n" B
          "# size count type redop root time algbw busbw #wrong\n" A
          "box:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n" A " 8 2 float sum -1 24.2 0.1 0.2 0\n" A "\n"
          "[box:0293] 15 more processes have sent help message\n 3 processes were here\n" B
          " 16 4 float sum -1 31.5 0.1 0.2 0\n" A " 16 4 float sum -1 25.2 0.1 0.2 0\n" B
          "# Avg bus bandwidth    : 9 \n" A "# Avg bus bandwidth    : 0 \n");
    assert_int_equal(tests->runs, 2);
    assert_string_equal(tests->run[0].tag, "[1,0]<stdout>:");
    assert_int_equal(tests->run[0].rows, 2);
    assert_int_equal(tests->run[0].ranks, 8);
    assert_near(tests->run[0].avg_busbw, 0); /* told apart, and of no effect on the rows */
    assert_int_equal(tests->run[1].rows, 1);
    assert_int_equal(tests->run[1].ranks, 4);
    assert_near(tests->run[1].row[0].out_of_place.us, 31.5);
    k25_nccl_tests_free(tests);
    tests = read_good(FACTS DEVICE HEAD ROW1 FOOT FACTS HEAD ROW1 ROW2 FOOT HEAD ROW1);
    assert_int_equal(tests->runs, 3);
    assert_string_equal(tests->run[0].device, "Some GPU 9000");
    assert_string_equal(tests->run[1].device, "");
    assert_int_equal(tests->run[1].rows, 2);
    assert_int_equal(tests->run[2].rows, 1); /* headings alone: the facts hold on */
    assert_int_equal(tests->run[2].ranks, 4);
    assert_int_equal(tests->run[2].out_of_bounds, -1);
    k25_nccl_tests_free(tests);
}

static void refuses(void **state)
{
    (void)state;
    refuse("hello\n", "t.txt: no rows and no headings ('# size count type ... busbw'): expected the output of "
                      "nccl-tests");
    refuse(FACTS HEAD, "t.txt:2:1: no rows: no data rows behind the headings, the run hung or was cut");
    refuse(FACTS HEAD "box:7:7 [0] a.cc:1 NCCL WARN Cuda failure 719\n .. box pid 7: Test failure common.cu:4\n",
           "t.txt:2:1: no rows: no data rows behind the headings, the run failed: box:7:7 [0] a.cc:1 NCCL WARN Cuda "
           "failure 719");
    refuse(FACTS HEAD " 8 2 float sum -1 24.2 0.3 0.5 248 24.2 0.3 0.5 0\n" ROW1,
           "t.txt:4:1: wrong results: 248 wrong elements in the row of 8 bytes, which measures nothing "
           "(--lenient "
           "keeps it)");
    refuse(FACTS HEAD ROW1 "# Out of bounds values : 3 FAILED\n",
           "t.txt:2:1: wrong results: 3 values out of bounds, says the footer of this run (--lenient keeps it)");
    refuse(FACTS HEAD ROW1 " 16384 4096 float su",
           "t.txt:5:2: a row of 4 cells, expected 13: cut or mixed with another "
           "line");
    refuse(FACTS HEAD " 8 2 float sum -1 24,2 0.3 0.5 0 24.2 0.3 0.5 0\n",
           "t.txt:4:19: '24,2' is not a time in us (more than 0, or N/A)");
    refuse(FACTS HEAD " 8 2 float sum -1 0.00 0.3 0.5 0 24.2 0.3 0.5 0\n",
           "t.txt:4:19: '0.00' is not a time in us (more than 0, or N/A)");
    refuse(FACTS HEAD " 8 2 float sum x 24.2 0.3 0.5 0 24.2 0.3 0.5 0\n", "t.txt:4:16: 'x' is not a number");
    refuse(FACTS HEAD " 8 2 float sum -1 N/A 0.3 0.5 0 N/A 0.3 0.5 0\n", "t.txt:4:2: a row without a time");
}

static void options(void **state)
{
    (void)state;
    static const char text[] = FACTS HEAD " 8 2 float sum -1 24.2 0.3 0.5 1e+06 24.2 0.3 0.5 0\n" ROW1
                                          " 16384 4096 fl\n# Out of bounds values : 9 FAILED\n";
    struct k25_error error;
    struct k25_nccl_tests *tests = parse_as("t.txt", text, &lenient, &error);
    assert_non_null(tests);
    assert_int_equal(tests->run[0].rows, 1);
    assert_int_equal(tests->left_out.count, 2);
    assert_string_equal(tests->left_out.first,
                        "t.txt:4:1: wrong results: 1000000 wrong elements in the row of 8 bytes, "
                        "which measures nothing (--lenient keeps it)");
    k25_nccl_tests_free(tests);
    const struct k25_evidence_options both = {.lenient = true, .allow_wrong = true};
    tests = parse_as("t.txt", text, &both, &error);
    assert_non_null(tests);
    assert_int_equal(tests->run[0].rows, 2);
    assert_true(tests->run[0].row[0].wrong);
    assert_false(tests->run[0].row[1].wrong);
    k25_nccl_tests_free(tests);
}

static void json_reports(void **state)
{
    (void)state;
    struct k25_nccl_tests *tests = read_good(
        "{\"args\": [\"./reduce_scatter_perf\", \"-b\"], \"config\": {\"nthreads\": 1, \"ngpus\": 2, "
        "\"warmup_iters\": 3,\n"
        "\"devices\": [{\"rank\": 0, \"device_info\": \"GPU A\"}, {\"rank\": 5, \"device_info\": \"GPU A\"}]},\n"
        "\"results\": [{\"size\": 8192, \"count\": 2048, \"type\": \"float\", \"redop\": \"sum\", \"root\": \"    "
        "-1\",\n"
        "\"out_of_place\": {\"time\": 24.25, \"alg_bw\": 0.3, \"bus_bw\": 0.5, \"nwrong\": 0},\n"
        "\"in_place\": {\"time\": 25.5, \"alg_bw\": 0.3, \"bus_bw\": 0.5, \"nwrong\": null}, \"x\": [1, {}]},\n"
        "{\"size\": 16, \"count\": 4, \"type\": \"float\", \"redop\": \"sum\", \"root\": \"-1\", "
        "\"out_of_place\": null,\n"
        "\"in_place\": {\"cpu_time\": 26.5}}],\n"
        "\"out_of_bounds\": {\"count\": 0, \"okay\": true}, \"average_bus_bandwidth\": {\"bandwidth\": 0.5}}\n");
    const struct k25_nccl_run *run = &tests->run[0];
    assert_string_equal(run->op, "reduce_scatter");
    assert_string_equal(run->device, "GPU A");
    assert_int_equal(run->ranks, 6);
    assert_int_equal(run->warmup, 3);
    assert_int_equal(run->rows, 2);
    assert_near(run->row[0].out_of_place.us, 24.25);
    assert_int_equal(run->row[0].in_place.wrong, -1);
    assert_true(isnan(run->row[1].out_of_place.us));
    assert_true(run->cpu_time);
    assert_int_equal(run->out_of_bounds, 0);
    assert_near(run->avg_busbw, 0.5);
    k25_nccl_tests_free(tests);
    tests = read_good(
        "NCCL version 2.26.6\n{\"version\": \"2.26.6\", \"benchmark\": [{\"8192\": {\"count\": 256, \"type\": "
        "\"float\", \"redop\": \"none\", \"root\": \"-1\", \"oop_time\": 31.5, \"oop_error\": 0.0, "
        "\"ip_time\": 30.5, \"ip_error\": \"N/A\"}, \"16\": {\"count\": 1, \"oop_time\": 5}}]}\n");
    assert_int_equal(tests->run[0].rows, 2);
    assert_int_equal(tests->run[0].row[1].bytes, 16);
    assert_int_equal(tests->run[0].row[0].in_place.wrong, -1);
    assert_string_equal(tests->run[0].nccl_version, "2.26.6");
    k25_nccl_tests_free(tests);
    refuse("{\"results\": [{\"size\": 8,", "t.txt:1:25: the text ends here: cut");
    refuse("{\"results\": [{\"size\": \"x\"}]}", "t.txt:1:26: expected a number");
    refuse("{\"results\": [{\"size\": 8}]}", "t.txt:1:14: a row without a size or a time");
    refuse("{\"results\": [{\"size\": 8, \"out_of_place\": {\"time\": 5, \"nwrong\": 2}}]}",
           "t.txt:1:1: wrong results: 2 wrong elements in the row of 8 bytes, which measures nothing (--lenient "
           "keeps it)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_run),  cmocka_unit_test(old_columns), cmocka_unit_test(names_the_collective),
        cmocka_unit_test(among_noise),  cmocka_unit_test(refuses),     cmocka_unit_test(options),
        cmocka_unit_test(json_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
