/* Steps of one rank, and several ranks looked at together: numbers worked out by hand. Times are ns. */
#include <omp.h>

#include "calib/capture/internal.h"
#include "tests/unit/capture_check.h"

static void write_ranks(int ranks, int steps, const int64_t *clock)
{
    empty_folder();
    for (int r = 0; r < ranks; r++) {
        struct k25_trace_writer *writer = open_rank(r, ranks);
        for (int s = steps - 1; s >= 0; s--) { /* files are in no order of time */
            int64_t start = START + s * PERIOD + clock[r];
            k25_trace_write_annotation(writer, "execute_context_0(0)_generation_4(4)", start - 1, 57002, true, 0);
            write_step(writer, r, start, 10 * (uint64_t)s + 1);
        }
        close_rank(writer);
    }
}

static const struct k25_capture_group *group_of(const struct k25_capture *capture, const char *class)
{
    for (size_t g = 0; g < capture->groups; g++)
        if (capture->group[g].class == k25_kernel_rules_find(rules, class))
            return &capture->group[g];
    fail_msg("no group %s", class);
    return NULL;
}

static void three_ranks(void **state)
{
    (void)state;
    static const int64_t clock[] = {0, 500000, -250000};
    struct k25_capture capture;
    write_ranks(3, 4, clock);
    read_folder(&capture);
    assert_int_equal(capture.ranks, 3);
    assert_int_equal(capture.missings, 0);
    assert_int_equal(capture.rank[1].source, K25_STEPS_GPU_ANNOTATION);
    assert_int_equal(capture.rank[1].kept, 4);
    assert_int_equal(capture.steps_common, 4);
    assert_int_equal(capture.sequences, 4);
    assert_near(capture.step_period, 100e-6);
    assert_near(capture.gpu_busy, 54e-6);
    assert_near(capture.clock_offset[1], 500e-6);
    assert_near(capture.clock_offset[2], -250e-6);
    const struct k25_capture_group *reduce = group_of(&capture, "allreduce"), *gather = group_of(&capture, "allgather");
    assert_int_equal(reduce->matched, 4);
    assert_int_equal(reduce->bytes, -1);
    assert_near(reduce->per_step, 1);
    assert_near(reduce->duration, 34e-6 / 3);
    assert_near(reduce->transfer, 9e-6);
    assert_near(reduce->transfer_least, 9e-6);
    assert_near(reduce->wait, 7e-6 / 3);
    assert_near(reduce->spread, 4e-6);
    assert_near(reduce->rank_wait[0], 4e-6);
    assert_true(fabs(reduce->rank_wait[1]) < 1e-15);
    assert_near(reduce->rank_wait[2], 3e-6);
    assert_true(reduce->wait_sigma < 1e-12);
    assert_int_equal(gather->bytes, 8192);
    assert_near(gather->transfer, 6e-6);
    assert_true(fabs(gather->wait) < 1e-15);
    assert_int_equal(capture.rank[capture.slow_rank].rank, 1);
    assert_near(capture.slow_lag, 3.5e-6);
    k25_capture_free(&capture);
}

static void one_rank(void **state)
{
    (void)state;
    static const int64_t clock[] = {0};
    struct k25_capture capture;
    write_ranks(1, 3, clock);
    read_folder(&capture);
    const struct k25_capture_group *reduce = group_of(&capture, "allreduce");
    assert_near(reduce->duration, 13e-6);
    assert_true(isnan(reduce->transfer) && isnan(reduce->wait) && isnan(reduce->rank_wait[0]));
    assert_true(isnan(capture.rank_wait[0]));
    assert_int_equal(capture.slow_rank, -1);
    int class = k25_kernel_rules_find(rules, "moe_gemm");
    assert_int_equal(capture.rank[0].class_ns[class], 3 * 30000);
    assert_int_equal(capture.rank[0].class_calls[class], 3);
    assert_int_equal(capture.rank[0].span_ns, 2 * PERIOD + 57000);
    assert_int_equal(capture.rank[0].busy_ns, 3 * 54000);
    assert_string_equal(capture.rank[0].kernel[0].name, MOE);
    k25_capture_free(&capture);
}

/* Four ranks arrive together and leave 300, 100 ns early or late in turn: the minimum is 300 ns short, transfer is
 * not. */
