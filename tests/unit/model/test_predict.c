/* The prediction: sums, prices of single operators by hand, the seeds, and the directions that physics demands. */
#include "tests/unit/physics_check.h"

#include "scenarios/library/scenario.h"

static struct k25_prediction p, q; /* 256 operators each: too large for a stack */

static const struct k25_priced *priced(const struct k25_prediction *prediction, const char *name, int nth)
{
    return &prediction->op[find_op(&prediction->step_work, name, nth) - prediction->step_work.op];
}

/* Every total is the sum of its operators. */
static void check_sums(const struct k25_prediction *x, const struct k25_plan *plan)
{
    double kernels = 0, transfer = 0, wait = 0, other = 0, launches = 0, calls = 0, draft = 0;
    for (size_t i = 0; i < x->step_work.count; i++) {
        const struct k25_operator *op = &x->step_work.op[i];
        const struct k25_priced *one = &x->op[i];
        assert_true(isfinite(one->time) && one->time > 0);
        launches += op->calls * (op->kind == K25_OP_KERNEL ? op->call.launches : 1);
        draft += op->part == K25_PART_DRAFT ? one->time : 0;
        if (op->kind == K25_OP_KERNEL) {
            kernels += one->time;
            assert_true(one->floor > 0 && one->floor <= one->time && one->transfer == 0 && one->wait == 0);
            continue;
        }
        assert_close(one->time, one->transfer + one->wait, 1e-12);
        if (op->kind != K25_OP_ALLREDUCE) {
            other += one->time;
            continue;
        }
        transfer += one->transfer;
        wait += one->wait;
        calls += op->calls;
    }
    assert_close(x->kernels, kernels, 1e-12);
    assert_within(x->allreduce_transfer, transfer, 1e-15);
    assert_within(x->allreduce_wait, wait, 1e-15);
    assert_within(x->other_collectives, other, 1e-15);
    assert_within(x->allreduce, transfer + wait, 1e-15);
    assert_close(x->gpu_busy, kernels + transfer + wait + other, 1e-12);
    assert_within(x->draft, draft, 1e-15);
    assert_true((draft > 0) == (plan->speculation.method == K25_SPEC_MTP));
    assert_true(plan->pp > 1 ? x->bubble >= -1e-15 : x->bubble == 0);
    assert_close(x->step, x->gpu_busy + x->gaps + x->host + x->bubble, 1e-12);
    assert_within(x->allreduce_share, x->allreduce / x->gpu_busy, 1e-12);
    assert_close(x->launches, launches, 1e-12);
    assert_within(x->allreduces, calls, 1e-9);
    /* half of the drafts are accepted wherever this file drafts */
    double tokens = 1 + (plan->speculation.method == K25_SPEC_NONE ? 0 : plan->speculation.tokens / 2.0);
    assert_close(x->tokens_per_step, tokens, 1e-12);
    assert_close(x->tpot, x->step / tokens, 1e-12);
    assert_close(x->tok_s, plan->batch * tokens / x->step, 1e-12);
}

/* Any plan that physics covers; the AllReduce is one whose price has no threshold, so that more work is dearer. */
static void random_box(struct box *box, uint64_t *seed)
{
    static const struct {
        const char *name, *scheme;
    } models[] = {{"kimi-k2.5", "int4_g32"},    {"kimi-k2.5", "nvfp4"},      {"deepseek-v3", "fp8"},
                  {"minimax-m2.5", "awq_int4"}, {"qwen3-235b-a22b", "bf16"}, {"llama-3.1-70b", "bf16"}};
    static const char *const machines[] = {"rtx-pro-6000-8x-two-socket", "rtx-pro-6000-8x-switches", "h200-8x-nvlink"};
    static const enum k25_allreduce_policy backends[] = {K25_AR_NCCL, K25_AR_ONESHOT, K25_AR_FASTEST};
    static const enum k25_protocol protocols[] = {K25_PROTO_LL, K25_PROTO_LL128, K25_PROTO_SIMPLE, K25_PROTO_ALL};
    int model = (int)(6 * uniform(seed));
    make_box(box, models[model].name, models[model].scheme, machines[(int)(3 * uniform(seed))]);
    box->plan.tp = 1 << (int)(4 * uniform(seed));
    box->plan.batch = 1 + (int)(255 * pow(uniform(seed), 3));
    box->plan.context = floor(1 + 40000 * pow(uniform(seed), 2)) / 2 + 1;
    box->plan.kv_dtype = uniform(seed) < 0.5;
    box->plan.allreduce.backend = backends[(int)(3 * uniform(seed))];
    box->plan.allreduce.protocol = protocols[(int)(4 * uniform(seed))];
}

