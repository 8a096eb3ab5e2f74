/* The tree, its positions, and everything that is refused. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/yaml.h"
#include "tests/unit/base_check.h"

static struct k25_yaml *tree(const char *text)
{
    struct k25_error error = {0};
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "x.yaml", &error);
    assert_string_equal(error.message, "");
    assert_non_null(yaml);
    return yaml;
}

static void refuse_bytes(const char *text, size_t size, const char *message)
{
    struct k25_error error = {0};
    assert_null(k25_yaml_parse(text, size, "x.yaml", &error));
    assert_error(error, K25_BAD_INPUT, message);
}

#define REFUSE(text, message) refuse_bytes(text, sizeof(text) - 1, message)

static void a_tree_with_places(void **state)
{
    (void)state;
    struct k25_yaml *yaml = tree("a: 1\nb:\n  - x\n  - 'y'\nc: {d: \"e\"}\nf: |\n  t\ng:\n");
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    assert_string_equal(k25_yaml_file(yaml), "x.yaml");
    assert_int_equal(root->kind, K25_YAML_MAPPING);
    assert_int_equal(root->count, 5);
    assert_string_equal(root->keys[2]->text, "c");
    assert_int_equal(root->keys[2]->line, 5);
    const struct k25_yaml_node *b = k25_yaml_get(root, "b");
    assert_int_equal(b->kind, K25_YAML_SEQUENCE);
    assert_int_equal(b->count, 2);
    assert_false(b->values[0]->quoted);
    assert_true(b->values[1]->quoted);
    assert_int_equal(b->values[1]->line, 4);
    assert_int_equal(b->values[1]->column, 5);
    assert_string_equal(k25_yaml_get(k25_yaml_get(root, "c"), "d")->text, "e");
    assert_string_equal(k25_yaml_get(root, "f")->text, "t\n");
    assert_true(k25_yaml_get(root, "f")->quoted);
    assert_string_equal(k25_yaml_get(root, "g")->text, "");
    assert_null(k25_yaml_get(root, "h"));
    assert_null(k25_yaml_get(b, "x"));
    assert_null(k25_yaml_get(NULL, "x"));
    assert_string_equal(k25_yaml_kind_name(b->kind), "a list");
    assert_string_equal(k25_yaml_kind_name(root->kind), "a mapping");
    assert_string_equal(k25_yaml_kind_name(K25_YAML_SCALAR), "a value");
    k25_yaml_free(yaml);
    k25_yaml_free(NULL);
}

static void a_byte_order_mark_has_no_column(void **state)
{
    (void)state;
    struct k25_yaml *yaml = tree("\xef\xbb\xbf"
                                 "a: 1\n");
    assert_int_equal(k25_yaml_root(yaml)->column, 1);
    assert_string_equal(k25_yaml_get(k25_yaml_root(yaml), "a")->text, "1");
    k25_yaml_free(yaml);
}

static void json_is_yaml(void **state)
{
    (void)state;
    struct k25_yaml *yaml = tree("{\n\t\"a\":1,\n\t\"b\" : [1.5e3,\ttrue, null],\r\n"
                                 "\t\"c\\/d\": \"\\u00e4\\u20ac\\n\\\"\",\n\t\"e\": {}, \"f\": []\n}\n");
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    assert_int_equal(root->count, 5);
    assert_string_equal(k25_yaml_get(root, "a")->text, "1");
    assert_string_equal(k25_yaml_get(root, "c/d")->text, "\xc3\xa4\xe2\x82\xac\n\"");
    assert_string_equal(k25_yaml_get(root, "b")->values[0]->text, "1.5e3");
    assert_int_equal(k25_yaml_get(root, "e")->count, 0);
    k25_yaml_free(yaml);
    REFUSE("{\"a\": \"\\ud83d\\ude00\"}",
           "x.yaml:1:10: found invalid Unicode character escape code while parsing a quoted scalar that starts in "
           "line 1");
}

static void every_config_parses(void **state)
{
    (void)state;
    static const char folder[] = K25_SOURCE_DIR "/tests/unit/model/configs";
    DIR *list = opendir(folder);
    assert_non_null(list);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        if (end == NULL || strcmp(end, ".json") != 0) {
            continue;
        }
        char path[4096];
        struct k25_error error = {0};
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct k25_yaml *yaml = k25_yaml_read(path, NULL, &error);
        assert_string_equal(error.message, "");
        assert_int_equal(k25_yaml_root(yaml)->kind, K25_YAML_MAPPING);
        k25_yaml_free(yaml);
        count++;
    }
    closedir(list);
    assert_true(count > 20);
}

static void no_document_or_two(void **state)
{
    (void)state;
    REFUSE("", "x.yaml:1:1: the file is empty, expected a mapping");
    REFUSE("\n# only a remark\n", "x.yaml:1:1: the file is empty, expected a mapping");
    REFUSE("---\n", "x.yaml:1:1: the file is empty, expected a mapping");
    refuse_bytes(NULL, 0, "x.yaml:1:1: the file is empty, expected a mapping");
    REFUSE("a: 1\n---\nb: 2\n", "x.yaml:2:1: a second document starts here, expected one a file");
    REFUSE("a: 1\n...\nb: 2\n", "x.yaml:3:1: did not find expected <document start>");
}

static void not_text(void **state)
{
    (void)state;
    REFUSE("a: 1\nb: \xe2\x82\xac\xff\n", "x.yaml:2:5: not UTF-8 text (byte 0xff)");
    REFUSE("\xc0\x80", "x.yaml:1:1: not UTF-8 text (byte 0xc0)");
    REFUSE("a\xed\xa0\x80", "x.yaml:1:2: not UTF-8 text (byte 0xed)");
    REFUSE("a\xf4\x90\x80\x80", "x.yaml:1:2: not UTF-8 text (byte 0xf4)");
    REFUSE("a\xe0\x80\x80", "x.yaml:1:2: not UTF-8 text (byte 0xe0)");
    REFUSE("a\xf0\x80\x80\x80", "x.yaml:1:2: not UTF-8 text (byte 0xf0)");
    REFUSE("ab\xe2\x82", "x.yaml:1:3: not UTF-8 text (byte 0xe2)");
    REFUSE("\xff\xfe"
           "a\0",
           "x.yaml:1:1: not UTF-8 text (byte 0xff)");
    REFUSE("a: 1\r\nb: \x01", "x.yaml:2:4: a control character (byte 0x01), expected text");
    REFUSE("a: \0", "x.yaml:1:4: a control character (byte 0x00), expected text");
    REFUSE("a: \xef\xbf\xbf", "x.yaml:1:4: control characters are not allowed"); /* U+FFFF, found by libyaml */
    REFUSE("a: \"x\\0y\"", "x.yaml:1:4: a zero byte in a text");
}

