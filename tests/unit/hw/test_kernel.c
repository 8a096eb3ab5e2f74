/* The price of one kernel, against numbers worked by hand: a GPU of 1000 GB/s and 500 / 1000 / 2000 TFLOP/s. */
#include "tests/unit/physics_check.h"

#include "hw/kernel/kernel.h"

static const double US = 1e-6;

/* 1000 GB/s x 0.5 x 0.8 = 400 GB/s: 4 MB take 10 us. 500 TFLOP/s x 0.5 = 250: 2.5 Gflop take 10 us. 1000 steps of
 * 10 ns take 10 us. Three launches of 2 us are a floor of 6 us, 2 MB of tail are 5 us. */
static struct k25_params hand_params(double p, double scale)
{
    struct k25_params params = fixed_params();
    params.value[K25_P_NORM] = p;
    params.value[K25_KERNEL_SCALE] = scale;
    params.value[K25_BANDWIDTH] = 0.5;
    params.value[K25_GEMM_T0] = 2 * US;
    params.value[K25_GEMM_MEM] = 0.8;
    params.value[K25_GEMM_MAC] = 0.5;
    params.value[K25_GEMM_K] = 10e-9;
    return params;
}

static const struct k25_kernel_call hand_call = {
    .class = K25_KERNEL_GEMM_BF16, .launches = 3, .bytes = 4e6, .tail_bytes = 2e6, .flops = 2.5e9, .serial = 1000};

static void floor_and_norm_by_hand(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    /* Three terms of 10 us: p = 1 adds them to 30, 2 gives 17.3205, 3 gives 10 x 3^(1/3) = 14.4225, 4 (which has a
     * path of its own) 10 x 3^(1/4) = 13.1607. Floor and tail add 6 + 5. */
    static const struct {
        double p, joined;
    } cases[] = {
        {1, 30}, {2, 17.320508075688775}, {3, 14.422495703074083}, {4, 13.160740129524924}, {100, 10.110466919378536}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_params params = hand_params(cases[i].p, 1);
        struct k25_kernel_cost cost = k25_kernel_cost(&hand_call, &gpu, &params);
        assert_close(cost.time / US, cases[i].joined + 11, 1e-9);
        assert_close(cost.floor / US, 6, 1e-12);
        assert_close(cost.memory / US, 15, 1e-12); /* the tail is memory traffic too */
        assert_close(cost.compute / US, 10, 1e-12);
        assert_close(cost.latency / US, 10, 1e-12);
        assert_int_equal(cost.bound, K25_BOUND_MEMORY);
    }
}

static void scale_multiplies_every_term(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    struct k25_params params = hand_params(4, 2.5);
    struct k25_kernel_cost cost = k25_kernel_cost(&hand_call, &gpu, &params);
    assert_close(cost.time / US, 2.5 * 24.160740129524924, 1e-9);
    assert_close(cost.floor / US, 15, 1e-12);
    assert_close(cost.memory / US, 37.5, 1e-12);
    assert_close(cost.compute / US, 25, 1e-12);
    assert_close(cost.latency / US, 25, 1e-12);
}

static void norm_four_agrees_with_the_general_one(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    struct k25_params four = hand_params(4, 1), near = hand_params(4 + 1e-9, 1);
    uint64_t seed = 20;
    for (int i = 0; i < 1000; i++) {
        struct k25_kernel_call call = {.class = (enum k25_kernel_class)(i % K25_KERNEL_CLASSES),
                                       .launches = uniform(&seed),
                                       .bytes = exp(20 * uniform(&seed)),
                                       .flops = exp(25 * uniform(&seed)),
                                       .serial = exp(12 * uniform(&seed))};
        struct k25_kernel_cost a = k25_kernel_cost(&call, &gpu, &four), b = k25_kernel_cost(&call, &gpu, &near);
        assert_close(a.time, b.time, 1e-7);
        /* A norm lies between the largest of its terms and their sum. */
        double least = a.floor + fmax(a.memory, fmax(a.compute, a.latency));
        assert_true(a.time >= least * (1 - 1e-12));
        assert_true(a.time <= (a.floor + a.memory + a.compute + a.latency) * (1 + 1e-12));
    }
}

