#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/igzip_lib.h>

#include "base/text.h"

enum { CHUNK = 1 << 16, LINKS = 40 /* as many as Linux follows */, TRIES = 100 };

struct reader {
    const char *name; /* for messages */
    int fd;
    size_t limit;
    struct k25_error *error;
    char *bytes; /* what has been read, inflated; room does not count the terminating zero byte */
    size_t size, room;
    unsigned char in[CHUNK]; /* as it comes from the file */
    size_t in_size;
    bool end;
    struct inflate_state state;
};

static bool system_fail(struct k25_error *error, const char *name, const char *doing, int code)
{
    const char *why = strerrordesc_np(code); /* unlike strerror: any thread, any locale */
    return k25_fail(error, K25_RESOURCE, "%s: cannot %s: %s", name, doing, why == NULL ? "unknown error" : why);
}

static bool too_large(struct reader *reader)
{
    char limit[40];
    k25_text_count((double)reader->limit, limit, sizeof limit);
    return k25_fail(reader->error, K25_BAD_INPUT, "%s: larger than %s bytes, the most that is read", reader->name,
                    limit);
}

/* Makes room for more bytes: up to one byte past the limit, so that excess can be detected. */
static bool make_room(struct reader *reader)
{
    if (reader->size < reader->room) {
        return true;
    }
    size_t most = reader->limit < SIZE_MAX / 2 ? reader->limit + 1 : SIZE_MAX / 2;
    if (reader->room >= most) {
        return too_large(reader);
    }
    size_t room = reader->room < CHUNK ? CHUNK : reader->room * 2;
    room = room < most ? room : most;
    char *bytes = realloc(reader->bytes, room + 1);
    if (bytes == NULL) {
        return k25_fail(reader->error, K25_RESOURCE, "%s: out of memory", reader->name);
    }
    reader->bytes = bytes;
    reader->room = room;
    return true;
}

