/* k25sim check: whether our files are right. */
#include <limits.h>
#include <stdio.h>

#include "cli/cli.h"
#include "scenarios/check/check.h"
#include "scenarios/library/scenario.h"

static const struct poptOption options[] = {POPT_TABLEEND};

/* Every file is checked, also behind one that is wrong; the worst status counts. */
static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    struct k25_error last = {.status = K25_OK};
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const char *kind;
        if (k25_check_file(&cli->library, arguments[i], &kind, error)) {
            printf("%s: ok (%s)\n", arguments[i], kind);
            continue;
        }
        fflush(stdout);
        /* The last message is main's to print. */
        if (last.status != K25_OK)
            fprintf(stderr, "%s\n", last.message);
        if (error->status < last.status)
            error->status = last.status;
        last = *error;
    }
    *error = last;
    return cli_failed(error);
}

const struct cli_command cli_check = {
    .name = "check",
    .arguments = "FILE...",
    .summary = "check scenarios, sweeps, architectures, weights, machines, parameters and calibration sets",
    .details = "A file says of which kind it is in its first key, `k25sim`. A scenario is checked together\n"
               "with everything that it refers to. Errors name the line, what was expected and the nearest\n"
               "valid name; exit status 2.\n"
               "\n"
               "examples:\n"
               "  k25sim check my-box.yaml\n"
               "  k25sim check scenarios/*.yaml hw/machines/*.yaml\n",
    .least = 1,
    .most = INT_MAX,
    .options = options,
    .run = run,
};
