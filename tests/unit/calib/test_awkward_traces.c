/* What profilers, file systems and editors do to a trace, each done to one clean trace of two decode steps; what the
 * reader of traces counts, and what is left of the steps. The traits are those of public bug reports. */
#include "tests/unit/trace_check.h"

#include <math.h>

#include "calib/capture/capture.h"

static struct k25_kernel_rules *rules;

/* ---- the clean trace: 2 steps, 100 us apart, of 4 kernels; 133.75 us of kernels, 16.25 of them AllReduce ---- */

#define MOE "void marlin_moe_wna16::Marlin<1, 2>(int4 const*)"
#define ATTENTION "_fwd_grouped_kernel_stage1"
#define ALLREDUCE "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)"
#define GEMM "nvjet_sm120_tst_mma_64x32x128_3_32x16x128_tmaAB_bz_TNT"
#define GATHER "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define DEVICES "\"deviceProperties\": [{\"id\": 0, \"name\": \"A GPU\", \"numSms\": 100}], "
#define RANK "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 2}, "
#define HEAD                                                                                                           \
    "{\"schemaVersion\": 1, " DEVICES RANK "\"baseTimeNanoseconds\": 1767189312000000000,\n\"traceEvents\": [\n"
#define TAIL "\n],\n\"traceName\": \"out.json\"}\n"
#define KERNEL(name, ts, dur, id)                                                                                      \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name "\", \"pid\": 0, \"tid\": 7, \"ts\": " ts                 \
    ", \"dur\": " dur ", \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": " id "}}"
#define COPY(ts, id)                                                                                                   \
    "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy DtoH (Device -> Pinned)\", \"pid\": 0, \"tid\": 7, "  \
    "\"ts\": " ts ", \"dur\": 1.5, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": " id ", \"bytes\": 16, "  \
    "\"memory bandwidth (GB/s)\": 0.01}}"
#define OPERATOR(name, ts)                                                                                             \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name "\", \"pid\": 90, \"tid\": 90, \"ts\": " ts               \
    ", \"dur\": 1.25, \"args\": {\"External id\": 7}}"
#define RANGE(name, ts)                                                                                                \
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"" name "\", \"pid\": 90, \"tid\": 90, \"ts\": " ts      \
    ", \"dur\": 18.0, \"args\": {\"External id\": 5}}"
#define LAUNCH(ts, id)                                                                                                 \
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaGraphLaunch\", \"pid\": 90, \"tid\": 90, \"ts\": " ts  \
    ", \"dur\": 2.25, \"args\": {\"correlation\": " id ", \"External id\": 5}}"
#define DECODE "execute_context_0(0)_generation_4(4)"
/* `t` is the hundreds of microseconds of the step's time, as text. */
#define CPU_OF_STEP(t, id, name)                                                                                       \
    RANGE(name, "70000" t "00.0") ",\n" LAUNCH("70000" t "01.0", id) ",\n" OPERATOR("aten::empty", "70000" t "12.0")
#define GPU_OF_STEP(t, id)                                                                                             \
    KERNEL(MOE, "70000" t "15.0", "28.5", id)                                                                          \
    ",\n" KERNEL(ATTENTION, "70000" t "44.0", "11.25", id) ",\n" KERNEL(                                               \
        ALLREDUCE, "70000" t "55.5", "8.125", id) ",\n" KERNEL(GEMM, "70000" t "64.25", "19.0",                        \
                                                               id) ",\n" COPY("70000" t "84.0", "9" id)
#define STEP(t, id) CPU_OF_STEP(t, id, DECODE) ",\n" GPU_OF_STEP(t, id)
#define BODY STEP("0", "100") ",\n" STEP("1", "101")
#define ONLY_CPU CPU_OF_STEP("0", "100", DECODE)

/* ---- what is done to it ---- */

enum form { PLAIN, DOS, NESTED, ZIPPED, TWO_MEMBERS, CUT, WRONG_SUM, PADDED, ONE_LINE, BACKWARDS };

