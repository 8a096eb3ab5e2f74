#include "scenarios/sweep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/crc64.h>

#include "base/file.h"
#include "base/print.h"
#include "scenarios/sweep/journal_internal.h"

enum { STATE_BYTES = 1 << 30 };

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

/* ---- going on where an earlier run stopped ---- */

/* The sum of the next `size` bytes of the rows, which the digest takes in when `digest` says so. False: they are
 * not there. */
static bool read_rows(int fd, char **buffer, size_t *room, uint64_t size, uint64_t *sum, struct k25_error *error)
{
    if (size > *room) {
        char *larger = size < SIZE_MAX / 2 ? realloc(*buffer, (size_t)size) : NULL;
        if (larger == NULL)
            return k25_fail(error, K25_RESOURCE, "out of memory");
        *buffer = larger;
        *room = (size_t)size;
    }
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, *buffer + have, (size_t)size - have);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    /* Rows that are cut off sum to something else. */
    *sum = crc64_ecma_refl(0, (const unsigned char *)*buffer, have) + (have < size);
    return true;
}

/* Takes in every chunk whose rows are what the state says; `*rows` and `*state` become the bytes that can be kept.
 */
static bool replay(struct k25_sweep_store *store, const char *text, size_t start, off_t *rows, off_t *state,
                   struct k25_error *error)
{
    struct k25_sweep_record *record = malloc(sizeof *record);
    struct k25_sweep_counts *known = calloc(1, sizeof *known);
    char *buffer = NULL;
    size_t room = 0;
    const char *at = text + start;
    uint64_t sum, head = strlen(store->frame->head);
    bool ok = (record != NULL && known != NULL) || k25_fail(error, K25_RESOURCE, "out of memory");
    *state = (off_t)start;
    *rows = 0;
    ok = ok && read_rows(store->rows_fd, &buffer, &room, head, &sum, error);
    bool whole = ok && (head == 0 || (sum == crc64_ecma_refl(0, (const unsigned char *)store->frame->head, head)));
    *rows = whole ? (off_t)head : 0;
    while (ok && whole && k25_sweep_parse_record(&at, known, record)) {
        ok = read_rows(store->rows_fd, &buffer, &room, record->size, &sum, error);
        whole = ok && sum == record->sum && record->to > store->next && record->to <= store->to;
        if (!whole)
            break;
        uint64_t count = store->counts.rows;
        ok = k25_digest_read(&store->digest, store->frame, buffer, (size_t)record->size, &count, error);
        k25_sweep_counts_add(&store->counts, &record->counts);
        store->next = record->to;
        *rows += (off_t)record->size;
        *state = at - text;
        store->told = known->reasons;
    }
    /* The list of reasons is that of the file, so that their numbers go on meaning the same. */
    for (size_t i = store->counts.reasons; ok && i < store->told; i++)
        store->counts.reason[store->counts.reasons++] = known->reason[i];
    free(buffer);
    free(record);
    free(known);
    return ok;
}

