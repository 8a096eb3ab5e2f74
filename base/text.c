#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 64 }; /* a longer word is not a typing error */

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c - 'A' + 'a');
    }
    return c == '-' ? '_' : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance of a (n letters) and b (m letters), both at most LONGEST_NAME:
 *   d(i, j) = min( d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j],
 *                  d(i-2, j-2) + 1 when a_i a_{i-1} = b_{j-1} b_j ),  d(i, 0) = i, d(0, j) = j.
 * Only the last three rows are kept. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST_NAME + 1];
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        const size_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y) {
                row[j] = least(row[j], above2[j - 2] + 1);
            }
        }
    }
    return rows[n % 3][m];
}

static bool starts_with(const char *name, const char *word)
{
    while (*word != '\0' && fold(*name) == fold(*word)) {
        name++;
        word++;
    }
    return *word == '\0';
}

const char *k25_nearest(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    if (length > LONGEST_NAME) {
        return NULL;
    }
    size_t best = (length / 3 > 2 ? length / 3 : 2) + 1, shortest = LONGEST_NAME + 1;
    const char *nearest = NULL, *begun = NULL;
    for (; *names != NULL; names++) {
        size_t other = strlen(*names);
        if (other > LONGEST_NAME) {
            continue;
        }
        size_t edits = distance(word, length, *names, other);
        if (edits == 0) {
            return *names;
        }
        if (length >= 2 && other <= shortest && starts_with(*names, word)) {
            shortest = other;
            begun = *names;
        }
        /* As many edits as letters: no letter in common. Any name is that close to a word of two letters. */
        if (edits < best && edits < (length > other ? length : other)) {
            best = edits;
            nearest = *names;
        }
    }
    return begun != NULL ? begun : nearest;
}

bool k25_is_name(const char *word, const char *name)
{
    return strlen(word) == strlen(name) && starts_with(name, word);
}

const char *k25_did_you_mean(const char *word, const char *const *names, char *out, size_t size)
{
    const char *nearest = k25_nearest(word, names);
    if (nearest != NULL) {
        snprintf(out, size, ", did you mean '%s'?", nearest);
    } else if (size > 0) {
        out[0] = '\0';
    }
    return out;
}

static const char *skip_digits(const char *text)
{
    while (*text >= '0' && *text <= '9') {
        text++;
    }
    return text;
}

/* [+-] digits [. digits] [e [+-] digits] and nothing else; strtod alone would also accept " 1", 0x10 and nan. */
static bool looks_real(const char *text)
{
    text += *text == '+' || *text == '-';
    const char *whole = text;
    text = skip_digits(text);
    ptrdiff_t digits = text - whole;
    if (*text == '.') {
        const char *fraction = ++text;
        text = skip_digits(text);
        digits += text - fraction;
    }
    if (digits > 0 && (*text == 'e' || *text == 'E')) {
        text++;
        text += *text == '+' || *text == '-';
        const char *exponent = text;
        text = skip_digits(text);
        if (text == exponent) {
            return false;
        }
    }
    return digits > 0 && *text == '\0';
}

bool k25_parse_real(const char *text, double *value)
{
    if (!looks_real(text)) {
        return false;
    }
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) {
        return false;
    }
    double number = strtod_l(text, NULL, c);
    freelocale(c);
    if (!isfinite(number)) {
        return false;
    }
    *value = number;
    return true;
}

bool k25_parse_int(const char *text, long long *value)
{
    const char *digits = text + (*text == '+' || *text == '-');
    if (*digits == '\0' || *skip_digits(digits) != '\0') {
        return false;
    }
    int before = errno;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    bool fits = errno == 0;
    errno = before;
    if (fits) {
        *value = number;
    }
    return fits;
}

bool k25_parse_bool(const char *text, bool *value)
{
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) {
        return false;
    }
    *value = yes;
    return true;
}

const char *k25_text_bytes(double bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    const char *sign = bytes < 0 ? "-" : "";
    double value = fabs(bytes);
    size_t unit = 0;
    /* 999.95 of a unit would print as 1000.0. */
    while (unit + 1 < sizeof units / sizeof units[0] && value >= (unit == 0 ? 999.5 : 999.95)) {
        value /= 1000;
        unit++;
    }
    if (!(value < 1e15)) {
        snprintf(out, size, "%s%.0e %s", sign, value, units[unit]);
    } else if (unit == 0) {
        snprintf(out, size, "%s%.0f B", sign, value);
    } else {
        long long tenths = llround(value * 10); /* in whole numbers: %.1f follows the locale */
        snprintf(out, size, "%s%lld.%lld %s", sign, tenths / 10, tenths % 10, units[unit]);
    }
    return out;
}

const char *k25_text_count(double count, char *out, size_t size)
{
    char digits[400];
    int length = snprintf(digits, sizeof digits, "%.0f", fabs(count));
    if (size == 0) {
        return out;
    }
    size_t used = 0;
    bool negative = count < 0 && strcmp(digits, "0") != 0;
    if (negative && used + 1 < size) {
        out[used++] = '-';
    }
    for (int i = 0; i < length; i++) {
        bool comma = i > 0 && (length - i) % 3 == 0 && isfinite(count);
        if (comma && used + 1 < size) {
            out[used++] = ',';
        }
        if (used + 1 < size) {
            out[used++] = digits[i];
        }
    }
    out[used] = '\0';
    return out;
}

const char *k25_text_real(double value, char *out, size_t size)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(c);
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    uselocale(before);
    if (c != (locale_t)0) {
        freelocale(c);
    }
    snprintf(out, size, "%s", text);
    return out;
}

char *k25_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}
