/* One rank while its trace streams by: what is kept of it, in bounded memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "calib/capture/internal.h"

const char *const k25_step_source_names[K25_STEPS_SOURCES + 1] = {
    [K25_STEPS_GPU_ANNOTATION] = "gpu_annotation",
    [K25_STEPS_CPU_ANNOTATION] = "cpu_annotation",
    [K25_STEPS_CPU_TIME] = "cpu_annotation_time",
    [K25_STEPS_PROFILER] = "profiler_step",
    [K25_STEPS_GRAPH] = "graph_replay",
    [K25_STEPS_ANCHOR] = "anchor_kernel",
    [K25_STEPS_NONE] = "none",
};

/* Times are kept in 48 bits, around the first event: 39 hours to either side. */
#define MIDDLE ((int64_t)1 << 47)
#define LONGEST (((int64_t)1 << 40) - 1)

enum {
    EVENT_ROOM = K25_CAPTURE_BYTES / sizeof(struct k25_gpu_event),
    RUN_ROOM = K25_CAPTURE_BYTES / 16,
    LAUNCH_ROOM = K25_CAPTURE_BYTES / 32
};

/* The words of "Collective name" for the classes of the rules; first come, first served. */
static const char *const collective_words[][2] = {
    {"allreduce", "allreduce"},          {"all_reduce", "allreduce"},
    {"allgather", "allgather"},          {"all_gather", "allgather"},
    {"reduce_scatter", "reducescatter"}, {"all_to_all", "alltoall"},
    {"broadcast", "broadcast"},          {"send", "p2p"},
};
enum { COLLECTIVE_WORDS = sizeof collective_words / sizeof *collective_words };
_Static_assert(COLLECTIVE_WORDS == sizeof((struct k25_store *)NULL)->collective_class / sizeof(int), "one class each");

static int element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"BFloat16", 2}, {"Half", 2}, {"Float8", 1}, {"Float", 4}, {"Double", 8}, {"Byte", 1},
                 {"Char", 1},     {"Bool", 1}, {"Short", 2},  {"Int", 4},   {"Long", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(dtype, types[i].name, strlen(types[i].name)) == 0)
            return types[i].bytes;
    return 0;
}

/* Bytes of the full buffer of one rank: the larger side of a gather or scatter. -1: not said. */
static int64_t message_bytes(const struct k25_trace_collective *collective)
{
    int64_t elements =
        collective->in_elements > collective->out_elements ? collective->in_elements : collective->out_elements;
    int size = element_bytes(collective->dtype);
    return elements <= 0 || size == 0 || elements > INT64_MAX / 8 ? -1 : elements * size;
}

static int collective_class(const struct k25_store *store, const struct k25_trace_collective *collective)
{
    for (int i = 0; i < COLLECTIVE_WORDS; i++)
        if (strstr(collective->name, collective_words[i][0]) != NULL)
            return store->collective_class[i];
    return -1;
}

static bool more_names(struct k25_store *store, int name_id)
{
    int room = store->roles > 0 ? store->roles : 256;
    while (room <= name_id)
        room *= 2;
    struct k25_name_role *role = realloc(store->role, (size_t)room * sizeof *role);
    if (role == NULL)
        return false;
    for (int i = store->roles; i < room; i++)
        role[i] = (struct k25_name_role){-1, 0};
    store->role = role;
    store->roles = room;
    return true;
}

static struct k25_slot *new_slot(struct k25_store *store)
{
    return K25_LIST_ADD(store->slot, store->slots);
}

