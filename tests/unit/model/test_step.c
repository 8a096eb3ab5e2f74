/* The operators of a step: shapes, bytes and messages on one rank, against kimi.md and numbers worked by hand. */
#include "tests/unit/physics_check.h"

static struct k25_step step; /* 256 operators: too large for a stack */

static void build(const struct box *box, const struct k25_params *params)
{
    k25_step_build(&box->architecture, &box->weights, NULL, &box->machine, &box->plan, params, &step);
}

/* Name, layers, calls, kind and shape of every operator of Kimi-K2.5 at TP8 in its order: DESIGN.md 4.1. n and k
 * are those of y[rows,n] = x[rows,k] W; heads/8 = 8: q_b 8 x 192, o_proj 8 x 128; dense 2 x 18432 / 8; experts
 * 2048 / 8. */
static const struct {
    const char *name, *layers;
    double calls;
    enum k25_operator_kind kind;
    double n, k;
} kimi_tp8[] = {
    {"embedding", "", 1, K25_OP_KERNEL, 0, 0},
    {"allreduce_embedding", "", 1, K25_OP_ALLREDUCE, 0, 0},
    {"attention_norm", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"qkv_a", "dense", 1, K25_OP_KERNEL, 2112, 7168},
    {"qkv_a_norm", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"q_b", "dense", 1, K25_OP_KERNEL, 1536, 1536},
    {"absorb_k", "dense", 1, K25_OP_KERNEL, 512, 128},
    {"rope_and_cache_write", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"mla_attention", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"absorb_v", "dense", 1, K25_OP_KERNEL, 128, 512},
    {"o_proj", "dense", 1, K25_OP_KERNEL, 7168, 1024},
    {"allreduce_attention", "dense", 1, K25_OP_ALLREDUCE, 0, 0},
    {"ffn_norm", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"ffn_gate_up", "dense", 1, K25_OP_KERNEL, 4608, 7168},
    {"ffn_activation", "dense", 1, K25_OP_KERNEL, 0, 0},
    {"ffn_down", "dense", 1, K25_OP_KERNEL, 7168, 2304},
    {"allreduce_ffn", "dense", 1, K25_OP_ALLREDUCE, 0, 0},
    {"attention_norm", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"qkv_a", "moe", 60, K25_OP_KERNEL, 2112, 7168},
    {"qkv_a_norm", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"q_b", "moe", 60, K25_OP_KERNEL, 1536, 1536},
    {"absorb_k", "moe", 60, K25_OP_KERNEL, 512, 128},
    {"rope_and_cache_write", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"mla_attention", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"absorb_v", "moe", 60, K25_OP_KERNEL, 128, 512},
    {"o_proj", "moe", 60, K25_OP_KERNEL, 7168, 1024},
    {"allreduce_attention", "moe", 60, K25_OP_ALLREDUCE, 0, 0},
    {"ffn_norm", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"router", "moe", 60, K25_OP_KERNEL, 384, 7168},
    {"top_k", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"routed_experts", "moe", 60, K25_OP_KERNEL, 256, 7168},
    {"shared_gate_up", "moe", 60, K25_OP_KERNEL, 512, 7168},
    {"shared_activation", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"shared_down", "moe", 60, K25_OP_KERNEL, 7168, 256},
    {"add_shared", "moe", 60, K25_OP_KERNEL, 0, 0},
    {"allreduce_ffn", "moe", 60, K25_OP_ALLREDUCE, 0, 0},
    {"final_norm", "", 1, K25_OP_KERNEL, 0, 0},
    {"lm_head", "", 1, K25_OP_KERNEL, 20480, 7168},
    {"gather_logits", "", 1, K25_OP_ALLGATHER, 0, 0},
    {"sampling", "", 1, K25_OP_KERNEL, 0, 0},
};

static void kimi_operators_at_tp8(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    build(&box, &params);
    assert_int_equal(step.count, sizeof kimi_tp8 / sizeof kimi_tp8[0]);
    for (size_t i = 0; i < step.count; i++) {
        const struct k25_operator *op = &step.op[i];
        assert_string_equal(k25_operator_names[op->id], kimi_tp8[i].name);
        assert_string_equal(op->layers, kimi_tp8[i].layers);
        assert_true(op->calls == kimi_tp8[i].calls && op->kind == kimi_tp8[i].kind && op->rows == 1);
        if (op->n != kimi_tp8[i].n || op->k != kimi_tp8[i].k)
            fail_msg("%s: n %g k %g", k25_operator_names[op->id], op->n, op->k);
    }
    assert_int_equal(find_op(&step, "q_b", 1)->part, K25_PART_ATTENTION);
    assert_int_equal(find_op(&step, "routed_experts", 0)->part, K25_PART_FFN);
    assert_int_equal(find_op(&step, "lm_head", 0)->part, K25_PART_HEAD);
    assert_int_equal(find_op(&step, "embedding", 0)->part, K25_PART_HEAD);
}

