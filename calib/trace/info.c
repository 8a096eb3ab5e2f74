#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calib/trace/internal.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The number after `word` (and a '-' or '_'), both at word boundaries; the last one in the name counts. -1 when there
 * is none. */
static int number_after(const char *name, const char *word)
{
    int value = -1;
    size_t size = strlen(word);
    for (const char *p = name; *p != '\0'; p++) {
        if (strncasecmp(p, word, size) != 0 || (p > name && isalnum((unsigned char)p[-1]))) {
            continue;
        }
        const char *digit = p + size;
        digit += *digit == '-' || *digit == '_';
        int number = 0, digits = 0;
        for (; *digit >= '0' && *digit <= '9' && digits < 8; digit++, digits++) {
            number = number * 10 + (*digit - '0');
        }
        if (digits > 0 && digits < 8 && !isalnum((unsigned char)*digit)) {
            value = number;
        }
    }
    return value;
}

int k25_trace_rank_from_name(const char *path)
{
    const char *name = base_name(path);
    int rank = number_after(name, "rank");
    if (rank >= 0) {
        return rank; /* vLLM, HTA */
    }
    /* SGLang: <id>-TP-3-DP-0-PP-1-EP-0: with pipeline stages the rank depends on how many ranks a stage has. */
    return number_after(name, "PP") > 0 ? -1 : strstr(name, "TP-") != NULL ? number_after(name, "TP") : -1;
}

void k25_trace_info_free(struct k25_trace_info *info)
{
    k25_arena_free(&info->arena);
    *info = (struct k25_trace_info){.rank = -1};
}

bool k25_trace_check(const char *path, const struct k25_trace_info *info, struct k25_error *error)
{
    uint64_t calls = info->cpu_ops + info->python_functions;
    switch (info->use) {
    case K25_TRACE_RANK:
        return true;
    case K25_TRACE_NO_GPU:
        return k25_fail(error, K25_NEGATIVE,
                        "%s: no GPU events (%" PRIu64 " CPU operators and Python calls): the capture was CPU-only, "
                        "taken while the engine was idle, or the GPU side of the profiler did not start",
                        path, calls);
    case K25_TRACE_FRONT_END:
        return k25_fail(error, K25_NEGATIVE,
                        "%s: trace of the engine's front-end process (async_llm), not of a rank: no GPU events", path);
    case K25_TRACE_CAPTURE:
        break;
    }
    return k25_fail(error, K25_NEGATIVE,
                    "%s: graph capture trace (%" PRIu64 " kernels, %" PRIu64 " CPU operators and Python calls): "
                    "CUDA graphs being recorded, not run; nothing to time",
                    path, info->events[K25_TRACE_KERNEL], calls);
}

static void say(char *out, size_t size, uint64_t count, const char *one, const char *many)
{
    size_t used = strlen(out);
    if (count > 0 && used + 1 < size) {
        snprintf(out + used, size - used, "%s%" PRIu64 " %s", used > 0 ? "; " : "", count, count == 1 ? one : many);
    }
}

static void mention(char *out, size_t size, bool is, const char *what)
{
    size_t used = strlen(out);
    if (is && used + 1 < size) {
        snprintf(out + used, size - used, "%s%s", used > 0 ? "; " : "", what);
    }
}

const char *k25_trace_damage(const struct k25_trace_info *info, char *out, size_t size)
{
    uint64_t bad_times = 0;
    for (int i = 0; i < K25_TRACE_KINDS; i++) {
        bad_times += info->bad_times[i];
    }
    out[0] = '\0';
    mention(out, size, info->truncated, "cut off");
    mention(out, size, info->bad_crc, "checksum of the gzip data is wrong");
    mention(out, size, info->bad_container, "gzip data damaged, or followed by something else");
    mention(out, size, info->unterminated && !info->truncated, "list of events not closed");
    mention(out, size, info->damaged_root, "part of the metadata unreadable");
    mention(out, size, info->extra_document, "something follows the trace and was not read");
    say(out, size, info->damaged_events, "damaged event skipped", "damaged events skipped");
    size_t used = strlen(out);
    if (info->damaged_events > 0 && used + 1 < size) {
        snprintf(out + used, size - used, ", first at byte %" PRIu64, info->first_damage);
    }
    say(out, size, bad_times, "event without a valid time", "events without a valid time");
    say(out, size, info->damaged_values, "value missing or unreadable", "values missing or unreadable");
    say(out, size, info->damaged_strings, "text with invalid escapes", "texts with invalid escapes");
    say(out, size, info->invalid_utf8, "place with invalid UTF-8", "places with invalid UTF-8");
    say(out, size, info->nonfinite, "value inf or nan", "values inf or nan");
    say(out, size, info->huge_ids, "number over 64 bits", "numbers over 64 bits");
    say(out, size, info->dropped_names, "event with a name over the limit", "events with names over the limit");
    return out;
}
