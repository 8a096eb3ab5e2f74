#include "cli/commands/calibrate/evidence.h"

#include <isa-l/crc64.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/list.h"
#include "cli/cli.h"
#include "scenarios/points/against.h"

/* What one call works on. */
struct reading {
    const struct cli *cli;
    const struct k25_scenario *scenario;
    const struct k25_question *question;
    const struct cli_evidence_options *options;
    struct cli_evidence *evidence;
    struct k25_kernel_rules *rules;
    struct k25_error *error;
    struct k25_check check;
};

/* What is against a file is told when all are read; until then the file is not made rows of. */
static bool refused(const struct reading *r)
{
    return r->evidence->findings.errors > 0 && !r->options->accept;
}

static bool out_of_memory(struct k25_error *error)
{
    return k25_fail(error, K25_RESOURCE, "out of memory");
}

static const char *base_name(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    return path + length;
}

/* Notes a source and the checksum of its bytes as they are on the disk, inflated. */
static bool add_source(struct reading *r, const char *path, const char *bytes, size_t size)
{
    struct cli_evidence *e = r->evidence;
    struct k25_calibration_evidence *file = K25_LIST_ADD(e->file, e->sources);
    if (file == NULL)
        return out_of_memory(r->error);
    snprintf(file->file, sizeof file->file, "%s", base_name(path));
    if (bytes != NULL)
        snprintf(file->crc64, sizeof file->crc64, "%016llx",
                 (unsigned long long)crc64_ecma_refl(0, (const unsigned char *)bytes, size));
    return true;
}

static bool add_file(struct reading *r, const char *path)
{
    size_t size;
    char *bytes = k25_file_read(path, (size_t)1 << 30, &size, r->error);
    bool ok = bytes != NULL && add_source(r, path, bytes, size) &&
              k25_inputs_record_file(&r->evidence->read, path, bytes, size, r->error);
    free(bytes);
    return ok;
}

/* The traces of a capture are too large to read twice: their sizes and kernels stand for them. */
static bool add_capture(struct reading *r, const char *path, const struct k25_capture *capture)
{
    char text[256] = "";
    uint64_t sum = 0;
    for (int i = 0; i < capture->ranks; i++) {
        const struct k25_trace_info *info = &capture->rank[i].info;
        int length = snprintf(text, sizeof text, "%d %llu %llu %lld", capture->rank[i].rank,
                              (unsigned long long)info->json_bytes, (unsigned long long)info->events[K25_TRACE_KERNEL],
                              (long long)info->busy_ns[K25_TRACE_KERNEL]);
        sum = crc64_ecma_refl(sum, (const unsigned char *)text, (uint64_t)length);
    }
    if (!add_source(r, path, NULL, 0))
        return false;
    struct k25_calibration_evidence *file = &r->evidence->file[r->evidence->sources - 1];
    snprintf(file->crc64, sizeof file->crc64, "%016llx", (unsigned long long)sum);
    return true;
}

static struct k25_evidence_source source_of(const struct reading *r, const char *path)
{
    return (struct k25_evidence_source){base_name(path), r->evidence->sources - 1, r->options->discrepancy};
}

static bool read_capture(struct reading *r, const char *path)
{
    struct k25_capture capture;
    struct k25_capture_options options = {.lenient = r->options->lenient, .rank = -1, .rules = r->rules};
    if (!k25_capture_read(&path, 1, &options, &capture, r->error))
        return false;
    bool ok = add_capture(r, path, &capture);
    for (int i = 0; ok && i < capture.ranks; i++)
        ok = k25_inputs_record_file(&r->evidence->read, capture.rank[i].file, "", 0, r->error);
    struct k25_evidence_source source = source_of(r, path);
    if (ok)
        k25_check_capture(&r->check, source.name, &capture);
    ok = ok && (refused(r) || k25_observe_capture(&capture, r->question, &source, &r->evidence->observed, r->error));
    k25_capture_free(&capture);
    return ok;
}

static bool read_summary(struct reading *r, const char *path)
{
    struct k25_evidence_options options = {.lenient = r->options->lenient};
    struct k25_profiler_tables *tables = k25_profiler_tables_read(path, &options, r->error);
    bool ok = tables != NULL && add_file(r, path);
    struct k25_evidence_source source = source_of(r, path);
    for (size_t i = 0; ok && i < tables->tables; i++) {
        k25_check_table(&r->check, source.name, &tables->table[i], r->rules);
        ok = refused(r) || k25_observe_table(&tables->table[i], r->rules, r->question, &r->scenario->params, &source,
                                             &r->evidence->observed, r->error);
    }
    k25_profiler_tables_free(tables);
    return ok;
}

static bool read_nccl(struct reading *r, const char *path)
{
    static const double MOST = 4 << 20; /* bytes: no decode step sends more */
    struct k25_evidence_options options = {.lenient = r->options->lenient};
    struct k25_nccl_tests *tests = k25_nccl_tests_read(path, &options, r->error);
    bool ok = tests != NULL && add_file(r, path);
    struct k25_evidence_source source = source_of(r, path);
    if (ok)
        k25_check_nccl(&r->check, source.name, tests);
    ok = ok && (refused(r) || k25_observe_nccl(tests, r->question, MOST, &source, &r->evidence->observed, r->error));
    k25_nccl_tests_free(tests);
    return ok;
}

