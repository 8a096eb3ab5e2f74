/* Files, whole: read into memory, or written so that they appear complete or not at all. */
#ifndef K25_BASE_FILE_H
#define K25_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The bytes of `path` ("-" is standard input), with a zero byte behind them that `*size` does not count;
 * the caller frees. A file with the gzip magic 1f 8b is inflated (any number of members, zero padding behind
 * the last); a damaged or cut one is an error. More than `limit` bytes, after inflation, are refused. A missing
 * file, a folder, damage and too much are K25_BAD_INPUT; what the system refuses is K25_RESOURCE. */
char *k25_file_read(const char *path, size_t limit, size_t *size, struct k25_error *error);

/* Writes `size` bytes to a temporary name beside `path`, flushes them to the disk and renames. On failure
 * nothing is left behind and an older `path` is untouched. A symbolic link stays one: what it points at is
 * replaced. A device or a pipe (/dev/stdout) is written to directly. What fails is K25_RESOURCE, but a folder in
 * the place of the file is K25_BAD_INPUT. */
bool k25_file_write(const char *path, const char *bytes, size_t size, struct k25_error *error);

/* `name` as seen from the folder of `from`: unchanged when absolute or when `from` has no folder.
 * Returns false when `out` is too small. */
bool k25_path_beside(const char *from, const char *name, char *out, size_t size);

/* True for anything but a folder. */
bool k25_file_exists(const char *path);

#endif