/* What the reader counts beyond a clean trace. */
enum {
    DAMAGED = 1,
    STRINGS = 2,
    ROOT = 4,
    VALUES = 8,
    NONFINITE = 16,
    UTF8 = 32,
    OPEN = 64,
    TRUNCATED = 128,
    SUM = 256,
    TIMES = 512,
    NO_STEPS = 1024 /* no clean steps either, so none are looked for */
};

struct awkward {
    const char *file; /* its name says what is wrong */
    enum form form;
    const char *edit[3][2]; /* every [0] becomes [1], in turn; {"", x}: x is the whole file */
    int kernels, flags;
    double kernel_us;
    const char *word; /* of the refusal; NULL: it is read */
    int rank;
};

#define AFTER_HEAD(event)                                                                                              \
    {                                                                                                                  \
        "\"traceEvents\": [\n", "\"traceEvents\": [\n" event ",\n"                                                     \
    }
#define BEFORE_TAIL(event)                                                                                             \
    {                                                                                                                  \
        TAIL, ",\n" event TAIL                                                                                         \
    }
#define WHOLE(text)                                                                                                    \
    {                                                                                                                  \
        "", text                                                                                                       \
    }
#define CLEAN 8, 0, 133.75, NULL, 0
#define BUT(flags) 8, flags, 133.75, NULL, 0
#define REFUSED(word) 0, 0, 0, word, -1

