#include "scenarios/sweep/pareto.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"

/* Makes room for one more, without counting it: it may be inserted in the middle. */
static bool grow(struct k25_ranked **items, size_t count)
{
    struct k25_ranked *larger = k25_list_grow(*items, count, sizeof *larger);
    if (larger != NULL)
        *items = larger;
    return larger != NULL;
}

/* The row as it is kept: with a copy of its text. */
static bool copy_row(const struct k25_ranked *row, struct k25_ranked *kept)
{
    *kept = *row;
    if (row->text == NULL)
        return true;
    kept->text = malloc(row->length + 1);
    if (kept->text == NULL)
        return false;
    memcpy(kept->text, row->text, row->length);
    kept->text[row->length] = '\0';
    return true;
}

static bool covers(const struct k25_ranked *a, const struct k25_ranked *b, size_t values)
{
    for (size_t i = 0; i < values; i++) {
        if (a->value[i] > b->value[i])
            return false;
    }
    return true;
}

/* Two values: along the front the first rises and the second falls, so one binary search finds the items to compare. */
static enum k25_offer offer_sorted(struct k25_front *front, const struct k25_ranked *row)
{
    size_t low = 0, high = front->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (front->item[middle].value[0] <= row->value[0])
            low = middle + 1;
        else
            high = middle;
    }
    /* All items before `low` have a first value that is not larger; the last of them has the smallest second value. */
    if (low > 0 && covers(&front->item[low - 1], row, 2))
        return K25_REFUSED;
    struct k25_ranked kept;
    if (!grow(&front->item, front->count) || !copy_row(row, &kept))
        return K25_NO_MEMORY;
    size_t start = low > 0 && covers(row, &front->item[low - 1], 2) ? low - 1 : low, end = start;
    while (end < front->count && covers(row, &front->item[end], 2))
        free(front->item[end++].text);
    memmove(front->item + start + 1, front->item + end, (front->count - end) * sizeof *front->item);
    front->item[start] = kept;
    front->count += 1 + start - end;
    return K25_TAKEN;
}

static enum k25_offer offer_unsorted(struct k25_front *front, const struct k25_ranked *row)
{
    if (front->last < front->count && covers(&front->item[front->last], row, front->values))
        return K25_REFUSED;
    for (size_t i = 0; i < front->count; i++) {
        if (covers(&front->item[i], row, front->values)) {
            front->last = i;
            return K25_REFUSED;
        }
    }
    struct k25_ranked kept;
    if (!grow(&front->item, front->count) || !copy_row(row, &kept))
        return K25_NO_MEMORY;
    size_t left = 0;
    for (size_t i = 0; i < front->count; i++) {
        if (covers(row, &front->item[i], front->values))
            free(front->item[i].text);
        else
            front->item[left++] = front->item[i];
    }
    front->item[left] = kept;
    front->last = left;
    front->count = left + 1;
    return K25_TAKEN;
}

enum k25_offer k25_front_offer(struct k25_front *front, const struct k25_ranked *row)
{
    return front->values == 2 ? offer_sorted(front, row) : offer_unsorted(front, row);
}

static bool before(const struct k25_ranked *a, const struct k25_ranked *b)
{
    return a->value[0] < b->value[0] || (a->value[0] == b->value[0] && a->order < b->order);
}

enum k25_offer k25_top_offer(struct k25_top *top, const struct k25_ranked *row)
{
    if (top->most == 0 || (top->count == top->most && !before(row, &top->item[top->count - 1])))
        return K25_REFUSED;
    struct k25_ranked kept;
    if (!grow(&top->item, top->count) || !copy_row(row, &kept))
        return K25_NO_MEMORY;
    if (top->count == top->most)
        free(top->item[--top->count].text);
    size_t at = top->count++;
    for (; at > 0 && before(row, &top->item[at - 1]); at--)
        top->item[at] = top->item[at - 1];
    top->item[at] = kept;
    return K25_TAKEN;
}

static int compare(const void *left, const void *right)
{
    const struct k25_ranked *a = left, *b = right;
    for (int i = 0; i < 2; i++) {
        if (a->value[i] != b->value[i])
            return a->value[i] < b->value[i] ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

void k25_front_sort(struct k25_front *front)
{
    if (front->count > 1)
        qsort(front->item, front->count, sizeof *front->item, compare);
}

void k25_front_clear(struct k25_front *front)
{
    for (size_t i = 0; i < front->count; i++)
        free(front->item[i].text);
    front->count = front->last = 0;
}

void k25_front_free(struct k25_front *front)
{
    k25_front_clear(front);
    free(front->item);
    front->item = NULL;
}

void k25_top_clear(struct k25_top *top)
{
    for (size_t i = 0; i < top->count; i++)
        free(top->item[i].text);
    top->count = 0;
}

void k25_top_free(struct k25_top *top)
{
    k25_top_clear(top);
    free(top->item);
    top->item = NULL;
}