/* Empty rows and a fresh state. */
static bool start_afresh(struct k25_sweep_store *store, const char *shard, struct k25_error *error)
{
    const struct k25_sweep_frame *frame = store->frame;
    size_t size = strlen(frame->text), line = strlen(shard), head = strlen(frame->head);
    char *text = malloc(size + line + 1);
    if (text == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    memcpy(text, frame->text, size);
    memcpy(text + size, shard, line);
    bool ok =
        (ftruncate(store->state_fd, 0) == 0 && ftruncate(store->rows_fd, 0) == 0) || fail(store->part, "write", error);
    ok = ok && lseek(store->state_fd, 0, SEEK_SET) == 0 && lseek(store->rows_fd, 0, SEEK_SET) == 0 &&
         write_all(store->state_fd, store->state, text, size + line, error) &&
         write_all(store->rows_fd, store->part, frame->head, head, error);
    free(text);
    return ok;
}

static bool go_on(struct k25_sweep_store *store, const char *shard, const char *text, size_t size,
                  struct k25_error *error)
{
    size_t frame = strlen(store->frame->text), line = strlen(shard), both = frame + line;
    /* Killed while the first lines were written: there is nothing to go on with. */
    bool begun = size < both && memcmp(text, store->frame->text, size < frame ? size : frame) == 0 &&
                 (size <= frame || memcmp(text + frame, shard, size - frame) == 0);
    if (begun)
        return start_afresh(store, shard, error);
    if (memcmp(text, store->frame->text, frame) != 0 || memcmp(text + frame, shard, line) != 0)
        return k25_fail(error, K25_BAD_INPUT,
                        "%s: the state of another sweep: its files, version, format or shard differ from "
                        "those of this one; remove it to start again",
                        store->state);
    off_t rows, state;
    if (!replay(store, text, both, &rows, &state, error))
        return false;
    if (rows < (off_t)strlen(store->frame->head))
        return start_afresh(store, shard, error);
    return (ftruncate(store->rows_fd, rows) == 0 && lseek(store->rows_fd, rows, SEEK_SET) == rows &&
            ftruncate(store->state_fd, state) == 0 && lseek(store->state_fd, state, SEEK_SET) == state) ||
           fail(store->part, "write", error);
}

static void set_up(struct k25_sweep_store *store, const struct k25_sweep_frame *frame, uint64_t from, uint64_t to)
{
    memset(store, 0, sizeof *store);
    store->frame = frame;
    store->rows_fd = store->state_fd = -1;
    store->shard = store->shards = 1;
    store->from = store->next = from;
    store->to = to;
    k25_digest_open(frame, &store->digest);
}

/* Opens FILE.part and FILE.state, and keeps others from them. */
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

/* A pipe, a terminal, a device: nothing there can be gone on with, so the rows just go out. */
static bool open_device(struct k25_sweep_store *store, struct k25_error *error)
{
    snprintf(store->part, sizeof store->part, "%s", store->file);
    store->rows_fd = open(store->file, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (store->rows_fd < 0)
        return fail(store->file, "write", error);
    const char *head = store->frame->head;
    return write_all(store->rows_fd, store->file, head, strlen(head), error);
}

bool k25_sweep_store_open(struct k25_sweep_store *store, const struct k25_sweep_frame *frame, const char *file,
                          uint64_t shard, uint64_t shards, uint64_t from, uint64_t to, bool resume,
                          struct k25_error *error)
{
    char line[160];
    struct stat about;
    set_up(store, frame, from, to);
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
    k25_sweep_print_shard(line, sizeof line, shard, shards, from, to);
    size_t size = 0;
    char *text = resume && state ? k25_file_read(store->state, STATE_BYTES, &size, error) : NULL;
    if (resume && state && text == NULL)
        return false;
    /* Finished, or killed just before its state went: the rows are looked through again, not made again. */
    if (text != NULL && !part && strncmp(text, frame->text, strlen(frame->text)) == 0)
        part = rename(file, store->part) == 0;
    bool ok = open_files(store, error) &&
              (text != NULL && part ? go_on(store, line, text, size, error) : start_afresh(store, line, error));
    free(text);
    return ok;
}

bool k25_sweep_store_stream(struct k25_sweep_store *store, const struct k25_sweep_frame *frame, int fd, uint64_t from,
                            uint64_t to, struct k25_error *error)
{
    set_up(store, frame, from, to);
    store->rows_fd = fd;
    snprintf(store->part, sizeof store->part, "standard output");
    return fd < 0 || write_all(fd, store->part, frame->head, strlen(frame->head), error);
}

bool k25_sweep_store_add(struct k25_sweep_store *store, uint64_t to, const char *rows, size_t size,
                         const struct k25_sweep_counts *counts, struct k25_error *error)
{
    store->next = to;
    k25_sweep_counts_add(&store->counts, counts);
    if (store->rows_fd >= 0 && !write_all(store->rows_fd, store->part, rows, size, error))
        return false;
    if (store->state_fd < 0)
        return true;
    struct k25_printer line;
    struct k25_sweep_record record = {to, size, crc64_ecma_refl(0, (const unsigned char *)rows, size), *counts};
    if (!k25_print_open(&line, error))
        return false;
    k25_sweep_print_record(line.out, &record, &store->counts, store->told);
    store->told = store->counts.reasons;
    char *text = k25_print_close(&line, error);
    bool ok = text != NULL && write_all(store->state_fd, store->state, text, strlen(text), error);
    free(text);
    return ok;
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
    if (store->frame == NULL)
        return;
    if (store->state_fd >= 0) {
        close(store->state_fd);
        close(store->rows_fd);
    } else if (store->file[0] != '\0' && store->rows_fd >= 0) {
        close(store->rows_fd);
    }
    k25_digest_close(&store->digest);
    store->frame = NULL;
}
