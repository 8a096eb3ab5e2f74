/* Formats as tables: every kind of member, every kind of mistake, from a file and from --set. */
#include <limits.h>
#include <math.h>

#include "base/schema.h"
#include "tests/unit/base_check.h"

struct allreduce {
    int backend;
    double floor;
};

struct plan {
    char name[8];
    int tp, seed, unset;
    double rate, share;
    bool graphs;
    int kv_dtype;
    struct allreduce allreduce, spare;
    const struct k25_yaml_node *stages;
};

static const char *const backends[] = {"nccl", "custom", NULL};
static const char *const dtypes[] = {"bf16", "fp8", NULL};

static const struct k25_field allreduce_fields[] = {
    K25_FIELD(ENUM, allreduce, backend, .fallback = "nccl", .names = backends),
    K25_FIELD(REAL, allreduce, floor, .fallback = "1.5", .unit = "us"),
    {0},
};

static const struct k25_field plan_fields[] = {
    K25_FIELD(TEXT, plan, name, .fallback = ""),
    K25_FIELD(INT, plan, tp, .min = 1, .max = 1024),
    K25_FIELD(INT, plan, seed, .fallback = "25"),
    K25_FIELD(INT, plan, unset, .fallback = "-1", .min = 1, .max = INFINITY),
    K25_FIELD(REAL, plan, rate, .fallback = "1", .min = 0, .max = INFINITY, .unit = "1/s"),
    K25_FIELD(REAL, plan, share, .fallback = "0.5", .min = 0, .max = 1),
    K25_FIELD(BOOL, plan, graphs, .fallback = "true"),
    K25_FIELD(ENUM, plan, kv_dtype, .fallback = "bf16", .names = dtypes),
    K25_FIELD(MAP, plan, allreduce, .fallback = "{}", .fields = allreduce_fields),
    K25_FIELD(MAP, plan, spare, .fallback = "", .fields = allreduce_fields),
    K25_FIELD(NODE, plan, stages, .fallback = ""),
    {0},
};

static bool load(const char *text, struct plan *plan, struct k25_inputs *inputs, struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "plan.yaml", error);
    if (yaml == NULL) {
        return false;
    }
    memset(plan, 0x55, sizeof *plan);
    bool good = k25_schema_load(plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", plan, inputs, error);
    k25_yaml_free(yaml); /* `stages` must not be looked into behind this */
    return good;
}

static void refuse(const char *text, const char *message)
{
    struct k25_error error = {0};
    struct plan plan;
    assert_false(load(text, &plan, NULL, &error));
    assert_error(error, K25_BAD_INPUT, message);
}

static void loads_everything(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    struct plan plan;
    assert_true(load("name: abcdefg\ntp: 8\nseed: -3\nrate: 4\nshare: 1\ngraphs: false\nkv_dtype: 'fp8'\n"
                     "allreduce: {backend: custom}\nspare: {floor: 2.5e-1}\nstages: [1]\nunset: +3\n",
                     &plan, &inputs, &error));
    assert_string_equal(plan.name, "abcdefg");
    assert_int_equal(plan.tp, 8);
    assert_int_equal(plan.seed, -3);
    assert_int_equal(plan.unset, 3);
    assert_true(plan.rate == 4 && plan.share == 1 && !plan.graphs);
    assert_int_equal(plan.kv_dtype, 1);
    assert_int_equal(plan.allreduce.backend, 1);
    assert_true(plan.allreduce.floor == 1.5 && plan.spare.floor == 0.25);
    assert_non_null(plan.stages);
    const struct k25_input *input = k25_inputs_find(&inputs, "plan.allreduce.backend");
    assert_string_equal(input->value, "custom");
    assert_int_equal(input->origin, K25_FROM_FILE);
    assert_string_equal(input->file, "plan.yaml");
    assert_int_equal(input->line, 8);
    assert_int_equal(input->column, 22);
    input = k25_inputs_find(&inputs, "plan.allreduce.floor");
    assert_int_equal(input->origin, K25_FROM_DEFAULT);
    assert_string_equal(input->value, "1.5");
    assert_string_equal(input->unit, "us");
    assert_string_equal(input->file, "");
    assert_int_equal(input->line, 0);
    assert_null(k25_inputs_find(&inputs, "plan.stages"));
    k25_inputs_free(&inputs);
}

