/* Any bytes at all into the reader of key_averages tables: rows whose sums hold, or an error that says something.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/readers/profiler/table.h"

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
    struct k25_profiler_tables *strict = k25_profiler_tables_parse((const char *)data, size, "fuzz.txt", NULL, &error);
    if (strict == NULL)
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    struct k25_profiler_tables *all = k25_profiler_tables_parse((const char *)data, size, "fuzz.txt", &options, &error);
    if (all == NULL)
        require(strict == NULL && error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
    require(strict == NULL || all->left_out.count == 0);
    for (size_t i = 0; all != NULL && i < all->tables; i++) {
        const struct k25_profiler_table *table = &all->table[i];
        double kernels = 0;
        require(table->rows > 0 && table->tag != NULL);
        for (size_t j = 0; j < table->rows; j++) {
            require(table->row[j].name[0] != '\0' || table->layerwise);
            require(table->row[j].calls >= -1 && table->row[j].self_device_ns >= -1);
            if (table->row[j].level == K25_LEVEL_KERNEL && table->row[j].self_device_ns > 0)
                kernels += (double)table->row[j].self_device_ns;
        }
        require((double)table->kernel_ns >= 0.999 * kernels && (double)table->kernel_ns <= 1.001 * kernels);
    }
    k25_profiler_tables_free(strict);
    k25_profiler_tables_free(all);
    return 0;
}