/* The same with everything else that spreads a step or lengthens it. */
static void random_spread_box(struct box *box, uint64_t *seed)
{
    static const struct {
        const char *name, *scheme;
    } models[] = {{"kimi-k2.5", "int4_g32"}, {"deepseek-v3", "fp8"}, {"glm-5", "fp8"}, {"qwen3.5-397b-a17b", "bf16"}};
    int model = (int)(4 * uniform(seed));
    random_box(box, seed);
    struct k25_plan plan = box->plan;
    make_box(box, models[model].name, models[model].scheme, "rtx-pro-6000-8x-two-socket");
    plan.pp = uniform(seed) < 0.3 ? 2 : 1;
    plan.dp = uniform(seed) < 0.3 ? 2 : 1;
    plan.tp = plan.tp * plan.pp * plan.dp > 8 ? 2 : plan.tp;
    plan.batch += 1;
    plan.microbatches = (int)(4 * uniform(seed));
    plan.ep = uniform(seed) < 0.5 ? plan.tp : 1;
    plan.redundant_experts = plan.ep > 1 && uniform(seed) < 0.5 ? 16 : 0;
    plan.attention_dp = uniform(seed) < 0.3;
    plan.expert_exchange = uniform(seed) < 0.5;
    plan.dcp = !plan.attention_dp && model != 3 && uniform(seed) < 0.5 ? plan.tp : 1;
    plan.dcp_exchange = uniform(seed) < 0.5;
    plan.prefill.tokens = uniform(seed) < 0.3 ? 100 : 0;
    if (uniform(seed) < 0.5) {
        plan.speculation.method = model > 0 && uniform(seed) < 0.7 ? K25_SPEC_MTP : K25_SPEC_NGRAM;
        plan.speculation.tokens = 1 + (int)(4 * uniform(seed));
        plan.speculation.drafting = (enum k25_drafting)(3 * uniform(seed));
        strcpy(plan.speculation.acceptance, "0.5");
    }
    /* micro-batches with a sequence each, and one when a prompt rides along */
    int over = plan.dp * (plan.attention_dp ? plan.tp : 1), sequences = (plan.batch + over - 1) / over;
    plan.microbatches = plan.prefill.tokens > 0 ? 1 : plan.microbatches < sequences ? plan.microbatches : sequences;
    box->plan = plan;
}

static struct k25_params random_params(uint64_t *seed)
{
    struct k25_params params = fixed_params();
    for (int id = 0; id < K25_PARAMS; id++)
        params.value[id] *= exp(0.2 * normal(seed));
    params.value[K25_P_NORM] = 3 + 2 * uniform(seed);
    params.value[K25_NCCL_RING] = fmin(1, params.value[K25_NCCL_RING]);
    params.value[K25_MLA_SPLITS] = 64;
    return params;
}

static void totals_add_up(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 300; i++) {
        struct box box;
        random_box(&box, &seed);
        box.plan.graph.mode = uniform(&seed) < 0.3 ? K25_GRAPH_NONE : K25_GRAPH_FULL;
        struct k25_params params = random_params(&seed);
        predict_box(&box, &params, &p);
        check_sums(&p, &box.plan);
        assert_true((p.allreduces == 0) == (box.plan.tp == 1));
    }
}

static void totals_of_spread_steps_add_up(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 300; i++) {
        struct box box;
        random_spread_box(&box, &seed);
        struct k25_params params = random_params(&seed);
        predict_box(&box, &params, &p);
        check_sums(&p, &box.plan);
        /* ranks with sequences of their own reduce nothing */
        assert_true((p.allreduces == 0) == (box.plan.tp == 1 || box.plan.attention_dp));
    }
}

static void same_question_same_bits(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 20; i++) {
        struct box box;
        random_box(&box, &seed);
        struct k25_params params = random_params(&seed);
        memset(&p, 0x55, sizeof p);
        memset(&q, 0xaa, sizeof q); /* nothing may depend on what was there before */
        predict_box(&box, &params, &p);
        predict_box(&box, &params, &q);
        assert_true(p.step == q.step && p.kernels == q.kernels && p.allreduce_wait == q.allreduce_wait);
        assert_true(p.launches == q.launches && p.memory.pool_tokens == q.memory.pool_tokens);
    }
}

static void host_and_gaps_by_hand(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.batch = 10;
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = 0;
    params.value[K25_SKEW_LAG] = 8e-6;
    predict_box(&box, &params, &p);
    /* 300 us + 10 x 3 us, and 8 us x 7/8 for the last rank to get through its tail; 0.3 us between any two kernels */
    assert_close(p.host, 337e-6, 1e-12);
    assert_close(p.gaps, 0.3e-6 * p.launches, 1e-12);
    /* Layers: dense 1 + 1 + 2 + 1 + 1 + 2 + 1 + 1 + 1 + AR 1 = 12, then norm, gate_up, act, down, AR = 5: 17.
     * MoE: 12 + norm, router, top-k, experts, 4 shared, AR = 9: 21. Embedding 2, head 1 + 1 + 1 + 4 = 7. */
    assert_true(p.launches == 17 + 60 * 21 + 2 + 7);
}

