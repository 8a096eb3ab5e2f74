/* SQLite exports of nsys: kernels by device, graphs without kernels, columns that are not there, damage. */
#include <sqlite3.h>

#include "calib/readers/nsys/sqlite.h"
#include "calib/rules/kernel_rules.h"
#include "tests/unit/evidence_check.h"

#define NAMES                                                                                                          \
    "CREATE TABLE StringIds(id integer primary key, value text);"                                                      \
    "INSERT INTO StringIds VALUES (1, 'void gemm<1>(int)'), (2, 'gemm'), (3, 'ncclDevKernel_AllReduce_Sum');"
#define KERNELS                                                                                                        \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start int, end int, deviceId int, globalPid int, demangledName int,"      \
    " shortName int, graphNodeId int);"
#define GRAPHS                                                                                                         \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start int, end int, deviceId int, graphId int);"                     \
    "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (15000, 86875, 0, 1), (115000, 186875, 0, 1);"
#define ADD "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "

/* A folder of its own for each run; '%', '?' and '#' mean something in a URI. */
static char folder[] = "/tmp/k25_nsys_sqlite_XXXXXX", path[128];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/a%%20b?c#d.sqlite", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void make(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static struct k25_nsys_database *read_made(const char *sql, const struct k25_evidence_options *options)
{
    struct k25_error error = {0};
    make(sql);
    struct k25_nsys_database *nsys = k25_nsys_sqlite_read(path, options, &error);
    if (nsys == NULL)
        fail_msg("%s", error.message);
    assert_int_equal(unlink(path), 0);
    return nsys;
}

/* Refused as it lies there, with the path and `words`. */
static void refuse_file(const struct k25_evidence_options *options, enum k25_status status, const char *words)
{
    struct k25_error error = {0};
    char message[1024];
    snprintf(message, sizeof message, "%s: %s", path, words);
    assert_null(k25_nsys_sqlite_read(path, options, &error));
    assert_string_equal(error.message, message);
    assert_int_equal(error.status, status);
    unlink(path);
}

static void refuse(const char *sql, const char *words)
{
    make(sql);
    refuse_file(NULL, K25_BAD_INPUT, words);
}

static void two_devices(void **state)
{
    (void)state;
    struct k25_nsys_database *nsys = read_made(
        NAMES KERNELS GRAPHS ADD "(100, 150, 1, 16777216 * 12, 3, 3, 7), (10, 20, 0, 16777216 * 11 + 5, 1, 2, NULL),"
                                 "(30, 60, 0, 16777216 * 11 + 5, 1, 2, 8), (60, 65, 0, 16777216 * 11 + 5, 3, 3, 9)",
        NULL);
    assert_int_equal(nsys->devices, 2);
    assert_int_equal(nsys->kernels, 4);
    assert_int_equal(nsys->graph_kernels, 3);
    assert_int_equal(nsys->graphs, 2);
    assert_near(nsys->graph_ns, 143750);
    assert_int_equal(nsys->left_out.count, 0);
    const struct k25_nsys_device *device = nsys->device;
    assert_int_equal(device[0].device, 0);
    assert_int_equal(device[0].pid, 11);
    assert_int_equal(device[0].table.rows, 2);
    assert_near(device[0].table.total_ns, 45);
    const struct k25_nsys_row *row = device[0].table.row;
    assert_string_equal(row[0].name, "void gemm<1>(int)");
    assert_int_equal(row[0].instances, 2);
    assert_near(row[0].total_ns, 40);
    assert_near(row[0].avg_ns, 20);
    assert_near(row[0].min_ns, 10);
    assert_near(row[0].max_ns, 30);
    assert_true(isnan(row[0].med_ns) && isnan(row[0].stddev_ns));
    assert_string_equal(row[1].name, "ncclDevKernel_AllReduce_Sum");
    assert_int_equal(device[1].device, 1);
    assert_int_equal(device[1].pid, 12);
    assert_int_equal(device[1].table.rows, 1);
    assert_near(device[1].table.row[0].total_ns, 50);
    k25_nsys_sqlite_free(nsys);
    k25_nsys_sqlite_free(NULL);
}

/* One visible device for each process: all of them are number 0. */
static void processes_apart(void **state)
{
    (void)state;
    struct k25_nsys_database *nsys =
        read_made(NAMES KERNELS ADD "(1, 2, 0, 16777216 * 9, 1, 2, 7), (1, 4, 0, 16777216 * 8, 1, 2, 7)", NULL);
    assert_int_equal(nsys->devices, 2);
    assert_int_equal(nsys->device[0].pid, 8);
    assert_near(nsys->device[0].table.total_ns, 3);
    assert_int_equal(nsys->device[1].pid, 9);
    k25_nsys_sqlite_free(nsys);
}

