#include "scenarios/points/suite.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/text.h"

const char *const k25_metric_names[K25_METRICS + 1] = {
    [K25_METRIC_AGGREGATE_TOK_S] = "aggregate_tok_s",
    [K25_METRIC_PER_USER_TOK_S] = "per_user_tok_s",
    [K25_METRIC_TPOT_MS] = "tpot_ms",
    [K25_METRIC_ITL_MS] = "itl_ms",
    [K25_METRIC_STEP_MS] = "step_ms",
};

/* A row while it is read. `failed` is set by the first cell that is wrong; `point->skip` by the first that is missing.
 */
struct row {
    const struct k25_csv *csv;
    size_t index;
    struct k25_point *point;
    struct k25_error *error;
    bool failed;
};

/* A column that the file does not have is empty in every row. */
static const char *cell(const struct row *row, const char *column)
{
    int index = k25_csv_column(row->csv, column);
    return index < 0 ? "" : k25_csv_cell(row->csv, row->index, index);
}

static void skip(struct row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void skip(struct row *row, const char *format, ...)
{
    if (row->point->skip[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->point->skip, sizeof row->point->skip, format, arguments);
    va_end(arguments);
}

static void fail(struct row *row, const char *column, const char *what)
{
    if (!row->failed)
        k25_fail_at(row->error, row->csv->file, row->csv->lines[row->index], 1, "%s: '%s' is not %s", column,
                    cell(row, column), what);
    row->failed = true;
}

/* A number, or `otherwise` when the cell is empty. */
static double number(struct row *row, const char *column, double otherwise)
{
    double value = otherwise;
    const char *text = cell(row, column);
    if (text[0] != '\0' && (!k25_parse_real(text, &value) || value < 0))
        fail(row, column, "a number of at least 0");
    return value;
}

/* An integer; when the cell is empty, the scenario's if there is one, else the row is skipped. */
static int whole(struct row *row, const char *column, int scenario_value)
{
    long long value = scenario_value;
    const char *text = cell(row, column);
    if (text[0] == '\0' && !row->point->described)
        skip(row, "%s is unknown", column);
    else if (text[0] != '\0' && (!k25_parse_int(text, &value) || value < 0 || value > 1000000))
        fail(row, column, "a whole number of at least 0");
    return (int)value;
}

/* The number of a word in `names`: the value of an enum. */
static unsigned choice(struct row *row, const char *column, const char *const *names, unsigned scenario_value)
{
    const char *text = cell(row, column);
    if (text[0] == '\0') {
        if (!row->point->described)
            skip(row, "%s is unknown", column);
        return scenario_value;
    }
    for (unsigned i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
    }
    skip(row, "%s '%.60s' is not known", column, text);
    return scenario_value;
}

/* The machine that a row's wiring and number of GPUs stand for. */
static const char *machine_of(struct row *row)
{
    int gpus = whole(row, "num_gpus", 0);
    const char *wiring = cell(row, "wiring");
    if (strstr(cell(row, "gpu"), "RTX PRO 6000") == NULL) {
        skip(row, "gpu '%.60s' has no machine here", cell(row, "gpu"));
        return "";
    }
    if (gpus == 8 && strcmp(wiring, "two_socket_direct") == 0)
        return "rtx-pro-6000-8x-two-socket";
    if (gpus == 8 && strcmp(wiring, "one_socket_switches") == 0)
        return "rtx-pro-6000-8x-switches";
    if (gpus == 4 && wiring[0] != '\0')
        return "rtx-pro-6000-4x";
    if (gpus == 2 && wiring[0] != '\0')
        return "rtx-pro-6000-2x";
    if (wiring[0] == '\0')
        skip(row, "wiring is unknown");
    else
        skip(row, "no machine with %d GPUs and wiring '%.40s'", gpus, wiring);
    return "";
}

/* The part of a message that says which model, scheme or machine is not in the library; NULL when it says something
 * else, or when the name is the caller's own (`set`) and not the row's. */
static const char *missing_name(const char *message, const char *const *set, size_t count)
{
    static const struct {
        const char *start, *override;
    } names[] = {
        {"unknown architecture ", "architecture="}, {"unknown weights ", "weights="}, {"unknown machine ", "machine="}};
    for (int i = 0; i < 3; i++) {
        const char *at = strstr(message, names[i].start);
        for (size_t s = 0; at != NULL && s < count; s++) {
            if (strncmp(set[s], names[i].override, strlen(names[i].override)) == 0)
                at = NULL;
        }
        if (at != NULL)
            return at;
    }
    return NULL;
}

/* The draft of an EAGLE-3 row whose group has no scenario to name one: MODEL-eagle3 or MODEL-eagle3-mla of the zoo; ""
 * when there is none. */
static const char *draft_of(const struct k25_library *library, const struct row *row, char name[160])
{
    static const char *const endings[] = {"-eagle3", "-eagle3-mla"};
    char path[1024];
    struct k25_error none;
    if (row->point->described || strcmp(cell(row, "spec_kind"), k25_speculation_names[K25_SPEC_EAGLE3]) != 0)
        return "";
    for (int i = 0; i < 2; i++) {
        snprintf(name, 160, "%.140s%s", cell(row, "model"), endings[i]);
        if (k25_library_find(library, K25_FILES_ARCHITECTURE, name, "", "", path, sizeof path, &none))
            return name;
    }
    return "";
}

/* The scenario with the row's architecture, weights and machine: loaded once, then shared. NULL with the row skipped
 * when something it names is not in the library. */
static struct k25_scenario *obtain(const struct k25_library *library, struct k25_suite *suite, const char *name,
                                   const char *const *set, size_t count, struct row *row)
{
    enum { NAMES = 4 };
    char model[160], weights[160], machine[160], draft[160] = "", found[160], key[1024];
    const char *all[K25_MAX_SET + NAMES];
    size_t used = 0;
    const struct {
        const char *key, *value;
        char *text;
    } names[] = {
        {"architecture", cell(row, "model"), model},
        {"weights", cell(row, "weights_kind"), weights},
        {"machine", row->point->described && cell(row, "wiring")[0] == '\0' ? "" : machine_of(row), machine},
        {"draft", draft_of(library, row, found), draft},
    };
    for (int i = 0; i < NAMES; i++) {
        if (i < 3 && names[i].value[0] == '\0' && !row->point->described)
            skip(row, "%s is unknown", names[i].key);
        if (strchr(names[i].value, '/') != NULL)
            skip(row, "%s '%.100s' is not a name", names[i].key, names[i].value);
        snprintf(names[i].text, 160, "%s=%s", names[i].key, names[i].value);
        if (names[i].value[0] != '\0')
            all[used++] = names[i].text;
    }
    if (row->point->skip[0] != '\0')
        return NULL;
    for (size_t i = 0; i < count; i++)
        all[used++] = set[i];
    snprintf(key, sizeof key, "%s %s %s %s %s", name, model, weights, machine, draft);
    for (size_t i = 0; i < suite->settings; i++) {
        if (strcmp(suite->setting[i]->key, key) == 0)
            return &suite->setting[i]->scenario;
    }

    struct k25_setting *setting = calloc(1, sizeof *setting);
    struct k25_setting **added = setting == NULL ? NULL : K25_LIST_ADD(suite->setting, suite->settings);
    if (added == NULL) {
        free(setting);
        row->failed = !k25_fail(row->error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    *added = setting;
    struct k25_error error;
    snprintf(setting->key, sizeof setting->key, "%s", key);
    if (!k25_scenario_load(library, name, all, used, &setting->scenario, &error)) {
        /* What the row names and nobody has is a reason to skip it; any other fault is the caller's. */
        const char *what = missing_name(error.message, set, count);
        if (what != NULL) {
            skip(row, "%.*s", (int)fmin(150, (double)strcspn(what, ";")), what);
        } else {
            *row->error = error;
            row->failed = true;
        }
        k25_scenario_free(&setting->scenario);
        free(setting);
        suite->settings--;
        return NULL;
    }
    return &setting->scenario;
}

static void read_speculation(struct row *row, struct k25_plan_speculation *plan)
{
    const char *acceptance = cell(row, "spec_acceptance");
    plan->method = choice(row, "spec_kind", k25_speculation_names, plan->method);
    if (plan->method == K25_SPEC_NONE)
        return;
    if (cell(row, "spec_tokens")[0] == '\0' && !row->point->described)
        skip(row, "spec_tokens is unknown");
    else if (cell(row, "spec_tokens")[0] != '\0')
        plan->tokens = whole(row, "spec_tokens", 0);
    if (strcmp(cell(row, "attention"), "triton_mla") == 0)
        plan->verify = K25_VERIFY_ROWS; /* that kernel knows no other way */
    snprintf(plan->acceptance, sizeof plan->acceptance, "%.*s", (int)sizeof plan->acceptance - 1, acceptance);
    /* A step needs no acceptance; its tokens do. */
    if (acceptance[0] == '\0' && strcmp(cell(row, "metric"), k25_metric_names[K25_METRIC_STEP_MS]) != 0)
        skip(row, "spec_acceptance is unknown");
}

/* `needed`: the plan's AllReduce depends on it. */
static void read_limit(struct row *row, enum k25_backend custom, bool needed, struct k25_allreduce_limit *limit)
{
    char bytes[48], rows[48];
    snprintf(bytes, sizeof bytes, "%s_max_bytes", k25_backend_keys[custom]);
    snprintf(rows, sizeof rows, "%s_max_rows", k25_backend_keys[custom]);
    if (cell(row, bytes)[0] != '\0') {
        limit->max_bytes = number(row, bytes, 0);
        limit->max_rows = cell(row, rows)[0] == '\0' ? 0 : whole(row, rows, 0);
    } else if (needed && !row->point->described) {
        skip(row, "%s is unknown", bytes);
    }
}

static void read_plan(struct row *row, struct k25_plan *plan)
{
    plan->tp = whole(row, "tp", plan->tp);
    plan->dp = whole(row, "dp", plan->dp);
    plan->pp = whole(row, "pp", plan->pp);
    plan->dcp = whole(row, "dcp", plan->dcp);
    /* Experts over ranks: a row of a build without them leaves the cell empty or says 1. */
    plan->ep = cell(row, "ep")[0] == '\0' ? plan->ep : whole(row, "ep", plan->ep);
    plan->batch = whole(row, "concurrency", 0);
    plan->kv_dtype = choice(row, "kv_dtype", k25_kv_dtype_names, plan->kv_dtype);
    read_speculation(row, &plan->speculation);
    if (cell(row, "context")[0] == '\0')
        skip(row, "context is unknown");
    plan->context = number(row, "context", 0);
    if (cell(row, "concurrency")[0] == '\0')
        skip(row, "concurrency is unknown");

    struct k25_plan_allreduce *allreduce = &plan->allreduce;
    if (plan->tp == 1)
        return;
    allreduce->backend = choice(row, "allreduce_kind", k25_allreduce_policy_names, allreduce->backend);
    const struct k25_policy_info *policy = &k25_policy_info[allreduce->backend];
    for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++)
        read_limit(row, custom, policy->kind == K25_POLICY_LIMITED && policy->backend == custom,
                   &allreduce->limit[custom]);
}

static void read_answer(struct row *row)
{
    struct k25_point *point = row->point;
    if (cell(row, "metric")[0] == '\0')
        skip(row, "metric is unknown");
    point->metric = choice(row, "metric", k25_metric_names, 0);
    point->measured = number(row, "value", 0);
    point->load.cell_seconds = number(row, "cell_seconds", point->load.cell_seconds);
    point->load.output_max = number(row, "output_len", point->load.output_max);
    if (point->measured <= 0)
        skip(row, "no value");
    if (strcmp(cell(row, "anomaly"), "1") == 0)
        skip(row, "anomaly: a box with a known fault");
}

static void ask(struct row *row, struct k25_plan *plan)
{
    struct k25_point *point = row->point;
    struct k25_error error;
    struct k25_draft draft =
        point->skip[0] == '\0' ? k25_scenario_draft(point->scenario) : (struct k25_draft){NULL, NULL};
    double context = plan->context;
    plan->context = fmax(context, point->load.short_prompt);
    if (point->skip[0] == '\0' && !k25_question_make(&point->scenario->architecture, &point->scenario->weights, &draft,
                                                     &point->scenario->machine, plan, NULL, &point->question, &error))
        skip(row, "%.150s", error.message);
    if (point->skip[0] != '\0')
        return;
    point->question.residuals = k25_scenario_residuals(point->scenario);
    struct k25_prediction prediction;
    k25_predict(&point->question, &point->scenario->params, &prediction);
    if (!prediction.memory.fits)
        skip(row, "does not fit: the cache holds %.0f of %.0f tokens", prediction.memory.pool_tokens,
             prediction.memory.need_tokens);
}

/* The name of the scenario that describes a group: the group's, with '-' for the '/' that no file name has. */
static void group_scenario(const char *group, char *name, size_t size)
{
    snprintf(name, size, "%s", group);
    for (char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash, '/'))
        *slash = '-';
}

static bool read_row(const struct k25_library *library, struct k25_suite *suite, const char *scenario,
                     const char *const *set, size_t set_count, struct row *row)
{
    struct k25_point *point = row->point;
    struct k25_plan plan;
    char path[1024];
    memset(point, 0, sizeof *point);
    point->id = cell(row, "id");
    point->group = cell(row, "group");
    point->variant = cell(row, "variant");
    point->line = row->csv->lines[row->index];

    char own[256];
    group_scenario(point->group, own, sizeof own);
    point->described =
        scenario != NULL || k25_library_find(library, K25_FILES_SCENARIO, own, "", "", path, sizeof path, NULL);
    const char *name = scenario != NULL ? scenario : point->described ? own : "points";
    const struct k25_scenario *found = obtain(library, suite, name, set, set_count, row);
    if (found == NULL)
        return !row->failed;
    point->scenario = found;
    point->load = found->load;
    plan = found->plan;
    read_plan(row, &plan);
    read_answer(row);
    if (!row->failed)
        ask(row, &plan);
    return !row->failed;
}

/* The filters, split and checked against the header. */
struct filter {
    int column;
    const char *value;
};

static bool read_filters(const struct k25_csv *csv, const char *const *where, size_t count, struct filter *filter,
                         struct k25_error *error)
{
    char column[128], hint[160];
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(where[i], '=');
        if (equals == NULL || equals - where[i] >= (ptrdiff_t)sizeof column)
            return k25_fail(error, K25_BAD_INPUT, "--where %s: expected COLUMN=VALUE, as in dcp=1", where[i]);
        snprintf(column, sizeof column, "%.*s", (int)(equals - where[i]), where[i]);
        filter[i] = (struct filter){k25_csv_column(csv, column), equals + 1};
        if (filter[i].column < 0) {
            const char **names = calloc(csv->columns + 1, sizeof *names);
            for (size_t c = 0; names != NULL && c < csv->columns; c++)
                names[c] = csv->names[c];
            k25_fail(error, K25_BAD_INPUT, "--where %s: %s has no column '%s'%s", where[i], csv->file, column,
                     names != NULL ? k25_did_you_mean(column, names, hint, sizeof hint) : "");
            free(names);
            return false;
        }
    }
    return true;
}

static bool check_columns(const struct k25_csv *csv, struct k25_error *error)
{
    static const char *const needed[] = {"group",       "variant", "model",  "weights_kind", "num_gpus", "tp",
                                         "concurrency", "context", "metric", "value",        NULL};
    for (int i = 0; needed[i] != NULL; i++) {
        if (k25_csv_column(csv, needed[i]) < 0)
            return k25_fail_at(error, csv->file, 1, 1, "no column '%s', expected the points format", needed[i]);
    }
    return true;
}

/* Whether a point's number divides by the tokens of a step. */
static bool accepts(const struct k25_point *point)
{
    return point->skip[0] == '\0' && point->question.plan.speculation.method != K25_SPEC_NONE &&
           point->metric != K25_METRIC_STEP_MS;
}

static bool same_acceptance(const struct k25_point *a, const struct k25_point *b)
{
    const struct k25_plan_speculation *s = &a->question.plan.speculation, *t = &b->question.plan.speculation;
    return strcmp(a->group, b->group) == 0 && strcmp(a->variant, b->variant) == 0 && s->method == t->method &&
           s->tokens == t->tokens;
}

/* What the calibration set of a point says of cells like it; no cells when it says nothing. */
static struct k25_acceptance calibrated_acceptance(const struct k25_point *point)
{
    const struct k25_plan_speculation *speculation = &point->question.plan.speculation;
    struct k25_acceptance none = {.chain = speculation->tokens}, known = point->scenario->calibration.acceptance;
    snprintf(none.method, sizeof none.method, "%s", k25_speculation_names[speculation->method]);
    bool same = point->scenario->calibrated && strcmp(known.method, none.method) == 0 && known.chain == none.chain;
    return same ? known : none;
}

/* Replaces the reported tokens of a step by what a cell had, as suite.h says. */
static void settle_acceptance(struct k25_suite *suite)
{
    for (size_t i = 0; i < suite->count; i++) {
        struct k25_point *first = &suite->points[i];
        double sum = 0, cells = 0;
        if (!accepts(first) || first->acceptance_sd > 0)
            continue;
        for (size_t j = i; j < suite->count; j++) {
            if (accepts(&suite->points[j]) && same_acceptance(first, &suite->points[j])) {
                sum += log(suite->points[j].question.tokens_per_step);
                cells++;
            }
        }
        struct k25_acceptance shared = calibrated_acceptance(first);
        if (shared.cells == 0)
            shared = (struct k25_acceptance){.chain = shared.chain, .tokens = exp(sum / cells), .cells = cells};
        snprintf(shared.method, sizeof shared.method, "%s",
                 k25_speculation_names[first->question.plan.speculation.method]);
        for (size_t j = i; j < suite->count; j++) {
            struct k25_point *point = &suite->points[j];
            if (!accepts(point) || !same_acceptance(first, point))
                continue;
            point->acceptance = shared;
            double noise = point->load.acceptance_noise, spread = point->load.acceptance_spread;
            double weight = spread * spread / (spread * spread + noise * noise), mean = log(shared.tokens);
            double *tokens = &point->question.tokens_per_step;
            *tokens = exp(mean + weight * (log(*tokens) - mean));
            point->acceptance_sd = spread * sqrt(1 - weight + weight / shared.cells);
        }
    }
}

bool k25_suite_load(const struct k25_library *library, const char *path, const char *scenario, const char *const *where,
                    size_t where_count, const char *const *set, size_t set_count, struct k25_suite *suite,
                    struct k25_error *error)
{
    struct filter filter[K25_MAX_SET];
    memset(suite, 0, sizeof *suite);
    if (where_count > K25_MAX_SET || set_count > K25_MAX_SET)
        return k25_fail(error, K25_BAD_INPUT, "more than %d filters or overrides", K25_MAX_SET);
    suite->csv = k25_csv_read(path, error);
    if (suite->csv == NULL || !check_columns(suite->csv, error) ||
        !read_filters(suite->csv, where, where_count, filter, error))
        return false;
    suite->points = calloc(suite->csv->rows + 1, sizeof *suite->points);
    if (suite->points == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < suite->csv->rows; i++) {
        bool matches = true;
        for (size_t f = 0; f < where_count; f++)
            matches = matches && strcmp(k25_csv_cell(suite->csv, i, filter[f].column), filter[f].value) == 0;
        if (!matches)
            continue;
        struct row row = {suite->csv, i, &suite->points[suite->count++], error, false};
        if (!read_row(library, suite, scenario, set, set_count, &row))
            return false;
    }
    settle_acceptance(suite);
    return true;
}

void k25_suite_free(struct k25_suite *suite)
{
    for (size_t i = 0; i < suite->settings; i++) {
        k25_scenario_free(&suite->setting[i]->scenario);
        free(suite->setting[i]);
    }
    free(suite->setting);
    free(suite->points);
    k25_csv_free(suite->csv);
    memset(suite, 0, sizeof *suite);
}
