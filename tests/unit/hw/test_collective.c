/* Collectives against numbers worked by hand: hops of 1 us, a ring of 50 GB/s, peers 2 us away at 40 GB/s. */
#include "tests/unit/physics_check.h"

#include "hw/collective/collective.h"

static struct k25_group group_of(int n)
{
    return (struct k25_group){.n = n,
                              .ring_latency = 1e-6,
                              .ring_bandwidth = 50e9,
                              .peer_latency = 2e-6,
                              .peer_bandwidth = 40e9,
                              .lone_bandwidth = 40e9};
}

/* base 4 us, hop 0.5, eta_ll 0.4, exponent 0.5, LL up to 500 KB; LL128 hop 0.2; Simple 8 + 3 a hop; eta 0.8, ring
 * 0.9; one-shot 2 + 0.5 a peer, 0.75 of its own link, 0.9 of shared ones. */
static struct k25_params hand_params(double norm)
{
    struct k25_params params = fixed_params();
    params.value[K25_NCCL_LL_NORM] = norm;
    return params;
}

static double us(enum k25_backend backend, double bytes, int n, double norm)
{
    struct k25_params params = hand_params(norm);
    struct k25_group group = group_of(n);
    return k25_allreduce_time(backend, bytes, &group, &params) * 1e6;
}

static void ring_ll_by_hand(void **state)
{
    (void)state;
    /* 4 GPUs, 1 MB: 6 hops: 4 + 6 x (0.5 + 1) = 13 us. 1.5 MB through each link at 0.4 x 50 x (4/2)^-0.5 = 14.1421
     * GB/s is 106.066 us. Norm 1 adds, norm 2: sqrt(13^2 + 106.066^2) = sqrt(169 + 11250). */
    assert_close(us(K25_BACKEND_NCCL_LL, 1e6, 4, 1), 13 + 106.06601717798213, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_LL, 1e6, 4, 2), 106.85972113, 1e-10);
    /* 2 GPUs: 2 hops, 7 us; V = m at 20 GB/s: 50 us. 8 GPUs: 14 hops, 25 us; 1.75 MB at 10 GB/s: 175 us. */
    assert_close(us(K25_BACKEND_NCCL_LL, 1e6, 2, 1), 57, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_LL, 1e6, 8, 1), 200, 1e-12);
    /* The AllReduce of one token of Kimi, 14,336 B on 8 GPUs: 25 + 1.75 x 14336 / 10e9 = 25 + 2.5088 us. */
    assert_close(us(K25_BACKEND_NCCL_LL, 14336, 8, 1), 27.5088, 1e-12);
}

static void ring_ll128_and_simple_by_hand(void **state)
{
    (void)state;
    /* 4 GPUs, 1 MB: 1.5 MB at 0.8 x 0.9 x 50 = 36 GB/s is 41.6667 us. LL128 moves lines of 128 bytes for 120 of data,
     * 1.6 MB: 44.4444. LL128: 4 + 6 x 1.2 = 11.2; Simple: 8 + 6 x 4. */
    assert_close(us(K25_BACKEND_NCCL_LL128, 1e6, 4, 1.2), 11.2 + 400.0 / 9, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_SIMPLE, 1e6, 4, 1.2), 32 + 125.0 / 3, 1e-12);
    /* 2 GPUs: the whole 0.8 x 50 = 40 GB/s: 25 us, with LL128 80/3. 4 + 2 x 1.2 = 6.4; 8 + 2 x 4 = 16. */
    assert_close(us(K25_BACKEND_NCCL_LL128, 1e6, 2, 1.2), 6.4 + 80.0 / 3, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_SIMPLE, 1e6, 2, 1.2), 41, 1e-12);
    /* 8 GPUs, 14 hops, 1.75 MB: 48.6111 us, with LL128 1.8667 MB: 51.8519. 4 + 14 x 1.2 = 20.8; 8 + 14 x 4 = 64. */
    assert_close(us(K25_BACKEND_NCCL_LL128, 1e6, 8, 1.2), 20.8 + 1400 / 27.0, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_SIMPLE, 1e6, 8, 1.2), 64 + 1750 / 36.0, 1e-12);
}