/* Eager: a kernel starts no faster than the host launches it. */
static void eager_gaps_by_hand(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.graph.mode = K25_GRAPH_NONE;
    params.value[K25_EAGER_LAUNCH] = 100e-6; /* the host is slower than the GPU: the step is its launches */
    predict_box(&box, &params, &p);
    assert_true(p.gpu_busy < 100e-6 * p.launches);
    assert_close(p.gpu_busy + p.gaps, 100e-6 * p.launches, 1e-9);
    params.value[K25_EAGER_LAUNCH] = 1e-6; /* and here it is ahead: gaps as in a graph */
    predict_box(&box, &params, &p);
    assert_true(p.gpu_busy > 1e-6 * p.launches);
    assert_close(p.gaps, 0.3e-6 * p.launches, 1e-12);
}

/* The wait of a collective follows the compute since the last one; the one after the embedding sees one kernel. */
static void waits_follow_their_segments(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    params.value[K25_SKEW_SIGMA] = 1e-12;
    params.value[K25_SKEW_LAG] = 1e-12;
    params.value[K25_SKEW_RHO] = 0.02;
    struct box box;
    kimi_box(&box);
    predict_box(&box, &params, &p);
    double segment = 0;
    for (size_t i = 0; i < p.step_work.count; i++) {
        const struct k25_operator *op = &p.step_work.op[i];
        if (op->kind == K25_OP_KERNEL) {
            segment += p.op[i].time / op->calls;
            continue;
        }
        /* d_8 rho x segment */
        assert_close(p.op[i].wait / op->calls, 1.4236003060451664 * 0.02 * segment, 1e-6);
        segment = 0;
    }
    /* a persistent lag of 10 us: 7 of 8 ranks wait for it in each of 123 AllReduces */
    params.value[K25_SKEW_RHO] = 1e-15;
    params.value[K25_SKEW_LAG] = 10e-6;
    predict_box(&box, &params, &p);
    assert_close(p.allreduce_wait, 123 * 8.75e-6, 1e-6);
}

static void operators_are_priced_by_hw(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.allreduce.protocol = K25_PROTO_LL;
    predict_box(&box, &params, &p);
    struct k25_group group;
    struct k25_error error;
    assert_true(k25_machine_group(&box.machine, 8, &group, &error));
    double one = k25_allreduce_time(K25_BACKEND_NCCL_LL, 14336, &group, &params);
    assert_close(p.allreduce_transfer, 123 * one, 1e-12);
    assert_close(priced(&p, "gather_logits", 0)->transfer,
                 k25_allgather_time(K25_BACKEND_NCCL_LL, 40960, &group, &params), 1e-12);
    const struct k25_operator *op = find_op(&p.step_work, "q_b", 1);
    struct k25_kernel_cost cost = k25_kernel_cost(&op->call, &box.machine.gpu, &params);
    assert_close(priced(&p, "q_b", 1)->time, 60 * cost.time, 1e-12);
    assert_close(priced(&p, "q_b", 1)->floor, 60 * cost.floor, 1e-12);
    assert_int_equal(priced(&p, "q_b", 1)->bound, cost.bound);
    /* 2112 x 7168 x 2 = 30.3 MB at 0.9 x 0.9 x 1.792 TB/s = 20.9 us, in a row with 2 us of floor: memory-bound */
    assert_int_equal(priced(&p, "qkv_a", 1)->bound, K25_BOUND_MEMORY);
    assert_int_equal(priced(&p, "qkv_a_norm", 1)->bound, K25_BOUND_FLOOR);
}

/* The gather goes by LL up to nccl.ll_max and by Simple beyond (hw/collective/collective.h); what is printed must say
 * so. */
static void gather_names_what_was_priced(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    predict_box(&box, &params, &p); /* 8 x 40,960 B are below 500 KB */
    assert_int_equal(priced(&p, "gather_logits", 0)->backend, K25_BACKEND_NCCL_LL);
    box.plan.batch = 128;
    predict_box(&box, &params, &p); /* 42 MB */
    assert_int_equal(priced(&p, "gather_logits", 0)->backend, K25_BACKEND_NCCL_SIMPLE);
}

static enum k25_backend choice(struct box *box, enum k25_allreduce_policy backend, enum k25_protocol protocol,
                               double rows, double bytes)
{
    struct k25_params params = fixed_params();
    box->plan.allreduce.backend = backend;
    box->plan.allreduce.protocol = protocol;
    struct k25_question question = ask(box);
    return k25_allreduce_choice(&question, rows, bytes, &params);
}

