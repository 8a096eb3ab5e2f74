/* The files of shards as one. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <isa-l/crc64.h>

#include "base/file.h"
#include "scenarios/sweep/journal_internal.h"
#include "scenarios/sweep/store.h"

enum { STATE_BYTES = 1 << 30, ROWS = 1 << 30 /* bytes of a chunk at most */ };

struct shard {
    const char *file;
    char state_file[1100];
    char *state;  /* text */
    size_t start; /* of the records */
    uint64_t index, count, from, to;
};

static bool read_state(struct shard *shard, const char *file, struct k25_sweep_frame *frame, bool first,
                       struct k25_error *error)
{
    size_t size, line;
    shard->file = file;
    snprintf(shard->state_file, sizeof shard->state_file, "%.1050s.state", file);
    if (!k25_file_exists(file))
        return k25_fail(error, K25_BAD_INPUT, "%s: no such file%s", file,
                        k25_file_exists(shard->state_file) ? "; its shard is not finished" : "");
    shard->state = k25_file_read(shard->state_file, STATE_BYTES, &size, error);
    if (shard->state == NULL)
        return false;
    if (first && !k25_sweep_frame_parse(shard->state, shard->state_file, &size, frame, error))
        return false;
    size = strlen(frame->text);
    if (strncmp(shard->state, frame->text, size) != 0)
        return k25_fail(error, K25_BAD_INPUT, "%s: a shard of another sweep than the first file", file);
    if (!k25_sweep_parse_shard(shard->state + size, &shard->index, &shard->count, &shard->from, &shard->to, &line))
        return k25_fail(error, K25_BAD_INPUT, "%s: not the state of a shard", shard->state_file);
    shard->start = size + line;
    return true;
}

static int by_start(const void *left, const void *right)
{
    const struct shard *a = left, *b = right;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->index > b->index) - (a->index < b->index);
}

/* Every shard once, none missing. */
static bool check_shards(const struct shard *shards, size_t count, const struct k25_sweep_frame *frame,
                         struct k25_error *error)
{
    uint64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (shards[i].count != shards[0].count)
            return k25_fail(error, K25_BAD_INPUT, "%s: shard of %" PRIu64 ", but %s is one of %" PRIu64, shards[i].file,
                            shards[i].count, shards[0].file, shards[0].count);
        if (i > 0 && shards[i].index == shards[i - 1].index)
            return k25_fail(error, K25_BAD_INPUT, "%s and %s are both shard %" PRIu64, shards[i - 1].file,
                            shards[i].file, shards[i].index);
        if (shards[i].index != i + 1 || shards[i].from != next)
            return k25_fail(error, K25_BAD_INPUT, "shard %zu of %" PRIu64 " is missing", i + 1, shards[0].count);
        next = shards[i].to;
    }
    return next == frame->points ||
           k25_fail(error, K25_BAD_INPUT, "shard %zu of %" PRIu64 " is missing", count + 1, shards[0].count);
}

static bool damaged(const struct shard *shard, struct k25_error *error)
{
    return k25_fail(error, K25_BAD_INPUT, "%s: its rows are not those that %s tells of", shard->file,
                    shard->state_file);
}

static bool read_exactly(int fd, char *bytes, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, bytes + have, size - have);
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

/* The rows of one shard, chunk by chunk, at the end of the store's. */
static bool append(const struct shard *shard, int fd, struct k25_sweep_store *store, struct k25_sweep_record *record,
                   struct k25_sweep_counts *known, struct k25_error *error)
{
    const char *at = shard->state + shard->start;
    size_t room = strlen(store->frame->head) + 1, head = room - 1;
    char *rows = malloc(room);
    bool ok = rows != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    if (ok && (!read_exactly(fd, rows, head) || memcmp(rows, store->frame->head, head) != 0))
        ok = damaged(shard, error);
    memset(known, 0, sizeof *known);
    while (ok && k25_sweep_parse_record(&at, known, record)) {
        if (record->size > room) {
            char *larger = record->size < ROWS ? realloc(rows, (size_t)record->size) : NULL;
            rows = larger != NULL ? larger : rows;
            room = larger != NULL ? (size_t)record->size : room;
            ok = larger != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
        }
        size_t size = (size_t)record->size;
        uint64_t count = store->counts.rows;
        if (ok &&
            (!read_exactly(fd, rows, size) || crc64_ecma_refl(0, (const unsigned char *)rows, size) != record->sum))
            ok = damaged(shard, error);
        ok = ok && k25_digest_read(&store->digest, store->frame, rows, size, &count, error) &&
             k25_sweep_store_add(store, record->to, rows, size, &record->counts, error);
    }
    free(rows);
    return ok && (store->next == shard->to || damaged(shard, error));
}

static bool append_all(const struct shard *shards, size_t count, struct k25_sweep_store *store, struct k25_error *error)
{
    struct k25_sweep_record *record = malloc(sizeof *record);
    struct k25_sweep_counts *known = malloc(sizeof *known);
    bool ok = (record != NULL && known != NULL) || k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        int fd = open(shards[i].file, O_RDONLY | O_CLOEXEC);
        ok = fd >= 0 ? append(&shards[i], fd, store, record, known, error)
                     : k25_fail(error, K25_RESOURCE, "%s: cannot open", shards[i].file);
        if (fd >= 0)
            close(fd);
    }
    free(record);
    free(known);
    return ok;
}

bool k25_sweep_merge(const char *const *files, size_t count, const char *out, struct k25_sweep_frame *frame,
                     struct k25_sweep_store *store, struct k25_error *error)
{
    struct shard *shards = calloc(count + 1, sizeof *shards);
    bool ok = shards != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        ok = read_state(&shards[i], files[i], frame, i == 0, error) &&
             (strcmp(files[i], out) != 0 || k25_fail(error, K25_BAD_INPUT, "%s: cannot be merged into itself", out));
    }
    if (ok)
        qsort(shards, count, sizeof *shards, by_start);
    ok = ok && check_shards(shards, count, frame, error) &&
         k25_sweep_store_open(store, frame, out, 1, 1, 0, frame->points, false, error) &&
         append_all(shards, count, store, error) && k25_sweep_store_finish(store, error);
    for (size_t i = 0; shards != NULL && i < count; i++)
        free(shards[i].state);
    free(shards);
    return ok;
}
