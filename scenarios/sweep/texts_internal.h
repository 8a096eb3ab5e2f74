/* Inside of scenarios/sweep/chunk.h: the cells of the axes as text. */
#ifndef K25_SCENARIOS_SWEEP_TEXTS_INTERNAL_H
#define K25_SCENARIOS_SWEEP_TEXTS_INTERNAL_H

#include "scenarios/sweep/chunk.h"

struct k25_sweep_texts {
    struct k25_sweep_cell
        *cell[K25_SWEEP_COLUMNS]; /* by position on the column's axis; NULL: a range, written as it comes */
    size_t longest[K25_SWEEP_COLUMNS];
    struct k25_arena arena;
};

#endif
