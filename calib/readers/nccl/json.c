/* nccl-tests as JSON: the report of its own --report option ("results": one object a row), and the one proposed
 * before it (pull request 318: "benchmark": objects keyed by size, "oop_time", "ip_time"). */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "calib/readers/nccl/internal.h"
#include "calib/readers/text/json_cursor.h"

struct walk {
    struct k25_nccl_reader *reader;
    struct k25_open_run *open;
    struct k25_json json;
    size_t counted; /* bytes whose line ends have been counted */
    bool out_of_memory;
};

/* The number of the line of byte `at`; calls must have rising `at`. */
static int line_of(struct walk *w, size_t at)
{
    for (; w->counted < at; w->counted++)
        w->reader->evidence.line += w->json.text[w->counted] == '\n';
    return w->reader->evidence.line;
}

static bool text_of(struct walk *w, const char **text)
{
    struct k25_json_value value;
    if (!k25_json_scalar(&w->json, &value))
        return false;
    *text = k25_nccl_text(w->reader, k25_trim(value.text));
    w->out_of_memory |= *text == NULL;
    return *text != NULL;
}

static bool real_of(struct walk *w, double *number)
{
    struct k25_json_value value;
    char c = k25_json_peek(&w->json);
    if (c == '{' || c == '[')
        return k25_json_skip(&w->json);
    if (!k25_json_scalar(&w->json, &value))
        return false;
    value.text = k25_trim(value.text);
    if (k25_json_real(value, number) && (isnan(*number) || (*number >= -1 && *number < 9e18)))
        return true;
    w->json.fault = "expected a number";
    return false;
}

static bool whole_of(struct walk *w, int *number)
{
    double value = NAN;
    if (!real_of(w, &value))
        return false;
    if (value >= 0 && value <= INT_MAX)
        *number = (int)value;
    return true;
}

static bool wrong_of(struct walk *w, int64_t *wrong)
{
    double value = NAN;
    if (!real_of(w, &value))
        return false;
    *wrong = isnan(value) ? -1 : llround(value);
    return true;
}

static bool time_of(struct walk *w, struct k25_nccl_time *time)
{
    struct k25_span key;
    if (k25_json_peek(&w->json) != '{')
        return k25_json_skip(&w->json);
    k25_json_enter(&w->json, '{');
    while (k25_json_key(&w->json, &key)) {
        bool good = k25_span_is(key, "time")       ? real_of(w, &time->us)
                    : k25_span_is(key, "cpu_time") ? real_of(w, &time->us)
                    : k25_span_is(key, "alg_bw")   ? real_of(w, &time->algbw)
                    : k25_span_is(key, "bus_bw")   ? real_of(w, &time->busbw)
                    : k25_span_is(key, "nwrong")   ? wrong_of(w, &time->wrong)
                                                   : k25_json_skip(&w->json);
        if (!good)
            return false;
        w->open->run.cpu_time |= k25_span_is(key, "cpu_time");
    }
    return w->json.fault == NULL;
}

/* "oop_time", "ip_busbw": the keys of pull request 318. */
static bool flat_time(struct walk *w, struct k25_span key, struct k25_nccl_row *row)
{
    bool in_place = k25_span_starts(key, "ip_");
    struct k25_nccl_time *time = in_place ? &row->in_place : &row->out_of_place;
    struct k25_span what = k25_after(key, in_place ? 3 : 4);
    return k25_span_is(what, "time")    ? real_of(w, &time->us)
           : k25_span_is(what, "algbw") ? real_of(w, &time->algbw)
           : k25_span_is(what, "busbw") ? real_of(w, &time->busbw)
           : k25_span_is(what, "error") ? wrong_of(w, &time->wrong)
                                        : k25_json_skip(&w->json);
}

static bool row_of(struct walk *w, double bytes)
{
    const struct k25_nccl_time none = {NAN, NAN, NAN, NAN, -1};
    struct k25_nccl_row row = {.type = "", .redop = "", .root = -1, .out_of_place = none, .in_place = none};
    double count = 0, root = -1;
    struct k25_span key;
    size_t at = w->json.at;
    if (!k25_json_enter(&w->json, '{'))
        return false;
    while (k25_json_key(&w->json, &key)) {
        bool flat = k25_span_starts(key, "oop_") || k25_span_starts(key, "ip_");
        bool good = flat                               ? flat_time(w, key, &row)
                    : k25_span_is(key, "size")         ? real_of(w, &bytes)
                    : k25_span_is(key, "count")        ? real_of(w, &count)
                    : k25_span_is(key, "root")         ? real_of(w, &root)
                    : k25_span_is(key, "type")         ? text_of(w, &row.type)
                    : k25_span_is(key, "redop")        ? text_of(w, &row.redop)
                    : k25_span_is(key, "out_of_place") ? time_of(w, &row.out_of_place)
                    : k25_span_is(key, "in_place")     ? time_of(w, &row.in_place)
                                                       : k25_json_skip(&w->json);
        if (!good)
            return false;
    }
    if (w->json.fault != NULL)
        return false;
    struct k25_evidence *evidence = &w->reader->evidence;
    bool timed = row.out_of_place.us > 0 || row.in_place.us > 0;
    if (!(bytes >= 0) || !(count >= 0) || !timed) {
        w->open->damaged++;
        return k25_json_fault(evidence, at, "a row without a size or a time");
    }
    row.bytes = (uint64_t)bytes;
    row.count = (uint64_t)count;
    row.line = line_of(w, at);
    row.root = root >= 0 && root <= INT_MAX ? (int)root : -1;
    return k25_nccl_row_add(w->reader, w->open, &row, (struct k25_span){evidence->text + at, 0});
}

