/* From a row back to its point: what the summary asks of rows that it shows. */
#ifndef K25_SCENARIOS_SWEEP_FIND_H
#define K25_SCENARIOS_SWEEP_FIND_H

#include "scenarios/sweep/chunk.h"
#include "scenarios/sweep/grid.h"

/* Sets `cursor` to the first point whose cells of the axes are those of a row; false when no point has them. */
bool k25_sweep_find(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                    const struct k25_sweep_texts *texts, const struct k25_sweep_cell *cells,
                    struct k25_sweep_cursor *cursor);

/* The question that a cursor stands at; false when it is no plan for its model and machine. */
bool k25_sweep_question(const struct k25_sweep_cursor *cursor, struct k25_question *question, struct k25_error *error);

#endif
