/* Slopes of kernels and collectives against differences of their prices, and how the work of a call follows what it was
 * made from, by hand. AllReduces: test_backend.c; whole steps: tests/unit/model/test_slopes.c. */
#include "tests/unit/physics_check.h"

#include "hw/collective/collective.h"
#include "hw/collective/slopes.h"
#include "hw/kernel/kernel.h"
#include "hw/kernel/slopes.h"

static const double STEP = 1e-4; /* of a logarithm */

/* Something that is priced; `bandwidth` and `latency` scale the links or the memory, `peak` the arithmetic. */
struct priced {
    struct k25_kernel_call call;
    struct k25_group group;
    double bytes;
};
typedef double price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                     double peak);

static double change(price *of, const struct priced *what, const struct k25_params *params, double bandwidth,
                     double latency, double peak)
{
    return (of(what, params, exp(STEP * bandwidth), exp(STEP * latency), exp(STEP * peak)) -
            of(what, params, exp(-STEP * bandwidth), exp(-STEP * latency), exp(-STEP * peak))) /
           (2 * STEP);
}

/* Of every parameter: what the slopes say against what the price does. */
static void check_params(price *of, const struct priced *what, const struct k25_params *params,
                         const struct k25_slopes *slopes)
{
    double time = of(what, params, 1, 1, 1);
    for (int id = 0; id < K25_PARAMS; id++) {
        struct k25_params up = *params, down = *params;
        up.value[id] *= exp(STEP);
        down.value[id] *= exp(-STEP);
        double found = (of(what, &up, 1, 1, 1) - of(what, &down, 1, 1, 1)) / (2 * STEP);
        if (fabs(found - slopes->param[id]) > 1e-6 * time)
            fail_msg("%s: slope %g, difference %g", k25_param_names[id], slopes->param[id], found);
    }
}

static struct k25_params drawn_params(uint64_t *seed)
{
    struct k25_params params = fixed_params();
    for (int id = 0; id < K25_PARAMS; id++)
        params.value[id] *= exp(0.3 * normal(seed));
    params.value[K25_P_NORM] = uniform(seed) < 0.5 ? 4 : 2 + 3 * uniform(seed);
    params.value[K25_NCCL_LL_NORM] = 1 + uniform(seed);
    return params;
}

/* ---- kernels ---- */

static double kernel_price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                           double peak)
{
    struct k25_gpu gpu = round_gpu();
    (void)latency;
    gpu.bandwidth_gbs *= bandwidth;
    gpu.peak_bf16_tflops *= peak;
    gpu.peak_fp8_tflops *= peak;
    gpu.peak_fp4_tflops *= peak;
    return k25_kernel_cost(&what->call, &gpu, params).time;
}

/* Terms of a like size, so that each counts. */
static void kernels_of_every_class(void **state)
{
    (void)state;
    uint64_t seed = 31;
    struct k25_gpu gpu = round_gpu();
    for (int i = 0; i < 40 * K25_KERNEL_CLASSES; i++) {
        struct k25_params params = drawn_params(&seed);
        struct k25_kernel_call call = {.class = (enum k25_kernel_class)(i % K25_KERNEL_CLASSES),
                                       .launches = 1 + uniform(&seed),
                                       .batched = i / K25_KERNEL_CLASSES % 2 == 0,
                                       .items = 20 * uniform(&seed),
                                       .bytes = 4e6 * exp(normal(&seed)),
                                       .flops = 2e9 * exp(normal(&seed)),
                                       .serial = 1000 * exp(normal(&seed))};
        bool experts = call.class >= K25_KERNEL_MOE_BF16 && call.class <= K25_KERNEL_MOE_FP4;
        const struct priced what = {.call = call};
        struct k25_slopes slopes = {0};
        struct k25_kernel_split split = k25_kernel_split(&call, false, &gpu, &params);
        double time = kernel_price(&what, &params, 1, 1, 1);
        assert_close(split.floor + split.memory + split.compute + split.latency, time, 1e-12);
        assert_true(split.tail == 0 && split.corner <= 0);
        k25_kernel_slopes(&call, &split, &gpu, &params, 1, &slopes);
        check_params(kernel_price, &what, &params, &slopes);
        double peaks = 0;
        for (int figure = K25_FIGURE_PEAK_BF16; figure <= K25_FIGURE_PEAK_FP4; figure++)
            peaks += slopes.figure[figure];
        assert_within(slopes.figure[K25_FIGURE_BANDWIDTH] / time, change(kernel_price, &what, &params, 1, 0, 0) / time,
                      1e-6);
        assert_within(peaks / time, change(kernel_price, &what, &params, 0, 0, 1) / time, 1e-6);
        if (!experts)
            continue;
        /* The tail is memory traffic that follows moe.activation, or moe_grouped.activation. */
        call.tail_bytes = 2e6;
        split = k25_kernel_split(&call, false, &gpu, &params);
        double tail = k25_kernel_cost(&call, &gpu, &params).time - time;
        struct k25_slopes with_tail = {0};
        k25_kernel_slopes(&call, &split, &gpu, &params, 1, &with_tail);
        assert_within((split.tail - tail) / time, 0, 1e-12);
        enum k25_param traffic = call.class == K25_KERNEL_MOE_INT4 ? K25_MOE_ACTIVATION : K25_MOE_GROUPED_ACTIVATION;
        assert_close(with_tail.param[traffic], split.tail, 1e-12);
        assert_within((split.memory - split.tail + slopes.figure[K25_FIGURE_BANDWIDTH]) / time, 0, 1e-12);
    }
}

