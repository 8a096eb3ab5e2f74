/* Measured points: rows to plans, skip reasons and errors word for word, the growing context, the roofline,
 * scores; the points that come along, and the bars of docs/accuracy.md on them. */
#include "tests/unit/physics_check.h"

#include <glob.h>
#include <omp.h>

#include "calib/fit/hold_out.h"
#include "scenarios/points/suite.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_suite suite;

/* A row of a group that no scenario describes, and its columns. */
static const char *const columns[][2] = {{"id", "R1"},
                                         {"group", "elsewhere"},
                                         {"variant", "1"},
                                         {"model", "kimi-k2.6"},
                                         {"weights_kind", "int4_g32"},
                                         {"spec_kind", "none"},
                                         {"attention", ""},
                                         {"allreduce_kind", "oneshot_then_nccl"},
                                         {"oneshot_max_bytes", "57344"},
                                         {"oneshot_max_rows", "8"},
                                         {"wiring", "two_socket_direct"},
                                         {"cell_seconds", "30"},
                                         {"kv_dtype", "fp8"},
                                         {"gpu", "RTX PRO 6000 Blackwell"},
                                         {"num_gpus", "8"},
                                         {"tp", "8"},
                                         {"ep", "1"},
                                         {"dp", "1"},
                                         {"pp", "1"},
                                         {"dcp", "1"},
                                         {"spec_tokens", ""},
                                         {"spec_acceptance", ""},
                                         {"concurrency", "4"},
                                         {"context", "16232"},
                                         {"output_len", ""},
                                         {"metric", "aggregate_tok_s"},
                                         {"value", "207.2"},
                                         {"anomaly", "0"}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

struct change {
    const char *column, *value;
};

/* points.csv with that row, up to five cells of it changed; a value of NULL leaves the column out. */
static void put_row(const struct change *changes)
{
    char head[2048] = "", row[2048] = "";
    for (int i = 0; i < COLUMNS; i++) {
        const char *value = columns[i][1];
        for (int c = 0; c < 5 && changes[c].column != NULL; c++) {
            if (strcmp(changes[c].column, columns[i][0]) == 0)
                value = changes[c].value;
        }
        if (value == NULL)
            continue;
        snprintf(head + strlen(head), sizeof head - strlen(head), "%s%s", head[0] ? "," : "", columns[i][0]);
        snprintf(row + strlen(row), sizeof row - strlen(row), "%s\"%s\"", row[0] ? "," : "", value);
    }
    strcat(head, "\n");
    strcat(head, row);
    strcat(head, "\n");
    put_text("points.csv", head);
}

static bool load(const struct change *changes, const char *scenario, struct k25_error *error)
{
    put_row(changes);
    memset(error, 0, sizeof *error);
    return k25_suite_load(&library, "points.csv", scenario, NULL, 0, NULL, 0, &suite, error);
}

static const struct k25_point *one(const struct change *changes)
{
    struct k25_error error;
    if (!load(changes, NULL, &error))
        fail_msg("%s", error.message);
    assert_int_equal(suite.count, 1);
    return &suite.points[0];
}

#define ROW(...)                                                                                                       \
    (const struct change[5])                                                                                           \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define SAME ROW({NULL, NULL})

static void a_row_becomes_a_plan(void **state)
{
    (void)state;
    const struct k25_point *point = one(SAME);
    assert_string_equal(point->skip, "");
    assert_string_equal(point->id, "R1");
    assert_string_equal(point->group, "elsewhere");
    assert_string_equal(point->variant, "1");
    assert_true(point->line == 2 && !point->described);
    const struct k25_plan *plan = &point->question.plan;
    assert_true(plan->tp == 8 && plan->batch == 4 && plan->context == 16232 && plan->kv_dtype == K25_KV_FP8);
    assert_true(plan->allreduce.backend == K25_AR_ONESHOT_THEN_NCCL &&
                plan->allreduce.limit[K25_BACKEND_ONESHOT].max_bytes == 57344);
    assert_true(plan->allreduce.limit[K25_BACKEND_ONESHOT].max_rows == 8 && plan->speculation.method == K25_SPEC_NONE);
    assert_string_equal(point->question.architecture->name, "kimi-k2.6");
    assert_string_equal(point->question.weights->name, "int4_g32");
    assert_string_equal(point->question.machine->name, "rtx-pro-6000-8x-two-socket");
    assert_true(point->metric == K25_METRIC_AGGREGATE_TOK_S && point->measured == 207.2);
    assert_true(point->load.cell_seconds == 30 && point->load.output_max == 8192);
    k25_suite_free(&suite);
    k25_suite_free(&suite); /* once more does no harm */
}

static void cells_reach_the_plan(void **state)
{
    (void)state;
    const struct k25_point *point = one(ROW({"wiring", "one_socket_switches"}, {"output_len", "2048"},
                                            {"metric", "tpot_ms"}, {"allreduce_kind", "nccl"}));
    assert_string_equal(point->question.machine->name, "rtx-pro-6000-8x-switches");
    assert_true(point->load.output_max == 2048 && point->metric == K25_METRIC_TPOT_MS);
    assert_int_equal(point->question.plan.allreduce.backend, K25_AR_NCCL);
    k25_suite_free(&suite);
    point = one(ROW({"num_gpus", "4"}, {"tp", "4"}, {"model", "minimax-m2.5"}, {"weights_kind", "nvfp4"}));
    assert_string_equal(point->question.machine->name, "rtx-pro-6000-4x");
    k25_suite_free(&suite);
    point = one(ROW({"num_gpus", "2"}, {"tp", "2"}, {"model", "minimax-m2.5"}, {"weights_kind", "nvfp4"}));
    assert_string_equal(point->question.machine->name, "rtx-pro-6000-2x");
    k25_suite_free(&suite);
    point =
        one(ROW({"oneshot_max_rows", ""}, {"ep", ""})); /* no row limit beside a byte limit; no experts over ranks */
    assert_string_equal(point->skip, "");
    assert_true(point->question.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows == 0 &&
                point->question.plan.ep == 1);
    k25_suite_free(&suite);
    point = one(ROW({"context", "0"})); /* a short prompt: the 64 tokens of scenarios/points.yaml */
    assert_true(point->question.plan.context == 64);
    k25_suite_free(&suite);
}

/* Ways to spread a step that a row may name; and drafts, whose acceptance a step alone does not need. */
static void a_row_may_spread_and_draft(void **state)
{
    (void)state;
    const struct k25_point *point = one(ROW({"dcp", "8"}, {"ep", "8"}));
    assert_string_equal(point->skip, "");
    assert_true(point->question.plan.dcp == 8 && point->question.plan.ep == 8);
    k25_suite_free(&suite);
    point = one(ROW({"pp", "2"}, {"tp", "4"}));
    assert_string_equal(point->skip, "");
    assert_true(point->question.plan.pp == 2 && point->question.plan.tp == 4);
    k25_suite_free(&suite);
    point = one(ROW({"spec_kind", "ngram"}, {"spec_tokens", "3"}, {"spec_acceptance", "0.5"}));
    assert_string_equal(point->skip, "");
    assert_true(point->question.plan.speculation.method == K25_SPEC_NGRAM);
    assert_true(point->question.plan.speculation.tokens == 3 && point->question.tokens_per_step == 2.5);
    k25_suite_free(&suite);
    /* A group without a scenario takes the draft that the zoo has for its model, and the kernel's own way to verify. */
    point = one(
        ROW({"spec_kind", "eagle3"}, {"spec_tokens", "3"}, {"spec_acceptance", "2.4"}, {"attention", "triton_mla"}));
    assert_string_equal(point->skip, "");
    assert_string_equal(point->question.draft.architecture->name, "kimi-k2.6-eagle3-mla");
    assert_int_equal(point->question.plan.speculation.verify, K25_VERIFY_ROWS);
    k25_suite_free(&suite);
    point = one(ROW({"spec_kind", "ngram"}, {"spec_tokens", "3"}, {"spec_acceptance", "2.4"}));
    assert_null(point->question.draft.architecture);
    assert_int_equal(point->question.plan.speculation.verify, K25_VERIFY_SHARED);
    k25_suite_free(&suite);
    point = one(ROW({"spec_kind", "ngram"}, {"spec_tokens", "3"}, {"metric", "step_ms"}));
    assert_string_equal(point->skip, "");
    assert_true(isnan(point->question.tokens_per_step));
    k25_suite_free(&suite);
}

/* A group that a scenario describes may leave cells open: they come from it. */
static void a_scenario_fills_the_gaps(void **state)
{
    (void)state;
    const struct k25_point *point =
        one(ROW({"group", "kimi-k26-v3"}, {"wiring", ""}, {"kv_dtype", ""}, {"cell_seconds", ""}));
    assert_string_equal(point->skip, "");
    assert_true(point->described && point->question.plan.kv_dtype == K25_KV_FP8);
    assert_string_equal(point->question.machine->name, "rtx-pro-6000-8x-two-socket");
    assert_int_equal(point->question.plan.allreduce.protocol, K25_PROTO_ALL); /* no column says it */
    assert_true(point->load.cell_seconds == 10 && point->question.plan.memory_utilisation == 0.94);
    k25_suite_free(&suite);
    /* and so do rows of any group when one is given */
    struct k25_error error;
    assert_true(load(ROW({"kv_dtype", ""}, {"allreduce_kind", ""}, {"oneshot_max_bytes", ""}), "kimi-k26-v4", &error));
    assert_string_equal(suite.points[0].skip, "");
    assert_true(suite.points[0].question.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows == 8);
    k25_suite_free(&suite);
}

static const struct {
    struct change change[5];
    const char *reason;
} skips[] = {
    {{{"model", ""}}, "architecture is unknown"},
    {{{"weights_kind", ""}}, "weights is unknown"},
    {{{"wiring", ""}}, "wiring is unknown"},
    {{{"kv_dtype", ""}}, "kv_dtype is unknown"},
    {{{"tp", ""}}, "tp is unknown"},
    {{{"dcp", ""}}, "dcp is unknown"},
    {{{"spec_kind", ""}}, "spec_kind is unknown"},
    {{{"allreduce_kind", ""}}, "allreduce_kind is unknown"},
    {{{"oneshot_max_bytes", ""}}, "oneshot_max_bytes is unknown"},
    {{{"concurrency", ""}}, "concurrency is unknown"},
    {{{"context", ""}}, "context is unknown"},
    {{{"metric", ""}}, "metric is unknown"},
    {{{"value", ""}}, "no value"},
    {{{"value", "0"}}, "no value"},
    {{{"anomaly", "1"}}, "anomaly: a box with a known fault"},
    {{{"spec_kind", "eagle3"}, {"spec_tokens", "3"}}, "spec_acceptance is unknown"},
    {{{"spec_kind", "eagle3"}}, "spec_tokens is unknown"},
    {{{"spec_kind", "mtp"}, {"spec_tokens", "3"}, {"spec_acceptance", "0.5"}},
     "plan.speculation.method: kimi-k2.6 has no multi-token-prediction layer, expected eagle3, ngram, draft or none"},
    {{{"spec_kind", "ngram"}, {"spec_tokens", "3"}, {"spec_acceptance", "0.6/0.5"}},
     "plan.speculation.acceptance: '0.6/0.5' has 2 rates, expected one for each of 3 tokens"},
    {{{"spec_kind", "eagle3"},
      {"spec_tokens", "3"},
      {"spec_acceptance", "2.4"},
      {"model", "minimax-m2.5"},
      {"weights_kind", "nvfp4"}},
     "plan.speculation.method: eagle3 needs a draft model, expected the scenario's draft to name one"},
    {{{"dp", "2"}, {"tp", "4"}}, "does not fit: the cache holds 0 of 64928 tokens"}, /* 4 x 16232 */
    {{{"dcp", "3"}}, "plan.dcp: 3 does not divide the 8 ranks of plan.tp"},
    {{{"ep", "3"}}, "plan.ep: 3 does not divide the 8 ranks of plan.tp"},
    {{{"pp", "2"}}, "plan.tp: 16 ranks on rtx-pro-6000-8x-two-socket, which has 8 GPUs"},
    {{{"gpu", "H200"}}, "gpu 'H200' has no machine here"},
    {{{"num_gpus", "6"}}, "no machine with 6 GPUs and wiring 'two_socket_direct'"},
    {{{"wiring", "ring"}}, "no machine with 8 GPUs and wiring 'ring'"},
    {{{"spec_kind", "dflash"}}, "spec_kind 'dflash' is not known"},
    {{{"kv_dtype", "nvfp4"}}, "kv_dtype 'nvfp4' is not known"},
    {{{"metric", "ttft_ms"}}, "metric 'ttft_ms' is not known"},
    {{{"model", "kimi-k2.7"}}, "unknown architecture 'kimi-k2.7', did you mean 'kimi-k2.7-code'?"},
    {{{"tp", "7"}}, "plan.tp: 7 does not divide the 64 MLA heads of kimi-k2.6"},
    {{{"tp", "16"}}, "plan.tp: 16 ranks on rtx-pro-6000-8x-two-socket, which has 8 GPUs"},
    {{{"context", "300000"}}, "plan.context: 300000 tokens are more than the 262144 that kimi-k2.6 can hold"},
};

static void gaps_and_what_is_not_there_are_skipped(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof skips / sizeof skips[0]; i++) {
        const struct k25_point *point = one(skips[i].change);
        if (strcmp(point->skip, skips[i].reason) != 0) {
            print_message("%s='%s': '%s'\n  expected '%s'\n", skips[i].change[0].column, skips[i].change[0].value,
                          point->skip, skips[i].reason);
            wrong++;
        }
        k25_suite_free(&suite);
    }
    assert_int_equal(wrong, 0);
}

