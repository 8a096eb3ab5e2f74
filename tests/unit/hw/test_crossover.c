/* Crossovers against sizes worked by hand: the group and parameters of test_collective.c. */
#include "tests/unit/physics_check.h"

#include "hw/collective/crossover.h"

/* Hops of 1 us, a ring of 50 GB/s, peers 2 us away at 40 GB/s. */
static struct k25_group group_of(int n)
{
    return (struct k25_group){.n = n,
                              .ring_latency = 1e-6,
                              .ring_bandwidth = 50e9,
                              .peer_latency = 2e-6,
                              .peer_bandwidth = 40e9,
                              .lone_bandwidth = 40e9};
}

/* Norm 1, so that every price is a straight line. 4 GPUs, us and KB: LL 13 + 1.5/14.1421 m, LL128 11.2 + 2m/45
 * (m/24 in lines of 128 bytes for 120), Simple 32 + m/24, one-shot 7.5 + m/10; LL128 hops of 3 us make it
 * 28 + 2m/45. */
struct contest {
    struct k25_group group;
    struct k25_params params;
    struct k25_contestants contestants;
};

static void make_contest(struct contest *c, bool oneshot)
{
    c->group = group_of(4);
    c->params = fixed_params();
    c->params.value[K25_NCCL_LL_NORM] = 1;
    c->contestants =
        (struct k25_contestants){.group = &c->group, .params = &c->params, .custom[K25_BACKEND_ONESHOT] = oneshot};
}

static const double ll_slope = 1.5 / 14.142135623730951;

static void one_shot_against_the_cheapest_protocol(void **state)
{
    (void)state;
    struct contest c;
    struct k25_crossover out[K25_MAX_CROSSOVERS];
    make_contest(&c, true);
    /* 7.5 + m/10 = 11.2 + 2m/45 at m = 3.7 x 18 = 66.6 KB; 11.2 + 2m/45 = 32 + m/24 at m = 20.8 x 360 = 7488 KB. */
    assert_int_equal(k25_crossovers(K25_CONTEST_ALL, &c.contestants, 1, 1e9, out), 2);
    assert_close(out[0].bytes, 66.6e3, 1e-8);
    assert_int_equal(out[0].below, K25_BACKEND_ONESHOT);
    assert_int_equal(out[0].above, K25_BACKEND_NCCL_LL128);
    assert_close(out[1].bytes, 7488e3, 1e-8);
    assert_int_equal(out[1].below, K25_BACKEND_NCCL_LL128);
    assert_int_equal(out[1].above, K25_BACKEND_NCCL_SIMPLE);
    double from, to;
    assert_true(k25_win_range(K25_BACKEND_ONESHOT, K25_CONTEST_ALL, &c.contestants, 1, 1e9, &from, &to));
    assert_true(from == 1 && to == out[0].bytes);
    assert_true(k25_win_range(K25_BACKEND_NCCL_LL128, K25_CONTEST_ALL, &c.contestants, 1, 1e9, &from, &to));
    assert_true(from == out[0].bytes && to == out[1].bytes);
    assert_true(k25_win_range(K25_BACKEND_NCCL_SIMPLE, K25_CONTEST_ALL, &c.contestants, 1, 1e9, &from, &to));
    assert_true(from == out[1].bytes && to == 1e9);
    assert_false(k25_win_range(K25_BACKEND_NCCL_LL, K25_CONTEST_ALL, &c.contestants, 1, 1e9, &from, &to));
    /* It never loses below. */
    assert_true(k25_win_range(K25_BACKEND_ONESHOT, K25_CONTEST_ALL, &c.contestants, 1, 60e3, &from, &to));
    assert_true(from == 1 && to == 60e3);
    assert_int_equal(k25_crossovers(K25_CONTEST_ALL, &c.contestants, 1, 60e3, out), 0);
}

