/* A file's bytes piece by piece, inflated on the way when it is gzip.
 *
 * base/file.h reads a file whole and refuses damage; a capture of gigabytes is streamed, and what stands in front
 * of the damage is worth keeping. So this reader hands out all the bytes it can get and says at the end how it
 * ended. The magic decides what is gzip (1f 8b), never the name. Inflation is ISA-L's.
 */
#ifndef K25_CALIB_TRACE_INFLATE_H
#define K25_CALIB_TRACE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How a file ended; the first that applies, but a bad checksum does not stop the reading. */
enum k25_inflate_end {
    K25_INFLATE_WHOLE = 0,
    K25_INFLATE_BAD_CRC,  /* everything was inflated; a checksum or a length in a trailer does not match it */
    K25_INFLATE_CUT,      /* the file stops inside a gzip member */
    K25_INFLATE_DAMAGED,  /* the data cannot be inflated further */
    K25_INFLATE_FOLLOWED, /* something that is neither a member nor zeros stands behind the last member */
};

struct k25_inflate;

/* Opens `path`. A missing file or a folder is K25_BAD_INPUT, what the system refuses is K25_RESOURCE. */
struct k25_inflate *k25_inflate_open(const char *path, struct k25_error *error);

/* Puts up to `size` (> 0) bytes at `out` and their number in `*got`; fewer than `size` only at the end. False only
 * when the system cannot read. */
bool k25_inflate_next(struct k25_inflate *stream, char *out, size_t size, size_t *got, struct k25_error *error);

/* True for gzip; how it ended, once `k25_inflate_next` gave less than asked; bytes of the file taken so far. */
bool k25_inflate_is_gzip(const struct k25_inflate *stream);
enum k25_inflate_end k25_inflate_end(const struct k25_inflate *stream);
uint64_t k25_inflate_taken(const struct k25_inflate *stream);

void k25_inflate_close(struct k25_inflate *stream);

#endif
