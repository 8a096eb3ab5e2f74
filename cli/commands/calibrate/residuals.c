#include "cli/commands/calibrate/residuals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/render/table.h"

/* Names one after the other, as many as fit. */
static void append(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s'%s'", used > 0 ? ", " : "", name);
}

/* Two families for one class: says which there are. */
static bool several(const struct cli_evidence *evidence, const char *const *families, enum k25_kernel_class class,
                    struct k25_error *error)
{
    char names[400] = "";
    for (size_t t = 0; t < evidence->tables; t++) {
        const struct k25_kernel_table *table = evidence->table[t];
        for (int f = 0; f < table->families; f++) {
            if (cli_family_wanted(table->family[f].name, families) && k25_residual_family_class(table, f) == class)
                append(names, sizeof names, table->family[f].name);
        }
    }
    return k25_fail(error, K25_BAD_INPUT,
                    "the tables hold several families of %s, and a box runs one of them; choose with "
                    "--kernel-family: %s",
                    k25_kernel_class_names[class], names);
}

static bool none_wanted(const struct cli_evidence *evidence, const char *const *families, struct k25_error *error)
{
    char names[400] = "";
    for (size_t t = 0; t < evidence->tables; t++) {
        for (int f = 0; f < evidence->table[t]->families; f++)
            append(names, sizeof names, evidence->table[t]->family[f].name);
    }
    return k25_fail(error, K25_BAD_INPUT, "--kernel-family %s: no such family among those of the tables: %s",
                    families[0], names);
}

bool cli_residuals_choose(const struct cli_evidence *evidence, const char *const *families,
                          struct cli_residuals *chosen, struct k25_error *error)
{
    bool any = evidence->tables == 0 || families == NULL;
    for (enum k25_kernel_class class = 0; class < K25_KERNEL_CLASSES; class ++)
        chosen->of[class] = (struct cli_residual){.class = K25_KERNEL_CLASSES};
    for (size_t t = 0; t < evidence->tables; t++) {
        const struct k25_kernel_table *table = evidence->table[t];
        for (int f = 0; f < table->families; f++) {
            if (!cli_family_wanted(table->family[f].name, families))
                continue;
            any = true;
            enum k25_kernel_class class = k25_residual_family_class(table, f);
            if (class == K25_KERNEL_CLASSES)
                continue;
            if (chosen->of[class].class != K25_KERNEL_CLASSES)
                return several(evidence, families, class, error);
            chosen->of[class] = (struct cli_residual){.class = class, .table = table, .family = f};
        }
    }
    return any || none_wanted(evidence, families, error);
}

static bool make(struct cli_residual *one, const struct k25_priors *priors, const struct k25_params *params,
                 struct k25_residuals *residuals, struct k25_error *error)
{
    size_t rows = one->table->rows;
    enum k25_row_use *use = calloc(rows + 1, sizeof *use);
    bool *take = calloc(rows + 1, sizeof *take);
    bool ok = use != NULL && take != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    ok = ok && k25_kernel_table_split(one->table, priors, use, error);
    for (size_t i = 0; ok && i < rows; i++)
        take[i] = use[i] != K25_ROW_WARM;
    ok = ok && k25_residuals_build(one->table, one->family, take, params, residuals, &one->rows, error);
    one->sites = ok ? residuals->table[one->class].count : 0;
    free(take);
    free(use);
    return ok;
}

/* An MLA block is measured with its projections: its class comes last. */
bool cli_residuals_make(struct cli_residuals *chosen, const struct k25_priors *priors, const struct k25_params *params,
                        struct k25_residuals *residuals, struct k25_error *error)
{
    bool ok = true;
    for (enum k25_kernel_class class = 0; ok && class < K25_KERNEL_CLASSES; class ++) {
        if (chosen->of[class].class != K25_KERNEL_CLASSES && class != K25_KERNEL_MLA)
            ok = make(&chosen->of[class], priors, params, residuals, error);
    }
    if (ok && chosen->of[K25_KERNEL_MLA].class != K25_KERNEL_CLASSES)
        ok = make(&chosen->of[K25_KERNEL_MLA], priors, params, residuals, error);
    return ok;
}

static const struct cli_column columns[] = {
    {"class", "residual table", CLI_TEXT, 0}, {"sites", "sites", CLI_COUNT, 0}, {"rows", "of rows", CLI_COUNT, 0},
    {"family", "family", CLI_TEXT, 0},        {NULL, NULL, CLI_TEXT, 0},
};

bool cli_residuals_print(const struct cli_residuals *made, struct k25_error *error)
{
    struct cli_table table;
    bool thinned = false;
    cli_table_open(&table, columns);
    for (enum k25_kernel_class class = 0; class < K25_KERNEL_CLASSES; class ++) {
        const struct cli_residual *one = &made->of[class];
        if (one->class == K25_KERNEL_CLASSES)
            continue;
        cli_table_text(&table, "%s", k25_kernel_class_names[class]);
        cli_table_number(&table, (double)one->sites);
        cli_table_number(&table, (double)one->rows);
        cli_table_text(&table, "%s", one->table->family[one->family].name);
        thinned = thinned || one->rows > K25_MAX_SITES;
    }
    bool any = cli_table_rows(&table) > 0;
    if (any)
        printf("\n");
    bool ok = !any || cli_table_print(&table, error);
    if (ok && thinned)
        printf("of a class with more than %d rows, as many are kept, evenly spaced\n", K25_MAX_SITES);
    cli_table_close(&table);
    return ok;
}
