/* The way from an operator to what a profiler prints and back: kinds, kernel names, classes of the rules, buckets. */
#include "tests/unit/any_plan.h"

#include <glob.h>
#include <unistd.h>

#include "calib/capture/capture.h"
#include "calib/capture/simulated.h"
#include "calib/rules/operators.h"
#include "scenarios/library/library.h"
#include "scenarios/library/scenario.h"

static const struct k25_library library = {K25_SOURCE_DIR};
static struct k25_kernel_rules *rules;
static struct k25_prediction prediction;
static int seen[K25_OPERATORS], seen_kind[K25_OP_KINDS], seen_class[K25_KERNEL_CLASSES];

static int set_up(void **state)
{
    struct k25_error error;
    (void)state;
    rules = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    return rules == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    k25_kernel_rules_free(rules);
    return 0;
}

/* The table's row for an operator says what the rules say of the name in it. */
static void check_operator(const struct k25_operator *op, enum k25_backend backend)
{
    assert_true(op->id < K25_OPERATORS && op->kind < K25_OP_KINDS && op->part < K25_PARTS);
    assert_non_null(k25_operator_kind_names[op->kind]);
    const char *own = k25_operator_names[op->id];
    struct k25_operator_kernel kernel = k25_operator_kernel(op, backend);
    if (kernel.class == NULL || kernel.name == NULL)
        fail_msg("%s (%s): no kernel", own, k25_operator_kind_names[op->kind]);
    int class = k25_kernel_rules_class(rules, kernel.name);
    const struct k25_rule_class *found = k25_kernel_rules_describe(rules, class);
    if (strcmp(found->name, kernel.class) != 0 || found->bucket != kernel.bucket)
        fail_msg("%s: %s is %s, %s; the table says %s, %s", own, kernel.name, found->name,
                 k25_bucket_names[found->bucket], kernel.class, k25_bucket_names[kernel.bucket]);
    assert_true(found->collective == (op->kind != K25_OP_KERNEL));
    seen[op->id]++;
    seen_kind[op->kind]++;
    if (op->kind == K25_OP_KERNEL)
        seen_class[op->call.class]++;
}

static void check_question(const struct k25_question *question, const struct k25_params *params)
{
    k25_predict(question, params, &prediction);
    for (size_t i = 0; i < prediction.step_work.count; i++)
        check_operator(&prediction.step_work.op[i], prediction.op[i].backend);
}

static void any_operator_has_a_kernel_of_its_class(void **state)
{
    (void)state;
    static struct k25_question question;
    struct k25_params params;
    int models[ZOO_SIZE] = {0};
    uint64_t seed = 20261201;
    for (int plans = 0; plans < 3000;) {
        if (!any_question(&question, &params, &seed, models))
            continue;
        check_question(&question, &params);
        plans++;
    }
    k25_residuals_free(&any_tables);
    kimi_box(&any_box); /* as DeepSeek-V2-Lite, which the zoo does not have: queries in one step */
    any_box.architecture.mla.q_lora_rank = 0;
    question = ask(&any_box);
    check_question(&question, &params);
    for (int id = 0; id < K25_OPERATORS; id++)
        if (seen[id] == 0)
            fail_msg("no plan has %s", k25_operator_names[id]);
    for (int kind = 0; kind < K25_OP_KINDS; kind++)
        if (seen_kind[kind] == 0)
            fail_msg("no plan has a %s", k25_operator_kind_names[kind]);
    for (int class = 0; class < K25_KERNEL_CLASSES; class ++)
        if (seen_class[class] == 0)
            fail_msg("no plan has a kernel of class %s", k25_kernel_class_names[class]);
}

/* The words of output, as docs/output.md has them. */
static void kinds_have_their_words(void **state)
{
    (void)state;
    static const struct {
        enum k25_operator_kind kind;
        const char *word;
    } words[] = {{K25_OP_KERNEL, "kernel"},       {K25_OP_ALLREDUCE, "allreduce"},
                 {K25_OP_ALLGATHER, "allgather"}, {K25_OP_REDUCESCATTER, "reducescatter"},
                 {K25_OP_ALLTOALL, "alltoall"},   {K25_OP_SEND, "send"}};
    assert_int_equal(sizeof words / sizeof *words, K25_OP_KINDS);
    for (size_t i = 0; i < K25_OP_KINDS; i++)
        assert_string_equal(k25_operator_kind_names[words[i].kind], words[i].word);
    assert_null(k25_operator_kind_names[K25_OP_KINDS]);
}

