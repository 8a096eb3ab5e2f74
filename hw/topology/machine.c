/* The file format of machines and of link defaults: tables, loading, overriding, printing. */
#include "hw/topology/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"

/* ---- the tables ---- */

static const struct k25_field graph_fields[] = {
    K25_FIELD(NODE, k25_graph_nodes, vertices, .doc = "list of {name, kind}; the GPUs in rank order"),
    K25_FIELD(NODE, k25_graph_nodes, links, .doc = "list of {from, to, kind, bandwidth_gbs, latency_us}"),
    {0},
};

/* clang-format off */
#define MACHINE(gpu_row) \
    K25_FIELD(TEXT, k25_machine, name, .doc = "name of the machine"), \
    K25_FIELD(TEXT, k25_machine, source, .doc = "source of its figures"), \
    gpu_row, \
    K25_FIELD(BOOL, k25_machine, p2p, .fallback = "true", \
              .doc = "GPUs access each other's memory; otherwise every hop goes through host memory"), \
    K25_FIELD(REAL, k25_machine, host_staging_latency_us, .min = 0, .max = 1e6, .unit = "us", \
              .doc = "added to every hop without P2P"), \
    K25_FIELD(REAL, k25_machine, price_per_hour, .fallback = "0", .min = 0, .max = 1e6, .unit = "USD", \
              .doc = "of the whole machine; 0: unknown"), \
    K25_FIELD(TEXT, k25_machine, topology, .fallback = "", .doc = "the one-line form; this or graph"), \
    K25_FIELD(MAP, k25_machine, graph, .fallback = "", .fields = graph_fields, \
              .doc = "vertices and links; this or topology"), \
    K25_FIELD(BOOL, k25_machine, assumed_links, .fallback = "false", \
              .doc = "the link figures are defaults, not measured"), \
    {0}
/* clang-format on */

const struct k25_field k25_machine_fields[] = {
    MACHINE(K25_FIELD(MAP, k25_machine, gpu, .fields = k25_gpu_fields, .doc = "one of its equal GPUs"))};

/* A file names its GPU or describes it; k25_gpu_read reads both. The machine is the first member, so that its rows
 * apply here too. */
struct machine_file {
    struct k25_machine machine;
    const struct k25_yaml_node *gpu;
};
_Static_assert(offsetof(struct machine_file, machine) == 0, "the offsets of the rows");

static const struct k25_field file_fields[] = {
    MACHINE(K25_FIELD(NODE, machine_file, gpu, .doc = "one of its equal GPUs"))};

static const struct k25_field figure_fields[] = {
    K25_FIELD(REAL, k25_link_figures, bandwidth_gbs, .min = 1e-3, .max = 1e6, .unit = "GB/s",
              .doc = "in one direction"),
    K25_FIELD(REAL, k25_link_figures, latency_us, .min = 0, .max = 1e6, .unit = "us", .doc = "one way"),
    {0},
};

#define FIGURES(member, text) K25_FIELD(MAP, k25_link_defaults, member, .fields = figure_fields, .doc = (text))
const struct k25_field k25_link_defaults_fields[] = {
    K25_FIELD(TEXT, k25_link_defaults, source, .doc = "source of the figures"),
    FIGURES(pcie4, "PCIe 4.0 x16; the latency is the GPU's end"),
    FIGURES(pcie5, "PCIe 5.0 x16; the latency is the GPU's end"),
    FIGURES(internal, "root to socket"),
    FIGURES(xgmi, "socket to socket"),
    FIGURES(nvlink, "one NVLink; the latency is of each GPU's end"),
    K25_FIELD(INT, k25_link_defaults, nvlinks, .min = 1, .max = 1000, .doc = "NVLinks of one GPU"),
    K25_FIELD(REAL, k25_link_defaults, switch_latency_us, .min = 0, .max = 1e6, .unit = "us",
              .doc = "to pass through a PCIe switch"),
    K25_FIELD(REAL, k25_link_defaults, root_latency_us, .min = 0, .max = 1e6, .unit = "us",
              .doc = "to pass through a host bridge"),
    {0},
};

