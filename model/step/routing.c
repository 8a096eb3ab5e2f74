#include "model/step/routing.h"

#include <gsl/gsl_sf_psi.h>
#include <math.h>
#include <stdbool.h>

#include "hw/collective/collective.h"

#define LEAST_NU 1e-3 /* the widest Beta: nearly 0 or 1 */

/* A value and its derivative, in cv or in the tokens: the variable whose own derivative is 1. */
struct dual {
    double v, d;
};

static struct dual fixed(double v)
{
    return (struct dual){v, 0};
}

static struct dual plus(struct dual a, struct dual b)
{
    return (struct dual){a.v + b.v, a.d + b.d};
}

static struct dual minus(struct dual a, struct dual b)
{
    return (struct dual){a.v - b.v, a.d - b.d};
}

static struct dual times(struct dual a, struct dual b)
{
    return (struct dual){a.v * b.v, a.d * b.v + a.v * b.d};
}

static struct dual over(struct dual a, struct dual b)
{
    double q = a.v / b.v;
    return (struct dual){q, (a.d - q * b.d) / b.v};
}

static struct dual scaled(struct dual a, double factor)
{
    return (struct dual){a.v * factor, a.d * factor};
}

/* 1 - a */
static struct dual rest(struct dual a)
{
    return (struct dual){1 - a.v, -a.d};
}

static struct dual square_root(struct dual a)
{
    double root = sqrt(a.v);
    return (struct dual){root, root > 0 ? a.d / (2 * root) : 0};
}

/* (1 - a)^power, a < 1 */
static struct dual rest_to(struct dual a, struct dual power)
{
    double log_rest = log1p(-a.v), v = exp(power.v * log_rest);
    return (struct dual){v, v * (power.d * log_rest - power.v / (1 - a.v) * a.d)};
}

/* a^power, a > 0 */
static struct dual raised(struct dual a, double power)
{
    double v = exp(power * log(a.v));
    return (struct dual){v, power * v / a.v * a.d};
}

/* Shared by the parts of one call. */
struct placing {
    double experts, k, mu, ranks;
    double d1, d2, d3; /* E[Z^i], Z the largest of `ranks` standard normals */
    struct dual tokens, cv;
    bool slope; /* compute derivatives: the digamma functions cost more than the values */
};

struct loads {
    struct dual distinct_mean, distinct_max, pairs_max;
};

/* ln Gamma(z) - (z - 1/2) ln z + z - ln(2 pi)/2, the tail of Stirling's series, and its derivative; z > 20. */
static struct dual stirling(double z)
{
    double y = 1 / z, y2 = y * y;
    return (struct dual){y * (1 / 12. - y2 * (1 / 360. - y2 * (1 / 1260. - y2 / 1680))),
                         -y2 * (1 / 12. - y2 * (1 / 120. - y2 * (1 / 252. - y2 / 240)))};
}

struct rise {
    double v, in_z, in_tokens;
};

/* ln Gamma(z+T) - ln Gamma(z) - T ln z, and its derivatives: no large terms that cancel. */
static struct rise rising(double z, double tokens, bool slope)
{
    if (z > 20) {
        struct dual low = stirling(z), high = stirling(z + tokens);
        double growth = log1p(tokens / z);
        return (struct rise){(z + tokens - 0.5) * growth - tokens + high.v - low.v,
                             growth - tokens / z + 0.5 * tokens / (z * (z + tokens)) + high.d - low.d,
                             growth - 0.5 / (z + tokens) + high.d};
    }
    double log_z = log(z), value = lgamma(z + tokens) - lgamma(z) - tokens * log_z;
    if (!slope)
        return (struct rise){value, 0, 0};
    double psi = gsl_sf_psi(z + tokens);
    return (struct rise){value, psi - gsl_sf_psi(z) - tokens / z, psi - log_z};
}

