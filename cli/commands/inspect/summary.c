/* Summaries: one table each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calib/readers/bench/bench.h"
#include "calib/readers/nccl/nccl_tests.h"
#include "calib/readers/nsys/nsys.h"
#include "calib/readers/nsys/sqlite.h"
#include "calib/readers/profiler/table.h"
#include "cli/commands/inspect/inspect.h"

static const char *class_name(const struct k25_kernel_rules *rules, const char *name)
{
    return k25_kernel_rules_describe(rules, k25_kernel_rules_class(rules, name))->name;
}

static double scaled(int64_t ns, double unit)
{
    return ns >= 0 ? (double)ns / unit : NAN;
}

/* ---- tables of torch.profiler ---- */

static const struct cli_column profiler_columns[] = {
    {"line", NULL, CLI_COUNT, 0},
    {"tag", NULL, CLI_TEXT, 0},
    {"name", "kernel or op", CLI_TEXT, 48},
    {"level", "level", CLI_TEXT, 0},
    {"class", "class", CLI_TEXT, 0},
    {"calls", "calls", CLI_COUNT, 0},
    {"self_device_ms", "self ms", CLI_FIGURE, 0},
    {"mean_us", "mean us", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_profiler_row(const struct k25_profiler_table *from, const struct k25_profiler_row *row,
                             const struct k25_kernel_rules *rules, struct cli_table *table)
{
    static const char *const levels[] = {"op", "kernel", "copy", "annotation"};
    bool gpu = row->level == K25_LEVEL_KERNEL || row->level == K25_LEVEL_COPY;
    cli_table_number(table, row->line);
    cli_table_text(table, "%s", from->tag);
    cli_table_text(table, "%s", row->name);
    cli_table_text(table, "%s", levels[row->level]);
    if (gpu)
        cli_table_text(table, "%s", class_name(rules, row->name));
    else
        cli_table_nothing(table);
    cli_table_number(table, row->calls >= 0 ? (double)row->calls : NAN);
    cli_table_number(table, scaled(row->self_device_ns, 1e6));
    cli_table_number(table, row->calls > 0 ? scaled(row->self_device_ns, 1e3) / (double)row->calls : NAN);
}

static bool read_profiler(const char *path, const struct k25_evidence_options *options,
                          const struct k25_kernel_rules *rules, struct inspect_summary *summary,
                          struct k25_error *error)
{
    struct k25_profiler_tables *tables = k25_profiler_tables_read(path, options, error);
    double kernels = 0;
    size_t rows = 0;
    if (tables == NULL)
        return false;
    cli_table_open(&summary->table, profiler_columns);
    for (size_t t = 0; t < tables->tables; t++) {
        const struct k25_profiler_table *from = &tables->table[t];
        kernels += (double)from->kernel_ns * 1e-6;
        rows += from->rows;
        for (size_t i = 0; i < from->rows; i++)
            add_profiler_row(from, &from->row[i], rules, &summary->table);
    }
    char rank[32] = "";
    if (tables->rank >= 0)
        snprintf(rank, sizeof rank, ", rank %d", tables->rank);
    snprintf(summary->title, sizeof summary->title,
             "table of torch.profiler%s: %zu table%s, %zu rows; rows that are kernels %.3f ms (a lower bound: "
             "names are "
             "cut and the last rows are missing)",
             rank, tables->tables, tables->tables > 1 ? "s" : "", rows, kernels);
    summary->left_out = tables->left_out;
    k25_profiler_tables_free(tables);
    return true;
}

/* ---- nccl-tests ---- */

static const struct cli_column nccl_columns[] = {
    {"collective", "collective", CLI_TEXT, 0},
    {"ranks", "ranks", CLI_COUNT, 0},
    {"bytes", "bytes", CLI_COUNT, 0},
    {"type", NULL, CLI_TEXT, 0},
    {"time_us", "time us", CLI_FIGURE, 0},
    {"busbw_gb_s", "busbw GB/s", CLI_FIGURE, 0},
    {"in_place_time_us", "in place us", CLI_FIGURE, 0},
    {"in_place_busbw_gb_s", "busbw GB/s", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool read_nccl(const char *path, const struct k25_evidence_options *options, struct inspect_summary *summary,
                      struct k25_error *error)
{
    struct k25_nccl_tests *tests = k25_nccl_tests_read(path, options, error);
    size_t rows = 0;
    if (tests == NULL)
        return false;
    cli_table_open(&summary->table, nccl_columns);
    for (size_t r = 0; r < tests->runs; r++) {
        const struct k25_nccl_run *run = &tests->run[r];
        rows += run->rows;
        for (size_t i = 0; i < run->rows; i++) {
            const struct k25_nccl_row *row = &run->row[i];
            cli_table_text(&summary->table, "%s", run->op[0] != '\0' ? run->op : "unknown");
            cli_table_number(&summary->table, run->ranks > 0 ? (double)run->ranks : NAN);
            cli_table_number(&summary->table, (double)row->bytes);
            cli_table_text(&summary->table, "%s", row->type);
            cli_table_number(&summary->table, row->out_of_place.us);
            cli_table_number(&summary->table, row->out_of_place.busbw);
            cli_table_number(&summary->table, row->in_place.us);
            cli_table_number(&summary->table, row->in_place.busbw);
        }
    }
    snprintf(summary->title, sizeof summary->title, "nccl-tests: %zu run%s, %zu rows", tests->runs,
             tests->runs > 1 ? "s" : "", rows);
    summary->left_out = tests->left_out;
    k25_nccl_tests_free(tests);
    return true;
}

/* ---- Nsight Systems ---- */

static const struct cli_column nsys_columns[] = {
    {"name", "kernel", CLI_TEXT, 48},      {"class", "class", CLI_TEXT, 0},
    {"calls", "calls", CLI_COUNT, 0},      {"total_ms", "total ms", CLI_FIGURE, 0},
    {"mean_us", "mean us", CLI_FIGURE, 0}, {"median_us", NULL, CLI_FIGURE, 0},
    {"share", "share", CLI_FIGURE, 0},     {NULL, NULL, CLI_TEXT, 0},
};

static bool read_nsys(const char *path, const struct k25_evidence_options *options,
                      const struct k25_kernel_rules *rules, struct inspect_summary *summary, struct k25_error *error)
{
    struct k25_nsys *nsys = k25_nsys_read(path, options, error);
    double total = 0;
    if (nsys == NULL)
        return false;
    cli_table_open(&summary->table, nsys_columns);
    for (size_t t = 0; t < nsys->tables; t++) {
        const struct k25_nsys_table *from = &nsys->table[t];
        total += from->total_ns * 1e-6;
        for (size_t i = 0; i < from->rows; i++) {
            const struct k25_nsys_row *row = &from->row[i];
            cli_table_text(&summary->table, "%s", row->name);
            cli_table_text(&summary->table, "%s", class_name(rules, row->name));
            cli_table_number(&summary->table, (double)row->instances);
            cli_table_number(&summary->table, row->total_ns * 1e-6);
            cli_table_number(&summary->table, row->avg_ns * 1e-3);
            cli_table_number(&summary->table, row->med_ns * 1e-3);
            cli_table_number(&summary->table, from->total_ns > 0 ? row->total_ns / from->total_ns : NAN);
        }
    }
    snprintf(summary->title, sizeof summary->title, "kernel summary of Nsight Systems: %zu table%s, %.3f ms",
             nsys->tables, nsys->tables > 1 ? "s" : "", total);
    summary->left_out = nsys->left_out;
    k25_nsys_free(nsys);
    return true;
}

static const struct cli_column nsys_sqlite_columns[] = {
    {"rank", "rank", CLI_COUNT, 0},          {"device", "device", CLI_COUNT, 0},    {"pid", NULL, CLI_COUNT, 0},
    {"name", "kernel", CLI_TEXT, 48},        {"class", "class", CLI_TEXT, 0},       {"calls", "calls", CLI_COUNT, 0},
    {"total_ms", "total ms", CLI_FIGURE, 0}, {"mean_us", "mean us", CLI_FIGURE, 0}, {"min_us", NULL, CLI_FIGURE, 0},
    {"max_us", NULL, CLI_FIGURE, 0},         {"share", "share", CLI_FIGURE, 0},     {NULL, NULL, CLI_TEXT, 0},
};

static void add_device(size_t rank, const struct k25_nsys_device *device, const struct k25_kernel_rules *rules,
                       struct cli_table *table)
{
    for (size_t i = 0; i < device->table.rows; i++) {
        const struct k25_nsys_row *row = &device->table.row[i];
        cli_table_number(table, (double)rank);
        cli_table_number(table, device->device >= 0 ? (double)device->device : NAN);
        cli_table_number(table, device->pid >= 0 ? (double)device->pid : NAN);
        cli_table_text(table, "%s", row->name);
        cli_table_text(table, "%s", class_name(rules, row->name));
        cli_table_number(table, (double)row->instances);
        cli_table_number(table, row->total_ns * 1e-6);
        cli_table_number(table, row->avg_ns * 1e-3);
        cli_table_number(table, row->min_ns * 1e-3);
        cli_table_number(table, row->max_ns * 1e-3);
        cli_table_number(table, device->table.total_ns > 0 ? row->total_ns / device->table.total_ns : NAN);
    }
}

static bool read_nsys_sqlite(const char *path, const struct k25_evidence_options *options,
                             const struct k25_kernel_rules *rules, struct inspect_summary *summary,
                             struct k25_error *error)
{
    struct k25_nsys_database *nsys = k25_nsys_sqlite_read(path, options, error);
    char missing[160] = "";
    double total = 0;
    if (nsys == NULL)
        return false;
    cli_table_open(&summary->table, nsys_sqlite_columns);
    for (size_t i = 0; i < nsys->devices; i++) {
        total += nsys->device[i].table.total_ns * 1e-6;
        add_device(i, &nsys->device[i], rules, &summary->table);
    }
    if (nsys->graphs > 0 && nsys->graph_kernels == 0)
        snprintf(missing, sizeof missing,
                 "; without what ran in %lld replays of CUDA graphs (%.3f ms), re-record with "
                 "--cuda-graph-trace=node",
                 (long long)nsys->graphs, nsys->graph_ns * 1e-6);
    snprintf(summary->title, sizeof summary->title,
             "SQLite export of Nsight Systems: %zu rank%s, %lld kernels, %.3f ms%s", nsys->devices,
             nsys->devices > 1 ? "s" : "", (long long)nsys->kernels, total, missing);
    summary->left_out = nsys->left_out;
    k25_nsys_sqlite_free(nsys);
    return true;
}

/* ---- load tests ---- */

static const struct cli_column bench_columns[] = {
    {"model", "model", CLI_TEXT, 40},
    {"completed", "completed", CLI_COUNT, 0},
    {"failed", "failed", CLI_COUNT, 0},
    {"max_concurrency", "concurrency", CLI_COUNT, 0},
    {"output_tok_s", "output tok/s", CLI_FIGURE, 0},
    {"tpot_mean_ms", "TPOT mean ms", CLI_FIGURE, 0},
    {"tpot_median_ms", "median ms", CLI_FIGURE, 0},
    {"itl_mean_ms", NULL, CLI_FIGURE, 0},
    {"ttft_mean_ms", "TTFT mean ms", CLI_FIGURE, 0},
    {"tokens_per_step", NULL, CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool read_bench(const char *path, const struct k25_evidence_options *options, struct inspect_summary *summary,
                       struct k25_error *error)
{
    struct k25_bench *bench = k25_bench_read(path, options, error);
    if (bench == NULL)
        return false;
    cli_table_open(&summary->table, bench_columns);
    for (size_t i = 0; i < bench->runs; i++) {
        const struct k25_bench_run *run = &bench->run[i];
        cli_table_text(&summary->table, "%s", run->model);
        cli_table_number(&summary->table, run->completed);
        cli_table_number(&summary->table, run->failed);
        cli_table_number(&summary->table, run->max_concurrency);
        cli_table_number(&summary->table, run->output_throughput);
        cli_table_number(&summary->table, run->tpot.mean);
        cli_table_number(&summary->table, run->tpot.median);
        cli_table_number(&summary->table, run->itl.mean);
        cli_table_number(&summary->table, run->ttft.mean);
        cli_table_number(&summary->table, run->acceptance_length);
    }
    snprintf(summary->title, sizeof summary->title, "load test: %zu run%s", bench->runs, bench->runs > 1 ? "s" : "");
    summary->left_out = bench->left_out;
    k25_bench_free(bench);
    return true;
}

bool inspect_read_summary(const char *path, enum inspect_kind kind, const struct k25_evidence_options *options,
                          const struct k25_kernel_rules *rules, struct inspect_summary *summary,
                          struct k25_error *error)
{
    summary->kind = kind;
    summary->file = path;
    switch (kind) {
    case INSPECT_PROFILER_TABLE:
        return read_profiler(path, options, rules, summary, error);
    case INSPECT_NCCL_TESTS:
        return read_nccl(path, options, summary, error);
    case INSPECT_NSYS:
        return read_nsys(path, options, rules, summary, error);
    case INSPECT_NSYS_SQLITE:
        return read_nsys_sqlite(path, options, rules, summary, error);
    case INSPECT_BENCH:
        return read_bench(path, options, summary, error);
    case INSPECT_TRACE:
    case INSPECT_KINDS:
        break;
    }
    return false;
}

bool inspect_print_summary(const struct inspect_summary *summary, struct k25_error *error)
{
    printf("%s: %s\n\n", summary->file, summary->title);
    if (!cli_table_print(&summary->table, error))
        return false;
    if (summary->left_out.count > 0)
        printf("\n- %zu left out, the first: %s\n", summary->left_out.count, summary->left_out.first);
    return true;
}

json_t *inspect_summary_json(const struct inspect_summary *summary, struct k25_error *error)
{
    json_t *rows = cli_table_json(&summary->table, error);
    if (rows == NULL)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:I, s:o}", "file", summary->file, "kind", inspect_kind_names[summary->kind],
                     "title", summary->title, "left_out", (json_int_t)summary->left_out.count, "rows", rows);
}
