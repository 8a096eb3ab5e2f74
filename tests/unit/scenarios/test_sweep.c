/* Sweep files: the grid that they make, the files that they read, and mistakes word for word. */
#include "tests/unit/base_check.h"

#include <math.h>
#include <sys/stat.h>

#include "scenarios/sweep/expression.h"
#include "scenarios/sweep/grid.h"
#include "scenarios/sweep/sweep.h"

static const struct k25_library source = {.root = K25_SOURCE_DIR}, *library = &source;
static struct k25_sweep sweep;

#define HEAD "k25sim: sweep\nversion: 1\nname: t\nbase: tp8_bs1\n"

static bool load(const char *text, struct k25_error *error)
{
    memset(error, 0, sizeof *error);
    put_file("s.yaml", text, strlen(text));
    return k25_sweep_load(library, "./s.yaml", &sweep, error);
}

static void load_well(const char *text)
{
    struct k25_error error;
    if (!load(text, &error))
        fail_msg("%s", error.message);
}

static void expect_error(const char *text, const char *message)
{
    struct k25_error error;
    if (load(text, &error))
        fail_msg("accepted, expected: %s", message);
    assert_error(error, K25_BAD_INPUT, message);
    k25_sweep_free(&sweep);
}

/* Keys of the plan that are text: `set` and axes take them, as --set does. */
static void texts_of_the_plan_are_keys(void **state)
{
    (void)state;
    struct k25_sweep_cursor cursor;
    load_well(HEAD "set: {plan.speculation.acceptance: 0.7/0.5, plan.speculation.tokens: 2}\n"
                   "axes: [{key: plan.batch, values: [1, 2]}]\n");
    for (uint64_t i = 0; i < 2; i++) {
        k25_sweep_seek(&cursor, &sweep, i);
        assert_string_equal(cursor.plan.speculation.acceptance, "0.7/0.5");
        assert_int_equal(cursor.plan.speculation.tokens, 2);
    }
    k25_sweep_free(&sweep);
    load_well(HEAD "set: {plan.speculation.acceptance: 0.7}\n"
                   "axes:\n"
                   "  - {key: plan.batch, values: [1, 2]}\n"
                   "  - variants: {a: {plan.speculation.acceptance: 0.9}, b: {plan.context: 2000}}\n");
    static const char *const acceptance[] = {"0.9", "0.7"};
    k25_sweep_seek(&cursor, &sweep, 0);
    for (uint64_t i = 0; i < 4; i++, k25_sweep_next(&cursor)) {
        assert_string_equal(cursor.plan.speculation.acceptance, acceptance[i % 2]);
        assert_int_equal(cursor.plan.batch, 1 + i / 2);
        assert_true((cursor.plan.context == 2000) == (i % 2 == 1));
    }
    k25_sweep_free(&sweep);
    char text[512];
    snprintf(text, sizeof text,
             HEAD "set: {plan.speculation.acceptance: \"%0100d\"}\naxes: [{key: plan.tp, values: [8]}]\n", 0);
    struct k25_error error;
    assert_false(load(text, &error));
    assert_non_null(strstr(error.message, "./s.yaml:5:36: plan.speculation.acceptance: "));
    k25_sweep_free(&sweep);
}