/* An entry of graph.vertices is a struct k25_vertex; one of graph.links names its ends. */
static const struct k25_field vertex_fields[] = {
    K25_FIELD(TEXT, k25_vertex, name, .doc = "its name"),
    K25_FIELD(ENUM, k25_vertex, kind, .names = k25_vertex_kind_names, .doc = "what it is"),
    {0},
};

struct link_entry {
    char from[32], to[32];
    enum k25_link_kind kind;
    struct k25_link_figures figures;
};

static const struct k25_field link_fields[] = {
    K25_FIELD(TEXT, link_entry, from, .doc = "a vertex"),
    K25_FIELD(TEXT, link_entry, to, .doc = "a vertex"),
    K25_FIELD(ENUM, link_entry, kind, .names = k25_link_kind_names, .doc = "what it is"),
    K25_FIELD_AS(REAL, link_entry, figures.bandwidth_gbs, "bandwidth_gbs", .min = 1e-3, .max = 1e6, .unit = "GB/s",
                 .doc = "in one direction"),
    K25_FIELD_AS(REAL, link_entry, figures.latency_us, "latency_us", .min = 0, .max = 1e6, .unit = "us",
                 .doc = "one way"),
    {0},
};

/* ---- loading ---- */

bool k25_link_defaults_load(const char *path, struct k25_link_defaults *defaults, struct k25_inputs *inputs,
                            struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    if (!yaml)
        return false;
    *defaults = (struct k25_link_defaults){0};
    bool done = k25_schema_head(yaml, "link_defaults", error) &&
                k25_schema_load(k25_link_defaults_fields, "links", k25_yaml_root(yaml), k25_yaml_file(yaml), defaults,
                                inputs, error);
    k25_yaml_free(yaml);
    return done;
}

/* Adds the position in the file to an error of the graph, which has none. */
static bool fail_at_node(const char *file, const struct k25_yaml_node *node, const char *path,
                         const struct k25_error *cause, struct k25_error *error)
{
    return k25_fail_at(error, file, node->line, node->column, "%s: %s", path, cause->message);
}

static bool need_list(const struct k25_yaml_node *node, const char *path, const char *file, struct k25_error *error)
{
    return node->kind == K25_YAML_SEQUENCE ||
           k25_fail_at(error, file, node->line, node->column, "%s: expected a list, found %s", path,
                       k25_yaml_kind_name(node->kind));
}

/* Two passes over the list: GPUs come first in the graph, in any order in the file. */
static bool load_vertices(const struct k25_yaml_node *list, const char *file, struct k25_machine *machine,
                          struct k25_error *error)
{
    if (!need_list(list, "machine.graph.vertices", file, error))
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < list->count; i++) {
            char path[64];
            struct k25_vertex vertex = {0};
            struct k25_error cause;
            int index;
            snprintf(path, sizeof path, "machine.graph.vertices[%zu]", i);
            if (!k25_schema_load(vertex_fields, path, list->values[i], file, &vertex, NULL, error))
                return false;
            if ((vertex.kind == K25_V_GPU) == (pass == 0) &&
                !k25_machine_add_vertex(machine, vertex.kind, vertex.name, &index, &cause))
                return fail_at_node(file, list->values[i], path, &cause, error);
        }
    return true;
}

static bool find_vertex(const struct k25_machine *machine, const struct k25_yaml_node *entry, const char *path,
                        const char *key, const char *name, const char *file, int *vertex, struct k25_error *error)
{
    const char *names[K25_MAX_VERTICES + 1] = {NULL};
    for (size_t i = 0; i < machine->vertices; i++) {
        if (strcmp(machine->vertex[i].name, name) == 0) {
            *vertex = (int)i;
            return true;
        }
        names[i] = machine->vertex[i].name;
    }
    const struct k25_yaml_node *node = k25_yaml_get(entry, key);
    char hint[64];
    return k25_fail_at(error, file, node->line, node->column, "%s.%s: no vertex is called '%s'%s", path, key, name,
                       k25_did_you_mean(name, names, hint, sizeof hint));
}

