/* A capture for people and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/inspect/inspect.h"

typedef void filler(const struct k25_capture *capture, struct cli_table *table);

enum { BATCHES = 8 }; /* shown to people */

static void few_batches(const struct k25_capture *capture, struct cli_table *table)
{
    inspect_batch_table(capture, BATCHES, table);
}

static void all_batches(const struct k25_capture *capture, struct cli_table *table)
{
    inspect_batch_table(capture, SIZE_MAX, table);
}

static bool print_table(filler *fill, const struct k25_capture *capture, size_t least, struct k25_error *error)
{
    struct cli_table table;
    fill(capture, &table);
    bool ok = true;
    if (table.failed || cli_table_rows(&table) >= least) {
        printf("\n");
        ok = cli_table_print(&table, error);
    }
    cli_table_close(&table);
    return ok;
}

static const char *milliseconds(double seconds, char *out, size_t size)
{
    char figure[32];
    if (isnan(seconds))
        snprintf(out, size, "unknown");
    else
        snprintf(out, size, "%s ms", cli_figure(seconds * 1e3, figure, sizeof figure));
    return out;
}

static void print_head(const struct k25_capture *capture)
{
    char period[48], busy[48], idle[48], context[32];
    const struct k25_rank *first = &capture->rank[0];
    printf("%d rank%s", capture->ranks, capture->ranks > 1 ? "s" : "");
    if (capture->world_size > 0)
        printf(" of %d", capture->world_size);
    printf("%s%s\n%s%s\n", first->info.device[0] != '\0' ? ", " : "", first->info.device, first->file,
           capture->ranks > 1 ? " and others" : "");
    if (capture->sequences >= 0) {
        printf("batch: %d sequences", capture->sequences);
        if (capture->tokens >= 0)
            printf(", %d tokens a step", capture->tokens);
        if (capture->context > 0)
            printf(", %s tokens of context in the mean", cli_figure(capture->context, context, sizeof context));
        printf("\n");
    }
    printf("step %s, GPU busy %s, idle %s", milliseconds(capture->step_period, period, sizeof period),
           milliseconds(capture->gpu_busy, busy, sizeof busy),
           milliseconds(capture->step_period - capture->gpu_busy, idle, sizeof idle));
    if (capture->gpu_busy > 0)
        printf("; collectives %.1f %% of GPU time, unclassified %.1f %%", 100 * inspect_collective_share(capture),
               100 * inspect_unclassified_share(capture));
    printf("\n");
}

bool inspect_print_capture(const struct k25_capture *capture, size_t top, struct k25_error *error)
{
    struct cli_table kernels;
    struct inspect_notes notes;
    print_head(capture);
    bool ok = print_table(inspect_rank_table, capture, 1, error) && print_table(few_batches, capture, 2, error) &&
              print_table(inspect_class_table, capture, 1, error) &&
              print_table(inspect_collective_table, capture, 1, error);
    if (!ok)
        return false;
    inspect_kernel_table(capture, top, &kernels);
    printf("\n");
    ok = cli_table_print(&kernels, error);
    cli_table_close(&kernels);
    ok = ok && print_table(inspect_left_table, capture, 1, error);
    inspect_make_notes(capture, &notes);
    if (ok && notes.count > 0)
        printf("\n");
    for (size_t i = 0; ok && i < notes.count; i++) {
        printf("- ");
        cli_print_wrapped(notes.text[i], 2);
    }
    ok = ok && (!notes.failed || k25_fail(error, K25_RESOURCE, "out of memory"));
    inspect_free_notes(&notes);
    return ok;
}

static void set(json_t *root, const char *key, json_t *value, bool *ok)
{
    *ok = json_object_set_new(root, key, value) == 0 && *ok;
}

static void set_count(json_t *root, const char *key, int value, bool *ok)
{
    set(root, key, value >= 0 ? json_integer(value) : json_null(), ok);
}

