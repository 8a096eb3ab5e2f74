/* The outputs of an answer (model/predict/outputs.h), as rows and as JSON. */
#ifndef K25_CLI_RENDER_OUTPUTS_H
#define K25_CLI_RENDER_OUTPUTS_H

#include "cli/render/answer.h"
#include "cli/render/table.h"

/* Opens `table` with a row for every output that the answer has: all but figures of the step of a plan that does not
 * fit. */
void cli_output_table(const struct cli_answer *answer, struct cli_table *table);

/* Set members of `object` to outputs under their names, in their units; null where one does not apply. False when out
 * of memory. The second sets all that cli_output_table has. */
bool cli_set_output(json_t *object, const struct k25_question *question, const struct k25_prediction *prediction,
                    enum k25_output output);
bool cli_set_outputs(json_t *object, const struct k25_question *question, const struct k25_prediction *prediction);

/* Returns [low, high] of an output with an interval, in its unit; NULL when out of memory. */
json_t *cli_interval_json(const struct k25_intervals *intervals, enum k25_output output);

#endif
