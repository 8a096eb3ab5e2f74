#include "calib/trace/write.h"

#include <isa-l.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { PIECE = 1 << 18, LEVEL = 1, THREAD = 4242 };

struct bytes {
    unsigned char *at;
    size_t size, room;
};

struct k25_trace_writer {
    char path[512];
    bool gzip, failed, first;
    int rank;
    struct bytes text; /* not yet compressed; the whole file when it is not */
    struct bytes out;
    struct isal_zstream stream;
    unsigned char level[ISAL_DEF_LVL1_DEFAULT];
};

static bool reserve(struct bytes *bytes, size_t more)
{
    if (bytes->size + more <= bytes->room)
        return true;
    size_t room = bytes->room > 0 ? bytes->room * 2 : 1 << 16;
    while (room < bytes->size + more)
        room *= 2;
    unsigned char *at = realloc(bytes->at, room);
    if (at == NULL)
        return false;
    bytes->at = at;
    bytes->room = room;
    return true;
}

/* Compresses `text` and appends it to `out`. */
static void compress_text(struct k25_trace_writer *w, bool end)
{
    w->stream.next_in = w->text.at;
    w->stream.avail_in = (uint32_t)w->text.size;
    w->stream.end_of_stream = end;
    do {
        if (w->failed || !reserve(&w->out, PIECE)) {
            w->failed = true;
            return;
        }
        w->stream.next_out = w->out.at + w->out.size;
        w->stream.avail_out = PIECE;
        w->failed = isal_deflate(&w->stream) != COMP_OK;
        w->out.size += PIECE - w->stream.avail_out;
    } while (w->stream.avail_out == 0);
    w->text.size = 0;
}

static void add(struct k25_trace_writer *w, const char *text, size_t size)
{
    if (w->failed || !reserve(&w->text, size)) {
        w->failed = true;
        return;
    }
    memcpy(w->text.at + w->text.size, text, size);
    w->text.size += size;
    if (w->gzip && w->text.size >= PIECE)
        compress_text(w, false);
}

static void print(struct k25_trace_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fixed texts and numbers: never longer than the array. */
static void print(struct k25_trace_writer *w, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof text)
        w->failed = true;
    else
        add(w, text, (size_t)size);
}

