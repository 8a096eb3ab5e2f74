/* Serving: the results of a load test at a fixed concurrency, from the time of a step.
 *
 * A closed loop: `concurrency` users, each of whom sends the next request when the last one is complete. A request
 * waits for a place in the cache, then for the chunks of others; its prompt is computed chunk by chunk (the last chunk
 * gives its first token), then it gets tokens from every step. A step has the chunks of one prompt at most, unless
 * whole prompts are so short that several fit into a chunk.
 *
 * Counted in steps, this is the machine-repair model: C chunks of prefill on one server, D = (output - 1) / tokens
 * per step in parallel, r requests. The wait W of the r-th comes from the mean queue of r - 1 (mean value analysis,
 * Reiser and Lavenberg 1980; a service of fixed length has half of its length left on average, Reiser 1979):
 *
 *     W(r) = C (Q - U) + U (C + 1) / 2 + (1 - U)      Q, U: queue and busy share of r - 1 requests; W(1) = 0
 *     N(r) = max(W + C + D, r C)                      steps of one request from start to end
 *     Q(r) = r (W + C) / N, U(r) = r C / N
 *
 * so no iteration is needed: first steps are counted, then their times are computed. The effect of the r - 1 others:
 *
 *     b  = (r - 1) D / N                              others that decode in the same step
 *     f  = ((r - 1) C - busy part of W) / D           share of its decode steps with a chunk
 *     TTFT = wait for the cache + W steps + C steps with a chunk
 *     TPOT = (f step with a chunk + (1 - f) step without) / tokens per step
 *     throughput = concurrency / latency              (Little's law)
 *
 * In a test in which all users start together and each sends K requests, one request of K is in a queue of all users:
 * its W is that of the mean place, (r - 1) C / 2 steps, all busy; the mean of W over the K requests replaces W above.
 *
 * Disaggregated, prefill is a separate server and decode a delay whose length depends on the number that decode: b
 * solves b = (r - 1) decode(1 + b) / cycle(b). The right side minus b is >= 0 at 0 and <= 0 at r - 1, and where a step
 * grows more slowly than its batch it has one zero, found by bisection. Where the batch exceeds a captured graph there
 * may be several zeros; the bisection always finds the same one.
 *
 * Not modelled: lengths that vary between requests, requests that stay synchronised for some rounds after a common
 * start, preemption when caches overflow, tokeniser and network, the last chunk of a prompt filled up with the next
 * prompt. With data-parallel attention the chunks of a rank lengthen its steps as if all ranks had theirs in the same
 * step.
 */
#ifndef K25_MODEL_PREDICT_SERVING_H
#define K25_MODEL_PREDICT_SERVING_H

#include <stdbool.h>

#include "base/error.h"
#include "hw/params/params.h"
#include "model/predict/predict.h"

struct k25_service {
    int concurrency;     /* users, over all replicas */
    double prompt;       /* tokens of a prompt, at least 1 */
    double output;       /* tokens of an answer, at least 1 */
    int chunk;           /* prompt tokens per step at most; 0: a whole prompt at once */
    double prefix_hit;   /* share of the prompt that is already in the cache, [0, 1]; the last token is always
                            computed */
    double rounds;       /* K: requests of one user in a test that all users start together; 0: a long run */
    double front;        /* s of a request before the engine: network, tokeniser; counts in its own TTFT only */
    bool disaggregated;  /* prefill on a separate, equal machine, under the same plan */
    double transfer_gbs; /* GB/s into each GPU of the cache transfer (disaggregated) */
};

/* Means over requests and time, in steady state. Times in seconds. */
struct k25_serving {
    double running;             /* running sequences: as many as fit the cache at prompt + output / 2 tokens each;
                                   disaggregated, so many that those that decode fit */
    double queued;              /* concurrency - running: wait for a place in the cache */
    double decoding;            /* of the running, those that decode */
    int chunks;                 /* C: of one prompt */
    double chunk_tokens;        /* prompt tokens in a step that has some */
    double steps_s;             /* steps per second, of a replica */
    double step;                /* a step without a chunk at the mean batch of a decoding sequence */
    double step_chunk;          /* the same with a chunk of another prompt; disaggregated: a chunk alone on the machine
                                   for prefill */
    double chunk_share;         /* share of the steps with a chunk */
    double front;               /* of one request: before the engine, as in the service */
    double wait_cache;          /* of one request: for a place in the cache */
    double wait_prefill;        /* of one request: for the current step and the chunks of others */
    double prefill;             /* of one request: its own chunks */
    double transfer;            /* of one request: of its cache, disaggregated */
    double ttft;                /* front + wait_cache + wait_prefill + prefill + transfer */
    double tpot;                /* (latency - ttft) / (output - 1); NAN for an output of one token */
    double latency;             /* from sending to the last token */
    double requests_s;          /* concurrency / latency */
    double output_tok_s;        /* of all users together */
    double user_tok_s;          /* output_tok_s / concurrency */
    double input_tok_s;         /* prompt tokens, including those found in the cache */
    double prefill_utilisation; /* share of the prefill capacity in use: of the steps that could have a chunk, or
                                   of the time of the machine for prefill */
    bool cache_limited;         /* queued > 0 */
    bool saturated;             /* prefill limits the throughput: more users only wait longer */
};

/* Computes `serving` for the plan of `question`; its batch, context and prefill are set from the service. Fails with
 * K25_BAD_INPUT when a length is out of range, the acceptance of drafts is unknown, or the plan has a pipeline (not
 * supported yet); with K25_NEGATIVE when the model or one sequence does not fit in memory; with K25_RESOURCE when out
 * of memory. */
bool k25_serve(const struct k25_question *question, const struct k25_params *params, const struct k25_service *service,
               struct k25_serving *serving, struct k25_error *error);

#endif
