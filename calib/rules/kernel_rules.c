#include "calib/rules/kernel_rules.h"

#include <ctype.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/schema.h"
#include "base/text.h"
#include "base/yaml.h"

const char *const k25_bucket_names[K25_BUCKETS + 1] = {
    [K25_BUCKET_PRODUCTS] = "products",   [K25_BUCKET_EXPERTS] = "experts", [K25_BUCKET_ATTENTION] = "attention",
    [K25_BUCKET_SMALL] = "small kernels", [K25_BUCKET_NONE] = "none",
};

enum { PARTS = 8 };

enum scope { SCOPE_BASE, SCOPE_NAME, SCOPE_REGEX, SCOPES };
static const char *const scope_keys[] = {"base", "name", "regex", NULL};
static const char *const rule_keys[] = {"class", "base", "name", "regex", NULL};
static const char *const class_keys[] = {"group", "collective", "bucket", NULL};
static const char *const root_keys[] = {"k25sim", "version", "classes", "rules", NULL};

struct part {
    const char *text;
    char kind; /* '^' starts, '!' does not occur, ' ' occurs */
};

struct pattern {
    enum scope scope;
    int class, line, file;
    size_t parts;
    struct part part[PARTS];
    regex_t regex;
};

struct k25_kernel_rules {
    struct k25_arena arena;
    const char *file[2];
    int files;
    struct k25_rule_class *class;
    size_t classes;
    struct pattern *pattern;  /* in the order of matching */
    size_t patterns, regexes; /* patterns whose regex is compiled, counted to free them */
};

struct loader {
    struct k25_kernel_rules *rules;
    const struct k25_yaml *yaml;
    struct k25_error *error;
};

static bool fail(struct loader *l, const struct k25_yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(struct loader *l, const struct k25_yaml_node *node, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return k25_fail_at(l->error, k25_yaml_file(l->yaml), node->line, node->column, "%s", message);
}

static bool no_memory(struct loader *l)
{
    return k25_fail(l->error, K25_RESOURCE, "%s: out of memory", k25_yaml_file(l->yaml));
}

static bool known_keys(struct loader *l, const struct k25_yaml_node *node, const char *const *keys)
{
    char hint[160];
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i]->text;
        int k = 0;
        while (keys[k] != NULL && strcmp(keys[k], key) != 0)
            k++;
        if (keys[k] == NULL)
            return k25_fail_at(l->error, k25_yaml_file(l->yaml), node->keys[i]->line, node->keys[i]->column,
                               "unknown key '%.80s'%s", key, k25_did_you_mean(key, keys, hint, sizeof hint));
    }
    return true;
}

static bool add_class(struct loader *l, const char *name, const char *group, bool collective, enum k25_bucket bucket)
{
    struct k25_kernel_rules *rules = l->rules;
    char *copy = k25_arena_copy(&rules->arena, name, strlen(name));
    char *bin = k25_arena_copy(&rules->arena, group, strlen(group));
    struct k25_rule_class *added = copy == NULL || bin == NULL ? NULL : K25_LIST_ADD(rules->class, rules->classes);
    if (added == NULL)
        return no_memory(l);
    *added = (struct k25_rule_class){copy, bin, collective, bucket};
    return true;
}

/* `bucket` keeps its value when `node` is not there. */
static bool read_bucket(struct loader *l, const struct k25_yaml_node *node, const char *class, enum k25_bucket *bucket)
{
    char hint[160];
    if (node == NULL)
        return true;
    const char *text = node->kind == K25_YAML_SCALAR ? node->text : "";
    for (enum k25_bucket b = 0; b < K25_BUCKETS; b++) {
        if (strcmp(k25_bucket_names[b], text) == 0) {
            *bucket = b;
            return true;
        }
    }
    return fail(l, node,
                "class '%.80s': bucket: unknown value '%.40s', expected one of products, experts, attention, "
                "small kernels, none%s",
                class, text, k25_did_you_mean(text, k25_bucket_names, hint, sizeof hint));
}

