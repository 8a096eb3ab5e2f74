/* Ranks that share a cache, spread experts, have sequences of their own, replicas and pipelines: operators,
 * bytes and memory of one rank by hand. Kimi-K2.5 at TP8 has 8 heads a rank; a hidden state is 14336 B. */
#include "tests/unit/question_check.h"

#include "hw/collective/collective.h"
#include "model/step/routing.h"

static struct k25_prediction p, q; /* too large for a stack */
static const struct k25_step *const step = &p.step_work;

static void dcp_gathers_queries_and_scatters_outputs(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 3; /* runs as 4 rows; attention walks 3 caches */
    /* heads of d ranks are d / 2 blocks of 16; 3 x d / 2 x 64 splits on 188 SMs: 192, 384, 768 are 2, 3, 5
     * waves of 6400 / d / 64 tokens */
    static const struct {
        int d;
        double serial;
    } cases[] = {{2, 100}, {4, 75}, {8, 62.5}};
    for (size_t i = 0; i < 3; i++) {
        int d = box.plan.dcp = cases[i].d;
        answer(&box, NULL, &params, &p);
        const struct k25_operator *op = only_op(step, "moe", "gather_queries");
        assert_true(op->kind == K25_OP_ALLGATHER && op->ranks == K25_RANKS_DCP && op->calls == 60);
        assert_true(op->message == 4 * 8 * (512 + 64) * 2);
        op = only_op(step, "moe", "gather_lse");
        assert_true(op->kind == K25_OP_ALLGATHER && op->ranks == K25_RANKS_DCP && op->message == 4 * 8 * d * 4);
        op = only_op(step, "moe", "scatter_outputs");
        assert_true(op->kind == K25_OP_REDUCESCATTER && op->ranks == K25_RANKS_DCP);
        assert_true(op->message == 4 * 8 * 512 * 2);
        assert_true(only_op(step, "moe", "merge_outputs")->call.bytes == 4 * 2 * d * 8 * 512 * 2);
        assert_true(count_calls(step, K25_OP_ALLGATHER, K25_RANKS_DCP) == 2 * 61);
        assert_true(count_calls(step, K25_OP_REDUCESCATTER, K25_RANKS_DCP) == 61);
        assert_true(count_calls(step, K25_OP_ALLREDUCE, K25_RANKS_TP) == 123);
        op = only_op(step, "moe", "mla_attention");
        assert_true(op->call.shape[0] == 3 && op->call.shape[1] == 6400.0 / d && op->call.shape[2] == 8 * d);
        assert_true(op->call.items == 3 * d / 2.0 && op->call.bytes == 3 * 3200 * 1152);
        assert_close(op->call.serial, cases[i].serial, 1e-15);
        assert_close(step->kv_per_token, 61 * 1152.0 / d, 1e-15);
    }
}

static void dcp_exchange_is_one_all_to_all(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 3;
    box.plan.dcp_exchange = K25_DCP_ALLTOALL;
    for (int d = 2; d <= 8; d *= 2) {
        box.plan.dcp = d;
        answer(&box, NULL, &params, &p);
        /* 8 heads of 512 BF16 outputs and an FP32 log-sum-exp to each of the d - 1 others */
        const struct k25_operator *op = only_op(step, "dense", "exchange_outputs");
        assert_true(op->kind == K25_OP_ALLTOALL && op->ranks == K25_RANKS_DCP && op->calls == 1);
        assert_true(op->message == 4 * (d - 1) * 8 * (512 * 2 + 4));
        assert_true(only_op(step, "dense", "merge_outputs")->call.bytes == 4 * (d + 1) * 8 * 512 * 2);
        assert_true(only_op(step, "dense", "gather_queries")->message == 4 * 8 * 576 * 2);
        assert_true(count_calls(step, K25_OP_ALLGATHER, K25_RANKS_DCP) == 61);
        assert_true(count_calls(step, K25_OP_ALLTOALL, K25_RANKS_DCP) == 61);
        assert_true(count_calls(step, K25_OP_REDUCESCATTER, K25_RANKS_DCP) == 0);
    }
}

