/* The table of parameters and the reader of their priors. No prior's value is tested: they are tuned
 * against data. */
#include "tests/unit/physics_check.h"

#include "hw/params/params.h"

#define PRIORS K25_SOURCE_DIR "/hw/params/params.yaml"

static void the_shipped_priors_load(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    struct k25_priors priors;
    if (!k25_priors_load(PRIORS, &priors, &inputs, &error))
        fail_msg("%s", error.message);
    assert_int_equal(inputs.count, K25_PARAMS);
    for (int id = 0; id < K25_PARAMS; id++) {
        char path[96];
        assert_true(isfinite(priors.centre[id]) && priors.centre[id] > 0);
        assert_true(priors.spread[id] >= 0 && priors.spread[id] <= 1.5); /* a factor of 4.5 is "no idea" */
        assert_true(priors.source[id][0] != '\0');
        snprintf(path, sizeof path, "parameters.%s", k25_param_info[id].name);
        const struct k25_input *input = k25_inputs_find(&inputs, path);
        assert_non_null(input);
        assert_int_equal(input->origin, K25_FROM_PRIOR);
        assert_string_equal(input->unit, k25_param_info[id].unit);
        assert_string_equal(input->file, PRIORS);
        assert_true(input->line > 1);
        assert_close(strtod(input->value, NULL) * k25_param_info[id].scale, priors.centre[id], 1e-5);
    }
    k25_inputs_free(&inputs);
}

/* A share of a data sheet's figure does not exceed it (but memory.bandwidth: editions of the card differ). */
static void shares_are_shares(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_priors priors;
    assert_true(k25_priors_load(PRIORS, &priors, NULL, &error));
    for (int id = 0; id < K25_PARAMS; id++) {
        if (strcmp(k25_param_info[id].unit, "share") == 0 && id != K25_BANDWIDTH)
            assert_true(priors.centre[id] <= 1);
    }
}

static void names_and_units(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        double scale;
    } units[] = {{"", 1},         {"us", 1e-6},  {"ns", 1e-9},  {"share", 1}, {"bytes", 1},
                 {"KB", 1e3},     {"tokens", 1}, {"splits", 1}, {"GB", 1e9},  {"elements", 1},
                 {"exponent", 1}, {"times", 1},  {"heads", 1}};
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        assert_string_equal(k25_param_names[id], info->name);
        assert_int_equal(k25_param_find(info->name), id); /* so no two share a name */
        assert_true(strlen(info->doc) > 10 && strlen(info->name) < 64);
        bool known = false;
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            known = known || (strcmp(units[i].unit, info->unit) == 0 && units[i].scale == info->scale);
        if (!known)
            fail_msg("%s: unit '%s' of %g", info->name, info->unit, info->scale);
    }
    assert_null(k25_param_names[K25_PARAMS]);
    assert_int_equal(k25_param_find("gemm.T0"), -1);
    assert_int_equal(k25_param_find("gemm"), -1);
    assert_int_equal(k25_param_find(""), -1);
}

/* Every parameter with centre 2 and spread 0.5, but for one replacement. */
static char *priors_text(const char *from, const char *to)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "k25sim: parameters\nversion: 1\nparameters:\n");
    for (int id = 0; id < K25_PARAMS; id++)
        fprintf(out, "  %s: {centre: 2, spread: 0.5, unit: \"%s\", source: s}\n", k25_param_info[id].name,
                k25_param_info[id].unit);
    fclose(out);
    if (from == NULL)
        return text;
    char *changed = replaced(text, from, to);
    free(text);
    return changed;
}

static void units_become_si(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_priors priors;
    char *text = priors_text(NULL, NULL);
    put_text("priors.yaml", text);
    free(text);
    if (!k25_priors_load("priors.yaml", &priors, NULL, &error))
        fail_msg("%s", error.message);
    assert_true(priors.centre[K25_GEMM_T0] == 2e-6 && priors.centre[K25_MLA_TOKEN] == 2e-9);
    assert_true(priors.centre[K25_NCCL_LL_MAX] == 2000 && priors.centre[K25_RESERVE] == 2e9);
    assert_true(priors.centre[K25_ROUTING_CV] == 2 && priors.spread[K25_GEMM_T0] == 0.5);
    assert_string_equal(priors.source[K25_GEMM_T0], "s");
}

static void a_spread_left_out_is_a_constant(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_priors priors;
    char *text = priors_text("gemm.t0: {centre: 2, spread: 0.5,", "gemm.t0: {centre: 2,");
    put_text("priors.yaml", text);
    free(text);
    assert_true(k25_priors_load("priors.yaml", &priors, NULL, &error));
    assert_true(priors.spread[K25_GEMM_T0] == 0);
}