static void backends_follow_the_plan(void **state)
{
    (void)state;
    struct box box;
    kimi_box(&box);
    box.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_bytes = 57344;
    box.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows = 0;
    const enum k25_backend ll = K25_BACKEND_NCCL_LL, ll128 = K25_BACKEND_NCCL_LL128, simple = K25_BACKEND_NCCL_SIMPLE;
    const enum k25_backend oneshot = K25_BACKEND_ONESHOT;
    const enum k25_allreduce_policy then = K25_AR_ONESHOT_THEN_NCCL;
    assert_int_equal(choice(&box, K25_AR_NCCL, K25_PROTO_AUTO, 1, 500000), ll);
    assert_int_equal(choice(&box, K25_AR_NCCL, K25_PROTO_AUTO, 1, 500001), simple);
    assert_int_equal(choice(&box, K25_AR_NCCL, K25_PROTO_LL, 1, 1e9), ll);
    assert_int_equal(choice(&box, K25_AR_NCCL, K25_PROTO_LL128, 1, 1), ll128);
    assert_int_equal(choice(&box, K25_AR_NCCL, K25_PROTO_SIMPLE, 1, 1), simple);
    assert_int_equal(choice(&box, K25_AR_ONESHOT, K25_PROTO_LL, 512, 1e9), oneshot);
    assert_int_equal(choice(&box, then, K25_PROTO_LL, 4, 57344), oneshot); /* by bytes: 4 rows of 14,336 */
    assert_int_equal(choice(&box, then, K25_PROTO_LL, 8, 114688), ll);
    box.plan.allreduce.limit[K25_BACKEND_ONESHOT].max_rows = 8;
    assert_int_equal(choice(&box, then, K25_PROTO_LL, 8, 114688), oneshot); /* by rows, whatever their bytes */
    assert_int_equal(choice(&box, then, K25_PROTO_LL, 16, 229376), ll);
    assert_int_equal(choice(&box, then, K25_PROTO_LL, 16, 57344), oneshot);
}

/* `all` and `fastest` are never dearer than what they choose among. */
static void the_cheapest_is_the_cheapest(void **state)
{
    (void)state;
    uint64_t seed = 8;
    int chosen[K25_BACKENDS] = {0};
    for (int i = 0; i < 2000; i++) {
        struct box box;
        if (i % 100 == 0)
            make_box(&box, "kimi-k2.5", "int4_g32",
                     i % 200 ? "rtx-pro-6000-8x-switches" : "rtx-pro-6000-8x-two-socket");
        struct k25_params params = random_params(&seed);
        double bytes = exp(5 + 12 * uniform(&seed));
        box.plan.tp = 2 << (int)(3 * uniform(&seed));
        box.plan.allreduce.protocol = K25_PROTO_ALL;
        box.plan.allreduce.backend = K25_AR_FASTEST;
        struct k25_question question = ask(&box);
        enum k25_backend best = k25_allreduce_choice(&question, 1, bytes, &params);
        chosen[best]++;
        double least = k25_allreduce_time(best, bytes, &question.group[K25_RANKS_TP], &params);
        for (enum k25_backend other = 0; other < K25_BACKENDS; other++)
            assert_true(least <= k25_allreduce_time(other, bytes, &question.group[K25_RANKS_TP], &params));
    }
    for (int i = 0; i < K25_BACKENDS; i++) {
        if (i != K25_BACKEND_NCCL_SIMPLE) /* LL128 has the same bandwidth and shorter hops */
            assert_true(chosen[i] > 0);
    }
}

static struct k25_scenario scenario;

static void load_scenario(const char *name)
{
    struct k25_library library = {.root = K25_SOURCE_DIR};
    struct k25_error error = {0};
    if (!k25_scenario_load(&library, name, NULL, 0, &scenario, &error))
        fail_msg("%s", error.message);
}

static void predict_scenario(int batch)
{
    struct k25_question question;
    struct k25_error error = {0};
    scenario.plan.batch = batch;
    if (!k25_scenario_question(&scenario, &question, &error))
        fail_msg("%s", error.message);
    k25_predict(&question, &scenario.params, &p);
}

/* Issue 2, "Seeds": GPU time 21.69 ms and AllReduce 11.17 ms within 3 %, its share 51.5 % within 1.5 points, the
 * transfer of 122 AllReduces 6.81 ms (the step makes one more, after the embedding). */
static void the_seeds_come_out(void **state)
{
    (void)state;
    load_scenario("tp8_bs1");
    predict_scenario(1);
    assert_close(p.gpu_busy, 21.69e-3, 0.03);
    assert_close(p.allreduce, 11.17e-3, 0.03);
    assert_within(p.allreduce_share, 0.515, 0.015);
    assert_close(p.allreduce_transfer, 6.81e-3, 0.02);
    assert_close(p.allreduce_wait, 11.17e-3 - 6.81e-3, 0.06);
    k25_scenario_free(&scenario);
}