static void absent_and_null_take_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "tp: 1\n",
        "tp: 1\nname:\nseed: ~\nrate: null\nshare: Null\ngraphs: NULL\nkv_dtype:\nallreduce:\nspare:\nstages: ~\n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct k25_inputs inputs = {0};
        struct plan plan;
        assert_true(load(texts[i], &plan, &inputs, NULL));
        assert_string_equal(plan.name, "");
        assert_int_equal(plan.seed, 25);
        assert_int_equal(plan.unset, -1); /* outside of its range: nobody said */
        assert_true(plan.rate == 1 && plan.share == 0.5 && plan.graphs);
        assert_int_equal(plan.kv_dtype, 0);
        assert_true(plan.allreduce.floor == 1.5);
        assert_int_equal(plan.spare.backend, 0);
        assert_true(plan.spare.floor == 0);
        assert_null(plan.stages);
        assert_null(k25_inputs_find(&inputs, "plan.spare.floor"));
        k25_inputs_free(&inputs);
    }
    struct allreduce allreduce = {7, 7};
    assert_true(k25_schema_load(allreduce_fields, "", NULL, "plan.yaml", &allreduce, NULL, NULL));
    assert_true(allreduce.backend == 0 && allreduce.floor == 1.5);
    struct plan plan;
    struct k25_error error;
    assert_false(k25_schema_load(plan_fields, "plan", NULL, "plan.yaml", &plan, NULL, &error));
    assert_error(error, K25_BAD_INPUT, "plan.yaml: missing key 'tp' in plan");
}