static void dcp_is_priced_among_its_own_ranks(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct k25_error error = {0};
    struct k25_group pair;
    open_kimi(&box);
    box.plan.dcp = 2;
    answer(&box, NULL, &params, &p);
    assert_true(k25_machine_group(&box.machine, 2, &pair, &error));
    for (size_t i = 0; i < step->count; i++) {
        if (step->op[i].id != K25_OPERATOR_SCATTER_OUTPUTS)
            continue;
        assert_close(p.op[i].transfer,
                     step->op[i].calls * k25_allgather_time(K25_BACKEND_NCCL_LL, 8192, &pair, &params), 1e-12);
    }
    box.plan.dcp = 1;
    answer(&box, NULL, &params, &q);
    assert_false(has_op(&q.step_work, "merge_outputs") || has_op(&q.step_work, "gather_queries"));
    assert_true(p.other_collectives > q.other_collectives);
}

static void gathered_heads_are_padded_to_twice_their_number_at_most(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    params.value[K25_MLA_GATHERED] = 40;
    static const struct {
        int d;
        double heads;
    } cases[] = {{1, 8}, {2, 32}, {4, 40}, {8, 64}};
    for (size_t i = 0; i < 4; i++) {
        box.plan.dcp = cases[i].d;
        answer(&box, NULL, &params, &p);
        assert_true(only_op(step, "moe", "mla_attention")->call.shape[2] == cases[i].heads);
    }
}

static void dcp_multiplies_the_capacity(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    answer(&box, NULL, &params, &q);
    for (int d = 2; d <= 8; d *= 2) {
        box.plan.dcp = d;
        answer(&box, NULL, &params, &p);
        assert_true(p.memory.weights == q.memory.weights && p.memory.pool_bytes == q.memory.pool_bytes);
        assert_true(fabs(p.memory.pool_tokens - d * p.memory.pool_bytes / (61 * 1152)) <= 1);
        assert_true(p.memory.max_batch == floor(p.memory.pool_bytes / (6400 * 61 * 1152.0 / d)));
    }
}

static void dcp_shares_the_index_cache_too(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5", "fp8");
    box.plan.context = 100000;
    box.plan.dcp = 2;
    answer(&box, NULL, &params, &p);
    /* scores of half of the context; attention reads half of the 2048 picked */
    assert_true(only_op(step, "moe", "indexer_scores")->call.bytes == 50000 * 132 + 50000 * 4);
    assert_true(only_op(step, "moe", "indexer_top_k")->call.bytes == 2 * 50000 * 4);
    assert_true(only_op(step, "moe", "mla_attention")->call.shape[1] == 1024);
    assert_true(step->kv_per_token == 78 * (1152 + 132) / 2);
}

static void dcp_of_grouped_queries_shares_copies(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3-235b-a22b", "bf16");
    box.plan.context = 4096;
    box.plan.dcp = 2; /* 4 key-value heads on 8 ranks: each lies on two */
    answer(&box, NULL, &params, &p);
    assert_true(only_op(step, "moe", "gather_queries")->message == 8 * 128 * 2);
    assert_true(only_op(step, "moe", "gather_lse")->message == 2 * 8 * 4);
    assert_true(only_op(step, "moe", "scatter_outputs")->message == 8 * 128 * 2);
    const struct k25_kernel_call *call = &only_op(step, "moe", "gqa_attention")->call;
    /* 16 query heads of one key head are a tile; 2048 tokens of 2 x 128 x 2 B */
    assert_true(call->items == 1 && call->bytes == 1048576 && call->flops == 2 * 16 * 2048 * 256);
    assert_true(step->kv_per_token == 94 * 512 / 2);
    box.plan.dcp = 4;
    refuse(&box, "plan.dcp: at plan.tp 8 2 ranks hold the same keys of qwen3-235b-a22b, expected a divisor of "
                 "that, found 4");
    box.plan.dcp = 2;
    box.plan.tp = 4;
    refuse(&box, "plan.dcp: at plan.tp 4 1 rank holds the same keys of qwen3-235b-a22b, expected a divisor of "
                 "that, found 2");
}

