/* Where steps start when no annotation says: the period of graph launches, or of the kernels themselves. */
#include <stdlib.h>
#include <string.h>

#include "calib/capture/internal.h"

enum {
    LONGEST_PERIOD = 4096,
    SAMPLE = 33,
    SEQUENCE = 400000,
    CANDIDATES = 256,
    NAMES = 1000,
    SHORTEST = 3 /* kernels: less is a loop, no decode step */
};

/* What runs from the first kernel of one graph launch to that of the next, whatever launched it. */
struct segment {
    int64_t start, gap; /* gap: idle time in front */
    uint64_t kernels;   /* a sum over its kernels' names: two streams may swap neighbours */
};

static uint64_t mix(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static size_t make_segments(const struct k25_store *store, bool *seen, struct segment *segment)
{
    size_t count = 0;
    int64_t covered = INT64_MAX;
    for (size_t i = 0; i < store->events; i++) {
        const struct k25_gpu_event *event = &store->event[i];
        const struct k25_slot *slot = &store->slot[event->slot];
        int64_t launch = store->run[event->run].launch, start = k25_event_start(store, event);
        if (slot->kernel.kind == K25_TRACE_KERNEL) {
            if (launch >= 0 && k25_launch_graph(&store->launch[launch]) && !seen[launch]) {
                seen[launch] = true;
                segment[count++] = (struct segment){start, start > covered ? start - covered : 0, 0};
            }
            if (count > 0)
                segment[count - 1].kernels += mix((uint64_t)slot->name_id);
        }
        int64_t end = start + (int64_t)event->dur;
        covered = covered == INT64_MAX || end > covered ? end : covered;
    }
    return count;
}

/* The smallest period after which the segments repeat as well as after any. 0: they do not repeat. */
static size_t segment_period(const struct segment *segment, size_t count)
{
    double best = 0;
    size_t period = 0;
    if (count == 1)
        return 1;
    for (size_t p = 1; p <= count / 2 && p <= LONGEST_PERIOD; p++) {
        size_t same = 0;
        for (size_t i = 0; i + p < count; i++)
            same += segment[i].kernels == segment[i + p].kernels;
        double score = (double)same / (double)(count - p);
        if (score > best + 0.003) {
            best = score;
            period = p;
        }
    }
    return best >= 0.6 ? period : 0;
}

/* Of the launches of a period, the one with the longest idle time in front of it. */
static size_t first_of_period(const struct segment *segment, size_t count, size_t period)
{
    int64_t gaps[SAMPLE], longest = -1;
    size_t best = 0;
    for (size_t phase = 0; phase < period; phase++) {
        size_t n = 0;
        for (size_t i = phase > 0 ? phase : period; i < count && n < SAMPLE; i += period)
            gaps[n++] = segment[i].gap;
        int64_t gap = k25_median(gaps, n);
        if (gap > longest) {
            longest = gap;
            best = phase;
        }
    }
    return best;
}

bool k25_boundaries_of_graphs(const struct k25_store *store, struct k25_boundaries *boundaries)
{
    size_t graphs = 0;
    boundaries->count = 0;
    for (size_t i = 0; i < store->launches; i++)
        graphs += k25_launch_graph(&store->launch[i]);
    if (graphs == 0)
        return true;
    bool *seen = calloc(store->launches, sizeof *seen);
    struct segment *segment = malloc(graphs * sizeof *segment);
    struct k25_boundary *list = malloc(graphs * sizeof *list);
    bool ok = seen != NULL && segment != NULL && list != NULL;
    if (ok) {
        size_t count = make_segments(store, seen, segment), period = segment_period(segment, count);
        size_t first = period > 0 ? first_of_period(segment, count, period) : 0;
        for (size_t i = first; period > 0 && i < count; i += period)
            list[boundaries->count++] = (struct k25_boundary){segment[i].start, NULL};
        boundaries->source = K25_STEPS_GRAPH;
        boundaries->launches = (int)period;
        free(boundaries->list);
        boundaries->list = list;
        list = NULL;
    }
    free(seen);
    free(segment);
    free(list);
    return ok;
}

/* The kernels in the order in which they start. */
struct sequence {
    size_t count;
    uint16_t *slot;
    int32_t *event;
};

static size_t median_distance(size_t *distance, size_t count, double *share)
{
    size_t same = 0;
    int64_t sample[SAMPLE];
    size_t n = 0;
    for (size_t i = 0; i < count && n < SAMPLE; i += 1 + count / SAMPLE)
        sample[n++] = (int64_t)distance[i];
    size_t median = (size_t)k25_median(sample, n);
    for (size_t i = 0; i < count; i++)
        same += distance[i] == median;
    *share = count > 0 ? (double)same / (double)count : 0;
    return median;
}

static double repeats(const struct sequence *sequence, size_t period)
{
    size_t same = 0;
    for (size_t i = 0; i + period < sequence->count; i++)
        same += sequence->slot[i] == sequence->slot[i + period];
    return (double)same / (double)(sequence->count - period);
}

/* What one slot says: after how many kernels it comes again; 0: not regularly. */
static size_t slot_period(const struct sequence *sequence, size_t slot, uint64_t calls, size_t *distance)
{
    size_t count = 0, last = SIZE_MAX;
    double share;
    if (calls < 2)
        return 0;
    for (size_t i = 0; i < sequence->count; i++) {
        if (sequence->slot[i] != slot)
            continue;
        if (last != SIZE_MAX)
            distance[count++] = i - last;
        last = i;
    }
    size_t period = median_distance(distance, count, &share);
    return share >= 0.8 && period >= SHORTEST && period <= sequence->count / 2 ? period : 0;
}

/* The median idle time in front of the kernels of `slot`. */
static int64_t gap_before(const struct k25_store *store, const struct sequence *sequence, size_t slot)
{
    int64_t gaps[SAMPLE];
    size_t n = 0;
    for (size_t i = 1; i < sequence->count && n < SAMPLE; i++) {
        if (sequence->slot[i] != slot)
            continue;
        int32_t at = sequence->event[i];
        const struct k25_gpu_event *event = &store->event[at], *before = event - 1;
        int64_t end = k25_event_start(store, before) + (int64_t)before->dur;
        gaps[n++] = k25_event_start(store, event) - end;
    }
    return k25_median(gaps, n);
}

/* The slot that runs once a period of the whole sequence, with the longest idle time in front; -1: nothing
 * repeats. */
static int find_anchor(const struct k25_store *store, const struct sequence *sequence, size_t *period, size_t *distance)
{
    size_t tried[CANDIDATES], candidates = 0, best = 0;
    double best_score = 0;
    for (size_t s = 0; s < store->slots; s++) {
        /* Names beyond the first thousand cannot all run once a step. */
        uint64_t calls = s < NAMES ? store->slot[s].kernel.calls : 0;
        size_t p = period[s] = slot_period(sequence, s, calls, distance), known = 0;
        while (known < candidates && tried[known] != p)
            known++;
        if (p == 0 || known < candidates || candidates == CANDIDATES)
            continue;
        tried[candidates++] = p;
        double score = repeats(sequence, p);
        if (score > best_score + 0.003 || (score > best_score - 0.003 && p < best)) {
            best_score = score;
            best = p;
        }
    }
    int anchor = -1;
    int64_t longest = INT64_MIN;
    for (size_t s = 0; best_score >= 0.9 && s < store->slots; s++) {
        int64_t gap = period[s] == best ? gap_before(store, sequence, s) : INT64_MIN;
        if (gap > longest) {
            longest = gap;
            anchor = (int)s;
        }
    }
    return anchor;
}

static void make_sequence(const struct k25_store *store, struct sequence *sequence)
{
    for (size_t i = 0; i < store->events && sequence->count < SEQUENCE; i++) {
        if (store->slot[store->event[i].slot].kernel.kind != K25_TRACE_KERNEL)
            continue;
        sequence->slot[sequence->count] = store->event[i].slot;
        sequence->event[sequence->count++] = (int32_t)i;
    }
}

bool k25_boundaries_of_anchor(const struct k25_store *store, struct k25_boundaries *boundaries)
{
    size_t room = store->events < SEQUENCE ? store->events : SEQUENCE;
    struct sequence sequence = {0, malloc(room * sizeof *sequence.slot + 1), malloc(room * sizeof *sequence.event + 1)};
    size_t *distance = malloc(room * sizeof *distance + 1), *period = malloc(store->slots * sizeof *period + 1);
    bool ok = sequence.slot != NULL && sequence.event != NULL && distance != NULL && period != NULL;
    boundaries->count = 0;
    if (ok) {
        make_sequence(store, &sequence);
        int anchor = find_anchor(store, &sequence, period, distance);
        size_t calls = anchor >= 0 ? store->slot[anchor].kernel.calls : 0;
        struct k25_boundary *list = realloc(boundaries->list, (calls + 1) * sizeof *list);
        ok = list != NULL;
        boundaries->list = ok ? list : boundaries->list;
        for (size_t i = 0; ok && anchor >= 0 && i < store->events; i++)
            if (store->event[i].slot == anchor)
                list[boundaries->count++] = (struct k25_boundary){k25_event_start(store, &store->event[i]), NULL};
        boundaries->source = K25_STEPS_ANCHOR;
    }
    free(sequence.slot);
    free(sequence.event);
    free(distance);
    free(period);
    return ok;
}
