/* What to know beside the tables of a capture: what was left out and why, and what its numbers cannot say. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "cli/commands/inspect/inspect.h"

static void note(struct inspect_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct inspect_notes *notes, const char *format, ...)
{
    va_list arguments;
    inspect_note *text = K25_LIST_ADD(notes->text, notes->count);
    if (text == NULL) {
        notes->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(*text, sizeof *text, format, arguments);
    va_end(arguments);
}

void inspect_free_notes(struct inspect_notes *notes)
{
    free(notes->text);
    memset(notes, 0, sizeof *notes);
}

static void note_missing(const struct k25_capture *capture, struct inspect_notes *notes)
{
    char list[600] = "";
    size_t used = 0;
    for (int i = 0; i < capture->missings && used < sizeof list - 16; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", i > 0 ? ", " : "", capture->missing[i]);
    if (capture->missings > 0)
        note(notes, "rank%s %s of %d %s missing: the last to arrive may be among them, so transfer is an upper bound",
             capture->missings > 1 ? "s" : "", list, capture->world_size, capture->missings > 1 ? "are" : "is");
    if (capture->ranks == 1 && capture->groups > 0)
        note(notes,
             "one rank alone: how much of a collective is wait for other ranks cannot be told apart from transfer; "
             "its duration is an upper bound of the transfer");
}

static void note_comparison(const struct k25_capture *capture, struct inspect_notes *notes)
{
    bool named = false;
    if (capture->ranks < 2)
        return;
    if (capture->groups > 0 && capture->matched == 0)
        note(notes, "no collective was found on all ranks: wait cannot be told apart from transfer");
    else if (capture->unmatched > 0)
        note(notes, "%zu collectives of steps kept on all ranks were not compared: not every rank has as many of them",
             capture->unmatched);
    if (capture->slow_rank >= 0)
        note(notes, "rank %d is the slow one: the others wait %.1f us a step longer than it does",
             capture->rank[capture->slow_rank].rank, capture->slow_lag * 1e6);
    else if (capture->matched > 0)
        note(notes, "no rank is slower than the others by more than chance");
    for (size_t g = 0; g < capture->groups; g++)
        named = named || capture->group[g].bytes >= 0;
    if (capture->groups > 0 && !named)
        note(notes, "sizes of messages are not recorded: inside CUDA graphs and for custom kernels they never are");
}

static void note_steps(const struct k25_rank *rank, struct inspect_notes *notes)
{
    const char *format = "rank %d: %zu step%s left out: %s";
    size_t partial = rank->left_out_partial, batch = rank->left_out_batch, slow = rank->left_out_slow;
    if (rank->source == K25_STEPS_NONE)
        note(notes, "rank %d: no steps found; the whole capture stands for one", rank->rank);
    if (partial > 0)
        note(notes, format, rank->rank, partial, partial > 1 ? "s" : "", "cut off by the start or end of the capture");
    if (batch > 0)
        note(notes, format, rank->rank, batch, batch > 1 ? "s" : "", "of another batch, or with prefill in it");
    if (slow > 0)
        note(notes, format, rank->rank, slow, slow > 1 ? "s" : "",
             "more than 3 times the median (a profiler that starts, a pause between requests)");
    if (rank->kept > 0 && rank->source != K25_STEPS_NONE && !rank->step[0].decode && batch == 0)
        note(notes, "rank %d: no step only decodes; these are steps with prefill", rank->rank);
    if (rank->source == K25_STEPS_CPU_TIME)
        note(notes,
             "rank %d: kernels do not tell what launched them: steps start at the first kernel behind each range, "
             "which is late when the engine runs ahead of the GPU",
             rank->rank);
    if (rank->source == K25_STEPS_ANCHOR)
        note(notes, "rank %d: steps were guessed from a repeating sequence of kernels", rank->rank);
}

static void note_file(const struct k25_rank *rank, struct inspect_notes *notes)
{
    char damage[1000];
    if (rank->rank_assumed)
        note(notes, "%s: neither the file nor its name says which rank it is: taken for rank %d", rank->file,
             rank->rank);
    if (k25_trace_damage(&rank->info, damage, sizeof damage)[0] != '\0')
        note(notes, "%s: %s", rank->file, damage);
    if (rank->info.resolution_ns >= 1000)
        note(notes, "%s: times are whole microseconds: short kernels are off by up to 1 us", rank->file);
    if (rank->cut)
        note(notes, "%s: steps and collectives cover the first part only: the rest did not fit in %u MB", rank->file,
             K25_CAPTURE_BYTES >> 20);
}

void inspect_make_notes(const struct k25_capture *capture, struct inspect_notes *notes)
{
    double unclassified = inspect_unclassified_share(capture);
    memset(notes, 0, sizeof *notes);
    note_missing(capture, notes);
    note_comparison(capture, notes);
    for (int r = 0; r < capture->ranks; r++) {
        note_steps(&capture->rank[r], notes);
        note_file(&capture->rank[r], notes);
    }
    if (unclassified > 0.05)
        note(notes, "%.1f %% of GPU time is in kernels without a class: --kernels RULES adds rules",
             100 * unclassified);
}