static bool read_bench(struct reading *r, const char *path)
{
    struct k25_evidence_options options = {.lenient = r->options->lenient};
    struct k25_bench *bench = k25_bench_read(path, &options, r->error);
    bool ok = bench != NULL && add_file(r, path);
    struct k25_evidence_source source = source_of(r, path);
    if (ok)
        k25_check_bench(&r->check, source.name, bench);
    ok = ok && (refused(r) || k25_observe_bench(bench, r->question, &source, &r->evidence->observed, r->error));
    k25_bench_free(bench);
    return ok;
}

static bool read_kernels(struct reading *r, const char *name)
{
    char file[1024];
    const char *path = k25_library_table(&r->cli->library, name, file, sizeof file);
    struct cli_evidence *e = r->evidence;
    struct k25_kernel_table *table = k25_kernel_table_read(path, &r->scenario->machine, r->error);
    if (table == NULL)
        return false;
    struct k25_kernel_table **added = K25_LIST_ADD(e->table, e->tables);
    if (added == NULL) {
        k25_kernel_table_free(table);
        return out_of_memory(r->error);
    }
    *added = table;
    k25_check_kernels(&r->check, base_name(path), table);
    return add_file(r, path);
}

/* The one pair of group and variant with rows to fit. */
static struct cli_pair *only_pair(const struct cli_pairs *pairs, struct k25_error *error)
{
    struct cli_pair *only = NULL;
    char names[512] = "";
    size_t found = 0, used = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        struct cli_pair *pair = &pairs->list[i];
        if (pair->count == 0)
            continue;
        only = pair;
        if (used + 120 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s variant %.20s", found > 0 ? ", " : "",
                                     pair->group, pair->variant);
        found++;
    }
    if (found == 1)
        return only;
    if (found == 0)
        k25_fail(error, K25_BAD_INPUT, "no row of the points can be predicted; `k25sim validate` says why");
    else
        k25_fail(error, K25_BAD_INPUT,
                 "the points come from %zu boxes or builds (%s), and parameters belong to one; choose "
                 "with --where group=... and --where variant=...",
                 found, names);
    return NULL;
}

/* What the rows of points name: machines, models, sets. */
static bool note_files(struct reading *r, const struct k25_suite *suite)
{
    for (size_t i = 0; i < suite->settings; i++) {
        if (!k25_inputs_add_files(&r->evidence->read, &suite->setting[i]->scenario.inputs, r->error))
            return false;
    }
    return true;
}

static bool read_points(struct reading *r, const char *scenario, const char *const *paths)
{
    struct cli_evidence *e = r->evidence;
    size_t count = cli_count(paths);
    if (count == 0)
        return true;
    e->suites = calloc(count, sizeof *e->suites);
    if (e->suites == NULL)
        return out_of_memory(r->error);
    for (; e->suite_count < count; e->suite_count++) {
        char file[1024];
        const char *path = k25_library_table(&r->cli->library, paths[e->suite_count], file, sizeof file);
        if (!k25_suite_load(&r->cli->library, path, scenario, r->options->where, cli_count(r->options->where),
                            r->options->set, cli_count(r->options->set), &e->suites[e->suite_count], r->error))
            return false;
    }
    if (!cli_pairs_make(e->suites, e->suite_count, &e->pairs, r->error))
        return false;
    e->pair = only_pair(&e->pairs, r->error);
    for (size_t i = 0; i < count; i++)
        k25_suite_check(&e->suites[i], base_name(paths[i]), e->pair != NULL ? e->pair->group : NULL,
                        e->pair != NULL ? e->pair->variant : NULL, r->scenario, &r->check);
    if (refused(r) && e->pair == NULL)
        return k25_findings_pass(&e->findings, r->error);
    for (size_t i = 0; e->pair != NULL && i < count; i++) {
        char file[1024];
        if (!add_file(r, k25_library_table(&r->cli->library, paths[i], file, sizeof file)) ||
            !note_files(r, &e->suites[i]))
            return false;
    }
    return e->pair != NULL;
}

static bool each(struct reading *r, const char *const *paths, bool (*read)(struct reading *, const char *))
{
    for (; paths != NULL && *paths != NULL; paths++) {
        if (!read(r, *paths))
            return false;
    }
    return true;
}

static void widen(struct k25_range *range, double value)
{
    range->low = range->high == 0 ? value : fmin(range->low, value);
    range->high = fmax(range->high, value);
}

static void add_row(struct cli_evidence *e, struct k25_observation row, int source, const char *label)
{
    e->row[e->count] = row;
    e->source[e->count] = source;
    snprintf(e->label[e->count], sizeof e->label[0], "%s", label);
    e->count++;
    if (source >= 0)
        e->file[source].observations++;
}

/* Rows of kernel tables that are not warm by the rule of calib/kernels/table.h would need a fit of their family to be
 * told; here the shapes with more traffic than twice the L2 are taken, which never are. */
