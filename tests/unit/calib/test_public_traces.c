/* Public traces of many producers: what they hold, what another tool makes of them, and that their kernels are known.
 */
#include "tests/unit/trace_check.h"

#include <math.h>

#include "calib/capture/capture.h"
#include "tests/unit/public_check.h"

static struct k25_kernel_rules *rules;

static void read_capture(const char *name, struct k25_capture *capture)
{
    struct k25_capture_options options = {.rank = -1, .rules = rules};
    struct k25_error error = {0};
    const char *path = public_file(name);
    if (!k25_capture_read(&path, 1, &options, capture, &error))
        fail_msg("%s", error.message);
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
        read_capture(known[i].name, &capture);
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
        read_capture(names[i], &capture);
        double share = (double)capture.rank[0].unclassified_ns / (double)capture.rank[0].kernel_ns;
        print_message("%s: %.2f %% unclassified\n", names[i], 100 * share);
        assert_true(share <= 0.05);
        k25_capture_free(&capture);
    }
}

static const struct sample {
    const char *file;
    int kernels, rank, world; /* kernels -1: not a trace */
} samples[] = {
    {"trace_vllm_mi300x_decode_graph_full.json.gz", 425, 0, 1},
    {"trace_vllm_mi300x_decode_graph_capture_rank0.pt.trace.json.gz", 7, 0, 1},
    {"trace_vllm_mi300x_prefilldecode_piecewise.json.gz", 413, 0, 1},
    {"trace_vllm_b200_tp8_eager_prefill_rank0.json.gz", 768, 0, 8},
    {"trace_sglang_mi300x_qwen3_8b_decode_graph.json.gz", 555, 0, 1},
    {"trace_sglang_mi300x_capture_bs32_rank0.json.gz", 2, 0, 1},
    {"trace_h100_qwen15_0p5b_hf.json.gz", 1465, -1, -1},
    {"trace_h100_bert_small.json.gz", 60, -1, -1},
    {"trace_mi300_bert_small.json.gz", 60, -1, -1},
    {"trace_mi300_resnet_ddp_8rank_rank0_nccl.json.gz", 2995, 0, 8},
    {"trace_torch_compile_triton_tiny.json.gz", 12, -1, -1},
    {"trace_hta_ns_resolution_rank0.pt.trace.json.gz", 4350, 0, 1},
    {"trace_hta_nccl_2rank_rank0.json.gz", 2700, 0, 2},
    {"trace_hta_sampled_rank-0.json.gz", 1154, 0, 128},
    {"trace_hta_cpu_only_rank34.pt.trace.json.gz", 0, 34, 300},
    {"trace_hta_old_cats_Kernel_Runtime_rank1.json.gz", 4, 1, -1},
    {"trace_hta_distributed_info_absent.json.gz", 0, -1, -1},
    {"trace_hta_rank_absent_in_distinfo.json.gz", 0, -1, -1},
    {"trace_hta_cuda_event_sync_multistream.json.gz", 3, -2, -2},
    {"trace_hta_cupti_profiler_range.json.gz", 0, -2, -2},
    {"trace_hta_mi250_rocm62.json.gz", 14, -1, -1},
    {"trace_hta_triton_example.json.gz", 1, -1, -1},
    {"trace_hta_large_uint64_comms_id.json.gz", 1, -1, -1},
    {"trace_hta_step_based_gpu_annotation.json.gz", 130, -2, -2},
    {"trace_kineto_2021_computeProperties_v100.json", 30, -1, -1},
    {"trace_kineto_h100_tab_indent_after_fix.json", 1, -1, -1},
    {"rocprofv3_not_a_torch_trace.json.gz", -1, 0, 0},
    {"bench_vllm_qwen3vl8b_openai_1qps.json", -1, 0, 0},
    {"execution_details_vllm_decode.json", -1, 0, 0},
    {"key_averages_narrow_linear_h100.txt", -1, 0, 0},
    {"synthetic_nsys_export.sqlite", -1, 0, 0},
};

static void samples_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char name[256], damage[512];
        static struct reading reading;
        snprintf(name, sizeof name, "samples/%s", samples[i].file);
        read_file(public_file(name), false, &reading);
        const struct k25_trace_info *info = &reading.info;
        print_message("%-50.50s kernels %" PRIu64 " rank %d/%d use %d res %d %s | %s\n", samples[i].file,
                      info->events[K25_TRACE_KERNEL], info->rank, info->world_size, info->use, info->resolution_ns,
                      reading.error.message, k25_trace_damage(info, damage, sizeof damage));
        assert_int_equal(reading.done, samples[i].kernels >= 0);
        if (reading.done) {
            assert_int_equal(info->events[K25_TRACE_KERNEL], samples[i].kernels);
            assert_true(samples[i].rank == -2 || info->rank == samples[i].rank);
            assert_true(samples[i].world == -2 || info->world_size == samples[i].world);
            assert_int_equal(info->damaged_events, 0);
        }
        k25_trace_info_free(&reading.info);
    }
}

static int load_rules(void **state)
{
    struct k25_error error;
    (void)state;
    rules = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    return rules == NULL ? -1 : 0;
}

static int free_rules(void **state)
{
    (void)state;
    k25_kernel_rules_free(rules);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_timelines),
        cmocka_unit_test(decode_samples_are_classified),
        cmocka_unit_test(samples_are_read),
    };
    return public_files_are_there() ? cmocka_run_group_tests(tests, load_rules, free_rules) : K25_TEST_SKIPPED;
}
