/* The table of backends: no row lacks a column, and every price has its slopes, its parameters and its own name. */
#include "tests/unit/physics_check.h"

#include "hw/collective/collective.h"
#include "hw/collective/slopes.h"

/* ln and exp of a parameter or figure: one step of a difference. */
static const double STEP = 1e-4;

static struct k25_group drawn_group(uint64_t *seed)
{
    return (struct k25_group){.n = 2 + (int)(15 * uniform(seed)),
                              .ring_latency = 1e-6 * exp(normal(seed)),
                              .ring_bandwidth = 50e9 * exp(0.5 * normal(seed)),
                              .peer_latency = 2e-6 * exp(normal(seed)),
                              .peer_bandwidth = 30e9 * exp(0.5 * normal(seed)),
                              .lone_bandwidth = 40e9 * exp(0.5 * normal(seed))};
}

static struct k25_params drawn_params(uint64_t *seed)
{
    struct k25_params params = fixed_params();
    for (int id = 0; id < K25_PARAMS; id++) {
        assert_true(params.value[id] > 0); /* a parameter at 0 has no slope to see */
        params.value[id] *= exp(0.3 * normal(seed));
    }
    params.value[K25_NCCL_LL_NORM] = 1 + uniform(seed);
    return params;
}

static void no_row_lacks_a_column(void **state)
{
    (void)state;
    assert_null(k25_backend_names[K25_BACKENDS]);
    assert_null(k25_backend_keys[K25_BACKENDS]);
    assert_null(k25_engine_names[K25_ENGINES]);
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++) {
        const struct k25_backend_info *info = k25_backend_info[backend];
        bool ring = info->ring != NULL, offered = false;
        assert_non_null(k25_backend_names[backend]);
        assert_non_null(k25_backend_keys[backend]);
        assert_true(ring == (info->ring_slopes != NULL));
        assert_true(ring != (info->time != NULL) && ring != (info->slopes != NULL));
        assert_true(backend >= K25_NCCL_PROTOCOLS || ring); /* gathers ask for it */
        assert_true(info->kernel != NULL && info->kernel[0] != '\0');
        assert_true((info->most_without_nvlink > 0) == (info->beyond != NULL));
        assert_true(info->beyond == NULL || strncmp(info->beyond, "on more than ", 13) == 0);
        for (int engine = 0; engine < K25_ENGINES; engine++) {
            const struct k25_backend_start *start = &info->start[engine];
            assert_true(start->argument == NULL || (start->offered && start->argument[0] == '-'));
            offered = offered || start->offered;
        }
        assert_true(offered); /* else `recommend` never tries it */
    }
    for (int i = 0; i < K25_NCCL_PROTOCOLS; i++)
        assert_non_null(k25_nccl_protocols[i]);
}

static void no_two_rows_are_alike(void **state)
{
    (void)state;
    for (enum k25_backend a = 0; a < K25_BACKENDS; a++) {
        for (enum k25_backend b = 0; b < a; b++) {
            const struct k25_backend_info *one = k25_backend_info[a], *other = k25_backend_info[b];
            assert_string_not_equal(k25_backend_names[a], k25_backend_names[b]);
            assert_string_not_equal(k25_backend_keys[a], k25_backend_keys[b]);
            assert_string_not_equal(one->kernel, other->kernel);
            assert_true(one != other && (one->ring == NULL || one->ring != other->ring));
            assert_true(one->time == NULL || one->time != other->time);
            assert_true(one->slopes == NULL || one->slopes != other->slopes);
            assert_true(one->ring_slopes == NULL || one->ring_slopes != other->ring_slopes);
        }
    }
    assert_string_equal(k25_backend_names[K25_BACKEND_NCCL_LL128], "NCCL LL128");
    assert_string_equal(k25_backend_keys[K25_BACKEND_NCCL_LL128], "nccl_ll128");
    assert_string_equal(k25_nccl_protocols[K25_BACKEND_NCCL_LL128], "LL128");
    assert_string_equal(k25_backend_names[K25_BACKEND_ONESHOT], "one-shot");
    assert_string_equal(k25_backend_keys[K25_BACKEND_ONESHOT], "oneshot");
    assert_int_equal(k25_backend_info[K25_BACKEND_ONESHOT]->most_without_nvlink, 2); /* vllm, custom_all_reduce.py */
    assert_string_equal(k25_engine_names[K25_VLLM], "vllm");
    assert_string_equal(k25_engine_names[K25_SGLANG], "sglang");
}

/* d time / d ln x of a parameter by differences; false where the step crosses a corner of the price. */
static bool difference(enum k25_backend backend, double bytes, const struct k25_group *group,
                       const struct k25_params *params, int id, double *slope)
{
    struct k25_params up = *params, down = *params;
    up.value[id] *= exp(STEP);
    down.value[id] *= exp(-STEP);
    double time = k25_allreduce_time(backend, bytes, group, params);
    double above = (k25_allreduce_time(backend, bytes, group, &up) - time) / STEP;
    double below = (time - k25_allreduce_time(backend, bytes, group, &down)) / STEP;
    *slope = (above + below) / 2;
    return fabs(above - below) < 3e-3 * time;
}

static struct k25_group scaled(const struct k25_group *group, double bandwidth, double latency)
{
    struct k25_group other = *group;
    other.ring_bandwidth *= bandwidth;
    other.peer_bandwidth *= bandwidth;
    other.lone_bandwidth *= bandwidth;
    other.ring_latency *= latency;
    other.peer_latency *= latency;
    return other;
}

