/* Levers: each changes the terms it names and no other. Whole operator lists are compared with and without. */
#include "tests/unit/question_check.h"

static struct k25_prediction p, q; /* with the lever and without; too large for a stack */

static void open_levers(struct box *box)
{
    open_kimi(box);
    box->plan.batch = 8;
}

/* With and without: the same operators, and the same time for those that `named` does not pick. A shorter
 * segment may shorten the wait behind it. */
static void compare(const struct box *changed, const struct k25_params *params,
                    bool (*named)(const struct k25_operator *op))
{
    struct box plain;
    open_levers(&plain);
    answer(&plain, NULL, params, &q);
    answer(changed, NULL, params, &p);
    assert_int_equal(p.step_work.count, q.step_work.count);
    for (size_t i = 0; i < p.step_work.count; i++) {
        const struct k25_operator *op = &p.step_work.op[i], *other = &q.step_work.op[i];
        assert_string_equal(k25_operator_names[op->id], k25_operator_names[other->id]);
        assert_true(op->calls == other->calls && op->message == other->message && op->rows == other->rows);
        assert_true(op->resident == other->resident && op->read == other->read);
        if (named(op))
            continue;
        if (p.op[i].transfer != q.op[i].transfer || p.op[i].floor != q.op[i].floor ||
            (op->kind == K25_OP_KERNEL ? p.op[i].time != q.op[i].time : p.op[i].wait > q.op[i].wait))
            fail_msg("%s %s changed", op->layers, k25_operator_names[op->id]);
    }
    assert_true(p.memory.weights == q.memory.weights && p.memory.pool_tokens == q.memory.pool_tokens);
}

static bool nothing(const struct k25_operator *op)
{
    (void)op;
    return false;
}

static bool allreduces(const struct k25_operator *op)
{
    return op->kind == K25_OP_ALLREDUCE;
}

static bool collectives(const struct k25_operator *op)
{
    return op->kind != K25_OP_KERNEL;
}

static bool routed(const struct k25_operator *op)
{
    return op->id == K25_OPERATOR_ROUTED_EXPERTS;
}

static bool shared(const struct k25_operator *op)
{
    return strncmp(k25_operator_names[op->id], "shared_", 7) == 0;
}

static bool products(const struct k25_operator *op)
{
    return op->kind == K25_OP_KERNEL && op->call.class == K25_KERNEL_GEMM_BF16;
}

static bool computing(const struct k25_operator *op)
{
    return op->kind == K25_OP_KERNEL && op->call.class != K25_KERNEL_ELEMENTWISE;
}

static void free_allreduces(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.allreduce_free = true;
    compare(&box, &params, allreduces);
    assert_true(p.allreduce == 0 && p.allreduces == 123 && q.allreduce > 0);
    assert_true(p.kernels == q.kernels && p.other_collectives == q.other_collectives && p.host == q.host &&
                p.gaps == q.gaps);
    assert_close(q.step - p.step, q.allreduce, 1e-12);
}

static void hidden_allreduces(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.allreduce_overlap = 0.5;
    compare(&box, &params, allreduces);
    assert_close(p.allreduce_transfer, q.allreduce_transfer / 2, 1e-12);
    assert_true(p.allreduce_wait == q.allreduce_wait && p.other_collectives == q.other_collectives);
    assert_close(q.step - p.step, q.allreduce_transfer / 2, 1e-12);
    box.plan.levers.allreduce_overlap = 1; /* the wait for the last rank stays */
    answer(&box, NULL, &params, &p);
    assert_true(p.allreduce_transfer == 0 && p.allreduce == q.allreduce_wait);
}