/* A string in its quotes. */
static void print_text(struct k25_trace_writer *w, const char *text)
{
    add(w, "\"", 1);
    for (const char *p = text; *p != '\0'; p++) {
        size_t plain = strcspn(p, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14"
                                  "\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        add(w, p, plain);
        p += plain;
        if (*p == '\0')
            break;
        if (*p == '"' || *p == '\\')
            print(w, "\\%c", *p);
        else
            print(w, "\\u%04x", (unsigned)*p);
    }
    add(w, "\"", 1);
}

/* ns as microseconds with three decimals. */
static void print_time(struct k25_trace_writer *w, const char *key, int64_t ns)
{
    uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    print(w, "\"%s\": %s%llu.%03d", key, ns < 0 ? "-" : "", (unsigned long long)(magnitude / 1000),
          (int)(magnitude % 1000));
}

static void begin_event(struct k25_trace_writer *w, const char *category, const char *name, int pid, int tid,
                        int64_t ts_ns, int64_t dur_ns)
{
    print(w, "%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": ", w->first ? "" : ",\n", category);
    w->first = false;
    print_text(w, name);
    print(w, ", \"pid\": %d, \"tid\": %d,\n    ", pid, tid);
    print_time(w, "ts", ts_ns);
    print(w, ", ");
    print_time(w, "dur", dur_ns);
    print(w, ",\n    \"args\": {\n      ");
}

static void end_event(struct k25_trace_writer *w)
{
    print(w, "\n    }\n  }");
}

static void print_correlation(struct k25_trace_writer *w, uint64_t correlation)
{
    if (correlation != 0)
        print(w, ", \"correlation\": %llu", (unsigned long long)correlation);
}

static void print_head(struct k25_trace_writer *w, const struct k25_trace_writer_options *options)
{
    print(w,
          "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": %d, \"name\": ", options->rank);
    print_text(w, options->device != NULL ? options->device : "");
    print(w, "\n    }\n  ],\n");
    if (options->world_size > 0)
        print(w, "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n", options->rank,
              options->world_size);
    print(w, "  \"displayTimeUnit\": \"ms\",\n");
    if (options->base_time_ns >= 0)
        print(w, "  \"baseTimeNanoseconds\": %lld,\n",
              (long long)(options->base_time_ns > 0 ? options->base_time_ns : K25_TRACE_BASE_NS));
    print(w, "  \"traceEvents\": [\n");
}

struct k25_trace_writer *k25_trace_writer_open(const char *path, const struct k25_trace_writer_options *options,
                                               struct k25_error *error)
{
    static const struct k25_trace_writer_options alone = {0};
    struct k25_trace_writer *w = calloc(1, sizeof *w);
    size_t length = strlen(path);
    if (w == NULL) {
        k25_fail(error, K25_RESOURCE, "%s: out of memory", path);
        return NULL;
    }
    options = options != NULL ? options : &alone;
    w->failed = length >= sizeof w->path;
    snprintf(w->path, sizeof w->path, "%s", path);
    w->gzip = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    w->first = true;
    w->rank = options->rank;
    isal_deflate_init(&w->stream);
    w->stream.gzip_flag = IGZIP_GZIP;
    w->stream.level = LEVEL;
    w->stream.level_buf = w->level;
    w->stream.level_buf_size = sizeof w->level;
    print_head(w, options);
    return w;
}

void k25_trace_write_kernel(struct k25_trace_writer *w, const struct k25_written_kernel *kernel)
{
    begin_event(w, "kernel", kernel->name, w->rank, kernel->stream, kernel->ts_ns, kernel->dur_ns);
    print(w, "\"queued\": 0, \"device\": %d, \"context\": 1,\n      \"stream\": %d", w->rank, kernel->stream);
    print_correlation(w, kernel->correlation);
    if (kernel->graph_id != 0)
        print(w, ",\n      \"graph id\": %llu, \"graph node id\": %llu", (unsigned long long)kernel->graph_id,
              (unsigned long long)kernel->graph_node);
    if (kernel->collective != NULL) {
        const struct k25_written_collective *c = kernel->collective;
        print(w, ",\n      \"Collective name\": ");
        print_text(w, c->name);
        print(w, ", \"In msg nelems\": %lld, \"Out msg nelems\": %lld, \"Group size\": %d, \"dtype\": ",
              (long long)c->in_elements, (long long)c->out_elements, c->group_size);
        print_text(w, c->dtype);
    }
    end_event(w);
}

void k25_trace_write_copy(struct k25_trace_writer *w, const char *name, int64_t ts_ns, int64_t dur_ns, int stream,
                          uint64_t correlation, uint64_t bytes)
{
    bool set = strncmp(name, "Memset", 6) == 0;
    begin_event(w, set ? "gpu_memset" : "gpu_memcpy", name, w->rank, stream, ts_ns, dur_ns);
    print(w, "\"device\": %d, \"context\": 1,\n      \"stream\": %d", w->rank, stream);
    print_correlation(w, correlation);
    print(w, ",\n      \"bytes\": %llu", (unsigned long long)bytes);
    end_event(w);
}

void k25_trace_write_call(struct k25_trace_writer *w, const char *name, int64_t ts_ns, int64_t dur_ns,
                          uint64_t correlation)
{
    begin_event(w, "cuda_runtime", name, THREAD + w->rank, THREAD + w->rank, ts_ns, dur_ns);
    print(w, "\"cbid\": %d", strstr(name, "GraphLaunch") != NULL ? 311 : 211);
    print_correlation(w, correlation);
    end_event(w);
}

void k25_trace_write_annotation(struct k25_trace_writer *w, const char *name, int64_t ts_ns, int64_t dur_ns, bool gpu,
                                uint64_t id)
{
    if (gpu)
        begin_event(w, "gpu_user_annotation", name, w->rank, 7, ts_ns, dur_ns);
    else
        begin_event(w, "user_annotation", name, THREAD + w->rank, THREAD + w->rank, ts_ns, dur_ns);
    if (id != 0)
        print(w, "\"External id\": %llu, ", (unsigned long long)id);
    print(w, "\"Record function id\": 0");
    end_event(w);
}

bool k25_trace_writer_close(struct k25_trace_writer *w, struct k25_error *error)
{
    print(w, "\n  ],\n  \"traceName\": ");
    print_text(w, w->path);
    print(w, "\n}\n");
    if (w->gzip && !w->failed)
        compress_text(w, true);
    const struct bytes *file = w->gzip ? &w->out : &w->text;
    bool ok = (!w->failed || k25_fail(error, K25_RESOURCE, "%s: out of memory, or a name too long", w->path)) &&
              k25_file_write(w->path, (const char *)file->at, file->size, error);
    k25_trace_writer_abandon(w);
    return ok;
}

void k25_trace_writer_abandon(struct k25_trace_writer *w)
{
    if (w == NULL)
        return;
    free(w->text.at);
    free(w->out.at);
    free(w);
}
