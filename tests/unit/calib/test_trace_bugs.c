/* The public samples and malformed inputs beside the repository (../shared), with the outcome of each; skipped,
 * loudly, where they are not there. K25_SHARED names another place. */
#include <dirent.h>

#include "tests/unit/trace_check.h"

static char captures[512];

static bool find_captures(void)
{
    const char *shared = getenv("K25_SHARED");
    snprintf(captures, sizeof captures, "%s/data/captures", shared == NULL ? "/work/shared" : shared);
    DIR *folder = opendir(captures);
    if (folder == NULL) {
        print_message("*** NOT TESTED: no captures under %s (set K25_SHARED)\n", captures);
        return false;
    }
    closedir(folder);
    return true;
}

enum flags {
    DAMAGED = 1,
    STRINGS = 2,
    ROOT = 4,
    VALUES = 8,
    NONFINITE = 16,
    UTF8 = 32,
    OPEN = 64,
    CUT = 128,
    CRC = 256,
    US = 512,
    BAD = 1024
};

static const struct expected {
    const char *file;
    int kernels, flags;
    double kernel_us; /* < 0: not checked */
    const char *word; /* of the error or the verdict, NULL: none */
    int rank;         /* -2: not checked */
} expected[] = {
    {"00_clean_reference.json", 8, 0, 143.75, NULL, 0},
    {"01_missing_quote_in_key.json", 8, DAMAGED, 143.75, NULL, 0},
    {"02_invalid_escape.json", 8, STRINGS, 143.75, NULL, 0},
    {"03_unescaped_quotes_in_name.json", 8, DAMAGED, 143.75, NULL, 0},
    {"04_latin1_byte_in_name.json", 8, UTF8, 143.75, NULL, 0},
    {"05_windows_path_in_tracename.json", 8, STRINGS, 143.75, NULL, 0},
    {"07_top_level_list.json", 8, 0, 143.75, NULL, -1},
    {"08_info_log_unescaped_quotes.json", 8, ROOT, 143.75, NULL, 0},
    {"09_missing_value.json", 9, VALUES, 149.75, NULL, 0},
    {"10_inf_nan_numbers.json", 8, NONFINITE, 143.75, NULL, 0},
    {"11_trailing_comma_unclosed.json", 8, OPEN, 143.75, NULL, 0},
    {"13_args_array_or_missing.json", 8, 0, 143.75, NULL, 0},
    {"14_uint64_ids.json", 8, 0, 143.75, NULL, 0},
    {"15_big_uint_over_2_64.json", 8, 0, 143.75, NULL, 0},
    {"16_utf8_bom_crlf.json", 8, 0, 143.75, NULL, 0},
    {"18_deep_nesting.json", 8, 0, 143.75, NULL, 0},
    {"20_gzip_two_members.json.gz", 8, 0, 143.75, NULL, 0},
    {"21_truncated_gzip.json.gz", 2, CUT, 42.75, "truncated", -2},
    {"22_gzip_bad_crc.json.gz", 8, CRC, 143.75, "CRC", 0},
    {"23_gzip_trailing_zeros.json.gz", 8, 0, 143.75, NULL, 0},
    {"25_not_gzip_but_named_gz.json.gz", 8, 0, 143.75, NULL, 0},
    {"26_empty_file.json.gz", 0, 0, -1, "empty", -2},
    {"29_git_lfs_pointer.json.gz", 0, 0, -1, "git-lfs", -2},
    {"30_html_error_page.json.gz", 0, 0, -1, "HTML", -2},
    {"31_chakra_et_not_a_trace.json", 0, 0, -1, "Chakra", -2},
    {"32_rocprofv3_not_a_trace.json", 0, 0, -1, "rocprofv3", -2},
    {"35_empty_traceevents.json", 0, 0, 0, "no GPU events", 0},
    {"36_traceevents_missing_or_null.json", 0, 0, -1, "no traceEvents", -2},
    {"38_metadata_after_events_one_line.json", 8, 0, 143.75, NULL, 0},
    {"39_rank_only_in_name.dp0_pp0_tp3_dcp0_ep0_rank3.1767195832618853487.pt.trace.json", 8, 0, 143.75, NULL, 3},
    {"40_rank_nowhere.json", 8, 0, 143.75, NULL, -1},
    {"41_no_runtime_events.json", 8, 0, 143.75, NULL, 0},
    {"42_no_correlation.json", 8, 0, 143.75, NULL, 0},
    {"43_string_ts_and_ids.json", 8, 0, 143.75, NULL, 0},
    {"45_string_pid_negative_tid.json", 8, 0, 143.75, NULL, 0},
    {"46_old_categories.json", 8, 0, 143.75, NULL, 0},
    {"47_device_properties_absent.json", 8, 0, 143.75, NULL, 0},
    {"48_cpu_only.json", 0, 0, 0, "no GPU events", 0},
    {"50_negative_dur.json", 8, BAD, 123.75, NULL, 0},
    {"51_zero_ts_zero_dur.json", 9, BAD, 143.75, NULL, 0},
    {"53_integer_us_absolute.json", 8, US, 142, NULL, 0},
    {"54_absolute_us_with_ns_digits.json", 8, 0, 143.75, NULL, 0},
    {"56_unordered_events.json", 8, 0, 143.75, NULL, 0},
    {"57_first_step_spin.json", 20, 0, -1, NULL, 0},
    {"60_collectives_without_nccl_word.json", 10, 0, -1, NULL, 0},
    {"61_gpu_annotation_double_count.json", 8, 0, 143.75, NULL, 0},
    {"63_piecewise_graphs.json", 12, 0, 215.625, NULL, 0},
    {"64_annotation_variants.json", 12, 0, -1, NULL, 0},
    {"65_async_llm_in_folder/dp0_pp0_tp0_dcp0_ep0_rank0.1767195832618853487.pt.trace.json", 8, 0, 143.75, NULL, 0},
    {"65_async_llm_in_folder/host-a_async_llm.1767195832618853999.pt.trace.json", 0, 0, 0, "front-end", -2},
    {"67_rank_missing/dp0_pp0_tp3_dcp0_ep0_rank3.1767195832618853487.pt.trace.json", 8, 0, -1, NULL, 3},
    {"68_two_ranks_clock_offset/rank-1.json", 8, 0, -1, NULL, 1},
    {"70_graph_capture_rank_0.json", 1, 0, -1, "capture trace", 0},
};