/* v4 keeps one-shot up to 8 rows whatever their bytes; v3 up to 56 KiB, which are 4 rows. */
static void the_backend_switches_where_the_build_does(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int last;
    } cases[] = {{"kimi-k26-v4", 8}, {"kimi-k26-v3", 4}};
    for (int c = 0; c < 2; c++) {
        load_scenario(cases[c].name);
        for (int batch = 1; batch <= 64; batch++) {
            predict_scenario(batch);
            for (size_t i = 0; i < p.step_work.count; i++) {
                if (p.step_work.op[i].kind == K25_OP_ALLREDUCE)
                    assert_int_equal(p.op[i].backend == K25_BACKEND_ONESHOT, batch <= cases[c].last);
            }
        }
        k25_scenario_free(&scenario);
    }
}

/* Doubling the batch from 8 to 16 gains more at the switch than the smooth part of the curve would (measured 350.9
 * and 636.2 tok/s): one-shot at 8 rows is already dearer than NCCL. */
static void the_switch_shows_in_the_curve(void **state)
{
    (void)state;
    load_scenario("kimi-k26-v4");
    double tok_s[3];
    for (int i = 0; i < 3; i++) {
        predict_scenario(4 << i);
        tok_s[i] = p.tok_s;
    }
    assert_true(tok_s[2] / tok_s[1] > tok_s[1] / tok_s[0]);
    k25_scenario_free(&scenario);
}

/* What each of these changes does to the step of a random plan. */
static double after(const struct box *box, const struct k25_params *params, const char *what)
{
    struct box b = *box;
    if (strcmp(what, "batch") == 0)
        b.plan.batch += 1 + b.plan.batch / 2;
    if (strcmp(what, "context") == 0)
        b.plan.context = b.plan.context * 1.5 + 1;
    if (strcmp(what, "hidden") == 0)
        b.architecture.hidden += 512;
    if (strcmp(what, "layers") == 0)
        b.architecture.layers[b.architecture.layer_groups - 1].count++;
    if (strcmp(what, "vocabulary") == 0)
        b.architecture.vocabulary *= 2;
    if (strcmp(what, "experts a token") == 0)
        b.architecture.moe.experts_per_token++;
    if (strcmp(what, "memory bandwidth") == 0)
        b.machine.gpu.bandwidth_gbs *= 1.2;
    if (strcmp(what, "peak") == 0) {
        b.machine.gpu.peak_bf16_tflops *= 1.2;
        b.machine.gpu.peak_fp8_tflops *= 1.2;
        b.machine.gpu.peak_fp4_tflops *= 1.2;
    }
    for (size_t i = 0; i < b.machine.links; i++) {
        if (strcmp(what, "link bandwidth") == 0)
            b.machine.link[i].bandwidth *= 1.3;
        if (strcmp(what, "link latency") == 0)
            b.machine.link[i].latency *= 1.3;
    }
    if (strcmp(what, "kv width") == 0)
        b.plan.kv_dtype = K25_KV_BF16;
    return step_of(&b, params);
}

/* +1: slower, strictly; -1: faster, or at least not slower. */
static const struct {
    const char *what;
    int direction;
} changes[] = {{"batch", 1},      {"context", 1},         {"hidden", 1},       {"layers", 1},
               {"vocabulary", 1}, {"experts a token", 1}, {"link latency", 1}, {"memory bandwidth", -1},
               {"peak", -1},      {"link bandwidth", -1}, {"kv width", 1}};
enum { CHANGES = sizeof changes / sizeof changes[0] };

/* Links matter only between GPUs, experts where there are some. */
static bool without_effect(const struct box *box, const char *what)
{
    return (strcmp(what, "link latency") == 0 && box->plan.tp == 1) ||
           (strcmp(what, "experts a token") == 0 && box->architecture.moe.experts == 0) ||
           (strcmp(what, "kv width") == 0 && box->plan.kv_dtype == K25_KV_BF16);
}

static void physics_has_a_direction(void **state)
{
    (void)state;
    uint64_t seed = 61;
    int wrong[CHANGES] = {0}, total = 0;
    for (int i = 0; i < 400; i++) {
        struct box box;
        random_box(&box, &seed);
        struct k25_params params = random_params(&seed);
        double before = step_of(&box, &params);
        for (int c = 0; c < CHANGES; c++) {
            const char *what = changes[c].what;
            double now = after(&box, &params, what);
            bool good = changes[c].direction > 0 ? now > before : now <= before * (1 + 1e-12);
            if (without_effect(&box, what) ? now == before : good)
                continue;
            if (wrong[c]++ == 0)
                print_message("%s of plan %d (%s, tp %d, batch %d, context %.0f): %.4f ms becomes %.4f\n", what, i,
                              box.architecture.name, box.plan.tp, box.plan.batch, box.plan.context, before * 1e3,
                              now * 1e3);
            total++;
        }
    }
    assert_int_equal(total, 0);
}

