/* What ranks say together: clocks, transfer and wait of collectives, the slow rank.
 *
 * Collective k starts at s[r][k] and ends at e[r][k] on rank r, whose clock is o[r] ahead. It ends almost together
 * on all ranks, so o comes from the ends: a median, then the mean of what is left, outliers aside.
 *
 *     last arrival  A[k] = max_r (s[r][k] - o[r])
 *     transfer      T[k] = mean_r (e[r][k] - o[r]) - A[k]
 *     wait       W[r][k] = (e[r][k] - s[r][k]) - T[k]
 *
 * Without noise T[k] is the minimum over ranks of the duration. With noise that minimum takes the rank that
 * happened to leave early (of two ranks that arrive together with noise of spread s, s / sqrt(pi) too short); T[k]
 * takes the mean of all exits from the last arrival on, and has no such bias.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/capture/internal.h"

static double middle(double *values, size_t count, int (*compare)(const void *, const void *))
{
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The end of a match on rank r against that on the first, less what is taken for the clock. */
static double end_of(const struct k25_match *match, int r, const double *offset)
{
    return (double)(match->end[r] - match->end[0]) - offset[r];
}

static double mean_end(const struct k25_match *match, int ranks, const double *offset)
{
    double sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += end_of(match, r, offset);
    return sum / ranks;
}

/* The mean of `values` within four standard deviations of their median, the deviation estimated by the median one.
 */
static double trimmed_mean(double *values, double *scratch, size_t count, double *variance)
{
    memcpy(scratch, values, count * sizeof *values);
    double centre = middle(scratch, count, by_value), sum = 0, squares = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(values[i] - centre);
    double reach = 4 * 1.4826 * middle(scratch, count, by_value) + 1;
    for (size_t i = 0; i < count; i++) {
        double x = values[i] - centre;
        if (fabs(x) > reach)
            continue;
        kept++;
        sum += x;
        squares += x * x;
    }
    *variance = kept > 1 ? (squares - sum * sum / (double)kept) / (double)(kept - 1) : 0;
    return centre + sum / (double)kept;
}

/* In ns, of each clock against the first. */
static bool find_offsets(struct k25_capture *capture, const struct k25_matches *matches, double *offset)
{
    size_t n = matches->count;
    double *values = malloc((n + 1) * sizeof *values), *scratch = malloc((n + 1) * sizeof *scratch);
    double *step = calloc((size_t)capture->ranks, sizeof *step), pooled = 0;
    bool ok = values != NULL && scratch != NULL && step != NULL;
    for (int r = 1; ok && r < capture->ranks; r++) {
        for (size_t k = 0; k < n; k++)
            values[k] = end_of(&matches->list[k], r, offset);
        offset[r] = middle(values, n, by_value);
    }
    for (int r = 0; ok && r < capture->ranks; r++) {
        double variance;
        for (size_t k = 0; k < n; k++)
            values[k] = end_of(&matches->list[k], r, offset) - mean_end(&matches->list[k], capture->ranks, offset);
        step[r] = trimmed_mean(values, scratch, n, &variance);
        pooled += variance / capture->ranks;
    }
    for (int r = 0; ok && r < capture->ranks; r++) {
        offset[r] += step[r] - step[0];
        capture->clock_offset[r] = offset[r] * 1e-9;
    }
    capture->clock_sigma = sqrt(pooled / (double)n) * 1e-9;
    free(values);
    free(scratch);
    free(step);
    return ok;
}

/* What one match says, ns. */
struct split {
    double transfer, least, spread, mean_arrival, mean_end, mean_duration;
};

/* The arrival on rank r, counted like end_of. */
static double arrival_of(const struct k25_match *match, int r, const double *offset)
{
    return (double)(match->start[r] - match->end[0]) - offset[r];
}

static struct split split_match(const struct k25_match *match, int ranks, const double *offset)
{
    struct split split = {.least = INFINITY, .mean_end = mean_end(match, ranks, offset)};
    double last = -INFINITY, first = INFINITY;
    for (int r = 0; r < ranks; r++) {
        double arrival = arrival_of(match, r, offset), duration = (double)(match->end[r] - match->start[r]);
        last = fmax(last, arrival);
        first = fmin(first, arrival);
        split.mean_arrival += arrival / ranks;
        split.mean_duration += duration / ranks;
        split.least = fmin(split.least, duration);
    }
    split.transfer = split.mean_end - last;
    split.spread = last - first;
    return split;
}

/* Sums first (ns), means when all are in (s). `lag` is [groups][ranks]: each rank's mean arrival against all. */
static void add_match(struct k25_capture *capture, const struct k25_match *match, const double *offset, double *lag)
{
    struct k25_capture_group *group = &capture->group[match->group];
    struct split split = split_match(match, capture->ranks, offset);
    group->matched++;
    group->duration += split.mean_duration;
    group->transfer += split.transfer;
    group->transfer_least += split.least;
    group->spread += split.spread;
    for (int r = 0; r < capture->ranks; r++) {
        double end = end_of(match, r, offset) - split.mean_end;
        double late = arrival_of(match, r, offset) - split.mean_arrival;
        group->rank_wait[r] += (double)(match->end[r] - match->start[r]) - split.transfer;
        group->end_jitter += end * end;
        group->wait_sigma += late * late;
        lag[match->group * capture->ranks + r] += late;
    }
}

