/* Reads the matrix `nvidia-smi topo -m` prints and builds a graph whose paths have its classes.
 *
 *         GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
 *   GPU0   X      NODE    PIX     0-63            0               N/A
 *   GPU1   NODE    X      SYS     0-63            0               N/A
 *
 * The classes nest: GPUs that reach each other by PIX share a switch, by PXB a switch above their switches, by PHB
 * a root, by NODE a socket. NV# does not tell the PCIe path of a pair, so an NV pair fits any of these groups.
 */
#include "hw/topology/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { TOPO_BYTES = 1 << 20, TOKEN = 24 };

struct token {
    char text[TOKEN]; /* truncated when longer */
    int column;       /* of its first character, from 1 */
};

struct cell {
    enum k25_path_class class;
    int nvlinks; /* # of NV# */
    int line, column;
};

struct matrix {
    const char *name; /* of the file */
    int gpus, rows;
    struct cell cell[K25_MAX_GPUS][K25_MAX_GPUS];
};

/* ---- reading ---- */

struct reader {
    const char *at, *line_start, *end;
    int line;
};

/* The next token of the line, skipping the escapes that underline the header; false at the end of the line. */
static bool next_token(struct reader *reader, struct token *token)
{
    size_t length = 0;
    token->column = 0;
    for (; reader->at < reader->end && *reader->at != '\n'; reader->at++) {
        char c = *reader->at;
        if (c == '\x1b') { /* ESC [ numbers letter; the loop steps over the letter */
            while (reader->at + 1 < reader->end && reader->at[1] != '\0' && strchr("[0123456789;", reader->at[1]))
                reader->at++;
            if (reader->at + 1 < reader->end && reader->at[1] != '\n')
                reader->at++;
            continue;
        }
        if (c == ' ' || c == '\t' || c == '\r') {
            if (length > 0)
                break;
            continue;
        }
        if (length == 0)
            token->column = (int)(reader->at - reader->line_start) + 1;
        if (length + 1 < TOKEN)
            token->text[length++] = c;
    }
    token->text[length] = '\0';
    return length > 0;
}

static bool next_line(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at != '\n')
        reader->at++;
    if (reader->at == reader->end)
        return false;
    reader->line_start = ++reader->at;
    reader->line++;
    return true;
}

/* The number after a prefix ("GPU12"), -1 when the text is something else. */
static int numbered(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    long long number;
    if (strncmp(text, prefix, length) != 0 || strspn(text + length, "0123456789") != strlen(text + length) ||
        !k25_parse_int(text + length, &number) || number > 9999)
        return -1;
    return (int)number;
}

static bool read_header(struct reader *reader, struct matrix *matrix, struct k25_error *error)
{
    struct token token;
    do {
        while (next_token(reader, &token) && numbered(token.text, "GPU") >= 0) {
            int number = numbered(token.text, "GPU");
            if (number != matrix->gpus)
                return k25_fail_at(error, matrix->name, reader->line, token.column, "expected GPU%d, found %s",
                                   matrix->gpus, token.text);
            if (number == K25_MAX_GPUS)
                return k25_fail_at(error, matrix->name, reader->line, token.column, "more than %d GPUs", K25_MAX_GPUS);
            matrix->gpus++;
        }
    } while (matrix->gpus == 0 && next_line(reader));
    return matrix->gpus > 0 || k25_fail_at(error, matrix->name, 1, 1,
                                           "no line starts with GPU0; expected the output of nvidia-smi topo -m");
}

