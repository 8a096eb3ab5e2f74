/* Distinct experts of a batch, against the integral over the Beta density, drawn experts and published counts. */
#include "tests/unit/physics_check.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "model/routing.h"

/* E (1 - int (1-p)^T p^(a-1) (1-p)^(b-1) dp / B(a,b)). With p = 1/(1 + exp(-x)) the poles are gone: dp = p (1-p)
 * dx. Numerator and B(a,b) by the same midpoint rule. */
static double by_quadrature(int experts, int k, double tokens, double cv)
{
    double mu = k / (double)experts, nu = (1 - mu) / (mu * cv * cv) - 1;
    double a = mu * nu, b = (1 - mu) * nu, above = 0, below = 0;
    enum { N = 20000 };
    double low = -40 / fmin(a, 1), width = (40 - low) / N;
    for (int i = 0; i < N; i++) {
        double x = low + (i + 0.5) * width, ln_p = -log1p(exp(-x)), ln_q = -log1p(exp(x));
        above += exp(a * ln_p + (b + tokens) * ln_q);
        below += exp(a * ln_p + b * ln_q);
    }
    return experts * (1 - above / below);
}

static void agrees_with_the_integral(void **state)
{
    (void)state;
    static const struct { int experts, k; } shapes[] = {{384, 8}, {256, 8}, {128, 4}, {512, 10}};
    static const double spreads[] = {0.3, 0.8, 1, 1.5, 2}, tokens[] = {1, 2, 7.5, 32, 128, 512};
    for (size_t s = 0; s < 4; s++) {
        for (size_t c = 0; c < 5; c++) {
            for (size_t t = 0; t < 6; t++)
                assert_close(k25_distinct_experts(shapes[s].experts, shapes[s].k, tokens[t], spreads[c]),
                             by_quadrature(shapes[s].experts, shapes[s].k, tokens[t], spreads[c]), 1e-6);
        }
    }
}

/* 400 draws of 384 popularities, each expert then hit or not by T independent tokens. */
static void agrees_with_drawn_experts(void **state)
{
    (void)state;
    static const double tokens[] = {4, 32, 128};
    gsl_rng *chance = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(chance, 384);
    double mu = 8.0 / 384, cv = 1.2, nu = (1 - mu) / (mu * cv * cv) - 1;
    for (size_t t = 0; t < 3; t++) {
        double touched = 0;
        enum { DRAWS = 400 };
        for (int i = 0; i < DRAWS * 384; i++) {
            double p = gsl_ran_beta(chance, mu * nu, (1 - mu) * nu);
            touched += gsl_ran_binomial(chance, p, (unsigned)tokens[t]) > 0;
        }
        assert_close(k25_distinct_experts(384, 8, tokens[t], cv), touched / DRAWS, 0.01);
    }
    gsl_rng_free(chance);
}

static void uniform_routing_is_the_published_count(void **state)
{
    (void)state;
    /* moe.md: Kimi, independent and uniform: 384 (1 - (1 - 8/384)^T) */
    static const struct { double tokens, distinct, half_digit; } cases[] = {
        {1, 8, 1e-9},  {2, 15.8, .05}, {4, 31, .05},  {8, 59.5, .05}, {16, 109.8, .05},
        {32, 188.2, .05}, {64, 284, .5}, {128, 358, .5}, {256, 382, .5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_float_equal(k25_distinct_experts(384, 8, cases[i].tokens, 0), cases[i].distinct,
                           cases[i].half_digit);
    /* A very narrow Beta tends to the same: its correction is of order cv^2. */
    for (double cv = 0.1; cv > 1e-6; cv /= 3)
        assert_close(k25_distinct_experts(384, 8, 64, cv), k25_distinct_experts(384, 8, 64, 0), cv * cv + 1e-5);
}

static void one_token_touches_its_top_k(void **state)
{
    (void)state;
    for (double cv = 0; cv < 20; cv += 0.05) {
        assert_close(k25_distinct_experts(384, 8, 1, cv), 8, 1e-6);
        assert_close(k25_distinct_experts(128, 4, 1, cv), 4, 1e-6);
    }
    /* Beyond the widest Beta (cv^2 = (1-mu)/mu, 6.86 here) the spread is capped. */
    assert_close(k25_distinct_experts(384, 8, 1, 1e6), 8, 1e-6);
    assert_true(isfinite(k25_distinct_experts(384, 8, 1e6, 1e6)));
}

static void grows_with_tokens_and_falls_with_skew(void **state)
{
    (void)state;
    for (double cv = 0; cv <= 4; cv += 0.25) {
        double before = 0;
        for (double tokens = 1; tokens <= 4096; tokens *= 1.5) {
            double D = k25_distinct_experts(384, 8, tokens, cv);
            assert_true((D > before || before > 383.9) && D <= 384 && D <= 8 * tokens * (1 + 1e-6));
            if (tokens > 1 && D < 383.9)
                assert_true(k25_distinct_experts(384, 8, tokens, cv + 0.25) < D);
            before = D;
        }
    }
}

static void edges(void **state)
{
    (void)state;
    assert_true(k25_distinct_experts(384, 8, 0, 1) == 0);
    assert_true(k25_distinct_experts(16, 16, 1, 1) == 16); /* every expert, every token */
    assert_true(k25_distinct_experts(1, 1, 5, 0.5) == 1);
    assert_close(k25_distinct_experts(384, 8, 1e9, 0), 384, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_integral),
        cmocka_unit_test(agrees_with_drawn_experts),
        cmocka_unit_test(uniform_routing_is_the_published_count),
        cmocka_unit_test(one_token_touches_its_top_k),
        cmocka_unit_test(grows_with_tokens_and_falls_with_skew),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
