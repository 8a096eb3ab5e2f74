/* Near names, numbers in and out, in any locale. */
#include <locale.h>
#include <math.h>

#include "base/text.h"
#include "tests/unit/base_check.h"

static const char *near(const char *word, const char *a, const char *b)
{
    const char *names[] = {a, b, NULL};
    return k25_nearest(word, names);
}

static void nearest_by_each_edit(void **state)
{
    (void)state;
    assert_string_equal(near("tpp", "pp", "tp"), "pp"); /* both one edit: the first */
    assert_string_equal(near("tpp", "tp", "pp"), "tp");
    assert_string_equal(near("batc", "batch", "x"), "batch");
    assert_string_equal(near("bacth", "batch", "bath"), "batch"); /* a swap is one edit, and bath one too */
    assert_string_equal(near("fp9", "bf16", "fp8"), "fp8");
    assert_string_equal(near("KV-DType", "kv", "kv_dtype"), "kv_dtype");
    assert_string_equal(near("", "", "x"), "");
}

/* What somebody began to type is meant before what takes fewer edits. */
static void nearest_completes(void **state)
{
    (void)state;
    const char *scenarios[] = {"kimi-k25", "kimi-k26-v3", "kimi-k26-v4", "kimi-k26-v4-long", "tp8_bs1", NULL};
    assert_string_equal(k25_nearest("kimi-k26", scenarios), "kimi-k26-v4"); /* one edit from kimi-k25 */
    assert_string_equal(k25_nearest("KIMI_K26", scenarios), "kimi-k26-v4");
    assert_string_equal(k25_nearest("kimi-k25", scenarios), "kimi-k25");
    assert_string_equal(k25_nearest("kimi-k24", scenarios), "kimi-k25");
    assert_string_equal(k25_nearest("kimi-k26-v4-l", scenarios), "kimi-k26-v4-long");
    assert_string_equal(near("rec", "red", "recommend"), "recommend");
    assert_string_equal(near("set", "settings", "set"), "set");
    assert_null(near("r", "recommend", "x")); /* one letter begins too much */
}

static void nearest_refuses_what_was_not_meant(void **state)
{
    (void)state;
    assert_null(near("xyz", "tp", "batch"));
    assert_null(near("ab", "tp", "cd")); /* two edits, but nothing in common */
    assert_null(near("abcdef", "abc", "xyzdef"));
    assert_string_equal(near("abcdefghi", "abcdef", "x"), "abcdef"); /* 9 / 3 = 3 edits */
    const char *none[] = {NULL};
    assert_null(k25_nearest("tp", none));
    char longer[100];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(near(longer, longer, "tp"));
    assert_null(near("tp", longer, longer));
}

static void nearest_is_symmetric_and_finds_edited_names(void **state)
{
    (void)state;
    uint64_t seed = 25;
    for (int round = 0; round < 20000; round++) {
        char a[16], b[16];
        size_t length = 6 + chance(&seed) % 8;
        for (size_t i = 0; i < length; i++) {
            a[i] = (char)('a' + chance(&seed) % 4);
        }
        a[length] = '\0';
        memcpy(b, a, sizeof a);
        for (int edit = 0; edit < 2; edit++) {
            size_t at = chance(&seed) % (length - 1);
            if (chance(&seed) % 2) {
                b[at] = (char)('a' + chance(&seed) % 4);
            } else if (edit == 0) { /* a swap after another edit may not be one edit of the alignment */
                char first = b[at];
                b[at] = b[at + 1];
                b[at + 1] = first;
            }
        }
        assert_ptr_equal(near(a, b, "zzzzzzzzzzzzzzzzzzzz"), near(a, b, b));
        assert_non_null(near(a, b, "zzzzzzzzzzzzzzzzzzzz"));
        assert_non_null(near(b, a, "zzzzzzzzzzzzzzzzzzzz"));
        char c[16];
        for (size_t i = 0; i < length; i++) {
            c[i] = (char)('a' + chance(&seed) % 4);
        }
        c[length] = '\0';
        assert_int_equal(near(a, c, c) != NULL, near(c, a, a) != NULL);
    }
}

static void did_you_mean(void **state)
{
    (void)state;
    const char *names[] = {"tp", "pp", NULL};
    char out[64];
    assert_string_equal(k25_did_you_mean("tpp", names, out, sizeof out), ", did you mean 'tp'?");
    assert_string_equal(k25_did_you_mean("zebra", names, out, sizeof out), "");
    char tiny[5];
    assert_string_equal(k25_did_you_mean("tpp", names, tiny, sizeof tiny), ", di");
}

