/* Between the files of the nccl-tests reader; not for others. */
#ifndef K25_CALIB_READERS_NCCL_INTERNAL_H
#define K25_CALIB_READERS_NCCL_INTERNAL_H

#include "calib/readers/nccl/nccl_tests.h"

enum { K25_NCCL_COLUMNS = 32 };

enum k25_nccl_column {
    NCCL_IGNORED,
    NCCL_BYTES,
    NCCL_COUNT,
    NCCL_TYPE,
    NCCL_REDOP,
    NCCL_ROOT,
    NCCL_TIME,
    NCCL_ALGBW,
    NCCL_BUSBW,
    NCCL_WRONG,
    NCCL_ERROR,
};

/* A run whose lines are still coming in. */
struct k25_open_run {
    struct k25_span front;
    struct k25_nccl_run run;
    bool facts, headed;
    size_t columns;
    bool open_ended; /* the columns are followed by a time stamp of several words */
    bool has_root;
    enum k25_nccl_column column[K25_NCCL_COLUMNS];
    bool in_place[K25_NCCL_COLUMNS];
    int largest_rank; /* of the lines that list devices; -1: none */
    size_t wrong_rows, damaged;
};

struct k25_nccl_reader {
    struct k25_evidence evidence;
    struct k25_nccl_tests *tests;
    struct k25_open_run *open;
    size_t count;
    struct k25_span warning; /* the last line that complains */
    int warning_line;
    const char *command; /* collective of the last command line seen; NULL: none */
};

struct k25_open_run *k25_nccl_open(struct k25_nccl_reader *reader, struct k25_span front);

/* Takes a row into the run, or leaves a wrong one out. */
bool k25_nccl_row_add(struct k25_nccl_reader *reader, struct k25_open_run *open, const struct k25_nccl_row *row,
                      struct k25_span line);
const char *k25_nccl_text(struct k25_nccl_reader *reader, struct k25_span text);

/* "…/all_reduce_perf" as "all_reduce"; NULL when it is no test's name. */
const char *k25_nccl_op_of_program(struct k25_span word);
/* Fills in op, op_source and ranks of a finished run. */
void k25_nccl_name_op(struct k25_open_run *open, const char *file, const char *command);

/* The JSON reports, from the first '{' on. */
bool k25_nccl_json(struct k25_nccl_reader *reader, size_t at);

#endif
