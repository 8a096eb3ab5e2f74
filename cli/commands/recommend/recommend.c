/* k25sim recommend: the best plan for a scenario at a number of sequences. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands/recommend/words.h"
#include "cli/render/notes.h"
#include "cli/render/outputs.h"
#include "cli/render/table.h"
#include "scenarios/plan/launch.h"

static struct {
    char **set;
    const char *concurrency, *context, *tpot, *format;
    int kv_dtypes, backends;
} given;

static const struct poptOption options[] = {
    {"concurrency", '\0', POPT_ARG_STRING, &given.concurrency, 0, "sequences that decode together", "N"},
    {"context", '\0', POPT_ARG_STRING, &given.context, 0, "mean tokens in the cache of one: plan.context", "L"},
    {"tpot", '\0', POPT_ARG_STRING, &given.tpot, 0, "largest time per output token", "MS"},
    {"kv-dtypes", '\0', POPT_ARG_NONE, &given.kv_dtypes, 0, "try every KV dtype, not only the scenario's", NULL},
    {"backends", '\0', POPT_ARG_NONE, &given.backends, 0, "try every AllReduce, not only the scenario's", NULL},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default) or json", "FORMAT"},
    POPT_TABLEEND,
};

enum { SHOWN = 5 /* ranked plans in the table */ };

/* ---- what was asked ---- */

static bool read_number(const char *option, const char *text, double least, double most, bool whole, double *value,
                        struct k25_error *error)
{
    *value = 0;
    if (text == NULL)
        return true;
    if (k25_parse_real(text, value) && *value >= least && *value <= most && (!whole || *value == floor(*value)))
        return true;
    return cli_misused(&cli_recommend, error, "--%s %s: expected a %snumber from %.15g to %.15g", option, text,
                       whole ? "whole " : "", least, most) == K25_OK;
}

static bool read_wish(struct k25_wish *wish, enum cli_format *format, struct k25_error *error)
{
    double concurrency, tpot;
    if (!cli_format(&cli_recommend, given.format, format, error))
        return false;
    if (*format == CLI_CSV)
        return cli_misused(&cli_recommend, error, "--format csv: expected table or json") == K25_OK;
    if (given.concurrency == NULL)
        return cli_misused(&cli_recommend, error, "missing --concurrency N: how many sequences decode together") ==
               K25_OK;
    *wish = (struct k25_wish){.kv_dtypes = given.kv_dtypes != 0, .backends = given.backends != 0};
    if (!read_number("concurrency", given.concurrency, 1, 65536, true, &concurrency, error) ||
        !read_number("context", given.context, 1, 1e8, false, &wish->context, error) ||
        !read_number("tpot", given.tpot, 1e-6, 1e9, false, &tpot, error))
        return false;
    wish->concurrency = (int)concurrency;
    wish->tpot_limit = tpot * 1e-3;
    return true;
}

/* ---- the plans ---- */

static bool answer_choice(struct cli_advice *advice, struct k25_error *error)
{
    struct cli_answer *choice = &advice->choice;
    struct k25_scenario *scenario = &choice->scenario;
    scenario->plan = advice->found.best[0].plan;
    if (!k25_scenario_question_for(scenario, &scenario->plan, &choice->question, error))
        return false;
    k25_predict(&choice->question, &scenario->params, &choice->prediction);
    cli_uncertainty(scenario, &choice->uncertainty);
    return k25_predict_intervals(&choice->question, &scenario->params, &choice->uncertainty, &choice->prediction,
                                 &choice->intervals, error);
}

static bool compare(const struct cli_advice *advice, const char *name, const struct k25_candidate *candidate,
                    struct cli_rival *rival, struct k25_error *error)
{
    const struct k25_scenario *scenario = &advice->choice.scenario;
    const struct k25_uncertainty *u = &advice->choice.uncertainty;
    rival->there = true;
    rival->name = name;
    rival->candidate = candidate;
    if (!k25_scenario_question_for(scenario, &candidate->plan, &rival->question, error))
        return false;
    k25_predict(&rival->question, &scenario->params, &rival->prediction);
    if (!k25_predict_intervals(&rival->question, &scenario->params, u, &rival->prediction, &rival->intervals, error) ||
        !k25_recommend_compare(&advice->choice.question, &rival->question, &scenario->params, u, &rival->comparison,
                               error))
        return false;
    cli_advice_terms(advice, rival);
    return true;
}

static bool same_speed(const struct k25_candidate *a, const struct k25_candidate *b)
{
    return a->tok_s == b->tok_s && a->tpot == b->tpot;
}

