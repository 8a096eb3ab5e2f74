#include "scenarios/sweep/find.h"

#include <string.h>

#include "base/text.h"
#include "scenarios/sweep/texts_internal.h"

static bool same_text(struct k25_sweep_cell a, struct k25_sweep_cell b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Whether a column of the axis says at `position` what the cell says. */
static bool matches(const struct k25_sweep *sweep, const struct k25_sweep_texts *texts, size_t column,
                    uint64_t position, struct k25_sweep_cell cell)
{
    char text[64];
    double number;
    if (texts->cell[column] != NULL)
        return same_text(texts->cell[column][position], cell);
    if (cell.length >= sizeof text)
        return false;
    memcpy(text, cell.text, cell.length);
    text[cell.length] = '\0';
    return k25_parse_real(text, &number) &&
           number == k25_sweep_number(&sweep->axis[sweep->column[column].axis], position, 0);
}

static bool find_position(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                          const struct k25_sweep_texts *texts, const struct k25_sweep_cell *cells, size_t axis,
                          uint64_t *position)
{
    for (*position = 0; *position < sweep->axis[axis].count; ++*position) {
        bool all = true;
        for (size_t c = 0; c < frame->keys && all; c++)
            all = sweep->column[c].axis != axis || matches(sweep, texts, c, *position, cells[c]);
        if (all)
            return true;
    }
    return false;
}

bool k25_sweep_find(const struct k25_sweep *sweep, const struct k25_sweep_frame *frame,
                    const struct k25_sweep_texts *texts, const struct k25_sweep_cell *cells,
                    struct k25_sweep_cursor *cursor)
{
    uint64_t point = 0, position;
    for (size_t a = 0; a < sweep->axes; a++) {
        if (!find_position(sweep, frame, texts, cells, a, &position))
            return false;
        point = point * sweep->axis[a].count + position;
    }
    k25_sweep_seek(cursor, sweep, point);
    return true;
}

bool k25_sweep_question(const struct k25_sweep_cursor *cursor, struct k25_question *question, struct k25_error *error)
{
    const struct k25_scenario *scenario = &cursor->sweep->scenario[cursor->scenario];
    struct k25_draft draft = k25_scenario_draft(scenario);
    if (!k25_question_make(&scenario->architecture, &scenario->weights, &draft, &scenario->machine, &cursor->plan, NULL,
                           question, error))
        return false;
    question->residuals = k25_scenario_residuals(scenario);
    return true;
}