static void noise_of_a_minimum(void **state)
{
    (void)state;
    static const int64_t jitter[] = {-300, -100, 100, 300};
    struct k25_capture capture;
    empty_folder();
    for (int r = 0; r < 4; r++) {
        struct k25_trace_writer *writer = open_rank(r, 4);
        for (int s = 0; s < 8; s++) {
            int64_t start = START + s * PERIOD;
            k25_trace_write_annotation(writer, "step[DECODE bs=4]", start - 1, 50000, true, 0);
            kernel(writer, MOE, start, 30000, 1);
            kernel(writer, ALLREDUCE, start + 31000, 9000 + jitter[(r + s) % 4], 1);
        }
        close_rank(writer);
    }
    read_folder(&capture);
    const struct k25_capture_group *reduce = group_of(&capture, "allreduce");
    assert_near(reduce->transfer, 9e-6);
    assert_near(reduce->transfer_least, 8.7e-6);
    assert_true(fabs(reduce->wait) < 1e-14);
    assert_near(reduce->end_jitter, sqrt(200000.0 / 3) * 1e-9);
    assert_int_equal(capture.slow_rank, -1);
    k25_capture_free(&capture);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    static const int64_t clock[] = {0, 70, -30};
    struct k25_capture one, many;
    int threads = omp_get_max_threads();
    write_ranks(3, 5, clock);
    omp_set_num_threads(1);
    read_folder(&one);
    omp_set_num_threads(4);
    read_folder(&many);
    omp_set_num_threads(threads);
    for (int r = 0; r < 3; r++) {
        assert_memory_equal(&one.clock_offset[r], &many.clock_offset[r], sizeof(double));
        assert_memory_equal(&one.rank_wait[r], &many.rank_wait[r], sizeof(double));
    }
    assert_memory_equal(&one.slow_lag, &many.slow_lag, sizeof(double));
    k25_capture_free(&one);
    k25_capture_free(&many);
}

/* Rank 1 began to record a step later; every period is alike, so only the clocks can tell. And in step 2 it ran
 * one collective more: the others of the step still match. */
static void ranks_that_differ(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    for (int r = 0; r < 2; r++) {
        struct k25_trace_writer *writer = open_rank(r, 2);
        for (int s = r; s < 5; s++) {
            int64_t start = START + s * PERIOD;
            k25_trace_write_annotation(writer, "execute_context_0(0)_generation_4(4)", start - 1, 60000, true, 0);
            write_step(writer, r, start, 10 * (uint64_t)s + 1);
            if (r == 1 && s == 2)
                kernel(writer, ALLREDUCE, start + 58000, 1000, 5);
        }
        close_rank(writer);
    }
    read_folder(&capture);
    assert_int_equal(capture.steps_common, 4);
    assert_int_equal(group_of(&capture, "allreduce")->matched, 3);
    assert_int_equal(group_of(&capture, "allgather")->matched, 4);
    assert_int_equal(capture.unmatched, 2);
    assert_true(fabs(capture.clock_offset[1]) < 1e-12);
    assert_near(group_of(&capture, "allreduce")->transfer, 9e-6);
    k25_capture_free(&capture);
}

/* ---- steps ---- */

static void annotation(const char *name, bool good, bool decode, int sequences, int tokens, double context)
{
    struct k25_annotation a;
    assert_int_equal(k25_annotation_parse(name, &a), good);
    if (!good)
        return;
    assert_int_equal(a.decode, decode);
    assert_int_equal(a.sequences, sequences);
    assert_int_equal(a.tokens, tokens);
    assert_near(a.context, context);
}

static void annotations(void **state)
{
    (void)state;
    annotation("execute_context_0(0)_generation_16(96)", true, true, 16, 96, 0);
    annotation("execute_context_1(888)_generation_15(90)", true, false, 16, 978, 0);
    annotation("execute_context_1(888_788544)_generation_0(0)", true, false, 1, 888, 0);
    annotation("execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq96sk88064sqsq576sqsk528384)", true, true, 16, 96,
               5504);
    annotation("execute_context_0(0)_generation_0(0)", true, false, 0, 0, 0);
    annotation("execute_new_0_cached_8", true, true, 8, -1, 0);
    annotation("execute_new_1_cached_8", true, false, 9, -1, 0);
    annotation("step[DECODE bs=32]", true, true, 32, 32, 0);
    annotation("step[EXTEND bs=15 toks=15360]", true, false, 15, 15360, 0);
    annotation("ProfilerStep#6", true, true, -1, -1, 0);
    annotation("execute_context_0(0)_generation_16(96", false, false, 0, 0, 0);
    annotation("execute_context_0(0)_generation_99999999999(96)", false, false, 0, 0, 0);
    annotation("capture_32_FULL", false, false, 0, 0, 0);
    annotation("nccl:all_reduce", false, false, 0, 0, 0);
}

