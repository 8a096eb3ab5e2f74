/* What the price of a collective (hw/collective/collective.c) and its slopes (hw/collective/slopes.c) share; not for
 * others. */
#ifndef K25_HW_COLLECTIVE_INTERNAL_H
#define K25_HW_COLLECTIVE_INTERNAL_H

#include "hw/collective/collective.h"

#define K25_LL128_LINE (128.0 / 120) /* bytes on the wire for one of data: 8 of 128 are the flag */

/* q of k25_wait_time. */
double k25_wait_exponent(int n);

#endif
