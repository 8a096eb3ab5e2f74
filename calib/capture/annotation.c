/* What engines write around a step:
 *
 *     vLLM              execute_context_0(0)_generation_16(96)       requests(tokens), prefill then decode
 *     vLLM, TraceLens   execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)
 *                       sq: tokens queried, sk: tokens in the caches of all sequences together
 *     vLLM, older       execute_new_0_cached_16
 *     SGLang            step[DECODE bs=32], step[EXTEND bs=15 toks=15360]
 *     PyTorch           ProfilerStep#7
 */
#include <stdlib.h>
#include <string.h>

#include "calib/capture/internal.h"

/* A decimal count at `*p`, stepped over; false when there is none or it is beyond reason. */
static bool take_count(const char **p, int64_t *value)
{
    const char *start = *p;
    *value = 0;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        *value = *value * 10 + (**p - '0');
        if (*value > INT32_MAX)
            return false;
    }
    return *p > start;
}

static bool take_word(const char **p, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*p, word, length) != 0)
        return false;
    *p += length;
    return true;
}

/* "(96)", "(888_788544)", "(sq32sk55086sqsq32sqsk55086)": `*cached` stays -1 unless it says. */
static bool take_tokens(const char **p, int64_t *tokens, int64_t *cached)
{
    int64_t skipped;
    *cached = -1;
    if (!take_word(p, "("))
        return false;
    if (take_word(p, "sq")) {
        if (!take_count(p, tokens) || !take_word(p, "sk") || !take_count(p, cached))
            return false;
    } else if (!take_count(p, tokens) || (take_word(p, "_") && !take_count(p, &skipped))) {
        return false;
    }
    *p += strcspn(*p, ")");
    return take_word(p, ")");
}

static bool parse_contexts(const char *p, struct k25_annotation *a)
{
    int64_t contexts, prefill, generations, decode, cached, ignored;
    if (take_count(&p, &ignored) && !take_word(&p, "_"))
        return false;
    if (!take_word(&p, "context_") || !take_count(&p, &contexts) || !take_tokens(&p, &prefill, &ignored) ||
        !take_word(&p, "_generation_") || !take_count(&p, &generations) || !take_tokens(&p, &decode, &cached) ||
        *p != '\0')
        return false;
    a->decode = contexts == 0 && prefill == 0 && generations > 0;
    a->sequences = (int)(contexts + generations);
    a->tokens = (int)(prefill + decode);
    if (cached > 0 && generations > 0)
        a->context = (double)cached / (double)generations;
    return true;
}

static bool parse_cached(const char *p, struct k25_annotation *a)
{
    int64_t fresh, cached;
    if (!take_word(&p, "new_") || !take_count(&p, &fresh) || !take_word(&p, "_cached_") || !take_count(&p, &cached) ||
        *p != '\0')
        return false;
    a->decode = fresh == 0 && cached > 0;
    a->sequences = (int)(fresh + cached);
    return true;
}

static bool parse_sglang(const char *p, struct k25_annotation *a)
{
    int64_t count;
    a->decode = strncmp(p, "DECODE", 6) == 0 || strncmp(p, "TARGET_VERIFY", 13) == 0;
    const char *size = strstr(p, "bs="), *tokens = strstr(p, "toks=");
    if (strchr(p, ']') == NULL)
        return false;
    if (size != NULL && (size += 3, take_count(&size, &count)))
        a->sequences = (int)count;
    if (tokens != NULL && (tokens += 5, take_count(&tokens, &count)))
        a->tokens = (int)count;
    else if (strncmp(p, "DECODE", 6) == 0)
        a->tokens = a->sequences;
    return true;
}

bool k25_annotation_parse(const char *name, struct k25_annotation *a)
{
    *a = (struct k25_annotation){.sequences = -1, .tokens = -1};
    if (take_word(&name, "execute_"))
        return parse_contexts(name, a) || parse_cached(name, a);
    if (take_word(&name, "step["))
        return parse_sglang(name, a);
    if (!take_word(&name, "ProfilerStep#"))
        return false;
    /* Nobody says what a ProfilerStep is around: taken for a decode step. */
    a->profiler = a->decode = true;
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct k25_annotation *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end < y->end) - (x->end > y->end); /* the outer one first */
}

/* The range of a stream that only copies begins when the others have ended: its id tells, unless all are alike. */
static bool belong_together(const struct k25_annotation *a, const struct k25_annotation *b)
{
    return b->start < a->end || (a->id != 0 && a->id == b->id && b->start - a->end < (a->end - a->start) / 2);
}

void k25_annotations_merge(struct k25_annotations *annotations)
{
    size_t kept = 0;
    if (annotations->count > 1)
        qsort(annotations->list, annotations->count, sizeof *annotations->list, by_start);
    for (size_t i = 0; i < annotations->count; i++) {
        struct k25_annotation *a = &annotations->list[i];
        struct k25_annotation *last = kept > 0 ? &annotations->list[kept - 1] : NULL;
        if (last == NULL || !belong_together(last, a)) {
            annotations->list[kept++] = *a;
            continue;
        }
        last->end = a->end > last->end ? a->end : last->end;
        last->sequences = last->sequences < 0 ? a->sequences : last->sequences;
        last->tokens = last->tokens < 0 ? a->tokens : last->tokens;
        last->context = last->context > 0 ? last->context : a->context;
        last->decode = last->decode && a->decode;
    }
    annotations->count = kept;
}
