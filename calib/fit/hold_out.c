#include "calib/fit/hold_out.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void k25_fit_uncertainty(const struct k25_priors *priors, const struct k25_fit *fit, double sigma,
                         struct k25_uncertainty *u)
{
    int row[K25_PARAMS];
    for (int id = 0; id < K25_PARAMS; id++)
        row[id] = -1;
    for (size_t j = 0; j < fit->free; j++)
        row[fit->id[j]] = (int)j;
    /* A noise estimated from few rows has the tails of Student's t: widen until its 90 % is the normal's. */
    double widen = isfinite(fit->freedom) ? gsl_cdf_tdist_Pinv(0.95, fit->freedom) / K25_Z90 : 1;
    u->count = 0;
    u->noise = sigma * fit->noise_scale * widen;
    for (enum k25_param id = 0; id < K25_PARAMS; id++) {
        if (priors->spread[id] > 0)
            u->id[u->count++] = id;
    }
    for (size_t i = 0; i < u->count; i++) {
        for (size_t j = 0; j < u->count; j++) {
            int a = row[u->id[i]], b = row[u->id[j]];
            double prior = i == j ? priors->spread[u->id[i]] * priors->spread[u->id[i]] : 0;
            u->covariance[i * u->count + j] =
                a >= 0 && b >= 0 ? widen * widen * fit->covariance[(size_t)a * fit->free + (size_t)b] : prior;
        }
    }
}

bool k25_hold_out_split(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                        const bool *leave, struct k25_held_out *held_out, struct k25_error *error)
{
    struct k25_fit fit;
    struct k25_uncertainty *u = malloc(sizeof *u);
    if (u == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    bool ok = k25_fit_solve_noise(priors, observations, count, leave, &fit, error);
    for (size_t i = 0; ok && i < count; i++) {
        const struct k25_observation *o = &observations[i];
        if (!leave[i])
            continue;
        k25_fit_uncertainty(priors, &fit, o->sigma, u);
        double slope[K25_PARAMS], predicted = o->predict(o->context, &fit.params, slope);
        held_out[i] = (struct k25_held_out){predicted, hypot(k25_spread_of(slope, u), u->noise)};
    }
    if (ok)
        k25_fit_free(&fit);
    free(u);
    return ok;
}

/* One fold, with memory of its own. */
static bool hold_out_fold(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                          const int *fold, int k, struct k25_held_out *held_out, struct k25_error *error)
{
    bool *leave = calloc(count + 1, sizeof *leave);
    if (leave == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < count; i++)
        leave[i] = fold[i] == k;
    bool ok = k25_hold_out_split(priors, observations, count, leave, held_out, error);
    free(leave);
    return ok;
}

bool k25_hold_out(const struct k25_priors *priors, const struct k25_observation *observations, size_t count,
                  const int *fold, int folds, struct k25_held_out *held_out, struct k25_error *error)
{
    int failed = folds; /* the first fold that failed: its error is the one reported, whatever the threads did */
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k < folds; k++) {
        struct k25_error failure;
        if (hold_out_fold(priors, observations, count, fold, k, held_out, &failure))
            continue;
#pragma omp critical
        if (k < failed) {
            failed = k;
            if (error != NULL)
                *error = failure;
        }
    }
    return failed == folds;
}

/* splitmix64 (Steele, Lea, Flood 2014): one multiply-shift chain a draw, any seed will do. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void k25_random_half(size_t count, uint64_t seed, bool *leave)
{
    size_t wanted = count / 2;
    for (size_t i = 0; i < count; i++) {
        /* Of the rows that are left, each is chosen with the chance that fills the half exactly. */
        bool take = draw(&seed) % (count - i) < wanted;
        leave[i] = take;
        wanted -= take;
    }
}
