/* Captures against what is known of them: planted truth, another tool's numbers, the right outcomes of awkward
 * inputs. */
#include <jansson.h>

#include "tests/unit/capture_check.h"

static bool read_shared(const char *name, struct k25_capture *capture, struct k25_error *error)
{
    char path[800];
    const char *paths[] = {path};
    if (!shared_file(name, path, sizeof path))
        return false;
    if (!read_paths(paths, 1, false, capture, error))
        fail_msg("%s", error->message);
    return true;
}

static json_t *load(const char *name)
{
    char path[1024];
    return shared_file(name, path, sizeof path) ? json_load_file(path, 0, NULL) : NULL;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void planted(const char *name)
{
    char path[800];
    struct k25_capture capture;
    struct k25_error error;
    snprintf(path, sizeof path, "%s/truth.json", name);
    json_t *truth = load(path);
    if (truth == NULL || !read_shared(name, &capture, &error))
        return;
    int ranks = (int)number(truth, "ranks"), steps = (int)number(truth, "steps");
    assert_int_equal(capture.ranks, ranks);
    assert_int_equal((int)capture.steps_common, steps);
    assert_int_equal((int)capture.matched, steps * (int)number(truth, "collectives_per_step"));
    assert_int_equal((int)capture.unmatched, 0);
    assert_int_equal(capture.slow_rank, (int)number(truth, "slow_rank"));
    double transfer = 0, offset = 0, wait = 0, others = 0, slow = 0;
    for (size_t g = 0; g < capture.groups; g++)
        transfer += capture.group[g].per_step * capture.group[g].transfer * 1e6;
    for (int r = 0; r < ranks; r++) {
        double known = json_number_value(json_array_get(json_object_get(truth, "mean_wait_us_per_step"), (size_t)r));
        offset = fmax(offset, fabs(capture.clock_offset[r] * 1e6 - r * number(truth, "clock_us_per_rank")));
        wait = fmax(wait, fabs(capture.rank_wait[r] * 1e6 - known));
        *(r == capture.slow_rank ? &slow : &others) += r == capture.slow_rank ? known : known / (ranks - 1);
        assert_int_equal((int)capture.rank[r].kept, steps);
    }
    double error_share = transfer / number(truth, "mean_transfer_us_per_step") - 1;
    print_message("%s: clock within %.4f us, wait within %.3f us a step, transfer %+.2f %%, lag %.2f of %.2f us\n",
                  name, offset, wait, 100 * error_share, capture.slow_lag * 1e6, others - slow);
    assert_true(offset < 0.05);
    assert_true(wait < 1);
    assert_true(fabs(error_share) < 0.02);
    assert_true(fabs(capture.slow_lag * 1e6 - (others - slow)) < 2);
    k25_capture_free(&capture);
    json_decref(truth);
}

static void planted_truth(void **state)
{
    (void)state;
    planted("samples/synthetic_tp8_synced");
    planted("samples/synthetic_tp8_clock_offset");
}

/* TraceLens takes GPU events whose launch is in the file: all of these captures but one, of which it is the step.
 */
static void gpu_timelines(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool step;
        double busy, total; /* ms, of samples/oracle/NAME.gpu_timeline.csv */
    } known[] = {
        {"samples/trace_vllm_mi300x_decode_graph_full.json.gz", false, 10.717697265625, 10.743181640625},
        {"samples/trace_vllm_mi300x_prefilldecode_piecewise.json.gz", false, 156.085798828125, 156.466416015625},
        {"samples/trace_sglang_mi300x_qwen3_8b_decode_graph.json.gz", false, 9.7729287109375, 473.749943359375},
        {"samples/trace_h100_qwen15_0p5b_hf.json.gz", true, 31.905483154296874, 34.8924189453125},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct k25_capture capture;
        struct k25_error error;
        if (!read_shared(known[i].name, &capture, &error))
            continue;
        const struct k25_rank *rank = &capture.rank[0];
        const struct k25_capture_step *step = &rank->step[0];
        double busy = (double)(known[i].step ? step->busy_ns : rank->busy_ns) * 1e-6;
        double total = (double)(known[i].step ? step->end_ns - step->start_ns : rank->span_ns) * 1e-6;
        print_message("%s: busy %.6f of %.6f ms, idle %.6f of %.6f ms\n", known[i].name, busy, known[i].busy,
                      total - busy, known[i].total - known[i].busy);
        assert_int_equal(rank->steps, 1);
        assert_true(fabs(busy - known[i].busy) < 3e-5); /* it goes through doubles of 1e15 us: 0.25 ns an event */
        assert_true(fabs(total - known[i].total) < 3e-5);
        k25_capture_free(&capture);
    }
}

static void decode_samples_are_classified(void **state)
{
    (void)state;
    static const char *const names[] = {
        "samples/trace_vllm_mi300x_decode_graph_full.json.gz",
        "samples/trace_vllm_mi300x_prefilldecode_piecewise.json.gz",
        "samples/trace_sglang_mi300x_qwen3_8b_decode_graph.json.gz",
        "samples/trace_vllm_b200_tp8_eager_prefill_rank0.json.gz",
        "samples/trace_h100_qwen15_0p5b_hf.json.gz",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct k25_capture capture;
        struct k25_error error;
        if (!read_shared(names[i], &capture, &error))
            continue;
        double share = (double)capture.rank[0].unclassified_ns / (double)capture.rank[0].kernel_ns;
        print_message("%s: %.2f %% unclassified\n", names[i], 100 * share);
        assert_true(share <= 0.05);
        k25_capture_free(&capture);
    }
}

