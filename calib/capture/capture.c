/* A capture from its paths: ranks read in parallel, then looked at together. */
#include "calib/capture/capture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/capture/internal.h"

/* One file and what came of it. */
struct reading {
    struct k25_rank rank;
    struct k25_error error;
    bool ok;
};

static void read_files(const struct k25_capture_files *files, const struct k25_capture_options *options,
                       struct reading *readings)
{
    int count = (int)files->count;
    /* One file alone keeps both threads of its reader busy. */
#pragma omp parallel for schedule(dynamic, 1) if (count > 1)
    for (int i = 0; i < count; i++)
        readings[i].ok = k25_rank_read(files->path[i], options, &readings[i].rank, &readings[i].error);
}

/* A file of a folder that holds no GPU work may lie there for another reason; one that is named like a rank and is
 * damaged may not. */
static bool may_leave(const struct reading *reading)
{
    const struct k25_trace_info *info = &reading->rank.info;
    bool gpu = info->events[K25_TRACE_KERNEL] + info->events[K25_TRACE_MEMCPY] + info->events[K25_TRACE_MEMSET] > 0;
    if (reading->error.status == K25_RESOURCE)
        return false;
    return reading->error.status == K25_NEGATIVE || (!gpu && k25_trace_rank_from_name(reading->rank.file) < 0);
}

/* The message without the name of the file in front. */
static const char *reason(const struct reading *reading)
{
    size_t length = strlen(reading->rank.file);
    const char *message = reading->error.message;
    return strncmp(message, reading->rank.file, length) == 0 && strncmp(message + length, ": ", 2) == 0
               ? message + length + 2
               : message;
}

/* Moves the ranks that were read into the capture. */
static bool collect(const struct k25_capture_files *files, struct reading *readings, struct k25_capture *capture,
                    struct k25_error *error)
{
    const struct reading *failed = NULL;
    capture->rank = calloc(files->count + 1, sizeof *capture->rank);
    if (capture->rank == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < files->count; i++) {
        struct reading *r = &readings[i];
        if (r->ok) {
            capture->rank[capture->ranks++] = r->rank;
            memset(&r->rank, 0, sizeof r->rank);
            continue;
        }
        failed = failed != NULL ? failed : r;
        if (!files->from_folder[i] || !may_leave(r))
            return k25_fail(error, r->error.status, "%s", r->error.message);
        if (!k25_leave_file(capture, r->rank.file, reason(r)))
            return k25_fail(error, K25_RESOURCE, "out of memory");
    }
    return capture->ranks > 0 || k25_fail(error, failed->error.status, "%s", failed->error.message);
}

static int by_rank(const void *a, const void *b)
{
    const struct k25_rank *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : strcmp(x->file, y->file);
}

static bool settle_ranks(const struct k25_capture_options *options, struct k25_capture *capture,
                         struct k25_error *error)
{
    struct k25_rank *rank = capture->rank;
    for (int r = 0; r < capture->ranks; r++) {
        if (rank[r].rank >= 0)
            continue;
        if (capture->ranks > 1)
            return k25_fail(error, K25_BAD_INPUT,
                            "%s: neither the file nor its name says which rank it is; read such files one at a time, "
                            "with --rank",
                            rank[r].file);
        rank[r].rank_assumed = true;
        rank[r].rank = options->rank >= 0 ? options->rank : 0;
    }
    qsort(rank, (size_t)capture->ranks, sizeof *rank, by_rank);
    capture->world_size = -1;
    for (int r = 0; r < capture->ranks; r++) {
        int world = rank[r].info.world_size;
        if (r > 0 && rank[r].rank == rank[r - 1].rank)
            return k25_fail(error, K25_BAD_INPUT, "two files of rank %d: %s and %s", rank[r].rank, rank[r - 1].file,
                            rank[r].file);
        if (r > 0 && world > 0 && rank[0].info.world_size > 0 && world != rank[0].info.world_size)
            return k25_fail(error, K25_BAD_INPUT, "%s is of %d ranks, %s of %d: not one capture", rank[0].file,
                            rank[0].info.world_size, rank[r].file, world);
        capture->world_size = world > 0 ? world : capture->world_size;
    }
    return true;
}

