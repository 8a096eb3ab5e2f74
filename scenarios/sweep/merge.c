/* Merges the files of shards into one. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "scenarios/sweep/internal.h"
#include "scenarios/sweep/store.h"

struct shard {
    const char *file;
    char state_file[1100];
    char *state;  /* text */
    size_t start; /* of its records */
    struct k25_sweep_shard_line line;
};

static bool read_state(struct shard *shard, const char *file, struct k25_sweep_layout *layout, bool first,
                       struct k25_error *error)
{
    size_t size, line;
    shard->file = file;
    snprintf(shard->state_file, sizeof shard->state_file, "%.1050s.state", file);
    if (!k25_file_exists(file))
        return k25_fail(error, K25_BAD_INPUT, "%s: no such file%s", file,
                        k25_file_exists(shard->state_file) ? "; its shard is not finished" : "");
    shard->state = k25_file_read(shard->state_file, K25_SWEEP_STATE_BYTES, &size, error);
    if (shard->state == NULL)
        return false;
    if (first && !k25_sweep_layout_parse(shard->state, shard->state_file, &size, layout, error))
        return false;
    size = strlen(layout->text);
    if (strncmp(shard->state, layout->text, size) != 0)
        return k25_fail(error, K25_BAD_INPUT, "%s: a shard of another sweep than the first file", file);
    if (!k25_sweep_parse_shard(shard->state + size, &shard->line, &line))
        return k25_fail(error, K25_BAD_INPUT, "%s: not the state of a shard", shard->state_file);
    shard->start = size + line;
    return true;
}

static int by_start(const void *left, const void *right)
{
    const struct k25_sweep_shard_line *a = &((const struct shard *)left)->line,
                                      *b = &((const struct shard *)right)->line;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->shard > b->shard) - (a->shard < b->shard);
}

/* Checks that every shard is given exactly once. */
static bool check_shards(const struct shard *shards, size_t count, const struct k25_sweep_layout *layout,
                         struct k25_error *error)
{
    uint64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (shards[i].line.shards != shards[0].line.shards)
            return k25_fail(error, K25_BAD_INPUT, "%s: shard of %" PRIu64 ", but %s is one of %" PRIu64, shards[i].file,
                            shards[i].line.shards, shards[0].file, shards[0].line.shards);
        if (i > 0 && shards[i].line.shard == shards[i - 1].line.shard)
            return k25_fail(error, K25_BAD_INPUT, "%s and %s are both shard %" PRIu64, shards[i - 1].file,
                            shards[i].file, shards[i].line.shard);
        if (shards[i].line.shard != i + 1 || shards[i].line.from != next)
            return k25_fail(error, K25_BAD_INPUT, "shard %zu of %" PRIu64 " is missing", i + 1, shards[0].line.shards);
        next = shards[i].line.to;
    }
    return next == layout->points ||
           k25_fail(error, K25_BAD_INPUT, "shard %zu of %" PRIu64 " is missing", count + 1, shards[0].line.shards);
}

/* Appends the rows of one shard to the store, chunk by chunk. */
static bool append(const struct shard *shard, int fd, struct k25_sweep_store *store, struct k25_error *error)
{
    struct k25_sweep_replay *replay =
        k25_sweep_replay_open(store->layout, shard->state + shard->start, fd, shard->line.from, shard->line.to, error);
    if (replay == NULL)
        return false;
    bool ok = true;
    enum k25_sweep_step step = K25_REPLAY_CHUNK;
    while (ok && (step = k25_sweep_replay_next(replay, error)) == K25_REPLAY_CHUNK) {
        const struct k25_sweep_record *record = &replay->record;
        ok = k25_sweep_store_add(store, record->to, replay->rows, (size_t)record->size, &replay->summary, error);
    }
    ok = ok && step != K25_REPLAY_FAILED;
    if (ok && (!replay->headed || replay->next != shard->line.to))
        ok = k25_fail(error, K25_BAD_INPUT, "%s: its rows are not those that %s was written for", shard->file,
                      shard->state_file);
    k25_sweep_replay_close(replay);
    return ok;
}

static bool append_all(const struct shard *shards, size_t count, struct k25_sweep_store *store, struct k25_error *error)
{
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        int fd = open(shards[i].file, O_RDONLY | O_CLOEXEC);
        ok = fd >= 0 ? append(&shards[i], fd, store, error)
                     : k25_fail(error, K25_RESOURCE, "%s: cannot open", shards[i].file);
        if (fd >= 0)
            close(fd);
    }
    return ok;
}

bool k25_sweep_merge(const char *const *files, size_t count, const char *out, struct k25_sweep_layout *layout,
                     struct k25_sweep_store *store, struct k25_error *error)
{
    struct shard *shards = calloc(count + 1, sizeof *shards);
    bool ok = shards != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        ok = read_state(&shards[i], files[i], layout, i == 0, error) &&
             (strcmp(files[i], out) != 0 || k25_fail(error, K25_BAD_INPUT, "%s: cannot be merged into itself", out));
    }
    if (ok)
        qsort(shards, count, sizeof *shards, by_start);
    ok = ok && check_shards(shards, count, layout, error) &&
         k25_sweep_store_open(store, layout, out, 1, 1, 0, layout->points, false, error) &&
         append_all(shards, count, store, error) && k25_sweep_store_finish(store, error);
    for (size_t i = 0; shards != NULL && i < count; i++)
        free(shards[i].state);
    free(shards);
    return ok;
}
