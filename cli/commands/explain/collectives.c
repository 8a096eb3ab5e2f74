#include "cli/commands/explain/collectives.h"

#include <math.h>
#include <stdio.h>

#include "cli/render/report.h"
#include "cli/render/table.h"
#include "hw/collective/crossover.h"

/* Of the table: 1 KiB to 4 MiB in powers of two. Crossovers are looked for in a wider range. */
enum { SIZES = 13 };
static const double table_least = 1024, table_most = 4194304;
static const double search_least = 16, search_most = 67108864;

static const double activation = 2; /* bytes of an element of a row: BF16 */

static const char *const contest_names[] = {"protocols", "auto", "all"};

static const struct cli_column size_columns[] = {
    {"gpus", NULL, CLI_COUNT, 0},
    {"message_bytes", "bytes", CLI_COUNT, 0},
    {"rows", "rows", CLI_FIGURE, 0},
    {"nccl_ll_us", "LL us", CLI_FIGURE, 0},
    {"nccl_ll128_us", "LL128 us", CLI_FIGURE, 0},
    {"nccl_simple_us", "Simple us", CLI_FIGURE, 0},
    {"nccl_auto_us", "auto us", CLI_FIGURE, 0},
    {"nccl_auto_protocol", NULL, CLI_TEXT, 0},
    {"oneshot_us", "one-shot us", CLI_FIGURE, 0},
    {"cheapest", "cheapest of all", CLI_TEXT, 0},
    {"cheapest_auto", "of auto and one-shot", CLI_TEXT, 0},
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
        for (int backend = K25_BACKEND_NCCL_LL; backend <= K25_BACKEND_NCCL_SIMPLE; backend++)
            cli_table_number(table, prices.time[backend] * 1e6);
        cli_table_number(table, prices.time[prices.left] * 1e6);
        cli_table_text(table, "%s", k25_backend_names[prices.left]);
        cli_table_number(table, prices.time[K25_BACKEND_ONESHOT] * 1e6);
        cli_table_text(table, "%s", k25_backend_names[prices.cheapest_all]);
        cli_table_text(table, "%s", k25_backend_names[prices.cheapest_auto]);
    }
}

static void add_crossovers(const struct k25_contestants *contestants, double row_bytes, struct cli_table *table)
{
    for (int contest = K25_CONTEST_PROTOCOLS; contest <= K25_CONTEST_ALL; contest++) {
        struct k25_crossover crossovers[K25_MAX_CROSSOVERS];
        size_t count = k25_crossovers((enum k25_contest)contest, contestants, search_least, search_most, crossovers);
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

/* "one-shot wins up to 48.62 KB (3 rows of kimi-k2.5)" */
static void print_limit(const struct k25_contestants *contestants, enum k25_contest contest, double row_bytes,
                        const char *model, const char *rival)
{
    char text[32];
    double limit = k25_wins_up_to(K25_BACKEND_ONESHOT, contest, contestants, search_least, search_most);
    if (limit <= 0)
        printf("one-shot never wins over %s\n", rival);
    else if (limit >= search_most)
        printf("one-shot wins over %s at every size up to %s KB\n", rival,
               cli_figure(search_most / 1e3, text, sizeof text));
    else
        printf("one-shot wins over %s up to %s KB (%.0f rows of %s)\n", rival,
               cli_figure(limit / 1e3, text, sizeof text), floor(limit / row_bytes), model);
}

/* "NCCL, cheapest protocol: LL up to 8.1 KB, LL128 up to 790 KB, Simple beyond" */
static void print_protocols(const struct k25_contestants *contestants)
{
    struct k25_crossover crossovers[K25_MAX_CROSSOVERS];
    char text[32];
    size_t count = k25_crossovers(K25_CONTEST_PROTOCOLS, contestants, search_least, search_most, crossovers);
    printf("NCCL, cheapest protocol:");
    for (size_t i = 0; i < count; i++)
        printf(" %s up to %s KB,", k25_backend_names[crossovers[i].below] + 5,
               cli_figure(crossovers[i].bytes / 1e3, text, sizeof text));
    printf(" %s%s\n", k25_backend_names[k25_cheapest_allreduce(K25_CONTEST_PROTOCOLS, contestants, search_most)] + 5,
           count > 0 ? " beyond" : " at every size");
}

static void print_words(const struct k25_contestants *contestants, double row_bytes, const char *model)
{
    if (contestants->oneshot) {
        print_limit(contestants, K25_CONTEST_ALL, row_bytes, model, "the cheapest protocol of NCCL");
        print_limit(contestants, K25_CONTEST_AUTO, row_bytes, model, "NCCL left to itself (auto)");
    } else {
        printf("no one-shot: the GPUs do not reach each other's memory (p2p: false)\n");
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
        struct k25_contestants contestants = {.group = &group, .params = &scenario->params, .oneshot = machine->p2p};
        ok = k25_machine_group(machine, n, &group, error);
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
