#include "model/predict/serving.h"

#include <math.h>

/* The share of one replica in the service, and the question for the times of its steps. */
struct loop {
    struct k25_question question; /* the plan at the mean context of a decoding sequence */
    const struct k25_params *params;
    struct k25_prediction *prediction; /* workspace */
    double servers;                    /* replicas with separate schedulers */
    double requests;                   /* r: running on one of them */
    double chunks;                     /* C */
    double lanes;                      /* prompts that one step can compute */
    double prompt;                     /* tokens to compute of one prompt */
    double cached;                     /* tokens of it found in the cache */
    double decodes;                    /* D */
    double first;                      /* share of requests in the queue of a common start */
};

/* Steps of one request. */
struct count {
    double busy; /* waiting while others' chunks run */
    double idle; /* waiting for the end of a step without a chunk */
    double all;  /* N */
};

/* The step of `batch` sequences per replica, with `tokens` of prompt (0: none); linear between whole batches. */
static double step_time(const struct loop *loop, double batch, double tokens)
{
    struct k25_question question = loop->question;
    struct k25_plan_prefill *prefill = &question.plan.prefill;
    double time[2] = {0, 0}, below = fmax(1, floor(batch)), part = fmax(0, batch - below);
    prefill->tokens = (int)round(tokens);
    /* Mean progress: half of the prompt less half a chunk, after the cached tokens. */
    prefill->context = loop->cached + (loop->chunks - 1) / loop->chunks * loop->prompt / 2;
    for (int i = 0; i < 2; i++) {
        if (i == 1 && part == 0)
            return time[0];
        question.plan.batch = (int)(loop->servers * (below + i));
        k25_predict(&question, loop->params, loop->prediction);
        time[i] = loop->prediction->step;
    }
    return time[0] + part * (time[1] - time[0]);
}

/* Steps when `requests` (whole) share a replica. */
static struct count count_steps(const struct loop *loop, int requests)
{
    double c = loop->chunks, d = loop->decodes, queue = 0, used = 0;
    struct count count = {0, 0, c + d};
    if (loop->lanes > 1) { /* every request is in the next step */
        double late = requests / loop->lanes - (1 + c + d);
        count.idle = requests > 1;
        count.busy = requests > 1 ? fmax(0, late) : 0;
        count.all += count.idle + count.busy;
        return count;
    }
    for (int r = 1; r <= requests; r++) {
        count.busy = r == 1 ? 0 : c * (queue - used) + used * (c + 1) / 2;
        count.idle = r == 1 ? 0 : 1 - used;
        if (count.busy + count.idle + c + d < r * c) {
            count.idle = 0;
            count.busy = (r - 1) * c - d;
        }
        count.all = count.busy + count.idle + c + d;
        queue = r * (count.busy + count.idle + c) / count.all;
        used = r * c / count.all;
    }
    return count;
}

/* The mean place in the queue of a common start: the number of prompts ahead. */
static double first_place(const struct loop *loop)
{
    return fmax(0, loop->requests / loop->lanes - 1) / 2;
}

static struct count count_all(const struct loop *loop)
{
    int below = (int)floor(loop->requests);
    double part = loop->requests - below;
    struct count a = count_steps(loop, below), b = part > 0 ? count_steps(loop, below + 1) : a, mean;
    mean.busy = a.busy + part * (b.busy - a.busy);
    mean.idle = a.idle + part * (b.idle - a.idle);
    mean.busy += loop->first * (first_place(loop) * loop->chunks - mean.busy);
    mean.idle -= loop->first * mean.idle;
    mean.all = mean.busy + mean.idle + loop->chunks + loop->decodes;
    return mean;
}

