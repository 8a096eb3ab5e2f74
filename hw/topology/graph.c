/* The graph of a machine: building it, paths, and the figures of a group of ranks. */
#include "hw/topology/machine.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *const k25_path_class_names[K25_PATH_CLASSES + 1] = {
    [K25_PATH_NVLINK] = "NV", [K25_PATH_PIX] = "PIX",   [K25_PATH_PXB] = "PXB",
    [K25_PATH_PHB] = "PHB",   [K25_PATH_NODE] = "NODE", [K25_PATH_SYS] = "SYS",
};

const char *const k25_vertex_kind_names[K25_V_KINDS + 1] = {
    [K25_V_GPU] = "gpu",       [K25_V_SWITCH] = "switch",     [K25_V_ROOT] = "root",
    [K25_V_SOCKET] = "socket", [K25_V_NVSWITCH] = "nvswitch",
};

const char *const k25_link_kind_names[K25_L_KINDS + 1] = {
    [K25_L_PCIE] = "pcie",
    [K25_L_SOCKET] = "socket",
    [K25_L_NVLINK] = "nvlink",
    [K25_L_INTERNAL] = "internal",
};

/* ---- building ---- */

void k25_machine_clear(struct k25_machine *machine)
{
    machine->gpus = 0;
    machine->vertices = machine->links = 0;
    machine->topology[0] = '\0';
    machine->graph = (struct k25_graph_nodes){0};
    machine->assumed_links = false;
}

bool k25_machine_add_vertex(struct k25_machine *machine, enum k25_vertex_kind kind, const char *name, int *vertex,
                            struct k25_error *error)
{
    if (machine->vertices == K25_MAX_VERTICES)
        return k25_fail(error, K25_BAD_INPUT, "a machine has at most %d vertices", K25_MAX_VERTICES);
    if (kind == K25_V_GPU && machine->gpus == K25_MAX_GPUS)
        return k25_fail(error, K25_BAD_INPUT, "a machine has at most %d GPUs", K25_MAX_GPUS);
    if (kind == K25_V_GPU && (size_t)machine->gpus != machine->vertices)
        return k25_fail(error, K25_BAD_INPUT, "the GPU '%s' must come before the other vertices", name);
    for (size_t i = 0; i < machine->vertices; i++)
        if (strcmp(machine->vertex[i].name, name) == 0)
            return k25_fail(error, K25_BAD_INPUT, "two vertices are called '%s'", name);
    struct k25_vertex *added = &machine->vertex[machine->vertices];
    if (snprintf(added->name, sizeof added->name, "%s", name) >= (int)sizeof added->name)
        return k25_fail(error, K25_BAD_INPUT, "'%s' is too long for the name of a vertex", name);
    added->kind = kind;
    *vertex = (int)machine->vertices++;
    machine->gpus += kind == K25_V_GPU;
    return true;
}

/* The only kind of link that can join two kinds of vertices, K25_L_KINDS when none can. */
static enum k25_link_kind kind_between(enum k25_vertex_kind a, enum k25_vertex_kind b)
{
    if (a > b) {
        enum k25_vertex_kind swap = a;
        a = b;
        b = swap;
    }
    if (b == K25_V_NVSWITCH)
        return a == K25_V_GPU || a == K25_V_NVSWITCH ? K25_L_NVLINK : K25_L_KINDS;
    if (b == K25_V_SOCKET)
        return a == K25_V_SOCKET ? K25_L_SOCKET : a == K25_V_ROOT ? K25_L_INTERNAL : K25_L_KINDS;
    if (a == K25_V_GPU && b == K25_V_GPU)
        return K25_L_NVLINK;
    return a == K25_V_ROOT ? K25_L_KINDS : K25_L_PCIE;
}

