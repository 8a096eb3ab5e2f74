#include "hw/params/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/schema.h"
#include "base/text.h"

const struct k25_param_info k25_param_info[K25_PARAMS] = {
#define X(id, name, unit, scale, range, doc) [K25_##id] = {name, unit, scale, K25_RANGE_##range, doc},
    K25_PARAM_LIST(X)
#undef X
};

const char *const k25_param_names[K25_PARAMS + 1] = {
#define X(id, name, unit, scale, range, doc) [K25_##id] = name,
    K25_PARAM_LIST(X)
#undef X
};

struct prior_record {
    double centre, spread, alone;
    char unit[16];
    char source[160];
};

static const struct k25_field prior_fields[] = {
    K25_FIELD(REAL, prior_record, centre, .min = 1e-12, .max = 1e12, .doc = "expected value before any measurement"),
    K25_FIELD(REAL, prior_record, spread, .fallback = "0", .min = 0, .max = 5,
              .doc = "standard deviation of its natural logarithm; 0: a constant"),
    K25_FIELD(REAL, prior_record, alone, .fallback = "0", .min = 0, .max = 5,
              .doc = "the spread without the population of builds (calib/population.py); nothing else reads it"),
    K25_FIELD(TEXT, prior_record, unit, .fallback = "", .doc = "must be the parameter's unit"),
    K25_FIELD(TEXT, prior_record, source, .doc = "source of the prior"),
    {.key = NULL},
};

struct priors_file {
    const struct k25_yaml_node *parameters;
};

static const struct k25_field file_fields[] = {
    K25_FIELD(NODE, priors_file, parameters, .doc = "a mapping from name to prior"),
    {.key = NULL},
};

bool k25_param_valid(int id, double value)
{
    double in_unit = value / k25_param_info[id].scale;
    switch (k25_param_info[id].range) {
    case K25_RANGE_NORM:
        return in_unit >= 1 && in_unit <= 64; /* below 1 a norm is more than the sum of its parts */
    case K25_RANGE_COUNT:
        return in_unit >= 1 && in_unit <= 1e9;
    case K25_RANGE_FREE:
        if (value == 0)
            return true;
        break;
    case K25_RANGE_DIVISOR:
        break;
    }
    return in_unit >= 1e-12 && in_unit <= 1e12;
}

int k25_param_find(const char *name)
{
    for (int i = 0; i < K25_PARAMS; i++) {
        if (strcmp(k25_param_info[i].name, name) == 0)
            return i;
    }
    return -1;
}

static bool load_prior(const char *file, const struct k25_yaml_node *key, const struct k25_yaml_node *node,
                       struct k25_priors *priors, struct k25_inputs *inputs, struct k25_error *error)
{
    char hint[80];
    int id = k25_param_find(key->text);
    if (id < 0)
        return k25_fail_at(error, file, key->line, key->column, "unknown parameter '%s'%s", key->text,
                           k25_did_you_mean(key->text, k25_param_names, hint, sizeof hint));

    const struct k25_param_info *info = &k25_param_info[id];
    struct prior_record record;
    if (!k25_schema_load(prior_fields, info->name, node, file, &record, NULL, error))
        return false;
    if (strcmp(record.unit, info->unit) != 0)
        return k25_fail_at(error, file, node->line, node->column, "%s: unit '%s', expected '%s'", info->name,
                           record.unit, info->unit);

    priors->centre[id] = record.centre * info->scale;
    priors->spread[id] = record.spread;
    snprintf(priors->source[id], sizeof priors->source[id], "%s", record.source);

    char path[96], value[32];
    snprintf(path, sizeof path, "parameters.%s", info->name);
    snprintf(value, sizeof value, "%g", record.centre);
    struct k25_input input = {path, value, (char *)info->unit, K25_FROM_PRIOR, (char *)file, key->line, key->column};
    return inputs == NULL || k25_inputs_record(inputs, input, error);
}

bool k25_priors_load(const char *path, struct k25_priors *priors, struct k25_inputs *inputs, struct k25_error *error)
{
    memset(priors, 0, sizeof *priors);
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    if (yaml == NULL)
        return false;

    struct priors_file file;
    bool ok = k25_schema_head(yaml, "parameters", error) &&
              k25_schema_load(file_fields, "", k25_yaml_root(yaml), path, &file, NULL, error);
    if (ok && file.parameters->kind != K25_YAML_MAPPING)
        ok = k25_fail_at(error, path, file.parameters->line, file.parameters->column,
                         "parameters: expected a mapping from name to prior");
    for (size_t i = 0; ok && i < file.parameters->count; i++)
        ok = load_prior(path, file.parameters->keys[i], file.parameters->values[i], priors, inputs, error);
    for (int i = 0; ok && i < K25_PARAMS; i++) {
        if (priors->centre[i] == 0)
            ok = k25_fail(error, K25_BAD_INPUT, "%s: missing parameter '%s'", path, k25_param_info[i].name);
    }
    k25_yaml_free(yaml);
    return ok;
}