/* Partial, mixed, slow and good steps; on the CPU, ranges that end before their kernels start. */
static void steps_left_out(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    kernel(writer, MOE, START - 900000, 500, 999); /* of a step that began before the capture */
    int64_t start = START;
    for (int s = 0; s < 9; s++) {
        const char *says = s == 4 ? "execute_context_1(500)_generation_3(3)" : "execute_context_0(0)_generation_4(4)";
        uint64_t correlation = 10 * (uint64_t)s + 1;
        /* The engine runs ahead: the range lies a period before the kernels. */
        k25_trace_write_annotation(writer, says, start - 110000, 20000, false, 0);
        k25_trace_write_call(writer, "cudaGraphLaunch", start - 105000, 2000, correlation);
        write_step(writer, 0, start, correlation);
        for (int extra = 0; extra < 8; extra++)
            if (s > 0 && s < 8)
                kernel(writer, GEMM, start + 60000 + 1000 * extra, 500, correlation);
        start += s == 6 ? 40 * PERIOD : PERIOD;
    }
    close_rank(writer);
    read_folder(&capture);
    const struct k25_rank *rank = &capture.rank[0];
    assert_int_equal(rank->source, K25_STEPS_CPU_ANNOTATION);
    assert_int_equal(rank->steps, 9);
    assert_int_equal(rank->step[0].start_ns, START);
    assert_int_equal(rank->step[0].fate, K25_STEP_PARTIAL);
    assert_int_equal(rank->step[4].fate, K25_STEP_OTHER_BATCH);
    assert_int_equal(rank->step[6].fate, K25_STEP_SLOW);
    assert_int_equal(rank->step[8].fate, K25_STEP_PARTIAL);
    assert_int_equal(rank->kept, 5);
    assert_int_equal(rank->left_out_partial, 2);
    assert_near(rank->step_period, 100e-6);
    assert_near(rank->gpu_busy, 58e-6);
    k25_capture_free(&capture);
}

/* Six steps of so many kernels each, the first and the last among them, with an annotation that tells their batch or
 * with a profiler's range that does not. */
static void write_counts(const int counts[6], const char *range)
{
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    for (int s = 0; s < 6; s++) {
        char name[64];
        int64_t start = START + s * PERIOD;
        snprintf(name, sizeof name, range, s);
        k25_trace_write_annotation(writer, name, start - 1, 60000, true, 0);
        for (int k = 0; k < counts[s]; k++)
            kernel(writer, GEMM, start + 500 * k, 400, 0);
    }
    close_rank(writer);
}

/* k: kept, p: partial, o: another batch. */
static void expect_fates(const char *fates)
{
    struct k25_capture capture;
    read_folder(&capture);
    assert_int_equal(capture.rank[0].steps, 6);
    for (int s = 0; s < 6; s++)
        assert_int_equal("kpos"[capture.rank[0].step[s].fate], fates[s]);
    k25_capture_free(&capture);
}

/* Of 100 kernels, a step at an end with 90 is whole and with 89 is cut; between, an annotation is believed. Where
 * nobody says what a step did, one of 89 or 111 did something else. */
static void a_tenth_of_the_kernels(void **state)
{
    (void)state;
    write_counts((const int[]){90, 100, 89, 111, 100, 89}, "execute_context_0(0)_generation_4(4)");
    expect_fates("kkkkkp");
    write_counts((const int[]){89, 100, 89, 111, 100, 90}, "execute_context_0(0)_generation_4(4)");
    expect_fates("pkkkkk");
    write_counts((const int[]){100, 90, 110, 100, 89, 100}, "ProfilerStep#%d");
    expect_fates("kkkkok");
    write_counts((const int[]){100, 90, 111, 100, 100, 89}, "ProfilerStep#%d");
    expect_fates("kkokkp");
}

/* Two kernels of one stream overlap by 10 us, and one copy lies inside a kernel: the union counts once. */
static void overlap(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    for (int s = 0; s < 2; s++) {
        int64_t start = START + s * PERIOD;
        k25_trace_write_annotation(writer, "step[DECODE bs=1]", start - 1, 60000, true, 0);
        kernel(writer, GEMM, start + 20000, 20000, 1);
        kernel(writer, MOE, start, 30000, 1);
        k25_trace_write_copy(writer, "Memcpy DtoH (Device -> Pinned)", start + 5000, 2000, 9, 2, 16);
    }
    close_rank(writer);
    read_folder(&capture);
    const struct k25_rank *rank = &capture.rank[0];
    assert_int_equal(rank->step[0].busy_ns, 40000);
    assert_int_equal(rank->step[0].kernels, 2);
    assert_int_equal(rank->class_ns[k25_kernel_rules_find(rules, "dense_gemm")], 2 * 20000);
    assert_int_equal(rank->class_own_ns[k25_kernel_rules_find(rules, "dense_gemm")], 2 * 10000);
    assert_int_equal(rank->class_own_ns[k25_kernel_rules_find(rules, "copy")], 0);
    assert_int_equal(rank->kernel_ns, 2 * 50000);
    k25_capture_free(&capture);
}

