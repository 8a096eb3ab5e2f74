/* The slopes of a measured point take in that a slower step generates fewer tokens, so that its context is shorter. */
#include "tests/unit/any_plan.h"
#include "tests/unit/slope_check.h"

#include "scenarios/points/suite.h"

static double predicted(const void *context, const struct k25_params *params)
{
    return k25_point_predict(context, params, NULL);
}

/* Grouped-query attention follows its context without steps, so that differences over the whole loop of a cell are
 * clean; the slopes' own difference over the context leaves 1e-3. */
static void points_have_their_derivatives(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_point point;
    static const enum k25_metric metrics[] = {K25_METRIC_AGGREGATE_TOK_S, K25_METRIC_PER_USER_TOK_S,
                                              K25_METRIC_TPOT_MS};
    static const struct {
        int batch;
        double context, seconds;
    } cells[] = {{1, 64, 30}, {1, 16000, 300}, {32, 64, 30}, {32, 4000, 0}};
    struct k25_params params = all_params();
    int checks = 0;
    make_box(&box, "llama-3.1-70b", "bf16", "rtx-pro-6000-8x-two-socket");
    for (size_t c = 0; c < sizeof cells / sizeof *cells; c++) {
        for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
            double slope[K25_PARAMS], found;
            box.plan.batch = cells[c].batch;
            box.plan.context = cells[c].context;
            point = (struct k25_point){.question = ask(&box), .metric = metrics[m]};
            point.load = (struct k25_load){.cell_seconds = cells[c].seconds, .output_max = 8192};
            assert_true(k25_point_predict(&point, &params, slope) > 0);
            for (int id = 0; id < K25_PARAMS; id++, checks++) {
                if (!slope_agrees(predicted, &point, &params, id, slope[id], 1e-3, &found))
                    fail_msg("cell %zu, metric %zu, %s: slope %.9g, difference %.9g", c, m, k25_param_names[id],
                             slope[id], found);
            }
        }
    }
    print_message("%d slopes of points\n", checks);
}

/* With 300 s a cell at batch 1 and 16,000 tokens generates a lot: leaving the feedback out would be wrong by more than
 * the bar above. */
static void the_feedback_counts(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_point point;
    struct k25_params params = all_params();
    double with[K25_PARAMS], without[K25_PARAMS];
    make_box(&box, "llama-3.1-70b", "bf16", "rtx-pro-6000-8x-two-socket");
    box.plan.batch = 32;
    point = (struct k25_point){.question = ask(&box), .metric = K25_METRIC_TPOT_MS};
    point.load = (struct k25_load){.cell_seconds = 120, .output_max = 8192};
    k25_point_predict(&point, &params, with);
    point.question.plan.context = k25_point_context(&point, &params);
    point.load.cell_seconds = 0;
    k25_point_predict(&point, &params, without);
    assert_true(fabs(with[K25_BANDWIDTH]) < 0.995 * fabs(without[K25_BANDWIDTH]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_have_their_derivatives),
        cmocka_unit_test(the_feedback_counts),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