/* Damaged or not, a decode trace of bugs/ has the steps and the allreduce time that expected.json says. */
static void check_case(const char *file, const json_t *expect)
{
    char path[200], full[800];
    const char *paths[] = {full};
    struct k25_capture capture;
    struct k25_error error;
    snprintf(path, sizeof path, "bugs/%s", file);
    if (!shared_file(path, full, sizeof full))
        return;
    bool refused = json_object_get(expect, "error") != NULL;
    bool hurt = json_is_true(json_object_get(expect, "truncated")) || json_is_true(json_object_get(expect, "bad_crc"));
    if (refused || hurt) {
        if (read_paths(paths, 1, false, &capture, &error))
            fail_msg("%s: read, expected a refusal", file);
        if (refused)
            return;
    }
    if (!read_paths(paths, 1, hurt, &capture, &error))
        fail_msg("%s", error.message);
    const struct k25_rank *rank = &capture.rank[0];
    int allreduce = k25_kernel_rules_find(rules, "allreduce");
    double reduce = 0;
    for (size_t i = 0; i < rank->kernels; i++)
        reduce += rank->kernel[i].class == allreduce ? (double)rank->kernel[i].total_ns * 1e-3 : 0;
    if (json_object_get(expect, "kernel_us") != NULL && !json_object_get(expect, "bad_time"))
        assert_near((double)rank->kernel_ns * 1e-3, number(expect, "kernel_us"));
    if (json_object_get(expect, "allreduce_us") != NULL)
        assert_near(reduce, number(expect, "allreduce_us"));
    if (json_object_get(expect, "steps") != NULL && (int)rank->steps != (int)number(expect, "steps"))
        fail_msg("%s: %d steps", file, (int)rank->steps);
    if (json_object_get(expect, "step_us") != NULL && fabs(rank->step_period * 1e6 - number(expect, "step_us")) > 1e-6)
        fail_msg("%s: a period of %.3f us", file, rank->step_period * 1e6);
    if (json_object_get(expect, "steps_used") != NULL)
        assert_int_equal((int)rank->kept, (int)number(expect, "steps_used"));
    if (json_object_get(expect, "launches_per_step") != NULL)
        assert_int_equal(rank->launches_per_step, (int)number(expect, "launches_per_step"));
    if (json_object_get(expect, "allreduce_us_per_step") != NULL)
        assert_near((double)rank->class_ns[allreduce] * 1e-3 / (double)rank->kept,
                    number(expect, "allreduce_us_per_step"));
    if (json_object_get(expect, "tokens_per_step") != NULL) {
        assert_int_equal(capture.tokens, (int)number(expect, "tokens_per_step"));
        assert_int_equal((int)rank->kept, (int)number(expect, "decode_steps"));
        assert_near(capture.context, 5504);
    }
    if (json_is_integer(json_object_get(expect, "rank")))
        assert_int_equal(rank->rank, (int)number(expect, "rank"));
    k25_capture_free(&capture);
}

static void awkward_files(void **state)
{
    (void)state;
    size_t i;
    int cases = 0;
    json_t *all = load("bugs/expected.json"), *one;
    json_array_foreach(all, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "kind")), "trace") != 0)
            continue;
        check_case(json_string_value(json_object_get(one, "file")), json_object_get(one, "expect"));
        cases++;
    }
    print_message("%d cases\n", cases);
    json_decref(all);
}

static void awkward_folders(void **state)
{
    (void)state;
    struct k25_capture capture;
    struct k25_error error;
    if (read_shared("bugs/65_async_llm_in_folder", &capture, &error)) {
        assert_int_equal(capture.ranks, 1);
        assert_int_equal(capture.rank[0].rank, 0);
        assert_int_equal(capture.left_files, 1);
        assert_int_equal(capture.rank[0].kernel_ns, 143750);
        k25_capture_free(&capture);
    }
    if (read_shared("bugs/67_rank_missing", &capture, &error)) {
        assert_int_equal(capture.ranks, 3);
        assert_int_equal(capture.rank[2].rank, 3);
        assert_int_equal(capture.missings, 1);
        assert_int_equal(capture.missing[0], 2);
        k25_capture_free(&capture);
    }
    if (read_shared("bugs/68_two_ranks_clock_offset", &capture, &error)) {
        assert_near(capture.clock_offset[1], 500e-6);
        assert_int_equal(capture.groups, 1);
        assert_near(capture.group[0].transfer, 9.125e-6);
        assert_near(capture.group[0].rank_wait[0], 5e-6);
        assert_true(fabs(capture.group[0].rank_wait[1]) < 1e-15);
        assert_int_equal(capture.slow_rank, 1);
        k25_capture_free(&capture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_truth),
        cmocka_unit_test(gpu_timelines),
        cmocka_unit_test(decode_samples_are_classified),
        cmocka_unit_test(awkward_files),
        cmocka_unit_test(awkward_folders),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
