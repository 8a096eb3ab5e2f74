#include "scenarios/library/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/schema.h"
#include "base/text.h"

static const struct k25_field load_fields[] = {
    K25_FIELD(REAL, k25_load, short_prompt, .fallback = "64", .min = 1, .max = 1e6, .unit = "tokens",
              .doc = "prompt that a table of measurements calls context 0"),
    K25_FIELD(REAL, k25_load, output_max, .fallback = "8192", .min = 1, .max = 1e7, .unit = "tokens",
              .doc = "tokens after which a request of a load test ends"),
    K25_FIELD(REAL, k25_load, cell_seconds, .fallback = "0", .min = 0, .max = 1e6, .unit = "s",
              .doc = "length of a measured cell that does not say; 0: unknown"),
    K25_FIELD(REAL, k25_load, acceptance_noise, .fallback = "0.085", .min = 0, .max = 2,
              .doc = "sd of ln(tokens a step) that a server reports for one measured cell, around what the cell had"),
    K25_FIELD(REAL, k25_load, acceptance_spread, .fallback = "0.03", .min = 1e-6, .max = 2,
              .doc = "sd of what the cells of a group had, around their mean"),
    K25_FIELD(REAL, k25_load, prompt, .fallback = "1024", .min = 1, .max = 1e8, .unit = "tokens",
              .doc = "of a request's prompt (serve)"),
    K25_FIELD(REAL, k25_load, output, .fallback = "1024", .min = 1, .max = 1e8, .unit = "tokens",
              .doc = "of a request's answer (serve)"),
    K25_FIELD(INT, k25_load, chunk, .fallback = "8192", .min = 0, .max = 1e6, .unit = "tokens",
              .doc = "prompt tokens in a step at most; 0: a whole prompt at once (serve)"),
    K25_FIELD(REAL, k25_load, prefix_hit, .fallback = "0", .min = 0, .max = 1, .unit = "share",
              .doc = "of the prompt, found in the cache (serve)"),
    K25_FIELD(REAL, k25_load, rounds, .fallback = "0", .min = 0, .max = 1e9, .unit = "requests",
              .doc = "of a user in a test that all start together, at least 1; 0: a long run (serve)"),
    K25_FIELD(REAL, k25_load, front_ms, .fallback = "0", .min = 0, .max = 1e6, .unit = "ms",
              .doc = "of a request before the engine: network, tokeniser (serve)"),
    K25_FIELD(BOOL, k25_load, disaggregated, .fallback = "false",
              .doc = "prefill runs on a second, equal machine (serve)"),
    K25_FIELD(REAL, k25_load, transfer_gbs, .fallback = "50", .min = 0.001, .max = 1e6, .unit = "GB/s",
              .doc = "into each GPU, at which its cache arrives from there (serve)"),
    {.key = NULL},
};

enum { NAME_SIZE = sizeof((struct k25_scenario *)0)->architecture_name };

/* The content of a scenario file, before its references are resolved. */
struct file_record {
    const struct k25_yaml_node *plan, *assumptions;
    char name[64], title[256];
    char architecture[NAME_SIZE], weights[NAME_SIZE], machine[NAME_SIZE], calibration[NAME_SIZE];
    char draft[NAME_SIZE], draft_weights[NAME_SIZE];
    struct k25_load load;
};

const struct k25_field k25_scenario_fields[] = {
    K25_FIELD(TEXT, file_record, name, .doc = "name of the scenario"),
    K25_FIELD(TEXT, file_record, title, .fallback = "", .doc = "one line for people"),
    K25_FIELD(TEXT, file_record, architecture, .doc = "name in model/zoo, or a path"),
    K25_FIELD(TEXT, file_record, weights, .doc = "quantisation scheme of that architecture, or a path"),
    K25_FIELD(TEXT, file_record, machine, .doc = "name in hw/machines, or a path"),
    K25_FIELD(TEXT, file_record, calibration, .fallback = "none",
              .doc = "name in calib, or a path; none: every parameter keeps its prior"),
    K25_FIELD(TEXT, file_record, draft, .fallback = "none",
              .doc = "draft model of plan.speculation (eagle3, draft): name in model/zoo, or a path"),
    K25_FIELD(TEXT, file_record, draft_weights, .fallback = "bf16", .doc = "its quantisation scheme, or a path"),
    K25_FIELD(MAP, file_record, load, .fallback = "{}", .fields = load_fields,
              .doc = "how measured points relate to the step"),
    K25_FIELD(NODE, file_record, assumptions, .fallback = "", .doc = "list of sentences printed with the result"),
    K25_FIELD(NODE, file_record, plan, .doc = "the plan"),
    {.key = NULL},
};

