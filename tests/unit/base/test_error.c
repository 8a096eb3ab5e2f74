/* Messages: position, truncation, hostile bytes. */
#include "tests/unit/base_check.h"

static void fail_fills_and_returns_false(void **state)
{
    (void)state;
    struct k25_error error = {0};
    assert_false(k25_fail(&error, K25_RESOURCE, "no %s, %d times", "memory", 3));
    assert_error(error, K25_RESOURCE, "no memory, 3 times");
    assert_false(k25_fail(NULL, K25_RESOURCE, "nobody listens"));
    assert_false(k25_fail_at(NULL, "f", 1, 1, "nobody listens"));
}

static void fail_at_says_where(void **state)
{
    (void)state;
    struct k25_error error;
    assert_false(k25_fail_at(&error, "plan.yaml", 9, 3, "unknown key '%s'", "tpp"));
    assert_error(error, K25_BAD_INPUT, "plan.yaml:9:3: unknown key 'tpp'");
    k25_fail_at(&error, "plan.yaml", 0, 3, "x");
    assert_string_equal(error.message, "plan.yaml: x");
    k25_fail_at(&error, "plan.yaml", 4, 0, "x");
    assert_string_equal(error.message, "plan.yaml:4: x");
    k25_fail_at(&error, "", 4, 1, "x");
    assert_string_equal(error.message, "x");
    k25_fail_at(&error, NULL, 4, 1, "x");
    assert_string_equal(error.message, "x");
}

static void own_message_as_argument(void **state)
{
    (void)state;
    struct k25_error error;
    k25_fail(&error, K25_BAD_INPUT, "inner");
    k25_fail(&error, K25_BAD_INPUT, "outer: %s", error.message);
    assert_string_equal(error.message, "outer: inner");
}

static void too_long_is_cut_at_a_character(void **state)
{
    (void)state;
    char text[3000];
    struct k25_error error;
    for (int lead = 0; lead < 3; lead++) { /* the euro sign has three bytes: every phase of the cut */
        memset(text, 'a', sizeof text);
        for (size_t i = (size_t)lead; i + 4 < sizeof text; i += 3) {
            memcpy(text + i, "\xe2\x82\xac", 3);
        }
        text[sizeof text - 1] = '\0';
        k25_fail(&error, K25_BAD_INPUT, "%s", text);
        size_t length = strlen(error.message);
        assert_true(length < sizeof error.message && length > sizeof error.message - 6);
        assert_string_equal(error.message + length - 3, "...");
        assert_int_equal((length - 3 - (size_t)lead) % 3, 0);
    }
    memset(text, 'f', sizeof text - 1);
    k25_fail_at(&error, text, 1, 1, "x");
    assert_string_equal(error.message + sizeof error.message - 4, "...");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    struct k25_error error;
    k25_fail(&error, K25_BAD_INPUT, "a\x1b[31m\r\tb\x7f\nsecond line");
    assert_string_equal(error.message, "a?[31m??b?\nsecond line");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_and_returns_false),
        cmocka_unit_test(fail_at_says_where),
        cmocka_unit_test(own_message_as_argument),
        cmocka_unit_test(too_long_is_cut_at_a_character),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
