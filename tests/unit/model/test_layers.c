/* Layers beside plain attention: sparse-attention indexers, gated delta-rule layers, windows, and the prompt
 * tokens that ride along, by hand. */
#include "tests/unit/question_check.h"

static struct k25_prediction p, q; /* too large for a stack */
static const struct k25_step *const step = &p.step_work;

static void a_layer_with_an_indexer(void **state)
{
    (void)state;
    /* GLM-5 at TP8: 8 heads of 192 + 64 keys and 256 values; 32 index heads of 128 on every rank */
    static const struct line layer[] = {
        {"attention_norm", 0, 0},   {"qkv_a", 2048 + 576, 6144},    {"qkv_a_norm", 0, 0},
        {"q_b", 8 * 256, 2048},     {"indexer_q", 32 * 128, 2048},  {"indexer_k", 128 + 32, 6144},
        {"indexer_quantise", 0, 0}, {"indexer_scores", 0, 0},       {"indexer_top_k", 0, 0},
        {"absorb_k", 512, 192},     {"rope_and_cache_write", 0, 0}, {"mla_attention", 0, 0},
        {"absorb_v", 256, 512},     {"o_proj", 6144, 8 * 256},      {"allreduce_attention", 0, 0}};
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5", "fp8");
    box.plan.batch = 2;
    answer(&box, NULL, &params, &p);
    assert_lines(step, 2, layer, sizeof layer / sizeof *layer);
    /* 2 x 6400 keys of 128 + 4 B read, as many FP32 scores written, then read twice */
    const struct k25_operator *op = only_op(step, "moe", "indexer_scores");
    assert_true(op->calls == 75 && op->call.class == K25_KERNEL_INDEXER);
    assert_true(op->call.bytes == 2 * 6400 * (132 + 4) && op->call.flops == 2.0 * 2 * 32 * 128 * 6400);
    assert_true(only_op(step, "moe", "indexer_top_k")->call.bytes == 2 * 6400 * 4 * 2);
    /* keys, queries and head weights in and out, three kernels: 33 x 128 elements */
    assert_true(only_op(step, "moe", "indexer_quantise")->call.bytes == 2 * 3 * 2 * 33 * 128 * 2);
}

static void attention_reads_the_pick_of_the_indexer(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5", "fp8");
    static const struct {
        double context, read;
    } cases[] = {{1000, 1000}, {2048, 2048}, {6400, 2048}, {200000, 2048}};
    for (size_t i = 0; i < 4; i++) {
        box.plan.context = cases[i].context;
        answer(&box, NULL, &params, &p);
        assert_true(only_op(step, "moe", "mla_attention")->call.bytes == cases[i].read * 1152);
        assert_true(only_op(step, "moe", "indexer_scores")->call.bytes == cases[i].context * 136);
    }
    assert_true(step->kv_per_token == 78 * (1152 + 132));
    assert_true(p.memory.max_batch == floor(p.memory.pool_bytes / (200000 * 78 * 1284.0)));
    /* FP8: 512 + four FP32 scales + 64 BF16; the index keys are FP8 either way */
    box.plan.kv_dtype = K25_KV_FP8;
    answer(&box, NULL, &params, &p);
    assert_true(only_op(step, "moe", "mla_attention")->call.bytes == 2048 * 656);
    assert_true(step->kv_per_token == 78 * (656 + 132));
}

/* GLM-5.2: 57 of 78 layers read the picks of a layer before them. They have the reach of an indexer, none of its
 * kernels, and no index keys in the cache. */
static void layers_share_the_pick_of_an_indexer(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5.2", "nvfp4");
    box.plan.context = 6400;
    answer(&box, NULL, &params, &p);
    double scored = 0, attended = 0;
    for (size_t i = 0; i < step->count; i++) {
        const struct k25_operator *op = &step->op[i];
        scored += op->id == K25_OPERATOR_INDEXER_SCORES ? op->calls : 0;
        if (op->id == K25_OPERATOR_MLA_ATTENTION) {
            attended += op->calls;
            assert_true(op->call.bytes == 2048 * 1152.0);
        }
    }
    assert_true(scored == 21 && attended == 78);
    assert_true(step->kv_per_token == 78 * 1152 + 21 * 132);
}

