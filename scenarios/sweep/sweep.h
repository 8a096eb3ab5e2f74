/* A sweep: many questions at once, as a base scenario and the axes of a grid (docs/formats.md).
 *
 * Reading one resolves everything that does not change from point to point: keys to their place in the plan,
 * values to numbers and to the text of their cells, and one loaded scenario for every combination of what lies
 * outside the plan.
 */
#ifndef K25_SCENARIOS_SWEEP_SWEEP_H
#define K25_SCENARIOS_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/schema.h"
#include "scenarios/library/library.h"
#include "scenarios/library/scenario.h"
#include "scenarios/sweep/expression.h"

#define K25_SWEEP_AXES 24
#define K25_SWEEP_KEYS 64           /* of all axes together, and overrides of the base */
#define K25_SWEEP_POSITIONS 1000000 /* of one axis that is written or grows by a factor */
#define K25_SWEEP_CONSTRAINTS 32
#define K25_SWEEP_OBJECTIVES 3
#define K25_SWEEP_COLUMNS 128
#define K25_SWEEP_LOADS 4096 /* scenarios */
#define K25_SWEEP_TOP 1000
#define K25_SWEEP_MOST (UINT64_C(1) << 53) /* points */

/* One scalar key of the plan, found once. */
struct k25_plan_key {
    char path[96]; /* "plan.allreduce.backend" */
    const struct k25_field *field;
    size_t offset; /* in struct k25_plan */
};

/* All keys of the plan that are numbers, words or truth, in the order of their table; `*count` of them. NULL when
 * memory is out. The caller frees. */
struct k25_plan_key *k25_plan_keys(size_t *count);
/* A key of the plan as a number: words by their index, truth as 0 or 1. */
double k25_plan_get(const struct k25_plan_key *key, const struct k25_plan *plan);
void k25_plan_put(const struct k25_plan_key *key, double value, struct k25_plan *plan);

struct k25_sweep_value {
    const char *text; /* as written; NULL: a variant that leaves this key to the base */
    double number;    /* keys of the plan */
    int line, column;
};

struct k25_sweep_key {
    const char *name;                /* "plan.batch", "machine" */
    const struct k25_plan_key *plan; /* NULL: a key outside of the plan */
};

/* `count` positions; what they set is values[position x keys + key]. A range has no list:
 * (from + position x step) / scale, with `scale` the power of ten that makes both whole, so that 0.1 + 2 x 0.1 is
 * 0.3. */
struct k25_sweep_axis {
    uint64_t count;
    size_t keys;
    struct k25_sweep_key *key;
    struct k25_sweep_value *values; /* NULL: a range, of one key of the plan */
    double from, step, scale;
    const char *name;     /* of variants; NULL: the axis goes by its keys */
    const char **names;   /* count: of variants */
    bool loads;           /* has keys outside of the plan */
    uint64_t load_stride; /* of its positions in the list of scenarios; 0 without such keys */
    int line, column;
};

struct k25_sweep_constraint {
    const char *text;
    bool early; /* names keys of the plan only: decided before anything is predicted */
    int line, column;
};

enum k25_sweep_source { K25_CELL_KEY, K25_CELL_NAME, K25_CELL_PLAN, K25_CELL_OUTPUT };

struct k25_sweep_column {
    const char *name;
    int source;         /* enum k25_sweep_source */
    size_t axis, index; /* KEY: axis and key; NAME: axis; PLAN: `index` in plan_keys; OUTPUT: in k25_named_outputs */
};

struct k25_sweep_objective {
    size_t column;
    bool maximise;
};

struct k25_sweep {
    char file[512];
    char name[64], title[256];
    struct k25_plan plan; /* of the base, with `set` */
    size_t plan_keys;
    struct k25_plan_key *plan_key;
    size_t axes;
    struct k25_sweep_axis axis[K25_SWEEP_AXES];
    uint64_t points; /* the product */
    size_t loads;
    struct k25_scenario *scenario; /* loads */
    size_t constraints;
    struct k25_sweep_constraint constraint[K25_SWEEP_CONSTRAINTS];
    size_t columns;
    struct k25_sweep_column column[K25_SWEEP_COLUMNS];
    size_t objectives;
    struct k25_sweep_objective objective[K25_SWEEP_OBJECTIVES];
    size_t groups; /* columns that group */
    size_t group[K25_SWEEP_AXES];
    size_t top;      /* 0: no ranking */
    uint64_t inputs; /* CRC-64 of everything that the rows follow from */
    struct k25_arena arena;
};

/* The symbols that expressions may use: outputs, then keys of the plan that are numbers; `values`, unless NULL, is
 * bound to them, one each. NULL when memory is out; the caller frees. */
struct k25_symbol *k25_sweep_symbols(const struct k25_sweep *sweep, const double *values, size_t *count);

/* The number of scenarios for the positions of all axes. */
static inline uint64_t k25_sweep_scenario(const struct k25_sweep *sweep, const uint64_t *position)
{
    uint64_t index = 0;
    for (size_t a = 0; a < sweep->axes; a++)
        index += position[a] * sweep->axis[a].load_stride;
    return index;
}

#endif
