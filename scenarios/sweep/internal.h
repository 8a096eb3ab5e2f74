/* What the files of this room share, and the way of a sweep through them:
 *
 *     sweep file      file.c, axes.c, scenarios.c    read once, with a scenario for each model, machine, ...
 *         |
 *     grid            grid.c                         the number of a point --> its plan and scenario
 *         |
 *     chunk of rows   chunk.c, expression.c          one worker a thread: constraints, prediction, cells (layout.c)
 *         |           summary.c, pareto.c, counts.c  and what is kept of the rows: counts, best of each group
 *         |
 *         |           run.c                          threads hand over their chunks in the order of the grid; other
 *         |                                          processes send theirs as messages to process 0
 *     store           store.c                        FILE.part, rows; FILE.state, a journal with a record a chunk.
 *         |                                          A restart reads both again and goes on
 *         |
 *         +---------> FILE, summary                  of a whole sweep
 *         |
 *         +---------> FILE, FILE.state               of each shard --> merge.c --> store --> FILE, summary
 *
 * What is stored depends on the grid alone, so the rows are the same bytes for any number of threads, processes, shards
 * and restarts.
 */
#ifndef K25_SCENARIOS_SWEEP_INTERNAL_H
#define K25_SCENARIOS_SWEEP_INTERNAL_H

#include "base/yaml.h"
#include "scenarios/sweep/expression.h"
#include "scenarios/sweep/store.h"
#include "scenarios/sweep/sweep.h"

/* ---- keys of the plan (grid.c) ---- */

/* All keys of the plan that are numbers, words or truth, in the order of their table; `*count` of them. NULL when
 * memory is out. The caller frees. */
struct k25_plan_key *k25_plan_keys(size_t *count);
/* A key of the plan as a number: words by their index, truth as 0 or 1. */
double k25_plan_get(const struct k25_plan_key *key, const struct k25_plan *plan);
void k25_plan_put(const struct k25_plan_key *key, double value, struct k25_plan *plan);

/* The symbols that expressions may use: outputs, then keys of the plan; each is bound to its entry of `values`, unless
 * that is NULL. NULL when memory is out; the caller frees. */
struct k25_symbol *k25_sweep_symbols(const struct k25_sweep *sweep, const double *values, size_t *count);

/* ---- reading the file (file.c, axes.c, scenarios.c) ---- */

/* One "KEY=VALUE" for the loader of scenarios, and where it was written. */
struct k25_sweep_override {
    char *text;
    int line, column;
};

struct k25_sweep_reader {
    const struct k25_library *library;
    struct k25_sweep *sweep;
    struct k25_error *error;
    struct k25_inputs inputs; /* every file that was read */
    char base[512];           /* the file of the base scenario */
    size_t overrides;         /* those of `set` */
    struct k25_sweep_override override[K25_SWEEP_KEYS];
};

/* An error at a node. */
bool k25_sweep_fail(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A copy of the text in the arena of the sweep; NULL with an error when memory is out. */
const char *k25_sweep_copy(const struct k25_sweep_reader *reader, const char *text);

/* A key as --set has it, found in the plan or left to the loader of scenarios. */
bool k25_sweep_read_key(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node,
                        struct k25_sweep_key *key);
/* One value of a key: checked, with its number, when the key is in the plan. */
bool k25_sweep_read_value(const struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                          const struct k25_yaml_node *node, struct k25_sweep_value *value);
/* The list of axes, and the number of points. */
bool k25_sweep_read_axes(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node);

/* Loads the base scenario for its plan. */
bool k25_sweep_load_base(struct k25_sweep_reader *reader, const struct k25_yaml_node *base);
/* A key of `set` and its value, for all scenarios. */
bool k25_sweep_add_override(struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                            const struct k25_sweep_value *value, const struct k25_yaml_node *node);
/* One scenario for every combination of the axes that load, and the sum of everything that was read. */
bool k25_sweep_load_scenarios(struct k25_sweep_reader *reader);
void k25_sweep_close_reader(struct k25_sweep_reader *reader);

/* ---- state files (store.c) ---- */

enum { K25_SWEEP_STATE_BYTES = 1 << 30 /* of a state file at most */ };

/* The first line after the layout: "shard 1 4 from 0 to 250". */
struct k25_sweep_shard_line {
    uint64_t shard, shards, from, to;
};
/* `*size` becomes the bytes of the line. */
bool k25_sweep_parse_shard(const char *text, struct k25_sweep_shard_line *line, size_t *size);

/* One chunk: a line of the state. */
struct k25_sweep_record {
    uint64_t to;   /* the first point after it */
    uint64_t size; /* bytes of its rows */
    uint64_t sum;  /* CRC-64 of them */
    struct k25_sweep_counts counts;
};

/* Goes through the records of a state file and reads the rows of each. */
struct k25_sweep_replay {
    const struct k25_sweep_layout *layout;
    int fd;                           /* of the rows, read from its position on */
    bool headed;                      /* the rows start with the layout's head; else no record counts */
    const char *at;                   /* the next record */
    uint64_t next, to;                /* points */
    struct k25_sweep_counts known;    /* the reasons that were declared so far */
    struct k25_sweep_record record;   /* the last one */
    char *rows;                       /* of it */
    size_t room;                      /* of `rows` */
    struct k25_sweep_summary summary; /* of it */
};

enum k25_sweep_step {
    K25_REPLAY_CHUNK,  /* a record and its rows */
    K25_REPLAY_END,    /* none, or it is cut off, or its rows are not those that it was written for */
    K25_REPLAY_FAILED, /* with an error */
};

/* For the points from..to-1; `records` outlives it. NULL with an error when memory is out. */
struct k25_sweep_replay *k25_sweep_replay_open(const struct k25_sweep_layout *layout, const char *records, int fd,
                                               uint64_t from, uint64_t to, struct k25_error *error);
enum k25_sweep_step k25_sweep_replay_next(struct k25_sweep_replay *replay, struct k25_error *error);
void k25_sweep_replay_close(struct k25_sweep_replay *replay);

#endif
