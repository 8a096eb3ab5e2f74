#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/list.h"
#include "base/utf8.h"

struct k25_yaml {
    struct k25_arena arena;
    const char *file;
    const struct k25_yaml_node *root;
};

struct anchor {
    const char *name;
    const struct k25_yaml_node *node; /* NULL while the node it names is still being read */
    size_t weight;                    /* values below and including it, aliases expanded */
    int height;                       /* nested collections, aliases expanded */
};

struct builder {
    yaml_parser_t parser;
    struct k25_yaml *yaml;
    const char *text;
    size_t size;
    const struct k25_yaml_node **stack; /* entries of the collections that are still open */
    size_t used;
    struct anchor anchors[K25_YAML_ANCHORS];
    size_t anchor_count;
    size_t weight; /* of everything read so far */
    int deepest;   /* in the anchored node being read */
    struct k25_error *error;
};

static bool memory_fail(struct builder *builder)
{
    return k25_fail(builder->error, K25_RESOURCE, "%s: out of memory", builder->yaml->file);
}

/* The position of a libyaml mark, which counts from 0. */
#define AT(builder, mark) (builder)->error, (builder)->yaml->file, (int)(mark).line + 1, (int)(mark).column + 1

/* libyaml refuses these too, but reports only a byte offset. */
static bool check_text(struct builder *builder)
{
    const unsigned char *text = (const unsigned char *)builder->text;
    int line, column;
    for (size_t i = 0; i < builder->size;) {
        unsigned char c = text[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
            k25_locate(builder->text, i, &line, &column);
            return k25_fail_at(builder->error, builder->yaml->file, line, column,
                               "a control character (byte 0x%02x), expected text", c);
        }
        size_t length = k25_utf8_length(text + i, builder->size - i);
        if (length == 0) {
            k25_locate(builder->text, i, &line, &column);
            return k25_fail_at(builder->error, builder->yaml->file, line, column, "not UTF-8 text (byte 0x%02x)", c);
        }
        i += length;
    }
    return true;
}

/* The byte of the character number `index`. */
static char character_at(const struct builder *builder, size_t index)
{
    size_t i = 0;
    for (; i < builder->size && index > 0; index--) {
        do {
            i++;
        } while (i < builder->size && ((unsigned char)builder->text[i] & 0xc0) == 0x80);
    }
    return i < builder->size ? builder->text[i] : '\0';
}

static bool parser_fail(struct builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    const char *problem = parser->problem == NULL ? "not YAML" : parser->problem;
    int line, column;
    switch (parser->error) {
    case YAML_MEMORY_ERROR:
        return memory_fail(builder);
    case YAML_READER_ERROR:
        k25_locate(builder->text, parser->problem_offset < builder->size ? parser->problem_offset : builder->size,
                   &line, &column);
        return k25_fail_at(builder->error, builder->yaml->file, line, column, "%s", problem);
    default:
        break;
    }
    if (character_at(builder, parser->problem_mark.index) == '\t' && parser->error == YAML_SCANNER_ERROR) {
        return k25_fail_at(AT(builder, parser->problem_mark), "a tab where only spaces may indent");
    }
    if (parser->context == NULL) {
        return k25_fail_at(AT(builder, parser->problem_mark), "%s", problem);
    }
    return k25_fail_at(AT(builder, parser->problem_mark), "%s %s that starts in line %d", problem, parser->context,
                       (int)parser->context_mark.line + 1);
}

static bool next_event(struct builder *builder, yaml_event_t *event)
{
    return yaml_parser_parse(&builder->parser, event) != 0 || parser_fail(builder);
}

static bool push(struct builder *builder, const struct k25_yaml_node *node)
{
    const struct k25_yaml_node **pushed = K25_LIST_ADD(builder->stack, builder->used);
    if (pushed == NULL) {
        return memory_fail(builder);
    }
    *pushed = node;
    return true;
}

static struct anchor *find_anchor(struct builder *builder, const char *name)
{
    for (size_t i = 0; i < builder->anchor_count; i++) {
        if (strcmp(builder->anchors[i].name, name) == 0) {
            return &builder->anchors[i];
        }
    }
    return NULL;
}