static bool is_cold(const struct k25_kernel_row *row, const struct k25_machine *machine)
{
    return row->traffic == 0 || row->traffic >= 2 * k25_gpu_l2(&machine->gpu);
}

bool cli_family_wanted(const char *name, const char *const *families)
{
    for (size_t i = 0; families != NULL && families[i] != NULL; i++) {
        if (strstr(name, families[i]) != NULL)
            return true;
    }
    return families == NULL;
}

static void join_kernels(struct reading *r, int first_table)
{
    static const double KERNEL_NOISE = 0.08; /* what the formulas leave on one shape */
    struct cli_evidence *e = r->evidence;
    for (size_t t = 0; t < e->tables; t++) {
        for (size_t i = 0; i < e->table[t]->rows; i++) {
            const struct k25_kernel_row *row = &e->table[t]->row[i];
            const char *name = e->table[t]->family[row->family].name;
            if (is_cold(row, &r->scenario->machine) && cli_family_wanted(name, r->options->families))
                add_row(e, k25_kernel_observation(row, KERNEL_NOISE), first_table + (int)t, name);
        }
    }
}

static bool join(struct reading *r, int first_table)
{
    struct cli_evidence *e = r->evidence;
    size_t room = (e->pair != NULL ? e->pair->count : 0) + e->observed.count;
    for (size_t t = 0; t < e->tables; t++)
        room += e->table[t]->rows;
    e->row = calloc(room + 1, sizeof *e->row);
    e->source = calloc(room + 1, sizeof *e->source);
    e->label = calloc(room + 1, sizeof *e->label);
    if (e->row == NULL || e->source == NULL || e->label == NULL)
        return out_of_memory(r->error);
    for (size_t i = 0; e->pair != NULL && i < e->pair->count; i++) {
        const struct k25_point *point = e->pair->point[i];
        add_row(e, (struct k25_observation){k25_point_predict, point, point->measured, cli_point_noise(point)}, 0,
                point->id);
        widen(&e->batch, point->question.plan.batch);
        widen(&e->context, floor(k25_point_context(point, &point->scenario->params)));
    }
    for (size_t i = 0; i < e->observed.count; i++) {
        const struct k25_observed *o = &e->observed.list[i];
        if (!(k25_observed_predict(o, &r->scenario->params, NULL) > 0))
            return k25_fail(r->error, K25_BAD_INPUT,
                            "%s: measured, but the scenario's step has no such thing; is it the "
                            "capture of another model or plan?",
                            o->label);
        add_row(e, (struct k25_observation){k25_observed_predict, o, o->measured, o->sigma}, o->evidence, o->label);
        if (o->kind == K25_OBSERVED_BURST)
            continue;
        widen(&e->batch, o->question.plan.batch);
        widen(&e->context, o->question.plan.context);
    }
    join_kernels(r, first_table);
    return true;
}

bool cli_evidence_read(const struct cli *cli, const char *name, const struct k25_scenario *scenario,
                       const struct k25_question *question, const struct cli_evidence_files *files,
                       const struct cli_evidence_options *options, struct cli_evidence *evidence,
                       struct k25_error *error)
{
    struct reading r = {.cli = cli,
                        .scenario = scenario,
                        .question = question,
                        .options = options,
                        .evidence = evidence,
                        .error = error,
                        .check = {question, &scenario->params, &evidence->findings, K25_ENGINES, ""}};
    char rules[1024];
    memset(evidence, 0, sizeof *evidence);
    snprintf(rules, sizeof rules, "%s/calib/rules/kernels.yaml", cli->library.root);
    r.rules = k25_kernel_rules_load(rules, options->rules, error);
    bool ok = r.rules != NULL && read_points(&r, name, files->points) && each(&r, files->captures, read_capture) &&
              each(&r, files->summaries, read_summary) && each(&r, files->nccl_tests, read_nccl) &&
              each(&r, files->benches, read_bench);
    int first_table = evidence->sources;
    ok = ok && each(&r, files->kernels, read_kernels);
    if (ok)
        k25_check_floors(&r.check, &evidence->observed);
    ok = ok && (options->accept || k25_findings_pass(&evidence->findings, error)) && join(&r, first_table);
    k25_kernel_rules_free(r.rules);
    return ok;
}

struct k25_fitted_rows cli_evidence_rows(const struct cli_evidence *e)
{
    return (struct k25_fitted_rows){e->row, e->count, e->source, (const char(*)[192])e->label, e->file, e->sources};
}

void cli_evidence_free(struct cli_evidence *evidence)
{
    cli_pairs_free(&evidence->pairs);
    for (size_t i = 0; i < evidence->suite_count; i++)
        k25_suite_free(&evidence->suites[i]);
    for (size_t i = 0; i < evidence->tables; i++)
        k25_kernel_table_free(evidence->table[i]);
    k25_observations_free(&evidence->observed);
    k25_inputs_free(&evidence->read);
    free(evidence->suites);
    free(evidence->table);
    free(evidence->row);
    free(evidence->source);
    free(evidence->label);
    free(evidence->file);
    memset(evidence, 0, sizeof *evidence);
}