static bool read_cell(const struct matrix *matrix, const struct token *token, bool diagonal, struct cell *cell,
                      struct k25_error *error)
{
    if (diagonal != (strcmp(token->text, "X") == 0))
        return k25_fail_at(error, matrix->name, cell->line, cell->column,
                           diagonal ? "expected X on the diagonal, found %s" : "%s is off the diagonal", token->text);
    if (diagonal)
        return true;
    cell->nvlinks = numbered(token->text, "NV");
    if (cell->nvlinks >= 1 && cell->nvlinks <= 99) {
        cell->class = K25_PATH_NVLINK;
        return true;
    }
    for (enum k25_path_class class = K25_PATH_PIX; class < K25_PATH_CLASSES; class ++)
        if (strcmp(token->text, k25_path_class_names[class]) == 0) {
            cell->class = class;
            cell->nvlinks = 0;
            return true;
        }
    char hint[64];
    return k25_fail_at(error, matrix->name, cell->line, cell->column,
                       "unknown link '%s'%s; expected X, NV#, PIX, PXB, PHB, NODE or SYS", token->text,
                       k25_did_you_mean(token->text, k25_path_class_names + 1, hint, sizeof hint));
}

static bool read_row(struct reader *reader, struct matrix *matrix, struct k25_error *error)
{
    int row = matrix->rows;
    for (int column = 0; column < matrix->gpus; column++) {
        struct token token;
        if (!next_token(reader, &token))
            return k25_fail_at(error, matrix->name, reader->line, (int)(reader->at - reader->line_start) + 1,
                               "the row of GPU%d has %d of %d links", row, column, matrix->gpus);
        struct cell *cell = &matrix->cell[row][column];
        *cell = (struct cell){.line = reader->line, .column = token.column};
        if (!read_cell(matrix, &token, row == column, cell, error))
            return false;
    }
    matrix->rows++;
    return true;
}

/* The rows follow the header, with blank lines allowed; the rest of the text (NICs, legend) is skipped. */
static bool read_rows(struct reader *reader, struct matrix *matrix, struct k25_error *error)
{
    while (matrix->rows < matrix->gpus && next_line(reader)) {
        struct token token;
        if (!next_token(reader, &token))
            continue;
        if (numbered(token.text, "GPU") != matrix->rows)
            return k25_fail_at(error, matrix->name, reader->line, token.column, "expected the row of GPU%d, found %s",
                               matrix->rows, token.text);
        if (!read_row(reader, matrix, error))
            return false;
    }
    return matrix->rows == matrix->gpus ||
           k25_fail_at(error, matrix->name, reader->line, 1, "the file ends after %d of %d GPU rows", matrix->rows,
                       matrix->gpus);
}

/* ---- checking ---- */

static const char *cell_name(const struct cell *cell, char *out, size_t size)
{
    if (cell->class == K25_PATH_NVLINK)
        snprintf(out, size, "NV%d", cell->nvlinks);
    else
        snprintf(out, size, "%s", k25_path_class_names[cell->class]);
    return out;
}

static bool check_symmetry(const struct matrix *matrix, struct k25_error *error)
{
    for (int a = 0; a < matrix->gpus; a++)
        for (int b = 0; b < a; b++) {
            const struct cell *here = &matrix->cell[a][b], *there = &matrix->cell[b][a];
            char name[TOKEN], other[TOKEN];
            if (here->class != there->class || here->nvlinks != there->nvlinks)
                return k25_fail_at(error, matrix->name, here->line, here->column,
                                   "GPU%d to GPU%d is %s, but GPU%d to GPU%d is %s", a, b,
                                   cell_name(here, name, sizeof name), b, a, cell_name(there, other, sizeof other));
        }
    return true;
}

/* group[level][gpu]: the lowest GPU that is reached through a chain of cells of at most this class. */
typedef int grouping[K25_PATH_SYS][K25_MAX_GPUS];

static void unite(int *group, int gpus, int a, int b)
{
    int low = group[a] < group[b] ? group[a] : group[b], high = group[a] < group[b] ? group[b] : group[a];
    for (int i = 0; i < gpus; i++)
        if (group[i] == high)
            group[i] = low;
}

