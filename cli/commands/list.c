/* k25sim list: what comes along. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"
#include "cli/cli.h"
#include "cli/render/table.h"
#include "hw/params/params.h"
#include "model/predict/outputs.h"
#include "scenarios/library/scenario.h"
#include "scenarios/sweep/sweep.h"

static const char *format_given;
static const struct poptOption options[] = {
    {"format", '\0', POPT_ARG_STRING, &format_given, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

typedef bool lister(const struct k25_library *library, struct cli_table *table, struct k25_error *error);

/* "ARCHITECTURE.SCHEME" in two; names of architectures have dots of their own. */
static const char *split_scheme(const char *name, char *architecture, size_t size)
{
    const char *dot = strrchr(name, '.');
    snprintf(architecture, size, "%.*s", dot != NULL ? (int)(dot - name) : 0, name);
    return dot != NULL ? dot + 1 : name;
}

/* Calls `add` with each file of a kind. */
static bool each(const struct k25_library *library, enum k25_files kind, struct cli_table *table,
                 bool (*add)(const struct k25_library *, const char *, const char *, struct cli_table *,
                             struct k25_error *),
                 struct k25_error *error)
{
    size_t count;
    char **names = k25_library_list(library, kind, &count, error);
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        char path[1200], of[160] = "";
        const char *name = kind == K25_FILES_WEIGHTS ? split_scheme(names[i], of, sizeof of) : names[i];
        ok = k25_library_find(library, kind, name, of, "", path, sizeof path, error) &&
             add(library, names[i], path, table, error);
    }
    k25_library_free(names);
    return ok;
}

