#include "scenarios/sweep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/crc64.h>

#include "base/file.h"
#include "base/print.h"
#include "scenarios/sweep/internal.h"

static bool fail(const char *file, const char *doing, struct k25_error *error)
{
    const char *why = strerrordesc_np(errno);
    return k25_fail(error, K25_RESOURCE, "%s: cannot %s: %s", file, doing, why != NULL ? why : "unknown error");
}

static bool write_all(int fd, const char *file, const char *bytes, size_t size, struct k25_error *error)
{
    while (size > 0) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno != EINTR)
            return fail(file, "write", error);
        bytes += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* ---- the lines of a state file, after its layout ---- */

static int print_shard(const struct k25_sweep_store *store, char *out, size_t size)
{
    return snprintf(out, size, "shard %" PRIu64 " %" PRIu64 " from %" PRIu64 " to %" PRIu64 "\n", store->shard,
                    store->shards, store->from, store->to);
}

bool k25_sweep_parse_shard(const char *text, struct k25_sweep_shard_line *line, size_t *size)
{
    int used = 0;
    if (sscanf(text, "shard %" SCNu64 " %" SCNu64 " from %" SCNu64 " to %" SCNu64 "%n", &line->shard, &line->shards,
               &line->from, &line->to, &used) != 4 ||
        used == 0 || text[used] != '\n')
        return false;
    *size = (size_t)used + 1;
    return true;
}

static size_t find_reason(const struct k25_sweep_counts *known, const char *text)
{
    size_t i = 0;
    while (i < known->reasons && strcmp(known->reason[i].text, text) != 0)
        i++;
    return i < known->reasons ? i : K25_SWEEP_REASONS - 1;
}

/* Adds a chunk's lines to `out`. `known` are all reasons including the chunk's; the first `declared` of them are in the
 * file already. */
static void print_record(FILE *out, const struct k25_sweep_record *record, const struct k25_sweep_counts *known,
                         size_t declared)
{
    const struct k25_sweep_counts *counts = &record->counts;
    for (size_t i = declared; i < known->reasons; i++)
        fprintf(out, "reason %s\n", known->reason[i].text);
    fprintf(out, "chunk %" PRIu64 " %" PRIu64 " %016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64, record->to,
            record->size, record->sum, counts->points, counts->evaluated, counts->rows);
    for (size_t i = 0; i < K25_SWEEP_CONSTRAINTS; i++) {
        if (counts->rejected[i] > 0)
            fprintf(out, " r%zu:%" PRIu64, i, counts->rejected[i]);
    }
    for (size_t i = 0; i < counts->reasons; i++) {
        if (counts->reason[i].count > 0)
            fprintf(out, " i%zu:%" PRIu64, find_reason(known, counts->reason[i].text), counts->reason[i].count);
    }
    fputs(" .\n", out);
}

/* " r0:12 i3:4 ." */
static bool parse_tail(const char *at, const char *end, const struct k25_sweep_counts *known,
                       struct k25_sweep_counts *counts)
{
    while (at < end && strncmp(at, " .", 2) != 0) {
        char kind;
        unsigned index;
        uint64_t count;
        int used = 0;
        if (sscanf(at, " %c%u:%" SCNu64 "%n", &kind, &index, &count, &used) != 3 || used == 0)
            return false;
        if (kind == 'r' && index < K25_SWEEP_CONSTRAINTS)
            counts->rejected[index] = count;
        else if (kind == 'i' && index < known->reasons && counts->reasons < K25_SWEEP_REASONS) {
            struct k25_sweep_reason *reason = &counts->reason[counts->reasons++];
            memcpy(reason->text, known->reason[index].text, sizeof reason->text);
            reason->count = count;
        } else
            return false;
        at += used;
    }
    return at + 2 == end;
}

/* Reads the next chunk at `*at`, which is set to the end of its line. Reasons declared before it are added to `known`.
 * False at the end, or where the text is truncated or invalid. */
