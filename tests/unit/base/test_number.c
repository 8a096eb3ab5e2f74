/* Numbers as text: the bytes of printf, whatever the number. */
#include "tests/unit/base_check.h"

#include <math.h>

#include "base/number.h"

static void expect_six(double value)
{
    char out[K25_NUMBER_SIZE + 1], expected[64];
    double rounded = 0;
    size_t length = k25_write_six(value, out, &rounded);
    out[length] = '\0';
    snprintf(expected, sizeof expected, "%.6g", value);
    if (strcmp(out, expected) != 0)
        fail_msg("%.17g: '%s', printf writes '%s'", value, out, expected);
    if (rounded != strtod(expected, NULL))
        fail_msg("%.17g: '%s' read as %.17g", value, out, rounded);
}

static void edges_of_six_digits(void **state)
{
    (void)state;
    static const double values[] = {0,
                                    1,
                                    9.5,
                                    10,
                                    0.1,
                                    0.3,
                                    123456,
                                    1234565,
                                    1234575,
                                    999999.5,
                                    999999.4999999999,
                                    9999995,
                                    99999.95,
                                    1e5,
                                    1e6,
                                    1e-4,
                                    1e-5,
                                    9.999995e-5,
                                    9.9999949999e-5,
                                    0.00012345650000000001,
                                    1.0000005,
                                    1.5,
                                    2.5e-17,
                                    1e15,
                                    1e16,
                                    1e22,
                                    1e23,
                                    1e27,
                                    1e28,
                                    1e100,
                                    1.7976931348623157e308,
                                    2.2250738585072014e-308,
                                    5e-324,
                                    1e-17,
                                    1e-18,
                                    100000.5,
                                    100001.5,
                                    12345.65,
                                    0.5,
                                    262144.5,
                                    262145.5,
                                    8388608.5,
                                    4503599627370497.5,
                                    9007199254740993.0,
                                    18446744073709551616.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        expect_six(values[i]);
        expect_six(-values[i]);
        expect_six(nextafter(values[i], 0));
        expect_six(nextafter(values[i], INFINITY) < INFINITY ? nextafter(values[i], INFINITY) : 1);
    }
}

/* Every power of ten and its neighbours: where the exponent is guessed. */
static void powers_of_ten(void **state)
{
    (void)state;
    for (int power = -320; power <= 308; power++) {
        char text[32];
        snprintf(text, sizeof text, "1e%d", power);
        double value = strtod(text, NULL);
        expect_six(value);
        expect_six(nextafter(value, 0));
        expect_six(nextafter(value, INFINITY));
        expect_six(value * 9.9999949999999);
        expect_six(value * 9.999995);
        expect_six(value * 3.1234565);
    }
}

static void random_numbers(void **state)
{
    (void)state;
    uint64_t seed = 20260729;
    for (int i = 0; i < 1000000; i++) {
        uint64_t bits = chance(&seed);
        double any;
        memcpy(&any, &bits, sizeof any);
        if (isfinite(any))
            expect_six(any);
        expect_six((double)(bits % 100000000) / (double)(1 + chance(&seed) % 100000)); /* what a prediction has */
        expect_six((double)(bits >> chance(&seed) % 60));                              /* whole */
        expect_six((double)(bits % 20000000) / 8);                                     /* halves of the last digit */
    }
}

static void whole_numbers(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 1, 9, 10, 99, 100, 101, 65536, 999999999, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    char out[K25_NUMBER_SIZE + 1], expected[64];
    uint64_t seed = 1;
    for (size_t i = 0; i < 100000; i++) {
        int64_t value = i < sizeof values / sizeof *values ? values[i] : (int64_t)chance(&seed) >> chance(&seed) % 64;
        out[k25_write_whole(value, out)] = '\0';
        snprintf(expected, sizeof expected, "%lld", (long long)value);
        assert_string_equal(out, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_six_digits),
        cmocka_unit_test(powers_of_ten),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
