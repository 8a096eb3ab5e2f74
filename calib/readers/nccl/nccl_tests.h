/* Output of nccl-tests (all_reduce_perf and its sisters): the text on a terminal or in a log, with whatever MPI,
 * NCCL and loggers put between and in front of its lines, and its JSON reports.
 *
 * A file holds runs; each has its headings, its rows and, when it went well, a footer. The text never says which
 * collective ran unless the program does ("Collective test starting"): then the command line, the file's name, and
 * last the shape of the rows tell, and `op_source` says which of them.
 */
#ifndef K25_CALIB_READERS_NCCL_NCCL_TESTS_H
#define K25_CALIB_READERS_NCCL_NCCL_TESTS_H

#include <stdint.h>

#include "base/arena.h"
#include "calib/readers/text/evidence.h"

/* NAN: not measured ("N/A") or no such column. */
struct k25_nccl_time {
    double us, algbw, busbw; /* GB/s, 1e9 bytes */
    double error;            /* old versions: the largest difference, not a count; NAN otherwise */
    int64_t wrong;           /* wrong elements; -1: not checked */
};

struct k25_nccl_row {
    int line;
    uint64_t bytes; /* of the full buffer of one rank */
    uint64_t count; /* elements, as the test counts them: for all_gather and alltoall those of one rank */
    const char *type, *redop;
    int root; /* -1: none */
    struct k25_nccl_time out_of_place, in_place;
    bool wrong; /* kept although results were wrong (allow_wrong) */
};

enum k25_op_source { K25_OP_UNKNOWN, K25_OP_STATED, K25_OP_COMMAND, K25_OP_FILE_NAME, K25_OP_ROWS };

struct k25_nccl_run {
    const char *tag; /* in front of its lines: "[1,0]<stdout>:" */
    int line;        /* of the headings; 0 in JSON */
    const char *op;  /* "all_reduce", "all_gather", "alltoall", ...; "" when nothing tells */
    enum k25_op_source op_source;
    int threads, gpus;                                 /* of one process; 0: not said */
    int ranks;                                         /* 0: not said */
    int warmup, iterations, aggregated, graph;         /* -1: not said */
    bool cpu_time;                                     /* the time is the host's */
    const char *device, *nccl_version, *tests_version; /* "" when not said */
    int64_t out_of_bounds;                             /* wrong values in all; -1: no footer */
    double avg_busbw; /* NAN: no footer. Some versions print 0 (nccl-tests#294): only the rows count */
    struct k25_nccl_row *row;
    size_t rows;
};

struct k25_nccl_tests {
    struct k25_nccl_run *run; /* all with one row or more */
    size_t runs;
    struct k25_left_out left_out;
    struct k25_arena arena; /* owns the strings */
};

/* NULL with an error: "no rows" with the last warning in the file (a hang or a crash), "wrong results" with their
 * row (unless options->allow_wrong), a damaged row (strict). `options` may be NULL: strict. */
struct k25_nccl_tests *k25_nccl_tests_read(const char *path, const struct k25_evidence_options *options,
                                           struct k25_error *error);
struct k25_nccl_tests *k25_nccl_tests_parse(const char *text, size_t size, const char *name,
                                            const struct k25_evidence_options *options, struct k25_error *error);
void k25_nccl_tests_free(struct k25_nccl_tests *tests);

#endif
