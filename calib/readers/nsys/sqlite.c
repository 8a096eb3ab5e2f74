#include "calib/readers/nsys/sqlite.h"
#include "base/list.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define GRAPHS "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
#define STRINGS "StringIds"

/* Captures have a few hundred names; the bound keeps a hostile file from taking the memory. */
enum { MOST_GROUPS = 1 << 16, SLOTS = 2 * MOST_GROUPS, LONGEST_NAME = 1 << 24 };

/* The kernels of one name on one device of one process. */
struct group {
    int64_t device, process, name;
    int64_t calls;
    double total, min, max; /* ns */
    const char *text;
};

struct reader {
    sqlite3 *db;
    const char *path;
    struct k25_evidence_options options;
    struct k25_error *error;
    struct k25_nsys_database *out;
    struct group *group;
    size_t groups;
    uint32_t *slot; /* hashed by device, process and name: 1 + the index of a group, 0: free */
};

/* ---- the file ---- */

static const char magic[16] = "SQLite format 3";

/* The first bytes of a file, as many as there are; -1: it cannot be opened. */
static int head_of(const char *path, char *head, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    size_t got = fread(head, 1, size, file);
    fclose(file);
    return (int)got;
}

bool k25_nsys_sqlite_is(const char *path)
{
    char head[sizeof magic];
    return head_of(path, head, sizeof head) == (int)sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* What SQLite last said. */
static bool sqlite_failed(struct reader *r)
{
    int code = sqlite3_errcode(r->db);
    bool system = code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL;
    return k25_fail(r->error, system ? K25_RESOURCE : K25_BAD_INPUT,
                    "%s: cannot be read, SQLite says '%s'. Export it again: nsys export -t sqlite", r->path,
                    sqlite3_errmsg(r->db));
}

/* A journal next to the file has changes that are not in it, or must be undone. The file is read as immutable, without
 * them: a journal means that the export was interrupted, or that another process writes to it. */
static bool finished(struct reader *r)
{
    static const char *const suffixes[] = {"-journal", "-wal"};
    for (int i = 0; i < 2; i++) {
        char name[4096], first = 0;
        int length = snprintf(name, sizeof name, "%s%s", r->path, suffixes[i]);
        if (length > 0 && length < (int)sizeof name && head_of(name, &first, 1) == 1 && first != 0)
            return k25_fail(r->error, K25_BAD_INPUT,
                            "%s: an export that was not finished: there is %s beside it. Export it again: nsys "
                            "export -t sqlite",
                            r->path, name);
    }
    return true;
}

/* SQLite takes what is missing of the last page for zeros, which would be kernels at time 0. Whole pages that are
 * missing it finds by itself, and what is no database as well. */
static bool whole(struct reader *r)
{
    unsigned char head[18];
    struct stat file;
    if (head_of(r->path, (char *)head, sizeof head) != (int)sizeof head || stat(r->path, &file) != 0)
        return true;
    unsigned page = head[16] == 0 && head[17] == 1 ? 65536 : (unsigned)head[16] << 8 | head[17];
    if (page < 512 || (page & (page - 1)) != 0 || file.st_size % page == 0)
        return true;
    return k25_fail(r->error, K25_BAD_INPUT,
                    "%s: cut: its %lld bytes are not whole pages of %u. Export it again: nsys export -t sqlite",
                    r->path, (long long)file.st_size, page);
}

/* The path as a URI; the caller frees, NULL when memory is out. */
static char *uri_of(const char *path)
{
    char *uri = malloc(3 * strlen(path) + sizeof "file://?immutable=1"), *out = uri;
    if (uri == NULL)
        return NULL;
    /* An absolute path needs an empty authority, or "//x" would be taken for one. */
    out += sprintf(out, "file:%s", path[0] == '/' ? "//" : "");
    for (; *path != '\0'; path++) {
        if (strchr("%?#", *path) != NULL)
            out += sprintf(out, "%%%02X", (unsigned char)*path);
        else
            *out++ = *path;
    }
    strcpy(out, "?immutable=1");
    return uri;
}

static bool open_database(struct reader *r)
{
    char head;
    if (head_of(r->path, &head, 1) < 0)
        return errno == ENOENT ? k25_fail(r->error, K25_BAD_INPUT, "%s: no such file", r->path)
                               : k25_fail(r->error, K25_RESOURCE, "%s: %s", r->path, strerror(errno));
    if (!k25_nsys_sqlite_is(r->path))
        return k25_fail(r->error, K25_BAD_INPUT,
                        "%s: not an SQLite database, expected what 'nsys export -t sqlite' writes", r->path);
    if (!whole(r) || !finished(r))
        return false;
    char *uri = uri_of(r->path);
    if (uri == NULL)
        return k25_out_of_memory(r->path, r->error);
    int code = sqlite3_open_v2(uri, &r->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    free(uri);
    if (code != SQLITE_OK)
        return sqlite_failed(r);
    /* The file may come from anybody: its schema runs no code but SQLite's own. */
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, LONGEST_NAME);
    return true;
}

/* ---- tables and columns ---- */

static sqlite3_stmt *prepare(struct reader *r, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) == SQLITE_OK)
        return statement;
    sqlite_failed(r);
    return NULL;
}

