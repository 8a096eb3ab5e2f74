/* Which collective of one rank is which of another: by ordinal inside (step, class, bytes), never by id or time.
 * Steps of two ranks may be shifted, when one began to record earlier. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "calib/capture/internal.h"

enum { SHIFTS = 8, SAMPLES = 2048 };

/* A rank's collectives by step. */
struct index {
    const struct k25_rank *rank;
    size_t *first;   /* [steps + 1] */
    int *group;      /* [collectives] */
    ptrdiff_t shift; /* step i of the first rank is step i + shift of this one */
};

static bool make_index(const struct k25_rank *rank, struct index *index)
{
    *index = (struct index){rank, calloc(rank->steps + 2, sizeof *index->first),
                            malloc((rank->collectives + 1) * sizeof *index->group), 0};
    if (index->first == NULL || index->group == NULL)
        return false;
    for (size_t i = 0; i < rank->collectives; i++)
        index->first[rank->collective[i].step + 1]++;
    for (size_t i = 0; i < rank->steps; i++)
        index->first[i + 1] += index->first[i];
    return true;
}

static int find_group(struct k25_capture *capture, const struct k25_capture_collective *c)
{
    for (size_t g = 0; g < capture->groups; g++)
        if (capture->group[g].class == c->class && capture->group[g].bytes == c->bytes)
            return (int)g;
    struct k25_capture_group *added = K25_LIST_ADD(capture->group, capture->groups);
    if (added == NULL)
        return -1;
    added->class = c->class;
    added->bytes = c->bytes;
    return (int)capture->groups - 1;
}

static bool make_groups(struct k25_capture *capture, struct index *index)
{
    for (int r = 0; r < capture->ranks; r++) {
        for (size_t i = 0; i < capture->rank[r].collectives; i++) {
            index[r].group[i] = find_group(capture, &capture->rank[r].collective[i]);
            if (index[r].group[i] < 0)
                return false;
        }
    }
    return true;
}

/* Step `i` of the first rank in the steps of another, -1: it has none, or not one of the same batch that is kept.
 */
static ptrdiff_t other_step(const struct index *a, const struct index *b, size_t i, ptrdiff_t shift)
{
    ptrdiff_t j = (ptrdiff_t)i + shift;
    if (j < 0 || (size_t)j >= b->rank->steps)
        return -1;
    const struct k25_capture_step *x = &a->rank->step[i], *y = &b->rank->step[j];
    bool same = x->sequences == y->sequences && x->tokens == y->tokens;
    return same && x->fate == K25_STEP_KEPT && y->fate == K25_STEP_KEPT ? j : -1;
}

/* The median difference of the ends of collectives under a shift, and the median distance from it. Returns how
 * many steps it compared. */
static size_t try_shift(const struct index *a, const struct index *b, ptrdiff_t shift, int64_t *offset, int64_t *spread)
{
    int64_t sample[SAMPLES];
    size_t n = 0, steps = 0, stride = 1 + a->rank->collectives / (SAMPLES / 2);
    for (size_t i = 0; i < a->rank->steps; i++) {
        ptrdiff_t j = other_step(a, b, i, shift);
        if (j < 0 || a->first[i + 1] - a->first[i] != b->first[j + 1] - b->first[j])
            continue;
        steps++;
        for (size_t k = a->first[i] + i % stride; k < a->first[i + 1] && n < SAMPLES; k += stride) {
            const struct k25_capture_collective *x = &a->rank->collective[k];
            const struct k25_capture_collective *y = &b->rank->collective[b->first[j] + (k - a->first[i])];
            sample[n++] = y->start_ns + y->dur_ns - x->start_ns - x->dur_ns;
        }
    }
    *offset = k25_median(sample, n);
    for (size_t k = 0; k < n; k++)
        sample[k] = llabs(sample[k] - *offset);
    *spread = k25_median(sample, n);
    return n > 0 ? steps : 0;
}

/* The right shift makes the ends of collectives agree up to a constant. When several do (every period alike),
 * ranks with as many steps as the first are not shifted, others are shifted so that the clocks differ least. */
static ptrdiff_t find_shift(const struct index *a, const struct index *b)
{
    int64_t offset[2 * SHIFTS + 1], spread[2 * SHIFTS + 1], least = INT64_MAX;
    bool possible[2 * SHIFTS + 1];
    size_t fewer = a->rank->kept < b->rank->kept ? a->rank->kept : b->rank->kept;
    for (int s = 0; s <= 2 * SHIFTS; s++) {
        size_t steps = try_shift(a, b, s - SHIFTS, &offset[s], &spread[s]);
        possible[s] = steps > 0 && 2 * steps >= fewer;
        if (possible[s] && spread[s] < least)
            least = spread[s];
    }
    int best = -1;
    for (int s = 0; s <= 2 * SHIFTS; s++) {
        if (!possible[s] || spread[s] > least + least / 2 + 50)
            continue;
        if (s == SHIFTS && a->rank->steps == b->rank->steps)
            return 0;
        if (best < 0 || llabs(offset[s]) < llabs(offset[best]))
            best = s;
    }
    return best >= 0 ? best - SHIFTS : 0;
}

