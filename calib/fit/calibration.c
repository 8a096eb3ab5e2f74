#include "calib/fit/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/schema.h"
#include "base/text.h"

static const struct k25_field range_fields[] = {
    K25_FIELD(REAL, k25_range, low, .fallback = "0", .min = 0, .max = 1e9, .doc = "smallest value in the data"),
    K25_FIELD(REAL, k25_range, high, .fallback = "0", .min = 0, .max = 1e9, .doc = "largest value in the data"),
    {.key = NULL},
};

static const struct k25_field acceptance_fields[] = {
    K25_FIELD(TEXT, k25_acceptance, method, .doc = "plan.speculation.method of the cells"),
    K25_FIELD(REAL, k25_acceptance, chain, .min = 1, .max = 1000, .unit = "tokens", .doc = "drafted tokens"),
    K25_FIELD(REAL, k25_acceptance, tokens, .min = 1, .max = 1000, .unit = "tokens",
              .doc = "of a step: exp of the mean of their logarithms"),
    K25_FIELD(REAL, k25_acceptance, cells, .min = 1, .max = 1e6, .doc = "that reported them"),
    {.key = NULL},
};

static const struct k25_field data_fields[] = {
    K25_FIELD(TEXT, k25_calibration, model, .fallback = "", .doc = "architecture that was measured"),
    K25_FIELD(TEXT, k25_calibration, machine, .fallback = "", .doc = "machine that was measured"),
    K25_FIELD(REAL, k25_calibration, noise, .fallback = "0", .min = 0, .max = 1,
              .doc = "relative residual of one measured step time"),
    K25_FIELD(MAP, k25_calibration, batch, .fallback = "", .fields = range_fields, .doc = "sequences in the data"),
    K25_FIELD(MAP, k25_calibration, context, .fallback = "", .fields = range_fields, .unit = "tokens",
              .doc = "context in the data"),
    K25_FIELD(MAP, k25_calibration, tp, .fallback = "", .fields = range_fields,
              .doc = "tensor-parallel sizes in the data"),
    K25_FIELD(MAP, k25_calibration, acceptance, .fallback = "", .fields = acceptance_fields,
              .doc = "tokens of a step in the cells that speculate"),
    {.key = NULL},
};

/* What the file has beside the members of the set: lists that are read by hand. `set` comes first so that the tables
 * of the set's own members apply to the whole record. */
struct file_record {
    struct k25_calibration set;
    const struct k25_yaml_node *parameters, *covariance, *evidence, *accepted, *residuals;
};

static const struct k25_field file_fields[] = {
    K25_FIELD(TEXT, k25_calibration, name, .doc = "name of the set"),
    K25_FIELD(TEXT, k25_calibration, source, .doc = "what was measured, and by whom"),
    {.key = "data",
     .type = K25_MAP,
     .offset = 0,
     .fallback = "{}",
     .fields = data_fields,
     .doc = "where the data lay; a prediction far outside says so"},
    K25_FIELD(TEXT, k25_calibration, program, .fallback = "", .doc = "version of k25sim that wrote the set"),
    K25_FIELD(NODE, file_record, evidence, .fallback = "", .doc = "list of files that went in, with checksums"),
    K25_FIELD(NODE, file_record, accepted, .fallback = "",
              .doc = "findings against the evidence that the set was written in spite of, and why"),
    K25_FIELD(NODE, file_record, parameters, .doc = "a mapping from parameter to value"),
    K25_FIELD(NODE, file_record, covariance, .fallback = "", .doc = "posterior covariance of the logarithms"),
    K25_FIELD(NODE, file_record, residuals, .fallback = "",
              .doc = "list of tables of ln(measured / formula), one a kernel class"),
    {.key = NULL},
};

struct value_record {
    double value, log_sd;
    char unit[16];
    char from[256];
};

