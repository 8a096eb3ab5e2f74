/* key_averages tables: every awkward trait of public reports in a small table of our own, then the real ones. */
#include "calib/readers/profiler/table.h"
#include "tests/unit/evidence_check.h"

#define RULE "----------  ----------  ----------  ----------  ----------  ----------\n"
#define HEAD "      Name    Self CPU   CPU total   Self CUDA  CUDA total  # of Calls\n"
#define OPEN RULE HEAD RULE
#define OP "  aten::mm     1.250ms     2.500ms     1.500ms     1.500ms           2\n"
#define GEMM "nvjet_a...     0.000us     0.000us     1.500ms     1.500ms           2\n"
#define ONE "cross_1sta     0.000us     0.000us   250.500us   250.500us           4\n"
#define FOOT "Self CPU time total: 12.500ms\nSelf CUDA time total: 1.751ms\n"

static struct k25_profiler_tables *parse(const char *text, const struct k25_evidence_options *options,
                                         struct k25_error *error)
{
    *error = (struct k25_error){0};
    return k25_profiler_tables_parse(text, strlen(text), "t.txt", options, error);
}

static struct k25_profiler_tables *read_good(const char *text)
{
    struct k25_error error;
    struct k25_profiler_tables *tables = parse(text, NULL, &error);
    if (tables == NULL)
        fail_msg("%s", error.message);
    return tables;
}

static void refuse(const char *text, const char *message)
{
    struct k25_error error;
    assert_null(parse(text, NULL, &error));
    assert_bad_input(error, message);
}

static void reads_rows(void **state)
{
    (void)state;
    struct k25_profiler_tables *tables = read_good(OPEN OP GEMM ONE RULE FOOT);
    assert_int_equal(tables->tables, 1);
    const struct k25_profiler_table *table = &tables->table[0];
    assert_string_equal(table->tag, "");
    assert_int_equal(table->line, 2);
    assert_true(table->closed && !table->layerwise);
    assert_int_equal(table->rows, 3);
    assert_string_equal(table->row[0].name, "aten::mm");
    assert_int_equal(table->row[0].level, K25_LEVEL_OP);
    assert_int_equal(table->row[0].self_cpu_ns, 1250000);
    assert_int_equal(table->row[0].cpu_total_ns, 2500000);
    assert_int_equal(table->row[0].device_total_ns, 1500000);
    assert_true(table->row[1].truncated);
    assert_int_equal(table->row[1].level, K25_LEVEL_KERNEL);
    assert_int_equal(table->row[1].line, 5);
    assert_int_equal(table->row[2].calls, 4);
    assert_int_equal(table->kernel_ns, 1750500); /* the op is not added to its kernel */
    assert_int_equal(table->self_cpu_total_ns, 12500000);
    assert_int_equal(table->self_device_total_ns, 1751000);
    k25_profiler_tables_free(tables);
    k25_profiler_tables_free(NULL);
}

/* Ranges on the GPU look like kernels: by name, or by more time than there is (pytorch#60783). */
static void knows_ranges(void **state)
{
    (void)state;
    struct k25_profiler_tables *tables =
        read_good(OPEN "execute_co     0.000us     0.000us     1.700ms     1.700ms           2\n"
                       "nccl:all_r     0.000us     0.000us   250.500us   250.500us           4\n"
                       "my_forward     0.000us     0.000us     1.979s      1.979s            1\n"
                       "Memcpy Hto     0.000us     0.000us     1.000us     1.000us           1\n" GEMM ONE RULE FOOT);
    const struct k25_profiler_table *table = &tables->table[0];
    for (int i = 0; i < 3; i++)
        assert_int_equal(table->row[i].level, K25_LEVEL_ANNOTATION);
    assert_int_equal(table->row[3].level, K25_LEVEL_COPY);
    assert_int_equal(table->copy_ns, 1000);
    assert_int_equal(table->kernel_ns, 1750500);
    k25_profiler_tables_free(tables);
}