/* Fills `in`: a pipe may return single bytes and the magic has two. */
static bool refill(struct reader *reader)
{
    reader->in_size = 0;
    while (reader->in_size < CHUNK && !reader->end) {
        ssize_t got = read(reader->fd, reader->in + reader->in_size, CHUNK - reader->in_size);
        if (got < 0 && errno != EINTR) {
            return system_fail(reader->error, reader->name, "read", errno);
        }
        reader->end = got == 0;
        reader->in_size += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool read_plain(struct reader *reader)
{
    while (reader->in_size > 0) {
        size_t taken = 0;
        while (taken < reader->in_size) {
            if (!make_room(reader)) {
                return false;
            }
            size_t part = reader->in_size - taken, room = reader->room - reader->size;
            part = part < room ? part : room;
            memcpy(reader->bytes + reader->size, reader->in + taken, part);
            taken += part;
            reader->size += part;
        }
        if (!refill(reader)) {
            return false;
        }
    }
    return reader->size <= reader->limit || too_large(reader);
}

static bool inflate_fail(struct reader *reader, int code)
{
    const char *what = code == ISAL_INCORRECT_CHECKSUM ? "its checksum does not match"
                       : code == ISAL_INVALID_WRAPPER || code == ISAL_UNSUPPORTED_METHOD
                           ? "a header is wrong"
                           : "its data cannot be inflated";
    return k25_fail(reader->error, K25_BAD_INPUT, "%s: the gzip file is damaged: %s", reader->name, what);
}

/* Reads more input when the buffer is empty; at the end of the file it stays empty. */
static bool feed(struct reader *reader)
{
    if (reader->state.avail_in > 0) {
        return true;
    }
    bool done = refill(reader);
    reader->state.next_in = reader->in;
    reader->state.avail_in = (uint32_t)reader->in_size;
    return done;
}

static bool inflate_member(struct reader *reader)
{
    struct inflate_state *state = &reader->state;
    isal_inflate_reset(state);
    state->crc_flag = ISAL_GZIP;
    while (state->block_state != ISAL_BLOCK_FINISH) {
        if (!make_room(reader) || !feed(reader)) {
            return false;
        }
        size_t room = reader->room - reader->size;
        uint32_t out = room < (1u << 30) ? (uint32_t)room : 1u << 30, in = state->avail_in;
        state->next_out = (uint8_t *)reader->bytes + reader->size;
        state->avail_out = out;
        int code = isal_inflate(state);
        reader->size += out - state->avail_out;
        if (code != ISAL_DECOMP_OK) {
            return inflate_fail(reader, code);
        }
        bool stuck = state->avail_in == in && state->avail_out == out;
        if (stuck && state->block_state != ISAL_BLOCK_FINISH) {
            return in > 0 ? inflate_fail(reader, ISAL_INVALID_BLOCK)
                          : k25_fail(reader->error, K25_BAD_INPUT,
                                     "%s: the gzip file is cut off, its last part is missing", reader->name);
        }
    }
    return reader->size <= reader->limit || too_large(reader);
}

/* Consecutive members are one text (RFC 1952, 2.2); tape and block devices pad the last with zeros. */
static bool read_gzip(struct reader *reader)
{
    struct inflate_state *state = &reader->state;
    isal_inflate_init(state);
    state->next_in = reader->in;
    state->avail_in = (uint32_t)reader->in_size;
    bool padded = false;
    while (state->avail_in > 0) {
        if (state->next_in[0] == 0) {
            state->next_in++;
            state->avail_in--;
            padded = true;
        } else if (padded || state->next_in[0] != 0x1f) {
            return k25_fail(reader->error, K25_BAD_INPUT, "%s: the gzip file has other data after its last member",
                            reader->name);
        } else if (!inflate_member(reader)) {
            return false;
        }
        if (!feed(reader)) {
            return false;
        }
    }
    return true;
}

static bool read_all(struct reader *reader)
{
    struct stat about;
    if (fstat(reader->fd, &about) != 0) {
        return system_fail(reader->error, reader->name, "read", errno);
    }
    if (S_ISDIR(about.st_mode)) {
        return k25_fail(reader->error, K25_BAD_INPUT, "%s: is a folder, expected a file", reader->name);
    }
    if (!refill(reader)) {
        return false;
    }
    bool gzip = reader->in_size >= 2 && reader->in[0] == 0x1f && reader->in[1] == 0x8b;
    /* Refused before any of it is read into memory. */
    if (!gzip && S_ISREG(about.st_mode) && (uintmax_t)about.st_size > reader->limit) {
        return too_large(reader);
    }
    if (!(gzip ? read_gzip(reader) : read_plain(reader)) || !make_room(reader)) {
        return false;
    }
    reader->bytes[reader->size] = '\0';
    return true;
}

static int open_for_reading(const char *path, struct k25_error *error)
{
    if (strcmp(path, "-") == 0) {
        return STDIN_FILENO;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        k25_fail(error, K25_BAD_INPUT, "%s: no such file", path[0] == '\0' ? "''" : path);
    } else if (fd < 0) {
        system_fail(error, path, "open", errno);
    }
    return fd;
}

char *k25_file_read(const char *path, size_t limit, size_t *size, struct k25_error *error)
{
    int fd = open_for_reading(path, error);
    if (fd < 0) {
        return NULL;
    }
    char *bytes = NULL;
    struct reader *reader = malloc(sizeof *reader); /* too big for the stack */
    if (reader == NULL) {
        k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
    } else {
        reader->name = fd == STDIN_FILENO ? "standard input" : path;
        reader->fd = fd;
        reader->limit = limit;
        reader->error = error;
        reader->bytes = NULL;
        reader->size = reader->room = reader->in_size = 0;
        reader->end = false;
        if (read_all(reader)) {
            bytes = reader->bytes;
            *size = reader->size;
        } else {
            free(reader->bytes);
        }
        free(reader);
    }
    if (fd != STDIN_FILENO) {
        close(fd);
    }
    return bytes;
}

bool k25_path_beside(const char *from, const char *name, char *out, size_t size)
{
    const char *slash = strrchr(from, '/');
    int folder = name[0] == '/' || slash == NULL ? 0 : (int)(slash - from + 1);
    int length = snprintf(out, size, "%.*s%s", folder, from, name);
    return length >= 0 && (size_t)length < size;
}

bool k25_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISDIR(about.st_mode);
}

/* Returns zero or the errno of the failure. */
static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

/* A pipe, a terminal or a device cannot be replaced by a rename: write to it directly. */
static bool write_direct(const char *path, const char *bytes, size_t size, struct k25_error *error)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return system_fail(error, path, "write", errno);
    }
    int code = write_all(fd, bytes, size);
    if (close(fd) != 0 && code == 0) {
        code = errno;
    }
    return code == 0 || system_fail(error, path, "write", code);
}

