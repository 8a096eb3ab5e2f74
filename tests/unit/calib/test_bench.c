/* Results of load tests: JSON of vLLM, SGLang and InferenceX, the printed block, and what is no data point. */
#include "calib/readers/bench/bench.h"
#include "tests/unit/evidence_check.h"

static struct k25_bench *parse(const char *text, const struct k25_evidence_options *options, struct k25_error *error)
{
    *error = (struct k25_error){0};
    return k25_bench_parse(text, strlen(text), "t.json", options, error);
}

static struct k25_bench *read_good(const char *text)
{
    struct k25_error error;
    struct k25_bench *bench = parse(text, NULL, &error);
    if (bench == NULL)
        fail_msg("%s", error.message);
    return bench;
}

static void refuse(const char *text, const char *message)
{
    struct k25_error error;
    assert_null(parse(text, NULL, &error));
    assert_bad_input(error, message);
}

static void vllm(void **state)
{
    (void)state;
    struct k25_bench *bench = read_good(
        "{\"date\": \"20260101-120000\", \"endpoint_type\": \"vllm\", \"label\": null, \"model_id\": \"m/K\", "
        "\"num_prompts\": 5, \"request_rate\": \"inf\", \"burstiness\": 1.0, \"max_concurrency\": null, "
        "\"duration\": 10.0, \"completed\": 4, \"failed\": 1, \"total_input_tokens\": 400, "
        "\"total_output_tokens\": 800, \"request_throughput\": 0.4, \"request_goodput:\": null, "
        "\"output_throughput\": 80.0, \"total_token_throughput\": 120.0, \"max_concurrent_requests\": 3, "
        "\"mean_ttft_ms\": 100.0, \"std_ttft_ms\": NaN, \"median_tpot_ms\": 25.0, \"p99_tpot_ms\": 26.5, "
        "\"mean_itl_ms\": -Infinity, \"median_e2el_ms\": 5000.0, \"p95_e2el_ms\": 6000.0, \"p50_itl_ms\": 1.0, "
        "\"itls\": [[0.1, 0.2], []], \"generated_texts\": [\"a\\\"]}\", \"\\ud83d\\ude00\"], \"errors\": [\"\"], "
        "\"spec_decode_acceptance_rate\": 62.5, \"spec_decode_acceptance_length\": 2.25, "
        "\"spec_decode_per_position_acceptance_rates\": [0.7, 0.5]}");
    assert_int_equal(bench->runs, 1);
    const struct k25_bench_run *run = &bench->run[0];
    assert_int_equal(run->line, 1);
    assert_int_equal(run->format, K25_BENCH_JSON);
    assert_string_equal(run->model, "m/K");
    assert_string_equal(run->backend, "vllm");
    assert_string_equal(run->date, "20260101-120000");
    assert_string_equal(run->label, "");
    assert_true(isinf(run->request_rate) && isnan(run->max_concurrency));
    assert_near(run->completed, 4);
    assert_near(run->failed, 1);
    assert_near(run->num_prompts, 5);
    assert_near(run->duration, 10);
    assert_near(run->input_len, 100);
    assert_near(run->output_len, 200);
    assert_near(run->output_throughput, 80);
    assert_near(run->total_throughput, 120);
    assert_near(run->request_throughput, 0.4);
    assert_near(run->peak_concurrent, 3);
    assert_near(run->ttft.mean, 100);
    assert_true(isnan(run->ttft.std) && isnan(run->itl.mean) && isnan(run->itl.median));
    assert_near(run->tpot.median, 25);
    assert_near(run->tpot.p99, 26.5);
    assert_near(run->e2el.median, 5000);
    assert_near(run->e2el.p95, 6000);
    assert_near(run->acceptance_rate, 0.625);
    assert_near(run->acceptance_length, 2.25);
    k25_bench_free(bench);
    k25_bench_free(NULL);
}

