#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact: 5^27 has 63 bits. */
static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                     1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                     1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
static const double small_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { DIGITS = 6, LOWEST = -17, HIGHEST = 26 /* exponents of the fast path: scaling within `powers` */ };

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    "495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static size_t write_printf(double value, char out[K25_NUMBER_SIZE], double *rounded)
{
    int length = snprintf(out, K25_NUMBER_SIZE, "%.6g", value);
    for (int i = 0; i < length; i++) {
        if (out[i] == ',')
            out[i] = '.';
    }
    if (rounded != NULL) {
        /* A denormal power of ten or an exponent past the table: use strtod, which expects the locale's point. */
        char text[K25_NUMBER_SIZE];
        snprintf(text, sizeof text, "%.6g", value);
        *rounded = strtod(text, NULL);
    }
    return (size_t)length;
}

/* `digits` x 10^(exponent - 5) as the nearest double: both factors are exact, so that the one operation rounds
 * once. */
static double assemble(uint32_t digits, int exponent)
{
    int shift = exponent - (DIGITS - 1);
    return shift >= 0 ? digits * small_powers[shift] : digits / small_powers[-shift];
}

/* Lays out six digits as %g does: no trailing zeros, an exponent below 1e-4 and from 1e6. */
static size_t lay_out(uint32_t digits, int exponent, char *out)
{
    char text[DIGITS];
    memcpy(text, pairs + digits / 10000 * 2, 2);
    memcpy(text + 2, pairs + digits / 100 % 100 * 2, 2);
    memcpy(text + 4, pairs + digits % 100 * 2, 2);
    int count = DIGITS;
    while (count > 1 && text[count - 1] == '0')
        count--;
    char *at = out;
    if (exponent < -4 || exponent >= DIGITS) {
        *at++ = text[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, text + 1, DIGITS - 1);
            at += count - 1;
        }
        *at++ = 'e';
        *at++ = exponent < 0 ? '-' : '+';
        memcpy(at, pairs + abs(exponent) * 2, 2);
        return (size_t)(at + 2 - out);
    }
    if (exponent < 0) {
        memcpy(at, "0.0000", 6);
        at += 1 - exponent;
        memcpy(at, text, DIGITS);
        return (size_t)(at + count - out);
    }
    int whole = exponent + 1;
    memcpy(at, text, DIGITS);
    if (count <= whole)
        return (size_t)(at + whole - out);
    at += whole;
    *at++ = '.';
    memcpy(at, text + whole, DIGITS - (size_t)whole);
    return (size_t)(at + count - whole - out);
}

/* Whole numbers, exactly: rounded by the digits dropped, ties to even. */
static uint32_t round_whole(uint64_t value, int *exponent)
{
    uint64_t unit = 1;
    *exponent = DIGITS - 1;
    while (value / unit >= 1000000) {
        unit *= 10;
        ++*exponent;
    }
    uint64_t digits = value / unit, rest = value % unit;
    if (rest * 2 > unit || (rest * 2 == unit && (digits & 1) != 0))
        digits++;
    while (unit == 1 && digits < 100000) {
        digits *= 10;
        --*exponent;
    }
    return (uint32_t)digits;
}

/* floor(log10(value)) or one less: log10(2) = 0.30103; the binary exponent is in bits 52 to 62. */
static int guess_exponent(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int binary = (int)(bits >> 52) - 1023;
    return binary * 1233 / 4096 - (binary < 0);
}

/* The fast path: one operation with an exact factor has an error of 2^-53 of a number below 10^6, less than 1.2e-10.
 * False when the rounding direction is within that error, or `value` is out of range. */
static bool round_quickly(double value, uint32_t *digits, int *exponent)
{
    int guess = guess_exponent(value);
    for (;; guess++) {
        if (guess < LOWEST || guess > HIGHEST)
            return false;
        int shift = DIGITS - 1 - guess;
        double scaled = shift >= 0 ? value * small_powers[shift] : value / small_powers[-shift];
        if (scaled >= 1e6)
            continue;
        uint32_t whole = (uint32_t)scaled;
        double over = scaled - whole;
        *digits = whole + (over > 0.5);
        *exponent = guess;
        return fabs(over - 0.5) > 1e-9 && scaled < 999999.9;
    }
}

/* The same with 64 bits. False when `value` is too close to a tie even for them. */
static bool round_real(double value, uint32_t *digits, int *exponent)
{
    int guess = guess_exponent(value);
    for (;; guess++) {
        if (guess < LOWEST || guess > HIGHEST)
            return false;
        int shift = DIGITS - 1 - guess;
        long double scaled = shift >= 0 ? value * powers[shift] : value / powers[-shift];
        if (scaled >= 1e6L)
            continue;
        *digits = (uint32_t)scaled;
        long double over = scaled - *digits;
        if (fabsl(over - 0.5L) < 1e-9L)
            return false;
        *digits += over > 0.5L;
        *exponent = guess;
        return true;
    }
}

size_t k25_write_six(double value, char out[K25_NUMBER_SIZE], double *rounded)
{
    double size = fabs(value);
    uint32_t digits;
    int exponent;
    if (size == 0) {
        bool minus = signbit(value);
        memcpy(out, "-0", 2);
        out[0] = minus ? '-' : '0';
        if (rounded != NULL)
            *rounded = value;
        return minus ? 2 : 1;
    }
    if (size < 1e15 && size == (double)(uint64_t)size)
        digits = round_whole((uint64_t)size, &exponent);
    else if (!round_quickly(size, &digits, &exponent) && !round_real(size, &digits, &exponent))
        return write_printf(value, out, rounded);
    if (digits == 1000000) {
        digits = 100000;
        exponent++;
    }
    if (rounded != NULL)
        *rounded = copysign(assemble(digits, exponent), value);
    bool minus = value < 0;
    out[0] = '-';
    return minus + lay_out(digits, exponent, out + minus);
}

size_t k25_write_whole(int64_t value, char out[K25_NUMBER_SIZE])
{
    char text[K25_NUMBER_SIZE];
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t at = sizeof text;
    while (size >= 100) {
        at -= 2;
        memcpy(text + at, pairs + size % 100 * 2, 2);
        size /= 100;
    }
    if (size >= 10) {
        at -= 2;
        memcpy(text + at, pairs + size * 2, 2);
    } else {
        text[--at] = (char)('0' + size);
    }
    if (value < 0)
        text[--at] = '-';
    memcpy(out, text + at, sizeof text - at);
    return sizeof text - at;
}