/* Prefill and decode in the same steps. */
static void serve_together(const struct loop *loop, struct k25_serving *s)
{
    double others = loop->requests - 1, c = loop->chunks, d = loop->decodes;
    struct count count = count_all(loop);
    double decoding = others * d / count.all, arrivals = others / count.all;
    double chunk = loop->prompt / c, met = chunk, share;
    if (loop->lanes > 1) {
        share = 1 - pow(1 - 1 / count.all, others);
        met = chunk * (share > 0 ? arrivals / share : 1);
        double start = fmin(loop->lanes, loop->requests), later = fmin(loop->lanes, 1 + arrivals);
        chunk = loop->prompt * (later + loop->first * (start - later));
        s->chunk_share = fmin(1, 1 - pow(1 - 1 / count.all, loop->requests));
        s->prefill_utilisation = fmin(1, loop->requests / count.all / loop->lanes);
    } else {
        share = d > 0 ? fmin(1, fmax(0, (others * c - count.busy) / d)) : 0;
        s->chunk_share = s->prefill_utilisation = fmin(1, loop->requests * c / count.all);
    }
    double own = step_time(loop, decoding, chunk);
    s->step = step_time(loop, 1 + decoding, 0);
    s->step_chunk = step_time(loop, 1 + decoding, met);
    s->chunk_tokens = chunk;
    s->wait_prefill = count.busy * own + (count.idle > 0 ? count.idle * step_time(loop, decoding, 0) : 0);
    s->prefill = c * own;
    s->ttft = s->wait_prefill + s->prefill;
    s->latency = s->ttft + d * (share * s->step_chunk + (1 - share) * s->step);
    s->decoding = loop->requests * d / count.all;
    s->steps_s = count.all / s->latency;
    s->saturated = loop->requests * c > loop->lanes * (c + d);
}

/* Wait for the server of prefill when requests spend `delay` elsewhere, in seconds: mean value analysis again. */
static double prefill_wait(double requests, double service, double delay)
{
    double queue = 0, used = 0, wait[2] = {0, 0}, part = requests - floor(requests);
    for (int r = 1; r <= (int)ceil(requests); r++) {
        wait[0] = wait[1];
        wait[1] = fmax(service * (queue - used) + used * service / 2, (r - 1) * service - delay);
        double cycle = wait[1] + service + delay;
        queue = r * (wait[1] + service) / cycle;
        used = r * service / cycle;
    }
    return part > 0 ? wait[0] + part * (wait[1] - wait[0]) : wait[1];
}

/* Prefill on a separate machine; `transfer` s for a cache. */
static void serve_disaggregated(const struct loop *loop, double transfer, struct k25_serving *s)
{
    enum { HALVINGS = 60 };
    double others = loop->requests - 1, d = loop->decodes, low = 0, high = others, decode = 0;
    s->step_chunk = step_time(loop, 1, loop->prompt / loop->chunks);
    s->prefill = loop->chunks * s->step_chunk;
    for (int i = 0; i < HALVINGS && (i == 0 || high - low > 1e-12 * others); i++) {
        double decoding = i == 0 ? others : (low + high) / 2;
        s->step = step_time(loop, 1 + decoding, 0);
        decode = d * s->step;
        s->wait_prefill = prefill_wait(loop->requests, s->prefill, transfer + decode);
        s->wait_prefill += loop->first * (others / 2 * s->prefill - s->wait_prefill);
        double cycle = s->wait_prefill + s->prefill + transfer + decode;
        if (others * decode / cycle >= decoding)
            low = decoding;
        else
            high = decoding;
    }
    s->chunk_tokens = loop->prompt / loop->chunks;
    s->transfer = transfer;
    s->ttft = s->wait_prefill + s->prefill + transfer;
    s->latency = s->ttft + decode;
    s->decoding = loop->requests * decode / s->latency;
    s->steps_s = 1 / s->step;
    s->prefill_utilisation = fmin(1, loop->requests * s->prefill / s->latency);
    s->saturated = loop->requests * s->prefill > s->prefill + transfer + decode;
}

static bool check(const struct k25_question *question, const struct k25_service *service, struct k25_error *error)
{
    double longest = question->architecture->max_context;
    if (service->concurrency < 1)
        return k25_fail(error, K25_BAD_INPUT, "a concurrency of %d, expected at least 1", service->concurrency);
    if (!(service->prompt >= 1) || !(service->output >= 1) || service->prompt + service->output > longest)
        return k25_fail(error, K25_BAD_INPUT,
                        "a prompt of %g and an output of %g tokens, expected at least 1 each and at most "
                        "%g together, the context of %s",
                        service->prompt, service->output, longest, question->architecture->name);
    if (service->chunk < 0 || !(service->prefix_hit >= 0 && service->prefix_hit <= 1))
        return k25_fail(error, K25_BAD_INPUT,
                        "a chunk of %d tokens and %g of the prompt in the cache, expected at least 0, and "
                        "0 to 1",
                        service->chunk, service->prefix_hit);
    if (service->rounds != 0 && !(service->rounds >= 1))
        return k25_fail(error, K25_BAD_INPUT, "%g requests of a user, expected at least 1, or 0 for a long run",
                        service->rounds);
    if (!(service->front >= 0 && service->front < INFINITY))
        return k25_fail(error, K25_BAD_INPUT, "%g s before the engine, expected at least 0", service->front);
    if (service->disaggregated && !(service->transfer_gbs > 0))
        return k25_fail(error, K25_BAD_INPUT, "a cache transfer at %g GB/s, expected more than 0",
                        service->transfer_gbs);
    if (question->plan.pp > 1)
        return k25_fail(error, K25_BAD_INPUT, "prefill in a pipeline (plan.pp %d) is not supported yet",
                        question->plan.pp);
    if (isnan(question->tokens_per_step))
        return k25_fail(error, K25_BAD_INPUT,
                        "how many drafts are accepted is unknown, expected "
                        "plan.speculation.acceptance, as in 0.49");
    return true;
}

