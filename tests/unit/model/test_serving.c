/* Serving: steps counted by hand, prices from k25_predict, a queue played out step by step, and the laws that hold
 * for any closed loop. */
#include "tests/unit/physics_check.h"

#include "model/predict/serving.h"

static struct k25_params params;

/* No lever is pulled. */
static void plain_box(struct box *box, const char *model, const char *scheme)
{
    make_box(box, model, scheme, "rtx-pro-6000-8x-two-socket");
    box->plan.levers = (struct k25_plan_levers){.link_bandwidth = 1, .link_latency = 1, .skew = 1};
}

/* Of a test that needs none of the switches. */
static struct k25_service simple(int concurrency, double prompt, double output, int chunk)
{
    return (struct k25_service){
        .concurrency = concurrency, .prompt = prompt, .output = output, .chunk = chunk, .transfer_gbs = 50};
}

static struct k25_serving serve(const struct box *box, const struct k25_service *service)
{
    struct k25_question question = ask(box);
    struct k25_serving serving;
    struct k25_error error;
    if (!k25_serve(&question, &params, service, &serving, &error))
        fail_msg("%s", error.message);
    return serving;
}

/* A step by k25_predict alone. */
static double step_at(const struct box *box, int batch, double context, int tokens, double done)
{
    struct box other = *box;
    other.plan.batch = batch;
    other.plan.context = context;
    other.plan.prefill = (struct k25_plan_prefill){tokens, done};
    return step_of(&other, &params);
}

/* One user: chunks, then steps without any, nothing in between. */
static void test_one_user(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service service = simple(1, 4096, 101, 1024);
    struct k25_serving s = serve(&box, &service);
    /* Four chunks; the mean one starts behind (0 + 1024 + 2048 + 3072) / 4 tokens. */
    double chunk = step_at(&box, 1, 4096 + 50.5, 1024, 1536), step = step_at(&box, 1, 4096 + 50.5, 0, 0);
    assert_int_equal(s.chunks, 4);
    assert_true(s.chunk_tokens == 1024 && s.wait_prefill == 0 && s.wait_cache == 0 && s.transfer == 0);
    assert_close(s.ttft, 4 * chunk, 1e-12);
    assert_close(s.tpot, step, 1e-12);
    assert_close(s.latency, 4 * chunk + 100 * step, 1e-12);
    assert_close(s.chunk_share, 4 / 104., 1e-12);
    assert_close(s.steps_s, 104 / s.latency, 1e-12);
    assert_close(s.decoding, 100 / 104., 1e-12);
    assert_true(s.running == 1 && s.queued == 0 && !s.cache_limited && !s.saturated);
}

/* Two users and one chunk, D = 9. U(1) = Q(1) = 1/10, so W = 1 step, a tenth of it behind the other's chunk; N =
 * 11; decoding beside 9/11; (1 - 1/10) / 9 = 1/10 of the decode steps carry the other's chunk. */
static void test_two_users(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service service = simple(2, 2000, 10, 0);
    struct k25_serving s = serve(&box, &service);
    double own = step_at(&box, 1, 2005, 2000, 0), idle = step_at(&box, 1, 2005, 0, 0);
    double step = idle + 9 / 11. * (step_at(&box, 2, 2005, 0, 0) - idle);
    double met = own + 9 / 11. * (step_at(&box, 2, 2005, 2000, 0) - own);
    assert_close(s.chunk_share, 2 / 11., 1e-12);
    assert_close(s.decoding, 18 / 11., 1e-12);
    assert_close(s.wait_prefill, 0.1 * own + 0.9 * idle, 1e-12);
    assert_close(s.prefill, own, 1e-12);
    assert_close(s.step, step, 1e-12);
    assert_close(s.step_chunk, met, 1e-12);
    assert_close(s.tpot, 0.1 * met + 0.9 * step, 1e-12);
}

/* Three users, C = 4, D = 8, by hand: U(1) = Q(1) = 1/3; W(2) = 5/6 + 2/3, N = 27/2, Q = 22/27, U = 16/27;
 * W(3) = 64/27 + 11/27, N = 133/9; the share seen is (8 - 64/27) / 8 = 19/27. */
