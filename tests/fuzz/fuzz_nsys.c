/* Any bytes at all into the reader of kernel summaries: totals that fit their averages, or an error that says
 * something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/readers/nsys/nsys.h"

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
    struct k25_nsys *strict = k25_nsys_parse((const char *)data, size, "fuzz.txt", NULL, &error);
    if (strict == NULL)
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    struct k25_nsys *all = k25_nsys_parse((const char *)data, size, "fuzz.txt", &options, &error);
    if (all == NULL)
        require(strict == NULL && error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    require(strict == NULL || all->left_out.count == 0);
    for (size_t i = 0; all != NULL && i < all->tables; i++) {
        const struct k25_nsys_table *table = &all->table[i];
        require(table->rows > 0);
        for (size_t j = 0; j < table->rows; j++)
            require(table->row[j].name != NULL && table->row[j].instances > 0 && table->row[j].total_ns >= 0);
    }
    k25_nsys_free(strict);
    k25_nsys_free(all);
    return 0;
}
