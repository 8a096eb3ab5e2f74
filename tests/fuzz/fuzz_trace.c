/* Any bytes at all into the walkers of the trace reader, in pieces of any size. Nothing may crash or run forever;
 * the reference must give the same however the text is cut; and where it finds nothing wrong, the AVX2 walker must
 * give the same as the reference. The first byte of the input decides how the text is cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/trace/internal.h"

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct outcome {
    uint64_t events, digest, damage, others;
    bool clean, refused;
};

static void mix(struct outcome *outcome, uint64_t value)
{
    outcome->digest = (outcome->digest ^ value) * 0x100000001b3u;
}

static bool visit(void *context, const struct k25_trace_event *event)
{
    struct outcome *outcome = context;
    require(event->name_length == strlen(event->name));
    require(event->dur_ns >= 0 && (!event->bad_time || event->dur_ns == 0));
    mix(outcome, (uint64_t)event->kind * 2 + event->bad_time);
    mix(outcome, (uint64_t)event->ts_ns);
    mix(outcome, (uint64_t)event->dur_ns);
    mix(outcome, (uint64_t)event->name_id);
    mix(outcome, (uint64_t)event->device << 32 ^ (uint64_t)event->stream);
    mix(outcome, event->correlation ^ event->external_id << 1 ^ event->bytes << 2);
    mix(outcome, event->graph_id ^ event->graph_node << 1 ^ (uint64_t)event->thread);
    if (event->collective != NULL) {
        const struct k25_trace_collective *c = event->collective;
        mix(outcome,
            strlen(c->name) + strlen(c->dtype) + strlen(c->group) + strlen(c->group_description) + strlen(c->ranks));
        mix(outcome, (uint64_t)c->in_elements ^ (uint64_t)c->group_size << 1);
    }
    outcome->events++;
    return true;
}

/* Walks the text in pieces of `piece` bytes, each in memory of its own size so that a sanitizer sees every
 * overrun. */
static struct outcome walk(const uint8_t *data, size_t size, size_t piece, bool plain)
{
    struct k25_trace_options options = {.plain_scan = plain};
    struct k25_trace_info info = {.rank = -1,
                                  .device = "",
                                  .backend = "",
                                  .nccl_version = "",
                                  .trace_id = "",
                                  .trace_name = "",
                                  .vllm_version = "",
                                  .time_unit = ""};
    struct k25_trace_walk *state = malloc(sizeof *state);
    struct outcome outcome = {.digest = 1};
    require(state != NULL && k25_trace_walk_start(state, &options, visit, &outcome, &info));
    size_t done = 0, have = 0; /* bytes done with; bytes handed over */
    while (have < size || have == 0) {
        have = size - have > piece ? have + piece : size;
        char *text = malloc(have - done + K25_TRACE_SLACK);
        require(text != NULL);
        if (have > done) {
            memcpy(text, data + done, have - done);
        }
        memset(text + have - done, 0, K25_TRACE_SLACK);
        size_t step = k25_trace_walk_feed(state, text, have - done, done, have == size);
        require(step <= have - done);
        done += step;
        free(text);
        if (size == 0 || state->refusal != NULL) {
            break;
        }
    }
    outcome.damage = info.damaged_events * 1000 + info.damaged_strings + info.invalid_utf8 + info.damaged_values +
                     info.nonfinite + info.huge_ids + info.damaged_root;
    outcome.others = info.cpu_ops + info.python_functions * 1000 + info.ignored * 1000000;
    outcome.refused = state->refusal != NULL;
    outcome.clean = outcome.damage == 0 && !info.truncated && !outcome.refused;
    k25_trace_walk_free(state);
    k25_trace_info_free(&info);
    free(state);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t piece = size == 0 || data[0] == 0 ? 1 << 20 : data[0];
    data += size > 0;
    size -= size > 0;
    struct outcome plain = walk(data, size, 1 << 20, true), quick = walk(data, size, 1 << 20, false);
    struct outcome plain_cut = walk(data, size, piece, true), quick_cut = walk(data, size, piece, false);
    if (plain.clean) {
        require(plain.events == plain_cut.events && plain.digest == plain_cut.digest && plain_cut.clean);
        require(plain.events == quick.events && plain.digest == quick.digest && plain.others == quick.others);
        require(plain.events == quick_cut.events && plain.digest == quick_cut.digest);
    }
    return 0;
}
