/* The file format of machines and of link defaults: tables, loading, overriding, printing. */
#include "hw/topology/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const vertex_kinds[] = {"gpu", "switch", "root", "socket", "nvswitch", NULL};
static const char *const link_kinds[] = {"pcie", "socket", "nvlink", "internal", NULL};

/* ---- the tables ---- */

static const struct k25_field gpu_fields[] = {
    K25_FIELD(TEXT, k25_gpu, name, .doc = "what the maker calls it"),
    K25_FIELD(INT, k25_gpu, sms, .min = 1, .max = 10000, .doc = "streaming multiprocessors"),
    K25_FIELD(REAL, k25_gpu, memory_mib, .min = 1, .max = 1e9, .unit = "MiB", .doc = "memory as the driver reports it"),
    K25_FIELD(REAL, k25_gpu, bandwidth_gbs, .min = 1e-3, .max = 1e6, .unit = "GB/s",
              .doc = "memory bandwidth, data sheet"),
    K25_FIELD(REAL, k25_gpu, l2_mib, .min = 1e-3, .max = 1e6, .unit = "MiB", .doc = "L2 cache"),
    K25_FIELD(REAL, k25_gpu, peak_bf16_tflops, .min = 1e-3, .max = 1e9, .unit = "TFLOP/s",
              .doc = "dense BF16 tensor peak, FP32 accumulate"),
    K25_FIELD(REAL, k25_gpu, peak_fp8_tflops, .fallback = "0", .min = 0, .max = 1e9, .unit = "TFLOP/s",
              .doc = "dense FP8 tensor peak; 0: not supported"),
    K25_FIELD(REAL, k25_gpu, peak_fp4_tflops, .fallback = "0", .min = 0, .max = 1e9, .unit = "TFLOP/s",
              .doc = "dense FP4 tensor peak; 0: not supported"),
    K25_FIELD(REAL, k25_gpu, power_w, .min = 1, .max = 1e5, .unit = "W", .doc = "power limit"),
    {0},
};

static const struct k25_field graph_fields[] = {
    K25_FIELD(NODE, k25_graph_nodes, vertices, .doc = "list of {name, kind}; the GPUs in rank order"),
    K25_FIELD(NODE, k25_graph_nodes, links, .doc = "list of {from, to, kind, bandwidth_gbs, latency_us}"),
    {0},
};

const struct k25_field k25_machine_fields[] = {
    K25_FIELD(TEXT, k25_machine, name, .doc = "what people call the machine"),
    K25_FIELD(TEXT, k25_machine, source, .doc = "where its figures are from"),
    K25_FIELD(MAP, k25_machine, gpu, .fields = gpu_fields, .doc = "one of its equal GPUs"),
    K25_FIELD(BOOL, k25_machine, p2p, .fallback = "true",
              .doc = "GPUs reach each other's memory; otherwise every hop goes through host memory"),
    K25_FIELD(REAL, k25_machine, host_staging_latency_us, .min = 0, .max = 1e6, .unit = "us",
              .doc = "added to every hop without P2P"),
    K25_FIELD(REAL, k25_machine, price_per_hour, .fallback = "0", .min = 0, .max = 1e6, .unit = "USD",
              .doc = "of the whole machine; 0: unknown"),
    K25_FIELD(TEXT, k25_machine, topology, .fallback = "", .doc = "the one-line form; this or graph"),
    K25_FIELD(MAP, k25_machine, graph, .fallback = "", .fields = graph_fields,
              .doc = "vertices and links; this or topology"),
    K25_FIELD(BOOL, k25_machine, assumed_links, .fallback = "false",
              .doc = "the link figures are defaults, not measured"),
    {0},
};

static const struct k25_field figure_fields[] = {
    K25_FIELD(REAL, k25_link_figures, bandwidth_gbs, .min = 1e-3, .max = 1e6, .unit = "GB/s",
              .doc = "in one direction"),
    K25_FIELD(REAL, k25_link_figures, latency_us, .min = 0, .max = 1e6, .unit = "us", .doc = "one way"),
    {0},
};

#define FIGURES(member, text) K25_FIELD(MAP, k25_link_defaults, member, .fields = figure_fields, .doc = (text))
const struct k25_field k25_link_defaults_fields[] = {
    K25_FIELD(TEXT, k25_link_defaults, source, .doc = "where the figures are from"),
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
    K25_FIELD(ENUM, k25_vertex, kind, .names = vertex_kinds, .doc = "what it is"),
    {0},
};

struct link_entry {
    char from[32], to[32];
    int kind;
    struct k25_link_figures figures;
};

