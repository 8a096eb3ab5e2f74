/* How fast a prediction is: predictions a second on one core, and one cold start of the whole program against /bin/true
 * on the same machine in the same run.
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

#include "model/predict/slopes.h"
#include "scenarios/library/scenario.h"

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

/* Seconds of one prediction over batches of 1 to 128; with `slopes` also of its slopes. */
static double time_predictions(struct k25_question *question, const struct k25_params *params,
                               struct k25_slopes *slopes)
{
    static struct k25_prediction prediction;
    double start = now();
    long count = 0;
    while (now() - start < 1) {
        for (int batch = 1; batch <= 128; batch++, count++) {
            question->plan.batch = batch;
            k25_predict(question, params, &prediction);
            if (slopes != NULL)
                k25_slopes(question, params, &prediction, slopes);
        }
    }
    return (now() - start) / (double)count;
}

/* Steps a second where only the context changes from one to the next, beside whole predictions of the same. */
static void bench_next(struct k25_question *question, const struct k25_params *params)
{
    static struct k25_prediction prediction;
    struct k25_question other = *question, *ask[2] = {question, &other};
    double whole = 0, next = 0;
    long count = 0;
    for (double start = now(); now() - start < 1; count += 1000) {
        double before = now();
        for (int i = 0; i < 1000; i++) {
            question->plan.context = 1024 + 8 * i;
            k25_predict(question, params, &prediction);
        }
        double middle = now();
        for (int i = 0; i < 1000; i++) {
            ask[i % 2]->plan.context = 1024 + 8 * i;
            k25_predict_next(ask[!(i % 2)], ask[i % 2], params, &prediction);
        }
        whole += middle - before;
        next += now() - middle;
    }
    printf("next context   %.0f a second on one core, %.0f as whole predictions; ratio %.1f\n", (double)count / next,
           (double)count / whole, whole / next);
}

/* All slopes of a step cost as much as so many predictions, one among them. */
static int bench_slopes(struct k25_question *question, const struct k25_params *params)
{
    static const struct {
        const char *name;
        int ep, drafted;
    } plans[] = {{"TP8", 1, 0}, {"TP8, 3 drafted", 1, 3}, {"EP8", 8, 0}, {"EP8, 3 drafted", 8, 3}};
    struct k25_plan plan = question->plan;
    struct k25_error error;
    struct k25_slopes slopes;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plan.ep = plans[i].ep;
        plan.speculation.method = plans[i].drafted > 0 ? K25_SPEC_NGRAM : K25_SPEC_NONE;
        plan.speculation.tokens = plans[i].drafted;
        if (!k25_question_replan(question, &plan, NULL, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        double alone = time_predictions(question, params, NULL), both = time_predictions(question, params, &slopes);
        printf("slopes         %s: prediction %.2f us, with all slopes %.2f us; ratio %.2f\n", plans[i].name,
               alone * 1e6, both * 1e6, both / alone);
    }
    return 0;
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
    question.plan.batch = 64;
    bench_next(&question, &scenario.params);
    int status = bench_slopes(&question, &scenario.params);
    k25_scenario_free(&scenario);
    return status;
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
