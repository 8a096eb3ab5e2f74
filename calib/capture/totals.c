/* The numbers of one rank: its steps, which of them take part in means, and the time of classes and kernels in
 * those. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "calib/capture/internal.h"

/* Walks the events in time and says which step each belongs to and what it adds to the union of their intervals.
 */
struct walk {
    const struct k25_store *store;
    const struct k25_rank *rank;
    size_t event, step; /* the next event; the number of steps that have started */
    int64_t covered;    /* the end of what ends last so far */
};

struct stop {
    const struct k25_gpu_event *event;
    const struct k25_slot *slot;
    int64_t start, end, own;
    ptrdiff_t step; /* -1: before the first */
};

static bool next_stop(struct walk *walk, struct stop *stop)
{
    if (walk->event == walk->store->events)
        return false;
    stop->event = &walk->store->event[walk->event];
    stop->slot = &walk->store->slot[stop->event->slot];
    stop->start = k25_event_start(walk->store, stop->event);
    stop->end = stop->start + (int64_t)stop->event->dur;
    if (walk->event++ == 0 || walk->covered < stop->start)
        walk->covered = stop->start;
    stop->own = stop->end > walk->covered ? stop->end - walk->covered : 0;
    walk->covered += stop->own;
    while (walk->step < walk->rank->steps && walk->rank->step[walk->step].start_ns <= stop->start)
        walk->step++;
    stop->step = (ptrdiff_t)walk->step - 1;
    return true;
}

static bool make_steps(const struct k25_store *store, const struct k25_boundaries *boundaries, struct k25_rank *rank)
{
    rank->source = boundaries->count > 0 ? boundaries->source : K25_STEPS_NONE;
    rank->launches_per_step = rank->source == K25_STEPS_GRAPH ? boundaries->launches : 0;
    rank->steps = boundaries->count > 0 ? boundaries->count : store->events > 0;
    rank->step = calloc(rank->steps + 1, sizeof *rank->step);
    if (rank->step == NULL)
        return false;
    for (size_t i = 0; i < rank->steps; i++) {
        struct k25_capture_step *step = &rank->step[i];
        const struct k25_annotation *says = boundaries->count > 0 ? boundaries->list[i].says : NULL;
        *step = (struct k25_capture_step){.sequences = -1, .tokens = -1, .decode = true};
        step->start_ns = boundaries->count > 0 ? boundaries->list[i].start : k25_event_start(store, store->event);
        if (says != NULL) {
            step->decode = says->decode;
            step->sequences = says->sequences;
            step->tokens = says->tokens;
            step->context = says->context;
        }
        if (i > 0)
            rank->step[i - 1].period_ns = step->start_ns - rank->step[i - 1].start_ns;
    }
    return true;
}

static void measure_steps(const struct k25_store *store, struct k25_rank *rank)
{
    struct walk walk = {.store = store, .rank = rank};
    struct stop stop;
    int64_t first = 0;
    while (next_stop(&walk, &stop)) {
        first = walk.event == 1 ? stop.start : first;
        rank->busy_ns += stop.own;
        rank->span_ns = walk.covered - first;
        if (stop.step < 0)
            continue;
        struct k25_capture_step *step = &rank->step[stop.step];
        step->busy_ns += stop.own;
        step->kernels += stop.slot->kernel.kind == K25_TRACE_KERNEL;
        step->end_ns = stop.end > step->end_ns || step->end_ns == 0 ? stop.end : step->end_ns;
    }
}

/* Sequences and tokens as one number; unknown is 0. */
static int64_t batch_of(const struct k25_capture_step *step)
{
    return ((int64_t)(step->sequences + 1) << 32) + (step->tokens + 1);
}

/* The most frequent value; of equals the largest. Reorders. */
static int64_t mode(int64_t *values, size_t count)
{
    int64_t best = 0;
    size_t most = 0;
    qsort(values, count, sizeof *values, k25_compare_ns);
    for (size_t i = 0, run = 0; i < count; i++) {
        run = i > 0 && values[i] == values[i - 1] ? run + 1 : 1;
        if (run >= most) {
            most = run;
            best = values[i];
        }
    }
    return best;
}

