/* The list of outputs: complete, worked by hand where it computes, and the same as the documentation's. */
#include "tests/unit/physics_check.h"

#include "model/predict/outputs.h"

static struct k25_prediction p;

static double value_of(const struct box *box, enum k25_output output)
{
    struct k25_params params = fixed_params();
    struct k25_question question = ask(box);
    k25_predict(&question, &params, &p);
    return k25_output_value(&question, &p, output);
}

static void every_output_has_its_row(void **state)
{
    (void)state;
    assert_null(k25_output_names[K25_OUTPUTS]);
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        const struct k25_output_info *info = &k25_output_info[o];
        assert_string_equal(info->name, k25_output_names[o]);
        assert_int_equal(k25_output_find(info->name), o);
        assert_non_null(info->unit);
        assert_true(strlen(info->doc) > 0 && strpbrk(info->doc, "|`\n") == NULL);
        assert_non_null(info->value);
        assert_true(info->over < K25_TERMS && info->under < K25_TERMS);
        /* What has an interval depends on parameters through the step. */
        assert_true(!k25_output_has_interval(o) || info->of_step);
    }
    assert_int_equal(k25_output_find("step"), K25_OUTPUTS);
    assert_int_equal(k25_output_find(""), K25_OUTPUTS);
}

/* The unit ends the name, but for names that are none of a unit's. */
static void names_end_with_their_units(void **state)
{
    (void)state;
    static const char *const ends[][2] = {{"ms", "_ms"}, {"GB", "_gb"}, {"tok/s", "tok_s"}, {"tokens", "_tokens"}};
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            bool unit = strcmp(k25_output_info[o].unit, ends[i][0]) == 0;
            assert_true(!unit || strstr(k25_output_names[o], ends[i][1]) != NULL);
        }
    }
}

/* By hand from the step: 2 replicas of 2 stages of 2 ranks, 16 sequences. */
static void quotients(void **state)
{
    (void)state;
    struct box box;
    kimi_box(&box);
    box.plan.tp = box.plan.pp = box.plan.dp = 2;
    box.plan.batch = 16;
    box.machine.price_per_hour = 36;
    box.machine.gpu.memory_mib = 1e6; /* so that it fits */
    double step = value_of(&box, K25_OUT_STEP) / 1e3, tok_s = 16 / step;
    assert_close(value_of(&box, K25_OUT_TOK_S), tok_s, 1e-12);
    assert_close(value_of(&box, K25_OUT_TPOT), step * 1e3, 1e-12);
    assert_close(value_of(&box, K25_OUT_TOK_S_PER_USER), tok_s / 16, 1e-12);
    assert_within(value_of(&box, K25_OUT_GPUS), 8, 0);
    assert_close(value_of(&box, K25_OUT_TOK_S_PER_GPU), tok_s / 8, 1e-12);
    assert_close(value_of(&box, K25_OUT_USD_PER_MTOK), 0.01 / tok_s * 1e6, 1e-12); /* 36 USD/h = 0.01 USD/s */
    assert_close(value_of(&box, K25_OUT_TOK_S_PER_W), tok_s / (8 * box.machine.gpu.power_w), 1e-12);
    box.machine.price_per_hour = 0;
    assert_true(isnan(value_of(&box, K25_OUT_USD_PER_MTOK)));
}

/* Half the power makes a step longer, but far less than twice as long: more tokens for a joule. */
static void a_power_limit_counts_in_tokens_per_watt(void **state)
{
    (void)state;
    struct box box;
    kimi_box(&box);
    assert_within(box.machine.gpu.power_w, 600, 0);
    double full = value_of(&box, K25_OUT_TOK_S_PER_W);
    box.plan.levers.power_limit_w = 300;
    double limited = value_of(&box, K25_OUT_TOK_S_PER_W);
    assert_true(limited > full);
    assert_close(limited, value_of(&box, K25_OUT_TOK_S) / (box.plan.tp * 300), 1e-12);
    box.plan.levers.power_limit_w = 700; /* no GPU draws more for it */
    assert_within(value_of(&box, K25_OUT_TOK_S_PER_W), full, 0);
}

static void without_memory_there_is_no_step(void **state)
{
    (void)state;
    struct box box;
    kimi_box(&box);
    box.plan.batch = 60000;
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++)
        assert_int_equal(isnan(value_of(&box, o)), k25_output_info[o].of_step);
    assert_within(value_of(&box, K25_OUT_FITS), 0, 0);
}

/* ---- docs/output.md ---- */

/* The rows of the table of outputs: what follows its header up to the next empty line. */
static char *documented(void)
{
    static char page[1 << 17];
    FILE *file = fopen(K25_SOURCE_DIR "/docs/output.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const char *header = "| output | unit | interval | meaning |\n|---|---|---|---|\n";
    char *table = strstr(page, header);
    assert_non_null(table);
    table += strlen(header);
    char *end = strstr(table, "\n\n");
    assert_non_null(end);
    end[1] = '\0';
    return table;
}

static void the_page_has_the_same_list(void **state)
{
    (void)state;
    const char *at = documented();
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        const struct k25_output_info *info = &k25_output_info[o];
        char row[512];
        int length = snprintf(row, sizeof row, "| `%s` | %s | %s | %s |\n", info->name, info->unit,
                              k25_output_has_interval(o) ? "yes" : "no", info->doc);
        if (strncmp(at, row, (size_t)length) != 0)
            fail_msg("docs/output.md has\n%.*s\nwhere the program has\n%s", (int)strcspn(at, "\n"), at, row);
        at += length;
    }
    assert_string_equal(at, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_has_its_row),
        cmocka_unit_test(names_end_with_their_units),
        cmocka_unit_test(quotients),
        cmocka_unit_test(a_power_limit_counts_in_tokens_per_watt),
        cmocka_unit_test(without_memory_there_is_no_step),
        cmocka_unit_test(the_page_has_the_same_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