/* A name given again means the new node from there on. NULL after an error. */
static struct anchor *open_anchor(struct builder *builder, const char *name, yaml_mark_t mark)
{
    struct anchor *anchor = find_anchor(builder, name);
    if (anchor == NULL) {
        if (builder->anchor_count == K25_YAML_ANCHORS) {
            k25_fail_at(AT(builder, mark), "more than %d anchors", K25_YAML_ANCHORS);
            return NULL;
        }
        const char *copy = k25_arena_copy(&builder->yaml->arena, name, strlen(name));
        if (copy == NULL) {
            memory_fail(builder);
            return NULL;
        }
        anchor = &builder->anchors[builder->anchor_count++];
        anchor->name = copy;
    }
    anchor->node = NULL;
    return anchor;
}

/* An alias is the node it names, counted as if it were written out: a few lines of aliases of aliases would otherwise
 * expand to a tree of exponential size. */
static const struct k25_yaml_node *take_alias(struct builder *builder, const yaml_event_t *event, int depth)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(builder, name);
    if (anchor == NULL) {
        k25_fail_at(AT(builder, event->start_mark), "the alias '*%s' has no anchor '&%s' before it", name, name);
        return NULL;
    }
    if (anchor->node == NULL) {
        k25_fail_at(AT(builder, event->start_mark), "the alias '*%s' contains itself", name);
        return NULL;
    }
    builder->weight += anchor->weight;
    if (builder->weight > K25_YAML_NODES) {
        k25_fail_at(AT(builder, event->start_mark), "the alias '*%s' expands the file to more than %d values", name,
                    K25_YAML_NODES);
        return NULL;
    }
    int deep = depth + anchor->height;
    if (deep > K25_YAML_DEPTH) {
        k25_fail_at(AT(builder, event->start_mark), "the alias '*%s' nests deeper than %d", name, K25_YAML_DEPTH);
        return NULL;
    }
    builder->deepest = deep > builder->deepest ? deep : builder->deepest;
    return anchor->node;
}

static bool tag_is(const char *tag, const char *name)
{
    static const char core[] = "tag:yaml.org,2002:";
    return strncmp(tag, core, sizeof core - 1) == 0 && strcmp(tag + sizeof core - 1, name) == 0;
}

/* Only the core tags that agree with the kind of the node; other tags ask for an object of some language. */
static bool check_tag(struct builder *builder, const yaml_char_t *given, enum k25_yaml_kind kind, yaml_mark_t mark)
{
    static const char *const allowed[K25_YAML_KINDS][6] = {
        [K25_YAML_SCALAR] = {"str", "int", "float", "bool", "null"},
        [K25_YAML_SEQUENCE] = {"seq"},
        [K25_YAML_MAPPING] = {"map"},
    };
    const char *tag = (const char *)given;
    if (tag == NULL || strcmp(tag, "!") == 0) {
        return true;
    }
    for (const char *const *name = allowed[kind]; *name != NULL; name++) {
        if (tag_is(tag, *name)) {
            return true;
        }
    }
    return k25_fail_at(AT(builder, mark), "the tag '%s' is not valid for %s", tag, k25_yaml_kind_name(kind));
}

static bool build_scalar(struct builder *builder, const yaml_event_t *event, struct k25_yaml_node *node)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    size_t length = event->data.scalar.length;
    if (strlen(text) != length) {
        return k25_fail_at(AT(builder, event->start_mark), "a zero byte in a text");
    }
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (tag != NULL) {
        node->quoted = tag_is(tag, "str") || strcmp(tag, "!") == 0;
    }
    node->text = k25_arena_copy(&builder->yaml->arena, text, length);
    return node->text != NULL || memory_fail(builder);
}

static const struct k25_yaml_node *build(struct builder *builder, const yaml_event_t *event, int depth);

/* Pushes every entry of an open collection until the event that ends it; a mapping's are key, value, key, ... */
static bool push_entries(struct builder *builder, enum k25_yaml_kind kind, int depth)
{
    bool key = kind == K25_YAML_MAPPING;
    for (;;) {
        yaml_event_t event;
        if (!next_event(builder, &event)) {
            return false;
        }
        bool end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        const struct k25_yaml_node *node = end ? NULL : build(builder, &event, depth);
        bool good = end || node != NULL;
        if (key && node != NULL && node->kind != K25_YAML_SCALAR) {
            good = k25_fail_at(AT(builder, event.start_mark), "a key that is %s, expected a value",
                               k25_yaml_kind_name(node->kind));
        }
        yaml_event_delete(&event);
        if (end || !good || !push(builder, node)) {
            return end;
        }
        key = kind == K25_YAML_MAPPING && !key;
    }
}