static void not_yaml(void **state)
{
    (void)state;
    REFUSE("a: [1, 2\nb: 3\n", "x.yaml:2:2: did not find expected ',' or ']' while parsing a flow sequence that "
                               "starts in line 1");
    REFUSE("a:\n\tb: 1\n", "x.yaml:2:1: a tab where only spaces may indent");
    REFUSE("a: 1\n  b: 2\n", "x.yaml:2:4: mapping values are not allowed in this context");
    REFUSE("a: \"x\n", "x.yaml:2:1: found unexpected end of stream while scanning a quoted scalar that starts in "
                       "line 1");
}

static void keys(void **state)
{
    (void)state;
    REFUSE("tp: 1\npp: 2\ntp: 3\n", "x.yaml:3:1: the key 'tp' is given twice, first in line 1");
    REFUSE("{b: 1, a: 2, b: 3, a: 4}", "x.yaml:1:14: the key 'b' is given twice, first in line 1");
    REFUSE("a:\n  'x': 1\n  x: 2\n", "x.yaml:3:3: the key 'x' is given twice, first in line 2");
    REFUSE("? [1]\n: 2\n", "x.yaml:1:3: a key that is a list, expected a value");
    REFUSE("{a: 1}: 2\n", "x.yaml:1:1: a key that is a mapping, expected a value");
}

static void tags(void **state)
{
    (void)state;
    struct k25_yaml *yaml = tree("a: !!str 4\nb: !!int '4'\nc: !!map {}\nd: !!seq []\ne: ! 4\nf: !!null ~\n");
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    assert_true(k25_yaml_get(root, "a")->quoted);
    assert_false(k25_yaml_get(root, "b")->quoted);
    assert_true(k25_yaml_get(root, "e")->quoted);
    k25_yaml_free(yaml);
    REFUSE("a: !!python/object:os.system x\n",
           "x.yaml:1:4: the tag 'tag:yaml.org,2002:python/object:os.system' is not valid for a value");
    REFUSE("a: !mine [1]\n", "x.yaml:1:4: the tag '!mine' is not valid for a list");
    REFUSE("a: !!map x\n", "x.yaml:1:4: the tag 'tag:yaml.org,2002:map' is not valid for a value");
}

static void aliases(void **state)
{
    (void)state;
    struct k25_yaml *yaml = tree("a: &x [1, 2]\nb: *x\nc: &x 3\nd: *x\n");
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    assert_ptr_equal(k25_yaml_get(root, "a"), k25_yaml_get(root, "b"));
    assert_string_equal(k25_yaml_get(root, "d")->text, "3");
    k25_yaml_free(yaml);
    REFUSE("a: *x\n", "x.yaml:1:4: the alias '*x' has no anchor '&x' before it");
    REFUSE("a: &x [1, *x]\n", "x.yaml:1:11: the alias '*x' contains itself");
    REFUSE("&x a: *x\nb: &y {c: [*y]}\n", "x.yaml:2:12: the alias '*y' contains itself");
}