/* ln E[(1-p)^T] of p ~ Beta */
static struct dual log_untouched(double mu, struct dual tokens, struct dual cv, bool slope)
{
    double nu = cv.v > 0 ? (1 - mu) / (mu * cv.v * cv.v) - 1 : INFINITY, once = log1p(-mu);
    if (nu > 1e12) /* cv below 1e-5 */
        return scaled(tokens, once);
    bool capped = nu < LEAST_NU;
    nu = fmax(nu, LEAST_NU);
    struct rise b = rising((1 - mu) * nu, tokens.v, slope), all = rising(nu, tokens.v, slope);
    double per_cv = capped ? 0 : ((1 - mu) * b.in_z - all.in_z) * -2 * (nu + 1) / cv.v;
    double per_token = once + b.in_tokens - all.in_tokens;
    return (struct dual){tokens.v * once + b.v - all.v, per_cv * cv.d + per_token * tokens.d};
}

static struct dual distinct_experts(double experts, double mu, struct dual tokens, struct dual cv, bool slope)
{
    if (mu >= 1)
        return fixed(experts);
    if (tokens.v <= 0)
        return fixed(0);
    struct dual log_rest = log_untouched(mu, tokens, cv, slope);
    return (struct dual){-experts * expm1(log_rest.v), -experts * exp(log_rest.v) * log_rest.d};
}

double k25_distinct_experts(int experts, int experts_per_token, double tokens, double cv)
{
    return distinct_experts(experts, experts_per_token / (double)experts, fixed(tokens), fixed(cv), false).v;
}

double k25_distinct_experts_slope(int experts, int experts_per_token, double tokens, double cv)
{
    return distinct_experts(experts, experts_per_token / (double)experts, fixed(tokens), (struct dual){cv, 1}, true).d;
}

double k25_distinct_experts_growth(int experts, int experts_per_token, double tokens, double cv)
{
    return distinct_experts(experts, experts_per_token / (double)experts, (struct dual){tokens, 1}, fixed(cv), true).d;
}

/* E[Z^2] and E[Z^3] of the largest of n standard normals, as k25_normal_max integrates E[Z]. */
static void normal_max_powers(int n, double *second, double *third)
{
    switch (n) { /* the group sizes of real machines */
    case 2:
        *second = 1;
        *third = 1.4104739588693908;
        return;
    case 4:
        *second = 1.5513288954217921;
        *third = 2.7004257043784;
        return;
    case 8:
        *second = 2.3995349746589;
        *third = 4.5635815968474;
        return;
    case 16:
        *second = 3.4137354093539;
        *third = 7.1464094494333;
        return;
    }
    enum { INTERVALS = 256 };
    static const double end = 9;
    double h = 2 * end / INTERVALS, sum[2] = {0};
    for (int i = 0; i <= INTERVALS; i++) {
        double x = -end + i * h;
        double density = n * exp(-x * x / 2) / sqrt(2 * M_PI) * pow(erfc(-x / M_SQRT2) / 2, n - 1);
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum[0] += weight * density * x * x;
        sum[1] += weight * density * x * x * x;
    }
    *second = sum[0] * h / 3;
    *third = sum[1] * h / 3;
}

static double whole_power(double base, int power)
{
    double result = 1;
    for (; power; power >>= 1, base *= base) {
        if (power & 1)
            result *= base;
    }
    return result;
}

enum { ORDERS = 6 };

/* S and its first five derivatives in h: the largest of R independent Binomial(m, h). */
static void binomial_max(double m, double h, int ranks, double sum[ORDERS])
{
    double rest_h = 1 - h, sigma = sqrt(m * h * rest_h);
    for (int i = 0; i < ORDERS; i++)
        sum[i] = 0;
    if (rest_h < 1e-12) {
        sum[0] = m;
        return;
    }
    /* Outside of this window F^R is 0 or 1 within 1e-11. */
    double low = fmax(0, floor(m * h - 6.5 * sigma - 8)), high = fmin(m, ceil(m * h + 6.5 * sigma + 8));
    double b = low > 0 ? exp(lgamma(m + 1) - lgamma(low + 1) - lgamma(m - low + 1) + low * log(h)) : 1;
    b *= exp((m - low) * log1p(-h));
    double up = 1 / h, up2 = up * up, up3 = up2 * up, up4 = up2 * up2, odds = h / rest_h, cumulative = 0;
    double down = 1 / rest_h, down2 = down * down, down3 = down2 * down, down4 = down2 * down2, more = ranks - 1;
    sum[0] = low;
    for (double j = low; j < high; j++) {
        cumulative += b;
        double below = whole_power(cumulative, ranks), i = m - 1 - j;
        /* u = (ln F)' with F' = -b(j) (m-j)/(1-h); r = (ln -F')' */
        double u = -b * (m - j) * down / cumulative, r = j * up - i * down;
        double r1 = -j * up2 - i * down2, r2 = 2 * (j * up3 - i * down3), r3 = -6 * (j * up4 + i * down4);
        double gap = r - u, u1 = u * gap, gap1 = r1 - u1, u2 = u1 * gap + u * gap1, gap2 = r2 - u2;
        double u3 = u2 * gap + 2 * u1 * gap1 + u * gap2;
        /* l = (ln -(F^R)')', whose powers and derivatives give the higher ones of F^R */
        double l = more * u + r, l1 = more * u1 + r1, l2 = more * u2 + r2, l3 = more * u3 + r3, ll = l * l;
        double first = ranks * below * u;
        sum[0] += 1 - below;
        sum[1] -= first;
        sum[2] -= first * l;
        sum[3] -= first * (ll + l1);
        sum[4] -= first * (l * (ll + 3 * l1) + l2);
        sum[5] -= first * (ll * (ll + 6 * l1) + 3 * l1 * l1 + 4 * l * l2 + l3);
        b *= (m - j) / (j + 1) * odds;
    }
}

