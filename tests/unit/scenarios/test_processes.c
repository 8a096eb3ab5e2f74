/* A sweep over several processes, which stand in for those of mpirun: pipes instead of MPI. */
#include "tests/unit/base_check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "scenarios/sweep/run.h"

enum { COUNT = 3 };

static const struct k25_library library = {.root = K25_SOURCE_DIR};
static struct k25_sweep sweep;
static struct k25_sweep_layout layout;
static struct k25_sweep_store store;

static const char text[] = "k25sim: sweep\nversion: 1\nname: t\nbase: tp8_bs1\n"
                           "axes:\n"
                           "  - {variants: {fitted: {calibration: k25_tp8_vllm}, bare: {calibration: none}}}\n"
                           "  - {zip: {plan.tp: [3, 4, 8], plan.memory_utilisation: [0.9, 0.94, 0.95]}}\n"
                           "  - {key: plan.context, from: 1024, to: 8192, step: 1024}\n"
                           "  - {key: plan.batch, from: 1, to: 32, step: 1}\n"
                           "constraints: [plan.batch * plan.context <= 200000, tpot_ms < 60 || !fits]\n"
                           "objectives: [{maximise: tok_s}, {minimise: tpot_ms}]\n"
                           "group_by: [variant]\n";

/* ---- processes ---- */

/* What each rank has: a pipe to process 0 and one from it. */
struct pipes {
    int rank;
    int up[COUNT][2], down[COUNT][2];
    char *bytes;
};

static void put(int fd, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t done = write(fd, (const char *)bytes + at, size - at);
        assert_true(done > 0);
        at += (size_t)done;
    }
}

static void get(int fd, void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t done = read(fd, (char *)bytes + at, size - at);
        assert_true(done > 0);
        at += (size_t)done;
    }
}

static uint64_t broadcast(void *context, uint64_t number)
{
    struct pipes *pipes = context;
    for (int rank = 1; pipes->rank == 0 && rank < COUNT; rank++)
        put(pipes->down[rank][1], &number, sizeof number);
    if (pipes->rank > 0)
        get(pipes->down[pipes->rank][0], &number, sizeof number);
    return number;
}

static int first_with(void *context, bool flag)
{
    struct pipes *pipes = context;
    if (pipes->rank > 0)
        put(pipes->up[pipes->rank][1], &flag, sizeof flag);
    uint64_t first = flag ? 0 : COUNT;
    for (int rank = 1; pipes->rank == 0 && rank < COUNT; rank++) {
        get(pipes->up[rank][0], &flag, sizeof flag);
        first = flag && first == COUNT ? (uint64_t)rank : first;
    }
    first = broadcast(context, first);
    return first < COUNT ? (int)first : -1;
}

static bool send_bytes(void *context, const char *bytes, size_t size, struct k25_error *error)
{
    struct pipes *pipes = context;
    (void)error;
    put(pipes->up[pipes->rank][1], &size, sizeof size);
    put(pipes->up[pipes->rank][1], bytes, size);
    return true;
}

static bool receive_bytes(void *context, int from, const char **bytes, size_t *size, struct k25_error *error)
{
    struct pipes *pipes = context;
    (void)error;
    get(pipes->up[from][0], size, sizeof *size);
    pipes->bytes = realloc(pipes->bytes, *size + 1);
    assert_non_null(pipes->bytes);
    get(pipes->up[from][0], pipes->bytes, *size);
    *bytes = pipes->bytes;
    return true;
}

/* Runs the sweep as process `rank`; process 0 writes to its store. */
static bool run_as(struct pipes *pipes, int rank, uint64_t chunk, const volatile int *stop)
{
    struct k25_error error = {0};
    struct k25_sweep_processes processes = {.rank = rank,
                                            .count = COUNT,
                                            .context = pipes,
                                            .first_with = first_with,
                                            .broadcast = broadcast,
                                            .send = send_bytes,
                                            .receive = receive_bytes};
    struct k25_sweep_options options = {.chunk = chunk, .stop = stop, .processes = &processes};
    pipes->rank = rank;
    return k25_sweep_run(&sweep, &layout, &options, rank == 0 ? &store : NULL, 0, sweep.points, &error);
}