static void other_columns(void **state)
{
    (void)state;
    /* 2020: no self column; columns that nobody asks for; headings that overflow their dashes */
    struct k25_profiler_tables *tables =
        read_good("--------  ------  ---------  --------  -------  --------------  \n"
                  "Name      Self CPU total %  Self CPU total   CUDA total  CUDA time avg  Number of Calls  \n"
                  "--------  ------  ---------  --------  -------  --------------  \n"
                  "aten::mm  0.17%   890.805us  7.5ms     1.5ms    5               \n"
                  "--------  ------  ---------  --------  -------  --------------  \n");
    const struct k25_profiler_row *row = &tables->table[0].row[0];
    assert_int_equal(row->self_device_ns, -1);
    assert_int_equal(row->device_total_ns, 7500000);
    assert_int_equal(row->self_cpu_ns, 890805);
    assert_int_equal(row->calls, 5);
    assert_int_equal(tables->table[0].self_device_total_ns, -1);
    k25_profiler_tables_free(tables);
    /* another GPU's name, memory, shapes, an empty cell, lines of a stack, cells of "--" */
    tables = read_good("----------  ----------  ----------  ----------  ----------  ----------  ----------\n"
                       "      Name    Self CPU    Self XPU  Self XPU %     XPU Mem  # of Calls     Source \n"
                       "----------  ----------  ----------  ----------  ----------  ----------  ----------\n"
                       "     gemm8     0.000us     3.500us         NaN        1 Kb           7     a.py(3)\n"
                       "                                                                          b.py(4)\n"
                       "     gemm9     0.000us          --         NaN        1 Kb           7            \n"
                       "----------  ----------  ----------  ----------  ----------  ----------  ----------\n");
    assert_int_equal(tables->table[0].rows, 2);
    assert_int_equal(tables->table[0].kernel_ns, 3500);
    assert_int_equal(tables->table[0].row[1].self_device_ns, -1);
    k25_profiler_tables_free(tables);
}

/* Two writers into one log, each with its tag; a third one's lines in between; clocks in the tags. */
static void tells_writers_apart(void **state)
{
    (void)state;
#define A "(Core_DP0 pid=1) INFO 11-05 13:22:49 [w.py:2] "
#define B "(Core_DP1 pid=2) INFO 11-05 13:22:49 [w.py:2] "
#define A2 "(Core_DP0 pid=1) INFO 11-05 13:22:50 [w.py:2] "
    struct k25_profiler_tables *tables =
        read_good(A RULE B RULE A HEAD B HEAD B RULE A RULE B ONE A GEMM
                  "(API pid=9) INFO 11-05 13:22:49 [api.py:1]  something   1.5us\n" A2 ONE B GEMM A2 RULE B RULE A
                  "Self CUDA time total: 1.5s\n" B "Self CUDA time total: 2.5s\n");
    assert_int_equal(tables->tables, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tables->table[i].rows, 2);
        assert_int_equal(tables->table[i].kernel_ns, 1750500);
        assert_int_equal(tables->table[i].self_device_total_ns, i == 0 ? 1500000000 : 2500000000);
    }
    assert_string_equal(tables->table[0].tag, "(Core_DP0 pid=1) INFO [w.py:2]");
    assert_string_equal(tables->table[0].row[0].name, "nvjet_a...");
    assert_string_equal(tables->table[1].row[0].name, "cross_1sta");
    k25_profiler_tables_free(tables);
}

static void passes_over_noise(void **state)
{
    (void)state;
    struct k25_profiler_tables *tables =
        read_good("a log\n-----  -----  -----\nNot a table\n\n" OPEN "WARNING: something else\n\n" GEMM
                  "100%|####| 5/5 [00:01<00:00]\r" ONE RULE "more\n" FOOT OPEN OP RULE);
    assert_int_equal(tables->tables, 2);
    assert_int_equal(tables->table[0].rows, 2);
    assert_int_equal(tables->table[0].self_device_total_ns, 1751000);
    assert_int_equal(tables->table[1].rows, 1);
    k25_profiler_tables_free(tables);
}

static void layerwise(void **state)
{
    (void)state;
    struct k25_profiler_tables *tables =
        read_good("name               | cuda_time_us | pct_cuda_... | invocations\n"
                  "==============================================================\n"
                  "Runner             |      4238.00 |        84.41 |        1.00\n"
                  "|- Layer           |       300.00 |         0.10 |        5.00\n"
                  "|-- gemm_a...      |       200.50 |         0.10 |        5.00\n"
                  "|-- Memcpy DtoD    |        99.50 |         0.10 |        5.00\n"
                  "|- gemm_b          |        10.25 |         0.10 |        2.00\n\nend\n");
    const struct k25_profiler_table *table = &tables->table[0];
    assert_true(table->layerwise);
    assert_int_equal(table->rows, 5);
    assert_int_equal(table->kernel_ns, 210750); /* leaves only */
    assert_int_equal(table->copy_ns, 99500);
    assert_string_equal(table->row[2].name, "gemm_a...");
    assert_true(table->row[2].truncated);
    assert_int_equal(table->row[2].depth, 2);
    assert_int_equal(table->row[1].level, K25_LEVEL_ANNOTATION);
    k25_profiler_tables_free(tables);
    refuse("layer      | cuda_time_us\nModel      |         0.00\n|- replay  |         0.00\n",
           "t.txt:1:1: no kernel time in a table of 2 rows: kernels inside CUDA graphs are not recorded here, re-run "
           "with --enforce-eager or use the kineto trace");
    refuse("name | cuda_time_us\nM    | x\n", "t.txt:2:8: 'x' is not a number of microseconds");
}

