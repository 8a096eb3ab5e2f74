/* The outputs of a prediction: names, units, values, meanings and what their intervals follow.
 *
 * This is the only list of them. `predict` (JSON, --outputs, --compare), the columns, constraints and objectives of
 * sweeps, `recommend`, `explain` and `list outputs` take the names and values from here; a test compares it with
 * docs/output.md. A new output is its line in the enum and its row in outputs.c.
 */
#ifndef K25_MODEL_PREDICT_OUTPUTS_H
#define K25_MODEL_PREDICT_OUTPUTS_H

#include <stdbool.h>

#include "model/predict/predict.h"
#include "model/predict/terms.h"

/* In the order of the columns of a sweep. */
enum k25_output {
    K25_OUT_FITS,
    K25_OUT_TOK_S,
    K25_OUT_TPOT,
    K25_OUT_STEP,
    K25_OUT_TOK_S_PER_USER,
    K25_OUT_TOK_S_PER_GPU,
    K25_OUT_USD_PER_MTOK,
    K25_OUT_TOK_S_PER_W,
    K25_OUT_GPUS,
    K25_OUT_TOKENS_PER_STEP,
    K25_OUT_GPU_BUSY,
    K25_OUT_KERNELS,
    K25_OUT_ALLREDUCE,
    K25_OUT_ALLREDUCE_TRANSFER,
    K25_OUT_ALLREDUCE_WAIT,
    K25_OUT_ALLREDUCE_SHARE,
    K25_OUT_OTHER_COLLECTIVES,
    K25_OUT_DRAFT,
    K25_OUT_BUBBLE,
    K25_OUT_GAPS,
    K25_OUT_HOST,
    K25_OUT_LAUNCHES,
    K25_OUT_ALLREDUCES,
    K25_OUT_DISTINCT_EXPERTS,
    K25_OUT_DISTINCT_EXPERTS_FULLEST_RANK,
    K25_OUT_WEIGHTS,
    K25_OUT_KV_POOL,
    K25_OUT_KV_POOL_TOKENS,
    K25_OUT_NEED_TOKENS,
    K25_OUT_LARGEST_BATCH,
    K25_OUTPUTS,
};

enum k25_output_kind {
    K25_OUTPUT_NUMBER,
    K25_OUTPUT_SHARE, /* from 0 to 1 */
    K25_OUTPUT_TRUTH, /* 0 or 1, printed as false or true */
};

struct k25_output_info {
    const char *name; /* ends with its unit: "tpot_ms" */
    const char *unit; /* "ms"; "" for a number without unit */
    const char *doc;  /* one line */
    bool of_step;     /* a property of the step: there is none when the plan does not fit in memory */
    enum k25_output_kind kind;
    /* It follows the parameters as over / under. K25_TERM_NONE for both: it has no interval. */
    enum k25_term over, under;
    /* In `unit`; NAN: does not apply. For k25_output_value only: does not look at `of_step`. */
    double (*value)(const struct k25_question *question, const struct k25_prediction *prediction);
};

extern const struct k25_output_info k25_output_info[K25_OUTPUTS];
extern const char *const k25_output_names[K25_OUTPUTS + 1]; /* NULL-terminated, in the same order */

/* Returns the value of an output in its unit; NAN when it does not apply to this plan or machine. */
double k25_output_value(const struct k25_question *question, const struct k25_prediction *prediction,
                        enum k25_output output);

/* Returns whether predictions give an interval of it (model/predict/uncertainty.h). */
bool k25_output_has_interval(enum k25_output output);

/* Returns the output called `name`, K25_OUTPUTS when there is none. */
enum k25_output k25_output_find(const char *name);

#endif