static const struct k25_field value_fields[] = {
    K25_FIELD(REAL, value_record, value, .min = 1e-12, .max = 1e12, .doc = "value in the parameter's unit"),
    K25_FIELD(TEXT, value_record, unit, .fallback = "", .doc = "must be the parameter's unit"),
    K25_FIELD(REAL, value_record, log_sd, .fallback = "0", .min = 0, .max = 10,
              .doc = "standard deviation of its natural logarithm"),
    K25_FIELD(TEXT, value_record, from, .fallback = "", .doc = "what it was derived from"),
    {.key = NULL},
};

/* The parameter a scalar names. */
static bool find_param(const char *file, const struct k25_yaml_node *key, enum k25_param *id, struct k25_error *error)
{
    char hint[80];
    int found = key->kind == K25_YAML_SCALAR ? k25_param_find(key->text) : -1;
    *id = found >= 0 ? (enum k25_param)found : 0;
    if (found >= 0)
        return true;
    const char *name = key->kind == K25_YAML_SCALAR ? key->text : "";
    return k25_fail_at(error, file, key->line, key->column, "unknown parameter '%s'%s", name,
                       k25_did_you_mean(name, k25_param_names, hint, sizeof hint));
}

static bool load_value(const char *file, const struct k25_yaml_node *key, const struct k25_yaml_node *node,
                       struct k25_calibration *set, struct k25_inputs *inputs, struct k25_error *error)
{
    enum k25_param id;
    struct value_record record;
    if (!find_param(file, key, &id, error))
        return false;
    const struct k25_param_info *info = &k25_param_info[id];
    if (!k25_schema_load(value_fields, info->name, node, file, &record, NULL, error))
        return false;
    if (strcmp(record.unit, info->unit) != 0)
        return k25_fail_at(error, file, node->line, node->column, "%s: unit '%s', expected '%s'", info->name,
                           record.unit, info->unit);
    set->set[id] = true;
    set->value[id] = record.value * info->scale;
    set->log_sd[id] = record.log_sd;

    char path[96], value[32];
    snprintf(path, sizeof path, "parameters.%s", info->name);
    snprintf(value, sizeof value, "%.6g", record.value);
    struct k25_input input = {path,         value,     (char *)info->unit, K25_FROM_CALIBRATION,
                              (char *)file, key->line, key->column};
    return inputs == NULL || k25_inputs_record(inputs, input, error);
}

static const struct k25_field evidence_fields[] = {
    K25_FIELD(TEXT, k25_calibration_evidence, file, .doc = "file or folder that went in"),
    K25_FIELD(TEXT, k25_calibration_evidence, crc64, .fallback = "", .doc = "ECMA-182 checksum"),
    K25_FIELD(INT, k25_calibration_evidence, observations, .fallback = "0", .min = 0, .max = 1e9,
              .doc = "rows of the fit from it"),
    {.key = NULL},
};

static bool load_evidence(const char *file, const struct k25_yaml_node *list, struct k25_calibration *set,
                          struct k25_error *error)
{
    if (list->kind != K25_YAML_SEQUENCE || list->count > K25_MAX_EVIDENCE)
        return k25_fail_at(error, file, list->line, list->column, "evidence: expected a list of at most %d files",
                           K25_MAX_EVIDENCE);
    for (; set->evidences < list->count; set->evidences++) {
        if (!k25_schema_load(evidence_fields, "evidence", list->values[set->evidences], file,
                             &set->evidence[set->evidences], NULL, error))
            return false;
    }
    return true;
}

struct accepted_record {
    char why[256];
    const struct k25_yaml_node *findings;
};

static const struct k25_field accepted_fields[] = {
    K25_FIELD(TEXT, accepted_record, why, .doc = "the reason that was given"),
    K25_FIELD(NODE, accepted_record, findings, .doc = "list of what was wrong with the evidence"),
    {.key = NULL},
};

