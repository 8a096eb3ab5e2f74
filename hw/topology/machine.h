/* The machine: GPUs and the topology that joins them.
 *
 * Read from hw/machines/NAME.yaml (docs/formats-machine.md), from the matrix `nvidia-smi topo -m` prints, or built
 * from a one-line form:
 *
 *   [N socket,] [N switch [each],]... N gpu [each], pcie4|pcie5 [, nvlink]       or       N gpu, nvlink
 *
 * "2 socket, 4 gpu each, pcie5"; "1 socket, 2 switch, 4 gpu each, pcie5"; "4 gpu, pcie5"; "8 gpu, nvlink". A count
 * with `each` is for every item of the kind before it, a count without is a total spread evenly. Everything below
 * a socket that is nearest to it (a GPU or the topmost switch) has a root port of its own.
 */
#ifndef K25_HW_TOPOLOGY_MACHINE_H
#define K25_HW_TOPOLOGY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "base/schema.h"
#include "base/yaml.h"
#include "hw/gpus/gpu.h"

#define K25_MAX_GPUS 64
#define K25_MAX_VERTICES 160
#define K25_MAX_LINKS 320

/* A root is a host bridge with its root port; a socket is a NUMA node with its memory. */
enum k25_vertex_kind { K25_V_GPU, K25_V_SWITCH, K25_V_ROOT, K25_V_SOCKET, K25_V_NVSWITCH, K25_V_KINDS };
enum k25_link_kind { K25_L_PCIE, K25_L_SOCKET, K25_L_NVLINK, K25_L_INTERNAL, K25_L_KINDS };
extern const char *const k25_vertex_kind_names[K25_V_KINDS + 1]; /* "gpu", ... NULL-terminated */
extern const char *const k25_link_kind_names[K25_L_KINDS + 1];   /* "pcie", ... NULL-terminated */

struct k25_vertex {
    char name[32];
    enum k25_vertex_kind kind;
};

struct k25_link {
    int from, to; /* vertices; the link carries both directions at once */
    enum k25_link_kind kind;
    double bandwidth; /* bytes/s in one direction */
    double latency;   /* s, one way */
};

/* The two lists of a `graph:` while a file is read; NULL otherwise. */
struct k25_graph_nodes {
    const struct k25_yaml_node *vertices, *links;
};

struct k25_machine {
    char name[64];
    char source[256];
    int gpus;
    bool p2p;                       /* GPUs reach each other's memory; without it every hop goes through host memory */
    bool p2p_of_gpu;                /* nobody says so of the machine: it is as the GPU's driver has it */
    double host_staging_latency_us; /* added to such a hop */
    double price_per_hour;          /* USD, of the whole machine; 0: unknown */
    struct k25_gpu gpu;
    char topology[128]; /* the one-line form the graph was built from; "" when it came from elsewhere */
    struct k25_graph_nodes graph;
    size_t vertices, links;
    struct k25_vertex vertex[K25_MAX_VERTICES]; /* the GPUs first, in rank order */
    struct k25_link link[K25_MAX_LINKS];
    bool assumed_links; /* the link figures are defaults, not measured or read from a file */
};

/* The figures a link gets when a topology names only its kind (hw/topology/links.yaml, each with its source). The
 * latency of a PCIe link is what its two ends add: `pcie.latency_us` at a GPU, half of `switch_latency_us` at a switch,
 * half of `root_latency_us` at a root. An NVLink adds `nvlink.latency_us` at every GPU. */
struct k25_link_figures {
    double bandwidth_gbs; /* in one direction */
    double latency_us;    /* one way */
};

struct k25_link_defaults {
    char source[256];
    struct k25_link_figures pcie4, pcie5;
    struct k25_link_figures internal;          /* root to socket */
    struct k25_link_figures xgmi;              /* socket to socket */
    struct k25_link_figures nvlink;            /* of one NVLink; a GPU may have several */
    int nvlinks;                               /* of one GPU that hangs on an NVSwitch */
    double switch_latency_us, root_latency_us; /* to pass through one */
};

/* The classes `nvidia-smi topo -m` prints, nearest first. What a path crosses decides:
 *   NV    an NVLink
 *   PIX   at most one PCIe switch
 *   PXB   several PCIe switches, no root
 *   PHB   one root
 *   NODE  several roots, one socket: GPUs on root ports of their own, as in direct-attach hosts
 *   SYS   several sockets */
enum k25_path_class {
    K25_PATH_NVLINK,
    K25_PATH_PIX,
    K25_PATH_PXB,
    K25_PATH_PHB,
    K25_PATH_NODE,
    K25_PATH_SYS,
    K25_PATH_CLASSES,
};

/* The path between two GPUs: fewest seconds, ties to the fewest links. It passes through no third GPU. Without P2P
 * it is the path to the memory of the first GPU's socket and from there to the second. */