bool k25_machine_add_link(struct k25_machine *machine, struct k25_link link, struct k25_error *error)
{
    const struct k25_vertex *from = &machine->vertex[link.from], *to = &machine->vertex[link.to];
    if (machine->links == K25_MAX_LINKS)
        return k25_fail(error, K25_BAD_INPUT, "a machine has at most %d links", K25_MAX_LINKS);
    if (link.from == link.to)
        return k25_fail(error, K25_BAD_INPUT, "a link joins %s to itself", from->name);
    if (kind_between(from->kind, to->kind) != link.kind)
        return k25_fail(error, K25_BAD_INPUT, "a link of kind %s cannot join %s (%s) and %s (%s)",
                        k25_link_kind_names[link.kind], from->name, k25_vertex_kind_names[from->kind], to->name,
                        k25_vertex_kind_names[to->kind]);
    for (size_t i = 0; i < machine->links; i++) {
        const struct k25_link *old = &machine->link[i];
        if ((old->from == link.from && old->to == link.to) || (old->from == link.to && old->to == link.from))
            return k25_fail(error, K25_BAD_INPUT,
                            "%s and %s are joined twice; give parallel links as one, with their bandwidths added",
                            from->name, to->name);
    }
    machine->link[machine->links++] = link;
    return true;
}

/* The latency that one end of a PCIe link adds: each side of a switch or root counts half of it. */
static double end_latency_us(enum k25_vertex_kind kind, const struct k25_link_figures *pcie,
                             const struct k25_link_defaults *defaults)
{
    switch (kind) {
    case K25_V_GPU:
        return pcie->latency_us;
    case K25_V_SWITCH:
        return defaults->switch_latency_us / 2;
    case K25_V_ROOT:
        return defaults->root_latency_us / 2;
    case K25_V_SOCKET: /* no PCIe link ends at one of these */
    case K25_V_NVSWITCH:
    case K25_V_KINDS:
        break;
    }
    return 0;
}

/* What a link of a kind between `a` and `b` gets. */
static struct k25_link_figures figures_of(enum k25_link_kind kind, enum k25_vertex_kind a, enum k25_vertex_kind b,
                                          const struct k25_link_figures *pcie, double nvlink_gbs,
                                          const struct k25_link_defaults *defaults)
{
    switch (kind) {
    case K25_L_PCIE:
        return (struct k25_link_figures){
            .bandwidth_gbs = pcie->bandwidth_gbs,
            .latency_us = end_latency_us(a, pcie, defaults) + end_latency_us(b, pcie, defaults),
        };
    case K25_L_SOCKET:
        return defaults->xgmi;
    case K25_L_NVLINK:
        return (struct k25_link_figures){
            .bandwidth_gbs = nvlink_gbs,
            .latency_us = ((a == K25_V_GPU) + (b == K25_V_GPU)) * defaults->nvlink.latency_us,
        };
    case K25_L_INTERNAL:
        return defaults->internal;
    case K25_L_KINDS:
        break;
    }
    return (struct k25_link_figures){0};
}

bool k25_machine_join(struct k25_machine *machine, int from, int to, const struct k25_link_figures *pcie,
                      double nvlink_gbs, const struct k25_link_defaults *defaults, struct k25_error *error)
{
    enum k25_vertex_kind a = machine->vertex[from].kind, b = machine->vertex[to].kind;
    enum k25_link_kind kind = kind_between(a, b);
    if (kind == K25_L_KINDS)
        return k25_fail(error, K25_BAD_INPUT, "no link can join a %s and a %s", k25_vertex_kind_names[a],
                        k25_vertex_kind_names[b]);
    struct k25_link_figures figures = figures_of(kind, a, b, pcie, nvlink_gbs, defaults);
    struct k25_link link = {from, to, kind, figures.bandwidth_gbs * 1e9, figures.latency_us * 1e-6};
    return k25_machine_add_link(machine, link, error);
}

/* ---- paths ---- */

/* The shortest paths from one vertex (Dijkstra). */
struct tree {
    double seconds[K25_MAX_VERTICES]; /* infinite: not reached */
    int hops[K25_MAX_VERTICES];
    int step[K25_MAX_VERTICES]; /* the last step to a vertex, -1 at the start */
};

/* A step is a link in one direction: 2 link, or 2 link + 1 for the reverse direction. */
struct walk {
    int count;
    int step[2 * K25_MAX_VERTICES];
};

/* All paths from one GPU. */
struct source {
    struct tree direct;
    struct tree staged; /* without P2P: from the memory of the nearest socket */
    int socket;         /* -1 when there is P2P */
};

/* Sums of the same links in different orders may differ in the last bit: less than a femtosecond is a tie. */
static bool nearer(double seconds_a, int hops_a, double seconds_b, int hops_b)
{
    if (fabs(seconds_a - seconds_b) > 1e-15)
        return seconds_a < seconds_b;
    return hops_a < hops_b;
}

