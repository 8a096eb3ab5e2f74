/* Sorting in place: a capture's events are most of the memory it may take, so there is no room for a copy.
 * Quicksort with the middle as pivot (what comes in is nearly sorted), and heapsort below a depth that only
 * hostile input reaches. */
#include <stdlib.h>

#include "calib/capture/internal.h"

/* Events and launches are both two 64-bit words, and moved as such. */
struct __attribute__((may_alias)) pair {
    uint64_t high, low;
};

_Static_assert(sizeof(struct k25_gpu_event) == sizeof(struct pair), "an event is two words");
_Static_assert(sizeof(struct k25_launch) == sizeof(struct pair), "a launch is two words");

typedef bool before(const void *a, const void *b);

static bool event_before(const void *a, const void *b)
{
    const struct k25_gpu_event *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start;
    return x->slot != y->slot ? x->slot < y->slot : x->dur < y->dur;
}

static bool launch_before(const void *a, const void *b)
{
    const struct k25_launch *x = a, *y = b;
    return x->correlation != y->correlation ? x->correlation < y->correlation : x->ts_graph < y->ts_graph;
}

static inline void swap(struct pair *a, struct pair *b)
{
    struct pair kept = *a;
    *a = *b;
    *b = kept;
}

static inline void sift(struct pair *list, size_t root, size_t count, before *less)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && less(&list[child], &list[child + 1]))
            child++;
        if (!less(&list[root], &list[child]))
            return;
        swap(&list[root], &list[child]);
    }
}

static void heap_sort(struct pair *list, size_t count, before *less)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(list, i, count, less);
    for (size_t i = count; i-- > 1;) {
        swap(&list[0], &list[i]);
        sift(list, 0, i, less);
    }
}

static void insertion_sort(struct pair *list, size_t count, before *less)
{
    for (size_t i = 1; i < count; i++) {
        struct pair kept = list[i];
        size_t at = i;
        for (; at > 0 && less(&kept, &list[at - 1]); at--)
            list[at] = list[at - 1];
        list[at] = kept;
    }
}

static void sort(struct pair *list, size_t count, int depth, before *less)
{
    while (count > 24) {
        if (depth-- == 0) {
            heap_sort(list, count, less);
            return;
        }
        struct pair pivot = list[count / 2];
        size_t left = 0, right = count - 1;
        for (;;) {
            while (less(&list[left], &pivot))
                left++;
            while (less(&pivot, &list[right]))
                right--;
            if (left >= right)
                break;
            swap(&list[left++], &list[right--]);
        }
        size_t cut = right + 1; /* 0 < cut < count: both sides shrink */
        sort(list, cut, depth, less);
        list += cut;
        count -= cut;
    }
    insertion_sort(list, count, less);
}

void k25_sort_events(struct k25_gpu_event *events, size_t count)
{
    sort((struct pair *)(void *)events, count, 64, event_before);
}

void k25_sort_launches(struct k25_launch *launches, size_t count)
{
    sort((struct pair *)(void *)launches, count, 64, launch_before);
}

int k25_compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int64_t k25_median(int64_t *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, k25_compare_ns);
    return values[(count - 1) / 2];
}
