/* Whole files: read into memory, or written atomically. */
#ifndef K25_BASE_FILE_H
#define K25_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Returns the bytes of `path` ("-": standard input), followed by a zero byte that `*size` does not count; the caller
 * frees them with free(). A file with the gzip magic 1f 8b is inflated (any number of members, zero padding after the
 * last). Returns NULL on failure: K25_BAD_INPUT for a missing file, a folder, damaged or truncated gzip data, more than
 * `limit` bytes after inflation; K25_RESOURCE for system errors and out of memory. */
char *k25_file_read(const char *path, size_t limit, size_t *size, struct k25_error *error);

/* Writes `size` bytes to a temporary file in the folder of `path`, syncs it and renames it to `path`. On failure the
 * temporary file is removed and an existing `path` is unchanged. A symbolic link is followed: its target is replaced.
 * A device or a pipe (/dev/stdout) is written to directly. Fails with K25_RESOURCE; with K25_BAD_INPUT when `path` is
 * empty or a folder. */
bool k25_file_write(const char *path, const char *bytes, size_t size, struct k25_error *error);

/* Writes to `out` (`size` bytes) the path of `name` relative to the folder of the file `from`: `name` unchanged when it
 * is absolute or `from` has no folder. Returns false when `out` is too small. */
bool k25_path_beside(const char *from, const char *name, char *out, size_t size);

/* Whether `path` exists and is not a folder. */
bool k25_file_exists(const char *path);

#endif