/* One more sequence never makes a step shorter, at any batch a graph is captured for. */
static void the_step_grows_with_every_sequence(void **state)
{
    (void)state;
    static const struct {
        const char *name, *scheme;
    } models[] = {
        {"kimi-k2.5", "int4_g32"}, {"minimax-m2.5", "awq_int4"}, {"minimax-m2.5", "nvfp4"}, {"llama-3.1-70b", "bf16"}};
    struct k25_params params = fixed_params();
    int wrong = 0;
    for (size_t m = 0; m < 4; m++) {
        struct box box;
        make_box(&box, models[m].name, models[m].scheme, "rtx-pro-6000-8x-two-socket");
        box.plan.allreduce.protocol = K25_PROTO_LL;
        double before = 0;
        for (int batch = 1; batch <= 512; batch++) {
            box.plan.batch = batch;
            double step = step_of(&box, &params);
            if (step <= before && ++wrong < 10)
                print_message("%s %s: %d sequences take %.4f ms, one less took %.4f\n", models[m].name,
                              models[m].scheme, batch, step * 1e3, before * 1e3);
            before = step;
        }
    }
    assert_int_equal(wrong, 0);
}

/* More ranks: less of everything that is sharded, so the kernels of a rank are never slower. */
static void more_ranks_compute_less(void **state)
{
    (void)state;
    uint64_t seed = 88;
    for (int i = 0; i < 100; i++) {
        struct box box;
        random_box(&box, &seed);
        struct k25_params params = random_params(&seed);
        box.plan.tp = 1;
        predict_box(&box, &params, &p);
        for (int tp = 2; tp <= 8; tp *= 2) {
            double before = p.kernels;
            box.plan.tp = tp;
            predict_box(&box, &params, &p);
            if (p.kernels > before)
                fail_msg("%s batch %d context %.0f: kernels of TP%d take %.4f ms, half the ranks took %.4f",
                         box.architecture.name, box.plan.batch, box.plan.context, tp, p.kernels * 1e3, before * 1e3);
        }
    }
}

/* Raising a parameter by `factor`: +1 the step grows, -1 it shrinks, 0 it moves (a threshold, a count of splits:
 * the direction depends on the shape), 2 the cache pool shrinks and no time moves. */
static const struct {
    int id, direction;
    double factor;
} directions[] = {
    {K25_P_NORM, -1, 1.3},
    {K25_KERNEL_SCALE, 1, 1.1},
    {K25_BANDWIDTH, -1, 1.1},
    {K25_GEMM_T0, 1, 1.1},
    {K25_GEMM_MEM, -1, 1.1},
    {K25_GEMM_MAC, -1, 1.1},
    {K25_GEMM_K, 1, 1.1},
    {K25_FP8_T0, 1, 1.1},
    {K25_FP8_MEM, -1, 1.1},
    {K25_FP8_MAC, -1, 1.1},
    {K25_FP8_K, 1, 1.1},
    {K25_FP4_T0, 1, 1.1},
    {K25_FP4_MEM, -1, 1.1},
    {K25_FP4_MAC, -1, 1.1},
    {K25_FP4_K, 1, 1.1},
    {K25_INT4_T0, 1, 1.1},
    {K25_INT4_MEM, -1, 1.1},
    {K25_INT4_MAC, -1, 1.1},
    {K25_INT4_K, 1, 1.1},
    {K25_K_SPLIT, 1, 1.1},
    {K25_BMM_T0, 1, 1.1},
    {K25_ELEMENT_T0, 1, 1.1},
    {K25_MOE_INT4_T0, 1, 1.1},
    {K25_MOE_INT4_MEM, -1, 1.1},
    {K25_MOE_INT4_MAC, -1, 1.1},
    {K25_MOE_FP4_T0, 1, 1.1},
    {K25_MOE_FP4_MEM, -1, 1.1},
    {K25_MOE_FP4_MAC, -1, 1.1},
    {K25_MOE_FP8_T0, 1, 1.1},
    {K25_MOE_FP8_MEM, -1, 1.1},
    {K25_MOE_FP8_MAC, -1, 1.1},
    {K25_MOE_BF16_T0, 1, 1.1},
    {K25_MOE_BF16_MEM, -1, 1.1},
    {K25_MOE_BF16_MAC, -1, 1.1},
    {K25_MOE_K, 1, 1.1},
    {K25_MOE_REREAD, 1, 1.1},
    {K25_MOE_ACTIVATION, 1, 1.1},
    {K25_MOE_GROUPED_ACTIVATION, 1, 1.1},
    {K25_MOE_EXPERT, 1, 1.1},
    {K25_MOE_FALLBACK, 1, 1.1},
    {K25_MLA_T0, 1, 1.1},
    {K25_MLA_BATCHED, 1, 1.1},
    {K25_MLA_SEQUENCE, 1, 1.1},
    {K25_MLA_TOKEN, 1, 1.1},
    {K25_MLA_MEM, -1, 1.1},
    {K25_MLA_SPLITS, 0, 2},
    {K25_MLA_SPLIT_TOKENS, 1, 2},
    {K25_MLA_GATHERED, -1, 0.7},
    {K25_INDEXER_T0, 1, 1.1},
    {K25_INDEXER_MEM, -1, 1.1},
    {K25_INDEXER_PICK, 1, 1.1},
    {K25_LINEAR_T0, 1, 1.1},
    {K25_LINEAR_MEM, -1, 1.1},
    {K25_GQA_T0, 1, 1.1},
    {K25_GQA_TILE, 1, 1.1},
    {K25_GQA_TOKEN, 1, 1.1},
    {K25_GQA_MEM, -1, 1.1},
    {K25_GQA_SPLIT_TOKENS, 1, 2},
    {K25_NCCL_BASE, 1, 1.1},
    {K25_NCCL_HOP, 1, 1.1},
    {K25_NCCL_LL, -1, 1.1},
    {K25_NCCL_LL_SCALING, 1, 1.1},
    {K25_NCCL_LL_NORM, -1, 1.1},
    {K25_NCCL_LL_MAX, 0, 4},
    {K25_NCCL_LL128_HOP, 1, 1.1},
    {K25_NCCL_SIMPLE_BASE, 1, 1.1},
    {K25_NCCL_SIMPLE_HOP, 1, 1.1},
    {K25_NCCL_ETA, -1, 1.1},
    {K25_NCCL_RING, -1, 1.1},
    {K25_NCCL_GATHER, 1, 1.1},
    {K25_GATHER_VOLUME, 1, 1.1},
    {K25_GATHER_LL_MAX, 0, 4},
    {K25_ONESHOT_BASE, 1, 1.1},
    {K25_ONESHOT_PEER, 1, 1.1},
    {K25_ONESHOT_ETA, -1, 1.1},
    {K25_ONESHOT_SHARED, -1, 1.1},
    {K25_SKEW_SIGMA, 1, 1.1},
    {K25_SKEW_RHO, 1, 1.1},
    {K25_SKEW_LAG, 1, 1.1},
    {K25_ROUTING_CV, -1, 1.1},
    {K25_ROUTING_OVERLAP, -1, 1.1},
    {K25_DRAFT_PASS, 1, 1.1},
    {K25_DRAFT_SEQUENCE, 1, 1.1},
    {K25_POWER_EXPONENT, 1, 1.1},
    {K25_STEP_FLOORS, 1, 1.1},
    {K25_GRAPH_GAP, 1, 1.1},
    {K25_EAGER_LAUNCH, 1, 4},
    {K25_HOST_STEP, 1, 1.1},
    {K25_HOST_SEQUENCE, 1, 1.1},
    {K25_RESERVE, 2, 1.1},
};