static void oneshot_by_hand(void **state)
{
    (void)state;
    /* 4 GPUs, 1 MB: 2 + 3 x 0.5 + 2 x 2 = 7.5; 3 MB at 0.75 x 40 = 30 GB/s: 100 us. */
    assert_close(us(K25_BACKEND_ONESHOT, 1e6, 4, 1.2), 107.5, 1e-12);
    /* 8 GPUs, 14,336 B: 2 + 3.5 + 4 = 9.5; 7 x 14336 / 30e9 = 3.345 us. */
    assert_close(us(K25_BACKEND_ONESHOT, 14336, 8, 1.2), 9.5 + 7 * 14336 / 30e3, 1e-12);
    /* Where ranks share a link, 0.9 x 20 GB/s each is less than 0.75 x 40: 7.5 + 3000/18 us for 1 MB on 4. A link that
     * is wide enough for all, 0.9 x 39, leaves each its own: 107.5. */
    struct k25_params params = hand_params(1.2);
    struct k25_group group = group_of(4);
    group.peer_bandwidth = 20e9;
    assert_close(k25_allreduce_time(K25_BACKEND_ONESHOT, 1e6, &group, &params) * 1e6, 7.5 + 3000 / 18.0, 1e-12);
    group.peer_bandwidth = 39e9;
    assert_close(k25_allreduce_time(K25_BACKEND_ONESHOT, 1e6, &group, &params) * 1e6, 107.5, 1e-12);
}

static void one_gpu_moves_nothing(void **state)
{
    (void)state;
    struct k25_params params = hand_params(1.2);
    struct k25_group group = {
        .n = 1, .ring_bandwidth = INFINITY, .peer_bandwidth = INFINITY, .lone_bandwidth = INFINITY};
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++)
        assert_true(k25_allreduce_time(backend, 1e6, &group, &params) == 0);
    assert_true(k25_allgather_time(K25_BACKEND_NCCL_LL, 1e6, &group, &params) == 0);
    assert_true(k25_wait_time(1, 1e-3, &params) == 0);
}

static void an_empty_message_costs_its_latency(void **state)
{
    (void)state;
    assert_close(us(K25_BACKEND_NCCL_LL, 0, 4, 1.2), 13, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_LL128, 0, 4, 1.2), 11.2, 1e-12);
    assert_close(us(K25_BACKEND_NCCL_SIMPLE, 0, 4, 1.2), 32, 1e-12);
    assert_close(us(K25_BACKEND_ONESHOT, 0, 4, 1.2), 7.5, 1e-12);
}

static void gather_by_hand(void **state)
{
    (void)state;
    struct k25_params params = hand_params(1);
    struct k25_group group = group_of(4);
    /* 100 KB from each of 4: 3 hops, 4 + 3 x 1.5 = 8.5 us; 300 KB at 14.1421 GB/s: 21.2132 us. */
    assert_close(k25_allgather_time(K25_BACKEND_NCCL_LL, 1e5, &group, &params) * 1e6, 8.5 + 21.213203435596427, 1e-12);
    /* 500 KB in all are the last that go by LL; one byte a rank more is Simple: 8 + 3 x 4 + 375,003 B at
     * 36 GB/s. */
    assert_int_equal(k25_nccl_protocol(500000, &params), K25_BACKEND_NCCL_LL);
    assert_int_equal(k25_nccl_protocol(500001, &params), K25_BACKEND_NCCL_SIMPLE);
    assert_close(k25_allgather_time(K25_BACKEND_NCCL_LL, 125000, &group, &params) * 1e6, 8.5 + 26.516504294495533,
                 1e-12);
    assert_close(k25_allgather_time(K25_BACKEND_NCCL_SIMPLE, 125001, &group, &params) * 1e6, 20 + 375.003 / 36, 1e-12);
}

