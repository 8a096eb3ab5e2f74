/* The record of where every value came from. */
#include "base/inputs.h"
#include "tests/unit/base_check.h"

static void record(struct k25_inputs *inputs, const char *path, const char *value, enum k25_origin origin,
                   const char *file, int line, int column)
{
    char p[32], v[32], f[32];
    snprintf(p, sizeof p, "%s", path);
    snprintf(v, sizeof v, "%s", value);
    snprintf(f, sizeof f, "%s", file);
    struct k25_input input = {.path = p, .value = v, .origin = origin, .file = f, .line = line, .column = column};
    assert_true(k25_inputs_record(inputs, input, NULL));
    memset(p, 'x', sizeof p); /* the record must not lean on these */
    memset(v, 'x', sizeof v);
    memset(f, 'x', sizeof f);
}

static void recorded_again_replaces_in_place(void **state)
{
    (void)state;
    struct k25_inputs inputs = {0};
    record(&inputs, "plan.tp", "8", K25_FROM_FILE, "a.yaml", 9, 7);
    record(&inputs, "plan.pp", "1", K25_FROM_DEFAULT, "", 0, 0);
    record(&inputs, "plan.tp", "4", K25_FROM_OVERRIDE, "--set", 0, 0);
    assert_int_equal(inputs.count, 2);
    assert_string_equal(inputs.list[0].path, "plan.tp");
    assert_string_equal(inputs.list[0].value, "4");
    assert_string_equal(inputs.list[0].unit, "");
    assert_int_equal(inputs.list[0].origin, K25_FROM_OVERRIDE);
    assert_ptr_equal(k25_inputs_find(&inputs, "plan.pp"), &inputs.list[1]);
    assert_null(k25_inputs_find(&inputs, "plan"));
    k25_inputs_free(&inputs);
    assert_int_equal(inputs.count, 0);
    k25_inputs_free(&inputs);
}

static void many(void **state)
{
    (void)state;
    struct k25_inputs inputs = {0};
    char path[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "key%d", i);
        record(&inputs, path, "1", K25_FROM_FILE, "a.yaml", i + 1, 1);
    }
    assert_int_equal(inputs.count, 1000);
    assert_int_equal(k25_inputs_find(&inputs, "key777")->line, 778);
    k25_inputs_free(&inputs);
}

static void files_are_recorded_once(void **state)
{
    (void)state;
    struct k25_inputs inputs = {0}, more = {0}, moved = {0};
    assert_true(k25_inputs_sum(&inputs) == 0);
    assert_true(k25_inputs_record_file(&inputs, "a", "123456789", 9, NULL));
    assert_true(inputs.file[0].sum == UINT64_C(0x995dc9bbdf1939fa)); /* CRC-64/XZ's check value */
    assert_true(k25_inputs_record_file(&inputs, "a", "123456789", 9, NULL));
    assert_int_equal(inputs.files, 1);
    /* Edited between two reads: both count. */
    assert_true(k25_inputs_record_file(&more, "a", "12345678x", 9, NULL));
    assert_true(k25_inputs_record_file(&more, "b", "", 0, NULL));
    assert_true(k25_inputs_add_files(&inputs, &more, NULL) && k25_inputs_add_files(&inputs, &more, NULL));
    assert_int_equal(inputs.files, 3);
    assert_int_equal(inputs.count, 0);
    for (size_t i = 0; i < inputs.files; i++) /* names do not count, the order does */
        assert_true(k25_inputs_record_file(&moved,
                                           i == 0   ? "x"
                                           : i == 1 ? "y"
                                                    : "z",
                                           i == 0   ? "123456789"
                                           : i == 1 ? "12345678x"
                                                    : "",
                                           i == 2 ? 0 : 9, NULL));
    assert_true(k25_inputs_sum(&moved) == k25_inputs_sum(&inputs));
    assert_true(k25_inputs_sum(&more) != k25_inputs_sum(&inputs));
    k25_inputs_free(&inputs);
    k25_inputs_free(&more);
    k25_inputs_free(&moved);
    assert_int_equal(inputs.files, 0);
}

static void errors_point_at_the_origin(void **state)
{
    (void)state;
    struct k25_inputs inputs = {0};
    struct k25_error error;
    record(&inputs, "plan.tp", "7", K25_FROM_FILE, "scenarios/a.yaml", 9, 7);
    record(&inputs, "plan.pp", "7", K25_FROM_OVERRIDE, "--set", 0, 0);
    record(&inputs, "plan.ep", "7", K25_FROM_OVERRIDE, "", 0, 0);
    record(&inputs, "plan.dp", "7", K25_FROM_DEFAULT, "", 0, 0);
    record(&inputs, "gpu.mfu", "7", K25_FROM_PRIOR, "priors.yaml", 3, 1);
    record(&inputs, "gpu.mbu", "7", K25_FROM_CALIBRATION, "set.yaml", 0, 0);
    assert_false(k25_inputs_fail(&inputs, "plan.tp", &error, "%d does not divide %d heads", 7, 64));
    assert_error(error, K25_BAD_INPUT, "scenarios/a.yaml:9:7: plan.tp: 7 does not divide 64 heads");
    k25_inputs_fail(&inputs, "plan.pp", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "--set plan.pp=7: bad");
    k25_inputs_fail(&inputs, "plan.ep", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "--set plan.ep=7: bad");
    k25_inputs_fail(&inputs, "plan.dp", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "plan.dp (default 7): bad");
    k25_inputs_fail(&inputs, "gpu.mfu", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "priors.yaml:3:1: gpu.mfu: bad");
    k25_inputs_fail(&inputs, "gpu.mbu", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "set.yaml: gpu.mbu: bad");
    k25_inputs_fail(&inputs, "who", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "who: bad");
    k25_inputs_fail(NULL, "who", &error, "bad");
    assert_error(error, K25_BAD_INPUT, "who: bad");
    assert_false(k25_inputs_fail(&inputs, "plan.tp", NULL, "bad"));
    k25_inputs_free(&inputs);
}

static void origins_have_names(void **state)
{
    (void)state;
    assert_string_equal(k25_origin_name(K25_FROM_FILE), "file");
    assert_string_equal(k25_origin_name(K25_FROM_OVERRIDE), "override");
    assert_string_equal(k25_origin_name(K25_FROM_DEFAULT), "default");
    assert_string_equal(k25_origin_name(K25_FROM_PRIOR), "prior");
    assert_string_equal(k25_origin_name(K25_FROM_CALIBRATION), "calibration");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_again_replaces_in_place),
        cmocka_unit_test(many),
        cmocka_unit_test(files_are_recorded_once),
        cmocka_unit_test(errors_point_at_the_origin),
        cmocka_unit_test(origins_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
