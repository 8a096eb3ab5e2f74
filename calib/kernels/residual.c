#include "calib/kernels/residual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MOST = 8; /* largest factor on a call: beyond it something else was measured */

/* False for a row that has no place in a table. */
static bool make_site(const struct k25_kernel_row *row, const struct k25_params *params,
                      const struct k25_residuals *residuals, struct k25_residual_site *site)
{
    struct k25_kernel_call call;
    if (!k25_kernel_work_call(&row->work, params, &call))
        return false;
    double formula = k25_kernel_cost(&call, row->work.gpu, params).time;
    double all = k25_kernel_work_time_with(&row->work, params, residuals);
    double others = all - formula * exp(k25_residual(residuals, &call));
    double factor = fmin(fmax((row->latency - others) / formula, 1 / MOST), MOST);
    memcpy(site->shape, call.shape, sizeof site->shape);
    site->value = log(factor);
    return true;
}

enum k25_kernel_class k25_residual_family_class(const struct k25_kernel_table *table, int family)
{
    static const struct k25_params none = {0}; /* the class does not depend on any */
    for (size_t i = 0; i < table->rows; i++) {
        struct k25_kernel_call call = {.class = K25_KERNEL_CLASSES};
        if (table->row[i].family == family && k25_kernel_work_call(&table->row[i].work, &none, &call))
            return call.class;
    }
    return K25_KERNEL_CLASSES;
}

bool k25_residuals_build(const struct k25_kernel_table *table, int family, const bool *take,
                         const struct k25_params *params, struct k25_residuals *residuals, size_t *rows,
                         struct k25_error *error)
{
    size_t count = 0;
    enum k25_kernel_class class = k25_residual_family_class(table, family);
    if (rows != NULL)
        *rows = 0;
    if (class == K25_KERNEL_CLASSES)
        return true;
    struct k25_residual_site *site = calloc(table->rows + 1, sizeof *site);
    if (site == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < table->rows; i++) {
        if (table->row[i].family == family && take[i])
            count += make_site(&table->row[i], params, residuals, &site[count]);
    }
    if (rows != NULL)
        *rows = count;
    size_t kept = count < K25_MAX_SITES ? count : K25_MAX_SITES;
    for (size_t i = 0; i < kept; i++)
        site[i] = site[i * count / kept];
    bool ok = k25_residuals_set(residuals, class, site, kept, error);
    free(site);
    return ok;
}
