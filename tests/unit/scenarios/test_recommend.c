/* The recommended plan against a search written out here, its interval against drawn parameters, and the arguments
 * of the engines word for word. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/plan/speculation.h"
#include "scenarios/plan/launch.h"
#include "scenarios/plan/recommend.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_scenario scenario;
static struct k25_recommendation found;

static void load(const char *name, const char *const *set, size_t count)
{
    struct k25_error error;
    if (!k25_scenario_load(&library, name, set, count, &scenario, &error))
        fail_msg("%s", error.message);
}

static void recommend(const struct k25_wish *wish)
{
    struct k25_error error;
    if (!k25_recommend(&scenario, wish, &found, &error))
        fail_msg("%s", error.message);
}

static bool price(const struct k25_plan *plan, struct k25_prediction *prediction)
{
    struct k25_question question;
    struct k25_error error;
    if (!k25_scenario_question_for(&scenario, plan, &question, &error))
        return false;
    k25_predict(&question, &scenario.params, prediction);
    return true;
}

/* Every plan of the six sizes from 1 to 8, in no clever order. */
static double best_by_force(int batch, double limit, size_t *kept)
{
    static struct k25_prediction p;
    double best = 0;
    *kept = 0;
    for (int code = 0; code < 4 * 4 * 4 * 4 * 4 * 2; code++) {
        struct k25_plan plan = scenario.plan;
        plan.tp = 1 << code % 4;
        plan.pp = 1 << code / 4 % 4;
        plan.dp = 1 << code / 16 % 4;
        plan.dcp = 1 << code / 64 % 4;
        plan.ep = 1 << code / 256 % 4;
        plan.attention_dp = code / 1024 % 2 != 0;
        plan.batch = batch;
        bool same = plan.attention_dp && plan.tp == 1; /* one rank is data-parallel with nobody */
        if (same || !price(&plan, &p) || !p.memory.fits || p.tpot > limit)
            continue;
        ++*kept;
        best = fmax(best, p.tok_s);
    }
    return best;
}

static void the_best_is_the_best_of_all(void **state)
{
    (void)state;
    const int batches[] = {1, 8, 64};
    load("kimi-k26-v4", NULL, 0);
    for (size_t i = 0; i < 3; i++) {
        size_t kept;
        const double limit = i == 1 ? 0.025 : INFINITY;
        struct k25_wish wish = {.concurrency = batches[i], .tpot_limit = i == 1 ? limit : 0};
        recommend(&wish);
        double best = best_by_force(batches[i], limit, &kept);
        assert_int_equal(found.counts.rows, kept);
        assert_true(found.best[0].tok_s == best);
        assert_int_equal(found.best[0].plan.batch, batches[i]);
        uint64_t invalid = 0;
        for (size_t r = 0; r < found.counts.reasons; r++)
            invalid += found.counts.reason[r].count;
        assert_int_equal(found.counts.points, found.counts.rows + found.slow + found.misfits + invalid);
        for (size_t r = 1; r < found.count; r++)
            assert_true(found.best[r].tok_s < found.best[r - 1].tok_s || found.best[r].tpot > found.best[r - 1].tpot);
        if (i == 1)
            assert_true(found.best[0].tpot <= limit && found.slow > 0);
    }
    k25_scenario_free(&scenario);
}

/* The limit that nothing meets, and the memory that is missing: with that much more of it the plan fits. */
static void the_nearest_is_named(void **state)
{
    (void)state;
    load("kimi-k26-v4", NULL, 0);
    recommend(&(struct k25_wish){.concurrency = 4, .tpot_limit = 1e-3});
    assert_int_equal(found.count, 0);
    assert_true(found.fastest.plan.tp > 0 && found.fastest.tpot > 1e-3);
    recommend(&(struct k25_wish){.concurrency = 64, .context = 131072});
    assert_int_equal(found.count, 0);
    assert_int_equal(found.fastest.plan.tp, 0);
    assert_true(found.smallest.missing > 0);
    static struct k25_prediction p;
    const double mib = scenario.machine.gpu.memory_mib;
    for (int more = 0; more <= 1; more++) {
        double bytes = found.smallest.missing + (more ? 1e6 : -1e6);
        scenario.machine.gpu.memory_mib = mib + bytes / scenario.plan.memory_utilisation / 1048576;
        assert_true(price(&found.smallest.plan, &p));
        assert_int_equal(p.memory.fits, more);
    }
    k25_scenario_free(&scenario);
}

/* k = 3 at a rate of 0.6: 1 + 0.6 + 0.36 + 0.216. A share of 0.4 of three is 2.2 tokens; its chain of one has the
 * rate a with a + a^2 + a^3 = 1.2, a = 0.6073. */
