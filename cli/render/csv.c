/* A prediction as CSV. One CSV file has one header: the operators, or the outputs or inputs instead. */
#include "cli/render/inputs.h"
#include "cli/render/operators.h"
#include "cli/render/outputs.h"
#include "cli/render/render.h"

bool cli_render_csv(const struct cli_answer *answer, const struct cli_rendering *rendering, struct k25_error *error)
{
    struct cli_table table;
    if (rendering->inputs)
        cli_input_table(answer, rendering->root, &table);
    else if (rendering->outputs)
        cli_output_table(answer, &table);
    else
        cli_operator_table(answer, true, &table);
    bool ok = cli_table_csv(&table, error);
    cli_table_close(&table);
    return ok;
}