static void exchanges_and_sends_by_hand(void **state)
{
    (void)state;
    struct k25_params params = hand_params(1.2);
    struct k25_group group = group_of(4), pair = group_of(2);
    /* 800 KB to all peers together: 8 + 3, the 2 us of a path, and 800 KB at 0.8 x 40 = 32 GB/s: 25 us. */
    assert_close(k25_alltoall_time(8e5, &group, &params) * 1e6, 13 + 25, 1e-12);
    assert_close(k25_alltoall_time(0, &group, &params) * 1e6, 13, 1e-12);
    /* To one other rank along the ring: 8 + 3 + 1, and 800 KB at 0.8 x 50 = 40 GB/s: 20 us. */
    assert_close(k25_send_time(8e5, &pair, &params) * 1e6, 12 + 20, 1e-12);
    group.n = 1;
    assert_true(k25_alltoall_time(8e5, &group, &params) == 0);
}

/* An independent form of the same number: E[max] = int_0^inf (1 - Phi^n) - int_-inf^0 Phi^n. */
static double normal_max_by_tails(int n)
{
    double h = 1e-3, sum = 0;
    for (int i = 0; i < 9000; i++) { /* midpoints */
        double x = (i + 0.5) * h, below = erfc(x / M_SQRT2) / 2;
        sum += h * (-expm1(n * log1p(-below)) - pow(below, n));
    }
    return sum;
}

static void order_statistics_of_the_normal(void **state)
{
    (void)state;
    /* Harter 1961, table of expected values of normal order statistics; d_2 = 1/sqrt(pi), d_3 = 3/(2 sqrt(pi)). */
    static const struct {
        int n;
        double d;
    } cases[] = {{1, 0},       {2, 0.56419}, {3, 0.84628},  {4, 1.02938},  {5, 1.16296},  {6, 1.26721},  {7, 1.35218},
                 {8, 1.42360}, {9, 1.48501}, {10, 1.53875}, {12, 1.62923}, {15, 1.73591}, {16, 1.76599}, {20, 1.86748}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_within(k25_normal_max(cases[i].n), cases[i].d, 5.1e-6);
    assert_close(k25_normal_max(2), 1 / sqrt(M_PI), 1e-14);
    assert_close(k25_normal_max(3), 1.5 / sqrt(M_PI), 1e-9);
    for (int n = 2; n <= K25_MAX_GPUS; n++) {
        assert_within(k25_normal_max(n), normal_max_by_tails(n), 1e-6);
        assert_true(k25_normal_max(n) > k25_normal_max(n - 1));
    }
}

static void wait_by_hand(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    params.value[K25_SKEW_SIGMA] = 3e-6;
    params.value[K25_SKEW_RHO] = 0.01;
    params.value[K25_SKEW_LAG] = 8e-6;
    /* 8 ranks after 400 us: jitter 1.4236003 x sqrt(3^2 + 4^2) = 7.118002 us, lag 8 x 7/8 = 7 us, q = 2.4 + 0.87
     * = 3.27: 7.118002 x (1 + (7 / 7.118002)^3.27)^(1/3.27) = 7.118002 x 1.946797^0.305810 = 8.72641 */
    assert_close(k25_wait_time(8, 400e-6, &params) * 1e6, 8.72641, 1e-5);
    /* no segment: 4.270801 and 7: 7 x (1 + 0.610114^3.27)^(1/3.27) = 7 x 1.057001 */
    assert_close(k25_wait_time(8, 0, &params) * 1e6, 7.39901, 1e-5);
    /* 2 ranks: 2.820948 and 4, q = 2.69: 4 x (1 + 0.705237^2.69)^(1/2.69) = 4 x 1.130486 */
    assert_close(k25_wait_time(2, 400e-6, &params) * 1e6, 4.521945, 1e-5);
    /* either alone is exact */
    params.value[K25_SKEW_LAG] = 0;
    assert_close(k25_wait_time(8, 400e-6, &params) * 1e6, 7.118001530225832, 1e-12);
    params.value[K25_SKEW_LAG] = 8e-6;
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = 0;
    assert_close(k25_wait_time(8, 400e-6, &params) * 1e6, 7, 1e-12);
    params.value[K25_SKEW_LAG] = 0;
    assert_true(k25_wait_time(8, 400e-6, &params) == 0);
}

/* The mean over ranks of (last arrival - own arrival), by drawing arrivals: spread 3 us, rank 0 late by `lag`. */
static double drawn_wait(int ranks, double lag, uint64_t *seed)
{
    enum { ROUNDS = 100000 };
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double last = -1e9, mean = 0;
        for (int rank = 0; rank < ranks; rank++) {
            double arrival = 3e-6 * normal(seed) + (rank == 0 ? lag : 0);
            last = fmax(last, arrival);
            mean += arrival / ranks;
        }
        sum += last - mean;
    }
    return sum / ROUNDS;
}

