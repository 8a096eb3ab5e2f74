/* Reads the database that `nsys export -t sqlite` writes: kernels by name, separately for each device of each process.
 *
 * Tables and columns change with the version of nsys, so only the necessary ones are read: start, end and one of three
 * names. The file is opened read-only and no file is created next to it. Rows are streamed: memory grows with the
 * number of names, not of kernels.
 */
#ifndef K25_CALIB_READERS_NSYS_SQLITE_H
#define K25_CALIB_READERS_NSYS_SQLITE_H

#include "calib/readers/nsys/nsys.h"

/* One file may hold all ranks of a session: one each, in the order of device and process. */
struct k25_nsys_device {
    int64_t device;              /* -1: the file does not tell */
    int64_t pid;                 /* -1: the file does not tell */
    struct k25_nsys_table table; /* by falling total; no medians, no deviations, no lines */
};

struct k25_nsys_database {
    struct k25_nsys_device *device; /* all with one row or more */
    size_t devices;
    int64_t kernels, graph_kernels; /* those that were counted; those of them that are nodes of a CUDA graph */
    /* Replays of whole CUDA graphs. With some of them and no graph_kernels, the rows lack what ran in graphs. */
    int64_t graphs;
    double graph_ns;
    struct k25_left_out left_out; /* kernels */
    struct k25_arena arena;       /* owns the strings */
};

/* The file starts as every SQLite database does; false also when it cannot be read. */
bool k25_nsys_sqlite_is(const char *path);

/* NULL with an error: no database, damage (with the words of SQLite), a database of something else, an export
 * without kernels ("graph level only" when it has whole graphs instead), a kernel without a name or with an end
 * before its start (strict). `options` may be NULL: strict. */
struct k25_nsys_database *k25_nsys_sqlite_read(const char *path, const struct k25_evidence_options *options,
                                               struct k25_error *error);
void k25_nsys_sqlite_free(struct k25_nsys_database *database);

#endif