/* A small set of questions that between them touch every term. */
enum { QUESTIONS = 17 };
static void fill(struct box *boxes)
{
    static const struct {
        const char *name, *scheme;
        int batch;
        double context;
        enum k25_allreduce_policy backend;
        enum k25_protocol protocol;
        enum k25_graph_mode graph;
        const char *more; /* keys of the plan */
    } set[] = {
        {"kimi-k2.5", "int4_g32", 1, 1024, K25_AR_NCCL, K25_PROTO_AUTO, K25_GRAPH_FULL, NULL},
        {"kimi-k2.5", "int4_g32", 64, 9000, K25_AR_NCCL, K25_PROTO_AUTO, K25_GRAPH_FULL, NULL},
        {"kimi-k2.5", "int4_g32", 512, 300, K25_AR_NCCL, K25_PROTO_LL128, K25_GRAPH_FULL, NULL},
        {"kimi-k2.5", "int4_g32", 1, 30000, K25_AR_ONESHOT, K25_PROTO_AUTO, K25_GRAPH_NONE, NULL},
        {"kimi-k2.5", "nvfp4", 256, 500, K25_AR_NCCL, K25_PROTO_SIMPLE, K25_GRAPH_FULL, NULL},
        {"deepseek-v3", "fp8", 256, 500, K25_AR_ONESHOT, K25_PROTO_AUTO, K25_GRAPH_FULL, NULL},
        {"minimax-m2.5", "awq_int4", 256, 500, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, NULL},
        {"minimax-m2.5", "nvfp4", 2, 500, K25_AR_NCCL, K25_PROTO_AUTO, K25_GRAPH_FULL, NULL},
        {"qwen3-235b-a22b", "bf16", 256, 2000, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, NULL},
        {"qwen3-235b-a22b", "fp8", 512, 100, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, NULL},
        {"llama-3.1-70b", "bf16", 512, 100, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, NULL},
        {"glm-5", "fp8", 16, 9000, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, "speculation: {method: mtp, tokens: 3}"},
        {"qwen3.5-397b-a17b", "bf16", 64, 9000, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL,
         "levers: {power_limit_w: 300}"},
        {"kimi-k2.5", "int4_g32", 64, 9000, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, "dcp: 4"},
        {"kimi-k2.5", "nvfp4", 64, 500, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, "expert_rows: 32"},
        {"glm-5", "fp8", 16, 9000, K25_AR_NCCL, K25_PROTO_LL, K25_GRAPH_FULL, "dcp: 4"},
        {"kimi-k2.5", "int4_g32", 4, 9000, K25_AR_NCCL, K25_PROTO_ALL, K25_GRAPH_FULL, "dcp: 4"}};
    for (int i = 0; i < QUESTIONS; i++) {
        make_box(&boxes[i], set[i].name, set[i].scheme, "rtx-pro-6000-8x-two-socket");
        if (set[i].more != NULL) {
            char text[128];
            snprintf(text, sizeof text, "{tp: 8, batch: 1, context: 1, %s}", set[i].more);
            boxes[i].plan = plan_of(text);
        }
        boxes[i].plan.batch = set[i].batch;
        boxes[i].plan.context = set[i].context;
        boxes[i].plan.allreduce.backend = set[i].backend;
        boxes[i].plan.allreduce.protocol = set[i].protocol;
        boxes[i].plan.graph.mode = set[i].graph;
        /* One-shot across the sockets is bound by what the ranks share, inside one by each rank's own link. */
        if (set[i].backend == K25_AR_ONESHOT && set[i].batch > 1)
            boxes[i].plan.tp = 4;
    }
}