static bool read_class(struct loader *l, const struct k25_yaml_node *key, const struct k25_yaml_node *node)
{
    const struct k25_yaml_node *group = k25_yaml_get(node, "group"), *flag = k25_yaml_get(node, "collective");
    bool collective = false;
    if (node->kind != K25_YAML_MAPPING)
        return fail(l, node, "class '%.80s': expected a mapping of group, collective and bucket", key->text);
    if (!known_keys(l, node, class_keys))
        return false;
    if (k25_kernel_rules_find(l->rules, key->text) > 0)
        return fail(l, key, "class '%.80s' is there already", key->text);
    if (group != NULL && (group->kind != K25_YAML_SCALAR || group->text[0] == '\0'))
        return fail(l, group, "class '%.80s': group: expected a name", key->text);
    if (flag != NULL && (flag->kind != K25_YAML_SCALAR || !k25_parse_bool(flag->text, &collective)))
        return fail(l, flag, "class '%.80s': collective: expected true or false", key->text);
    enum k25_bucket bucket = collective ? K25_BUCKET_NONE : K25_BUCKET_SMALL;
    if (!read_bucket(l, k25_yaml_get(node, "bucket"), key->text, &bucket))
        return false;
    if (strcmp(key->text, "other") == 0) /* class 0 */
        return true;
    return add_class(l, key->text, group == NULL ? key->text : group->text, collective, bucket);
}

