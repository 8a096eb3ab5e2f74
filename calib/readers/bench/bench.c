#include "calib/readers/bench/bench.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/list.h"
#include "calib/readers/text/json_cursor.h"

struct reader {
    struct k25_evidence evidence;
    struct k25_bench *bench;
    bool out_of_memory;
};

#define AT(member) offsetof(struct k25_bench_run, member)

/* Keys of JSON and labels of the printed block; a label includes its colon. */
static const struct number_key {
    const char *name;
    size_t offset;
} numbers[] = {
    {"duration", AT(duration)},
    {"completed", AT(completed)},
    {"failed", AT(failed)},
    {"num_prompts", AT(num_prompts)},
    {"max_concurrency", AT(max_concurrency)},
    {"concurrency", AT(concurrency)},
    {"max_concurrent_requests", AT(peak_concurrent)},
    {"total_input_tokens", AT(input_tokens)},
    {"total_output_tokens", AT(output_tokens)},
    {"request_throughput", AT(request_throughput)},
    {"output_throughput", AT(output_throughput)},
    {"total_token_throughput", AT(total_throughput)},
    {"total_throughput", AT(total_throughput)},
    {"spec_decode_acceptance_length", AT(acceptance_length)},
    {"accept_length", AT(acceptance_length)},
    {"Successful requests:", AT(completed)},
    {"Failed requests:", AT(failed)},
    {"Maximum request concurrency:", AT(max_concurrency)},
    {"Max request concurrency:", AT(max_concurrency)},
    {"Request rate configured (RPS):", AT(request_rate)},
    {"Traffic request rate:", AT(request_rate)},
    {"Benchmark duration (s):", AT(duration)},
    {"Total input tokens:", AT(input_tokens)},
    {"Total generated tokens:", AT(output_tokens)},
    {"Request throughput (req/s):", AT(request_throughput)},
    {"Output token throughput (tok/s):", AT(output_throughput)},
    {"Total token throughput (tok/s):", AT(total_throughput)},
    {"Peak concurrent requests:", AT(peak_concurrent)},
    {"Concurrency:", AT(concurrency)},
    {"Acceptance length:", AT(acceptance_length)},
    {"Accept length:", AT(acceptance_length)},
};

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    {"model_id", AT(model)},        {"model", AT(model)}, {"backend", AT(backend)},
    {"endpoint_type", AT(backend)}, {"date", AT(date)},   {"label", AT(label)},
};

static double *number_of(struct k25_bench_run *run, struct k25_span name)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (name.size == strlen(numbers[i].name) && strncasecmp(name.text, numbers[i].name, name.size) == 0)
            return (double *)((char *)run + numbers[i].offset);
    }
    return NULL;
}

static const char **text_of(struct k25_bench_run *run, struct k25_span name)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (k25_span_is(name, texts[i].name))
            return (const char **)((char *)run + texts[i].offset);
    }
    return NULL;
}

/* "p99_tpot_ms", "median_tpot" (seconds), "Mean TTFT (ms):": where it goes, and what to multiply with. */
static double *time_of(struct k25_bench_run *run, struct k25_span name, double *factor)
{
    static const char *const stats[] = {"mean", "median", "std", "p90", "p95", "p99"};
    static const char *const metrics[] = {"ttft", "tpot", "itl", "e2el", "e2e_latency", "e2e latency"};
    static const char *const ends[] = {"_ms", "", " (ms):"};
    struct k25_bench_time *const times[] = {&run->ttft, &run->tpot, &run->itl, &run->e2el, &run->e2el, &run->e2el};
    for (int s = 0; s < 6; s++) {
        size_t length = strlen(stats[s]);
        if (name.size <= length || strncasecmp(name.text, stats[s], length) != 0 ||
            (name.text[length] != '_' && name.text[length] != ' '))
            continue;
        struct k25_span rest = k25_after(name, length + 1);
        for (int m = 0; m < 6; m++) {
            size_t size = strlen(metrics[m]);
            if (rest.size < size || strncasecmp(rest.text, metrics[m], size) != 0)
                continue;
            for (int e = 0; e < 3; e++) {
                double *fields[] = {&times[m]->mean, &times[m]->median, &times[m]->std,
                                    &times[m]->p90,  &times[m]->p95,    &times[m]->p99};
                *factor = e == 1 ? 1e3 : 1;
                if (k25_span_is(k25_after(rest, size), ends[e]))
                    return fields[s];
            }
        }
    }
    return NULL;
}

static struct k25_bench_run empty_run(int line, enum k25_bench_format format)
{
    const struct k25_bench_time none = {NAN, NAN, NAN, NAN, NAN, NAN};
    struct k25_bench_run run = {.line = line, .format = format, .model = "", .backend = "", .date = "", .label = ""};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *(double *)((char *)&run + numbers[i].offset) = NAN;
    run.input_len = run.output_len = run.request_rate = run.acceptance_rate = NAN;
    run.ttft = run.tpot = run.itl = run.e2el = none;
    return run;
}