static void nothing_costs_its_floor(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    for (int p = 3; p <= 4; p++) {
        struct k25_params params = hand_params(p, 1);
        struct k25_kernel_call call = {.class = K25_KERNEL_GEMM_BF16, .launches = 1};
        struct k25_kernel_cost cost = k25_kernel_cost(&call, &gpu, &params);
        assert_true(cost.time == params.value[K25_GEMM_T0]);
        assert_int_equal(cost.bound, K25_BOUND_FLOOR);
    }
}

static void bound_is_the_largest_term(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    struct k25_params params = hand_params(4, 1);
    struct k25_kernel_call call = hand_call;
    call.tail_bytes = 0;
    call.launches = 5.5; /* 11 us of floor against three tens */
    assert_int_equal(k25_kernel_cost(&call, &gpu, &params).bound, K25_BOUND_FLOOR);
    call.launches = 1;
    call.bytes = 4.4e6;
    assert_int_equal(k25_kernel_cost(&call, &gpu, &params).bound, K25_BOUND_MEMORY);
    call.flops = 3e9;
    assert_int_equal(k25_kernel_cost(&call, &gpu, &params).bound, K25_BOUND_COMPUTE);
    call.serial = 1300;
    assert_int_equal(k25_kernel_cost(&call, &gpu, &params).bound, K25_BOUND_LATENCY);
    assert_string_equal(k25_bound_names[K25_BOUND_FLOOR], "floor");
    assert_string_equal(k25_bound_names[K25_BOUND_LATENCY], "latency");
    assert_null(k25_bound_names[K25_BOUND_LATENCY + 1]);
}

/* Which parameters price a class, as hw/params/params.h describes them; -1: the class has no such term. `tflops` is the
 * data-sheet peak of the GPU above in the arithmetic of the class. */
static const struct {
    enum k25_kernel_class class;
    const char *name;
    int t0, batched, item, memory, mac, step;
    double tflops;
} classes[] = {
    {K25_KERNEL_GEMM_BF16, "gemm_bf16", K25_GEMM_T0, -1, -1, K25_GEMM_MEM, K25_GEMM_MAC, K25_GEMM_K, 500},
    {K25_KERNEL_GEMM_FP8, "gemm_fp8", K25_FP8_T0, -1, -1, K25_FP8_MEM, K25_FP8_MAC, K25_FP8_K, 1000},
    {K25_KERNEL_GEMM_FP4, "gemm_fp4", K25_FP4_T0, -1, -1, K25_FP4_MEM, K25_FP4_MAC, K25_FP4_K, 2000},
    {K25_KERNEL_GEMM_INT4, "gemm_int4", K25_INT4_T0, -1, -1, K25_INT4_MEM, K25_INT4_MAC, K25_INT4_K, 500},
    {K25_KERNEL_BMM, "bmm", K25_BMM_T0, -1, -1, K25_GEMM_MEM, K25_GEMM_MAC, -1, 500},
    {K25_KERNEL_ELEMENTWISE, "elementwise", K25_ELEMENT_T0, -1, -1, K25_GEMM_MEM, K25_GEMM_MAC, -1, 500},
    {K25_KERNEL_MOE_BF16, "moe_bf16", K25_MOE_BF16_T0, -1, K25_MOE_EXPERT, K25_MOE_BF16_MEM, K25_MOE_BF16_MAC,
     K25_MOE_K, 500},
    {K25_KERNEL_MOE_FP8, "moe_fp8", K25_MOE_FP8_T0, -1, K25_MOE_EXPERT, K25_MOE_FP8_MEM, K25_MOE_FP8_MAC, K25_MOE_K,
     1000},
    {K25_KERNEL_MOE_INT4, "moe_int4", K25_MOE_INT4_T0, -1, -1, K25_MOE_INT4_MEM, K25_MOE_INT4_MAC, K25_MOE_K, 500},
    {K25_KERNEL_MOE_FP4, "moe_fp4", K25_MOE_FP4_T0, -1, K25_MOE_EXPERT, K25_MOE_FP4_MEM, K25_MOE_FP4_MAC, K25_MOE_K,
     2000},
    {K25_KERNEL_MLA, "mla", K25_MLA_T0, K25_MLA_BATCHED, K25_MLA_SEQUENCE, K25_MLA_MEM, K25_GEMM_MAC, K25_MLA_TOKEN,
     500},
    {K25_KERNEL_GQA, "gqa", K25_GQA_T0, -1, K25_GQA_TILE, K25_GQA_MEM, K25_GEMM_MAC, K25_GQA_TOKEN, 500},
    {K25_KERNEL_INDEXER, "indexer", K25_INDEXER_T0, -1, -1, K25_INDEXER_MEM, K25_FP8_MAC, -1, 1000},
    {K25_KERNEL_LINEAR, "linear", K25_LINEAR_T0, -1, -1, K25_LINEAR_MEM, K25_GEMM_MAC, -1, 500},
};

