/* The simulator against the prediction: same work, same sums, ranks that end a collective together. */
#include "tests/unit/physics_check.h"

#include "model/predict/simulate.h"

struct tally {
    double time[8], allreduce[8];
    double collective_end[8]; /* of the collective under way */
    int events, collectives;
    double worst_end; /* largest difference between ranks at the end of a collective */
    double last_start[8];
    bool ordered;
};

static bool count_event(void *context, const struct k25_sim_event *event)
{
    struct tally *tally = context;
    int rank = event->rank;
    tally->events++;
    tally->time[rank] += event->duration;
    tally->ordered = tally->ordered && event->start >= tally->last_start[rank];
    tally->last_start[rank] = event->start;
    if (event->op->kind == K25_OP_KERNEL)
        return true;
    if (event->op->kind == K25_OP_ALLREDUCE)
        tally->allreduce[rank] += event->duration;
    tally->collective_end[rank] = event->start + event->duration;
    if (rank == 7) {
        tally->collectives++;
        for (int i = 0; i < 7; i++)
            tally->worst_end = fmax(tally->worst_end, fabs(tally->collective_end[i] - tally->collective_end[7]));
    }
    return true;
}

static void play(const struct k25_params *params, const struct k25_simulation *simulation, struct tally *tally)
{
    static struct box box;
    struct k25_error error = {0};
    kimi_box(&box);
    struct k25_question question = ask(&box);
    *tally = (struct tally){.ordered = true};
    static struct k25_prediction played;
    k25_predict(&question, params, &played);
    if (!k25_simulate(&question, params, simulation, count_event, tally, &played, &error))
        fail_msg("%s", error.message);
}

/* Without noise and jitter every rank repeats the prediction to the last digit of a sum. */
static void test_quiet_ranks_repeat_the_prediction(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_prediction p;
    struct tally tally;
    struct k25_params params = fixed_params();
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = params.value[K25_SKEW_LAG] = 0;
    kimi_box(&box);
    predict_box(&box, &params, &p);
    play(&params, &(struct k25_simulation){.steps = 3, .seed = 1, .slow_rank = -1}, &tally);
    assert_true(tally.ordered);
    assert_int_equal(tally.collectives, 3 * 124); /* 122 of the layers, the embedding, the logits */
    for (int rank = 0; rank < 8; rank++) {
        assert_close(tally.time[rank], 3 * p.gpu_busy, 1e-9);
        assert_close(tally.allreduce[rank], 3 * p.allreduce, 1e-9);
    }
    assert_true(tally.worst_end < 1e-12);
}

/* With one rank late by L in every segment and nothing else: it waits 0, the seven others L, the mean 7/8 L. (The
 * embedding is too short a segment for the others to be ahead by L / 8 in it, which takes a part in 10^4 off.) */
static void test_a_slow_rank_is_waited_for(void **state)
{
    (void)state;
    struct tally tally;
    struct k25_params params = fixed_params();
    params.value[K25_SKEW_SIGMA] = params.value[K25_SKEW_RHO] = 0;
    params.value[K25_SKEW_LAG] = 20e-6;
    play(&params, &(struct k25_simulation){.steps = 2, .seed = 1, .slow_rank = 3}, &tally);
    for (int rank = 0; rank < 8; rank++) {
        if (rank != 3)
            assert_close(tally.allreduce[rank] - tally.allreduce[3], 2 * 123 * 20e-6, 1e-3);
    }
}

/* The mean wait of many steps is the formula's: jitter alone, and both with a lag (the formula's own error is 2.4 %).
 */
static void test_the_mean_wait_is_the_formula(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_prediction p;
    struct k25_params params = fixed_params();
    params.value[K25_SKEW_SIGMA] = 4e-6;
    for (int lag = 0; lag <= 6; lag += 6) {
        struct tally tally;
        double mean = 0;
        params.value[K25_SKEW_LAG] = lag * 1e-6;
        kimi_box(&box);
        predict_box(&box, &params, &p);
        play(&params, &(struct k25_simulation){.steps = 40, .seed = 7, .jitter = true, .slow_rank = lag ? 2 : -1},
             &tally);
        for (int rank = 0; rank < 8; rank++)
            mean += tally.allreduce[rank] / 8 / 40;
        assert_close(mean - p.allreduce_transfer, p.allreduce_wait, 0.035);
    }
}

static void test_a_seed_gives_the_same_events(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_simulation simulation = {2, 11, 0.03, 0.02, true, -1};
    struct tally first, again, other;
    play(&params, &simulation, &first);
    play(&params, &simulation, &again);
    simulation.seed = 12;
    play(&params, &simulation, &other);
    assert_memory_equal(first.time, again.time, sizeof first.time);
    assert_true(memcmp(first.time, other.time, sizeof first.time) != 0);
}

static bool stop_at_once(void *context, const struct k25_sim_event *event)
{
    (void)event;
    ++*(int *)context;
    return false;
}

static void test_a_visitor_can_stop(void **state)
{
    (void)state;
    static struct box box;
    struct k25_params params = fixed_params();
    int calls = 0;
    kimi_box(&box);
    struct k25_question question = ask(&box);
    struct k25_simulation simulation = {.steps = 5, .seed = 1, .slow_rank = -1};
    static struct k25_prediction played;
    k25_predict(&question, &params, &played);
    assert_false(k25_simulate(&question, &params, &simulation, stop_at_once, &calls, &played, NULL));
    assert_int_equal(calls, 1);
}

/* One GPU has no collective to end a segment, and more kernels a step than a segment holds. */
static void test_one_gpu(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_prediction p;
    struct k25_params params = fixed_params();
    struct k25_error error;
    struct tally tally = {.ordered = true};
    make_box(&box, "llama-3.1-70b", "bf16", "rtx-pro-6000-2x");
    box.plan.tp = 1;
    predict_box(&box, &params, &p);
    struct k25_question question = ask(&box);
    struct k25_simulation simulation = {.steps = 1, .seed = 1, .slow_rank = -1};
    assert_true(k25_simulate(&question, &params, &simulation, count_event, &tally, &p, &error));
    assert_close(tally.time[0], p.gpu_busy, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet_ranks_repeat_the_prediction),
        cmocka_unit_test(test_a_slow_rank_is_waited_for),
        cmocka_unit_test(test_the_mean_wait_is_the_formula),
        cmocka_unit_test(test_a_seed_gives_the_same_events),
        cmocka_unit_test(test_a_visitor_can_stop),
        cmocka_unit_test(test_one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
