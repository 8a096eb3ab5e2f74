/* A prediction as JSON. */
#include "cli/render/inputs.h"
#include "cli/render/notes.h"
#include "cli/render/operators.h"
#include "cli/render/outputs.h"
#include "cli/render/render.h"

/* A record as its table has it, key by key. */
static json_t *record_json(const struct k25_field *fields, const void *record)
{
    json_t *object = json_object();
    for (const struct k25_field *field = fields; field->key != NULL; field++) {
        const char *member = (const char *)record + field->offset;
        json_t *value = NULL;
        switch (field->type) {
        case K25_TEXT:
            value = json_string(member);
            break;
        case K25_BOOL:
            value = json_boolean(*(const bool *)member);
            break;
        case K25_INT:
            value = json_integer(*(const int *)member);
            break;
        case K25_REAL:
            value = json_real(*(const double *)member);
            break;
        case K25_ENUM:
            value = json_string(field->names[*(const int *)member]);
            break;
        case K25_MAP:
            value = record_json(field->fields, member);
            break;
        case K25_NODE:
            value = json_null();
            break;
        }
        json_object_set_new(object, field->key, value);
    }
    return object;
}

static json_t *memory_json(const struct k25_memory *memory)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "capacity_bytes",
                     cli_json_real(memory->capacity), "budget_bytes", cli_json_real(memory->budget), "weights_bytes",
                     cli_json_real(memory->weights), "reserve_bytes", cli_json_real(memory->reserve),
                     "kv_bytes_per_token", cli_json_real(memory->kv_per_token), "state_bytes_per_sequence",
                     cli_json_real(memory->state_per_sequence), "kv_pool_bytes", cli_json_real(memory->pool_bytes),
                     "kv_pool_tokens", cli_json_real(memory->pool_tokens), "need_tokens",
                     cli_json_real(memory->need_tokens), "largest_batch", cli_json_real(memory->max_batch));
}

/* Members of the root in the order in which they are set. */
static void set(json_t *root, const char *key, json_t *value, bool *ok)
{
    *ok = json_object_set_new(root, key, value) == 0 && *ok;
}

static void set_text(json_t *root, const char *key, const char *text, bool *ok)
{
    set(root, key, json_string(text), ok);
}

static void set_real(json_t *root, const char *key, double value, bool *ok)
{
    set(root, key, cli_json_real(value), ok);
}

static void set_sentences(json_t *root, const char *key, const struct cli_sentences *sentences, bool *ok)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sentences->count; i++)
        *ok = json_array_append_new(list, json_string(sentences->text[i])) == 0 && *ok;
    set(root, key, list, ok);
}

static void set_intervals(json_t *root, const struct cli_answer *answer, bool *ok)
{
    json_t *intervals = json_object();
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        if (k25_output_has_interval(o))
            set(intervals, k25_output_names[o], cli_interval_json(&answer->intervals, o), ok);
    }
    set(root, "intervals", intervals, ok);
}

static void set_misfit(json_t *root, const struct cli_answer *answer, bool *ok)
{
    struct cli_fitting fitting;
    cli_what_fits(answer, &fitting);
    set_real(root, "missing_bytes", fitting.missing, ok);
    set(root, "would_fit",
        json_pack("{s:o, s:o, s:o}", "batch", fitting.batch >= 1 ? cli_json_real(fitting.batch) : json_null(),
                  "context", fitting.context >= 1 ? cli_json_real(fitting.context) : json_null(), "tp",
                  fitting.tp > 0 ? json_integer(fitting.tp) : json_null()),
        ok);
}

static void set_table(json_t *root, const char *key, struct cli_table *table, bool *ok, struct k25_error *error)
{
    set(root, key, cli_table_json(table, error), ok);
    cli_table_close(table);
}

bool cli_render_json(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error)
{
    const struct k25_scenario *s = &answer->scenario;
    const struct k25_prediction *p = &answer->prediction;
    struct cli_sentences sentences;
    struct cli_table table;
    json_t *root = json_object();
    bool ok = root != NULL;
    set_text(root, "scenario", s->name, &ok);
    set_text(root, "title", s->title, &ok);
    set_text(root, "architecture", s->architecture.name, &ok);
    set_text(root, "weights", s->weights.name, &ok);
    set_text(root, "machine", s->machine.name, &ok);
    set(root, "calibration", s->calibrated ? json_string(s->calibration.name) : json_null(), &ok);
    set(root, "plan", record_json(k25_plan_fields, &s->plan), &ok);
    ok = cli_set_outputs(root, &answer->question, p) && ok;
    if (p->memory.fits)
        set_intervals(root, answer, &ok);
    else
        set_misfit(root, answer, &ok);
    set(root, "memory", memory_json(&p->memory), &ok);
    if (p->memory.fits) {
        cli_operator_table(answer, false, &table);
        set_table(root, "operators", &table, &ok, error);
    }
    cli_assumptions(answer, &sentences);
    set_sentences(root, "assumptions", &sentences, &ok);
    cli_notes(answer, &sentences);
    set_sentences(root, "notes", &sentences, &ok);
    if (rendering->outputs) {
        cli_output_table(answer, &table);
        set_table(root, "outputs", &table, &ok, error);
    }
    if (rendering->inputs) {
        cli_input_table(answer, rendering->root, &table);
        set_table(root, "inputs", &table, &ok, error);
    }
    if (ok)
        return cli_print_json(root, error);
    json_decref(root);
    return k25_fail(error, K25_RESOURCE, "out of memory");
}
