/* What the tests of the evidence readers share: cmocka, messages compared word by word, the folder of real files.
 */
#ifndef K25_TESTS_EVIDENCE_CHECK_H
#define K25_TESTS_EVIDENCE_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "calib/readers/text/evidence.h"
#include "tests/unit/number_check.h"

#define assert_bad_input(error, expected_message)                                                                      \
    do {                                                                                                               \
        assert_string_equal((error).message, expected_message);                                                        \
        assert_int_equal((error).status, K25_BAD_INPUT);                                                               \
    } while (0)

#define assert_says(error, words)                                                                                      \
    do {                                                                                                               \
        if (strstr((error).message, words) == NULL)                                                                    \
            fail_msg("'%s' does not say '%s'", (error).message, words);                                                \
        assert_int_equal((error).status, K25_BAD_INPUT);                                                               \
    } while (0)

#define assert_near(value, expected)                                                                                   \
    do {                                                                                                               \
        double got_ = (value), want_ = (expected);                                                                     \
        if (!(fabs(got_ - want_) <= 1e-9 * fabs(want_)))                                                               \
            fail_msg("%s: %.12g, expected %.12g", #value, got_, want_);                                                \
    } while (0)

static const struct k25_evidence_options lenient = {.lenient = true};

#endif
