/* k25sim serve: what a load test sees at a fixed concurrency. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/render/table.h"
#include "scenarios/library/scenario.h"

static struct {
    char **set;
    const char *concurrency, *prompt, *output, *chunk, *format;
    int disaggregated;
} given;

static const struct poptOption options[] = {
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario (may be repeated)", "KEY=VALUE"},
    {"concurrency", '\0', POPT_ARG_STRING, &given.concurrency, 0,
     "users, one number or several (default 1,2,4,...,128)", "LIST"},
    {"prompt", '\0', POPT_ARG_STRING, &given.prompt, 0, "tokens of a prompt: load.prompt", "N"},
    {"output", '\0', POPT_ARG_STRING, &given.output, 0, "tokens of an answer: load.output", "N"},
    {"chunk", '\0', POPT_ARG_STRING, &given.chunk, 0, "prompt tokens a step may carry, 0: all: load.chunk", "N"},
    {"disaggregated", '\0', POPT_ARG_NONE, &given.disaggregated, 0, "prefill on an equal machine of its own", NULL},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "table (default), json or csv", "FORMAT"},
    POPT_TABLEEND,
};

/* X(name, title for people, style, value): the columns in their order; `value` is an expression of `users` and of the
 * serving s. */
#define FIGURE_LIST(X)                                                                                                 \
    X("concurrency", "users", CLI_COUNT, users)                                                                        \
    X("running", "running", CLI_COUNT, s->running)                                                                     \
    X("queued", "queued", CLI_COUNT, s->queued)                                                                        \
    X("decoding", "decoding", CLI_FIGURE, s->decoding)                                                                 \
    X("ttft_ms", "TTFT ms", CLI_FIGURE, s->ttft * 1e3)                                                                 \
    X("front_ms", NULL, CLI_FIGURE, s->front * 1e3)                                                                    \
    X("wait_cache_ms", NULL, CLI_FIGURE, s->wait_cache * 1e3)                                                          \
    X("wait_prefill_ms", NULL, CLI_FIGURE, s->wait_prefill * 1e3)                                                      \
    X("prefill_ms", NULL, CLI_FIGURE, s->prefill * 1e3)                                                                \
    X("transfer_ms", NULL, CLI_FIGURE, s->transfer * 1e3)                                                              \
    X("tpot_ms", "TPOT ms", CLI_FIGURE, s->tpot * 1e3)                                                                 \
    X("latency_ms", NULL, CLI_FIGURE, s->latency * 1e3)                                                                \
    X("output_tok_s", "tok/s", CLI_FIGURE, s->output_tok_s)                                                            \
    X("user_tok_s", "per user", CLI_FIGURE, s->user_tok_s)                                                             \
    X("input_tok_s", NULL, CLI_FIGURE, s->input_tok_s)                                                                 \
    X("requests_s", NULL, CLI_FIGURE, s->requests_s)                                                                   \
    X("step_ms", "step ms", CLI_FIGURE, s->step * 1e3)                                                                 \
    X("step_chunk_ms", "with chunk", CLI_FIGURE, s->step_chunk * 1e3)                                                  \
    X("chunk_share", NULL, CLI_FIGURE, s->chunk_share)                                                                 \
    X("", "chunk %", CLI_FIGURE, s->chunk_share * 100)                                                                 \
    X("chunks_per_prompt", NULL, CLI_COUNT, s->chunks)                                                                 \
    X("chunk_tokens", NULL, CLI_FIGURE, s->chunk_tokens)                                                               \
    X("steps_s", NULL, CLI_FIGURE, s->steps_s)                                                                         \
    X("prefill_utilisation", NULL, CLI_FIGURE, s->prefill_utilisation)

