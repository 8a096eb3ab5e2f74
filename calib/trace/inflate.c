#include "calib/trace/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/igzip_lib.h>

enum { CHUNK = 1 << 17 };

struct k25_inflate {
    const char *name; /* the caller's, for messages */
    int fd;
    bool gzip, file_end, done, inside /* a member */, padded;
    enum k25_inflate_end end;
    uint64_t read; /* bytes of the file in `in` and before */
    struct inflate_state state;
    unsigned char in[CHUNK];
};

static bool system_fail(struct k25_error *error, const char *name, const char *doing, int code)
{
    const char *why = strerrordesc_np(code);
    return k25_fail(error, K25_RESOURCE, "%s: cannot %s: %s", name, doing, why == NULL ? "unknown error" : why);
}

/* Fills `in` when it is used up; at the end of the file it remains empty. */
static bool feed(struct k25_inflate *stream, struct k25_error *error)
{
    if (stream->state.avail_in > 0 || stream->file_end) {
        return true;
    }
    size_t size = 0;
    while (size < CHUNK && !stream->file_end) {
        ssize_t got = read(stream->fd, stream->in + size, CHUNK - size);
        if (got < 0 && errno != EINTR) {
            return system_fail(error, stream->name, "read", errno);
        }
        stream->file_end = got == 0;
        size += got > 0 ? (size_t)got : 0;
    }
    stream->read += size;
    stream->state.next_in = stream->in;
    stream->state.avail_in = (uint32_t)size;
    return true;
}

static bool start(struct k25_inflate *stream, struct k25_error *error)
{
    struct stat about;
    if (fstat(stream->fd, &about) != 0) {
        return system_fail(error, stream->name, "read", errno);
    }
    if (S_ISDIR(about.st_mode)) {
        return k25_fail(error, K25_BAD_INPUT, "%s: is a folder, expected a file", stream->name);
    }
    isal_inflate_init(&stream->state);
    if (!feed(stream, error)) {
        return false;
    }
    stream->gzip = stream->state.avail_in >= 2 && stream->in[0] == 0x1f && stream->in[1] == 0x8b;
    return true;
}

struct k25_inflate *k25_inflate_open(const char *path, struct k25_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        k25_fail(error, K25_BAD_INPUT, "%s: no such file", path[0] == '\0' ? "''" : path);
        return NULL;
    }
    if (fd < 0) {
        system_fail(error, path, "open", errno);
        return NULL;
    }
    struct k25_inflate *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
        close(fd);
        return NULL;
    }
    stream->name = path;
    stream->fd = fd;
    if (!start(stream, error)) {
        k25_inflate_close(stream);
        return NULL;
    }
    return stream;
}

static void finish(struct k25_inflate *stream, enum k25_inflate_end end)
{
    stream->done = true;
    stream->end = end == K25_INFLATE_WHOLE ? stream->end : end; /* a bad checksum seen before stays */
}

/* Between two members: begins the next one, or finds the end. Consecutive members are one text (RFC 1952, 2.2); tape
 * and block devices pad the last with zeros. */
static void between(struct k25_inflate *stream)
{
    struct inflate_state *state = &stream->state;
    if (state->avail_in == 0) {
        finish(stream, K25_INFLATE_WHOLE); /* feed() found no more bytes: the file ends here */
    } else if (state->next_in[0] == 0) {
        state->next_in++;
        state->avail_in--;
        stream->padded = true;
    } else if (stream->padded || state->next_in[0] != 0x1f) {
        finish(stream, K25_INFLATE_FOLLOWED);
    } else {
        isal_inflate_reset(state);
        state->crc_flag = ISAL_GZIP;
        stream->inside = true;
    }
}

/* Inflates into the room of `state` until it is full, the input is used up or the member ends. */
static void inside(struct k25_inflate *stream)
{
    struct inflate_state *state = &stream->state;
    uint32_t in = state->avail_in, out = state->avail_out;
    int code = isal_inflate(state);
    if (code == ISAL_INCORRECT_CHECKSUM) {
        stream->end = K25_INFLATE_BAD_CRC;
        stream->inside = false;
    } else if (code != ISAL_DECOMP_OK) {
        finish(stream, K25_INFLATE_DAMAGED);
    } else if (state->block_state == ISAL_BLOCK_FINISH) {
        stream->inside = false;
    } else if (state->avail_in == in && state->avail_out == out) {
        finish(stream, in == 0 ? K25_INFLATE_CUT : K25_INFLATE_DAMAGED);
    }
}

static bool next_gzip(struct k25_inflate *stream, char *out, size_t size, size_t *got, struct k25_error *error)
{
    struct inflate_state *state = &stream->state;
    uint32_t room = size < (1u << 30) ? (uint32_t)size : 1u << 30;
    state->next_out = (uint8_t *)out;
    state->avail_out = room;
    while (!stream->done && state->avail_out > 0) {
        if (!feed(stream, error)) {
            return false;
        }
        if (stream->inside) {
            inside(stream);
        } else {
            between(stream);
        }
    }
    *got = room - state->avail_out;
    return true;
}

bool k25_inflate_next(struct k25_inflate *stream, char *out, size_t size, size_t *got, struct k25_error *error)
{
    if (stream->gzip) {
        return next_gzip(stream, out, size, got, error);
    }
    size_t done = 0;
    while (done < size && !stream->done) {
        if (!feed(stream, error)) {
            return false;
        }
        size_t part = stream->state.avail_in;
        part = part < size - done ? part : size - done;
        if (part > 0) {
            memcpy(out + done, stream->state.next_in, part);
        }
        stream->state.next_in += part;
        stream->state.avail_in -= (uint32_t)part;
        done += part;
        stream->done = stream->state.avail_in == 0 && stream->file_end;
    }
    *got = done;
    return true;
}

bool k25_inflate_is_gzip(const struct k25_inflate *stream)
{
    return stream->gzip;
}

enum k25_inflate_end k25_inflate_end(const struct k25_inflate *stream)
{
    return stream->end;
}

uint64_t k25_inflate_taken(const struct k25_inflate *stream)
{
    return stream->read - stream->state.avail_in;
}

void k25_inflate_close(struct k25_inflate *stream)
{
    if (stream != NULL) {
        close(stream->fd);
        free(stream);
    }
}