/* Counts the collectives of a step by group and rank: count[group * ranks + rank]. */
static bool count_step(const struct k25_capture *capture, const struct index *index, size_t step, size_t *count)
{
    size_t ranks = (size_t)capture->ranks;
    memset(count, 0, capture->groups * ranks * sizeof *count);
    for (size_t r = 0; r < ranks; r++) {
        ptrdiff_t i = other_step(&index[0], &index[r], step, index[r].shift);
        if (i < 0)
            return false;
        for (size_t k = index[r].first[i]; k < index[r].first[i + 1]; k++)
            count[(size_t)index[r].group[k] * ranks + r]++;
    }
    return true;
}

/* Turns the counts of a step into what to match: base[group] is where its first match goes, SIZE_MAX when the
 * ranks do not agree how many there are. Returns how many match. */
static size_t plan_step(struct k25_capture *capture, const size_t *count, size_t at, size_t *base)
{
    size_t ranks = (size_t)capture->ranks, matched = 0;
    for (size_t g = 0; g < capture->groups; g++) {
        size_t least = SIZE_MAX, most = 0;
        for (size_t r = 0; r < ranks; r++) {
            size_t n = count[g * ranks + r];
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        base[g] = least == most ? at + matched : SIZE_MAX;
        if (least == most)
            matched += most;
        else
            capture->unmatched += most;
    }
    return matched;
}

static void fill_step(const struct k25_capture *capture, const struct index *index, size_t step, const size_t *base,
                      struct k25_matches *matches)
{
    for (int r = 0; r < capture->ranks; r++) {
        size_t i = (size_t)((ptrdiff_t)step + index[r].shift);
        for (size_t k = index[r].first[i]; k < index[r].first[i + 1]; k++) {
            const struct k25_capture_collective *c = &capture->rank[r].collective[k];
            int g = index[r].group[k];
            if (base[g] == SIZE_MAX)
                continue;
            struct k25_match *match = &matches->list[base[g] + (size_t)c->ordinal];
            match->group = g;
            match->step = (int)step;
            match->start[r] = c->start_ns;
            match->end[r] = c->start_ns + c->dur_ns;
        }
    }
}

static bool match_steps(struct k25_capture *capture, const struct index *index, struct k25_matches *matches)
{
    size_t ranks = (size_t)capture->ranks, room = index[0].rank->collectives;
    size_t *count = malloc((capture->groups * ranks + 1) * sizeof *count);
    size_t *base = malloc((capture->groups + 1) * sizeof *base);
    matches->list = malloc((room + 1) * sizeof *matches->list);
    matches->times = malloc((room + 1) * 2 * ranks * sizeof *matches->times);
    bool ok = count != NULL && base != NULL && matches->list != NULL && matches->times != NULL;
    for (size_t i = 0; ok && i < room; i++) {
        matches->list[i].start = matches->times + 2 * ranks * i;
        matches->list[i].end = matches->list[i].start + ranks;
    }
    for (size_t step = 0; ok && step < index[0].rank->steps; step++) {
        if (!count_step(capture, index, step, count))
            continue;
        capture->steps_common++;
        size_t matched = plan_step(capture, count, matches->count, base);
        fill_step(capture, index, step, base, matches);
        matches->count += matched;
    }
    capture->matched = matches->count;
    free(count);
    free(base);
    return ok;
}

bool k25_match_ranks(struct k25_capture *capture, struct k25_matches *matches)
{
    memset(matches, 0, sizeof *matches);
    struct index *index = calloc((size_t)capture->ranks, sizeof *index);
    bool ok = index != NULL;
    for (int r = 0; ok && r < capture->ranks; r++)
        ok = make_index(&capture->rank[r], &index[r]);
    ok = ok && make_groups(capture, index);
    for (int r = 1; ok && r < capture->ranks; r++)
        index[r].shift = find_shift(&index[0], &index[r]);
    ok = ok && match_steps(capture, index, matches);
    for (int r = 0; index != NULL && r < capture->ranks; r++) {
        free(index[r].first);
        free(index[r].group);
    }
    free(index);
    return ok;
}

void k25_matches_free(struct k25_matches *matches)
{
    free(matches->list);
    free(matches->times);
    memset(matches, 0, sizeof *matches);
}
