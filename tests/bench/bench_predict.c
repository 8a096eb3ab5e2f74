/* How fast a prediction is: predictions a second on one core, and one cold start of the whole program against /bin/true on
 * the same machine in the same run.
 *
 *     bench_predict PROGRAM ROOT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scenarios/scenario.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of `runs` runs of a command, its output thrown away; `*peak_kib` is its largest resident size. */
static double time_command(char *const command[], int runs, long *peak_kib)
{
    double seconds[64];
    struct rusage usage;
    for (int i = 0; i < runs; i++) {
        double start = now();
        pid_t child = fork();
        if (child == 0) {
            if (freopen("/dev/null", "w", stdout) == NULL)
                _exit(127);
            execv(command[0], command);
            _exit(127);
        }
        int status;
        wait4(child, &status, 0, &usage);
        seconds[i] = now() - start;
        *peak_kib = usage.ru_maxrss;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, by_value);
    return seconds[runs / 2];
}

static int bench_predictions(const char *root)
{
    struct k25_library library;
    struct k25_error error;
    static struct k25_scenario scenario;
    static struct k25_prediction prediction;
    struct k25_question question;
    snprintf(library.root, sizeof library.root, "%s", root);
    if (!k25_scenario_load(&library, "tp8_bs1", NULL, 0, &scenario, &error) ||
        !k25_scenario_question(&scenario, &question, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    double start = now(), sum = 0;
    long count = 0;
    while (now() - start < 2) {
        for (int batch = 1; batch <= 128; batch++, count++) {
            question.plan.batch = batch;
            k25_predict(&question, &scenario.params, &prediction);
            sum += prediction.step;
        }
    }
    double seconds = now() - start;
    printf("predictions    %.0f a second on one core (%.2f us each; checksum %.6g)\n", (double)count / seconds,
           seconds / (double)count * 1e6, sum / (double)count);
    k25_scenario_free(&scenario);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_predict PROGRAM ROOT\n");
        return 2;
    }
    char *const predict[] = {argv[1], "predict", "tp8_bs1", NULL};
    char *const nothing[] = {"/bin/true", NULL};
    long peak, peak_nothing;
    double cold = time_command(predict, 31, &peak), base = time_command(nothing, 31, &peak_nothing);
    printf("cold start     %.2f ms, %.1f MB resident; /bin/true %.2f ms; ratio %.1f\n", cold * 1e3,
           (double)peak * 1024 / 1e6, base * 1e3, cold / base);
    return bench_predictions(argv[2]);
}
