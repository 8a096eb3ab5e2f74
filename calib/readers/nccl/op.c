#include "calib/readers/nccl/internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* As nccl-tests names its programs; the longer name first where one holds the other. */
static const char *const ops[] = {
    "all_reduce", "all_gather", "reduce_scatter", "alltoallv", "alltoall", "broadcast",
    "sendrecv",   "hypercube",  "gather",         "scatter",   "reduce",   NULL,
};

const char *k25_nccl_op_of_program(struct k25_span word)
{
    const char *end = k25_span_find(word, "_perf");
    if (end == NULL)
        return NULL;
    struct k25_span name = {word.text, (size_t)(end - word.text)};
    for (size_t i = name.size; i-- > 0;) {
        if (name.text[i] == '/') {
            name = k25_after(name, i + 1);
            break;
        }
    }
    for (int i = 0; ops[i] != NULL; i++) {
        if (k25_span_is(name, ops[i]))
            return ops[i];
    }
    return NULL;
}

/* "nccl_rtx4090_4gpu_p2p_allreduce.txt": names of files leave the underscore out, or not. Words as short as
 * "reduce" and "gather" mean too many things in a file name. */
static const char *op_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    char plain[256];
    size_t size = 0;
    for (const char *p = slash == NULL ? path : slash + 1; *p != '\0' && size + 1 < sizeof plain; p++) {
        if (isalnum((unsigned char)*p))
            plain[size++] = (char)tolower((unsigned char)*p);
    }
    plain[size] = '\0';
    for (int i = 0; i < 7; i++) {
        char word[32];
        size_t used = 0;
        for (const char *p = ops[i]; *p != '\0'; p++) {
            if (*p != '_')
                word[used++] = *p;
        }
        word[used] = '\0';
        if (strstr(plain, word) != NULL)
            return ops[i];
    }
    return NULL;
}

static double type_size(const char *type)
{
    static const struct {
        const char *name;
        double bytes;
    } types[] = {
        {"float", 4}, {"half", 2},  {"bfloat16", 2}, {"double", 8}, {"int8", 1},   {"uint8", 1},
        {"int32", 4}, {"int64", 8}, {"uint32", 4},   {"uint64", 8}, {"f8e4m3", 1}, {"f8e5m2", 1},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(type, types[i].name) == 0)
            return types[i].bytes;
    }
    return 0;
}

/* The columns of one row:
 *
 *   bytes = count x size of an element   all_reduce, reduce, broadcast, sendrecv
 *         = that x ranks                 all_gather, reduce_scatter, alltoall
 *
 * alltoall is never checked in place; reduce and broadcast have a root; sendrecv moves what it says (busbw =
 * algbw). */
static const char *op_of_row(const struct k25_open_run *open, const struct k25_nccl_row *row)
{
    double size = type_size(row->type) * (double)row->count;
    if (size <= 0)
        return NULL;
    bool split = (double)row->bytes >= 1.5 * size, sums = row->redop[0] != '\0' && strcmp(row->redop, "none") != 0;
    if (row->root >= 0)
        return split ? NULL : sums ? "reduce" : "broadcast";
    if (split && sums)
        return "reduce_scatter";
    if (split && row->out_of_place.wrong >= 0)
        return row->in_place.wrong >= 0 ? "all_gather" : "alltoall";
    if (split || !sums)
        return NULL;
    const struct k25_nccl_time *time = &row->out_of_place;
    bool moves = open->run.ranks > 2 && time->algbw >= 1 && time->busbw < 1.1 * time->algbw;
    return !moves ? "all_reduce" : open->has_root ? "sendrecv" : NULL;
}

void k25_nccl_name_op(struct k25_open_run *open, const char *file, const char *command)
{
    struct k25_nccl_run *run = &open->run;
    int listed = open->largest_rank + 1, local = run->threads * run->gpus;
    if (run->ranks == 0)
        run->ranks = listed > local ? listed : local;
    const char *named = op_of_file(file), *shaped = run->rows == 0 ? NULL : op_of_row(open, &run->row[run->rows - 1]);
    if (run->op != NULL)
        return;
    run->op_source = command != NULL  ? K25_OP_COMMAND
                     : named != NULL  ? K25_OP_FILE_NAME
                     : shaped != NULL ? K25_OP_ROWS
                                      : K25_OP_UNKNOWN;
    run->op = command != NULL ? command : named != NULL ? named : shaped != NULL ? shaped : "";
}