/* A view of that name does not count: it could go on for ever. */
static bool has_table(struct reader *r, const char *name, bool *has)
{
    sqlite3_stmt *statement =
        prepare(r, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    if (statement == NULL)
        return false;
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    bool good = code == SQLITE_ROW || code == SQLITE_DONE || sqlite_failed(r);
    *has = code == SQLITE_ROW;
    sqlite3_finalize(statement);
    return good;
}

/* Sets `has` for each of the `wanted` columns (up to a NULL) that the table has. */
static bool has_columns(struct reader *r, const char *table, const char *const *wanted, bool *has)
{
    char sql[128];
    int code;
    snprintf(sql, sizeof sql, "PRAGMA table_info(%s)", table);
    sqlite3_stmt *statement = prepare(r, sql);
    if (statement == NULL)
        return false;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        for (int i = 0; name != NULL && wanted[i] != NULL; i++)
            has[i] |= sqlite3_stricmp(name, wanted[i]) == 0;
    }
    bool good = code == SQLITE_DONE || sqlite_failed(r);
    sqlite3_finalize(statement);
    return good;
}

static bool read_graphs(struct reader *r)
{
    static const char *const columns[] = {"start", "end", NULL};
    bool there, has[2] = {false};
    if (!has_table(r, GRAPHS, &there))
        return false;
    if (!there)
        return true;
    if (!has_columns(r, GRAPHS, columns, has))
        return false;
    sqlite3_stmt *statement =
        prepare(r, has[0] && has[1] ? "SELECT count(*), total(max([end] - [start], 0)) FROM " GRAPHS
                                    : "SELECT count(*), 0 FROM " GRAPHS);
    if (statement == NULL)
        return false;
    bool good = sqlite3_step(statement) == SQLITE_ROW || sqlite_failed(r);
    if (good) {
        r->out->graphs = sqlite3_column_int64(statement, 0);
        r->out->graph_ns = sqlite3_column_double(statement, 1);
    }
    sqlite3_finalize(statement);
    return good;
}

/* ---- kernels ---- */

/* True: lenient, `kernels` of them are counted as left out. */
static bool fault(struct reader *r, int64_t kernels, const char *message)
{
    struct k25_left_out *left_out = &r->out->left_out;
    if (!r->options.lenient)
        return k25_fail(r->error, K25_BAD_INPUT, "%s", message);
    if (left_out->count == 0)
        snprintf(left_out->first, sizeof left_out->first, "%s", message);
    left_out->count += (size_t)kernels;
    return true;
}