static void norms_inside_allreduces(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    answer(&box, NULL, &params, &q);
    box.plan.levers.allreduce_norm = true;
    answer(&box, NULL, &params, &p);
    size_t j = 0;
    double gone = 0;
    for (size_t i = 0; i < q.step_work.count; i++) {
        const struct k25_operator *op = &q.step_work.op[i];
        if (op->id == K25_OPERATOR_ATTENTION_NORM || op->id == K25_OPERATOR_FFN_NORM ||
            op->id == K25_OPERATOR_FINAL_NORM) {
            gone += q.op[i].time;
            continue;
        }
        assert_string_equal(k25_operator_names[p.step_work.op[j].id], k25_operator_names[op->id]);
        assert_true(p.op[j].transfer == q.op[i].transfer && p.op[j].wait <= q.op[i].wait);
        assert_true(op->kind != K25_OP_KERNEL || p.op[j].time == q.op[i].time);
        j++;
    }
    assert_true(j == p.step_work.count);
    /* 2 x 61 and the last: 2 us and 4 x 7168 x 2 x 8 B at 1597 x 0.9 x 0.9 GB/s each, and a gap */
    assert_close(gone, 123 * (2e-6 + 458752 / 1293.57e9), 1e-9);
    assert_close(q.kernels - p.kernels, gone, 1e-9);
    assert_close(q.gaps - p.gaps, 123 * 0.3e-6, 1e-9);
    box.plan.tp = 1; /* nothing to be part of */
    answer(&box, NULL, &params, &p);
    assert_true(has_op(&p.step_work, "final_norm") && has_op(&p.step_work, "ffn_norm"));
}

static void one_kernel_for_the_experts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.persistent_experts = true;
    compare(&box, &params, routed);
    assert_close(q.kernels - p.kernels, 60 * 25e-6, 1e-9); /* moe_int4.t0 */
    for (size_t i = 0; i < p.step_work.count; i++)
        assert_true(!routed(&p.step_work.op[i]) || p.op[i].floor == 0);
}

static void shared_experts_on_a_second_stream(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.shared_stream = true;
    compare(&box, &params, shared);
    /* what is left is the traffic: weights, 8 rows in and out */
    static const struct {
        const char *name;
        double bytes;
    } left[] = {{"shared_gate_up", 512 * 7168 * 2 + 2 * 8 * (512 + 7168)},
                {"shared_activation", 8 * 3 * 256 * 2},
                {"shared_down", 256 * 7168 * 2 + 2 * 8 * (256 + 7168)}};
    for (size_t i = 0, j = 0; i < p.step_work.count; i++) {
        if (!shared(&p.step_work.op[i]))
            continue;
        assert_string_equal(k25_operator_names[p.step_work.op[i].id], left[j].name);
        assert_close(p.op[i].time, 60 * left[j].bytes / 1293.57e9, 1e-9);
        assert_true(p.op[i].time < q.op[i].time);
        j++;
    }
}

static double dram_bytes(const struct k25_step *step)
{
    double bytes = 0;
    for (size_t i = 0; i < step->count; i++)
        bytes += step->op[i].calls * step->op[i].call.bytes;
    return bytes;
}

static void pinned_weights(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.l2_pinned_mib = 100;
    compare(&box, &params, products);
    assert_close(dram_bytes(&q.step_work) - dram_bytes(&p.step_work), 104857600, 1e-6);
    /* of the dense layer's 30277632 + 4718592 + 14680064 B all, of the next the rest */
    const struct k25_operator *op = only_op(&p.step_work, "dense", "o_proj");
    assert_close(op->call.bytes, 2 * 8 * (7168 + 1024), 1e-12);
    op = only_op(&p.step_work, "dense", "ffn_gate_up");
    assert_close(op->call.bytes, 66060288 - (104857600 - 49676288) + 2 * 8 * (7168 + 4608), 1e-12);
    box.plan.tp = 4; /* both stages have an L2 */
    answer(&box, NULL, &params, &q);
    box.plan.pp = 2;
    box.plan.microbatches = 2;
    box.plan.batch = 16;
    answer(&box, NULL, &params, &p);
    /* 8 sequences on their way through two stages find twice 100 MiB where those of one stage find it once */
    assert_close(dram_bytes(&q.step_work) - dram_bytes(&p.step_work), 104857600, 1e-6);
    box.plan.levers.l2_pinned_mib = 200;
    refuse(&box, "plan.levers.l2_pinned_mib: 200 MiB in the L2 of RTX PRO 6000 Blackwell Server Edition, which "
                 "has 128");
}