/* [{...}, {...}] as rows, or [{"8192": {...}, "16384": {...}}]. */
static bool rows_of(struct walk *w, bool keyed)
{
    if (!k25_json_enter(&w->json, '['))
        return false;
    while (k25_json_entry(&w->json)) {
        struct k25_span key;
        if (!keyed) {
            if (!row_of(w, NAN))
                return false;
            continue;
        }
        if (!k25_json_enter(&w->json, '{'))
            return false;
        while (k25_json_key(&w->json, &key)) {
            long long bytes = 0;
            bool row = k25_span_count(key, &bytes);
            if (!(row ? row_of(w, (double)bytes) : k25_json_skip(&w->json)))
                return false;
        }
    }
    return w->json.fault == NULL;
}

/* The devices of all ranks; the name of the first. */
static bool devices(struct walk *w)
{
    struct k25_span key;
    if (!k25_json_enter(&w->json, '['))
        return false;
    while (k25_json_entry(&w->json)) {
        const char *info = "";
        int rank = -1;
        if (!k25_json_enter(&w->json, '{'))
            return false;
        while (k25_json_key(&w->json, &key)) {
            bool good = k25_span_is(key, "rank")          ? whole_of(w, &rank)
                        : k25_span_is(key, "device_info") ? text_of(w, &info)
                                                          : k25_json_skip(&w->json);
            if (!good)
                return false;
        }
        if (rank > w->open->largest_rank && rank < 1 << 24)
            w->open->largest_rank = rank;
        if (w->open->run.device[0] == '\0')
            w->open->run.device = info;
    }
    return w->json.fault == NULL;
}

static bool config(struct walk *w)
{
    struct k25_nccl_run *run = &w->open->run;
    struct k25_span key;
    if (!k25_json_enter(&w->json, '{'))
        return false;
    while (k25_json_key(&w->json, &key)) {
        bool good = k25_span_is(key, "nthreads")                ? whole_of(w, &run->threads)
                    : k25_span_is(key, "ngpus")                 ? whole_of(w, &run->gpus)
                    : k25_span_is(key, "warmup_iters")          ? whole_of(w, &run->warmup)
                    : k25_span_is(key, "iterations")            ? whole_of(w, &run->iterations)
                    : k25_span_is(key, "aggregated_iterations") ? whole_of(w, &run->aggregated)
                    : k25_span_is(key, "graph")                 ? whole_of(w, &run->graph)
                    : k25_span_is(key, "devices")               ? devices(w)
                                                                : k25_json_skip(&w->json);
        if (!good)
            return false;
    }
    return w->json.fault == NULL;
}

/* {"count": 0, "okay": true}: the number under `name`. */
static bool member(struct walk *w, const char *name, double *number)
{
    struct k25_span key;
    if (k25_json_peek(&w->json) != '{')
        return k25_json_skip(&w->json);
    k25_json_enter(&w->json, '{');
    while (k25_json_key(&w->json, &key)) {
        if (!(k25_span_is(key, name) ? real_of(w, number) : k25_json_skip(&w->json)))
            return false;
    }
    return w->json.fault == NULL;
}

/* The command: the first of ["./all_reduce_perf", "-b", ...] that is a program of nccl-tests. */
static bool command(struct walk *w)
{
    struct k25_json_value word;
    if (k25_json_peek(&w->json) != '[')
        return k25_json_skip(&w->json);
    k25_json_enter(&w->json, '[');
    while (k25_json_entry(&w->json)) {
        if (!k25_json_scalar(&w->json, &word))
            return false;
        const char *op = k25_nccl_op_of_program(word.text);
        w->reader->command = op == NULL ? w->reader->command : op;
    }
    return w->json.fault == NULL;
}

static bool root(struct walk *w)
{
    struct k25_nccl_run *run = &w->open->run;
    struct k25_span key;
    double bounds = NAN;
    if (!k25_json_enter(&w->json, '{'))
        return false;
    while (k25_json_key(&w->json, &key)) {
        bool good = k25_span_is(key, "results")                 ? rows_of(w, false)
                    : k25_span_is(key, "benchmark")             ? rows_of(w, true)
                    : k25_span_is(key, "config")                ? config(w)
                    : k25_span_is(key, "version")               ? text_of(w, &run->nccl_version)
                    : k25_span_is(key, "nccl_version")          ? text_of(w, &run->nccl_version)
                    : k25_span_is(key, "args")                  ? command(w)
                    : k25_span_is(key, "argv")                  ? command(w)
                    : k25_span_is(key, "out_of_bounds")         ? member(w, "count", &bounds)
                    : k25_span_is(key, "average_bus_bandwidth") ? member(w, "bandwidth", &run->avg_busbw)
                                                                : k25_json_skip(&w->json);
        if (!good)
            return false;
    }
    run->out_of_bounds = bounds >= 0 ? llround(bounds) : -1;
    return w->json.fault == NULL;
}

bool k25_nccl_json(struct k25_nccl_reader *reader, size_t at)
{
    struct k25_evidence *evidence = &reader->evidence;
    struct walk w = {.reader = reader, .json = {evidence->text, evidence->size, at, NULL}, .counted = at};
    w.open = k25_nccl_open(reader, (struct k25_span){"", 0});
    if (w.open == NULL)
        return false;
    w.open->headed = w.open->has_root = true;
    if (root(&w))
        return true;
    if (w.json.fault == NULL || w.out_of_memory) /* the error has been filled */
        return false;
    w.open->damaged++;
    return k25_json_fault(evidence, w.json.at, "%s", w.json.fault);
}
