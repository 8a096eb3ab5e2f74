/* Calibration sets: read, resolved over the priors, printed and read again; mistakes with their position. */
#include "tests/unit/physics_check.h"

#include <sys/stat.h>

#include "calib/fit/calibration.h"
#include "scenarios/library/library.h"

static const char *const full = "k25sim: calibration\n"
                                "version: 1\n"
                                "name: mybox\n"
                                "source: \"17 rows: variant 1\"\n"
                                "data:\n"
                                "  model: kimi-k2.6\n"
                                "  machine: rtx-pro-6000-8x-two-socket\n"
                                "  noise: 0.021\n"
                                "  batch: {low: 1, high: 128}\n"
                                "  context: {low: 64, high: 128785}\n"
                                "  tp: {low: 8, high: 8}\n"
                                "parameters:\n"
                                "  nccl.hop: {value: 2.5, unit: us, log_sd: 0.1, from: the burst}\n"
                                "  routing.cv: {value: 1.25, log_sd: 0.2}\n"
                                "covariance:\n"
                                "  order: [nccl.hop, routing.cv]\n"
                                "  rows:\n"
                                "    - [0.01, -0.005]\n"
                                "    - [-0.005, 0.04]\n";

static void a_full_set_loads(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    struct k25_calibration set;
    put_text("set.yaml", full);
    if (!k25_calibration_load("set.yaml", &set, &inputs, &error))
        fail_msg("%s", error.message);
    assert_string_equal(set.name, "mybox");
    assert_string_equal(set.source, "17 rows: variant 1");
    assert_string_equal(set.model, "kimi-k2.6");
    assert_string_equal(set.machine, "rtx-pro-6000-8x-two-socket");
    assert_true(set.noise == 0.021 && set.batch.low == 1 && set.batch.high == 128);
    assert_true(set.context.low == 64 && set.context.high == 128785 && set.tp.low == 8 && set.tp.high == 8);
    int count = 0;
    for (int id = 0; id < K25_PARAMS; id++)
        count += set.set[id];
    assert_int_equal(count, 2);
    assert_close(set.value[K25_NCCL_HOP], 2.5e-6, 1e-15);
    assert_true(set.set[K25_NCCL_HOP] && set.log_sd[K25_NCCL_HOP] == 0.1 && set.value[K25_ROUTING_CV] == 1.25);
    assert_int_equal(set.covariances, 2);
    assert_true(set.covaries[0] == K25_NCCL_HOP && set.covaries[1] == K25_ROUTING_CV);
    assert_true(set.covariance[0] == 0.01 && set.covariance[1] == -0.005 && set.covariance[3] == 0.04);
    const struct k25_input *input = k25_inputs_find(&inputs, "parameters.nccl.hop");
    assert_non_null(input);
    assert_true(input->origin == K25_FROM_CALIBRATION && input->line == 13 && input->column == 3);
    assert_string_equal(input->value, "2.5");
    assert_string_equal(input->unit, "us");
    k25_inputs_free(&inputs);
    k25_calibration_free(&set);
    k25_calibration_free(&set); /* once more does no harm */
}

static void the_least_is_a_name_a_source_and_parameters(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_calibration set;
    put_text("least.yaml", "k25sim: calibration\nversion: 1\nname: n\nsource: s\nparameters: {}\n");
    if (!k25_calibration_load("least.yaml", &set, NULL, &error))
        fail_msg("%s", error.message);
    assert_true(set.noise == 0 && set.batch.high == 0 && set.tp.high == 0 && set.covariance == NULL);
    assert_string_equal(set.model, "");
    k25_calibration_free(&set);
}

