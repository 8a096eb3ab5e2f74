/* k25sim sweep: many plans at once, as rows, with the best of them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/commands/sweep/processes.h"
#include "cli/commands/sweep/summary.h"
#include "cli/render/report.h"
#include "scenarios/sweep/grid.h"
#include "scenarios/sweep/run.h"

static struct {
    const char *out, *format, *shard;
    int resume, merge;
    long long chunk;
} given;

static const struct poptOption options[] = {
    {"output", 'o', POPT_ARG_STRING, &given.out, 0, "write the rows to FILE; - is standard output", "FILE"},
    {"format", '\0', POPT_ARG_STRING, &given.format, 0, "of the rows: csv (default) or jsonl", "FORMAT"},
    {"resume", '\0', POPT_ARG_NONE, &given.resume, 0, "go on where an earlier run stopped", NULL},
    {"shard", '\0', POPT_ARG_STRING, &given.shard, 0, "only the i-th of n parts, from 1/n to n/n", "i/n"},
    {"merge", '\0', POPT_ARG_NONE, &given.merge, 0, "put the files of all shards together", NULL},
    {"chunk", '\0', POPT_ARG_LONGLONG, &given.chunk, 0, "points between two writes (default 8192)", "N"},
    CLI_FORCE,
    POPT_TABLEEND,
};

static volatile int stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* The second signal ends the program: what is on disk can be resumed all the same. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- progress ---- */

struct progress {
    double start, last; /* s */
    uint64_t first;     /* where this run began */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void show_progress(void *context, const struct k25_sweep_store *store)
{
    struct progress *progress = context;
    double time = now(), passed = time - progress->start;
    if (time - progress->last < 0.2)
        return;
    progress->last = time;
    double done = (double)(store->next - store->from), all = (double)(store->to - store->from);
    double rate = (double)(store->next - progress->first) / passed, left = rate > 0 ? (all - done) / rate : 0;
    char points[40], total[40], speed[40];
    cli_progress("%s of %s points (%.0f %%), %s points/s, %.0f:%02.0f left",
                 k25_text_count(done, points, sizeof points), k25_text_count(all, total, sizeof total),
                 100 * done / all, k25_text_count(rate, speed, sizeof speed), (double)(long)(left / 60),
                 left - 60 * (double)(long)(left / 60));
}

/* ---- what was asked for ---- */

static bool read_format(enum k25_sweep_format *format, struct k25_error *error)
{
    char hint[64];
    size_t length = given.out != NULL ? strlen(given.out) : 0;
    *format = length > 6 && strcmp(given.out + length - 6, ".jsonl") == 0 ? K25_SWEEP_JSONL : K25_SWEEP_CSV;
    for (int i = 0; given.format != NULL && k25_sweep_format_names[i] != NULL; i++) {
        *format = (enum k25_sweep_format)i;
        if (strcmp(given.format, k25_sweep_format_names[i]) == 0)
            return true;
    }
    return given.format == NULL ||
           cli_misused(&cli_sweep, error, "--format %s: expected csv or jsonl%s", given.format,
                       k25_did_you_mean(given.format, k25_sweep_format_names, hint, sizeof hint)) == K25_OK;
}

static bool read_shard(uint64_t *shard, uint64_t *shards, struct k25_error *error)
{
    long long i = 1, n = 1;
    char part[32];
    size_t length = given.shard != NULL ? strcspn(given.shard, "/") : 0;
    *shard = *shards = 1;
    if (given.shard == NULL)
        return true;
    snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : 0), given.shard);
    if (given.shard[length] != '/' || !k25_parse_int(part, &i) || !k25_parse_int(given.shard + length + 1, &n) ||
        n < 1 || i < 1 || i > n || n > 1000000)
        return cli_misused(&cli_sweep, error, "--shard %s: expected i/n with i from 1 to n, as in 2/8", given.shard) ==
               K25_OK;
    *shard = (uint64_t)i;
    *shards = (uint64_t)n;
    return true;
}

static bool to_stdout(void)
{
    return (given.out != NULL && strcmp(given.out, "-") == 0) || (given.out == NULL && given.format != NULL);
}

static bool check_options(struct k25_error *error)
{
    bool file = given.out != NULL && !to_stdout();
    if (given.chunk < 0 || given.chunk > 100000000)
        return cli_misused(&cli_sweep, error, "--chunk: expected from 1 to 100,000,000 points") == K25_OK;
    if ((given.resume || given.merge || given.shard != NULL) && !file)
        return cli_misused(&cli_sweep, error, "%s needs a file to write, -o FILE",
                           given.merge    ? "--merge"
                           : given.resume ? "--resume"
                                          : "--shard") == K25_OK;
    if (given.merge && (given.shard != NULL || given.resume || given.format != NULL))
        return cli_misused(&cli_sweep, error, "--merge takes no --shard, --resume or --format") == K25_OK;
    return true;
}