/* Whether the groups of two GPUs may share a socket: no cell between them is SYS. */
static bool may_share(const struct matrix *matrix, const int *group, int a, int b)
{
    for (int i = 0; i < matrix->gpus; i++)
        for (int j = 0; j < matrix->gpus; j++)
            if (i != j && group[i] == group[a] && group[j] == group[b] && matrix->cell[i][j].class == K25_PATH_SYS)
                return false;
    return true;
}

static bool find_groups(const struct matrix *matrix, grouping group, struct k25_error *error)
{
    int n = matrix->gpus;
    for (enum k25_path_class level = K25_PATH_PIX; level < K25_PATH_SYS; level++) {
        for (int a = 0; a < n; a++)
            group[level][a] = a;
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++)
                if (matrix->cell[a][b].class != K25_PATH_NVLINK && matrix->cell[a][b].class <= level)
                    unite(group[level], n, a, b);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++) {
                const struct cell *cell = &matrix->cell[a][b];
                if (group[level][a] == group[level][b] && cell->class > level)
                    return k25_fail_at(error, matrix->name, cell->line, cell->column,
                                       "GPU%d to GPU%d is %s, but other links join them by %s or nearer", a, b,
                                       k25_path_class_names[cell->class], k25_path_class_names[level]);
            }
    }
    /* NVLinked GPUs share a socket unless SYS separates them: eight sockets for eight NV18 GPUs would be wrong */
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++)
            if (matrix->cell[a][b].class == K25_PATH_NVLINK && group[K25_PATH_NODE][a] != group[K25_PATH_NODE][b] &&
                may_share(matrix, group[K25_PATH_NODE], a, b))
                unite(group[K25_PATH_NODE], n, a, b);
    return true;
}

/* ---- building ---- */

struct builder {
    const struct matrix *matrix;
    const struct k25_link_defaults *defaults;
    struct k25_machine *machine;
    struct k25_error *error;
    int count[K25_V_KINDS]; /* vertices of each kind so far, for their names */
};

static bool add(struct builder *builder, enum k25_vertex_kind kind, int *vertex)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", k25_vertex_kind_names[kind], builder->count[kind]++);
    return k25_machine_add_vertex(builder->machine, kind, name, vertex, builder->error);
}

static bool join(struct builder *builder, int from, int to, double nvlink_gbs)
{
    const struct k25_link_defaults *defaults = builder->defaults;
    int generation = builder->machine->gpu.pcie_generation;
    const struct k25_link_figures *pcie = generation > 0 && generation < 5 ? &defaults->pcie4 : &defaults->pcie5;
    return k25_machine_join(builder->machine, from, to, pcie, nvlink_gbs, defaults, builder->error);
}

static int members(const int *group, int gpus, int of)
{
    int count = 0;
    for (int i = 0; i < gpus; i++)
        count += group[i] == of;
    return count;
}

/* The tree above every GPU, from the socket down; each group is built at its lowest member, which comes first. */
static bool build_tree(struct builder *builder, grouping group)
{
    int n = builder->matrix->gpus;
    int socket[K25_MAX_GPUS], root[K25_MAX_GPUS], top[K25_MAX_GPUS], leaf[K25_MAX_GPUS];
    for (int g = 0; g < n; g++) {
        int s = group[K25_PATH_NODE][g], r = group[K25_PATH_PHB][g];
        int t = group[K25_PATH_PXB][g], l = group[K25_PATH_PIX][g];
        if (s == g) {
            if (!add(builder, K25_V_SOCKET, &socket[s]))
                return false;
            for (int other = 0; other < g; other++)
                if (group[K25_PATH_NODE][other] == other && !join(builder, socket[other], socket[s], 0))
                    return false;
        }
        if (r == g && (!add(builder, K25_V_ROOT, &root[r]) || !join(builder, root[r], socket[s], 0)))
            return false;
        /* GPUs with a root or more between them are linked to the root; PXB needs two levels of switches */
        bool several = members(group[K25_PATH_PXB], n, t) > members(group[K25_PATH_PIX], n, l);
        bool shared = several || members(group[K25_PATH_PIX], n, l) > 1;
        if (t == g)
            top[t] = root[r];
        if (t == g && several && (!add(builder, K25_V_SWITCH, &top[t]) || !join(builder, top[t], root[r], 0)))
            return false;
        if (l == g)
            leaf[l] = top[t];
        if (l == g && shared && (!add(builder, K25_V_SWITCH, &leaf[l]) || !join(builder, leaf[l], top[t], 0)))
            return false;
        if (!join(builder, g, leaf[l], 0))
            return false;
    }
    return true;
}

