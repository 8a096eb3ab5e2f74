/* Every backend of hw/collective/backend.h on its way through the program: named in a plan, chosen by its limits,
 * refused without peer access, offered by recommend, started by launch, written by simulate and read back from the
 * trace. */
#include "tests/unit/capture_check.h"

#include <math.h>

#include "calib/capture/simulated.h"
#include "scenarios/plan/launch.h"
#include "scenarios/plan/recommend.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_scenario scenario;
static struct k25_prediction prediction;

static bool load_with(const char *key, const char *value, struct k25_error *error)
{
    char text[96];
    const char *set[] = {text};
    snprintf(text, sizeof text, "%s=%s", key, value);
    return k25_scenario_load(&library, "tp8_bs1", set, 1, &scenario, error);
}

static void load_policy(enum k25_allreduce_policy policy)
{
    struct k25_error error = {0};
    if (!load_with("plan.allreduce.backend", k25_allreduce_policy_names[policy], &error))
        fail_msg("%s", error.message);
    assert_int_equal(scenario.plan.allreduce.backend, policy);
}

/* What the plan of the scenario gives an AllReduce. */
static enum k25_backend choice(double rows, double bytes)
{
    struct k25_error error;
    struct k25_question question;
    assert_true(k25_scenario_question(&scenario, &question, &error));
    return k25_allreduce_choice(&question, rows, bytes, &scenario.params);
}

static void policies_name_every_backend(void **state)
{
    (void)state;
    assert_string_equal(k25_allreduce_policy_names[K25_AR_NCCL], "nccl");
    assert_string_equal(k25_allreduce_policy_names[K25_AR_FASTEST], "fastest");
    assert_null(k25_allreduce_policy_names[K25_AR_POLICIES]);
    assert_int_equal(K25_AR_POLICIES, 2 + 2 * (K25_BACKENDS - K25_NCCL_PROTOCOLS));
    for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++) {
        char limited[64];
        enum k25_allreduce_policy found[2] = {0};
        snprintf(limited, sizeof limited, "%s_then_nccl", k25_backend_keys[custom]);
        for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
            if (strcmp(k25_allreduce_policy_names[policy], k25_backend_keys[custom]) == 0)
                found[0] = policy;
            if (strcmp(k25_allreduce_policy_names[policy], limited) == 0)
                found[1] = policy;
        }
        assert_true(k25_policy_info[found[0]].kind == K25_POLICY_ALWAYS && k25_policy_info[found[0]].backend == custom);
        assert_true(k25_policy_info[found[1]].kind == K25_POLICY_LIMITED &&
                    k25_policy_info[found[1]].backend == custom);
    }
}

static void a_plan_chooses_every_backend(void **state)
{
    (void)state;
    for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
        const struct k25_policy_info *info = &k25_policy_info[policy];
        struct k25_allreduce_limit *limit = &scenario.plan.allreduce.limit[info->backend];
        load_policy(policy);
        switch (info->kind) {
        case K25_POLICY_NCCL:
            assert_true(choice(1, 1) < K25_NCCL_PROTOCOLS && choice(1e6, 1e9) < K25_NCCL_PROTOCOLS);
            break;
        case K25_POLICY_ALWAYS:
            assert_true(choice(1, 1) == info->backend && choice(1e6, 1e9) == info->backend);
            break;
        case K25_POLICY_LIMITED:
            *limit = (struct k25_allreduce_limit){5000, 3};
            assert_true(choice(4, 5000) == info->backend && choice(4, 5001) < K25_NCCL_PROTOCOLS);
            assert_true(choice(3, 1e9) == info->backend);
            break;
        case K25_POLICY_FASTEST:
            break;
        }
        k25_scenario_free(&scenario);
    }
}

/* `fastest` is the cheapest of NCCL and every custom kernel. */
static void the_fastest_is_the_cheapest_of_all(void **state)
{
    (void)state;
    bool chosen[K25_BACKENDS] = {false};
    struct k25_error error;
    struct k25_question question;
    load_policy(K25_AR_FASTEST);
    assert_true(k25_scenario_question(&scenario, &question, &error));
    const struct k25_group *group = &question.group[K25_RANKS_TP];
    for (double bytes = 256; bytes < 1e8; bytes *= 1.3) {
        enum k25_backend best = k25_allreduce_choice(&question, 1, bytes, &scenario.params);
        double least = k25_allreduce_time(best, bytes, group, &scenario.params);
        for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++)
            assert_true(k25_allreduce_time(custom, bytes, group, &scenario.params) >= least);
        assert_true(k25_allreduce_time(K25_BACKEND_NCCL_LL, bytes, group, &scenario.params) >= least);
        chosen[best] = true;
    }
    int winners = 0; /* at small sizes and at large ones */
    for (int backend = 0; backend < K25_BACKENDS; backend++)
        winners += chosen[backend];
    assert_true(winners > 1);
    k25_scenario_free(&scenario);
}

