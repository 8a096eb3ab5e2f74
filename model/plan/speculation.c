#include "model/plan/speculation.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/plan/plan.h"

/* Reads the marginal rates of "0.83/0.6/0.45". Returns their number, 0 when a part is not a rate or rises. */
static int split_rates(const char *text, double *rates)
{
    int count = 0;
    while (count < K25_MAX_DRAFT) {
        char part[32];
        size_t length = strcspn(text, "/");
        if (length == 0 || length >= sizeof part)
            return 0;
        memcpy(part, text, length);
        part[length] = '\0';
        if (!k25_parse_real(part, &rates[count]) || !(rates[count] >= 0) || rates[count] > 1 ||
            (count > 0 && rates[count] > rates[count - 1]))
            return 0;
        count++;
        if (text[length] == '\0')
            return count;
        text += length + 1;
    }
    return 0;
}

/* 1 + a + a^2 + ... + a^k */
static double chain(double a, int k)
{
    double sum = 1, power = 1;
    for (int j = 0; j < k; j++)
        sum += power *= a;
    return sum;
}

bool k25_tokens_per_step(const struct k25_plan_speculation *speculation, double *tokens, struct k25_error *error)
{
    const char *text = speculation->acceptance;
    int k = speculation->tokens;
    double value, rates[K25_MAX_DRAFT];
    *tokens = speculation->method == K25_SPEC_NONE ? 1 : NAN;
    if (speculation->method == K25_SPEC_NONE || text[0] == '\0')
        return true;
    if (strchr(text, '/') != NULL) {
        int count = split_rates(text, rates);
        if (count == 0)
            return k25_fail(error, K25_BAD_INPUT, "'%s': expected marginal rates from 0 to 1 that do not rise", text);
        if (count < k)
            return k25_fail(error, K25_BAD_INPUT, "'%s' has %d rates, expected one for each of %d tokens", text, count,
                            k);
        *tokens = 1;
        for (int j = 0; j < k; j++)
            *tokens += rates[j];
        return true;
    }
    bool conditional = strncmp(text, "a=", 2) == 0;
    if (!k25_parse_real(conditional ? text + 2 : text, &value) || !(value >= 0) || (conditional && value > 1) ||
        value > k + 1)
        return k25_fail(error, K25_BAD_INPUT,
                        "'%s': expected the share of drafts accepted (0 to 1), tokens a step "
                        "(1 to %d), rates r1/r2/..., or a=rate",
                        text, k + 1);
    *tokens = conditional ? chain(value, k) : value <= 1 ? 1 + k * value : value;
    return true;
}

/* The conditional rate with a mean of `tokens` over a chain of k. */
static double constant_rate(double tokens, int k)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(chain(middle, k) < tokens ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

bool k25_marginal_rates(const struct k25_plan_speculation *speculation, int k, double *rates)
{
    struct k25_error error;
    double tokens;
    int given = strchr(speculation->acceptance, '/') == NULL ? 0 : split_rates(speculation->acceptance, rates);
    if (!k25_tokens_per_step(speculation, &tokens, &error) || isnan(tokens))
        return false;
    double rate = given == 0                            ? constant_rate(tokens, speculation->tokens)
                  : given == 1 || rates[given - 2] <= 0 ? rates[0]
                                                        : rates[given - 1] / rates[given - 2];
    for (int j = given; j < k; j++)
        rates[j] = (j == 0 ? 1 : rates[j - 1]) * rate;
    return true;
}
