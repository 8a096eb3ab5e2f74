/* The tables of a capture. Times are of the kept steps, means over ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/inspect/inspect.h"

static const struct cli_column rank_columns[] = {
    {"rank", "rank", CLI_COUNT, 0},
    {"file", NULL, CLI_TEXT, 0},
    {"device", NULL, CLI_TEXT, 0},
    {"step_source", "steps from", CLI_TEXT, 0},
    {"launches_per_step", NULL, CLI_COUNT, 0},
    {"steps", "steps", CLI_COUNT, 0},
    {"steps_kept", "kept", CLI_COUNT, 0},
    {"steps_partial", NULL, CLI_COUNT, 0},
    {"steps_other_batch", NULL, CLI_COUNT, 0},
    {"steps_slow", NULL, CLI_COUNT, 0},
    {"step_period_ms", "period ms", CLI_FIGURE, 0},
    {"gpu_busy_ms", "GPU busy ms", CLI_FIGURE, 0},
    {"idle_ms", "idle ms", CLI_FIGURE, 0},
    {"collective_wait_ms", "wait ms", CLI_FIGURE, 0},
    {"clock_offset_us", "clock us", CLI_FIGURE, 0},
    {"kernels", NULL, CLI_COUNT, 0},
    {"kernel_ns", NULL, CLI_COUNT, 0},
    {"capture_span_ns", NULL, CLI_COUNT, 0},
    {"capture_busy_ns", NULL, CLI_COUNT, 0},
    {"unclassified_share", NULL, CLI_FIGURE, 0},
    {"time_resolution_ns", NULL, CLI_COUNT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

void inspect_rank_table(const struct k25_capture *capture, struct cli_table *table)
{
    cli_table_open(table, rank_columns);
    for (int r = 0; r < capture->ranks; r++) {
        const struct k25_rank *rank = &capture->rank[r];
        cli_table_number(table, rank->rank);
        cli_table_text(table, "%s", rank->file);
        cli_table_text(table, "%.200s", rank->info.device);
        cli_table_text(table, "%s", k25_step_source_names[rank->source]);
        cli_table_number(table, rank->source == K25_STEPS_GRAPH ? (double)rank->launches_per_step : NAN);
        cli_table_number(table, rank->source == K25_STEPS_NONE ? 0 : (double)rank->steps);
        cli_table_number(table, rank->source == K25_STEPS_NONE ? 0 : (double)rank->kept);
        cli_table_number(table, (double)rank->left_out_partial);
        cli_table_number(table, (double)rank->left_out_batch);
        cli_table_number(table, (double)rank->left_out_slow);
        cli_table_number(table, rank->step_period * 1e3);
        cli_table_number(table, rank->gpu_busy * 1e3);
        cli_table_number(table, (rank->step_period - rank->gpu_busy) * 1e3);
        cli_table_number(table, capture->rank_wait[r] * 1e3);
        cli_table_number(table, capture->ranks > 1 ? capture->clock_offset[r] * 1e6 : NAN);
        cli_table_number(table, (double)rank->info.events[K25_TRACE_KERNEL]);
        cli_table_number(table, (double)rank->kernel_ns);
        cli_table_number(table, (double)rank->span_ns);
        cli_table_number(table, (double)rank->busy_ns);
        cli_table_number(table, rank->kernel_ns > 0 ? (double)rank->unclassified_ns / (double)rank->kernel_ns : NAN);
        cli_table_number(table, rank->info.resolution_ns);
    }
}

/* ---- batches ---- */