static void test_three_users(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service service = simple(3, 4000, 9, 1000);
    struct k25_serving s = serve(&box, &service);
    assert_close(s.chunk_share, 108 / 133., 1e-12);
    assert_close(s.decoding, 216 / 133., 1e-12);
    assert_close(s.steps_s * s.latency, 133 / 9., 1e-12);
    assert_close(s.tpot, 19 / 27. * s.step_chunk + 8 / 27. * s.step, 1e-12);
    assert_close(s.prefill_utilisation, 108 / 133., 1e-12);
    assert_false(s.saturated); /* 3 C = 12 = C + D */

    service.rounds = 1; /* all at once: the mean place waits for one prompt, all of it chunks; (8 - 4) / 8 is seen */
    s = serve(&box, &service);
    assert_close(s.wait_prefill, s.prefill, 1e-12);
    assert_close(s.steps_s * s.latency, 16, 1e-12);
    assert_close(s.tpot, (s.step_chunk + s.step) / 2, 1e-12);
    service.rounds = 4; /* a quarter of the way from 64/27 to 4 */
    s = serve(&box, &service);
    assert_close(s.steps_s * s.latency, 12 + 0.75 * 75 / 27 + 0.25 * 4, 1e-12);
}

/* Beyond r C = C + D every step carries a chunk: r prompts take r C steps. */
static void test_saturated(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service service = simple(20, 4000, 2, 1000);
    struct k25_serving s = serve(&box, &service);
    assert_true(s.saturated && !s.cache_limited);
    assert_close(s.chunk_share, 1, 1e-12);
    assert_close(s.prefill_utilisation, 1, 1e-12);
    assert_close(s.steps_s * s.latency, 80, 1e-12);
    assert_close(s.tpot, s.step_chunk, 1e-12);
    assert_close(s.requests_s, s.steps_s / 4, 1e-12);

    /* Short prompts share a chunk: 8 of 1000 tokens in 8192. */
    service = simple(16, 1000, 2, 8192);
    s = serve(&box, &service); /* N = 1 of waiting + 1 + 1; 16 / 3 prompts a step of 8 */
    assert_true(s.chunks == 1 && !s.saturated);
    assert_close(s.steps_s * s.latency, 3, 1e-12);
    assert_close(s.prefill_utilisation, 16 / 3. / 8, 1e-12);
    assert_close(s.chunk_share, 1 - pow(2 / 3., 16), 1e-12);
    assert_close(s.chunk_tokens, 1000 * (1 + 15 / 3.), 1e-12);
    service.concurrency = 32; /* 32 / 8 steps */
    s = serve(&box, &service);
    assert_true(s.saturated);
    assert_close(s.steps_s * s.latency, 4, 1e-12);
    assert_close(s.prefill_utilisation, 1, 1e-12);
}

/* An endless answer leaves the plain step at the whole batch; no prompt leaves no prefill worth the name. */
static void test_limits(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "minimax-m2.5", "nvfp4");
    struct k25_service service = simple(4, 64, 150000, 8192);
    struct k25_serving s = serve(&box, &service);
    assert_int_equal(s.running, 4);
    assert_close(s.tpot, step_at(&box, 4, 64 + 75000, 0, 0), 1e-4);
    assert_close(s.decoding, 4, 1e-4);

    service = simple(1, 1, 1001, 8192);
    s = serve(&box, &service);
    assert_close(s.latency, 1001 * s.tpot, 1e-4);
    service = simple(1, 8192, 1, 8192); /* the first token is the last */
    s = serve(&box, &service);
    assert_true(isnan(s.tpot) && s.latency == s.ttft && s.output_tok_s == s.requests_s);
    service = simple(1, 8192, 100, 8192);
    service.prefix_hit = 1; /* one token is computed behind 8191 */
    s = serve(&box, &service);
    assert_close(s.ttft, step_at(&box, 1, 8242, 1, 8191), 1e-12);
    assert_close(s.input_tok_s, 8192 / s.latency, 1e-12);
    service.prefix_hit = 0.5;
    s = serve(&box, &service);
    assert_close(s.ttft, step_at(&box, 1, 8242, 4096, 4096), 1e-12);
    service.front = 0.1;
    assert_close(serve(&box, &service).ttft, s.ttft + 0.1, 1e-12);
    assert_close(serve(&box, &service).tpot, s.tpot, 1e-12);
}