/* Every key of the scenario format that --set reaches, in `set` and on an axis. */
static void keys_are_those_of_a_scenario(void **state)
{
    (void)state;
    static const char *const values[][2] = {
        {"architecture", "kimi-k2.6"},
        {"weights", "nvfp4"},
        {"draft", "kimi-k2.6-eagle3-mla"},
        {"draft_weights", "bf16"},
        {"machine", "rtx-pro-6000-8x-switches"},
        {"calibration", "none"},
        {"plan.speculation.acceptance", "0.6"},
        {"plan.kv_dtype", "fp8"},
        {"load.output_max", "512"},
        {"parameters.nccl.hop", "0.7"},
        {"machine.gpu.sms", "100"},
        {"architecture.hidden", "7168"},
    };
    char text[512];
    for (const struct k25_field *field = k25_scenario_fields; field->key != NULL; field++) {
        bool tried = strcmp(field->key, "name") == 0 || strcmp(field->key, "title") == 0 ||
                     strcmp(field->key, "assumptions") == 0; /* --set does not reach these */
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            tried |= strncmp(values[i][0], field->key, strlen(field->key)) == 0;
        if (!tried)
            fail_msg("no value of '%s' is tried here", field->key);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *key = values[i][0], *value = values[i][1];
        snprintf(text, sizeof text, HEAD "set: {%s: %s}\naxes: [{key: plan.tp, values: [8]}]\n", key, value);
        load_well(text);
        k25_sweep_free(&sweep);
        snprintf(text, sizeof text, HEAD "axes: [{key: plan.tp, values: [8]}, {key: %s, values: [%s]}]\n", key, value);
        load_well(text);
        k25_sweep_free(&sweep);
    }
    load_well(HEAD "set: {draft: kimi-k2.6-eagle3-mla}\naxes: [{key: plan.tp, values: [8]}]\n");
    assert_true(sweep.scenario[0].drafts);
    assert_string_equal(sweep.scenario[0].draft_architecture.name, "kimi-k2.6-eagle3-mla");
    k25_sweep_free(&sweep);
    expect_error(
        HEAD "set: {draft.hidden: 1}\naxes: [{key: plan.tp, values: [8]}]\n",
        "./s.yaml:5:21: draft.hidden: unknown key 'draft.hidden'; keys start with plan, machine, architecture, "
        "weights, draft, draft_weights, calibration, parameters or load");
}

static void the_last_axis_is_fastest(void **state)
{
    (void)state;
    load_well(HEAD "set: {plan.kv_dtype: fp8, plan.memory_utilisation: 0.5}\n"
                   "axes:\n"
                   "  - {zip: {plan.tp: [4, 8], plan.memory_utilisation: [0.9, 0.95]}}\n"
                   "  - {key: plan.context, from: 0.5e3, to: 1600, step: 500}\n" /* 500, 1000, 1500 */
                   "  - {key: plan.batch, from: 1, to: 9, factor: 2}\n"          /* 1, 2, 4, 8 */
                   "  - {key: plan.allreduce.backend, values: [nccl, oneshot_then_nccl]}\n");
    assert_int_equal(sweep.points, 2 * 3 * 4 * 2);
    assert_int_equal(sweep.loads, 1);
    struct k25_sweep_cursor walk, jump;
    k25_sweep_seek(&walk, &sweep, 0);
    static const int tp[] = {4, 8}, backend[] = {K25_AR_NCCL, K25_AR_ONESHOT_THEN_NCCL};
    static const double share[] = {0.9, 0.95};
    for (uint64_t i = 0; i < sweep.points; i++) {
        k25_sweep_seek(&jump, &sweep, i);
        assert_memory_equal(&walk.plan, &jump.plan, sizeof walk.plan);
        assert_int_equal(walk.point, i);
        assert_int_equal(walk.plan.tp, tp[i / 24]);
        assert_true(walk.plan.memory_utilisation == share[i / 24]);
        assert_true(walk.plan.context == 500.0 * (double)(1 + i / 8 % 3));
        assert_int_equal(walk.plan.batch, 1 << (i / 2 % 4));
        assert_int_equal(walk.plan.allreduce.backend, backend[i % 2]);
        assert_int_equal(walk.plan.kv_dtype, K25_KV_FP8);
        k25_sweep_next(&walk);
        size_t changed = (i + 1) % 2 ? 3 : (i + 1) % 8 ? 2 : (i + 1) % 24 ? 1 : 0;
        assert_int_equal(walk.changed, changed);
    }
    assert_int_equal(walk.point, 0);
    k25_sweep_free(&sweep);
}

