#include "cli/commands/recommend/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/render/operators.h"
#include "cli/render/table.h"

enum { NAMED = 4 /* terms of a sentence, each way */ };
static const double MINOR = 0.01; /* terms that differ by less than this share of the step are summed up */

/* ---- text that grows ---- */

struct text {
    char *out;
    size_t size, used;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->out + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
    if (text->used >= text->size)
        text->used = text->size - 1;
}

static struct text paragraph(struct cli_paragraphs *paragraphs)
{
    char *out = paragraphs->text[paragraphs->count++];
    out[0] = '\0';
    return (struct text){out, sizeof paragraphs->text[0], 0};
}

/* ---- plans ---- */

void cli_plan_name(const struct k25_plan *plan, const struct k25_wish *wish, char *out, size_t size)
{
    struct text text = {out, size, 0};
    say(&text, "TP%d", plan->tp);
    if (plan->pp > 1)
        say(&text, ", PP %d", plan->pp);
    if (plan->dp > 1)
        say(&text, ", %d replicas", plan->dp);
    if (plan->dcp > 1)
        say(&text, ", DCP %d", plan->dcp);
    if (plan->ep > 1)
        say(&text, ", EP %d", plan->ep);
    if (plan->attention_dp)
        say(&text, ", attention DP");
    if (wish->kv_dtypes)
        say(&text, ", KV %s", k25_kv_dtype_names[plan->kv_dtype]);
    if (wish->backends && plan->tp > 1)
        say(&text, ", AllReduce %s", k25_allreduce_policy_names[plan->allreduce.backend]);
    if (plan->speculation.method != K25_SPEC_NONE)
        say(&text, ", %s k=%d", k25_speculation_names[plan->speculation.method], plan->speculation.tokens);
}

/* ---- terms ---- */

static void add_term(struct cli_rival *rival, const char *name, double choice, double other)
{
    struct cli_term *term = NULL;
    for (size_t i = 0; i < rival->terms && term == NULL; i++)
        term = strcmp(rival->term[i].name, name) == 0 ? &rival->term[i] : NULL;
    if (term == NULL) {
        if (rival->terms == sizeof rival->term / sizeof *rival->term)
            return;
        term = &rival->term[rival->terms++];
        *term = (struct cli_term){{0}, 0, 0};
        memcpy(term->name, name, strnlen(name, sizeof term->name - 1));
    }
    term->choice += choice;
    term->rival += other;
}

static int by_difference(const void *a, const void *b)
{
    const struct cli_term *x = a, *y = b;
    double d = fabs(x->choice - x->rival), e = fabs(y->choice - y->rival);
    return d != e ? (d < e) - (d > e) : strcmp(x->name, y->name);
}

void cli_advice_terms(const struct cli_advice *advice, struct cli_rival *rival)
{
    static struct cli_line lines[K25_MAX_OPERATORS];
    const struct k25_prediction *p = &advice->choice.prediction, *q = &rival->prediction;
    rival->terms = 0;
    size_t count = cli_lines(p, false, lines);
    for (size_t i = 0; i < count; i++)
        add_term(rival, lines[i].name, lines[i].time, 0);
    count = cli_lines(q, false, lines);
    for (size_t i = 0; i < count; i++)
        add_term(rival, lines[i].name, 0, lines[i].time);
    add_term(rival, "gaps", p->gaps, q->gaps);
    add_term(rival, "host", p->host, q->host);
    add_term(rival, "bubble", p->bubble, q->bubble);
    qsort(rival->term, rival->terms, sizeof *rival->term, by_difference);
}

