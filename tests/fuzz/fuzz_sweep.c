/* Any bytes at all as a sweep, as an expression, and as the state of one: a grid whose points have rows, or an
 * error that says something. The reader takes a path, so the bytes go through a file in memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scenarios/sweep/expression.h"
#include "scenarios/sweep/run.h"
#include "scenarios/sweep/sweep.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_sweep sweep; /* too large for a stack, as the others */
static struct k25_sweep_layout layout, again;
static struct k25_sweep_store store;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_told(const struct k25_error *error)
{
    return (error->status == K25_BAD_INPUT || error->status == K25_RESOURCE) && error->message[0] != '\0';
}

/* The first points, or the last ones: counted in full, and what was written of the layout is read again. */
static void run(enum k25_sweep_format format, bool last)
{
    struct k25_error error = {0};
    struct k25_sweep_options options = {.chunk = 3};
    size_t size;
    uint64_t few = sweep.points < 20 ? sweep.points : 20, from = last ? sweep.points - few : 0;
    require(k25_sweep_layout_make(&sweep, format, "fuzz", &layout, &error));
    require(k25_sweep_layout_parse(layout.text, "layout", &size, &again, &error) && size == strlen(layout.text));
    require(again.columns == layout.columns && again.groups == layout.groups && strcmp(again.head, layout.head) == 0);
    require(k25_sweep_store_stream(&store, &layout, -1, from, from + few, &error));
    if (k25_sweep_run(&sweep, &layout, &options, &store, from, from + few, &error)) {
        uint64_t sum = store.summary.counts.evaluated;
        for (size_t i = 0; i < store.summary.counts.reasons; i++)
            sum += store.summary.counts.reason[i].count;
        for (size_t i = 0; i < sweep.constraints; i++)
            sum += sweep.constraint[i].early ? store.summary.counts.rejected[i] : 0;
        require(store.summary.counts.points == few && sum == few &&
                store.summary.counts.rows <= store.summary.counts.evaluated);
    } else {
        require(is_told(&error));
    }
    k25_sweep_store_close(&store);
    k25_sweep_layout_free(&layout);
    k25_sweep_layout_free(&again);
}

static void load(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    char path[64];
    int file = memfd_create("sweep", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (k25_sweep_load(&library, path, &sweep, &error)) {
        run(K25_SWEEP_CSV, false);
        run(K25_SWEEP_JSONL, true);
    } else {
        require(is_told(&error));
    }
    k25_sweep_free(&sweep);
    close(file);
}

static void compile(const char *text)
{
    static const char *const words[] = {"bf16", "fp8", NULL};
    static const double value = 3;
    const struct k25_symbol symbols[] = {{"tpot_ms", NULL, &value}, {"plan.kv_dtype", words, &value}, {0}};
    struct k25_error error = {0};
    struct k25_expression *e = k25_expression_compile(text, symbols, NULL, "text", 1, 1, &error);
    require(e != NULL || is_told(&error));
    if (e != NULL)
        (void)k25_expression_value(e);
    k25_expression_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    char text[2048];
    /* References to paths would read whatever file the fuzzer thinks of; names of the library are enough. */
    if (memchr(data, '/', size) == NULL && memmem(data, size, ".yaml", 5) == NULL)
        load(data, size);
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    compile(text);
    if (!k25_sweep_layout_parse(text, "state", &size, &again, &error))
        require(is_told(&error));
    k25_sweep_layout_free(&again);
    return 0;
}
