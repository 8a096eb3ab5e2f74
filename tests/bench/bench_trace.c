/* How long the reading of traces takes: bench_trace [--plain] [--ranks] FILE...
 * One line of JSON a file: seconds, MB/s, kernels and their time to the nanosecond, peak memory. With --ranks the
 * files are read in parallel, as an inspection of several ranks does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "calib/trace/trace.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* What an aggregating reader does at least: a sum by name. */
struct sums {
    int64_t by_name[1 << 17];
};

static bool add(void *context, const struct k25_trace_event *event)
{
    struct sums *sums = context;
    if (event->kind == K25_TRACE_KERNEL && event->name_id >= 0) {
        sums->by_name[event->name_id] += event->dur_ns;
    }
    return true;
}

static bool read_one(const char *path, const struct k25_trace_options *options)
{
    static struct sums sums[8]; /* of each thread at most one file at a time: only the speed of adding matters here */
    struct k25_trace_info info;
    struct k25_error error = {0};
    double start = now();
    bool done = k25_trace_read(path, options, add, &sums[((uintptr_t)path >> 4) % 8], &info, &error);
    double seconds = now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (done) {
        printf("{\"seconds\": %.4f, \"gzip_mb_s\": %.1f, \"json_mb_s\": %.1f, \"kernels\": %" PRIu64
               ", \"kernel_ns\": %" PRId64 ", \"peak_mb\": %.1f}\n",
               seconds, 1e-6 * (double)info.file_bytes / seconds, 1e-6 * (double)info.json_bytes / seconds,
               info.events[K25_TRACE_KERNEL], info.busy_ns[K25_TRACE_KERNEL], (double)usage.ru_maxrss / 1024);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    k25_trace_info_free(&info);
    return done;
}

int main(int argc, char **argv)
{
    struct k25_trace_options options = {0};
    bool parallel = false, fine = true;
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        options.plain_scan |= strcmp(argv[first], "--plain") == 0;
        parallel |= strcmp(argv[first], "--ranks") == 0;
    }
#pragma omp parallel for schedule(dynamic) reduction(&& : fine) if (parallel)
    for (int i = first; i < argc; i++) {
        fine = read_one(argv[i], &options) && fine;
    }
    return fine && first < argc ? 0 : 2;
}