static void every_class_has_its_parameters(void **state)
{
    (void)state;
    struct k25_gpu gpu = round_gpu();
    struct k25_params params;
    for (int id = 0; id < K25_PARAMS; id++)
        params.value[id] = 0.5 + id / 1000.0; /* no two alike, so that a wrong one shows */
    params.value[K25_P_NORM] = 4;
    double scale = params.value[K25_KERNEL_SCALE], rate = 1e12 * params.value[K25_BANDWIDTH];
    assert_int_equal(sizeof classes / sizeof classes[0], K25_KERNEL_CLASSES);
    for (size_t i = 0; i < K25_KERNEL_CLASSES; i++) {
        const double *v = params.value;
        enum k25_kernel_class class = classes[i].class;
        assert_int_equal(class, i);
        assert_string_equal(k25_kernel_class_names[class], classes[i].name);
        struct k25_kernel_call call = {class, 2, true, 3, 7e9, 5e9, 11e12, 13, {0}, {0}};
        struct k25_kernel_cost cost = k25_kernel_cost(&call, &gpu, &params);
        double step = classes[i].step < 0 ? 0 : v[classes[i].step];
        assert_close(cost.memory, scale * 12e9 / (rate * v[classes[i].memory]), 1e-12);
        assert_close(cost.compute, scale * 11e12 / (classes[i].tflops * 1e12 * v[classes[i].mac]), 1e-12);
        assert_close(cost.latency, scale * 13 * step, 1e-12);
        double extra =
            (classes[i].batched < 0 ? 0 : v[classes[i].batched]) + 3 * (classes[i].item < 0 ? 0 : v[classes[i].item]);
        assert_close(cost.floor, scale * (2 * v[classes[i].t0] + extra), 1e-12);
        call.batched = 0;
        extra = 3 * (classes[i].item < 0 ? 0 : v[classes[i].item]);
        assert_close(k25_kernel_cost(&call, &gpu, &params).floor, scale * (2 * v[classes[i].t0] + extra), 1e-12);
    }
    assert_null(k25_kernel_class_names[K25_KERNEL_CLASSES]);
}

static void missing_tensor_cores_compute_wider(void **state)
{
    (void)state;
    struct k25_params params = hand_params(4, 1);
    struct k25_kernel_call fp8 = {.class = K25_KERNEL_GEMM_FP8, .flops = 4e12};
    struct k25_kernel_call fp4 = {.class = K25_KERNEL_GEMM_FP4, .flops = 4e12};
    struct k25_gpu gpu = round_gpu();
    gpu.peak_fp4_tflops = 0; /* Hopper: FP4 weights are multiplied in FP8, 4 Tflop / (0.5 x 1000 T) = 8 ms */
    assert_close(k25_kernel_cost(&fp4, &gpu, &params).compute, 8e-3, 1e-12);
    gpu.peak_fp8_tflops = 0; /* Ampere: in BF16, 4 / (0.4 x 500) = 20 ms for FP8 and 4 / (0.5 x 500) = 16 ms */
    assert_close(k25_kernel_cost(&fp8, &gpu, &params).compute, 20e-3, 1e-12);
    assert_close(k25_kernel_cost(&fp4, &gpu, &params).compute, 16e-3, 1e-12);
}