static void refuses(void **state)
{
    (void)state;
    refuse("", "t.txt: the file is empty, expected a key_averages table");
    refuse("hello\n", "t.txt: no table of rows, expected a print of key_averages().table(): a line of dashes, headings "
                      "that start with 'Name', a line of dashes, rows");
    refuse("-----  -----  -----\n Name  Self CPU  # of Calls\n-----  -----  -----\n   a    1us   3\n"
           "-----  -----  -----\n",
           "t.txt:2:1: no CUDA columns in a table of 1 row: the capture holds CPU time only, profile with "
           "ProfilerActivity.CUDA");
    refuse(OPEN "        aa     1.000us     1.000us     0.000us     0.000us           2\n" RULE,
           "t.txt:2:1: no kernel time in a table of 1 row: kernels inside CUDA graphs are not recorded here, re-run "
           "with --enforce-eager or use the kineto trace");
    refuse(OPEN GEMM, "t.txt:2:1: the table that starts here never closes: the text was cut behind its row 1");
    refuse(OPEN GEMM "cross_1sta     0.000us     0.0", "t.txt:5:28: a row of 3 cells, expected 6: cut or mixed with "
                                                       "another line");
    refuse(OPEN "nvjet_a...     0.000us     0.000us        1500     1.500ms           2\n" RULE,
           "t.txt:4:43: '1500' is not a time with a unit (us, ms, s)");
    refuse(OPEN "nvjet_a...     0.000us     0.000us     1.500ms     1.500ms         2.5\n" RULE,
           "t.txt:4:68: '2.5' is not a number of calls");
    refuse(OPEN "nvjet_a...     0.000us     0.000us    -1.500ms     1.500ms           2\n" RULE,
           "t.txt:4:39: '-1.500ms' is not a time with a unit (us, ms, s)");
    refuse(OPEN GEMM RULE "Self CUDA time total: 1.5\n", "t.txt:6:23: '1.5' is not a time with a unit (us, ms, s)");
    refuse(RULE "      Name    Self CPU   CPU total   Self CUDA  CUDA total\n" RULE GEMM RULE,
           "t.txt:2:7: 5 headings under 6 runs of dashes: lines were wrapped or cut");
}

static void keeps_what_was_good(void **state)
{
    (void)state;
    struct k25_error error;
    struct k25_profiler_tables *tables = parse(
        OPEN GEMM "nvjet_b...     0.000us     0.000us        1500     1.500ms           2\n" ONE, &lenient, &error);
    assert_non_null(tables);
    assert_int_equal(tables->table[0].rows, 2);
    assert_false(tables->table[0].closed);
    assert_int_equal(tables->left_out.count, 2); /* the row, and the end of the table */
    assert_string_equal(tables->left_out.first, "t.txt:5:43: '1500' is not a time with a unit (us, ms, s)");
    k25_profiler_tables_free(tables);
    assert_null(parse("-----  -----  -----\n Name  Self CPU  # of Calls\n-----  -----  -----\n", &lenient, &error));
    assert_says(error, "no CUDA columns");
}

static void rank_from_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
    } cases[] = {{"a/profiler_out_3.txt", 3},
                 {"profiler_out_0_old.txt", 0},
                 {"profiler_out_h100.txt", -1},
                 {"profiler_out_3/x.txt", -1},
                 {"x.txt", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_profiler_tables *tables =
            k25_profiler_tables_parse(OPEN GEMM RULE, strlen(OPEN GEMM RULE), cases[i].name, NULL, &error);
        assert_non_null(tables);
        assert_int_equal(tables->rank, cases[i].rank);
        k25_profiler_tables_free(tables);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rows),        cmocka_unit_test(knows_ranges),
        cmocka_unit_test(other_columns),     cmocka_unit_test(tells_writers_apart),
        cmocka_unit_test(passes_over_noise), cmocka_unit_test(layerwise),
        cmocka_unit_test(refuses),           cmocka_unit_test(keeps_what_was_good),
        cmocka_unit_test(rank_from_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
