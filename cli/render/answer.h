/* A scenario with its prediction, and everything that is said about it in words. The renderers of predict share
 * it. */
#ifndef K25_CLI_RENDER_ANSWER_H
#define K25_CLI_RENDER_ANSWER_H

#include <stdbool.h>

#include "cli/cli.h"
#include "model/predict/predict.h"
#include "model/predict/uncertainty.h"
#include "scenarios/library/scenario.h"

struct cli_answer {
    struct k25_scenario scenario;
    struct k25_question question; /* points into the scenario: an answer is never copied */
    struct k25_prediction prediction;
    struct k25_uncertainty uncertainty; /* of the parameters; what --set gave is exact */
    struct k25_intervals intervals;     /* only of a plan that fits */
    const char *const *set;             /* overrides of the command line, NULL-terminated; NULL: none */
};

/* How far the parameters of a scenario may be off; what an override gives is exact. */
void cli_uncertainty(const struct k25_scenario *scenario, struct k25_uncertainty *u);

/* Also after a failure the answer must be freed. */
bool cli_answer_load(const struct cli *cli, const char *name, const char *const *set, struct cli_answer *answer,
                     struct k25_error *error);
void cli_answer_free(struct cli_answer *answer);

/* Operators with the same name in different layer groups, taken together; with `every`, each on its own. */
struct cli_line {
    char name[64]; /* "q_b"; with `every` "q_b [moe]" */
    enum k25_operator_kind kind;
    double calls;          /* a step */
    double time;           /* s a step */
    double transfer, wait; /* s a step, collectives */
    char bound[40];        /* what bounds the longest of them: "memory", "wait, NCCL LL" */
    double longest;        /* s, of the operator that `bound` is about */
};
size_t cli_lines(const struct k25_prediction *prediction, bool every, struct cli_line lines[K25_MAX_OPERATORS]);

/* Sentences printed beside the answer. */
#define CLI_SENTENCES 32
struct cli_sentences {
    size_t count;
    char text[CLI_SENTENCES][320];
};
void cli_say(struct cli_sentences *sentences, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_plan_words(const struct cli_answer *answer, char *out, size_t size);
/* What the answer takes for granted: the author's list, the definitions, where the parameters come from. */
void cli_assumptions(const struct cli_answer *answer, struct cli_sentences *sentences);
/* Of a speculating plan: what the step takes without, and the tokens a step from which it pays. */
void cli_say_speculation(const struct cli_answer *answer, struct cli_sentences *sentences);
/* A sentence for each lever that is pulled: which terms it changed. */
void cli_say_levers(const struct cli_answer *answer, struct cli_sentences *sentences);
/* What of a plan no served measurement has been held against (docs/accuracy.md). */
void cli_say_unmeasured(const struct k25_plan *plan, struct cli_sentences *sentences);
/* Where the answer should be trusted less. */
void cli_notes(const struct cli_answer *answer, struct cli_sentences *sentences);

/* What would fit in memory when the plan does not. 0: nothing does. */
struct cli_fitting {
    double missing; /* bytes a GPU would need on top */
    double batch;   /* at this context */
    double context; /* at this batch, tokens */
    int tp;         /* smallest larger one that fits this batch and context on this machine */
};
void cli_what_fits(const struct cli_answer *answer, struct cli_fitting *fitting);

/* `file` without the folder of the data in front. */
const char *cli_short_path(const char *file, const char *root);

/* "scenarios/a.yaml:9", "--set", "default", "prior hw/params/params.yaml:11". */
void cli_origin_words(const struct k25_input *input, const char *root, char *out, size_t size);

#endif