/* One object a line (SGLang, --append-result); or a list; or over several lines. */
static void several_runs(void **state)
{
    (void)state;
    struct k25_bench *bench = read_good(
        "\xef\xbb\xbf{\"backend\": \"sglang\", \"request_rate\": Infinity, \"max_concurrency\": 8, \"completed\": "
        "2, "
        "\"duration\": 1.5, \"concurrency\": 7.5, \"accept_length\": 1.9, \"mean_e2e_latency_ms\": 900.5, "
        "\"p95_itl_ms\": 12.5, \"server_info\": {\"a\": [1]}}\n\n"
        "{\"completed\": 3,\n \"duration\": 2}\n  {\"completed\": 4}\n");
    assert_int_equal(bench->runs, 3);
    assert_int_equal(bench->run[0].line, 1);
    assert_int_equal(bench->run[1].line, 3);
    assert_int_equal(bench->run[2].line, 5);
    assert_true(isinf(bench->run[0].request_rate));
    assert_near(bench->run[0].concurrency, 7.5);
    assert_near(bench->run[0].max_concurrency, 8);
    assert_near(bench->run[0].acceptance_length, 1.9);
    assert_near(bench->run[0].e2el.mean, 900.5);
    assert_near(bench->run[0].itl.p95, 12.5);
    assert_near(bench->run[1].completed, 3);
    assert_true(isnan(bench->run[2].duration));
    k25_bench_free(bench);
    bench = read_good("[\n{\"completed\": 1}, {\"completed\": 2}]\n");
    assert_int_equal(bench->runs, 2);
    k25_bench_free(bench);
}

static void seconds(void **state)
{
    (void)state;
    struct k25_bench *bench = read_good("{\"completed\": 1, \"median_ttft\": 0.25, \"p99_tpot\": 0.0125}");
    assert_near(bench->run[0].ttft.median, 250);
    assert_near(bench->run[0].tpot.p99, 12.5);
    k25_bench_free(bench);
}

/* TPOT 0: no request had two tokens. */
static void zero_is_no_time(void **state)
{
    (void)state;
    struct k25_bench *bench =
        read_good("{\"completed\": 1, \"mean_tpot_ms\": 0.0, \"std_tpot_ms\": 0.0, \"mean_ttft_ms\": 3}");
    assert_true(isnan(bench->run[0].tpot.mean));
    assert_near(bench->run[0].tpot.std, 0);
    k25_bench_free(bench);
}

#define TITLE "============ Serving Benchmark Result ============\n"
#define END "==================================================\n"

static void printed_block(void **state)
{
    (void)state;
    struct k25_bench *bench =
        read_good("INFO: starting\n" TITLE "Backend:                                 sglang    \n"
                  "Traffic request rate:                    inf       \n"
                  "Max request concurrency:                 not set   \n"
                  "Successful requests:                     32        \n"
                  "Benchmark duration (s):                  62.23     \n"
                  "Total input tokens:                      256000    \n"
                  "Total generated tokens:                  32768     \n"
                  "Total generated tokens (retokenized):    32760     \n"
                  "Output token throughput (tok/s):         526.57    \n"
                  "Peak output token throughput (tok/s):    800.00    \n"
                  "Total Token throughput (tok/s):          4640.43   \n"
                  "---------------Time to First Token----------------\n"
                  "Mean TTFT (ms):                          13395.44  \xc2\xb7\n"
                  "Mean TPOT (ms):                          35.39     \n"
                  "P99 ITL (ms):                            578.32    \n"
                  "Acceptance rate (%):                     21.33     \n"
                  "Acceptance length:                       1.64      \n"
                  "Per-position acceptance (%):\n"
                  "  Position 0:                            36.59     \n" END "tail\n"
                  "(w pid=1) " TITLE
                  "(w pid=1) Successful requests:     7\n(v pid=2) Successful requests:     9\n(w pid=1) " END);
    assert_int_equal(bench->runs, 2);
    const struct k25_bench_run *run = &bench->run[0];
    assert_int_equal(run->format, K25_BENCH_CONSOLE);
    assert_int_equal(run->line, 2);
    assert_string_equal(run->backend, "sglang");
    assert_true(isinf(run->request_rate) && isnan(run->max_concurrency));
    assert_near(run->completed, 32);
    assert_near(run->output_tokens, 32768);
    assert_near(run->output_throughput, 526.57);
    assert_near(run->total_throughput, 4640.43);
    assert_near(run->ttft.mean, 13395.44);
    assert_near(run->tpot.mean, 35.39);
    assert_near(run->itl.p99, 578.32);
    assert_near(run->acceptance_rate, 0.2133);
    assert_near(run->acceptance_length, 1.64);
    assert_near(bench->run[1].completed, 7);
    k25_bench_free(bench);
}

