/* Scenarios: references resolved, every kind of --set, and mistakes word for word. */
#include "tests/unit/physics_check.h"

#include "scenarios/library/scenario.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_scenario s;

static const char *const text = "k25sim: scenario\n"
                                "version: 1\n"
                                "name: my_box\n"
                                "title: one line\n"
                                "architecture: kimi-k2.5\n"
                                "weights: int4_g32\n"
                                "machine: rtx-pro-6000-8x-two-socket\n"
                                "assumptions:\n"
                                "  - \"first\"\n"
                                "  - second\n"
                                "plan:\n"
                                "  tp: 8\n"
                                "  batch: 4\n"
                                "  context: 2000\n"
                                "  allreduce: {backend: oneshot}\n"
                                "load: {output_max: 2048}\n";

static bool load(const char *name, const char *const *set, size_t count, struct k25_error *error)
{
    memset(error, 0, sizeof *error);
    return k25_scenario_load(&library, name, set, count, &s, error);
}

/* Loads my.yaml with one override (NULL: none); the caller frees s. */
static void load_with(const char *set)
{
    struct k25_error error;
    put_text("my.yaml", text);
    if (!load("my.yaml", &set, set != NULL, &error))
        fail_msg("%s", error.message);
}

static void a_scenario_loads(void **state)
{
    (void)state;
    load_with(NULL);
    assert_string_equal(s.file, "my.yaml");
    assert_string_equal(s.name, "my_box");
    assert_string_equal(s.title, "one line");
    assert_string_equal(s.architecture.name, "kimi-k2.5");
    assert_string_equal(s.weights.name, "int4_g32");
    assert_string_equal(s.machine.name, "rtx-pro-6000-8x-two-socket");
    assert_false(s.calibrated);
    assert_true(memcmp(s.params.value, s.priors.centre, sizeof s.params.value) == 0);
    assert_true(s.plan.batch == 4 && s.plan.allreduce.backend == K25_AR_ONESHOT && s.plan.pp == 1);
    assert_true(s.load.short_prompt == 64 && s.load.output_max == 2048 && s.load.cell_seconds == 0);
    assert_int_equal(s.assumptions, 2);
    assert_string_equal(s.assumption[0], "first");
    assert_string_equal(s.assumption[1], "second");
    struct k25_question question;
    struct k25_error error;
    assert_true(k25_scenario_question(&s, &question, &error));
    assert_true(question.group[K25_RANKS_TP].n == 8 && question.plan.batch == 4);
    k25_scenario_free(&s);
    k25_scenario_free(&s); /* once more does no harm */
}

static void every_shipped_scenario_can_be_asked(void **state)
{
    (void)state;
    size_t count;
    struct k25_error error;
    char **names = k25_library_list(&library, K25_FILES_SCENARIO, &count, &error);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        struct k25_question question;
        if (!load(names[i], NULL, 0, &error) || !k25_scenario_question(&s, &question, &error))
            fail_msg("%s", error.message);
        k25_scenario_free(&s);
    }
    k25_library_free(names);
}

static void calibration_wins_over_priors(void **state)
{
    (void)state;
    struct k25_error error;
    assert_true(load("tp8_bs1", NULL, 0, &error));
    assert_true(s.calibrated && s.calibration.set[K25_NCCL_HOP]);
    for (int id = 0; id < K25_PARAMS; id++)
        assert_true(s.params.value[id] == (s.calibration.set[id] ? s.calibration.value[id] : s.priors.centre[id]));
    assert_int_equal(k25_inputs_find(&s.inputs, "parameters.nccl.hop")->origin, K25_FROM_CALIBRATION);
    assert_int_equal(k25_inputs_find(&s.inputs, "parameters.gemm.t0")->origin, K25_FROM_PRIOR);
    k25_scenario_free(&s);
}