static const struct cli_column architecture_columns[] = {
    {"name", "architecture", CLI_TEXT, 0},
    {"layers", "layers", CLI_COUNT, 0},
    {"hidden", "hidden", CLI_COUNT, 0},
    {"experts", "experts", CLI_COUNT, 0},
    {"parameters_b", "total B", CLI_FIGURE, 0},
    {"active_b", "active B", CLI_FIGURE, 0},
    {"max_context", "context", CLI_COUNT, 0},
    {"unsupported", "not supported yet", CLI_TEXT, 0},
    {"source", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool add_architecture(const struct k25_library *library, const char *name, const char *path,
                             struct cli_table *table, struct k25_error *error)
{
    (void)library;
    struct k25_architecture a;
    if (!k25_architecture_load(path, &a, NULL, error))
        return false;
    const char *unsupported = k25_architecture_unsupported(&a);
    cli_table_text(table, "%s", name);
    cli_table_number(table, k25_layer_count(&a));
    cli_table_number(table, a.hidden);
    cli_table_number(table, a.moe.experts > 0 ? (double)a.moe.experts : NAN);
    cli_table_number(table, k25_total_parameters(&a) / 1e9);
    cli_table_number(table, k25_active_parameters(&a) / 1e9);
    cli_table_number(table, a.max_context);
    cli_table_text(table, "%s", unsupported != NULL ? unsupported : "");
    cli_table_text(table, "%s", a.source);
    return true;
}

static bool list_architectures(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_ARCHITECTURE, table, add_architecture, error);
}

static const struct cli_column weights_columns[] = {
    {"architecture", "architecture", CLI_TEXT, 0},
    {"weights", "weights", CLI_TEXT, 0},
    {"routed_experts", "routed experts", CLI_TEXT, 0},
    {"attention", "attention", CLI_TEXT, 0},
    {"parameters_b", "total B", CLI_FIGURE, 0},
    {"active_b", "active B", CLI_FIGURE, 0},
    {"checkpoint_gb", "checkpoint GB", CLI_FIGURE, 0},
    {"source", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_format(struct cli_table *table, const struct k25_format *format)
{
    cli_table_text(table, "%s, %.4g bits", k25_format_kind_names[format->kind], k25_weight_bytes(format) * 8);
}

static bool add_weights(const struct k25_library *library, const char *name, const char *path, struct cli_table *table,
                        struct k25_error *error)
{
    struct k25_architecture a;
    struct k25_weights w;
    char of[160], file[1024];
    const char *scheme = split_scheme(name, of, sizeof of);
    if (!k25_library_find(library, K25_FILES_ARCHITECTURE, of, "", "", file, sizeof file, error) ||
        !k25_architecture_load(file, &a, NULL, error) || !k25_weights_load(path, &w, NULL, error))
        return false;
    cli_table_text(table, "%s", of);
    cli_table_text(table, "%s", scheme);
    if (a.moe.experts > 0)
        add_format(table, &w.format[K25_T_ROUTED_EXPERTS]);
    else
        cli_table_nothing(table);
    add_format(table, &w.format[K25_T_ATTENTION]);
    cli_table_number(table, k25_total_parameters(&a) / 1e9);
    cli_table_number(table, k25_active_parameters(&a) / 1e9);
    cli_table_number(table, k25_checkpoint_bytes(&a, &w) / 1e9);
    cli_table_text(table, "%s", w.source);
    return true;
}

static bool list_weights(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_WEIGHTS, table, add_weights, error);
}

static const struct cli_column machine_columns[] = {
    {"name", "machine", CLI_TEXT, 0},
    {"gpus", "GPUs", CLI_COUNT, 0},
    {"gpu", "GPU", CLI_TEXT, 0},
    {"memory_gb", "GB", CLI_FIGURE, 0},
    {"bandwidth_gbs", "GB/s", CLI_COUNT, 0},
    {"worst_path", "paths", CLI_TEXT, 0},
    {"assumed_links", "links", CLI_TEXT, 0},
    {"source", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool add_machine(const struct k25_library *library, const char *name, const char *path, struct cli_table *table,
                        struct k25_error *error)
{
    struct k25_machine_parts parts;
    static struct k25_machine machine; /* too large for a stack */
    struct k25_group group;
    if (!k25_library_parts(library, &parts, NULL, error) || !k25_machine_load(path, &parts, &machine, NULL, error) ||
        !k25_machine_group(&machine, machine.gpus, &group, error))
        return false;
    cli_table_text(table, "%s", name);
    cli_table_number(table, machine.gpus);
    cli_table_text(table, "%s", machine.gpu.name);
    cli_table_number(table, k25_gpu_memory(&machine.gpu) / 1e9);
    cli_table_number(table, machine.gpu.bandwidth_gbs);
    cli_table_text(table, "%s%s", group.nvlink ? "" : "up to ", k25_path_class_names[group.worst_class]);
    cli_table_text(table, "%s", machine.assumed_links ? "assumed" : "from the file");
    cli_table_text(table, "%s", machine.source);
    return true;
}

static bool list_machines(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_MACHINE, table, add_machine, error);
}

static const struct cli_column gpu_columns[] = {
    {"file", "GPU file", CLI_TEXT, 0},
    {"name", NULL, CLI_TEXT, 0},
    {"sms", "SMs", CLI_COUNT, 0},
    {"memory_mib", "MiB", CLI_COUNT, 0},
    {"bandwidth_gbs", "GB/s", CLI_COUNT, 0},
    {"l2_mib", "L2", CLI_FIGURE, 0},
    {"peak_bf16_tflops", "BF16", CLI_FIGURE, 0},
    {"peak_fp8_tflops", "FP8", CLI_FIGURE, 0},
    {"peak_fp4_tflops", "FP4", CLI_FIGURE, 0},
    {"power_w", "W", CLI_COUNT, 0},
    {"compute_capability", "CC", CLI_TEXT, 0},
    {"pcie", "PCIe", CLI_TEXT, 0},
    {"nvlink_gbs", "NVLink", CLI_FIGURE, 0},
    {"p2p", "P2P", CLI_TEXT, 0},
    {"price_usd", "USD", CLI_COUNT, 0},
    {"unconfirmed", "not confirmed", CLI_TEXT, 0},
    {"source", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

/* A figure, or nothing for the 0 of one that the GPU has not or nobody knows. */
static void add_figure(struct cli_table *table, double value)
{
    if (value > 0)
        cli_table_number(table, value);
    else
        cli_table_nothing(table);
}

static bool add_gpu(const struct k25_library *library, const char *name, const char *path, struct cli_table *table,
                    struct k25_error *error)
{
    (void)library;
    struct k25_gpu gpu;
    char unconfirmed[256];
    if (!k25_gpu_load(path, "gpu", &gpu, NULL, error))
        return false;
    cli_table_text(table, "%s", name);
    cli_table_text(table, "%s", gpu.name);
    cli_table_number(table, gpu.sms);
    cli_table_number(table, gpu.memory_mib);
    cli_table_number(table, gpu.bandwidth_gbs);
    cli_table_number(table, gpu.l2_mib);
    cli_table_number(table, gpu.peak_bf16_tflops);
    add_figure(table, gpu.peak_fp8_tflops);
    add_figure(table, gpu.peak_fp4_tflops);
    cli_table_number(table, gpu.power_w);
    cli_table_text(table, "%s", gpu.compute_capability);
    if (gpu.pcie_generation > 0)
        cli_table_text(table, "%d.0 x%d", gpu.pcie_generation, gpu.pcie_lanes);
    else
        cli_table_nothing(table);
    add_figure(table, gpu.nvlink_gbs);
    cli_table_text(table, "%s", gpu.p2p ? "yes" : "no");
    add_figure(table, gpu.price_usd);
    cli_table_text(table, "%s", k25_gpu_unconfirmed(&gpu, unconfirmed, sizeof unconfirmed));
    cli_table_text(table, "%s", gpu.source);
    return true;
}

static bool list_gpus(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_GPU, table, add_gpu, error);
}

static const struct cli_column param_columns[] = {
    {"name", "parameter", CLI_TEXT, 0}, {"prior", "prior", CLI_FIGURE, 0},   {"spread", "spread", CLI_FIGURE, 0},
    {"unit", "unit", CLI_TEXT, 0},      {"meaning", "meaning", CLI_TEXT, 0}, {"source", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool list_params(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    static struct k25_priors priors;
    char path[1024];
    if (!k25_library_params(library, path, sizeof path) || !k25_priors_load(path, &priors, NULL, error))
        return false;
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        cli_table_text(table, "%s", info->name);
        cli_table_number(table, priors.centre[id] / info->scale);
        cli_table_number(table, priors.spread[id]);
        cli_table_text(table, "%s", info->unit);
        cli_table_text(table, "%s", info->doc);
        cli_table_text(table, "%s", priors.source[id]);
    }
    return true;
}

static const struct cli_column scenario_columns[] = {
    {"name", "scenario", CLI_TEXT, 40},  {"architecture", "architecture", CLI_TEXT, 0},
    {"weights", "weights", CLI_TEXT, 0}, {"machine", NULL, CLI_TEXT, 0},
    {"calibration", NULL, CLI_TEXT, 0},  {"title", "title", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool add_scenario(const struct k25_library *library, const char *name, const char *path, struct cli_table *table,
                         struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    bool ok = k25_scenario_load(library, path, NULL, 0, &scenario, error);
    if (ok) {
        cli_table_text(table, "%s", name);
        cli_table_text(table, "%s", scenario.architecture_name);
        cli_table_text(table, "%s", scenario.weights_name);
        cli_table_text(table, "%s", scenario.machine_name);
        cli_table_text(table, "%s", scenario.calibration_name);
        cli_table_text(table, "%s", scenario.title);
    }
    k25_scenario_free(&scenario);
    return ok;
}

static const struct cli_column sweep_columns[] = {
    {"name", "sweep", CLI_TEXT, 40},          {"points", "points", CLI_COUNT, 0}, {"axes", "axes", CLI_COUNT, 0},
    {"scenarios", "scenarios", CLI_COUNT, 0}, {"title", "title", CLI_TEXT, 0},    {NULL, NULL, CLI_TEXT, 0},
};

static bool add_sweep(const struct k25_library *library, const char *name, const char *path, struct cli_table *table,
                      struct k25_error *error)
{
    static struct k25_sweep sweep; /* too large for a stack */
    bool ok = k25_sweep_load(library, path, &sweep, error);
    if (ok) {
        cli_table_text(table, "%s", name);
        cli_table_number(table, (double)sweep.points);
        cli_table_number(table, (double)sweep.axes);
        cli_table_number(table, (double)sweep.loads);
        cli_table_text(table, "%s", sweep.title);
    }
    k25_sweep_free(&sweep);
    return ok;
}

static bool list_sweeps(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_SWEEP, table, add_sweep, error);
}

static bool list_scenarios(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_SCENARIO, table, add_scenario, error);
}

static const struct cli_column output_columns[] = {
    {"name", "output", CLI_TEXT, 0},     {"unit", "unit", CLI_TEXT, 0}, {"interval", "interval", CLI_TEXT, 0},
    {"meaning", "meaning", CLI_TEXT, 0}, {NULL, NULL, CLI_TEXT, 0},
};

static bool list_outputs(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    (void)library, (void)error;
    for (enum k25_output output = 0; output < K25_OUTPUTS; output++) {
        cli_table_text(table, "%s", k25_output_info[output].name);
        cli_table_text(table, "%s", k25_output_info[output].unit);
        cli_table_text(table, "%s", k25_output_has_interval(output) ? "yes" : "no");
        cli_table_text(table, "%s", k25_output_info[output].doc);
    }
    return true;
}

static const struct cli_column calibration_columns[] = {
    {"name", "calibration", CLI_TEXT, 0},       {"model", "model", CLI_TEXT, 0},   {"machine", "machine", CLI_TEXT, 0},
    {"parameters", "parameters", CLI_COUNT, 0}, {"source", "source", CLI_TEXT, 0}, {NULL, NULL, CLI_TEXT, 0},
};

/* The folder of the sets holds other files, too. */
static bool is_calibration(const char *path, bool *answer, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, NULL, error);
    if (yaml == NULL)
        return false;
    const struct k25_yaml_node *kind = k25_yaml_get(k25_yaml_root(yaml), "k25sim");
    *answer = kind != NULL && kind->kind == K25_YAML_SCALAR && strcmp(kind->text, "calibration") == 0;
    k25_yaml_free(yaml);
    return true;
}

static bool add_calibration(const struct k25_library *library, const char *name, const char *path,
                            struct cli_table *table, struct k25_error *error)
{
    (void)library;
    static struct k25_calibration set;
    int count = 0;
    bool calibration;
    if (!is_calibration(path, &calibration, error))
        return false;
    if (!calibration)
        return true;
    if (!k25_calibration_load(path, &set, NULL, error))
        return false;
    for (int id = 0; id < K25_PARAMS; id++)
        count += set.set[id];
    cli_table_text(table, "%s", name);
    cli_table_text(table, "%s", set.model);
    cli_table_text(table, "%s", set.machine);
    cli_table_number(table, count);
    cli_table_text(table, "%s", set.source);
    k25_calibration_free(&set);
    return true;
}

static bool list_calibrations(const struct k25_library *library, struct cli_table *table, struct k25_error *error)
{
    return each(library, K25_FILES_CALIBRATION, table, add_calibration, error);
}

static const struct {
    const char *name;
    const struct cli_column *columns;
    lister *list;
} lists[] = {
    {"architectures", architecture_columns, list_architectures},
    {"models", weights_columns, list_weights}, /* an architecture as some checkpoint stores it */
    {"weights", weights_columns, list_weights},
    {"machines", machine_columns, list_machines},
    {"gpus", gpu_columns, list_gpus},
    {"params", param_columns, list_params},
    {"outputs", output_columns, list_outputs},
    {"scenarios", scenario_columns, list_scenarios},
    {"sweeps", sweep_columns, list_sweeps},
    {"calibrations", calibration_columns, list_calibrations},
};
enum { LISTS = sizeof lists / sizeof *lists };

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    enum cli_format format;
    if (!cli_format(&cli_list, format_given, &format, error))
        return cli_failed(error);
    const char *names[LISTS + 1] = {NULL};
    for (int i = 0; i < LISTS; i++) {
        names[i] = lists[i].name;
        if (strcmp(arguments[0], names[i]) != 0)
            continue;
        struct cli_table table;
        cli_table_open(&table, lists[i].columns);
        bool ok = lists[i].list(&cli->library, &table, error) && cli_table_emit(&table, format, error);
        cli_table_close(&table);
        return ok ? K25_OK : cli_failed(error);
    }
    char hint[64];
    return cli_misused(&cli_list, error, "there is no list of '%s'%s", arguments[0],
                       k25_did_you_mean(arguments[0], names, hint, sizeof hint));
}

const struct cli_command cli_list = {
    .name = "list",
    .arguments = "WHAT",
    .summary =
        "the architectures, models, machines, GPUs, params, outputs, scenarios, sweeps and calibrations there are",
    .details = "WHAT is one of\n"
               "  architectures  what the layers of a model are; a model whose physics is missing says so\n"
               "  models         architectures with their weights: parameters, size of the checkpoint\n"
               "  weights        the same\n"
               "  machines       GPUs and what joins them\n"
               "  gpus           data sheets: dense tensor peaks in TFLOP/s, MiB of L2, NVLink in GB/s both ways;\n"
               "                 figures that nobody has confirmed are named\n"
               "  params         the named unknowns: prior, spread (of the logarithm), meaning\n"
               "  outputs        what predict answers, and what the columns, constraints and objectives of a sweep\n"
               "                 may name: unit, whether it has an interval, meaning\n"
               "  scenarios      what predict and validate take by name\n"
               "  sweeps         what sweep takes by name\n"
               "  calibrations   parameters measured on a box\n"
               "json and csv have the sources, too.\n"
               "\n"
               "examples:\n"
               "  k25sim list models\n"
               "  k25sim list params --format json\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
