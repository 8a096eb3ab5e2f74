/* Numbers compared in double precision. cmocka's assert_float_equal rounds both numbers and the tolerance to float,
 * and lets pass whatever is within 1.2e-7 of the larger one: it is poisoned here. */
#ifndef K25_TESTS_NUMBER_CHECK_H
#define K25_TESTS_NUMBER_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef assert_float_equal
#undef assert_float_not_equal
#pragma GCC poison assert_float_equal assert_float_not_equal

/* Within `tolerance` of `expected`, in the unit of both; 0 asks for the same number. */
#define assert_within(value, expected, tolerance) check_within(value, expected, tolerance, #value, __FILE__, __LINE__)

static inline void check_within(double value, double expected, double tolerance, const char *text, const char *file,
                                int line)
{
    if (value == expected || fabs(value - expected) <= tolerance) /* infinities are equal, too */
        return;
    print_error("%s is %.17g, which is not within %g of %.17g\n", text, value, tolerance, expected);
    _fail(file, line);
}

/* Within the share `relative` of `expected`. */
#define assert_close(value, expected, relative) check_close(value, expected, relative, #value, __FILE__, __LINE__)

static inline void check_close(double value, double expected, double relative, const char *text, const char *file,
                               int line)
{
    check_within(value, expected, fabs(expected) * relative, text, file, line);
}

#endif