/* "mla_attention 9.1 to 5.0, ...": the largest of one sign; what they add up to. */
static double say_terms(const struct cli_advice *advice, const struct cli_rival *rival, bool gains, struct text *text)
{
    const double step = fmax(advice->choice.prediction.step, rival->prediction.step);
    /* Plans that are close differ in small terms only. */
    double least = fmin(MINOR * step, fabs(rival->term[0].choice - rival->term[0].rival) / 2), sum = 0;
    int said = 0;
    for (size_t i = 0; i < rival->terms && said < NAMED; i++) {
        const struct cli_term *term = &rival->term[i];
        double difference = term->choice - term->rival;
        char from[40], to[40];
        if (difference == 0 || (difference < 0) != gains || fabs(difference) < least)
            continue;
        say(text, "%s%s %s to %s", said++ == 0 ? "" : ", ", term->name,
            cli_figure(term->rival * 1e3, from, sizeof from), cli_figure(term->choice * 1e3, to, sizeof to));
        sum += difference;
    }
    return sum;
}

/* ---- paragraphs ---- */

static void say_interval(struct text *text, struct k25_interval interval)
{
    char low[40], high[40];
    say(text, "%s to %s", cli_figure(interval.low, low, sizeof low), cli_figure(interval.high, high, sizeof high));
}

static void say_speed(struct text *text, const struct k25_prediction *p, const struct k25_intervals *intervals)
{
    char speed[40], tpot[40];
    say(text, "%s tok/s (90 %%: ", cli_figure(p->tok_s, speed, sizeof speed));
    say_interval(text, intervals->output[K25_OUT_TOK_S]);
    say(text, ") at a TPOT of %s ms (", cli_figure(p->tpot * 1e3, tpot, sizeof tpot));
    say_interval(text, intervals->output[K25_OUT_TPOT]);
    say(text, ")");
}

static void say_choice(const struct cli_advice *advice, struct text *text)
{
    const struct k25_recommendation *found = &advice->found;
    char name[160];
    cli_plan_name(&found->best[0].plan, &advice->wish, name, sizeof name);
    say(text, "Take %s: ", name);
    say_speed(text, &advice->choice.prediction, &advice->choice.intervals);
    say(text, ".");
    if (advice->runner_up.there) {
        cli_plan_name(&found->best[1].plan, &advice->wish, name, sizeof name);
        say(text, " The runner-up is %s: ", name);
        say_speed(text, &advice->runner_up.prediction, &advice->runner_up.intervals);
        say(text, ".");
    } else {
        say(text, " No other plan comes into question.");
    }
    cli_plan_name(&found->own.plan, &advice->wish, name, sizeof name);
    if (found->own.plan.tp > 0 && isnan(found->own.tok_s))
        say(text, " Your plan (%s) does not fit.", name);
}

/* "all of the cache", "1/4 of the cache" */
static const char *part_of(int parts, char out[32])
{
    if (parts == 1)
        return "all";
    snprintf(out, 32, "1/%d", parts);
    return out;
}

static const char *experts_of(const struct k25_plan *plan, char *out, size_t size)
{
    if (plan->ep == 1)
        return "a slice of every expert";
    if (plan->ep == plan->tp)
        return "whole experts";
    snprintf(out, size, "slices of one expert in %d", plan->ep);
    return out;
}

/* What the plans do differently, in the order that matters; `whose` is "the runner-up's". */
static void say_layout(const struct k25_plan *a, const struct k25_plan *b, const char *whose, struct text *text)
{
    char this[32], that[32];
    if (a->tp != b->tp)
        say(text, "A rank holds %s of the weights of its stage, %s %s. ", part_of(a->tp, this), whose,
            part_of(b->tp, that));
    if (a->pp != b->pp)
        say(text, "Its pipeline has %d stage%s, %s %d. ", a->pp, a->pp == 1 ? "" : "s", whose, b->pp);
    if (a->dp != b->dp)
        say(text, "The sequences are spread over %d replica%s, %s over %d. ", a->dp, a->dp == 1 ? "" : "s", whose,
            b->dp);
    if (a->dcp != b->dcp)
        say(text, "With DCP %d a rank reads %s of the cache of its sequences, with %d %s; %s. ", a->dcp,
            part_of(a->dcp, this), b->dcp, part_of(b->dcp, that),
            a->dcp > 1 && b->dcp > 1 ? "both exchange queries and partial outputs in every layer"
            : a->dcp > 1             ? "the exchanges of queries and partial outputs are the price"
                                     : "it is spared the exchanges of queries and partial outputs");
}

