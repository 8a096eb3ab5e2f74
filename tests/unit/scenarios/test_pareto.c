/* The best of many rows, against the definition tried on every pair. */
#include "tests/unit/base_check.h"

#include "scenarios/sweep/pareto.h"
#include "scenarios/sweep/summary.h"

enum { ROWS = 700 };

static struct k25_ranked rows[ROWS];

/* Few different values, so that rows tie. */
static void draw(uint64_t *seed, size_t values, unsigned different)
{
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = (struct k25_ranked){.order = i};
        for (size_t v = 0; v < values; v++)
            rows[i].value[v] = (double)(chance(seed) % different) - different / 2;
    }
}

/* Somebody is at least as good in everything, and came before or is better in one. */
static bool dominated(size_t row, size_t values)
{
    for (size_t other = 0; other < ROWS; other++) {
        bool as_good = other != row, better = false;
        for (size_t v = 0; v < values; v++) {
            as_good = as_good && rows[other].value[v] <= rows[row].value[v];
            better = better || rows[other].value[v] < rows[row].value[v];
        }
        if (as_good && (better || other < row))
            return true;
    }
    return false;
}

static bool on_front(const struct k25_front *front, uint64_t order)
{
    size_t found = 0;
    for (size_t i = 0; i < front->count; i++)
        found += front->item[i].order == order;
    assert_true(found <= 1);
    return found == 1;
}

static void fronts_are_what_brute_force_finds(void **state)
{
    (void)state;
    uint64_t seed = 7;
    static const unsigned different[] = {2, 5, 30, 1000, 1000000};
    for (size_t values = 1; values <= 3; values++) {
        for (size_t d = 0; d < sizeof different / sizeof *different; d++) {
            struct k25_front front = {.values = values};
            draw(&seed, values, different[d]);
            for (size_t i = 0; i < ROWS; i++)
                assert_int_not_equal(k25_front_offer(&front, &rows[i]), K25_NO_MEMORY);
            for (size_t i = 0; i < ROWS; i++)
                assert_int_equal(on_front(&front, i), !dominated(i, values));
            k25_front_sort(&front);
            for (size_t i = 1; i < front.count; i++)
                assert_true(front.item[i - 1].value[0] <= front.item[i].value[0]);
            k25_front_free(&front);
        }
    }
}

static int by_value(const void *left, const void *right)
{
    const struct k25_ranked *a = left, *b = right;
    if (a->value[0] != b->value[0])
        return a->value[0] < b->value[0] ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void the_first_n_are_those_of_a_sorted_list(void **state)
{
    (void)state;
    uint64_t seed = 8;
    static const size_t most[] = {0, 1, 3, 50, ROWS + 10};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        struct k25_top top = {.most = most[m]};
        draw(&seed, 1, 100);
        for (size_t i = 0; i < ROWS; i++)
            assert_int_not_equal(k25_top_offer(&top, &rows[i]), K25_NO_MEMORY);
        qsort(rows, ROWS, sizeof *rows, by_value);
        assert_int_equal(top.count, most[m] < ROWS ? most[m] : ROWS);
        for (size_t i = 0; i < top.count; i++)
            assert_int_equal(top.item[i].order, rows[i].order);
        k25_top_free(&top);
    }
}

static void rows_keep_their_text(void **state)
{
    (void)state;
    char text[] = "abc";
    struct k25_front front = {.values = 2};
    struct k25_ranked row = {.value = {1, 2}, .length = 3, .text = text};
    assert_int_equal(k25_front_offer(&front, &row), K25_TAKEN);
    assert_int_equal(k25_front_offer(&front, &row), K25_REFUSED);
    text[0] = 'x';
    assert_string_equal(front.item[0].text, "abc");
    k25_front_free(&front);
}

/* The rows of `merged` are those of `whole`, which has no texts: in place i "rowN", N their order. */
static void assert_rows(const struct k25_ranked *whole, const struct k25_ranked *merged, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "row%llu", (unsigned long long)whole[i].order);
        assert_int_equal(merged[i].order, whole[i].order);
        assert_string_equal(merged[i].text, text);
    }
}