static void a_gated_delta_layer(void **state)
{
    (void)state;
    /* Qwen3.5 at TP8: 2 key heads and 8 value heads of 128: 2 x 256 + 2 x 1024 + 2 x 8 columns */
    static const struct line layer[] = {
        {"attention_norm", 0, 0}, {"linear_in", 2576, 4096},  {"convolution", 0, 0},         {"delta_rule", 0, 0},
        {"gated_norm", 0, 0},     {"linear_out", 4096, 1024}, {"allreduce_attention", 0, 0}, {"ffn_norm", 0, 0}};
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3.5-397b-a17b", "bf16");
    box.plan.batch = 3;
    answer(&box, NULL, &params, &p);
    assert_lines(step, 2, layer, sizeof layer / sizeof *layer);
    const struct k25_operator *op = only_op(step, "linear moe", "delta_rule");
    /* a state of 8 x 128 x 128 FP32 = 524288 B, in and out */
    assert_true(op->calls == 45 && op->call.class == K25_KERNEL_LINEAR && op->call.bytes == 3 * 2 * 524288);
    assert_true(op->call.flops == 2 * 3 * 3 * 131072);
    assert_true(only_op(step, "linear moe", "convolution")->call.bytes == 4 * (2 + 4) * 1536 * 2);
    /* and three past inputs of the convolution: 3 x (512 + 1024) BF16 */
    assert_true(step->state_per_sequence == 45 * (524288 + 9216.0));
    /* only the 15 full layers have a cache: a key and a value of 256 BF16 */
    assert_true(step->kv_per_token == 15 * 1024);
    box.plan.context = 100000; /* the state does not grow */
    answer(&box, NULL, &params, &q);
    assert_memory_equal(&only_op(&q.step_work, "linear moe", "delta_rule")->call, &op->call, sizeof op->call);
}

static void states_take_memory_of_the_cache(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3.5-397b-a17b", "nvfp4");
    box.plan.batch = 3;
    answer(&box, NULL, &params, &p);
    const struct k25_memory *m = &p.memory;
    double own = 45 * (524288 + 9216.0);
    assert_true(m->pool_bytes > 0 && m->state_per_sequence == own);
    assert_true(m->pool_tokens == floor((m->pool_bytes - 3 * own) / 15360));
    assert_true(m->max_batch == floor(m->pool_bytes / (6400 * 15360.0 + own)));
    /* exactly as many sequences fit as are said to */
    box.plan.batch = (int)m->max_batch;
    answer(&box, NULL, &params, &q);
    assert_true(q.memory.fits);
    box.plan.batch++;
    answer(&box, NULL, &params, &q);
    assert_false(q.memory.fits);
}

static void verified_tokens_write_a_state_each(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3.5-397b-a17b", "bf16");
    box.plan.batch = 3;
    box.plan.speculation.method = K25_SPEC_NGRAM;
    box.plan.speculation.tokens = 2;
    answer(&box, NULL, &params, &p); /* 9 tokens as 16, but 3 a sequence: read once, written three times */
    assert_true(only_op(step, "linear moe", "delta_rule")->call.bytes == 3 * 524288 * 4);
    assert_true(only_op(step, "linear moe", "delta_rule")->call.flops == 2 * 3 * 9 * 131072);
}

static void a_window_limits_what_is_read(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "qwen3-235b-a22b", "bf16");
    box.architecture.layers[0].window = 1024;
    static const struct {
        double context, read;
    } cases[] = {{512, 512}, {1024, 1024}, {6400, 1024}, {40000, 1024}};
    for (size_t i = 0; i < 4; i++) {
        box.plan.context = cases[i].context;
        answer(&box, NULL, &params, &p);
        assert_true(only_op(step, "moe", "gqa_attention")->call.bytes == cases[i].read * 512);
    }
}

/* 100 prompt tokens behind 1000 cached ones, beside 4 sequences: 104 rows. */
static void open_prefill(struct box *box, const char *name, const char *scheme)
{
    open_box(box, name, scheme);
    box->plan.batch = 4;
    box->plan.prefill.tokens = 100;
    box->plan.prefill.context = 1000;
}

static void prompt_tokens_go_through_the_products(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_prefill(&box, "kimi-k2.5", "int4_g32");
    answer(&box, NULL, &params, &p);
    assert_true(step->sequences == 4 && step->tokens == 104 && step->rows == 104);
    assert_true(only_op(step, "moe", "q_b")->rows == 104 && only_op(step, "dense", "ffn_down")->rows == 104);
    assert_true(only_op(step, "moe", "routed_experts")->call.shape[0] == 104 * 8);
    assert_true(only_op(step, "moe", "allreduce_ffn")->message == 104 * 14336);
    /* logits of the sequences that decode */
    assert_true(only_op(step, "", "lm_head")->rows == 4);
    assert_true(only_op(step, "", "gather_logits")->message == 4 * 40960);
    assert_true(only_op(step, "", "sampling")->call.bytes == 4.0 * 4 * 163840 * 4);
    /* decode attention is that of the 4; a prompt token sees 1050: 2 x 100 x 1050 x 8 heads x (192 + 128) */
    box.plan.prefill.tokens = 0;
    answer(&box, NULL, &params, &q);
    assert_memory_equal(&only_op(step, "moe", "mla_attention")->call,
                        &only_op(&q.step_work, "moe", "mla_attention")->call, sizeof(struct k25_kernel_call));
    const struct k25_operator *op = only_op(step, "moe", "prefill_attention");
    assert_true(op->calls == 60 && op->rows == 100 && op->call.class == K25_KERNEL_MLA);
    assert_true(op->call.flops == 537600000 && op->call.bytes == 1100 * 1152);
    assert_false(has_op(&q.step_work, "prefill_attention"));
    assert_true(p.memory.weights == q.memory.weights && p.memory.kv_per_token == q.memory.kv_per_token);
    assert_true(p.tok_s == 4 / p.step); /* prompt tokens are not output */
}