static void limits_have_keys(void **state)
{
    (void)state;
    for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++) {
        struct k25_error error;
        char key[64];
        snprintf(key, sizeof key, "plan.allreduce.%s_max_bytes", k25_backend_keys[custom]);
        assert_true(load_with(key, "123", &error));
        assert_true(scenario.plan.allreduce.limit[custom].max_bytes == 123);
        k25_scenario_free(&scenario);
        snprintf(key, sizeof key, "plan.allreduce.%s_max_rows", k25_backend_keys[custom]);
        assert_true(load_with(key, "7", &error));
        assert_true(scenario.plan.allreduce.limit[custom].max_rows == 7);
        assert_true(scenario.plan.allreduce.limit[custom].max_bytes == 57344);
        k25_scenario_free(&scenario);
    }
}

static void peer_access_is_asked_for(void **state)
{
    (void)state;
    for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
        enum k25_backend backend = k25_policy_info[policy].backend;
        struct k25_error error = {0};
        struct k25_question question;
        load_policy(policy);
        scenario.machine.p2p = false;
        bool made = k25_scenario_question(&scenario, &question, &error);
        assert_true(made == !k25_backend_info[backend]->needs_p2p);
        if (made)
            assert_false(k25_backend_info[k25_allreduce_choice(&question, 1, 1, &scenario.params)]->needs_p2p);
        else
            assert_non_null(strstr(error.message, k25_backend_names[backend]));
        k25_scenario_free(&scenario);
    }
}

/* A policy is started by an argument or said to be missing, as its row says. */
static void engines_start_what_they_offer(void **state)
{
    (void)state;
    for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
        const struct k25_policy_info *policy_info = &k25_policy_info[policy];
        load_policy(policy);
        struct k25_question question;
        struct k25_error error;
        assert_true(k25_scenario_question(&scenario, &question, &error));
        k25_predict(&question, &scenario.params, &prediction);
        for (enum k25_engine engine = 0; engine < K25_ENGINES; engine++) {
            const struct k25_backend_start *start = &k25_backend_info[policy_info->backend]->start[engine];
            struct k25_launch launch;
            int started = 0, missing = 0, limited = 0;
            k25_launch_make(engine, &scenario, &scenario.plan, &prediction.memory, &launch);
            for (size_t i = 0; i < launch.arguments; i++)
                started += start->argument != NULL && strcmp(launch.argument[i], start->argument) == 0;
            for (size_t i = 0; i < launch.missing; i++) {
                missing += strstr(launch.without[i], "AllReduce") != NULL;
                limited += strstr(launch.without[i], " ends and NCCL begins") != NULL;
                assert_true(strlen(launch.without[i]) + 1 < sizeof launch.without[i]);
            }
            /* Eight GPUs without NVLink. */
            bool fastest = policy_info->kind == K25_POLICY_FASTEST;
            int most = k25_backend_info[policy_info->backend]->most_without_nvlink;
            assert_int_equal(started, !fastest && start->argument != NULL);
            assert_int_equal(missing, fastest ? 1 : !start->offered + (most > 0 && most < 8));
            assert_int_equal(limited, policy_info->kind == K25_POLICY_LIMITED);
        }
        k25_scenario_free(&scenario);
    }
}

/* Reads the capture in `folder` and returns how many AllReduces a step of its rank 0 has. */
static double allreduces_read(void)
{
    struct k25_error error = {0};
    struct k25_capture capture;
    struct k25_capture_options options = {.rank = -1, .rules = rules};
    const char *path = folder;
    int class = k25_kernel_rules_find(rules, "allreduce");
    assert_true(class > 0);
    if (!k25_capture_read(&path, 1, &options, &capture, &error))
        fail_msg("%s", error.message);
    assert_int_equal(capture.rank[0].unclassified_ns, 0);
    double calls = (double)capture.rank[0].class_calls[class];
    k25_capture_free(&capture);
    return calls;
}

static void traces_of_every_backend_are_read_back(void **state)
{
    (void)state;
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++) {
        const char *kernel = k25_backend_info[backend]->kernel;
        int class = k25_kernel_rules_class(rules, kernel);
        assert_string_equal(k25_kernel_rules_describe(rules, class)->name, "allreduce");
        assert_true(k25_kernel_rules_describe(rules, class)->collective);
    }
    double nccl = 0;
    for (enum k25_allreduce_policy policy = 0; policy < K25_AR_POLICIES; policy++) {
        struct k25_error error = {0};
        struct k25_question question;
        struct k25_sim_summary summary;
        struct k25_simulation simulation = {.steps = 3, .seed = 1, .slow_rank = -1};
        load_policy(policy);
        assert_true(k25_scenario_question(&scenario, &question, &error));
        empty_folder();
        if (!k25_simulate_capture(&question, &scenario.params, &simulation, folder, &summary, &error))
            fail_msg("%s", error.message);
        double calls = allreduces_read();
        nccl = policy == K25_AR_NCCL ? calls : nccl;
        assert_true(calls > 0 && calls == nccl);
        k25_scenario_free(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_name_every_backend),
        cmocka_unit_test(a_plan_chooses_every_backend),
        cmocka_unit_test(the_fastest_is_the_cheapest_of_all),
        cmocka_unit_test(limits_have_keys),
        cmocka_unit_test(peer_access_is_asked_for),
        cmocka_unit_test(engines_start_what_they_offer),
        cmocka_unit_test_setup_teardown(traces_of_every_backend_are_read_back, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
