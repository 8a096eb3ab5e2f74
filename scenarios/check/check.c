#include "scenarios/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"
#include "calib/rules/kernel_rules.h"
#include "scenarios/library/scenario.h"
#include "scenarios/sweep/sweep.h"

typedef bool checker(const struct k25_library *library, const char *path, struct k25_error *error);

static bool out_of_memory(struct k25_error *error)
{
    return k25_fail(error, K25_RESOURCE, "out of memory");
}

static bool check_scenario(const struct k25_library *library, const char *path, struct k25_error *error)
{
    struct k25_question question;
    struct k25_scenario *scenario = malloc(sizeof *scenario); /* too large for a stack, as those below */
    if (scenario == NULL)
        return out_of_memory(error);
    bool ok =
        k25_scenario_load(library, path, NULL, 0, scenario, error) && k25_scenario_question(scenario, &question, error);
    k25_scenario_free(scenario);
    free(scenario);
    return ok;
}

static bool check_architecture(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_architecture architecture;
    return k25_architecture_load(path, &architecture, NULL, error);
}

static bool check_weights(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_weights weights;
    return k25_weights_load(path, &weights, NULL, error);
}

static bool check_machine(const struct k25_library *library, const char *path, struct k25_error *error)
{
    struct k25_machine_parts parts;
    struct k25_machine *machine = malloc(sizeof *machine);
    if (machine == NULL)
        return out_of_memory(error);
    bool ok = k25_library_parts(library, &parts, NULL, error) && k25_machine_load(path, &parts, machine, NULL, error);
    free(machine);
    return ok;
}

static bool check_gpu(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_gpu gpu;
    return k25_gpu_load(path, "gpu", &gpu, NULL, error);
}

static bool check_parameters(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_priors *priors = malloc(sizeof *priors);
    if (priors == NULL)
        return out_of_memory(error);
    bool ok = k25_priors_load(path, priors, NULL, error);
    free(priors);
    return ok;
}

static bool check_link_defaults(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_link_defaults links;
    return k25_link_defaults_load(path, &links, NULL, error);
}

static bool check_calibration(const struct k25_library *library, const char *path, struct k25_error *error)
{
    (void)library;
    struct k25_calibration calibration;
    if (!k25_calibration_load(path, &calibration, NULL, error))
        return false;
    k25_calibration_free(&calibration);
    return true;
}

static bool check_kernels(const struct k25_library *library, const char *path, struct k25_error *error)
{
    char base[1024];
    int length = snprintf(base, sizeof base, "%s/calib/rules/kernels.yaml", library->root);
    if (length < 0 || (size_t)length >= sizeof base)
        return k25_fail(error, K25_BAD_INPUT, "a file name is too long");
    /* A user's rules refer to classes of the built-in file, which is complete without others. */
    char *given = realpath(path, NULL), *ours = realpath(base, NULL);
    bool own = given == NULL || ours == NULL || strcmp(given, ours) != 0;
    free(given);
    free(ours);
    struct k25_kernel_rules *rules = k25_kernel_rules_load(base, own ? path : NULL, error);
    k25_kernel_rules_free(rules);
    return rules != NULL;
}

static bool check_sweep(const struct k25_library *library, const char *path, struct k25_error *error)
{
    struct k25_sweep *sweep = malloc(sizeof *sweep);
    if (sweep == NULL)
        return out_of_memory(error);
    bool ok = k25_sweep_load(library, path, sweep, error);
    k25_sweep_free(sweep);
    free(sweep);
    return ok;
}

static const char *const kinds[] = {"scenario",      "architecture", "weights", "machine", "gpu", "parameters",
                                    "link_defaults", "calibration",  "kernels", "sweep",   NULL};
static checker *const checkers[] = {check_scenario, check_architecture, check_weights,       check_machine,
                                    check_gpu,      check_parameters,   check_link_defaults, check_calibration,
                                    check_kernels,  check_sweep};

/* The index in `kinds` of the value of 'k25sim' in the file; -1 with an error. */
static int read_kind(const char *path, struct k25_error *error)
{
    static const char *const expected =
        "scenario, architecture, weights, machine, gpu, parameters, link_defaults, calibration, kernels or sweep";
    struct k25_yaml *yaml = k25_yaml_read(path, NULL, error);
    if (yaml == NULL)
        return -1;
    const struct k25_yaml_node *root = k25_yaml_root(yaml), *kind = k25_yaml_get(root, "k25sim");
    int found = -1;
    for (int i = 0; kind != NULL && kind->kind == K25_YAML_SCALAR && kinds[i] != NULL; i++) {
        if (strcmp(kind->text, kinds[i]) == 0)
            found = i;
    }
    if (kind == NULL)
        k25_fail_at(error, path, root->line, root->column, "missing key 'k25sim' that says what the file is: %s",
                    expected);
    else if (kind->kind != K25_YAML_SCALAR)
        k25_fail_at(error, path, kind->line, kind->column, "k25sim: %s, expected %s", k25_yaml_kind_name(kind->kind),
                    expected);
    else if (found < 0) {
        char hint[64];
        k25_fail_at(error, path, kind->line, kind->column, "k25sim: unknown kind '%s'%s; expected %s", kind->text,
                    k25_did_you_mean(kind->text, kinds, hint, sizeof hint), expected);
    }
    k25_yaml_free(yaml);
    return found;
}

bool k25_check_file(const struct k25_library *library, const char *path, const char **kind, struct k25_error *error)
{
    int found = read_kind(path, error);
    if (found < 0)
        return false;
    *kind = kinds[found];
    return checkers[found](library, path, error);
}