static void prompt_tokens_score_their_context(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_prefill(&box, "glm-5", "fp8");
    answer(&box, NULL, &params, &p);
    const struct k25_operator *op = only_op(step, "moe", "prefill_indexer_scores");
    assert_true(op->calls == 75 && op->rows == 100 && op->call.class == K25_KERNEL_INDEXER);
    /* one pass over keys of 132 B, 100 rows of FP32 scores; 2 x 100 x 32 heads x 128 x 1050 */
    assert_true(op->call.bytes == 1050 * 132 + 100 * 1050 * 4 && op->call.flops == 860160000);
    assert_true(only_op(step, "moe", "prefill_indexer_top_k")->call.bytes == 100 * 1050 * 4 * 2);
    /* those that decode score 6400 of their own */
    assert_true(only_op(step, "moe", "indexer_scores")->call.bytes == 4 * 6400 * 136);
    assert_true(only_op(step, "moe", "indexer_top_k")->call.bytes == 4 * 6400 * 4 * 2);
    assert_true(step->kv_per_token == 78 * 1284);
}

static void prompt_tokens_gather_what_is_cached(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_prefill(&box, "kimi-k2.5", "int4_g32");
    box.plan.dcp = 2;
    answer(&box, NULL, &params, &p);
    /* exchanges of the 4 that decode; half of 1000 cached latents lies on each of two ranks */
    assert_true(only_op(step, "moe", "gather_queries")->message == 4 * 8 * 576 * 2);
    assert_true(only_op(step, "moe", "scatter_outputs")->message == 4 * 8 * 512 * 2);
    const struct k25_operator *op = only_op(step, "moe", "gather_prefill_cache");
    assert_true(op->kind == K25_OP_ALLGATHER && op->ranks == K25_RANKS_DCP && op->message == 500 * 1152);
    box.plan.prefill.context = 0; /* the first chunk has nothing to gather */
    answer(&box, NULL, &params, &p);
    assert_false(has_op(step, "gather_prefill_cache"));
}

static void prompts_of_grouped_queries(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_prefill(&box, "qwen3-235b-a22b", "bf16");
    answer(&box, NULL, &params, &p);
    const struct k25_operator *op = only_op(step, "moe", "prefill_attention");
    assert_true(op->call.class == K25_KERNEL_GQA && op->call.bytes == 1100 * 512);
    assert_true(op->call.flops == 2.0 * 100 * 1050 * 8 * 256);
}

static void many_tokens_take_the_slower_expert_kernel(void **state)
{
    (void)state;
    struct k25_params params = round_params(); /* three times the traffic */
    struct box box;
    open_box(&box, "kimi-k2.5", "nvfp4");
    box.plan.batch = 8;
    answer(&box, NULL, &params, &q);
    static const struct {
        int rows;
        double times;
    } cases[] = {{7, 3}, {8, 1}, {100, 1}};
    for (size_t i = 0; i < 3; i++) {
        box.plan.expert_rows = cases[i].rows;
        answer(&box, NULL, &params, &p);
        const struct k25_operator *op = only_op(step, "moe", "routed_experts");
        const struct k25_operator *small = only_op(&q.step_work, "moe", "routed_experts");
        assert_close(op->call.bytes, cases[i].times * small->call.bytes, 1e-12);
        assert_true(op->call.tail_bytes == small->call.tail_bytes && op->call.flops == small->call.flops);
        assert_true(op->read == small->read && op->resident == small->resident); /* of the checkpoint */
    }
    box.plan.expert_rows = 8; /* the tokens of all ranks come together */
    box.plan.attention_dp = true;
    box.plan.batch = 16;
    answer(&box, NULL, &params, &p);
    assert_true(step->rows == 2);
    box.plan.expert_rows = 0;
    answer(&box, NULL, &params, &q);
    assert_close(only_op(step, "moe", "routed_experts")->call.bytes,
                 3 * only_op(&q.step_work, "moe", "routed_experts")->call.bytes, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_with_an_indexer),
        cmocka_unit_test(attention_reads_the_pick_of_the_indexer),
        cmocka_unit_test(layers_share_the_pick_of_an_indexer),
        cmocka_unit_test(a_gated_delta_layer),
        cmocka_unit_test(states_take_memory_of_the_cache),
        cmocka_unit_test(verified_tokens_write_a_state_each),
        cmocka_unit_test(a_window_limits_what_is_read),
        cmocka_unit_test(prompt_tokens_go_through_the_products),
        cmocka_unit_test(prompt_tokens_score_their_context),
        cmocka_unit_test(prompt_tokens_gather_what_is_cached),
        cmocka_unit_test(prompts_of_grouped_queries),
        cmocka_unit_test(many_tokens_take_the_slower_expert_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
