#include "cli/render/inputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* `file` without the folder of the data in front. */
static const char *short_path(const char *file, const char *root)
{
    size_t length = strlen(root);
    return strncmp(file, root, length) == 0 && file[length] == '/' ? file + length + 1 : file;
}

/* "scenarios/a.yaml:9", "--set", "default", "prior hw/params/params.yaml:11". */
static void origin_words(const struct k25_input *input, const char *root, char *out, size_t size)
{
    const char *file = short_path(input->file, root);
    switch (input->origin) {
    case K25_FROM_OVERRIDE:
        snprintf(out, size, "--set");
        break;
    case K25_FROM_DEFAULT:
        snprintf(out, size, "default");
        break;
    case K25_FROM_FILE:
        snprintf(out, size, "%s:%d", file, input->line);
        break;
    case K25_FROM_PRIOR:
    case K25_FROM_CALIBRATION:
        snprintf(out, size, "%s %s:%d", k25_origin_name(input->origin), file, input->line);
        break;
    case K25_ORIGINS:
        break;
    }
}

static const struct cli_column input_columns[] = {
    {"input", "input", CLI_TEXT, 0}, {"value", "value", CLI_TEXT, 40}, {"unit", "unit", CLI_TEXT, 0},
    {"origin", NULL, CLI_TEXT, 0},   {"file", NULL, CLI_TEXT, 0},      {"line", NULL, CLI_COUNT, 0},
    {"", "from", CLI_TEXT, 0},       {NULL, NULL, CLI_TEXT, 0},
};

void cli_input_table(const struct cli_answer *answer, const char *root, struct cli_table *table)
{
    const struct k25_inputs *inputs = &answer->scenario.inputs;
    cli_table_open(table, input_columns);
    for (size_t i = 0; i < inputs->count; i++) {
        const struct k25_input *input = &inputs->list[i];
        char from[512];
        origin_words(input, root, from, sizeof from);
        cli_table_text(table, "%s", input->path);
        cli_table_text(table, "%s", input->value);
        cli_table_text(table, "%s", input->unit);
        cli_table_text(table, "%s", k25_origin_name(input->origin));
        cli_table_text(table, "%s", short_path(input->file, root));
        cli_table_number(table, input->line > 0 ? (double)input->line : NAN);
        cli_table_text(table, "%s", from);
    }
}
