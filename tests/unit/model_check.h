/* What the tests of the architecture, weights and import files share. */
#ifndef K25_TESTS_MODEL_CHECK_H
#define K25_TESTS_MODEL_CHECK_H

#include <glob.h>
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
#include "tests/unit/number_check.h"

#define ZOO K25_SOURCE_DIR "/model/zoo/"

/* Every architecture of the zoo, with its schemes. */
static const struct {
    const char *name;
    const char *schemes[4];
} zoo[] = {
    {"kimi-k2.5", {"int4_g32", "nvfp4"}},
    {"kimi-k2.6", {"int4_g32", "int4_g32_fp8_act"}},
    {"kimi-k2.7-code", {"int4_g32"}},
    {"glm-5", {"bf16", "fp8", "nvfp4"}},
    {"glm-5.1", {"bf16", "fp8", "nvfp4"}},
    {"glm-5.2", {"bf16", "mxfp4", "nvfp4"}},
    {"minimax-m2.5", {"fp8", "nvfp4", "awq_int4"}},
    {"qwen3.5-397b-a17b", {"bf16", "nvfp4"}},
    {"qwen3.5-122b-a10b", {"bf16", "nvfp4"}},
    {"deepseek-v3", {"fp8"}},
    {"qwen3-235b-a22b", {"bf16", "fp8"}},
    {"llama-3.1-70b", {"bf16"}},
};
#define ZOO_SIZE (sizeof zoo / sizeof zoo[0])

/* Makes a fresh folder in /tmp the working directory, so that messages hold short names. */
static inline int enter_folder(void **state)
{
    char name[] = "/tmp/k25_model_XXXXXX";
    if (!mkdtemp(name) || chdir(name) != 0)
        return 1;
    *state = strdup(name);
    return *state == NULL;
}

static inline int leave_folder(void **state)
{
    glob_t found;
    if (glob("*", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
    bool removed = chdir("/") == 0 && rmdir(*state) == 0;
    free(*state);
    return !removed;
}

static inline void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* `text` with its first `from` replaced by `to`; the caller frees. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t size = strlen(text) + strlen(to) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

#endif
