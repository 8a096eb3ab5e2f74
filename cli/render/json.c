/* A prediction as JSON. */
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

static void set_step(json_t *root, const struct k25_prediction *p, bool *ok)
{
    set_real(root, "step_ms", p->step * 1e3, ok);
    set_real(root, "tpot_ms", p->tpot * 1e3, ok);
    set_real(root, "tok_s", p->tok_s, ok);
    set_real(root, "tokens_per_step", p->tokens_per_step, ok);
    set_real(root, "gpu_busy_ms", p->gpu_busy * 1e3, ok);
    set_real(root, "kernels_ms", p->kernels * 1e3, ok);
    set_real(root, "allreduce_ms", p->allreduce * 1e3, ok);
    set_real(root, "allreduce_transfer_ms", p->allreduce_transfer * 1e3, ok);
    set_real(root, "allreduce_wait_ms", p->allreduce_wait * 1e3, ok);
    set_real(root, "allreduce_share", p->allreduce_share, ok);
    set_real(root, "other_collectives_ms", p->other_collectives * 1e3, ok);
    set_real(root, "draft_ms", p->draft * 1e3, ok);
    set_real(root, "gaps_ms", p->gaps * 1e3, ok);
    set_real(root, "bubble_ms", p->bubble * 1e3, ok);
    set_real(root, "host_ms", p->host * 1e3, ok);
    set_real(root, "launches", p->launches, ok);
    set_real(root, "allreduces", p->allreduces, ok);
    set_real(root, "distinct_experts", p->step_work.experts, ok);
    set_real(root, "distinct_experts_fullest_rank", p->step_work.experts_rank, ok);
}

static void set_intervals(json_t *root, const struct cli_answer *answer, bool *ok)
{
    static const struct {
        const char *key;
        enum k25_output output;
        double scale; /* SI to the unit of the key */
    } outputs[] = {
        {"step_ms", K25_OUT_STEP, 1e3},
        {"tpot_ms", K25_OUT_TPOT, 1e3},
        {"tok_s", K25_OUT_TOK_S, 1},
        {"gpu_busy_ms", K25_OUT_GPU_BUSY, 1e3},
        {"kernels_ms", K25_OUT_KERNELS, 1e3},
        {"allreduce_ms", K25_OUT_ALLREDUCE, 1e3},
        {"allreduce_transfer_ms", K25_OUT_ALLREDUCE_TRANSFER, 1e3},
        {"allreduce_wait_ms", K25_OUT_ALLREDUCE_WAIT, 1e3},
        {"allreduce_share", K25_OUT_ALLREDUCE_SHARE, 1},
        {"other_collectives_ms", K25_OUT_OTHER_COLLECTIVES, 1e3},
        {"draft_ms", K25_OUT_DRAFT, 1e3},
        {"bubble_ms", K25_OUT_BUBBLE, 1e3},
        {"gaps_ms", K25_OUT_GAPS, 1e3},
        {"host_ms", K25_OUT_HOST, 1e3},
    };
    json_t *intervals = json_object();
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const struct k25_interval *interval = &answer->intervals.output[outputs[i].output];
        set(intervals, outputs[i].key,
            json_pack("[o, o]", cli_json_real(interval->low * outputs[i].scale),
                      cli_json_real(interval->high * outputs[i].scale)),
            ok);
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
    set(root, "fits", json_boolean(p->memory.fits), &ok);
    if (p->memory.fits) {
        set_step(root, p, &ok);
        set_intervals(root, answer, &ok);
    } else {
        set_misfit(root, answer, &ok);
    }
    set(root, "memory", memory_json(&p->memory), &ok);
    if (p->memory.fits) {
        cli_operator_table(answer, false, &table);
        set_table(root, "operators", &table, &ok, error);
    }
    cli_assumptions(answer, &sentences);
    set_sentences(root, "assumptions", &sentences, &ok);
    cli_notes(answer, &sentences);
    set_sentences(root, "notes", &sentences, &ok);
    if (rendering->inputs) {
        cli_input_table(answer, rendering->root, &table);
        set_table(root, "inputs", &table, &ok, error);
    }
    if (ok)
        return cli_print_json(root, error);
    json_decref(root);
    return k25_fail(error, K25_RESOURCE, "out of memory");
}
