/* Serving: from the step to what a load test sees at a fixed concurrency.
 *
 * A closed loop: `concurrency` users, each of whom sends the next request as soon as the last one is answered. A
 * request waits for a place in the cache, then for the chunks of others, has its prompt computed chunk by chunk
 * (the last chunk gives its first token), then takes a token from every step. One step carries the chunks of one
 * prompt at most, unless whole prompts are so short that several fit into a chunk.
 *
 * Counted in steps, this is the machine-repair model: C chunks of prefill on one server, D = (output - 1) / tokens
 * per step beside each other, r requests in turn. The wait W of the r-th comes from the mean queue of r - 1 (mean
 * value analysis, Reiser and Lavenberg 1980; a service of fixed length has half of itself left, Reiser 1979):
 *
 *     W(r) = C (Q - U) + U (C + 1) / 2 + (1 - U)      Q, U: queue and busy share of r - 1 requests; W(1) = 0
 *     N(r) = max(W + C + D, r C)                      steps of one request from start to end
 *     Q(r) = r (W + C) / N, U(r) = r C / N
 *
 * so no iteration is needed: steps are counted first and priced after. What a request sees of the r - 1 others:
 *
 *     b  = (r - 1) D / N                              decoding beside it
 *     f  = ((r - 1) C - busy part of W) / D           share of its decode steps that carry a chunk
 *     TTFT = wait for the cache + W steps + C steps with a chunk
 *     TPOT = (f step with a chunk + (1 - f) step without) / tokens per step
 *     throughput = concurrency / latency              (Little's law)
 *
 * A test in which all users start together and each sends K requests has one request of K in a queue of all: its W
 * is that of the mean place, (r - 1) C / 2 steps, all busy; the mean of W over the K takes the place of W above.
 *
 * Disaggregated, prefill is a server with a time of its own and decode a delay whose length depends on how many
 * decode: b solves b = (r - 1) decode(1 + b) / cycle(b). The right side minus b is not below 0 at 0 and not above
 * 0 at r - 1, and where a step grows more slowly than its batch it falls through 0 once; found by bisection. Where
 * the batch outgrows a captured graph there may be more than one such b; the bisection always takes the same.
 *
 * Left out: lengths that vary from request to request, the crowd that stays together for some rounds after a
 * common start, preemption when caches overflow, what tokeniser and network take, the last chunk of a prompt
 * filled up with the next. With data-parallel attention a rank's own chunks lengthen its steps, as if all ranks
 * had theirs in the same step.
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
    int chunk;           /* prompt tokens that a step may carry; 0: a whole prompt at once */
    double prefix_hit;   /* share of the prompt that the cache holds already, [0, 1]; the last token is always
                            computed */
    double rounds;       /* K: requests of one user in a test that all users start together; 0: a long run */
    double front;        /* s of a request in front of the engine: network, tokeniser; only its own TTFT has it */
    bool disaggregated;  /* prefill on an equal machine of its own, under the same plan */
    double transfer_gbs; /* GB/s into each GPU at which the cache comes over (disaggregated) */
};

/* Means over requests and time, in steady state. Times in seconds. */
struct k25_serving {
    double running;      /* sequences at work at once: what fits the cache at prompt + output / 2 tokens each;
                            disaggregated, as many as keep those that decode within it */
    double queued;       /* concurrency - running: wait for a place in the cache */
    double decoding;     /* of the running, those that take tokens */
    int chunks;          /* C: of one prompt */
    double chunk_tokens; /* prompt tokens in a step that carries some */
    double steps_s;      /* steps per second, of a replica */
    double step;         /* a step without a chunk at the batch that a decoding sequence sees */
    double step_chunk;   /* the same with a chunk of another's prompt; disaggregated: a chunk alone on the machine
                            for prefill */
    double chunk_share;  /* share of the steps that carry a chunk */
    double front;        /* of one request: in front of the engine, as the service says */
    double wait_cache;   /* of one request: for a place in the cache */
    double wait_prefill; /* for the step in course and the chunks of others */
    double prefill;      /* its own chunks */
    double transfer;     /* of its cache, disaggregated */
    double ttft;         /* front + wait_cache + wait_prefill + prefill + transfer */
    double tpot;         /* (latency - ttft) / (output - 1); NAN for an output of one token */
    double latency;      /* from sending to the last token */
    double requests_s;   /* concurrency / latency */
    double output_tok_s; /* of all users together */
    double user_tok_s;   /* output_tok_s / concurrency */
    double input_tok_s;  /* prompt tokens, those found in the cache with them */
    double prefill_utilisation; /* share of the prefill capacity in use: of the steps that could carry a chunk, or
                                   of the time of the machine for prefill */
    bool cache_limited;         /* queued > 0 */
    bool saturated;             /* prefill alone holds the throughput: more users only wait longer */
};

/* Answers for the plan of `question`; its batch, context and prefill are set by the service. False when a length
 * is out of range, the acceptance of drafts is unknown, the plan has a pipeline (not supported yet), all
 * K25_BAD_INPUT; when the model or one sequence does not fit in memory, K25_NEGATIVE. */
bool k25_serve(const struct k25_question *question, const struct k25_params *params, const struct k25_service *service,
               struct k25_serving *serving, struct k25_error *error);

#endif
