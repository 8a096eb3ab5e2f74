/* The cells of the axes as text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scenarios/sweep/texts_internal.h"

/* Truth and numbers stand bare in JSON, and in its own spelling; the rest is text. */
static char *plan_text(const struct k25_sweep_frame *frame, const struct k25_plan_key *key,
                       const struct k25_sweep_value *value)
{
    char number[40];
    switch (key->field->type) {
    case K25_BOOL:
        return k25_copy(value->number != 0 ? "true" : "false");
    case K25_INT:
    case K25_REAL:
        return k25_copy(k25_text_real(value->number, number, sizeof number));
    case K25_ENUM:
        return k25_sweep_cell_text(frame->format, key->field->names[(int)value->number]);
    default:
        return k25_sweep_cell_text(frame->format, value->text);
    }
}

static char *other_text(const struct k25_sweep_frame *frame, const char *text)
{
    double number;
    char out[40];
    bool truth, json = frame->format == K25_SWEEP_JSONL;
    if (json && k25_parse_real(text, &number))
        return k25_copy(k25_text_real(number, out, sizeof out));
    if (json && k25_parse_bool(text, &truth))
        return k25_copy(truth ? "true" : "false");
    return k25_sweep_cell_text(frame->format, text);
}

static char *make_text(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                       const struct k25_sweep_column *column, size_t position)
{
    const struct k25_sweep_axis *axis = &sweep->axis[column->axis];
    if (column->source == K25_CELL_NAME)
        return k25_sweep_cell_text(frame->format, axis->names[position]);
    const struct k25_sweep_value *value = &axis->values[position * axis->keys + column->index];
    const struct k25_plan_key *key = axis->key[column->index].plan;
    return key != NULL ? plan_text(frame, key, value) : other_text(frame, value->text);
}

struct k25_sweep_texts *k25_sweep_texts_make(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                                             struct k25_error *error)
{
    struct k25_sweep_texts *texts = calloc(1, sizeof *texts);
    bool ok = texts != NULL;
    for (size_t c = 0; ok && c < frame->keys; c++) {
        const struct k25_sweep_column *column = &sweep->column[c];
        const struct k25_sweep_axis *axis = &sweep->axis[column->axis];
        texts->longest[c] = 40;
        if (axis->values == NULL)
            continue;
        texts->cell[c] = k25_arena_take(&texts->arena, (size_t)axis->count * sizeof *texts->cell[c]);
        ok = texts->cell[c] != NULL;
        for (size_t i = 0; ok && i < axis->count; i++) {
            char *text = make_text(sweep, frame, column, i);
            size_t length = text != NULL ? strlen(text) : 0;
            const char *kept = text != NULL ? k25_arena_copy(&texts->arena, text, length) : NULL;
            texts->cell[c][i] = (struct k25_sweep_cell){kept, length};
            texts->longest[c] = length > texts->longest[c] ? length : texts->longest[c];
            ok = kept != NULL;
            free(text);
        }
    }
    if (ok)
        return texts;
    k25_sweep_texts_free(texts);
    k25_fail(error, K25_RESOURCE, "out of memory");
    return NULL;
}

void k25_sweep_texts_free(struct k25_sweep_texts *texts)
{
    if (texts == NULL)
        return;
    k25_arena_free(&texts->arena);
    free(texts);
}
