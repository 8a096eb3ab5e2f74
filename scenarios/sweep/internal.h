/* Shared by the files of this folder, and the data flow of a sweep through them:
 *
 *     sweep file      file.c, axes.c, scenarios.c    read once, with a scenario for each model, machine, ...
 *         |
 *     grid            grid.c                         the number of a point --> its plan and scenario
 *         |
 *     chunk of rows   chunk.c, expression.c          one worker per thread: constraints, prediction, cells (layout.c)
 *         |           summary.c, pareto.c, counts.c  and the summary of the rows: counts, best of each group
 *         |
 *         |           run.c                          threads deliver their chunks in the order of the grid; other
 *         |                                          processes send theirs as messages to process 0
 *     store           store.c                        FILE.part, rows; FILE.state, a journal with a record per chunk.
 *         |                                          A restart reads both and continues
 *         |
 *         +---------> FILE, summary                  of a whole sweep
 *         |
 *         +---------> FILE, FILE.state               of each shard --> merge.c --> store --> FILE, summary
 *
 * The rows depend on the grid alone: they are the same bytes for any number of threads, processes, shards and restarts.
 */
#ifndef K25_SCENARIOS_SWEEP_INTERNAL_H
#define K25_SCENARIOS_SWEEP_INTERNAL_H

#include "base/yaml.h"
#include "scenarios/sweep/expression.h"
#include "scenarios/sweep/store.h"
#include "scenarios/sweep/sweep.h"

/* ---- keys of the plan (grid.c) ---- */

/* Returns all keys of the plan that are numbers, words or truth, in the order of their table; sets `*count`. The caller
 * frees the array with free(). NULL when out of memory. */
struct k25_plan_key *k25_plan_keys(size_t *count);
/* The value of a key of the plan as a number: words by their index, truth as 0 or 1. */
double k25_plan_get(const struct k25_plan_key *key, const struct k25_plan *plan);
/* Sets it; `value` is in the range of the key. */
void k25_plan_put(const struct k25_plan_key *key, double value, struct k25_plan *plan);

/* Returns the symbols of expressions: outputs, then keys of the plan. Symbol i is bound to values[i]; `values` may be
 * NULL. Sets `*count`. The caller frees the array with free(). NULL when out of memory. */
struct k25_symbol *k25_sweep_symbols(const struct k25_sweep *sweep, const double *values, size_t *count);

/* ---- reading the file (file.c, axes.c, scenarios.c) ---- */

/* One "KEY=VALUE" for the loader of scenarios, and its position in the sweep file. */
struct k25_sweep_override {
    char *text;
    int line, column;
};

struct k25_sweep_reader {
    const struct k25_library *library;
    struct k25_sweep *sweep;
    struct k25_error *error;
    struct k25_inputs inputs; /* all files that were read */
    char base[512];           /* path of the base scenario */
    size_t overrides;         /* from the key `set` */
    struct k25_sweep_override override[K25_SWEEP_KEYS];
};

/* Fills the reader's error with the position of `node`; returns false. */
bool k25_sweep_fail(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns a copy of the text in the arena of the sweep; NULL with an error when out of memory. */
const char *k25_sweep_copy(const struct k25_sweep_reader *reader, const char *text);

/* The functions below fill their last argument, or the sweep, from a node, and return false with an error. */

/* A key as in --set: of the plan, else for the loader of scenarios. */
bool k25_sweep_read_key(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node,
                        struct k25_sweep_key *key);
/* One value of a key; for a key of the plan it is checked and converted to a number. */
bool k25_sweep_read_value(const struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                          const struct k25_yaml_node *node, struct k25_sweep_value *value);
/* The axes and the number of points. */
bool k25_sweep_read_axes(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node);

/* Loads the base scenario for its plan. */
bool k25_sweep_load_base(struct k25_sweep_reader *reader, const struct k25_yaml_node *base);
/* Adds a key of `set` and its value to the overrides of all scenarios. */
bool k25_sweep_add_override(struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                            const struct k25_sweep_value *value, const struct k25_yaml_node *node);
/* One scenario for every combination of values that load one, and the checksum of all files read. */
bool k25_sweep_load_scenarios(struct k25_sweep_reader *reader);
/* Frees what the reader owns; the sweep remains. */
void k25_sweep_close_reader(struct k25_sweep_reader *reader);

/* ---- state files (store.c) ---- */

enum { K25_SWEEP_STATE_BYTES = 1 << 30 /* the largest state file that is read */ };

/* The first line after the layout: "shard 1 4 from 0 to 250". */
struct k25_sweep_shard_line {
    uint64_t shard, shards, from, to;
};
/* Parses that line at the start of `text`; `*size` is set to its length. False when there is none. */
bool k25_sweep_parse_shard(const char *text, struct k25_sweep_shard_line *line, size_t *size);

/* One chunk: a line of the state. */
struct k25_sweep_record {
    uint64_t to;   /* the first point after it */
    uint64_t size; /* bytes of its rows */
    uint64_t sum;  /* CRC-64 of them */
    struct k25_sweep_counts counts;
};

/* Reads the records of a state file one by one, with their rows. */
struct k25_sweep_replay {
    const struct k25_sweep_layout *layout;
    int fd;                           /* of the rows, read from its current position */
    bool headed;                      /* the rows start with the layout's head; else no record is valid */
    const char *at;                   /* the next record */
    uint64_t next, to;                /* points */
    struct k25_sweep_counts known;    /* the reasons declared so far */
    struct k25_sweep_record record;   /* the last one */
    char *rows;                       /* of the last record */
    size_t room;                      /* bytes allocated for `rows` */
    struct k25_sweep_summary summary; /* of the last record */
};

enum k25_sweep_step {
    K25_REPLAY_CHUNK,  /* a record and its rows */
    K25_REPLAY_END,    /* no record, a truncated one, or its rows do not have its size and checksum */
    K25_REPLAY_FAILED, /* an error: reading failed, or out of memory */
};

/* Opens a replay of the points from..to-1. `records` (text of the state file) and `layout` must outlive it; `fd`
 * remains the caller's. The caller frees it with k25_sweep_replay_close. NULL with an error when out of memory. */
struct k25_sweep_replay *k25_sweep_replay_open(const struct k25_sweep_layout *layout, const char *records, int fd,
                                               uint64_t from, uint64_t to, struct k25_error *error);
enum k25_sweep_step k25_sweep_replay_next(struct k25_sweep_replay *replay, struct k25_error *error);
void k25_sweep_replay_close(struct k25_sweep_replay *replay);

#endif