static void refuses(void **state)
{
    (void)state;
    refuse("", "t.json: the file is empty, expected the result of a benchmark");
    refuse("hello\n", "t.json: no benchmark result, expected the JSON or the printed block of vllm bench serve or "
                      "SGLang's bench_serving");
    refuse("[]", "t.json: no benchmark result, expected the JSON or the printed block of vllm bench serve or SGLang's "
                 "bench_serving");
    refuse("{\"traceEvents\": []}",
           "t.json:1:1: no benchmark result: no 'completed', expected the result of vllm bench "
           "serve or SGLang's bench_serving");
    refuse("{\"completed\": 0, \"mean_tpot_ms\": 25.0}", "t.json:1:1: 0 completed requests: not a data point");
    refuse("{\"completed\": 5, \"duration\": 0}", "t.json:1:1: a duration of 0 s, expected more than 0");
    refuse("{\"completed\": 5}\n{\"completed\": 5, \"dura", "t.json:2:18: a string that never closes");
    refuse("{\"completed\": 5}\n{\"completed\": 5, ", "t.json:2:18: the text ends here: cut");
    refuse("{\"completed\": 5, \"mean_tpot_ms\": \"fast\"}", "t.json:1:34: expected a number that is not negative");
    refuse("{\"completed\": 5, \"mean_tpot_ms\": -1}", "t.json:1:34: expected a number that is not negative");
    refuse("{\"completed\": 5, \"mean_tpot_ms\": }", "t.json:1:34: expected a value");
    refuse("{\"completed\": 5} rest", "t.json:1:18: expected '{'");
    refuse(TITLE "Successful requests:     7\n", "t.json:1:1: the block that starts here never ends: the text was cut");
    refuse(TITLE "Successful requests:     7\n" TITLE END,
           "t.json:3:1: a new block starts before the one at line 1 ends");
    refuse(TITLE "Successful requests:     x\n" END, "t.json:2:26: 'x' is not a number");
    refuse(TITLE "Successful requests:     0\n" END, "t.json:1:1: 0 completed requests: not a data point");
}

static void keeps_what_was_good(void **state)
{
    (void)state;
    struct k25_error error;
    struct k25_bench *bench = parse(
        "{\"completed\": 1}\n{\"completed\": 0}\n{\"completed\" 3}\n{\"completed\": 4}\n{\"comp", &lenient, &error);
    assert_non_null(bench);
    assert_int_equal(bench->runs, 2);
    assert_near(bench->run[1].completed, 4);
    assert_int_equal(bench->run[1].line, 4);
    assert_int_equal(bench->left_out.count, 3);
    assert_string_equal(bench->left_out.first, "t.json:2:1: 0 completed requests: not a data point");
    k25_bench_free(bench);
    assert_null(parse("{\"completed\": 0}\n", &lenient, &error));
    assert_bad_input(error, "t.json:1:1: 0 completed requests: not a data point");
    bench = parse(TITLE "Successful requests:     7\n" END TITLE "Mean TPOT (ms):     7\n", &lenient, &error);
    assert_non_null(bench);
    assert_int_equal(bench->runs, 1);
    assert_int_equal(bench->left_out.count, 1);
    k25_bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vllm),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(seconds),
        cmocka_unit_test(zero_is_no_time),
        cmocka_unit_test(printed_block),
        cmocka_unit_test(refuses),
        cmocka_unit_test(keeps_what_was_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
