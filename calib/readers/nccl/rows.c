/* Runs and rows of the nccl-tests reader, as its text and JSON parts hand them over. */
#include "base/list.h"
#include "calib/readers/nccl/internal.h"

#include <math.h>

enum { MOST_RUNS = 512 };

struct k25_open_run *k25_nccl_open(struct k25_nccl_reader *reader, struct k25_span front)
{
    struct k25_evidence *evidence = &reader->evidence;
    if (reader->count == MOST_RUNS) {
        k25_fail_at(evidence->error, evidence->file, evidence->line, 1, "more than %d runs in one file", MOST_RUNS);
        return NULL;
    }
    struct k25_open_run *open = K25_LIST_ADD(reader->open, reader->count);
    if (open == NULL) {
        k25_out_of_memory(evidence->file, evidence->error);
        return NULL;
    }
    open->front = front;
    open->largest_rank = -1;
    struct k25_nccl_run *run = &open->run;
    run->warmup = run->iterations = run->aggregated = run->graph = -1;
    run->device = run->nccl_version = run->tests_version = "";
    run->out_of_bounds = -1;
    run->avg_busbw = NAN;
    return open;
}

const char *k25_nccl_text(struct k25_nccl_reader *reader, struct k25_span text)
{
    char *copy = k25_arena_copy(&reader->tests->arena, text.text, text.size);
    if (copy == NULL)
        k25_out_of_memory(reader->evidence.file, reader->evidence.error);
    return copy;
}

bool k25_nccl_row_add(struct k25_nccl_reader *reader, struct k25_open_run *open, const struct k25_nccl_row *row,
                      struct k25_span line)
{
    struct k25_nccl_run *run = &open->run;
    int64_t wrong = row->out_of_place.wrong > 0 ? row->out_of_place.wrong : row->in_place.wrong;
    if (wrong > 0) {
        open->wrong_rows++;
        if (!reader->evidence.options.allow_wrong)
            return k25_evidence_fault(&reader->evidence, row->line, line, line.text,
                                      "wrong results: %lld wrong elements in the row of %llu bytes, which measures "
                                      "nothing (--lenient keeps it)",
                                      (long long)wrong, (unsigned long long)row->bytes);
    }
    struct k25_nccl_row *added = K25_LIST_ADD(run->row, run->rows);
    if (added == NULL)
        return k25_out_of_memory(reader->evidence.file, reader->evidence.error);
    *added = *row;
    added->wrong = wrong > 0;
    return true;
}