/* ---- keys of overrides ---- */

/* The references that `--set KEY=NAME` replaces. */
static const struct {
    const char *key;
    size_t written, name; /* in file_record and in k25_scenario: char[NAME_SIZE] */
} references[] = {
#define REFERENCE(key)                                                                                                 \
    {                                                                                                                  \
#key, offsetof(struct file_record, key), offsetof(struct k25_scenario, key##_name)                             \
    }
    REFERENCE(architecture),  REFERENCE(weights), REFERENCE(draft),
    REFERENCE(draft_weights), REFERENCE(machine), REFERENCE(calibration),
#undef REFERENCE
};
enum { REFERENCES = sizeof references / sizeof *references };

/* The first parts of all keys, in the order of messages. */
static const char *const first_parts[] = {"plan",          "machine",     "architecture", "weights", "draft",
                                          "draft_weights", "calibration", "parameters",   "load",    NULL};

static void first_part(const char *key, char out[64])
{
    snprintf(out, 64, "%.*s", (int)strcspn(key, "."), key);
}

bool k25_scenario_has_key(const char *key)
{
    char first[64];
    first_part(key, first);
    for (int i = 0; first_parts[i] != NULL; i++) {
        if (strcmp(first, first_parts[i]) == 0)
            return true;
    }
    return false;
}

bool k25_scenario_is_reference(const char *key)
{
    if (strcmp(key, "machine.gpu") == 0)
        return true;
    for (int i = 0; i < REFERENCES; i++) {
        if (strcmp(key, references[i].key) == 0)
            return true;
    }
    return false;
}

const char *k25_scenario_unknown_key(const char *key, char *out, size_t size)
{
    char first[64], hint[80] = "", list[200] = "";
    first_part(key, first);
    if (!k25_scenario_has_key(key))
        k25_did_you_mean(first, first_parts, hint, sizeof hint);
    for (size_t i = 0, used = 0; first_parts[i] != NULL && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0                       ? ""
                                 : first_parts[i + 1] != NULL ? ", "
                                                              : " or ",
                                 first_parts[i]);
    snprintf(out, size, "unknown key '%s'%s; keys start with %s", key, hint, list);
    return out;
}

/* ---- overrides ---- */

/* An override split at its first '='. `used`: some key took it. */
struct override {
    char key[256];
    char value[512];
    bool used;
};

struct overrides {
    struct override *list;
    size_t count;
};

static bool split_overrides(const char *const *set, size_t count, struct overrides *overrides, struct k25_error *error)
{
    overrides->list = calloc(count + 1, sizeof *overrides->list);
    overrides->count = count;
    if (overrides->list == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(set[i], '=');
        struct override *o = &overrides->list[i];
        if (equals == NULL || equals == set[i] || (size_t)(equals - set[i]) >= sizeof o->key ||
            strlen(equals + 1) >= sizeof o->value)
            return k25_fail(error, K25_BAD_INPUT, "--set %s: expected KEY=VALUE, as in plan.tp=4", set[i]);
        memcpy(o->key, set[i], (size_t)(equals - set[i]));
        snprintf(o->value, sizeof o->value, "%s", equals + 1);
    }
    return true;
}

/* The value of the last override of exactly `key`, `otherwise` when there is none. */
static const char *overridden(struct overrides *overrides, const char *key, const char *otherwise)
{
    for (size_t i = 0; i < overrides->count; i++) {
        if (strcmp(overrides->list[i].key, key) == 0) {
            overrides->list[i].used = true;
            otherwise = overrides->list[i].value;
        }
    }
    return otherwise;
}

/* Applies the overrides below `prefix` to a record with a table. */
static bool apply(struct overrides *overrides, const char *prefix, const struct k25_field *fields, void *record,
                  struct k25_inputs *inputs, struct k25_error *error)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < overrides->count; i++) {
        struct override *o = &overrides->list[i];
        if (strncmp(o->key, prefix, length) != 0 || o->key[length] != '.')
            continue;
        o->used = true;
        if (!k25_schema_set(fields, prefix, o->key + length + 1, o->value, record, inputs, error))
            return false;
    }
    return true;
}

