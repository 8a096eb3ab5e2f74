/* Kernel summaries of nsys: CSV, columns, box and the window's export, by version and locale. */
#include "calib/readers/nsys/nsys.h"
#include "tests/unit/evidence_check.h"

#define HEAD "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"

static struct k25_nsys *parse(const char *text, const struct k25_evidence_options *options, struct k25_error *error)
{
    *error = (struct k25_error){0};
    return k25_nsys_parse(text, strlen(text), "t.csv", options, error);
}

static struct k25_nsys *read_good(const char *text)
{
    struct k25_error error;
    struct k25_nsys *nsys = parse(text, NULL, &error);
    if (nsys == NULL)
        fail_msg("%s", error.message);
    return nsys;
}

static void refuse(const char *text, const char *message)
{
    struct k25_error error;
    assert_null(parse(text, NULL, &error));
    assert_bad_input(error, message);
}

/* One table with one row of 2 x 617 us. */
static void expect_row(const char *text, const char *name)
{
    struct k25_nsys *nsys = read_good(text);
    assert_int_equal(nsys->tables, 1);
    assert_int_equal(nsys->table[0].rows, 1);
    assert_string_equal(nsys->table[0].row[0].name, name);
    assert_int_equal(nsys->table[0].row[0].instances, 2);
    assert_near(nsys->table[0].row[0].total_ns, 1234000);
    assert_near(nsys->table[0].row[0].avg_ns, 617000);
    assert_near(nsys->table[0].total_ns, 1234000);
    k25_nsys_free(nsys);
}

static void csv(void **state)
{
    (void)state;
    struct k25_nsys *nsys =
        read_good("Generating SQLite file p.sqlite from p.nsys-rep\n"
                  "Processing [p.sqlite] with [/x/cuda_gpu_kern_sum.py]... \n" HEAD
                  "60.0,1234000,2,617000.0,617000.0,600000,634000,17000.5,\"void a<b, \"\"c\"\">(int)\"\n"
                  "40.0,800000,1,800000.0,800000.0,800000,800000,0.0,gemm\r\n\n"
                  "Processing [p.sqlite] with [/x/cuda_api_sum.py]... \n"
                  "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n50.0,100,1,100.0,cudaFree\n");
    assert_int_equal(nsys->tables, 1);
    const struct k25_nsys_table *table = &nsys->table[0];
    assert_int_equal(table->rows, 2);
    assert_int_equal(table->line, 3);
    assert_int_equal(table->row[0].line, 4);
    assert_string_equal(table->row[0].name, "void a<b, \"c\">(int)");
    assert_near(table->row[0].med_ns, 617000);
    assert_near(table->row[0].min_ns, 600000);
    assert_near(table->row[0].max_ns, 634000);
    assert_near(table->row[0].stddev_ns, 17000.5);
    assert_near(table->total_ns, 2034000);
    k25_nsys_free(nsys);
    k25_nsys_free(NULL);
}

static void headings_of_versions(void **state)
{
    (void)state;
    expect_row("Time(%),Total Time (ns),Instances,Average (ns),Minimum (ns),Maximum (ns),Name\n"
               "60.0,1234000,2,617000.0,1,2,old\n",
               "old");
    expect_row("Time (%),Total Time (us),Calls,Avg (us),Name\n60.0,1234.0,2,617.0,in_us\n", "in_us");
    expect_row("Total Time (msec),Instances,Avg (msec),Name\n1.234,2,0.617,in_ms\n", "in_ms");
    expect_row("Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n1.0,500,1,500.0,MEMORY_OPER,[CUDA "
               "memcpy]\n"
               "60.0,1234000,2,617000.0,CUDA_KERNEL,all_in_one\n",
               "all_in_one");
    expect_row("Name,Total Time (ns),Instances,Avg (ns)\nname_first,1234000,2,617000.0\n", "name_first");
    /* a name with commas that nobody quoted */
    expect_row("Time (%),Total Time (ns),Instances,Avg (ns),Name\n60.0,1234000,2,617000.0,void a<b, c>(int, int)\n",
               "void a<b, c>(int, int)");
}

static void columns_and_box(void **state)
{
    (void)state;
    expect_row(" Time (%)  Total Time (ns)  Instances   Avg (ns)   Name\n"
               " --------  ---------------  ---------  ----------  ------\n"
               "     60.0        1,234,000          2   617,000.0  void a<b,  c>(int)  \n\nmore text\n",
               "void a<b,  c>(int)");
    struct k25_nsys *nsys = read_good(" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
                                      "+----------+-----------------+-----------+----------+--------+\n"
                                      "| Time (%) | Total Time (ns) | Instances | Avg (ns) |  Name  |\n"
                                      "+----------+-----------------+-----------+----------+--------+\n"
                                      "|     60.0 |         1234000 |         2 | 617000.0 | a | b\xe2\x80\xa6 |\n"
                                      "|     60.0 |         1234000 |         2 | 617000.0 | c      |\n"
                                      "+----------+-----------------+-----------+----------+--------+\n"
                                      " ** CUDA API Summary (cuda_api_sum):\n\n"
                                      "| Time (%) | Total Time (ns) | Instances | Avg (ns) |  Name  |\n"
                                      "|     60.0 |         1234000 |         2 | 617000.0 | cudaXY |\n");
    assert_int_equal(nsys->tables, 1);
    assert_int_equal(nsys->table[0].rows, 2);
    assert_string_equal(nsys->table[0].row[0].name, "a | b\xe2\x80\xa6");
    assert_true(nsys->table[0].row[0].truncated);
    assert_false(nsys->table[0].row[1].truncated);
    k25_nsys_free(nsys);
}

