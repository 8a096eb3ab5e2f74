/* Streams the bytes of a file, inflated when it is gzip.
 *
 * base/file.h reads whole files and refuses damaged ones. Captures have gigabytes, and the part before a damage is
 * worth keeping: this reader returns all bytes that can be inflated and then how the file ended. A file is gzip if it
 * starts with 1f 8b; its name does not matter. ISA-L inflates.
 */
#ifndef K25_CALIB_TRACE_INFLATE_H
#define K25_CALIB_TRACE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How a file ended. Only a bad checksum does not stop the reading. */
enum k25_inflate_end {
    K25_INFLATE_WHOLE = 0,
    K25_INFLATE_BAD_CRC,  /* everything was inflated; a checksum or a length in a trailer does not match it */
    K25_INFLATE_CUT,      /* the file stops inside a gzip member */
    K25_INFLATE_DAMAGED,  /* the data cannot be inflated further */
    K25_INFLATE_FOLLOWED, /* the last member is followed by bytes that are neither a member nor zeros */
};

struct k25_inflate;

/* Opens `path`. The caller frees the stream with k25_inflate_close. Returns NULL with K25_BAD_INPUT for a missing file
 * or a folder, with K25_RESOURCE when the file cannot be opened or out of memory. */
struct k25_inflate *k25_inflate_open(const char *path, struct k25_error *error);

/* Writes up to `size` (> 0) bytes to `out` and sets `*got` to their number, which is below `size` only at the end.
 * Returns false with K25_RESOURCE when reading fails. */
bool k25_inflate_next(struct k25_inflate *stream, char *out, size_t size, size_t *got, struct k25_error *error);

/* Whether the file is gzip. */
bool k25_inflate_is_gzip(const struct k25_inflate *stream);
/* How the file ended; valid after k25_inflate_next returned fewer bytes than requested. */
enum k25_inflate_end k25_inflate_end(const struct k25_inflate *stream);
/* Bytes of the (compressed) file consumed so far. */
uint64_t k25_inflate_taken(const struct k25_inflate *stream);

/* NULL is allowed. */
void k25_inflate_close(struct k25_inflate *stream);

#endif