/* The fullest of R ranks of m experts after one token with k random experts. Coefficients of a power of
 * a polynomial by Miller's recurrence: n c_n = sum_i (i (R+1) - n) a_i c_{n-i} with a_0 = 1. */
static double one_token_max(double m, int k, int ranks)
{
    enum { MOST = 64 };
    if (k > MOST) /* no router selects as many, and the approximation is accurate there */
        return NAN;
    double a[MOST + 1] = {1}, c[MOST + 1] = {1}, all = 1, sum = 0;
    for (int i = 1; i <= k; i++) {
        a[i] = a[i - 1] * fmax(m - i + 1, 0) / i;
        all *= (m * ranks - i + 1) / i;
    }
    for (int j = 0; j < k; j++) {
        for (int n = 1; n <= k; n++) {
            double coefficient = 0;
            for (int i = 1; i <= n && i <= j; i++)
                coefficient += (i * (ranks + 1) - n) * a[i] * c[n - i];
            c[n] = coefficient / n;
        }
        double above = 1 - c[k] / all;
        if (above < 1e-12)
            break;
        sum += above;
    }
    return sum;
}

/* M(D) from the sum's derivatives in h, and dM/dh. */
static double bounded_sum(const double s[ORDERS], double experts, double h, double *slope)
{
    double v = h * (1 - h), skew = 1 - 2 * h, square = experts * experts;
    double a2 = -(1 + 1 / experts) / (2 * experts);
    double fixed_sum = a2 * v * s[2] + v * skew * s[3] / (3 * square) + v * v * s[4] / (8 * square);
    double slope_of_it = a2 * (skew * s[2] + v * s[3]) + ((1 - 6 * v) * s[3] + v * skew * s[4]) / (3 * square) +
                         (2 * v * skew * s[4] + v * v * s[5]) / (8 * square);
    /* The expansion is in powers of 1 / variance: it is faded out where the variance is less than about two. */
    double variance = experts * v, cube = variance * variance * variance, room = 16 + cube * variance;
    double share = cube * variance / room, slope_of_share = 64 * cube / (room * room) * experts * skew;
    *slope = s[1] + share * slope_of_it + slope_of_share * fixed_sum;
    return s[0] + share * fixed_sum;
}

/* The count of the fullest rank when `touched` of `slots` equal slots are touched, exact for one token. */
static struct dual distinct_max(const struct placing *p, double slots, struct dual touched, double exact)
{
    double h = fmin(touched.v / slots, 1 - 1e-15), first = p->k / slots, m = ceil(slots / p->ranks), unused, slope;
    double sums[ORDERS];
    binomial_max(m, first, (int)p->ranks, sums);
    double gap = isnan(exact) ? 0 : exact - bounded_sum(sums, slots, first, &unused);
    binomial_max(m, h, (int)p->ranks, sums);
    double value = bounded_sum(sums, slots, h, &slope);
    double decay = whole_power(first / h, 4) / (1 - first);
    value += gap * decay * (1 - h);
    slope -= gap * decay * (1 + 4 * (1 - h) / h);
    return (struct dual){value, slope * touched.d / slots};
}