static void dcp_refusals(void **state)
{
    (void)state;
    struct box box;
    open_kimi(&box);
    box.plan.dcp = 3;
    refuse(&box, "plan.dcp: 3 does not divide the 8 ranks of plan.tp");
    box.plan.dcp = 2;
    box.plan.attention_dp = true;
    refuse(&box, "plan.dcp: ranks with separate sequences share no cache, expected 1 with "
                 "plan.attention_dp, found 2");
}

#define EXPERT (3.0 * 7168 * 2048 * 4.5 / 8) /* B */

static void whole_experts_on_every_rank(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.batch = 16;
    answer(&box, NULL, &params, &q);
    for (int ep = 2; ep <= 8; ep *= 2) {
        struct k25_ep_load load;
        k25_ep_load(384, 8, 16, 1, ep, 0, &load);
        box.plan.ep = ep;
        answer(&box, NULL, &params, &p);
        const struct k25_operator *op = only_op(step, "moe", "routed_experts");
        double bytes = EXPERT * ep / 8;
        assert_true(op->n == 2048 * ep / 8 && op->resident == 384 / ep * bytes && op->call.items == 384 / ep);
        assert_close(op->read, load.distinct_max * bytes, 1e-12);
        assert_close(op->call.shape[0], load.pairs_max, 1e-12);
        assert_true(op->call.tail_bytes == 16 * 8 * 7168 * 5); /* activations of all pairs move on every rank */
        assert_true(step->experts == q.step_work.experts && step->experts_rank == load.distinct_max);
        assert_close(p.memory.weights, q.memory.weights, 1e-12);
        /* but for the experts the step is that of tensor parallelism, its AllReduces with it */
        assert_true(step->count == q.step_work.count);
        for (size_t i = 0; i < step->count; i++) {
            const struct k25_operator *other = &q.step_work.op[i];
            assert_string_equal(k25_operator_names[step->op[i].id], k25_operator_names[other->id]);
            if (other->id != K25_OPERATOR_ROUTED_EXPERTS)
                assert_memory_equal(&step->op[i].call, &other->call, sizeof other->call);
            assert_true(step->op[i].message == other->message && step->op[i].calls == other->calls);
        }
    }
}

static void one_token_waits_for_the_fullest_rank(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.ep = 8;
    answer(&box, NULL, &params, &p);
    /* moe.md, 5: 2.57 of the 8 experts lie on one of 8 ranks, drawn */
    assert_close(only_op(step, "moe", "routed_experts")->read / EXPERT, 2.57, 0.002);
}

static void redundant_experts_take_memory(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_ep_load load;
    struct box box;
    open_kimi(&box);
    box.plan.ep = 8;
    box.plan.batch = 64;
    answer(&box, NULL, &params, &q);
    box.plan.redundant_experts = 32;
    answer(&box, NULL, &params, &p);
    k25_ep_load(384, 8, 64, 1, 8, 32, &load);
    assert_close(p.memory.weights - q.memory.weights, 60 * 4 * EXPERT, 1e-9); /* 4 more on a rank */
    assert_close(only_op(step, "moe", "routed_experts")->call.shape[0], load.pairs_max, 1e-12);
    /* the fullest rank has fewer pairs */
    assert_true(load.pairs_max < only_op(&q.step_work, "moe", "routed_experts")->call.shape[0]);
}

static void expert_refusals(void **state)
{
    (void)state;
    struct box box;
    open_kimi(&box);
    box.plan.ep = 3;
    refuse(&box, "plan.ep: 3 does not divide the 8 ranks of plan.tp");
    box.plan.ep = 1;
    box.plan.redundant_experts = 8;
    refuse(&box, "plan.redundant_experts: copies of experts need plan.ep of at least 2, expected 0, found 8");
    box.plan.ep = 8;
    box.plan.redundant_experts = 400;
    refuse(&box, "plan.redundant_experts: 400 copies of the 384 experts of kimi-k2.5");
    open_box(&box, "llama-3.1-70b", "bf16");
    box.plan.ep = 2;
    refuse(&box, "plan.ep: llama-3.1-70b has no experts to spread, expected 1, found 2");
}