static void finish_group(struct k25_capture *capture, struct k25_capture_group *group, const double *lag)
{
    double n = (double)group->matched, ranks = capture->ranks, persistent = 0;
    if (group->matched == 0)
        return;
    for (int r = 0; r < capture->ranks; r++) {
        persistent += lag[r] * lag[r] / n;
        group->rank_wait[r] *= 1e-9 / n;
        capture->rank_wait[r] += group->rank_wait[r] * n / (double)capture->steps_common;
    }
    group->end_jitter = sqrt(group->end_jitter / (n * (ranks - 1))) * 1e-9;
    group->wait_sigma = n > 1 ? sqrt(fmax(group->wait_sigma - persistent, 0) / ((n - 1) * (ranks - 1))) * 1e-9 : NAN;
    group->duration *= 1e-9 / n;
    group->transfer *= 1e-9 / n;
    group->transfer_least *= 1e-9 / n;
    group->spread *= 1e-9 / n;
    group->wait = group->duration - group->transfer;
}

/* Of two ranks, whether the first waits less by more than chance: the sum of the differences of their durations,
 * which no clock enters, against its standard error, with a spread for each group: four, and more for few samples.
 */
static bool waits_less(const struct k25_capture *capture, const struct k25_matches *matches, int r, int other)
{
    double total = 0, variance = 0, samples = 0;
    for (size_t g = 0; g < capture->groups; g++) {
        double sum = 0, squares = 0, n = 0;
        for (size_t k = 0; k < matches->count; k++) {
            const struct k25_match *m = &matches->list[k];
            if (m->group != (int)g)
                continue;
            double difference = (double)(m->end[other] - m->start[other]) - (double)(m->end[r] - m->start[r]);
            sum += difference;
            squares += difference * difference;
            n++;
        }
        if (n < 2)
            continue;
        total += sum;
        samples += n;
        variance += n * fmax(squares - sum * sum / n, 0) / (n - 1);
    }
    return samples > 1 && total > 4 * (1 + 4 / (samples - 1)) * sqrt(variance) + samples;
}

static void find_slow_rank(struct k25_capture *capture, const struct k25_matches *matches)
{
    int slow = 0, next = -1;
    double others = 0;
    const double *wait = capture->rank_wait;
    for (int r = 1; r < capture->ranks; r++)
        slow = wait[r] < wait[slow] ? r : slow;
    for (int r = 0; r < capture->ranks; r++) {
        if (r == slow)
            continue;
        others += wait[r] / (capture->ranks - 1);
        next = next < 0 || wait[r] < wait[next] ? r : next;
    }
    if (!waits_less(capture, matches, slow, next))
        return;
    capture->slow_rank = slow;
    capture->slow_lag = others - wait[slow];
}

/* Calls, and durations that need no other rank. */
static void count_calls(struct k25_capture *capture)
{
    for (size_t g = 0; g < capture->groups; g++) {
        struct k25_capture_group *group = &capture->group[g];
        double per_step = 0, duration = 0, all = 0;
        group->calls = SIZE_MAX;
        for (int r = 0; r < capture->ranks; r++) {
            const struct k25_rank *rank = &capture->rank[r];
            size_t calls = 0;
            for (size_t k = 0; k < rank->collectives; k++) {
                const struct k25_capture_collective *c = &rank->collective[k];
                if (c->class != group->class || c->bytes != group->bytes)
                    continue;
                calls++;
                duration += (double)c->dur_ns * 1e-9;
            }
            all += (double)calls;
            group->calls = calls < group->calls ? calls : group->calls;
            per_step += rank->kept > 0 ? (double)calls / (double)rank->kept / capture->ranks : 0;
        }
        group->per_step = per_step;
        if (group->matched > 0)
            continue;
        group->duration = all > 0 ? duration / all : NAN;
        group->transfer = group->transfer_least = group->wait = group->spread = NAN;
        group->end_jitter = group->wait_sigma = NAN;
        for (int r = 0; r < capture->ranks; r++)
            group->rank_wait[r] = NAN;
    }
}

static int by_total(const void *a, const void *b)
{
    const struct k25_capture_group *x = a, *y = b;
    double first = x->per_step * x->duration, second = y->per_step * y->duration;
    if (first != second)
        return first > second ? -1 : 1;
    return x->class != y->class ? x->class - y->class : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

bool k25_compare_ranks(struct k25_capture *capture, const struct k25_matches *matches)
{
    size_t ranks = (size_t)capture->ranks;
    double *offset = calloc(ranks, sizeof *offset), *lag = calloc(capture->groups * ranks + 1, sizeof *lag);
    bool ok = offset != NULL && lag != NULL, compare = ranks > 1 && matches->count > 0;
    for (size_t g = 0; ok && g < capture->groups; g++) {
        capture->group[g].rank_wait = calloc(ranks, sizeof(double));
        ok = capture->group[g].rank_wait != NULL;
    }
    capture->slow_rank = -1;
    ok = ok && (!compare || find_offsets(capture, matches, offset));
    for (size_t k = 0; ok && compare && k < matches->count; k++)
        add_match(capture, &matches->list[k], offset, lag);
    for (size_t g = 0; ok && compare && g < capture->groups; g++)
        finish_group(capture, &capture->group[g], &lag[g * ranks]);
    for (size_t r = 0; ok && !compare && r < ranks; r++) {
        capture->rank_wait[r] = NAN;
        capture->clock_offset[r] = r == 0 ? 0 : NAN;
    }
    if (!compare)
        capture->clock_sigma = NAN;
    if (ok && compare)
        find_slow_rank(capture, matches);
    if (ok)
        count_calls(capture);
    if (ok && capture->groups > 1)
        qsort(capture->group, capture->groups, sizeof *capture->group, by_total);
    free(offset);
    free(lag);
    return ok;
}