static void chains_of_every_length_are_tried(void **state)
{
    (void)state;
    const struct {
        const char *set[3];
        double one, three;
    } cases[] = {{{"plan.speculation.acceptance=a=0.6"}, 1.6, 2.176},
                 {{"plan.speculation.acceptance=0.4", "plan.speculation.tokens=3"}, 1.6073, 2.2},
                 {{"plan.speculation.acceptance=0.7/0.5/0.4"}, 1.7, 2.6}};
    bool both = false;
    for (size_t c = 0; c < 3; c++) {
        load("kimi-k26-v4", cases[c].set, c == 1 ? 2 : 1);
        bool seen[9] = {false};
        /* A limit and a batch at which chains of several lengths are among the ten best. */
        for (int batch = 1; batch <= 128; batch *= 2) {
            recommend(&(struct k25_wish){.concurrency = batch});
            for (size_t i = 0; i < found.count; i++) {
                const struct k25_plan_speculation *s = &found.best[i].plan.speculation;
                double tokens;
                struct k25_error error;
                assert_true(k25_tokens_per_step(s, &tokens, &error));
                seen[s->method == K25_SPEC_NONE ? 0 : s->tokens] = true;
                if (s->method == K25_SPEC_NONE)
                    continue;
                assert_int_equal(s->method, K25_SPEC_EAGLE3);
                if (s->tokens == 1)
                    assert_true(fabs(tokens - cases[c].one) < 1e-4);
                if (s->tokens == 3)
                    assert_true(fabs(tokens - cases[c].three) < 1e-4);
            }
        }
        assert_true(seen[1] || seen[3]);
        both |= seen[1] && seen[3];
        k25_scenario_free(&scenario);
    }
    assert_true(both);
    /* 9 chains (none, 1 to 8) where there was one. */
    load("kimi-k26-v4", NULL, 0);
    recommend(&(struct k25_wish){.concurrency = 1});
    uint64_t without = found.counts.points;
    k25_scenario_free(&scenario);
    load("kimi-k26-v4", cases[0].set, 1);
    recommend(&(struct k25_wish){.concurrency = 1});
    assert_int_equal(found.counts.points, 9 * without);
    k25_scenario_free(&scenario);
}

static void an_acceptance_without_its_chain_is_refused(void **state)
{
    (void)state;
    struct k25_error error;
    const char *set[] = {"plan.speculation.acceptance=0.4"};
    load("kimi-k26-v4", set, 1);
    assert_false(k25_recommend(&scenario, &(struct k25_wish){.concurrency = 1}, &found, &error));
    assert_string_equal(error.message, "plan.speculation.acceptance '0.4' is that of a chain, expected its length in "
                                       "plan.speculation.tokens, or rates r1/r2/... or a=rate");
    assert_int_equal(error.status, K25_BAD_INPUT);
    k25_scenario_free(&scenario);
}

static void kv_dtypes_and_backends_only_when_asked(void **state)
{
    (void)state;
    load("kimi-k26-v4", NULL, 0);
    recommend(&(struct k25_wish){.concurrency = 4});
    for (size_t i = 0; i < found.count; i++) {
        assert_int_equal(found.best[i].plan.kv_dtype, K25_KV_FP8);
        assert_int_equal(found.best[i].plan.allreduce.backend, K25_AR_ONESHOT_THEN_NCCL);
    }
    bool other_dtype = false, other_backend = false;
    recommend(&(struct k25_wish){.concurrency = 4, .kv_dtypes = true, .backends = true});
    for (size_t i = 0; i < found.count; i++) {
        other_dtype |= found.best[i].plan.kv_dtype != K25_KV_FP8;
        other_backend |= found.best[i].plan.allreduce.backend != K25_AR_ONESHOT_THEN_NCCL;
        assert_int_not_equal(found.best[i].plan.allreduce.backend, K25_AR_FASTEST);
    }
    assert_true(other_dtype && other_backend);
    k25_scenario_free(&scenario);
}

/* ---- the comparison ---- */

/* Two standard normal numbers from xorshift64 by Box and Muller. */
static double normal(uint64_t *seed)
{
    double u[2];
    for (int i = 0; i < 2; i++) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        u[i] = ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
    }
    return sqrt(-2 * log(u[0])) * cos(2 * M_PI * u[1]);
}

/* DCP 8 against none at 32k, by the priors, which are independent: the spread of the logarithm over 2,000 draws. A
 * draw of this size knows a standard deviation to 1.6 %; the rest of the 10 % is the first order. */
