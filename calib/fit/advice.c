#include "calib/fit/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t candidates(const struct k25_question *question, struct k25_observed *list, char (*what)[128])
{
    static const int batches[] = {1, 8, 32, 128};
    static const double contexts[] = {1024, 32768};
    size_t n = 0;
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++) {
            if (batches[b] * contexts[c] > 1e6)
                continue; /* no cache of such a box holds it */
            list[n] = (struct k25_observed){.kind = K25_OBSERVED_STEP, .question = *question};
            list[n].question.plan.batch = batches[b];
            list[n].question.plan.context = contexts[c];
            snprintf(what[n++], 128, "TPOT of a load test at %d sequence%s and %.0f tokens of context", batches[b],
                     batches[b] == 1 ? "" : "s", contexts[c]);
        }
    }
    list[n] = (struct k25_observed){.kind = K25_OBSERVED_TRANSFER, .question = *question};
    snprintf(what[n++], 128, "a capture of all ranks at this plan: transfer of the AllReduce");
    list[n] = (struct k25_observed){.kind = K25_OBSERVED_WAIT, .question = *question};
    snprintf(what[n++], 128, "a capture of all ranks at this plan: wait of the AllReduce");
    for (enum k25_bucket bucket = 0; bucket < K25_BUCKET_NONE; bucket++) {
        list[n] = (struct k25_observed){.kind = K25_OBSERVED_BUCKET, .bucket = bucket, .question = *question};
        snprintf(what[n++], 128, "a capture of one rank at this plan: time of %s", k25_bucket_names[bucket]);
    }
    return n;
}

static int by_spread(const void *a, const void *b)
{
    double x = ((const struct k25_advice *)a)->sd_after, y = ((const struct k25_advice *)b)->sd_after;
    return (x > y) - (x < y);
}

size_t k25_advise(const struct k25_question *question, const struct k25_params *params, const struct k25_uncertainty *u,
                  struct k25_advice advice[K25_MAX_ADVICE], double *sd_before)
{
    static const double NOISE = 0.02; /* of the measurement to come */
    struct k25_observed list[K25_MAX_ADVICE], target = {.kind = K25_OBSERVED_STEP, .question = *question};
    char what[K25_MAX_ADVICE][128];
    double g[K25_PARAMS], h[K25_PARAMS];
    k25_observed_predict(&target, params, g);
    double before = k25_covariance_of(g, g, u);
    *sd_before = sqrt(before);
    size_t count = 0, n = candidates(question, list, what);
    for (size_t i = 0; i < n; i++) {
        if (!(k25_observed_predict(&list[i], params, h) > 0))
            continue;
        double cross = k25_covariance_of(g, h, u);
        double after = before - cross * cross / (k25_covariance_of(h, h, u) + NOISE * NOISE);
        if (sqrt(fmax(after, 0)) > 0.99 * *sd_before)
            continue;
        advice[count].sd_after = sqrt(fmax(after, 0));
        snprintf(advice[count++].what, sizeof advice[0].what, "%s", what[i]);
    }
    qsort(advice, count, sizeof *advice, by_spread);
    return count;
}
