/* How sure an observation of a capture is: standard errors worked by hand. */
#include "calib/fit/observe.h"
#include "tests/unit/capture_check.h"

static const struct k25_observed *observed(const struct k25_observations *list, enum k25_observed_kind kind,
                                           const char *what)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->list[i].kind == kind && strstr(list->list[i].label, what) != NULL)
            return &list->list[i];
    }
    fail_msg("nothing observed of %s", what);
    return NULL;
}

static void observe(struct k25_observations *list)
{
    static const struct k25_question question;
    const struct k25_evidence_source source = {.name = "made"}; /* the formulas are exact: its own noise is left */
    struct k25_error error;
    struct k25_capture capture;
    *list = (struct k25_observations){0};
    read_folder(&capture);
    if (!k25_observe_capture(&capture, &question, &source, list, &error))
        fail_msg("%s", error.message);
    k25_capture_free(&capture);
}

/* Three ranks take 30, 34 and 31 us for their experts in every step. Their mean is 95/3; the squares of the three
 * distances sum to 26/3, so the sample's variance is 26/3 / (3 - 1) = 13/3 and the standard error of the mean
 * sqrt(13/3 / 3) us, 3.795 % of it. */
static void a_bucket_has_the_standard_error_of_its_mean(void **state)
{
    (void)state;
    struct k25_observations list;
    empty_folder();
    for (int r = 0; r < 3; r++) {
        struct k25_trace_writer *writer = open_rank(r, 3);
        for (int s = 0; s < 4; s++) {
            int64_t start = START + s * PERIOD;
            k25_trace_write_annotation(writer, "execute_context_0(0)_generation_4(4)", start - 1, 57002, true, 0);
            write_step(writer, r, start, 10 * (uint64_t)s + 1);
        }
        close_rank(writer);
    }
    observe(&list);
    const struct k25_observed *experts = observed(&list, K25_OBSERVED_BUCKET, "experts");
    assert_near(experts->measured, 95e-6 / 3);
    assert_near(experts->sigma, sqrt(13.0 / 9) / (95.0 / 3));
    k25_observations_free(&list);
}

/* Four AllReduces that two ranks leave together. The first rank arrives 2, -2, 1 and -1 us after the second, and always
 * another 0.6: its distances from the mean of the two are 1, -1, 0.5, -0.5 us around a lag of its own. Squares of both
 * ranks without the lag: 2 x 2.5 us^2, over (4 - 1) x (2 - 1) degrees of freedom. */
static void arrivals_spread_over_their_degrees_of_freedom(void **state)
{
    (void)state;
    static const int64_t apart[] = {2600, -1400, 1600, -400}; /* ns that the first rank arrives after the second */
    struct k25_observations list;
    empty_folder();
    for (int r = 0; r < 2; r++) {
        struct k25_trace_writer *writer = open_rank(r, 2);
        for (int s = 0; s < 4; s++) {
            int64_t start = START + s * PERIOD, late = r == 0 ? apart[s] / 2 : -apart[s] / 2;
            k25_trace_write_annotation(writer, "execute_context_0(0)_generation_4(4)", start - 1, 57002, true, 0);
            kernel(writer, MOE, start, 20000, 1);
            kernel(writer, ALLREDUCE, start + 31000 + late, 13000 - late, 1);
        }
        close_rank(writer);
    }
    observe(&list);
    const struct k25_observed *spread = observed(&list, K25_OBSERVED_JITTER, "AllReduces");
    assert_near(spread->measured, sqrt(5.0 / 3) * 1e-6);
    assert_near(spread->sigma, 1 / sqrt(2.0 * 3) + 0.005);
    k25_observations_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_has_the_standard_error_of_its_mean),
        cmocka_unit_test(arrivals_spread_over_their_degrees_of_freedom),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