/* Every backend of an AllReduce, whatever the plans choose. */
static void any_allreduce_is_one(void **state)
{
    (void)state;
    const struct k25_operator op = {.kind = K25_OP_ALLREDUCE, .id = K25_OPERATOR_ALLREDUCE_FFN};
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++)
        check_operator(&op, backend);
}

/* Calls by class of the rules, per step and rank. */
struct tally {
    uint64_t calls[64];
};

static bool count(void *context, const struct k25_sim_event *event)
{
    struct tally *tally = context;
    size_t index = (size_t)(event->op - prediction.step_work.op);
    struct k25_operator_kernel kernel = k25_operator_kernel(event->op, prediction.op[index].backend);
    tally->calls[k25_kernel_rules_find(rules, kernel.class)] += event->rank == 0;
    return true;
}

static void remove_all(const char *folder)
{
    glob_t found;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    globfree(&found);
    assert_int_equal(rmdir(folder), 0);
}

/* simulate writes, inspect reads: every kernel has the class of its operator. */
static void round_trip(const char *name, const struct k25_question *question, const struct k25_params *params)
{
    struct k25_error error = {0};
    struct k25_simulation simulation = {.steps = 2, .seed = 1, .slow_rank = -1};
    struct k25_sim_summary summary;
    struct k25_capture capture;
    struct k25_capture_options options = {.rank = -1, .rules = rules};
    struct tally tally = {0};
    char folder[] = "/tmp/k25_operators_XXXXXX";
    const char *path = mkdtemp(folder);
    assert_non_null(path);
    assert_true(k25_kernel_rules_classes(rules) <= 64);
    k25_predict(question, params, &prediction);
    if (!k25_simulate_capture(question, params, &simulation, folder, &summary, &error) ||
        !k25_capture_read(&path, 1, &options, &capture, &error) ||
        !k25_simulate(question, params, &simulation, count, &tally, &prediction, &error))
        fail_msg("%s: %s", name, error.message);
    for (int r = 0; r < capture.ranks; r++) {
        const struct k25_rank *rank = &capture.rank[r];
        uint64_t calls[64] = {0};
        for (size_t i = 0; i < rank->kernels; i++)
            calls[rank->kernel[i].class] += rank->kernel[i].calls;
        for (int class = 0; class < rank->classes; class ++)
            if (calls[class] != tally.calls[class])
                fail_msg("%s: rank %d has %llu of %s, not %llu", name, r, (unsigned long long)calls[class],
                         k25_kernel_rules_describe(rules, class)->name, (unsigned long long)tally.calls[class]);
        assert_int_equal(rank->unclassified_ns, 0);
    }
    k25_capture_free(&capture);
    remove_all(folder);
}

static void shipped_scenarios_come_back(void **state)
{
    (void)state;
    static struct k25_scenario scenario;
    static struct k25_question question;
    struct k25_error error;
    size_t scenarios;
    char **names = k25_library_list(&library, K25_FILES_SCENARIO, &scenarios, &error);
    assert_non_null(names);
    for (size_t i = 0; i < scenarios; i++) {
        if (!k25_scenario_load(&library, names[i], NULL, 0, &scenario, &error) ||
            !k25_scenario_question(&scenario, &question, &error))
            fail_msg("%s: %s", names[i], error.message);
        check_question(&question, &scenario.params);
        round_trip(names[i], &question, &scenario.params);
        k25_scenario_free(&scenario);
    }
    k25_library_free(names);
}

/* Plans whose collectives are of every kind that one stage has. */
static void exchanges_come_back(void **state)
{
    (void)state;
    static const char *const sets[][4] = {
        {"plan.dcp=8"},
        {"plan.dcp=8", "plan.dcp_exchange=all_to_all"},
        {"plan.attention_dp=true", "plan.ep=8", "plan.batch=64", "plan.expert_exchange=all_to_all"},
        {"plan.attention_dp=true", "plan.ep=8", "plan.batch=64", "plan.expert_exchange=gather"},
    };
    static struct k25_scenario scenario;
    static struct k25_question question;
    struct k25_error error;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        size_t n = 0;
        while (n < 4 && sets[i][n] != NULL)
            n++;
        if (!k25_scenario_load(&library, "tp8_bs1", sets[i], n, &scenario, &error) ||
            !k25_scenario_question(&scenario, &question, &error))
            fail_msg("%s: %s", sets[i][0], error.message);
        round_trip(sets[i][0], &question, &scenario.params);
        k25_scenario_free(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_operator_has_a_kernel_of_its_class),
        cmocka_unit_test(kinds_have_their_words),
        cmocka_unit_test(any_allreduce_is_one),
        cmocka_unit_test(shipped_scenarios_come_back),
        cmocka_unit_test(exchanges_come_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
