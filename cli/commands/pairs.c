#include "cli/commands/pairs.h"
#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double CLI_POINT_NOISE = 0.03; /* cells repeated on the public pages differ by 3 to 5 % */

double cli_point_noise(const struct k25_point *point)
{
    return hypot(CLI_POINT_NOISE, point->acceptance_sd);
}

static bool out_of_memory(struct k25_error *error)
{
    return k25_fail(error, K25_RESOURCE, "out of memory");
}

static struct cli_pair *find(struct cli_pairs *pairs, const struct k25_point *point)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct cli_pair *pair = &pairs->list[i];
        if (strcmp(pair->group, point->group) == 0 && strcmp(pair->variant, point->variant) == 0)
            return pair;
    }
    struct cli_pair *pair = K25_LIST_ADD(pairs->list, pairs->count);
    if (pair == NULL)
        return NULL;
    pair->group = point->group;
    pair->variant = point->variant;
    return pair;
}

static bool add(struct cli_pairs *pairs, const struct k25_point *point)
{
    struct cli_pair *pair = find(pairs, point);
    if (pair == NULL)
        return false;
    if (point->skip[0] != '\0') {
        pair->skipped++;
        return true;
    }
    const struct k25_point **added = K25_LIST_ADD(pair->point, pair->count);
    if (added == NULL)
        return false;
    *added = point;
    return true;
}

/* What a prediction with the scenario's own parameters leaves open: their distribution, and the noise of a cell, which
 * a calibration set states. */
static double spread(const struct k25_point *point, const double slope[K25_PARAMS], struct k25_uncertainty *u)
{
    const struct k25_scenario *scenario = point->scenario;
    k25_uncertainty_resolve(&scenario->priors, scenario->calibrated ? &scenario->calibration : NULL, u);
    return hypot(hypot(k25_spread_of(slope, u), point->acceptance_sd), u->noise > 0 ? u->noise : CLI_POINT_NOISE);
}

static bool predict(struct cli_pair *pair)
{
    struct k25_uncertainty *u = malloc(sizeof *u);
    pair->measured = calloc(pair->count + 1, sizeof *pair->measured);
    pair->predicted = calloc(pair->count + 1, sizeof *pair->predicted);
    pair->spread = calloc(pair->count + 1, sizeof *pair->spread);
    pair->roofline = calloc(pair->count + 1, sizeof *pair->roofline);
    bool ok = u != NULL && pair->measured != NULL && pair->predicted != NULL && pair->spread != NULL &&
              pair->roofline != NULL;
    for (size_t i = 0; ok && i < pair->count; i++) {
        const struct k25_point *point = pair->point[i];
        pair->measured[i] = point->measured;
        double slope[K25_PARAMS];
        pair->predicted[i] = k25_point_predict(point, &point->scenario->params, slope);
        pair->spread[i] = spread(point, slope, u);
        pair->roofline[i] = k25_point_roofline(point);
    }
    free(u);
    return ok;
}

bool cli_pairs_make(const struct k25_suite *suites, size_t count, struct cli_pairs *pairs, struct k25_error *error)
{
    bool ok = true;
    memset(pairs, 0, sizeof *pairs);
    for (size_t s = 0; s < count; s++) {
        for (size_t i = 0; ok && i < suites[s].count; i++)
            ok = add(pairs, &suites[s].points[i]);
    }
    for (size_t i = 0; ok && i < pairs->count; i++)
        ok = predict(&pairs->list[i]);
    return ok || out_of_memory(error);
}

void cli_pairs_free(struct cli_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct cli_pair *pair = &pairs->list[i];
        free(pair->point);
        free(pair->measured);
        free(pair->predicted);
        free(pair->fitted);
        free(pair->spread);
        free(pair->held_row);
        free(pair->held_out);
        free(pair->roofline);
        k25_fit_free(&pair->fit);
    }
    free(pairs->list);
    memset(pairs, 0, sizeof *pairs);
}

static struct k25_observation *observe(const struct cli_pair *pair)
{
    struct k25_observation *list = calloc(pair->count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < pair->count; i++)
        list[i] = (struct k25_observation){k25_point_predict, pair->point[i], pair->point[i]->measured,
                                           cli_point_noise(pair->point[i])};
    return list;
}

