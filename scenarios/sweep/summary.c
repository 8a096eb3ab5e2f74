#include "scenarios/sweep/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 60 /* bytes of a row in a message */ };

/* ---- groups ---- */

static uint64_t hash(const char *key, size_t length)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)key[i]) * UINT64_C(1099511628211);
    return h ^ h >> 29;
}

static bool same(const struct k25_sweep_group *group, const char *key, size_t length)
{
    return group->key_length == length && memcmp(group->key, key, length) == 0;
}

/* Makes room for one more group in the list and in the hash table, which is at most half full. */
static bool make_room(struct k25_sweep_summary *summary)
{
    if (summary->groups == summary->room) {
        size_t room = summary->room == 0 ? 8 : summary->room * 2;
        struct k25_sweep_group *larger = realloc(summary->group, room * sizeof *larger);
        if (larger == NULL)
            return false;
        memset(larger + summary->room, 0, (room - summary->room) * sizeof *larger);
        summary->group = larger;
        summary->room = room;
    }
    if (summary->groups * 2 + 2 <= summary->slots)
        return true;
    size_t slots = summary->slots == 0 ? 16 : summary->slots * 2;
    size_t *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < summary->groups; i++) {
        size_t slot = hash(summary->group[i].key, summary->group[i].key_length) & (slots - 1);
        while (table[slot] != 0)
            slot = (slot + 1) & (slots - 1);
        table[slot] = i + 1;
    }
    free(summary->table);
    summary->table = table;
    summary->slots = slots;
    return true;
}

