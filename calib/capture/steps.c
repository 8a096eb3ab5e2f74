/* Where steps start: from annotations when there are any, otherwise see capture_replay.c. */
#include <stdlib.h>
#include <string.h>

#include "calib/capture/internal.h"

/* Replaces the correlation of each run by the launch that has it. */
static void join_launches(struct k25_store *store)
{
    k25_sort_launches(store->launch, store->launches);
    for (size_t i = 0; i < store->runs; i++) {
        uint64_t wanted = store->run[i].correlation;
        size_t low = 0, high = store->launches;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (store->launch[middle].correlation < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        bool found = wanted != 0 && low < store->launches && store->launch[low].correlation == wanted;
        store->run[i].launch = found ? (int64_t)low : -1;
    }
}

static bool is_kernel(const struct k25_store *store, const struct k25_gpu_event *event)
{
    return store->slot[event->slot].kernel.kind == K25_TRACE_KERNEL;
}

/* The first event that starts at `time` or later. */
static size_t first_event(const struct k25_store *store, int64_t time)
{
    size_t low = 0, high = store->events;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (k25_event_start(store, &store->event[middle]) < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool open_boundaries(struct k25_boundaries *boundaries, size_t room)
{
    boundaries->count = 0;
    free(boundaries->list);
    boundaries->list = malloc((room > 0 ? room : 1) * sizeof *boundaries->list);
    return boundaries->list != NULL;
}

/* A range on the GPU's timeline starts a nanosecond before the first kernel under it. */
static bool from_gpu(const struct k25_store *store, const struct k25_annotations *annotations,
                     struct k25_boundaries *boundaries)
{
    if (!open_boundaries(boundaries, annotations->count))
        return false;
    for (size_t i = 0; i < annotations->count; i++) {
        const struct k25_annotation *a = &annotations->list[i];
        size_t at = first_event(store, a->start);
        while (at < store->events && !is_kernel(store, &store->event[at]))
            at++;
        if (at < store->events && k25_event_start(store, &store->event[at]) < a->end)
            boundaries->list[boundaries->count++] = (struct k25_boundary){k25_event_start(store, &store->event[at]), a};
    }
    return true;
}

/* The range that holds `time`, -1: none. */
static int64_t range_at(const struct k25_annotations *annotations, int64_t time)
{
    size_t low = 0, high = annotations->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (annotations->list[middle].start <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time <= annotations->list[low - 1].end ? (int64_t)low - 1 : -1;
}

static int by_start(const void *a, const void *b)
{
    const struct k25_boundary *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* A CPU range ends when all is launched, not when all has run: the step starts with the first kernel that was
 * launched inside the range. `seen` says of each range whether one was found. */
static void from_launches(const struct k25_store *store, const struct k25_annotations *annotations, bool *seen,
                          struct k25_boundaries *boundaries)
{
    for (size_t i = 0; i < store->events; i++) {
        const struct k25_gpu_event *event = &store->event[i];
        int64_t launch = store->run[event->run].launch;
        if (launch < 0 || !is_kernel(store, event))
            continue;
        int64_t range = range_at(annotations, k25_launch_time(&store->launch[launch]));
        if (range < 0 || seen[range])
            continue;
        seen[range] = true;
        boundaries->list[boundaries->count++] =
            (struct k25_boundary){k25_event_start(store, event), &annotations->list[range]};
    }
}

/* The ranges still without a kernel take the first that starts behind their own start, before that of the next
 * range, and does not tell what launched it. */
static void from_orphans(const struct k25_store *store, const struct k25_annotations *annotations, bool *seen,
                         struct k25_boundaries *boundaries)
{
    size_t range = 0; /* ranges that have started */
    for (size_t i = 0; i < store->events; i++) {
        const struct k25_gpu_event *event = &store->event[i];
        int64_t start = k25_event_start(store, event);
        while (range < annotations->count && annotations->list[range].start <= start)
            range++;
        if (range == 0 || seen[range - 1] || store->run[event->run].launch >= 0 || !is_kernel(store, event))
            continue;
        seen[range - 1] = true;
        boundaries->list[boundaries->count++] = (struct k25_boundary){start, &annotations->list[range - 1]};
    }
}

/* `*joined` ranges were found by correlation. */
static bool from_cpu(const struct k25_store *store, const struct k25_annotations *annotations,
                     struct k25_boundaries *boundaries, size_t *joined)
{
    bool *seen = calloc(annotations->count + 1, sizeof *seen);
    bool ok = seen != NULL && open_boundaries(boundaries, annotations->count);
    if (ok) {
        from_launches(store, annotations, seen, boundaries);
        *joined = boundaries->count;
        if (*joined > 0)
            from_orphans(store, annotations, seen, boundaries);
    }
    free(seen);
    return ok;
}

/* Without correlations: the first kernel that starts behind the start of the range. */
static bool from_cpu_time(const struct k25_store *store, const struct k25_annotations *annotations,
                          struct k25_boundaries *boundaries)
{
    if (!open_boundaries(boundaries, annotations->count))
        return false;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < annotations->count; i++) {
        size_t at = first_event(store, annotations->list[i].start);
        while (at < store->events && !is_kernel(store, &store->event[at]))
            at++;
        int64_t start = at < store->events ? k25_event_start(store, &store->event[at]) : last;
        if (start > last)
            boundaries->list[boundaries->count++] = (struct k25_boundary){start, &annotations->list[i]};
        last = start;
    }
    return true;
}

/* The ranges that begin before the last event that is kept: behind it none can have kernels. */
static size_t ranges_covered(const struct k25_store *store, const struct k25_annotations *annotations)
{
    int64_t last = store->events > 0 ? k25_event_start(store, &store->event[store->events - 1]) : INT64_MIN;
    size_t count = annotations->count;
    while (count > 0 && annotations->list[count - 1].start > last)
        count--;
    return count;
}

/* From ranges on the GPU when they tell at least half of what the CPU does, from those on the CPU otherwise. */
static bool from_annotations(const struct k25_store *store, const struct k25_annotations *gpu,
                             const struct k25_annotations *cpu, struct k25_boundaries *boundaries)
{
    if (!from_gpu(store, gpu, boundaries))
        return false;
    boundaries->source = K25_STEPS_GPU_ANNOTATION;
    size_t joined, covered = ranges_covered(store, cpu);
    if (boundaries->count > 0 && 2 * boundaries->count >= covered)
        return true;
    if (!from_cpu(store, cpu, boundaries, &joined))
        return false;
    boundaries->source = K25_STEPS_CPU_ANNOTATION;
    if (2 * joined >= covered)
        return true;
    boundaries->source = K25_STEPS_CPU_TIME;
    return from_cpu_time(store, cpu, boundaries);
}

/* In time, each place once. */
static void tidy(struct k25_boundaries *boundaries)
{
    size_t kept = 0;
    if (boundaries->count > 1)
        qsort(boundaries->list, boundaries->count, sizeof *boundaries->list, by_start);
    for (size_t i = 0; i < boundaries->count; i++)
        if (kept == 0 || boundaries->list[i].start > boundaries->list[kept - 1].start)
            boundaries->list[kept++] = boundaries->list[i];
    boundaries->count = kept;
}

bool k25_find_boundaries(struct k25_store *store, struct k25_boundaries *boundaries)
{
    join_launches(store);
    if (!from_annotations(store, &store->engine_gpu, &store->engine_cpu, boundaries))
        return false;
    if (boundaries->count == 0) {
        /* One ProfilerStep may be around the whole capture, as servers do it: launches of graphs know better. */
        bool several = store->profiler_gpu.count > 1 || store->profiler_cpu.count > 1;
        if (!several && !k25_boundaries_of_graphs(store, boundaries))
            return false;
        if (boundaries->count == 0) {
            if (!from_annotations(store, &store->profiler_gpu, &store->profiler_cpu, boundaries))
                return false;
            boundaries->source = K25_STEPS_PROFILER;
        }
        if (boundaries->count == 0 && several && !k25_boundaries_of_graphs(store, boundaries))
            return false;
        if (boundaries->count == 0 && !k25_boundaries_of_anchor(store, boundaries))
            return false;
    }
    tidy(boundaries);
    return true;
}