static void one_shot_against_nccl_left_to_itself(void **state)
{
    (void)state;
    struct contest c;
    struct k25_crossover out[K25_MAX_CROSSOVERS];
    make_contest(&c, true);
    /* LL's slope of 0.10607 is steeper than 0.1: it never catches up, and the change is where NCCL leaves LL, at
     * 500 KB: 57.5 us against 52.83. */
    assert_int_equal(k25_crossovers(K25_CONTEST_AUTO, &c.contestants, 1, 1e9, out), 1);
    assert_close(out[0].bytes, 500e3, 1e-8);
    assert_int_equal(out[0].above, K25_BACKEND_NCCL_SIMPLE);
    /* Links half as wide for one-shot: 7.5 + m/5 = 13 + 0.10607 m at 58.55 KB. */
    c.group.peer_bandwidth = c.group.lone_bandwidth = 20e9;
    assert_int_equal(k25_crossovers(K25_CONTEST_AUTO, &c.contestants, 1, 1e9, out), 2);
    assert_close(out[0].bytes, 5.5 / (0.2 - ll_slope) * 1e3, 1e-8);
    assert_int_equal(out[0].above, K25_BACKEND_NCCL_LL);
    assert_close(out[1].bytes, 500e3, 1e-8);
    assert_int_equal(out[1].below, K25_BACKEND_NCCL_LL);
    assert_int_equal(out[1].above, K25_BACKEND_NCCL_SIMPLE);
}

static void protocols_among_themselves(void **state)
{
    (void)state;
    struct contest c;
    struct k25_crossover out[K25_MAX_CROSSOVERS];
    make_contest(&c, false);
    c.params.value[K25_NCCL_LL128_HOP] = 3e-6;
    /* 13 + 0.10607 m = 28 + 2m/45 at 243.4 KB; Simple, dearer by 4 us less m/360, wins from 1440 KB on. */
    assert_int_equal(k25_crossovers(K25_CONTEST_PROTOCOLS, &c.contestants, 1, 1e9, out), 2);
    assert_close(out[0].bytes, 15 / (ll_slope - 2 / 45.0) * 1e3, 1e-8);
    assert_int_equal(out[0].below, K25_BACKEND_NCCL_LL);
    assert_int_equal(out[0].above, K25_BACKEND_NCCL_LL128);
    assert_close(out[1].bytes, 1440e3, 1e-8);
    assert_int_equal(out[1].below, K25_BACKEND_NCCL_LL128);
    assert_int_equal(out[1].above, K25_BACKEND_NCCL_SIMPLE);
    /* Without peer access the contest of all is the same. */
    struct k25_crossover all[K25_MAX_CROSSOVERS];
    assert_int_equal(k25_crossovers(K25_CONTEST_ALL, &c.contestants, 1, 1e9, all), 2);
    assert_true(all[0].bytes == out[0].bytes && all[1].bytes == out[1].bytes);
}

/* A win over less than a step of the walk, up to the jump of NCCL's protocol, is found. */
static void a_narrow_win_below_the_jump(void **state)
{
    (void)state;
    struct contest c;
    struct k25_crossover out[K25_MAX_CROSSOVERS];
    make_contest(&c, true);
    /* LL is held to 64 KB. One-shot 7.5 + s m meets its 13 + 0.10607 m at 63 KB: s = 0.193368 us/KB. Beyond 64 KB
     * Simple costs 34.67 us and one-shot 19.88, until 7.5 + s m = 32 + m/24. */
    double slope = 5.5 / 63 + ll_slope;
    c.group.peer_bandwidth = c.group.lone_bandwidth = 3 / 0.75 / slope * 1e9;
    c.params.value[K25_NCCL_LL_MAX] = 64e3;
    assert_int_equal(k25_crossovers(K25_CONTEST_AUTO, &c.contestants, 1, 1e9, out), 3);
    assert_close(out[0].bytes, 63e3, 1e-7);
    assert_int_equal(out[0].above, K25_BACKEND_NCCL_LL);
    assert_true(out[1].bytes == 64e3);
    assert_int_equal(out[1].above, K25_BACKEND_ONESHOT);
    assert_close(out[2].bytes, 24.5 / (slope - 1 / 24.0) * 1e3, 1e-7);
    assert_int_equal(out[2].above, K25_BACKEND_NCCL_SIMPLE);
}

