#include "cli/commands/explain/collectives.h"

#include <math.h>
#include <stdio.h>

#include "cli/render/report.h"
#include "cli/render/table.h"
#include "hw/collective/crossover.h"
#include "model/predict/predict.h"

/* Of the table: 1 KiB to 4 MiB in powers of two. Crossovers are looked for in a wider range. */
enum { SIZES = 13 };
static const double table_least = 1024, table_most = 4194304;
static const double search_least = 16, search_most = 67108864;

static const double activation = 2; /* bytes of an element of a row: BF16 */

static const char *const contest_names[K25_CONTESTS] = {
    [K25_CONTEST_PROTOCOLS] = "protocols",
    [K25_CONTEST_AUTO] = "auto",
    [K25_CONTEST_ALL] = "all",
};

#define AND_WORDS(id, key, words) " and " words

static const struct cli_column size_columns[] = {
    {"gpus", NULL, CLI_COUNT, 0},
    {"message_bytes", "bytes", CLI_COUNT, 0},
    {"rows", "rows", CLI_FIGURE, 0},
#define X(id, key, words) {"nccl_" #key "_us", words " us", CLI_FIGURE, 0},
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
        {"nccl_auto_us", "auto us", CLI_FIGURE, 0},
    {"nccl_auto_protocol", NULL, CLI_TEXT, 0},
#define X(id, key, words) {#key "_us", words " us", CLI_FIGURE, 0},
    K25_CUSTOM_LIST(X)
#undef X
        {"cheapest", "cheapest of all", CLI_TEXT, 0},
    {"cheapest_auto", "of auto" K25_CUSTOM_LIST(AND_WORDS), CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static const struct cli_column crossover_columns[] = {
    {"gpus", NULL, CLI_COUNT, 0},  {"contest", NULL, CLI_TEXT, 0}, {"bytes", NULL, CLI_COUNT, 0},
    {"rows", NULL, CLI_FIGURE, 0}, {"below", NULL, CLI_TEXT, 0},   {"above", NULL, CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static void add_sizes(const struct k25_contestants *contestants, double row_bytes, struct cli_table *table)
{
    for (int i = 0; i < SIZES; i++) {
        struct k25_contest_prices prices;
        k25_contest_prices(contestants, round(k25_geometric_size(table_least, table_most, SIZES, i)), &prices);
        cli_table_number(table, contestants->group->n);
        cli_table_number(table, prices.bytes);
        cli_table_number(table, prices.bytes / row_bytes);
        for (enum k25_backend backend = 0; backend < K25_NCCL_PROTOCOLS; backend++)
            cli_table_number(table, prices.time[backend] * 1e6);
        cli_table_number(table, prices.time[prices.left] * 1e6);
        cli_table_text(table, "%s", k25_backend_names[prices.left]);
        for (enum k25_backend backend = K25_NCCL_PROTOCOLS; backend < K25_BACKENDS; backend++)
            cli_table_number(table, prices.time[backend] * 1e6);
        cli_table_text(table, "%s", k25_backend_names[prices.cheapest_all]);
        cli_table_text(table, "%s", k25_backend_names[prices.cheapest_auto]);
    }
}

static void add_crossovers(const struct k25_contestants *contestants, double row_bytes, struct cli_table *table)
{
    for (enum k25_contest contest = 0; contest < K25_CONTESTS; contest++) {
        struct k25_crossover crossovers[K25_MAX_CROSSOVERS];
        size_t count = k25_crossovers(contest, contestants, search_least, search_most, crossovers);
        for (size_t i = 0; i < count; i++) {
            cli_table_number(table, contestants->group->n);
            cli_table_text(table, "%s", contest_names[contest]);
            cli_table_number(table, crossovers[i].bytes);
            cli_table_number(table, crossovers[i].bytes / row_bytes);
            cli_table_text(table, "%s", k25_backend_names[crossovers[i].below]);
            cli_table_text(table, "%s", k25_backend_names[crossovers[i].above]);
        }
    }
}

/* "one-shot wins over ... up to 48.62 KB (3 rows of kimi-k2.5)": one custom kernel against NCCL, others left out. */
static void print_limit(enum k25_backend custom, const struct k25_contestants *contestants, enum k25_contest contest,
                        double row_bytes, const char *model, const char *rival)
{
    struct k25_contestants pair = {.group = contestants->group, .params = contestants->params};
    const char *name = k25_backend_names[custom];
    char text[32], from_text[32];
    double from, to;
    pair.custom[custom] = true;
    if (!k25_win_range(custom, contest, &pair, search_least, search_most, &from, &to)) {
        printf("%s never wins over %s\n", name, rival);
        return;
    }
    printf("%s wins over %s", name, rival);
    if (from > search_least)
        printf(" from %s KB", cli_figure(from / 1e3, from_text, sizeof from_text));
    if (to < search_most)
        printf(" up to %s KB (%.0f rows of %s)\n", cli_figure(to / 1e3, text, sizeof text), floor(to / row_bytes),
               model);
    else
        printf(" at every size up to %s KB\n", cli_figure(search_most / 1e3, text, sizeof text));
}

/* "NCCL, cheapest protocol: LL up to 8.1 KB, LL128 up to 790 KB, Simple beyond" */
static void print_protocols(const struct k25_contestants *contestants)
{
    struct k25_crossover crossovers[K25_MAX_CROSSOVERS];
    char text[32];
    size_t count = k25_crossovers(K25_CONTEST_PROTOCOLS, contestants, search_least, search_most, crossovers);
    printf("NCCL, cheapest protocol:");
    for (size_t i = 0; i < count; i++)
        printf(" %s up to %s KB,", k25_nccl_protocols[crossovers[i].below],
               cli_figure(crossovers[i].bytes / 1e3, text, sizeof text));
    printf(" %s%s\n", k25_nccl_protocols[k25_cheapest_allreduce(K25_CONTEST_PROTOCOLS, contestants, search_most)],
           count > 0 ? " beyond" : " at every size");
}

static void print_words(const struct k25_contestants *contestants, double row_bytes, const char *model)
{
    for (enum k25_backend custom = K25_NCCL_PROTOCOLS; custom < K25_BACKENDS; custom++) {
        if (!contestants->custom[custom]) {
            printf("no %s: the GPUs do not reach each other's memory (p2p: false)\n", k25_backend_names[custom]);
            continue;
        }
        print_limit(custom, contestants, K25_CONTEST_ALL, row_bytes, model, "the cheapest protocol of NCCL");
        print_limit(custom, contestants, K25_CONTEST_AUTO, row_bytes, model, "NCCL left to itself (auto)");
    }
    print_protocols(contestants);
}

static bool add_group(const struct k25_scenario *scenario, const struct k25_contestants *contestants,
                      struct cli_report *report, struct k25_error *error)
{
    const struct k25_group *group = contestants->group;
    double row_bytes = scenario->architecture.hidden * activation;
    struct cli_table sizes;
    char title[192];
    snprintf(title, sizeof title, "%d GPUs of %s, worst path %s; a row of %s is %.0f bytes", group->n,
             scenario->machine.name, k25_path_class_names[group->worst_class], scenario->architecture.name, row_bytes);
    cli_table_open(&sizes, size_columns);
    add_sizes(contestants, row_bytes, &sizes);
    if (!cli_report_add(report, "sizes", title, &sizes, error))
        return false;
    print_words(contestants, row_bytes, scenario->architecture.name);
    return true;
}

bool cli_explain_collectives(const struct k25_scenario *scenario, enum cli_format format, struct k25_error *error)
{
    const struct k25_machine *machine = &scenario->machine;
    struct cli_report report = {.format = format};
    struct cli_table sizes, crossovers;
    double row_bytes = scenario->architecture.hidden * activation;
    bool ok = machine->gpus > 1 || k25_fail(error, K25_BAD_INPUT, "%s has one GPU: it reduces nothing", machine->name);
    cli_table_open(&sizes, size_columns);
    cli_table_open(&crossovers, crossover_columns);
    for (int n = 2; ok && n <= machine->gpus; n *= 2) {
        struct k25_group group;
        struct k25_contestants contestants = k25_all_contestants(&group, &scenario->params, machine->p2p);
        ok = k25_plan_group(machine, &scenario->plan.levers, n, &group, error);
        if (ok && format == CLI_TABLE) {
            ok = add_group(scenario, &contestants, &report, error);
        } else if (ok) {
            add_sizes(&contestants, row_bytes, &sizes);
            add_crossovers(&contestants, row_bytes, &crossovers);
        }
    }
    if (ok && format != CLI_TABLE)
        ok = cli_report_add(&report, "sizes", "", &sizes, error) &&
             cli_report_add(&report, "crossovers", "", &crossovers, error) && cli_report_end(&report, error);
    cli_table_close(&sizes);
    cli_table_close(&crossovers);
    return ok;
}
