/* The residual tables that calibrate makes of tables of kernels. */
#ifndef K25_CLI_COMMANDS_CALIBRATE_RESIDUALS_H
#define K25_CLI_COMMANDS_CALIBRATE_RESIDUALS_H

#include <stdbool.h>
#include <stddef.h>

#include "calib/kernels/residual.h"
#include "cli/commands/calibrate/evidence.h"

/* One table and the family of kernels that it is made of. */
struct cli_residual {
    enum k25_kernel_class class; /* K25_KERNEL_CLASSES: none */
    const struct k25_kernel_table *table;
    int family;         /* of that table */
    size_t rows, sites; /* filled by cli_residuals_make */
};

struct cli_residuals {
    struct cli_residual of[K25_KERNEL_CLASSES];
};

/* Which family the table of each class is made of. Two families left for one class, or none at all of the names
 * that --kernel-family gave, is an error that lists them. */
bool cli_residuals_choose(const struct cli_evidence *evidence, const char *const *families,
                          struct cli_residuals *chosen, struct k25_error *error);

/* Makes them around `params`, on top of what `residuals` has; from the rows that are not warm. */
bool cli_residuals_make(struct cli_residuals *chosen, const struct k25_priors *priors, const struct k25_params *params,
                        struct k25_residuals *residuals, struct k25_error *error);

/* Says which there are; nothing when there are none. */
bool cli_residuals_print(const struct cli_residuals *made, struct k25_error *error);

#endif