/* Jitter alone to the noise of the draws; with a lag the header promises 2.4 %, and the draws add half a
 * per cent. */
static void wait_agrees_with_drawn_arrivals(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    uint64_t seed = 122;
    params.value[K25_SKEW_SIGMA] = 3e-6;
    params.value[K25_SKEW_RHO] = 0;
    for (int ranks = 2; ranks <= 16; ranks *= 2) {
        for (double lag = 0; lag <= 12e-6; lag += 3e-6) {
            params.value[K25_SKEW_LAG] = lag;
            assert_close(k25_wait_time(ranks, 1e-3, &params), drawn_wait(ranks, lag, &seed), lag > 0 ? 0.03 : 0.01);
        }
    }
}

static void more_costs_more(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < 2000; i++) {
        struct k25_params params = fixed_params();
        for (int id = 0; id < K25_PARAMS; id++)
            params.value[id] *= exp(0.5 * normal(&seed));
        params.value[K25_NCCL_LL_NORM] = 1 + 3 * uniform(&seed);
        params.value[K25_NCCL_RING] = fmin(1, params.value[K25_NCCL_RING]); /* a share of what two GPUs get */
        struct k25_group group = group_of(2 + i % 15);
        enum k25_backend backend = (enum k25_backend)(i % K25_BACKENDS);
        double bytes = exp(7 + 9 * uniform(&seed)), time = k25_allreduce_time(backend, bytes, &group, &params);
        assert_true(isfinite(time) && time > 0);
        assert_true(k25_allreduce_time(backend, 1.1 * bytes, &group, &params) > time);
        struct k25_group far = group, wide = group;
        far.ring_latency *= 1.5;
        far.peer_latency *= 1.5;
        assert_true(k25_allreduce_time(backend, bytes, &far, &params) > time);
        assert_true(k25_allgather_time(K25_BACKEND_NCCL_LL, bytes, &far, &params) >
                    k25_allgather_time(K25_BACKEND_NCCL_LL, bytes, &group, &params));
        wide.ring_bandwidth *= 1.5;
        wide.peer_bandwidth *= 1.5;
        wide.lone_bandwidth *= 1.5;
        assert_true(k25_allreduce_time(backend, bytes, &wide, &params) < time);
        struct k25_group more = group;
        more.n++;
        assert_true(k25_allreduce_time(backend, bytes, &more, &params) > time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_ll_by_hand),
        cmocka_unit_test(ring_ll128_and_simple_by_hand),
        cmocka_unit_test(oneshot_by_hand),
        cmocka_unit_test(one_gpu_moves_nothing),
        cmocka_unit_test(an_empty_message_costs_its_latency),
        cmocka_unit_test(gather_by_hand),
        cmocka_unit_test(exchanges_and_sends_by_hand),
        cmocka_unit_test(order_statistics_of_the_normal),
        cmocka_unit_test(wait_by_hand),
        cmocka_unit_test(wait_agrees_with_drawn_arrivals),
        cmocka_unit_test(more_costs_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
