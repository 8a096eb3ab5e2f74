/* What a rank's memory holds, against kimi.md, a measured pool and numbers worked by hand. */
#include "tests/unit/physics_check.h"

#include "hw/params/params.h"

static struct k25_step step; /* 256 operators: too large for a stack */

static struct k25_memory memory_of(const struct box *box, const struct k25_params *params)
{
    struct k25_memory memory;
    k25_step_build(&box->architecture, &box->weights, NULL, &box->machine, &box->plan, params, &step);
    k25_memory(&step, &box->machine, &box->plan, params, &memory);
    return memory;
}

static double held(const char *const *names)
{
    double bytes = 0;
    for (size_t i = 0; i < step.count; i++) {
        for (size_t j = 0; names[j] != NULL; j++) {
            if (strcmp(k25_operator_names[step.op[i].id], names[j]) == 0)
                bytes += step.op[i].calls * step.op[i].resident;
        }
    }
    return bytes;
}

static void kimi_at_tp8(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    struct k25_memory memory = memory_of(&box, &params);
    /* kimi.md: 71.35 GB of experts; replicated 61 x 7168 x 2112 x 2 + 60 x 7168 x 384 x 2 = 2.18; sharded 2.66 */
    static const char *const experts[] = {"routed_experts", NULL}, *const replicated[] = {"qkv_a", "router", NULL};
    assert_close(memory.weights, 76.18e9, 0.0005);
    assert_close(held(experts), 570760888320.0 / 8, 1e-12);
    assert_close(held(replicated), 61 * 7168.0 * 2112 * 2 + 60 * 7168.0 * 384 * 2, 1e-12);
    assert_within(held(replicated) / 1e9, 2.18, 0.005);
    assert_within((memory.weights - held(experts) - held(replicated)) / 1e9, 2.66, 0.0051);
}

static void replicated_parts_stay_sharded_parts_shrink(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    static const char *const replicated[] = {"qkv_a", "router", NULL};
    box.plan.tp = 1;
    double whole = memory_of(&box, &params).weights, copies = held(replicated);
    for (int tp = 2; tp <= 8; tp *= 2) {
        box.plan.tp = tp;
        assert_close(memory_of(&box, &params).weights, copies + (whole - copies) / tp, 1e-12);
        assert_close(held(replicated), copies, 1e-12);
    }
}

static void the_pool_by_hand(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    params.value[K25_RESERVE] = 2.5e9;
    box.machine.gpu.memory_mib = 100000;
    box.plan.memory_utilisation = 0.9;
    box.plan.kv_dtype = K25_KV_FP8;
    box.plan.batch = 10;
    box.plan.context = 20000;
    struct k25_memory memory = memory_of(&box, &params);
    /* 100,000 MiB = 104.8576 GB; budget 94.37184; cache gets the rest behind weights and 2.5 GB, at 61 x 576 B */
    assert_close(memory.capacity, 104857600000.0, 1e-15);
    assert_close(memory.budget, 94371840000.0, 1e-12);
    assert_true(memory.reserve == 2.5e9 && memory.kv_per_token == 35136);
    assert_close(memory.pool_bytes, 94371840000.0 - memory.weights - 2.5e9, 1e-12);
    assert_true(memory.pool_tokens == floor(memory.pool_bytes / 35136));
    assert_true(memory.need_tokens == 200000 && memory.fits);
    assert_true(memory.max_batch == floor(memory.pool_tokens / 20000));
}

static void the_measured_pool(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_priors priors;
    struct k25_params params;
    struct box box;
    /* The prior of the reserve is part of the claim: measured 491,344 FP8 tokens at 0.94 (issue: within 5 %). */
    if (!k25_priors_load(K25_SOURCE_DIR "/hw/params/params.yaml", &priors, NULL, &error))
        fail_msg("%s", error.message);
    memcpy(params.value, priors.centre, sizeof params.value);
    make_box(&box, "kimi-k2.6", "int4_g32", "rtx-pro-6000-8x-two-socket");
    box.plan.kv_dtype = K25_KV_FP8;
    box.plan.memory_utilisation = 0.94;
    assert_close(memory_of(&box, &params).pool_tokens, 491344, 0.05);
    box.plan.kv_dtype = K25_KV_BF16; /* kimi.md: about 190 K tokens reported; half of the FP8 pool is 245 K */
    assert_close(memory_of(&box, &params).pool_tokens, 491344 / 2, 0.05);
}

static void fits_to_the_last_token(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.context = 1;
    double most = memory_of(&box, &params).max_batch;
    box.plan.context = floor(memory_of(&box, &params).pool_tokens / 7);
    box.plan.batch = 7;
    struct k25_memory memory = memory_of(&box, &params);
    assert_true(memory.fits && memory.max_batch == 7 && most == memory.pool_tokens);
    box.plan.batch = 8;
    memory = memory_of(&box, &params);
    assert_true(!memory.fits && memory.max_batch == 7);
}

static void weights_too_large_leave_no_pool(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.tp = 4; /* 150 GB of weights on a GPU of 96 GiB */
    struct k25_memory memory = memory_of(&box, &params);
    assert_true(!memory.fits && memory.pool_bytes == 0 && memory.pool_tokens == 0 && memory.max_batch == 0);
    assert_true(memory.weights > memory.budget);
}

static void replicated_heads_cost_cache(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    make_box(&box, "qwen3-235b-a22b", "fp8", "rtx-pro-6000-8x-two-socket");
    /* 4 key-value heads: 8 ranks hold each twice, so a token costs a rank the same at TP4 and TP8 */
    box.plan.tp = 4;
    double four = memory_of(&box, &params).kv_per_token;
    box.plan.tp = 8;
    assert_true(memory_of(&box, &params).kv_per_token == four && four == 94 * 2 * 128 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_at_tp8),
        cmocka_unit_test(replicated_parts_stay_sharded_parts_shrink),
        cmocka_unit_test(the_pool_by_hand),
        cmocka_unit_test(the_measured_pool),
        cmocka_unit_test(fits_to_the_last_token),
        cmocka_unit_test(weights_too_large_leave_no_pool),
        cmocka_unit_test(replicated_heads_cost_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