static const struct cli_column batch_columns[] = {
    {"decode", "steps of", CLI_TEXT, 0},
    {"sequences", "sequences", CLI_COUNT, 0},
    {"tokens", "tokens", CLI_COUNT, 0},
    {"steps", "steps", CLI_COUNT, 0},
    {"steps_kept", "kept", CLI_COUNT, 0},
    {"step_period_ms", "period ms", CLI_FIGURE, 0},
    {"gpu_busy_ms", "GPU busy ms", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static int by_batch(const void *a, const void *b)
{
    const struct k25_capture_step *x = a, *y = b;
    if (x->decode != y->decode)
        return x->decode ? -1 : 1;
    if (x->sequences != y->sequences)
        return x->sequences < y->sequences ? -1 : 1;
    if (x->tokens != y->tokens)
        return x->tokens < y->tokens ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_number(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, by_number);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void add_batch(const struct k25_capture_step *step, size_t count, double *scratch, struct cli_table *table)
{
    size_t kept = 0, periods = 0;
    for (size_t i = 0; i < count; i++) {
        kept += step[i].fate == K25_STEP_KEPT;
        if (step[i].period_ns > 0)
            scratch[periods++] = (double)step[i].period_ns * 1e-6;
    }
    cli_table_text(table, "%s", step->decode ? "decode" : "prefill or both");
    cli_table_number(table, step->sequences >= 0 ? (double)step->sequences : NAN);
    cli_table_number(table, step->tokens >= 0 ? (double)step->tokens : NAN);
    cli_table_number(table, (double)count);
    cli_table_number(table, (double)kept);
    cli_table_number(table, median(scratch, periods));
    for (size_t i = 0; i < count; i++)
        scratch[i] = (double)step[i].busy_ns * 1e-6;
    cli_table_number(table, median(scratch, count));
}

/* Neighbours of one batch among the sorted steps. */
struct batch {
    size_t first, count;
};

static int by_count(const void *a, const void *b)
{
    const struct batch *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static size_t find_batches(const struct k25_capture_step *step, size_t steps, struct batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < steps; i++) {
        bool same = i > 0 && step[i].decode == step[i - 1].decode && step[i].sequences == step[i - 1].sequences &&
                    step[i].tokens == step[i - 1].tokens;
        if (!same)
            batch[count++] = (struct batch){i, 0};
        batch[count - 1].count++;
    }
    qsort(batch, count, sizeof *batch, by_count);
    return count;
}

/* Of the first rank: the others ran the same steps. */
void inspect_batch_table(const struct k25_capture *capture, size_t top, struct cli_table *table)
{
    const struct k25_rank *rank = &capture->rank[0];
    struct k25_capture_step *step = malloc((rank->steps + 1) * sizeof *step);
    struct batch *batch = malloc((rank->steps + 1) * sizeof *batch);
    double *scratch = malloc((rank->steps + 1) * sizeof *scratch);
    cli_table_open(table, batch_columns);
    table->failed = step == NULL || scratch == NULL || batch == NULL;
    if (!table->failed && rank->source != K25_STEPS_NONE) {
        memcpy(step, rank->step, rank->steps * sizeof *step);
        qsort(step, rank->steps, sizeof *step, by_batch);
        size_t count = find_batches(step, rank->steps, batch);
        for (size_t i = 0; i < count && i < top; i++)
            add_batch(&step[batch[i].first], batch[i].count, scratch, table);
    }
    free(step);
    free(batch);
    free(scratch);
}

/* ---- classes ---- */

/* Sums over ranks of the kept steps: how many steps, and the union of their intervals, ns. */
static void kept_time(const struct k25_capture *capture, double *steps, double *busy)
{
    *steps = *busy = 0;
    for (int r = 0; r < capture->ranks; r++) {
        *steps += (double)capture->rank[r].kept;
        for (int c = 0; c < capture->rank[r].classes; c++)
            *busy += (double)capture->rank[r].class_own_ns[c];
    }
}

struct class_row {
    int class;
    double calls, total, own; /* ns, over ranks */
};

static int by_own(const void *a, const void *b)
{
    const struct class_row *x = a, *y = b;
    return x->own != y->own ? (x->own > y->own ? -1 : 1) : x->class - y->class;
}

static const struct cli_column class_columns[] = {
    {"class", "class", CLI_TEXT, 0},
    {"group", "group", CLI_TEXT, 0},
    {"calls_per_step", "calls/step", CLI_FIGURE, 0},
    {"time_ms", "ms/step", CLI_FIGURE, 0},
    {"mean_us", "mean us", CLI_FIGURE, 0},
    {"share", "share", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

void inspect_class_table(const struct k25_capture *capture, struct cli_table *table)
{
    int classes = k25_kernel_rules_classes(capture->rules);
    struct class_row *row = calloc((size_t)classes + 1, sizeof *row);
    double steps, busy;
    kept_time(capture, &steps, &busy);
    cli_table_open(table, class_columns);
    table->failed = row == NULL;
    for (int c = 0; row != NULL && c < classes; c++) {
        row[c].class = c;
        for (int r = 0; r < capture->ranks; r++) {
            row[c].calls += (double)capture->rank[r].class_calls[c];
            row[c].total += (double)capture->rank[r].class_ns[c];
            row[c].own += (double)capture->rank[r].class_own_ns[c];
        }
    }
    if (row != NULL)
        qsort(row, (size_t)classes, sizeof *row, by_own);
    for (int i = 0; row != NULL && i < classes; i++) {
        if (row[i].calls <= 0)
            continue;
        cli_table_text(table, "%s", k25_kernel_rules_describe(capture->rules, row[i].class)->name);
        cli_table_text(table, "%s", k25_kernel_rules_describe(capture->rules, row[i].class)->group);
        cli_table_number(table, row[i].calls / steps);
        cli_table_number(table, row[i].total / steps * 1e-6);
        cli_table_number(table, row[i].total / row[i].calls * 1e-3);
        cli_table_number(table, row[i].own / busy);
    }
    free(row);
}

double inspect_collective_share(const struct k25_capture *capture)
{
    double steps, busy, sum = 0;
    kept_time(capture, &steps, &busy);
    for (int r = 0; r < capture->ranks; r++)
        for (int c = 0; c < capture->rank[r].classes; c++)
            if (k25_kernel_rules_describe(capture->rules, c)->collective)
                sum += (double)capture->rank[r].class_own_ns[c];
    return busy > 0 ? sum / busy : NAN;
}

double inspect_unclassified_share(const struct k25_capture *capture)
{
    double steps, busy, sum = 0;
    kept_time(capture, &steps, &busy);
    for (int r = 0; r < capture->ranks; r++)
        sum += (double)capture->rank[r].class_own_ns[0];
    return busy > 0 ? sum / busy : NAN;
}

/* ---- kernels ---- */

static const struct cli_column kernel_columns[] = {
    {"kernel", "kernel", CLI_TEXT, 48},
    {"class", "class", CLI_TEXT, 0},
    {"calls_per_step", "calls/step", CLI_FIGURE, 0},
    {"time_ms", "ms/step", CLI_FIGURE, 0},
    {"mean_us", "mean us", CLI_FIGURE, 0},
    {"share", "share", CLI_FIGURE, 0},
    {"capture_calls", NULL, CLI_COUNT, 0},
    {"capture_ns", NULL, CLI_COUNT, 0},
    {"min_us", NULL, CLI_FIGURE, 0},
    {"max_us", NULL, CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static int by_name(const void *a, const void *b)
{
    const struct k25_capture_kernel *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->class - y->class;
}

static int by_time(const void *a, const void *b)
{
    const struct k25_capture_kernel *x = a, *y = b;
    if (x->step_ns != y->step_ns)
        return x->step_ns > y->step_ns ? -1 : 1;
    return x->total_ns != y->total_ns ? (x->total_ns > y->total_ns ? -1 : 1) : by_name(a, b);
}

/* The kernels of all ranks, one entry a name and class. NULL: memory is out. */
static struct k25_capture_kernel *merge_kernels(const struct k25_capture *capture, size_t *count)
{
    size_t all = 0, kept = 0;
    for (int r = 0; r < capture->ranks; r++)
        all += capture->rank[r].kernels;
    struct k25_capture_kernel *list = malloc((all + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    all = 0;
    for (int r = 0; r < capture->ranks; r++)
        for (size_t i = 0; i < capture->rank[r].kernels; i++)
            list[all++] = capture->rank[r].kernel[i];
    qsort(list, all, sizeof *list, by_name);
    for (size_t i = 0; i < all; i++) {
        struct k25_capture_kernel *k = &list[kept > 0 ? kept - 1 : 0];
        if (kept == 0 || by_name(k, &list[i]) != 0) {
            list[kept++] = list[i];
            continue;
        }
        k->calls += list[i].calls;
        k->step_calls += list[i].step_calls;
        k->total_ns += list[i].total_ns;
        k->step_ns += list[i].step_ns;
        k->min_ns = list[i].min_ns < k->min_ns ? list[i].min_ns : k->min_ns;
        k->max_ns = list[i].max_ns > k->max_ns ? list[i].max_ns : k->max_ns;
    }
    qsort(list, kept, sizeof *list, by_time);
    *count = kept;
    return list;
}

void inspect_kernel_table(const struct k25_capture *capture, size_t top, struct cli_table *table)
{
    size_t count = 0;
    double steps, busy;
    struct k25_capture_kernel *list = merge_kernels(capture, &count);
    kept_time(capture, &steps, &busy);
    cli_table_open(table, kernel_columns);
    table->failed = list == NULL;
    for (size_t i = 0; i < count && i < top; i++) {
        const struct k25_capture_kernel *k = &list[i];
        cli_table_text(table, "%s", k->name);
        cli_table_text(table, "%s", k25_kernel_rules_describe(capture->rules, k->class)->name);
        cli_table_number(table, steps > 0 ? (double)k->step_calls / steps : NAN);
        cli_table_number(table, steps > 0 ? (double)k->step_ns / steps * 1e-6 : NAN);
        cli_table_number(table, k->step_calls > 0 ? (double)k->step_ns / (double)k->step_calls * 1e-3 : NAN);
        cli_table_number(table, busy > 0 ? (double)k->step_ns / busy : NAN);
        cli_table_number(table, (double)k->calls);
        cli_table_number(table, (double)k->total_ns);
        cli_table_number(table, (double)k->min_ns * 1e-3);
        cli_table_number(table, (double)k->max_ns * 1e-3);
    }
    free(list);
}

/* ---- collectives ---- */

static const struct cli_column collective_columns[] = {
    {"class", "collective", CLI_TEXT, 0},
    {"bytes", "bytes", CLI_COUNT, 0},
    {"calls_per_step", "calls/step", CLI_FIGURE, 0},
    {"time_ms", "ms/step", CLI_FIGURE, 0},
    {"share", "share", CLI_FIGURE, 0},
    {"duration_us", "mean us", CLI_FIGURE, 0},
    {"transfer_us", "transfer us", CLI_FIGURE, 0},
    {"transfer_least_us", NULL, CLI_FIGURE, 0},
    {"wait_us", "wait us", CLI_FIGURE, 0},
    {"arrival_spread_us", "spread us", CLI_FIGURE, 0},
    {"arrival_sigma_us", NULL, CLI_FIGURE, 0},
    {"end_jitter_us", NULL, CLI_FIGURE, 0},
    {"calls", NULL, CLI_COUNT, 0},
    {"matched", NULL, CLI_COUNT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

void inspect_collective_table(const struct k25_capture *capture, struct cli_table *table)
{
    double steps, busy;
    kept_time(capture, &steps, &busy);
    cli_table_open(table, collective_columns);
    for (size_t g = 0; g < capture->groups; g++) {
        const struct k25_capture_group *group = &capture->group[g];
        double time = group->per_step * group->duration;
        cli_table_text(table, "%s", k25_kernel_rules_describe(capture->rules, group->class)->name);
        cli_table_number(table, group->bytes >= 0 ? (double)group->bytes : NAN);
        cli_table_number(table, group->per_step);
        cli_table_number(table, time * 1e3);
        cli_table_number(table, busy > 0 ? time * 1e9 * steps / busy : NAN);
        cli_table_number(table, group->duration * 1e6);
        cli_table_number(table, group->transfer * 1e6);
        cli_table_number(table, group->transfer_least * 1e6);
        cli_table_number(table, group->wait * 1e6);
        cli_table_number(table, group->spread * 1e6);
        cli_table_number(table, group->wait_sigma * 1e6);
        cli_table_number(table, group->end_jitter * 1e6);
        cli_table_number(table, (double)group->calls);
        cli_table_number(table, (double)group->matched);
    }
}

static const struct cli_column wait_columns[] = {
    {"class", "collective", CLI_TEXT, 0},  {"bytes", "bytes", CLI_COUNT, 0}, {"rank", "rank", CLI_COUNT, 0},
    {"wait_us", "wait us", CLI_FIGURE, 0}, {NULL, NULL, CLI_TEXT, 0},
};

void inspect_wait_table(const struct k25_capture *capture, struct cli_table *table)
{
    cli_table_open(table, wait_columns);
    for (size_t g = 0; capture->ranks > 1 && g < capture->groups; g++) {
        const struct k25_capture_group *group = &capture->group[g];
        for (int r = 0; r < capture->ranks; r++) {
            cli_table_text(table, "%s", k25_kernel_rules_describe(capture->rules, group->class)->name);
            cli_table_number(table, group->bytes >= 0 ? (double)group->bytes : NAN);
            cli_table_number(table, capture->rank[r].rank);
            cli_table_number(table, group->rank_wait[r] * 1e6);
        }
    }
}

static const struct cli_column left_columns[] = {
    {"file", "passed over", CLI_TEXT, 0},
    {"reason", "because", CLI_TEXT, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

void inspect_left_table(const struct k25_capture *capture, struct cli_table *table)
{
    cli_table_open(table, left_columns);
    for (size_t i = 0; i < capture->left_files; i++) {
        cli_table_text(table, "%s", capture->left_file[i].file);
        cli_table_text(table, "%s", capture->left_file[i].why);
    }
}