static const struct cli_column columns[] = {
#define X(name, title, style, value) {name, title, style, 0},
    FIGURE_LIST(X)
#undef X
        {"limit", "limit", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static const char left_out[] =
    "Closed form, means only: every request has these lengths, and users come as others are answered. "
    "Left out: network and tokeniser unless load.front_ms says, the common start of a short test unless "
    "load.rounds says how many requests a user sends, and the crowd that stays together after it; lengths "
    "that vary, preemption and recomputation when caches overflow, the last chunk of a prompt filled up "
    "with the next, caches shared between sequences, what a rank waits for the chunks of others where "
    "attention is data-parallel, and the spread of TTFT and TPOT around these means.";

static const char definitions[] =
    "TTFT is from sending to the first token, TPOT (latency - TTFT) / (output - 1). \"step ms\" and \"with "
    "chunk\" are steps at the batch that a decoding sequence sees (disaggregated: a chunk alone), \"chunk "
    "%\" is the share of steps that carry prompt tokens. \"limit\" says what holds the throughput.";

static void add_point(struct cli_table *table, int users, const struct k25_serving *s)
{
#define X(name, title, style, value) cli_table_number(table, value);
    FIGURE_LIST(X)
#undef X
    cli_table_text(table, "%s",
                   s->cache_limited && s->saturated ? "cache, prefill"
                   : s->cache_limited               ? "cache"
                   : s->saturated                   ? "prefill"
                                                    : "");
}

/* One point for every number of the list; `list` is NULL for powers of two. */
static bool add_points(const struct k25_scenario *scenario, const struct k25_question *question, const char *list,
                       struct cli_table *table, struct k25_error *error)
{
    struct k25_service service = k25_scenario_service(scenario);
    struct k25_serving serving;
    const char *at = list != NULL ? list : "1,2,4,8,16,32,64,128";
    for (bool more = true; more;) {
        char word[24];
        long long users;
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (!k25_parse_int(word, &users) || users < 1 || users > 1000000)
            return k25_fail(error, K25_BAD_INPUT,
                            "--concurrency %s: '%s' is not a whole number from 1 to 1000000, expected a "
                            "list as in 1,8,64",
                            list, word);
        more = at[length] == ',';
        at += length + more;
        service.concurrency = (int)users;
        if (!k25_serve(question, &scenario->params, &service, &serving, error))
            return false;
        add_point(table, service.concurrency, &serving);
    }
    return true;
}

/* "prompt 8,192, output 1,024, chunks of 2,048, 50 % of the prompt in the cache" */
static void load_words(const struct k25_load *load, char *out, size_t size)
{
    char prompt[40], output[40], chunk[40], chunks[64] = "prompts at once";
    char hit[64] = "", rounds[64] = "", front[64] = "";
    if (load->chunk > 0)
        snprintf(chunks, sizeof chunks, "chunks of %s", k25_text_count(load->chunk, chunk, sizeof chunk));
    if (load->prefix_hit > 0)
        snprintf(hit, sizeof hit, ", %g %% of the prompt in the cache", load->prefix_hit * 100);
    if (load->rounds > 0)
        snprintf(rounds, sizeof rounds, ", %g request%s a user", load->rounds, load->rounds == 1 ? "" : "s");
    if (load->front_ms > 0)
        snprintf(front, sizeof front, ", %g ms in front of the engine", load->front_ms);
    snprintf(out, size, "prompt %s, output %s, %s%s%s%s%s", k25_text_count(load->prompt, prompt, sizeof prompt),
             k25_text_count(load->output, output, sizeof output), chunks, hit, rounds, front,
             load->disaggregated ? ", prefill on a machine of its own" : "");
}

static bool print_table(const struct k25_scenario *scenario, const struct cli_table *table, struct k25_error *error)
{
    char words[400];
    printf("%s %s on %s, TP%d; %s%s\n", scenario->architecture.name, scenario->weights.name, scenario->machine.name,
           scenario->plan.tp, scenario->calibrated ? "calibration " : "no calibration: every parameter is a prior",
           scenario->calibrated ? scenario->calibration.name : "");
    load_words(&scenario->load, words, sizeof words);
    cli_print_wrapped(words, 0);
    printf("\n");
    if (!cli_table_print(table, error))
        return false;
    printf("\n");
    cli_print_wrapped(definitions, 0);
    printf("\n");
    cli_print_wrapped(left_out, 0);
    return true;
}

static bool print_json(const struct k25_scenario *scenario, const struct cli_table *table, struct k25_error *error)
{
    const struct k25_load *load = &scenario->load;
    json_t *points = cli_table_json(table, error);
    if (points == NULL)
        return false;
    return cli_print_json(json_pack("{s:s, s:{s:f, s:f, s:i, s:f, s:f, s:f, s:b, s:f}, s:o, s:s}", "scenario",
                                    scenario->name, "load", "prompt_tokens", load->prompt, "output_tokens",
                                    load->output, "chunk_tokens", load->chunk, "prefix_hit", load->prefix_hit, "rounds",
                                    load->rounds, "front_ms", load->front_ms, "disaggregated", load->disaggregated,
                                    "transfer_gbs", load->transfer_gbs, "points", points, "left_out", left_out),
                          error);
}

/* The overrides of --set, then those of the options, which win. Pointers to static texts, ended with NULL. */
static const char **all_overrides(struct k25_error *error)
{
    static char text[4][320];
    const struct {
        const char *key, *value;
    } own[4] = {{"load.prompt", given.prompt},
                {"load.output", given.output},
                {"load.chunk", given.chunk},
                {"load.disaggregated", given.disaggregated ? "true" : NULL}};
    size_t count = cli_count((const char *const *)given.set);
    const char **list = calloc(count + 5, sizeof *list);
    if (list == NULL) {
        k25_fail(error, K25_RESOURCE, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = given.set[i];
    for (size_t i = 0; i < 4; i++) {
        if (own[i].value == NULL)
            continue;
        snprintf(text[i], sizeof text[i], "%s=%s", own[i].key, own[i].value);
        list[count++] = text[i];
    }
    return list;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    struct k25_question question;
    struct cli_table table;
    enum cli_format format;
    if (!cli_format(&cli_serve, given.format, &format, error))
        return cli_failed(error);
    const char **set = all_overrides(error);
    if (set == NULL)
        return cli_failed(error);
    cli_table_open(&table, columns);
    bool ok = k25_scenario_load(&cli->library, arguments[0], set, cli_count(set), &scenario, error);
    /* The batch follows from the load; what stands in the plan need not cover its replicas. */
    scenario.plan.batch = scenario.plan.batch < scenario.plan.dp ? scenario.plan.dp : scenario.plan.batch;
    ok = ok && k25_scenario_question(&scenario, &question, error) &&
         add_points(&scenario, &question, given.concurrency, &table, error);
    if (ok)
        ok = format == CLI_TABLE  ? print_table(&scenario, &table, error)
             : format == CLI_JSON ? print_json(&scenario, &table, error)
                                  : cli_table_csv(&table, error);
    cli_table_close(&table);
    k25_scenario_free(&scenario);
    free(set);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_serve = {
    .name = "serve",
    .arguments = "SCENARIO",
    .summary = "TTFT, TPOT and throughput of a load test at a fixed concurrency",
    .details =
        "Every user sends a prompt, reads the answer to its end, and sends the next. Prompts are computed in\n"
        "chunks that ride along with the steps of the others, or (--disaggregated) on a second machine. Lengths\n"
        "are those of the scenario's load; batch and context of its plan follow from the load. What does not\n"
        "fit into the cache waits. Exit status 1: not even one sequence fits.\n"
        "\n"
        "examples:\n"
        "  k25sim serve tp8_bs1\n"
        "  k25sim serve kimi-k26-v4 --prompt 8192 --output 1024 --concurrency 1,8,64\n"
        "  k25sim serve kimi-k26-v4 --prompt 32768 --chunk 2048 --set load.prefix_hit=0.9\n"
        "  k25sim serve kimi-k26-v4 --disaggregated --format json | jq '.points[].ttft_ms'\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