/* The GPU first, wherever it is in the list: the other overrides change its figures. */
static bool apply_machine(struct overrides *overrides, const struct k25_machine_parts *parts,
                          struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    const char *gpu = overridden(overrides, "machine.gpu", NULL);
    if (gpu != NULL && !k25_machine_set(machine, "gpu", gpu, parts, inputs, error))
        return false;
    for (size_t i = 0; i < overrides->count; i++) {
        struct override *o = &overrides->list[i];
        if (strncmp(o->key, "machine.", 8) != 0 || strcmp(o->key, "machine.gpu") == 0)
            continue;
        o->used = true;
        if (!k25_machine_set(machine, o->key + 8, o->value, parts, inputs, error))
            return false;
    }
    return true;
}

static bool apply_parameters(struct overrides *overrides, struct k25_params *params, struct k25_inputs *inputs,
                             struct k25_error *error)
{
    char hint[80];
    for (size_t i = 0; i < overrides->count; i++) {
        struct override *o = &overrides->list[i];
        if (strncmp(o->key, "parameters.", 11) != 0)
            continue;
        o->used = true;
        int id = k25_param_find(o->key + 11);
        if (id < 0)
            return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: unknown parameter '%s'%s", o->key, o->value,
                            o->key + 11, k25_did_you_mean(o->key + 11, k25_param_names, hint, sizeof hint));
        double value;
        if (!k25_parse_real(o->value, &value))
            return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: '%s' is not a number", o->key, o->value, o->value);
        if (!k25_param_valid(id, value * k25_param_info[id].scale))
            return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: %s is out of range for %s%s", o->key, o->value,
                            o->value, k25_param_info[id].name, k25_param_valid(id, 0) ? "; 0 is allowed" : "");
        params->value[id] = value * k25_param_info[id].scale;
        struct k25_input input = {o->key, o->value, (char *)k25_param_info[id].unit, K25_FROM_OVERRIDE, "--set", 0, 0};
        if (!k25_inputs_record(inputs, input, error))
            return false;
    }
    return true;
}

static bool all_used(const struct overrides *overrides, struct k25_error *error)
{
    char why[K25_UNKNOWN_KEY];
    for (size_t i = 0; i < overrides->count; i++) {
        const struct override *o = &overrides->list[i];
        if (!o->used)
            return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: %s", o->key, o->value,
                            k25_scenario_unknown_key(o->key, why, sizeof why));
    }
    return true;
}

static bool load_assumptions(const struct k25_yaml_node *node, const char *file, struct k25_scenario *scenario,
                             struct k25_error *error)
{
    if (node == NULL)
        return true;
    if (node->kind != K25_YAML_SEQUENCE || node->count > K25_MAX_ASSUMPTIONS)
        return k25_fail_at(error, file, node->line, node->column,
                           "assumptions: expected a list of at most %d sentences", K25_MAX_ASSUMPTIONS);
    for (size_t i = 0; i < node->count; i++) {
        const struct k25_yaml_node *entry = node->values[i];
        if (entry->kind != K25_YAML_SCALAR || strlen(entry->text) >= sizeof scenario->assumption[0])
            return k25_fail_at(error, file, entry->line, entry->column,
                               "assumptions: expected a sentence of at most 255 bytes");
        snprintf(scenario->assumption[i], sizeof scenario->assumption[i], "%s", entry->text);
    }
    scenario->assumptions = node->count;
    return true;
}

/* The weights of an architecture that is a user's file STEM.yaml: STEM.SCHEME.yaml in the same folder, as `import hf`
 * writes them. */
static bool weights_beside(const char *architecture_file, const char *name, char *path, size_t size)
{
    const char *dot = strrchr(architecture_file, '.');
    if (strchr(name, '/') != NULL || dot == NULL || strcmp(dot, ".yaml") != 0)
        return false;
    int length = snprintf(path, size, "%.*s.%s.yaml", (int)(dot - architecture_file), architecture_file, name);
    return length > 0 && (size_t)length < size && k25_file_exists(path);
}

/* The path of the reference under `key`. A relative path is relative to the file that it was written in, whose position
 * errors have. `architecture` is the one whose weights are looked for. */
static bool resolve(const struct k25_library *library, enum k25_files kind, const char *key, const char *name,
                    const char *architecture, const struct k25_scenario *s, char *path, size_t size,
                    struct k25_error *error)
{
    const struct k25_input *input = k25_inputs_find(&s->inputs, key);
    const char *from = input != NULL && input->origin == K25_FROM_OVERRIDE ? "" : s->file;
    struct k25_error found;
    return k25_library_find(library, kind, name, architecture, from, path, size, &found) ||
           k25_inputs_fail(&s->inputs, key, error, "%s", found.message);
}

