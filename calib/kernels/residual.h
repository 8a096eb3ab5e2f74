/* Residual tables (hw/kernel/residual.h) made from the rows of a kernel table. */
#ifndef K25_CALIB_KERNELS_RESIDUAL_H
#define K25_CALIB_KERNELS_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "calib/fit/calibration.h"
#include "calib/kernels/table.h"
#include "hw/kernel/residual.h"
#include "hw/params/params.h"

/* Sets the table of the family's class from its rows with `take` true (one flag a row of the table). What a row
 * measured beside the call that the class is about (the projections of an MLA block, small kernels) is priced by
 * the formulas and by the tables that `residuals` already has, so tables of products come first; all the rest of
 * the gap is booked on the call, at most a factor of 8 either way. `rows` (may be NULL) is set to the rows that
 * could be sites; of more than K25_MAX_SITES, as many are kept, evenly spaced in the order of their shapes. Nothing
 * happens to a family whose class has no tables. */
bool k25_residuals_build(const struct k25_kernel_table *table, int family, const bool *take,
                         const struct k25_params *params, struct k25_residuals *residuals, size_t *rows,
                         struct k25_error *error);

/* The class that a family's residual table would be of; K25_KERNEL_CLASSES: none. */
enum k25_kernel_class k25_residual_family_class(const struct k25_kernel_table *table, int family);

#endif
