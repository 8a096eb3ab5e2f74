/* The best of many rows, against the definition tried on every pair. */
#include "tests/unit/base_check.h"

#include "scenarios/sweep/digest.h"
#include "scenarios/sweep/pareto.h"

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

/* Groups split into pieces and put together say what one digest says. */
static void pieces_merge_to_the_whole(void **state)
{
    (void)state;
    uint64_t seed = 9;
    struct k25_sweep_frame frame = {.objectives = 2, .top = 4};
    frame.objective[0].maximise = true;
    struct k25_digest whole, piece, merged;
    struct k25_error error;
    k25_digest_open(&frame, &whole);
    k25_digest_open(&frame, &piece);
    k25_digest_open(&frame, &merged);
    char text[ROWS * 8];
    draw(&seed, 2, 40);
    for (size_t start = 0; start < ROWS;) {
        size_t end = start + 1 + (size_t)(chance(&seed) % 60), at = 0;
        k25_digest_clear(&piece);
        for (size_t i = start; i < end && i < ROWS; i++) {
            char key[3] = {(char)('a' + chance(&seed) % 5), '\x1f', '\0'};
            int length = sprintf(text + at, "row%zu", i);
            assert_true(k25_digest_offer(&piece, key, 2, rows[i].value, i - start, at, NULL, (size_t)length, &error));
            assert_true(k25_digest_offer(&whole, key, 2, rows[i].value, i, 0, text + at, (size_t)length, &error));
            at += (size_t)length + 1;
        }
        assert_true(k25_digest_merge(&merged, &piece, text, start, &error));
        start = end;
    }
    assert_int_equal(merged.count, whole.count);
    for (size_t g = 0; g < whole.count; g++) {
        struct k25_sweep_group *a = &whole.group[g], *b = &merged.group[g];
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->front.count, b->front.count);
        assert_int_equal(a->top.count, b->top.count);
        for (size_t i = 0; i < a->front.count; i++)
            assert_string_equal(a->front.item[i].text, b->front.item[i].text);
        for (size_t i = 0; i < a->top.count; i++)
            assert_string_equal(a->top.item[i].text, b->top.item[i].text);
        assert_true(a->top.item[0].value[0] == -rows[a->top.item[0].order].value[0]);
    }
    k25_digest_close(&whole);
    k25_digest_close(&piece);
    k25_digest_close(&merged);
}

static void reasons_lose_their_numbers(void **state)
{
    (void)state;
    static struct k25_sweep_counts counts;
    k25_sweep_count_invalid(&counts, "plan.tp: 3 does not divide the 64 MLA heads of kimi-k2.5", 2);
    k25_sweep_count_invalid(&counts, "plan.tp: 5 does not divide the 64 MLA heads of kimi-k2.5", 4);
    k25_sweep_count_invalid(&counts, "plan.context: 300000 tokens are more than the 262,144 of it", 1);
    assert_int_equal(counts.reasons, 2);
    assert_string_equal(counts.reason[0].text, "plan.tp: N does not divide the N MLA heads of kimi-k2.5");
    assert_int_equal(counts.reason[0].count, 6);
    assert_string_equal(counts.reason[1].text, "plan.context: N tokens are more than the N of it");
    for (int i = 0; i < 100; i++) {
        char text[16] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        k25_sweep_count_invalid(&counts, text, 1);
    }
    assert_int_equal(counts.reasons, K25_SWEEP_REASONS);
    assert_string_equal(counts.reason[K25_SWEEP_REASONS - 1].text, "other reasons");
    assert_int_equal(counts.reason[K25_SWEEP_REASONS - 1].count, 100 - (K25_SWEEP_REASONS - 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fronts_are_what_brute_force_finds),
        cmocka_unit_test(the_first_n_are_those_of_a_sorted_list),
        cmocka_unit_test(rows_keep_their_text),
        cmocka_unit_test(pieces_merge_to_the_whole),
        cmocka_unit_test(reasons_lose_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
