/* Any bytes at all into the reader of nccl-tests output: rows with a time, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/readers/nccl/nccl_tests.h"

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
    struct k25_nccl_tests *strict = k25_nccl_tests_parse((const char *)data, size, "fuzz.txt", NULL, &error);
    if (strict == NULL)
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    struct k25_nccl_tests *all = k25_nccl_tests_parse((const char *)data, size, "fuzz.txt", &options, &error);
    if (all == NULL)
        require(strict == NULL && error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    require(strict == NULL || all->left_out.count == 0);
    for (size_t i = 0; all != NULL && i < all->runs; i++) {
        const struct k25_nccl_run *run = &all->run[i];
        require(run->rows > 0 && run->op != NULL && run->ranks >= 0);
        for (size_t j = 0; j < run->rows; j++) {
            const struct k25_nccl_row *row = &run->row[j];
            require(row->out_of_place.us > 0 || row->in_place.us > 0);
            require(row->type != NULL && row->redop != NULL && row->root >= -1 && !row->wrong);
        }
    }
    k25_nccl_tests_free(strict);
    k25_nccl_tests_free(all);
    return 0;
}
