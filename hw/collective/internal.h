/* Shared by the files of this folder only. */
#ifndef K25_HW_COLLECTIVE_INTERNAL_H
#define K25_HW_COLLECTIVE_INTERNAL_H

#include "hw/collective/backend.h"

/* The rows of the table: k25_nccl_ll, ... in nccl.c, each custom kernel in its KEY.c. */
#define X(id, key, words) extern const struct k25_backend_info k25_nccl_##key;
K25_NCCL_PROTOCOL_LIST(X)
#undef X
#define X(id, key, words) extern const struct k25_backend_info k25_##key;
K25_CUSTOM_LIST(X)
#undef X

/* Adds the slopes of a transfer of `seconds` over a link at the share `share` of its bandwidth: both are divisors. */
void k25_link_slopes(enum k25_param share, double seconds, struct k25_slopes *slopes);

/* Returns q of k25_wait_time. */
double k25_wait_exponent(int n);

#endif