/* Beside another kernel only the memory traffic counts. */
static void a_kernel_beside_another_follows_the_memory(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_gpu gpu = round_gpu();
    struct k25_kernel_call call = {
        .class = K25_KERNEL_GEMM_BF16, .launches = 1, .bytes = 3e6, .tail_bytes = 1e6, .flops = 1e9, .serial = 100};
    struct k25_kernel_split split = k25_kernel_split(&call, true, &gpu, &params);
    assert_true(split.floor == 0 && split.compute == 0 && split.latency == 0 && split.corner == 0);
    assert_close(split.memory, 4e6 / (1e12 * 0.9 * 0.9), 1e-12);
    assert_close(split.tail, split.memory / 4, 1e-12);
}

static void products_follow_the_split_of_k(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    params.value[K25_K_SPLIT] = 500;
    for (enum k25_kernel_class class = K25_KERNEL_GEMM_BF16; class <= K25_KERNEL_GEMM_INT4; class ++) {
        struct k25_kernel_call call = k25_gemm_call(class, 8, 64, 1500, 1e6, &params);
        bool splits = class == K25_KERNEL_GEMM_BF16 || class == K25_KERNEL_GEMM_INT4;
        /* ln (k h / (k + h)) by ln h: k / (k + h) = 1500 / 2000 */
        assert_close(call.elasticity.serial, splits ? 0.75 : 0, 1e-15);
        assert_int_equal(call.elasticity.serial_param, K25_K_SPLIT);
    }
}

static void attention_follows_its_splits(void **state)
{
    (void)state;
    struct k25_params params = fixed_params(); /* 512 tokens a split of MLA, 128 of grouped-query attention */
    struct k25_attention_work work = {.sequences = 1,
                                      .rows = 1,
                                      .context = 6400,
                                      .heads = 8,
                                      .kv_heads = 1,
                                      .key_dim = 128,
                                      .value_dim = 128,
                                      .cache_bytes = 512,
                                      .splits = 1,
                                      .sms = 100};
    /* A number of splits that is given: each walks context / splits. */
    assert_true(k25_mla_call(&work, &params).elasticity.serial == -1);
    assert_int_equal(k25_mla_call(&work, &params).elasticity.serial_param, K25_MLA_SPLITS);
    work.splits = 0;
    assert_true(k25_mla_call(&work, &params).elasticity.serial == 0);
    /* 6400 tokens have 50 splits of 128, for which there are slots: the walk is a split's. */
    assert_true(k25_gqa_call(&work, &params).elasticity.serial == 1);
    assert_int_equal(k25_gqa_call(&work, &params).elasticity.serial_param, K25_GQA_SPLIT_TOKENS);
    work.sequences = 100; /* two splits for each, of 3200 tokens */
    assert_true(k25_gqa_call(&work, &params).elasticity.serial == 0);
}