/* 20 sequences: 3 on the ranks with most of them, 4 rows of a graph, 32 tokens over all ranks. */
static void open_attention_dp(struct box *box, int ep)
{
    open_kimi(box);
    box->plan.attention_dp = true;
    box->plan.ep = ep;
    box->plan.batch = 20;
}

static void tokens_travel_to_their_experts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_ep_load load;
    struct box box;
    open_attention_dp(&box, 8);
    answer(&box, NULL, &params, &p);
    k25_ep_load(384, 8, 32, 1, 8, 0, &load);
    /* each of the 7 other ranks is hit by at least one of 8 picks with chance 1 - (7/8)^8 = 1 - 5764801 /
     * 16777216 */
    double bytes = 4 * 14336 * 7 * (1 - 5764801.0 / 16777216);
    static const char *const names[] = {"dispatch", "combine"};
    for (int i = 0; i < 2; i++) {
        const struct k25_operator *op = only_op(step, "moe", names[i]);
        assert_true(op->kind == K25_OP_ALLTOALL && op->ranks == K25_RANKS_TP && op->calls == 60);
        assert_close(op->message, bytes, 1e-12);
    }
    const struct k25_operator *op = only_op(step, "moe", "routed_experts");
    assert_true(op->n == 2048 && op->resident == 48 * EXPERT && op->call.tail_bytes == 32 * 8 * 7168 * 5);
    assert_close(op->read, load.distinct_max * EXPERT, 1e-12);
    assert_close(op->call.shape[0], load.pairs_max, 1e-12);
    /* two exchanges a layer of experts and no other collective */
    for (size_t i = 0; i < step->count; i++)
        assert_true(step->op[i].kind == K25_OP_KERNEL || step->op[i].kind == K25_OP_ALLTOALL);
    assert_true(p.allreduces == 0 && p.allreduce == 0);
}

static void experts_in_columns_get_tokens_once_a_rank(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_attention_dp(&box, 4); /* pairs of ranks hold halves of the same experts */
    answer(&box, NULL, &params, &p);
    /* 4 (1 - (3/4)^8) groups of two ranks; 7 of 8 of them are not the token's own */
    assert_close(only_op(step, "moe", "dispatch")->message, 4 * 14336 * 8 * (1 - 6561.0 / 65536) * 7 / 8, 1e-12);
    open_attention_dp(&box, 1); /* every rank holds a slice of every expert */
    answer(&box, NULL, &params, &p);
    assert_close(only_op(step, "moe", "dispatch")->message, 4 * 14336 * 7, 1e-12);
    assert_true(only_op(step, "moe", "routed_experts")->n == 256);
    assert_true(only_op(step, "moe", "routed_experts")->call.shape[0] == 32 * 8);
}

static void gathered_tokens(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_attention_dp(&box, 8);
    box.plan.expert_exchange = K25_EXPERTS_GATHER;
    answer(&box, NULL, &params, &p);
    const struct k25_operator *op = only_op(step, "moe", "dispatch");
    assert_true(op->kind == K25_OP_ALLGATHER && op->message == 4 * 14336);
    op = only_op(step, "moe", "combine");
    assert_true(op->kind == K25_OP_REDUCESCATTER && op->message == 4 * 14336);
}