/* What fits is the cache over prompt + output / 2; the rest waits for places. */
static void test_cache(void **state)
{
    (void)state;
    static struct k25_prediction p;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    predict_box(&box, &params, &p);
    double fit = floor(p.memory.pool_tokens / (30000 + 1000));
    assert_true(fit >= 2 && fit < 50);
    struct k25_service service = simple(50, 30000, 2000, 8192), alone = simple((int)fit, 30000, 2000, 8192);
    struct k25_serving s = serve(&box, &service), t = serve(&box, &alone);
    assert_true(s.running == fit && s.queued == 50 - fit && s.cache_limited && !t.cache_limited);
    assert_close(s.output_tok_s, t.output_tok_s, 1e-12);
    assert_close(s.tpot, t.tpot, 1e-12);
    assert_close(s.wait_cache, (50 - fit) / t.requests_s, 1e-12);

    service.disaggregated = true; /* only those that decode or come over hold a place */
    s = serve(&box, &service);
    double held = s.requests_s * (s.transfer + 1999 * s.tpot);
    assert_true(s.running >= fit && held <= fit + 1e-9 && held > fit - 2);
}

static void test_disaggregated(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service service = simple(1, 1000, 101, 0);
    service.disaggregated = true;
    struct k25_serving s = serve(&box, &service);
    /* 61 layers x (512 + 64) x 2 bytes a token, 50 GB/s. */
    assert_close(s.transfer, 61 * 576 * 2 * 1000 / 50e9, 1e-12);
    assert_close(s.prefill, step_at(&box, 1, 1050.5, 1000, 0), 1e-12);
    assert_close(s.ttft, s.prefill + s.transfer, 1e-12);
    assert_close(s.tpot, step_at(&box, 1, 1050.5, 0, 0), 1e-12);
    assert_true(s.chunk_share == 0 && s.wait_prefill == 0);

    double before = 0;
    for (int users = 1; users <= 64; users *= 2) {
        service.concurrency = users;
        s = serve(&box, &service);
        /* The batch that the step was priced at is the one that follows from it. */
        double beside = (users - 1) * 100 * s.tpot / s.latency, below = floor(1 + beside);
        double low = step_at(&box, (int)below, 1050.5, 0, 0), high = step_at(&box, (int)below + 1, 1050.5, 0, 0);
        assert_close(s.tpot, low + (1 + beside - below) * (high - low), 1e-9);
        bool saturated = s.prefill_utilisation > 1 - 1e-9; /* more users only wait */
        assert_true(s.chunk_share == 0 &&
                    (saturated ? s.output_tok_s >= before * (1 - 1e-9) : s.output_tok_s > before));
        assert_close(s.prefill_utilisation, s.requests_s * s.prefill, 1e-9);
        before = s.output_tok_s;
    }
    service = simple(2, 1000, 101, 0);
    double together = serve(&box, &service).tpot;
    service.disaggregated = true;
    assert_true(serve(&box, &service).tpot < together);
    /* A server of 1 s, 3 s elsewhere, 2 requests: U(1) = Q(1) = 1/4 and W = 1/8 of the prefill. */
    service.transfer_gbs = 61 * 576 * 2 * 1000 / 1e9; /* 1 s */
    s = serve(&box, &service);
    double delay = s.transfer + 100 * s.tpot, used = s.prefill / (s.prefill + delay);
    assert_close(s.wait_prefill, s.prefill * used / 2, 1e-9);
}

/* Replicas share the load and nothing else. */
static void test_replicas(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "minimax-m2.5", "nvfp4");
    box.plan.tp = 4;
    struct k25_service service = simple(6, 3000, 500, 1024);
    struct k25_serving one = serve(&box, &service);
    box.plan.dp = box.plan.batch = 2;
    service.concurrency = 12;
    struct k25_serving two = serve(&box, &service);
    assert_close(two.ttft, one.ttft, 1e-12);
    assert_close(two.output_tok_s, 2 * one.output_tok_s, 1e-12);
    assert_close(two.decoding, 2 * one.decoding, 1e-12);
    service.concurrency = 13; /* between 6 and 7 on each */
    double between = serve(&box, &service).tpot;
    service.concurrency = 14;
    assert_true(two.tpot < between && between < serve(&box, &service).tpot);
}

