/* What k25sim inspect found, between its parts.
 *
 *     inspect.c           the command: which argument is what
 *     inspect_capture.c   the tables of a capture
 *     inspect_notes.c     what to know beside them: what was left out, and what cannot be told
 *     inspect_render.c    a capture for people, as JSON, as CSV
 *     inspect_summary.c   summaries: one table each
 */
#ifndef K25_CLI_COMMANDS_INSPECT_INSPECT_H
#define K25_CLI_COMMANDS_INSPECT_INSPECT_H

#include "calib/capture/capture.h"
#include "calib/readers/text/evidence.h"
#include "cli/cli.h"
#include "cli/render/table.h"

enum inspect_kind {
    INSPECT_TRACE, /* a trace, a folder of ranks, or what the reader of traces has words for */
    INSPECT_PROFILER_TABLE,
    INSPECT_NCCL_TESTS,
    INSPECT_NSYS,
    INSPECT_NSYS_SQLITE,
    INSPECT_BENCH,
    INSPECT_KINDS,
};
extern const char *const inspect_kind_names[INSPECT_KINDS + 1]; /* NULL-terminated */

/* What the file is, from its first bytes. A file that cannot be read is a trace: its reader says why. */
enum inspect_kind inspect_sniff(const char *path);

/* ---- inspect_capture.c ---- */

void inspect_rank_table(const struct k25_capture *capture, struct cli_table *table);
/* The `top` most frequent batches. */
void inspect_batch_table(const struct k25_capture *capture, size_t top, struct cli_table *table);
void inspect_class_table(const struct k25_capture *capture, struct cli_table *table);
/* The `top` kernels with the most time in kept steps, over all ranks. */
void inspect_kernel_table(const struct k25_capture *capture, size_t top, struct cli_table *table);
void inspect_collective_table(const struct k25_capture *capture, struct cli_table *table);
/* One row for each class and size and rank; empty for one rank. */
void inspect_wait_table(const struct k25_capture *capture, struct cli_table *table);
void inspect_left_table(const struct k25_capture *capture, struct cli_table *table);

/* Of GPU time in kept steps, mean over ranks: the share of collectives, of kernels without a class. NAN: no steps.
 */
double inspect_collective_share(const struct k25_capture *capture);
double inspect_unclassified_share(const struct k25_capture *capture);

/* ---- inspect_notes.c ---- */

typedef char inspect_note[1400];
struct inspect_notes {
    inspect_note *text;
    size_t count;
    bool failed;
};

void inspect_make_notes(const struct k25_capture *capture, struct inspect_notes *notes);
void inspect_free_notes(struct inspect_notes *notes);

/* ---- inspect_render.c ---- */

bool inspect_print_capture(const struct k25_capture *capture, size_t top, struct k25_error *error);
json_t *inspect_capture_json(const struct k25_capture *capture, size_t top, struct k25_error *error);

/* ---- inspect_summary.c ---- */

struct inspect_summary {
    enum inspect_kind kind;
    const char *file;
    struct cli_table table; /* open when it was read */
    char title[512];        /* one line */
    struct k25_left_out left_out;
};

bool inspect_read_summary(const char *path, enum inspect_kind kind, const struct k25_evidence_options *options,
                          const struct k25_kernel_rules *rules, struct inspect_summary *summary,
                          struct k25_error *error);
bool inspect_print_summary(const struct inspect_summary *summary, struct k25_error *error);
json_t *inspect_summary_json(const struct inspect_summary *summary, struct k25_error *error);

#endif
