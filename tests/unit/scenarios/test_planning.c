/* What the shipped planning sweep says, by itself and against public rows: when ranks should share a cache, and
 * when speculation stops paying. Signs, not sizes: sizes are for test_scenarios_suite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/csv.h"
#include "scenarios/sweep/grid.h"
#include "scenarios/sweep/sweep.h"

enum { CONTEXTS = 6, BATCHES = 8, DCPS = 4, CHAINS = 5 };
static const double contexts[CONTEXTS] = {1024, 4096, 16384, 32768, 65536, 131072};

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static double speed[CONTEXTS][BATCHES][DCPS][CHAINS]; /* tok/s; NAN: does not fit */

static int setup(void **state)
{
    (void)state;
    static struct k25_sweep sweep;
    static struct k25_prediction p;
    struct k25_error error;
    struct k25_sweep_cursor cursor;
    struct k25_question question;
    if (!k25_sweep_load(&library, "sweep_planning", &sweep, &error)) {
        print_message("%s\n", error.message);
        return 1;
    }
    if (sweep.points != CONTEXTS * BATCHES * DCPS * CHAINS || sweep.loads != 1)
        return 1;
    const struct k25_scenario *scenario = &sweep.scenario[0];
    struct k25_draft draft = k25_scenario_draft(scenario);
    k25_sweep_seek(&cursor, &sweep, 0);
    for (uint64_t i = 0; i < sweep.points; i++, k25_sweep_next(&cursor)) {
        const struct k25_plan *plan = &cursor.plan;
        if (!k25_question_make(&scenario->architecture, &scenario->weights, &draft, &scenario->machine, plan, NULL,
                               &question, &error))
            return 1;
        k25_predict(&question, &scenario->params, &p);
        int chain = plan->speculation.method == K25_SPEC_NONE ? 0 : plan->speculation.tokens;
        bool placed = plan->context == contexts[i / 160] && plan->batch == 1 << i / 20 % 8 &&
                      plan->dcp == 1 << i / 5 % 4 && chain == (int)(i % 5);
        if (!placed)
            return 1;
        speed[i / 160][i / 20 % 8][i / 5 % 4][i % 5] = p.memory.fits ? p.tok_s : NAN;
    }
    k25_sweep_free(&sweep);
    return 0;
}

/* 1 + a + a^2 + a^3 of the rate in the file is what 69 rows have in the mean, 1 + 3 x 0.39958 = 2.1987. */
static void the_acceptance_is_that_of_the_rows(void **state)
{
    (void)state;
    const double a = 0.607;
    assert_true(fabs(1 + a + a * a + a * a * a - 2.1987) < 1e-3);
}

static void dcp_is_off_at_short_context_and_on_at_long(void **state)
{
    (void)state;
    for (int b = 0; b < BATCHES; b++) {
        for (int d = 1; d < DCPS; d++)
            assert_true(speed[0][b][0][0] > speed[0][b][d][0]);
        /* The other way at 128k, as far as anything fits. */
        for (int d = 0; d < DCPS - 1; d++)
            assert_true(isnan(speed[5][b][3][0]) || !(speed[5][b][d][0] >= speed[5][b][3][0]));
    }
    assert_true(speed[5][0][3][0] > 1.2 * speed[5][0][0][0]);
    assert_true(speed[5][4][3][0] > 0); /* 16 sequences of 128k need the ranks to share */
    assert_true(isnan(speed[5][4][0][0]));
}

/* The context from which DCP 8 is no slower by more than EVEN, CONTEXTS: from none on. It flips once, and no later the
 * more sequences there are. */
static const double EVEN = 0.05;

static int flip(int batch)
{
    int first = CONTEXTS;
    for (int c = CONTEXTS - 1; c >= 0; c--) {
        double alone = speed[c][batch][0][0], shared = speed[c][batch][3][0];
        bool wins = !isnan(shared) && !(alone * (1 - EVEN) >= shared);
        if (wins && c + 1 < first && first < CONTEXTS)
            fail_msg("batch %d: DCP 8 wins at %g, not after it", 1 << batch, contexts[c]);
        if (wins)
            first = c;
    }
    return first;
}

static void more_sequences_flip_sooner(void **state)
{
    (void)state;
    /* Not strictly: two sequences leave the fast path of one row, and gain from DCP 8 at 64k what one and four have not
     * to wait for; measured 1.11, 0.95 and 1.05 for one, two and four (kimi_k26_v4.csv). */
    for (int b = 1; b < BATCHES; b++)
        assert_true(flip(b) <= flip(b - 1) + 1);
    assert_true(contexts[flip(0)] == 65536);
    assert_true(flip(3) <= flip(0) && flip(5) < flip(0));
}

static double gain(int c, int b, int d, int chain)
{
    return speed[c][b][d][chain] / speed[c][b][d][0];
}

static void speculation_pays_for_few_sequences(void **state)
{
    (void)state;
    for (int d = 0; d < DCPS; d++)
        assert_true(gain(0, 0, d, 3) > 1.2);
    assert_true(gain(0, 7, 3, 3) < 1);
    assert_true(gain(2, 7, 3, 3) < 1);
    /* The chain that pays grows shorter with the batch: at 128 sequences one token is as far as it goes. */
    for (int chain = 2; chain < CHAINS; chain++)
        assert_true(gain(0, 7, 0, chain) < gain(0, 7, 0, 1));
    assert_true(gain(0, 0, 0, 3) > gain(0, 0, 0, 1));
}

