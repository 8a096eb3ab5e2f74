/* What the readers share: lines, fronts, numbers with units, look-alikes; and the walk over JSON. */
#include "calib/readers/text/json_cursor.h"
#include "tests/unit/evidence_check.h"

static ptrdiff_t front(const char *a, const char *b)
{
    return k25_front_match(k25_span_of(a), k25_span_of(b));
}

static void fronts(void **state)
{
    (void)state;
    assert_int_equal(front("", "anything"), 0);
    assert_int_equal(front("(Worker_TP3 pid=1) ", "(Worker_TP3 pid=1) x"), 19);
    assert_int_equal(front("(Worker_TP3 pid=1) ", "(Worker_TP2 pid=1) x"), -1);
    assert_int_equal(front("[1,0]<stdout>:", "[1,0]<stdout>:# x"), 14);
    assert_int_equal(front("[1,0]<stdout>:", "[1,1]<stdout>:# x"), -1);
    /* dates and times move on, tags do not */
    assert_int_equal(front("INFO 11-05 13:22:49 [a.py:7] ", "INFO 11-05 13:22:50 [a.py:7] x"), 29);
    assert_int_equal(front("INFO 11-05 13:22:49 [a.py:7] ", "INFO 11-05 9:22:50.125 [a.py:7] x"), 32);
    assert_int_equal(front("INFO 11-05 13:22:49 [a.py:7] ", "INFO 11-05 13:22:49 [b.py:7] x"), -1);
    assert_int_equal(front("[2026-03-12 14:17:56] ", "[2027-01-02 00:00:01] x"), 22);
    assert_int_equal(front("long front ", "long"), -1);
    assert_int_equal(front("a ", "a"), -1);
    struct k25_arena arena = {0};
    assert_string_equal(k25_front_tag(&arena, k25_span_of("\x1b[1;36m(Core pid=1)\x1b[0;0m  INFO 11-05 13:22:49 ")),
                        "(Core pid=1) INFO");
    assert_string_equal(k25_front_tag(&arena, k25_span_of("")), "");
    k25_arena_free(&arena);
}

static void units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double ns;
    } good[] = {{"1.389s", 1.389e9}, {"12.5 ms", 12.5e6},    {"845 ns", 845},        {"3.1us", 3100},
                {"0.000us", 0},      {"56 \xce\xbcs", 56e3}, {"56 \xc2\xb5s", 56e3}, {"-4.5us", -4500}};
    static const char *const bad[] = {"1.5", "us", "1.5 m", "1.2.3us", "1e5", "", "inf us"};
    double ns;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(k25_span_duration(k25_span_of(good[i].text), &ns));
        assert_near(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(k25_span_duration(k25_span_of(bad[i]), &ns));
    assert_true(k25_name_cut(k25_span_of("void foo<...")));
    assert_true(k25_name_cut(k25_span_of("void foo<\xe2\x80\xa6")));
    assert_false(k25_name_cut(k25_span_of("..")));
}

static void lines(void **state)
{
    (void)state;
    const char text[] = "\xef\xbb\xbf"
                        "a\r\n\nb\rc\n";
    struct k25_evidence evidence = {.file = "t", .text = text, .size = sizeof text - 1};
    struct k25_span line;
    static const char *const expected[] = {"a", "", "b", "c"};
    assert_true(k25_evidence_open(&evidence, "text"));
    for (int i = 0; i < 4; i++) {
        assert_true(k25_evidence_next(&evidence, &line));
        assert_true(k25_span_is(line, expected[i]));
        assert_int_equal(evidence.line, i + 1);
    }
    assert_false(k25_evidence_next(&evidence, &line));
}