static void reals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},      {"-1.5", -1.5}, {"+2", 2},       {".5", 0.5},   {"5.", 5},
                {"1e3", 1000}, {"1E-3", 1e-3}, {"1.5e+2", 150}, {"1e-400", 0}, {"007", 7}};
    static const char *const bad[] = {"",   " 1", "1 ", "1,5", "0x10", "nan", ".nan",  "inf",   ".inf", "-inf",
                                      "1e", "e1", ".",  "+",   "--1",  "1_0", "1e999", "1.2.3", "1f",   "1e+"};
    double value;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(k25_parse_real(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value = 42;
        assert_false(k25_parse_real(bad[i], &value));
        assert_true(value == 42);
    }
}

static void integers(void **state)
{
    (void)state;
    long long value;
    assert_true(k25_parse_int("4", &value) && value == 4);
    assert_true(k25_parse_int("-3", &value) && value == -3);
    assert_true(k25_parse_int("+3", &value) && value == 3);
    assert_true(k25_parse_int("010", &value) && value == 10);
    assert_true(k25_parse_int("9223372036854775807", &value) && value == INT64_MAX);
    assert_true(k25_parse_int("-9223372036854775808", &value) && value == INT64_MIN);
    static const char *const bad[] = {"", "4.0", "1_000", "1e3", " 4", "4 ", "+", "-", "0x4", "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value = 42;
        assert_false(k25_parse_int(bad[i], &value));
        assert_int_equal(value, 42);
    }
}

static void truths(void **state)
{
    (void)state;
    bool value = false;
    assert_true(k25_parse_bool("true", &value) && value);
    assert_true(k25_parse_bool("false", &value) && !value);
    static const char *const bad[] = {"", "yes", "True", "1", "true ", "on"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(k25_parse_bool(bad[i], &value));
    }
}

static void bytes_for_people(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0 B"},          {999, "999 B"},       {999.6, "1.0 kB"},   {1000, "1.0 kB"},
                 {71.3e9, "71.3 GB"}, {999949, "999.9 kB"}, {999950, "1.0 MB"},  {-1.5e9, "-1.5 GB"},
                 {2e15, "2.0 PB"},    {3e18, "3.0 EB"},     {5e21, "5000.0 EB"}, {1e40, "1e+22 EB"}};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(k25_text_bytes(cases[i].value, out, sizeof out), cases[i].text);
    }
    k25_text_bytes(NAN, out, sizeof out);
    k25_text_bytes(INFINITY, out, sizeof out);
}

static void counts_for_people(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.2, "0"},
                 {7, "7"},
                 {999, "999"},
                 {1000, "1,000"},
                 {491344, "491,344"},
                 {-1234567, "-1,234,567"},
                 {999999.6, "1,000,000"},
                 {INFINITY, "inf"}};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(k25_text_count(cases[i].value, out, sizeof out), cases[i].text);
    }
    assert_string_equal(k25_text_count(491344, out, 5), "491,");
    char all[500];
    assert_int_equal(strlen(k25_text_count(1e308, all, sizeof all)), 309 + 102);
}

static void reals_out_and_in(void **state)
{
    (void)state;
    char out[40];
    assert_string_equal(k25_text_real(0.1, out, sizeof out), "0.1");
    assert_string_equal(k25_text_real(1024, out, sizeof out), "1024");
    assert_string_equal(k25_text_real(-1e-9, out, sizeof out), "-1e-09");
    assert_string_equal(k25_text_real(0.1 + 0.2, out, sizeof out), "0.30000000000000004");
    uint64_t seed = 25;
    for (int round = 0; round < 20000; round++) {
        uint64_t bits = chance(&seed);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            assert_true(k25_parse_real(k25_text_real(value, out, sizeof out), &back));
            assert_true(back == value);
        }
    }
}

/* Debian's containers have no such locale: set LOCPATH to a folder made with `localedef -i de_DE -f UTF-8`. */
static void a_decimal_comma_does_not_matter(void **state)
{
    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL) {
        print_message("SKIPPED: no locale with a decimal comma is installed (de_DE.UTF-8, fr_FR.UTF-8)\n");
        skip();
    }
    char out[64];
    snprintf(out, sizeof out, "%.1f", 1.5);
    assert_string_equal(out, "1,5");
    reals(state);
    bytes_for_people(state);
    counts_for_people(state);
    reals_out_and_in(state);
    setlocale(LC_ALL, "C");
}

static void copies(void **state)
{
    (void)state;
    char *copy = k25_copy("text");
    assert_string_equal(copy, "text");
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_by_each_edit),
        cmocka_unit_test(nearest_completes),
        cmocka_unit_test(nearest_refuses_what_was_not_meant),
        cmocka_unit_test(nearest_is_symmetric_and_finds_edited_names),
        cmocka_unit_test(did_you_mean),
        cmocka_unit_test(reals),
        cmocka_unit_test(integers),
        cmocka_unit_test(truths),
        cmocka_unit_test(bytes_for_people),
        cmocka_unit_test(counts_for_people),
        cmocka_unit_test(reals_out_and_in),
        cmocka_unit_test(a_decimal_comma_does_not_matter),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