/* One override of each kind; what it reaches, and that the record says so. */
static void set_reaches_everything(void **state)
{
    (void)state;
    load_with("plan.allreduce.backend=fastest");
    assert_int_equal(s.plan.allreduce.backend, K25_AR_FASTEST);
    const struct k25_input *input = k25_inputs_find(&s.inputs, "plan.allreduce.backend");
    assert_int_equal(input->origin, K25_FROM_OVERRIDE);
    assert_string_equal(input->value, "fastest");
    k25_scenario_free(&s);
    load_with("machine.gpu.bandwidth_gbs=1600");
    assert_true(s.machine.gpu.bandwidth_gbs == 1600);
    assert_int_equal(k25_inputs_find(&s.inputs, "machine.gpu.bandwidth_gbs")->origin, K25_FROM_OVERRIDE);
    k25_scenario_free(&s);
    load_with("machine.topology=8 gpu, nvlink");
    assert_true(s.machine.links > 0 && s.machine.gpus == 8);
    struct k25_question question;
    struct k25_error error;
    assert_true(k25_scenario_question(&s, &question, &error) && question.group[K25_RANKS_TP].nvlink);
    k25_scenario_free(&s);
    load_with("architecture.moe.experts=256");
    assert_int_equal(s.architecture.moe.experts, 256);
    k25_scenario_free(&s);
    load_with("weights.tensors.routed_experts.group=64");
    assert_true(s.weights.format[K25_T_ROUTED_EXPERTS].group == 64);
    k25_scenario_free(&s);
    load_with("parameters.nccl.hop=0.6");
    assert_close(s.params.value[K25_NCCL_HOP], 0.6e-6, 1e-15);
    input = k25_inputs_find(&s.inputs, "parameters.nccl.hop");
    assert_int_equal(input->origin, K25_FROM_OVERRIDE);
    assert_string_equal(input->unit, "us");
    k25_scenario_free(&s);
    load_with("parameters.skew.sigma=0"); /* the lever "zero skew" */
    assert_true(s.params.value[K25_SKEW_SIGMA] == 0);
    k25_scenario_free(&s);
    load_with("load.cell_seconds=30");
    assert_true(s.load.cell_seconds == 30);
    k25_scenario_free(&s);
}

static void set_exchanges_references(void **state)
{
    (void)state;
    load_with("machine=h200-8x-nvlink");
    assert_string_equal(s.machine.name, "h200-8x-nvlink");
    k25_scenario_free(&s);
    load_with("weights=nvfp4");
    assert_string_equal(s.weights.name, "nvfp4");
    k25_scenario_free(&s);
    load_with("calibration=k25_tp8_vllm");
    assert_true(s.calibrated);
    k25_scenario_free(&s);
    struct k25_error error;
    static const char *const none[] = {"calibration=none"}, *const two[] = {"architecture=llama-3.1-70b",
                                                                            "weights=bf16"};
    assert_true(load("tp8_bs1", none, 1, &error));
    assert_false(s.calibrated);
    k25_scenario_free(&s);
    assert_true(load("my.yaml", two, 2, &error));
    assert_string_equal(s.architecture.name, "llama-3.1-70b");
    assert_string_equal(s.weights.name, "bf16");
    k25_scenario_free(&s);
}

static void the_last_override_wins(void **state)
{
    (void)state;
    struct k25_error error;
    static const char *const sets[] = {"plan.batch=2", "machine=rtx-pro-6000-4x", "plan.batch=3",
                                       "machine=h200-8x-nvlink", "machine.gpu.sms=99"};
    put_text("my.yaml", text);
    assert_true(load("my.yaml", sets, 5, &error));
    assert_true(s.plan.batch == 3 && s.machine.gpu.sms == 99);
    assert_string_equal(s.machine.name, "h200-8x-nvlink");
    k25_scenario_free(&s);
}

static void wrong_overrides_word_for_word(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"plan.tp", "--set plan.tp: expected KEY=VALUE, as in plan.tp=4"},
        {"=4", "--set =4: expected KEY=VALUE, as in plan.tp=4"},
        {"plan.tp=four", "--set plan.tp=four: 'four' is not a whole number"},
        {"plan.tp=", "--set plan.tp=: '' is not a whole number"},
        {"plan.tp=0", "--set plan.tp=0: 0 is out of range, expected 1 to 64"},
        {"plan.batch_size=4", "--set plan.batch_size=4: unknown key 'batch_size' in plan"},
        {"plan.kv_dtype=fp9", "--set plan.kv_dtype=fp9: unknown value 'fp9', expected one of bf16, fp8, did you mean "
                              "'fp8'?"},
        {"plan.attention_dp=maybe", "--set plan.attention_dp=maybe: 'maybe' is not true or false"},
        {"plan.allreduce=nccl",
         "--set plan.allreduce=nccl: plan.allreduce is a mapping, expected one of its keys: backend, "
         "oneshot_max_bytes, oneshot_max_rows, protocol"},
        {"plans.tp=4", "--set plans.tp=4: unknown key 'plans.tp', did you mean 'plan'?; keys start with plan, machine, "
                       "architecture, weights, draft, draft_weights, calibration, parameters or load"},
        {"tp=4", "--set tp=4: unknown key 'tp'; keys start with plan, machine, architecture, weights, draft, "
                 "draft_weights, calibration, parameters or load"},
        {"plan=x", "--set plan=x: unknown key 'plan'; keys start with plan, machine, architecture, weights, draft, "
                   "draft_weights, "
                   "calibration, parameters or load"},
        {"parameters.nccl.hopp=1", "--set parameters.nccl.hopp=1: unknown parameter 'nccl.hopp', did you mean "
                                   "'nccl.hop'?"},
        {"parameters.nccl.hop=-1", "--set parameters.nccl.hop=-1: -1 is out of range for nccl.hop; 0 is allowed"},
        {"parameters.nccl.hop=2us", "--set parameters.nccl.hop=2us: '2us' is not a number"},
        {"machine=rtx-pro-6000-8x-two-sockets",
         "--set machine=rtx-pro-6000-8x-two-sockets: unknown machine 'rtx-pro-6000-8x-two-sockets', did you mean "
         "'rtx-pro-6000-8x-two-socket'?; `k25sim list machines` shows what there is"},
        {"architecture=kimi", "--set architecture=kimi: unknown architecture 'kimi', did you mean 'kimi-k2.6'?; "
                              "`k25sim list architectures` shows what there is"},
        {"machine.gpu.smss=1", "--set machine.gpu.smss=1: unknown key 'smss' in machine.gpu, did you mean 'sms'?"},
        {"load.users=1", "--set load.users=1: unknown key 'users' in load"},
    };
    int wrong = 0;
    put_text("my.yaml", text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error;
        if (load("my.yaml", &cases[i].set, 1, &error))
            fail_msg("--set %s was accepted", cases[i].set);
        k25_scenario_free(&s);
        if (strcmp(error.message, cases[i].message) != 0) {
            print_message("%s\n  expected %s\n", error.message, cases[i].message);
            wrong++;
        }
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
    assert_int_equal(wrong, 0);
}

