/* AVX2 primitives of quick.c: classes of bytes as bit masks, ends of strings and numbers, the closing brace. x86-64
 * only. */
#ifndef K25_CALIB_TRACE_SIMD_H
#define K25_CALIB_TRACE_SIMD_H

#include <immintrin.h>

#include "calib/trace/internal.h"

#define FAST __attribute__((target("avx2,bmi,bmi2,lzcnt,pclmul")))
#define INLINE static inline __attribute__((always_inline)) FAST

INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

INLINE uint32_t bits(__m256i x)
{
    return (uint32_t)_mm256_movemask_epi8(x);
}

INLINE __m256i equal(__m256i x, char c)
{
    return _mm256_cmpeq_epi8(x, _mm256_set1_epi8(c));
}

INLINE __m256i either(__m256i a, __m256i b)
{
    return _mm256_or_si256(a, b);
}

/* Bytes that are valid next to a string: blanks , : [ ] { }. Two table look-ups on the low four bits, as simdjson. */
INLINE __m256i next_to_string(__m256i x, __m256i lower)
{
    const __m256i blank =
        _mm256_setr_epi8(' ', 100, 100, 100, 17, 100, 113, 2, 100, '\t', '\n', 112, 100, '\r', 100, 100, ' ', 100, 100,
                         100, 17, 100, 113, 2, 100, '\t', '\n', 112, 100, '\r', 100, 100);
    const __m256i mark = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                          0, 0, 0, ':', '{', ',', '}', 0, 0);
    return either(_mm256_cmpeq_epi8(x, _mm256_shuffle_epi8(blank, x)),
                  _mm256_cmpeq_epi8(lower, _mm256_shuffle_epi8(mark, x)));
}

/* The classes of 64 bytes, one bit per byte. */
struct block {
    uint64_t quote, open, close, adjacent, odd /* backslash or above 127 */, n;
};

INLINE void look(const char *p, bool brackets, struct block *block)
{
    const __m256i case_bit = _mm256_set1_epi8(0x20);
    *block = (struct block){0};
    for (int half = 1; half >= 0; half--) {
        __m256i x = load(p + 32 * half), lower = either(x, case_bit), y = brackets ? lower : x;
        block->quote = block->quote << 32 | bits(equal(x, '"'));
        block->open = block->open << 32 | bits(equal(y, '{'));
        block->close = block->close << 32 | bits(equal(y, '}'));
        block->adjacent = block->adjacent << 32 | bits(next_to_string(x, lower));
        block->odd = block->odd << 32 | bits(either(equal(x, '\\'), x));
        block->n = block->n << 32 | bits(equal(lower, 'n'));
    }
}

/* Bits from an odd to an even quote, the first of each pair included. */
INLINE uint64_t inside_strings(uint64_t quote)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)quote), _mm_set1_epi8(-1), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

INLINE bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Whether there is a comma before the brace at `p`: inside an event only a list of objects has that, and an event whose
 * end is missing. The text before `p` begins with a brace. */
INLINE bool behind_comma(const char *p)
{
    for (p--; is_blank(*p); p--) {
    }
    return *p == ',';
}

/* Whether a comma or `close` comes next, or the next byte is not known yet. */
INLINE bool goes_on(const char *p, const char *end, char close)
{
    for (; p < end && is_blank(*p); p++) {
    }
    return p >= end || *p == ',' || *p == close;
}

/* From `p`, outside strings and `depth` levels deep, to the byte after the brace that closes the outermost level. With
 * `brackets`, brackets count too. `after_string`: `p` directly follows a string. */
INLINE enum k25_trace_verdict close_at(const char *p, const char *end, int64_t depth, bool brackets, bool after_string,
                                       const char **after)
{
    uint64_t in = 0, closed_before = after_string, adjacent_before = !after_string;
    for (; p < end; p += 64) {
        struct block b;
        look(p, brackets, &b);
        uint64_t valid = end - p >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << (end - p)) - 1;
        uint64_t inside = inside_strings(b.quote & valid) ^ in, first = b.quote & inside;
        uint64_t last = b.quote & ~inside; /* quotes that begin and that end strings */
        uint64_t odd = (b.odd | (b.n & ~inside) | ((last << 1 | closed_before) & ~b.adjacent) |
                        (first & ~(b.adjacent << 1 | adjacent_before))) &
                       valid;
        uint64_t open = b.open & ~inside & valid, braces = open | (b.close & ~inside & valid);
        for (; braces != 0; braces &= braces - 1) {
            uint64_t bit = braces & (0 - braces);
            const char *at = p + _tzcnt_u64(braces);
            if ((open & bit) != 0) {
                if (!brackets && behind_comma(at)) {
                    return K25_EVENT_ODD;
                }
                depth++;
            } else if (--depth == 0) {
                *after = at + 1;
                return (odd & (bit | (bit - 1))) != 0 || (!brackets && !goes_on(at + 1, end, ']')) ? K25_EVENT_ODD
                                                                                                   : K25_EVENT_DONE;
            }
        }
        if (odd != 0) {
            return K25_EVENT_ODD;
        }
        in = 0 - (inside >> 63);
        closed_before = last >> 63;
        adjacent_before = b.adjacent >> 63;
    }
    return K25_EVENT_MORE;
}

/* The closing quote of the string whose content begins at `p`; or the first byte that the reference must parse; or a
 * position at or after `end`. */
INLINE const char *string_end(const char *p, const char *end)
{
    for (; p < end; p += 32) {
        __m256i x = load(p);
        uint32_t found = bits(either(either(equal(x, '"'), equal(x, '\\')), x));
        if (found != 0) {
            return p + _tzcnt_u32(found);
        }
    }
    return end;
}

/* The byte after the number at `p` (-1.25e-3), or `p` when there is none. Reads 32 bytes. */
INLINE const char *number_end(const char *p)
{
    const char *start = p;
    p += *p == '-';
    __m256i x = load(p);
    __m256i from = _mm256_cmpgt_epi8(x, _mm256_set1_epi8('0' - 1));
    uint32_t other = ~bits(_mm256_andnot_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('9')), from));
    unsigned whole = (unsigned)_tzcnt_u32(other);
    if (whole == 0 || whole == 32) {
        return start;
    }
    if (p[whole] == '.') {
        other &= ~(1u << whole);
        whole = (unsigned)_tzcnt_u32(other);
        if (whole == 32) {
            return start;
        }
    }
    p += whole;
    if ((*p | 0x20) == 'e') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        for (; *p >= '0' && *p <= '9'; p++) {
        }
        return p[-1] >= '0' && p[-1] <= '9' ? p : start;
    }
    return p;
}

/* Eight digits at once, by pairs, then fours, then all; false when one of them is not a digit. */
INLINE bool eight_digits(const char *p, uint64_t *value)
{
    uint64_t x;
    memcpy(&x, p, 8);
    uint64_t high = 0xf0f0f0f0f0f0f0f0u, above = x + 0x0606060606060606u;
    if (((x & high) | (above & high) >> 4) != 0x3333333333333333u) {
        return false;
    }
    x = (x & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    x = (x & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    *value = (x & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
    return true;
}

/* The digits from `*p` on, fewer than 19; false when there are more or none. */
INLINE bool whole_number(const char **p, uint64_t *value)
{
    const char *at = *p;
    uint64_t sum = 0, eight;
    if (eight_digits(at, &eight)) {
        sum = eight;
        at += 8;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    bool fine = at > *p && at - *p < 19;
    *p = at;
    *value = sum;
    return fine;
}

#endif