static void mistakes_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"gemm.t0:", "gemm.t:", "priors.yaml:7:3: unknown parameter 'gemm.t', did you mean 'gemm.t0'?"},
        {"gemm.t0: {centre: 2, spread: 0.5, unit: \"us\"", "gemm.t0: {centre: 2, spread: 0.5, unit: \"ms\"",
         "priors.yaml:7:12: gemm.t0: unit 'ms', expected 'us'"},
        {"gemm.t0: {centre: 2,", "gemm.t0: {centre: 0,",
         "priors.yaml:7:21: gemm.t0.centre: 0 is out of range, expected 1e-12 to 1000000000000"},
        {"gemm.t0: {centre: 2,", "gemm.t0: {centre: -2,",
         "priors.yaml:7:21: gemm.t0.centre: -2 is out of range, expected 1e-12 to 1000000000000"},
        {"gemm.t0: {centre: 2,", "gemm.t0: {center: 2,",
         "priors.yaml:7:13: unknown key 'center' in gemm.t0, did you mean 'centre'?"},
        {"gemm.t0: {centre: 2,", "gemm.t0: {", "priors.yaml:7:12: missing key 'centre' in gemm.t0"},
        {"version: 1", "version: 2", "priors.yaml:2:10: version: 2 is not supported, expected 1"},
        {"parameters:\n", "parameter:\n", "priors.yaml:3:1: unknown key 'parameter', did you mean 'parameters'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        struct k25_priors priors;
        char *text = priors_text(cases[i].from, cases[i].to);
        put_text("priors.yaml", text);
        free(text);
        assert_false(k25_priors_load("priors.yaml", &priors, NULL, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
}

static void whole_files_that_are_wrong(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_priors priors;
    put_text("list.yaml", "k25sim: parameters\nversion: 1\nparameters: [1, 2]\n");
    assert_false(k25_priors_load("list.yaml", &priors, NULL, &error));
    assert_string_equal(error.message, "list.yaml:3:13: parameters: expected a mapping from name to prior");
    put_text("few.yaml", "k25sim: parameters\nversion: 1\nparameters:\n"
                         "  kernel.p_norm: {centre: 4, source: s}\n");
    assert_false(k25_priors_load("few.yaml", &priors, NULL, &error));
    assert_string_equal(error.message, "few.yaml: missing parameter 'kernel.scale'");
    put_text("other.yaml", "k25sim: scenario\nversion: 1\nparameters: {}\n");
    assert_false(k25_priors_load("other.yaml", &priors, NULL, &error));
    assert_string_equal(error.message, "other.yaml:1:9: k25sim: the file is of kind 'scenario', expected 'parameters'");
    assert_false(k25_priors_load("none.yaml", &priors, NULL, &error));
    assert_string_equal(error.message, "none.yaml: no such file");
    assert_int_equal(error.status, K25_BAD_INPUT);
}

static void values_that_make_sense(void **state)
{
    (void)state;
    static const struct {
        int id;
        double in_unit;
        bool valid;
    } cases[] = {
        {K25_GEMM_T0, 0, true},       {K25_GEMM_T0, 1e-12, true},   {K25_GEMM_T0, 9e-13, false},
        {K25_GEMM_T0, 1e12, true},    {K25_GEMM_T0, 1.1e12, false}, {K25_GEMM_T0, -1, false},
        {K25_NCCL_ETA, 0, false},     {K25_NCCL_ETA, 1e-12, true},  {K25_NCCL_ETA, 1e12, true},
        {K25_P_NORM, 1, true},        {K25_P_NORM, 0.99, false},    {K25_P_NORM, 64, true},
        {K25_P_NORM, 65, false},      {K25_MLA_SPLITS, 1, true},    {K25_MLA_SPLITS, 0.5, false},
        {K25_MLA_SPLITS, 1e9, true},  {K25_MLA_SPLITS, 2e9, false}, {K25_NCCL_LL_NORM, 0, false},
        {K25_ONESHOT_ETA, 0, false},  {K25_ONESHOT_PEER, 0, true},  {K25_GQA_SPLIT_TOKENS, 0, false},
        {K25_KERNEL_SCALE, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = cases[i].in_unit * k25_param_info[cases[i].id].scale;
        if (k25_param_valid(cases[i].id, value) != cases[i].valid)
            fail_msg("%s %g", k25_param_info[cases[i].id].name, cases[i].in_unit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shipped_priors_load),  cmocka_unit_test(shares_are_shares),
        cmocka_unit_test(names_and_units),          cmocka_unit_test(values_that_make_sense),
        cmocka_unit_test(units_become_si),          cmocka_unit_test(a_spread_left_out_is_a_constant),
        cmocka_unit_test(mistakes_have_a_position), cmocka_unit_test(whole_files_that_are_wrong),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