static void check(const struct expected *want)
{
    char path[1024];
    static struct reading reading;
    snprintf(path, sizeof path, "%s/bugs/%s", captures, want->file);
    bool refused = want->word != NULL;
    read_file(path, false, &reading);
    const struct k25_trace_info *info = &reading.info;
    if (reading.done && refused) {
        assert_false(k25_trace_check(path, info, &reading.error));
        assert_int_equal(reading.error.status, K25_NEGATIVE);
    } else if (reading.done) {
        assert_true(k25_trace_check(path, info, &reading.error));
    }
    print_message("%-40.40s %s\n", want->file, reading.error.message);
    assert_int_equal(refused, reading.error.message[0] != '\0');
    assert_true(!refused || strstr(reading.error.message, want->word) != NULL);
    assert_int_equal(info->events[K25_TRACE_KERNEL], want->kernels);
    assert_true(want->kernel_us < 0 || info->busy_ns[K25_TRACE_KERNEL] == (int64_t)(want->kernel_us * 1000));
    assert_int_equal(info->damaged_events, (want->flags & DAMAGED) != 0);
    assert_int_equal(info->damaged_strings, (want->flags & STRINGS) != 0);
    assert_int_equal(info->damaged_root, (want->flags & ROOT) != 0);
    assert_int_equal(info->damaged_values, (want->flags & VALUES) != 0);
    assert_int_equal(info->nonfinite, (want->flags & NONFINITE) != 0 ? 3 : 0);
    assert_int_equal(info->invalid_utf8, (want->flags & UTF8) != 0);
    assert_int_equal(info->truncated, (want->flags & CUT) != 0);
    assert_int_equal(info->bad_crc, (want->flags & CRC) != 0);
    assert_int_equal(info->bad_times[K25_TRACE_KERNEL], (want->flags & BAD) != 0);
    assert_int_equal(info->resolution_ns, (want->flags & US) != 0 ? 1000 : 1);
    assert_true(!(want->flags & OPEN) || info->unterminated);
    assert_true(want->rank == -2 || info->rank == want->rank);
    if (refused && !reading.done && want->kernels > 0) { /* lenient keeps what was good */
        k25_trace_info_free(&reading.info);
        read_file(path, true, &reading);
        assert_true(reading.done);
        assert_int_equal(reading.info.events[K25_TRACE_KERNEL], want->kernels);
    }
    k25_trace_info_free(&reading.info);
}

static void bugs(void **state)
{
    (void)state;
    if (!find_captures()) {
        skip();
    }
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        check(&expected[i]);
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

static void real_samples(void **state)
{
    (void)state;
    if (!find_captures()) {
        skip();
    }
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char path[1024], damage[512];
        static struct reading reading;
        snprintf(path, sizeof path, "%s/samples/%s", captures, samples[i].file);
        read_file(path, false, &reading);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bugs),
        cmocka_unit_test(real_samples),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
