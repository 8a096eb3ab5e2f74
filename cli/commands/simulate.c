/* k25sim simulate: the step played out on every rank. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "calib/capture/simulated.h"
#include "cli/cli.h"
#include "scenarios/library/scenario.h"

static struct {
    char **set;
    const char *trace, *steps, *seed, *noise, *slow_rank;
} given;

static const struct poptOption options[] = {
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"steps", '\0', POPT_ARG_STRING, &given.steps, 0, "how many steps, at least 2 (default 20)", "N"},
    {"seed", '\0', POPT_ARG_STRING, &given.seed, 0, "of the random numbers (default 1)", "N"},
    {"noise", '\0', POPT_ARG_STRING, &given.noise, 0, "spread of one kernel's time in per cent (default 2)", "PERCENT"},
    {"slow-rank", '\0', POPT_ARG_STRING, &given.slow_rank, 0, "the rank that skew.lag holds back (default: none)", "R"},
    {"trace", '\0', POPT_ARG_STRING, &given.trace, 0, "write one trace a rank into this folder", "FOLDER"},
    CLI_FORCE,
    POPT_TABLEEND,
};

static bool may_write(const struct k25_scenario *scenario, int ranks, struct k25_error *error)
{
    const struct k25_inputs *const read[] = {&scenario->inputs, NULL};
    char path[1024];
    bool ok = true;
    for (int rank = 0; ok && rank < ranks; rank++)
        ok = k25_simulated_path(given.trace, rank, path, sizeof path, error) && cli_may_write(path, NULL, read, error);
    return ok;
}

static bool whole(const char *option, const char *text, long long least, long long most, long long *value,
                  struct k25_error *error)
{
    if (text == NULL || (k25_parse_int(text, value) && *value >= least && *value <= most))
        return true;
    cli_misused(&cli_simulate, error, "--%s %s: expected a whole number from %lld to %lld", option, text, least, most);
    return false;
}

static bool read_options(struct k25_simulation *simulation, struct k25_error *error)
{
    long long steps = 20, seed = 1, slow = -1;
    double noise = 2;
    if (!whole("steps", given.steps, 2, 100000, &steps, error) ||
        !whole("seed", given.seed, 0, 4294967295, &seed, error) ||
        !whole("slow-rank", given.slow_rank, 0, K25_MAX_GPUS - 1, &slow, error))
        return false;
    if (given.noise != NULL && (!k25_parse_real(given.noise, &noise) || noise < 0 || noise > 100)) {
        cli_misused(&cli_simulate, error, "--noise %s: expected per cent from 0 to 100", given.noise);
        return false;
    }
    *simulation = (struct k25_simulation){.steps = (int)steps,
                                          .seed = (uint64_t)seed,
                                          .kernel_noise = noise / 100,
                                          .transfer_noise = noise / 100,
                                          .jitter = true,
                                          .slow_rank = (int)slow};
    return true;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    static struct k25_prediction prediction;
    struct k25_simulation simulation;
    struct k25_question question;
    struct k25_sim_summary summary;
    if (!read_options(&simulation, error))
        return cli_failed(error);
    bool ok = k25_scenario_load(&cli->library, arguments[0], (const char *const *)given.set,
                                cli_count((const char *const *)given.set), &scenario, error) &&
              k25_scenario_question(&scenario, &question, error);
    if (ok && simulation.slow_rank >= question.group[K25_RANKS_TP].n)
        ok = k25_fail(error, K25_BAD_INPUT, "--slow-rank %d: the plan has ranks 0 to %d", simulation.slow_rank,
                      question.group[K25_RANKS_TP].n - 1);
    if (ok) {
        k25_predict(&question, &scenario.params, &prediction);
        if (!prediction.memory.fits)
            ok = k25_fail(error, K25_NEGATIVE, "the plan does not fit in memory; `k25sim predict` says by how much");
    }
    if (ok && given.trace != NULL && mkdir(given.trace, 0777) != 0 && access(given.trace, W_OK) != 0)
        ok = k25_fail(error, K25_RESOURCE, "%s: cannot be made or written to", given.trace);
    ok = ok && (given.trace == NULL || may_write(&scenario, question.group[K25_RANKS_TP].n, error)) &&
         k25_simulate_capture(&question, &scenario.params, &simulation, given.trace, &summary, error);
    if (ok) {
        printf("%d steps on %d ranks, seed %llu, kernels +- %g %%\n", simulation.steps, question.group[K25_RANKS_TP].n,
               (unsigned long long)simulation.seed, simulation.kernel_noise * 100);
        printf("step       median %.4g ms, 95 %% below %.4g ms, worst %.4g ms; predicted mean %.4g ms\n",
               summary.step_median * 1e3, summary.step_p95 * 1e3, summary.step_worst * 1e3, prediction.step * 1e3);
        printf("AllReduce  mean %.4g ms a step; predicted %.4g ms\n", summary.allreduce * 1e3,
               prediction.allreduce * 1e3);
        if (given.trace != NULL)
            printf("%d traces in %s: open one in Perfetto, or `k25sim inspect %s`\n", question.group[K25_RANKS_TP].n,
                   given.trace, given.trace);
    }
    k25_scenario_free(&scenario);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_simulate = {
    .name = "simulate",
    .arguments = "SCENARIO",
    .summary = "the step played out on every rank: percentiles, and traces to look at",
    .details = "Draws the arrival of every rank at every collective (skew.sigma, skew.rho, skew.lag) and the time\n"
               "of every kernel. The same seed gives the same events. Traces are those of torch.profiler.\n"
               "\n"
               "examples:\n"
               "  k25sim simulate tp8_bs1\n"
               "  k25sim simulate tp8_bs1 --steps 6 --slow-rank 3 --set parameters.skew.lag=20 --trace capture/\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