static const struct k25_field link_fields[] = {
    K25_FIELD(TEXT, link_entry, from, .doc = "a vertex"),
    K25_FIELD(TEXT, link_entry, to, .doc = "a vertex"),
    K25_FIELD(ENUM, link_entry, kind, .names = link_kinds, .doc = "what it is"),
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

/* A failure of the graph, which knows no file, at the place in the file that led to it. */
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

/* Twice through the list: the GPUs first, wherever they stand. */
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

/* Turns what the table read, one line or two lists, into vertices and links. */
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

static bool load_yaml(const struct k25_yaml *yaml, const struct k25_link_defaults *defaults,
                      struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    const char *file = k25_yaml_file(yaml);
    *machine = (struct k25_machine){0};
    return k25_schema_head(yaml, "machine", error) &&
           k25_schema_load(k25_machine_fields, "machine", root, file, machine, inputs, error) &&
           build(root, file, defaults, machine, inputs, error);
}

bool k25_machine_load(const char *path, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                      struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read(path, inputs, error);
    bool done = yaml && load_yaml(yaml, defaults, machine, inputs, error);
    k25_yaml_free(yaml);
    return done;
}

bool k25_machine_parse(const char *text, size_t size, const char *name, const struct k25_link_defaults *defaults,
                       struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, size, name, error);
    bool done = yaml && load_yaml(yaml, defaults, machine, inputs, error);
    k25_yaml_free(yaml);
    return done;
}

bool k25_machine_set(struct k25_machine *machine, const char *path, const char *value,
                     const struct k25_link_defaults *defaults, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_machine changed = *machine;
    struct k25_error cause;
    if (!k25_schema_set(k25_machine_fields, "machine", path, value, &changed, inputs, error))
        return false;
    bool done = strcmp(path, "topology") == 0 ? k25_machine_synthetic(value, defaults, &changed, &cause)
                                              : k25_machine_check(&changed, &cause);
    if (!done)
        return k25_fail(error, K25_BAD_INPUT, "--set machine.%s=%s: %s", path, value, cause.message);
    *machine = changed;
    return true;
}

/* ---- printing ---- */

/* In double quotes; what is not plain ASCII goes out as an escape, for YAML refuses some of it unescaped. */
static void print_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s: \"", key);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        if (*at < 0x80) {
            bool plain = *at >= ' ' && *at != 0x7f;
            fprintf(out, plain ? "%s%c" : "%s\\x%02x", *at == '"' || *at == '\\' ? "\\" : "", *at);
            at++;
            continue;
        }
        unsigned long code = *at >= 0xf0 ? *at & 0x07 : *at >= 0xe0 ? *at & 0x0f : *at & 0x1f;
        for (at++; (*at & 0xc0) == 0x80; at++) /* texts are UTF-8: the reader of YAML takes no other */
            code = code << 6 | (*at & 0x3f);
        fprintf(out, "\\U%08lx", code);
    }
    fputc('"', out);
}

static void print_gpu(FILE *out, const struct k25_gpu *gpu)
{
    fputs("gpu:\n", out);
    print_text(out, "  name", gpu->name);
    fprintf(out, "\n  sms: %d\n  memory_mib: %.15g\n  bandwidth_gbs: %.15g\n  l2_mib: %.15g\n", gpu->sms,
            gpu->memory_mib, gpu->bandwidth_gbs, gpu->l2_mib);
    fprintf(out, "  peak_bf16_tflops: %.15g\n  peak_fp8_tflops: %.15g\n  peak_fp4_tflops: %.15g\n  power_w: %.15g\n",
            gpu->peak_bf16_tflops, gpu->peak_fp8_tflops, gpu->peak_fp4_tflops, gpu->power_w);
}

static void print_graph(FILE *out, const struct k25_machine *machine)
{
    fprintf(out, "assumed_links: %s\ngraph:\n  vertices:\n", machine->assumed_links ? "true" : "false");
    for (size_t i = 0; i < machine->vertices; i++) {
        print_text(out, "    - {name", machine->vertex[i].name);
        fprintf(out, ", kind: %s}\n", vertex_kinds[machine->vertex[i].kind]);
    }
    fprintf(out, "  links:%s\n", machine->links ? "" : " []");
    for (size_t i = 0; i < machine->links; i++) {
        const struct k25_link *link = &machine->link[i];
        print_text(out, "    - {from", machine->vertex[link->from].name);
        print_text(out, ", to", machine->vertex[link->to].name);
        fprintf(out, ", kind: %s, bandwidth_gbs: %.15g, latency_us: %.15g}\n", link_kinds[link->kind],
                link->bandwidth / 1e9, link->latency * 1e6);
    }
}

char *k25_machine_print(const struct k25_machine *machine, struct k25_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    fputs("k25sim: machine\nversion: 1\n", out);
    print_text(out, "name", machine->name);
    print_text(out, "\nsource", machine->source);
    fputc('\n', out);
    print_gpu(out, &machine->gpu);
    fprintf(out, "p2p: %s\nhost_staging_latency_us: %.15g\n", machine->p2p ? "true" : "false",
            machine->host_staging_latency_us);
    if (machine->price_per_hour > 0)
        fprintf(out, "price_per_hour: %.15g\n", machine->price_per_hour);
    if (machine->topology[0]) {
        print_text(out, "topology", machine->topology);
        fputc('\n', out);
    } else {
        print_graph(out, machine);
    }
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(text);
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    return text;
}