static int step_end(const struct k25_machine *machine, int step)
{
    const struct k25_link *link = &machine->link[step / 2];
    return step % 2 == 0 ? link->to : link->from;
}

/* The unsettled vertex nearest to the start, -1 when all reachable ones are settled. */
static int nearest_open(const struct k25_machine *machine, const struct tree *tree, const bool *settled)
{
    int best = -1;
    for (int v = 0; v < (int)machine->vertices; v++)
        if (!settled[v] && isfinite(tree->seconds[v]) &&
            (best < 0 || nearer(tree->seconds[v], tree->hops[v], tree->seconds[best], tree->hops[best])))
            best = v;
    return best;
}

static void grow(const struct k25_machine *machine, int start, struct tree *tree)
{
    bool settled[K25_MAX_VERTICES] = {false};
    for (int v = 0; v < (int)machine->vertices; v++) {
        tree->seconds[v] = INFINITY;
        tree->hops[v] = INT_MAX;
        tree->step[v] = -1;
    }
    tree->seconds[start] = 0;
    tree->hops[start] = 0;
    for (int at; (at = nearest_open(machine, tree, settled)) >= 0;) {
        settled[at] = true;
        if (machine->vertex[at].kind == K25_V_GPU && at != start)
            continue; /* a GPU forwards nothing */
        for (int step = 0; step < 2 * (int)machine->links; step++) {
            int to = step_end(machine, step);
            if (step_end(machine, step ^ 1) != at || settled[to])
                continue;
            double seconds = tree->seconds[at] + machine->link[step / 2].latency;
            if (nearer(seconds, tree->hops[at] + 1, tree->seconds[to], tree->hops[to])) {
                tree->seconds[to] = seconds;
                tree->hops[to] = tree->hops[at] + 1;
                tree->step[to] = step;
            }
        }
    }
}

/* Appends the tree's path to `end`; false when it does not reach it. */
static bool append(const struct k25_machine *machine, const struct tree *tree, int end, struct walk *walk)
{
    if (!isfinite(tree->seconds[end]))
        return false;
    walk->count += tree->hops[end];
    for (int at = end, place = walk->count - 1; tree->step[at] >= 0; place--) {
        walk->step[place] = tree->step[at];
        at = step_end(machine, tree->step[at] ^ 1);
    }
    return true;
}

/* False without P2P when the GPU reaches the memory of no socket. */
static bool open_source(const struct k25_machine *machine, int gpu, struct source *source)
{
    grow(machine, gpu, &source->direct);
    source->socket = -1;
    if (machine->p2p)
        return true;
    const struct tree *tree = &source->direct;
    for (int v = 0; v < (int)machine->vertices; v++)
        if (machine->vertex[v].kind == K25_V_SOCKET && isfinite(tree->seconds[v]) &&
            (source->socket < 0 ||
             nearer(tree->seconds[v], tree->hops[v], tree->seconds[source->socket], tree->hops[source->socket])))
            source->socket = v;
    if (source->socket >= 0)
        grow(machine, source->socket, &source->staged);
    return source->socket >= 0;
}

static bool walk_to(const struct k25_machine *machine, const struct source *source, int gpu, struct walk *walk)
{
    walk->count = 0;
    if (source->socket < 0)
        return append(machine, &source->direct, gpu, walk);
    return append(machine, &source->direct, source->socket, walk) && append(machine, &source->staged, gpu, walk);
}

static enum k25_path_class class_of(const int crossed[K25_V_KINDS])
{
    if (crossed[K25_V_SOCKET] > 1)
        return K25_PATH_SYS;
    if (crossed[K25_V_ROOT] > 0)
        return crossed[K25_V_ROOT] > 1 ? K25_PATH_NODE : K25_PATH_PHB;
    return crossed[K25_V_SWITCH] > 1 ? K25_PATH_PXB : K25_PATH_PIX;
}

static struct k25_path describe(const struct k25_machine *machine, const struct walk *walk)
{
    struct k25_path path = {.hops = walk->count, .bandwidth = INFINITY};
    bool seen[K25_MAX_VERTICES] = {false}, nvlink = false;
    int crossed[K25_V_KINDS] = {0};
    for (int i = 0; i < walk->count; i++) {
        const struct k25_link *link = &machine->link[walk->step[i] / 2];
        int at = step_end(machine, walk->step[i]);
        path.latency += link->latency;
        path.bandwidth = fmin(path.bandwidth, link->bandwidth);
        nvlink |= link->kind == K25_L_NVLINK;
        crossed[machine->vertex[at].kind] += !seen[at];
        seen[at] = true;
    }
    if (!machine->p2p)
        path.latency += machine->host_staging_latency_us * 1e-6;
    path.class = nvlink ? K25_PATH_NVLINK : class_of(crossed);
    return path;
}

