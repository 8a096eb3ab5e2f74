#include "calib/kernels/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "calib/kernels/rows.h"
#include "hw/gpus/name.h"

const char *const k25_table_kind_names[K25_TABLE_KINDS + 1] = {
    [K25_TABLE_GEMM] = "gemm",         [K25_TABLE_MOE] = "moe",       [K25_TABLE_MLA] = "mla_decode",
    [K25_TABLE_ABSORB] = "mla_absorb", [K25_TABLE_GQA] = "attention", [K25_TABLE_COLLECTIVE] = "collective",
};

const char *const k25_skip_reasons[K25_SKIPS + 1] = {
    [K25_SKIP_DTYPE] = "a data type that no formula prices",
    [K25_SKIP_ROUTING] = "unknown routing",
    [K25_SKIP_SHARD] = "experts or columns that the ranks do not divide",
    [K25_SKIP_SCOPE] = "unknown scope",
    [K25_SKIP_ROWS] = "more rows of x than are scored (256 of a product, 1024 of an absorption)",
    [K25_SKIP_OP] = "an operation that no formula prices",
    [K25_SKIP_BACKEND] = "unknown backend",
    [K25_SKIP_EAGER] = "eager mode: measures the host",
    [K25_SKIP_FALLBACK] = "custom AllReduce on more than 2 PCIe GPUs: falls back to NCCL",
    [K25_SKIP_GPUS] = "more GPUs than the machine has",
    [K25_SKIP_OTHER_GPU] = "measured on another GPU",
};

typedef char group_name[192];
struct reader {
    struct k25_row_reader at;
    struct k25_kernel_table *table;
    int gpu;           /* its column; -1: none */
    group_name *group; /* table->groups */
};

/* The kind whose columns are all there; an error names the one that lacks least. */
static bool recognise(struct reader *r)
{
    enum k25_table_kind best = 0;
    int best_missing = K25_TABLE_COLUMNS + 1;
    const char *lacks = "";
    for (enum k25_table_kind kind = 0; kind < K25_TABLE_KINDS; kind++) {
        const char *first = NULL;
        int missing = 0;
        for (int i = 0; k25_table_formats[kind].columns[i] != NULL; i++) {
            bool absent = k25_csv_column(r->at.csv, k25_table_formats[kind].columns[i]) < 0;
            first = absent && first == NULL ? k25_table_formats[kind].columns[i] : first;
            missing += absent;
        }
        if (missing < best_missing) {
            best = kind;
            best_missing = missing;
            lacks = first;
        }
    }
    if (best_missing > 0)
        return k25_fail_at(r->at.error, r->at.csv->file, 1, 0,
                           "not a table of kernels: the nearest kind, %s, needs a column '%s'",
                           k25_table_kind_names[best], lacks);
    r->table->kind = best;
    r->at.names = k25_table_formats[best].columns;
    for (int i = 0; r->at.names[i] != NULL; i++)
        r->at.column[i] = k25_csv_column(r->at.csv, r->at.names[i]);
    return true;
}

static int find_group(struct reader *r, const char *name)
{
    int i = 0;
    while (i < r->table->groups && strcmp(r->group[i], name) != 0)
        i++;
    if (i == r->table->groups) {
        group_name *added = K25_LIST_ADD(r->group, r->table->groups);
        if (added == NULL)
            return -1;
        snprintf(*added, sizeof *added, "%s", name);
    }
    return i;
}

static int find_family(struct reader *r, const struct k25_described_row *d)
{
    struct k25_kernel_table *table = r->table;
    int i = 0;
    while (i < table->families && strcmp(table->family[i].name, d->family.name) != 0)
        i++;
    if (i == table->families) {
        int group = find_group(r, d->group);
        struct k25_kernel_family *added = group < 0 ? NULL : K25_LIST_ADD(table->family, table->families);
        if (added == NULL)
            return -1;
        *added = d->family;
        added->group = group;
    }
    return i;
}