/* What the mapping has, and nothing else: no defaults, no missing keys, also inside of it. */
static void change_keeps_what_is_absent(void **state)
{
    (void)state;
    static const char text[] = "rate: 4\nallreduce: {floor: 3}\n", bad[] = "rate: 4\ntpp: 3\n";
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    struct plan plan = {.tp = 8, .share = 0.25, .name = "old", .allreduce = {1, 2}, .spare = {1, 7}};
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "plan.yaml", &error);
    assert_true(k25_schema_change(plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", &plan, &inputs, &error));
    k25_yaml_free(yaml);
    assert_true(plan.rate == 4 && plan.allreduce.floor == 3);
    assert_true(plan.tp == 8 && plan.share == 0.25 && plan.allreduce.backend == 1 && plan.spare.floor == 7);
    assert_string_equal(plan.name, "old");
    assert_non_null(k25_inputs_find(&inputs, "plan.rate"));
    assert_null(k25_inputs_find(&inputs, "plan.tp"));
    k25_inputs_free(&inputs);
    yaml = k25_yaml_parse(bad, strlen(bad), "plan.yaml", &error);
    assert_false(k25_schema_change(plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", &plan, NULL, &error));
    k25_yaml_free(yaml);
    assert_error(error, K25_BAD_INPUT, "plan.yaml:2:1: unknown key 'tpp' in plan, did you mean 'tp'?");
}

static void mistakes_in_keys(void **state)
{
    (void)state;
    refuse("\n\n\n\n\n\n\nseed: 1\ntpp: 8\n", "plan.yaml:9:1: unknown key 'tpp' in plan, did you mean 'tp'?");
    refuse("\n\nseed: 1\n", "plan.yaml:3:1: missing key 'tp' in plan");
    refuse("tp: 1\nzebra: 1\n", "plan.yaml:2:1: unknown key 'zebra' in plan, expected one of name, tp, seed, unset, "
                                "rate, share, graphs, kv_dtype, allreduce, spare, stages");
    refuse("tp: 1\nallreduce:\n  backnd: nccl\n",
           "plan.yaml:3:3: unknown key 'backnd' in plan.allreduce, did you mean 'backend'?");
    refuse("tp: 1\nallreduce: {k25sim: x}\n",
           "plan.yaml:2:13: unknown key 'k25sim' in plan.allreduce, expected one of backend, floor");
    refuse("tp: 1\nversion: 1\n", "plan.yaml:2:1: unknown key 'version' in plan, expected one of name, tp, seed, "
                                  "unset, rate, share, graphs, kv_dtype, allreduce, spare, stages");
    struct k25_error error;
    struct k25_yaml *yaml = k25_yaml_parse("{x: 1}", 6, "a.yaml", NULL);
    struct allreduce allreduce;
    assert_false(k25_schema_load(allreduce_fields, "", k25_yaml_root(yaml), "a.yaml", &allreduce, NULL, &error));
    assert_error(error, K25_BAD_INPUT, "a.yaml:1:2: unknown key 'x', expected one of backend, floor");
    k25_yaml_free(yaml);
    struct k25_field many[20] = {{0}};
    static const char *const names[] = {"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg",
                                        "hhhh", "iiii", "jjjj", "kkkk", "llll", "mmmm"};
    for (size_t i = 0; i < 13; i++) {
        many[i] = (struct k25_field){.key = names[i], .type = K25_NODE, .fallback = ""};
    }
    const struct k25_yaml_node *node[1];
    assert_false(k25_schema_set(many, "m", "zzzz", "1", node, NULL, &error));
    assert_error(error, K25_BAD_INPUT, "--set m.zzzz=1: unknown key 'zzzz' in m");
}

static void mistakes_in_values(void **state)
{
    (void)state;
    refuse("\n\n\n\n\n\n\n\n  tp: eight\n", "plan.yaml:9:7: plan.tp: 'eight' is not a whole number");
    refuse("tp: 0\n", "plan.yaml:1:5: plan.tp: 0 is out of range, expected 1 to 1024");
    refuse("tp: 1025\n", "plan.yaml:1:5: plan.tp: 1025 is out of range, expected 1 to 1024");
    refuse("tp: 99999999999999999999\n",
           "plan.yaml:1:5: plan.tp: 99999999999999999999 is out of range, expected 1 to 1024");
    refuse("tp: 4.0\n", "plan.yaml:1:5: plan.tp: '4.0' is not a whole number");
    refuse("tp: 1_000\n", "plan.yaml:1:5: plan.tp: '1_000' is not a whole number");
    refuse("tp: 1e2\n", "plan.yaml:1:5: plan.tp: '1e2' is not a whole number");
    refuse("tp: '8'\n", "plan.yaml:1:5: plan.tp: '8' is text in quotes, expected a whole number");
    refuse("tp:\n", "plan.yaml:1:4: plan.tp: no value, expected a whole number");
    refuse("tp: [1]\n", "plan.yaml:1:5: plan.tp: expected a whole number, found a list");
    refuse("tp: 1\nseed: 2147483648\n",
           "plan.yaml:2:7: plan.seed: 2147483648 is out of range, expected -2147483648 to 2147483647");
    refuse("tp: 1\nunset: 0\n", "plan.yaml:2:8: plan.unset: 0 is out of range, expected at least 1");
    refuse("tp: 1\nrate: -1\n", "plan.yaml:2:7: plan.rate: -1 is out of range, expected at least 0");
    refuse("tp: 1\nrate: fast\n", "plan.yaml:2:7: plan.rate: 'fast' is not a number");
    refuse("tp: 1\nrate: .nan\n", "plan.yaml:2:7: plan.rate: '.nan' is not a number");
    refuse("tp: 1\nshare: 1.1\n", "plan.yaml:2:8: plan.share: 1.1 is out of range, expected 0 to 1");
    refuse("tp: 1\ngraphs: yes\n", "plan.yaml:2:9: plan.graphs: 'yes' is not true or false");
    refuse("tp: 1\ngraphs: 'true'\n", "plan.yaml:2:9: plan.graphs: 'true' is text in quotes, expected true or false");
    refuse("tp: 1\nkv_dtype: fp9\n",
           "plan.yaml:2:11: plan.kv_dtype: unknown value 'fp9', expected one of bf16, fp8, did you mean 'fp8'?");
    refuse("tp: 1\nkv_dtype: zebra\n",
           "plan.yaml:2:11: plan.kv_dtype: unknown value 'zebra', expected one of bf16, fp8");
    refuse("tp: 1\nname: abcdefgh\n", "plan.yaml:2:7: plan.name: a text of 8 bytes, expected at most 7");
    refuse("tp: 1\nname: {a: 1}\n", "plan.yaml:2:7: plan.name: expected a value, found a mapping");
    refuse("tp: 1\nallreduce: 3\n", "plan.yaml:2:12: plan.allreduce: expected a mapping, found a value");
    refuse("[1]\n", "plan.yaml:1:1: plan: expected a mapping, found a list");
}

static void refuse_set(const char *path, const char *value, const char *message)
{
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    struct plan plan, before;
    memset(&plan, 0x55, sizeof plan);
    before = plan;
    assert_false(k25_schema_set(plan_fields, "plan", path, value, &plan, &inputs, &error));
    assert_error(error, K25_BAD_INPUT, message);
    assert_memory_equal(&plan, &before, sizeof plan);
    assert_int_equal(inputs.count, 0);
    k25_inputs_free(&inputs);
}

static void set_refuses(void **state)
{
    (void)state;
    refuse_set("tpp", "4", "--set plan.tpp=4: unknown key 'tpp' in plan, did you mean 'tp'?");
    refuse_set("tp", "eight", "--set plan.tp=eight: 'eight' is not a whole number");
    refuse_set("tp", "0", "--set plan.tp=0: 0 is out of range, expected 1 to 1024");
    refuse_set("tp", "", "--set plan.tp=: '' is not a whole number");
    refuse_set("name", "abcdefgh", "--set plan.name=abcdefgh: a text of 8 bytes, expected at most 7");
    refuse_set("kv_dtype", "fp9",
               "--set plan.kv_dtype=fp9: unknown value 'fp9', expected one of bf16, fp8, did you mean 'fp8'?");
    refuse_set("allreduce.back", "x",
               "--set plan.allreduce.back=x: unknown key 'back' in plan.allreduce, did you mean 'backend'?");
    refuse_set("allreduce.zebra", "x",
               "--set plan.allreduce.zebra=x: unknown key 'zebra' in plan.allreduce, expected one of backend, floor");
    refuse_set("allreduce", "x",
               "--set plan.allreduce=x: plan.allreduce is a mapping, expected one of its keys: backend, floor");
    refuse_set("stages", "x", "--set plan.stages=x: plan.stages is a list or a mapping, which only the file can set");
    refuse_set("stages.0", "x",
               "--set plan.stages.0=x: plan.stages is a list or a mapping, which only the file can set");
    refuse_set("tp.x", "1", "--set plan.tp.x=1: plan.tp is a single value, it has no key 'x'");
    refuse_set("", "1",
               "--set plan.=1: unknown key '' in plan, expected one of name, tp, seed, unset, rate, share, "
               "graphs, kv_dtype, allreduce, spare, stages");
    refuse_set("allreduce.", "1",
               "--set plan.allreduce.=1: unknown key '' in plan.allreduce, expected one of backend, floor");
    char path[2000];
    struct k25_error error;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct plan plan;
    assert_false(k25_schema_set(plan_fields, "plan", path, "1", &plan, NULL, &error));
    assert_int_equal(strncmp(error.message, "the path 'plan.aaaa", 19), 0);
}

static void set_sets_and_records(void **state)
{
    (void)state;
    struct k25_inputs inputs = {0};
    struct k25_error error = {0};
    struct plan plan;
    assert_true(load("tp: 8\n", &plan, &inputs, &error));
    size_t count = inputs.count;
    assert_true(k25_schema_set(plan_fields, "plan", "allreduce.backend", "custom", &plan, &inputs, &error));
    assert_true(k25_schema_set(plan_fields, "plan", "tp", "7", &plan, &inputs, &error));
    assert_true(k25_schema_set(plan_fields, "plan", "name", "", &plan, NULL, &error));
    assert_int_equal(plan.allreduce.backend, 1);
    assert_int_equal(plan.tp, 7);
    assert_int_equal(inputs.count, count);
    const struct k25_input *input = k25_inputs_find(&inputs, "plan.tp");
    assert_int_equal(input->origin, K25_FROM_OVERRIDE);
    assert_string_equal(input->file, "--set");
    k25_inputs_fail(&inputs, "plan.tp", &error, "7 does not divide 64 heads");
    assert_error(error, K25_BAD_INPUT, "--set plan.tp=7: 7 does not divide 64 heads");
    k25_inputs_free(&inputs);
}

/* Whatever is set is what a file that says the same loads to, and nothing else changes. */
static void set_and_load_agree(void **state)
{
    (void)state;
    uint64_t seed = 25;
    for (int round = 0; round < 3000; round++) {
        char tp[24], rate[40], share[40], text[300];
        bool graphs = chance(&seed) % 2;
        const char *dtype = dtypes[chance(&seed) % 2], *backend = backends[chance(&seed) % 2];
        snprintf(tp, sizeof tp, "%d", (int)(1 + chance(&seed) % 1024));
        snprintf(rate, sizeof rate, "%.17g", (double)(chance(&seed) >> 8) * 1e-9);
        snprintf(share, sizeof share, "%.17g", (double)(chance(&seed) >> 11) * 0x1p-53);
        snprintf(text, sizeof text,
                 "tp: %s\nrate: %s\nshare: %s\ngraphs: %s\nkv_dtype: %s\nallreduce:\n  backend: %s\n", tp, rate, share,
                 graphs ? "true" : "false", dtype, backend);
        struct plan loaded, set;
        struct k25_error error = {0};
        assert_true(load(text, &loaded, NULL, &error));
        assert_true(load("tp: 1\n", &set, NULL, &error));
        const char *pairs[][2] = {{"tp", tp},          {"rate", rate},
                                  {"share", share},    {"graphs", graphs ? "true" : "false"},
                                  {"kv_dtype", dtype}, {"allreduce.backend", backend}};
        for (size_t i = 0; i < 6; i++) {
            assert_true(k25_schema_set(plan_fields, "plan", pairs[i][0], pairs[i][1], &set, NULL, &error));
        }
        assert_memory_equal(&loaded, &set, sizeof set); /* both started from the same bytes */
        assert_true(loaded.rate == strtod(rate, NULL) && loaded.tp == atoi(tp));
    }
}

static void gather(void *context, const char *path, const struct k25_field *field)
{
    strcat(context, path);
    strcat(context, field->fallback == NULL ? "! " : " ");
}

static void visits_every_scalar(void **state)
{
    (void)state;
    char seen[500] = "";
    k25_schema_visit(plan_fields, "plan", gather, seen);
    assert_string_equal(seen, "plan.name plan.tp! plan.seed plan.unset plan.rate plan.share plan.graphs plan.kv_dtype "
                              "plan.allreduce.backend plan.allreduce.floor plan.spare.backend plan.spare.floor ");
    seen[0] = '\0';
    k25_schema_visit(allreduce_fields, "", gather, seen);
    assert_string_equal(seen, "backend floor ");
}

static void head(const char *text, const char *message)
{
    struct k25_error error = {0};
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "x.yaml", &error);
    assert_non_null(yaml);
    assert_int_equal(k25_schema_head(yaml, "scenario", &error), message[0] == '\0');
    assert_string_equal(error.message, message);
    k25_yaml_free(yaml);
}

static void heads(void **state)
{
    (void)state;
    head("k25sim: scenario\nversion: 1\nx: 1\n", "");
    head("- 1\n", "x.yaml:1:1: expected a mapping that starts with 'k25sim: scenario', found a list");
    head("version: 1\n", "x.yaml:1:1: missing key 'k25sim', expected a mapping that starts with 'k25sim: scenario'");
    head("k25sim: machine\nversion: 1\n", "x.yaml:1:9: k25sim: the file is of kind 'machine', expected 'scenario'");
    head("k25sim: [1]\nversion: 1\n", "x.yaml:1:9: k25sim: a list, expected 'scenario'");
    head("k25sim: scenario\n", "x.yaml:1:1: missing key 'version', expected 'version: 1'");
    head("k25sim: scenario\nversion: 2\n", "x.yaml:2:10: version: 2 is not supported, expected 1");
    struct plan plan;
    assert_true(load("k25sim: plan\nversion: 1\ntp: 4\n", &plan, NULL, NULL)); /* passed over */
    assert_int_equal(plan.tp, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_everything),
        cmocka_unit_test(absent_and_null_take_defaults),
        cmocka_unit_test(change_keeps_what_is_absent),
        cmocka_unit_test(mistakes_in_keys),
        cmocka_unit_test(mistakes_in_values),
        cmocka_unit_test(set_refuses),
        cmocka_unit_test(set_sets_and_records),
        cmocka_unit_test(set_and_load_agree),
        cmocka_unit_test(visits_every_scalar),
        cmocka_unit_test(heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
