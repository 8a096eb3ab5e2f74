/* How fast a fit is: measured points fitted with the exact slopes of each, and with central differences of the same
 * predictions in the same run, which also has to end at the same parameters.
 *
 *     bench_fit ROOT [ROWS]     ROWS is how many points differences fit, 24 unless given: they take long
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calib/fit/fit.h"
#include "scenarios/points/suite.h"

static const double NOISE = 0.03;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The k25_observation_model that knows no derivative: two predictions for every parameter. */
static double predict_by_differences(const void *point, const struct k25_params *params, double *slope)
{
    static const double H = 1e-5;
    for (int id = 0; slope != NULL && id < K25_PARAMS; id++) {
        struct k25_params up = *params, down = *params;
        up.value[id] *= exp(H);
        down.value[id] *= exp(-H);
        slope[id] = log(k25_point_predict(point, &up, NULL) / k25_point_predict(point, &down, NULL)) / (2 * H);
    }
    return k25_point_predict(point, params, NULL);
}

/* Seconds of one core for a fit of the first `count` points by `model`. */
static bool time_fit(const struct k25_suite *suite, const struct k25_priors *priors, k25_observation_model *model,
                     size_t count, struct k25_fit *fit, double *seconds, struct k25_error *error)
{
    struct k25_observation *rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    size_t used = 0;
    for (size_t i = 0; i < suite->count && used < count; i++) {
        if (suite->points[i].skip[0] == '\0')
            rows[used++] = (struct k25_observation){model, &suite->points[i], suite->points[i].measured, NOISE};
    }
    double start = now();
    bool ok = k25_fit_solve(priors, rows, used, NULL, fit, error);
    *seconds = now() - start;
    free(rows);
    return ok;
}

static bool bench(const struct k25_suite *suite, const struct k25_priors *priors, size_t few, struct k25_error *error)
{
    struct k25_fit all, exact, plain;
    double all_s, exact_s, plain_s, apart = 0;
    if (!time_fit(suite, priors, k25_point_predict, suite->count, &all, &all_s, error))
        return false;
    printf("fit            %zu rows: %.2f s, %zu parameters, %d iterations\n", suite->count, all_s, all.free,
           all.iterations);
    k25_fit_free(&all);
    if (!time_fit(suite, priors, k25_point_predict, few, &exact, &exact_s, error))
        return false;
    bool ok = time_fit(suite, priors, predict_by_differences, few, &plain, &plain_s, error);
    if (ok) {
        for (int id = 0; id < K25_PARAMS; id++)
            apart = fmax(apart, fabs(log(exact.params.value[id] / plain.params.value[id])));
        printf(
            "fit            %zu rows: %.2f s, with differences %.2f s; ratio %.0f; no parameter differs by more than "
            "%.1e\n",
            few, exact_s, plain_s, plain_s / exact_s, apart);
        k25_fit_free(&plain);
    }
    k25_fit_free(&exact);
    return ok;
}

int main(int argc, char **argv)
{
    static const char *const group = "glm5.1_v2";
    static struct k25_scenario scenario;
    struct k25_library library;
    struct k25_suite suite;
    struct k25_error error;
    char path[sizeof library.root + 64];
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_fit ROOT [ROWS]\n");
        return 2;
    }
    omp_set_num_threads(1); /* CPU seconds do not count what other programs take */
    snprintf(library.root, sizeof library.root, "%s", argv[1]);
    snprintf(path, sizeof path, "%s/calib/points/%s.csv", argv[1], group);
    bool ok = k25_scenario_load(&library, group, NULL, 0, &scenario, &error);
    if (ok && k25_suite_load(&library, path, NULL, NULL, 0, NULL, 0, &suite, &error)) {
        ok = bench(&suite, &scenario.priors, argc > 2 ? strtoul(argv[2], NULL, 10) : 24, &error);
        k25_suite_free(&suite);
    } else {
        ok = false;
    }
    if (!ok)
        fprintf(stderr, "%s\n", error.message);
    k25_scenario_free(&scenario);
    return ok ? 0 : 1;
}