/* Whether the row was measured on the machine's GPU, or does not say. */
static bool is_ours(struct reader *r)
{
    const char *name = r->gpu < 0 ? "" : k25_csv_cell(r->at.csv, r->at.row, r->gpu);
    bool ours = k25_gpu_match(&r->at.machine->gpu, name) != K25_GPU_OTHER;
    char *noted = ours ? r->table->named_gpu : r->table->other_gpu;
    if (strcmp(noted, name) != 0)
        snprintf(noted, sizeof r->table->named_gpu, "%s", name);
    return ours;
}

static bool add_row(struct reader *r)
{
    struct k25_described_row d = {0};
    struct k25_kernel_table *table = r->table;
    if (!k25_table_formats[table->kind].describe(&r->at, &d))
        return false;
    int family = find_family(r, &d);
    if (family < 0)
        return k25_fail(r->at.error, K25_RESOURCE, "%s: out of memory", r->at.csv->file);
    table->family[family].rows++;
    d.skip = is_ours(r) ? d.skip : K25_SKIP_OTHER_GPU;
    if (d.skip != K25_SKIPS) {
        table->family[family].skipped[d.skip]++;
        return true;
    }
    struct k25_kernel_row *added = K25_LIST_ADD(table->row, table->rows);
    if (added == NULL)
        return k25_fail(r->at.error, K25_RESOURCE, "%s: out of memory", r->at.csv->file);
    d.row.line = r->at.csv->lines[r->at.row];
    d.row.family = family;
    d.row.work.gpu = &table->gpu;
    *added = d.row;
    return true;
}

static int by_shape(const void *left, const void *right)
{
    const struct k25_kernel_row *a = left, *b = right;
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    for (int i = 0; i < K25_ROW_KEYS; i++) {
        if (a->key[i] != b->key[i])
            return a->key[i] < b->key[i] ? -1 : 1;
    }
    return a->line < b->line ? -1 : a->line > b->line;
}

/* Takes over `csv`, which may be NULL after a failure to read it. */
static struct k25_kernel_table *from_csv(struct k25_csv *csv, const struct k25_machine *machine,
                                         struct k25_error *error)
{
    if (csv == NULL)
        return NULL;
    struct reader r = {.at = {.csv = csv, .machine = machine, .error = error}};
    r.table = calloc(1, sizeof *r.table);
    bool ok = r.table != NULL || k25_fail(error, K25_RESOURCE, "%s: out of memory", csv->file);
    if (ok)
        r.table->gpu = machine->gpu;
    ok = ok && recognise(&r);
    r.gpu = k25_csv_column(csv, "gpu");
    for (; ok && r.at.row < csv->rows; r.at.row++)
        ok = add_row(&r);
    if (ok && r.table->rows > 0)
        qsort(r.table->row, r.table->rows, sizeof *r.table->row, by_shape);
    if (!ok) {
        k25_kernel_table_free(r.table);
        r.table = NULL;
    }
    free(r.group);
    k25_csv_free(csv);
    return r.table;
}

struct k25_kernel_table *k25_kernel_table_read(const char *path, const struct k25_machine *machine,
                                               struct k25_error *error)
{
    return from_csv(k25_csv_read(path, error), machine, error);
}

struct k25_kernel_table *k25_kernel_table_parse(const char *content, size_t size, const char *name,
                                                const struct k25_machine *machine, struct k25_error *error)
{
    return from_csv(k25_csv_parse(content, size, name, error), machine, error);
}

void k25_kernel_table_free(struct k25_kernel_table *table)
{
    if (table == NULL)
        return;
    free(table->row);
    free(table->family);
    free(table);
}

struct k25_observation k25_kernel_observation(const struct k25_kernel_row *row, double sigma)
{
    return (struct k25_observation){k25_kernel_work_time, &row->work, row->latency, sigma};
}