static bool parse_record(const char **at, struct k25_sweep_counts *known, struct k25_sweep_record *record)
{
    const char *line = *at, *end;
    memset(record, 0, sizeof *record);
    while ((end = strchr(line, '\n')) != NULL) {
        if (strncmp(line, "reason ", 7) == 0 && known->reasons < K25_SWEEP_REASONS) {
            struct k25_sweep_reason *reason = &known->reason[known->reasons++];
            reason->count = 0;
            snprintf(reason->text, sizeof reason->text, "%.*s", (int)(end - line - 7), line + 7);
            line = end + 1;
            continue;
        }
        struct k25_sweep_counts *counts = &record->counts;
        int used = 0;
        if (sscanf(line, "chunk %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &record->to,
                   &record->size, &record->sum, &counts->points, &counts->evaluated, &counts->rows, &used) != 6 ||
            used == 0 || line + used > end || !parse_tail(line + used, end, known, counts))
            return false;
        *at = end + 1;
        return true;
    }
    return false;
}

/* ---- replaying records and rows ---- */

/* Reads up to `size` bytes of rows; `*have` is set to their number. */
static bool read_rows(struct k25_sweep_replay *replay, uint64_t size, size_t *have, struct k25_error *error)
{
    if (size > replay->room) {
        char *larger = size < SIZE_MAX / 2 ? realloc(replay->rows, (size_t)size) : NULL;
        if (larger == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        replay->rows = larger;
        replay->room = (size_t)size;
    }
    for (*have = 0; *have < size;) {
        ssize_t got = read(replay->fd, replay->rows + *have, (size_t)size - *have);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        *have += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool read_head(struct k25_sweep_replay *replay, struct k25_error *error)
{
    size_t size = strlen(replay->layout->head), have;
    if (!read_rows(replay, size, &have, error))
        return false;
    replay->headed = have == size && (size == 0 || memcmp(replay->rows, replay->layout->head, size) == 0);
    return true;
}

struct k25_sweep_replay *k25_sweep_replay_open(const struct k25_sweep_layout *layout, const char *records, int fd,
                                               uint64_t from, uint64_t to, struct k25_error *error)
{
    struct k25_sweep_replay *replay = calloc(1, sizeof *replay);
    if (replay == NULL) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    replay->layout = layout;
    replay->at = records;
    replay->fd = fd;
    replay->next = from;
    replay->to = to;
    k25_sweep_summary_open(layout, &replay->summary);
    if (read_head(replay, error))
        return replay;
    k25_sweep_replay_close(replay);
    return NULL;
}

enum k25_sweep_step k25_sweep_replay_next(struct k25_sweep_replay *replay, struct k25_error *error)
{
    struct k25_sweep_record *record = &replay->record;
    const char *at = replay->at;
    size_t have;
    if (!replay->headed || !parse_record(&at, &replay->known, record) || record->to <= replay->next ||
        record->to > replay->to)
        return K25_REPLAY_END;
    if (!read_rows(replay, record->size, &have, error))
        return K25_REPLAY_FAILED;
    if (have < record->size || crc64_ecma_refl(0, (const unsigned char *)replay->rows, have) != record->sum)
        return K25_REPLAY_END;
    k25_sweep_summary_clear(&replay->summary);
    if (!k25_sweep_summary_read(&replay->summary, replay->layout, replay->rows, have, error))
        return K25_REPLAY_FAILED;
    replay->summary.counts = record->counts;
    replay->next = record->to;
    replay->at = at;
    return K25_REPLAY_CHUNK;
}

void k25_sweep_replay_close(struct k25_sweep_replay *replay)
{
    if (replay == NULL)
        return;
    k25_sweep_summary_close(&replay->summary);
    free(replay->rows);
    free(replay);
}

/* ---- resuming ---- */

/* Adds every chunk whose rows agree with the state file; `*rows` and `*state` are set to the bytes that are kept. */
static bool replay_all(struct k25_sweep_store *store, const char *text, size_t start, off_t *rows, off_t *state,
                       struct k25_error *error)
{
    struct k25_sweep_replay *replay =
        k25_sweep_replay_open(store->layout, text + start, store->rows_fd, store->next, store->to, error);
    if (replay == NULL)
        return false;
    *rows = replay->headed ? (off_t)strlen(store->layout->head) : 0;
    enum k25_sweep_step step = k25_sweep_replay_next(replay, error);
    for (; step == K25_REPLAY_CHUNK; step = k25_sweep_replay_next(replay, error)) {
        if (!k25_sweep_summary_add(&store->summary, &replay->summary, replay->rows, error)) {
            step = K25_REPLAY_FAILED;
            break;
        }
        *rows += (off_t)replay->record.size;
        store->declared = replay->known.reasons;
    }
    store->next = replay->next;
    *state = replay->at - text;
    /* The list of reasons is that of the file, so that their indices keep their meaning. */
    struct k25_sweep_counts *counts = &store->summary.counts;
    while (counts->reasons < store->declared) {
        counts->reason[counts->reasons] = replay->known.reason[counts->reasons];
        counts->reasons++;
    }
    k25_sweep_replay_close(replay);
    return step == K25_REPLAY_END;
}

/* Starts with empty rows and a new state file. */
static bool start_afresh(struct k25_sweep_store *store, const char *shard, struct k25_error *error)
{
    const struct k25_sweep_layout *layout = store->layout;
    size_t size = strlen(layout->text), line = strlen(shard), head = strlen(layout->head);
    char *text = malloc(size + line + 1);
    if (text == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    memcpy(text, layout->text, size);
    memcpy(text + size, shard, line);
    bool ok =
        (ftruncate(store->state_fd, 0) == 0 && ftruncate(store->rows_fd, 0) == 0) || fail(store->part, "write", error);
    ok = ok && lseek(store->state_fd, 0, SEEK_SET) == 0 && lseek(store->rows_fd, 0, SEEK_SET) == 0 &&
         write_all(store->state_fd, store->state, text, size + line, error) &&
         write_all(store->rows_fd, store->part, layout->head, head, error);
    free(text);
    return ok;
}

static bool go_on(struct k25_sweep_store *store, const char *shard, const char *text, size_t size,
                  struct k25_error *error)
{
    size_t layout = strlen(store->layout->text), line = strlen(shard), both = layout + line;
    /* Killed while the first lines were written: nothing to resume. */
    bool begun = size < both && memcmp(text, store->layout->text, size < layout ? size : layout) == 0 &&
                 (size <= layout || memcmp(text + layout, shard, size - layout) == 0);
    if (begun)
        return start_afresh(store, shard, error);
    if (memcmp(text, store->layout->text, layout) != 0 || memcmp(text + layout, shard, line) != 0)
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: the state of another sweep: its files, version, format or shard differ from "
                        "those of this one; remove it to start again",
                        store->state);
    off_t rows, state;
    if (!replay_all(store, text, both, &rows, &state, error))
        return false;
    if (rows < (off_t)strlen(store->layout->head))
        return start_afresh(store, shard, error);
    return (ftruncate(store->rows_fd, rows) == 0 && lseek(store->rows_fd, rows, SEEK_SET) == rows &&
            ftruncate(store->state_fd, state) == 0 && lseek(store->state_fd, state, SEEK_SET) == state) ||
           fail(store->part, "write", error);
}

static void set_up(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, uint64_t from, uint64_t to)
{
    memset(store, 0, sizeof *store);
    store->layout = layout;
    store->rows_fd = store->state_fd = -1;
    store->shard = store->shards = 1;
    store->from = store->next = from;
    store->to = to;
    k25_sweep_summary_open(layout, &store->summary);
}

/* Opens FILE.part and FILE.state and locks them. */
static bool open_files(struct k25_sweep_store *store, struct k25_error *error)
{
    store->rows_fd = open(store->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (store->rows_fd < 0)
        return fail(store->part, "write", error);
    if (flock(store->rows_fd, LOCK_EX | LOCK_NB) != 0)
        return k25_fail(error, K25_RESOURCE, "%s: another sweep writes it", store->part);
    store->state_fd = open(store->state, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return store->state_fd >= 0 || fail(store->state, "write", error);
}

/* A pipe, a terminal or a device cannot be resumed: the rows are written without a journal. */
static bool open_device(struct k25_sweep_store *store, struct k25_error *error)
{
    snprintf(store->part, sizeof store->part, "%s", store->file);
    store->rows_fd = open(store->file, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (store->rows_fd < 0)
        return fail(store->file, "write", error);
    const char *head = store->layout->head;
    return write_all(store->rows_fd, store->file, head, strlen(head), error);
}

bool k25_sweep_store_open(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, const char *file,
                          uint64_t shard, uint64_t shards, uint64_t from, uint64_t to, bool resume,
                          struct k25_error *error)
{
    char line[160];
    struct stat about;
    set_up(store, layout, from, to);
    store->shard = shard;
    store->shards = shards;
    if (strlen(file) == 0 || strlen(file) >= sizeof store->file)
        return k25_fail(error, K25_BAD_INPUT, "'%.100s': no name for a file", file);
    snprintf(store->file, sizeof store->file, "%s", file);
    snprintf(store->part, sizeof store->part, "%s.part", file);
    snprintf(store->state, sizeof store->state, "%s.state", file);
    if (stat(file, &about) == 0 && S_ISDIR(about.st_mode))
        return k25_fail(error, K25_BAD_INPUT, "%s: is a folder, expected a file", file);
    if (stat(file, &about) == 0 && !S_ISREG(about.st_mode))
        return open_device(store, error);
    bool part = k25_file_exists(store->part), state = k25_file_exists(store->state);
    if (part && state && !resume)
        return k25_fail(error, K25_BAD_INPUT, "%s: an unfinished sweep; --resume goes on with it, or remove it",
                        store->part);
    print_shard(store, line, sizeof line);
    size_t size = 0;
    char *text = resume && state ? k25_file_read(store->state, K25_SWEEP_STATE_BYTES, &size, error) : NULL;
    if (resume && state && text == NULL)
        return false;
    if (text != NULL && !part && k25_file_exists(file) && strncmp(text, layout->text, strlen(layout->text)) != 0) {
        free(text);
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: the rows of another sweep, says its state; remove both to start again", file);
    }
    /* Finished, or killed just before the state file was removed: the rows are read, not computed again. */
    if (text != NULL && !part && strncmp(text, layout->text, strlen(layout->text)) == 0)
        part = rename(file, store->part) == 0;
    bool ok = open_files(store, error) &&
              (text != NULL && part ? go_on(store, line, text, size, error) : start_afresh(store, line, error));
    free(text);
    return ok;
}

bool k25_sweep_store_stream(struct k25_sweep_store *store, const struct k25_sweep_layout *layout, int fd, uint64_t from,
                            uint64_t to, struct k25_error *error)
{
    set_up(store, layout, from, to);
    store->rows_fd = fd;
    snprintf(store->part, sizeof store->part, "standard output");
    return fd < 0 || write_all(fd, store->part, layout->head, strlen(layout->head), error);
}

/* Adds a chunk's lines to the state. */
static bool add_record(struct k25_sweep_store *store, const struct k25_sweep_record *record, struct k25_error *error)
{
    struct k25_printer lines;
    if (!k25_print_open(&lines, error))
        return false;
    print_record(lines.out, record, &store->summary.counts, store->declared);
    store->declared = store->summary.counts.reasons;
    char *text = k25_print_close(&lines, error);
    bool ok = text != NULL && write_all(store->state_fd, store->state, text, strlen(text), error);
    free(text);
    return ok;
}

bool k25_sweep_store_add(struct k25_sweep_store *store, uint64_t to, const char *rows, size_t size,
                         const struct k25_sweep_summary *summary, struct k25_error *error)
{
    store->next = to;
    if (!k25_sweep_summary_add(&store->summary, summary, rows, error) ||
        (store->rows_fd >= 0 && !write_all(store->rows_fd, store->part, rows, size, error)))
        return false;
    if (store->state_fd < 0)
        return true;
    struct k25_sweep_record record = {to, size, crc64_ecma_refl(0, (const unsigned char *)rows, size), summary->counts};
    return add_record(store, &record, error);
}

bool k25_sweep_store_finish(struct k25_sweep_store *store, struct k25_error *error)
{
    if (store->state_fd < 0)
        return true;
    if (fsync(store->rows_fd) != 0 || fsync(store->state_fd) != 0)
        return fail(store->part, "write", error);
    if (rename(store->part, store->file) != 0)
        return fail(store->file, "write", error);
    if (store->shards == 1)
        unlink(store->state);
    return true;
}

void k25_sweep_store_close(struct k25_sweep_store *store)
{
    if (store->layout == NULL)
        return;
    if (store->state_fd >= 0) {
        close(store->state_fd);
        close(store->rows_fd);
    } else if (store->file[0] != '\0' && store->rows_fd >= 0) {
        close(store->rows_fd);
    }
    k25_sweep_summary_close(&store->summary);
    store->layout = NULL;
}