static bool load_links(const struct k25_yaml_node *list, const char *file, struct k25_machine *machine,
                       struct k25_inputs *inputs, struct k25_error *error)
{
    if (!need_list(list, "machine.graph.links", file, error))
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const struct k25_yaml_node *node = list->values[i];
        char path[64];
        struct link_entry entry = {0};
        struct k25_link link;
        struct k25_error cause;
        snprintf(path, sizeof path, "machine.graph.links[%zu]", i);
        if (!k25_schema_load(link_fields, path, node, file, &entry, inputs, error) ||
            !find_vertex(machine, node, path, "from", entry.from, file, &link.from, error) ||
            !find_vertex(machine, node, path, "to", entry.to, file, &link.to, error))
            return false;
        link.kind = entry.kind;
        link.bandwidth = entry.figures.bandwidth_gbs * 1e9;
        link.latency = entry.figures.latency_us * 1e-6;
        if (!k25_machine_add_link(machine, link, &cause))
            return fail_at_node(file, node, path, &cause, error);
    }
    return true;
}

/* Builds vertices and links from the one-line form or from the two lists. */
static bool build(const struct k25_yaml_node *root, const char *file, const struct k25_link_defaults *defaults,
                  struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_graph_nodes nodes = machine->graph;
    bool assumed = machine->assumed_links, line = machine->topology[0] != '\0', graph = nodes.vertices != NULL;
    const struct k25_yaml_node *at = k25_yaml_get(root, graph ? "graph" : "topology");
    struct k25_error cause;
    if (line == graph)
        return k25_fail_at(error, file, (at ? at : root)->line, (at ? at : root)->column,
                           "a machine has either 'topology' or 'graph', this one has %s", graph ? "both" : "neither");
    if (line) {
        char text[sizeof machine->topology];
        memcpy(text, machine->topology, sizeof text);
        return k25_machine_synthetic(text, defaults, machine, &cause) ||
               fail_at_node(file, at, "machine.topology", &cause, error);
    }
    k25_machine_clear(machine);
    machine->assumed_links = assumed;
    return load_vertices(nodes.vertices, file, machine, error) &&
           load_links(nodes.links, file, machine, inputs, error) &&
           (k25_machine_check(machine, &cause) || fail_at_node(file, at, "machine.graph", &cause, error));
}

/* P2P of the GPU, when the file does not give it. */
static bool default_p2p(struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_input input = {.path = (char *)"machine.p2p", .value = (char *)(machine->gpu.p2p ? "true" : "false")};
    input.origin = K25_FROM_DEFAULT;
    machine->p2p = machine->gpu.p2p;
    machine->p2p_of_gpu = true;
    return inputs == NULL || k25_inputs_record(inputs, input, error);
}

static bool load_yaml(const struct k25_yaml *yaml, const struct k25_machine_parts *parts, struct k25_machine *machine,
                      struct k25_inputs *inputs, struct k25_error *error)
{
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    const char *file = k25_yaml_file(yaml);
    struct machine_file *record = calloc(1, sizeof *record); /* too large for a stack */
    if (record == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    bool done = k25_schema_head(yaml, "machine", error) &&
                k25_schema_load(file_fields, "machine", root, file, record, inputs, error) &&
                k25_gpu_read(record->gpu, file, "machine.gpu", &parts->gpus, &record->machine.gpu, inputs, error) &&
                (k25_yaml_get(root, "p2p") != NULL || default_p2p(&record->machine, inputs, error)) &&
                build(root, file, &parts->links, &record->machine, inputs, error);
    *machine = record->machine;
    free(record);
    return done;
}

bool k25_machine_load(const char *path, const struct k25_machine_parts *parts, struct k25_machine *machine,
                      struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    bool done = yaml && load_yaml(yaml, parts, machine, inputs, error);
    k25_yaml_free(yaml);
    return done;
}

bool k25_machine_parse(const char *text, size_t size, const char *name, const struct k25_machine_parts *parts,
                       struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, size, name, error);
    bool done = yaml && load_yaml(yaml, parts, machine, inputs, error);
    k25_yaml_free(yaml);
    return done;
}