static bool load_accepted(const char *file, const struct k25_yaml_node *node, struct k25_calibration *set,
                          struct k25_error *error)
{
    struct accepted_record record;
    if (!k25_schema_load(accepted_fields, "accepted", node, file, &record, NULL, error))
        return false;
    const struct k25_yaml_node *list = record.findings;
    if (list->kind != K25_YAML_SEQUENCE || list->count > K25_MAX_DOUBTS)
        return k25_fail_at(error, file, list->line, list->column,
                           "accepted.findings: expected a list of at most %d sentences", K25_MAX_DOUBTS);
    snprintf(set->accepted, sizeof set->accepted, "%s", record.why);
    for (; set->doubts < list->count; set->doubts++) {
        const struct k25_yaml_node *entry = list->values[set->doubts];
        if (entry->kind != K25_YAML_SCALAR)
            return k25_fail_at(error, file, entry->line, entry->column, "accepted.findings: expected a sentence");
        snprintf(set->doubt[set->doubts], sizeof set->doubt[0], "%s", entry->text);
    }
    return true;
}

static bool load_row(const char *file, const struct k25_yaml_node *row, size_t i, struct k25_calibration *set,
                     struct k25_error *error)
{
    size_t n = set->covariances;
    if (row->kind != K25_YAML_SEQUENCE || row->count != n)
        return k25_fail_at(error, file, row->line, row->column, "covariance: expected a list of %zu numbers", n);
    for (size_t j = 0; j < n; j++) {
        const struct k25_yaml_node *cell = row->values[j];
        if (cell->kind != K25_YAML_SCALAR || !k25_parse_real(cell->text, &set->covariance[i * n + j]))
            return k25_fail_at(error, file, cell->line, cell->column, "covariance: expected a number");
    }
    return true;
}

/* A covariance: positive variances, symmetric, no correlation beyond 1 (a digit of rounding allowed). */
static bool check_covariance(const char *file, const struct k25_yaml_node *order, const struct k25_yaml_node *rows,
                             const struct k25_calibration *set, struct k25_error *error)
{
    size_t n = set->covariances;
    const double *c = set->covariance;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            const struct k25_yaml_node *cell = rows->values[i]->values[j];
            if (j < i && set->covaries[i] == set->covaries[j])
                return k25_fail_at(error, file, order->values[i]->line, order->values[i]->column,
                                   "covariance: parameter '%s' stands twice in the order", order->values[i]->text);
            if (i == j && !(c[i * n + i] > 0))
                return k25_fail_at(error, file, cell->line, cell->column,
                                   "covariance: the variance of %s is not positive", order->values[i]->text);
            if (fabs(c[i * n + j] - c[j * n + i]) > 1e-5 * sqrt(fabs(c[i * n + i] * c[j * n + j])))
                return k25_fail_at(error, file, cell->line, cell->column, "covariance: not symmetric");
            if (fabs(c[i * n + j]) > (1 + 1e-5) * sqrt(fabs(c[i * n + i] * c[j * n + j])))
                return k25_fail_at(error, file, cell->line, cell->column, "covariance: a correlation is larger than 1");
        }
    }
    return true;
}

static bool load_covariance(const char *file, const struct k25_yaml_node *node, struct k25_calibration *set,
                            struct k25_error *error)
{
    const struct k25_yaml_node *order = k25_yaml_get(node, "order"), *rows = k25_yaml_get(node, "rows");
    if (order == NULL || order->kind != K25_YAML_SEQUENCE || rows == NULL || rows->kind != K25_YAML_SEQUENCE ||
        rows->count != order->count || order->count > K25_PARAMS)
        return k25_fail_at(error, file, node->line, node->column,
                           "covariance: expected 'order', a list of parameters, and 'rows', as many lists");
    set->covariances = order->count;
    set->covariance = calloc(order->count * order->count + 1, sizeof *set->covariance);
    if (set->covariance == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < order->count; i++) {
        if (!find_param(file, order->values[i], &set->covaries[i], error) ||
            !load_row(file, rows->values[i], i, set, error))
            return false;
    }
    return check_covariance(file, order, rows, set, error);
}

