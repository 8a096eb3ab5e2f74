/* Which files of a folder are the capture: those of the newest complete set of ranks, told from their names. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "calib/capture/internal.h"

#define TOGETHER_NS (60 * INT64_C(1000000000)) /* files of one set are written within a minute */

struct candidate {
    char path[512];
    int rank;      /* -1: the name does not tell */
    int64_t stamp; /* ns; 0: none */
};

struct candidates {
    struct candidate *list;
    size_t count;
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* "Jul_15_10_52_41" as a time in some year; 0: not there. */
static int64_t calendar_stamp(const char *name)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (const char *p = name; *p != '\0'; p++) {
        char month[4];
        int day, hour, minute, second;
        if (sscanf(p, "%3[A-Za-z]_%2d_%2d_%2d_%2d", month, &day, &hour, &minute, &second) != 5 || strlen(month) != 3)
            continue;
        const char *found = strstr(months, month);
        if (found != NULL && (found - months) % 3 == 0)
            return ((((found - months) / 3 * 31 + day) * INT64_C(24) + hour) * 3600 + minute * 60 + second) *
                   INT64_C(1000000000);
    }
    return 0;
}

/* The time in a name: ns, us, ms or s since 1970 by the number of digits. 0: none. */
static int64_t name_stamp(const char *name)
{
    for (const char *p = name; *p != '\0';) {
        size_t digits = strspn(p, "0123456789");
        if (digits == 19 || digits == 16 || digits == 13 || digits == 10) {
            int64_t value = strtoll(p, NULL, 10);
            for (size_t i = digits; i < 19; i++)
                value *= 10;
            return value;
        }
        p += digits > 0 ? digits : 1;
    }
    return calendar_stamp(name);
}

bool k25_leave_file(struct k25_capture *capture, const char *file, const char *why)
{
    struct k25_left_file *left = K25_LIST_ADD(capture->left_file, capture->left_files);
    if (left == NULL)
        return false;
    snprintf(left->file, sizeof left->file, "%s", file);
    snprintf(left->why, sizeof left->why, "%s", why);
    return true;
}

/* Why a file of a folder is none of the capture's, from its name; NULL: it may be, "": not worth a word. */
static const char *name_verdict(const char *name)
{
    if (strstr(name, ".json") != NULL && ends_with(name, ".tmp"))
        return "unfinished: the profiler has not renamed it";
    if (!ends_with(name, ".json") && !ends_with(name, ".json.gz"))
        return "";
    if (strstr(name, "async_llm") != NULL)
        return "of the engine's front-end, not of a rank";
    if (strstr(name, "graph_capture") != NULL || strcmp(name, "execution_details.json") == 0)
        return "of CUDA graphs being captured, not run";
    return strstr(name, "-perfetto.json") != NULL ? "spans of the scheduler, no kernels" : NULL;
}

static bool add_candidate(struct candidates *candidates, const char *folder, const char *name)
{
    struct candidate c;
    size_t length = strlen(folder);
    int used =
        snprintf(c.path, sizeof c.path, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    if (used < 0 || (size_t)used >= sizeof c.path)
        return true; /* nobody can name it either */
    c.rank = k25_trace_rank_from_name(c.path);
    c.stamp = name_stamp(name);
    struct candidate *added = K25_LIST_ADD(candidates->list, candidates->count);
    if (added == NULL)
        return false;
    *added = c;
    return true;
}

/* By time, then by name: what readdir gives has no order. */
static int by_stamp(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->stamp != y->stamp)
        return x->stamp < y->stamp ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int by_name(const void *a, const void *b)
{
    const struct dirent *const *x = a, *const *y = b;
    return strcmp((*x)->d_name, (*y)->d_name);
}

static bool list_folder(const char *folder, struct candidates *candidates, struct k25_capture *capture,
                        struct k25_error *error)
{
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, NULL, NULL);
    bool ok = true;
    if (count < 0)
        return k25_fail(error, errno == ENOMEM ? K25_RESOURCE : K25_BAD_INPUT, "%s: %s", folder,
                        strerrordesc_np(errno));
    qsort(entry, (size_t)count, sizeof *entry, by_name);
    for (int i = 0; i < count; i++) {
        char path[512];
        const char *name = entry[i]->d_name, *verdict = name_verdict(name);
        snprintf(path, sizeof path, "%.250s/%.255s", folder, name);
        if (ok && verdict == NULL)
            ok = add_candidate(candidates, folder, name);
        else if (ok && verdict[0] != '\0')
            ok = k25_leave_file(capture, path, verdict);
        free(entry[i]);
    }
    free(entry);
    return ok || k25_fail(error, K25_RESOURCE, "%s: out of memory", folder);
}