/* ---- answers ---- */

static enum k25_status conclude(const struct k25_sweep *sweep, const struct k25_sweep_layout *layout,
                                struct k25_sweep_store *store, struct k25_error *error)
{
    bool piped = to_stdout();
    cli_sweep_counts(piped ? stderr : stdout, layout, store);
    if (!piped && !cli_sweep_best(sweep, layout, store, error))
        return cli_failed(error);
    if (store->next < store->to) {
        k25_fail(error, K25_RESOURCE, "stopped after %llu of %llu points%s",
                 (unsigned long long)(store->next - store->from), (unsigned long long)(store->to - store->from),
                 store->state_fd >= 0 ? "; --resume goes on" : "");
        return K25_RESOURCE;
    }
    return store->summary.counts.rows > 0 || store->shards > 1 ? K25_OK : K25_NEGATIVE;
}

/* --resume takes up what the state beside the file is of, and makes rows anew whose `mark`, the first columns, are this
 * sweep's; FILE.part with FILE.state is for the store to judge. */
static bool may_write(const struct k25_inputs *inputs, const char *mark, struct k25_error *error)
{
    const struct k25_inputs *const read[] = {inputs, NULL};
    char part[1100], state[1100];
    snprintf(part, sizeof part, "%s.part", given.out);
    snprintf(state, sizeof state, "%s.state", given.out);
    bool has_part = k25_file_exists(part), has_state = k25_file_exists(state);
    return cli_is_no_input(given.out, read, error) && cli_is_no_input(part, read, error) &&
           cli_is_no_input(state, read, error) &&
           ((given.resume && has_state) || cli_may_write(given.out, given.resume ? mark : NULL, read, error)) &&
           (given.resume || (has_part && has_state) ||
            (cli_may_write(part, NULL, read, error) && cli_may_write(state, "k25sim sweep state", read, error)));
}

static bool open_store(const struct k25_inputs *read, const struct k25_sweep_layout *layout,
                       struct k25_sweep_store *store, uint64_t from, uint64_t to, uint64_t shard, uint64_t shards,
                       struct k25_error *error)
{
    if (given.out == NULL || to_stdout())
        return k25_sweep_store_stream(store, layout, to_stdout() ? STDOUT_FILENO : -1, from, to, error);
    if (!may_write(read, layout->format == K25_SWEEP_CSV ? layout->head : layout->lead[0], error))
        return false;
    return k25_sweep_store_open(store, layout, given.out, shard, shards, from, to, given.resume != 0, error);
}

/*
 * All processes or none go on; of several that cannot, the first one says why and ends with its status. The others end
 * with 0: a launcher ends all processes when one fails, and may lose the words of the others.
 */
static bool agree(const struct k25_sweep_processes *processes, bool ok, struct k25_error *error)
{
    int failed = processes != NULL ? processes->first_with(processes->context, !ok) : -1;
    if (processes == NULL || failed < 0)
        return ok;
    if (failed != processes->rank) {
        error->status = K25_OK;
        error->message[0] = '\0';
    }
    return false;
}

/* What a sweep is run with; too large for a stack. */
struct task {
    struct k25_sweep_layout layout;
    struct k25_sweep_store store; /* of the process that writes */
    enum k25_sweep_format format;
    uint64_t from, to, shard, shards;
};

/* Processes that were started with different files or options would leave gaps. */
static bool is_shared(const struct task *task, const struct k25_sweep *sweep,
                      const struct k25_sweep_processes *processes, struct k25_error *error)
{
    uint64_t sum = sweep->inputs;
    const uint64_t parts[] = {task->shard, task->shards, (uint64_t)given.chunk, (uint64_t)task->format};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum = (sum ^ parts[i]) * UINT64_C(1099511628211);
    return processes == NULL || processes->broadcast(processes->context, sum) == sum ||
           k25_fail(error, K25_BAD_INPUT, "the processes of one sweep have different files or options");
}

/* Every process comes through here, step by step together. */
static bool prepare(struct task *task, const struct k25_sweep *sweep, const struct k25_sweep_processes *processes,
                    struct k25_error *error)
{
    bool ok = read_format(&task->format, error) && read_shard(&task->shard, &task->shards, error) &&
              k25_sweep_layout_make(sweep, task->format, K25_VERSION, &task->layout, error);
    if (!agree(processes, ok, error) || !agree(processes, is_shared(task, sweep, processes, error), error))
        return false;
    k25_sweep_shard(sweep->points, task->shard, task->shards, &task->from, &task->to);
    ok = (processes != NULL && processes->rank > 0) ||
         open_store(&sweep->read, &task->layout, &task->store, task->from, task->to, task->shard, task->shards, error);
    if (!agree(processes, ok, error))
        return false;
    task->from = processes == NULL ? task->store.next : processes->broadcast(processes->context, task->store.next);
    return true;
}

