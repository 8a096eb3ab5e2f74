/* Any bytes at all into the reader of load tests: runs with completed requests, or an error that says something.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/readers/bench/bench.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Once strict, once lenient: what strict takes, lenient takes without leaving anything out. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct k25_evidence_options options = {.lenient = true};
    struct k25_error error = {0};
    struct k25_bench *strict = k25_bench_parse((const char *)data, size, "fuzz.txt", NULL, &error);
    if (strict == NULL)
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    struct k25_bench *all = k25_bench_parse((const char *)data, size, "fuzz.txt", &options, &error);
    if (all == NULL)
        require(strict == NULL && error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    require(strict == NULL || all->left_out.count == 0);
    for (size_t i = 0; all != NULL && i < all->runs; i++) {
        const struct k25_bench_run *run = &all->run[i];
        require(run->completed > 0 && run->model != NULL && run->backend != NULL && run->line > 0);
        require(!(run->duration <= 0) && !(run->tpot.mean <= 0));
    }
    k25_bench_free(strict);
    k25_bench_free(all);
    return 0;
}