static void look_alikes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *message;
    } cases[] = {
        {"", 0, "t: the file is empty, expected x"},
        {" \n", 2, "t: the file is empty, expected x"},
        {"version https://git-lfs.github.com/spec/v1\n", 43,
         "t: a git-lfs pointer, fetch the real file (git lfs pull), expected x"},
        {"<!DOCTYPE html>", 15, "t: an HTML page, not the file itself, expected x"},
        {"SQLite format 3\0", 16, "t: an SQLite database (k25sim inspect reads those of nsys), expected x"},
        {"\0QDSTRM\0", 8, "t: an nsys stream that was never finalised (qdstrm), expected x"},
        {"\xff\xfe"
         "a\0",
         4, "t: text in UTF-16, save it as UTF-8, expected x"},
        {"abc\0def", 7, "t: a binary file, expected x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_evidence evidence = {.file = "t", .text = cases[i].text, .size = cases[i].size, .error = &error};
        assert_false(k25_evidence_open(&evidence, "x"));
        assert_bad_input(error, cases[i].message);
    }
}

static void faults(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_left_out left_out = {0};
    struct k25_evidence evidence = {.file = "t", .error = &error, .left_out = &left_out};
    struct k25_span line = k25_span_of("\xce\xbcs bad");
    assert_false(k25_evidence_fault(&evidence, 7, line, line.text + 4, "no"));
    assert_bad_input(error, "t:7:4: no"); /* columns count characters */
    evidence.options.lenient = true;
    assert_true(k25_evidence_fault(&evidence, 7, line, line.text, "first"));
    assert_true(k25_evidence_fault(&evidence, 8, line, line.text, "second"));
    assert_int_equal(left_out.count, 2);
    assert_string_equal(left_out.first, "t:7:1: first");
}

static void walks_json(void **state)
{
    (void)state;
    const char text[] = " {\"a\": [1, {\"b\": \"x\\\"]\"}, []], \"c\" : -Infinity,\n\"d\":\"\\u00e9\", \"e\": {} } x";
    struct k25_json json = {text, sizeof text - 1, 0, NULL};
    struct k25_span key;
    struct k25_json_value value = {0};
    double number;
    assert_int_equal(k25_json_peek(&json), '{');
    assert_true(k25_json_enter(&json, '{'));
    assert_true(k25_json_key(&json, &key) && k25_span_is(key, "a") && k25_json_skip(&json));
    assert_true(k25_json_key(&json, &key) && k25_span_is(key, "c") && k25_json_scalar(&json, &value));
    assert_true(k25_json_real(value, &number) && isnan(number) && !value.quoted);
    assert_true(k25_json_key(&json, &key) && k25_json_scalar(&json, &value) && value.quoted);
    assert_true(k25_span_is(value.text, "\\u00e9"));
    assert_true(k25_json_key(&json, &key) && k25_json_enter(&json, '{'));
    assert_false(k25_json_key(&json, &key));
    assert_false(k25_json_key(&json, &key));
    assert_null(json.fault);
    assert_int_equal(k25_json_peek(&json), 'x');
}

static void stops_at_damage(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
        size_t at;
    } cases[] = {
        {"[1, 2", "the text ends here: cut", 5},    {"[1 2]", "expected ',' or the closing bracket", 3},
        {"[\"ab", "a string that never closes", 1}, {"[1, ]", "expected a value", 4},
        {"[[[[", "the text ends here: cut", 4},     {"{", "expected '['", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_json json = {cases[i].text, strlen(cases[i].text), 0, NULL};
        if (k25_json_enter(&json, '[')) {
            while (k25_json_entry(&json) && k25_json_skip(&json))
                continue;
        }
        assert_string_equal(json.fault, cases[i].fault);
        assert_int_equal(json.at, cases[i].at);
    }
}

/* Skipping needs no stack, however deep. */
static void skips_deep(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    char *text = malloc(2 * DEPTH);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    struct k25_json json = {text, 2 * DEPTH, 0, NULL};
    assert_true(k25_json_skip(&json));
    assert_int_equal(json.at, 2 * DEPTH);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fronts),          cmocka_unit_test(units),      cmocka_unit_test(lines),
        cmocka_unit_test(look_alikes),     cmocka_unit_test(faults),     cmocka_unit_test(walks_json),
        cmocka_unit_test(stops_at_damage), cmocka_unit_test(skips_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
