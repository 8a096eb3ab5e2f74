/* What the tests of base/ share: cmocka, messages compared word by word, a folder of their own, fixed chance. */
#ifndef K25_TESTS_BASE_CHECK_H
#define K25_TESTS_BASE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "tests/unit/number_check.h"

#define assert_error(error, expected_status, expected_message)                                                         \
    do {                                                                                                               \
        assert_string_equal((error).message, expected_message);                                                        \
        assert_int_equal((error).status, expected_status);                                                             \
    } while (0)

/* xorshift64: the same sequence everywhere. */
static inline uint64_t chance(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Makes a fresh folder in /tmp the working directory, so that messages hold short names. */
static inline int enter_folder(void **state)
{
    (void)state;
    char name[] = "/tmp/k25_base_XXXXXX";
    return mkdtemp(name) == NULL || chdir(name) != 0;
}

/* And takes it away again. */
static inline int leave_folder(void **state)
{
    (void)state;
    char folder[64], command[96];
    if (getcwd(folder, sizeof folder) == NULL || strncmp(folder, "/tmp/k25_base_", 14) != 0 || chdir("/") != 0) {
        return 1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static inline void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

#endif