static void say_differences(const struct k25_plan *a, const struct k25_plan *b, const char *whose, struct text *text)
{
    char those[80];
    say_layout(a, b, whose, text);
    if (a->attention_dp != b->attention_dp)
        say(text,
            "%s is attention data-parallel: every rank has sequences of its own and all of the attention's "
            "weights, and no AllReduce behind it. ",
            a->attention_dp ? "It" : "The other");
    if (a->ep != b->ep) {
        say(text, "A rank holds %s, ", experts_of(a, those, sizeof those));
        say(text, "%s %s; the rank with most of the wanted experts sets the pace. ", whose,
            experts_of(b, those, sizeof those));
    }
    if (a->kv_dtype != b->kv_dtype)
        say(text, "Its cache is %s, %s %s. ", k25_kv_dtype_names[a->kv_dtype], whose, k25_kv_dtype_names[b->kv_dtype]);
    if (a->allreduce.backend != b->allreduce.backend)
        say(text, "Its AllReduce is %s, %s %s. ", k25_allreduce_policy_names[a->allreduce.backend], whose,
            k25_allreduce_policy_names[b->allreduce.backend]);
}

static void say_why(const struct cli_advice *advice, const struct cli_rival *rival, struct text *text)
{
    const struct k25_prediction *p = &advice->choice.prediction, *q = &rival->prediction;
    char one[40], two[40], whose[40];
    snprintf(whose, sizeof whose, "%s's", rival->name);
    say_differences(&advice->choice.question.plan, &rival->question.plan, whose, text);
    if (p->tokens_per_step != q->tokens_per_step)
        say(text, "A step yields %s tokens of a sequence, %s %s. ", cli_figure(p->tokens_per_step, one, sizeof one),
            whose, cli_figure(q->tokens_per_step, two, sizeof two));
    say(text, "In ms of a step, from %s to the choice: ", rival->name);
    size_t before = text->used;
    double sum = say_terms(advice, rival, true, text);
    size_t mark = text->used;
    if (mark > before)
        say(text, "; on the other side ");
    size_t start = text->used;
    sum += say_terms(advice, rival, false, text);
    if (text->used == start)
        text->used = mark; /* nothing was said on that side */
    text->out[text->used] = '\0';
    double rest = rint((p->step - q->step - sum) * 1e5) / 100;
    say(text, "%sall else %+.2f; the step %s to %s.", text->used > before ? "; " : "", rest == 0 ? 0 : rest,
        cli_figure(q->step * 1e3, one, sizeof one), cli_figure(p->step * 1e3, two, sizeof two));
}