/* Ranks without a file. A capture of one rank is asked for as such, and misses none. */
static bool find_missing(struct k25_capture *capture)
{
    int world = capture->world_size, at = 0;
    if (capture->ranks < 2 || world <= capture->ranks)
        return true;
    capture->missing = malloc((size_t)world * sizeof *capture->missing);
    for (int r = 0; capture->missing != NULL && r < world; r++) {
        while (at < capture->ranks && capture->rank[at].rank < r)
            at++;
        if (at == capture->ranks || capture->rank[at].rank != r)
            capture->missing[capture->missings++] = r;
    }
    return capture->missing != NULL;
}

static void mean_over_ranks(struct k25_capture *capture)
{
    double context = 0, contexts = 0, period = 0, periods = 0, busy = 0, busies = 0;
    bool first = true;
    capture->sequences = capture->tokens = -1;
    for (int r = 0; r < capture->ranks; r++) {
        const struct k25_rank *rank = &capture->rank[r];
        period += isnan(rank->step_period) ? 0 : rank->step_period;
        periods += !isnan(rank->step_period);
        busy += isnan(rank->gpu_busy) ? 0 : rank->gpu_busy;
        busies += !isnan(rank->gpu_busy);
        for (size_t i = 0; i < rank->steps; i++) {
            const struct k25_capture_step *step = &rank->step[i];
            if (step->fate != K25_STEP_KEPT)
                continue;
            capture->sequences = first || capture->sequences == step->sequences ? step->sequences : -1;
            capture->tokens = first || capture->tokens == step->tokens ? step->tokens : -1;
            first = false;
            context += step->context;
            contexts += step->context > 0;
        }
    }
    capture->context = contexts > 0 ? context / contexts : 0;
    capture->step_period = periods > 0 ? period / periods : NAN;
    capture->gpu_busy = busies > 0 ? busy / busies : NAN;
}

static bool look_together(struct k25_capture *capture, struct k25_error *error)
{
    struct k25_matches matches = {0};
    capture->clock_offset = calloc((size_t)capture->ranks, sizeof *capture->clock_offset);
    capture->rank_wait = calloc((size_t)capture->ranks, sizeof *capture->rank_wait);
    bool ok = capture->clock_offset != NULL && capture->rank_wait != NULL && find_missing(capture) &&
              k25_match_ranks(capture, &matches) && k25_compare_ranks(capture, &matches);
    k25_matches_free(&matches);
    mean_over_ranks(capture);
    return ok || k25_fail(error, K25_RESOURCE, "out of memory");
}

bool k25_capture_read(const char *const *paths, size_t count, const struct k25_capture_options *options,
                      struct k25_capture *capture, struct k25_error *error)
{
    struct k25_capture_files files;
    struct reading *readings = NULL;
    memset(capture, 0, sizeof *capture);
    capture->rules = options->rules;
    bool ok = k25_capture_files(paths, count, &files, capture, error);
    if (ok && files.count == 0)
        ok = k25_fail(error, K25_BAD_INPUT, "no trace to read");
    if (ok) {
        readings = calloc(files.count, sizeof *readings);
        ok = readings != NULL || k25_fail(error, K25_RESOURCE, "out of memory");
    }
    if (ok) {
        read_files(&files, options, readings);
        ok = collect(&files, readings, capture, error) && settle_ranks(options, capture, error) &&
             look_together(capture, error);
    }
    for (size_t i = 0; readings != NULL && i < files.count; i++)
        k25_rank_free(&readings[i].rank);
    free(readings);
    k25_capture_files_free(&files);
    if (!ok)
        k25_capture_free(capture);
    return ok;
}

void k25_capture_free(struct k25_capture *capture)
{
    for (int r = 0; r < capture->ranks; r++)
        k25_rank_free(&capture->rank[r]);
    for (size_t g = 0; g < capture->groups; g++)
        free(capture->group[g].rank_wait);
    free(capture->rank);
    free(capture->missing);
    free(capture->left_file);
    free(capture->clock_offset);
    free(capture->group);
    free(capture->rank_wait);
    memset(capture, 0, sizeof *capture);
}
