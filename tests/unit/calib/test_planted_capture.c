/* Captures of eight ranks by a writer that is none of the program's own: what is planted (transfer, the wait of each
 * rank, the slow rank, the clocks) comes back, and the reader is not shown how it was planted. */
#include "tests/unit/capture_check.h"

enum { RANKS = 8, STEPS = 5, COLLECTIVES = 123, SLOW = 5 };

static struct {
    double transfer;    /* us a step, mean over ranks */
    double wait[RANKS]; /* us a step */
} truth;

static double uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

static void event(FILE *file, const char *category, const char *name, int tid, double ts, double dur, unsigned id)
{
    fprintf(file,
            ",\n  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
            "    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %u, \"device\": 0, \"stream\": "
            "%d, \"correlation\": %u\n    }\n  }",
            category, name, tid == 7 ? 0 : 4242, tid, ts, dur, id, tid, id);
}

static FILE *begin_rank(int rank)
{
    char name[96];
    snprintf(name, sizeof name, "dp0_pp0_tp%d_dcp0_ep0_rank%d.17671958326188534%d.pt.trace.json", rank, rank,
             87 + rank);
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fprintf(file,
            "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"A GPU\", \"numSms\": 188}],\n"
            "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n"
            "  \"baseTimeNanoseconds\": 1767189312000000000,\n  \"traceEvents\": [\n"
            "  {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"python\"}}",
            rank, RANKS);
    return file;
}

/* One step that all ranks begin at `now`, on a clock that is `offset` late on each further rank; returns its end. Ranks
 * compute 40 to 42 us between collectives, the slow one 8 % longer; an AllReduce takes 9 us from the last arrival, with
 * a tenth of spread, and ends within 0.1 us on all. */
static double write_planted_step(FILE *const *file, int step, double now, double offset, uint64_t *state)
{
    double free_at[RANKS];
    for (int r = 0; r < RANKS; r++) {
        unsigned id = (unsigned)(1000 * (step + 1));
        event(file[r], "user_annotation", "execute_context_0(0)_generation_1(1)", 4242, now - 60 + r * offset, 30, id);
        event(file[r], "cuda_runtime", "cudaGraphLaunch", 4242, now - 50 + r * offset, 5, id);
        free_at[r] = now;
    }
    for (int c = 0; c < COLLECTIVES; c++) {
        double arrival[RANKS], last = 0, transfer = 9 + 0.9 * (uniform(state) - 0.5);
        unsigned id = (unsigned)(1000 * (step + 1));
        for (int r = 0; r < RANKS; r++) {
            double compute = (40 + 2 * uniform(state)) * (r == SLOW ? 1.08 : 1);
            event(file[r], "kernel", c % 2 == 0 ? ATTENTION : MOE, 7, free_at[r] + r * offset, compute, id);
            arrival[r] = free_at[r] + compute + 1;
            last = fmax(last, arrival[r]);
        }
        for (int r = 0; r < RANKS; r++) {
            double end = last + transfer + 0.1 * (uniform(state) - 0.5);
            event(file[r], "kernel", ALLREDUCE, 7, arrival[r] + r * offset, end - arrival[r], id);
            truth.transfer += (end - last) / RANKS / STEPS;
            truth.wait[r] += (last - arrival[r]) / STEPS;
            free_at[r] = end + 0.5;
        }
    }
    double end = 0;
    for (int r = 0; r < RANKS; r++)
        end = fmax(end, free_at[r]);
    return end;
}

static void plant(double offset)
{
    FILE *file[RANKS];
    uint64_t state = 88172645463325252;
    double now = 6520618000000;
    memset(&truth, 0, sizeof truth);
    empty_folder();
    for (int r = 0; r < RANKS; r++)
        file[r] = begin_rank(r);
    for (int step = 0; step < STEPS; step++)
        now = write_planted_step(file, step, now, offset, &state) + 400;
    for (int r = 0; r < RANKS; r++) {
        fputs("\n  ],\n  \"traceName\": \"out.json\"\n}\n", file[r]);
        assert_int_equal(fclose(file[r]), 0);
    }
}

static void check_planted(double offset)
{
    struct k25_capture capture;
    plant(offset);
    read_folder(&capture);
    assert_int_equal(capture.ranks, RANKS);
    assert_int_equal((int)capture.steps_common, STEPS);
    assert_int_equal((int)capture.matched, STEPS * COLLECTIVES);
    assert_int_equal((int)capture.unmatched, 0);
    assert_int_equal(capture.slow_rank, SLOW);
    double transfer = 0, clock = 0, wait = 0, others = 0;
    for (size_t g = 0; g < capture.groups; g++)
        transfer += capture.group[g].per_step * capture.group[g].transfer * 1e6;
    for (int r = 0; r < RANKS; r++) {
        clock = fmax(clock, fabs(capture.clock_offset[r] * 1e6 - r * offset));
        wait = fmax(wait, fabs(capture.rank_wait[r] * 1e6 - truth.wait[r]));
        others += r == SLOW ? 0 : truth.wait[r] / (RANKS - 1);
        assert_int_equal((int)capture.rank[r].kept, STEPS);
    }
    double share = transfer / truth.transfer - 1, lag = others - truth.wait[SLOW];
    print_message(
        "clocks %.0f us apart: clock within %.4f us, wait within %.3f of %.0f us a step, transfer %+.2f %%, lag "
        "%.2f of %.2f us\n",
        offset, clock, wait, others, 100 * share, capture.slow_lag * 1e6, lag);
    assert_true(clock < 0.05);
    assert_true(wait < 1);
    assert_true(fabs(share) < 0.02);
    assert_true(fabs(capture.slow_lag * 1e6 - lag) < 2);
    k25_capture_free(&capture);
}

static void one_clock(void **state)
{
    (void)state;
    check_planted(0);
}

static void a_clock_a_rank(void **state)
{
    (void)state;
    check_planted(180);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_clock),
        cmocka_unit_test(a_clock_a_rank),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
