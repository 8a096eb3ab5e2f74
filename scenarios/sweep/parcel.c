#include "scenarios/sweep/parcel.h"

#include <stdlib.h>
#include <string.h>

static bool put(struct k25_sweep_parcel *parcel, const void *bytes, size_t size, struct k25_error *error)
{
    if (parcel->room - parcel->size < size) {
        size_t room = (parcel->size + size) * 2;
        char *larger = realloc(parcel->bytes, room);
        if (larger == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        parcel->bytes = larger;
        parcel->room = room;
    }
    if (size > 0)
        memcpy(parcel->bytes + parcel->size, bytes, size);
    parcel->size += size;
    return true;
}

static bool put_items(struct k25_sweep_parcel *parcel, const struct k25_ranked *items, size_t count,
                      struct k25_error *error)
{
    return put(parcel, &count, sizeof count, error) && put(parcel, items, count * sizeof *items, error);
}

bool k25_sweep_pack(struct k25_sweep_parcel *parcel, const struct k25_sweep_chunk *chunk, struct k25_error *error)
{
    const struct k25_digest *digest = &chunk->digest;
    bool ok = put(parcel, &chunk->to, sizeof chunk->to, error) &&
              put(parcel, &chunk->size, sizeof chunk->size, error) &&
              put(parcel, &chunk->counts, sizeof chunk->counts, error) &&
              put(parcel, chunk->text, chunk->size, error) && put(parcel, &digest->count, sizeof digest->count, error);
    for (size_t g = 0; ok && g < digest->count; g++) {
        const struct k25_sweep_group *group = &digest->group[g];
        ok = put(parcel, &group->key_length, sizeof group->key_length, error) &&
             put(parcel, group->key, group->key_length, error) &&
             put_items(parcel, group->front.item, group->front.count, error) &&
             put_items(parcel, group->top.item, group->top.count, error);
    }
    return ok;
}

struct reader {
    const char *at, *end;
    struct k25_error *error;
};

static bool get(struct reader *reader, void *out, size_t size)
{
    if ((size_t)(reader->end - reader->at) < size)
        return k25_fail(reader->error, K25_RESOURCE, "a message of another process is cut off");
    if (size > 0)
        memcpy(out, reader->at, size);
    reader->at += size;
    return true;
}

/* The rows that another process kept, as a list of this one's. */
static bool get_items(struct reader *reader, struct k25_ranked **items, size_t *count)
{
    if (!get(reader, count, sizeof *count))
        return false;
    if (*count > (size_t)(reader->end - reader->at) / sizeof **items)
        return k25_fail(reader->error, K25_RESOURCE, "a message of another process is cut off");
    *items = calloc(*count + 1, sizeof **items);
    if (*items == NULL)
        return k25_fail(reader->error, K25_RESOURCE, "out of memory");
    return get(reader, *items, *count * sizeof **items);
}

/* One group, through a digest of this group alone. */
static bool merge_group(struct reader *reader, struct k25_sweep_store *store, const char *rows, uint64_t order)
{
    struct k25_sweep_group group = {0};
    bool ok = get(reader, &group.key_length, sizeof group.key_length);
    if (ok && group.key_length > (size_t)(reader->end - reader->at))
        return k25_fail(reader->error, K25_RESOURCE, "a message of another process is cut off");
    group.key = (char *)(uintptr_t)reader->at;
    reader->at += ok ? group.key_length : 0;
    ok = ok && get_items(reader, &group.front.item, &group.front.count) &&
         get_items(reader, &group.top.item, &group.top.count);
    struct k25_digest one = {.count = 1, .group = &group};
    ok = ok && k25_digest_merge(&store->digest, &one, rows, order, reader->error);
    free(group.front.item);
    free(group.top.item);
    return ok;
}

static bool unpack_one(struct reader *reader, struct k25_sweep_store *store, struct k25_sweep_counts *counts)
{
    uint64_t to = 0, order = store->counts.rows;
    size_t size = 0, groups = 0;
    if (!get(reader, &to, sizeof to) || !get(reader, &size, sizeof size) || !get(reader, counts, sizeof *counts))
        return false;
    if (size > (size_t)(reader->end - reader->at))
        return k25_fail(reader->error, K25_RESOURCE, "a message of another process is cut off");
    const char *rows = reader->at;
    reader->at += size;
    if (!k25_sweep_store_add(store, to, rows, size, counts, reader->error) || !get(reader, &groups, sizeof groups))
        return false;
    for (size_t g = 0; g < groups; g++) {
        if (!merge_group(reader, store, rows, order))
            return false;
    }
    return true;
}

bool k25_sweep_unpack(const char *bytes, size_t size, struct k25_sweep_store *store, struct k25_error *error)
{
    struct reader reader = {bytes, bytes + size, error};
    struct k25_sweep_counts *counts = malloc(sizeof *counts);
    bool ok = counts != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    while (ok && reader.at < reader.end)
        ok = unpack_one(&reader, store, counts);
    free(counts);
    return ok;
}