static void prices_of_one_size(void **state)
{
    (void)state;
    struct contest c;
    struct k25_contest_prices prices;
    make_contest(&c, true);
    k25_contest_prices(&c.contestants, 100e3, &prices);
    assert_close(prices.time[K25_BACKEND_NCCL_LL] * 1e6, 13 + 100 * ll_slope, 1e-12);
    assert_close(prices.time[K25_BACKEND_NCCL_LL128] * 1e6, 11.2 + 200 / 45.0, 1e-12);
    assert_close(prices.time[K25_BACKEND_NCCL_SIMPLE] * 1e6, 32 + 100 / 24.0, 1e-12);
    assert_close(prices.time[K25_BACKEND_ONESHOT] * 1e6, 17.5, 1e-12);
    assert_int_equal(prices.left, K25_BACKEND_NCCL_LL);
    assert_int_equal(prices.cheapest_all, K25_BACKEND_NCCL_LL128);
    assert_int_equal(prices.cheapest_auto, K25_BACKEND_ONESHOT);
    make_contest(&c, false);
    k25_contest_prices(&c.contestants, 100e3, &prices);
    assert_true(isnan(prices.time[K25_BACKEND_ONESHOT]));
    assert_int_equal(prices.cheapest_auto, K25_BACKEND_NCCL_LL);
}

/* Against a walk in steps of a thousandth, for drawn parameters: the same winners on both sides of every change,
 * and none between. */
static void agrees_with_a_fine_walk(void **state)
{
    (void)state;
    uint64_t seed = 11;
    int changes = 0;
    for (int i = 0; i < 60; i++) {
        struct contest c;
        struct k25_crossover out[K25_MAX_CROSSOVERS];
        make_contest(&c, i % 3 != 0);
        for (int id = K25_NCCL_BASE; id <= K25_ONESHOT_ETA; id++)
            c.params.value[id] *= exp(0.4 * normal(&seed));
        c.params.value[K25_NCCL_LL_NORM] = 1.2;
        c.group.n = 2 + i % 15;
        enum k25_contest contest = (enum k25_contest)(i % 3);
        size_t count = k25_crossovers(contest, &c.contestants, 100, 1e8, out);
        double at = 100;
        size_t next = 0;
        enum k25_backend winner = k25_cheapest_allreduce(contest, &c.contestants, at);
        for (; at < 1e8; at *= 1.001) {
            enum k25_backend here = k25_cheapest_allreduce(contest, &c.contestants, at);
            if (here == winner)
                continue;
            assert_true(next < count);
            assert_int_equal(out[next].below, winner);
            assert_int_equal(out[next].above, here);
            assert_true(out[next].bytes <= at && out[next].bytes >= at / 1.0011);
            winner = here;
            next++;
        }
        assert_int_equal(next, count);
        changes += (int)count;
    }
    assert_true(changes > 30);
}

static void peer_access_decides_who_takes_part(void **state)
{
    (void)state;
    struct k25_group group = group_of(4);
    struct k25_params params = fixed_params();
    struct k25_contestants all = k25_all_contestants(&group, &params, true);
    struct k25_contestants few = k25_all_contestants(&group, &params, false);
    assert_true(all.group == &group && all.params == &params);
    assert_true(all.custom[K25_BACKEND_ONESHOT] && !few.custom[K25_BACKEND_ONESHOT]);
}

static void a_geometric_grid(void **state)
{
    (void)state;
    assert_close(k25_geometric_size(1024, 4194304, 13, 0), 1024, 1e-12);
    assert_close(k25_geometric_size(1024, 4194304, 13, 1), 2048, 1e-12);
    assert_close(k25_geometric_size(1024, 4194304, 13, 12), 4194304, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shot_against_the_cheapest_protocol),
        cmocka_unit_test(one_shot_against_nccl_left_to_itself),
        cmocka_unit_test(protocols_among_themselves),
        cmocka_unit_test(a_narrow_win_below_the_jump),
        cmocka_unit_test(prices_of_one_size),
        cmocka_unit_test(agrees_with_a_fine_walk),
        cmocka_unit_test(peer_access_decides_who_takes_part),
        cmocka_unit_test(a_geometric_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
