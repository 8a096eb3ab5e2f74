#include "scenarios/sweep/digest.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counts ---- */

/* Numbers that stand alone become N: plans that fail for one reason say it with numbers of their own. */
static void take_numbers_out(const char *message, char *out, size_t size)
{
    size_t used = 0;
    char before = ' ';
    while (*message != '\0' && used + 1 < size) {
        bool starts = isdigit((unsigned char)*message) && (before == ' ' || before == '(' || before == '-');
        size_t length = starts ? strspn(message, "0123456789.,") : 0;
        while (length > 0 && !isdigit((unsigned char)message[length - 1]))
            length--;
        char after = message[length];
        if (length > 0 && !isalpha((unsigned char)after) && after != '_') {
            out[used++] = 'N';
            message += length;
            before = 'N';
        } else {
            before = *message == '\n' ? ' ' : *message;
            out[used++] = before;
            message++;
        }
    }
    out[used] = '\0';
}

static void add_reason(struct k25_sweep_counts *counts, const char *text, uint64_t count)
{
    for (size_t i = 0; i < counts->reasons; i++) {
        if (strcmp(counts->reason[i].text, text) == 0) {
            counts->reason[i].count += count;
            return;
        }
    }
    bool full = counts->reasons + 1 >= K25_SWEEP_REASONS;
    if (full && counts->reasons == K25_SWEEP_REASONS) {
        counts->reason[K25_SWEEP_REASONS - 1].count += count;
        return;
    }
    struct k25_sweep_reason *reason = &counts->reason[counts->reasons++];
    snprintf(reason->text, sizeof reason->text, "%s", full ? "other reasons" : text);
    reason->count = count;
}

void k25_sweep_count_invalid(struct k25_sweep_counts *counts, const char *message, uint64_t count)
{
    char text[sizeof counts->reason[0].text];
    take_numbers_out(message, text, sizeof text);
    add_reason(counts, text, count);
}

void k25_sweep_counts_add(struct k25_sweep_counts *sum, const struct k25_sweep_counts *more)
{
    sum->points += more->points;
    sum->evaluated += more->evaluated;
    sum->rows += more->rows;
    for (size_t i = 0; i < K25_SWEEP_CONSTRAINTS; i++)
        sum->rejected[i] += more->rejected[i];
    for (size_t i = 0; i < more->reasons; i++)
        add_reason(sum, more->reason[i].text, more->reason[i].count);
}

void k25_sweep_counts_clear(struct k25_sweep_counts *counts)
{
    counts->points = counts->evaluated = counts->rows = 0;
    counts->reasons = 0;
    memset(counts->rejected, 0, sizeof counts->rejected);
}

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

/* Room for one more group in the list and in the table, which stays at most half full. */
static bool make_room(struct k25_digest *digest)
{
    if (digest->count == digest->room) {
        size_t room = digest->room == 0 ? 8 : digest->room * 2;
        struct k25_sweep_group *larger = realloc(digest->group, room * sizeof *larger);
        if (larger == NULL)
            return false;
        memset(larger + digest->room, 0, (room - digest->room) * sizeof *larger);
        digest->group = larger;
        digest->room = room;
    }
    if (digest->count * 2 + 2 <= digest->slots)
        return true;
    size_t slots = digest->slots == 0 ? 16 : digest->slots * 2;
    size_t *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < digest->count; i++) {
        size_t slot = hash(digest->group[i].key, digest->group[i].key_length) & (slots - 1);
        while (table[slot] != 0)
            slot = (slot + 1) & (slots - 1);
        table[slot] = i + 1;
    }
    free(digest->table);
    digest->table = table;
    digest->slots = slots;
    return true;
}

static bool open_group(struct k25_digest *digest, size_t slot, const char *key, size_t length, struct k25_error *error)
{
    struct k25_sweep_group *group = &digest->group[digest->count];
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
    group->front.values = digest->objectives;
    group->top.most = digest->most;
    digest->table[slot] = ++digest->count;
    return true;
}

static struct k25_sweep_group *find_group(struct k25_digest *digest, const char *key, size_t length,
                                          struct k25_error *error)
{
    if (digest->last < digest->count && same(&digest->group[digest->last], key, length))
        return &digest->group[digest->last];
    if (!make_room(digest)) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    size_t slot = hash(key, length) & (digest->slots - 1);
    while (digest->table[slot] != 0 && !same(&digest->group[digest->table[slot] - 1], key, length))
        slot = (slot + 1) & (digest->slots - 1);
    if (digest->table[slot] == 0 && digest->count == K25_SWEEP_GROUPS) {
        k25_fail(error, K25_BAD_INPUT, "group_by makes more than %d groups", K25_SWEEP_GROUPS);
        return NULL;
    }
    if (digest->table[slot] == 0 && !open_group(digest, slot, key, length, error))
        return NULL;
    digest->last = digest->table[slot] - 1;
    return &digest->group[digest->last];
}

/* ---- rows ---- */

