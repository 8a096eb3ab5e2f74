/* Numbers as text at the speed of a table of millions of rows. The bytes are those of printf in the "C" locale. */
#ifndef K25_BASE_NUMBER_H
#define K25_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define K25_NUMBER_SIZE 32 /* room that every function here may use */

/* As printf("%.6g") writes `value`, which must be finite: correctly rounded, ties to even. Returns the length;
 * there is no zero byte behind. `*rounded`, unless NULL, is the number that the text stands for, as strtod reads
 * it. */
size_t k25_write_six(double value, char out[K25_NUMBER_SIZE], double *rounded);

/* As printf("%lld"). */
size_t k25_write_whole(int64_t value, char out[K25_NUMBER_SIZE]);

#endif