static bool open_group(struct k25_sweep_summary *summary, size_t slot, const char *key, size_t length,
                       struct k25_error *error)
{
    struct k25_sweep_group *group = &summary->group[summary->groups];
    if (group->key_room < length + 1) {
        char *larger = realloc(group->key, length + 1);
        if (larger == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        group->key = larger;
        group->key_room = length + 1;
    }
    memcpy(group->key, key, length);
    group->key[length] = '\0';
    group->key_length = length;
    group->front.values = summary->objectives;
    group->top.most = summary->top;
    summary->table[slot] = ++summary->groups;
    return true;
}

static struct k25_sweep_group *find_group(struct k25_sweep_summary *summary, const char *key, size_t length,
                                          struct k25_error *error)
{
    if (summary->last < summary->groups && same(&summary->group[summary->last], key, length))
        return &summary->group[summary->last];
    if (!make_room(summary)) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    size_t slot = hash(key, length) & (summary->slots - 1);
    while (summary->table[slot] != 0 && !same(&summary->group[summary->table[slot] - 1], key, length))
        slot = (slot + 1) & (summary->slots - 1);
    if (summary->table[slot] == 0 && summary->groups == K25_SWEEP_GROUPS) {
        k25_fail(error, K25_BAD_INPUT, "group_by makes more than %d groups", K25_SWEEP_GROUPS);
        return NULL;
    }
    if (summary->table[slot] == 0 && !open_group(summary, slot, key, length, error))
        return NULL;
    summary->last = summary->table[slot] - 1;
    return &summary->group[summary->last];
}

/* ---- rows ---- */

void k25_sweep_summary_open(const struct k25_sweep_layout *layout, struct k25_sweep_summary *summary)
{
    *summary = (struct k25_sweep_summary){.objectives = layout->objectives, .top = layout->top};
    for (size_t i = 0; i < layout->objectives; i++)
        summary->maximise[i] = layout->objective[i].maximise;
}

static bool offer(const struct k25_sweep_summary *summary, struct k25_sweep_group *group, const struct k25_ranked *row,
                  struct k25_error *error)
{
    enum k25_offer front = summary->objectives > 1 ? k25_front_offer(&group->front, row) : K25_REFUSED;
    enum k25_offer top = k25_top_offer(&group->top, row);
    return (front != K25_NO_MEMORY && top != K25_NO_MEMORY) || k25_fail(error, K25_RESOURCE, "out of memory");
}

bool k25_sweep_summary_rank(struct k25_sweep_summary *summary, const char *key, size_t key_length,
                            const double value[K25_SWEEP_OBJECTIVES], size_t at, size_t length, struct k25_error *error)
{
    struct k25_ranked row = {.order = summary->counts.rows, .at = at, .length = length};
    for (size_t i = 0; i < summary->objectives; i++) {
        if (isnan(value[i]))
            return true;
        row.value[i] = summary->maximise[i] ? -value[i] : value[i]; /* pareto.h: smaller is better */
    }
    if (summary->objectives == 0)
        return true;
    struct k25_sweep_group *group = find_group(summary, key, key_length, error);
    return group != NULL && offer(summary, group, &row, error);
}

/* Converts a row of another summary: its order among all rows, and its text. */
static struct k25_ranked moved(const struct k25_ranked *row, const char *rows, uint64_t order)
{
    struct k25_ranked out = *row;
    out.order += order;
    out.text = (char *)(uintptr_t)rows + row->at;
    return out;
}

static bool add_group(struct k25_sweep_group *group, const struct k25_sweep_group *more, const char *rows,
                      uint64_t order)
{
    bool memory = true;
    for (size_t i = 0; memory && i < more->front.count; i++) {
        struct k25_ranked row = moved(&more->front.item[i], rows, order);
        memory = k25_front_offer(&group->front, &row) != K25_NO_MEMORY;
    }
    for (size_t i = 0; memory && i < more->top.count; i++) {
        struct k25_ranked row = moved(&more->top.item[i], rows, order);
        memory = k25_top_offer(&group->top, &row) != K25_NO_MEMORY;
    }
    return memory;
}

bool k25_sweep_summary_add(struct k25_sweep_summary *summary, const struct k25_sweep_summary *more, const char *rows,
                           struct k25_error *error)
{
    uint64_t order = summary->counts.rows;
    k25_sweep_counts_add(&summary->counts, &more->counts);
    for (size_t g = 0; g < more->groups; g++) {
        const struct k25_sweep_group *from = &more->group[g];
        struct k25_sweep_group *group = find_group(summary, from->key, from->key_length, error);
        if (group == NULL)
            return false;
        if (!add_group(group, from, rows, order))
            return k25_fail(error, K25_RESOURCE, "out of memory");
    }
    return true;
}

size_t k25_sweep_group_key(const struct k25_sweep_layout *layout, const struct k25_sweep_cell *cells,
                           char key[K25_SWEEP_GROUP_KEY])
{
    size_t used = 0;
    for (size_t i = 0; i < layout->groups; i++) {
        struct k25_sweep_cell cell = cells[layout->group[i]];
        size_t room = K25_SWEEP_GROUP_KEY - used - (layout->groups - i), part = cell.length < room ? cell.length : room;
        memcpy(key + used, cell.text, part);
        used += part;
        key[used++] = K25_SWEEP_SEPARATOR;
    }
    return used;
}

static double cell_number(struct k25_sweep_cell cell)
{
    char text[64], *end;
    if (cell.length == 0 || cell.length >= sizeof text)
        return NAN;
    memcpy(text, cell.text, cell.length);
    text[cell.length] = '\0';
    double value = strtod(text, &end);
    return *end == '\0' ? value : NAN;
}

bool k25_sweep_summary_read(struct k25_sweep_summary *summary, const struct k25_sweep_layout *layout, const char *rows,
                            size_t size, struct k25_error *error)
{
    struct k25_sweep_cell cells[K25_SWEEP_COLUMNS];
    char key[K25_SWEEP_GROUP_KEY];
    for (size_t at = 0; at < size; summary->counts.rows++) {
        const char *row = rows + at, *end = memchr(row, '\n', size - at);
        size_t length = end == NULL ? size - at : (size_t)(end - row);
        if (end == NULL || !k25_sweep_split(layout, row, length, cells))
            return k25_fail(error, K25_BAD_INPUT, "'%.*s': not a row of this sweep",
                            (int)(length < SHOWN ? length : SHOWN), row);
        double value[K25_SWEEP_OBJECTIVES] = {0};
        for (size_t i = 0; i < layout->objectives; i++)
            value[i] = cell_number(cells[layout->objective[i].column]);
        size_t used = k25_sweep_group_key(layout, cells, key);
        if (!k25_sweep_summary_rank(summary, key, used, value, at, length, error))
            return false;
        at += length + 1;
    }
    return true;
}

void k25_sweep_summary_clear(struct k25_sweep_summary *summary)
{
    for (size_t i = 0; i < summary->groups; i++) {
        k25_front_clear(&summary->group[i].front);
        k25_top_clear(&summary->group[i].top);
    }
    summary->groups = summary->last = 0;
    if (summary->table != NULL)
        memset(summary->table, 0, summary->slots * sizeof *summary->table);
    k25_sweep_counts_clear(&summary->counts);
}

void k25_sweep_summary_close(struct k25_sweep_summary *summary)
{
    for (size_t i = 0; i < summary->room; i++) {
        k25_front_free(&summary->group[i].front);
        k25_top_free(&summary->group[i].top);
        free(summary->group[i].key);
    }
    free(summary->group);
    free(summary->table);
    *summary = (struct k25_sweep_summary){0};
}