static int order_of_places(const struct k25_yaml_node *a, const struct k25_yaml_node *b)
{
    int order = (a->line > b->line) - (a->line < b->line);
    return order != 0 ? order : (a->column > b->column) - (a->column < b->column);
}

static int order_of_keys(const void *left, const void *right)
{
    const struct k25_yaml_node *a = *(const struct k25_yaml_node *const *)left;
    const struct k25_yaml_node *b = *(const struct k25_yaml_node *const *)right;
    int order = strcmp(a->text, b->text);
    return order != 0 ? order : order_of_places(a, b);
}

/* Sorted, so that a file of a hundred thousand keys does not take 1e10 comparisons. */
static bool check_keys(struct builder *builder, const struct k25_yaml_node *map)
{
    if (map->count < 2) {
        return true;
    }
    const struct k25_yaml_node **keys = malloc(map->count * sizeof *keys);
    if (keys == NULL) {
        return memory_fail(builder);
    }
    memcpy(keys, map->keys, map->count * sizeof *keys);
    qsort(keys, map->count, sizeof *keys, order_of_keys);
    const struct k25_yaml_node *first = NULL, *again = NULL;
    for (size_t i = 1; i < map->count; i++) {
        bool same = strcmp(keys[i - 1]->text, keys[i]->text) == 0;
        if (same && (again == NULL || order_of_places(keys[i], again) < 0)) {
            first = keys[i - 1];
            again = keys[i];
        }
    }
    free(keys);
    return again == NULL || k25_fail_at(builder->error, builder->yaml->file, again->line, again->column,
                                        "the key '%s' is given twice, first in line %d", again->text, first->line);
}

static bool build_collection(struct builder *builder, const yaml_event_t *event, struct k25_yaml_node *node, int depth)
{
    if (depth > K25_YAML_DEPTH) {
        return k25_fail_at(AT(builder, event->start_mark), "nested deeper than %d", K25_YAML_DEPTH);
    }
    builder->deepest = depth > builder->deepest ? depth : builder->deepest;
    size_t base = builder->used;
    if (!push_entries(builder, node->kind, depth)) {
        return false;
    }
    size_t pushed = builder->used - base;
    const struct k25_yaml_node **list = k25_arena_take(&builder->yaml->arena, pushed * sizeof *list);
    if (list == NULL) {
        return memory_fail(builder);
    }
    builder->used = base;
    if (node->kind == K25_YAML_SEQUENCE) {
        for (size_t i = 0; i < pushed; i++) {
            list[i] = builder->stack[base + i];
        }
        node->values = list;
        node->count = pushed;
        return true;
    }
    node->count = pushed / 2;
    for (size_t i = 0; i < node->count; i++) {
        list[i] = builder->stack[base + 2 * i];
        list[node->count + i] = builder->stack[base + 2 * i + 1];
    }
    node->keys = list;
    node->values = list + node->count;
    return check_keys(builder, node);
}

/* Kind, tag and anchor of the event that starts a node. */
static enum k25_yaml_kind describe(const yaml_event_t *event, const yaml_char_t **tag, const yaml_char_t **anchor)
{
    if (event->type == YAML_SCALAR_EVENT) {
        *tag = event->data.scalar.tag;
        *anchor = event->data.scalar.anchor;
        return K25_YAML_SCALAR;
    }
    bool map = event->type == YAML_MAPPING_START_EVENT;
    *tag = map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    *anchor = map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    return map ? K25_YAML_MAPPING : K25_YAML_SEQUENCE;
}

/* The node that starts with `event`, which is inside `depth` collections. NULL after an error. */
static const struct k25_yaml_node *build(struct builder *builder, const yaml_event_t *event, int depth)
{
    if (event->type == YAML_ALIAS_EVENT) {
        return take_alias(builder, event, depth);
    }
    size_t before = builder->weight++;
    if (builder->weight > K25_YAML_NODES) {
        k25_fail_at(AT(builder, event->start_mark), "more than %d values in one file", K25_YAML_NODES);
        return NULL;
    }
    const yaml_char_t *tag, *name;
    enum k25_yaml_kind kind = describe(event, &tag, &name);
    struct anchor *anchor = NULL;
    if (!check_tag(builder, tag, kind, event->start_mark) ||
        (name != NULL && (anchor = open_anchor(builder, (const char *)name, event->start_mark)) == NULL)) {
        return NULL;
    }
    struct k25_yaml_node *node = k25_arena_take(&builder->yaml->arena, sizeof *node);
    if (node == NULL) {
        memory_fail(builder);
        return NULL;
    }
    node->kind = kind;
    node->line = (int)event->start_mark.line + 1;
    node->column = (int)event->start_mark.column + 1;
    int outside = builder->deepest;
    builder->deepest = depth;
    if (kind == K25_YAML_SCALAR ? !build_scalar(builder, event, node)
                                : !build_collection(builder, event, node, depth + 1)) {
        return NULL;
    }
    if (anchor != NULL) {
        anchor->node = node;
        anchor->weight = builder->weight - before;
        anchor->height = builder->deepest - depth;
    }
    builder->deepest = outside > builder->deepest ? outside : builder->deepest;
    return node;
}