static void make_loop(const struct k25_question *question, const struct k25_params *params,
                      const struct k25_service *service, struct loop *loop)
{
    const struct k25_plan *plan = &question->plan;
    *loop = (struct loop){.question = *question, .params = params};
    loop->question.plan.context = service->prompt + service->output / 2;
    loop->question.plan.prefill = (struct k25_plan_prefill){0, 0};
    loop->servers = plan->dp * (plan->attention_dp ? plan->tp : 1);
    loop->question.plan.batch = (int)loop->servers;
    loop->prompt = fmax(1, service->prompt * (1 - service->prefix_hit));
    loop->cached = service->prompt - loop->prompt;
    loop->chunks = service->chunk > 0 ? ceil(loop->prompt / service->chunk) : 1;
    loop->lanes = service->chunk > 0 ? fmax(1, floor(service->chunk / loop->prompt)) : 1;
    loop->decodes = (service->output - 1) / question->tokens_per_step;
    loop->first = service->rounds >= 1 ? 1 / service->rounds : 0;
}

/* Disaggregated, the cache of a replica has `places` for the requests that decode or are being transferred: serves as
 * many requests as fit, and returns how many run on all replicas. */
static double serve_within(struct loop *loop, int concurrency, double places, double transfer, struct k25_serving *s)
{
    int low = (int)fmin(concurrency, floor(places * loop->servers));
    int high = concurrency + 1, requests = concurrency;
    for (;;) {
        loop->requests = fmax(1, requests / loop->servers);
        serve_disaggregated(loop, transfer, s);
        double held = loop->requests * (s->latency - s->wait_prefill - s->prefill) / s->latency;
        if (requests == low)
            return requests;
        if (held <= places)
            low = requests;
        else
            high = requests;
        requests = high - low > 1 ? (low + high) / 2 : low;
    }
}

bool k25_serve(const struct k25_question *question, const struct k25_params *params, const struct k25_service *service,
               struct k25_serving *s, struct k25_error *error)
{
    struct k25_prediction prediction;
    struct loop loop;
    if (!check(question, service, error))
        return false;
    make_loop(question, params, service, &loop);
    loop.prediction = &prediction;
    k25_predict(&loop.question, params, &prediction);
    struct k25_memory memory = prediction.memory;
    if (!(memory.max_batch >= 1))
        return k25_fail(error, K25_NEGATIVE,
                        "not one sequence of %g tokens fits in memory; `k25sim predict` says by how much",
                        loop.question.plan.context);
    *s = (struct k25_serving){.running = fmin(service->concurrency, memory.max_batch), .chunks = (int)loop.chunks};
    if (service->disaggregated) {
        double bytes = service->prompt * memory.kv_per_token + memory.state_per_sequence;
        s->running = serve_within(&loop, service->concurrency, memory.max_batch / loop.servers,
                                  bytes / (service->transfer_gbs * 1e9), s);
    } else {
        loop.requests = fmax(1, s->running / loop.servers);
        serve_together(&loop, s);
    }
    s->queued = service->concurrency - s->running;
    s->cache_limited = s->queued > 0;
    s->tpot = service->output > 1 ? (s->latency - s->ttft) / (service->output - 1) : NAN;
    /* Places in the cache become free at the rate at which requests end. */
    s->wait_cache = s->latency * s->queued / s->running;
    s->front = service->front;
    s->ttft += s->wait_cache + s->front;
    s->latency += s->wait_cache + s->front;
    s->decoding *= s->running / loop.requests;
    s->requests_s = service->concurrency / s->latency;
    s->output_tok_s = s->requests_s * service->output;
    s->user_tok_s = s->output_tok_s / service->concurrency;
    s->input_tok_s = s->requests_s * service->prompt;
    return true;
}
