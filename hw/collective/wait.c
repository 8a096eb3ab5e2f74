/* The wait for the last rank and its slopes. */
#include "hw/collective/internal.h"

#include <math.h>

#include "hw/collective/collective.h"
#include "hw/collective/slopes.h"

double k25_wait_exponent(int n)
{
    return 2.4 + 0.29 * log2(n);
}

double k25_wait_time(int n, double segment, const struct k25_params *params)
{
    const double *p = params->value;
    if (n == 1)
        return 0;
    double sigma = p[K25_SKEW_SIGMA], drawn = p[K25_SKEW_RHO] * segment;
    double jitter = k25_normal_max(n) * sqrt(sigma * sigma + drawn * drawn);
    double lag = p[K25_SKEW_LAG] * (n - 1) / n;
    double larger = fmax(jitter, lag), q = k25_wait_exponent(n);
    return larger > 0 ? larger * pow(1 + pow(fmin(jitter, lag) / larger, q), 1 / q) : 0;
}

/* E[max] = integral of x n phi(x) Phi(x)^(n-1) dx, by Simpson's rule: the integrand is smooth and vanishes at the ends,
 * so 256 intervals give twelve digits. */
static double integrate_normal_max(int n)
{
    enum { INTERVALS = 256 };
    static const double end = 9;
    double h = 2 * end / INTERVALS, sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double x = -end + i * h;
        double phi = exp(-x * x / 2) / sqrt(2 * M_PI);
        double value = x * n * phi * pow(erfc(-x / M_SQRT2) / 2, n - 1);
        sum += value * (i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * h / 3;
}

double k25_normal_max(int n)
{
    /* The group sizes of real machines are tabulated, so that a prediction does not integrate. */
    switch (n) {
    case 1:
        return 0;
    case 2:
        return 0.5641895835477563;
    case 4:
        return 1.0293753730039641;
    case 8:
        return 1.4236003060451664;
    case 16:
        return 1.7659913931199750;
    default:
        return integrate_normal_max(n);
    }
}

double k25_wait_slopes(int n, double segment, const struct k25_params *params, double weight, struct k25_slopes *slopes)
{
    const double *p = params->value;
    if (n == 1)
        return 0;
    double sigma = p[K25_SKEW_SIGMA], grown = p[K25_SKEW_RHO] * segment, spread = hypot(sigma, grown);
    double jitter = k25_normal_max(n) * spread, lag = p[K25_SKEW_LAG] * (n - 1) / n;
    double larger = fmax(jitter, lag), q = k25_wait_exponent(n);
    if (larger <= 0)
        return 0;
    double a = pow(jitter / larger, q), b = pow(lag / larger, q), wait = larger * pow(a + b, 1 / q);
    double jittering = weight * wait * a / (a + b);
    double growing = spread > 0 ? jittering * (grown / spread) * (grown / spread) : 0;
    slopes->param[K25_SKEW_SIGMA] += jittering - growing;
    slopes->param[K25_SKEW_RHO] += growing;
    slopes->param[K25_SKEW_LAG] += weight * wait * b / (a + b);
    return segment > 0 ? growing / segment : 0;
}
