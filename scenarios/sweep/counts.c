#include "scenarios/sweep/counts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The length of the number that starts at message[at]; 0: none. Digits in names (glm-5.1, rtx-pro-6000-8x) are not
 * numbers: a number follows a space, a parenthesis or its sign, and no letter, '_' or hyphen follows it. */
static size_t number_length(const char *message, size_t at)
{
    bool sign = at > 0 && message[at - 1] == '-';
    size_t start = sign ? at - 1 : at, length = strspn(message + at, "0123456789.,");
    if (!isdigit((unsigned char)message[at]) || (start > 0 && message[start - 1] != ' ' && message[start - 1] != '('))
        return 0;
    while (!isdigit((unsigned char)message[at + length - 1]))
        length--;
    char after = message[at + length];
    return isalpha((unsigned char)after) || after == '_' || after == '-' ? 0 : length;
}

/* Replaces numbers by N: messages of one reason differ in their numbers. */
static void mask_numbers(const char *message, char *out, size_t size)
{
    size_t used = 0;
    for (size_t at = 0; message[at] != '\0' && used + 1 < size;) {
        size_t length = number_length(message, at);
        out[used++] = length > 0 ? 'N' : message[at] == '\n' ? ' ' : message[at];
        at += length > 0 ? length : 1;
    }
    out[used] = '\0';
}

static void add_reason(struct k25_sweep_counts *counts, const char *text, uint64_t count)
{
    for (size_t i = 0; i < counts->reasons; i++) {
        if (strcmp(counts->reason[i].text, text) == 0) {
            counts->reason[i].count += count;
            return;
        }
    }
    bool full = counts->reasons + 1 >= K25_SWEEP_REASONS;
    if (full && counts->reasons == K25_SWEEP_REASONS) {
        counts->reason[K25_SWEEP_REASONS - 1].count += count;
        return;
    }
    struct k25_sweep_reason *reason = &counts->reason[counts->reasons++];
    snprintf(reason->text, sizeof reason->text, "%s", full ? "other reasons" : text);
    reason->count = count;
}

void k25_sweep_count_invalid(struct k25_sweep_counts *counts, const char *message, uint64_t count)
{
    char text[sizeof counts->reason[0].text];
    mask_numbers(message, text, sizeof text);
    add_reason(counts, text, count);
}

void k25_sweep_counts_add(struct k25_sweep_counts *sum, const struct k25_sweep_counts *more)
{
    sum->points += more->points;
    sum->evaluated += more->evaluated;
    sum->rows += more->rows;
    for (size_t i = 0; i < K25_SWEEP_CONSTRAINTS; i++)
        sum->rejected[i] += more->rejected[i];
    for (size_t i = 0; i < more->reasons; i++)
        add_reason(sum, more->reason[i].text, more->reason[i].count);
}

void k25_sweep_counts_clear(struct k25_sweep_counts *counts)
{
    counts->points = counts->evaluated = counts->rows = 0;
    counts->reasons = 0;
    memset(counts->rejected, 0, sizeof counts->rejected);
}
