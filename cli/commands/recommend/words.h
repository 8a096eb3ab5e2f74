/* What is said about a recommendation: shared by its text and its JSON. */
#ifndef K25_CLI_COMMANDS_RECOMMEND_WORDS_H
#define K25_CLI_COMMANDS_RECOMMEND_WORDS_H

#include "cli/render/answer.h"
#include "scenarios/plan/recommend.h"

/* A part of the step that the two plans do not share. */
struct cli_term {
    char name[64];
    double choice, rival; /* s a step; 0 where one has no such operator */
};

/* A plan that the choice is held against. */
struct cli_rival {
    bool there;
    const char *name; /* "the runner-up", "your plan" */
    const struct k25_candidate *candidate;
    struct k25_question question;
    struct k25_prediction prediction;
    struct k25_intervals intervals;
    struct k25_comparison comparison; /* of the choice with it */
    size_t terms;
    struct cli_term term[K25_MAX_OPERATORS + 8]; /* the largest difference first */
};

struct cli_advice {
    struct k25_wish wish;
    struct k25_recommendation found;
    struct cli_answer choice;        /* with the scenario; its plan is the choice's */
    const char *acceptance;          /* as the scenario has it */
    struct cli_rival runner_up, own; /* own: the scenario's plan, when it fits and is neither of the two */
};

/* The terms of the two predictions. */
void cli_advice_terms(const struct cli_advice *advice, struct cli_rival *rival);

/* "TP8, DCP 4, eagle3 k=2": what the enumeration varies. */
void cli_plan_name(const struct k25_plan *plan, const struct k25_wish *wish, char *out, size_t size);

/* The answer: what to take, why, how sure that is, and what it brings over the scenario's own plan, a paragraph
 * each. Without a plan to recommend: the nearest. */
struct cli_paragraphs {
    size_t count;
    char text[4][2048];
};
void cli_advice_words(const struct cli_advice *advice, struct cli_paragraphs *paragraphs);

#endif