static void the_spread_is_that_of_drawn_parameters(void **state)
{
    (void)state;
    enum { DRAWS = 2000 };
    static struct k25_question a, b;
    static struct k25_uncertainty u;
    static struct k25_prediction p;
    /* The formula is first order: it is held where the parameters spread by a quarter of what the priors leave open. At
     * all of it the draws spread by half as much again, because exchanges change their protocol on the way. */
    static const double SMALLER = 0.25;
    static double drawn[DRAWS], alone[DRAWS];
    struct k25_comparison comparison;
    struct k25_error error;
    load("kimi-k26-v4", NULL, 0);
    k25_uncertainty_resolve(&scenario.priors, NULL, &u);
    struct k25_plan plan = scenario.plan;
    plan.context = 32768;
    assert_true(k25_scenario_question_for(&scenario, &plan, &b, &error));
    plan.dcp = 8;
    assert_true(k25_scenario_question_for(&scenario, &plan, &a, &error));
    assert_true(k25_recommend_compare(&a, &b, &scenario.params, &u, &comparison, &error));
    uint64_t seed = 20260529;
    double mean = 0, square = 0, mean_alone = 0, square_alone = 0;
    for (int d = 0; d < DRAWS; d++) {
        struct k25_params params = scenario.params;
        for (size_t i = 0; i < u.count; i++)
            params.value[u.id[i]] *= exp(SMALLER * sqrt(u.covariance[i * u.count + i]) * normal(&seed));
        k25_predict(&a, &params, &p);
        drawn[d] = alone[d] = log(p.tok_s);
        mean_alone += alone[d] / DRAWS;
        k25_predict(&b, &params, &p);
        drawn[d] -= log(p.tok_s);
        mean += drawn[d] / DRAWS;
    }
    for (int d = 0; d < DRAWS; d++) {
        square += (drawn[d] - mean) * (drawn[d] - mean) / (DRAWS - 1);
        square_alone += (alone[d] - mean_alone) * (alone[d] - mean_alone) / (DRAWS - 1);
    }
    if (fabs(SMALLER * comparison.spread / sqrt(square) - 1) > 0.1)
        fail_msg("spread %g, of draws %g", SMALLER * comparison.spread, sqrt(square));
    /* What both share cancels: the ratio is surer than either alone. */
    if (!(square < square_alone))
        fail_msg("spread of the ratio %g, of one %g", sqrt(square), sqrt(square_alone));
    double shares = 0;
    for (size_t i = 0; i < comparison.drivers; i++)
        shares += comparison.driver[i].share;
    assert_true(comparison.drivers == K25_DRIVERS && shares > 0 && shares <= 1 + 1e-9);
    k25_scenario_free(&scenario);
}

static void a_plan_is_not_faster_than_itself(void **state)
{
    (void)state;
    static struct k25_question a;
    static struct k25_uncertainty u;
    struct k25_comparison comparison;
    struct k25_error error;
    load("kimi-k26-v4", NULL, 0);
    k25_uncertainty_resolve(&scenario.priors, NULL, &u);
    u.noise = 0.02;
    assert_true(k25_scenario_question_for(&scenario, &scenario.plan, &a, &error));
    assert_true(k25_recommend_compare(&a, &a, &scenario.params, &u, &comparison, &error));
    assert_true(comparison.ratio == 1 && comparison.spread == 0 && !comparison.differs);
    assert_int_equal(comparison.drivers, 0);
    assert_int_equal(comparison.repeats, 0);
    /* exp(1.6449 x 0.02 x sqrt 2) = 1.04763 */
    assert_true(fabs(comparison.measured.high - 1.04763) < 1e-5);
    k25_scenario_free(&scenario);
}

/* ---- engines ---- */