/* The pairs of the fullest rank above the mean, from the cumulants k[2..4] of a rank's pairs. */
static struct dual pairs_excess(const struct placing *p, const struct dual k[5])
{
    struct dual s = square_root(k[2]);
    struct dual g1 = over(k[3], times(k[2], s)), g2 = over(k[4], times(k[2], k[2])), g11 = times(g1, g1);
    struct dual factor = plus(fixed(p->d1), scaled(g1, (p->d2 - 1) / 6));
    factor = plus(factor, scaled(g2, (p->d3 - 3 * p->d1) / 24));
    factor = minus(factor, scaled(g11, (2 * p->d3 - 5 * p->d1) / 36));
    factor = minus(factor, scaled(minus(g2, scaled(g11, 1.5)), p->d1 / (4 * p->ranks)));
    return times(s, factor);
}

/* The pairs of the fullest rank: proportional to its distinct experts while few experts are selected twice, then from
 * the cumulants k of a rank's pairs. */
static struct dual pairs_max(const struct placing *p, const struct loads *l, const struct dual k[5])
{
    struct dual mean = scaled(p->tokens, p->k / p->ranks), repeat = over(mean, l->distinct_mean);
    struct dual sparse = times(minus(l->distinct_max, l->distinct_mean), raised(repeat, 1.5));
    struct dual dense = pairs_excess(p, k);
    return plus(mean, plus(dense, times(raised(repeat, -48), minus(sparse, dense))));
}

/* Cumulants 2 to 4 of the pairs of m beta-binomial experts, from the factorial moments T_(i) a^(i) / nu^(i). */
static void pair_cumulants(const struct placing *p, struct dual k[5])
{
    double m = p->experts / p->ranks;
    struct dual spread = scaled(times(p->cv, p->cv), p->mu); /* 1/nu = spread / (1 - mu - spread) */
    struct dual narrow = over(spread, minus(fixed(1 - p->mu), spread));
    struct dual moment[5] = {fixed(1)};
    for (int i = 0; i < 4; i++) {
        struct dual up = plus(fixed(p->mu), scaled(narrow, i)), down = plus(fixed(1), scaled(narrow, i));
        moment[i + 1] = times(times(moment[i], over(up, down)), minus(p->tokens, fixed(i)));
    }
    struct dual m1 = scaled(p->tokens, p->mu), square = times(m1, m1); /* no cv in them */
    struct dual f2 = moment[2], f3 = moment[3], f4 = moment[4];
    struct dual m2 = plus(f2, m1), m3 = plus(plus(f3, scaled(f2, 3)), m1);
    struct dual m4 = plus(plus(f4, scaled(f3, 6)), plus(scaled(f2, 7), m1));
    k[2] = minus(m2, square);
    k[3] = plus(minus(m3, scaled(times(m2, m1), 3)), scaled(times(square, m1), 2));
    k[4] = minus(minus(m4, scaled(times(m3, m1), 4)), scaled(times(m2, m2), 3));
    k[4] = plus(k[4], minus(scaled(times(m2, square), 12), scaled(times(square, square), 6)));
    for (int i = 2; i <= 4; i++)
        k[i] = scaled(k[i], m);
}

/* The copies that a greedy balancer makes: `split` experts of mean popularity `popular`, `excess` above their
 * smallest, become split + redundant slots of mean popularity `slot` and relative variance `variance`. */
struct copies {
    double redundant;
    struct dual split, popular, excess, slot, variance;
    struct dual saved; /* sum of p^2 over experts less that over slots */
};