static uint64_t mixed(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* The group of a kernel, a new one if it is the first of its name; NULL with an error. */
static struct group *group_of(struct reader *r, int64_t device, int64_t process, int64_t name)
{
    size_t at = mixed(mixed(mixed(0, device), process), name) % SLOTS;
    for (; r->slot[at] != 0; at = (at + 1) % SLOTS) {
        struct group *group = &r->group[r->slot[at] - 1];
        if (group->device == device && group->process == process && group->name == name)
            return group;
    }
    if (r->groups == MOST_GROUPS) {
        k25_fail(r->error, K25_BAD_INPUT, "%s: more than %d names of kernels", r->path, MOST_GROUPS);
        return NULL;
    }
    struct group *added = K25_LIST_ADD(r->group, r->groups);
    if (added == NULL) {
        k25_out_of_memory(r->path, r->error);
        return NULL;
    }
    r->slot[at] = (uint32_t)r->groups;
    *added = (struct group){.device = device, .process = process, .name = name, .min = INFINITY, .max = 0};
    return added;
}

static int64_t or_none(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : -1;
}

/* Columns: start, end, device, process, name, graph node. */
static bool one_kernel(struct reader *r, sqlite3_stmt *statement, int64_t number)
{
    char message[512];
    int64_t start = sqlite3_column_int64(statement, 0), end = sqlite3_column_int64(statement, 1), ns;
    if (sqlite3_column_type(statement, 0) != SQLITE_INTEGER || sqlite3_column_type(statement, 1) != SQLITE_INTEGER ||
        __builtin_sub_overflow(end, start, &ns) || ns < 0) {
        snprintf(message, sizeof message, "%s: row %lld of " KERNELS ": a kernel that does not end after its start",
                 r->path, (long long)number);
        return fault(r, 1, message);
    }
    if (sqlite3_column_type(statement, 4) != SQLITE_INTEGER) {
        snprintf(message, sizeof message, "%s: row %lld of " KERNELS ": a kernel without a name", r->path,
                 (long long)number);
        return fault(r, 1, message);
    }
    struct group *group = group_of(r, or_none(statement, 2), or_none(statement, 3), or_none(statement, 4));
    if (group == NULL)
        return false;
    group->calls++;
    group->total += (double)ns;
    group->min = fmin(group->min, (double)ns);
    group->max = fmax(group->max, (double)ns);
    r->out->kernels++;
    r->out->graph_kernels += sqlite3_column_type(statement, 5) != SQLITE_NULL;
    return true;
}

static bool read_kernels(struct reader *r)
{
    enum { START, END, DEVICE, PROCESS, NODE, DEMANGLED, SHORT, MANGLED, COLUMNS };
    static const char *const columns[] = {"start",         "end",       "deviceId",    "globalPid", "graphNodeId",
                                          "demangledName", "shortName", "mangledName", NULL};
    bool there, has[COLUMNS] = {false};
    const char *asked[COLUMNS];
    char sql[512];
    if (!has_table(r, KERNELS, &there))
        return false;
    if (!there)
        return true;
    if (!has_columns(r, KERNELS, columns, has))
        return false;
    for (int i = 0; i < COLUMNS; i++)
        asked[i] = has[i] ? columns[i] : "NULL";
    bool named = has[DEMANGLED] || has[SHORT] || has[MANGLED];
    if (!has[START] || !has[END] || !named)
        return k25_fail(r->error, K25_BAD_INPUT, "%s: the table " KERNELS " has no column %s", r->path,
                        !has[START] ? "start"
                        : !has[END] ? "end"
                                    : "demangledName, shortName or mangledName");
    snprintf(sql, sizeof sql, "SELECT [start], [end], %s, %s, coalesce(%s, %s, %s), %s FROM " KERNELS, asked[DEVICE],
             asked[PROCESS], asked[DEMANGLED], asked[SHORT], asked[MANGLED], asked[NODE]);
    sqlite3_stmt *statement = prepare(r, sql);
    bool good = statement != NULL;
    int code = SQLITE_DONE;
    for (int64_t number = 1; good && (code = sqlite3_step(statement)) == SQLITE_ROW; number++)
        good = one_kernel(r, statement, number);
    good = good && (code == SQLITE_DONE || sqlite_failed(r));
    sqlite3_finalize(statement);
    return good;
}

/* ---- names ---- */

/* True with no text: lenient, the kernels of the group are counted as left out. */
static bool name_group(struct reader *r, sqlite3_stmt *statement, struct group *group)
{
    char message[512];
    sqlite3_bind_int64(statement, 1, group->name);
    int code = sqlite3_step(statement);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    bool good = code == SQLITE_ROW || code == SQLITE_DONE || sqlite_failed(r);
    if (good && text != NULL) {
        group->text = k25_arena_copy(&r->out->arena, text, strlen(text));
        good = group->text != NULL || k25_out_of_memory(r->path, r->error);
    } else if (good) {
        snprintf(message, sizeof message, "%s: the name %lld of %lld kernels is not in " STRINGS, r->path,
                 (long long)group->name, (long long)group->calls);
        r->out->kernels -= group->calls;
        good = fault(r, group->calls, message);
    }
    sqlite3_reset(statement);
    return good;
}

static bool read_names(struct reader *r)
{
    static const char *const columns[] = {"id", "value", NULL};
    bool there, has[2] = {false};
    if (r->groups == 0)
        return true;
    if (!has_table(r, STRINGS, &there) || (there && !has_columns(r, STRINGS, columns, has)))
        return false;
    if (!has[0] || !has[1])
        return k25_fail(r->error, K25_BAD_INPUT, "%s: no table " STRINGS "(id, value): kernels have no names", r->path);
    sqlite3_stmt *statement = prepare(r, "SELECT [value] FROM " STRINGS " WHERE [id] = ?1");
    bool good = statement != NULL;
    for (size_t i = 0; good && i < r->groups; i++)
        good = name_group(r, statement, &r->group[i]);
    sqlite3_finalize(statement);
    size_t kept = 0;
    for (size_t i = 0; i < r->groups; i++) {
        if (r->group[i].text != NULL)
            r->group[kept++] = r->group[i];
    }
    r->groups = kept;
    return good;
}

/* ---- the result ---- */

static int compared(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_device_and_total(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->device != y->device)
        return compared(x->device, y->device);
    if (x->process != y->process)
        return compared(x->process, y->process);
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    int names = strcmp(x->text, y->text);
    return names != 0 ? names : compared(x->name, y->name);
}

static bool make_device(struct reader *r, const struct group *group, size_t groups, struct k25_nsys_device *device)
{
    /* nsys packs more than the process into it. */
    device->pid = group->process >= 0 ? group->process >> 24 & 0xffffff : -1;
    device->device = group->device;
    device->table.row = calloc(groups, sizeof *device->table.row);
    if (device->table.row == NULL)
        return k25_out_of_memory(r->path, r->error);
    device->table.rows = groups;
    for (size_t i = 0; i < groups; i++) {
        device->table.row[i] = (struct k25_nsys_row){
            .name = group[i].text,
            .truncated = k25_name_cut(k25_span_of(group[i].text)),
            .instances = group[i].calls,
            .total_ns = group[i].total,
            .avg_ns = group[i].total / (double)group[i].calls,
            .med_ns = NAN,
            .min_ns = group[i].min,
            .max_ns = group[i].max,
            .stddev_ns = NAN,
        };
        device->table.total_ns += group[i].total;
    }
    return true;
}

static bool make_devices(struct reader *r)
{
    size_t first = 0;
    qsort(r->group, r->groups, sizeof *r->group, by_device_and_total);
    for (size_t i = 1; i <= r->groups; i++) {
        const struct group *group = &r->group[first];
        if (i < r->groups && r->group[i].device == group->device && r->group[i].process == group->process)
            continue;
        struct k25_nsys_device *device = K25_LIST_ADD(r->out->device, r->out->devices);
        if (device == NULL)
            return k25_out_of_memory(r->path, r->error);
        if (!make_device(r, group, i - first, device))
            return false;
        first = i;
    }
    return true;
}

/* Why there are no kernels. */
static bool no_kernels(struct reader *r)
{
    bool strings;
    if (r->out->left_out.count > 0)
        return k25_fail(r->error, K25_BAD_INPUT, "%s", r->out->left_out.first);
    if (r->out->graphs > 0)
        return k25_fail(r->error, K25_BAD_INPUT,
                        "%s: graph level only: %lld replays of CUDA graphs, %.12g us in all, and none of their "
                        "kernels, re-record with --cuda-graph-trace=node",
                        r->path, (long long)r->out->graphs, r->out->graph_ns * 1e-3);
    if (!has_table(r, STRINGS, &strings))
        return false;
    if (!strings)
        return k25_fail(r->error, K25_BAD_INPUT, "%s: an SQLite database, but no export of nsys", r->path);
    return k25_fail(r->error, K25_BAD_INPUT,
                    "%s: no kernel data. Record the workers too (nsys profile --trace-fork-before-exec=true "
                    "--cuda-graph-trace=node)",
                    r->path);
}

struct k25_nsys_database *k25_nsys_sqlite_read(const char *path, const struct k25_evidence_options *options,
                                               struct k25_error *error)
{
    struct reader r = {.path = path, .error = error, .out = calloc(1, sizeof *r.out)};
    r.slot = calloc(SLOTS, sizeof *r.slot);
    if (options != NULL)
        r.options = *options;
    bool good = (r.out != NULL && r.slot != NULL) || k25_out_of_memory(path, error);
    good = good && open_database(&r) && read_graphs(&r) && read_kernels(&r) && read_names(&r) &&
           (r.groups > 0 ? make_devices(&r) : no_kernels(&r));
    sqlite3_close(r.db);
    free(r.slot);
    free(r.group);
    if (good)
        return r.out;
    k25_nsys_sqlite_free(r.out);
    return NULL;
}

void k25_nsys_sqlite_free(struct k25_nsys_database *database)
{
    if (database == NULL)
        return;
    for (size_t i = 0; i < database->devices; i++)
        free(database->device[i].table.row);
    free(database->device);
    k25_arena_free(&database->arena);
    free(database);
}