/* Laws of any closed loop, over services drawn at random. */
static void test_laws(void **state)
{
    (void)state;
    uint64_t seed = 11;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    box.plan.graph.mode = K25_GRAPH_NONE; /* no padding and no threshold: every step grows with its batch */
    box.plan.allreduce.protocol = K25_PROTO_ALL;
    for (int i = 0; i < 200; i++) {
        struct k25_service service = simple(1 + (int)(40 * uniform(&seed)), floor(1 + 8000 * uniform(&seed)),
                                            floor(2 + 1000 * uniform(&seed)), (int)(4096 * uniform(&seed)));
        service.disaggregated = uniform(&seed) < 0.3;
        struct k25_serving s = serve(&box, &service), again = serve(&box, &service);
        double p = service.prompt, o = service.output;
        assert_memory_equal(&s, &again, sizeof s);
        /* Little: users = throughput x latency, in requests and in tokens. */
        assert_close(s.output_tok_s / o * s.latency, service.concurrency, 1e-9);
        assert_close(s.ttft + (o - 1) * s.tpot, s.latency, 1e-9);
        assert_close(s.ttft, s.wait_cache + s.wait_prefill + s.prefill + s.transfer, 1e-12);
        assert_close(s.user_tok_s * s.latency, o, 1e-9);
        assert_close(s.input_tok_s / s.output_tok_s, p / o, 1e-9);
        assert_true(s.running + s.queued == service.concurrency && s.decoding <= s.running);
        assert_true(s.chunk_share >= 0 && s.chunk_share <= 1 && s.prefill_utilisation <= 1 && s.wait_prefill >= 0);
        if (service.disaggregated) /* those that decode, by Little's law of their own */
            assert_close(s.decoding, s.requests_s * (o - 1) * s.tpot, 1e-9);
        else if (service.chunk == 0 || service.chunk < p) /* as many chunks leave as come in */
            assert_close(s.steps_s * s.chunk_share, s.requests_s * s.chunks, 1e-9);
        service.concurrency++; /* one more user never serves fewer tokens */
        /* Saturated, the steps with chunks carry a hair more decoding and are that much longer. */
        assert_true(serve(&box, &service).output_tok_s > s.output_tok_s * (1 - (s.saturated ? 1e-3 : 1e-9)));
    }
}

/* The steps of `users` who ask again at once, each for decode steps drawn evenly around d: the mean of one
 * request. A request joins the step after the one that was running when it came. */
static double play(int users, int c, double d, int steps)
{
    enum { USERS = 64 };
    int chunks[USERS], decode[USERS], queue[2 * USERS], length = 0, late = 0, done = 0;
    uint64_t seed = 5;
    for (int u = 0; u < users; u++) { /* somewhere on their way */
        chunks[u] = 0;
        decode[u] = 1 + (int)(d * uniform(&seed));
    }
    for (int step = 0; step < steps; step++) {
        int served = length > late ? queue[0] : -1, arrived = length;
        for (int u = 0; u < users; u++) {
            if (decode[u] > 0 && --decode[u] == 0) {
                chunks[u] = c;
                queue[arrived++] = u;
                done++;
            }
        }
        late = arrived - length; /* asked while this step ran; the next one has its work by then */
        length = arrived;
        if (served >= 0 && --chunks[served] == 0) {
            decode[served] = (int)round(d * (0.5 + uniform(&seed)));
            memmove(queue, queue + 1, (size_t)--length * sizeof *queue);
        }
    }
    return (double)steps * users / done;
}

