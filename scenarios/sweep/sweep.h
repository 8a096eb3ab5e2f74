/* A sweep: a base scenario, the axes of a grid of plans around it, constraints, and the ranking (docs/formats.md).
 *
 * Loading a sweep resolves all that does not change from point to point: keys to their offset in the plan, values to
 * numbers, and one loaded scenario for every combination of keys that are not numbers, words or truth of the plan. To
 * run a sweep:
 *
 *     k25_sweep_load(library, name, &sweep, error)                      the grid
 *     k25_sweep_layout_make(&sweep, format, version, &layout, error)    columns and format of rows   (layout.h)
 *     k25_sweep_store_open(&store, &layout, file, ..., error)           the output file              (store.h)
 *     k25_sweep_run(&sweep, &layout, &options, &store, from, to, error) computes the rows            (run.h)
 *     k25_sweep_store_finish(&store, error)                             store.summary is complete
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
#include "scenarios/sweep/counts.h"

#define K25_SWEEP_AXES 24
#define K25_SWEEP_KEYS 64           /* of all axes together, and overrides of the base */
#define K25_SWEEP_POSITIONS 1000000 /* of one axis with a list of values or a factor */
#define K25_SWEEP_OBJECTIVES 3
#define K25_SWEEP_COLUMNS 128
#define K25_SWEEP_LOADS 4096 /* scenarios */
#define K25_SWEEP_TOP 1000
#define K25_SWEEP_MOST (UINT64_C(1) << 53) /* points */

/* A key of the plan that is a number, a word or truth. */
struct k25_plan_key {
    char path[96]; /* "plan.allreduce.backend" */
    const struct k25_field *field;
    size_t offset; /* in struct k25_plan */
};

struct k25_sweep_value {
    const char *text; /* as written; NULL: the variant keeps the base's value */
    double number;    /* of keys of the plan */
    int line, column;
};

struct k25_sweep_key {
    const char *name;                /* "plan.batch", "machine" */
    const struct k25_plan_key *plan; /* NULL: a key for the loader of scenarios: outside of the plan, or a text of it */
};

/* An axis with `count` positions. The value of a key at a position is values[position x keys + key]; that of a range is
 * (from + position x step) / scale, where `scale` is the power of ten that makes `from` and `step` integers, so that
 * 0.1 + 2 x 0.1 is 0.3. */
struct k25_sweep_axis {
    uint64_t count;
    size_t keys;
    struct k25_sweep_key *key;
    struct k25_sweep_value *values; /* NULL: a range, of one key of the plan */
    double from, step, scale;
    const char *name;     /* column of the names of variants; NULL: no variants, the keys are columns */
    const char **names;   /* [count] of variants */
    bool loads;           /* has keys for the loader of scenarios */
    uint64_t load_stride; /* distance of its positions in the list of scenarios; 0 without such keys */
    int line, column;
};

struct k25_sweep_constraint {
    const char *text;
    bool early; /* depends on keys of the plan only: evaluated before the prediction */
    int line, column;
};

/* The source of a column's cells. */
enum k25_sweep_source {
    K25_CELL_KEY,    /* a key of an axis: `axis`, and `index` of its keys */
    K25_CELL_NAME,   /* the name of a variant: `axis` */
    K25_CELL_PLAN,   /* a key of the plan: `index` of plan_key */
    K25_CELL_OUTPUT, /* `index` is its enum k25_output */
};

struct k25_sweep_column {
    const char *name;
    enum k25_sweep_source source;
    size_t axis, index;
};

struct k25_sweep_objective {
    size_t column;
    bool maximise;
};

struct k25_sweep {
    char file[512];
    char name[64], title[256];
    struct k25_plan plan; /* of the base, with the numbers and words of the key `set` */
    size_t plan_keys;
    struct k25_plan_key *plan_key;
    size_t axes;
    struct k25_sweep_axis axis[K25_SWEEP_AXES];
    uint64_t points; /* the product */
    size_t loads;
    struct k25_scenario *scenario; /* [loads], without their records of inputs */
    size_t constraints;
    struct k25_sweep_constraint constraint[K25_SWEEP_CONSTRAINTS];
    size_t columns;
    struct k25_sweep_column column[K25_SWEEP_COLUMNS];
    size_t objectives;
    struct k25_sweep_objective objective[K25_SWEEP_OBJECTIVES];
    size_t groups; /* columns of group_by */
    size_t group[K25_SWEEP_AXES];
    size_t top;             /* 0: no ranking */
    struct k25_inputs read; /* all files that were read */
    uint64_t inputs;        /* CRC-64 of those files (k25_inputs_sum) */
    struct k25_arena arena; /* owns the texts */
};

/* Loads the sweep `name` (a path, or a name of the library) with everything it refers to. Returns false with
 * K25_BAD_INPUT and the position in the file, or with K25_RESOURCE when a file cannot be read or out of memory. Release
 * with k25_sweep_free, also after a failure. */
bool k25_sweep_load(const struct k25_library *library, const char *name, struct k25_sweep *sweep,
                    struct k25_error *error);
/* Frees what the sweep owns, not the struct itself. */
void k25_sweep_free(struct k25_sweep *sweep);

#endif