/* "nccl & allreduce & !grad" into its parts. */
static bool read_parts(struct loader *l, const struct k25_yaml_node *node, struct pattern *pattern)
{
    char *text = k25_arena_copy(&l->rules->arena, node->text, strlen(node->text)), *next;
    if (text == NULL)
        return no_memory(l);
    for (char *p = text; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    for (char *p = text; p != NULL; p = next) {
        next = strstr(p, " & ");
        if (next != NULL) {
            *next = '\0';
            next += 3;
        }
        char kind = *p == '^' || *p == '!' ? *p++ : ' ';
        if (*p == '\0')
            return fail(l, node, "'%.80s': a part of this pattern is empty", node->text);
        if (pattern->parts == PARTS)
            return fail(l, node, "'%.80s': more than 8 parts in one pattern", node->text);
        pattern->part[pattern->parts++] = (struct part){p, kind};
    }
    return true;
}

static bool read_regex(struct loader *l, const struct k25_yaml_node *node, struct pattern *pattern)
{
    int code = regcomp(&pattern->regex, node->text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (code == 0)
        return true;
    char why[200];
    regerror(code, &pattern->regex, why, sizeof why);
    pattern->scope = SCOPE_BASE; /* nothing to free */
    return fail(l, node, "no regular expression: %s", why);
}

static bool read_pattern(struct loader *l, const struct k25_yaml_node *node, enum scope scope, int class)
{
    struct k25_kernel_rules *rules = l->rules;
    if (node->kind != K25_YAML_SCALAR || node->text[0] == '\0')
        return fail(l, node, "%s: expected patterns in a list", scope_keys[scope]);
    struct pattern *pattern = K25_LIST_ADD(rules->pattern, rules->patterns);
    if (pattern == NULL)
        return no_memory(l);
    *pattern = (struct pattern){.scope = scope, .class = class, .line = node->line, .file = rules->files - 1};
    return scope == SCOPE_REGEX ? read_regex(l, node, pattern) : read_parts(l, node, pattern);
}

static bool unknown_class(struct loader *l, const struct k25_yaml_node *node)
{
    const struct k25_kernel_rules *rules = l->rules;
    const char **names = calloc(rules->classes + 1, sizeof *names);
    char hint[160];
    if (names == NULL)
        return no_memory(l);
    for (size_t i = 0; i < rules->classes; i++)
        names[i] = rules->class[i].name;
    k25_did_you_mean(node->text, names, hint, sizeof hint);
    free(names);
    return k25_fail_at(l->error, k25_yaml_file(l->yaml), node->line, node->column, "unknown class '%.80s'%s",
                       node->text, hint);
}

static bool read_rule(struct loader *l, const struct k25_yaml_node *node)
{
    const struct k25_yaml_node *name = k25_yaml_get(node, "class");
    size_t before = l->rules->patterns;
    if (node->kind != K25_YAML_MAPPING)
        return fail(l, node, "a rule: expected a mapping of class and base, name or regex");
    if (!known_keys(l, node, rule_keys))
        return false;
    if (name == NULL || name->kind != K25_YAML_SCALAR)
        return fail(l, name == NULL ? node : name, "class: expected the name of a class");
    int class = k25_kernel_rules_find(l->rules, name->text);
    if (class < 0)
        return unknown_class(l, name);
    for (size_t i = 0; i < node->count; i++) { /* in the order of the file */
        const struct k25_yaml_node *value = node->values[i];
        int scope = 0;
        while (scope < SCOPES && strcmp(scope_keys[scope], node->keys[i]->text) != 0)
            scope++;
        bool list = value->kind == K25_YAML_SEQUENCE;
        for (size_t j = 0; scope < SCOPES && j < (list ? value->count : 1); j++) {
            if (!read_pattern(l, list ? value->values[j] : value, (enum scope)scope, class))
                return false;
        }
    }
    return l->rules->patterns > before || fail(l, node, "a rule without patterns: expected base, name or regex");
}

static bool read_classes(struct loader *l)
{
    const struct k25_yaml_node *root = k25_yaml_root(l->yaml), *classes = k25_yaml_get(root, "classes");
    if (!k25_schema_head(l->yaml, "kernels", l->error) || !known_keys(l, root, root_keys))
        return false;
    if (classes == NULL)
        return true;
    if (classes->kind != K25_YAML_MAPPING)
        return fail(l, classes, "classes: expected a mapping");
    for (size_t i = 0; i < classes->count; i++) {
        if (!read_class(l, classes->keys[i], classes->values[i]))
            return false;
    }
    return true;
}

static bool read_rules(struct loader *l)
{
    const struct k25_yaml_node *root = k25_yaml_root(l->yaml), *rules = k25_yaml_get(root, "rules");
    if (rules == NULL || rules->kind != K25_YAML_SEQUENCE)
        return fail(l, rules == NULL ? root : rules, "rules: expected a list of rules");
    const char *file = k25_yaml_file(l->yaml);
    l->rules->file[l->rules->files] = k25_arena_copy(&l->rules->arena, file, strlen(file));
    if (l->rules->file[l->rules->files++] == NULL)
        return no_memory(l);
    for (size_t i = 0; i < rules->count; i++) {
        if (!read_rule(l, rules->values[i]))
            return false;
    }
    return true;
}

/* Classes of both, then the rules of the extra file, then the others. */
static struct k25_kernel_rules *build(const struct k25_yaml *yaml, const struct k25_yaml *extra,
                                      struct k25_error *error)
{
    struct k25_kernel_rules *rules = calloc(1, sizeof *rules);
    struct loader main = {rules, yaml, error}, front = {rules, extra, error};
    if (rules == NULL) {
        no_memory(&main);
        return NULL;
    }
    bool good = add_class(&main, "other", "Other", false, K25_BUCKET_SMALL) && read_classes(&main) &&
                (extra == NULL || (read_classes(&front) && read_rules(&front))) && read_rules(&main);
    if (good)
        return rules;
    k25_kernel_rules_free(rules);
    return NULL;
}

struct k25_kernel_rules *k25_kernel_rules_parse(const char *text, size_t size, const char *name, const char *extra,
                                                size_t extra_size, const char *extra_name, struct k25_error *error)
{
    struct k25_yaml *main = k25_yaml_parse(text, size, name, error);
    struct k25_yaml *front =
        main == NULL || extra == NULL ? NULL : k25_yaml_parse(extra, extra_size, extra_name, error);
    bool good = main != NULL && (extra == NULL || front != NULL);
    struct k25_kernel_rules *rules = good ? build(main, front, error) : NULL;
    k25_yaml_free(main);
    k25_yaml_free(front);
    return rules;
}

struct k25_kernel_rules *k25_kernel_rules_load(const char *path, const char *extra_path, struct k25_error *error)
{
    struct k25_yaml *main = k25_yaml_read(path, NULL, error);
    struct k25_yaml *front = main == NULL || extra_path == NULL ? NULL : k25_yaml_read(extra_path, NULL, error);
    bool good = main != NULL && (extra_path == NULL || front != NULL);
    struct k25_kernel_rules *rules = good ? build(main, front, error) : NULL;
    k25_yaml_free(main);
    k25_yaml_free(front);
    return rules;
}

void k25_kernel_rules_free(struct k25_kernel_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->patterns; i++) {
        if (rules->pattern[i].scope == SCOPE_REGEX)
            regfree(&rules->pattern[i].regex);
    }
    free(rules->pattern);
    free(rules->class);
    k25_arena_free(&rules->arena);
    free(rules);
}

/* ---- names ---- */

static bool starts(const char *text, const char *word)
{
    while (*word != '\0' && *text == *word) {
        text++;
        word++;
    }
    return *word == '\0';
}

static void lower(const char *name, char *out, size_t size)
{
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < size; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    out[i] = '\0';
}

/* The text after "std::enable_if<(8>(0)), void>::type "; its brackets do not pair, because '>' also compares. */
static const char *behind_enable_if(const char *name)
{
    static const char tail[] = ">::type ";
    const char *end = starts(name, "std::enable_if<") ? strstr(name, tail) : NULL;
    return end == NULL ? name : end + strlen(tail);
}

char *k25_kernel_base_name(const char *name, char *out, size_t size)
{
    char text[K25_KERNEL_NAME_BYTES];
    lower(name, text, sizeof text);
    if (starts(text, "_z")) {
        lower(name, out, size);
        return out;
    }
    const char *p = text;
    if (starts(p, "void "))
        p += strlen("void ");
    p = behind_enable_if(p);
    size_t used = 0;
    while (*p != '\0' && used + 1 < size) {
        const char *hidden = starts(p, "(anonymous namespace)") ? "(anonymous namespace)"
                             : starts(p, "<unnamed>")           ? "<unnamed>"
                                                                : NULL;
        if (hidden != NULL && used + strlen("{anon}") < size) {
            memcpy(out + used, "{anon}", 6);
            used += 6;
            p += strlen(hidden);
        } else if (*p == '<' || *p == '(') {
            break;
        } else {
            out[used++] = *p++;
        }
    }
    out[used] = '\0';
    return out;
}

static bool holds(const struct pattern *pattern, const char *text)
{
    for (size_t i = 0; i < pattern->parts; i++) {
        const struct part *part = &pattern->part[i];
        bool there = part->kind == '^' ? starts(text, part->text) : strstr(text, part->text) != NULL;
        if (there != (part->kind != '!'))
            return false;
    }
    return true;
}

int k25_kernel_rules_explain(const struct k25_kernel_rules *rules, const char *name, const char **file, int *line)
{
    char base[K25_KERNEL_NAME_BYTES], whole[K25_KERNEL_NAME_BYTES];
    k25_kernel_base_name(name, base, sizeof base);
    lower(name, whole, sizeof whole);
    for (size_t i = 0; i < rules->patterns; i++) {
        const struct pattern *pattern = &rules->pattern[i];
        bool hit = pattern->scope == SCOPE_REGEX ? regexec(&pattern->regex, whole, 0, NULL, 0) == 0
                                                 : holds(pattern, pattern->scope == SCOPE_BASE ? base : whole);
        if (!hit)
            continue;
        *file = rules->file[pattern->file];
        *line = pattern->line;
        return pattern->class;
    }
    *file = "";
    *line = 0;
    return 0;
}

int k25_kernel_rules_class(const struct k25_kernel_rules *rules, const char *name)
{
    const char *file;
    int line;
    return k25_kernel_rules_explain(rules, name, &file, &line);
}

int k25_kernel_rules_classes(const struct k25_kernel_rules *rules)
{
    return (int)rules->classes;
}

const struct k25_rule_class *k25_kernel_rules_describe(const struct k25_kernel_rules *rules, int class)
{
    return &rules->class[class];
}

int k25_kernel_rules_find(const struct k25_kernel_rules *rules, const char *class_name)
{
    for (size_t i = 0; i < rules->classes; i++) {
        if (strcmp(rules->class[i].name, class_name) == 0)
            return (int)i;
    }
    return -1;
}