/* moe.reread is 0.3; an expert's further rows come in blocks of 16. */
static void experts_follow_rereads_pairs_and_distinct_ones(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    static const struct {
        double pairs, distinct, blocks;              /* of rows; 0: by the mean */
        double read, row_blocks;                     /* expert weights read; blocks computed */
        double reread, by_distinct, by_pairs, flops; /* read x each elasticity */
    } cases[] = {
        /* 64 pairs are 4 blocks, two of them further: 2 + 0.3 x 2 */
        {64, 2, 0, 2.6, 4, 0.6, 1.4, 1.2, 1},
        /* 40: 2.5 less 2, though both experts have 20 rows, two blocks each */
        {40, 2, 0, 2.15, 4, 0.15, 1.4, 0.75, 1},
        /* 8 pairs on 4 experts have none */
        {8, 4, 0, 4, 4, 0, 4, 0, 1},
        /* blocks that are known */
        {64, 2, 5, 2.9, 5, 0.9, 1.4, 0, 0},
        {20, 1, 1, 1, 1, 0, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_moe_work work = {.pairs = cases[i].pairs,
                                    .distinct = cases[i].distinct,
                                    .local = 8,
                                    .hidden = 1000,
                                    .columns = 100,
                                    .matrices = 3,
                                    .expert_bytes = 1e6,
                                    .routed = 64,
                                    .blocks = cases[i].blocks};
        struct k25_kernel_call call = k25_moe_call(K25_KERNEL_MOE_FP8, &work, &params);
        const struct k25_call_elasticity *e = &call.elasticity;
        assert_close(call.bytes, cases[i].read * 1e6, 1e-12);
        assert_close(call.flops, 2 * cases[i].row_blocks * 16 * 3 * 1000 * 100, 1e-12);
        assert_close(e->bytes_reread * cases[i].read, cases[i].reread, 1e-12);
        assert_close(e->bytes_distinct * cases[i].read, cases[i].by_distinct, 1e-12);
        assert_close(e->bytes_pairs * cases[i].read, cases[i].by_pairs, 1e-12);
        assert_true(e->flops_distinct == cases[i].flops);
    }
    struct k25_moe_work none = {.local = 8, .hidden = 1000, .columns = 100, .routed = 64};
    struct k25_kernel_call idle = k25_moe_call(K25_KERNEL_MOE_FP8, &none, &params);
    assert_true(idle.launches == 1 && idle.items == 8 && idle.bytes == 0 && idle.flops == 0 && idle.tail_bytes == 0);
}

static void slopes_of_experts_by_hand(void **state)
{
    (void)state;
    const struct k25_kernel_call call = {
        .class = K25_KERNEL_MOE_INT4,
        .elasticity = {.bytes_reread = 0.2, .bytes_distinct = 0.5, .bytes_pairs = 0.3, .flops_distinct = 1}};
    const struct k25_kernel_split split = {.memory = 10e-6, .tail = 2e-6, .compute = 3e-6};
    double distinct, pairs;
    k25_moe_slopes(&call, &split, &distinct, &pairs);
    assert_close(distinct, 7e-6, 1e-12); /* 8 us x 0.5 + 3 us */
    assert_close(pairs, 2.4e-6, 1e-12);
    struct k25_slopes slopes = {0};
    struct k25_params params = fixed_params();
    struct k25_gpu gpu = round_gpu();
    k25_kernel_slopes(&call, &split, &gpu, &params, 3, &slopes);
    assert_close(slopes.param[K25_MOE_REREAD], 3 * 1.6e-6, 1e-12);
    assert_close(slopes.param[K25_MOE_ACTIVATION], 3 * 2e-6, 1e-12);
}

/* ---- collectives other than AllReduces ---- */

static struct k25_group scaled(const struct k25_group *group, double bandwidth, double latency)
{
    struct k25_group other = *group;
    other.ring_bandwidth *= bandwidth;
    other.peer_bandwidth *= bandwidth;
    other.ring_latency *= latency;
    other.peer_latency *= latency;
    return other;
}

static double gather_price(enum k25_backend protocol, const struct priced *what, const struct k25_params *params,
                           double bandwidth, double latency)
{
    struct k25_group group = scaled(&what->group, bandwidth, latency);
    return k25_allgather_time(protocol, what->bytes, &group, params);
}

static double ll_price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                       double peak)
{
    (void)peak;
    return gather_price(K25_BACKEND_NCCL_LL, what, params, bandwidth, latency);
}

static double simple_price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                           double peak)
{
    (void)peak;
    return gather_price(K25_BACKEND_NCCL_SIMPLE, what, params, bandwidth, latency);
}

static double exchange_price(const struct priced *what, const struct k25_params *params, double bandwidth,
                             double latency, double peak)
{
    struct k25_group group = scaled(&what->group, bandwidth, latency);
    (void)peak;
    return k25_alltoall_time(what->bytes, &group, params);
}

static double send_price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                         double peak)
{
    struct k25_group group = scaled(&what->group, bandwidth, latency);
    (void)peak;
    return k25_send_time(what->bytes, &group, params);
}