/* An error or a reason, but no division by it. */
static void check_refused(const struct change *changes)
{
    struct k25_error error;
    bool ok = load(changes, NULL, &error);
    assert_true(ok ? suite.points[0].skip[0] != '\0' : error.status == K25_BAD_INPUT);
    k25_suite_free(&suite);
}

static void zero_sequences_are_no_plan(void **state)
{
    (void)state;
    check_refused(ROW({"concurrency", "0"}));
}

static void zero_ranks_are_no_plan(void **state)
{
    (void)state;
    check_refused(ROW({"tp", "0"}));
}

static void too_large_a_cache_is_skipped(void **state)
{
    (void)state;
    const struct k25_point *point = one(ROW({"concurrency", "64"}, {"context", "128000"}));
    /* 64 x 128,000 = 8,192,000 tokens; the box holds about 491,000 */
    int fits = 0, needs = 0;
    assert_int_equal(sscanf(point->skip, "does not fit: the cache holds %d of %d tokens", &fits, &needs), 2);
    assert_int_equal(needs, 8192000);
    assert_within(fits, 491344, 0.05 * 491344);
    k25_suite_free(&suite);
}

static void wrong_cells_have_a_line(void **state)
{
    (void)state;
    static const struct {
        struct change change[5];
        const char *message;
    } cases[] = {
        {{{"context", "long"}}, "points.csv:2:1: context: 'long' is not a number of at least 0"},
        {{{"context", "-1"}}, "points.csv:2:1: context: '-1' is not a number of at least 0"},
        {{{"value", "nan"}}, "points.csv:2:1: value: 'nan' is not a number of at least 0"},
        {{{"tp", "8.5"}}, "points.csv:2:1: tp: '8.5' is not a whole number of at least 0"},
        {{{"concurrency", "-4"}}, "points.csv:2:1: concurrency: '-4' is not a whole number of at least 0"},
        {{{"num_gpus", "eight"}}, "points.csv:2:1: num_gpus: 'eight' is not a whole number of at least 0"},
        {{{"cell_seconds", "30s"}}, "points.csv:2:1: cell_seconds: '30s' is not a number of at least 0"},
        {{{"value", NULL}}, "points.csv:1:1: no column 'value', expected the points format"},
        {{{"group", NULL}}, "points.csv:1:1: no column 'group', expected the points format"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error;
        if (load(cases[i].change, NULL, &error))
            fail_msg("%s was accepted", cases[i].message);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
        k25_suite_free(&suite);
    }
    struct k25_error error;
    assert_false(k25_suite_load(&library, "none.csv", NULL, NULL, 0, NULL, 0, &suite, &error));
    assert_string_equal(error.message, "none.csv: no such file");
    k25_suite_free(&suite);
}

/* More rows than an int can count is a wrong cell, not undefined behaviour. */
static void a_row_limit_beyond_all_bounds(void **state)
{
    (void)state;
    struct k25_error error;
    if (load(ROW({"oneshot_max_rows", "1e15"}), NULL, &error))
        assert_true(suite.points[0].question.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows >= 0);
    else
        assert_int_equal(error.status, K25_BAD_INPUT);
    k25_suite_free(&suite);
}

/* A column that is not there is a column of empty cells, whatever stands beside it. */
static void absent_columns_are_empty(void **state)
{
    (void)state;
    static const struct {
        const char *column, *reason;
    } cases[] = {{"wiring", "wiring is unknown"},
                 {"kv_dtype", "kv_dtype is unknown"},
                 {"spec_kind", "spec_kind is unknown"},
                 {"metric", ""},
                 {"anomaly", ""},
                 {"ep", ""},
                 {"output_len", ""},
                 {"oneshot_max_rows", ""},
                 {"id", ""},
                 {"spec_tokens", ""}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error;
        if (strcmp(cases[i].column, "metric") == 0)
            continue; /* needed: see above */
        bool ok = load(ROW({cases[i].column, NULL}), NULL, &error);
        const char *said = ok ? suite.points[0].skip : error.message;
        if (!ok || strcmp(said, cases[i].reason) != 0) {
            print_message("without %s: '%s'\n  expected '%s'\n", cases[i].column, said, cases[i].reason);
            wrong++;
        }
        k25_suite_free(&suite);
    }
    assert_int_equal(wrong, 0);
}

static void put_rows(void)
{
    put_text("rows.csv",
             "id,group,variant,model,weights_kind,spec_kind,allreduce_kind,oneshot_max_bytes,oneshot_max_rows,wiring,"
             "cell_seconds,kv_dtype,gpu,num_gpus,tp,ep,dp,pp,dcp,spec_tokens,concurrency,context,output_len,metric,"
             "value,"
             "anomaly\n"
             "A,kimi-k26-v4,1,kimi-k2.6,int4_g32,none,oneshot_then_nccl,57344,8,two_socket_direct,30,fp8,RTX PRO "
             "6000,8,8"
             ",1,1,1,1,,1,0,,aggregate_tok_s,92.4,0\n"
             "B,kimi-k26-v4,1,kimi-k2.6,int4_g32,none,oneshot_then_nccl,57344,8,two_socket_direct,30,fp8,RTX PRO "
             "6000,8,8"
             ",1,1,1,1,,16,0,,aggregate_tok_s,636.2,0\n"
             "C,kimi-k26-v3,2,kimi-k2.6,int4_g32,none,oneshot_then_nccl,57344,0,two_socket_direct,30,fp8,RTX PRO "
             "6000,8,8"
             ",1,1,1,8,,1,0,,aggregate_tok_s,91.4,0\n");
}

static void filters_choose_rows(void **state)
{
    (void)state;
    struct k25_error error;
    static const char *const where[] = {"group=kimi-k26-v4", "concurrency=16"}, *const none[] = {"dcp=3"};
    put_rows();
    assert_true(k25_suite_load(&library, "rows.csv", NULL, where, 2, NULL, 0, &suite, &error));
    assert_int_equal(suite.count, 1);
    assert_string_equal(suite.points[0].id, "B");
    assert_int_equal(suite.points[0].line, 3);
    k25_suite_free(&suite);
    assert_true(k25_suite_load(&library, "rows.csv", NULL, none, 1, NULL, 0, &suite, &error));
    assert_int_equal(suite.count, 0);
    k25_suite_free(&suite);
    assert_true(k25_suite_load(&library, "rows.csv", NULL, NULL, 0, NULL, 0, &suite, &error));
    assert_int_equal(suite.count, 3);
    assert_int_equal(suite.settings, 2); /* rows of one box share one scenario */
    assert_ptr_equal(suite.points[0].scenario, suite.points[1].scenario);
    k25_suite_free(&suite);
}

static void wrong_filters(void **state)
{
    (void)state;
    static const struct {
        const char *where, *message;
    } cases[] = {
        {"dcp", "--where dcp: expected COLUMN=VALUE, as in dcp=1"},
        {"concurency=1", "--where concurency=1: rows.csv has no column 'concurency', did you mean 'concurrency'?"},
        {"=1", "--where =1: rows.csv has no column ''"},
    };
    put_rows();
    for (size_t i = 0; i < 3; i++) {
        struct k25_error error;
        assert_false(k25_suite_load(&library, "rows.csv", NULL, &cases[i].where, 1, NULL, 0, &suite, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
        k25_suite_free(&suite);
    }
}

static void overrides_hold_for_every_row(void **state)
{
    (void)state;
    struct k25_error error;
    static const char *const set[] = {"parameters.nccl.hop=0.7", "machine.gpu.sms=142"};
    put_rows();
    assert_true(k25_suite_load(&library, "rows.csv", NULL, NULL, 0, set, 2, &suite, &error));
    for (size_t i = 0; i < 2; i++) {
        assert_close(suite.points[i].scenario->params.value[K25_NCCL_HOP], 0.7e-6, 1e-12);
        assert_int_equal(suite.points[i].question.machine->gpu.sms, 142);
    }
    k25_suite_free(&suite);
}

/* A mistake in an override is the user's, not a property of every row. */
static void a_wrong_override_fails(void **state)
{
    (void)state;
    struct k25_error error = {0};
    static const char *const set[] = {"parameters.nccl.hopp=0.7"};
    put_rows();
    bool ok = k25_suite_load(&library, "rows.csv", NULL, NULL, 0, set, 1, &suite, &error);
    if (ok)
        print_message("every row skipped with '%s'\n", suite.points[0].skip);
    k25_suite_free(&suite);
    assert_false(ok);
    assert_string_equal(error.message, "--set parameters.nccl.hopp=0.7: unknown parameter 'nccl.hopp', did you mean "
                                       "'nccl.hop'?");
}

/* L = max(context, short_prompt) + min(cell / tpot, output) / 2, with the tpot that the model predicts at L. */
static void check_growth(const struct change *changes, double start, double cell, double output)
{
    const struct k25_point *point = one(changes);
    assert_string_equal(point->skip, "");
    struct k25_params params = fixed_params();
    static struct k25_prediction p;
    struct k25_question question = point->question;
    double context = k25_point_context(point, &params);
    question.plan.context = context;
    k25_predict(&question, &params, &p);
    double generated = cell > 0 ? fmin(cell / p.tpot, output) : 0;
    assert_close(context, fmin(start + generated / 2, 262144), 1e-4);
    assert_close(k25_point_predict(point, &params, NULL), point->question.plan.batch / p.step, 1e-4);
    k25_suite_free(&suite);
}

static void the_context_grows_while_a_cell_runs(void **state)
{
    (void)state;
    check_growth(SAME, 16232, 30, 8192);
    check_growth(ROW({"context", "0"}, {"concurrency", "1"}), 64, 30, 8192);
    check_growth(ROW({"context", "10"}, {"concurrency", "1"}), 64, 30, 8192); /* shorter than the shortest prompt */
    check_growth(ROW({"output_len", "500"}), 16232, 30, 500);                 /* requests end before the cell: + 250 */
    check_growth(ROW({"cell_seconds", "0"}), 16232, 0, 8192);
    check_growth(ROW({"cell_seconds", ""}), 16232, 0, 8192);                          /* unknown: nothing is added */
    check_growth(ROW({"context", "261000"}, {"concurrency", "1"}), 261000, 30, 8192); /* to the end of the model */
}

static void metrics_have_their_units(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    double value[5];
    for (int metric = 0; metric < 5; metric++) {
        const struct k25_point *point = one(ROW({"metric", k25_metric_names[metric]}, {"concurrency", "4"}));
        assert_int_equal(point->metric, metric);
        value[metric] = k25_point_predict(point, &params, NULL);
        k25_suite_free(&suite);
    }
    /* 4 sequences: per user a quarter; a step of t ms gives each 1000 / t */
    assert_close(value[K25_METRIC_PER_USER_TOK_S], value[K25_METRIC_AGGREGATE_TOK_S] / 4, 1e-12);
    assert_close(value[K25_METRIC_TPOT_MS], 1000 / value[K25_METRIC_PER_USER_TOK_S], 1e-12);
    assert_close(value[K25_METRIC_ITL_MS], value[K25_METRIC_TPOT_MS], 1e-12);
    assert_close(value[K25_METRIC_STEP_MS], value[K25_METRIC_TPOT_MS], 1e-12);
    assert_null(k25_metric_names[5]);
}

static void the_roofline_by_hand(void **state)
{
    (void)state;
    struct k25_error error;
    put_row(ROW({"concurrency", "1"}, {"context", "100000"}, {"metric", "step_ms"}));
    static const char *const set[] = {"parameters.routing.cv=0"};
    assert_true(k25_suite_load(&library, "points.csv", NULL, NULL, 0, set, 1, &suite, &error));
    /* One token: 4.54 GB of BF16 and 60 x 8 x 3,096,576 B of experts (kimi.md: 6.03 GB), 100,000 x 35,136 B of
     * cache, at 1.597 TB/s: 6.03 + 3.51 = 9.54 GB in 5.976 ms. */
    assert_close(k25_point_roofline(&suite.points[0]), (6.03e9 + 3.5136e9) / 1.597e12 * 1e3, 0.001);
    k25_suite_free(&suite);
    put_row(ROW({"concurrency", "2"}, {"context", "100000"}));
    assert_true(k25_suite_load(&library, "points.csv", NULL, NULL, 0, set, 1, &suite, &error));
    /* two tokens: 7.48 GB of weights and twice the cache */
    assert_close(k25_point_roofline(&suite.points[0]), 2 / ((7.48e9 + 7.0272e9) / 1.597e12), 0.001);
    k25_suite_free(&suite);
}

static void scores_by_hand(void **state)
{
    (void)state;
    /* errors +10 %, -20 %, +5 %, 0 */
    const double predicted[] = {110, 80, 105, 100}, measured[] = {100, 100, 100, 100};
    struct k25_score score;
    k25_score(predicted, measured, 4, &score);
    assert_true(score.count == 4 && score.worst_index == 1);
    assert_within(score.mean, 0.0875, 1e-12);
    assert_within(score.median, 0.075, 1e-12); /* between 5 and 10 % */
    assert_within(score.worst, 0.2, 1e-12);
    assert_within(score.bias, -0.0125, 1e-12);
    k25_score(predicted, measured, 3, &score);
    assert_within(score.median, 0.1, 1e-12);
    k25_score(predicted, measured, 0, &score);
    assert_true(score.count == 0 && score.mean == 0 && score.worst == 0);
}

/* From any folder: a file as it is named, else the library's of that name. */
static void tables_of_the_library(void **state)
{
    (void)state;
    char path[1024];
    static const char name[] = "calib/points/kimi_k26_v4.csv", missing[] = "calib/points/kimi.csv";
    assert_string_equal(k25_library_table(&library, name, path, sizeof path),
                        K25_SOURCE_DIR "/calib/points/kimi_k26_v4.csv");
    assert_ptr_equal(k25_library_table(&library, missing, path, sizeof path), missing);
    assert_string_equal(k25_library_table(&library, "-", path, sizeof path), "-");
    FILE *file = fopen("README.md", "w"); /* there is one in the library, too */
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(k25_library_table(&library, "README.md", path, sizeof path), "README.md");
    assert_string_equal(k25_library_table(&library, name, path, 8), name);
}

/* Every file of calib/points has these columns and no others, so no sentences; every row is read
 * and has a value and a source. */
static void points_come_along(void **state)
{
    (void)state;
    static const char header[] = "id,group,variant,model,weights_kind,spec_kind,attention,moe_kernel,allreduce_kind,"
                                 "oneshot_max_bytes,oneshot_max_rows,wiring,gpu_edition,acceptance_kind,cell_seconds,"
                                 "kv_dtype,engine,gpu,num_gpus,tp,ep,dp,pp,dcp,spec_tokens,spec_acceptance,concurrency,"
                                 "context,prompt_len,output_len,metric,value,anomaly,source,";
    size_t rows = 0;
    glob_t found;
    assert_int_equal(glob(K25_SOURCE_DIR "/calib/points/*.csv", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct k25_error error = {0};
        char names[sizeof header + 64] = "";
        if (!k25_suite_load(&library, found.gl_pathv[i], NULL, NULL, 0, NULL, 0, &suite, &error))
            fail_msg("%s", error.message);
        for (size_t c = 0; c < suite.csv->columns; c++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s,", suite.csv->names[c]);
        assert_string_equal(names, header);
        for (size_t r = 0; r < suite.csv->rows; r++) {
            assert_true(atof(k25_csv_cell(suite.csv, r, k25_csv_column(suite.csv, "value"))) > 0);
            assert_true(strchr(k25_csv_cell(suite.csv, r, k25_csv_column(suite.csv, "source")), ':') != NULL);
        }
        rows += suite.count;
        k25_suite_free(&suite);
    }
    assert_int_equal(found.gl_pathc, 27);
    assert_int_equal(rows, 2191);
    globfree(&found);
}

/* The public points of one build, as observations. */
enum { MAX_POINTS = 128 };
struct build {
    struct k25_suite suite;
    struct k25_observation observation[MAX_POINTS];
    double measured[MAX_POINTS];
    size_t count;
};

/* Without speculation; all sizes of DCP, or 1 alone. */
static void load_build(const char *file, bool all_sizes, struct build *build)
{
    static const char *const where[] = {"spec_kind=none", "variant=1", "dcp=1"};
    struct k25_error error;
    char path[512];
    snprintf(path, sizeof path, K25_SOURCE_DIR "/calib/points/%s.csv", file);
    if (!k25_suite_load(&library, path, NULL, where, all_sizes ? 2 : 3, NULL, 0, &build->suite, &error))
        fail_msg("%s", error.message);
    build->count = 0;
    for (size_t i = 0; i < build->suite.count; i++) {
        const struct k25_point *point = &build->suite.points[i];
        if (point->skip[0] != '\0')
            fail_msg("line %d is skipped: %s", point->line, point->skip);
        build->observation[build->count] = (struct k25_observation){k25_point_predict, point, point->measured, 0.03};
        build->measured[build->count++] = point->measured;
        assert_true(build->count < MAX_POINTS);
    }
}

/* Scores predictions of held-out rows; returns how many of them lie in their 90 % interval. */
static size_t score_held_out(const struct build *build, const struct k25_held_out *held_out, const bool *leave,
                             struct k25_score *score)
{
    double predicted[MAX_POINTS], measured[MAX_POINTS];
    size_t count = 0, inside = 0;
    for (size_t i = 0; i < build->count; i++) {
        if (leave != NULL && !leave[i])
            continue;
        predicted[count] = held_out[i].predicted;
        measured[count] = build->measured[i];
        inside += fabs(log(predicted[count] / measured[count])) <= K25_Z90 * held_out[i].sd;
        count++;
    }
    k25_score(predicted, measured, count, score);
    return inside;
}

/* Held-out predictions by `folds` folds (0: one a row), the same bits whatever the number of threads. */
static size_t hold_out(const struct build *build, int folds, struct k25_score *score)
{
    struct k25_held_out held_out[MAX_POINTS], again[MAX_POINTS];
    struct k25_error error;
    int fold[MAX_POINTS];
    folds = folds > 0 ? folds : (int)build->count;
    for (size_t i = 0; i < build->count; i++)
        fold[i] = (int)i % folds;
    const struct k25_priors *priors = &build->suite.points[0].scenario->priors;
    if (!k25_hold_out(priors, build->observation, build->count, fold, folds, held_out, &error))
        fail_msg("%s", error.message);
    if (folds == 5) { /* once is enough: a fit costs a second under the sanitizers */
        omp_set_num_threads(1);
        assert_true(k25_hold_out(priors, build->observation, build->count, fold, folds, again, &error));
        omp_set_num_threads(omp_get_num_procs());
        assert_memory_equal(held_out, again, build->count * sizeof *again);
    }
    return score_held_out(build, held_out, NULL, score);
}

static void leave_one_out(const char *file)
{
    struct build build;
    struct k25_score score;
    load_build(file, false, &build);
    hold_out(&build, 0, &score);
    print_message("%s leave-one-out: mean %.2f %%, worst %.2f %% (line %d)\n", file, 100 * score.mean,
                  100 * score.worst, build.suite.points[score.worst_index].line);
    k25_suite_free(&build.suite);
    assert_true(score.mean <= 0.04 && score.worst <= 0.12);
}

/* Sanitized fits take twenty times as long; two halves walk the same code. */
#ifdef __SANITIZE_ADDRESS__
enum { HALVES = 2 };
#else
enum { HALVES = 20 };
#endif

/* Five folds and twenty random halves of both builds: errors, and intervals that cover what they promise. */
static void folds_and_halves(void **state)
{
    (void)state;
    static const char *const files[] = {"kimi_k26_v4", "kimi_k26_v3"};
    size_t inside = 0, rows = 0;
    for (int f = 0; f < 2; f++) {
        struct build build;
        struct k25_score score;
        struct k25_error error;
        double halves = 0;
        load_build(files[f], true, &build);
        inside += hold_out(&build, 5, &score);
        rows += build.count;
        for (uint64_t seed = 1; seed <= HALVES; seed++) {
            struct k25_held_out held_out[MAX_POINTS];
            struct k25_score half;
            bool leave[MAX_POINTS];
            k25_random_half(build.count, seed, leave);
            assert_true(k25_hold_out_split(&build.suite.points[0].scenario->priors, build.observation, build.count,
                                           leave, held_out, &error));
            score_held_out(&build, held_out, leave, &half);
            halves += half.mean / HALVES;
        }
        print_message("%s five-fold: mean %.2f %%; halves: mean %.2f %%\n", files[f], 100 * score.mean, 100 * halves);
        k25_suite_free(&build.suite);
        assert_true(score.mean <= 0.04 && halves <= 0.05);
    }
    print_message("five-fold intervals of 90 %% hold %zu of %zu\n", inside, rows);
    assert_true((double)inside >= 0.85 * (double)rows && (double)inside <= 0.97 * (double)rows);
}

static void v4_leave_one_out(void **state)
{
    (void)state;
    leave_one_out("kimi_k26_v4");
}

static void v3_leave_one_out(void **state)
{
    (void)state;
    leave_one_out("kimi_k26_v3");
}

/* v4's parameters on v3's rows: only the threshold differs, and that stands in the rows. */
static void v4_carries_over_to_v3(void **state)
{
    (void)state;
    struct build from, to;
    struct k25_fit fit;
    struct k25_score score;
    struct k25_error error;
    double predicted[MAX_POINTS];
    load_build("kimi_k26_v4", false, &from);
    load_build("kimi_k26_v3", false, &to);
    if (!k25_fit_solve(&from.suite.points[0].scenario->priors, from.observation, from.count, NULL, &fit, &error))
        fail_msg("%s", error.message);
    for (size_t i = 0; i < to.count; i++)
        predicted[i] = k25_point_predict(&to.suite.points[i], &fit.params, NULL);
    k25_score(predicted, to.measured, to.count, &score);
    print_message("v4 on v3: mean %.2f %%, worst %.2f %%\n", 100 * score.mean, 100 * score.worst);
    k25_fit_free(&fit);
    k25_suite_free(&from.suite);
    k25_suite_free(&to.suite);
    assert_true(score.mean <= 0.06);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_becomes_a_plan),
        cmocka_unit_test(cells_reach_the_plan),
        cmocka_unit_test(a_row_may_spread_and_draft),
        cmocka_unit_test(a_scenario_fills_the_gaps),
        cmocka_unit_test(gaps_and_what_is_not_there_are_skipped),
        cmocka_unit_test(too_large_a_cache_is_skipped),
        cmocka_unit_test(wrong_cells_have_a_line),
        cmocka_unit_test(a_row_limit_beyond_all_bounds),
        cmocka_unit_test(absent_columns_are_empty),
        cmocka_unit_test(filters_choose_rows),
        cmocka_unit_test(wrong_filters),
        cmocka_unit_test(overrides_hold_for_every_row),
        cmocka_unit_test(a_wrong_override_fails),
        cmocka_unit_test(the_context_grows_while_a_cell_runs),
        cmocka_unit_test(metrics_have_their_units),
        cmocka_unit_test(the_roofline_by_hand),
        cmocka_unit_test(scores_by_hand),
        cmocka_unit_test(tables_of_the_library),
        cmocka_unit_test(points_come_along),
        cmocka_unit_test(v4_leave_one_out),
        cmocka_unit_test(v3_leave_one_out),
        cmocka_unit_test(folds_and_halves),
        cmocka_unit_test(v4_carries_over_to_v3),
        cmocka_unit_test(zero_sequences_are_no_plan),
        cmocka_unit_test(zero_ranks_are_no_plan),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