/* Steps of one batch: the most frequent of those that only decode, of all when none does. */
static void choose_batch(struct k25_rank *rank, int64_t *scratch)
{
    size_t count = 0;
    bool decode = false;
    for (size_t i = 0; i < rank->steps; i++)
        decode = decode || rank->step[i].decode;
    for (size_t i = 0; i < rank->steps; i++)
        if (rank->step[i].decode == decode)
            scratch[count++] = batch_of(&rank->step[i]);
    int64_t batch = mode(scratch, count);
    for (size_t i = 0; i < rank->steps; i++) {
        struct k25_capture_step *step = &rank->step[i];
        step->fate = step->decode == decode && batch_of(step) == batch ? K25_STEP_KEPT : K25_STEP_OTHER_BATCH;
    }
}

/* The first and the last are cut when they lack a tenth of the kernels. Where nobody says what a step did, the
 * number of its kernels tells steps of another kind. */
static void drop_odd_counts(struct k25_rank *rank, bool cut, int64_t *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < rank->steps; i++)
        if (rank->step[i].fate == K25_STEP_KEPT)
            scratch[count++] = -rank->step[i].kernels; /* of two, the larger */
    double kernels = -(double)k25_median(scratch, count);
    for (size_t i = 0; i < rank->steps; i++) {
        struct k25_capture_step *step = &rank->step[i];
        bool ends = i == 0 || i + 1 == rank->steps, few = step->kernels < 0.9 * kernels;
        if (step->fate != K25_STEP_KEPT)
            continue;
        if ((ends && few) || (cut && i + 1 == rank->steps && rank->steps > 1))
            step->fate = K25_STEP_PARTIAL;
        else if (step->sequences < 0 && (few || step->kernels > 1.1 * kernels))
            step->fate = K25_STEP_OTHER_BATCH;
    }
}

static size_t kept_values(const struct k25_rank *rank, bool periods, int64_t *values)
{
    size_t count = 0;
    for (size_t i = 0; i < rank->steps; i++) {
        int64_t value = periods ? rank->step[i].period_ns : rank->step[i].busy_ns;
        if (rank->step[i].fate == K25_STEP_KEPT && (!periods || value > 0))
            values[count++] = value;
    }
    return count;
}

/* A profiler that starts, a pause between requests: more than three times the median. */
static void drop_slow(struct k25_rank *rank, int64_t *scratch)
{
    size_t periods = kept_values(rank, true, scratch);
    int64_t period = k25_median(scratch, periods);
    size_t busies = kept_values(rank, false, scratch);
    int64_t busy = k25_median(scratch, busies);
    for (size_t i = 0; i < rank->steps; i++) {
        struct k25_capture_step *step = &rank->step[i];
        bool slow = (periods > 2 && step->period_ns > 3 * period) || (busies > 2 && step->busy_ns > 3 * busy);
        if (step->fate == K25_STEP_KEPT && slow)
            step->fate = K25_STEP_SLOW;
        rank->kept += step->fate == K25_STEP_KEPT;
        rank->left_out_partial += step->fate == K25_STEP_PARTIAL;
        rank->left_out_batch += step->fate == K25_STEP_OTHER_BATCH;
        rank->left_out_slow += step->fate == K25_STEP_SLOW;
    }
}

static void medians(struct k25_rank *rank, int64_t *scratch)
{
    for (int periods = 0; periods < 2; periods++) {
        size_t count = kept_values(rank, periods, scratch);
        double low = count > 0 ? (double)k25_median(scratch, count) : NAN;
        double both = count > 0 && count % 2 == 0 ? (low + (double)scratch[count / 2]) / 2 : low;
        *(periods ? &rank->step_period : &rank->gpu_busy) = both * 1e-9;
    }
    if (rank->source == K25_STEPS_NONE)
        rank->step_period = NAN;
}