/* What follows from the fields as written: means of a request; a TPOT of 0 stands for "no request had two tokens".
 */
static void derive(struct k25_bench_run *run)
{
    run->input_len = run->input_tokens / run->completed;
    run->output_len = run->output_tokens / run->completed;
    double *none[] = {&run->tpot.mean, &run->tpot.median, &run->tpot.p90, &run->tpot.p95, &run->tpot.p99,
                      &run->itl.mean,  &run->itl.median,  &run->itl.p90,  &run->itl.p95,  &run->itl.p99};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        if (*none[i] == 0)
            *none[i] = NAN;
    }
}

/* Takes a finished run, or says why it is no data point. `at` is its first byte. */
static bool add(struct reader *r, struct k25_bench_run *run, size_t at)
{
    struct k25_bench *bench = r->bench;
    if (isnan(run->completed))
        return k25_json_fault(&r->evidence, at,
                              "no benchmark result: no 'completed', expected the result of "
                              "vllm bench serve or SGLang's bench_serving");
    if (run->completed == 0)
        return k25_json_fault(&r->evidence, at, "0 completed requests: not a data point");
    if (run->duration <= 0)
        return k25_json_fault(&r->evidence, at, "a duration of %g s, expected more than 0", run->duration);
    derive(run);
    struct k25_bench_run *added = K25_LIST_ADD(bench->run, bench->runs);
    if (added == NULL)
        return k25_out_of_memory(r->evidence.file, r->evidence.error);
    *added = *run;
    return true;
}

static bool copy_text(struct reader *r, struct k25_span text, const char **out)
{
    *out = k25_arena_copy(&r->bench->arena, text.text, text.size);
    r->out_of_memory |= *out == NULL;
    return *out != NULL;
}

/* One member of a result. False: a fault, or memory. */
static bool member(struct reader *r, struct k25_json *json, struct k25_span key, struct k25_bench_run *run)
{
    struct k25_json_value value;
    double factor = 1, *field = number_of(run, key);
    const char **text = text_of(run, key);
    bool rate = k25_span_is(key, "request_rate"), accepted = k25_span_is(key, "spec_decode_acceptance_rate");
    if (field == NULL)
        field = time_of(run, key, &factor);
    if (rate)
        field = &run->request_rate;
    if (accepted) { /* percent */
        field = &run->acceptance_rate;
        factor = 0.01;
    }
    char c = k25_json_peek(json);
    if ((field == NULL && text == NULL) || c == '{' || c == '[')
        return k25_json_skip(json);
    size_t at = json->at;
    if (!k25_json_scalar(json, &value))
        return false;
    if (text != NULL)
        return !value.quoted || copy_text(r, value.text, text);
    if (rate && (k25_span_starts(value.text, "inf") || k25_span_starts(value.text, "Inf"))) {
        run->request_rate = INFINITY;
        return true;
    }
    double read;
    if (!k25_json_real(value, &read) || read < 0 || read > 1e15) {
        json->at = at;
        json->fault = "expected a number that is not negative";
        return false;
    }
    *field = read * factor;
    return true;
}

static bool object(struct reader *r, struct k25_json *json)
{
    struct k25_span key;
    size_t at = json->at;
    struct k25_bench_run run = empty_run(0, K25_BENCH_JSON);
    if (!k25_json_enter(json, '{'))
        return false;
    while (k25_json_key(json, &key)) {
        if (!member(r, json, key, &run))
            return false;
    }
    if (json->fault != NULL)
        return false;
    for (; r->evidence.at < at; r->evidence.at++) /* the lines between this run and the last */
        r->evidence.line += r->evidence.text[r->evidence.at] == '\n';
    run.line = r->evidence.line + 1;
    return add(r, &run, at);
}

/* The start of the next line, or the end. */
static size_t next_line(const struct k25_json *json)
{
    const char *end = json->at >= json->size ? NULL : memchr(json->text + json->at, '\n', json->size - json->at);
    return end == NULL ? json->size : (size_t)(end - json->text) + 1;
}

/* Consecutive objects, or a list of them. A damaged one costs the rest of its line. */
static bool json_results(struct reader *r)
{
    struct k25_json json = {r->evidence.text, r->evidence.size, r->evidence.at, NULL};
    bool list = k25_json_peek(&json) == '[';
    if (list)
        k25_json_enter(&json, '[');
    while (list ? k25_json_entry(&json) : k25_json_peek(&json) != '\0') {
        if (object(r, &json))
            continue;
        if (json.fault == NULL || r->out_of_memory)
            return !r->out_of_memory ? false : k25_out_of_memory(r->evidence.file, r->evidence.error);
        if (!k25_json_fault(&r->evidence, json.at, "%s", json.fault))
            return false;
        json.at = list ? json.size : next_line(&json);
        json.fault = NULL;
        if (list)
            return true;
    }
    return json.fault == NULL || k25_json_fault(&r->evidence, json.at, "%s", json.fault);
}