static void every_parameter_moves_something(void **state)
{
    (void)state;
    static struct box boxes[QUESTIONS];
    assert_int_equal(sizeof directions / sizeof directions[0], K25_PARAMS);
    fill(boxes);
    for (int id = 0; id < K25_PARAMS; id++) {
        assert_int_equal(directions[id].id, id);
        const char *name = k25_param_info[id].name;
        bool moves = false;
        for (int i = 0; i < QUESTIONS; i++) {
            struct k25_params params = fixed_params();
            if (params.value[id] <= 0)
                fail_msg("%s has no value in physics_check.h", name);
            predict_box(&boxes[i], &params, &p);
            params.value[id] *= directions[id].factor;
            predict_box(&boxes[i], &params, &q);
            double change = q.step / p.step - 1, pool = q.memory.pool_tokens - p.memory.pool_tokens;
            int direction = directions[id].direction;
            if (change * direction < -1e-14 && direction != 2)
                fail_msg("%s x %g moves question %d by %g", name, directions[id].factor, i, change);
            if (direction == 2 && (change != 0 || pool > 0))
                fail_msg("%s moves the step by %g, the pool by %g", name, change, pool);
            moves = moves || (direction == 2 ? pool < 0 : fabs(change) > 1e-9);
        }
        if (!moves)
            fail_msg("%s moves nothing", name);
    }
}

/* At one sequence 64 splits fill a third of the SMs: twice as many halve the walk. */
static void more_splits_help_one_sequence(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.context = 30000;
    double before = step_of(&box, &params);
    params.value[K25_MLA_SPLITS] = 128;
    assert_true(step_of(&box, &params) < before);
}

/* Every figure of architecture and machine that a decode step depends on moves it (issue 2: "changing
 * any value"). */
static void a_faster_machine_is_faster(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    double here = step_of(&box, &params);
    struct box other = box;
    other.machine.p2p = false; /* through host memory */
    assert_true(step_of(&other, &params) > here);
    make_box(&other, "kimi-k2.5", "int4_g32", "h200-8x-nvlink"); /* 4.8 TB/s and NVLink */
    assert_true(step_of(&other, &params) < here);
    other = box;
    other.machine.gpu.sms = 40; /* 64 splits are two waves */
    other.plan.context = box.plan.context = 30000;
    assert_true(step_of(&other, &params) > step_of(&box, &params));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_add_up),
        cmocka_unit_test(totals_of_spread_steps_add_up),
        cmocka_unit_test(same_question_same_bits),
        cmocka_unit_test(host_and_gaps_by_hand),
        cmocka_unit_test(eager_gaps_by_hand),
        cmocka_unit_test(waits_follow_their_segments),
        cmocka_unit_test(operators_are_priced_by_hw),
        cmocka_unit_test(gather_names_what_was_priced),
        cmocka_unit_test(backends_follow_the_plan),
        cmocka_unit_test(the_cheapest_is_the_cheapest),
        cmocka_unit_test(the_seeds_come_out),
        cmocka_unit_test(the_backend_switches_where_the_build_does),
        cmocka_unit_test(the_switch_shows_in_the_curve),
        cmocka_unit_test(physics_has_a_direction),
        cmocka_unit_test(the_step_grows_with_every_sequence),
        cmocka_unit_test(more_ranks_compute_less),
        cmocka_unit_test(every_parameter_moves_something),
        cmocka_unit_test(more_splits_help_one_sequence),
        cmocka_unit_test(a_faster_machine_is_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