static void decimal_steps_are_exact(void **state)
{
    (void)state;
    load_well(HEAD "axes: [{key: plan.memory_utilisation, from: 0.1, to: 0.9, step: 0.1}]\n");
    assert_int_equal(sweep.points, 9);
    static const double expected[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    for (uint64_t i = 0; i < 9; i++)
        assert_true(k25_sweep_number(&sweep.axis[0], i, 0) == expected[i]);
    k25_sweep_free(&sweep);
}

static void variants_load_a_scenario_each(void **state)
{
    (void)state;
    load_well(HEAD "axes:\n"
                   "  - {key: plan.batch, values: [1, 2, 3]}\n"
                   "  - name: box\n"
                   "    variants:\n"
                   "      fitted: {plan.memory_utilisation: 0.9}\n"
                   "      other: {machine: rtx-pro-6000-8x-switches, calibration: none}\n"
                   "  - {key: parameters.nccl.hop, values: [0.5, 1]}\n");
    assert_int_equal(sweep.points, 12);
    assert_int_equal(sweep.loads, 4);
    struct k25_sweep_cursor cursor;
    k25_sweep_seek(&cursor, &sweep, 0);
    for (uint64_t i = 0; i < 12; i++, k25_sweep_next(&cursor)) {
        const struct k25_scenario *s = &sweep.scenario[cursor.scenario];
        bool other = i / 2 % 2;
        assert_string_equal(s->machine.name, other ? "rtx-pro-6000-8x-switches" : "rtx-pro-6000-8x-two-socket");
        assert_int_equal(s->calibrated, !other);
        assert_true(cursor.plan.memory_utilisation ==
                    (other ? 0.92 : 0.9)); /* the base's where the variant says nothing */
        int hop = k25_param_find("nccl.hop");
        assert_true(s->params.value[hop] == (i % 2 ? 1 : 0.5) * k25_param_info[hop].scale);
        assert_int_equal(cursor.plan.batch, 1 + i / 4);
    }
    assert_string_equal(sweep.column[1].name, "box");
    k25_sweep_free(&sweep);
}

static void shards_cover_the_grid(void **state)
{
    (void)state;
    static const uint64_t points[] = {0, 1, 7, 1000, K25_SWEEP_MOST}, counts[] = {1, 2, 7, 1000, 1000000};
    for (size_t p = 0; p < 5; p++) {
        for (size_t c = 0; c < 5; c++) {
            uint64_t next = 0, from, to;
            for (uint64_t i = 1; i <= counts[c]; i++) {
                k25_sweep_shard(points[p], i, counts[c], &from, &to);
                assert_int_equal(from, next);
                assert_true(to >= from && to - from <= points[p] / counts[c] + 1);
                next = to;
            }
            assert_int_equal(next, points[p]);
        }
    }
}

static double value_of(const char *text, const double *values, const struct k25_symbol *symbols)
{
    struct k25_error error;
    (void)values;
    struct k25_expression *e = k25_expression_compile(text, symbols, NULL, "f", 1, 1, &error);
    if (e == NULL)
        fail_msg("%s: %s", text, error.message);
    double value = k25_expression_value(e);
    k25_expression_free(e);
    return value;
}

static void expressions_compute(void **state)
{
    (void)state;
    static const char *const words[] = {"bf16", "fp8", NULL};
    double values[] = {20, 3, 1, NAN};
    const struct k25_symbol symbols[] = {{"tpot_ms", NULL, &values[0]},
                                         {"plan.batch", NULL, &values[1]},
                                         {"plan.kv_dtype", words, &values[2]},
                                         {"nothing", NULL, &values[3]},
                                         {0}};
    static const struct {
        const char *text;
        double value;
    } ones[] = {
        {"tpot_ms <= 20", 1},
        {"tpot_ms < 20", 0},
        {"tpot_ms*plan.batch - 2^3", 52},
        {"plan.kv_dtype == fp8", 1},
        {"plan.kv_dtype == bf16", 0},
        {"!(tpot_ms > 1) || plan.batch == 3", 1},
        {"plan.batch % 2", 1},
        {"max(tpot_ms, 1e2) + min(1, 2)", 101},
        {"nothing < 1", 0},
        {"nothing >= 1", 0},
        {"nothing == nothing", 0},
        {"tpot_ms > 1 ? 7 : 8", 7},
        {"-plan.batch", -3},
        {"true && !false", 1},
        {"sqrt(abs(-16))", 4},
        {"1 + 7 % 4 * 2", 7},
        {"2 + 3 * 2 ^ 2", 14},
        {"log2(8) + log10(1000) + rint(2.6)", 9},
        {"ln(exp(2)) == 2", 1},
        {"tpot_ms != 20 || 2 < 3 && 1 > 2", 0},
    };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        if (value_of(ones[i].text, values, symbols) != ones[i].value)
            fail_msg("%s is not %g", ones[i].text, ones[i].value);
    }
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } ones[] = {
        {"axes: [{key: plan.batchs, values: [1]}]\n",
         "./s.yaml:5:14: unknown key 'plan.batchs', did you mean 'plan.batch'?"},
        {"axes: [{key: pan.batch, values: [1]}]\n",
         "./s.yaml:5:14: unknown key 'pan.batch', did you mean 'plan'?; keys start with plan, machine, "
         "architecture, weights, draft, draft_weights, calibration, parameters or load"},
        {"axes: []\n", "./s.yaml:5:7: axes: expected a list of from 1 to 24 axes"},
        {"axes: [{key: plan.batch, values: []}]\n", "./s.yaml:5:34: an empty axis, expected at least one value"},
        {"axes: [{key: plan.batch, from: 8, to: 1, step: 1}]\n", "./s.yaml:5:39: an empty axis: to 1 is below from 8"},
        {"axes: [{key: plan.batch, from: 1, to: 8}]\n", "./s.yaml:5:8: expected either a step or a factor"},
        {"axes: [{key: plan.batch, from: 1, to: 8, step: 0.5}]\n",
         "./s.yaml:5:48: step: expected a whole number above 0"},
        {"axes: [{key: plan.batch, values: [1, 0]}]\n",
         "./s.yaml:5:38: plan.batch: 0 is out of range, expected 1 to 65536"},
        {"axes: [{key: plan.kv_dtype, values: [fp9]}]\n",
         "./s.yaml:5:38: plan.kv_dtype: unknown value 'fp9', expected one of bf16, fp8, did you mean 'fp8'?"},
        {"axes: [{kee: plan.batch, values: [1]}]\n", "./s.yaml:5:9: unknown key 'kee' of an axis, did you mean 'key'?"},
        {"axes: [{zip: {plan.tp: [1, 2], plan.ep: [1]}}]\n",
         "./s.yaml:5:41: plan.ep: 1 values, but 2 of plan.tp; lists that are zipped are equally long"},
        {"axes: [{key: plan.tp, values: [1]}, {zip: {plan.tp: [2]}}]\n",
         "./s.yaml:5:37: plan.tp: an axis before has this key already"},
        {"axes:\n  - {key: plan.context, from: 1, to: 9e7, step: 1e-3}\n  - {key: plan.memory_utilisation, from: "
         "0.1, to: 1, "
         "step: 1e-6}\n",
         "./s.yaml:7:5: the axes up to here make more than 2^53 points"},
        {"axes: [{key: machine, values: [rtx-pro-6000-2x, rtx-pro-600-4x]}]\n",
         "./s.yaml:5:49: machine: unknown machine 'rtx-pro-600-4x', did you mean 'rtx-pro-6000-4x'?; `k25sim list "
         "machines` "
         "shows what there is"},
        {"axes: [{key: parameters.nccl.hopp, values: [1]}]\n",
         "./s.yaml:5:45: parameters.nccl.hopp: unknown parameter 'nccl.hopp', did you mean 'nccl.hop'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nconstraints: [fits, tpot_m < 25]\n",
         "./s.yaml:6:21: unknown name 'tpot_m', did you mean 'tpot_ms'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nconstraints: [\"fits && tpot_ms = 25\"]\n",
         "./s.yaml:6:32: '=' alone is no comparison, expected '=='"},
        {"axes: [{key: plan.tp, values: [8]}]\nconstraints: [tpot_ms < ]\n",
         "./s.yaml:6:24: the expression ends too early"},
        {"axes: [{key: plan.tp, values: [8]}]\nconstraints: [plan.kv_dtype == fp88]\n",
         "./s.yaml:6:32: unknown name 'fp88', did you mean 'fp8'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nobjectives: [{maximise: toks}]\n",
         "./s.yaml:6:25: maximise: unknown name 'toks', did you mean 'tok_s'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nobjectives: [{maximize: tok_s}]\n",
         "./s.yaml:6:14: objectives: expected {maximise: OUTPUT} or {minimise: OUTPUT}"},
        {"axes: [{key: plan.tp, values: [8]}]\ngroup_by: [plan.batch]\n",
         "./s.yaml:6:12: group_by: no axis has the key 'plan.batch'"},
        {"axes: [{key: plan.tp, values: [8]}]\ncolumns: [step_ms, step_us]\n",
         "./s.yaml:6:20: columns: unknown name 'step_us', did you mean 'step_ms'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nset: {plan.tpp: 1}\n",
         "./s.yaml:6:7: unknown key 'plan.tpp', did you mean 'plan.tp'?"},
        {"axes: [{key: plan.tp, values: [8]}]\nset: {plan.speculation.acceptance: [0.6]}\n",
         "./s.yaml:6:36: plan.speculation.acceptance: expected a value, found a list"},
        {"axes: [{key: plan.tp, values: [8]}]\nsets: {plan.tp: 1}\n",
         "./s.yaml:6:1: unknown key 'sets', did you mean 'set'?"},
    };
    char text[1024];
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        snprintf(text, sizeof text, "%s%s", HEAD, ones[i].text);
        expect_error(text, ones[i].message);
    }
    expect_error("k25sim: sweep\nversion: 1\nname: t\nbase: tp8_bs2\naxes: [{key: plan.tp, values: [8]}]\n",
                 "./s.yaml:4:7: base: unknown scenario 'tp8_bs2', did you mean 'tp8_bs1'?; `k25sim list "
                 "scenarios` shows what "
                 "there is");
}

