/* The machine: GPUs and the topology that connects them.
 *
 * Read from hw/machines/NAME.yaml (docs/formats-machine.md), from the matrix `nvidia-smi topo -m` prints, or built
 * from a one-line form:
 *
 *   [N socket,] [N switch [each],]... N gpu [each], pcie4|pcie5 [, nvlink]       or       N gpu, nvlink
 *
 * "2 socket, 4 gpu each, pcie5"; "1 socket, 2 switch, 4 gpu each, pcie5"; "4 gpu, pcie5"; "8 gpu, nvlink". A count
 * with `each` is for every item of the kind before it, a count without is a total divided evenly. Everything directly
 * below a socket (a GPU or the topmost switch) has a separate root port.
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
    char name[32]; /* unique in the machine */
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
    char name[64];                  /* as in the file */
    char source[256];               /* of its figures */
    int gpus;                       /* 1 to K25_MAX_GPUS */
    bool p2p;                       /* GPUs access each other's memory; without it every hop goes through host memory */
    bool p2p_of_gpu;                /* the file does not give `p2p`: it is that of the GPU's driver */
    double host_staging_latency_us; /* added to such a hop */
    double price_per_hour;          /* USD, of the whole machine; 0: unknown */
    struct k25_gpu gpu;
    char topology[128]; /* the one-line form the graph was built from; "" when it came from elsewhere */
    struct k25_graph_nodes graph;
    size_t vertices, links;                     /* used entries of the arrays below */
    struct k25_vertex vertex[K25_MAX_VERTICES]; /* the GPUs first, in rank order */
    struct k25_link link[K25_MAX_LINKS];
    bool assumed_links; /* the link figures are defaults, not measured or read from a file */
};

/* The default figures of a link when a topology gives only its kind (hw/topology/links.yaml, each with its source). The
 * latency of a PCIe link is the sum of its two ends: `pcie.latency_us` at a GPU, half of `switch_latency_us` at a
 * switch, half of `root_latency_us` at a root. An NVLink adds `nvlink.latency_us` at every GPU. */
struct k25_link_figures {
    double bandwidth_gbs; /* in one direction */
    double latency_us;    /* one way */
};

struct k25_link_defaults {
    char source[256]; /* of the figures */
    struct k25_link_figures pcie4, pcie5;
    struct k25_link_figures internal;          /* root to socket */
    struct k25_link_figures xgmi;              /* socket to socket */
    struct k25_link_figures nvlink;            /* of one NVLink; a GPU may have several */
    int nvlinks;                               /* of one GPU on an NVSwitch */
    double switch_latency_us, root_latency_us; /* to pass through one */
};

/* The classes `nvidia-smi topo -m` prints, nearest first, by what a path crosses:
 *   NV    an NVLink
 *   PIX   at most one PCIe switch
 *   PXB   several PCIe switches, no root
 *   PHB   one root
 *   NODE  several roots, one socket: GPUs on separate root ports, as in direct-attach hosts
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

/* The path between two GPUs: the lowest latency, ties to the fewest links. It passes through no third GPU. Without P2P
 * it is the path to the memory of the first GPU's socket and from there to the second GPU. */
struct k25_path {
    enum k25_path_class class;
    int hops;         /* links on it */
    double latency;   /* s, the sum over its links, plus the staging in host memory without P2P */
    double bandwidth; /* bytes/s, the narrowest link */
};

/* The figures of a topology that the collectives need, for a group of the ranks 0..n-1. Links are full duplex: only
 * flows in the same direction share a link, evenly. A group of one moves nothing: latencies 0, bandwidths infinite.
 */
struct k25_group {
    int n;                 /* ranks */
    bool nvlink;           /* every path is NVLink */
    double ring_latency;   /* s, mean over the n hops 0->1->...->n-1->0 */
    double ring_bandwidth; /* bytes/s, the slowest hop of the ring with all hops busy at once */
    double peer_latency;   /* s, the longest path between two ranks */
    double peer_bandwidth; /* bytes/s the slowest rank receives when all read all others at once: (n-1) times its
                              slowest flow, because a collective ends with the last one */
    double lone_bandwidth; /* the same when only one rank reads the others: the limit of its own links */
    enum k25_path_class worst_class; /* of the worst pair */
};

extern const struct k25_field k25_machine_fields[];
extern const struct k25_field k25_link_defaults_fields[];
extern const char *const k25_path_class_names[K25_PATH_CLASSES + 1]; /* "NV", "PIX", ... NULL-terminated */

/* What machine files refer to: default figures of links, and GPU files. */
struct k25_machine_parts {
    struct k25_link_defaults links; /* of hw/topology/links.yaml */
    struct k25_gpu_finder gpus;     /* finds hw/gpus/NAME.yaml */
};