/* Bandwidth of `links` of the `all` NVLinks of a GPU in one direction, GB/s. */
static double nvlinks_carry(const struct builder *builder, int links, int all)
{
    double both_ways = builder->machine->gpu.nvlink_gbs;
    return both_ways > 0 ? both_ways / 2 * links / all : links * builder->defaults->nvlink.bandwidth_gbs;
}

static int nvlinks_of(const struct matrix *matrix, int gpu)
{
    int all = 0;
    for (int other = 0; other < matrix->gpus; other++)
        all += other != gpu ? matrix->cell[gpu][other].nvlinks : 0;
    return all;
}

/* Equal NVLinks of all pairs, more than a GPU has for separate links to every peer, go to an NVSwitch. */
static bool build_nvlinks(struct builder *builder)
{
    const struct matrix *matrix = builder->matrix;
    int n = matrix->gpus, alike = n > 1 ? matrix->cell[0][1].nvlinks : 0, nvswitch;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (a != b && matrix->cell[a][b].nvlinks != alike)
                alike = 0;
    if (alike > 0 && alike * (n - 1) > builder->defaults->nvlinks) {
        if (!add(builder, K25_V_NVSWITCH, &nvswitch))
            return false;
        for (int g = 0; g < n; g++)
            if (!join(builder, g, nvswitch, nvlinks_carry(builder, alike, alike)))
                return false;
        return true;
    }
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            int links = matrix->cell[a][b].nvlinks;
            if (links > 0 && !join(builder, a, b, nvlinks_carry(builder, links, nvlinks_of(matrix, a))))
                return false;
        }
    return true;
}

static bool build(const struct matrix *matrix, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                  struct k25_error *error)
{
    grouping group;
    if (!find_groups(matrix, group, error))
        return false;
    struct k25_machine built = *machine;
    struct k25_error cause;
    struct builder builder = {.matrix = matrix, .defaults = defaults, .machine = &built, .error = &cause};
    k25_machine_clear(&built);
    bool done = true;
    for (int g = 0, vertex; done && g < matrix->gpus; g++)
        done = add(&builder, K25_V_GPU, &vertex);
    if (!done || !build_tree(&builder, group) || !build_nvlinks(&builder) || !k25_machine_check(&built, &cause))
        return k25_fail_at(error, matrix->name, 0, 0, "%s", cause.message);
    built.assumed_links = true;
    *machine = built;
    return true;
}

bool k25_machine_parse_topo(const char *text, size_t size, const char *name, const struct k25_link_defaults *defaults,
                            struct k25_machine *machine, struct k25_error *error)
{
    struct reader reader = {.at = text, .line_start = text, .end = text + size, .line = 1};
    struct matrix *matrix = calloc(1, sizeof *matrix);
    if (!matrix)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    matrix->name = name;
    bool done = read_header(&reader, matrix, error) && read_rows(&reader, matrix, error) &&
                check_symmetry(matrix, error) && build(matrix, defaults, machine, error);
    free(matrix);
    return done;
}

bool k25_machine_import_topo(const char *path, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                             struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, TOPO_BYTES, &size, error);
    if (!text)
        return false;
    bool done = k25_machine_parse_topo(text, size, strcmp(path, "-") == 0 ? "<stdin>" : path, defaults, machine, error);
    free(text);
    return done;
}