static void make_copies(const struct placing *p, double redundant, struct copies *c)
{
    double x = redundant / p->experts, L = log1p(1 / x), k0 = sqrt(fmax(0, 1.85 * L - 1.37));
    struct dual cv2 = times(p->cv, p->cv);
    c->redundant = redundant;
    c->split = over(fixed(redundant), plus(fixed(1), scaled(over(cv2, plus(fixed(1), scaled(cv2, 0.08))), x)));
    c->popular = scaled(plus(fixed(1), plus(scaled(p->cv, k0), scaled(cv2, L - k0))), p->mu);
    if (c->popular.v > 0.95) /* a probability, also outside the range of the fit */
        c->popular = fixed(0.95);
    c->excess = scaled(plus(scaled(p->cv, 0.5), scaled(cv2, 0.45)), p->mu);
    if (c->excess.v > c->popular.v)
        c->excess = c->popular;
    c->slot = over(times(c->split, c->popular), plus(c->split, fixed(redundant)));
    c->variance = scaled(over(cv2, plus(cv2, fixed(0.15))), 0.035);
    struct dual before = plus(times(c->popular, c->popular), times(c->excess, c->excess));
    struct dual after = times(times(c->slot, c->slot), plus(fixed(1), c->variance));
    c->saved = minus(times(c->split, before), times(plus(c->split, fixed(redundant)), after));
}

/* D_s(T): slots with at least one token. */
static struct dual distinct_slots(const struct placing *p, const struct copies *c, struct dual tokens)
{
    struct dual least = minus(c->popular, c->excess), room = rest(c->popular);
    struct dual expert = times(rest_to(least, tokens), over(room, plus(room, times(c->excess, tokens))));
    struct dual ratio = over(c->slot, rest(c->slot));
    struct dual couples = scaled(times(tokens, minus(tokens, fixed(1))), 0.5);
    struct dual bend = times(times(times(ratio, ratio), c->variance), couples);
    struct dual slot = times(rest_to(c->slot, tokens), plus(fixed(1), bend));
    struct dual all = distinct_experts(p->experts, p->mu, tokens, p->cv, p->slope);
    return plus(minus(all, times(c->split, rest(expert))), times(plus(c->split, fixed(c->redundant)), rest(slot)));
}

/* The part of the independent slots' variance that is noise when ranks hold balanced slots. */
static struct dual noise_share(const struct placing *p, double slots, struct dual touched, struct dual twice)
{
    struct dual idle = rest(scaled(touched, 1 / slots));
    if (idle.v < 1e-9)
        return fixed(1);
    struct dual idle_twice = rest(scaled(twice, 1 / slots));
    struct dual share = over(minus(idle, idle_twice), times(idle, rest(idle)));
    double n = slots / p->ranks, crowd = pow(p->tokens.v * p->k / slots / (0.12 * n * n), 1.6);
    struct dual uneven = {-expm1(-crowd), exp(-crowd) * 1.6 * crowd / p->tokens.v * p->tokens.d};
    if (share.v < 0) /* far more copies than in the fit */
        share = fixed(0);
    return plus(share, times(rest(share), uneven));
}

/* Cumulants of a rank's pairs when popularity is balanced: near-Poisson noise, and the remaining imbalance. */
static void balanced_cumulants(const struct placing *p, const struct copies *c, double slots, struct dual k[5])
{
    double R = p->ranks, one = p->k / R, n = slots / R;
    struct dual cv2 = times(p->cv, p->cv), experts = scaled(plus(fixed(1), cv2), p->k * p->mu); /* sum of p^2 */
    struct dual variance = minus(fixed(p->k), minus(experts, c->saved)); /* of one token, all ranks */
    variance = scaled(plus(variance, scaled(c->saved, 1 / (R - 1))), slots / (slots - 1) / R);
    struct dual w = rest(scaled(variance, 1 / one));
    struct dual left = times(over(cv2, plus(cv2, fixed(0.1))), scaled(p->tokens, one / (n * n * p->d1)));
    struct dual noise = times(variance, p->tokens);
    k[2] = plus(noise, times(left, left));
    k[3] = times(noise, rest(scaled(w, 2)));
    k[4] = times(noise, rest(scaled(times(w, rest(w)), 6)));
}

/* For more than one rank, fewer experts per token than experts, at least one token. */
static void load_balanced(const struct placing *p, double redundant, struct loads *out)
{
    double slots = p->experts + redundant;
    double exact = one_token_max(ceil(slots / p->ranks), (int)p->k, (int)p->ranks);
    struct copies copies;
    make_copies(p, redundant, &copies);
    struct dual touched = distinct_slots(p, &copies, p->tokens);
    struct dual twice = distinct_slots(p, &copies, scaled(p->tokens, 2));
    out->distinct_mean = scaled(touched, 1 / p->ranks);
    struct dual excess = minus(distinct_max(p, slots, touched, exact), out->distinct_mean);
    excess = times(excess, square_root(noise_share(p, slots, touched, twice)));
    out->distinct_max = plus(out->distinct_mean, excess);
    struct dual k[5];
    balanced_cumulants(p, &copies, slots, k);
    out->pairs_max = pairs_max(p, out, k);
}