/* The model and its weights, under their keys of the scenario. */
static bool load_model(const struct k25_library *library, struct overrides *overrides, struct k25_scenario *s,
                       struct k25_error *error)
{
    char path[1024];
    struct k25_inputs *inputs = &s->inputs;
    return resolve(library, K25_FILES_ARCHITECTURE, "architecture", s->architecture_name, "", s, s->architecture_file,
                   sizeof s->architecture_file, error) &&
           k25_architecture_load(s->architecture_file, &s->architecture, inputs, error) &&
           apply(overrides, "architecture", k25_architecture_fields, &s->architecture, inputs, error) &&
           k25_architecture_check(&s->architecture, inputs, error) &&
           (weights_beside(s->architecture_file, s->weights_name, path, sizeof path) ||
            resolve(library, K25_FILES_WEIGHTS, "weights", s->weights_name, s->architecture.name, s, path, sizeof path,
                    error)) &&
           k25_weights_load(path, &s->weights, inputs, error) &&
           apply(overrides, "weights", k25_weights_fields, &s->weights, inputs, error) &&
           k25_weights_check(&s->weights, inputs, error);
}

/* The draft model, where one is named. Its own keys cannot be set: another draft is another file. */
static bool load_draft(const struct k25_library *library, struct k25_scenario *s, struct k25_inputs *unnamed,
                       struct k25_error *error)
{
    char file[1024], path[1024];
    s->drafts = strcmp(s->draft_name, "none") != 0;
    return !s->drafts ||
           (resolve(library, K25_FILES_ARCHITECTURE, "draft", s->draft_name, "", s, file, sizeof file, error) &&
            k25_architecture_load(file, &s->draft_architecture, unnamed, error) &&
            (weights_beside(file, s->draft_weights_name, path, sizeof path) ||
             resolve(library, K25_FILES_WEIGHTS, "draft_weights", s->draft_weights_name, s->draft_architecture.name, s,
                     path, sizeof path, error)) &&
            k25_weights_load(path, &s->draft_weights, unnamed, error));
}

/* The references, each after those that it depends on. `unnamed` records the inputs that have no key in a scenario: the
 * figures of the draft and of links. */
static bool load_references(const struct k25_library *library, struct overrides *overrides, struct k25_scenario *s,
                            struct k25_inputs *unnamed, struct k25_error *error)
{
    char path[1024];
    struct k25_inputs *inputs = &s->inputs;
    struct k25_machine_parts parts;
    if (!k25_library_params(library, path, sizeof path) || !k25_priors_load(path, &s->priors, inputs, error))
        return false;
    if (!load_model(library, overrides, s, error) || !load_draft(library, s, unnamed, error))
        return false;
    if (!k25_library_parts(library, &parts, unnamed, error) ||
        !resolve(library, K25_FILES_MACHINE, "machine", s->machine_name, "", s, path, sizeof path, error) ||
        !k25_machine_load(path, &parts, &s->machine, inputs, error) ||
        !apply_machine(overrides, &parts, &s->machine, inputs, error))
        return false;
    s->calibrated = strcmp(s->calibration_name, "none") != 0;
    if (s->calibrated && (!resolve(library, K25_FILES_CALIBRATION, "calibration", s->calibration_name, "", s, path,
                                   sizeof path, error) ||
                          !k25_calibration_load(path, &s->calibration, inputs, error)))
        return false;
    k25_params_resolve(&s->priors, s->calibrated ? &s->calibration : NULL, &s->params);
    return apply_parameters(overrides, &s->params, inputs, error);
}

/* A reference: the override's value, else the file's. */
static bool take_name(const char *key, const char *written, struct overrides *overrides, struct k25_scenario *s,
                      char *name, struct k25_error *error)
{
    const char *given = overridden(overrides, key, NULL);
    if (given != NULL && strlen(given) >= NAME_SIZE)
        return k25_fail(error, K25_BAD_INPUT, "--set %s=...: longer than %d bytes", key, NAME_SIZE - 1);
    snprintf(name, NAME_SIZE, "%s", given != NULL ? given : written);
    struct k25_input input = {(char *)key, name, "", K25_FROM_OVERRIDE, "--set", 0, 0};
    return given == NULL || k25_inputs_record(&s->inputs, input, error);
}

