/* Residual tables: corrections of the formulas of hw/kernel/kernel.h by measurements.
 *
 * A table holds ln(measured / formula) of one kernel class at the measured shapes. It interpolates between them and
 * decays to 0 away from them: the formula extrapolates, the table makes it exact where there is data.
 *
 * The shapes are points in three logarithms, each divided by the reach of its coordinate:
 *
 *     products   ln m, ln n, ln k                      reach 4, 2, 2
 *     experts    ln pairs, ln distinct, ln columns     reach 4, 4, 2
 *     MLA        ln sequences, ln context, ln heads    reach 4, 4, 4
 *
 * The value at a point is that of a Gaussian process of mean 0 with covariance (1 - d)^2 at distance d < 1, 0 from
 * d = 1 on, given the 12 nearest sites (simple kriging): at a site the value of the site, at a distance of 1 from all
 * sites exactly 0.
 */
#ifndef K25_HW_KERNEL_RESIDUAL_H
#define K25_HW_KERNEL_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "hw/kernel/kernel.h"

struct k25_residual_site {
    double shape[K25_SHAPE]; /* as in struct k25_kernel_call, > 0 */
    double value;            /* ln(measured / formula) */
    double at[K25_SHAPE];    /* filled by k25_residuals_set: ln(shape) / reach */
};

struct k25_residual_table {
    size_t count;                   /* 0: no table */
    struct k25_residual_site *site; /* [count], owned; a k-d tree in place, the median splits along one coordinate */
};

/* Initialise to all zero: no tables. */
struct k25_residuals {
    struct k25_residual_table table[K25_KERNEL_CLASSES]; /* by enum k25_kernel_class */
};

/* Whether a class has coordinates, and so can have a table. */
bool k25_residual_class(enum k25_kernel_class class);

/* Replaces the table of a class by a copy of `count` sites. Sites of the same shape are merged, with the mean of their
 * values. Fails only when out of memory (K25_RESOURCE); the table is then unchanged. */
bool k25_residuals_set(struct k25_residuals *residuals, enum k25_kernel_class class,
                       const struct k25_residual_site *sites, size_t count, struct k25_error *error);

/* Frees all tables and leaves none. */
void k25_residuals_free(struct k25_residuals *residuals);

/* Returns the number of classes with a table. `residuals` may be NULL. */
int k25_residuals_count(const struct k25_residuals *residuals);

/* Returns the correction to add to ln(time) of a call; 0 without a table for its class. `residuals` may be NULL. */
double k25_residual(const struct k25_residuals *residuals, const struct k25_kernel_call *call);

/* As k25_residual, and sets slope[i] = d residual / d ln shape[i]. At a site, where the derivative jumps, the mean of
 * both sides. */
double k25_residual_slope(const struct k25_residuals *residuals, const struct k25_kernel_call *call,
                          double slope[K25_SHAPE]);

#endif
