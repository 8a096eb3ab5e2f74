/* Any bytes at all as a scenario, and as an override of a good one: a question that has a finite answer, or an
 * error that says something. The reader takes a path, so the bytes go through a file in memory. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scenarios/library/scenario.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_scenario scenario; /* too large for a stack */
static struct k25_prediction prediction;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void answer(void)
{
    struct k25_error error = {0};
    struct k25_question question;
    if (!k25_scenario_question(&scenario, &question, &error)) {
        require((error.status == K25_BAD_INPUT || error.status == K25_NEGATIVE) && error.message[0] != '\0');
        return;
    }
    k25_predict(&question, &scenario.params, &prediction);
    require(isfinite(prediction.step) && prediction.step > 0 && prediction.gpu_busy > 0);
    require(isfinite(prediction.memory.pool_tokens) && prediction.memory.pool_tokens >= 0);
}

static void load(const char *name, const char *const *set, size_t count)
{
    struct k25_error error = {0};
    if (k25_scenario_load(&library, name, set, count, &scenario, &error))
        answer();
    else
        require((error.status == K25_BAD_INPUT || error.status == K25_RESOURCE) && error.message[0] != '\0');
    k25_scenario_free(&scenario);
}

/* References to paths would read whatever file the fuzzer thinks of; names of the library are enough. */
static bool names_a_path(const uint8_t *data, size_t size)
{
    return memchr(data, '/', size) != NULL || memmem(data, size, ".yaml", 5) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], text[512];
    if (names_a_path(data, size))
        return 0;
    int file = memfd_create("scenario", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    load(path, NULL, 0);
    close(file);
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    const char *set = text;
    load("tp8_bs1", &set, 1);
    return 0;
}
