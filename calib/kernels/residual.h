/* Makes residual tables (hw/kernel/residual.h) from the rows of a kernel table. */
#ifndef K25_CALIB_KERNELS_RESIDUAL_H
#define K25_CALIB_KERNELS_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "calib/fit/calibration.h"
#include "calib/kernels/table.h"
#include "hw/kernel/residual.h"
#include "hw/params/params.h"

/* Sets the table of a family's class in `residuals` from its rows with take[row] true. A row can include work other
 * than the call of the class (the projections of an MLA block, small kernels): that is priced by the formulas and the
 * tables already in `residuals`, so tables of products must be made first. The remaining difference is attributed to
 * the call, limited to a factor of 8 either way. `rows` (may be NULL) is set to the number of usable rows; of more than
 * K25_MAX_SITES, that many are kept, evenly spaced in the order of their shapes. Does nothing for a family whose class
 * has no tables. Returns false with K25_RESOURCE when out of memory. */
bool k25_residuals_build(const struct k25_kernel_table *table, int family, const bool *take,
                         const struct k25_params *params, struct k25_residuals *residuals, size_t *rows,
                         struct k25_error *error);

/* Returns the class of a family's residual table; K25_KERNEL_CLASSES: it has none. */
enum k25_kernel_class k25_residual_family_class(const struct k25_kernel_table *table, int family);

#endif