static bool compare_all(struct cli_advice *advice, struct k25_error *error)
{
    const struct k25_recommendation *found = &advice->found;
    bool second = found->count > 1;
    bool own = found->own.plan.tp > 0 && found->own.tok_s > 0 && !same_speed(&found->own, &found->best[0]) &&
               !(second && same_speed(&found->own, &found->best[1]));
    return answer_choice(advice, error) &&
           (!second || compare(advice, "the runner-up", &found->best[1], &advice->runner_up, error)) &&
           (!own || compare(advice, "your plan", &found->own, &advice->own, error));
}

/* ---- tables that both formats have ---- */

static const struct cli_column plan_columns[] = {
    {"", "plan", CLI_TEXT, 0},
    {"tp", NULL, CLI_COUNT, 0},
    {"pp", NULL, CLI_COUNT, 0},
    {"dp", NULL, CLI_COUNT, 0},
    {"dcp", NULL, CLI_COUNT, 0},
    {"ep", NULL, CLI_COUNT, 0},
    {"attention_dp", NULL, CLI_TEXT, 0},
    {"kv_dtype", NULL, CLI_TEXT, 0},
    {"allreduce", NULL, CLI_TEXT, 0},
    {"speculation", NULL, CLI_TEXT, 0},
    {"draft_tokens", NULL, CLI_COUNT, 0},
    {"tok_s", "tok/s", CLI_FIGURE, 0},
    {"tpot_ms", "TPOT ms", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_plan(struct cli_table *table, const struct k25_candidate *candidate, const struct k25_wish *wish)
{
    const struct k25_plan *plan = &candidate->plan;
    const int sizes[] = {plan->tp, plan->pp, plan->dp, plan->dcp, plan->ep};
    char name[160];
    cli_plan_name(plan, wish, name, sizeof name);
    cli_table_text(table, "%s", name);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        cli_table_number(table, sizes[i]);
    cli_table_truth(table, plan->attention_dp);
    cli_table_text(table, "%s", k25_kv_dtype_names[plan->kv_dtype]);
    cli_table_text(table, "%s", k25_allreduce_policy_names[plan->allreduce.backend]);
    cli_table_text(table, "%s", k25_speculation_names[plan->speculation.method]);
    cli_table_number(table, plan->speculation.method != K25_SPEC_NONE ? plan->speculation.tokens : 0);
    cli_table_number(table, candidate->tok_s);
    cli_table_number(table, candidate->tpot * 1e3);
}

static void rank_plans(const struct cli_advice *advice, size_t most, struct cli_table *table)
{
    cli_table_open(table, plan_columns);
    for (size_t i = 0; i < advice->found.count && i < most; i++)
        add_plan(table, &advice->found.best[i], &advice->wish);
}

/* ---- for people ---- */

static void print_head(const struct cli_advice *advice)
{
    const struct k25_scenario *s = &advice->choice.scenario;
    char context[40], limit[40], limited[80] = "";
    if (advice->wish.tpot_limit > 0)
        snprintf(limited, sizeof limited, ", TPOT up to %s ms",
                 cli_figure(advice->wish.tpot_limit * 1e3, limit, sizeof limit));
    printf("%s %s on %s: %d sequence%s, context %s%s\n", s->architecture.name, s->weights.name, s->machine.name,
           advice->wish.concurrency, advice->wish.concurrency == 1 ? "" : "s",
           k25_text_count(advice->wish.context, context, sizeof context), limited);
}

static void print_launch(const struct cli_advice *advice, enum k25_engine engine)
{
    struct k25_launch launch;
    const struct cli_answer *choice = &advice->choice;
    k25_launch_make(engine, &choice->scenario, &choice->question.plan, &choice->prediction.memory, &launch);
    printf("\n%s\n  ", k25_engine_names[engine]);
    for (size_t i = 0; i < launch.environments; i++)
        printf("%s ", launch.environment[i]);
    printf("%s", launch.command);
    for (size_t i = 0; i < launch.arguments; i++)
        printf(" \\\n    %s", launch.argument[i]);
    printf("\n");
    for (size_t i = 0; i < launch.missing; i++) {
        printf("  no flag for: ");
        cli_print_wrapped(launch.without[i], 15);
    }
}

static void print_counts(const struct k25_recommendation *found)
{
    char count[40];
    printf("\n%s plans tried", k25_text_count((double)found->counts.points, count, sizeof count));
    printf(": %s keep all limits", k25_text_count((double)found->counts.rows, count, sizeof count));
    printf(", %s are too slow", k25_text_count((double)found->slow, count, sizeof count));
    printf(", %s do not fit in memory", k25_text_count((double)found->misfits, count, sizeof count));
    printf(", %s are invalid\n",
           k25_text_count((double)(found->counts.points - found->counts.evaluated), count, sizeof count));
    for (size_t i = 0; i < found->counts.reasons; i++)
        printf("  %8s  %s\n", k25_text_count((double)found->counts.reason[i].count, count, sizeof count),
               found->counts.reason[i].text);
}

static bool print_ranking(const struct cli_advice *advice, struct k25_error *error)
{
    struct cli_table table;
    rank_plans(advice, SHOWN, &table);
    printf("\n");
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

static bool print_text(const struct cli_advice *advice, struct k25_error *error)
{
    static struct cli_paragraphs paragraphs;
    static struct cli_sentences notes;
    print_head(advice);
    cli_advice_words(advice, &paragraphs);
    for (size_t i = 0; i < paragraphs.count; i++) {
        printf("\n");
        cli_print_wrapped(paragraphs.text[i], 0);
    }
    if (advice->found.count > 0) {
        if (!print_ranking(advice, error))
            return false;
        for (int engine = 0; engine < K25_ENGINES; engine++)
            print_launch(advice, (enum k25_engine)engine);
        cli_notes(&advice->choice, &notes);
        cli_print_sentences("to be trusted less", &notes);
    }
    print_counts(&advice->found);
    return true;
}

/* ---- JSON ---- */

static json_t *interval_json(struct k25_interval interval)
{
    return json_pack("[o, o]", cli_json_real(interval.low), cli_json_real(interval.high));
}

/* A plan of the ranking, with all outputs of its prediction. */
static json_t *side_json(const struct k25_candidate *candidate, const struct k25_question *question,
                         const struct k25_prediction *prediction, const struct k25_intervals *intervals,
                         const struct k25_wish *wish, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, plan_columns);
    add_plan(&table, candidate, wish);
    json_t *rows = cli_table_json(&table, error);
    cli_table_close(&table);
    if (rows == NULL)
        return NULL;
    json_t *side = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    cli_set_outputs(side, question, prediction);
    json_object_set_new(side, "tok_s_interval", interval_json(intervals->output[K25_OUT_TOK_S]));
    json_object_set_new(side, "tpot_ms_interval", interval_json(intervals->output[K25_OUT_TPOT]));
    return side;
}

static json_t *launch_json(const struct cli_advice *advice, enum k25_engine engine)
{
    struct k25_launch launch;
    const struct cli_answer *choice = &advice->choice;
    k25_launch_make(engine, &choice->scenario, &choice->question.plan, &choice->prediction.memory, &launch);
    json_t *environment = json_array(), *arguments = json_array(), *missing = json_array();
    for (size_t i = 0; i < launch.environments; i++)
        json_array_append_new(environment, json_string(launch.environment[i]));
    for (size_t i = 0; i < launch.arguments; i++)
        json_array_append_new(arguments, json_string(launch.argument[i]));
    for (size_t i = 0; i < launch.missing; i++)
        json_array_append_new(missing, json_string(launch.without[i]));
    return json_pack("{s:s, s:o, s:o, s:o}", "command", launch.command, "environment", environment, "arguments",
                     arguments, "no_flag_for", missing);
}

static json_t *comparison_json(const struct cli_rival *rival)
{
    const struct k25_comparison *c = &rival->comparison;
    json_t *drivers = json_array(), *terms = json_array();
    for (size_t i = 0; i < c->drivers; i++)
        json_array_append_new(drivers, json_pack("{s:s, s:f}", "parameter", k25_param_info[c->driver[i].id].name,
                                                 "share", c->driver[i].share));
    for (size_t i = 0; i < rival->terms; i++)
        json_array_append_new(terms, json_pack("{s:s, s:f, s:f}", "term", rival->term[i].name, "choice_ms",
                                               rival->term[i].choice * 1e3, "other_ms", rival->term[i].rival * 1e3));
    return json_pack("{s:f, s:o, s:o, s:b, s:i, s:o, s:o}", "tok_s_ratio", c->ratio, "interval",
                     interval_json(c->interval), "measured_interval", interval_json(c->measured), "told_apart",
                     c->differs, "load_tests_of_each", c->repeats, "drivers", drivers, "terms", terms);
}

static bool add_rival(json_t *root, const char *key, const struct cli_rival *rival, const struct k25_wish *wish,
                      struct k25_error *error)
{
    if (!rival->there)
        return true;
    json_t *side = side_json(rival->candidate, &rival->question, &rival->prediction, &rival->intervals, wish, error);
    if (side == NULL)
        return false;
    json_object_set_new(side, "comparison", comparison_json(rival));
    json_object_set_new(root, key, side);
    return true;
}

static json_t *counts_json(const struct k25_recommendation *found)
{
    json_t *reasons = json_array();
    for (size_t i = 0; i < found->counts.reasons; i++)
        json_array_append_new(reasons, json_pack("{s:s, s:I}", "reason", found->counts.reason[i].text, "plans",
                                                 (json_int_t)found->counts.reason[i].count));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "tried", (json_int_t)found->counts.points, "kept",
                     (json_int_t)found->counts.rows, "too_slow", (json_int_t)found->slow, "do_not_fit",
                     (json_int_t)found->misfits, "invalid",
                     (json_int_t)(found->counts.points - found->counts.evaluated), "reasons", reasons);
}

/* Of a plan to recommend; the rest of the object is there without one. */
static bool add_choice(json_t *root, const struct cli_advice *advice, struct k25_error *error)
{
    const struct k25_recommendation *found = &advice->found;
    struct cli_table table;
    rank_plans(advice, K25_RECOMMENDED, &table);
    json_t *ranking = cli_table_json(&table, error);
    cli_table_close(&table);
    const struct cli_answer *answer = &advice->choice;
    json_t *choice = ranking == NULL ? NULL
                                     : side_json(&found->best[0], &answer->question, &answer->prediction,
                                                 &answer->intervals, &advice->wish, error);
    json_object_set_new(root, "ranking", ranking);
    if (choice == NULL)
        return false;
    json_object_set_new(root, "choice", choice);
    if (!add_rival(root, "runner_up", &advice->runner_up, &advice->wish, error) ||
        !add_rival(root, "own_plan", &advice->own, &advice->wish, error))
        return false;
    json_t *launch = json_object();
    for (int engine = 0; engine < K25_ENGINES; engine++)
        json_object_set_new(launch, k25_engine_names[engine], launch_json(advice, (enum k25_engine)engine));
    json_object_set_new(root, "launch", launch);
    return true;
}

static bool print_json(const struct cli_advice *advice, struct k25_error *error)
{
    static struct cli_paragraphs paragraphs;
    static struct cli_sentences notes = {.count = 0};
    json_t *words = json_array(), *less = json_array();
    cli_advice_words(advice, &paragraphs);
    for (size_t i = 0; i < paragraphs.count; i++)
        json_array_append_new(words, json_string(paragraphs.text[i]));
    if (advice->found.count > 0)
        cli_notes(&advice->choice, &notes);
    for (size_t i = 0; i < notes.count; i++)
        json_array_append_new(less, json_string(notes.text[i]));
    double limit = advice->wish.tpot_limit > 0 ? advice->wish.tpot_limit * 1e3 : NAN;
    json_t *root =
        json_pack("{s:s, s:i, s:f, s:o, s:o, s:o, s:o}", "scenario", advice->choice.scenario.name, "concurrency",
                  advice->wish.concurrency, "context", advice->wish.context, "tpot_limit_ms", cli_json_real(limit),
                  "answer", words, "notes", less, "plans", counts_json(&advice->found));
    if (root != NULL && advice->found.count > 0 && !add_choice(root, advice, error)) {
        json_decref(root);
        return false;
    }
    return cli_print_json(root, error);
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    static struct cli_advice advice; /* too large for a stack */
    enum cli_format format;
    struct k25_scenario *scenario = &advice.choice.scenario;
    if (!read_wish(&advice.wish, &format, error))
        return cli_failed(error);
    bool ok = k25_scenario_load(&cli->library, arguments[0], (const char *const *)given.set,
                                cli_count((const char *const *)given.set), scenario, error);
    if (ok && advice.wish.context <= 0)
        advice.wish.context = scenario->plan.context;
    char acceptance[sizeof scenario->plan.speculation.acceptance];
    memcpy(acceptance, scenario->plan.speculation.acceptance, sizeof acceptance);
    advice.acceptance = acceptance;
    ok = ok && k25_recommend(scenario, &advice.wish, &advice.found, error);
    if (ok && advice.found.count > 0)
        ok = compare_all(&advice, error);
    if (ok)
        ok = format == CLI_JSON ? print_json(&advice, error) : print_text(&advice, error);
    cli_answer_free(&advice.choice);
    return !ok ? cli_failed(error) : advice.found.count > 0 ? K25_OK : K25_NEGATIVE;
}

const struct cli_command cli_recommend = {
    .name = "recommend",
    .arguments = "SCENARIO",
    .summary = "the best plan at a number of sequences, why, and how to start it",
    .details =
        "Tries every tp, pp, dp, dcp, ep and attention_dp on the scenario's machine, and, when its plan says how\n"
        "many drafts are accepted, chains of 1 to 8. Ranked by tok/s; the rest of the plan stays as it is. The\n"
        "interval between choice and runner-up is that of their ratio, in which what they share cancels. MODEL\n"
        "and DRAFT in the commands stand for the checkpoints. Exit status 1: no plan fits and keeps the limit;\n"
        "the nearest is named.\n"
        "\n"
        "examples:\n"
        "  k25sim recommend kimi-k26-v4 --concurrency 8 --context 32768 --set calibration=kimi-k26-v4\n"
        "  k25sim recommend kimi-k26-v4 --concurrency 32 --tpot 40 --set plan.speculation.acceptance=a=0.607\n"
        "  k25sim recommend my-box.yaml --concurrency 4 --kv-dtypes --backends --format json | jq .choice\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
