/* Kernel summaries of Nsight Systems: `nsys stats -r cuda_gpu_kern_sum` as CSV, as columns on a terminal
 * (thousands separated or not) and as a box, and the CSV that its window exports ("1.234 ms" in the cells).
 *
 * One file may hold several reports; all but kernel summaries are stepped over. Recordings and streams (.nsys-rep,
 * .qdstrm) are refused with the command that makes a summary of them, SQLite exports because
 * calib/readers/nsys/sqlite.h reads them.
 */
#ifndef K25_CALIB_READERS_NSYS_NSYS_H
#define K25_CALIB_READERS_NSYS_NSYS_H

#include <stdint.h>

#include "base/arena.h"
#include "calib/readers/text/evidence.h"

/* NAN: the report has no such column. */
struct k25_nsys_row {
    int line;
    const char *name;
    bool truncated; /* the name was cut by its writer */
    int64_t instances;
    double total_ns, avg_ns, med_ns, min_ns, max_ns, stddev_ns;
};

struct k25_nsys_table {
    int line; /* of the headings */
    struct k25_nsys_row *row;
    size_t rows;
    double total_ns;
};

struct k25_nsys {
    struct k25_nsys_table *table; /* all with one row or more */
    size_t tables;
    struct k25_left_out left_out;
    struct k25_arena arena; /* owns the strings */
};

/* NULL with an error: "no kernel data" with the line of nsys that says so, no kernel summary among the reports, a
 * damaged row (strict), a total that is not instances x average. `options` may be NULL: strict. */
struct k25_nsys *k25_nsys_read(const char *path, const struct k25_evidence_options *options, struct k25_error *error);
struct k25_nsys *k25_nsys_parse(const char *text, size_t size, const char *name,
                                const struct k25_evidence_options *options, struct k25_error *error);
void k25_nsys_free(struct k25_nsys *nsys);

#endif