/* The window writes units into the cells, and numbers as the user's locale wants them. */
static void cells_with_units(void **state)
{
    (void)state;
    expect_row("\xef\xbb\xbfTime,Total Time,Instances,Avg,Name\n0.00%,1.234 ms,2,617.000 \xce\xbcs,gui\n", "gui");
    expect_row("Time,Total Time,Instances,Avg,Name\n\"0,00%\",\"1,234 ms\",2,\"617,000 \xc2\xb5s\",comma\n", "comma");
    expect_row("Time;Total Time;Instances;Avg;Name\n0,00%;1,234 ms;2;617,000 us;semicolon\n", "semicolon");
    expect_row("Time\tTotal Time\tInstances\tAvg\tName\n0%\t1.234.000 ns\t2\t617.000,0 ns\tgerman\n", "german");
    expect_row("Time,Total Time,Instances,Avg,Name\n0.00%,\"1,234,000 ns\",2,\"617,000 ns\",ns\n", "ns");
}

static void several_tables(void **state)
{
    (void)state;
    struct k25_nsys *nsys = read_good(HEAD "60.0,10,2,5.0,5.0,5,5,0.0,a\n" HEAD "60.0,20,2,10.0,5.0,5,5,0.0,a\n" HEAD);
    assert_int_equal(nsys->tables, 2);
    assert_near(nsys->table[1].total_ns, 20);
    k25_nsys_free(nsys);
}

static void refuses(void **state)
{
    (void)state;
#define NO_SUMMARY                                                                                                     \
    "t.csv: no kernel summary among its reports, expected that of 'nsys stats -r cuda_gpu_kern_sum -f csv'"
    refuse("hello\n", NO_SUMMARY);
    refuse("", "t.csv: the file is empty, expected a kernel summary of nsys stats -r cuda_gpu_kern_sum -f csv");
    refuse(HEAD, NO_SUMMARY);
    refuse("Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n50.0,100,1,100.0,cudaFree\n", NO_SUMMARY);
    refuse("Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n50.0,100,1,100.0,PushPop,step\n", NO_SUMMARY);
    refuse("Time (%),Total Time (ns),Instances,Avg (ns),Operation\n50.0,100,1,100.0,[CUDA memcpy]\n", NO_SUMMARY);
    refuse("Processing [p.sqlite] with [/x/cuda_gpu_kern_sum.py]... \nSKIPPED: p.sqlite does not contain CUDA kernel "
           "data.\n",
           "t.csv:2:1: no kernel data: nsys says 'SKIPPED: p.sqlite does not contain CUDA kernel data.'. Record the "
           "workers too (nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node)");
    refuse(HEAD "60.0,10,2,5.0,5.0,5,5,0.0,a\n40.0,10,2,5.0\n", "t.csv:3:1: a row of 4 cells, expected 9: cut");
    refuse(HEAD "60.0,x,2,5.0,5.0,5,5,0.0,a\n", "t.csv:2:6: 'x' is not a time");
    refuse(HEAD "60.0,10,2.5,5.0,5.0,5,5,0.0,a\n", "t.csv:2:9: '2.5' is not a number of instances");
    refuse(HEAD "60.0,10,2,5.0,5.0,5,5,-1.0,a\n", "t.csv:2:23: '-1.0' is not a time");
    refuse("Total Time (ns),Instances,Avg (ns),Name\n1.234,2,617000.0,a\n",
           "t.csv:2:1: the total of 1 ns is not 2 instances of 617000.0 ns: separators of thousands and decimals "
           "mixed "
           "up?");
}

static void keeps_what_was_good(void **state)
{
    (void)state;
    struct k25_error error;
    struct k25_nsys *nsys =
        parse(HEAD "60.0,x,2,5.0,5.0,5,5,0.0,a\n60.0,10,2,5.0,5.0,5,5,0.0,b\n60.0,10,2", &lenient, &error);
    assert_non_null(nsys);
    assert_int_equal(nsys->table[0].rows, 1);
    assert_int_equal(nsys->left_out.count, 2);
    assert_string_equal(nsys->left_out.first, "t.csv:2:6: 'x' is not a time");
    k25_nsys_free(nsys);
    assert_null(parse(HEAD "60.0,x,2,5.0,5.0,5,5,0.0,a\n", &lenient, &error));
    assert_bad_input(error, "t.csv:2:6: 'x' is not a time");
}

static void refuse_file(const char *path, const void *bytes, size_t size, const char *words)
{
    struct k25_error error = {0};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_null(k25_nsys_read(path, NULL, &error));
    assert_says(error, words);
    assert_int_equal(unlink(path), 0);
}

static void refuses_databases(void **state)
{
    (void)state;
    char folder[] = "/tmp/k25_nsys_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.sqlite", folder);
    refuse_file(path, "SQLite format 3\0 CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(", 58,
                "a.sqlite: an SQLite export of nsys, expected text (k25sim inspect reads both): run 'nsys stats");
    snprintf(path, sizeof path, "%s/a.bin", folder);
    refuse_file(path, ".QDSTRM\0", 8, "qdstrm");
    snprintf(path, sizeof path, "%s/a.nsys-rep", folder);
    refuse_file(path, "anything", 8, "a recording of nsys, not a summary: run 'nsys export -t sqlite /tmp/");
    assert_int_equal(rmdir(folder), 0);
    struct k25_error error = {0};
    assert_null(k25_nsys_read("/nonexistent/x.csv", NULL, &error));
    assert_bad_input(error, "/nonexistent/x.csv: no such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv),
        cmocka_unit_test(headings_of_versions),
        cmocka_unit_test(columns_and_box),
        cmocka_unit_test(cells_with_units),
        cmocka_unit_test(several_tables),
        cmocka_unit_test(refuses),
        cmocka_unit_test(keeps_what_was_good),
        cmocka_unit_test(refuses_databases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