/* Values that fit the table but not each other are refused after --set as after loading. */
static void overrides_are_checked_together(void **state)
{
    (void)state;
    static const char *const sets[] = {"architecture.moe.experts_per_token=500", "architecture.moe.intermediate=0",
                                       "weights.tensors.routed_experts.bits=40"};
    put_text("my.yaml", text);
    for (size_t i = 0; i < 3; i++) {
        struct k25_error error;
        if (load("my.yaml", &sets[i], 1, &error))
            fail_msg("--set %s was accepted", sets[i]);
        k25_scenario_free(&s);
        if (strncmp(error.message, "--set ", 6) != 0)
            fail_msg("--set %s: '%s'", sets[i], error.message);
    }
}

/* No share of 0 may reach a division: the step would be infinite. */
static void zero_rates_are_refused(void **state)
{
    (void)state;
    static const char *const sets[] = {"parameters.gemm.eta_mem=0",     "parameters.memory.bandwidth=0",
                                       "parameters.kernel.p_norm=0",    "parameters.nccl.eta=0",
                                       "parameters.mla.split_tokens=0", "parameters.nccl.ll_norm=0"};
    int accepted = 0;
    put_text("my.yaml", text);
    for (size_t i = 0; i < 6; i++) {
        struct k25_error error;
        if (load("my.yaml", &sets[i], 1, &error)) {
            print_message("accepted: %s\n", sets[i]);
            accepted++;
        }
        k25_scenario_free(&s);
    }
    assert_int_equal(accepted, 0);
}

static void wrong_files_word_for_word(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"title:", "titel:", "my.yaml:4:1: unknown key 'titel', did you mean 'title'?"},
        {"name: my_box\n", "", "my.yaml:1:1: missing key 'name'"},
        {"  tp: 8\n", "", "my.yaml:12:3: missing key 'tp' in plan"},
        {"tp: 8", "tp: 8.5", "my.yaml:12:7: plan.tp: '8.5' is not a whole number"},
        {"tp: 8", "tp: \"8\"", "my.yaml:12:7: plan.tp: '8' is text in quotes, expected a whole number"},
        {"tp: 8", "tp: [8]", "my.yaml:12:7: plan.tp: expected a whole number, found a list"},
        {"  context:", "  contxt:", "my.yaml:14:3: unknown key 'contxt' in plan, did you mean 'context'?"},
        {"backend: oneshot", "backend: oneshoot",
         "my.yaml:15:24: plan.allreduce.backend: unknown value 'oneshoot', "
         "expected one of nccl, oneshot, oneshot_then_nccl, fastest, did you mean 'oneshot'?"},
        {"output_max: 2048", "output_max: 0",
         "my.yaml:16:20: load.output_max: 0 is out of range, expected 1 to "
         "10000000"},
        {"machine: rtx", "machine: rxt",
         "my.yaml:7:10: machine: unknown machine 'rxt-pro-6000-8x-two-socket', did you mean "
         "'rtx-pro-6000-8x-two-socket'?; `k25sim list machines` shows what there is"},
        {"machine: rtx-pro-6000-8x-two-socket", "machine: ./box.yaml", "./box.yaml: no such file"},
        {"  - \"first\"\n", "  - [first]\n", "my.yaml:9:5: assumptions: expected a sentence of at most 255 bytes"},
        {"assumptions:\n  - \"first\"\n  - second\n", "assumptions: first\n",
         "my.yaml:8:14: assumptions: expected a list of at most 16 sentences"},
        {"k25sim: scenario", "k25sim: machine",
         "my.yaml:1:9: k25sim: the file is of kind 'machine', expected "
         "'scenario'"},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error;
        char *changed = replaced(text, cases[i].from, cases[i].to);
        put_text("my.yaml", changed);
        free(changed);
        if (load("my.yaml", NULL, 0, &error))
            fail_msg("'%s' was accepted", cases[i].to);
        k25_scenario_free(&s);
        if (strcmp(error.message, cases[i].message) != 0) {
            print_message("%s\n  expected %s\n", error.message, cases[i].message);
            wrong++;
        }
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
    assert_int_equal(wrong, 0);
}

