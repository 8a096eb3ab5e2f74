/* k25sim inspect: what a capture says. */
#include "cli/commands/inspect/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "calib/readers/nsys/sqlite.h"
#include "calib/trace/inflate.h"

const char *const inspect_kind_names[INSPECT_KINDS + 1] = {
    [INSPECT_TRACE] = "trace", [INSPECT_PROFILER_TABLE] = "profiler_table", [INSPECT_NCCL_TESTS] = "nccl_tests",
    [INSPECT_NSYS] = "nsys",   [INSPECT_NSYS_SQLITE] = "nsys_sqlite",       [INSPECT_BENCH] = "bench",
};

static struct {
    const char *kernels, *top, *format, *rank;
    int lenient;
} given;

static const struct poptOption options[] = {
    {"kernels", '\0', POPT_ARG_STRING, &given.kernels, 0,
     "kernel classes of your own, asked before those that come along", "RULES"},
    {"top", '\0', POPT_ARG_STRING, &given.top, 0, "how many kernels to list (default 15, 0: all)", "N"},
    {"rank", '\0', POPT_ARG_STRING, &given.rank, 0, "the rank of a single trace that does not tell", "R"},
    {"lenient", '\0', POPT_ARG_NONE, &given.lenient, 0, "keep what is good of a damaged file, and say what was lost",
     NULL},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

/* ---- which argument is what ---- */

enum { HEAD = 1 << 20 };

static bool has(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(text, *words) != NULL)
            return true;
    return false;
}

/* The first bytes of a file, inflated, zeros blanked out so that it is one text. False: not readable. */
static bool read_head(const char *path, char *head)
{
    struct k25_error ignored;
    size_t got = 0;
    struct k25_inflate *stream = k25_inflate_open(path, &ignored);
    bool ok = stream != NULL && k25_inflate_next(stream, head, HEAD, &got, &ignored);
    k25_inflate_close(stream);
    for (size_t i = 0; i < got; i++)
        head[i] = head[i] == '\0' ? ' ' : head[i];
    head[ok ? got : 0] = '\0';
    return ok;
}

static enum inspect_kind sniff_json(const char *head)
{
    static const char *const trace[] = {"\"traceEvents\"", "\"ph\"", "\"schemaVersion\"", NULL};
    static const char *const bench[] = {"_throughput\"", "ttft", "tpot", "\"num_prompts\"", NULL};
    static const char *const nccl[] = {"\"busbw", "\"bus_bw", "\"algbw", "\"algo_bw", "nccl-tests", NULL};
    return has(head, trace)   ? INSPECT_TRACE
           : has(head, bench) ? INSPECT_BENCH
           : has(head, nccl)  ? INSPECT_NCCL_TESTS
                              : INSPECT_TRACE;
}

/* A '[' also starts the tag that a logger or MPI puts in front of a line. */
static bool looks_like_json(const char *text)
{
    const char *next = text + 1;
    if (*text == '{')
        return true;
    return *text == '[' && strchr("{]", next[strspn(next, " \t\r\n")]) != NULL;
}

enum inspect_kind inspect_sniff(const char *path)
{
    static const char *const table[] = {"Self CPU", "# of Calls", "Number of Calls", "cuda_time_us", "cuda time", NULL};
    static const char *const bench[] = {"Serving Benchmark Result", NULL};
    static const char *const nsys[] = {"Total Time (ns)",
                                       "Instances",
                                       "Time (%)",
                                       "Time(%)",
                                       "Generating SQLite",
                                       "cuda_gpu_kern_sum",
                                       "does not contain CUDA kernel data",
                                       "QDSTRM",
                                       NULL};
    static const char *const nccl[] = {"busbw", "nThread", "nccl-tests", "_perf", "NCCL", NULL};
    const char *end = strrchr(path, '.');
    if (k25_nsys_sqlite_is(path) || (end != NULL && strcmp(end, ".sqlite") == 0)) /* told by its name alone: damaged */
        return INSPECT_NSYS_SQLITE;
    char *head = malloc(HEAD + 1);
    enum inspect_kind kind = INSPECT_TRACE;
    bool native = end != NULL && (strcmp(end, ".qdstrm") == 0 || strcmp(end, ".nsys-rep") == 0);
    if (head != NULL && read_head(path, head)) {
        const char *start = head + strspn(head, "\xef\xbb\xbf \t\r\n");
        kind = looks_like_json(start)      ? sniff_json(head)
               : native || has(head, nsys) ? INSPECT_NSYS
               : has(head, bench)          ? INSPECT_BENCH
               : has(head, table)          ? INSPECT_PROFILER_TABLE
               : has(head, nccl)           ? INSPECT_NCCL_TESTS
                                           : INSPECT_TRACE;
    }
    free(head);
    return kind;
}

/* ---- the command ---- */

struct asked {
    enum cli_format format;
    size_t top;
    int rank;
};

static bool read_count(const char *option, const char *text, long long fallback, long long *value,
                       struct k25_error *error)
{
    *value = fallback;
    if (text == NULL || (k25_parse_int(text, value) && *value >= 0 && *value < 1000000))
        return true;
    cli_misused(&cli_inspect, error, "--%s %s: expected a whole number, 0 or more", option, text);
    return false;
}

static bool read_asked(struct asked *asked, struct k25_error *error)
{
    long long top, rank;
    if (!cli_format(&cli_inspect, given.format, &asked->format, error) ||
        !read_count("top", given.top, asked->format == CLI_CSV ? 0 : 15, &top, error) ||
        !read_count("rank", given.rank, -1, &rank, error))
        return false;
    asked->top = top > 0 ? (size_t)top : SIZE_MAX;
    asked->rank = (int)rank;
    return true;
}

