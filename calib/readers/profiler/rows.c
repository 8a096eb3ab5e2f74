/* Tables and rows of the profiler table reader, as its two kinds of table hand them over. */
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
    void *more = k25_list_add(reader->open, &reader->count, &reader->room, sizeof *reader->open);
    if (more == NULL) {
        k25_out_of_memory(reader->evidence.file, reader->evidence.error);
        return NULL;
    }
    reader->open = more;
    struct k25_open_table *open = &reader->open[reader->count - 1];
    open->front = front;
    open->table.self_cpu_total_ns = open->table.self_device_total_ns = -1;
    return open;
}

struct k25_profiler_row *k25_profiler_add(struct k25_profiler_reader *reader, struct k25_open_table *open,
                                          struct k25_span name)
{
    struct k25_profiler_table *table = &open->table;
    void *more = k25_list_add(table->row, &table->rows, &open->room, sizeof *table->row);
    if (more != NULL)
        table->row = more;
    char *copy = more == NULL ? NULL : k25_arena_copy(&reader->tables->arena, name.text, name.size);
    if (copy == NULL) {
        k25_out_of_memory(reader->evidence.file, reader->evidence.error);
        return NULL;
    }
    struct k25_profiler_row *row = &table->row[table->rows - 1];
    *row = (struct k25_profiler_row){.name = copy, .truncated = k25_name_cut(name), .line = reader->evidence.line};
    row->calls = row->self_cpu_ns = row->cpu_total_ns = row->self_device_ns = row->device_total_ns = -1;
    bool copies = strncmp(copy, "Memcpy", 6) == 0 || strncmp(copy, "Memset", 6) == 0;
    row->level = copies ? K25_LEVEL_COPY : K25_LEVEL_OP;
    return row;
}