static void products_pad_rows_and_columns_to_64(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    params.value[K25_K_SPLIT] = 500;
    /* m, n, k, and by hand: flops = 2 pad(m) pad(n) k */
    static const struct {
        double m, n, k, flops;
    } cases[] = {{1, 1536, 1500, 2.0 * 64 * 1536 * 1500},
                 {64, 1536, 1500, 2.0 * 64 * 1536 * 1500},
                 {65, 1536, 1500, 2.0 * 128 * 1536 * 1500},
                 {8, 100, 1500, 2.0 * 64 * 128 * 1500},
                 {200, 65, 1500, 2.0 * 256 * 128 * 1500}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (enum k25_kernel_class class = K25_KERNEL_GEMM_BF16; class <= K25_KERNEL_GEMM_INT4; class ++) {
            struct k25_kernel_call call = k25_gemm_call(class, cases[i].m, cases[i].n, cases[i].k, 1e6, &params);
            assert_int_equal(call.class, class);
            assert_true(call.launches == 1 && call.batched == 0 && call.items == 0 && call.tail_bytes == 0);
            assert_close(call.flops, cases[i].flops, 1e-15);
            /* weights as stored, activations in and out in BF16 */
            assert_close(call.bytes, 1e6 + 2 * cases[i].m * (cases[i].n + cases[i].k), 1e-15);
            /* split-K: 1500 x 500 / (1500 + 500) = 375; CUTLASS FP8 and FP4 walk all of K */
            bool splits = class == K25_KERNEL_GEMM_BF16 || class == K25_KERNEL_GEMM_INT4;
            assert_close(call.serial, splits ? 375 : 1500, 1e-15);
        }
    }
    /* k_split is the K at which the serial loop is halved. */
    assert_close(k25_gemm_call(K25_KERNEL_GEMM_BF16, 1, 64, 500, 0, &params).serial, 250, 1e-15);
}

static void batched_products_by_hand(void **state)
{
    (void)state;
    /* 8 heads of y[3,512] = x[3,128] W: 2 x 8 x 64 x 512 x 128 flops, activations 2 x 8 x 3 x 640 bytes */
    struct k25_kernel_call call = k25_bmm_call(8, 3, 512, 128, 1048576);
    assert_int_equal(call.class, K25_KERNEL_BMM);
    assert_close(call.flops, 67108864, 1e-15);
    assert_close(call.bytes, 1048576 + 30720, 1e-15);
    assert_true(call.launches == 1 && call.serial == 0);
}