bool cli_pair_fit(struct cli_pair *pair, struct k25_error *error)
{
    if (pair->count == 0)
        return true;
    cli_starting_priors(pair->point[0]->scenario, &pair->priors);
    struct k25_observation *observations = observe(pair);
    pair->fitted = calloc(pair->count, sizeof *pair->fitted);
    bool ok = (observations != NULL && pair->fitted != NULL) || out_of_memory(error);
    ok = ok && k25_fit_solve_noise(&pair->priors, observations, pair->count, NULL, &pair->fit, error);
    for (size_t i = 0; ok && i < pair->count; i++)
        pair->fitted[i] = k25_point_predict(pair->point[i], &pair->fit.params, NULL);
    free(observations);
    return ok;
}

/* Room for `held` predictions; false when memory is out. */
static bool make_held(struct cli_pair *pair, size_t held)
{
    pair->held_row = calloc(held + 1, sizeof *pair->held_row);
    pair->held_out = calloc(held + 1, sizeof *pair->held_out);
    return pair->held_row != NULL && pair->held_out != NULL;
}

bool cli_pair_cross_validate(struct cli_pair *pair, size_t folds, struct k25_error *error)
{
    if (pair->count < 2)
        return true; /* nothing is left to fit when the only row is held out */
    folds = folds < pair->count ? folds : pair->count;
    cli_starting_priors(pair->point[0]->scenario, &pair->priors);
    struct k25_observation *observations = observe(pair);
    int *fold = calloc(pair->count, sizeof *fold);
    bool ok = (observations != NULL && fold != NULL && make_held(pair, pair->count)) || out_of_memory(error);
    for (size_t i = 0; ok && i < pair->count; i++) {
        fold[i] = (int)(i % folds);
        pair->held_row[i] = i;
    }
    ok = ok && k25_hold_out(&pair->priors, observations, pair->count, fold, (int)folds, pair->held_out, error);
    pair->held = ok ? pair->count : 0;
    free(fold);
    free(observations);
    return ok;
}

bool cli_pair_halves(struct cli_pair *pair, struct k25_error *error)
{
    size_t rows = pair->count;
    if (rows < 2)
        return true;
    cli_starting_priors(pair->point[0]->scenario, &pair->priors);
    struct k25_observation *observations = observe(pair);
    bool *leave = calloc(rows, sizeof *leave);
    struct k25_held_out *half = calloc(rows, sizeof *half);
    bool ok = (observations != NULL && leave != NULL && half != NULL && make_held(pair, rows * CLI_HALVES)) ||
              out_of_memory(error);
    for (uint64_t seed = 1; ok && seed <= CLI_HALVES; seed++) {
        k25_random_half(rows, seed, leave);
        ok = k25_hold_out_split(&pair->priors, observations, rows, leave, half, error);
        for (size_t i = 0; ok && i < rows; i++) {
            if (!leave[i])
                continue;
            pair->held_row[pair->held] = i;
            pair->held_out[pair->held++] = half[i];
        }
    }
    free(half);
    free(leave);
    free(observations);
    return ok;
}

/* Rows exchange these themselves; with another architecture, the names in the scenario need not fit any more. */
static bool depends_on_row(const char *override)
{
    static const char *const keys[] = {"architecture=", "weights=", "machine=", NULL};
    for (int i = 0; keys[i] != NULL; i++) {
        if (strncmp(override, keys[i], strlen(keys[i])) == 0)
            return true;
    }
    return false;
}

bool cli_check_overrides(const struct k25_library *library, const char *scenario, const char *const *set, size_t count,
                         struct k25_error *error)
{
    static struct k25_scenario loaded; /* too large for a stack */
    const char **kept = calloc(count + 1, sizeof *kept);
    size_t used = 0;
    if (kept == NULL)
        return out_of_memory(error);
    for (size_t i = 0; i < count; i++) {
        if (scenario != NULL || !depends_on_row(set[i]))
            kept[used++] = set[i];
    }
    bool ok = k25_scenario_load(library, scenario != NULL ? scenario : "points", kept, used, &loaded, error);
    k25_scenario_free(&loaded);
    free(kept);
    return ok;
}

void cli_starting_priors(const struct k25_scenario *scenario, struct k25_priors *priors)
{
    *priors = scenario->priors;
    for (int id = 0; id < K25_PARAMS; id++) {
        char path[96];
        snprintf(path, sizeof path, "parameters.%s", k25_param_info[id].name);
        const struct k25_input *input = k25_inputs_find(&scenario->inputs, path);
        priors->centre[id] = scenario->params.value[id];
        if (input != NULL && input->origin == K25_FROM_OVERRIDE)
            priors->spread[id] = 0;
        else if (scenario->calibrated && scenario->calibration.set[id] && scenario->calibration.log_sd[id] > 0)
            priors->spread[id] = scenario->calibration.log_sd[id];
    }
}
