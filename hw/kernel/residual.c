#include "hw/kernel/residual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEIGHBOURS = 12, LEAF = 6 };

/* Distance in each logarithm at which the influence of a site ends; 0: the class has no coordinates. Shorter along n
 * and k, where libraries switch kernels more often than along the rows. */
static const double reach[K25_KERNEL_CLASSES][K25_SHAPE] = {
    [K25_KERNEL_GEMM_BF16] = {4, 2, 2}, [K25_KERNEL_GEMM_FP8] = {4, 2, 2}, [K25_KERNEL_GEMM_FP4] = {4, 2, 2},
    [K25_KERNEL_GEMM_INT4] = {4, 2, 2}, [K25_KERNEL_MOE_BF16] = {4, 4, 2}, [K25_KERNEL_MOE_FP8] = {4, 4, 2},
    [K25_KERNEL_MOE_INT4] = {4, 4, 2},  [K25_KERNEL_MOE_FP4] = {4, 4, 2},  [K25_KERNEL_MLA] = {4, 4, 4},
};

bool k25_residual_class(enum k25_kernel_class class)
{
    return class < K25_KERNEL_CLASSES && reach[class][0] > 0;
}

int k25_residuals_count(const struct k25_residuals *residuals)
{
    int count = 0;
    for (enum k25_kernel_class class = 0; residuals != NULL && class < K25_KERNEL_CLASSES; class ++)
        count += residuals->table[class].count > 0;
    return count;
}

/* ---- building ---- */

static int by_coordinates(const void *left, const void *right, int first)
{
    const struct k25_residual_site *a = left, *b = right;
    for (int i = 0; i < K25_SHAPE; i++) {
        int axis = (first + i) % K25_SHAPE;
        if (a->shape[axis] != b->shape[axis])
            return a->shape[axis] < b->shape[axis] ? -1 : 1;
    }
    return a->value < b->value ? -1 : a->value > b->value;
}

static int by_first(const void *left, const void *right)
{
    return by_coordinates(left, right, 0);
}

static int by_second(const void *left, const void *right)
{
    return by_coordinates(left, right, 1);
}

static int by_third(const void *left, const void *right)
{
    return by_coordinates(left, right, 2);
}

static int (*const orders[K25_SHAPE])(const void *, const void *) = {by_first, by_second, by_third};

static void arrange(struct k25_residual_site *site, size_t count, int axis)
{
    while (count > 1) {
        size_t middle = count / 2;
        qsort(site, count, sizeof *site, orders[axis]);
        axis = (axis + 1) % K25_SHAPE;
        arrange(site, middle, axis);
        site += middle + 1;
        count -= middle + 1;
    }
}

/* Sorts, and merges sites of the same shape. Returns the number of sites left. */
static size_t merge(struct k25_residual_site *site, size_t count)
{
    size_t kept = 0;
    if (count > 0)
        qsort(site, count, sizeof *site, by_first);
    for (size_t i = 0, next; i < count; i = next) {
        double sum = 0;
        for (next = i; next < count && memcmp(site[next].shape, site[i].shape, sizeof site->shape) == 0; next++)
            sum += site[next].value;
        site[kept] = site[i];
        site[kept++].value = sum / (double)(next - i);
    }
    return kept;
}