static void sets_win_over_priors(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_calibration set;
    struct k25_priors priors;
    struct k25_params params;
    put_text("set.yaml", full);
    assert_true(k25_calibration_load("set.yaml", &set, NULL, &error));
    for (int id = 0; id < K25_PARAMS; id++)
        priors.centre[id] = 100 + id;
    k25_params_resolve(&priors, &set, &params);
    for (int id = 0; id < K25_PARAMS; id++)
        assert_true(params.value[id] == (set.set[id] ? set.value[id] : 100 + id));
    k25_params_resolve(&priors, NULL, &params);
    for (int id = 0; id < K25_PARAMS; id++)
        assert_true(params.value[id] == 100 + id);
    k25_calibration_free(&set);
}

/* Printed and read again: the same set, to the six digits that are printed; printed once more: the same text. */
static void printing_and_reading_agree(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_calibration set, again;
    put_text("set.yaml", full);
    assert_true(k25_calibration_load("set.yaml", &set, NULL, &error));
    uint64_t seed = 5;
    for (int id = 0; id < K25_PARAMS; id++) {
        set.set[id] = true;
        set.value[id] = exp(3 * normal(&seed)) * k25_param_info[id].scale;
        set.log_sd[id] = 0.01 * id;
    }
    snprintf(set.source, sizeof set.source, "a \"quoted\" # source: with {every} [kind] of 'trap'");
    char *text = k25_calibration_print(&set, &error);
    assert_non_null(text);
    put_text("printed.yaml", text);
    if (!k25_calibration_load("printed.yaml", &again, NULL, &error))
        fail_msg("%s\n%s", error.message, text);
    assert_string_equal(again.source, set.source);
    assert_string_equal(again.model, set.model);
    assert_true(again.noise == set.noise && again.context.high == set.context.high && again.tp.low == 8);
    for (int id = 0; id < K25_PARAMS; id++) {
        assert_true(again.set[id]);
        assert_close(again.value[id], set.value[id], 1e-5);
        assert_within(again.log_sd[id], set.log_sd[id], 1e-4);
    }
    assert_int_equal(again.covariances, 2);
    assert_true(memcmp(again.covaries, set.covaries, 2 * sizeof *set.covaries) == 0);
    for (int i = 0; i < 4; i++)
        assert_close(fabs(again.covariance[i]), fabs(set.covariance[i]), 1e-5);
    char *second = k25_calibration_print(&again, &error);
    assert_string_equal(second, text);
    free(text);
    free(second);
    k25_calibration_free(&set);
    k25_calibration_free(&again);
}

/* A name is whatever the reader accepts, also one that YAML would take for something else. */
static void odd_names_survive_printing(void **state)
{
    (void)state;
    static const char *const names[] = {"null", "1.5", "a: b", "- x", "\"", "x # y", "[", "yes", "~"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct k25_error error = {0};
        struct k25_calibration set = {.noise = 0.02}, again;
        snprintf(set.name, sizeof set.name, "%s", names[i]);
        snprintf(set.source, sizeof set.source, "%s", names[i]);
        snprintf(set.model, sizeof set.model, "%s", names[i]);
        snprintf(set.machine, sizeof set.machine, "%s", names[i]);
        set.set[0] = true;
        set.value[0] = 1;
        char *text = k25_calibration_print(&set, &error);
        put_text("odd.yaml", text);
        if (!k25_calibration_load("odd.yaml", &again, NULL, &error))
            fail_msg("%s\n%s", error.message, text);
        assert_string_equal(again.name, names[i]);
        assert_string_equal(again.model, names[i]);
        assert_string_equal(again.machine, names[i]);
        free(text);
        k25_calibration_free(&again);
    }
}