static void attention_dp_replicates_all_but_the_experts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_attention_dp(&box, 8);
    box.plan.memory_utilisation = 1; /* or the weights leave no cache */
    answer(&box, NULL, &params, &p);
    assert_true(step->sequences == 3 && step->tokens == 3 && step->rows == 4);
    assert_true(only_op(step, "moe", "q_b")->n == 64 * 192 && only_op(step, "moe", "o_proj")->k == 64 * 128);
    assert_true(only_op(step, "moe", "mla_attention")->call.shape[2] == 64);
    assert_true(only_op(step, "dense", "ffn_gate_up")->n == 2 * 18432);
    assert_true(only_op(step, "moe", "shared_gate_up")->n == 4096);
    assert_true(only_op(step, "", "lm_head")->n == 163840 && !has_op(step, "gather_logits"));
    assert_true(only_op(step, "", "embedding")->resident == 163840.0 * 7168 * 2);
    /* elements of a rank: down-projections, q_b, kv_b and o; router and shared expert; the rest */
    double attention = 7168 * 2112.0 + 1536 * 12288.0 + 512 * 64 * 256.0 + 8192 * 7168.0;
    double networks = 3 * 7168 * 18432.0 + 60 * (7168 * 384.0 + 3 * 7168 * 2048.0);
    double bf16 = 61 * attention + networks + 2 * 163840.0 * 7168;
    assert_close(p.memory.weights, 2 * bf16 + 60 * 48 * EXPERT, 1e-12);
    /* eight caches of their own */
    assert_true(step->kv_per_token == 61 * 1152);
    assert_true(p.memory.pool_tokens == 8 * floor(p.memory.pool_bytes / (61 * 1152)));
    assert_true(p.memory.max_batch == 8 * floor(p.memory.pool_bytes / (6400 * 61 * 1152.0)));
    /* 3 sequences must fit on the fullest rank, though 2.5 are the mean */
    box.plan.context = floor(p.memory.pool_bytes / (61 * 1152) / 3);
    answer(&box, NULL, &params, &p);
    assert_true(p.memory.fits);
    box.plan.context += 1;
    answer(&box, NULL, &params, &p);
    assert_false(p.memory.fits);
    assert_true(p.memory.need_tokens < p.memory.pool_tokens);
}

static void replicas_are_as_fast_as_one(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "minimax-m2.5", "nvfp4");
    box.plan.tp = 4;
    for (int b = 1; b <= 64; b *= 4) {
        box.plan.dp = 1;
        box.plan.batch = b;
        answer(&box, NULL, &params, &q);
        box.plan.dp = 2;
        box.plan.batch = 2 * b;
        answer(&box, NULL, &params, &p);
        assert_true(p.step == q.step && p.tok_s == 2 * q.tok_s && step->sequences == b);
        assert_true(p.memory.weights == q.memory.weights && p.memory.kv_per_token == q.memory.kv_per_token);
        assert_true(p.memory.pool_tokens == 2 * q.memory.pool_tokens);
        assert_true(p.memory.max_batch == 2 * q.memory.max_batch);
        assert_true(p.memory.need_tokens == 2 * q.memory.need_tokens && p.memory.fits == q.memory.fits);
    }
    box.plan.batch = 7; /* 4 and 3 */
    answer(&box, NULL, &params, &p);
    assert_true(step->sequences == 4);
    box.plan.batch = 1;
    refuse(&box, "plan.dp: 2 replicas for 1 sequence");
    box.plan.batch = box.plan.dp = 4;
    refuse(&box, "plan.tp: 16 ranks on rtx-pro-6000-8x-two-socket, which has 8 GPUs");
}

static void pipelines_of_micro_batches(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_error error = {0};
    struct k25_group pair;
    struct box box;
    open_kimi(&box);
    box.plan.tp = 4;
    box.plan.batch = 8;
    box.plan.microbatches = 5; /* says nothing without a pipeline */
    answer(&box, NULL, &params, &q);
    assert_true(q.bubble == 0 && q.step_work.sequences == 8 && !has_op(&q.step_work, "send_stage"));
    assert_true(k25_machine_group(&box.machine, 2, &pair, &error));
    double bytes = 2 * 8 * 14336, through = q.gpu_busy + k25_send_time(bytes, &pair, &params);
    double gaps = q.gaps + params.value[K25_GRAPH_GAP];
    box.plan.pp = 2;
    static const int batches[] = {1, 2, 4, 0};
    for (int i = 0; i < 4; i++) {
        int m = batches[i] ? batches[i] : 2;
        box.plan.microbatches = batches[i];
        box.plan.batch = 8 * m;
        answer(&box, NULL, &params, &p);
        const struct k25_operator *send = only_op(step, "", "send_stage");
        assert_true(send->kind == K25_OP_SEND && send->ranks == K25_RANKS_PAIR && send->message == bytes);
        assert_true(step->sequences == 8 && send->calls == m / 2.0);
        /* a rank runs half of each micro-batch */
        assert_close(p.gpu_busy, m * through / 2, 1e-12);
        assert_close(p.gaps, m * gaps / 2, 1e-12);
        double run = p.gpu_busy + p.gaps;
        /* one micro-batch: the other stage idles half of the time. More: the stage of 31 of 61 layers sets the
         * pace, 62 / 61 of the mean one. */
        assert_close(p.bubble, m == 1 ? run : run / 61, 1e-9);
        assert_close(p.step, run + p.bubble + p.host, 1e-12);
        assert_close(p.tok_s, box.plan.batch / p.step, 1e-12);
    }
}

