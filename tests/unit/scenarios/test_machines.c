/* Every machine of the library answers for every model that fits on it, and exchanging the GPU does what it says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/predict/predict.h"
#include "scenarios/library/scenario.h"

static const struct k25_library library = {K25_SOURCE_DIR};
static struct k25_scenario scenario;
static struct k25_prediction prediction;

/* False with an error where the scenario cannot be loaded or asked. */
static bool ask(const char *const *set, size_t count, struct k25_error *error)
{
    struct k25_question question;
    if (!k25_scenario_load(&library, "tp8_bs1", set, count, &scenario, error) ||
        !k25_scenario_question(&scenario, &question, error))
        return false;
    k25_predict(&question, &scenario.params, &prediction);
    return true;
}

enum outcome { REFUSED, TOO_LARGE, ANSWERED };

/* The model "ARCHITECTURE.SCHEME" on all GPUs of the machine, or on the most that its heads allow. */
static enum outcome try_model(const char *machine, int gpus, const char *model)
{
    char texts[4][320];
    const char *dot = strrchr(model, '.');
    enum outcome outcome = REFUSED;
    snprintf(texts[0], sizeof texts[0], "machine=%s", machine);
    snprintf(texts[1], sizeof texts[1], "architecture=%.*s", (int)(dot - model), model);
    snprintf(texts[2], sizeof texts[2], "weights=%s", dot + 1);
    for (int tp = gpus; tp >= 1 && outcome == REFUSED; tp /= 2) {
        struct k25_error error = {0};
        snprintf(texts[3], sizeof texts[3], "plan.tp=%d", tp);
        const char *const set[] = {texts[0], texts[1], texts[2], texts[3], "plan.allreduce.protocol=auto"};
        if (ask(set, sizeof set / sizeof *set, &error)) {
            outcome = prediction.memory.fits ? ANSWERED : TOO_LARGE;
            assert_true(outcome == TOO_LARGE || (isfinite(prediction.step) && prediction.step > 0));
        }
        k25_scenario_free(&scenario);
    }
    return outcome;
}

static void every_machine_answers(void **state)
{
    (void)state;
    size_t machines, models;
    struct k25_error error = {0};
    char **machine = k25_library_list(&library, K25_FILES_MACHINE, &machines, &error);
    char **model = k25_library_list(&library, K25_FILES_WEIGHTS, &models, &error);
    assert_true(machine != NULL && model != NULL && machines >= 20);
    int total = 0;
    for (size_t m = 0; m < machines; m++) {
        char text[320];
        int answered = 0;
        snprintf(text, sizeof text, "machine=%s", machine[m]);
        const char *const set[] = {text, "plan.tp=1"};
        if (!ask(set, 2, &error))
            fail_msg("%s: %s", machine[m], error.message);
        int gpus = scenario.machine.gpus;
        assert_string_equal(scenario.machine.name, machine[m]);
        k25_scenario_free(&scenario);
        for (size_t i = 0; i < models; i++)
            answered += try_model(machine[m], gpus, model[i]) == ANSWERED;
        if (answered == 0)
            fail_msg("%s answers for no model", machine[m]);
        total += answered;
    }
    print_message("%zu machines, %zu models: %d pairs fit and are answered\n", machines, models, total);
    k25_library_free(machine);
    k25_library_free(model);
}

static double step_of(const char *const *set, size_t count)
{
    struct k25_error error = {0};
    if (!ask(set, count, &error))
        fail_msg("%s", error.message);
    return prediction.step;
}

/* The GPU first, then what changes its figures, in whatever order they are given. */
static void overrides_change_the_gpu_that_is_asked_for(void **state)
{
    (void)state;
    static const char *const one[] = {"machine.gpu.bandwidth_gbs=900", "machine.gpu=l40s"};
    static const char *const other[] = {"machine.gpu=l40s", "machine.gpu.bandwidth_gbs=900"};
    double first = step_of(one, 2);
    assert_string_equal(scenario.machine.gpu.name, "L40S");
    assert_true(scenario.machine.gpu.bandwidth_gbs == 900 && scenario.machine.gpu.sms == 142);
    assert_true(scenario.machine.p2p);
    k25_scenario_free(&scenario);
    assert_true(step_of(other, 2) == first);
    k25_scenario_free(&scenario);
}

/* A machine that leaves P2P to its GPU loses it with a GeForce, and has it again by saying so. */
static void p2p_is_that_of_the_gpu(void **state)
{
    (void)state;
    static const char *const geforce[] = {"machine.gpu=rtx-5090"}, *const patched[] = {"machine.gpu=rtx-5090",
                                                                                       "machine.p2p=true"};
    double without = step_of(geforce, 1);
    assert_false(scenario.machine.p2p);
    const struct k25_input *input = k25_inputs_find(&scenario.inputs, "machine.p2p");
    assert_string_equal(input->value, "false");
    assert_int_equal(input->origin, K25_FROM_DEFAULT);
    k25_scenario_free(&scenario);
    assert_true(step_of(patched, 2) < without);
    assert_true(scenario.machine.p2p);
    k25_scenario_free(&scenario);
}

static void messages(void **state)
{
    (void)state;
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"machine.gpu=rtx-4900",
         "--set machine.gpu=rtx-4900: unknown gpu 'rtx-4900', did you mean 'rtx-4090'?; `k25sim list gpus` shows what "
         "there is"},
        {"machine.gpu.power=3",
         "--set machine.gpu.power=3: unknown key 'power' in machine.gpu, did you mean 'power_w'?"},
        {"machine.gpu.power_w=0", "--set machine.gpu.power_w=0: 0 is out of range, expected 1 to 100000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_error error = {0};
        assert_false(ask(&cases[i].set, 1, &error));
        assert_string_equal(error.message, cases[i].message);
        k25_scenario_free(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_answers),
        cmocka_unit_test(overrides_change_the_gpu_that_is_asked_for),
        cmocka_unit_test(p2p_is_that_of_the_gpu),
        cmocka_unit_test(messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