static void mistakes_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"nccl.hop: {", "nccl.hops: {", "set.yaml:13:3: unknown parameter 'nccl.hops', did you mean 'nccl.hop'?"},
        {"unit: us", "unit: ns", "set.yaml:13:13: nccl.hop: unit 'ns', expected 'us'"},
        {"value: 1.25, log_sd", "value: 1.25, unit: us, log_sd", "set.yaml:14:15: routing.cv: unit 'us', expected ''"},
        {"value: 2.5", "value: 0",
         "set.yaml:13:21: nccl.hop.value: 0 is out of range, expected 1e-12 to 1000000000000"},
        {"value: 2.5", "value: fast", "set.yaml:13:21: nccl.hop.value: 'fast' is not a number"},
        {"log_sd: 0.1", "log_sd: -1", "set.yaml:13:44: nccl.hop.log_sd: -1 is out of range, expected 0 to 10"},
        {"noise: 0.021", "noise: 2", "set.yaml:8:10: data.noise: 2 is out of range, expected 0 to 1"},
        {"name: mybox\n", "", "set.yaml:1:1: missing key 'name'"},
        {"order: [nccl.hop,", "order: [nccl.hip,",
         "set.yaml:16:11: unknown parameter 'nccl.hip', did you mean 'nccl.hop'?"},
        {"[0.01, -0.005]", "[0.01]", "set.yaml:18:7: covariance: expected a list of 2 numbers"},
        {"[0.01, -0.005]", "[0.01, much]", "set.yaml:18:14: covariance: expected a number"},
        {"    - [-0.005, 0.04]\n", "",
         "set.yaml:16:3: covariance: expected 'order', a list of parameters, and 'rows', as many lists"},
        {"order:", "ordre:",
         "set.yaml:16:3: covariance: expected 'order', a list of parameters, and 'rows', as many "
         "lists"},
        {"calibration", "calibrations",
         "set.yaml:1:9: k25sim: the file is of kind 'calibrations', expected "
         "'calibration'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_calibration set;
        char *text = replaced(full, cases[i].from, cases[i].to);
        put_text("set.yaml", text);
        free(text);
        if (k25_calibration_load("set.yaml", &set, NULL, &error))
            fail_msg("'%s' was accepted", cases[i].to);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
}

/* A matrix that is no covariance would make intervals of nonsense: a parameter twice, a negative variance, rows
 * that disagree with columns. */
static void a_covariance_must_be_one(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"order: [nccl.hop, routing.cv]", "order: [nccl.hop, nccl.hop]"},
        {"[0.01, -0.005]", "[-0.01, -0.005]"},
        {"[0.01, -0.005]", "[0.01, 0.004]"},
        {"[0.01, -0.005]\n    - [-0.005, 0.04]", "[0.01, 0.5]\n    - [0.5, 0.04]"},
    };
    int accepted = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_calibration set;
        char *text = replaced(full, cases[i].from, cases[i].to);
        put_text("set.yaml", text);
        free(text);
        if (!k25_calibration_load("set.yaml", &set, NULL, &error))
            continue;
        print_message("accepted: %s\n", cases[i].to);
        k25_calibration_free(&set);
        accepted++;
    }
    assert_int_equal(accepted, 0);
}

static void a_missing_file(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_calibration set;
    assert_false(k25_calibration_load("none.yaml", &set, NULL, &error));
    assert_string_equal(error.message, "none.yaml: no such file");
}

static void the_shipped_sets_load(void **state)
{
    (void)state;
    struct k25_library library = {.root = K25_SOURCE_DIR};
    struct k25_error error = {0};
    size_t count;
    char **names = k25_library_list(&library, K25_FILES_CALIBRATION, &count, &error);
    assert_non_null(names);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct k25_calibration set;
        char path[512];
        snprintf(path, sizeof path, K25_SOURCE_DIR "/calib/sets/%s.yaml", names[i]);
        if (!k25_calibration_load(path, &set, NULL, &error))
            fail_msg("%s", error.message);
        assert_string_equal(set.name, names[i]);
        k25_calibration_free(&set);
    }
    k25_library_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_set_loads),           cmocka_unit_test(the_least_is_a_name_a_source_and_parameters),
        cmocka_unit_test(sets_win_over_priors),       cmocka_unit_test(printing_and_reading_agree),
        cmocka_unit_test(odd_names_survive_printing), cmocka_unit_test(mistakes_have_a_position),
        cmocka_unit_test(a_covariance_must_be_one),   cmocka_unit_test(a_missing_file),
        cmocka_unit_test(the_shipped_sets_load),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