/* A pipeline has no micro-batches without sequences, given or by default, and a prompt is in one of them. */
static void micro_batches_have_sequences(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.tp = 4;
    box.plan.pp = 2;
    box.plan.batch = 1;
    box.plan.microbatches = 1;
    answer(&box, NULL, &params, &q);
    box.plan.microbatches = 0;
    answer(&box, NULL, &params, &p);
    assert_true(p.step == q.step && p.memory.need_tokens == q.memory.need_tokens && step->sequences == 1);
    box.plan.microbatches = 2;
    refuse(&box, "plan.microbatches: 2 micro-batches of the 1 sequence of a rank");
    box.plan.batch = 9;
    box.plan.microbatches = 4;
    box.plan.attention_dp = true; /* 9 over 4 ranks: 3 on the fullest */
    refuse(&box, "plan.microbatches: 4 micro-batches of the 3 sequences of a rank");
    box.plan.attention_dp = false;
    box.plan.prefill.tokens = 16;
    refuse(&box, "plan.prefill.tokens: a prompt in one of 4 micro-batches of a pipeline is not supported yet, "
                 "expected 0, or plan.microbatches 1");
    box.plan.microbatches = 1;
    answer(&box, NULL, &params, &p);
}

static void a_stage_holds_its_layers(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_kimi(&box);
    box.plan.tp = 4;
    box.plan.batch = 8;
    answer(&box, NULL, &params, &q);
    box.plan.pp = 2;
    answer(&box, NULL, &params, &p);
    double table = 163840.0 / 4 * 7168 * 2; /* embedding in front or head behind, as large */
    assert_close(p.memory.weights, (q.memory.weights - 2 * table) * 31 / 61 + table, 1e-12);
    assert_close(p.memory.kv_per_token, 31 * 1152, 1e-12);
    assert_close(q.memory.kv_per_token, 61 * 1152, 1e-15);
    box.plan.tp = 1;
    box.plan.pp = 62;
    refuse(&box, "plan.pp: 62 stages for the 61 layers of kimi-k2.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dcp_gathers_queries_and_scatters_outputs),
        cmocka_unit_test(dcp_exchange_is_one_all_to_all),
        cmocka_unit_test(dcp_is_priced_among_its_own_ranks),
        cmocka_unit_test(gathered_heads_are_padded_to_twice_their_number_at_most),
        cmocka_unit_test(dcp_multiplies_the_capacity),
        cmocka_unit_test(dcp_shares_the_index_cache_too),
        cmocka_unit_test(dcp_of_grouped_queries_shares_copies),
        cmocka_unit_test(dcp_refusals),
        cmocka_unit_test(whole_experts_on_every_rank),
        cmocka_unit_test(one_token_waits_for_the_fullest_rank),
        cmocka_unit_test(redundant_experts_take_memory),
        cmocka_unit_test(expert_refusals),
        cmocka_unit_test(tokens_travel_to_their_experts),
        cmocka_unit_test(experts_in_columns_get_tokens_once_a_rank),
        cmocka_unit_test(gathered_tokens),
        cmocka_unit_test(attention_dp_replicates_all_but_the_experts),
        cmocka_unit_test(replicas_are_as_fast_as_one),
        cmocka_unit_test(pipelines_of_micro_batches),
        cmocka_unit_test(micro_batches_have_sequences),
        cmocka_unit_test(a_stage_holds_its_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