/* How many ranks the files [from, to) can be: those that do not tell count one each. */
static size_t ranks_of(const struct candidate *list, size_t from, size_t to)
{
    size_t ranks = 0;
    for (size_t i = from; i < to; i++) {
        size_t earlier = from;
        while (earlier < i && (list[i].rank < 0 || list[earlier].rank != list[i].rank))
            earlier++;
        ranks += earlier == i;
    }
    return ranks;
}

/* The newest set among those with the most ranks. */
static void choose_set(const struct candidates *candidates, size_t *from, size_t *to, size_t *ranks)
{
    *from = *to = *ranks = 0;
    for (size_t first = 0, last; first < candidates->count; first = last) {
        last = first;
        while (last < candidates->count && candidates->list[last].stamp - candidates->list[first].stamp <= TOGETHER_NS)
            last++;
        size_t here = ranks_of(candidates->list, first, last);
        if (here >= *ranks) {
            *from = first;
            *to = last;
            *ranks = here;
        }
    }
}

static bool add_path(struct k25_capture_files *files, const char *path, bool from_folder, struct k25_error *error)
{
    if (files->count == K25_CAPTURE_RANKS)
        return k25_fail(error, K25_BAD_INPUT, "%s: more than %d files of one capture", path, K25_CAPTURE_RANKS);
    if (strlen(path) >= sizeof *files->path)
        return k25_fail(error, K25_BAD_INPUT, "%s: the name is too long", path);
    memcpy(files->path[files->count], path, strlen(path) + 1);
    files->from_folder[files->count++] = from_folder;
    return true;
}

/* SGLang profiles stages apart: the files of prefill are no other ranks. */
static bool leave_prefill(struct candidates *candidates, struct k25_capture *capture)
{
    size_t kept = 0;
    bool decode = false, ok = true;
    for (size_t i = 0; i < candidates->count; i++)
        decode = decode || strstr(candidates->list[i].path, "-DECODE") != NULL;
    for (size_t i = 0; i < candidates->count; i++) {
        if (decode && strstr(candidates->list[i].path, "-EXTEND") != NULL)
            ok = k25_leave_file(capture, candidates->list[i].path, "of the prefill stage") && ok;
        else
            candidates->list[kept++] = candidates->list[i];
    }
    candidates->count = kept;
    return ok;
}

static bool take_set(const char *folder, struct candidates *candidates, struct k25_capture_files *files,
                     struct k25_capture *capture, struct k25_error *error)
{
    size_t from, to, ranks;
    char why[256];
    if (!leave_prefill(candidates, capture))
        return k25_fail(error, K25_RESOURCE, "%s: out of memory", folder);
    if (candidates->count == 0)
        return k25_fail(error, K25_BAD_INPUT, "%s: no trace in this folder, expected *.pt.trace.json or .json.gz",
                        folder);
    qsort(candidates->list, candidates->count, sizeof *candidates->list, by_stamp);
    choose_set(candidates, &from, &to, &ranks);
    for (size_t i = 0; i < candidates->count; i++) {
        const struct candidate *c = &candidates->list[i];
        if (i >= from && i < to) {
            if (!add_path(files, c->path, true, error))
                return false;
            for (size_t j = from; j < i; j++)
                if (c->rank >= 0 && candidates->list[j].rank == c->rank)
                    return k25_fail(error, K25_BAD_INPUT, "two files of rank %d: %s and %s", c->rank,
                                    candidates->list[j].path, c->path);
            continue;
        }
        snprintf(why, sizeof why,
                 c->stamp == 0 ? "no time in its name, unlike the set that is read"
                 : i < from    ? "of an earlier set"
                               : "of a later set with fewer than %zu ranks",
                 ranks);
        if (!k25_leave_file(capture, c->path, why))
            return k25_fail(error, K25_RESOURCE, "%s: out of memory", folder);
    }
    return true;
}

static bool add_folder(const char *folder, struct k25_capture_files *files, struct k25_capture *capture,
                       struct k25_error *error)
{
    struct candidates candidates = {NULL, 0};
    bool ok = list_folder(folder, &candidates, capture, error) && take_set(folder, &candidates, files, capture, error);
    free(candidates.list);
    return ok;
}

bool k25_capture_files(const char *const *paths, size_t count, struct k25_capture_files *files,
                       struct k25_capture *capture, struct k25_error *error)
{
    *files = (struct k25_capture_files){0, malloc(K25_CAPTURE_RANKS * sizeof *files->path),
                                        malloc(K25_CAPTURE_RANKS * sizeof *files->from_folder)};
    bool ok = (files->path != NULL && files->from_folder != NULL) || k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        struct stat about;
        bool folder = stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode);
        ok = folder ? add_folder(paths[i], files, capture, error) : add_path(files, paths[i], false, error);
    }
    return ok;
}

void k25_capture_files_free(struct k25_capture_files *files)
{
    free(files->path);
    free(files->from_folder);
    memset(files, 0, sizeof *files);
}
