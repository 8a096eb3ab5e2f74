/* Files found by name: shelves, paths, and what is said about names that are not there. */
#include "tests/unit/physics_check.h"

#include <sys/stat.h>

#include "scenarios/library/library.h"

static const struct k25_library library = {.root = K25_SOURCE_DIR};

static bool find(const struct k25_library *in, enum k25_files kind, const char *name, const char *from, char *path,
                 struct k25_error *error)
{
    return k25_library_find(in, kind, name, "kimi-k2.5", from, path, 1024, error);
}

static void names_are_files_of_their_kind(void **state)
{
    (void)state;
    static const struct {
        enum k25_files kind;
        const char *name, *path;
    } cases[] = {{K25_FILES_ARCHITECTURE, "kimi-k2.5", "/model/zoo/kimi-k2.5.yaml"},
                 {K25_FILES_WEIGHTS, "int4_g32", "/model/zoo/kimi-k2.5.int4_g32.yaml"},
                 {K25_FILES_MACHINE, "h200-8x-nvlink", "/hw/machines/h200-8x-nvlink.yaml"},
                 {K25_FILES_GPU, "rtx-4090", "/hw/gpus/rtx-4090.yaml"},
                 {K25_FILES_CALIBRATION, "k25_tp8_vllm", "/calib/sets/k25_tp8_vllm.yaml"},
                 {K25_FILES_SCENARIO, "tp8_bs1", "/scenarios/tp8_bs1.yaml"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        char path[1024], expected[1024];
        if (!find(&library, cases[i].kind, cases[i].name, "", path, &error))
            fail_msg("%s", error.message);
        snprintf(expected, sizeof expected, K25_SOURCE_DIR "%s", cases[i].path);
        assert_string_equal(path, expected);
    }
}

static void paths_are_relative_to_the_file_that_names_them(void **state)
{
    (void)state;
    struct k25_error error = {0};
    char path[1024];
    assert_true(find(&library, K25_FILES_MACHINE, "box.yaml", "some/where/a.yaml", path, &error));
    assert_string_equal(path, "some/where/box.yaml");
    assert_true(find(&library, K25_FILES_MACHINE, "../box", "some/where/a.yaml", path, &error));
    assert_string_equal(path, "some/where/../box");
    assert_true(find(&library, K25_FILES_MACHINE, "/box.yaml", "some/where/a.yaml", path, &error));
    assert_string_equal(path, "/box.yaml");
    assert_true(find(&library, K25_FILES_SCENARIO, "mine.yaml", "", path, &error));
    assert_string_equal(path, "mine.yaml");
}

static void unknown_names_get_the_nearest(void **state)
{
    (void)state;
    static const struct {
        enum k25_files kind;
        const char *name, *from, *message;
    } cases[] = {
        {K25_FILES_MACHINE, "h200-8x-nvlnk", "a.yaml",
         "unknown machine 'h200-8x-nvlnk', did you mean 'h200-8x-nvlink'?; `k25sim list machines` shows what "
         "there is"},
        {K25_FILES_GPU, "rtx-4900", "",
         "unknown gpu 'rtx-4900', did you mean 'rtx-4090'?; `k25sim list gpus` shows what there is"},
        {K25_FILES_ARCHITECTURE, "kimi-k25", "",
         "unknown architecture 'kimi-k25', did you mean 'kimi-k2.5'?; `k25sim list architectures` shows what "
         "there is"},
        {K25_FILES_WEIGHTS, "int4", "",
         "unknown weights 'kimi-k2.5.int4', did you mean 'kimi-k2.5.int4_g32'?; `k25sim list weights` shows what "
         "there is"},
        {K25_FILES_SCENARIO, "tp8_bs2", "",
         "unknown scenario 'tp8_bs2', did you mean 'tp8_bs1'?; `k25sim list scenarios` shows what there is"},
        {K25_FILES_CALIBRATION, "zzzzzzzz", "",
         "unknown calibration 'zzzzzzzz'; `k25sim list calibrations` shows what there is"},
        /* an architecture is no scheme */
        {K25_FILES_WEIGHTS, "yaml", "", "unknown weights 'kimi-k2.5.yaml'; `k25sim list weights` shows what there is"},
        {K25_FILES_MACHINE, "", "", "unknown machine ''; `k25sim list machines` shows what there is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error = {0};
        char path[1024];
        assert_false(find(&library, cases[i].kind, cases[i].name, cases[i].from, path, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
}

static bool has(char **names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

static void lists_are_sorted_and_apart(void **state)
{
    (void)state;
    for (int kind = 0; kind < K25_FILES_COUNT; kind++) {
        struct k25_error error = {0};
        size_t count = 0;
        char **names = k25_library_list(&library, (enum k25_files)kind, &count, &error);
        assert_non_null(names);
        assert_true(count > 0 && names[count] == NULL);
        for (size_t i = 1; i < count; i++)
            assert_true(strcmp(names[i - 1], names[i]) < 0);
        if (kind == K25_FILES_ARCHITECTURE)
            assert_true(has(names, "kimi-k2.5") && !has(names, "kimi-k2.5.int4_g32"));
        if (kind == K25_FILES_WEIGHTS)
            assert_true(has(names, "kimi-k2.5.int4_g32") && !has(names, "kimi-k2.5"));
        k25_library_free(names);
    }
    assert_string_equal(k25_files_names[K25_FILES_ARCHITECTURE], "architecture");
    assert_string_equal(k25_files_names[K25_FILES_SCENARIO], "scenario");
    assert_null(k25_files_names[K25_FILES_COUNT]);
}

/* Every name that is listed under a kind is a file of that kind: everything `k25sim list` shows can be used. */
static void every_name_on_a_list_is_found(void **state)
{
    (void)state;
    static const char *const kinds[K25_FILES_COUNT] = {"architecture", "weights",  "machine", "gpu",
                                                       "calibration",  "scenario", "sweep"};
    for (int kind = 0; kind < K25_FILES_COUNT; kind++) {
        size_t count;
        char **names = k25_library_list(&library, (enum k25_files)kind, &count, NULL);
        for (size_t i = 0; i < count; i++) {
            struct k25_error error = {0};
            char path[1024];
            char *dot = kind == K25_FILES_WEIGHTS ? strrchr(names[i], '.') : NULL;
            if (dot != NULL)
                *dot = '\0';
            if (!k25_library_find(&library, (enum k25_files)kind, dot ? dot + 1 : names[i], dot ? names[i] : "", "",
                                  path, sizeof path, &error))
                fail_msg("%s", error.message);
            struct k25_yaml *yaml = k25_yaml_read(path, NULL, &error);
            if (yaml == NULL || !k25_schema_head(yaml, kinds[kind], &error))
                fail_msg("%s", error.message);
            k25_yaml_free(yaml);
        }
        k25_library_free(names);
    }
}

/* Names with dots: glm-5.1 is an architecture beside glm-5, not its scheme "1"; the file says what it is. */
static void dots_in_names(void **state)
{
    (void)state;
    struct k25_library own = {.root = "."};
    char path[1024];
    size_t count;
    assert_int_equal(mkdir("model", 0777), 0);
    assert_int_equal(mkdir("model/zoo", 0777), 0);
    put_text("model/zoo/b.yaml", "k25sim: architecture\nversion: 1\n");
    put_text("model/zoo/b.1.yaml", "k25sim: architecture\nversion: 1\n");
    put_text("model/zoo/b.1.fp8.yaml", "k25sim: weights\nversion: 1\n");
    put_text("model/zoo/b.fp8.yaml", "k25sim: weights\nversion: 1\n");
    put_text("model/zoo/notes.txt", "");
    bool first = find(&own, K25_FILES_ARCHITECTURE, "b", "", path, NULL);
    bool second = find(&own, K25_FILES_ARCHITECTURE, "b.1", "", path, NULL);
    bool scheme = k25_library_find(&own, K25_FILES_WEIGHTS, "1", "b", "", path, sizeof path, NULL);
    bool weights = k25_library_find(&own, K25_FILES_WEIGHTS, "fp8", "b.1", "", path, sizeof path, NULL);
    char **names = k25_library_list(&own, K25_FILES_WEIGHTS, &count, NULL);
    size_t schemes = count;
    k25_library_free(names);
    names = k25_library_list(&own, K25_FILES_ARCHITECTURE, &count, NULL);
    k25_library_free(names);
    unlink("model/zoo/b.yaml");
    unlink("model/zoo/b.1.yaml");
    unlink("model/zoo/b.1.fp8.yaml");
    unlink("model/zoo/b.fp8.yaml");
    unlink("model/zoo/notes.txt");
    rmdir("model/zoo");
    rmdir("model");
    assert_true(first && second && !scheme && weights);
    assert_string_equal(path, "./model/zoo/b.1.fp8.yaml");
    assert_true(schemes == 2 && count == 2);
}

static void a_library_that_is_not_there(void **state)
{
    (void)state;
    struct k25_library none = {.root = "/nowhere"};
    struct k25_error error = {0};
    size_t count;
    char path[1024];
    assert_null(k25_library_list(&none, K25_FILES_MACHINE, &count, &error));
    assert_string_equal(error.message, "/nowhere/hw/machines: cannot be read");
    assert_int_equal(error.status, K25_RESOURCE);
    assert_false(find(&none, K25_FILES_MACHINE, "h200-8x-nvlink", "", path, &error));
    assert_string_equal(error.message, "unknown machine 'h200-8x-nvlink'; `k25sim list machines` shows what there is");
}

static void names_too_long(void **state)
{
    (void)state;
    struct k25_error error = {0};
    char name[2000], path[1024], small[16];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(find(&library, K25_FILES_MACHINE, name, "", path, &error));
    assert_string_equal(error.message, "a file name is too long");
    name[1000] = '/';
    assert_false(find(&library, K25_FILES_MACHINE, name, "", path, &error));
    assert_string_equal(error.message, "a file name is too long");
    assert_false(k25_library_find(&library, K25_FILES_MACHINE, "h200-8x-nvlink", "", "", small, sizeof small, &error));
    assert_string_equal(error.message, "a file name is too long");
}

static void fixed_files(void **state)
{
    (void)state;
    char path[1024], small[8];
    assert_true(k25_library_params(&library, path, sizeof path));
    assert_string_equal(path, K25_SOURCE_DIR "/hw/params/params.yaml");
    assert_true(k25_library_links(&library, path, sizeof path));
    assert_string_equal(path, K25_SOURCE_DIR "/hw/topology/links.yaml");
    assert_false(k25_library_params(&library, small, sizeof small));
    k25_library_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_files_of_their_kind),
        cmocka_unit_test(paths_are_relative_to_the_file_that_names_them),
        cmocka_unit_test(unknown_names_get_the_nearest),
        cmocka_unit_test(lists_are_sorted_and_apart),
        cmocka_unit_test(every_name_on_a_list_is_found),
        cmocka_unit_test(dots_in_names),
        cmocka_unit_test(a_library_that_is_not_there),
        cmocka_unit_test(names_too_long),
        cmocka_unit_test(fixed_files),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
