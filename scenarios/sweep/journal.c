#include "scenarios/sweep/journal_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int k25_sweep_print_shard(char *out, size_t size, uint64_t shard, uint64_t shards, uint64_t from, uint64_t to)
{
    return snprintf(out, size, "shard %" PRIu64 " %" PRIu64 " from %" PRIu64 " to %" PRIu64 "\n", shard, shards, from,
                    to);
}

bool k25_sweep_parse_shard(const char *text, uint64_t *shard, uint64_t *shards, uint64_t *from, uint64_t *to,
                           size_t *size)
{
    int used = 0;
    if (sscanf(text, "shard %" SCNu64 " %" SCNu64 " from %" SCNu64 " to %" SCNu64 "%n", shard, shards, from, to,
               &used) != 4 ||
        used == 0 || text[used] != '\n')
        return false;
    *size = (size_t)used + 1;
    return true;
}

static size_t find_reason(const struct k25_sweep_counts *known, const char *text)
{
    size_t i = 0;
    while (i < known->reasons && strcmp(known->reason[i].text, text) != 0)
        i++;
    return i < known->reasons ? i : K25_SWEEP_REASONS - 1;
}

void k25_sweep_print_record(FILE *out, const struct k25_sweep_record *record, const struct k25_sweep_counts *known,
                            size_t told)
{
    const struct k25_sweep_counts *counts = &record->counts;
    for (size_t i = told; i < known->reasons; i++)
        fprintf(out, "reason %s\n", known->reason[i].text);
    fprintf(out, "chunk %" PRIu64 " %" PRIu64 " %016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64, record->to,
            record->size, record->sum, counts->points, counts->evaluated, counts->rows);
    for (size_t i = 0; i < K25_SWEEP_CONSTRAINTS; i++) {
        if (counts->rejected[i] > 0)
            fprintf(out, " r%zu:%" PRIu64, i, counts->rejected[i]);
    }
    for (size_t i = 0; i < counts->reasons; i++) {
        if (counts->reason[i].count > 0)
            fprintf(out, " i%zu:%" PRIu64, find_reason(known, counts->reason[i].text), counts->reason[i].count);
    }
    fputs(" .\n", out);
}

/* " r0:12 i3:4 ." */
static bool parse_tail(const char *at, const char *end, const struct k25_sweep_counts *known,
                       struct k25_sweep_counts *counts)
{
    while (at < end && strncmp(at, " .", 2) != 0) {
        char kind;
        unsigned index;
        uint64_t count;
        int used = 0;
        if (sscanf(at, " %c%u:%" SCNu64 "%n", &kind, &index, &count, &used) != 3 || used == 0)
            return false;
        if (kind == 'r' && index < K25_SWEEP_CONSTRAINTS)
            counts->rejected[index] = count;
        else if (kind == 'i' && index < known->reasons && counts->reasons < K25_SWEEP_REASONS)
            memcpy(counts->reason[counts->reasons].text, known->reason[index].text, sizeof known->reason[0].text),
                counts->reason[counts->reasons++].count = count;
        else
            return false;
        at += used;
    }
    return at + 2 == end;
}

bool k25_sweep_parse_record(const char **at, struct k25_sweep_counts *known, struct k25_sweep_record *record)
{
    const char *line = *at, *end;
    memset(record, 0, sizeof *record);
    while ((end = strchr(line, '\n')) != NULL) {
        if (strncmp(line, "reason ", 7) == 0 && known->reasons < K25_SWEEP_REASONS) {
            struct k25_sweep_reason *reason = &known->reason[known->reasons++];
            reason->count = 0;
            snprintf(reason->text, sizeof reason->text, "%.*s", (int)(end - line - 7), line + 7);
            line = end + 1;
            continue;
        }
        struct k25_sweep_counts *counts = &record->counts;
        int used = 0;
        if (sscanf(line, "chunk %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &record->to,
                   &record->size, &record->sum, &counts->points, &counts->evaluated, &counts->rows, &used) != 6 ||
            used == 0 || line + used > end || !parse_tail(line + used, end, known, counts))
            return false;
        *at = end + 1;
        return true;
    }
    return false;
}
