/* Fast number formatting, for tables of millions of rows. The bytes are those of printf in the "C" locale. */
#ifndef K25_BASE_NUMBER_H
#define K25_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define K25_NUMBER_SIZE 32 /* bytes that `out` must have */

/* Writes `value`, which must be finite, as printf("%.6g") does: correctly rounded, ties to even. Returns the length;
 * the text has no terminating zero byte. `*rounded`, unless NULL, is set to the number that strtod reads from the
 * text. */
size_t k25_write_six(double value, char out[K25_NUMBER_SIZE], double *rounded);

/* Writes `value` as printf("%lld") does. Returns the length; the text has no terminating zero byte. */
size_t k25_write_whole(int64_t value, char out[K25_NUMBER_SIZE]);

#endif