/* What measurement of calibrate tells a parameter. */
static const char *evidence_for(enum k25_param id)
{
    static const struct {
        const char *prefix, *evidence;
    } known[] = {
        {"nccl.", "nccl-tests on this box (k25sim calibrate --nccl-tests)"},
#define X(id, key, words) {#key ".", "a capture with " words " AllReduces (k25sim calibrate --capture)"},
        K25_CUSTOM_LIST(X)
#undef X
            {"skew.", "a capture of all ranks (k25sim calibrate --capture)"},
        {"host.", "a capture (k25sim calibrate --capture)"},
        {"routing.", "load tests at several batches (k25sim calibrate --points)"},
        {"draft.", "load tests with and without speculation (k25sim calibrate --points)"},
        {"power.", "load tests at two power limits (k25sim calibrate --points)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(k25_param_info[id].name, known[i].prefix, strlen(known[i].prefix)) == 0)
            return known[i].evidence;
    }
    return "a table of kernels (k25sim calibrate --kernels) or a capture (--capture)";
}

static void say_drivers(const struct k25_comparison *comparison, struct text *text)
{
    if (comparison->drivers == 0) {
        say(text, " The model prices them alike.");
        return;
    }
    say(text, " Most of it hangs on");
    for (size_t i = 0; i < comparison->drivers; i++)
        say(text, "%s %s (%.0f %%)", i == 0 ? "" : ",", k25_param_info[comparison->driver[i].id].name,
            comparison->driver[i].share * 100);
    say(text, ": %s narrows it, a load test of each plan decides.", evidence_for(comparison->driver[0].id));
}

static void say_faster(const struct k25_comparison *c, struct text *text)
{
    say(text, "%.1f %% faster (90 %%: %.1f to %.1f %%; what both plans share cancels).", (c->ratio - 1) * 100,
        (c->interval.low - 1) * 100, (c->interval.high - 1) * 100);
}

static void say_sure(const struct cli_advice *advice, const struct cli_rival *rival, struct text *text)
{
    const struct k25_comparison *c = &rival->comparison;
    const struct k25_plan_speculation *a = &advice->choice.question.plan.speculation;
    const struct k25_plan_speculation *b = &rival->question.plan.speculation;
    double noise = advice->choice.uncertainty.noise;
    say(text, "the choice is ");
    say_faster(c, text);
    if (!c->differs) {
        say(text, " The two cannot be told apart.");
        say_drivers(c, text);
    } else if (c->measured.low <= 1 && c->repeats > 0) {
        say(text, " One load test of each would not show it, at a noise of %.1f %% each: take %d of each.", noise * 100,
            c->repeats);
    } else {
        say(text, " It is the faster one, as far as the formulas hold.");
    }
    if (a->method != b->method || a->tokens != b->tokens)
        say(text, " The acceptance (%s) is taken as given and in no interval; measure it with your prompts.",
            advice->acceptance);
}

static void say_own(const struct cli_advice *advice, struct text *text)
{
    const struct k25_candidate *own = &advice->found.own;
    char name[160], speed[40], tpot[40];
    cli_plan_name(&own->plan, &advice->wish, name, sizeof name);
    say(text, "Your plan is %s: %s tok/s at a TPOT of %s ms, against which ", name,
        cli_figure(own->tok_s, speed, sizeof speed), cli_figure(own->tpot * 1e3, tpot, sizeof tpot));
    say_sure(advice, &advice->own, text);
    say(text, " ");
    say_why(advice, &advice->own, text);
}

static void say_nearest(const struct cli_advice *advice, struct text *text)
{
    const struct k25_recommendation *found = &advice->found;
    char name[160], one[40], two[40], three[40];
    if (found->fastest.plan.tp > 0) {
        cli_plan_name(&found->fastest.plan, &advice->wish, name, sizeof name);
        say(text, "No plan keeps a TPOT of %s ms. The nearest is %s: %s ms, %s tok/s.",
            cli_figure(advice->wish.tpot_limit * 1e3, one, sizeof one), name,
            cli_figure(found->fastest.tpot * 1e3, two, sizeof two),
            cli_figure(found->fastest.tok_s, three, sizeof three));
    } else if (found->smallest.plan.tp > 0) {
        cli_plan_name(&found->smallest.plan, &advice->wish, name, sizeof name);
        say(text, "No plan fits in memory. The nearest is %s: each GPU would need %s more.", name,
            k25_text_bytes(found->smallest.missing, one, sizeof one));
    } else {
        say(text, "No plan suits this model and machine.");
    }
}

void cli_advice_words(const struct cli_advice *advice, struct cli_paragraphs *paragraphs)
{
    paragraphs->count = 0;
    struct text text = paragraph(paragraphs);
    if (advice->found.count == 0) {
        say_nearest(advice, &text);
        return;
    }
    say_choice(advice, &text);
    if (advice->runner_up.there) {
        text = paragraph(paragraphs);
        say(&text, "Why: ");
        say_why(advice, &advice->runner_up, &text);
        text = paragraph(paragraphs);
        say(&text, "How sure: ");
        say_sure(advice, &advice->runner_up, &text);
    }
    if (advice->own.there) {
        text = paragraph(paragraphs);
        say_own(advice, &text);
    }
}