static void unknown_and_missing_scenarios(void **state)
{
    (void)state;
    struct k25_error error;
    assert_false(load("tp8_bs11", NULL, 0, &error));
    assert_string_equal(
        error.message,
        "unknown scenario 'tp8_bs11', did you mean 'tp8_bs1'?; `k25sim list scenarios` shows what there is");
    k25_scenario_free(&s);
    assert_false(load("none.yaml", NULL, 0, &error));
    assert_string_equal(error.message, "none.yaml: no such file");
    k25_scenario_free(&s);
}

/* A wrong plan points at the line of the scenario, or at the override. */
static void plans_that_do_not_suit(void **state)
{
    (void)state;
    struct k25_error error;
    struct k25_question question;
    char *changed = replaced(text, "tp: 8", "tp: 7");
    put_text("my.yaml", changed);
    free(changed);
    assert_true(load("my.yaml", NULL, 0, &error));
    assert_false(k25_scenario_question(&s, &question, &error));
    assert_string_equal(error.message, "my.yaml:12:7: plan.tp: 7 does not divide the 64 MLA heads of kimi-k2.5");
    k25_scenario_free(&s);
    load_with("plan.tp=7");
    assert_false(k25_scenario_question(&s, &question, &error));
    assert_string_equal(error.message, "--set plan.tp=7: 7 does not divide the 64 MLA heads of kimi-k2.5");
    k25_scenario_free(&s);
    load_with("plan.dcp=3");
    assert_false(k25_scenario_question(&s, &question, &error));
    assert_string_equal(error.message, "--set plan.dcp=3: 3 does not divide the 8 ranks of plan.tp");
    k25_scenario_free(&s);
    load_with("plan.dcp=8");
    assert_true(k25_scenario_question(&s, &question, &error));
    assert_true(question.plan.dcp == 8 && question.group[K25_RANKS_DCP].n == 8);
    k25_scenario_free(&s);
}

/* A path is relative to the file that names it, and a parent folder works. */
static void references_may_be_paths(void **state)
{
    (void)state;
    struct k25_error error;
    char machine[64], *changed;
    struct k25_machine_parts parts;
    struct k25_machine box;
    assert_true(k25_library_parts(&(const struct k25_library){K25_SOURCE_DIR}, &parts, NULL, &error));
    assert_true(
        k25_machine_load(K25_SOURCE_DIR "/hw/machines/rtx-pro-6000-8x-two-socket.yaml", &parts, &box, NULL, &error));
    snprintf(box.name, sizeof box.name, "mine");
    char *printed = k25_machine_print(&box, &error);
    put_text("box.yaml", printed);
    free(printed);
    changed = replaced(text, "rtx-pro-6000-8x-two-socket", "box.yaml");
    put_text("my.yaml", changed);
    free(changed);
    assert_non_null(getcwd(machine, sizeof machine));
    char name[96];
    snprintf(name, sizeof name, "%s/my.yaml", machine);
    assert_int_equal(chdir("/"), 0); /* from anywhere */
    bool ok = load(name, NULL, 0, &error);
    assert_int_equal(chdir(machine), 0);
    if (!ok)
        fail_msg("%s", error.message);
    assert_string_equal(s.machine.name, "mine");
    k25_scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scenario_loads),
        cmocka_unit_test(every_shipped_scenario_can_be_asked),
        cmocka_unit_test(calibration_wins_over_priors),
        cmocka_unit_test(set_reaches_everything),
        cmocka_unit_test(set_exchanges_references),
        cmocka_unit_test(the_last_override_wins),
        cmocka_unit_test(wrong_overrides_word_for_word),
        cmocka_unit_test(overrides_are_checked_together),
        cmocka_unit_test(zero_rates_are_refused),
        cmocka_unit_test(wrong_files_word_for_word),
        cmocka_unit_test(unknown_and_missing_scenarios),
        cmocka_unit_test(plans_that_do_not_suit),
        cmocka_unit_test(references_may_be_paths),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