struct table_record {
    enum k25_kernel_class class;
    const struct k25_yaml_node *sites;
};

static const struct k25_field table_fields[] = {
    K25_FIELD(ENUM, table_record, class, .names = k25_kernel_class_names,
              .doc = "kernel class that the table is about"),
    K25_FIELD(NODE, table_record, sites, .doc = "list of [shape, shape, shape, ln(measured / formula)]"),
    {.key = NULL},
};

static bool load_site(const char *file, const struct k25_yaml_node *node, struct k25_residual_site *site,
                      struct k25_error *error)
{
    static const double LARGEST = 1e12, MOST = 10; /* of a shape; of a logarithm */
    if (node->kind != K25_YAML_SEQUENCE || node->count != K25_SHAPE + 1)
        return k25_fail_at(error, file, node->line, node->column,
                           "residuals: expected a list of three numbers of the shape and a logarithm");
    for (size_t i = 0; i <= K25_SHAPE; i++) {
        const struct k25_yaml_node *cell = node->values[i];
        double value;
        if (cell->kind != K25_YAML_SCALAR || !k25_parse_real(cell->text, &value))
            return k25_fail_at(error, file, cell->line, cell->column, "residuals: expected a number");
        if (i < K25_SHAPE && !(value > 0 && value <= LARGEST))
            return k25_fail_at(error, file, cell->line, cell->column,
                               "residuals: %s, expected a number above 0, up to 1e12", cell->text);
        if (i == K25_SHAPE && !(fabs(value) <= MOST))
            return k25_fail_at(error, file, cell->line, cell->column,
                               "residuals: %s, expected a logarithm from -10 to 10", cell->text);
        *(i < K25_SHAPE ? &site->shape[i] : &site->value) = value;
    }
    return true;
}

static bool load_table(const char *file, const struct k25_yaml_node *node, struct k25_calibration *set,
                       struct k25_error *error)
{
    struct table_record record;
    if (!k25_schema_load(table_fields, "residuals", node, file, &record, NULL, error))
        return false;
    const char *name = k25_kernel_class_names[record.class];
    const struct k25_yaml_node *sites = record.sites;
    if (!k25_residual_class(record.class))
        return k25_fail_at(error, file, node->line, node->column, "residuals: kernels of class %s have no table", name);
    if (set->residuals.table[record.class].count > 0)
        return k25_fail_at(error, file, node->line, node->column, "residuals: a second table of class %s", name);
    if (sites->kind != K25_YAML_SEQUENCE || sites->count < 1 || sites->count > K25_MAX_SITES)
        return k25_fail_at(error, file, sites->line, sites->column, "residuals: expected a list of 1 to %d sites",
                           K25_MAX_SITES);
    struct k25_residual_site *site = calloc(sites->count, sizeof *site);
    bool ok = site != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < sites->count; i++)
        ok = load_site(file, sites->values[i], &site[i], error);
    ok = ok && k25_residuals_set(&set->residuals, record.class, site, sites->count, error);
    free(site);
    return ok;
}

static bool load_residuals(const char *file, const struct k25_yaml_node *list, struct k25_calibration *set,
                           struct k25_error *error)
{
    if (list->kind != K25_YAML_SEQUENCE)
        return k25_fail_at(error, file, list->line, list->column, "residuals: expected a list of tables");
    for (size_t i = 0; i < list->count; i++) {
        if (!load_table(file, list->values[i], set, error))
            return false;
    }
    return true;
}