static void expect_launch(enum k25_engine engine, const struct k25_plan *plan, const char *arguments,
                          const char *without)
{
    static struct k25_prediction p;
    struct k25_launch launch;
    char text[2048] = "", missing[2048] = "";
    assert_true(price(plan, &p));
    k25_launch_make(engine, &scenario, plan, &p.memory, &launch);
    for (size_t i = 0; i < launch.environments; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", launch.environment[i]);
    for (size_t i = 0; i < launch.arguments; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "", launch.argument[i]);
    for (size_t i = 0; i < launch.missing; i++)
        snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%.20s|", launch.without[i]);
    assert_string_equal(text, arguments);
    assert_string_equal(missing, without);
}

static void launches_word_for_word(void **state)
{
    (void)state;
    const char *set[] = {"plan.allreduce.backend=nccl", "plan.speculation.acceptance=a=0.6"};
    load("kimi-k26-v4", set, 2);
    struct k25_plan plan = scenario.plan;
    plan.dcp = 4;
    plan.batch = 16;
    plan.context = 32768;
    plan.speculation.method = K25_SPEC_EAGLE3;
    plan.speculation.tokens = 3;
    expect_launch(K25_VLLM, &plan,
                  "NCCL_PROTO=LL,LL128,Simple --tensor-parallel-size 8 --decode-context-parallel-size 4 "
                  "--kv-cache-dtype fp8 --dcp-comm-backend ag_rs --speculative-config '{\"method\": \"eagle3\", "
                  "\"model\": \"DRAFT\", \"num_speculative_tokens\": 3, \"draft_tensor_parallel_size\": 8}' "
                  "--max-num-seqs 16 --max-model-len 40960 --gpu-memory-utilization 0.94 "
                  "--max-cudagraph-capture-size 512 --disable-custom-all-reduce",
                  "");
    /* 0.94 of 102.6 GB less 3 GB of reserve is 0.91; 512 rows are 128 sequences of 4 tokens. */
    expect_launch(K25_SGLANG, &plan,
                  "NCCL_PROTO=LL,LL128,Simple --tp 8 --dcp-size 4 --kv-cache-dtype fp8_e4m3 --dcp-comm-backend ag_rs "
                  "--speculative-algorithm EAGLE3 --speculative-draft-model-path DRAFT --speculative-num-steps 3 "
                  "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --max-running-requests 16 "
                  "--context-length 40960 --mem-fraction-static 0.91 --cuda-graph-max-bs 128 "
                  "--disable-custom-all-reduce",
                  "");
    k25_scenario_free(&scenario);
}

static void launches_of_data_parallel_plans(void **state)
{
    (void)state;
    load("kimi-k26-v4", NULL, 0);
    struct k25_plan plan = scenario.plan;
    plan.attention_dp = true;
    plan.expert_exchange = K25_EXPERTS_GATHER;
    plan.ep = 8;
    plan.batch = 20; /* 3 on the fullest of 8 ranks */
    plan.allreduce.protocol = K25_PROTO_AUTO;
    plan.graph.mode = K25_GRAPH_NONE;
    expect_launch(K25_VLLM, &plan,
                  "--tensor-parallel-size 1 --data-parallel-size 8 --enable-expert-parallel "
                  "--all2all-backend allgather_reducescatter --kv-cache-dtype fp8 --max-num-seqs 3 "
                  "--max-model-len 9592 --gpu-memory-utilization 0.94 --enforce-eager",
                  "a one-shot AllReduce|where one-shot ends |");
    expect_launch(K25_SGLANG, &plan,
                  "--tp 8 --dp 8 --enable-dp-attention --ep-size 8 --kv-cache-dtype fp8_e4m3 "
                  "--max-running-requests 20 --context-length 9592 --mem-fraction-static 0.91 --disable-cuda-graph",
                  "a one-shot AllReduce|where one-shot ends |");
    plan.ep = 2;
    plan.attention_dp = false;
    plan.allreduce.backend = K25_AR_NCCL;
    expect_launch(K25_VLLM, &plan,
                  "--tensor-parallel-size 8 --kv-cache-dtype fp8 --max-num-seqs 20 --max-model-len 9592 "
                  "--gpu-memory-utilization 0.94 --enforce-eager --disable-custom-all-reduce",
                  "experts over 2 of 8 |");
    k25_scenario_free(&scenario);
    /* Replicas: their experts would be one group in vLLM. */
    const char *two[] = {"plan.batch=16", "plan.dp=2", "plan.tp=1", "plan.allreduce.backend=nccl"};
    load("vs-inference-throughput-vllm_minimax-m25_nvfp4_2gpu_v0.19.1rc1.dev42+gd56e95223", two, 4);
    expect_launch(K25_VLLM, &scenario.plan,
                  "--tensor-parallel-size 1 --kv-cache-dtype bfloat16 --max-num-seqs 8 --max-model-len 9792 "
                  "--gpu-memory-utilization 0.94 --max-cudagraph-capture-size 512",
                  "2 independent replic|");
    k25_scenario_free(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_is_the_best_of_all),
        cmocka_unit_test(the_nearest_is_named),
        cmocka_unit_test(chains_of_every_length_are_tried),
        cmocka_unit_test(an_acceptance_without_its_chain_is_refused),
        cmocka_unit_test(kv_dtypes_and_backends_only_when_asked),
        cmocka_unit_test(the_spread_is_that_of_drawn_parameters),
        cmocka_unit_test(a_plan_is_not_faster_than_itself),
        cmocka_unit_test(launches_word_for_word),
        cmocka_unit_test(launches_of_data_parallel_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