/* Adds up classes and kernels of the kept steps, and lists their collectives. */
static bool add_kept(struct k25_store *store, struct k25_rank *rank)
{
    int *ordinal = calloc(store->slots + 1, sizeof *ordinal);
    ptrdiff_t current = -1;
    struct walk walk = {.store = store, .rank = rank};
    struct stop stop;
    bool ok = ordinal != NULL;
    while (ok && next_stop(&walk, &stop)) {
        if (stop.step < 0 || rank->step[stop.step].fate != K25_STEP_KEPT)
            continue;
        struct k25_capture_kernel *kernel = &store->slot[stop.event->slot].kernel;
        kernel->step_calls++;
        kernel->step_ns += stop.end - stop.start;
        rank->class_calls[kernel->class]++;
        rank->class_ns[kernel->class] += stop.end - stop.start;
        rank->class_own_ns[kernel->class] += stop.own;
        if (!stop.slot->collective)
            continue;
        if (current != stop.step)
            memset(ordinal, 0, store->slots * sizeof *ordinal);
        current = stop.step;
        /* Slots of one class and size count together. */
        size_t same = 0;
        while (store->slot[same].kernel.class != kernel->class || store->slot[same].bytes != stop.slot->bytes ||
               !store->slot[same].collective)
            same++;
        struct k25_capture_collective *added = K25_LIST_ADD(rank->collective, rank->collectives);
        ok = added != NULL;
        if (ok)
            *added = (struct k25_capture_collective){kernel->class, (int)stop.step,        ordinal[same]++,
                                                     stop.start,    stop.end - stop.start, stop.slot->bytes};
    }
    free(ordinal);
    return ok;
}

static int by_time(const void *a, const void *b)
{
    const struct k25_capture_kernel *x = a, *y = b;
    if (x->step_ns != y->step_ns)
        return x->step_ns > y->step_ns ? -1 : 1;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->class - y->class;
}

/* One entry a name and class, whatever the sizes. */
static bool list_kernels(const struct k25_store *store, struct k25_rank *rank)
{
    rank->kernel = calloc(store->slots + 1, sizeof *rank->kernel);
    int *where = malloc((store->slots + 1) * sizeof *where);
    bool ok = rank->kernel != NULL && where != NULL;
    for (size_t i = 0; ok && i < store->slots; i++) {
        const struct k25_slot *slot = &store->slot[i];
        int same = slot->next;
        while (same >= 0 && (store->slot[same].kernel.class != slot->kernel.class ||
                             store->slot[same].kernel.kind != slot->kernel.kind))
            same = store->slot[same].next;
        where[i] = same >= 0 ? where[same] : (int)rank->kernels++;
        struct k25_capture_kernel *kernel = &rank->kernel[where[i]];
        if (slot->kernel.kind == K25_TRACE_KERNEL) {
            rank->kernel_ns += slot->kernel.total_ns;
            rank->unclassified_ns += slot->kernel.class == 0 ? slot->kernel.total_ns : 0;
        }
        if (same < 0) {
            *kernel = slot->kernel;
            continue;
        }
        kernel->calls += slot->kernel.calls;
        kernel->step_calls += slot->kernel.step_calls;
        kernel->total_ns += slot->kernel.total_ns;
        kernel->step_ns += slot->kernel.step_ns;
        kernel->min_ns = slot->kernel.min_ns < kernel->min_ns ? slot->kernel.min_ns : kernel->min_ns;
        kernel->max_ns = slot->kernel.max_ns > kernel->max_ns ? slot->kernel.max_ns : kernel->max_ns;
    }
    free(where);
    if (ok && rank->kernels > 1)
        qsort(rank->kernel, rank->kernels, sizeof *rank->kernel, by_time);
    return ok;
}

bool k25_rank_totals(struct k25_store *store, const struct k25_boundaries *boundaries, struct k25_rank *rank)
{
    size_t classes = (size_t)rank->classes + 1;
    rank->class_ns = calloc(classes, sizeof *rank->class_ns);
    rank->class_own_ns = calloc(classes, sizeof *rank->class_own_ns);
    rank->class_calls = calloc(classes, sizeof *rank->class_calls);
    if (rank->class_ns == NULL || rank->class_own_ns == NULL || rank->class_calls == NULL ||
        !make_steps(store, boundaries, rank))
        return false;
    int64_t *scratch = malloc((rank->steps + 1) * sizeof *scratch);
    if (scratch == NULL)
        return false;
    measure_steps(store, rank);
    choose_batch(rank, scratch);
    drop_odd_counts(rank, store->cut, scratch);
    drop_slow(rank, scratch);
    medians(rank, scratch);
    free(scratch);
    return add_kept(store, rank) && list_kernels(store, rank);
}
