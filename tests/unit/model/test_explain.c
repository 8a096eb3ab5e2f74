/* What explains a step: parts that sum to it, levers against predictions that have them pulled, chains by hand. */
#include "tests/unit/physics_check.h"

#include "model/predict/explain.h"

static struct k25_prediction p, q; /* 256 operators each: too large for a stack */
static struct k25_share shares[K25_SHARES];

static struct k25_params all_params(void)
{
    struct k25_params params = fixed_params();
    params.value[K25_MLA_GATHERED] = 64;
    params.value[K25_ROUTING_OVERLAP] = 0.4;
    params.value[K25_DRAFT_PASS] = 150e-6;
    params.value[K25_DRAFT_SEQUENCE] = 10e-6;
    return params;
}

#define UNPULLED .link_bandwidth = 1, .link_latency = 1, .skew = 1

static void make_kimi(struct box *box)
{
    kimi_box(box);
    box->plan.levers = (struct k25_plan_levers){UNPULLED};
}

static void explain(const struct box *box, const struct k25_params *params)
{
    struct k25_question question = ask(box);
    struct k25_slopes slopes;
    k25_predict(&question, params, &p);
    k25_slopes(&question, params, &p, &slopes);
    k25_shares(&question, params, &p, &slopes, shares);
}

static double split_sum(const struct k25_operator_split *s)
{
    return s->floor + s->memory + s->compute + s->latency + s->link + s->wait;
}

static void parts_sum_to_the_step(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    for (int variant = 0; variant < 8; variant++) {
        struct box box;
        make_kimi(&box);
        box.plan.batch = 1 + 9 * variant;
        box.plan.pp = variant & 1 ? 2 : 1;
        box.plan.tp = 4;
        box.plan.graph.mode = variant & 2 ? K25_GRAPH_NONE : K25_GRAPH_FULL;
        box.plan.dcp = variant & 4 ? 4 : 1;
        explain(&box, &params);
        double sum = 0;
        for (int i = 0; i < K25_SHARES; i++) {
            sum += shares[i].time;
            if (i < K25_SHARE_GAPS)
                assert_within(split_sum(&shares[i].split), shares[i].time, 1e-12 * p.step);
            assert_true((shares[i].bound[0] != '\0') == (shares[i].time > 0));
        }
        assert_close(sum, p.step, 1e-12);
        assert_within(shares[K25_SHARE_ALLREDUCE_TRANSFER].time, p.allreduce_transfer, 1e-12 * p.step);
        assert_within(shares[K25_SHARE_ALLREDUCE_WAIT].time, p.allreduce_wait, 1e-12 * p.step);
    }
}

/* One AllReduce of 14,336 bytes among 8 by LL128: 14 hops, and 7/4 of the bytes (128/120 on the wire) through a link of
 * which nccl.eta x nccl.ring is reached. */
static void links_by_hand(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    struct box box;
    make_kimi(&box);
    box.plan.allreduce.protocol = K25_PROTO_LL128;
    struct k25_question question = ask(&box);
    explain(&box, &params);
    double link = 14336 * 7 / 4.0 * 128 / 120 / (0.8 * 0.9 * question.group[K25_RANKS_TP].ring_bandwidth);
    double latency = 4e-6 + 14 * (0.2e-6 + question.group[K25_RANKS_TP].ring_latency);
    assert_close(shares[K25_SHARE_ALLREDUCE_TRANSFER].split.link, p.allreduces * link, 1e-12);
    assert_close(shares[K25_SHARE_ALLREDUCE_TRANSFER].split.latency, p.allreduces * latency, 1e-9);
    assert_string_equal(shares[K25_SHARE_ALLREDUCE_TRANSFER].bound, "latency");
}

/* What bounds is what was made large. */
static void bounds_follow_the_largest(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    struct box box;
    make_kimi(&box);
    params.value[K25_SKEW_LAG] = 50e-6;
    explain(&box, &params);
    assert_string_equal(shares[K25_SHARE_ALLREDUCE_WAIT].bound, "skew.lag");
    assert_string_equal(shares[K25_SHARE_HOST].bound, "host.step");
    assert_string_equal(shares[K25_SHARE_GAPS].bound, "host.graph_gap");
    params.value[K25_SKEW_SIGMA] = 900e-6; /* of the tail too */
    params.value[K25_EAGER_LAUNCH] = 1e-3;
    box.plan.graph.mode = K25_GRAPH_NONE;
    box.plan.batch = 200;
    explain(&box, &params);
    assert_string_equal(shares[K25_SHARE_ALLREDUCE_WAIT].bound, "skew.sigma");
    assert_string_equal(shares[K25_SHARE_GAPS].bound, "host.eager_launch");
    assert_string_equal(shares[K25_SHARE_HOST].bound, "wait");
    params.value[K25_HOST_SEQUENCE] = 1e-3;
    explain(&box, &params);
    assert_string_equal(shares[K25_SHARE_HOST].bound, "host.sequence");
    params.value[K25_GEMM_MEM] = params.value[K25_MLA_MEM] = 1e-3;
    explain(&box, &params);
    assert_string_equal(shares[K25_SHARE_ATTENTION].bound, "memory");
}

