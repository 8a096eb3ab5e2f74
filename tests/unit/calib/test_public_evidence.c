/* Public evidence of many producers: profiler tables, nccl-tests, nsys, load tests, and the names of kernels. */
#include "base/csv.h"
#include "calib/readers/bench/bench.h"
#include "calib/readers/nccl/nccl_tests.h"
#include "calib/readers/nsys/nsys.h"
#include "calib/readers/nsys/sqlite.h"
#include "calib/readers/profiler/table.h"
#include "calib/rules/kernel_rules.h"
#include "tests/unit/evidence_check.h"
#include "tests/unit/public_check.h"

static void profiler_tables(void **state)
{
    (void)state;
    static const struct {
        const char *file, *error; /* NULL: read */
        size_t tables, rows;
        double kernel_us;
    } cases[] = {
        {"bugs/75_table_over_100_percent.txt", NULL, 1, 5, 143.75},
        {"bugs/76_table_prefixed_interleaved.txt", NULL, 2, 10, 287.5},
        {"bugs/78_table_mixed_units.txt", NULL, 1, 3, 1500000},
        {"bugs/79_table_cpu_only.txt", "no CUDA columns in a table of 1 row", 0, 0, 0},
        {"bugs/80_layerwise_no_graph_kernels.txt", "no kernel time", 0, 0, 0},
        {"samples/key_averages_2020_old_headings.txt", NULL, 1, 2, 0},
        {"samples/key_averages_exllama_2023_cut.txt", NULL, 1, 4, 0},
        {"samples/key_averages_narrow_linear_h100.txt", NULL, 1, 9, 687.139},
        {"samples/layerwise_table_nm_vllm_cudagraph.txt", NULL, 1, 7, 1704},
        {"samples/log_vllm_cpu_only_table.txt", "no CUDA columns in a table of 2 rows", 0, 0, 0},
        {"samples/profiler_out_0_vllm_omni_hopper.txt", NULL, 1, 59, 1235722},
        {"samples/profiler_out_dsr1_mi300x_tp8.txt", NULL, 1, 13, 5293000},
        {"samples/profiler_out_h100_flash_attn_cut.txt", ":6:131: a row of 7 cells, expected 11", 0, 0, 0},
        {"samples/nccl_h200_8gpu_single_row.txt", "no table of rows", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_profiler_tables *tables = k25_profiler_tables_read(public_file(cases[i].file), NULL, &error);
        if (cases[i].error != NULL) {
            assert_null(tables);
            assert_says(error, cases[i].error);
            continue;
        }
        if (tables == NULL)
            fail_msg("%s", error.message);
        size_t rows = 0;
        double us = 0;
        for (size_t j = 0; j < tables->tables; j++) {
            rows += tables->table[j].rows;
            us += (double)tables->table[j].kernel_ns / 1e3;
        }
        assert_int_equal(tables->tables, cases[i].tables);
        assert_int_equal(rows, cases[i].rows);
        assert_near(us, cases[i].kernel_us);
        k25_profiler_tables_free(tables);
    }
}

static void nccl_tests(void **state)
{
    (void)state;
    static const struct {
        const char *file, *error, *op;
        size_t rows;
        int ranks;
        double first_us, last_us;
    } cases[] = {
        {"bugs/85_nccl_wrong_results.txt", "wrong results: 248 wrong elements in the row of 8192 bytes", 0, 0, 0, 0, 0},
        {"bugs/86_nccl_avg_busbw_zero.txt", NULL, "all_reduce", 2, 8, 24.2, 24.1},
        {"bugs/87_nccl_alltoall_na.txt", NULL, "alltoall", 2, 8, 31.5, 40.25},
        {"bugs/89_nccl_hang_no_rows.txt",
         "no rows: no data rows behind the headings, the run failed: "
         "hostA:1000:1000 [0] misc/strongsuspect.cc:1 NCCL WARN Cuda failure 719",
         0, 0, 0, 0, 0},
        {"bugs/90_nccl_mpirun_tag_and_noise.txt", NULL, "all_reduce", 2, 8, 24.2, 24.1},
        {"samples/nccl_128gpu_error_exponent_cut.txt", NULL, "all_reduce", 6, 0, 93.73, 120.9},
        {"samples/nccl_b200_8gpu_allreduce_oop_only.txt", NULL, "all_reduce", 12, 8, 80.32, 35561},
        {"samples/nccl_h100_2x8_allreduce.txt", NULL, "all_reduce", 32, 16, 172.7, 68195},
        {"samples/nccl_h200_8gpu_single_row.txt", NULL, "all_reduce", 1, 8, 31533, 31533},
        {"samples/nccl_json_pr318_alltoall.txt", NULL, "alltoall", 2, 0, 1494.278386, 2846.555628},
        {"samples/nccl_rtx4090_4gpu_p2p_allreduce.txt", NULL, "all_reduce", 21, 4, 18.46, 63624},
        {"samples/nccl_rtx4090_6gpu_single_row.txt", NULL, "all_reduce", 1, 6, 2275.1, 2275.1},
        {"samples/nccl_rtx6000d_2x8_alltoall_noise.txt", NULL, "alltoall", 24, 16, 55.66, 224292},
        {"samples/nccl_rtxpro6000_2gpu_trx40_allreduce.txt", NULL, "all_reduce", 9, 2, 473.75, 113682},
        {"samples/nccl_rtxpro6000_2nodes_failed.txt", "NCCL WARN Cuda failure 'named symbol not found'", 0, 0, 0, 0, 0},
        {"bugs/75_table_over_100_percent.txt", "no rows and no headings", 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_nccl_tests *tests = k25_nccl_tests_read(public_file(cases[i].file), NULL, &error);
        if (cases[i].error != NULL) {
            assert_null(tests);
            assert_says(error, cases[i].error);
            continue;
        }
        if (tests == NULL)
            fail_msg("%s", error.message);
        const struct k25_nccl_run *run = &tests->run[0];
        assert_int_equal(tests->runs, 1);
        assert_string_equal(run->op, cases[i].op);
        assert_int_equal(run->rows, cases[i].rows);
        assert_int_equal(run->ranks, cases[i].ranks);
        assert_near(run->row[0].out_of_place.us, cases[i].first_us);
        assert_near(run->row[run->rows - 1].out_of_place.us, cases[i].last_us);
        k25_nccl_tests_free(tests);
    }
}

static void nsys_summaries(void **state)
{
    (void)state;
    static const struct {
        const char *file, *error;
        size_t rows;
        double total_ns;
    } cases[] = {
        {"bugs/100_nsys_no_kernel_data.csv", "SKIPPED: p.sqlite does not contain CUDA kernel data.", 0, 0},
        {"bugs/102_nsys_thousands.txt", NULL, 2, 2056667},
        {"bugs/103_nsys_graph_level_only.sqlite", "an SQLite export of nsys", 0, 0},
        {"bugs/104_nsys_two_devices.sqlite", "nsys stats -r cuda_gpu_kern_sum", 0, 0},
        {"bugs/105_nsys_cut_qdstrm.qdstrm", "qdstrm", 0, 0},
        {"samples/nsys_console_thousands_a100.txt", "no kernel summary among its reports", 0, 0},
        {"samples/nsys_gui_csv_mixtral_ep4_eplb_on.csv", NULL, 94, 224513176144},
        {"samples/nsys_stats_cuda_gpu_kern_sum.csv", NULL, 12, 198496275},
        {"samples/nsys_stats_llama70b_with_preamble.csv", NULL, 12, 67577843183},
        {"samples/nsys_table_dsr1_671b_b200_vllm.txt", NULL, 14, 26419250755},
        {"samples/synthetic_nsys_export.sqlite", "nsys stats -r cuda_gpu_kern_sum", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_nsys *nsys = k25_nsys_read(public_file(cases[i].file), NULL, &error);
        if (cases[i].error != NULL) {
            assert_null(nsys);
            assert_says(error, cases[i].error);
            continue;
        }
        if (nsys == NULL)
            fail_msg("%s", error.message);
        assert_int_equal(nsys->tables, 1);
        assert_int_equal(nsys->table[0].rows, cases[i].rows);
        assert_near(nsys->table[0].total_ns, cases[i].total_ns);
        k25_nsys_free(nsys);
    }
}

/* The time of a class on one device. */
static double class_us(const struct k25_kernel_rules *rules, const struct k25_nsys_device *device, const char *class)
{
    double ns = 0;
    for (size_t i = 0; i < device->table.rows; i++) {
        const struct k25_nsys_row *row = &device->table.row[i];
        if (k25_kernel_rules_class(rules, row->name) == k25_kernel_rules_find(rules, class))
            ns += row->total_ns;
    }
    return ns * 1e-3;
}

static void nsys_databases(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int64_t kernels;
        double allreduce_us[2], total_us[2];
    } cases[] = {
        {"bugs/104_nsys_two_devices.sqlite", 4, {9.125, 9.125}, {39.625, 39.625}},
        {"samples/synthetic_nsys_export.sqlite", 2928, {7542.477, 7143.749}, {18570.552, 18167.416}},
    };
    struct k25_error error = {0};
    struct k25_kernel_rules *rules = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    assert_non_null(rules);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_nsys_database *nsys = k25_nsys_sqlite_read(public_file(cases[i].file), NULL, &error);
        if (nsys == NULL)
            fail_msg("%s", error.message);
        assert_int_equal(nsys->kernels, cases[i].kernels);
        assert_int_equal(nsys->graph_kernels, cases[i].kernels);
        assert_int_equal(nsys->devices, 2);
        for (int rank = 0; rank < 2; rank++) {
            assert_int_equal(nsys->device[rank].device, rank);
            assert_near(class_us(rules, &nsys->device[rank], "allreduce"), cases[i].allreduce_us[rank]);
            assert_near(nsys->device[rank].table.total_ns * 1e-3, cases[i].total_us[rank]);
        }
        k25_nsys_sqlite_free(nsys);
    }
    k25_kernel_rules_free(rules);
    assert_null(k25_nsys_sqlite_read(public_file("bugs/103_nsys_graph_level_only.sqlite"), NULL, &error));
    assert_says(error, "cuda-graph-trace=node");
}

static void load_tests(void **state)
{
    (void)state;
    static const struct {
        const char *file, *error;
        size_t runs;
        double completed, tpot_ms; /* median of the first */
    } cases[] = {
        {"bugs/95_bench_nan_inf.json", NULL, 1, 4, 25},
        {"bugs/97_bench_all_failed.json", "0 completed", 0, 0, 0},
        {"samples/bench_console_dsv3.txt", NULL, 1, 1, 15.85},
        {"samples/bench_console_glm5_specdecode.txt", NULL, 1, 32, 34.58},
        {"samples/bench_console_kimi_k2.txt", NULL, 3, 8, 31.49},
        {"samples/bench_console_kimi_k2_think_tp8_dcp8.txt", NULL, 2, 998, 473.04},
        {"samples/bench_inferencex_glm5_tp8_seconds.json", NULL, 1, 160, 33.614915054966145},
        {"samples/bench_vllm_qwen3vl8b_openai_1qps.json", NULL, 1, 200, 27.67841275561395},
        {"samples/execution_details_vllm_decode.json", ":2:3: no benchmark result: no 'completed'", 0, 0, 0},
        {"bugs/00_clean_reference.json", "no benchmark result", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_bench *bench = k25_bench_read(public_file(cases[i].file), NULL, &error);
        if (cases[i].error != NULL) {
            assert_null(bench);
            assert_says(error, cases[i].error);
            continue;
        }
        if (bench == NULL)
            fail_msg("%s", error.message);
        assert_int_equal(bench->runs, cases[i].runs);
        assert_near(bench->run[0].completed, cases[i].completed);
        assert_near(bench->run[0].tpot.median, cases[i].tpot_ms);
        k25_bench_free(bench);
    }
}

/* All 1,645 names that were collected, class and category; and how many of them keep their class when a table cuts
 * them at 55 characters. */
static void kernel_names(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_kernel_rules *house = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    assert_non_null(house);
    struct k25_csv *csv = k25_csv_read(public_file("kernels.csv"), &error);
    assert_non_null(csv);
    int name = k25_csv_column(csv, "name"), group = k25_csv_column(csv, "class");
    int category = k25_csv_column(csv, "category");
    size_t wrong = 0, kept = 0;
    for (size_t i = 0; i < csv->rows; i++) {
        const char *text = k25_csv_cell(csv, i, name);
        int id = k25_kernel_rules_class(house, text);
        const struct k25_rule_class *class = k25_kernel_rules_describe(house, id);
        if (strcmp(class->group, k25_csv_cell(csv, i, group)) != 0 ||
            strcmp(class->name, k25_csv_cell(csv, i, category)) != 0) {
            print_message("%s: %s, expected %s\n", text, class->name, k25_csv_cell(csv, i, category));
            wrong++;
        }
        char cut[56];
        bool longer = strlen(text) > 55;
        snprintf(cut, sizeof cut, "%.*s%s", longer ? 52 : 55, text, longer ? "..." : "");
        kept += k25_kernel_rules_class(house, cut) == id;
    }
    print_message("%zu names, %zu wrong; cut at 55 characters %zu keep their class\n", csv->rows, wrong, kept);
    assert_int_equal(wrong, 0);
    assert_true(kept > csv->rows * 9 / 10);
    k25_kernel_rules_free(house);
    k25_csv_free(csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiler_tables), cmocka_unit_test(nccl_tests), cmocka_unit_test(nsys_summaries),
        cmocka_unit_test(nsys_databases),  cmocka_unit_test(load_tests), cmocka_unit_test(kernel_names),
    };
    return public_files_are_there() ? cmocka_run_group_tests(tests, NULL, NULL) : K25_TEST_SKIPPED;
}