static void other_links(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_error error = {0};
    struct k25_group group, ours;
    struct box box;
    open_levers(&box);
    box.plan.levers.link_bandwidth = 2;
    box.plan.levers.link_latency = 0.5;
    compare(&box, &params, collectives);
    assert_true(p.kernels == q.kernels && p.host == q.host && p.allreduce_wait == q.allreduce_wait);
    assert_true(k25_machine_group(&box.machine, 8, &group, &error));
    ours = group;
    ours.ring_bandwidth = 2 * group.ring_bandwidth;
    ours.ring_latency = group.ring_latency / 2;
    double before = k25_allreduce_time(K25_BACKEND_NCCL_LL, 8 * 14336, &group, &params);
    double after = k25_allreduce_time(K25_BACKEND_NCCL_LL, 8 * 14336, &ours, &params);
    assert_close(q.allreduce_transfer, 123 * before, 1e-12);
    assert_close(p.allreduce_transfer, 123 * after, 1e-12);
    assert_true(after < before);
    box.plan.allreduce.backend = K25_AR_ONESHOT;
    answer(&box, NULL, &params, &p);
    ours = group;
    ours.peer_bandwidth = 2 * group.peer_bandwidth;
    ours.lone_bandwidth = 2 * group.lone_bandwidth;
    ours.peer_latency = group.peer_latency / 2;
    after = k25_allreduce_time(K25_BACKEND_ONESHOT, 8 * 14336, &ours, &params);
    assert_close(p.allreduce_transfer, 123 * after, 1e-12);
    box.plan.tp = 2; /* a rank's own link is the limit, not those that ranks share */
    answer(&box, NULL, &params, &p);
    assert_true(k25_machine_group(&box.machine, 2, &ours, &error));
    assert_true(0.75 * ours.lone_bandwidth < 0.9 * ours.peer_bandwidth);
    ours.peer_bandwidth *= 2;
    ours.lone_bandwidth *= 2;
    ours.peer_latency /= 2;
    after = k25_allreduce_time(K25_BACKEND_ONESHOT, 8 * 14336, &ours, &params);
    assert_close(p.allreduce_transfer, 123 * after, 1e-12);
}

static void links_are_made_anew_with_the_plan(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_error error = {0};
    struct k25_question question;
    struct box box;
    open_levers(&box);
    assert_true(
        k25_question_make(&box.architecture, &box.weights, NULL, &box.machine, &box.plan, NULL, &question, &error));
    k25_predict(&question, &params, &q);
    struct k25_plan plan = box.plan;
    plan.levers.link_bandwidth = 4;
    assert_true(k25_question_replan(&question, &plan, NULL, &error));
    k25_predict(&question, &params, &p);
    assert_true(p.allreduce_transfer < q.allreduce_transfer);
    assert_true(k25_question_replan(&question, &box.plan, NULL, &error)); /* and back: not scaled twice */
    k25_predict(&question, &params, &p);
    assert_true(p.step == q.step);
}

static void ranks_that_arrive_together(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    box.plan.levers.skew = 0;
    compare(&box, &params, collectives);
    for (size_t i = 0; i < p.step_work.count; i++)
        assert_true(p.op[i].wait == 0 && p.op[i].transfer == q.op[i].transfer);
    assert_close(p.host, 300e-6 + 8 * 3e-6, 1e-12); /* nor is the last rank's tail awaited */
    assert_true(q.host > p.host);
    box.plan.levers.skew = 3;
    answer(&box, NULL, &params, &p);
    assert_close(p.allreduce_wait, 3 * q.allreduce_wait, 1e-12);
    assert_true(p.allreduce_transfer == q.allreduce_transfer);
}