bool k25_calibration_load(const char *path, struct k25_calibration *calibration, struct k25_inputs *inputs,
                          struct k25_error *error)
{
    struct file_record record;
    memset(&record, 0, sizeof record);
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    if (yaml == NULL)
        return false;
    bool ok = k25_schema_head(yaml, "calibration", error) &&
              k25_schema_load(file_fields, "", k25_yaml_root(yaml), path, &record, NULL, error);
    const struct k25_yaml_node *parameters = record.parameters;
    if (ok && parameters->kind != K25_YAML_MAPPING)
        ok = k25_fail_at(error, path, parameters->line, parameters->column,
                         "parameters: expected a mapping from parameter to value");
    for (size_t i = 0; ok && i < parameters->count; i++)
        ok = load_value(path, parameters->keys[i], parameters->values[i], &record.set, inputs, error);
    if (ok && record.evidence != NULL)
        ok = load_evidence(path, record.evidence, &record.set, error);
    if (ok && record.accepted != NULL)
        ok = load_accepted(path, record.accepted, &record.set, error);
    if (ok && record.covariance != NULL)
        ok = load_covariance(path, record.covariance, &record.set, error);
    if (ok && record.residuals != NULL)
        ok = load_residuals(path, record.residuals, &record.set, error);
    k25_yaml_free(yaml);
    *calibration = record.set;
    if (!ok)
        k25_calibration_free(calibration);
    return ok;
}

void k25_calibration_free(struct k25_calibration *calibration)
{
    free(calibration->covariance);
    calibration->covariance = NULL;
    calibration->covariances = 0;
    k25_residuals_free(&calibration->residuals);
}

static void print_range(FILE *out, const char *key, struct k25_range range)
{
    if (range.high > 0)
        fprintf(out, "  %s: {low: %g, high: %g}\n", key, range.low, range.high);
}

static void print_covariance(FILE *out, const struct k25_calibration *set)
{
    size_t n = set->covariances;
    if (n == 0)
        return;
    fprintf(out, "covariance:\n  order: [");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i == 0 ? "" : ", ", k25_param_info[set->covaries[i]].name);
    fprintf(out, "]\n  rows:\n");
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "    - [");
        for (size_t j = 0; j < n; j++)
            fprintf(out, "%s%.6g", j == 0 ? "" : ", ", set->covariance[i * n + j]);
        fprintf(out, "]\n");
    }
}

static void print_accepted(FILE *out, const struct k25_calibration *set)
{
    if (set->doubts == 0)
        return;
    fprintf(out, "accepted:\n");
    k25_print_text(out, "  why", set->accepted);
    fprintf(out, "  findings:\n");
    for (size_t i = 0; i < set->doubts; i++) {
        fprintf(out, "    - ");
        k25_print_quoted(out, set->doubt[i]);
        fprintf(out, "\n");
    }
}

static int by_shape(const void *left, const void *right)
{
    const struct k25_residual_site *a = left, *b = right;
    int axis = 0;
    while (axis < K25_SHAPE - 1 && a->shape[axis] == b->shape[axis])
        axis++;
    return a->shape[axis] < b->shape[axis] ? -1 : a->shape[axis] > b->shape[axis];
}

