/* k25sim predict: where one decode step spends its time. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/render/render.h"

static struct {
    char **set;
    int ops, outputs, inputs;
    const char *compare, *format;
} given;

static const struct poptOption options[] = {
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"ops", '\0', POPT_ARG_NONE, &given.ops, 0, "every operator with its shape, bytes and backend", NULL},
    {"outputs", '\0', POPT_ARG_NONE, &given.outputs, 0, "every output with its interval and unit", NULL},
    {"inputs", '\0', POPT_ARG_NONE, &given.inputs, 0, "every figure that went in, and where it came from", NULL},
    {"compare", '\0', POPT_ARG_STRING, &given.compare, 0, "print the difference to another scenario", "SCENARIO"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

static bool render(const struct cli *cli, const struct cli_answer *answer, enum cli_format format,
                   struct k25_error *error)
{
    struct cli_rendering rendering = {cli->library.root, given.ops != 0, given.outputs != 0, given.inputs != 0};
    switch (format) {
    case CLI_JSON:
        return cli_render_json(answer, &rendering, error);
    case CLI_CSV:
        return cli_render_csv(answer, &rendering, error);
    case CLI_TABLE:
    case CLI_FORMATS:
        break;
    }
    return cli_render_table(answer, &rendering, error);
}

static enum k25_status predict(const struct cli *cli, const char *name, enum cli_format format, struct k25_error *error)
{
    static struct cli_answer answer; /* too large for a stack */
    bool ok = cli_answer_load(cli, name, (const char *const *)given.set, &answer, error) &&
              render(cli, &answer, format, error);
    bool fits = answer.prediction.memory.fits;
    cli_answer_free(&answer);
    return !ok ? cli_failed(error) : fits ? K25_OK : K25_NEGATIVE;
}

/* `name` with the overrides against the other scenario as it is. A plan that does not fit has no step to compare.
 */
static enum k25_status compare(const struct cli *cli, const char *name, enum cli_format format, struct k25_error *error)
{
    static struct cli_answer answer, base;
    enum k25_status status = K25_OK;
    bool ok = cli_answer_load(cli, name, (const char *const *)given.set, &answer, error) &&
              cli_answer_load(cli, given.compare, NULL, &base, error);
    const struct cli_answer *const both[] = {&answer, &base};
    for (int i = 0; ok && i < 2; i++) {
        if (!both[i]->prediction.memory.fits && status == K25_OK) {
            status = K25_NEGATIVE;
            ok = render(cli, both[i], format, error);
        }
    }
    if (ok && status == K25_OK)
        ok = cli_render_difference(&answer, &base, given.ops != 0, format, error);
    cli_answer_free(&answer);
    cli_answer_free(&base);
    return ok ? status : cli_failed(error);
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    enum cli_format format;
    if (!cli_format(&cli_predict, given.format, &format, error))
        return cli_failed(error);
    if (given.compare != NULL && (given.inputs || given.outputs))
        return cli_misused(&cli_predict, error, "--%s does not go with --compare", given.inputs ? "inputs" : "outputs");
    if (format == CLI_CSV && given.inputs && given.outputs)
        return cli_misused(&cli_predict, error, "--outputs and --inputs are two tables, and CSV has one");
    return given.compare != NULL ? compare(cli, arguments[0], format, error)
                                 : predict(cli, arguments[0], format, error);
}

const struct cli_command cli_predict = {
    .name = "predict",
    .arguments = "SCENARIO",
    .summary = "where one decode step spends its time",
    .details = "SCENARIO is a file, or the name of one that comes along (k25sim list scenarios). --set\n"
               "reaches every key: plan.*, machine.*, architecture.*, weights.*, parameters.*, load.*, and\n"
               "machine=NAME, calibration=NAME and the like exchange what the scenario refers to. A plan\n"
               "that does not fit in memory is answered with what would fit, and exit status 1.\n"
               "\n"
               "examples:\n"
               "  k25sim predict tp8_bs1\n"
               "  k25sim predict tp8_bs1 --set plan.batch=16 --set plan.context=8000 --ops\n"
               "  k25sim predict tp8_bs1 --set plan.allreduce.backend=fastest --compare tp8_bs1\n"
               "  k25sim predict tp8_bs1 --outputs --format csv\n"
               "  k25sim predict my-box.yaml --inputs\n"
               "  k25sim predict my-box.yaml --format json | jq .step_ms\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
