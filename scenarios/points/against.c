#include "scenarios/points/against.h"

#include <string.h>

static const char OTHER_SCENARIO[] = "name the scenario that was measured, or choose rows with --where";

/* The scenario that settles only what no row says: rows of any model start there (scenarios/points.yaml). */
static const char ANY_ROW[] = "points";

static int layers_of(const struct k25_architecture *a)
{
    int count = 0;
    for (size_t i = 0; i < a->layer_groups; i++)
        count += a->layers[i].count;
    return count;
}

/* Models of one shape are one model here, whatever they were trained to. */
static bool same_model(const struct k25_architecture *a, const struct k25_architecture *b)
{
    return a->hidden == b->hidden && layers_of(a) == layers_of(b) && a->moe.experts == b->moe.experts &&
           a->mla.heads == b->mla.heads && a->gqa.heads == b->gqa.heads;
}

/* What the row's own columns made of the scenario. */
static void check_scenario(const struct k25_point *point, const char *name, const struct k25_scenario *ours,
                           struct k25_findings *findings)
{
    const struct k25_scenario *theirs = point->scenario;
    if (strcmp(ours->name, ANY_ROW) == 0)
        return;
    if (!same_model(&theirs->architecture, &ours->architecture))
        k25_find(findings, "%.80s:%d: measured on model %.60s, the scenario's is %.60s; %s", name, point->line,
                 theirs->architecture.name, ours->architecture.name, OTHER_SCENARIO);
    else if (strcmp(theirs->weights.name, ours->weights.name) != 0)
        k25_find(findings, "%.80s:%d: measured with weights %.60s, the scenario's are %.60s; %s", name, point->line,
                 theirs->weights.name, ours->weights.name, OTHER_SCENARIO);
    if (theirs->machine.gpus != ours->machine.gpus)
        k25_find_warning(findings, "%.80s:%d: measured on %.60s (%d GPUs), the scenario's machine is %.60s (%d)", name,
                         point->line, theirs->machine.name, theirs->machine.gpus, ours->machine.name,
                         ours->machine.gpus);
}

static const char *cell(const struct k25_suite *suite, const struct k25_point *point, const char *name)
{
    int column = k25_csv_column(suite->csv, name);
    for (size_t i = 0; column >= 0 && i < suite->csv->rows; i++) {
        if (suite->csv->lines[i] == point->line)
            return k25_csv_cell(suite->csv, i, column);
    }
    return "";
}

void k25_suite_check(const struct k25_suite *suite, const char *name, const char *group, const char *variant,
                     const struct k25_scenario *scenario, struct k25_check *check)
{
    const char *gpu = "", *engine = "";
    const struct k25_scenario *checked = NULL;
    for (size_t i = 0; i < suite->count; i++) {
        const struct k25_point *point = &suite->points[i];
        if (group != NULL &&
            (strcmp(point->group, group) != 0 || strcmp(point->variant, variant) != 0 || point->skip[0] != '\0'))
            continue;
        if (point->scenario != NULL && point->scenario != checked)
            check_scenario(point, name, scenario, check->findings);
        checked = point->scenario != NULL ? point->scenario : checked;
        if (strcmp(cell(suite, point, "gpu"), gpu) != 0)
            k25_check_gpu(check, name, gpu = cell(suite, point, "gpu"));
        if (group != NULL && strcmp(cell(suite, point, "engine"), engine) != 0)
            k25_check_engine(check, name, engine = cell(suite, point, "engine"));
    }
}