struct k25_path {
    enum k25_path_class class;
    int hops;         /* links on it */
    double latency;   /* s, the sum over its links, and the staging in host memory without P2P */
    double bandwidth; /* bytes/s, the narrowest link */
};

/* What the collectives ask of a topology, for a group of the ranks 0..n-1. Links are full duplex: only flows in
 * the same direction of a link divide it, evenly. A group of one moves nothing: latencies 0, bandwidths infinite.
 */
struct k25_group {
    int n;
    bool nvlink;           /* every path is NVLink */
    double ring_latency;   /* s, mean over the n hops 0->1->...->n-1->0 */
    double ring_bandwidth; /* bytes/s, the slowest hop of the ring with all hops busy at once */
    double peer_latency;   /* s, the longest path between two ranks */
    double peer_bandwidth; /* bytes/s the slowest rank receives when all read all others at once: (n-1) times its
                              slowest flow, because a collective ends with the last one */
    double lone_bandwidth; /* the same when one rank alone reads the others: what its own links allow */
    enum k25_path_class worst_class; /* of the worst pair */
};

extern const struct k25_field k25_machine_fields[];
extern const struct k25_field k25_link_defaults_fields[];
extern const char *const k25_path_class_names[K25_PATH_CLASSES + 1]; /* "NV", "PIX", ... NULL-terminated */

/* What machine files refer to: the figures of links of a kind, and the files of GPUs. */
struct k25_machine_parts {
    struct k25_link_defaults links;
    struct k25_gpu_finder gpus;
};

bool k25_link_defaults_load(const char *path, struct k25_link_defaults *defaults, struct k25_inputs *inputs,
                            struct k25_error *error);

/* `inputs` may be NULL; its paths start with "machine". */
bool k25_machine_load(const char *path, const struct k25_machine_parts *parts, struct k25_machine *machine,
                      struct k25_inputs *inputs, struct k25_error *error);
/* The same from text; `name` stands for the file in messages. */
bool k25_machine_parse(const char *text, size_t size, const char *name, const struct k25_machine_parts *parts,
                       struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error);

/* Sets one value of a loaded machine as --set does ("gpu.bandwidth_gbs", "p2p"); "topology" rebuilds the graph, "gpu"
 * takes a file's GPU, and its P2P where the machine's file leaves it to the GPU. */
bool k25_machine_set(struct k25_machine *machine, const char *path, const char *value,
                     const struct k25_machine_parts *parts, struct k25_inputs *inputs, struct k25_error *error);

/* The machine as a file that loads to the same machine; the caller frees. */
char *k25_machine_print(const struct k25_machine *machine, struct k25_error *error);

/* Replaces the graph of a machine, whose GPU is already described, by the one-line form; sets `gpus`. */
bool k25_machine_synthetic(const char *text, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                           struct k25_error *error);

/* Replaces the graph of a machine by one whose paths have the classes of an `nvidia-smi topo -m` matrix (text; "-"
 * for standard input); sets `gpus`. Link figures come from the defaults, those of PCIe by the generation of the GPU,
 * which is already described: `assumed_links` is set. */
bool k25_machine_import_topo(const char *path, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                             struct k25_error *error);
/* The same from text; `name` stands for the file in messages. */
bool k25_machine_parse_topo(const char *text, size_t size, const char *name, const struct k25_link_defaults *defaults,
                            struct k25_machine *machine, struct k25_error *error);

/* False when there is no such path: the same GPU twice, or GPUs that no link joins. */
bool k25_machine_path(const struct k25_machine *machine, int gpu_a, int gpu_b, struct k25_path *path);
bool k25_machine_group(const struct k25_machine *machine, int n, struct k25_group *group, struct k25_error *error);

/* Builders of graphs, for the readers: empty the graph, add the GPUs, then the rest, then check. A vertex or link
 * too many, a name given twice, a link that cannot be fail; `*vertex` is the index of the new one. */
void k25_machine_clear(struct k25_machine *machine);
bool k25_machine_add_vertex(struct k25_machine *machine, enum k25_vertex_kind kind, const char *name, int *vertex,
                            struct k25_error *error);
bool k25_machine_add_link(struct k25_machine *machine, struct k25_link link, struct k25_error *error);
/* Joins two vertices with the default figures of what they are; `pcie` is the generation of PCIe links, `nvlink_gbs`
 * what the NVLinks between the two carry in one direction. */
bool k25_machine_join(struct k25_machine *machine, int from, int to, const struct k25_link_figures *pcie,
                      double nvlink_gbs, const struct k25_link_defaults *defaults, struct k25_error *error);
/* False unless there is a GPU and every two GPUs have a path. */
bool k25_machine_check(const struct k25_machine *machine, struct k25_error *error);

#endif