/* ---- against public rows ---- */

struct rows {
    struct k25_csv *csv;
    int batch, context, dcp, spec, value;
};

static void open_rows(struct rows *rows)
{
    struct k25_error error;
    rows->csv = k25_csv_read(K25_SOURCE_DIR "/calib/points/kimi_k26_v4.csv", &error);
    if (rows->csv == NULL)
        fail_msg("%s", error.message);
    rows->batch = k25_csv_column(rows->csv, "concurrency");
    rows->context = k25_csv_column(rows->csv, "context");
    rows->dcp = k25_csv_column(rows->csv, "dcp");
    rows->spec = k25_csv_column(rows->csv, "spec_kind");
    rows->value = k25_csv_column(rows->csv, "value");
}

/* Measured tok/s, NAN without such a row; the context to the nearest of the sweep, 0 being its first. */
static double measured(const struct rows *rows, int c, int b, int dcp, const char *spec)
{
    for (size_t r = 0; r < rows->csv->rows; r++) {
        double context = atof(k25_csv_cell(rows->csv, r, rows->context));
        bool near = c == 0 ? context == 0 : context > 0 && fabs(log(context / contexts[c])) < 0.1;
        if (near && atoi(k25_csv_cell(rows->csv, r, rows->batch)) == 1 << b &&
            atoi(k25_csv_cell(rows->csv, r, rows->dcp)) == dcp &&
            strcmp(k25_csv_cell(rows->csv, r, rows->spec), spec) == 0)
            return atof(k25_csv_cell(rows->csv, r, rows->value));
    }
    return NAN;
}

/* Where both were measured and differ by more than the noise of a load test, the sweep has the sign. Two pairs it
 * calls even where the rows do not: 4 and 8 sequences of 32k, measured 7 % slower with DCP 8, in the sweep 0 and 1
 * % faster. */
static void dcp_wins_where_it_was_measured_to(void **state)
{
    (void)state;
    struct rows rows;
    int pairs = 0, wins = 0, evens = 0;
    open_rows(&rows);
    for (int c = 0; c < CONTEXTS; c++) {
        for (int b = 0; b < BATCHES; b++) {
            double ratio = measured(&rows, c, b, 8, "none") / measured(&rows, c, b, 1, "none");
            if (!(fabs(log(ratio)) > 0.05))
                continue;
            pairs++;
            wins += ratio > 1;
            double swept = speed[c][b][3][0] / speed[c][b][0][0];
            bool even = fabs(log(swept)) < 0.02;
            evens += even;
            if (!even && (swept > 1) != (ratio > 1))
                fail_msg("%d sequences of %g: DCP 8 / none is %.3f, of the sweep %.3f", 1 << b, contexts[c], ratio,
                         swept);
        }
    }
    k25_csv_free(rows.csv);
    print_message("%d pairs, DCP 8 wins %d of them, %d are even in the sweep\n", pairs, wins, evens);
    assert_true(pairs >= 9 && wins >= 2 && wins < pairs && evens <= 2);
}

static void the_named_pairs(void **state)
{
    (void)state;
    struct rows rows;
    open_rows(&rows);
    /* One sequence: off at 0; on at 64k, where the sweep has them even, and at 128k for two (one sequence of 128k
     * without DCP is not in the rows). */
    assert_true(measured(&rows, 0, 0, 8, "none") < measured(&rows, 0, 0, 1, "none"));
    assert_true(speed[0][0][3][0] < speed[0][0][0][0]);
    assert_true(measured(&rows, 4, 0, 8, "none") > measured(&rows, 4, 0, 1, "none"));
    assert_true(speed[4][0][3][0] > (1 - EVEN) * speed[4][0][0][0]);
    assert_true(speed[5][0][3][0] > 1.1 * speed[5][0][0][0]);
    assert_true(measured(&rows, 5, 1, 8, "none") > measured(&rows, 5, 1, 1, "none"));
    assert_true(speed[5][1][3][0] > speed[5][1][0][0]);
    /* EAGLE-3 with k = 3: pays for one sequence, is even for 128 without DCP and loses with DCP 8. */
    assert_true(measured(&rows, 0, 0, 1, "eagle3") > 1.2 * measured(&rows, 0, 0, 1, "none"));
    assert_true(measured(&rows, 2, 0, 8, "eagle3") > 1.05 * measured(&rows, 2, 0, 8, "none"));
    assert_true(gain(2, 0, 3, 3) > 1.05);
    assert_true(fabs(measured(&rows, 0, 7, 1, "eagle3") / measured(&rows, 0, 7, 1, "none") - 1) < 0.05);
    /* The sweep says 0.93: its step of 512 verified rows is too long. */
    assert_true(gain(0, 7, 0, 3) > 0.88 && gain(0, 7, 0, 3) < 1.05);
    assert_true(measured(&rows, 0, 7, 8, "eagle3") < measured(&rows, 0, 7, 8, "none"));
    assert_true(gain(0, 7, 3, 3) < 1);
    k25_csv_free(rows.csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_acceptance_is_that_of_the_rows),
        cmocka_unit_test(dcp_is_off_at_short_context_and_on_at_long),
        cmocka_unit_test(more_sequences_flip_sooner),
        cmocka_unit_test(speculation_pays_for_few_sequences),
        cmocka_unit_test(dcp_wins_where_it_was_measured_to),
        cmocka_unit_test(the_named_pairs),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
