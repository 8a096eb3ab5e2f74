/* Any bytes at all into the table reader: a full rectangle of cells or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_csv *csv = k25_csv_parse((const char *)data, size, "fuzz.csv", &error);
    if (csv == NULL) {
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.csv:", 9) == 0);
        return 0;
    }
    size_t total = 0;
    require(csv->columns > 0);
    for (size_t i = 0; i < csv->columns; i++) {
        int first = k25_csv_column(csv, csv->names[i]);
        require(first >= 0 && (size_t)first <= i);
        total += strlen(csv->names[i]);
    }
    for (size_t row = 0; row < csv->rows; row++) {
        require(csv->lines[row] > (row == 0 ? 1 : csv->lines[row - 1]));
        for (size_t i = 0; i < csv->columns; i++) {
            total += strlen(k25_csv_cell(csv, row, (int)i));
        }
    }
    require(total <= size);
    k25_csv_free(csv);
    return 0;
}