static void load_as_placed(const struct placing *p, struct loads *out)
{
    double exact = one_token_max(ceil(p->experts / p->ranks), (int)p->k, (int)p->ranks);
    struct dual touched = distinct_experts(p->experts, p->mu, p->tokens, p->cv, p->slope), k[5];
    out->distinct_mean = scaled(touched, 1 / p->ranks);
    out->distinct_max = distinct_max(p, p->experts, touched, exact);
    pair_cumulants(p, k);
    out->pairs_max = pairs_max(p, out, k);
}

static void loads(int experts, int k, struct dual tokens, struct dual cv, int ranks, int redundant, bool slope,
                  struct loads *out)
{
    struct dual least = tokens.v < 1 ? fixed(1) : tokens, part = tokens.v < 1 ? tokens : fixed(1); /* of one token */
    struct placing p = {.experts = experts,
                        .k = k,
                        .mu = k / (double)experts,
                        .tokens = least,
                        .ranks = ranks,
                        .cv = {fmax(cv.v, 0), cv.d},
                        .slope = slope};
    double widest = k < experts ? sqrt((1 - p.mu) / (p.mu * (1 + LEAST_NU))) : 0;
    if (redundant > 0) /* the copies were fitted up to 2 */
        widest = fmin(widest, 2.5);
    if (p.cv.v > widest)
        p.cv = fixed(widest);
    if (k >= experts) {
        out->distinct_mean = out->distinct_max = fixed((experts + redundant) / p.ranks);
        out->pairs_max = scaled(p.tokens, k / p.ranks);
    } else if (ranks == 1) {
        out->pairs_max = scaled(p.tokens, k);
        out->distinct_mean = distinct_experts(experts, p.mu, p.tokens, p.cv, slope);
        if (redundant > 0) {
            struct copies copies;
            make_copies(&p, redundant, &copies);
            out->distinct_mean = distinct_slots(&p, &copies, p.tokens);
        }
        out->distinct_max = out->distinct_mean;
    } else {
        p.d1 = k25_normal_max(ranks);
        normal_max_powers(ranks, &p.d2, &p.d3);
        if (redundant > 0)
            load_balanced(&p, redundant, out);
        else
            load_as_placed(&p, out);
    }
    if (part.v < 0)
        part = fixed(0);
    out->distinct_mean = times(out->distinct_mean, part);
    out->distinct_max = times(out->distinct_max, part);
    out->pairs_max = times(out->pairs_max, part);
}

void k25_ep_load(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                 struct k25_ep_load *load)
{
    struct loads all;
    loads(experts, experts_per_token, fixed(tokens), fixed(cv), ranks, redundant, false, &all);
    *load = (struct k25_ep_load){.distinct_mean = all.distinct_mean.v,
                                 .distinct_max = all.distinct_max.v,
                                 .pairs_mean = fmax(tokens, 0) * experts_per_token / ranks,
                                 .pairs_max = all.pairs_max.v};
}

void k25_ep_load_slope(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                       struct k25_ep_load *slope)
{
    struct loads all;
    loads(experts, experts_per_token, fixed(tokens), (struct dual){cv, 1}, ranks, redundant, true, &all);
    *slope = (struct k25_ep_load){
        .distinct_mean = all.distinct_mean.d, .distinct_max = all.distinct_max.d, .pairs_max = all.pairs_max.d};
}

void k25_ep_load_growth(int experts, int experts_per_token, double tokens, double cv, int ranks, int redundant,
                        struct k25_ep_load *slope)
{
    struct loads all;
    loads(experts, experts_per_token, (struct dual){tokens, 1}, fixed(cv), ranks, redundant, true, &all);
    *slope = (struct k25_ep_load){.distinct_mean = all.distinct_mean.d,
                                  .distinct_max = all.distinct_max.d,
                                  .pairs_mean = tokens > 0 ? experts_per_token / (double)ranks : 0,
                                  .pairs_max = all.pairs_max.d};
}