/* "Median TPOT (ms):     15.85   ". Other labels are skipped. */
static bool label(struct reader *r, struct k25_bench_run *run, struct k25_span line, struct k25_span text)
{
    const char *colon = memchr(text.text, ':', text.size);
    struct k25_span value;
    double factor = 1;
    if (colon == NULL)
        return true;
    struct k25_span name = {text.text, (size_t)(colon - text.text) + 1};
    double *field = number_of(run, name);
    if (field == NULL)
        field = time_of(run, name, &factor);
    if (k25_span_is(name, "Acceptance rate (%):")) {
        field = &run->acceptance_rate;
        factor = 0.01;
    }
    if (k25_span_is(name, "Backend:") && k25_split(k25_after(text, name.size), &value, 1) > 0)
        return copy_text(r, value, &run->backend) || k25_out_of_memory(r->evidence.file, r->evidence.error);
    if (field == NULL || k25_split(k25_after(text, name.size), &value, 1) == 0)
        return true;
    struct k25_json_value read = {value, false};
    if (field == &run->request_rate && k25_span_starts(value, "inf")) {
        *field = INFINITY;
        return true;
    }
    if (k25_span_is(value, "not") || (k25_json_real(read, field) && !(*field < 0))) {
        *field = k25_span_is(value, "not") ? NAN : *field * factor; /* "not set" */
        return true;
    }
    *field = NAN;
    return k25_evidence_fault(&r->evidence, r->evidence.line, line, value.text, "'%.*s' is not a number",
                              (int)value.size, value.text);
}

/* "====== Serving Benchmark Result ======" ... "======", possibly after a tag. */
static bool console_results(struct reader *r)
{
    struct k25_evidence *evidence = &r->evidence;
    struct k25_bench_run run;
    struct k25_span front = {"", 0}, line;
    bool inside = false;
    size_t at = 0;
    while (k25_evidence_next(evidence, &line)) {
        const char *title = k25_span_find(line, "Benchmark Result"), *mark = k25_span_find(line, "=====");
        ptrdiff_t tag = inside ? k25_front_match(front, line) : -1;
        bool ends = title == NULL && tag >= 0 && k25_span_starts(k25_after(line, (size_t)tag), "=====");
        if (title != NULL && mark != NULL) {
            if (inside && !k25_evidence_fault(evidence, evidence->line, line, line.text,
                                              "a new block starts before the one at line %d ends", run.line))
                return false;
            front = (struct k25_span){line.text, (size_t)(mark - line.text)};
            at = (size_t)(line.text - evidence->text);
            run = empty_run(evidence->line, K25_BENCH_CONSOLE);
            inside = true;
        } else if (ends) {
            inside = false;
            if (!add(r, &run, at))
                return false;
        } else if (tag >= 0 && !label(r, &run, line, k25_trim(k25_after(line, (size_t)tag)))) {
            return false;
        }
    }
    return !inside || k25_evidence_fault(evidence, run.line, (struct k25_span){"", 0}, NULL,
                                         "the block that starts here never ends: the text was cut");
}

struct k25_bench *k25_bench_parse(const char *text, size_t size, const char *name,
                                  const struct k25_evidence_options *options, struct k25_error *error)
{
    struct k25_bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) {
        k25_out_of_memory(name, error);
        return NULL;
    }
    struct reader r = {.bench = bench};
    r.evidence =
        (struct k25_evidence){.file = name, .text = text, .size = size, .error = error, .left_out = &bench->left_out};
    if (options != NULL)
        r.evidence.options = *options;
    bool good = k25_evidence_open(&r.evidence, "the result of a benchmark");
    if (good) {
        struct k25_span rest = k25_trim(k25_after((struct k25_span){text, size}, r.evidence.at));
        if (k25_span_starts(rest, "[")) /* a list; not "[1,0]<stdout>:====" */
            rest = k25_trim(k25_after(rest, 1));
        good = k25_span_starts(rest, "{") ? json_results(&r) : console_results(&r);
    }
    if (good && bench->runs == 0)
        good = bench->left_out.count > 0 ? k25_fail(error, K25_BAD_INPUT, "%s", bench->left_out.first)
                                         : k25_fail(error, K25_BAD_INPUT,
                                                    "%s: no benchmark result, expected the JSON or the printed block "
                                                    "of vllm bench serve or SGLang's bench_serving",
                                                    name);
    if (good)
        return bench;
    k25_bench_free(bench);
    return NULL;
}

struct k25_bench *k25_bench_read(const char *path, const struct k25_evidence_options *options, struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, K25_EVIDENCE_BYTES, &size, error);
    if (text == NULL)
        return NULL;
    struct k25_bench *bench = k25_bench_parse(text, size, path, options, error);
    free(text);
    return bench;
}

void k25_bench_free(struct k25_bench *bench)
{
    if (bench == NULL)
        return;
    free(bench->run);
    k25_arena_free(&bench->arena);
    free(bench);
}
