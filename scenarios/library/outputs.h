/* What a prediction answers, by name: the columns of a sweep, and what its constraints and objectives may name. */
#ifndef K25_SCENARIOS_LIBRARY_OUTPUTS_H
#define K25_SCENARIOS_LIBRARY_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/predict/predict.h"

struct k25_output_view {
    const struct k25_question *question;
    const struct k25_prediction *prediction;
};

struct k25_named_output {
    const char *name; /* with its unit at the end */
    const char *unit; /* "" when it has none */
    const char *doc;  /* one line */
    bool of_step;     /* a figure of the step: nothing when the plan does not fit in memory */
    bool truth;       /* true or false */
    double (*get)(const struct k25_output_view *view); /* NAN: nothing */
};

/* Ends with a name of NULL. A new output is one line of outputs.c. */
extern const struct k25_named_output k25_named_outputs[];
size_t k25_named_output_count(void);

/* The index, -1: there is none of that name. */
int k25_named_output_find(const char *name);

/* The value, in the unit of the name; NAN: it does not apply to this plan or machine. */
static inline double k25_named_output_value(const struct k25_named_output *output, const struct k25_output_view *view)
{
    return output->of_step && !view->prediction->memory.fits ? __builtin_nan("") : output->get(view);
}

#endif
