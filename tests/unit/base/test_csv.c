/* Tables: RFC 4180 and the three ways a table can be wrong. */
#include "base/csv.h"
#include "tests/unit/base_check.h"

static struct k25_csv *table(const char *text)
{
    struct k25_error error = {0};
    struct k25_csv *csv = k25_csv_parse(text, strlen(text), "t.csv", &error);
    assert_string_equal(error.message, "");
    assert_non_null(csv);
    return csv;
}

static void refuse(const char *text, size_t size, const char *message)
{
    struct k25_error error = {0};
    assert_null(k25_csv_parse(text, size, "t.csv", &error));
    assert_error(error, K25_BAD_INPUT, message);
}

static void rows_and_columns(void **state)
{
    (void)state;
    struct k25_csv *csv = table("name,tokens\nh100,12\n\nb200,\n");
    assert_int_equal(csv->columns, 2);
    assert_int_equal(csv->rows, 2);
    assert_string_equal(csv->file, "t.csv");
    assert_int_equal(k25_csv_column(csv, "tokens"), 1);
    assert_int_equal(k25_csv_column(csv, "token"), -1);
    assert_string_equal(k25_csv_cell(csv, 0, 0), "h100");
    assert_string_equal(k25_csv_cell(csv, 0, 1), "12");
    assert_string_equal(k25_csv_cell(csv, 1, 1), "");
    assert_int_equal(csv->lines[0], 2);
    assert_int_equal(csv->lines[1], 4);
    k25_csv_free(csv);
    k25_csv_free(NULL);
}

static void quotes(void **state)
{
    (void)state;
    struct k25_csv *csv = table("\xef\xbb\xbf\"a\",b\r\n\"x, \"\"y\"\"\",\"two\r\nlines\"\r\n\"\",5\" disk\r");
    assert_string_equal(csv->names[0], "a");
    assert_string_equal(k25_csv_cell(csv, 0, 0), "x, \"y\"");
    assert_string_equal(k25_csv_cell(csv, 0, 1), "two\r\nlines");
    assert_string_equal(k25_csv_cell(csv, 1, 0), "");
    assert_string_equal(k25_csv_cell(csv, 1, 1), "5\" disk");
    assert_int_equal(csv->lines[1], 4);
    k25_csv_free(csv);
}

static void edges(void **state)
{
    (void)state;
    struct k25_csv *csv = table("a");
    assert_int_equal(csv->columns, 1);
    assert_int_equal(csv->rows, 0);
    k25_csv_free(csv);
    csv = table("a\n\"\"\n\n1\r2");
    assert_int_equal(csv->rows, 2);
    assert_string_equal(k25_csv_cell(csv, 0, 0), "");
    assert_string_equal(k25_csv_cell(csv, 1, 0), "1\r2"); /* a lone \r ends no line */
    k25_csv_free(csv);
    csv = table(",\n,");
    assert_int_equal(csv->columns, 2);
    assert_string_equal(k25_csv_cell(csv, 0, 1), "");
    k25_csv_free(csv);
}

static void errors_have_places(void **state)
{
    (void)state;
#define REFUSE(text, message) refuse(text, sizeof text - 1, message)
    REFUSE("", "t.csv:1:1: the file is empty, expected a line of column names");
    REFUSE("\n\r\n", "t.csv:1:1: the file is empty, expected a line of column names");
    REFUSE("a,b,c\n1,2,3\n1,2\n", "t.csv:3:1: a row of 2 cells, expected 3 as in the header");
    REFUSE("a,b\n1\n", "t.csv:2:1: a row of 1 cell, expected 2 as in the header");
    REFUSE("a,b\n1,2,3", "t.csv:2:1: a row of 3 cells, expected 2 as in the header");
    REFUSE("a,b\n1,2,\n", "t.csv:2:1: a row of 3 cells, expected 2 as in the header");
    REFUSE("a,b\n\xe2\x82\xac,\"x\"y\n",
           "t.csv:2:6: text after a closing quote, expected a comma or the end of the line");
    REFUSE("a,b\n1,\"x\n\n", "t.csv:2:3: the quote that opens here never closes");
    REFUSE("a,b\n1,\0\n", "t.csv:2:3: a zero byte, expected text");
    REFUSE("a,b\n\"1\n2\",3\n4\n", "t.csv:4:1: a row of 1 cell, expected 2 as in the header");
}

static void reads_files(void **state)
{
    (void)state;
    struct k25_error error = {0};
    put_file("t.csv", "a,b\n1,2\n", 8);
    struct k25_csv *csv = k25_csv_read("t.csv", &error);
    assert_non_null(csv);
    assert_string_equal(k25_csv_cell(csv, 0, 1), "2");
    k25_csv_free(csv);
    assert_int_equal(system("gzip -f t.csv"), 0);
    csv = k25_csv_read("t.csv.gz", &error);
    assert_non_null(csv);
    assert_string_equal(k25_csv_cell(csv, 0, 1), "2");
    k25_csv_free(csv);
    assert_null(k25_csv_read("none.csv", &error));
    assert_error(error, K25_BAD_INPUT, "none.csv: no such file");
}

/* Random tables of difficult letters, written with every cell quoted or, where that is allowed, plain. */
static void round_trip(void **state)
{
    (void)state;
    static const char letters[] = "ab,\"\n\r ";
    uint64_t seed = 25;
    for (int round = 0; round < 2000; round++) {
        size_t columns = 1 + chance(&seed) % 4, rows = 1 + chance(&seed) % 5, used = 0;
        char cells[24][8], text[2048];
        for (size_t i = 0; i < columns * rows; i++) {
            size_t length = chance(&seed) % 6;
            bool quote = i % columns == 0 || chance(&seed) % 2;
            for (size_t k = 0; k < length; k++) {
                cells[i][k] = letters[chance(&seed) % (quote ? 7 : 2)];
            }
            cells[i][length] = '\0';
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", quote ? "\"" : "");
            for (size_t k = 0; k < length; k++) {
                text[used++] = cells[i][k];
                if (cells[i][k] == '"') {
                    text[used++] = '"';
                }
            }
            const char *end = i % columns + 1 < columns ? "," : round % 2 ? "\r\n" : "\n";
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", quote ? "\"" : "", end);
        }
        struct k25_csv *csv = k25_csv_parse(text, used, "t.csv", NULL);
        assert_non_null(csv);
        assert_int_equal(csv->columns, columns);
        assert_int_equal(csv->rows, rows - 1);
        for (size_t i = 0; i < columns * rows; i++) {
            assert_string_equal(i < columns ? csv->names[i] : csv->cells[i - columns], cells[i]);
        }
        k25_csv_free(csv);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_columns),   cmocka_unit_test(quotes),      cmocka_unit_test(edges),
        cmocka_unit_test(errors_have_places), cmocka_unit_test(reads_files), cmocka_unit_test(round_trip),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