static void marlin_chooses_its_block(void **state)
{
    (void)state;
    /* 384 experts, top-8. Block b while 8 T / 384 / b < 0.9: T < 43.2 b, so 8 until 345 tokens, 16 until 691, 32
     * until 1382, 48 until 2073, then 64. */
    static const struct {
        double tokens, block;
    } cases[] = {{1, 8},     {345, 8},   {346, 16},  {691, 16},  {692, 32},
                 {1382, 32}, {1383, 48}, {2073, 48}, {2074, 64}, {100000, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(k25_moe_block(K25_KERNEL_MOE_INT4, 8 * cases[i].tokens, 384) == cases[i].block);
        assert_true(k25_moe_block(K25_KERNEL_MOE_FP8, 8 * cases[i].tokens, 384) == 16);
        assert_true(k25_moe_block(K25_KERNEL_MOE_FP4, 8 * cases[i].tokens, 384) == 16);
        assert_true(k25_moe_block(K25_KERNEL_MOE_BF16, 8 * cases[i].tokens, 384) == 16);
    }
    /* Under expert parallelism the local experts count, the pairs of other ranks too: 8 x 44 / 48 / 8 = 0.917. */
    assert_true(k25_moe_block(K25_KERNEL_MOE_INT4, 8 * 43, 48) == 8);
    assert_true(k25_moe_block(K25_KERNEL_MOE_INT4, 8 * 44, 48) == 16);
}

static void experts_by_hand(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    params.value[K25_MOE_REREAD] = 0.25;
    params.value[K25_MOE_ACTIVATION] = 6;
    struct k25_moe_work work = {.pairs = 400,
                                .distinct = 10,
                                .local = 384,
                                .hidden = 1000,
                                .columns = 200,
                                .matrices = 3,
                                .expert_bytes = 1e6,
                                .routed = 120};
    /* Block 8 (120 / 384 / 8 < 0.9). 400 pairs over 10 experts are 40 each: 5 blocks each, 50 in all. Of 400 / 16 = 25
     * times 16 rows, 15 come after the first of an expert and miss the L2 for a quarter: 10 + 0.25 x 15 = 13.75
     * experts' bytes. */
    struct k25_kernel_call call = k25_moe_call(K25_KERNEL_MOE_INT4, &work, &params);
    assert_int_equal(call.class, K25_KERNEL_MOE_INT4);
    assert_close(call.bytes, 13.75e6, 1e-15);
    assert_close(call.flops, 2.0 * 50 * 8 * 3 * 1000 * 200, 1e-15);
    assert_close(call.tail_bytes, 120 * 1000 * 6.0, 1e-15); /* activations of every routed pair */
    assert_close(call.serial, 1200, 1e-15);
    assert_true(call.launches == 1 && call.items == 384);
    /* Known loads: 25 blocks, 15 of them beyond the first of their expert: 10 + 0.25 x 15. */
    work.blocks = 25;
    call = k25_moe_call(K25_KERNEL_MOE_INT4, &work, &params);
    assert_close(call.bytes, 13.75e6, 1e-15);
    assert_close(call.flops, 2.0 * 25 * 8 * 3 * 1000 * 200, 1e-15);
    /* A block of 16 holds the 10 rows of each expert: 10 blocks, nothing read twice. Two matrices without
     * a gate. */
    work.blocks = 0;
    work.pairs = 100;
    work.matrices = 2;
    call = k25_moe_call(K25_KERNEL_MOE_FP8, &work, &params);
    assert_close(call.bytes, 10e6, 1e-15);
    assert_close(call.flops, 2.0 * 10 * 16 * 2 * 1000 * 200, 1e-15);
}

static void experts_at_the_edges(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_moe_work work = {.pairs = 3,
                                .distinct = 10,
                                .local = 48,
                                .hidden = 1000,
                                .columns = 200,
                                .matrices = 3,
                                .expert_bytes = 1e6,
                                .routed = 24};
    /* Three pairs cannot touch ten experts. */
    assert_close(k25_moe_call(K25_KERNEL_MOE_INT4, &work, &params).bytes, 3e6, 1e-15);
    /* A rank without work pays its floor and its bookkeeping. */
    work.pairs = 0;
    struct k25_kernel_call call = k25_moe_call(K25_KERNEL_MOE_FP4, &work, &params);
    assert_true(call.launches == 1 && call.items == 48 && call.bytes == 0 && call.flops == 0 && call.serial == 0);
    struct k25_gpu gpu = round_gpu();
    /* 26 us + 48 x 60 ns */
    assert_close(k25_kernel_cost(&call, &gpu, &params).time, 28.88e-6, 1e-12);
}

static struct k25_attention_work mla_work(double sequences, double heads, double context)
{
    return (struct k25_attention_work){.sequences = sequences,
                                       .rows = 1,
                                       .context = context,
                                       .heads = heads,
                                       .key_dim = 576,
                                       .value_dim = 512,
                                       .cache_bytes = 576,
                                       .splits = 64,
                                       .sms = 188};
}

static void mla_runs_in_waves(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    /* ceil(64 B / 188) waves of 6400 / 64 = 100 tokens: 64, 128 | 192, 256 | 512 | 1024 blocks on 188 SMs. The
     * slopes over context measured at 1, 2, 4, 8, 16 sequences stand as 1 : 1 : 2 : 2.9 : 5.9. */
    static const struct {
        double sequences, waves;
    } cases[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {8, 3}, {16, 6}, {128, 44}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double B = cases[i].sequences;
        struct k25_attention_work work = mla_work(B, 8, 6400);
        struct k25_kernel_call call = k25_mla_call(&work, &params);
        assert_close(call.serial, 100 * cases[i].waves, 1e-15);
        assert_close(call.bytes, B * 6400 * 576, 1e-15);
        /* 8 heads cost as 16: 2 x B x 16 x 6400 x (576 + 512) */
        assert_close(call.flops, B * 222822400, 1e-15);
        assert_true(call.items == B && call.batched == (B > 1) && call.launches == 1);
    }
}

static void mla_reads_the_cache_once_a_head_block(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    static const struct {
        double heads, blocks;
    } cases[] = {{1, 1}, {16, 1}, {17, 2}, {64, 4}, {128, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_attention_work work = mla_work(2, cases[i].heads, 6400);
        struct k25_kernel_call call = k25_mla_call(&work, &params);
        double blocks = cases[i].blocks;
        assert_close(call.bytes, 2 * blocks * 6400 * 576, 1e-15);
        assert_close(call.items, 2 * blocks, 1e-15);
        assert_close(call.serial, 100 * ceil(2 * blocks * 64 / 188), 1e-15); /* 1, 1, 2, 3, 6 waves */
    }
}

/* Tokens of one sequence that are verified together, 8 heads each, on 64 splits of 100 tokens and 188 SMs. */
static void mla_verifies_in_blocks_or_apart(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    /* Together they fill blocks of 16 query rows: 1 and 2 tokens one block, 3 and 4 two, 5 three (192 thread blocks,
     * two waves). Apart each token is a walk of its own. */
    static const struct {
        double rows;
        bool separate_rows;
        double blocks, waves;
    } cases[] = {{1, false, 1, 1}, {2, false, 1, 1}, {3, false, 2, 1}, {4, false, 2, 1}, {5, false, 3, 2},
                 {1, true, 1, 1},  {2, true, 2, 1},  {3, true, 3, 2},  {4, true, 4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_attention_work work = mla_work(1, 8, 6400);
        work.rows = cases[i].rows;
        work.separate_rows = cases[i].separate_rows;
        struct k25_kernel_call call = k25_mla_call(&work, &params);
        /* a block reads 6400 x 576 B and multiplies 2 x 16 x 6400 x 1088 */
        assert_close(call.bytes, cases[i].blocks * 3686400, 1e-15);
        assert_close(call.flops, cases[i].blocks * 222822400, 1e-15);
        assert_close(call.items, cases[i].blocks, 1e-15);
        assert_close(call.serial, 100 * cases[i].waves, 1e-15);
        assert_true(call.batched == (cases[i].separate_rows && cases[i].rows > 1));
    }
}

/* 2 sequences of 1000 tokens, 8 heads on one key-value head, 512 B a token: 4 tokens together are 32 query rows, two
 * blocks that share a read; apart they are four walks. */
static void gqa_verifies_in_blocks_or_apart(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_attention_work work = {.sequences = 2,
                                      .rows = 4,
                                      .context = 1000,
                                      .heads = 8,
                                      .kv_heads = 1,
                                      .key_dim = 128,
                                      .value_dim = 128,
                                      .cache_bytes = 512,
                                      .splits = 1,
                                      .sms = 100};
    struct k25_kernel_call call = k25_gqa_call(&work, &params);
    assert_close(call.items, 4, 1e-15);
    assert_close(call.bytes, 1024000, 1e-15);
    assert_close(call.flops, 4 * 8192000.0, 1e-15); /* a block: 2 x 16 x 1000 x 256 */
    work.separate_rows = true;
    call = k25_gqa_call(&work, &params);
    assert_close(call.items, 8, 1e-15);
    assert_close(call.bytes, 4096000, 1e-15);
    assert_close(call.flops, 8 * 8192000.0, 1e-15);
}

static void indexer_by_hand(void **state)
{
    (void)state;
    /* 3 sequences of 2 rows, 1000 keys of 132 B read once a sequence, 6 x 1000 scores of 4 B written; 2 x 6 x 1000 x
     * 32 heads x 128. */
    struct k25_attention_work work = {
        .sequences = 3, .rows = 2, .context = 1000, .heads = 32, .key_dim = 128, .cache_bytes = 132};
    struct k25_kernel_call call = k25_indexer_call(&work);
    assert_int_equal(call.class, K25_KERNEL_INDEXER);
    assert_close(call.bytes, 396000 + 24000, 1e-15);
    assert_close(call.flops, 49152000, 1e-15);
    assert_true(call.launches == 1 && call.items == 0 && call.serial == 0 && call.batched == 0);
}

static void linear_by_hand(void **state)
{
    (void)state;
    /* 8 heads x 128 x 128 x 4 B = 524,288 B of state a sequence, read once and written after each of 3 rows; 3
     * products of 131,072 a row. */
    struct k25_kernel_call call = k25_linear_call(5, 3, 8, 128, 128, 4);
    assert_int_equal(call.class, K25_KERNEL_LINEAR);
    assert_close(call.bytes, 5 * 4 * 524288.0, 1e-15);
    assert_close(call.flops, 2 * 3 * 15 * 131072.0, 1e-15);
    assert_true(call.launches == 1 && call.items == 0 && call.serial == 0 && call.batched == 0);
}

static void prefill_by_hand(void **state)
{
    (void)state;
    /* 100 tokens behind 1000: the mean token sees 1050; keys of 192 and values of 128 for 8 heads; 1100 x 576 B. */
    struct k25_kernel_call call = k25_prefill_call(K25_KERNEL_MLA, 100, 1000, INFINITY, 8, 192, 128, 576);
    assert_int_equal(call.class, K25_KERNEL_MLA);
    assert_close(call.bytes, 633600, 1e-15);
    assert_close(call.flops, 2.0 * 100 * 1050 * 8 * 320, 1e-15);
    assert_true(call.launches == 1 && call.serial == 0);
    /* A window of 1,020 cuts the 1,050 tokens that the mean token would see. */
    struct k25_kernel_call cut = k25_prefill_call(K25_KERNEL_MLA, 100, 1000, 1020, 8, 192, 128, 576);
    assert_true(cut.flops == 2.0 * 100 * 1020 * 8 * 320 && cut.bytes == call.bytes);
    assert_int_equal(k25_prefill_call(K25_KERNEL_GQA, 1, 0, INFINITY, 1, 1, 1, 1).class, K25_KERNEL_GQA);
}

static void mla_splits_follow_the_context_without_a_graph(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    /* Next power of two of floor(context / 512): 0 -> 1, 1 -> 1, 3 -> 4, 4 -> 4, 5 -> 8; at most two an SM, 376.
     * At one sequence 376 splits are two waves of 188 blocks. */
    static const struct {
        double context, splits, waves;
    } cases[] = {{100, 1, 1}, {1000, 1, 1}, {1536, 4, 1}, {2048, 4, 1}, {2560, 8, 1}, {512000, 376, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_attention_work work = mla_work(1, 8, cases[i].context);
        work.splits = 0;
        assert_close(k25_mla_call(&work, &params).serial, cases[i].waves * cases[i].context / cases[i].splits, 1e-15);
    }
}

static void gqa_splits_fill_the_sms(void **state)
{
    (void)state;
    struct k25_params params = fixed_params(); /* at least 128 tokens a split */
    /* 100 SMs hold 200 blocks. sequences, kv heads, heads, head dim, context, given splits: tiles, walk */
    static const struct {
        double B, kv, heads, dim, context, splits, tiles, serial;
    } cases[] = {
        {1, 1, 6, 128, 1280, 0, 1, 128},      /* 10 parts of 128 */
        {1, 1, 6, 128, 128000, 0, 1, 640},    /* 1000 parts wanted, 200 fit */
        {8, 8, 64, 128, 9600, 0, 64, 3200},   /* floor(200 / 64) = 3 */
        {64, 8, 64, 128, 1000, 0, 512, 2560}, /* no split, 512 / 200 = 2.56 waves */
        {8, 8, 64, 128, 9600, 4, 64, 3072},   /* 4 given: 256 / 200 = 1.28 waves of 2400 */
        {2, 2, 64, 128, 9600, 0, 8, 384},     /* 32 heads a key-value head are 2 blocks of 16: 8 tiles, 25 splits */
        {8, 8, 64, 256, 9600, 0, 64, 6400},   /* twice the width, twice the walk */
        {8, 8, 64, 64, 9600, 0, 64, 1600},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double L = cases[i].context, D = cases[i].dim;
        struct k25_attention_work work = {.sequences = cases[i].B,
                                          .rows = 1,
                                          .context = L,
                                          .heads = cases[i].heads,
                                          .kv_heads = cases[i].kv,
                                          .key_dim = D,
                                          .value_dim = D,
                                          .cache_bytes = 512,
                                          .splits = cases[i].splits,
                                          .sms = 100};
        struct k25_kernel_call call = k25_gqa_call(&work, &params);
        assert_close(call.items, cases[i].tiles, 1e-15);
        assert_close(call.serial, cases[i].serial, 1e-14);
        assert_close(call.bytes, cases[i].B * L * 512, 1e-15);
        assert_close(call.flops, 2 * cases[i].tiles * 16 * L * 2 * D, 1e-15);
        assert_true(call.launches == 1 && call.batched == 0);
    }
}

/* One more token of context never makes attention cheaper. */
static void gqa_grows_with_the_context(void **state)
{
    (void)state;
    struct k25_params params = fixed_params();
    struct k25_gpu gpu = round_gpu();
    double before = 0;
    for (int context = 1; context <= 4096; context++) {
        struct k25_attention_work work = {.sequences = 1,
                                          .rows = 1,
                                          .context = context,
                                          .heads = 8,
                                          .kv_heads = 1,
                                          .key_dim = 128,
                                          .value_dim = 128,
                                          .cache_bytes = 512,
                                          .sms = 188};
        struct k25_kernel_call call = k25_gqa_call(&work, &params);
        double time = k25_kernel_cost(&call, &gpu, &params).time;
        if (time < before * (1 - 1e-9))
            fail_msg("%d tokens take %.3f us, one less took %.3f", context, time * 1e6, before * 1e6);
        before = time;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floor_and_norm_by_hand),
        cmocka_unit_test(scale_multiplies_every_term),
        cmocka_unit_test(norm_four_agrees_with_the_general_one),
        cmocka_unit_test(nothing_costs_its_floor),
        cmocka_unit_test(bound_is_the_largest_term),
        cmocka_unit_test(every_class_has_its_parameters),
        cmocka_unit_test(missing_tensor_cores_compute_wider),
        cmocka_unit_test(products_pad_rows_and_columns_to_64),
        cmocka_unit_test(batched_products_by_hand),
        cmocka_unit_test(marlin_chooses_its_block),
        cmocka_unit_test(experts_by_hand),
        cmocka_unit_test(experts_at_the_edges),
        cmocka_unit_test(mla_runs_in_waves),
        cmocka_unit_test(mla_reads_the_cache_once_a_head_block),
        cmocka_unit_test(mla_verifies_in_blocks_or_apart),
        cmocka_unit_test(gqa_verifies_in_blocks_or_apart),
        cmocka_unit_test(indexer_by_hand),
        cmocka_unit_test(linear_by_hand),
        cmocka_unit_test(prefill_by_hand),
        cmocka_unit_test(mla_splits_follow_the_context_without_a_graph),
        cmocka_unit_test(gqa_splits_fill_the_sms),
        cmocka_unit_test(gqa_grows_with_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