/* Groups split into pieces and put together have the rows of one summary. */
static void pieces_add_up_to_the_whole(void **state)
{
    (void)state;
    uint64_t seed = 9;
    struct k25_sweep_layout layout = {.objectives = 2, .top = 4};
    layout.objective[0].maximise = true;
    static struct k25_sweep_summary whole, piece, merged;
    struct k25_error error;
    k25_sweep_summary_open(&layout, &whole);
    k25_sweep_summary_open(&layout, &piece);
    k25_sweep_summary_open(&layout, &merged);
    char text[ROWS * 8];
    draw(&seed, 2, 40);
    for (size_t start = 0; start < ROWS;) {
        size_t end = start + 1 + (size_t)(chance(&seed) % 60), at = 0;
        k25_sweep_summary_clear(&piece);
        for (size_t i = start; i < end && i < ROWS; i++) {
            char key[3] = {(char)('a' + chance(&seed) % 5), K25_SWEEP_SEPARATOR, '\0'};
            size_t length = (size_t)sprintf(text + at, "row%zu", i);
            assert_true(k25_sweep_summary_rank(&piece, key, 2, rows[i].value, at, length, &error));
            assert_true(k25_sweep_summary_rank(&whole, key, 2, rows[i].value, 0, length, &error));
            piece.counts.rows++;
            whole.counts.rows++;
            at += length + 1;
        }
        assert_true(k25_sweep_summary_add(&merged, &piece, text, &error));
        start = end;
    }
    assert_int_equal(merged.groups, whole.groups);
    assert_int_equal(merged.counts.rows, ROWS);
    for (size_t g = 0; g < whole.groups; g++) {
        struct k25_sweep_group *a = &whole.group[g], *b = &merged.group[g];
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->front.count, b->front.count);
        assert_int_equal(a->top.count, b->top.count);
        assert_rows(a->front.item, b->front.item, a->front.count);
        assert_rows(a->top.item, b->top.item, a->top.count);
        assert_true(a->top.item[0].value[0] == -rows[a->top.item[0].order].value[0]);
    }
    k25_sweep_summary_close(&whole);
    k25_sweep_summary_close(&piece);
    k25_sweep_summary_close(&merged);
}

static void reasons_lose_their_numbers(void **state)
{
    (void)state;
    static struct k25_sweep_counts counts;
    k25_sweep_count_invalid(&counts, "plan.tp: 3 does not divide the 64 MLA heads of kimi-k2.5", 2);
    k25_sweep_count_invalid(&counts, "plan.tp: 5 does not divide the 64 MLA heads of kimi-k2.5", 4);
    k25_sweep_count_invalid(&counts, "plan.context: 300000 tokens are more than the 262,144 of it", 1);
    k25_sweep_count_invalid(&counts, "plan.pp: 8 of the rtx-pro-6000-8x-switches (8 GPUs, -1 spare) for glm-5.1.\n5-9",
                            1);
    assert_int_equal(counts.reasons, 3);
    assert_string_equal(counts.reason[2].text,
                        "plan.pp: N of the rtx-pro-6000-8x-switches (N GPUs, -N spare) for glm-5.1. 5-9");
    assert_string_equal(counts.reason[0].text, "plan.tp: N does not divide the N MLA heads of kimi-k2.5");
    assert_int_equal(counts.reason[0].count, 6);
    assert_string_equal(counts.reason[1].text, "plan.context: N tokens are more than the N of it");
    for (int i = 0; i < 100; i++) {
        char text[16] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        k25_sweep_count_invalid(&counts, text, 1);
    }
    assert_int_equal(counts.reasons, K25_SWEEP_REASONS);
    assert_string_equal(counts.reason[K25_SWEEP_REASONS - 1].text, "other reasons");
    assert_int_equal(counts.reason[K25_SWEEP_REASONS - 1].count, 100 - (K25_SWEEP_REASONS - 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fronts_are_what_brute_force_finds),
        cmocka_unit_test(the_first_n_are_those_of_a_sorted_list),
        cmocka_unit_test(rows_keep_their_text),
        cmocka_unit_test(pieces_add_up_to_the_whole),
        cmocka_unit_test(reasons_lose_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
