/* Calls of attention kernels and the price of exchanges, by hand. */
#include "tests/unit/question_check.h"

static struct k25_attention_work mla_work(void)
{
    return (struct k25_attention_work){.sequences = 3,
                                       .rows = 4,
                                       .context = 6400,
                                       .heads = 8,
                                       .key_dim = 576,
                                       .value_dim = 512,
                                       .cache_bytes = 1152,
                                       .splits = 64,
                                       .sms = 100};
}

static void rows_of_a_sequence_share_a_walk_of_the_latents(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_attention_work work = mla_work();
    struct k25_kernel_call call = k25_mla_call(&work, &params);
    /* 8 heads x 4 rows are 2 blocks of 16 for each of 3 sequences; 6 x 64 thread blocks are 4 waves on 100 SMs,
     * each over 6400 / 64 tokens. */
    assert_true(call.class == K25_KERNEL_MLA && call.launches == 1 && call.batched == 1 && call.items == 6);
    assert_true(call.bytes == 44236800 && call.flops == 1336934400 && call.serial == 400);
    assert_true(call.shape[0] == 3 && call.shape[1] == 6400 && call.shape[2] == 8);
    work.sequences = 1;
    assert_true(k25_mla_call(&work, &params).batched == 0); /* one walk, however many rows */
}

static void rows_apart_walk_the_latents_one_by_one(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_attention_work work = mla_work();
    work.separate_rows = true;
    struct k25_kernel_call call = k25_mla_call(&work, &params);
    /* 12 walks of one block: 768 thread blocks are 8 waves */
    assert_true(call.batched == 1 && call.items == 12 && call.bytes == 88473600 && call.flops == 2673868800.0);
    assert_true(call.serial == 800 && call.shape[0] == 12);
    work.sequences = 1;
    assert_true(k25_mla_call(&work, &params).batched == 1); /* 4 walks */
}

