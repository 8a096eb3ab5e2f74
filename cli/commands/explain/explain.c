/* k25sim explain: why the answer is what it is. */
#include "cli/cli.h"
#include "cli/commands/explain/collectives.h"
#include "cli/commands/explain/step.h"
#include "cli/render/render.h"

static struct {
    char **set;
    const char *format;
    int collectives;
} given;

static const struct poptOption options[] = {
    {"collectives", '\0', POPT_ARG_NONE, &given.collectives, 0, "instead: which AllReduce wins at which size", NULL},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

static enum k25_status collectives(const struct cli *cli, const char *name, enum cli_format format,
                                   struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    bool ok = k25_scenario_load(&cli->library, name, (const char *const *)given.set,
                                cli_count((const char *const *)given.set), &scenario, error) &&
              cli_explain_collectives(&scenario, format, error);
    k25_scenario_free(&scenario);
    return ok ? K25_OK : cli_failed(error);
}

/* A plan that does not fit has no step: what predict says of it. */
static bool misfit(const struct cli *cli, const struct cli_answer *answer, enum cli_format format,
                   struct k25_error *error)
{
    struct cli_rendering rendering = {.root = cli->library.root};
    switch (format) {
    case CLI_JSON:
        return cli_render_json(answer, &rendering, error);
    case CLI_CSV:
        return cli_render_no_explanation(error);
    case CLI_TABLE:
    case CLI_FORMATS:
        break;
    }
    return cli_render_table(answer, &rendering, error);
}

static enum k25_status step(const struct cli *cli, const char *name, enum cli_format format, struct k25_error *error)
{
    static struct cli_answer answer; /* too large for a stack */
    static struct cli_explanation explanation;
    bool ok = cli_answer_load(cli, name, (const char *const *)given.set, &answer, error);
    bool fits = ok && answer.prediction.memory.fits;
    if (fits)
        ok = cli_explain_step(&answer, &explanation, error) &&
             cli_render_explanation(&answer, &explanation, format, error);
    else if (ok)
        ok = misfit(cli, &answer, format, error);
    cli_answer_free(&answer);
    return !ok ? cli_failed(error) : fits ? K25_OK : K25_NEGATIVE;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    enum cli_format format;
    if (!cli_format(&cli_explain, given.format, &format, error))
        return cli_failed(error);
    return given.collectives ? collectives(cli, arguments[0], format, error) : step(cli, arguments[0], format, error);
}

const struct cli_command cli_explain = {
    .name = "explain",
    .arguments = "SCENARIO",
    .summary = "why a step takes that long, and what would change it",
    .details = "Prints what bounds each part of the step; by how many per cent TPOT follows one per cent of every\n"
               "parameter and figure of the machine; the ceiling of each lever of plan.levers; what takes the next\n"
               "millisecond off the step (5 % of a step below 10 ms), to first order, smallest change first; and,\n"
               "with speculation, the tokens a step at which it breaks even and the best length of its chain.\n"
               "\n"
               "--collectives prices every AllReduce on the first 2, 4, 8, ... GPUs of the machine instead, when all\n"
               "ranks start together. `auto` is NCCL left to itself. One-shot needs p2p: true.\n"
               "\n"
               "examples:\n"
               "  k25sim explain tp8_bs1\n"
               "  k25sim explain tp8_bs1 --set plan.batch=32 --format json | jq '.elasticities[:5]'\n"
               "  k25sim explain tp8_bs1 --collectives\n"
               "  k25sim explain tp8_bs1 --collectives --set machine=rtx-pro-6000-8x-switches\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
