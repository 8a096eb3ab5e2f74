#include "base/schema.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Values of enums are stored as ints: so wide are all enums that have no larger values, on the systems we build for. */
_Static_assert(sizeof(enum k25_type) == sizeof(int), "an enum is as wide as an int");

enum { KEYS = 128, LISTED = 12, PATH = 512 };

/* The position of a value: in a file, or on the command line. */
struct place {
    const char *file;
    int line, column;
    const char *path;     /* "plan.tp" */
    const char *override; /* the text after "--set path=", NULL for a file */
};

/* "plan.yaml:9:7: plan.tp: ..." or "--set plan.tp=7: ...". */
static bool fail_value(const struct place *place, struct k25_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail_value(const struct place *place, struct k25_error *error, const char *format, ...)
{
    char text[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (place->override != NULL) {
        return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: %s", place->path, place->override, text);
    }
    return k25_fail_at(error, place->file, place->line, place->column, "%s: %s", place->path, text);
}

static bool join(const char *prefix, const char *key, char out[PATH], struct k25_error *error)
{
    int length = snprintf(out, PATH, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", key);
    return (length >= 0 && length < PATH) || k25_fail(error, K25_BAD_INPUT, "the path '%.100s...' is too long", out);
}

/* "a, b, c" of a NULL-terminated list. */
static const char *list_names(const char *const *names, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; names[i] != NULL && used < size; i++) {
        int length = snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", names[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    return out;
}

static size_t list_keys(const struct k25_field *fields, const char *keys[KEYS + 1])
{
    size_t count = 0;
    for (; fields[count].key != NULL && count < KEYS; count++) {
        keys[count] = fields[count].key;
    }
    keys[count] = NULL;
    return count;
}

/* "unknown key 'tpp' in plan, did you mean 'tp'?"; without a near name, all keys if they are few. */
static const char *unknown_key(const struct k25_field *fields, const char *prefix, const char *key, char *out,
                               size_t size)
{
    const char *keys[KEYS + 1];
    size_t count = list_keys(fields, keys);
    char hint[512], list[480];
    k25_did_you_mean(key, keys, hint, sizeof hint);
    if (hint[0] == '\0' && count > 0 && count <= LISTED) {
        snprintf(hint, sizeof hint, ", expected one of %s", list_names(keys, list, sizeof list));
    }
    snprintf(out, size, "unknown key '%s'%s%s%s", key, prefix[0] == '\0' ? "" : " in ", prefix, hint);
    return out;
}

static const struct k25_field *find_field(const struct k25_field *fields, const char *key, size_t length)
{
    for (; fields->key != NULL; fields++) {
        if (strlen(fields->key) == length && memcmp(fields->key, key, length) == 0) {
            return fields;
        }
    }
    return NULL;
}

/* A parsed value, before it is stored: a bad one leaves the record unchanged. */
union value {
    const char *text;
    bool truth;
    int number;
    double real;
};

static const char *expectation(enum k25_type type)
{
    switch (type) {
    case K25_BOOL:
        return "true or false";
    case K25_INT:
        return "a whole number";
    case K25_REAL:
        return "a number";
    case K25_MAP:
        return "a mapping";
    case K25_TEXT:
    case K25_ENUM:
    case K25_NODE:
        break;
    }
    return "a value";
}

/* ", expected 1 to 1024" and its open forms. */
static bool fail_range(const struct place *place, const char *text, double min, double max, struct k25_error *error)
{
    char low[40], high[40];
    k25_text_real(min, low, sizeof low);
    k25_text_real(max, high, sizeof high);
    if (isinf(max)) {
        return fail_value(place, error, "%s is out of range, expected at least %s", text, low);
    }
    if (isinf(min)) {
        return fail_value(place, error, "%s is out of range, expected at most %s", text, high);
    }
    return fail_value(place, error, "%s is out of range, expected %s to %s", text, low, high);
}

static bool parse_number(const struct k25_field *field, const struct place *place, const char *text, bool fallback,
                         union value *value, struct k25_error *error)
{
    bool whole = field->type == K25_INT, any = (field->min == 0 && field->max == 0) || fallback;
    double number;
    /* Digits that overflow a long long are still a whole number, out of range. */
    if (!k25_parse_real(text, &number) || (whole && strpbrk(text, ".eE") != NULL)) {
        return fail_value(place, error, "'%s' is not %s", text, expectation(field->type));
    }
    double min = any ? -INFINITY : field->min, max = any ? INFINITY : field->max;
    bool inside = number >= min && number <= max;
    if (!whole) {
        value->real = number;
        return inside || fail_range(place, text, min, max, error);
    }
    if (!inside || number < INT_MIN || number > INT_MAX) {
        bool open = max >= INT_MAX && min > INT_MIN && number < min;
        return fail_range(place, text, min > INT_MIN ? min : INT_MIN, open ? INFINITY : fmin(max, INT_MAX), error);
    }
    value->number = (int)number;
    return true;
}

static bool parse_enum(const struct k25_field *field, const struct place *place, const char *text, union value *value,
                       struct k25_error *error)
{
    for (int i = 0; field->names[i] != NULL; i++) {
        if (strcmp(field->names[i], text) == 0) {
            value->number = i;
            return true;
        }
    }
    char list[480], hint[128];
    return fail_value(place, error, "unknown value '%s', expected one of %s%s", text,
                      list_names(field->names, list, sizeof list),
                      k25_did_you_mean(text, field->names, hint, sizeof hint));
}

static bool parse_value(const struct k25_field *field, const struct place *place, const char *text, bool fallback,
                        union value *value, struct k25_error *error)
{
    switch (field->type) {
    case K25_TEXT:
        value->text = text;
        return strlen(text) < field->size ||
               fail_value(place, error, "a text of %zu bytes, expected at most %zu", strlen(text), field->size - 1);
    case K25_BOOL:
        return k25_parse_bool(text, &value->truth) || fail_value(place, error, "'%s' is not true or false", text);
    case K25_INT:
    case K25_REAL:
        return parse_number(field, place, text, fallback, value, error);
    case K25_ENUM:
        return parse_enum(field, place, text, value, error);
    case K25_MAP:
    case K25_NODE:
        break;
    }
    return fail_value(place, error, "not a single value");
}

static void store(const struct k25_field *field, const union value *value, void *record)
{
    char *member = (char *)record + field->offset;
    switch (field->type) {
    case K25_TEXT:
        memset(member, 0, field->size);
        memcpy(member, value->text, strlen(value->text));
        break;
    case K25_BOOL:
        memcpy(member, &value->truth, sizeof value->truth);
        break;
    case K25_INT:
    case K25_ENUM:
        memcpy(member, &value->number, sizeof value->number);
        break;
    case K25_REAL:
        memcpy(member, &value->real, sizeof value->real);
        break;
    case K25_MAP:
    case K25_NODE:
        break;
    }
}

/* Parses, records and stores a value, in this order: each step may fail, and only the last one changes `record`.
 */
static bool take(const struct k25_field *field, const struct place *place, const char *text, enum k25_origin origin,
                 void *record, struct k25_inputs *inputs, struct k25_error *error)
{
    union value value;
    if (!parse_value(field, place, text, origin == K25_FROM_DEFAULT, &value, error)) {
        return false;
    }
    bool nowhere = origin == K25_FROM_DEFAULT; /* a default has no position in a file */
    struct k25_input input = {
        .path = (char *)(uintptr_t)place->path,
        .value = (char *)(uintptr_t)text,
        .unit = (char *)(uintptr_t)field->unit,
        .origin = origin,
        .file = nowhere ? NULL : (char *)(uintptr_t)place->file,
        .line = nowhere ? 0 : place->line,
        .column = nowhere ? 0 : place->column,
    };
    if (inputs != NULL && !k25_inputs_record(inputs, input, error)) {
        return false;
    }
    store(field, &value, record);
    return true;
}

/* What is constant while a file is loaded. */
struct loader {
    const char *file;
    struct k25_inputs *inputs;
    struct k25_error *error;
    bool partial; /* members whose key is absent keep their values */
};

static bool is_null(const struct k25_yaml_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != K25_YAML_SCALAR || node->quoted) {
        return false;
    }
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (strcmp(node->text, nulls[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool load_map(const struct loader *loader, const struct k25_field *fields, const char *prefix,
                     const struct k25_yaml_node *node, bool top, void *record);

static bool load_absent(const struct loader *loader, const struct k25_field *field, const struct place *place,
                        void *record)
{
    char *member = (char *)record + field->offset;
    if (field->type == K25_NODE) {
        memset(member, 0, sizeof(const struct k25_yaml_node *));
        return true;
    }
    if (field->type != K25_MAP) {
        return take(field, place, field->fallback, K25_FROM_DEFAULT, record, loader->inputs, loader->error);
    }
    return load_map(loader, field->fields, place->path, NULL, false, member);
}

static bool load_scalar(const struct loader *loader, const struct k25_field *field, const struct place *place,
                        const struct k25_yaml_node *value, void *record)
{
    bool number = field->type == K25_BOOL || field->type == K25_INT || field->type == K25_REAL;
    if (value->kind != K25_YAML_SCALAR) {
        return fail_value(place, loader->error, "expected %s, found %s", expectation(field->type),
                          k25_yaml_kind_name(value->kind));
    }
    if (number && value->quoted) {
        return fail_value(place, loader->error, "'%s' is text in quotes, expected %s", value->text,
                          expectation(field->type));
    }
    return take(field, place, value->text, K25_FROM_FILE, record, loader->inputs, loader->error);
}

/* Sets all members of a table to zero; the table has the sizes of the members, not of the struct. */
static void clear(const struct k25_field *fields, void *record)
{
    static const char empty[] = "";
    for (; fields->key != NULL; fields++) {
        union value zero;
        memset(&zero, 0, sizeof zero);
        if (fields->type == K25_MAP) {
            clear(fields->fields, (char *)record + fields->offset);
        } else if (fields->type == K25_NODE) {
            memset((char *)record + fields->offset, 0, sizeof(const struct k25_yaml_node *));
        } else {
            if (fields->type == K25_TEXT) {
                zero.text = empty;
            }
            store(fields, &zero, record);
        }
    }
}

/* `node` is the mapping that has (or should have) the field, NULL when the mapping is absent. */
static bool load_field(const struct loader *loader, const struct k25_field *field, const char *prefix,
                       const struct k25_yaml_node *node, void *record)
{
    const struct k25_yaml_node *value = k25_yaml_get(node, field->key);
    char path[PATH];
    if (value == NULL && loader->partial) {
        return true;
    }
    if (!join(prefix, field->key, path, loader->error)) {
        return false;
    }
    const struct k25_yaml_node *found = value != NULL ? value : node;
    struct place place = {.file = loader->file, .path = path};
    place.line = found == NULL ? 0 : found->line;
    place.column = found == NULL ? 0 : found->column;
    if (value == NULL && field->fallback == NULL) {
        return k25_fail_at(loader->error, place.file, place.line, place.column, "missing key '%s'%s%s", field->key,
                           prefix[0] == '\0' ? "" : " in ", prefix);
    }
    if (value == NULL || is_null(value)) {
        if (field->fallback == NULL) {
            return fail_value(&place, loader->error, "no value, expected %s", expectation(field->type));
        }
        if (field->type == K25_MAP && field->fallback[0] == '\0') {
            clear(field->fields, (char *)record + field->offset);
            return true;
        }
        return load_absent(loader, field, &place, record);
    }
    if (field->type == K25_NODE) {
        memcpy((char *)record + field->offset, &value, sizeof value);
        return true;
    }
    if (field->type == K25_MAP) {
        return load_map(loader, field->fields, path, value, false, (char *)record + field->offset);
    }
    return load_scalar(loader, field, &place, value, record);
}

static bool is_head(const struct k25_yaml_node *node, const char *key)
{
    return k25_yaml_get(node, "k25sim") != NULL && (strcmp(key, "k25sim") == 0 || strcmp(key, "version") == 0);
}

static bool load_map(const struct loader *loader, const struct k25_field *fields, const char *prefix,
                     const struct k25_yaml_node *node, bool top, void *record)
{
    if (node != NULL && node->kind != K25_YAML_MAPPING) {
        return k25_fail_at(loader->error, loader->file, node->line, node->column, "%s%sexpected a mapping, found %s",
                           prefix, prefix[0] == '\0' ? "" : ": ", k25_yaml_kind_name(node->kind));
    }
    /* Unknown keys first: a misspelled required key is better reported as unknown than as missing. */
    for (size_t i = 0; node != NULL && i < node->count; i++) {
        const struct k25_yaml_node *key = node->keys[i];
        if (find_field(fields, key->text, strlen(key->text)) == NULL && !(top && is_head(node, key->text))) {
            char text[sizeof loader->error->message];
            return k25_fail_at(loader->error, loader->file, key->line, key->column, "%s",
                               unknown_key(fields, prefix, key->text, text, sizeof text));
        }
    }
    for (const struct k25_field *field = fields; field->key != NULL; field++) {
        if (!load_field(loader, field, prefix, node, record)) {
            return false;
        }
    }
    return true;
}

bool k25_schema_load(const struct k25_field *fields, const char *prefix, const struct k25_yaml_node *node,
                     const char *file, void *record, struct k25_inputs *inputs, struct k25_error *error)
{
    struct loader loader = {.file = file, .inputs = inputs, .error = error};
    return load_map(&loader, fields, prefix, node, true, record);
}

bool k25_schema_change(const struct k25_field *fields, const char *prefix, const struct k25_yaml_node *node,
                       const char *file, void *record, struct k25_inputs *inputs, struct k25_error *error)
{
    struct loader loader = {.file = file, .inputs = inputs, .error = error, .partial = true};
    return load_map(&loader, fields, prefix, node, true, record);
}

/* Descends one table per call; `prefix` is the path so far. */
static bool set(const struct k25_field *fields, const char *prefix, const char *path, const struct place *place,
                void *record, struct k25_inputs *inputs, struct k25_error *error)
{
    size_t length = strcspn(path, ".");
    const struct k25_field *field = find_field(fields, path, length);
    char key[PATH], here[PATH], text[sizeof error->message];
    snprintf(key, sizeof key, "%.*s", (int)(length < PATH ? length : PATH - 1), path);
    const char *rest = path[length] == '.' ? path + length + 1 : NULL;
    if (field == NULL) {
        return k25_fail(error, K25_BAD_INPUT, "--set %s=%s: %s", place->path, place->override,
                        unknown_key(fields, prefix, key, text, sizeof text));
    }
    if (!join(prefix, key, here, error)) {
        return false;
    }
    if (field->type == K25_MAP && rest != NULL) {
        return set(field->fields, here, rest, place, (char *)record + field->offset, inputs, error);
    }
    if (field->type == K25_MAP) {
        const char *keys[KEYS + 1];
        char list[480];
        list_keys(field->fields, keys);
        return fail_value(place, error, "%s is a mapping, expected one of its keys: %s", here,
                          list_names(keys, list, sizeof list));
    }
    if (field->type == K25_NODE) {
        return fail_value(place, error, "%s is a list or a mapping, which only the file can set", here);
    }
    if (rest != NULL) {
        return fail_value(place, error, "%s is a single value, it has no key '%s'", here, rest);
    }
    return take(field, place, place->override, K25_FROM_OVERRIDE, record, inputs, error);
}

bool k25_schema_set(const struct k25_field *fields, const char *prefix, const char *path, const char *value,
                    void *record, struct k25_inputs *inputs, struct k25_error *error)
{
    char full[PATH];
    if (!join(prefix, path, full, error)) {
        return false;
    }
    struct place place = {.file = "--set", .path = full, .override = value};
    return set(fields, prefix, path, &place, record, inputs, error);
}

void k25_schema_visit(const struct k25_field *fields, const char *prefix, k25_schema_visitor *visit, void *context)
{
    for (; fields->key != NULL; fields++) {
        char path[PATH];
        if (fields->type == K25_NODE || !join(prefix, fields->key, path, NULL)) {
            continue;
        }
        if (fields->type == K25_MAP) {
            k25_schema_visit(fields->fields, path, visit, context);
        } else {
            visit(context, path, fields);
        }
    }
}

bool k25_schema_head(const struct k25_yaml *yaml, const char *kind, struct k25_error *error)
{
    const char *file = k25_yaml_file(yaml);
    const struct k25_yaml_node *root = k25_yaml_root(yaml);
    if (root->kind != K25_YAML_MAPPING) {
        return k25_fail_at(error, file, root->line, root->column,
                           "expected a mapping that starts with 'k25sim: %s', found %s", kind,
                           k25_yaml_kind_name(root->kind));
    }
    const struct k25_yaml_node *given = k25_yaml_get(root, "k25sim"), *version = k25_yaml_get(root, "version");
    if (given == NULL) {
        return k25_fail_at(error, file, root->line, root->column,
                           "missing key 'k25sim', expected a mapping that starts with 'k25sim: %s'", kind);
    }
    if (given->kind != K25_YAML_SCALAR || strcmp(given->text, kind) != 0) {
        return k25_fail_at(error, file, given->line, given->column, "k25sim: %s%s%s, expected '%s'",
                           given->text == NULL ? k25_yaml_kind_name(given->kind) : "the file is of kind '",
                           given->text == NULL ? "" : given->text, given->text == NULL ? "" : "'", kind);
    }
    if (version == NULL) {
        return k25_fail_at(error, file, root->line, root->column, "missing key 'version', expected 'version: 1'");
    }
    if (version->kind != K25_YAML_SCALAR || strcmp(version->text, "1") != 0) {
        return k25_fail_at(error, file, version->line, version->column, "version: %s is not supported, expected 1",
                           version->text == NULL ? k25_yaml_kind_name(version->kind) : version->text);
    }
    return true;
}