/* Names without a number share the last slot; the table of names is far larger than that of slots. */
static int find_slot(struct k25_store *store, const struct k25_trace_event *event)
{
    static const char beyond[] = "(names beyond the table)";
    int64_t bytes = event->collective != NULL ? message_bytes(event->collective) : -1;
    int class = event->collective != NULL ? collective_class(store, event->collective) : -1;
    bool known = event->name_id >= 0 && store->slots < K25_SLOTS - 1;
    int first = event->name_id >= 0 ? store->role[event->name_id].slot : -1;
    for (int i = first; i >= 0; i = store->slot[i].next) {
        const struct k25_slot *slot = &store->slot[i];
        if (slot->bytes == bytes && slot->kernel.kind == event->kind && (class < 0 || slot->kernel.class == class))
            return i;
    }
    if (!known) {
        for (size_t i = 0; i < store->slots; i++)
            if (store->slot[i].name_id < 0)
                return (int)i;
    }
    struct k25_slot *slot = new_slot(store);
    if (slot == NULL)
        return -1;
    if (class < 0)
        class = known ? k25_kernel_rules_class(store->rules, event->name) : 0;
    *slot = (struct k25_slot){.name_id = known ? event->name_id : -1, .next = known ? first : -1, .bytes = bytes};
    slot->kernel.name = known ? event->name : beyond;
    slot->kernel.class = class;
    slot->kernel.kind = event->kind;
    slot->kernel.min_ns = INT64_MAX;
    slot->collective = event->kind == K25_TRACE_KERNEL && k25_kernel_rules_describe(store->rules, class)->collective;
    if (known)
        store->role[event->name_id].slot = (int32_t)(store->slots - 1);
    return (int)(store->slots - 1);
}

static bool keep_event(struct k25_store *store, const struct k25_trace_event *event, int slot)
{
    if (!store->started) {
        store->started = true;
        store->origin = event->ts_ns - MIDDLE;
    }
    int64_t start = event->ts_ns - store->origin;
    bool new_run = store->runs == 0 || store->run[store->runs - 1].correlation != event->correlation;
    if (start < 0 || start >= 2 * MIDDLE || store->events == EVENT_ROOM || (new_run && store->runs == RUN_ROOM) ||
        store->events * 16 + store->runs * 8 + store->launches * 16 >= K25_CAPTURE_BYTES) {
        store->cut = true;
        return true;
    }
    if (new_run)
        store->run[store->runs++].correlation = event->correlation;
    int64_t dur = event->dur_ns > LONGEST ? LONGEST : event->dur_ns;
    store->event[store->events++] = (struct k25_gpu_event){.start = (uint64_t)start & 0xffffffffffff,
                                                           .slot = (uint16_t)slot,
                                                           .dur = (uint64_t)dur & 0xffffffffff,
                                                           .run = (uint32_t)(store->runs - 1) & 0xffffff};
    return true;
}

static bool take_gpu(struct k25_store *store, const struct k25_trace_event *event)
{
    if (event->bad_time)
        return true;
    int slot = find_slot(store, event);
    if (slot < 0)
        return false;
    struct k25_capture_kernel *kernel = &store->slot[slot].kernel;
    kernel->calls++;
    kernel->total_ns += event->dur_ns;
    kernel->min_ns = event->dur_ns < kernel->min_ns ? event->dur_ns : kernel->min_ns;
    kernel->max_ns = event->dur_ns > kernel->max_ns ? event->dur_ns : kernel->max_ns;
    return store->cut || keep_event(store, event, slot);
}

static bool take_launch(struct k25_store *store, const struct k25_trace_event *event)
{
    int8_t unknown = 0, *call = event->name_id >= 0 ? &store->role[event->name_id].call : &unknown;
    if (*call == 0)
        *call = strstr(event->name, "GraphLaunch") != NULL ? 3 : strstr(event->name, "Launch") != NULL ? 2 : 1;
    if (*call == 1 || event->correlation == 0 || store->launches_cut)
        return true;
    if (store->launches == LAUNCH_ROOM ||
        store->events * 16 + store->runs * 8 + store->launches * 16 >= K25_CAPTURE_BYTES) {
        store->launches_cut = true; /* half of the room is left for events, whatever the order */
        return true;
    }
    store->launch[store->launches++] = (struct k25_launch){event->correlation, event->ts_ns * 2 + (*call == 3)};
    return true;
}

