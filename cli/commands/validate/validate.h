/* What the two kinds of files that validate reads have in common: options and bars. */
#ifndef K25_CLI_COMMANDS_VALIDATE_VALIDATE_H
#define K25_CLI_COMMANDS_VALIDATE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/render/report.h"

/* What was asked. */
struct cli_validation {
    const char *path, *scenario, *machine;
    const char *const *where, *const *set; /* end with NULL; NULL: none */
    bool fit, points, params;
    bool halves;                /* held out by random halves */
    size_t folds;               /* cross-validation: 0 none, SIZE_MAX one a row */
    double bar[CLI_STATISTICS]; /* shares; 0: none */
    enum cli_format format;
};

enum k25_status cli_validate_points(const struct cli *cli, const struct cli_validation *validation,
                                    struct k25_error *error);
enum k25_status cli_validate_kernels(const struct cli *cli, const struct cli_validation *validation,
                                     struct k25_error *error);

#endif