/* The range of a stream that only copies lies behind that of the step; what runs then is no step of its own. */
static void one_range_a_stream(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    for (int s = 0; s < 3; s++) {
        int64_t start = START + s * PERIOD;
        k25_trace_write_annotation(writer, "step[DECODE bs=4]", start - 1, 58000, true, (uint64_t)s + 50);
        k25_trace_write_annotation(writer, "step[DECODE bs=4]", start + 59000, 5000, true, (uint64_t)s + 50);
        write_step(writer, 0, start, 1);
        k25_trace_write_copy(writer, "Memcpy DtoH (Device -> Pinned)", start + 59000, 5000, 9, 2, 16);
        kernel(writer, "argmax_kernel", start + 60000, 1000, 3);
    }
    close_rank(writer);
    read_folder(&capture);
    assert_int_equal(capture.rank[0].steps, 3);
    assert_int_equal(capture.rank[0].step[0].kernels, 5);
    k25_capture_free(&capture);
}

/* A model of `layers` layers without annotations: each layer one piece (MoE, AllReduce), a head piece, a sampler.
 */
static void write_pieces(struct k25_trace_writer *writer, int64_t start, int layers, uint64_t first, bool launches)
{
    int64_t at = start;
    for (int piece = 0; piece <= layers; piece++) {
        uint64_t correlation = launches ? first + (uint64_t)piece : 0;
        if (launches)
            k25_trace_write_call(writer, "cudaGraphLaunch", start - 90000 + piece * 1000, 500, correlation);
        if (piece == 0) {
            kernel(writer, GEMM, at, 2000, correlation);
        } else {
            kernel(writer, MOE, at, 2000, correlation);
            kernel(writer, ALLREDUCE, at + 2100, 1000, correlation);
        }
        at += 3200;
    }
    kernel(writer, "argmax_kernel", at, 1500, launches ? first + 500 : 0);
}

static void check_pieces(bool launches, enum k25_step_source source)
{
    struct k25_capture capture;
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    for (int s = 0; s < 6; s++)
        write_pieces(writer, START + s * PERIOD, 12, 1000 * (uint64_t)(s + 1), launches);
    close_rank(writer);
    read_folder(&capture);
    const struct k25_rank *rank = &capture.rank[0];
    assert_int_equal(rank->source, source);
    assert_int_equal(rank->launches_per_step, launches ? 13 : 0);
    assert_int_equal(rank->steps, 6);
    assert_int_equal(rank->kept, 6);
    assert_int_equal(rank->step[2].start_ns, START + 2 * PERIOD);
    assert_int_equal(rank->step[2].kernels, 26);
    assert_near(rank->step_period, 100e-6);
    assert_near(rank->gpu_busy, (2 + 12 * 3 + 1.5) * 1e-6);
    k25_capture_free(&capture);
}

static void piecewise_graphs(void **state)
{
    (void)state;
    check_pieces(true, K25_STEPS_GRAPH);
}

static void no_launches(void **state)
{
    (void)state;
    check_pieces(false, K25_STEPS_ANCHOR);
}

static void no_steps(void **state)
{
    (void)state;
    struct k25_capture capture;
    empty_folder();
    struct k25_trace_writer *writer = open_rank(0, 1);
    kernel(writer, MOE, START, 1000, 0);
    kernel(writer, "nobody_knows_this", START + 2000, 3000, 0);
    close_rank(writer);
    read_folder(&capture);
    assert_int_equal(capture.rank[0].source, K25_STEPS_NONE);
    assert_true(isnan(capture.step_period));
    assert_near(capture.gpu_busy, 4e-6);
    assert_int_equal(capture.rank[0].unclassified_ns, 3000);
    k25_capture_free(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ranks),
        cmocka_unit_test(one_rank),
        cmocka_unit_test(noise_of_a_minimum),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(ranks_that_differ),
        cmocka_unit_test(annotations),
        cmocka_unit_test(steps_left_out),
        cmocka_unit_test(overlap),
        cmocka_unit_test(one_range_a_stream),
        cmocka_unit_test(piecewise_graphs),
        cmocka_unit_test(no_launches),
        cmocka_unit_test(no_steps),
        cmocka_unit_test(a_tenth_of_the_kernels),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