static bool take_annotation(struct k25_store *store, const struct k25_trace_event *event)
{
    struct k25_annotation annotation;
    if (event->bad_time || !k25_annotation_parse(event->name, &annotation))
        return true;
    bool gpu = event->kind == K25_TRACE_GPU_ANNOTATION;
    struct k25_annotations *annotations = annotation.profiler ? gpu ? &store->profiler_gpu : &store->profiler_cpu
                                          : gpu               ? &store->engine_gpu
                                                              : &store->engine_cpu;
    if (annotations->count == K25_ANNOTATIONS) {
        store->cut = true;
        return true;
    }
    struct k25_annotation *added = K25_LIST_ADD(annotations->list, annotations->count);
    if (added == NULL)
        return false;
    annotation.start = event->ts_ns;
    annotation.end = event->ts_ns + event->dur_ns;
    annotation.id = event->external_id;
    *added = annotation;
    return true;
}

static bool visit(void *context, const struct k25_trace_event *event)
{
    struct k25_store *store = context;
    bool ok = event->name_id < store->roles || more_names(store, event->name_id);
    if (ok) {
        switch (event->kind) {
        case K25_TRACE_KERNEL:
        case K25_TRACE_MEMCPY:
        case K25_TRACE_MEMSET:
            ok = take_gpu(store, event);
            break;
        case K25_TRACE_RUNTIME:
            ok = take_launch(store, event);
            break;
        case K25_TRACE_GPU_ANNOTATION:
        case K25_TRACE_ANNOTATION:
            ok = take_annotation(store, event);
            break;
        case K25_TRACE_KINDS:
            break;
        }
    }
    store->out_of_memory = !ok;
    return ok;
}

/* Whole at once, so that nothing is ever copied to grow: what is not touched takes no memory. */
static bool open_store(struct k25_store *store, const struct k25_kernel_rules *rules)
{
    *store = (struct k25_store){.rules = rules};
    for (int i = 0; i < COLLECTIVE_WORDS; i++)
        store->collective_class[i] = k25_kernel_rules_find(rules, collective_words[i][1]);
    store->event = malloc(EVENT_ROOM * sizeof *store->event);
    store->run = malloc(RUN_ROOM * sizeof *store->run);
    store->launch = malloc(LAUNCH_ROOM * sizeof *store->launch);
    return store->event != NULL && store->run != NULL && store->launch != NULL && more_names(store, 0);
}

static void close_store(struct k25_store *store)
{
    free(store->event);
    free(store->run);
    free(store->launch);
    free(store->engine_cpu.list);
    free(store->engine_gpu.list);
    free(store->profiler_cpu.list);
    free(store->profiler_gpu.list);
    free(store->slot);
    free(store->role);
}

static bool digest(struct k25_store *store, struct k25_rank *rank)
{
    struct k25_boundaries boundaries = {.source = K25_STEPS_NONE};
    k25_sort_events(store->event, store->events);
    k25_annotations_merge(&store->engine_cpu);
    k25_annotations_merge(&store->engine_gpu);
    k25_annotations_merge(&store->profiler_cpu);
    k25_annotations_merge(&store->profiler_gpu);
    bool ok = k25_find_boundaries(store, &boundaries) && k25_rank_totals(store, &boundaries, rank);
    free(boundaries.list);
    return ok;
}

bool k25_rank_read(const char *path, const struct k25_capture_options *options, struct k25_rank *rank,
                   struct k25_error *error)
{
    struct k25_store store;
    struct k25_trace_options reading = {.lenient = options->lenient};
    memset(rank, 0, sizeof *rank);
    snprintf(rank->file, sizeof rank->file, "%s", path);
    rank->source = K25_STEPS_NONE;
    rank->step_period = rank->gpu_busy = NAN;
    rank->classes = k25_kernel_rules_classes(options->rules);
    bool ok = open_store(&store, options->rules) || k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    if (ok) {
        ok = k25_trace_read(path, &reading, visit, &store, &rank->info, error);
        if (!ok && store.out_of_memory)
            k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    }
    rank->rank = rank->info.rank;
    ok = ok && k25_trace_check(path, &rank->info, error);
    if (ok && !digest(&store, rank))
        ok = k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    rank->cut = store.cut || store.launches_cut;
    close_store(&store);
    return ok;
}

void k25_rank_free(struct k25_rank *rank)
{
    free(rank->kernel);
    free(rank->step);
    free(rank->collective);
    free(rank->class_ns);
    free(rank->class_own_ns);
    free(rank->class_calls);
    k25_trace_info_free(&rank->info);
    memset(rank, 0, sizeof *rank);
}
