#include "hw/gpus/name.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define MOST_WORDS 24
#define WORD_BYTES 24

/* What a name says. */
struct words {
    int count; /* of those that count */
    bool digits;
    char word[MOST_WORDS][WORD_BYTES];
    unsigned forms, editions; /* bits: rows of the tables below */
    double memory;            /* GB; 0: not said */
};

/* Ways of building the same chip in: other links, memory or limits, with other figures on the data sheet. */
static const struct {
    const char *word;
    unsigned bit;
} forms[] = {{"pcie", 1}, {"sxm", 2},  {"sxm2", 2},  {"sxm3", 2}, {"sxm4", 2},
             {"sxm5", 2}, {"hbm3", 2}, {"hbm3e", 2}, {"nvl", 4},  {NULL, 0}},
  editions[] = {{"server", 1}, {"workstation", 2}, {"max", 4}, {"maxq", 4}, {NULL, 0}};
static const unsigned MAX_Q = 4;

/* Words without a digit that make another product. */
static const char *const variants[] = {"ada", "pro", "ti", "super", "d", "laptop", "mobile", "mig", NULL};

static bool is_variant(const char *word)
{
    for (int i = 0; variants[i] != NULL; i++)
        if (strcmp(word, variants[i]) == 0)
            return true;
    return false;
}

static bool has_digit(const char *word)
{
    return strpbrk(word, "0123456789") != NULL;
}

/* "80gb" as 80; 0: no size of memory. */
static double size_of(const char *word)
{
    double size = 0;
    while (isdigit((unsigned char)*word))
        size = size * 10 + (*word++ - '0');
    return strcmp(word, "gb") == 0 ? size : 0;
}

static void take_word(struct words *words, const char *word)
{
    double size = size_of(word);
    for (int i = 0; editions[i].word != NULL; i++)
        words->editions |= strcmp(word, editions[i].word) == 0 ? editions[i].bit : 0;
    for (int i = 0; forms[i].word != NULL; i++) {
        if (strcmp(word, forms[i].word) == 0) {
            words->forms |= forms[i].bit;
            return;
        }
    }
    if (size > 0) {
        words->memory = size;
        return;
    }
    if (strncmp(word, "hbm", 3) == 0 || (!has_digit(word) && !is_variant(word)) || words->count == MOST_WORDS)
        return;
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->word[i], word) == 0)
            return;
    words->digits = words->digits || has_digit(word);
    strcpy(words->word[words->count++], word);
}

/* "rtxpro6000" is "rtx pro 6000". */
static void split_word(struct words *words, char *word)
{
    static const char *const starts[] = {"rtx", "pro", NULL};
    for (int i = 0; starts[i] != NULL; i++) {
        size_t length = strlen(starts[i]);
        if (strncmp(word, starts[i], length) == 0 && word[length] != '\0' && has_digit(word)) {
            take_word(words, starts[i]);
            word += length;
        }
    }
    take_word(words, word);
}

static struct words read_words(const char *name)
{
    struct words words = {0};
    char word[WORD_BYTES];
    size_t length = 0;
    for (;; name++) {
        if (isalnum((unsigned char)*name) && length + 1 < sizeof word) {
            word[length++] = (char)tolower((unsigned char)*name);
            continue;
        }
        word[length] = '\0';
        if (length > 0)
            split_word(&words, word);
        length = 0;
        if (*name == '\0')
            return words;
    }
}

static bool contains(const struct words *words, const struct words *others)
{
    for (int i = 0; i < others->count; i++) {
        bool found = false;
        for (int j = 0; j < words->count; j++)
            found = found || strcmp(words->word[j], others->word[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

enum k25_gpu_match k25_gpu_match(const struct k25_gpu *gpu, const char *name)
{
    static const double NEAR = 0.15; /* what a driver keeps for itself, and GB against GiB */
    struct words ours = read_words(gpu->name), theirs = read_words(name);
    double memory = k25_gpu_memory(gpu) / 1073741824.0;
    if (!ours.digits || !theirs.digits)
        return K25_GPU_UNTOLD;
    if (!contains(&ours, &theirs) || !contains(&theirs, &ours) ||
        (ours.forms != 0 && theirs.forms != 0 && (ours.forms & theirs.forms) == 0) ||
        (theirs.memory > 0 && memory > 0 && fabs(theirs.memory / memory - 1) > NEAR))
        return K25_GPU_OTHER;
    /* "Max-Q Workstation Edition" is the Max-Q. */
    unsigned a = (ours.editions & MAX_Q) != 0 ? MAX_Q : ours.editions;
    unsigned b = (theirs.editions & MAX_Q) != 0 ? MAX_Q : theirs.editions;
    return a != 0 && b != 0 && a != b ? K25_GPU_OTHER_EDITION : K25_GPU_SAME;
}
