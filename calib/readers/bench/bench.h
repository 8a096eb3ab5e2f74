/* Results of load tests: `vllm bench serve --save-result` (JSON, one object, or one a line with --append-result),
 * SGLang's bench_serving (JSON Lines), InferenceX (the same keys in seconds), and the block that the first two
 * print.
 *
 * Python writes NaN and Infinity into JSON; here both, null and an absent key are NAN: not measured. Per-request
 * lists (every token time) are stepped over, whatever their length. A run in which no request completed is no
 * data.
 */
#ifndef K25_CALIB_READERS_BENCH_BENCH_H
#define K25_CALIB_READERS_BENCH_BENCH_H

#include <stdint.h>

#include "base/arena.h"
#include "calib/readers/text/evidence.h"

enum k25_bench_format { K25_BENCH_JSON, K25_BENCH_CONSOLE };

struct k25_bench_time { /* ms; NAN: not measured */
    double mean, median, std, p90, p95, p99;
};

struct k25_bench_run {
    int line; /* where the run starts */
    enum k25_bench_format format;
    const char *model, *backend, *date, *label; /* "" when not said */
    double duration;                            /* s */
    double completed, failed, num_prompts;      /* requests */
    double request_rate;                        /* requests/s asked for; INFINITY: all at once */
    double max_concurrency;                     /* the limit asked for */
    double concurrency;                         /* the mean seen (SGLang) */
    double peak_concurrent;                     /* the most seen (vLLM) */
    double input_tokens, output_tokens;         /* in all */
    double input_len, output_len;               /* mean of a completed request */
    double request_throughput;                  /* requests/s */
    double output_throughput, total_throughput; /* tok/s of all requests together */
    /* Time to the first token; time per output token after the first, a mean of each request; gap between two
     * arrivals of tokens, which is a step and not a token when several tokens are accepted; end to end. */
    struct k25_bench_time ttft, tpot, itl, e2el;
    double acceptance_rate;   /* share of drafted tokens accepted, 0 to 1 */
    double acceptance_length; /* tokens of a step */
};

struct k25_bench {
    struct k25_bench_run *run;
    size_t runs;
    struct k25_left_out left_out;
    struct k25_arena arena; /* owns the strings */
};

/* NULL with an error: "0 completed", no benchmark result at all, damage (strict). `options` may be NULL: strict.
 */
struct k25_bench *k25_bench_read(const char *path, const struct k25_evidence_options *options, struct k25_error *error);
struct k25_bench *k25_bench_parse(const char *text, size_t size, const char *name,
                                  const struct k25_evidence_options *options, struct k25_error *error);
void k25_bench_free(struct k25_bench *bench);

#endif