static void collectives(void **state)
{
    (void)state;
    static price *const prices[] = {ll_price, simple_price, exchange_price, send_price};
    uint64_t seed = 32;
    for (int i = 0; i < 200; i++) {
        struct k25_params params = drawn_params(&seed);
        price *of = prices[i % 4];
        const struct k25_group group = {.n = of == send_price ? 2 : 2 + (int)(7 * uniform(&seed)),
                                        .ring_latency = 1e-6,
                                        .ring_bandwidth = 50e9,
                                        .peer_latency = 2e-6,
                                        .peer_bandwidth = 40e9};
        const struct priced what = {.group = group, .bytes = 1e5 * exp(normal(&seed))};
        struct k25_slopes slopes = {0};
        if (of == exchange_price)
            k25_alltoall_slopes(what.bytes, &group, &params, 1, &slopes);
        else if (of == send_price)
            k25_send_slopes(what.bytes, &group, &params, 1, &slopes);
        else
            k25_allgather_slopes(of == ll_price ? K25_BACKEND_NCCL_LL : K25_BACKEND_NCCL_SIMPLE, what.bytes, &group,
                                 &params, 1, &slopes);
        check_params(of, &what, &params, &slopes);
        double time = of(&what, &params, 1, 1, 1);
        assert_within(slopes.figure[K25_FIGURE_LINK_BANDWIDTH] / time, change(of, &what, &params, 1, 0, 0) / time,
                      1e-6);
        assert_within(slopes.figure[K25_FIGURE_LINK_LATENCY] / time, change(of, &what, &params, 0, 1, 0) / time, 1e-6);
    }
}

static double wait_price(const struct priced *what, const struct k25_params *params, double bandwidth, double latency,
                         double peak)
{
    (void)bandwidth;
    (void)peak;
    return k25_wait_time(what->group.n, what->bytes * latency, params);
}

/* The segment, in `bytes`, is what `latency` scales. */
static void waits(void **state)
{
    (void)state;
    uint64_t seed = 33;
    for (int i = 0; i < 100; i++) {
        struct k25_params params = drawn_params(&seed);
        const struct priced what = {.group = {.n = 2 + i % 8}, .bytes = 100e-6 * exp(normal(&seed))};
        struct k25_slopes slopes = {0};
        double along = k25_wait_slopes(what.group.n, what.bytes, &params, 1, &slopes);
        check_params(wait_price, &what, &params, &slopes);
        double time = wait_price(&what, &params, 1, 1, 1);
        assert_within(along * what.bytes / time, change(wait_price, &what, &params, 0, 1, 0) / time, 1e-6);
        assert_close(k25_wait_slopes(what.group.n, what.bytes, &params, 3, &slopes), 3 * along, 1e-12);
    }
}

/* One rank waits for nobody and moves nothing; ranks without any spread do not wait; without a segment nothing grows.
 */
static void nothing_has_no_slope(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_slopes slopes = {0}, none = {0};
    const struct k25_group one = {.n = 1, .ring_bandwidth = 1e9, .peer_bandwidth = 1e9};
    k25_allgather_slopes(K25_BACKEND_NCCL_LL, 1e5, &one, &params, 1, &slopes);
    k25_alltoall_slopes(1e5, &one, &params, 1, &slopes);
    assert_true(k25_wait_slopes(1, 1e-4, &params, 1, &slopes) == 0);
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = params.value[K25_SKEW_LAG] = 0;
    assert_true(k25_wait_slopes(8, 1e-4, &params, 1, &slopes) == 0);
    assert_memory_equal(&slopes, &none, sizeof slopes);
    params.value[K25_SKEW_LAG] = 1e-6; /* a lag alone: all of the wait is its */
    assert_true(k25_wait_slopes(8, 0, &params, 1, &slopes) == 0);
    assert_close(slopes.param[K25_SKEW_LAG], 7e-6 / 8, 1e-12);
    assert_true(slopes.param[K25_SKEW_SIGMA] == 0 && slopes.param[K25_SKEW_RHO] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_every_class),
        cmocka_unit_test(a_kernel_beside_another_follows_the_memory),
        cmocka_unit_test(products_follow_the_split_of_k),
        cmocka_unit_test(attention_follows_its_splits),
        cmocka_unit_test(experts_follow_rereads_pairs_and_distinct_ones),
        cmocka_unit_test(slopes_of_experts_by_hand),
        cmocka_unit_test(collectives),
        cmocka_unit_test(waits),
        cmocka_unit_test(nothing_has_no_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
