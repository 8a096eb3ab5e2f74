/* The outputs of a prediction by name: the columns of a sweep, and what its constraints and objectives can refer to. */
#ifndef K25_SCENARIOS_LIBRARY_OUTPUTS_H
#define K25_SCENARIOS_LIBRARY_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/predict/predict.h"

/* What an output is computed from; both belong to the caller. */
struct k25_output_view {
    const struct k25_question *question;
    const struct k25_prediction *prediction;
};

struct k25_named_output {
    const char *name; /* ends with its unit: "tpot_ms" */
    const char *unit; /* "ms"; "" for a number without unit */
    const char *doc;  /* one line */
    bool of_step;     /* a property of the step: NAN when the plan does not fit in memory */
    bool truth;       /* 0 or 1, printed as false or true */
    double (*get)(const struct k25_output_view *view); /* the value in `unit`; NAN: does not apply. For the function
                                                          below only: does not look at `of_step` */
};

/* All outputs; the last entry has a name of NULL. A new output is one line of outputs.c. */
extern const struct k25_named_output k25_named_outputs[];
/* Their number, without the last entry. */
size_t k25_named_output_count(void);

/* Returns the index of the output `name` in k25_named_outputs, -1 when there is none. */
int k25_named_output_find(const char *name);

/* Returns the value of an output in its unit; NAN when it does not apply to this plan or machine. */
static inline double k25_named_output_value(const struct k25_named_output *output, const struct k25_output_view *view)
{
    return output->of_step && !view->prediction->memory.fits ? __builtin_nan("") : output->get(view);
}

#endif