/* Takes the next event, which must be of `type`; `otherwise` says what is wrong when it is not. */
static bool expect(struct builder *builder, yaml_event_type_t type, const char *otherwise)
{
    yaml_event_t event;
    if (!next_event(builder, &event)) {
        return false;
    }
    bool good = event.type == type || k25_fail_at(AT(builder, event.start_mark), "%s", otherwise);
    yaml_event_delete(&event);
    return good;
}

static bool build_root(struct builder *builder)
{
    static const char empty[] = "the file is empty, expected a mapping";
    if (!expect(builder, YAML_STREAM_START_EVENT, "no start")) {
        return false;
    }
    yaml_event_t event;
    if (!next_event(builder, &event)) {
        return false;
    }
    bool nothing = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    if (nothing) {
        return k25_fail_at(builder->error, builder->yaml->file, 1, 1, empty);
    }
    if (!next_event(builder, &event)) {
        return false;
    }
    const struct k25_yaml_node *root = build(builder, &event, 0);
    yaml_event_delete(&event);
    if (root == NULL) {
        return false;
    }
    if (root->kind == K25_YAML_SCALAR && !root->quoted && root->text[0] == '\0') {
        return k25_fail_at(builder->error, builder->yaml->file, 1, 1, empty); /* "---" alone */
    }
    builder->yaml->root = root;
    return expect(builder, YAML_DOCUMENT_END_EVENT, "text after the document") &&
           expect(builder, YAML_STREAM_END_EVENT, "a second document starts here, expected one a file");
}

static bool parse(struct builder *builder)
{
    if (!check_text(builder)) {
        return false;
    }
    if (!yaml_parser_initialize(&builder->parser)) {
        return memory_fail(builder);
    }
    yaml_parser_set_encoding(&builder->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&builder->parser, (const unsigned char *)builder->text, builder->size);
    bool good = build_root(builder);
    yaml_parser_delete(&builder->parser);
    free(builder->stack);
    return good;
}

struct k25_yaml *k25_yaml_parse(const char *text, size_t size, const char *name, struct k25_error *error)
{
    struct k25_yaml *yaml = calloc(1, sizeof *yaml);
    if (yaml == NULL || (yaml->file = k25_arena_copy(&yaml->arena, name, strlen(name))) == NULL) {
        free(yaml);
        k25_fail(error, K25_RESOURCE, "%s: out of memory", name);
        return NULL;
    }
    if (size == 0) {
        text = ""; /* libyaml refuses NULL */
    }
    /* A byte order mark does not count as a character of the first line. */
    bool mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    struct builder builder = {
        .yaml = yaml, .text = mark ? text + 3 : text, .size = mark ? size - 3 : size, .error = error};
    if (!parse(&builder)) {
        k25_yaml_free(yaml);
        return NULL;
    }
    return yaml;
}

struct k25_yaml *k25_yaml_read(const char *path, struct k25_inputs *inputs, struct k25_error *error)
{
    size_t size;
    char *text = k25_file_read(path, K25_YAML_BYTES, &size, error);
    if (text == NULL) {
        return NULL;
    }
    bool recorded = inputs == NULL || k25_inputs_record_file(inputs, path, text, size, error);
    struct k25_yaml *yaml = recorded ? k25_yaml_parse(text, size, path, error) : NULL;
    free(text);
    return yaml;
}

void k25_yaml_free(struct k25_yaml *yaml)
{
    if (yaml != NULL) {
        k25_arena_free(&yaml->arena);
        free(yaml);
    }
}

const struct k25_yaml_node *k25_yaml_root(const struct k25_yaml *yaml)
{
    return yaml->root;
}

const char *k25_yaml_file(const struct k25_yaml *yaml)
{
    return yaml->file;
}