static void kimi_messages(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    /* Rows of the graph that runs, not of the batch: 5 sequences run as 8. Logits only of the 5. */
    static const struct {
        int batch, rows;
    } cases[] = {{1, 1}, {2, 2}, {3, 4}, {5, 8}, {8, 8}, {9, 16}, {128, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        box.plan.batch = cases[i].batch;
        build(&box, &params);
        double allreduces = 0;
        for (size_t j = 0; j < step.count; j++) {
            if (step.op[j].kind != K25_OP_ALLREDUCE)
                continue;
            assert_true(step.op[j].message == cases[i].rows * 14336.0); /* 7168 x 2 */
            allreduces += step.op[j].calls;
        }
        assert_true(allreduces == 123); /* 2 x 61 and the embedding */
        const struct k25_operator *gather = find_op(&step, "gather_logits", 0);
        assert_true(gather->message == cases[i].batch * 40960.0); /* 20480 x 2 */
        assert_true(step.tokens == cases[i].batch && step.rows == cases[i].rows);
    }
}

static void kimi_weight_reads(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    params.value[K25_ROUTING_CV] = 0;
    /* kimi.md: bytes read in a step on one GPU at TP8 with uniform routing; 4.54 GB of them are BF16 */
    static const struct {
        int tokens;
        double gb;
    } cases[] = {{1, 6.03}, {2, 7.48}, {4, 10.30}, {8, 15.60}, {16, 24.95}, {32, 39.51}, {64, 57.34}, {128, 71.07}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        box.plan.batch = cases[i].tokens;
        build(&box, &params);
        double read = 0, routed = find_op(&step, "routed_experts", 0)->read * 60;
        for (size_t j = 0; j < step.count; j++)
            read += step.op[j].calls * step.op[j].read;
        assert_within(read / 1e9, cases[i].gb, 0.0101);
        assert_within((read - routed) / 1e9, 4.54, 0.0101);
        /* one expert's slice is 3 x 7168 x 256 x 4.5 / 8 = 3,096,576 B */
        assert_close(routed, 60 * step.experts * 3096576, 1e-12);
    }
    assert_close(find_op(&step, "routed_experts", 0)->resident, 384 * 3096576.0, 1e-15);
}

static void kimi_work_of_single_operators(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.batch = 8;
    box.plan.context = 6400;
    box.plan.kv_dtype = K25_KV_FP8;
    build(&box, &params);
    const struct k25_operator *op = find_op(&step, "mla_attention", 1);
    /* 8 sequences x 6400 x 576 B; 2 x 8 x 16 x 6400 x 1088; ceil(8 x 64 / 188) = 3 waves of 100 tokens */
    assert_true(op->call.class == K25_KERNEL_MLA && op->call.batched == 1 && op->call.items == 8);
    assert_close(op->call.bytes, 29491200, 1e-15);
    assert_close(op->call.flops, 1782579200, 1e-15);
    assert_close(op->call.serial, 300, 1e-15);
    op = find_op(&step, "q_b", 1);
    /* weights 1536 x 1536 x 2, activations 2 x 8 x 3072 */
    assert_true(op->call.class == K25_KERNEL_GEMM_BF16 && op->read == 4718592 && op->resident == 4718592);
    assert_close(op->call.bytes, 4718592 + 49152, 1e-15);
    op = find_op(&step, "absorb_k", 1);
    assert_true(op->call.class == K25_KERNEL_BMM && op->read == 8 * 128 * 512 * 2);
    op = find_op(&step, "attention_norm", 1);
    /* read x and the residual, write both: 4 x 7168 x 2 B a row */
    assert_true(op->call.class == K25_KERNEL_ELEMENTWISE && op->call.launches == 1 && op->call.bytes == 8 * 57344);
    op = find_op(&step, "routed_experts", 0);
    assert_true(op->call.class == K25_KERNEL_MOE_INT4);
    assert_close(op->call.tail_bytes, 64 * 7168 * 5, 1e-15); /* 64 pairs, 5 bytes an element */
    op = find_op(&step, "sampling", 0);
    /* four passes over FP32 logits of 163840 words for 8 sequences */
    assert_true(op->call.launches == 4 && op->call.bytes == 4.0 * 8 * 163840 * 4);
    assert_true(step.kv_per_token == 61 * 576);
    box.plan.kv_dtype = K25_KV_BF16;
    build(&box, &params);
    assert_true(step.kv_per_token == 61 * 1152);
}

static void eager_steps_pad_nothing(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.batch = 5;
    box.plan.context = 2560;
    box.plan.graph.mode = K25_GRAPH_NONE;
    build(&box, &params);
    assert_true(step.rows == 5 && find_op(&step, "allreduce_ffn", 0)->message == 5 * 14336);
    /* the kernel chooses 8 splits by the context: 5 x 8 blocks are one wave of 320 tokens */
    assert_close(find_op(&step, "mla_attention", 0)->call.serial, 320, 1e-15);
    /* a graph keeps the 64 of its capture: 320 blocks are two waves of 40 */
    box.plan.graph.mode = K25_GRAPH_FULL;
    build(&box, &params);
    assert_close(find_op(&step, "mla_attention", 0)->call.serial, 80, 1e-15);
}

/* Rows that fill a graph are multiplied, but attend to nothing: 5 sequences run as 8. */
static void padding_attends_to_nothing(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.tp = 1;
    box.plan.batch = 5;
    for (enum k25_verify verify = K25_VERIFY_ROWS; verify <= K25_VERIFY_SHARED; verify++) {
        box.plan.speculation.verify = verify;
        build(&box, &params);
        const struct k25_operator *op = find_op(&step, "mla_attention", 0);
        assert_true(op->rows == 8 && find_op(&step, "q_b", 0)->rows == 8);
        assert_true(op->call.items == 5 * 4); /* 64 heads are 4 blocks of 16 */
        assert_close(op->call.bytes, 5 * 4 * 1024 * 1152.0, 1e-15);
    }
    /* 3 drafts: 20 tokens run as 24. Together 4 x 64 query rows are 16 blocks, apart 4 walks of 4. */
    box.plan.speculation.method = K25_SPEC_NGRAM;
    box.plan.speculation.tokens = 3;
    build(&box, &params);
    assert_true(step.tokens == 20 && step.rows == 24);
    assert_true(find_op(&step, "mla_attention", 0)->call.items == 5 * 16);
    assert_true(find_op(&step, "mla_attention", 0)->call.shape[0] == 5);
    box.plan.speculation.verify = K25_VERIFY_ROWS;
    build(&box, &params);
    assert_true(find_op(&step, "mla_attention", 0)->call.items == 20 * 4);
    assert_true(find_op(&step, "mla_attention", 0)->call.shape[0] == 20);
    /* Linear attention: 64/8 x 128 x 128 x 4 B of state a sequence, read once, written once. */
    make_box(&box, "qwen3.5-397b-a17b", "bf16", "rtx-pro-6000-8x-two-socket");
    box.plan.batch = 5;
    build(&box, &params);
    assert_close(find_op(&step, "delta_rule", 0)->call.bytes, 5 * 2 * 524288.0, 1e-15);
    /* Prompt tokens that ride along are not those of a sequence: 5 + 100 run as 112. */
    box.plan.prefill.tokens = 100;
    build(&box, &params);
    assert_true(step.tokens == 105 && step.rows == 112);
    assert_close(find_op(&step, "delta_rule", 0)->call.bytes, 5 * 2 * 524288.0, 1e-15);
    /* A draft takes in k + 1 tokens of each of 3 sequences, then one: 12 tokens run as 16, 3 as 4. The
     * indexer scores 2 x 32 x 128 x 1024 for each. */
    make_box(&box, "glm-5", "fp8", "rtx-pro-6000-8x-two-socket");
    box.plan = plan_of("{tp: 8, batch: 3, context: 1024, speculation: {method: mtp, tokens: 3}}");
    build(&box, &params);
    const struct k25_operator *first = find_op(&step, "indexer_scores", 0);
    const struct k25_operator *again = find_op(&step, "indexer_scores", 1);
    assert_true(first->rows == 16 && first->calls == 1 && again->rows == 4 && again->calls == 2);
    assert_close(first->call.flops, 12 * 8388608.0, 1e-15);
    assert_close(again->call.flops, 3 * 8388608.0, 1e-15);
}

static void one_gpu_has_no_collectives(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.plan.tp = 1;
    build(&box, &params);
    for (size_t i = 0; i < step.count; i++)
        assert_int_equal(step.op[i].kind, K25_OP_KERNEL);
    assert_true(find_op(&step, "q_b", 0)->n == 64 * 192 && find_op(&step, "o_proj", 0)->k == 8192);
    assert_true(find_op(&step, "qkv_a", 0)->n == 2112); /* replicated: the same at every TP */
}

static void grouped_queries_shard_by_heads(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    make_box(&box, "qwen3-235b-a22b", "bf16", "rtx-pro-6000-8x-two-socket");
    /* 64 query and 4 key-value heads of 128, 94 layers. qkv = (64/t + 2 max(1, 4/t)) x 128; at TP8 each key-value
     * head lies on two ranks. Cache: 94 x 2 x max(1, 4/t) x 128 x 2 B. */
    static const struct {
        int tp;
        double qkv, o, cache;
    } cases[] = {{1, 9216, 8192, 192512}, {2, 4608, 4096, 96256}, {4, 2304, 2048, 48128}, {8, 1280, 1024, 48128}};
    for (size_t i = 0; i < 4; i++) {
        box.plan.tp = cases[i].tp;
        build(&box, &params);
        assert_true(find_op(&step, "qkv", 0)->n == cases[i].qkv && find_op(&step, "qkv", 0)->k == 4096);
        assert_true(find_op(&step, "o_proj", 0)->k == cases[i].o && find_op(&step, "o_proj", 0)->n == 4096);
        assert_true(step.kv_per_token == cases[i].cache);
        assert_true(find_op(&step, "gqa_attention", 0)->call.class == K25_KERNEL_GQA);
    }
    /* Norms of each head need no communication. */
    assert_true(find_op(&step, "qk_norm", 0)->call.launches == 1);
}

static void minimax_reduces_its_query_norms(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    make_box(&box, "minimax-m2.5", "fp8", "rtx-pro-6000-8x-two-socket");
    box.plan.batch = 5;
    build(&box, &params);
    const struct k25_operator *op = find_op(&step, "allreduce_qk_norm", 0);
    assert_true(op->kind == K25_OP_ALLREDUCE && op->calls == 62 && op->message == 8 * 8); /* two FP32 a row */
    double calls = 0;
    for (size_t i = 0; i < step.count; i++)
        calls += step.op[i].kind == K25_OP_ALLREDUCE ? step.op[i].calls : 0;
    assert_true(calls == 62 * 3 + 1);
    /* one token's attention AllReduce is 2 x 3072 = 6144 B (kimi.md, section 3); no shared expert */
    assert_true(find_op(&step, "allreduce_attention", 0)->message == 8 * 6144);
    for (size_t i = 0; i < step.count; i++)
        assert_true(strncmp(k25_operator_names[step.op[i].id], "shared", 6) != 0 &&
                    step.op[i].id != K25_OPERATOR_ADD_SHARED);
}

static void the_format_picks_the_kernel(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    static const struct {
        const char *name, *scheme, *op;
        int class;
        double bits;
    } cases[] = {
        {"kimi-k2.5", "int4_g32", "routed_experts", K25_KERNEL_MOE_INT4, 4.5},
        {"kimi-k2.5", "nvfp4", "routed_experts", K25_KERNEL_MOE_FP4, 4.5},
        {"kimi-k2.5", "nvfp4", "shared_gate_up", K25_KERNEL_GEMM_FP4, 4.5},
        {"kimi-k2.5", "nvfp4", "o_proj", K25_KERNEL_GEMM_BF16, 16},
        {"deepseek-v3", "fp8", "o_proj", K25_KERNEL_GEMM_FP8, 8.001953125},
        {"deepseek-v3", "fp8", "routed_experts", K25_KERNEL_MOE_FP8, 8.001953125},
        {"deepseek-v3", "fp8", "router", K25_KERNEL_GEMM_BF16, 16},
        {"minimax-m2.5", "awq_int4", "qkv", K25_KERNEL_GEMM_INT4, 4.15625},
        {"qwen3-235b-a22b", "bf16", "routed_experts", K25_KERNEL_MOE_BF16, 16},
        {"llama-3.1-70b", "bf16", "ffn_down", K25_KERNEL_GEMM_BF16, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct box box;
        make_box(&box, cases[i].name, cases[i].scheme, "rtx-pro-6000-8x-two-socket");
        build(&box, &params);
        const struct k25_operator *op = find_op(&step, cases[i].op, 0);
        assert_int_equal(op->call.class, cases[i].class);
        double elements = strcmp(cases[i].op, "routed_experts") == 0 ? 3 * box.architecture.moe.experts * op->n * op->k
                                                                     : op->n * op->k;
        assert_close(op->resident * 8 / elements, cases[i].bits, 1e-12);
    }
}

static void dense_models_route_nothing(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    make_box(&box, "llama-3.1-70b", "bf16", "rtx-pro-6000-8x-two-socket");
    build(&box, &params);
    assert_true(step.experts == 0);
    assert_true(find_op(&step, "ffn_gate_up", 0)->n == 2 * 28672 / 8 && find_op(&step, "ffn_down", 0)->k == 3584);
    assert_true(find_op(&step, "ffn_gate_up", 0)->calls == 80);
}

static void variants_of_an_architecture(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.architecture.mla.q_lora_rank = 0; /* DeepSeek-V2-Lite: queries in one step, 8 heads x 192 + 576 columns */
    box.architecture.tied_embeddings = true;
    box.architecture.moe.shared_gate = true;
    build(&box, &params);
    assert_true(find_op(&step, "qkv_a", 0)->n == 8 * 192 + 576);
    for (size_t i = 0; i < step.count; i++)
        assert_true(strncmp(k25_operator_names[step.op[i].id], "q_b", 3) != 0);
    /* tied: the head's matrix is held once */
    assert_true(find_op(&step, "embedding", 0)->resident == 0);
    assert_close(find_op(&step, "lm_head", 0)->resident, 20480.0 * 7168 * 2, 1e-15);
    assert_true(find_op(&step, "add_shared", 0)->call.launches == 2);
}

static void as_many_layer_groups_as_there_may_be(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct box box;
    kimi_box(&box);
    box.architecture.layer_groups = K25_MAX_LAYER_GROUPS;
    for (int i = 0; i < K25_MAX_LAYER_GROUPS; i++)
        box.architecture.layers[i] = box.architecture.layers[1];
    build(&box, &params);
    assert_true(step.count <= K25_MAX_OPERATORS);
    assert_true(step.kv_per_token == 8 * 60 * 1152);
}

/* What all ranks hold is what the checkpoint holds, with the replicated parts more than once. */
static void sharding_loses_no_weight(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    for (size_t i = 0; i < ZOO_SIZE; i++) {
        for (size_t s = 0; s < 4 && zoo[i].schemes[s] != NULL; s++) {
            struct box box;
            make_box(&box, zoo[i].name, zoo[i].schemes[s], "rtx-pro-6000-8x-two-socket");
            assert_null(k25_architecture_unsupported(&box.architecture));
            box.plan.tp = 1;
            build(&box, &params);
            double held = 0, elements[K25_TENSORS];
            for (size_t j = 0; j < step.count; j++)
                held += step.op[j].calls * step.op[j].resident;
            k25_count_parameters(&box.architecture, elements);
            double whole = k25_checkpoint_bytes(&box.architecture, &box.weights) -
                           elements[K25_T_NORM] * k25_weight_bytes(&box.weights.format[K25_T_NORM]);
            if (!box.weights.unshipped_mtp) /* modules for drafting: not loaded without speculation */
                whole -= elements[K25_T_MTP] * k25_weight_bytes(&box.weights.format[K25_T_MTP]);
            assert_close(held, whole, 1e-4);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kimi_operators_at_tp8),
        cmocka_unit_test(kimi_messages),
        cmocka_unit_test(kimi_weight_reads),
        cmocka_unit_test(kimi_work_of_single_operators),
        cmocka_unit_test(eager_steps_pad_nothing),
        cmocka_unit_test(padding_attends_to_nothing),
        cmocka_unit_test(one_gpu_has_no_collectives),
        cmocka_unit_test(grouped_queries_shard_by_heads),
        cmocka_unit_test(minimax_reduces_its_query_norms),
        cmocka_unit_test(the_format_picks_the_kernel),
        cmocka_unit_test(dense_models_route_nothing),
        cmocka_unit_test(variants_of_an_architecture),
        cmocka_unit_test(as_many_layer_groups_as_there_may_be),
        cmocka_unit_test(sharding_loses_no_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