static void a_power_limit_slows_the_clock(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_levers(&box);
    params.value[K25_ROUTING_CV] = 0;
    params.value[K25_SKEW_RHO] = 0;      /* so that longer segments make no longer waits */
    box.plan.levers.power_limit_w = 300; /* of 600: a clock of 2^-0.8 */
    compare(&box, &params, computing);
    double slower = pow(2, 0.8);
    struct k25_gpu gpu = box.machine.gpu;
    gpu.peak_bf16_tflops /= slower;
    for (size_t i = 0; i < p.step_work.count; i++) {
        const struct k25_operator *op = &p.step_work.op[i];
        if (!computing(op))
            continue;
        struct k25_kernel_call call = op->call;
        call.serial *= slower;
        assert_close(p.op[i].time, op->calls * k25_kernel_cost(&call, &gpu, &params).time, 1e-12);
        assert_true(p.op[i].time > q.op[i].time);
    }
    static const double no_limit[] = {0, 600, 1000};
    for (int i = 0; i < 3; i++) {
        box.plan.levers.power_limit_w = no_limit[i];
        compare(&box, &params, nothing);
        assert_true(p.step == q.step);
    }
}

/* Whatever the plan, what is meant to help never makes a step longer, and less power never a shorter one. */
static void help_never_hurts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_plan_levers levers[] = {
        {.allreduce_free = true},     {.allreduce_overlap = 0.3}, {.allreduce_norm = true},
        {.persistent_experts = true}, {.shared_stream = true},    {.l2_pinned_mib = 64},
        {.link_bandwidth = 1.5},      {.link_latency = 0.7},      {.skew = 0}};
    enum { LEVERS = sizeof levers / sizeof *levers };
    struct box box;
    for (int plan = 0; plan < 48; plan++) {
        open_levers(&box);
        box.plan.batch = (int[]){1, 8, 64, 200}[plan % 4];
        box.plan.graph.mode = plan / 4 % 2 ? K25_GRAPH_NONE : K25_GRAPH_FULL;
        box.plan.dcp = plan / 8 % 3 == 1 ? 4 : 1;
        box.plan.attention_dp = plan / 8 % 3 == 2;
        box.plan.ep = box.plan.attention_dp ? 8 : 1;
        box.plan.allreduce.backend = plan / 24 ? K25_AR_FASTEST : K25_AR_NCCL;
        answer(&box, NULL, &params, &q);
        double most = q.step * (1 + 1e-12);
        for (int i = 0; i < LEVERS; i++) {
            box.plan.levers = levers[i];
            box.plan.levers.link_bandwidth = fmax(1, levers[i].link_bandwidth);
            box.plan.levers.link_latency = i == 7 ? 0.7 : 1;
            box.plan.levers.skew = i == 8 ? 0 : 1;
            answer(&box, NULL, &params, &p);
            if (!(p.step <= most))
                fail_msg("lever %d hurts plan %d: %g after %g", i, plan, p.step, q.step);
        }
        box.plan.levers =
            (struct k25_plan_levers){.link_bandwidth = 1, .link_latency = 1, .skew = 1, .power_limit_w = 400};
        answer(&box, NULL, &params, &p);
        assert_true(p.step >= q.step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_allreduces),
        cmocka_unit_test(hidden_allreduces),
        cmocka_unit_test(norms_inside_allreduces),
        cmocka_unit_test(one_kernel_for_the_experts),
        cmocka_unit_test(shared_experts_on_a_second_stream),
        cmocka_unit_test(pinned_weights),
        cmocka_unit_test(other_links),
        cmocka_unit_test(links_are_made_anew_with_the_plan),
        cmocka_unit_test(ranks_that_arrive_together),
        cmocka_unit_test(a_power_limit_slows_the_clock),
        cmocka_unit_test(help_never_hurts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
