/* The operators of a step, as rows. */
#ifndef K25_CLI_RENDER_OPERATORS_H
#define K25_CLI_RENDER_OPERATORS_H

#include "cli/render/answer.h"
#include "cli/render/table.h"

/* Operators with the same name in different layer groups, taken together; with `every`, each on its own. */
struct cli_line {
    char name[64]; /* "q_b"; with `every` "q_b [moe]" */
    enum k25_operator_kind kind;
    double calls;          /* a step */
    double time;           /* s a step */
    double transfer, wait; /* s a step, collectives */
    char bound[40];        /* what bounds the longest of them: "memory", "wait, NCCL LL" */
    double longest;        /* s, of the operator that `bound` is about */
};
size_t cli_lines(const struct k25_prediction *prediction, bool every, struct cli_line lines[K25_MAX_OPERATORS]);

/* Opens `table` with a row for every operator, for any format; `totals` adds the rows gpu_busy, gaps, host and step. */
void cli_operator_table(const struct cli_answer *answer, bool totals, struct cli_table *table);

#endif