static void set_table(json_t *root, const char *key, struct cli_table *table, bool *ok, struct k25_error *error)
{
    set(root, key, cli_table_json(table, error), ok);
    cli_table_close(table);
}

static void set_filled(json_t *root, const char *key, filler *fill, const struct k25_capture *capture, bool *ok,
                       struct k25_error *error)
{
    struct cli_table table;
    fill(capture, &table);
    set_table(root, key, &table, ok, error);
}

static json_t *missing_json(const struct k25_capture *capture, bool *ok)
{
    json_t *list = json_array();
    for (int i = 0; i < capture->missings; i++)
        *ok = json_array_append_new(list, json_integer(capture->missing[i])) == 0 && *ok;
    return list;
}

static json_t *notes_json(const struct k25_capture *capture, bool *ok)
{
    struct inspect_notes notes;
    json_t *list = json_array();
    inspect_make_notes(capture, &notes);
    for (size_t i = 0; i < notes.count; i++)
        *ok = json_array_append_new(list, json_string(notes.text[i])) == 0 && *ok;
    *ok = *ok && !notes.failed;
    inspect_free_notes(&notes);
    return list;
}

static void set_comparison(json_t *root, const struct k25_capture *capture, bool *ok)
{
    bool slow = capture->slow_rank >= 0;
    set(root, "slow_rank", slow ? json_integer(capture->rank[capture->slow_rank].rank) : json_null(), ok);
    set(root, "slow_rank_lag_us", slow ? cli_json_real(capture->slow_lag * 1e6) : json_null(), ok);
    set(root, "clock_sigma_us", cli_json_real(capture->clock_sigma * 1e6), ok);
    set(root, "steps_on_all_ranks", json_integer((json_int_t)capture->steps_common), ok);
    set(root, "collectives_matched", json_integer(capture->ranks > 1 ? (json_int_t)capture->matched : 0), ok);
    set(root, "collectives_unmatched", json_integer((json_int_t)capture->unmatched), ok);
}

json_t *inspect_capture_json(const struct k25_capture *capture, size_t top, struct k25_error *error)
{
    struct cli_table kernels;
    json_t *root = json_object();
    bool ok = root != NULL;
    set(root, "world_size", capture->world_size > 0 ? json_integer(capture->world_size) : json_null(), &ok);
    set(root, "missing_ranks", missing_json(capture, &ok), &ok);
    set_count(root, "sequences", capture->sequences, &ok);
    set_count(root, "tokens", capture->tokens, &ok);
    set(root, "context_tokens", capture->context > 0 ? cli_json_real(capture->context) : json_null(), &ok);
    set(root, "step_period_ms", cli_json_real(capture->step_period * 1e3), &ok);
    set(root, "gpu_busy_ms", cli_json_real(capture->gpu_busy * 1e3), &ok);
    set(root, "idle_ms", cli_json_real((capture->step_period - capture->gpu_busy) * 1e3), &ok);
    set(root, "collective_share", cli_json_real(inspect_collective_share(capture)), &ok);
    set(root, "unclassified_share", cli_json_real(inspect_unclassified_share(capture)), &ok);
    set_comparison(root, capture, &ok);
    set_filled(root, "ranks", inspect_rank_table, capture, &ok, error);
    set_filled(root, "batches", all_batches, capture, &ok, error);
    set_filled(root, "classes", inspect_class_table, capture, &ok, error);
    set_filled(root, "collectives", inspect_collective_table, capture, &ok, error);
    set_filled(root, "waits", inspect_wait_table, capture, &ok, error);
    inspect_kernel_table(capture, top, &kernels);
    set_table(root, "kernels", &kernels, &ok, error);
    set_filled(root, "left_files", inspect_left_table, capture, &ok, error);
    set(root, "notes", notes_json(capture, &ok), &ok);
    if (ok)
        return root;
    json_decref(root);
    return NULL;
}