/* ---- overriding ---- */

static bool set_value(struct k25_machine *machine, const char *path, const char *value,
                      const struct k25_machine_parts *parts, struct k25_inputs *inputs, struct k25_error *error)
{
    if (strcmp(path, "gpu") == 0)
        return k25_gpu_exchange(&machine->gpu, "machine.gpu", value, &parts->gpus, inputs, error) &&
               (!machine->p2p_of_gpu || default_p2p(machine, inputs, error));
    if (strncmp(path, "gpu.", 4) == 0)
        return k25_gpu_set(&machine->gpu, "machine.gpu", path + 4, value, inputs, error);
    machine->p2p_of_gpu = machine->p2p_of_gpu && strcmp(path, "p2p") != 0;
    return k25_schema_set(k25_machine_fields, "machine", path, value, machine, inputs, error);
}

bool k25_machine_set(struct k25_machine *machine, const char *path, const char *value,
                     const struct k25_machine_parts *parts, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_machine changed = *machine;
    struct k25_error cause;
    if (!set_value(&changed, path, value, parts, inputs, error))
        return false;
    bool done = strcmp(path, "topology") == 0 ? k25_machine_synthetic(value, &parts->links, &changed, &cause)
                                              : k25_machine_check(&changed, &cause);
    if (!done)
        return k25_fail(error, K25_BAD_INPUT, "--set machine.%s=%s: %s", path, value, cause.message);
    *machine = changed;
    return true;
}

/* ---- printing ---- */

static void print_graph(FILE *out, const struct k25_machine *machine)
{
    fprintf(out, "assumed_links: %s\ngraph:\n  vertices:\n", machine->assumed_links ? "true" : "false");
    for (size_t i = 0; i < machine->vertices; i++) {
        fputs("    - {name: ", out);
        k25_print_quoted(out, machine->vertex[i].name);
        fprintf(out, ", kind: %s}\n", k25_vertex_kind_names[machine->vertex[i].kind]);
    }
    fprintf(out, "  links:%s\n", machine->links ? "" : " []");
    for (size_t i = 0; i < machine->links; i++) {
        const struct k25_link *link = &machine->link[i];
        fputs("    - {from: ", out);
        k25_print_quoted(out, machine->vertex[link->from].name);
        fputs(", to: ", out);
        k25_print_quoted(out, machine->vertex[link->to].name);
        fprintf(out, ", kind: %s, bandwidth_gbs: %.15g, latency_us: %.15g}\n", k25_link_kind_names[link->kind],
                link->bandwidth / 1e9, link->latency * 1e6);
    }
}

char *k25_machine_print(const struct k25_machine *machine, struct k25_error *error)
{
    struct k25_printer printer;
    if (!k25_print_open(&printer, error))
        return NULL;
    FILE *out = printer.out;
    fputs("k25sim: machine\nversion: 1\n", out);
    k25_print_text(out, "name", machine->name);
    k25_print_text(out, "source", machine->source);
    k25_gpu_print(out, &machine->gpu);
    if (!machine->p2p_of_gpu)
        fprintf(out, "p2p: %s\n", machine->p2p ? "true" : "false");
    fprintf(out, "host_staging_latency_us: %.15g\n", machine->host_staging_latency_us);
    if (machine->price_per_hour > 0)
        fprintf(out, "price_per_hour: %.15g\n", machine->price_per_hour);
    if (machine->topology[0])
        k25_print_text(out, "topology", machine->topology);
    else
        print_graph(out, machine);
    return k25_print_close(&printer, error);
}