static const struct awkward cases[] = {
    {"clean.json", PLAIN, {{NULL}}, CLEAN},
    {"key_without_quote.json", PLAIN, {AFTER_HEAD("{\"ph\": \"f\", \"id\": 1, pid\": 0, \"ts\": 1}")}, BUT(DAMAGED)},
    {"backslashes.json", PLAIN, {AFTER_HEAD(OPERATOR("D:\\qux\\ego.py", "70000013.0"))}, BUT(STRINGS)},
    {"quotes_in_name.json", PLAIN, {AFTER_HEAD(OPERATOR("call(\"mine\")", "70000013.0"))}, BUT(DAMAGED)},
    {"latin1.json", PLAIN, {AFTER_HEAD(OPERATOR("na\xefve", "70000013.0"))}, BUT(UTF8)},
    {"windows_path.json", PLAIN, {{"out.json", "C:\\Users\\new\\trace.json"}}, BUT(STRINGS)},
    {"list.json", PLAIN, {{HEAD, "["}, {TAIL, "]"}}, 8, 0, 133.75, NULL, -1},
    {"log_in_root.json", PLAIN, {{TAIL, "\n],\n\"INFO\": [\"lost \"id\": 64\"],\n\"x\": 1}"}}, BUT(ROOT)},
    {"value_missing.json",
     PLAIN,
     {AFTER_HEAD("{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" GATHER
                 "\", \"ts\": 70000086.0, \"dur\": 5.0, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": 950, "
                 "\"Process Group Description\": , \"dtype\": \"BFloat16\"}}")},
     9,
     VALUES,
     138.75,
     NULL,
     0},
    {"not_finite.json", PLAIN, {{"0.01}", "inf}"}, {"\"dur\": 1.25", "\"dur\": NaN"}}, BUT(NONFINITE)},
    {"not_closed.json", PLAIN, {{TAIL, ","}}, BUT(OPEN)},
    {"args_a_list.json", PLAIN, {{"{\"External id\": 7}", "[]"}}, CLEAN},
    {"args_absent.json", PLAIN, {{", \"args\": {\"External id\": 7}", ""}}, CLEAN},
    {"ids_over_int64.json", PLAIN, {{"\"correlation\": 100", "\"correlation\": 9223372036854775900"}}, CLEAN},
    {"ids_over_64_bits.json",
     PLAIN,
     {{"\"correlation\": 100", "\"correlation\": 340282366920938463463374607431768211455"}},
     CLEAN},
    {"dos.json", DOS, {{NULL}}, CLEAN},
    {"deep.json", NESTED, {{NULL}}, CLEAN},
    {"zipped.json.gz", ZIPPED, {{NULL}}, CLEAN},
    {"two_members.json.gz", TWO_MEMBERS, {{NULL}}, CLEAN},
    {"cut.json.gz", CUT, {{NULL}}, -1, TRUNCATED | NO_STEPS, -1, "truncated", 0},
    {"wrong_sum.json.gz", WRONG_SUM, {{NULL}}, 8, SUM, 133.75, "CRC", 0},
    {"padded.json.gz", PADDED, {{NULL}}, CLEAN},
    {"not_zipped.json.gz", PLAIN, {{NULL}}, CLEAN},
    {"empty.json.gz", PLAIN, {WHOLE("")}, REFUSED("empty")},
    {"pointer.json.gz", PLAIN, {WHOLE("version https://git-lfs.github.com/spec/v1\nsize 1\n")}, REFUSED("git-lfs")},
    {"page.json.gz", PLAIN, {WHOLE("<!DOCTYPE html><html><body>gone</body></html>")}, REFUSED("HTML")},
    {"execution.json", PLAIN, {WHOLE("{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": [{}]}")}, REFUSED("Chakra")},
    {"rocprof.json", PLAIN, {WHOLE("{\"rocprofiler-sdk-tool\": [{\"metadata\": {}}]}")}, REFUSED("rocprofv3")},
    {"no_events.json", PLAIN, {{BODY, ""}}, 0, 0, 0, "no GPU events", 0},
    {"null.json", PLAIN, {WHOLE("{\"schemaVersion\": 1, \"traceEvents\": null}")}, REFUSED("no traceEvents")},
    {"root_last.json", ONE_LINE, {{HEAD, "{\"traceEvents\": ["}, {TAIL, "], " RANK "\"x\": 1}"}}, CLEAN},
    {"dp0_pp0_tp3_dcp0_ep0_rank3.1767195832618853487.pt.trace.json", PLAIN, {{RANK, ""}}, 8, 0, 133.75, NULL, 3},
    {"rank_nowhere.json", PLAIN, {{RANK, ""}}, 8, 0, 133.75, NULL, -1},
    {"no_launches.json",
     PLAIN,
     {{LAUNCH("70000001.0", "100") ",\n", ""}, {LAUNCH("70000101.0", "101") ",\n", ""}},
     CLEAN},
    {"no_correlation.json", PLAIN, {{"\"correlation\": ", "\"was\": "}}, CLEAN},
    {"numbers_as_text.json",
     PLAIN,
     {{"\"ts\": 70000015.0, \"dur\": 28.5", "\"ts\": \"70000015.000\", \"dur\": \"28.500\""},
      {"\"bytes\": 16", "\"bytes\": \"16\""}},
     CLEAN},
    {"text_as_ids.json",
     PLAIN,
     {{"\"pid\": 0, \"tid\": 7", "\"pid\": \"GPU 0\", \"tid\": \"stream 7\""}, {"\"tid\": 90", "\"tid\": -1386299072"}},
     CLEAN},
    {"old_names.json",
     PLAIN,
     {{"deviceProperties", "computeProperties"}, {"\"kernel\"", "\"Kernel\""}, {"\"cuda_runtime\"", "\"Runtime\""}},
     CLEAN},
    {"no_device.json", PLAIN, {{DEVICES, ""}}, CLEAN},
    {"only_cpu.json", PLAIN, {{BODY, ONLY_CPU}}, 0, 0, 0, "no GPU events", 0},
    {"ends_before_it_starts.json",
     PLAIN,
     {{"\"ts\": 70000064.25, \"dur\": 19.0", "\"ts\": 70000064.25, \"dur\": -4.5"}},
     8,
     TIMES,
     114.75,
     NULL,
     0},
    {"lost_record.json", PLAIN, {AFTER_HEAD(KERNEL(GEMM, "0", "0", "100"))}, 9, TIMES, 133.75, NULL, 0},
    {"any_order.json", BACKWARDS, {{NULL}}, CLEAN},
    {"range_on_gpu.json",
     PLAIN,
     {BEFORE_TAIL("{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"" DECODE
                  "\", \"ts\": 70000014.9, \"dur\": 70.5, \"args\": {}},\n{\"ph\": \"X\", \"cat\": "
                  "\"gpu_user_annotation\", \"name\": \"" DECODE
                  "\", \"ts\": 70000114.9, \"dur\": 70.5, \"args\": {}}")},
     CLEAN},
    {"graph_capture_rank_0.json",
     PLAIN,
     {{BODY, ONLY_CPU ",\n" KERNEL(GEMM, "70000020.0", "1.0", "5")}},
     1,
     0,
     1,
     "capture trace",
     0},
};
enum { CASES = sizeof cases / sizeof *cases };

/* `text` with every `from` replaced by `to`, at least one; frees `text`. */
static char *replaced(char *text, const char *from, const char *to)
{
    char *out = NULL;
    size_t size, found = 0;
    FILE *stream = open_memstream(&out, &size);
    const char *at = text;
    for (const char *next = strstr(at, from); next != NULL; next = strstr(at, from), found++) {
        fprintf(stream, "%.*s%s", (int)(next - at), at, to);
        at = next + strlen(from);
    }
    fputs(at, stream);
    fclose(stream);
    free(text);
    if (found == 0)
        fail_msg("no %s to replace", from);
    return out;
}

/* The events last to first. */
static char *backwards(char *text)
{
    char *out = NULL, *events = strstr(text, "[\n{") + 2, *end = strstr(text, TAIL);
    size_t size;
    FILE *stream = open_memstream(&out, &size);
    fwrite(text, 1, (size_t)(events - text), stream);
    for (char *stop = end; stop > events;) {
        char *start = stop - 1;
        while (start > events && start[-1] != '\n')
            start--;
        bool comma = stop[-1] == ',';
        fprintf(stream, "%.*s%s", (int)(stop - start - comma), start, start > events ? ",\n" : "");
        stop = start > events ? start - 1 : start;
    }
    fputs(TAIL, stream);
    fclose(stream);
    free(text);
    return out;
}

static char *nested(char *text)
{
    enum { DEPTH = 20000 };
    static char deep[2 * DEPTH + 64];
    size_t n = (size_t)snprintf(deep, sizeof deep, "{\"x\": ");
    memset(deep + n, '[', DEPTH);
    memset(deep + n + DEPTH, ']', DEPTH);
    snprintf(deep + n + (size_t)2 * DEPTH, 2, "}");
    return replaced(text, "{\"External id\": 7}", deep);
}

static void put_zipped(const char *name, enum form form, const char *text)
{
    static unsigned char bytes[65536];
    size_t length = strlen(text), half = form == TWO_MEMBERS ? length / 2 : length;
    memset(bytes, 0, sizeof bytes);
    size_t size = gzip_member(text, half, bytes, sizeof bytes);
    if (half < length)
        size += gzip_member(text + half, length - half, bytes + size, sizeof bytes - size);
    if (form == WRONG_SUM)
        bytes[size - 8] ^= 1;
    put_file(name, bytes, form == CUT ? size * 4 / 5 : form == PADDED ? size + 512 : size);
}

/* Writes the case's file into the working directory. */
static void make(const struct awkward *c)
{
    char *text = strdup(HEAD BODY TAIL);
    for (int i = 0; i < 3 && c->edit[i][0] != NULL; i++) {
        if (c->edit[i][0][0] != '\0') {
            text = replaced(text, c->edit[i][0], c->edit[i][1]);
        } else {
            free(text);
            text = strdup(c->edit[i][1]);
        }
    }
    if (c->form == DOS)
        text = replaced(replaced(text, "\n", "\r\n"), "{\"schema", "\xef\xbb\xbf{\"schema");
    if (c->form == ONE_LINE)
        text = replaced(text, "\n", "");
    if (c->form == BACKWARDS)
        text = backwards(text);
    if (c->form == NESTED)
        text = nested(text);
    if (c->form >= ZIPPED && c->form <= PADDED)
        put_zipped(c->file, c->form, text);
    else
        put_file(c->file, text, strlen(text));
    free(text);
}

/* ---- what the reader of traces says ---- */

static void check_counts(const struct awkward *c, const struct k25_trace_info *info)
{
    if (c->kernels >= 0)
        assert_int_equal(info->events[K25_TRACE_KERNEL], c->kernels);
    if (c->kernel_us >= 0)
        assert_int_equal(info->busy_ns[K25_TRACE_KERNEL], (int64_t)(c->kernel_us * 1000));
    assert_int_equal(info->damaged_events, (c->flags & DAMAGED) != 0);
    assert_int_equal(info->damaged_strings, (c->flags & STRINGS) != 0);
    assert_int_equal(info->damaged_root, (c->flags & ROOT) != 0);
    assert_int_equal(info->damaged_values, (c->flags & VALUES) != 0);
    assert_int_equal(info->nonfinite, (c->flags & NONFINITE) != 0 ? 4 : 0);
    assert_int_equal(info->invalid_utf8, (c->flags & UTF8) != 0);
    if (c->word == NULL)
        assert_int_equal(info->unterminated, (c->flags & OPEN) != 0);
    assert_int_equal(info->truncated, (c->flags & TRUNCATED) != 0);
    assert_int_equal(info->bad_crc, (c->flags & SUM) != 0);
    assert_int_equal(info->bad_times[K25_TRACE_KERNEL], (c->flags & TIMES) != 0);
}

static void traces_are_counted(void **state)
{
    (void)state;
    static struct reading reading;
    for (int i = 0; i < CASES; i++) {
        const struct awkward *c = &cases[i];
        make(c);
        read_file(c->file, false, &reading);
        bool good = reading.done && k25_trace_check(c->file, &reading.info, &reading.error);
        print_message("%-30.30s %s\n", c->file, reading.error.message);
        assert_int_equal(good, c->word == NULL);
        assert_true(good || strstr(reading.error.message, c->word) != NULL);
        check_counts(c, &reading.info);
        if (good)
            assert_int_equal(reading.info.rank, c->rank);
        bool whole = reading.info.events[K25_TRACE_KERNEL] > 0;
        k25_trace_info_free(&reading.info);
        if (!reading.done && whole) { /* lenient keeps what was good */
            read_file(c->file, true, &reading);
            assert_true(reading.done);
            assert_true(reading.info.events[K25_TRACE_KERNEL] > 0);
            k25_trace_info_free(&reading.info);
        }
    }
}

/* ---- and what is left of its steps ---- */

static double allreduce_us(const struct k25_rank *rank)
{
    int allreduce = k25_kernel_rules_find(rules, "allreduce");
    double us = 0;
    for (size_t i = 0; i < rank->kernels; i++)
        us += rank->kernel[i].class == allreduce ? (double)rank->kernel[i].total_ns * 1e-3 : 0;
    return us;
}

static bool read_capture(const char *path, bool forgiving, struct k25_capture *capture, struct k25_error *error)
{
    struct k25_capture_options options = {.lenient = forgiving, .rank = -1, .rules = rules};
    *error = (struct k25_error){0};
    return k25_capture_read(&path, 1, &options, capture, error);
}

static void steps_are_whole(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct awkward *c = &cases[i];
        struct k25_capture capture;
        struct k25_error error;
        make(c);
        bool hurt = (c->flags & (TRUNCATED | SUM)) != 0;
        if (c->word != NULL && read_capture(c->file, false, &capture, &error))
            fail_msg("%s: read, expected a refusal", c->file);
        if (c->word != NULL && !hurt)
            continue;
        if (!read_capture(c->file, hurt, &capture, &error))
            fail_msg("%s: %s", c->file, error.message);
        const struct k25_rank *rank = &capture.rank[0];
        if ((c->flags & NO_STEPS) == 0 &&
            (fabs((double)rank->kernel_ns * 1e-3 - c->kernel_us) > 1e-9 || fabs(allreduce_us(rank) - 16.25) > 1e-9 ||
             rank->steps != 2 || fabs(rank->step_period * 1e6 - 100) > 1e-6))
            fail_msg("%s: %d steps every %.3f us, kernels of %.3f us, AllReduce of %.3f us", c->file, (int)rank->steps,
                     rank->step_period * 1e6, (double)rank->kernel_ns * 1e-3, allreduce_us(rank));
        k25_capture_free(&capture);
    }
}

static int enter(void **state)
{
    struct k25_error error;
    rules = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    return rules == NULL ? -1 : enter_folder(state);
}

static int leave(void **state)
{
    k25_kernel_rules_free(rules);
    return leave_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_are_counted),
        cmocka_unit_test(steps_are_whole),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