bool k25_residuals_set(struct k25_residuals *residuals, enum k25_kernel_class class,
                       const struct k25_residual_site *sites, size_t count, struct k25_error *error)
{
    struct k25_residual_table *table = &residuals->table[class];
    struct k25_residual_site *site = calloc(count + 1, sizeof *site);
    if (site == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    if (count > 0)
        memcpy(site, sites, count * sizeof *site);
    free(table->site);
    table->site = site;
    table->count = merge(site, count);
    for (size_t i = 0; i < table->count; i++) {
        for (int axis = 0; axis < K25_SHAPE; axis++)
            site[i].at[axis] = log(site[i].shape[axis]) / reach[class][axis];
    }
    arrange(site, table->count, 0);
    return true;
}

void k25_residuals_free(struct k25_residuals *residuals)
{
    for (enum k25_kernel_class class = 0; class < K25_KERNEL_CLASSES; class ++)
        free(residuals->table[class].site);
    memset(residuals, 0, sizeof *residuals);
}

/* ---- lookup ---- */

/* The nearest sites found so far, nearest first. */
struct search {
    const double *at;
    size_t count;
    const struct k25_residual_site *site[NEIGHBOURS];
    double square[NEIGHBOURS]; /* of the distance */
    double bound;              /* squared distance from which on sites are ignored */
};

static double square_distance(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < K25_SHAPE; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void offer(struct search *s, const struct k25_residual_site *site)
{
    double square = square_distance(s->at, site->at);
    if (square >= s->bound)
        return;
    size_t place = s->count < NEIGHBOURS ? s->count++ : NEIGHBOURS - 1;
    for (; place > 0 && s->square[place - 1] > square; place--) {
        s->square[place] = s->square[place - 1];
        s->site[place] = s->site[place - 1];
    }
    s->square[place] = square;
    s->site[place] = site;
    if (s->count == NEIGHBOURS)
        s->bound = fmin(s->bound, s->square[NEIGHBOURS - 1]);
}

/* `outside`: distance of the point from the box of these sites along each coordinate; `square`: the squared distance.
 * Boxes beyond the bound are skipped. */
static void find(struct search *s, const struct k25_residual_site *site, size_t count, int axis,
                 double outside[K25_SHAPE], double square)
{
    if (count <= LEAF) {
        for (size_t i = 0; i < count; i++)
            offer(s, &site[i]);
        return;
    }
    size_t middle = count / 2;
    const struct k25_residual_site *above = site + middle + 1;
    double side = s->at[axis] - site[middle].at[axis], before = outside[axis];
    double far = square - before * before + side * side;
    int next = (axis + 1) % K25_SHAPE;
    find(s, side < 0 ? site : above, side < 0 ? middle : count - middle - 1, next, outside, square);
    offer(s, &site[middle]);
    if (far >= s->bound)
        return;
    outside[axis] = side;
    find(s, side < 0 ? above : site, side < 0 ? count - middle - 1 : middle, next, outside, far);
    outside[axis] = before;
}

static double covariance(double square)
{
    double left = 1 - sqrt(square);
    return left > 0 ? left * left : 0;
}

/* The mean at the point given the sites, k' solved with solved = K^-1 r, by L D L' of the upper half in place. A dozen
 * rows: a call of a library would cost more than the work. K is positive definite because the sites are distinct. */
static double krige(const struct search *s, double solved[NEIGHBOURS])
{
    double matrix[NEIGHBOURS][NEIGHBOURS], mean = 0;
    size_t n = s->count;
    for (size_t i = 0; i < n; i++) {
        solved[i] = s->site[i]->value;
        for (size_t j = i; j < n; j++)
            matrix[i][j] = covariance(square_distance(s->site[i]->at, s->site[j]->at));
    }
    for (size_t j = 0; j < n; j++) {
        double pivot = 1 / matrix[j][j];
        for (size_t i = j + 1; i < n; i++) {
            double factor = matrix[j][i] * pivot;
            for (size_t k = i; k < n; k++)
                matrix[i][k] -= factor * matrix[j][k];
            solved[i] -= factor * solved[j];
        }
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            solved[i] -= matrix[i][k] * solved[k];
        solved[i] /= matrix[i][i];
        mean += covariance(s->square[i]) * solved[i];
    }
    return mean;
}

/* d covariance / d at[axis] = -2 (1 - d) (at - site) / d */
static double covariance_slope(const struct search *s, size_t i, int axis)
{
    double distance = sqrt(s->square[i]);
    return distance > 0 && distance < 1 ? -2 * (1 - distance) * (s->at[axis] - s->site[i]->at[axis]) / distance : 0;
}

/* Finds the nearest sites of a call. False when there is no table for it. */
static bool look(const struct k25_residuals *residuals, const struct k25_kernel_call *call, double at[K25_SHAPE],
                 struct search *search)
{
    if (residuals == NULL || residuals->table[call->class].count == 0)
        return false;
    const struct k25_residual_table *table = &residuals->table[call->class];
    for (int i = 0; i < K25_SHAPE; i++) {
        if (!(call->shape[i] > 0))
            return false;
        at[i] = log(call->shape[i]) / reach[call->class][i];
    }
    *search = (struct search){.at = at, .bound = 1};
    double outside[K25_SHAPE] = {0};
    find(search, table->site, table->count, 0, outside, 0);
    return true;
}

double k25_residual(const struct k25_residuals *residuals, const struct k25_kernel_call *call)
{
    double at[K25_SHAPE], solved[NEIGHBOURS];
    struct search search;
    return look(residuals, call, at, &search) ? krige(&search, solved) : 0;
}

double k25_residual_slope(const struct k25_residuals *residuals, const struct k25_kernel_call *call,
                          double slope[K25_SHAPE])
{
    double at[K25_SHAPE], solved[NEIGHBOURS];
    struct search search;
    for (int axis = 0; axis < K25_SHAPE; axis++)
        slope[axis] = 0;
    if (!look(residuals, call, at, &search))
        return 0;
    double mean = krige(&search, solved);
    for (int axis = 0; axis < K25_SHAPE; axis++) {
        for (size_t i = 0; i < search.count; i++)
            slope[axis] += solved[i] * covariance_slope(&search, i, axis) / reach[call->class][axis];
    }
    return mean;
}