static void heads_are_padded_to_blocks_of_16(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_attention_work work = mla_work();
    static const struct {
        double heads, rows, blocks;
    } cases[] = {{8, 1, 1}, {16, 1, 1}, {17, 1, 2}, {64, 1, 4}, {8, 2, 1}, {8, 3, 2}, {64, 4, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        work.heads = cases[i].heads;
        work.rows = cases[i].rows;
        struct k25_kernel_call call = k25_mla_call(&work, &params);
        assert_true(call.items == 3 * cases[i].blocks && call.bytes == 3 * cases[i].blocks * 6400 * 1152);
        assert_true(call.flops == 3 * cases[i].blocks * 2 * 16 * 6400 * 1088);
    }
}

static void splits_follow_the_context_without_a_graph(void **state)
{
    (void)state;
    struct k25_params params = round_params(); /* 512 tokens a split */
    struct k25_attention_work work = mla_work();
    work.splits = 0;
    /* 12 whole splits are 16 parts: 96 thread blocks, one wave of 400 tokens. A context below one split is
     * walked whole. 1953 are 2048, cut to twice the SMs: 1200 blocks are 12 waves of 5000. */
    static const struct {
        double context, serial;
    } cases[] = {{6400, 400}, {300, 300}, {1000000, 60000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        work.context = cases[i].context;
        assert_true(k25_mla_call(&work, &params).serial == cases[i].serial);
    }
}

/* One block of query rows, so that the parts show. A wave has 100 thread blocks. */
static void splits_of_one_block(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_attention_work work = mla_work();
    work.sequences = work.rows = 1;
    work.splits = 0;
    /* 511 tokens are one part, 1024 two, 1536 not three but four. 51200 are 100, rounded to 128: two waves of 400.
     * 100000 are 195, rounded to 256 and cut to twice the SMs: two waves of 500, where 256 would be three of 390. */
    static const struct {
        double context, serial;
    } cases[] = {{511, 511}, {1024, 512}, {1536, 384}, {51200, 800}, {100000, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        work.context = cases[i].context;
        assert_true(k25_mla_call(&work, &params).serial == cases[i].serial);
    }
    work.splits = 1; /* as given, though the rule would say 16 */
    work.context = 6400;
    assert_true(k25_mla_call(&work, &params).serial == 6400);
    work.rows = 4;
    work.separate_rows = true;
    work.heads = 17; /* each of 4 walks has two blocks */
    assert_true(k25_mla_call(&work, &params).items == 8);
}

static void grouped_queries(void **state)
{
    (void)state;
    struct k25_params params = round_params(); /* 128 tokens a split */
    struct k25_attention_work work = {.sequences = 2,
                                      .rows = 3,
                                      .context = 1000,
                                      .heads = 16,
                                      .kv_heads = 1,
                                      .key_dim = 128,
                                      .value_dim = 128,
                                      .cache_bytes = 512,
                                      .sms = 100};
    /* 48 queries of a key head are 3 tiles for each of 2 sequences; 200 slots would take 33 splits, the context
     * has 8 of 128 tokens. */
    struct k25_kernel_call call = k25_gqa_call(&work, &params);
    assert_true(call.class == K25_KERNEL_GQA && call.launches == 1 && call.items == 6);
    assert_true(call.bytes == 1024000 && call.flops == 49152000 && call.serial == 128);
    work.separate_rows = true; /* a tile of 16 queries for each of 6 walks */
    call = k25_gqa_call(&work, &params);
    assert_true(call.items == 6 && call.bytes == 3072000 && call.flops == 49152000 && call.serial == 128);
}

static void many_sequences_leave_no_splits(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_attention_work work = {.sequences = 128,
                                      .rows = 1,
                                      .context = 1000,
                                      .heads = 16,
                                      .kv_heads = 2,
                                      .key_dim = 256,
                                      .value_dim = 256,
                                      .cache_bytes = 2048,
                                      .sms = 100};
    /* 256 tiles on 200 slots walk all 1000 tokens of heads twice as wide: 1.28 x 1000 x 2 */
    struct k25_kernel_call call = k25_gqa_call(&work, &params);
    assert_true(call.items == 256 && call.bytes == 128 * 1000 * 2048.0);
    assert_close(call.serial, 2560, 1e-15);
    /* A context hardly longer than the smallest split: one split of 150, not two of 128. */
    work.context = 150;
    assert_close(k25_gqa_call(&work, &params).serial, 1.28 * 150 * 2, 1e-15);
    /* One split as given, though 100 slots would take 8. */
    work.sequences = 1;
    work.context = 1000;
    work.splits = 1;
    assert_close(k25_gqa_call(&work, &params).serial, 1000 * 2, 1e-15);
}

static void indexer_scores(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_gpu gpu = round_gpu();
    struct k25_attention_work work = {
        .sequences = 2, .rows = 3, .context = 5000, .heads = 32, .key_dim = 128, .cache_bytes = 132, .sms = 100};
    struct k25_kernel_call call = k25_indexer_call(&work);
    /* 2 x 5000 x 132 read, 6 x 5000 FP32 scores written; 2 x 6 x 32 x 128 x 5000 */
    assert_true(call.class == K25_KERNEL_INDEXER && call.launches == 1 && call.serial == 0 && call.items == 0);
    assert_true(call.bytes == 1440000 && call.flops == 245760000);
    struct k25_kernel_cost cost = k25_kernel_cost(&call, &gpu, &params);
    assert_close(cost.floor, 10e-6, 1e-12);
    assert_close(cost.memory, 1440000 / 540e9, 1e-12);           /* 1 TB/s x 0.9 x 0.6 */
    assert_close(cost.compute, 245760000 / (0.4 * 1e15), 1e-12); /* of the FP8 peak */
}

static void a_step_of_the_delta_rule(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct k25_gpu gpu = round_gpu();
    /* 8 x 128 x 64 = 65536 elements of 4 B for 3 sequences: read once, written after each of 2 rows */
    struct k25_kernel_call call = k25_linear_call(3, 2, 8, 128, 64, 4);
    assert_true(call.class == K25_KERNEL_LINEAR && call.launches == 1);
    assert_true(call.bytes == 3 * 65536 * 4 * 3 && call.flops == 2 * 3 * 3 * 2 * 65536);
    struct k25_kernel_cost cost = k25_kernel_cost(&call, &gpu, &params);
    assert_close(cost.floor, 7e-6, 1e-12);
    assert_close(cost.memory, 2359296 / 675e9, 1e-12); /* 1 TB/s x 0.9 x 0.75 */
}

static void prompt_tokens_see_half_of_their_chunk(void **state)
{
    (void)state;
    /* 100 tokens after 1000: each sees 1050 in the mean, 8 heads of 192 and 128; the cache of 1100 is read once */
    struct k25_kernel_call call = k25_prefill_call(K25_KERNEL_MLA, 100, 1000, INFINITY, 8, 192, 128, 1152);
    assert_true(call.class == K25_KERNEL_MLA && call.launches == 1 && call.batched == 0);
    assert_true(call.items == 0 && call.serial == 0);
    assert_true(call.flops == 537600000 && call.bytes == 1267200);
}

static void exchanges_cost_one_hop_and_their_volume(void **state)
{
    (void)state;
    struct k25_params params = round_params(); /* Simple: 8 + 3 us; 0.8 of the bandwidth */
    struct k25_group group = {.n = 8,
                              .ring_latency = 0.5e-6,
                              .ring_bandwidth = 50e9,
                              .peer_latency = 1e-6,
                              .peer_bandwidth = 100e9,
                              .lone_bandwidth = 60e9};
    assert_close(k25_alltoall_time(8e6, &group, &params), 112e-6, 1e-12); /* 11 + 1 + 8 MB at 80 GB/s */
    assert_close(k25_send_time(8e6, &group, &params), 211.5e-6, 1e-12);   /* 11 + 0.5 + 8 MB at 40 GB/s */
    group.n = 1;
    assert_true(k25_alltoall_time(8e6, &group, &params) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_sequence_share_a_walk_of_the_latents),
        cmocka_unit_test(rows_apart_walk_the_latents_one_by_one),
        cmocka_unit_test(heads_are_padded_to_blocks_of_16),
        cmocka_unit_test(splits_follow_the_context_without_a_graph),
        cmocka_unit_test(splits_of_one_block),
        cmocka_unit_test(grouped_queries),
        cmocka_unit_test(many_sequences_leave_no_splits),
        cmocka_unit_test(indexer_scores),
        cmocka_unit_test(a_step_of_the_delta_rule),
        cmocka_unit_test(prompt_tokens_see_half_of_their_chunk),
        cmocka_unit_test(exchanges_cost_one_hop_and_their_volume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
