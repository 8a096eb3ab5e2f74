/* Derivatives of the time of a collective (hw/collective/collective.h) with respect to the parameters and the figures
 * of the links, as hw/params/slopes.h defines them. Each function adds `weight` times its derivatives to `slopes`; the
 * arguments before `weight` are those of the function that gives the time. Nothing here fails. */
#ifndef K25_HW_COLLECTIVE_SLOPES_H
#define K25_HW_COLLECTIVE_SLOPES_H

#include "hw/collective/collective.h"
#include "hw/params/slopes.h"

void k25_allreduce_slopes(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes);
void k25_allgather_slopes(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params, double weight, struct k25_slopes *slopes);
void k25_alltoall_slopes(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                         struct k25_slopes *slopes);
void k25_send_slopes(double bytes, const struct k25_group *group, const struct k25_params *params, double weight,
                     struct k25_slopes *slopes);

/* Also returns weight x d wait / d segment: the effect of a longer segment before the collective. */
double k25_wait_slopes(int n, double segment, const struct k25_params *params, double weight,
                       struct k25_slopes *slopes);

#endif
