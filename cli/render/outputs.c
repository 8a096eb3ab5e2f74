#include "cli/render/outputs.h"

#include <math.h>

static bool has(const struct k25_prediction *prediction, enum k25_output output)
{
    return prediction->memory.fits || !k25_output_info[output].of_step;
}

static const struct cli_column output_columns[] = {
    {"output", "output", CLI_TEXT, 0}, {"value", "value", CLI_FIGURE, 0}, {"low", "5 %", CLI_FIGURE, 0},
    {"high", "95 %", CLI_FIGURE, 0},   {"unit", "unit", CLI_TEXT, 0},     {"meaning", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

void cli_output_table(const struct cli_answer *answer, struct cli_table *table)
{
    cli_table_open(table, output_columns);
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        const struct k25_output_info *info = &k25_output_info[o];
        double value = k25_output_value(&answer->question, &answer->prediction, o);
        bool interval = answer->prediction.memory.fits && k25_output_has_interval(o);
        if (!has(&answer->prediction, o))
            continue;
        cli_table_text(table, "%s", info->name);
        if (info->kind == K25_OUTPUT_TRUTH)
            cli_table_truth(table, value != 0);
        else
            cli_table_number(table, value);
        cli_table_number(table, interval ? answer->intervals.output[o].low : NAN);
        cli_table_number(table, interval ? answer->intervals.output[o].high : NAN);
        cli_table_text(table, "%s", info->unit);
        cli_table_text(table, "%s", info->doc);
    }
}

bool cli_set_output(json_t *object, const struct k25_question *question, const struct k25_prediction *prediction,
                    enum k25_output output)
{
    double value = k25_output_value(question, prediction, output);
    json_t *number = k25_output_info[output].kind == K25_OUTPUT_TRUTH ? json_boolean(value != 0) : cli_json_real(value);
    return json_object_set_new(object, k25_output_info[output].name, number) == 0;
}

bool cli_set_outputs(json_t *object, const struct k25_question *question, const struct k25_prediction *prediction)
{
    bool ok = true;
    for (enum k25_output o = 0; o < K25_OUTPUTS; o++) {
        if (has(prediction, o))
            ok = cli_set_output(object, question, prediction, o) && ok;
    }
    return ok;
}

json_t *cli_interval_json(const struct k25_intervals *intervals, enum k25_output output)
{
    const struct k25_interval *interval = &intervals->output[output];
    return json_pack("[o, o]", cli_json_real(interval->low), cli_json_real(interval->high));
}