static bool take_names(const struct file_record *record, struct overrides *overrides, struct k25_scenario *s,
                       struct k25_error *error)
{
    snprintf(s->name, sizeof s->name, "%s", record->name);
    snprintf(s->title, sizeof s->title, "%s", record->title);
    s->load = record->load;
    for (int i = 0; i < REFERENCES; i++) {
        if (!take_name(references[i].key, (const char *)record + references[i].written, overrides, s,
                       (char *)s + references[i].name, error))
            return false;
    }
    return true;
}

static bool load(const struct k25_library *library, const char *name, struct overrides *overrides,
                 struct k25_scenario *s, struct k25_error *error)
{
    if (!k25_library_find(library, K25_FILES_SCENARIO, name, "", "", s->file, sizeof s->file, error))
        return false;
    struct k25_yaml *yaml = k25_yaml_read(s->file, &s->inputs, error);
    if (yaml == NULL)
        return false;
    struct file_record record;
    bool ok = k25_schema_head(yaml, "scenario", error) &&
              k25_schema_load(k25_scenario_fields, "", k25_yaml_root(yaml), s->file, &record, &s->inputs, error) &&
              k25_schema_load(k25_plan_fields, "plan", record.plan, s->file, &s->plan, &s->inputs, error) &&
              load_assumptions(record.assumptions, s->file, s, error);
    k25_yaml_free(yaml);
    if (!ok)
        return false;
    struct k25_inputs unnamed = {0};
    ok = take_names(&record, overrides, s, error) &&
         apply(overrides, "load", load_fields, &s->load, &s->inputs, error) &&
         apply(overrides, "plan", k25_plan_fields, &s->plan, &s->inputs, error) &&
         load_references(library, overrides, s, &unnamed, error) && all_used(overrides, error) &&
         k25_inputs_add_files(&s->inputs, &unnamed, error);
    k25_inputs_free(&unnamed);
    return ok;
}

bool k25_scenario_load(const struct k25_library *library, const char *name, const char *const *set, size_t count,
                       struct k25_scenario *scenario, struct k25_error *error)
{
    struct overrides overrides = {0};
    memset(scenario, 0, sizeof *scenario);
    bool ok = split_overrides(set, count, &overrides, error) && load(library, name, &overrides, scenario, error);
    free(overrides.list);
    return ok;
}

void k25_scenario_free(struct k25_scenario *scenario)
{
    k25_calibration_free(&scenario->calibration);
    k25_inputs_free(&scenario->inputs);
}

const struct k25_residuals *k25_scenario_residuals(const struct k25_scenario *scenario)
{
    const struct k25_residuals *residuals = scenario->calibrated ? &scenario->calibration.residuals : NULL;
    return k25_residuals_count(residuals) > 0 ? residuals : NULL;
}

struct k25_draft k25_scenario_draft(const struct k25_scenario *scenario)
{
    return scenario->drafts ? (struct k25_draft){&scenario->draft_architecture, &scenario->draft_weights}
                            : (struct k25_draft){NULL, NULL};
}

static bool make_question(const struct k25_scenario *scenario, const struct k25_plan *plan,
                          const struct k25_inputs *inputs, struct k25_question *question, struct k25_error *error)
{
    struct k25_draft draft = k25_scenario_draft(scenario);
    if (!k25_question_make(&scenario->architecture, &scenario->weights, &draft, &scenario->machine, plan, inputs,
                           question, error))
        return false;
    question->residuals = k25_scenario_residuals(scenario);
    return true;
}

bool k25_scenario_question(const struct k25_scenario *scenario, struct k25_question *question, struct k25_error *error)
{
    return make_question(scenario, &scenario->plan, &scenario->inputs, question, error);
}

bool k25_scenario_question_for(const struct k25_scenario *scenario, const struct k25_plan *plan,
                               struct k25_question *question, struct k25_error *error)
{
    return make_question(scenario, plan, NULL, question, error);
}

struct k25_service k25_scenario_service(const struct k25_scenario *scenario)
{
    const struct k25_load *load = &scenario->load;
    return (struct k25_service){.concurrency = scenario->plan.batch,
                                .prompt = load->prompt,
                                .output = load->output,
                                .chunk = load->chunk,
                                .prefix_hit = load->prefix_hit,
                                .rounds = load->rounds,
                                .front = load->front_ms * 1e-3,
                                .disaggregated = load->disaggregated,
                                .transfer_gbs = load->transfer_gbs};
}