/* Reads hw/topology/links.yaml (`k25sim: link_defaults`). `inputs` may be NULL; its paths start with "links". Fails as
 * k25_yaml_read and k25_schema_load do. */
bool k25_link_defaults_load(const char *path, struct k25_link_defaults *defaults, struct k25_inputs *inputs,
                            struct k25_error *error);

/* Reads a machine file (`k25sim: machine`) with its GPU into `machine`, which owns nothing. `inputs` may be NULL; its
 * paths start with "machine". Fails with K25_BAD_INPUT and the position for a wrong value, an unknown GPU, a graph that
 * k25_machine_check refuses; K25_RESOURCE for read errors and out of memory. */
bool k25_machine_load(const char *path, const struct k25_machine_parts *parts, struct k25_machine *machine,
                      struct k25_inputs *inputs, struct k25_error *error);

/* As k25_machine_load, from `size` bytes in memory; `name` is used as the file name in messages. */
bool k25_machine_parse(const char *text, size_t size, const char *name, const struct k25_machine_parts *parts,
                       struct k25_machine *machine, struct k25_inputs *inputs, struct k25_error *error);

/* Sets one value of a loaded machine as --set does ("gpu.bandwidth_gbs", "p2p"). "topology" rebuilds the graph; "gpu"
 * takes the GPU of a file, and its P2P if the machine file does not give one. Fails with K25_BAD_INPUT for an unknown
 * path or a bad value. */
bool k25_machine_set(struct k25_machine *machine, const char *path, const char *value,
                     const struct k25_machine_parts *parts, struct k25_inputs *inputs, struct k25_error *error);

/* Returns the text of a file that loads to the same machine, which the caller frees with free(); NULL (K25_RESOURCE)
 * when out of memory. */
char *k25_machine_print(const struct k25_machine *machine, struct k25_error *error);

/* Replaces the graph of a machine, whose GPU is already set, by that of the one-line form `text`; sets `gpus`. A text
 * that does not follow the grammar is K25_BAD_INPUT. */
bool k25_machine_synthetic(const char *text, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                           struct k25_error *error);

/* Replaces the graph of a machine by one whose paths have the classes of an `nvidia-smi topo -m` matrix, read as text
 * from `path` ("-": standard input); sets `gpus` and `assumed_links`. Link figures are the defaults, those of PCIe for
 * the generation of the GPU, which is already set. A matrix that is incomplete or contradicts itself is K25_BAD_INPUT
 * with the position. */
bool k25_machine_import_topo(const char *path, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                             struct k25_error *error);

/* As k25_machine_import_topo, from `size` bytes in memory; `name` is used as the file name in messages. */
bool k25_machine_parse_topo(const char *text, size_t size, const char *name, const struct k25_link_defaults *defaults,
                            struct k25_machine *machine, struct k25_error *error);

/* Finds the path from one GPU to another (ranks from 0). Returns false when there is none: the same GPU twice, or GPUs
 * without a connection. */
bool k25_machine_path(const struct k25_machine *machine, int gpu_a, int gpu_b, struct k25_path *path);

/* Computes the figures of the group of ranks 0..n-1. Fails with K25_BAD_INPUT when n is not between 1 and the number of
 * GPUs, or two of them have no path. */
bool k25_machine_group(const struct k25_machine *machine, int n, struct k25_group *group, struct k25_error *error);

/* Building a graph, for the readers: clear it, add the GPUs, then the other vertices, then the links, then check. The
 * functions fail with K25_BAD_INPUT for too many vertices or links, a duplicate name, and a link between two kinds of
 * vertices that cannot be linked. `*vertex` is set to the index of the new vertex. */
void k25_machine_clear(struct k25_machine *machine);
bool k25_machine_add_vertex(struct k25_machine *machine, enum k25_vertex_kind kind, const char *name, int *vertex,
                            struct k25_error *error);
bool k25_machine_add_link(struct k25_machine *machine, struct k25_link link, struct k25_error *error);

/* Links two vertices with the default figures for their kinds; `pcie` has the figures of PCIe links, `nvlink_gbs` is
 * the bandwidth of the NVLinks between the two in one direction, GB/s. */
bool k25_machine_join(struct k25_machine *machine, int from, int to, const struct k25_link_figures *pcie,
                      double nvlink_gbs, const struct k25_link_defaults *defaults, struct k25_error *error);

/* Fails with K25_BAD_INPUT unless there is a GPU and all pairs of GPUs have a path. */
bool k25_machine_check(const struct k25_machine *machine, struct k25_error *error);

#endif