static void an_alias_bomb_is_refused(void **state)
{
    (void)state;
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "a0: &a0 [x]\n");
    for (int i = 1; i < 10; i++) { /* ten times as many each line; a4 has 21,111 values, the ninth of it is too much */
        used += (size_t)snprintf(text + used, sizeof text - used, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "*a%d%s", i - 1, k < 9 ? "," : "]\n");
        }
    }
    refuse_bytes(text, used, "x.yaml:6:42: the alias '*a4' expands the file to more than 200000 values");
}

static void aliases_do_not_hide_depth(void **state)
{
    (void)state;
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "- &a0 []\n");
    for (int i = 1; i < 70; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "- &a%d [*a%d]\n", i, i - 1);
    }
    refuse_bytes(text, used, "x.yaml:64:9: the alias '*a62' nests deeper than 64");
}

static void many_anchors(void **state)
{
    (void)state;
    char text[8192];
    size_t used = 0;
    for (int i = 0; i < 257; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "- &a%d 1\n", i);
    }
    refuse_bytes(text, used, "x.yaml:257:3: more than 256 anchors");
}

static void depth(void **state)
{
    (void)state;
    size_t size = 100u << 20;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '[', size);
    refuse_bytes(text, size, "x.yaml:1:65: nested deeper than 64");
    memset(text + 64, ']', 64);
    struct k25_yaml *yaml = k25_yaml_parse(text, 128, "x.yaml", NULL);
    assert_non_null(yaml);
    k25_yaml_free(yaml);
    for (size_t i = 0; i < 65; i++) {
        memcpy(text + 4 * i, "{a: ", 4);
    }
    refuse_bytes(text, 260, "x.yaml:1:257: nested deeper than 64");
    free(text);
}

static void size_limits(void **state)
{
    (void)state;
    FILE *file = fopen("huge.yaml", "wb"); /* 100 MB of nothing on the disk */
    assert_int_equal(ftruncate(fileno(file), 100 << 20), 0);
    fclose(file);
    struct k25_error error = {0};
    assert_null(k25_yaml_read("huge.yaml", NULL, &error));
    assert_error(error, K25_BAD_INPUT, "huge.yaml: larger than 16,777,216 bytes, the most that is read");
    size_t size = 2 * (K25_YAML_NODES + 1);
    char *text = malloc(size);
    for (size_t i = 0; i < size; i += 2) {
        memcpy(text + i, "1,", 2);
    }
    memcpy(text, "[ ", 2); /* the list itself is a value too */
    refuse_bytes(text, size, "x.yaml:1:400001: more than 200000 values in one file");
    free(text);
}

static void reads_files(void **state)
{
    (void)state;
    struct k25_error error = {0};
    put_file("a.yaml", "a: 1\n", 5);
    struct k25_yaml *yaml = k25_yaml_read("a.yaml", NULL, &error);
    assert_non_null(yaml);
    assert_string_equal(k25_yaml_file(yaml), "a.yaml");
    k25_yaml_free(yaml);
    assert_null(k25_yaml_read("none.yaml", NULL, &error));
    assert_error(error, K25_BAD_INPUT, "none.yaml: no such file");
    assert_null(k25_yaml_read("/tmp", NULL, &error));
    assert_error(error, K25_BAD_INPUT, "/tmp: is a folder, expected a file");
}

/* A mapping of a hundred thousand keys must not be slow. */
static void wide(void **state)
{
    (void)state;
    size_t size = 2 << 20, used = 0;
    char *text = malloc(size);
    for (int i = 0; i < 99000; i++) {
        used += (size_t)snprintf(text + used, size - used, "k%d: 1\n", i);
    }
    struct k25_yaml *yaml = k25_yaml_parse(text, used, "x.yaml", NULL);
    assert_int_equal(k25_yaml_root(yaml)->count, 99000);
    k25_yaml_free(yaml);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_with_places),
        cmocka_unit_test(a_byte_order_mark_has_no_column),
        cmocka_unit_test(json_is_yaml),
        cmocka_unit_test(every_config_parses),
        cmocka_unit_test(no_document_or_two),
        cmocka_unit_test(not_text),
        cmocka_unit_test(not_yaml),
        cmocka_unit_test(keys),
        cmocka_unit_test(tags),
        cmocka_unit_test(aliases),
        cmocka_unit_test(an_alias_bomb_is_refused),
        cmocka_unit_test(aliases_do_not_hide_depth),
        cmocka_unit_test(many_anchors),
        cmocka_unit_test(depth),
        cmocka_unit_test(size_limits),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(wide),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