/* What the arguments came to. */
struct findings {
    bool captured;
    struct k25_capture capture;
    struct inspect_summary *summary;
    size_t summaries;
};

static bool gather(const char *const *arguments, const struct asked *asked, const struct k25_kernel_rules *rules,
                   struct findings *findings, struct k25_error *error)
{
    size_t count = cli_count(arguments), traces = 0;
    const char **trace = calloc(count, sizeof *trace);
    findings->summary = calloc(count, sizeof *findings->summary);
    bool ok = (trace != NULL && findings->summary != NULL) || k25_fail(error, K25_RESOURCE, "out of memory");
    struct k25_evidence_options reading = {.lenient = given.lenient != 0, .allow_wrong = given.lenient != 0};
    struct k25_capture_options capturing = {.lenient = given.lenient != 0, .rank = asked->rank, .rules = rules};
    for (size_t i = 0; ok && i < count; i++) {
        enum inspect_kind kind = inspect_sniff(arguments[i]);
        if (kind == INSPECT_TRACE) {
            trace[traces++] = arguments[i];
            continue;
        }
        ok = inspect_read_summary(arguments[i], kind, &reading, rules, &findings->summary[findings->summaries], error);
        findings->summaries += ok;
    }
    if (ok && traces > 0) {
        ok = k25_capture_read(trace, traces, &capturing, &findings->capture, error);
        findings->captured = ok;
    }
    free(trace);
    return ok;
}

static bool print_all(const struct findings *findings, const struct asked *asked, struct k25_error *error)
{
    bool ok = !findings->captured || inspect_print_capture(&findings->capture, asked->top, error);
    for (size_t i = 0; ok && i < findings->summaries; i++) {
        if (findings->captured || i > 0)
            printf("\n");
        ok = inspect_print_summary(&findings->summary[i], error);
    }
    return ok;
}

static bool print_json(const struct findings *findings, const struct asked *asked, struct k25_error *error)
{
    json_t *root = json_object(), *list = json_array();
    json_t *capture = findings->captured ? inspect_capture_json(&findings->capture, asked->top, error) : json_null();
    bool ok = root != NULL && list != NULL && capture != NULL;
    for (size_t i = 0; ok && i < findings->summaries; i++)
        ok = json_array_append_new(list, inspect_summary_json(&findings->summary[i], error)) == 0;
    ok = ok && json_object_set(root, "capture", capture) == 0 && json_object_set(root, "summaries", list) == 0;
    json_decref(capture);
    json_decref(list);
    if (ok)
        return cli_print_json(root, error);
    json_decref(root);
    return k25_fail(error, K25_RESOURCE, "out of memory");
}

static bool print_csv(const struct findings *findings, const struct asked *asked, struct k25_error *error)
{
    struct cli_table table;
    if (findings->captured + findings->summaries > 1) {
        cli_misused(&cli_inspect, error, "--format csv is one table: give one capture or one summary");
        return false;
    }
    if (!findings->captured)
        return cli_table_csv(&findings->summary[0].table, error);
    inspect_kernel_table(&findings->capture, asked->top, &table);
    bool ok = cli_table_csv(&table, error);
    cli_table_close(&table);
    return ok;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    struct asked asked;
    struct findings findings = {0};
    char path[sizeof cli->library.root + 32];
    if (!read_asked(&asked, error))
        return cli_failed(error);
    snprintf(path, sizeof path, "%s/calib/rules/kernels.yaml", cli->library.root);
    struct k25_kernel_rules *rules = k25_kernel_rules_load(path, given.kernels, error);
    if (rules == NULL)
        return cli_failed(error);
    bool ok = gather(arguments, &asked, rules, &findings, error) &&
              (asked.format == CLI_JSON  ? print_json(&findings, &asked, error)
               : asked.format == CLI_CSV ? print_csv(&findings, &asked, error)
                                         : print_all(&findings, &asked, error));
    for (size_t i = 0; i < findings.summaries; i++)
        cli_table_close(&findings.summary[i].table);
    free(findings.summary);
    if (findings.captured)
        k25_capture_free(&findings.capture);
    k25_kernel_rules_free(rules);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .arguments = "CAPTURE...",
    .summary = "what a capture says: kernels, steps, collectives",
    .details = "CAPTURE is what a profiling or load test left behind, recognised by its content:\n"
               "  traces of torch.profiler (*.pt.trace.json, .gz or not): files of the ranks of one session, or\n"
               "    their folder, of which the newest complete set is read\n"
               "  tables of torch.profiler (profiler_out_0.txt), output of nccl-tests, kernel summaries of nsys\n"
               "    stats, files of nsys export -t sqlite, results of vllm bench serve and SGLang: a short table\n"
               "    of each\n"
               "With all ranks, collectives are split into transfer, which all share, and wait for the last one.\n"
               "\n"
               "examples:\n"
               "  k25sim inspect profile/                          all ranks of the newest session\n"
               "  k25sim inspect profile/*rank0*.json.gz --top 40\n"
               "  k25sim inspect profile/ --kernels my-rules.yaml  with kernel classes of your own\n"
               "  k25sim inspect profile/ --format json | jq .capture.collectives\n"
               "  k25sim inspect profiler_out_0.txt all_reduce.log\n",
    .least = 1,
    .most = 1024,
    .options = options,
    .run = run,
};