static void graph_level_only(void **state)
{
    (void)state;
#define ONLY                                                                                                           \
    "graph level only: 2 replays of CUDA graphs, 143.75 us in all, and none of their kernels, re-record with "         \
    "--cuda-graph-trace=node"
    refuse(NAMES GRAPHS, ONLY);
    refuse(NAMES GRAPHS KERNELS, ONLY);
    refuse(NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(graphId int);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1)",
           "graph level only: 1 replays of CUDA graphs, 0 us in all, and none of their kernels, re-record with "
           "--cuda-graph-trace=node");
    /* kernels outside of graphs are kept, and it can be told that others are missing */
    struct k25_nsys_database *nsys = read_made(NAMES GRAPHS KERNELS ADD "(1, 2, 0, 0, 1, 2, NULL)", NULL);
    assert_int_equal(nsys->graphs, 2);
    assert_int_equal(nsys->graph_kernels, 0);
    k25_nsys_sqlite_free(nsys);
}

static void columns_that_come_and_go(void **state)
{
    (void)state;
#define LEAST "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start int, END int, shortname int);" ADD "(5, 9, 2)"
    struct k25_nsys_database *nsys = read_made(NAMES LEAST, NULL);
    assert_int_equal(nsys->devices, 1);
    assert_int_equal(nsys->device[0].device, -1);
    assert_int_equal(nsys->device[0].pid, -1);
    assert_string_equal(nsys->device[0].table.row[0].name, "gemm");
    assert_near(nsys->device[0].table.total_ns, 4);
    assert_int_equal(nsys->graph_kernels, 0);
    k25_nsys_sqlite_free(nsys);
    /* a row without the better name has the other */
    nsys = read_made(NAMES KERNELS ADD "(5, 9, 0, 0, NULL, 2, 1)", NULL);
    assert_string_equal(nsys->device[0].table.row[0].name, "gemm");
    k25_nsys_sqlite_free(nsys);
    refuse(NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(end int, shortName int)",
           "the table CUPTI_ACTIVITY_KIND_KERNEL has no column start");
    refuse(NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start int, shortName int)",
           "the table CUPTI_ACTIVITY_KIND_KERNEL has no column end");
    refuse(NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start int, end int)",
           "the table CUPTI_ACTIVITY_KIND_KERNEL has no column demangledName, shortName or mangledName");
    refuse(LEAST, "no table StringIds(id, value): kernels have no names");
    refuse("CREATE TABLE StringIds(id int);" LEAST, "no table StringIds(id, value): kernels have no names");
}

static void nothing_in_it(void **state)
{
    (void)state;
#define NO_KERNELS                                                                                                     \
    "no kernel data. Record the workers too (nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node)"
    refuse(NAMES, NO_KERNELS);
    refuse(NAMES KERNELS, NO_KERNELS);
    refuse("CREATE TABLE t(x int)", "an SQLite database, but no export of nsys");
    /* a view may never end, so that it is not asked */
    refuse(NAMES "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start, end, shortName) AS"
                 " (SELECT 1, 2, 3 UNION ALL SELECT start + 1, end + 1, 3 FROM n) SELECT * FROM n",
           NO_KERNELS);
}

static void faulty_rows(void **state)
{
    (void)state;
    char first[256];
#define ENDS_EARLY "row 2 of CUPTI_ACTIVITY_KIND_KERNEL: a kernel that does not end after its start"
    refuse(NAMES KERNELS ADD "(1, 2, 0, 0, 1, 1, 1), (9, 5, 0, 0, 1, 1, 1)", ENDS_EARLY);
    refuse(NAMES KERNELS ADD "(1, 2, 0, 0, 1, 1, 1), (9, NULL, 0, 0, 1, 1, 1)", ENDS_EARLY);
    refuse(NAMES KERNELS ADD "(1, 2, 0, 0, 1, 1, 1), (-9223372036854775807, 9223372036854775807, 0, 0, 1, 1, 1)",
           ENDS_EARLY);
    refuse(NAMES KERNELS ADD "(1, 2, 0, 0, NULL, NULL, 1)",
           "row 1 of CUPTI_ACTIVITY_KIND_KERNEL: a kernel without a name");
    refuse(NAMES KERNELS ADD "(1, 2, 0, 0, 99, 1, 1), (3, 5, 0, 0, 99, 1, 1)",
           "the name 99 of 2 kernels is not in StringIds");
    struct k25_nsys_database *nsys =
        read_made(NAMES KERNELS ADD
                  "(1, 2, 0, 0, 1, 1, 1), (9, 5, 0, 0, 1, 1, 1), (1, 2, 0, 0, 99, 1, 1), (3, 5, 0, 0, 99, 1, 1)",
                  &lenient);
    assert_int_equal(nsys->left_out.count, 3);
    snprintf(first, sizeof first, "%s: " ENDS_EARLY, path);
    assert_string_equal(nsys->left_out.first, first);
    assert_int_equal(nsys->kernels, 1);
    assert_int_equal(nsys->device[0].table.rows, 1);
    k25_nsys_sqlite_free(nsys);
    make(NAMES KERNELS ADD "(9, 5, 0, 0, 1, 1, 1)");
    refuse_file(&lenient, K25_BAD_INPUT,
                "row 1 of CUPTI_ACTIVITY_KIND_KERNEL: a kernel that does not end after its start");
    make(NAMES KERNELS ADD "(1, 2, 0, 0, 99, 1, 1)");
    refuse_file(&lenient, K25_BAD_INPUT, "the name 99 of 1 kernels is not in StringIds");
}