static void test_against_a_played_queue(void **state)
{
    (void)state;
    static const struct {
        int users, chunks;
        double output;
    } cases[] = {{2, 1, 41},   {8, 1, 41},   {16, 2, 101}, {8, 8, 101},
                 {4, 20, 201}, {20, 8, 101}, {32, 4, 101}, {24, 4, 101}};
    struct box box;
    plain_box(&box, "minimax-m2.5", "nvfp4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_service service =
            simple(cases[i].users, 64 * cases[i].chunks, cases[i].output, cases[i].chunks > 1 ? 64 : 0);
        struct k25_serving s = serve(&box, &service);
        double played = play(cases[i].users, cases[i].chunks, cases[i].output - 1, 2000000);
        print_message("%d users, C %d, D %g: %g steps, played %g\n", cases[i].users, cases[i].chunks,
                      cases[i].output - 1, s.steps_s * s.latency, played);
        assert_close(s.steps_s * s.latency, played, 0.015);
    }
}

static void refuse(const struct box *box, const struct k25_service *service, enum k25_status status,
                   const char *message)
{
    struct k25_question question = ask(box);
    struct k25_serving serving;
    struct k25_error error;
    assert_false(k25_serve(&question, &params, service, &serving, &error));
    assert_int_equal(error.status, status);
    assert_string_equal(error.message, message);
    assert_false(k25_serve(&question, &params, service, &serving, NULL));
}

static void test_errors(void **state)
{
    (void)state;
    struct box box;
    plain_box(&box, "kimi-k2.5", "int4_g32");
    struct k25_service good = simple(1, 1000, 100, 0), bad = good;
    bad.concurrency = 0;
    refuse(&box, &bad, K25_BAD_INPUT, "a concurrency of 0, expected at least 1");
    bad = simple(1, 0, 100, 0);
    refuse(&box, &bad, K25_BAD_INPUT,
           "a prompt of 0 and an output of 100 tokens, expected at least 1 each and at most 262144 "
           "together, the context of kimi-k2.5");
    bad = simple(1, 262144, 1, 0);
    refuse(&box, &bad, K25_BAD_INPUT,
           "a prompt of 262144 and an output of 1 tokens, expected at least 1 each and at most "
           "262144 together, the context of kimi-k2.5");
    bad = good;
    bad.prefix_hit = 1.5;
    refuse(&box, &bad, K25_BAD_INPUT,
           "a chunk of 0 tokens and 1.5 of the prompt in the cache, expected at least 0, and 0 to 1");
    bad = good;
    bad.rounds = 0.5;
    refuse(&box, &bad, K25_BAD_INPUT, "0.5 requests of a user, expected at least 1, or 0 for a long run");
    bad = good;
    bad.front = NAN;
    refuse(&box, &bad, K25_BAD_INPUT, "nan s before the engine, expected at least 0");
    bad = good;
    bad.disaggregated = true;
    bad.transfer_gbs = 0;
    refuse(&box, &bad, K25_BAD_INPUT, "a cache transfer at 0 GB/s, expected more than 0");
    bad = simple(1, 250000, 100, 0);
    refuse(&box, &bad, K25_NEGATIVE,
           "not one sequence of 250050 tokens fits in memory; `k25sim predict` says by how much");
    box.plan.speculation = (struct k25_plan_speculation){.method = K25_SPEC_NGRAM, .tokens = 3};
    refuse(&box, &good, K25_BAD_INPUT,
           "how many drafts are accepted is unknown, expected plan.speculation.acceptance, as in 0.49");
    strcpy(box.plan.speculation.acceptance, "2.5"); /* 99 tokens in 99 / 2.5 steps */
    struct k25_serving s = serve(&box, &good);
    assert_close(s.steps_s * s.latency, 1 + 99 / 2.5, 1e-12);
    assert_close(s.tpot, s.step / 2.5, 1e-12);
    plain_box(&box, "kimi-k2.5", "int4_g32");
    box.plan.tp = 4;
    box.plan.pp = 2;
    refuse(&box, &good, K25_BAD_INPUT, "prefill in a pipeline (plan.pp 2) is not supported yet");
}

int main(void)
{
    params = fixed_params();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_user),      cmocka_unit_test(test_two_users),
        cmocka_unit_test(test_three_users),   cmocka_unit_test(test_saturated),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_disaggregated), cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_laws),          cmocka_unit_test(test_against_a_played_queue),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
