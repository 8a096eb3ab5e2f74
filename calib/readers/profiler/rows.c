/* Tables and rows of the profiler table reader, as its two kinds of table hand them over. */
#include "base/list.h"
#include "calib/readers/profiler/internal.h"

#include <string.h>

enum { MOST_TABLES = 512 };

struct k25_open_table *k25_profiler_open(struct k25_profiler_reader *reader, struct k25_span front)
{
    if (reader->count == MOST_TABLES) {
        k25_fail_at(reader->evidence.error, reader->evidence.file, reader->evidence.line, 1,
                    "more than %d tables or lines of dashes in one file", MOST_TABLES);
        return NULL;
    }
    struct k25_open_table *open = K25_LIST_ADD(reader->open, reader->count);
    if (open == NULL) {
        k25_out_of_memory(reader->evidence.file, reader->evidence.error);
        return NULL;
    }
    open->front = front;
    open->table.self_cpu_total_ns = open->table.self_device_total_ns = -1;
    return open;
}

struct k25_profiler_row *k25_profiler_add(struct k25_profiler_reader *reader, struct k25_open_table *open,
                                          struct k25_span name)
{
    struct k25_profiler_table *table = &open->table;
    char *copy = k25_arena_copy(&reader->tables->arena, name.text, name.size);
    struct k25_profiler_row *row = copy == NULL ? NULL : K25_LIST_ADD(table->row, table->rows);
    if (row == NULL) {
        k25_out_of_memory(reader->evidence.file, reader->evidence.error);
        return NULL;
    }
    *row = (struct k25_profiler_row){.name = copy, .truncated = k25_name_cut(name), .line = reader->evidence.line};
    row->calls = row->self_cpu_ns = row->cpu_total_ns = row->self_device_ns = row->device_total_ns = -1;
    bool copies = strncmp(copy, "Memcpy", 6) == 0 || strncmp(copy, "Memset", 6) == 0;
    row->level = copies ? K25_LEVEL_COPY : K25_LEVEL_OP;
    return row;
}