static void start(struct pipes *pipes, pid_t child[COUNT], uint64_t chunk, const volatile int *stop)
{
    for (int rank = 1; rank < COUNT; rank++) {
        assert_int_equal(pipe(pipes->up[rank]), 0);
        assert_int_equal(pipe(pipes->down[rank]), 0);
        child[rank] = fork();
        assert_true(child[rank] >= 0);
        if (child[rank] == 0)
            _exit(run_as(pipes, rank, chunk, rank == COUNT - 1 ? stop : NULL) ? 0 : 1);
    }
}

static void end(struct pipes *pipes, const pid_t child[COUNT])
{
    for (int rank = 1; rank < COUNT; rank++) {
        int status;
        assert_int_equal(waitpid(child[rank], &status, 0), child[rank]);
        assert_int_equal(status, 0);
        for (int i = 0; i < 2; i++) {
            close(pipes->up[rank][i]);
            close(pipes->down[rank][i]);
        }
    }
    free(pipes->bytes);
}

/* ---- tests ---- */

static int load(void **state)
{
    struct k25_error error;
    if (enter_folder(state) != 0)
        return 1;
    put_file("s.yaml", text, strlen(text));
    return !k25_sweep_load(&library, "./s.yaml", &sweep, &error) ||
           !k25_sweep_layout_make(&sweep, K25_SWEEP_CSV, "test", &layout, &error);
}

static int release(void **state)
{
    k25_sweep_layout_free(&layout);
    k25_sweep_free(&sweep);
    return leave_folder(state);
}

static bool open_store(const char *file)
{
    struct k25_error error;
    return k25_sweep_store_open(&store, &layout, file, 1, 1, 0, sweep.points, true, &error);
}

/* Threads that OpenMP keeps do not survive a fork: what several processes do comes first. */
static void processes_are_stopped_and_go_on(void **state)
{
    (void)state;
    struct pipes pipes = {0};
    pid_t child[COUNT];
    volatile int stop = 1;
    struct k25_error error;
    start(&pipes, child, 5, &stop);
    assert_true(open_store("several.csv"));
    assert_true(run_as(&pipes, 0, 5, NULL));
    end(&pipes, child);
    assert_int_equal(store.next, 0); /* agreed before the first round */
    k25_sweep_store_close(&store);

    pipes = (struct pipes){0};
    start(&pipes, child, 5, NULL);
    assert_true(open_store("several.csv"));
    assert_true(run_as(&pipes, 0, 5, NULL));
    end(&pipes, child);
    assert_int_equal(store.next, sweep.points);
    assert_true(k25_sweep_store_finish(&store, &error));
}

/* The same rows and the same summary as one process has. */
static void several_are_as_one(void **state)
{
    (void)state;
    static struct k25_sweep_summary several;
    struct k25_sweep_options options = {0};
    struct k25_error error;
    several = store.summary; /* of the test before */
    assert_true(several.counts.points == sweep.points && several.counts.rows > 100 && several.groups == 2);
    store.summary = (struct k25_sweep_summary){0};
    k25_sweep_store_close(&store);
    assert_true(open_store("one.csv"));
    assert_true(k25_sweep_run(&sweep, &layout, &options, &store, 0, sweep.points, &error));
    assert_true(k25_sweep_store_finish(&store, &error));
    assert_int_equal(system("cmp one.csv several.csv"), 0);
    assert_memory_equal(&store.summary.counts, &several.counts, sizeof several.counts);
    assert_int_equal(store.summary.groups, several.groups);
    for (size_t g = 0; g < several.groups; g++) {
        const struct k25_sweep_group *a = &store.summary.group[g], *b = &several.group[g];
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->front.count, b->front.count);
        assert_int_equal(a->top.count, b->top.count);
        for (size_t i = 0; i < a->front.count; i++)
            assert_string_equal(a->front.item[i].text, b->front.item[i].text);
        for (size_t i = 0; i < a->top.count; i++)
            assert_string_equal(a->top.item[i].text, b->top.item[i].text);
    }
    k25_sweep_summary_close(&several);
    k25_sweep_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_stopped_and_go_on),
        cmocka_unit_test(several_are_as_one),
    };
    return cmocka_run_group_tests(tests, load, release);
}