/* Sites in the order of their shapes, whatever order suits the search. */
static bool print_residuals(FILE *out, const struct k25_residuals *residuals, struct k25_error *error)
{
    if (k25_residuals_count(residuals) > 0)
        fprintf(out, "residuals:\n");
    for (enum k25_kernel_class class = 0; class < K25_KERNEL_CLASSES; class ++) {
        size_t count = residuals->table[class].count;
        if (count == 0)
            continue;
        struct k25_residual_site *site = malloc(count * sizeof *site);
        if (site == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        memcpy(site, residuals->table[class].site, count * sizeof *site);
        qsort(site, count, sizeof *site, by_shape);
        fprintf(out, "  - class: %s\n    sites:\n", k25_kernel_class_names[class]);
        for (size_t i = 0; i < count; i++)
            fprintf(out, "      - [%.10g, %.10g, %.10g, %.5g]\n", site[i].shape[0], site[i].shape[1], site[i].shape[2],
                    site[i].value);
        free(site);
    }
    return true;
}

char *k25_calibration_print(const struct k25_calibration *calibration, struct k25_error *error)
{
    struct k25_printer printer;
    if (!k25_print_open(&printer, error))
        return NULL;
    FILE *out = printer.out;
    fprintf(out, "k25sim: calibration\nversion: 1\n");
    k25_print_text(out, "name", calibration->name);
    k25_print_text(out, "source", calibration->source);
    if (calibration->program[0] != '\0')
        fprintf(out, "program: \"%s\"\n", calibration->program);
    if (calibration->evidences > 0)
        fprintf(out, "evidence:\n");
    for (size_t i = 0; i < calibration->evidences; i++) {
        const struct k25_calibration_evidence *e = &calibration->evidence[i];
        k25_print_text(out, "  - file", e->file);
        fprintf(out, "    crc64: \"%s\"\n    observations: %d\n", e->crc64, e->observations);
    }
    print_accepted(out, calibration);
    fprintf(out, "data:\n");
    if (calibration->model[0] != '\0')
        k25_print_text(out, "  model", calibration->model);
    if (calibration->machine[0] != '\0')
        k25_print_text(out, "  machine", calibration->machine);
    fprintf(out, "  noise: %.4g\n", calibration->noise);
    print_range(out, "batch", calibration->batch);
    print_range(out, "context", calibration->context);
    print_range(out, "tp", calibration->tp);
    if (calibration->acceptance.cells > 0)
        fprintf(out, "  acceptance: {method: %s, chain: %.15g, tokens: %.6g, cells: %.15g}\n",
                calibration->acceptance.method, calibration->acceptance.chain, calibration->acceptance.tokens,
                calibration->acceptance.cells);
    int parameters = 0;
    for (int id = 0; id < K25_PARAMS; id++)
        parameters += calibration->set[id];
    fprintf(out, parameters > 0 ? "parameters:\n" : "parameters: {}\n");
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        if (calibration->set[id])
            fprintf(out, "  %s: {value: %.6g, unit: \"%s\", log_sd: %.4g}\n", info->name,
                    calibration->value[id] / info->scale, info->unit, calibration->log_sd[id]);
    }
    print_covariance(out, calibration);
    bool ok = print_residuals(out, &calibration->residuals, error);
    char *text = k25_print_close(&printer, ok ? error : NULL);
    if (!ok) {
        free(text);
        text = NULL;
    }
    return text;
}

void k25_params_resolve(const struct k25_priors *priors, const struct k25_calibration *calibration,
                        struct k25_params *params)
{
    for (int id = 0; id < K25_PARAMS; id++)
        params->value[id] = calibration != NULL && calibration->set[id] ? calibration->value[id] : priors->centre[id];
}

/* Where a parameter stands in the set's covariance, -1 when it does not. */
static int covariance_row(const struct k25_calibration *calibration, enum k25_param id)
{
    for (size_t i = 0; calibration != NULL && i < calibration->covariances; i++) {
        if (calibration->covaries[i] == id)
            return (int)i;
    }
    return -1;
}

void k25_uncertainty_resolve(const struct k25_priors *priors, const struct k25_calibration *calibration,
                             struct k25_uncertainty *u)
{
    int row[K25_PARAMS];
    double sd[K25_PARAMS];
    u->count = 0;
    u->noise = calibration != NULL ? calibration->noise : 0;
    for (enum k25_param id = 0; id < K25_PARAMS; id++) {
        bool set = calibration != NULL && calibration->set[id];
        double spread = set ? calibration->log_sd[id] : priors->spread[id];
        int stands = covariance_row(calibration, id);
        if (spread <= 0 && stands < 0)
            continue;
        row[u->count] = stands;
        sd[u->count] = spread;
        u->id[u->count++] = id;
    }
    for (size_t i = 0; i < u->count; i++) {
        for (size_t j = 0; j < u->count; j++) {
            double *cell = &u->covariance[i * u->count + j];
            if (row[i] >= 0 && row[j] >= 0)
                *cell = calibration->covariance[(size_t)row[i] * calibration->covariances + (size_t)row[j]];
            else
                *cell = i == j ? sd[i] * sd[i] : 0;
        }
    }
}