/* ---- what the rows follow from ---- */

enum { OPENED = 64 };

/* The files that were opened since `watching` was set (tests/CMakeLists.txt puts these in front of the C library's). */
static char opened[OPENED][512];
static size_t opened_files;
static bool watching;

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static void note_opened(const char *path)
{
    size_t i = 0;
    while (i < opened_files && strcmp(opened[i], path) != 0)
        i++;
    if (!watching || i < opened_files)
        return;
    assert_true(opened_files < OPENED);
    snprintf(opened[opened_files++], sizeof opened[0], "%s", path);
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
    note_opened(path);
    return __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    note_opened(path);
    return __real_fopen(path, mode);
}

static uint64_t sum_of(const char *text)
{
    load_well(text);
    uint64_t sum = sweep.inputs;
    k25_sweep_free(&sweep);
    return sum;
}

static bool was_opened(const char *end)
{
    for (size_t i = 0; i < opened_files; i++) {
        size_t length = strlen(opened[i]), tail = strlen(end);
        if (length >= tail && strcmp(opened[i] + length - tail, end) == 0)
            return true;
    }
    return false;
}

/* Editing any file that loading opened changes the sum; putting it back brings the sum back. */
static void every_file_that_is_read_counts(void **state)
{
    (void)state;
    static const char text[] =
        "k25sim: sweep\nversion: 1\nname: t\nbase: ./base.yaml\n"
        "axes: [{key: plan.batch, values: [1, 2]}, {key: machine, values: [rtx-pro-6000-8x-two-socket, "
        "rtx-pro-6000-8x-switches]}, {key: calibration, values: [none, k25_tp8_vllm]}]\n";
    assert_int_equal(system("cp -r " K25_SOURCE_DIR "/hw " K25_SOURCE_DIR "/model " K25_SOURCE_DIR "/calib . && "
                            "sed 's/^machine:/draft: kimi-k2.6-eagle3-mla\\nmachine:/' " K25_SOURCE_DIR
                            "/scenarios/tp8_bs1.yaml >base.yaml"),
                     0);
    const struct k25_library *former = library;
    static const struct k25_library copy = {.root = "."};
    library = &copy;
    uint64_t sum = sum_of(text);
    struct k25_error error;
    watching = true;
    bool ok = k25_sweep_load(library, "./s.yaml", &sweep, &error);
    watching = false;
    assert_true(ok && sweep.inputs == sum);
    k25_sweep_free(&sweep);
    static const char *const some[] = {"/s.yaml",
                                       "/base.yaml",
                                       "/kimi-k2.6-eagle3-mla.yaml",
                                       "/kimi-k2.6-eagle3-mla.bf16.yaml",
                                       "/rtx-pro-6000-8x-switches.yaml",
                                       "/rtx-pro-6000-server.yaml",
                                       "/k25_tp8_vllm.yaml",
                                       "/params.yaml",
                                       "/links.yaml"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        assert_true(was_opened(some[i]));
    for (size_t i = 0; i < opened_files; i++) {
        if (strcmp(opened[i], "./s.yaml") == 0)
            continue;
        struct stat about;
        assert_int_equal(stat(opened[i], &about), 0);
        FILE *file = fopen(opened[i], "a");
        assert_non_null(file);
        fputs("\n# edited\n", file);
        fclose(file);
        if (sum_of(text) == sum)
            fail_msg("%s was read and does not count", opened[i]);
        assert_int_equal(truncate(opened[i], about.st_size), 0);
        assert_true(sum_of(text) == sum);
    }
    library = former;
}

/* Paths of all references are relative to the sweep, whatever the working folder is. */
static void paths_are_relative_to_the_sweep(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"architecture", "model/zoo/kimi-k2.5.yaml"},
        {"weights", "model/zoo/kimi-k2.5.int4_g32.yaml"},
        {"draft", "model/zoo/kimi-k2.6-eagle3-mla.yaml"},
        {"draft_weights", "model/zoo/kimi-k2.6-eagle3-mla.bf16.yaml"},
        {"machine", "hw/machines/rtx-pro-6000-8x-switches.yaml"},
        {"machine.gpu", "hw/gpus/rtx-pro-6000-max-q.yaml"},
        {"calibration", "calib/sets/k25_tp8_vllm.yaml"},
    };
    enum { FILES = sizeof files / sizeof *files };
    char command[1024], yaml[1024] = HEAD "set: {";
    size_t used = strlen(yaml);
    assert_int_equal(system("mkdir sub"), 0);
    for (size_t i = 0; i < FILES; i++) {
        snprintf(command, sizeof command, "cp " K25_SOURCE_DIR "/%s sub/f%zu.yaml", files[i][1], i);
        assert_int_equal(system(command), 0);
        used += (size_t)snprintf(yaml + used, sizeof yaml - used, "%s: ./f%zu.yaml, ", files[i][0], i);
    }
    snprintf(yaml + used, sizeof yaml - used, "plan.dp: 1}\naxes: [{key: plan.tp, values: [8]}]\n");
    put_file("sub/s.yaml", yaml, strlen(yaml));
    struct k25_error error;
    if (!k25_sweep_load(library, "sub/s.yaml", &sweep, &error))
        fail_msg("%s", error.message);
    assert_string_equal(sweep.scenario[0].machine.name, "rtx-pro-6000-8x-switches");
    assert_non_null(strstr(sweep.scenario[0].machine.gpu.name, "Max-Q"));
    k25_sweep_free(&sweep);
}

/* The sweep's own words count too. */
static void the_sweep_itself_counts(void **state)
{
    (void)state;
    uint64_t sum = sum_of(HEAD "axes: [{key: plan.tp, values: [8]}]\n");
    assert_true(sum_of(HEAD "axes: [{key: plan.tp, values: [8]}]\n") == sum);
    assert_true(sum_of(HEAD "axes: [{key: plan.tp, values: [8]}] # a word\n") != sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_the_plan_are_keys),
        cmocka_unit_test(keys_are_those_of_a_scenario),
        cmocka_unit_test(the_last_axis_is_fastest),
        cmocka_unit_test(decimal_steps_are_exact),
        cmocka_unit_test(variants_load_a_scenario_each),
        cmocka_unit_test(shards_cover_the_grid),
        cmocka_unit_test(expressions_compute),
        cmocka_unit_test(mistakes_have_a_place),
        cmocka_unit_test(every_file_that_is_read_counts),
        cmocka_unit_test(the_sweep_itself_counts),
        cmocka_unit_test(paths_are_relative_to_the_sweep),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