static double link_difference(enum k25_backend backend, double bytes, const struct k25_group *group,
                              const struct k25_params *params, double bandwidth, double latency)
{
    struct k25_group up = scaled(group, exp(STEP * bandwidth), exp(STEP * latency));
    struct k25_group down = scaled(group, exp(-STEP * bandwidth), exp(-STEP * latency));
    return (k25_allreduce_time(backend, bytes, &up, params) - k25_allreduce_time(backend, bytes, &down, params)) /
           (2 * STEP);
}

/* Each backend follows at least one parameter, and every one that it follows by its slopes. Differences of a step e are
 * off by e^2 = 1e-8 of the price, and by its rounding / e. */
static void slopes_are_those_of_the_prices(void **state)
{
    (void)state;
    uint64_t seed = 77;
    bool follows[K25_BACKENDS] = {false};
    int compared = 0;
    for (int i = 0; i < 400 * K25_BACKENDS; i++) {
        enum k25_backend backend = (enum k25_backend)(i % K25_BACKENDS);
        struct k25_params params = drawn_params(&seed);
        struct k25_group group = drawn_group(&seed);
        struct k25_slopes slopes = {0};
        double bytes = exp(6 + 10 * uniform(&seed)), time = k25_allreduce_time(backend, bytes, &group, &params);
        k25_allreduce_slopes(backend, bytes, &group, &params, 1, &slopes);
        for (int id = 0; id < K25_PARAMS; id++) {
            double found;
            if (!difference(backend, bytes, &group, &params, id, &found))
                continue;
            follows[backend] |= found != 0;
            compared++;
            if (fabs(slopes.param[id] - found) > 1e-6 * time)
                fail_msg("%s: %s: slope %g, difference %g", k25_backend_names[backend], k25_param_names[id],
                         slopes.param[id], found);
        }
        double wide = link_difference(backend, bytes, &group, &params, 1, 0);
        double far = link_difference(backend, bytes, &group, &params, 0, 1);
        assert_within(slopes.figure[K25_FIGURE_LINK_BANDWIDTH] / time, wide / time, 1e-6);
        assert_within(slopes.figure[K25_FIGURE_LINK_LATENCY] / time, far / time, 1e-6);
        assert_true(wide < 0 && far > 0);
        /* `weight` times as much is added to what is there. */
        struct k25_slopes more = slopes;
        k25_allreduce_slopes(backend, bytes, &group, &params, 3, &more);
        for (int id = 0; id < K25_PARAMS; id++)
            assert_within(more.param[id] / time, 4 * slopes.param[id] / time, 1e-12);
    }
    assert_true(compared > 0.99 * 400 * K25_BACKENDS * K25_PARAMS);
    for (int backend = 0; backend < K25_BACKENDS; backend++)
        assert_true(follows[backend]);
}

/* What a file may say of a parameter, a price can stand: also 0, where it is valid. */
static void every_valid_parameter_has_a_price(void **state)
{
    (void)state;
    uint64_t seed = 78;
    struct k25_group group = drawn_group(&seed);
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++) {
        for (int id = 0; id < K25_PARAMS; id++) {
            struct k25_params params = fixed_params();
            params.value[id] = 0;
            struct k25_slopes slopes = {0};
            k25_allreduce_slopes(backend, 1e5, &group, &params, 1, &slopes);
            bool finite = isfinite(k25_allreduce_time(backend, 1e5, &group, &params)) && isfinite(slopes.param[id]);
            if (k25_param_valid(id, 0) && !finite)
                fail_msg("%s: no price with %s at 0", k25_backend_names[backend], k25_param_names[id]);
        }
    }
}

/* A price that follows the paths between peers is that of a kernel that reads their memory. */
static void readers_of_peers_need_peer_access(void **state)
{
    (void)state;
    uint64_t seed = 80;
    for (enum k25_backend backend = 0; backend < K25_BACKENDS; backend++) {
        struct k25_params params = drawn_params(&seed);
        struct k25_group group = drawn_group(&seed), other = group;
        other.peer_latency *= 2;
        other.peer_bandwidth /= 4;
        other.lone_bandwidth /= 4;
        bool reads =
            k25_allreduce_time(backend, 1e5, &other, &params) != k25_allreduce_time(backend, 1e5, &group, &params);
        assert_true(reads == k25_backend_info[backend]->needs_p2p);
    }
}

/* Bytes and ranks count. */
static void more_bytes_and_more_ranks_take_longer(void **state)
{
    (void)state;
    uint64_t seed = 79;
    for (int i = 0; i < 100 * K25_BACKENDS; i++) {
        enum k25_backend backend = (enum k25_backend)(i % K25_BACKENDS);
        struct k25_params params = drawn_params(&seed);
        struct k25_group group = drawn_group(&seed), larger = group;
        larger.n++;
        double time = k25_allreduce_time(backend, 1e5, &group, &params);
        params.value[K25_NCCL_RING] = fmin(1, params.value[K25_NCCL_RING]);
        assert_true(k25_allreduce_time(backend, 2e5, &group, &params) > time);
        assert_true(k25_allreduce_time(backend, 1e5, &larger, &params) > time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_lacks_a_column),
        cmocka_unit_test(no_two_rows_are_alike),
        cmocka_unit_test(slopes_are_those_of_the_prices),
        cmocka_unit_test(every_valid_parameter_has_a_price),
        cmocka_unit_test(readers_of_peers_need_peer_access),
        cmocka_unit_test(more_bytes_and_more_ranks_take_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
