/* What the reader of sweeps shares among its files; nobody else includes it. */
#ifndef K25_SCENARIOS_SWEEP_INTERNAL_H
#define K25_SCENARIOS_SWEEP_INTERNAL_H

#include "base/yaml.h"
#include "scenarios/sweep/sweep.h"

/* One "KEY=VALUE" for the loader of scenarios, and where it stands. */
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

/* A copy of the text in the arena of the sweep; NULL when memory is out. */
const char *k25_sweep_copy(const struct k25_sweep_reader *reader, const char *text);

/* A key as --set has it: of the plan, or the start of one outside of it. */
bool k25_sweep_read_key(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node, const char *name,
                        struct k25_sweep_key *key);
/* One value of a key: checked, with its number when the key is the plan's. */
bool k25_sweep_read_value(const struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                          const struct k25_yaml_node *node, struct k25_sweep_value *value);
/* The list of axes, and the number of points. */
bool k25_sweep_read_axes(const struct k25_sweep_reader *reader, const struct k25_yaml_node *node);

/* Loads the base scenario for its plan. */
bool k25_sweep_load_base(struct k25_sweep_reader *reader, const struct k25_yaml_node *base);
bool k25_sweep_add_override(struct k25_sweep_reader *reader, const struct k25_sweep_key *key,
                            const struct k25_sweep_value *value, const struct k25_yaml_node *node);
/* All combinations of what lies outside of the plan, and the sum of everything that was read. */
bool k25_sweep_load_scenarios(struct k25_sweep_reader *reader);
void k25_sweep_close_reader(struct k25_sweep_reader *reader);

#endif
