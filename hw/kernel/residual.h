/* Residual tables: what measurements say on top of the formulas of hw/kernel/kernel.h.
 *
 * A table holds ln(measured / formula) of one kernel class at the shapes that were measured. Between them it
 * interpolates, away from them it fades to nothing: the formula extrapolates, the table makes it exact where there
 * is data.
 *
 * The shapes are points in three logarithms, each divided by the reach of its coordinate:
 *
 *     products   ln m, ln n, ln k                      reach 4, 2, 2
 *     experts    ln pairs, ln distinct, ln columns     reach 4, 4, 2
 *     MLA        ln sequences, ln context, ln heads    reach 4, 4, 4
 *
 * The value at a point is that of a Gaussian process of mean 0 with covariance (1 - d)^2 at distance d < 1, none
 * beyond, given the 12 nearest sites (simple kriging): at a site the site's own value, one reach away from every
 * site exactly 0.
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
    struct k25_residual_site *site; /* a tree in place: the middle one splits the others along one coordinate */
};

/* Starts all zero: no table at all. */
struct k25_residuals {
    struct k25_residual_table table[K25_KERNEL_CLASSES];
};

/* Whether a class has coordinates, and so can have a table. */
bool k25_residual_class(enum k25_kernel_class class);

/* Replaces the table of a class by a copy of `count` sites. Sites of one shape become one, with the mean of their
 * values. False when memory is out. */
bool k25_residuals_set(struct k25_residuals *residuals, enum k25_kernel_class class,
                       const struct k25_residual_site *sites, size_t count, struct k25_error *error);
void k25_residuals_free(struct k25_residuals *residuals);

/* Classes with a table. `residuals` may be NULL. */
int k25_residuals_count(const struct k25_residuals *residuals);

/* What to add to ln(time) of a call; 0 without a table for its class. `residuals` may be NULL. */
double k25_residual(const struct k25_residuals *residuals, const struct k25_kernel_call *call);

/* The same, and slope[i] = d residual / d ln shape[i]. At a site itself, where the surface has a tip, that site counts
 * for no slope: the mean of both sides. */
double k25_residual_slope(const struct k25_residuals *residuals, const struct k25_kernel_call *call,
                          double slope[K25_SHAPE]);

#endif