void k25_digest_open(const struct k25_sweep_frame *frame, struct k25_digest *digest)
{
    *digest = (struct k25_digest){.objectives = frame->objectives, .most = frame->top};
    for (size_t i = 0; i < frame->objectives; i++)
        digest->maximise[i] = frame->objective[i].maximise;
}

static bool rank(struct k25_digest *digest, struct k25_sweep_group *group, const struct k25_ranked *row,
                 struct k25_error *error)
{
    enum k25_offer front = digest->objectives > 1 ? k25_front_offer(&group->front, row) : K25_REFUSED;
    enum k25_offer top = k25_top_offer(&group->top, row);
    return (front != K25_NO_MEMORY && top != K25_NO_MEMORY) || k25_fail(error, K25_RESOURCE, "out of memory");
}

bool k25_digest_offer(struct k25_digest *digest, const char *key, size_t key_length,
                      const double value[K25_SWEEP_OBJECTIVES], uint64_t order, size_t at, char *text, size_t length,
                      struct k25_error *error)
{
    struct k25_ranked row = {.order = order, .at = at, .length = length, .text = text};
    for (size_t i = 0; i < digest->objectives; i++) {
        if (isnan(value[i]))
            return true;
        row.value[i] = k25_digest_value(digest, i, value[i]);
    }
    if (digest->objectives == 0)
        return true;
    struct k25_sweep_group *group = find_group(digest, key, key_length, error);
    return group != NULL && rank(digest, group, &row, error);
}

bool k25_digest_merge(struct k25_digest *digest, const struct k25_digest *other, const char *rows, uint64_t order,
                      struct k25_error *error)
{
    for (size_t g = 0; g < other->count; g++) {
        const struct k25_sweep_group *from = &other->group[g];
        struct k25_sweep_group *group = find_group(digest, from->key, from->key_length, error);
        if (group == NULL)
            return false;
        bool memory = true;
        for (size_t i = 0; memory && i < from->front.count; i++) {
            struct k25_ranked row = from->front.item[i];
            row.order += order;
            row.text = (char *)(uintptr_t)rows + row.at;
            memory = k25_front_offer(&group->front, &row) != K25_NO_MEMORY;
        }
        for (size_t i = 0; memory && i < from->top.count; i++) {
            struct k25_ranked row = from->top.item[i];
            row.order += order;
            row.text = (char *)(uintptr_t)rows + row.at;
            memory = k25_top_offer(&group->top, &row) != K25_NO_MEMORY;
        }
        if (!memory)
            return k25_fail(error, K25_RESOURCE, "out of memory");
    }
    return true;
}

size_t k25_digest_key(const struct k25_sweep_frame *frame, const struct k25_sweep_cell *cells,
                      char key[K25_SWEEP_GROUP_KEY])
{
    size_t used = 0;
    for (size_t i = 0; i < frame->groups; i++) {
        struct k25_sweep_cell cell = cells[frame->group[i]];
        size_t room = K25_SWEEP_GROUP_KEY - used - (frame->groups - i), part = cell.length < room ? cell.length : room;
        memcpy(key + used, cell.text, part);
        used += part;
        key[used++] = '\x1f';
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

bool k25_digest_read(struct k25_digest *digest, const struct k25_sweep_frame *frame, const char *rows, size_t size,
                     uint64_t *count, struct k25_error *error)
{
    struct k25_sweep_cell cells[K25_SWEEP_COLUMNS];
    char key[K25_SWEEP_GROUP_KEY];
    for (size_t at = 0; at < size;) {
        const char *row = rows + at, *end = memchr(row, '\n', size - at);
        size_t length = end == NULL ? size - at : (size_t)(end - row);
        if (end == NULL || !k25_sweep_split(frame, row, length, cells))
            return k25_fail(error, K25_BAD_INPUT, "row %llu is not a row of this sweep",
                            (unsigned long long)*count + 1);
        double value[K25_SWEEP_OBJECTIVES] = {0};
        for (size_t i = 0; i < frame->objectives; i++)
            value[i] = cell_number(cells[frame->objective[i].column]);
        size_t used = k25_digest_key(frame, cells, key);
        if (!k25_digest_offer(digest, key, used, value, (*count)++, 0, (char *)(uintptr_t)row, length, error))
            return false;
        at += length + 1;
    }
    return true;
}

void k25_digest_clear(struct k25_digest *digest)
{
    for (size_t i = 0; i < digest->count; i++) {
        k25_front_clear(&digest->group[i].front);
        k25_top_clear(&digest->group[i].top);
    }
    digest->count = digest->last = 0;
    if (digest->table != NULL)
        memset(digest->table, 0, digest->slots * sizeof *digest->table);
}

void k25_digest_close(struct k25_digest *digest)
{
    for (size_t i = 0; i < digest->room; i++) {
        k25_front_free(&digest->group[i].front);
        k25_top_free(&digest->group[i].top);
        free(digest->group[i].key);
    }
    free(digest->group);
    free(digest->table);
    *digest = (struct k25_digest){0};
}
