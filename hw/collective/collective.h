/* The cost of one collective: the transfer, and the wait for the last rank. Sizes in bytes, times in s, groups from
 * k25_machine_group; on one rank every time is 0. Nothing here fails.
 *
 * AllReduce of m bytes per rank on n GPUs, h = path latency of a hop, V = 2(n-1)/n m the bytes through a link:
 *
 *   NCCL LL      norm_p( base + 2(n-1) (hop + h), V / (eta_ll B_ring (n/2)^-g) )
 *   NCCL LL128   base + 2(n-1) (ll128_hop + h) + 128/120 V / (eta B_ring share_n)
 *   NCCL Simple  simple_base + 2(n-1) (simple_hop + h) + V / (eta B_ring share_n)
 *   one-shot     base + (n-1) peer + 2 h_max + (n-1) m / min(eta B_lone, shared B_peer)
 *                every rank signals its n-1 peers and reads them: a path for the flag, a path for the data. One
 *                rank's reads do not fill its own link (B_lone); those of several fill a link that they share
 *
 * Of the 128 bytes of an LL128 line 8 are the flag. A gather has n-1 hops and V = (n-1)/n of the gathered buffer; its
 * hops, base and paths take nccl.gather times and its bytes nccl.gather_volume times what they cost in an AllReduce.
 * The LL form is empirical in p and g: half of an LL line is flags, so two GPUs reach at most half of the link, and
 * more ranks reach less than the ring promises. Sources: NCCL src/graph/tuning.cc for the form; measured tables for the
 * values (hw/params/params.yaml).
 */
#ifndef K25_HW_COLLECTIVE_COLLECTIVE_H
#define K25_HW_COLLECTIVE_COLLECTIVE_H

#include "hw/collective/backend.h"

/* Returns the time of one AllReduce of `bytes` per rank when all ranks start together. */
double k25_allreduce_time(enum k25_backend backend, double bytes, const struct k25_group *group,
                          const struct k25_params *params);

/* Returns the protocol that NCCL chooses by default on PCIe for a buffer of `bytes`: LL up to nccl.ll_max, then
 * Simple. */
enum k25_backend k25_nccl_protocol(double bytes, const struct k25_params *params);

/* Returns the time of gathering `bytes` from each rank to every rank over the NCCL ring with one of its protocols; also
 * the time of a reduce-scatter that leaves `bytes` on each rank. */
double k25_allgather_time(enum k25_backend protocol, double bytes, const struct k25_group *group,
                          const struct k25_params *params);

/* Returns the time of an all-to-all in which every rank sends `bytes` in total to its n-1 peers, all at once: one hop
 * of the Simple protocol, and the volume at the rate of n ranks that read each other (NCCL grouped send and receive).
 */
double k25_alltoall_time(double bytes, const struct k25_group *group, const struct k25_params *params);

/* Returns the time of sending `bytes` to one other rank. `group` is a pair of ranks. */
double k25_send_time(double bytes, const struct k25_group *group, const struct k25_params *params);

/* Returns the time that the mean of n ranks waits for the last one after a compute segment of `segment` seconds, when
 * the arrivals have the standard deviation s = sqrt(sigma^2 + (rho segment)^2) and one rank is later than the others by
 * `lag`:
 *
 *   E[max of n arrivals] - mean arrival  =  ( (d_n s)^q + (lag (n-1)/n)^q )^(1/q),   q = 2.4 + 0.29 log2 n
 *
 * d_n is the mean of the largest of n standard normals. Exact when either part is 0; for both, q was fitted to the
 * integral of n-1 equal normals and a shifted one, and stays within 2.4 % of it from 2 to 16 ranks. */
double k25_wait_time(int n, double segment, const struct k25_params *params);

/* Returns E[max of n standard normal variables], n from 1 to K25_MAX_GPUS: d_2 = 1/sqrt(pi), d_8 = 1.4236. */
double k25_normal_max(int n);

#endif