static bool starts_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

/* Follows the links of `target` (room PATH_MAX) in place, dangling ones too, so that the rename replaces the
 * file and not the link. Returns false with errno set. */
static bool follow(char *target, bool *descriptor)
{
    for (int links = 0; links <= LINKS; links++) {
        /* /dev/stdout resolves to such a name: an open descriptor, not a file to replace. */
        *descriptor = starts_with(target, "/proc/") || starts_with(target, "/dev/fd/");
        struct stat about;
        if (*descriptor || lstat(target, &about) != 0 || !S_ISLNK(about.st_mode)) {
            return true;
        }
        char link[PATH_MAX], next[PATH_MAX];
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) {
            return false;
        }
        link[length] = '\0';
        if (!k25_path_beside(target, link, next, sizeof next)) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(target, next, sizeof next);
    }
    errno = ELOOP;
    return false;
}

/* Opens ".name.XXXXXX" in the folder of `target`. Not mkstemp: it sets mode 0600, and the umask cannot be read without
 * changing it for every thread. */
static int open_temporary(const char *target, char *name, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *slash = strrchr(target, '/');
    const char *base = slash == NULL ? target : slash + 1;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        unsigned char random[6];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
            return -1;
        }
        char tail[7] = "";
        for (size_t i = 0; i < sizeof random; i++) {
            tail[i] = letters[random[i] % 64];
        }
        /* The name may have the maximum length; the temporary one is then truncated. */
        int length = snprintf(name, size, "%.*s.%.200s.%s", (int)(base - target), target, base, tail);
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* Makes the rename durable. The file is already in place and some file systems cannot sync a folder, so failure is
 * ignored. */
static void sync_folder(const char *target)
{
    char folder[PATH_MAX];
    if (!k25_path_beside(target, ".", folder, sizeof folder)) {
        return;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static bool write_beside(const char *path, const char *target, const char *bytes, size_t size, struct k25_error *error)
{
    char temporary[PATH_MAX];
    int fd = open_temporary(target, temporary, sizeof temporary);
    if (fd < 0 && errno == ENOENT) {
        return k25_fail(error, K25_RESOURCE, "%s: cannot write: its folder does not exist", path);
    }
    if (fd < 0) {
        return system_fail(error, path, "write", errno);
    }
    int code = write_all(fd, bytes, size);
    if (code == 0 && fsync(fd) != 0) {
        code = errno;
    }
    if (close(fd) != 0 && code == 0) {
        code = errno;
    }
    if (code == 0 && rename(temporary, target) != 0) {
        code = errno;
    }
    if (code != 0) {
        unlink(temporary);
        return system_fail(error, path, "write", code);
    }
    sync_folder(target);
    return true;
}

bool k25_file_write(const char *path, const char *bytes, size_t size, struct k25_error *error)
{
    char target[PATH_MAX];
    struct stat about;
    if (path[0] == '\0') {
        return k25_fail(error, K25_BAD_INPUT, "'': cannot write to an empty name");
    }
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) {
        return k25_fail(error, K25_BAD_INPUT, "%s: is a folder, expected a file", path);
    }
    if (exists && !S_ISREG(about.st_mode)) {
        return write_direct(path, bytes, size, error);
    }
    int length = snprintf(target, sizeof target, "%s", path);
    if (length < 0 || (size_t)length >= sizeof target) {
        return system_fail(error, path, "write", ENAMETOOLONG);
    }
    bool descriptor = false;
    if (!follow(target, &descriptor)) {
        return system_fail(error, path, "write", errno);
    }
    return descriptor ? write_direct(path, bytes, size, error) : write_beside(path, target, bytes, size, error);
}
