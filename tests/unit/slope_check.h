/* Elasticities against differences: what the tests of everything that has slopes share. */
#ifndef K25_TESTS_SLOPE_CHECK_H
#define K25_TESTS_SLOPE_CHECK_H

#include <math.h>
#include <stdbool.h>

#include "hw/params/params.h"

/* Any positive number that follows the parameters. */
typedef double slope_number(const void *context, const struct k25_params *params);

static inline double number_at(slope_number *number, const void *context, const struct k25_params *params, int id,
                               double log_change)
{
    struct k25_params moved = *params;
    moved.value[id] *= exp(log_change);
    return log(number(context, &moved));
}

/* d ln number / d ln parameter by central differences at h, h/2 and h/4, Richardson's table. */
static inline double central_difference(slope_number *number, const void *context, const struct k25_params *params,
                                        int id, double h)
{
    double d[3];
    for (int i = 0; i < 3; i++, h /= 2)
        d[i] = (number_at(number, context, params, id, h) - number_at(number, context, params, id, -h)) / (2 * h);
    double first = (4 * d[1] - d[0]) / 3, second = (4 * d[2] - d[1]) / 3;
    return (16 * second - first) / 15;
}

/* The same on one side: differences at h, h/2, h/4 and h/8. */
static inline double one_sided_difference(slope_number *number, const void *context, const struct k25_params *params,
                                          int id, double h)
{
    enum { LEVELS = 4 };
    double d[LEVELS], here = log(number(context, params));
    for (int i = 0; i < LEVELS; i++, h /= 2)
        d[i] = (number_at(number, context, params, id, h) - here) / h;
    for (int level = 1; level < LEVELS; level++)
        for (int i = 0; i + level < LEVELS; i++)
            d[i] = (ldexp(d[i + 1], level) - d[i]) / (ldexp(1, level) - 1);
    return d[0];
}

/* Whether the elasticity is `slope` to `relative`, on either side where a corner is near. `*found` is set to a
 * difference for messages. */
static inline bool slope_agrees(slope_number *number, const void *context, const struct k25_params *params, int id,
                                double slope, double relative, double *found)
{
    static const double widths[] = {4e-2, 4e-3, 4e-4, 4e-5};
    double tolerance = relative * fmax(fabs(slope), 1e-5);
    /* Counts of experts are differences of lgamma: 1e-13 of them is rounding. */
    double noise = id == K25_ROUTING_CV || id == K25_ROUTING_OVERLAP ? 1e-12 : 1e-15;
    for (int i = 0; i < 4; i++) {
        *found = central_difference(number, context, params, id, widths[i]);
        if (fabs(*found - slope) <= tolerance + noise / widths[i])
            return true;
    }
    for (int i = 0; i < 8; i++) {
        double h = i % 2 ? -widths[i / 2] : widths[i / 2];
        if (fabs(one_sided_difference(number, context, params, id, h) - slope) <= 10 * tolerance + noise / fabs(h))
            return true;
    }
    return false;
}

#endif
