/* k25sim explain: why the answer is what it is. */
#include "cli/cli.h"
#include "cli/explain_collectives.h"
#include "scenarios/scenario.h"

static struct {
    char **set;
    const char *format;
    int collectives;
} given;

static const struct poptOption options[] = {
    {"collectives", '\0', POPT_ARG_NONE, &given.collectives, 0, "which AllReduce wins at which size", NULL},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    enum cli_format format;
    if (!cli_format(&cli_explain, given.format, &format, error))
        return cli_failed(error);
    if (!given.collectives)
        return cli_misused(&cli_explain, error, "nothing to explain, expected --collectives");
    bool ok = k25_scenario_load(&cli->library, arguments[0], (const char *const *)given.set,
                                cli_count((const char *const *)given.set), &scenario, error) &&
              cli_explain_collectives(&scenario, format, error);
    k25_scenario_free(&scenario);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_explain = {
    .name = "explain",
    .arguments = "SCENARIO",
    .summary = "why: which AllReduce wins at which size",
    .details =
        "Prices every AllReduce on the first 2, 4, 8, ... GPUs of the machine when all ranks start together.\n"
        "`auto` is NCCL left to itself. One-shot needs p2p: true.\n"
        "\n"
        "examples:\n"
        "  k25sim explain tp8_bs1 --collectives\n"
        "  k25sim explain tp8_bs1 --collectives --set machine=rtx-pro-6000-8x-switches\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