static void more_names_than_any_capture(void **state)
{
    (void)state;
    refuse(NAMES KERNELS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 65536) INSERT "
                         "INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1, 2, 0, 0, i, 1, 1 FROM n",
           "more than 65536 names of kernels");
}

static void no_database(void **state)
{
    (void)state;
    struct k25_error error = {0};
#define OTHER "not an SQLite database, expected what 'nsys export -t sqlite' writes"
    write_file(path, "hello", 5);
    assert_false(k25_nsys_sqlite_is(path));
    refuse_file(NULL, K25_BAD_INPUT, OTHER);
    write_file(path, "", 0);
    refuse_file(NULL, K25_BAD_INPUT, OTHER);
    refuse_file(NULL, K25_BAD_INPUT, "no such file");
    assert_false(k25_nsys_sqlite_is(path));
    assert_null(k25_nsys_sqlite_read(folder, NULL, &error));
    assert_says(error, OTHER);
    write_file(path, "SQLite format 3\0 and nothing that belongs to it", 47);
    assert_true(k25_nsys_sqlite_is(path));
    refuse_file(NULL, K25_BAD_INPUT,
                "cannot be read, SQLite says 'file is not a database'. Export it again: nsys export -t sqlite");
}

/* Cut at any length: an error that says so, never a smaller answer. */
static void cut(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    char words[512];
    make(NAMES KERNELS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT "
                       "INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1, 2, 0, 0, 1, 1, 1 FROM n");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 5 * 4096, sizeof bytes - 1);
    for (size_t length = 16; length < size; length += 997) {
        write_file(path, bytes, length);
        struct k25_error error = {0};
        assert_null(k25_nsys_sqlite_read(path, &lenient, &error));
        snprintf(words, sizeof words, "%s: cut: its %zu bytes are not whole pages of 4096. Export", path, length);
        assert_says(error, length < 18 ? "SQLite says 'file is not a database'" : words);
    }
    for (size_t length = 4096; length < size; length += 4096) {
        write_file(path, bytes, length);
        refuse_file(&lenient, K25_BAD_INPUT,
                    "cannot be read, SQLite says 'database disk image is malformed'. Export it again: nsys export "
                    "-t sqlite");
    }
}

static void unfinished(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"-journal", "-wal"};
    for (int i = 0; i < 2; i++) {
        char beside[sizeof path + 16], words[512];
        snprintf(beside, sizeof beside, "%s%s", path, suffixes[i]);
        make(NAMES KERNELS ADD "(1, 2, 0, 0, 1, 1, 1)");
        write_file(beside, "\0\0", 2); /* what a journal is when all of it is in the file */
        k25_nsys_sqlite_free(k25_nsys_sqlite_read(path, NULL, NULL));
        write_file(beside, "\xd9\xd5", 2);
        snprintf(words, sizeof words,
                 "an export that was not finished: there is %s beside it. Export it again: nsys export -t sqlite",
                 beside);
        refuse_file(NULL, K25_BAD_INPUT, words);
        assert_int_equal(unlink(beside), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_devices),
        cmocka_unit_test(processes_apart),
        cmocka_unit_test(graph_level_only),
        cmocka_unit_test(columns_that_come_and_go),
        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(faulty_rows),
        cmocka_unit_test(more_names_than_any_capture),
        cmocka_unit_test(no_database),
        cmocka_unit_test(cut),
        cmocka_unit_test(unfinished),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