static bool go_through(struct task *task, const struct k25_sweep *sweep, const struct k25_sweep_processes *processes,
                       struct k25_error *error)
{
    struct k25_sweep_store *store = processes != NULL && processes->rank > 0 ? NULL : &task->store;
    struct progress progress = {.start = now(), .first = task->from};
    struct k25_sweep_options run = {.chunk = (uint64_t)given.chunk, .stop = &stopped, .processes = processes};
    run.progress = show_progress;
    run.context = &progress;
    catch_signals();
    bool ok = k25_sweep_run(sweep, &task->layout, &run, store, task->from, task->to, error);
    cli_progress(NULL);
    ok = ok && (store == NULL || store->next < store->to || k25_sweep_store_finish(store, error));
    return agree(processes, ok, error);
}

static enum k25_status run_sweep(const struct k25_sweep *sweep, const struct k25_sweep_processes *processes,
                                 struct k25_error *error)
{
    static struct task task;
    enum k25_status status = K25_OK;
    bool ok = prepare(&task, sweep, processes, error) && go_through(&task, sweep, processes, error);
    if (ok && (processes == NULL || processes->rank == 0))
        status = conclude(sweep, &task.layout, &task.store, error);
    k25_sweep_store_close(&task.store);
    k25_sweep_layout_free(&task.layout);
    return ok ? status : cli_failed(error);
}

static enum k25_status sweep(const struct cli *cli, const char *name, struct k25_error *error)
{
    static struct k25_sweep sweep; /* too large for a stack */
    struct cli_processes joined;
    if (!cli_processes_open(&joined, error))
        return cli_failed(error);
    const struct k25_sweep_processes *processes = joined.module != NULL ? &joined.all : NULL;
    bool ok = k25_sweep_load(&cli->library, name, &sweep, error);
    ok = agree(processes, ok, error);
    enum k25_status status = ok ? run_sweep(&sweep, processes, error) : cli_failed(error);
    k25_sweep_free(&sweep);
    cli_processes_close(&joined);
    return status;
}

static enum k25_status merge(const char *const *files, struct k25_error *error)
{
    static struct k25_sweep_layout layout;
    static struct k25_sweep_store store;
    enum k25_status status = K25_OK;
    struct k25_inputs states = {0};
    bool ok = true;
    for (size_t i = 0; ok && files[i] != NULL; i++) {
        char state[1100];
        snprintf(state, sizeof state, "%s.state", files[i]);
        ok = k25_inputs_record_file(&states, state, "", 0, error);
    }
    ok = ok && may_write(&states, NULL, error) &&
         k25_sweep_merge(files, cli_count(files), given.out, &layout, &store, error);
    k25_inputs_free(&states);
    if (ok)
        status = conclude(NULL, &layout, &store, error);
    k25_sweep_store_close(&store);
    k25_sweep_layout_free(&layout);
    return ok ? status : cli_failed(error);
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    if (!check_options(error))
        return cli_failed(error);
    if (given.merge)
        return merge(arguments, error);
    if (cli_count(arguments) > 1)
        return cli_misused(&cli_sweep, error, "unexpected argument '%s'", arguments[1]);
    return sweep(cli, arguments[0], error);
}

const struct cli_command cli_sweep = {
    .name = "sweep",
    .arguments = "SWEEP...",
    .summary = "many plans at once: which are best",
    .details = "SWEEP is a file with a base scenario, axes, constraints and objectives (docs/formats.md). The\n"
               "rows go to FILE, which has its name when all are there; until then they are in FILE.part, and\n"
               "--resume goes on after Ctrl-C or worse. Without -o only the summary is printed. The rows are\n"
               "the same bytes for any number of threads (OMP_NUM_THREADS), processes (mpirun k25sim sweep ...)\n"
               "and shards. Exit status 1: no plan meets the constraints.\n"
               "\n"
               "examples:\n"
               "  k25sim sweep sweep_batch\n"
               "  k25sim sweep my-sweep.yaml -o plans.csv\n"
               "  k25sim sweep my-sweep.yaml -o plans.csv --resume\n"
               "  k25sim sweep my-sweep.yaml --shard 3/8 -o part3.csv      one job of eight\n"
               "  k25sim sweep --merge part*.csv -o plans.csv              what they made, as one\n"
               "  mpirun -n 4 k25sim sweep my-sweep.yaml -o plans.jsonl\n",
    .least = 1,
    .most = 1000000,
    .options = options,
    .run = run,
};