static void ceilings_are_predictions(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    struct k25_ceiling ceilings[K25_LEVERS];
    struct k25_error error = {0};
    struct box box;
    make_kimi(&box);
    box.plan.batch = 8;
    struct k25_question question = ask(&box);
    k25_predict(&question, &params, &p);
    assert_true(k25_ceilings(&question, &params, ceilings, &error));
    /* Without AllReduces the step lacks them; the host still waits for the last rank. */
    double longer = params.value[K25_SKEW_RHO] * p.step;
    assert_true(ceilings[K25_LEVER_ALLREDUCE_FREE].step < p.step - p.allreduce + longer);
    assert_true(ceilings[K25_LEVER_ALLREDUCE_FREE].step >= p.step - p.allreduce);
    assert_close(ceilings[K25_LEVER_ALLREDUCE_OVERLAP].step, p.step - p.allreduce_transfer, 1e-12);
    const struct {
        enum k25_lever lever;
        struct k25_plan_levers levers;
    } pulled[] = {
        {K25_LEVER_ALLREDUCE_NORM, {.allreduce_norm = true, UNPULLED}},
        {K25_LEVER_PERSISTENT_EXPERTS, {.persistent_experts = true, UNPULLED}},
        {K25_LEVER_SHARED_STREAM, {.shared_stream = true, UNPULLED}},
        {K25_LEVER_L2_PINNED, {.l2_pinned_mib = 128, UNPULLED}},
        {K25_LEVER_LINK_BANDWIDTH, {.link_bandwidth = 2, .link_latency = 1, .skew = 1}},
        {K25_LEVER_LINK_LATENCY, {.link_bandwidth = 1, .link_latency = 0.5, .skew = 1}},
        {K25_LEVER_SKEW, {.link_bandwidth = 1, .link_latency = 1, .skew = 0}},
    };
    for (size_t i = 0; i < sizeof pulled / sizeof *pulled; i++) {
        box.plan.levers = pulled[i].levers;
        predict_box(&box, &params, &q);
        assert_within(ceilings[pulled[i].lever].step, q.step, 0);
        assert_within(ceilings[pulled[i].lever].tok_s, q.tok_s, 0);
    }
    assert_within(ceilings[K25_LEVER_L2_PINNED].ideal, box.machine.gpu.l2_mib, 0);
}

/* Rates 0.8, 0.6, then 0.75 times the one before. */
static void chains_by_hand(void **state)
{
    (void)state;
    struct k25_params params = all_params();
    struct k25_chain chains[K25_LONGEST_CHAIN + 1];
    struct k25_error error = {0};
    struct box box;
    int best;
    make_box(&box, "deepseek-v3", "fp8", "h200-8x-nvlink");
    box.plan.levers = (struct k25_plan_levers){UNPULLED};
    box.plan.speculation = (struct k25_plan_speculation){.method = K25_SPEC_MTP, .tokens = 2, .acceptance = "0.8/0.6"};
    struct k25_question question = ask(&box);
    assert_true(k25_chains(&question, &params, chains, &best, &error));
    double tokens = 1, rate = 1, most = 0;
    int longest = 0;
    for (int k = 0; k <= K25_LONGEST_CHAIN; k++) {
        struct box other = box;
        other.plan.speculation.method = k == 0 ? K25_SPEC_NONE : K25_SPEC_MTP;
        other.plan.speculation.tokens = k;
        other.plan.speculation.acceptance[0] = '\0';
        rate = k == 0 ? 1 : k == 1 ? 0.8 : rate * 0.75;
        tokens += k == 0 ? 0 : rate;
        predict_box(&other, &params, &q);
        assert_within(chains[k].step, q.step, 0);
        assert_close(chains[k].tokens_per_step, tokens, 1e-12);
        assert_close(chains[k].tok_s, tokens / q.step, 1e-12);
        assert_close(chains[k].break_even, q.step / chains[0].step, 1e-12);
        if (chains[k].tok_s > most)
            most = chains[longest = k].tok_s;
    }
    assert_int_equal(best, longest);
    question.plan.speculation.acceptance[0] = '\0';
    assert_true(k25_chains(&question, &params, chains, &best, &error));
    assert_true(best == -1 && isnan(chains[3].tok_s) && chains[3].break_even > 1 && chains[0].tokens_per_step == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_sum_to_the_step),
        cmocka_unit_test(links_by_hand),
        cmocka_unit_test(bounds_follow_the_largest),
        cmocka_unit_test(ceilings_are_predictions),
        cmocka_unit_test(chains_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