bool k25_machine_path(const struct k25_machine *machine, int gpu_a, int gpu_b, struct k25_path *path)
{
    struct source source;
    struct walk walk;
    if (gpu_a == gpu_b || gpu_a < 0 || gpu_b < 0 || gpu_a >= machine->gpus || gpu_b >= machine->gpus ||
        !open_source(machine, gpu_a, &source) || !walk_to(machine, &source, gpu_b, &walk))
        return false;
    *path = describe(machine, &walk);
    return true;
}

static bool fail_path(const struct k25_machine *machine, int a, int b, struct k25_error *error)
{
    const char *from = machine->vertex[a].name, *to = machine->vertex[b].name;
    if (machine->p2p)
        return k25_fail(error, K25_BAD_INPUT, "no links lead from %s to %s", from, to);
    return k25_fail(error, K25_BAD_INPUT,
                    "no links lead from %s to %s by way of a socket, whose memory data passes through without P2P",
                    from, to);
}

bool k25_machine_check(const struct k25_machine *machine, struct k25_error *error)
{
    if (machine->gpus == 0)
        return k25_fail(error, K25_BAD_INPUT, "the machine has no GPU");
    for (int a = 0; a < machine->gpus; a++) {
        struct source source;
        struct walk walk;
        bool open = open_source(machine, a, &source);
        for (int b = 0; b < machine->gpus; b++)
            if (a != b && (!open || !walk_to(machine, &source, b, &walk)))
                return fail_path(machine, a, b, error);
    }
    return true;
}

/* ---- groups ---- */

/* bytes/s of the slowest of many flows: a link is shared evenly by its flows, per direction. A flow is limited by the
 * smallest share on its path, so the slowest flow is on the link with the smallest share of all. */
static double slowest_flow(const struct k25_machine *machine, const int *flows)
{
    double slowest = INFINITY;
    for (int step = 0; step < 2 * (int)machine->links; step++)
        if (flows[step] > 0)
            slowest = fmin(slowest, machine->link[step / 2].bandwidth / flows[step]);
    return slowest;
}

bool k25_machine_group(const struct k25_machine *machine, int n, struct k25_group *group, struct k25_error *error)
{
    if (n < 1 || n > machine->gpus)
        return k25_fail(error, K25_BAD_INPUT, "a group of %d GPUs does not fit a machine of %d", n, machine->gpus);
    *group = (struct k25_group){.n = n, .nvlink = true, .lone_bandwidth = INFINITY, .worst_class = K25_PATH_NVLINK};
    int ring[2 * K25_MAX_LINKS] = {0}, peer[2 * K25_MAX_LINKS] = {0};
    for (int a = 0; a < n; a++) {
        struct source source;
        bool open = open_source(machine, a, &source);
        int lone[2 * K25_MAX_LINKS] = {0};
        for (int b = 0; b < n; b++) {
            struct walk walk;
            if (a == b)
                continue;
            if (!open || !walk_to(machine, &source, b, &walk))
                return fail_path(machine, a, b, error);
            struct k25_path path = describe(machine, &walk);
            bool hop = b == (a + 1) % n;
            group->ring_latency += hop ? path.latency / n : 0;
            group->peer_latency = fmax(group->peer_latency, path.latency);
            group->nvlink = group->nvlink && path.class == K25_PATH_NVLINK;
            group->worst_class = path.class > group->worst_class ? path.class : group->worst_class;
            for (int i = 0; i < walk.count; i++) {
                ring[walk.step[i]] += hop;
                peer[walk.step[i]]++;
                lone[walk.step[i]]++;
            }
        }
        if (n > 1)
            group->lone_bandwidth = fmin(group->lone_bandwidth, (n - 1) * slowest_flow(machine, lone));
    }
    group->nvlink = group->nvlink && n > 1;
    group->ring_bandwidth = slowest_flow(machine, ring);
    group->peer_bandwidth = n > 1 ? (n - 1) * slowest_flow(machine, peer) : INFINITY;
    return true;
}
