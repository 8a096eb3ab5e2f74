/* What no machine undercuts: the formulas with every launch, base, poll and spread at 0 and every share of a data
 * sheet's rate at 1. What is left of an AllReduce is the latency of its wires and the bytes through its links, of a
 * kernel its bytes at the rate of the DRAM and its arithmetic at the peak. */
#ifndef K25_CALIB_EVIDENCE_FLOORS_H
#define K25_CALIB_EVIDENCE_FLOORS_H

#include "calib/fit/observe.h"
#include "hw/params/params.h"

/* `params` with the parameters that cost time at their ideal; those that describe the load (routing, overlap of
 * experts, splits) as they are. */
struct k25_params k25_floor_params(const struct k25_params *params);

/* s: an AllReduce of `bytes` by the backend that has the shortest way, whatever the plan calls. */
double k25_allreduce_floor(double bytes, const struct k25_group *group, const struct k25_params *params);

/* s: the least that an observation can be; 0: there is no such bound (waits, spreads, idle time). */
double k25_observed_floor(const struct k25_observed *observed, const struct k25_params *params);

#endif
