/* Tables of kernels: what a row means, which rows are warm, the fit of what the formulas themselves made, and the
 * bars that the formulas must reach on calib/kernels_measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calib/kernels/table.h"
#include "scenarios/library/library.h"
#include "tests/unit/number_check.h"

static struct k25_machine machine; /* 188 SMs, 1597 GB/s, 128 MiB of L2 */
static struct k25_priors priors;
static struct k25_params centres;

static const char GEMM[] = "engine,kernel,dtype,m,n,k,latency_us\n";
static const char MOE[] = "engine,kernel,dtype,tokens,hidden,intermediate,experts,topk,tp,ep,routing,latency_us\n";
static const char MLA[] = "engine,kernel,scope,dtype,kv_dtype,proj_dtype,heads,batch,context,latency_us\n";
static const char ABSORB[] = "engine,kernel,op,dtype,heads,tokens,latency_us\n";
static const char GQA[] = "engine,kernel,dtype,kv_dtype,heads,kv_heads,head_dim,window,batch,context,latency_us\n";
static const char COLLECTIVE[] = "engine,backend,mode,op,dtype,gpus,bytes,latency_us\n";

static int setup(void **state)
{
    static struct k25_machine_parts parts;
    struct k25_error error = {0};
    (void)state;
    bool ok = k25_library_parts(&(const struct k25_library){K25_SOURCE_DIR}, &parts, NULL, &error) &&
              k25_machine_load(K25_SOURCE_DIR "/hw/machines/rtx-pro-6000-8x-two-socket.yaml", &parts, &machine, NULL,
                               &error) &&
              k25_priors_load(K25_SOURCE_DIR "/hw/params/params.yaml", &priors, NULL, &error);
    memcpy(centres.value, priors.centre, sizeof centres.value);
    if (!ok)
        print_error("%s\n", error.message);
    return ok ? 0 : -1;
}

/* The table of a header and rows; fails the test when it does not read. */
static struct k25_kernel_table *parse(const char *header, const char *rows)
{
    char text[8192];
    struct k25_error error = {0};
    snprintf(text, sizeof text, "%s%s", header, rows);
    struct k25_kernel_table *table = k25_kernel_table_parse(text, strlen(text), "kernels.csv", &machine, &error);
    if (table == NULL)
        fail_msg("%s", error.message);
    return table;
}

static void assert_message(const char *header, const char *rows, const char *expected)
{
    char text[4096];
    struct k25_error error = {0};
    snprintf(text, sizeof text, "%s%s", header, rows);
    assert_null(k25_kernel_table_parse(text, strlen(text), "kernels.csv", &machine, &error));
    assert_string_equal(error.message, expected);
    assert_int_equal(error.status, K25_BAD_INPUT);
}

static double time_of(const struct k25_kernel_row *row)
{
    return k25_kernel_work_time(&row->work, &centres, NULL);
}

/* ---- what a row means ---- */

static void test_gemm(void **state)
{
    (void)state;
    struct k25_kernel_table *table = parse(GEMM, "v1,linear,bfloat16,3,64,128,2.5\n"
                                                 "v1,linear,bfloat16,257,64,128,2.5\n"
                                                 "v1,fp4,nvfp4,1,64,128,6\n"
                                                 "v1,odd,int3,1,64,128,6\n"
                                                 "v1,linear,bfloat16,1,64,128,2.25\n");
    assert_int_equal(table->kind, K25_TABLE_GEMM);
    assert_int_equal(table->families, 3);
    assert_int_equal(table->groups, 3);
    assert_string_equal(table->family[0].name, "v1 linear bfloat16");
    assert_int_equal(table->family[0].rows, 3);
    assert_int_equal(table->family[0].skipped[K25_SKIP_ROWS], 1);
    assert_within(table->family[0].bar, 0.08, 0);
    assert_int_equal(table->family[2].skipped[K25_SKIP_DTYPE], 1);
    assert_within(table->family[1].bar, 0, 0);

    assert_int_equal(table->rows, 3); /* sorted by shape: one row of x first */
    assert_int_equal(table->row[0].line, 6);
    assert_int_equal(table->row[1].line, 2);
    assert_within(table->row[0].latency, 2.25e-6, 1e-18);
    assert_within(table->row[1].traffic, 64 * 128 * 2, 0);
    assert_within(table->row[2].traffic, 64 * 128 * 0.5 + 64 * 128 / 16.0, 0);
    struct k25_kernel_call call = k25_gemm_call(K25_KERNEL_GEMM_BF16, 3, 64, 128, 16384, &centres);
    assert_within(time_of(&table->row[1]), k25_kernel_cost(&call, &machine.gpu, &centres).time, 0);
    k25_kernel_table_free(table);
}

static void test_moe(void **state)
{
    (void)state;
    struct k25_kernel_table *table = parse(MOE, "v1,marlin,int4_wo,2,7168,2048,384,8,8,1,balanced,50\n"
                                                "v1,marlin,int4_wo,2,7168,2048,384,8,8,16,balanced,50\n"
                                                "v1,marlin,int4_wo,2,7168,2048,384,8,8,1,random,50\n"
                                                "v1,marlin,int4_wo,2,7168,2048,384,8,8,1,power_law_1,50\n"
                                                "v1,marlin,int4_wo,2,7168,2048,384,8,8,7,balanced,50\n"
                                                "v1,cutlass,nvfp4,2,2688,1856,128,6,1,1,balanced,50\n");
    assert_int_equal(table->rows, 3);
    assert_int_equal(table->family[0].skipped[K25_SKIP_ROUTING], 2);
    assert_int_equal(table->family[0].skipped[K25_SKIP_SHARD], 1);
    assert_within(table->family[0].bar, 0.10, 0);

    /* 3 x 7168 x 256 weights of 4.5 bit: 3,096,576 bytes an expert; 2 tokens of 8 touch 16. */
    const struct k25_moe_work *work = &table->row[0].work.moe.work;
    assert_within(work->expert_bytes, 3096576, 0);
    assert_within(work->distinct, 16, 0);
    assert_within(work->local, 384, 0);
    assert_within(table->row[0].traffic, 16 * 3096576.0, 0);
    /* 1 of the 16 pairs lands on one of 16 ranks, which holds 24 experts. */
    work = &table->row[1].work.moe.work;
    assert_within(work->pairs, 1, 0);
    assert_within(work->distinct, 1, 0);
    assert_within(work->local, 24, 0);
    assert_within(work->routed, 16, 0);
    /* No gate: two matrices. */
    assert_within(table->row[2].work.moe.work.expert_bytes, 2 * 2688.0 * 1856 * 0.5625, 0);
    k25_kernel_table_free(table);
}

/* Worked by hand. 16 pairs on 4 experts, alpha 2: lo 1, hi 6.4, x = 1 / (1 - 0.84375 u) = 3.821 2.116 1.463 1.118,
 * pairs 7.18 3.97 2.75 2.10, running sum 7.18 11.15 13.90 16: loads 7 4 3 2. */
static void test_power_law(void **state)
{
    (void)state;
    struct k25_expert_load load = k25_power_law_load(8, 4, 2, 1, 2, 4);
    assert_within(load.pairs, 16, 0);
    assert_within(load.distinct, 4, 0);
    assert_within(load.blocks, 2 + 1 + 1 + 1, 0);
    load = k25_power_law_load(8, 4, 2, 2, 2, 4); /* experts 0 and 2 */
    assert_within(load.pairs, 10, 0);
    assert_within(load.distinct, 2, 0);
    assert_within(load.blocks, 3, 0);
    load = k25_power_law_load(8, 4, 2, 4, 2, 4);
    assert_within(load.pairs, 7, 0);

    /* 2 pairs: lo 0.01, hi 2; pairs 1.18 0.40 0.24 0.17, the first cut to the 1 token: loads 1 1 0 0. */
    load = k25_power_law_load(1, 4, 2, 1, 2, 8);
    assert_within(load.pairs, 2, 0);
    assert_within(load.distinct, 2, 0);
    load = k25_power_law_load(1, 4, 2, 2, 2, 8);
    assert_within(load.pairs, 1, 0);
    assert_within(load.distinct, 1, 0);

    load = k25_balanced_load(1, 384, 8, 16); /* half a pair a rank: the slowest has one */
    assert_within(load.pairs, 0.5, 0);
    assert_within(load.distinct, 1, 0);
    assert_within(k25_balanced_load(64, 384, 8, 1).distinct, 384, 0);
}

static void test_mla(void **state)
{
    (void)state;
    struct k25_kernel_table *table = parse(MLA, "v1,TRITON,module,bfloat16,bfloat16,bfloat16,8,2,100,90\n"
                                                "v1,TRITON,module,bfloat16,fp8,nvfp4,8,2,100,90\n"
                                                "s1,triton,kernel,bfloat16,bfloat16,,8,2,100,20\n"
                                                "s1,triton,layer,bfloat16,bfloat16,,8,2,100,20\n");
    assert_int_equal(table->rows, 3);
    assert_string_equal(table->family[0].name, "v1 TRITON module bfloat16 kv bfloat16 projections bfloat16");
    assert_string_equal(table->family[2].name, "s1 triton kernel bfloat16 kv bfloat16");
    assert_int_equal(table->family[3].skipped[K25_SKIP_SCOPE], 1);
    assert_within(table->family[0].floor, 18e-6, 0);

    /* (2112 x 7168 + 8 x 192 x 1536 + 8 x 128 x 7168 + 8 x 256 x 512) x 2 bytes, 200 tokens of 576 x 2 bytes. */
    assert_within(k25_mla_module_weights(8, 2), 51773440, 0);
    assert_within(table->row[0].traffic, 51773440 + 230400, 0);
    assert_within(table->row[1].traffic, 24838144 * 0.5625 + 2097152 + 115200, 0);
    assert_within(table->row[2].traffic, 230400, 0);

    /* The module costs its attention, five products and five small kernels: at least their floors more. */
    double more = time_of(&table->row[0]) - time_of(&table->row[2]);
    const double *p = centres.value;
    double floors = 3 * p[K25_GEMM_T0] + 2 * p[K25_BMM_T0] + 5 * p[K25_ELEMENT_T0];
    double traffic = 51773440 / (1597e9 * p[K25_BANDWIDTH] * p[K25_GEMM_MEM]);
    assert_true(more > floors + traffic);
    assert_true(more < floors + 1.5 * traffic);
    k25_kernel_table_free(table);
}

static void test_absorb_and_gqa(void **state)
{
    (void)state;
    struct k25_kernel_table *table = parse(ABSORB, "s1,bmm,mla_gen_pre,bfloat16,8,4,5\n"
                                                   "s1,bmm,mla_gen_post,bfloat16,8,2048,5\n"
                                                   "s1,bmm,mla_gen_mid,bfloat16,8,4,5\n"
                                                   "s1,bmm8,mla_gen_pre,fp8,8,4,5\n");
    assert_int_equal(table->rows, 1);
    assert_int_equal(table->family[0].skipped[K25_SKIP_ROWS], 1);
    assert_int_equal(table->family[0].skipped[K25_SKIP_OP], 1);
    assert_int_equal(table->family[1].skipped[K25_SKIP_DTYPE], 1);
    struct k25_kernel_call call = k25_bmm_call(8, 4, 512, 128, 8 * 512 * 128 * 2);
    assert_within(time_of(&table->row[0]), k25_kernel_cost(&call, &machine.gpu, &centres).time, 0);
    k25_kernel_table_free(table);

    table = parse(GQA, "v1,fidecode,bfloat16,fp8,48,8,128,0,2,4096,20\n"
                       "v1,fidecode,bfloat16,fp8,48,8,128,1024,2,4096,20\n"
                       "v1,fidecode,bfloat16,fp8,4,8,128,0,2,4096,20\n"
                       "v1,vllm_flash_attn_fa2,bfloat16,bfloat16,48,8,128,1024,2,4096,20\n"
                       "v1,fidecode,bfloat16,int4,48,8,128,0,2,4096,20\n");
    assert_int_equal(table->rows, 3);
    assert_int_equal(table->family[0].skipped[K25_SKIP_OP], 1);
    assert_within(table->row[0].traffic, 2 * 4096 * 2 * 8 * 128.0, 0);
    assert_within(table->row[1].traffic, 2 * 1024 * 2 * 8 * 128.0, 0); /* only the window is read */
    assert_within(table->row[1].work.gqa.kv_heads, 8, 0);
    assert_within(table->row[2].work.gqa.kv_heads, 48, 0); /* a tile each, not packed */
    assert_within(table->row[2].work.gqa.splits, 1, 0);
    assert_within(table->row[2].traffic, 2 * 1024 * 2 * 8 * 128 * 2.0, 0);
    k25_kernel_table_free(table);
}

static void test_collective(void **state)
{
    (void)state;
    struct k25_kernel_table *table = parse(COLLECTIVE, "n1,nccl,,all_reduce,half,4,16384,14\n"
                                                       "n1,nccl,,all_reduce,half,4,1048576,86\n"
                                                       "n1,nccl,,all_gather,half,4,16384,10\n"
                                                       "n1,nccl,,alltoall,half,4,16384,10\n"
                                                       "n1,nccl,,all_reduce,int8,4,16384,14\n"
                                                       "n1,nccl,,all_reduce,half,16,16384,14\n"
                                                       "v1,vLLM_custom_graph,graph,all_reduce,bfloat16,2,16384,5\n"
                                                       "v1,vLLM_custom_graph,graph,all_reduce,half,4,16384,15\n"
                                                       "v1,vLLM_custom_eager,eager,all_reduce,bfloat16,2,16384,9\n"
                                                       "m1,mscclpp,,all_reduce,half,2,16384,9\n"
                                                       "n1,nccl,,all_reduce,half,4,512,14\n");
    static const enum k25_skip reason[] = {K25_SKIP_OP,       K25_SKIP_DTYPE, K25_SKIP_GPUS,
                                           K25_SKIP_FALLBACK, K25_SKIP_EAGER, K25_SKIP_BACKEND};
    for (size_t i = 0; i < sizeof reason / sizeof *reason; i++) {
        size_t count = 0;
        for (int f = 0; f < table->families; f++)
            count += table->family[f].skipped[reason[i]];
        assert_int_equal(count, 1);
    }
    assert_int_equal(table->rows, 5);
    assert_string_equal(table->family[0].name, "n1 nccl all_reduce half 4 GPUs 1 KB-1 MB");
    assert_within(table->family[0].bar, 0.10, 0);
    assert_within(table->family[table->families - 1].bar, 0, 0); /* below 1 KB */
    assert_int_equal(table->family[table->families - 1].group, table->family[0].group);

    struct k25_group group;
    struct k25_error error;
    assert_true(k25_machine_group(&machine, 4, &group, &error));
    assert_within(time_of(&table->row[0]), k25_allreduce_time(K25_BACKEND_NCCL_LL, 16384, &group, &centres), 0);
    assert_within(time_of(&table->row[1]), k25_allreduce_time(K25_BACKEND_NCCL_SIMPLE, 1048576, &group, &centres), 0);
    assert_within(time_of(&table->row[2]), k25_allgather_time(K25_BACKEND_NCCL_LL, 4096, &group, &centres), 0);
    assert_true(k25_machine_group(&machine, 2, &group, &error));
    assert_within(time_of(&table->row[3]), k25_allreduce_time(K25_BACKEND_ONESHOT, 16384, &group, &centres), 0);
    k25_kernel_table_free(table);
}

static void test_messages(void **state)
{
    (void)state;
    assert_message(GEMM,
                   "v,l,bfloat16,1,2,3,4\nv,l,bfloat16,1,2,3,4\nv,l,bfloat16,1,2,3,4\nv,l,bfloat16,1,2,3,4\n"
                   "\nv,l,bfloat16,1,2,3,abc\n",
                   "kernels.csv:7: latency_us: 'abc' is not a number");
    assert_message(GEMM, "v,l,bfloat16,1,2,3,0\n", "kernels.csv:2: latency_us: 0, expected more than 0");
    assert_message(GEMM, "v,l,bfloat16,1,2,3,nan\n", "kernels.csv:2: latency_us: 'nan' is not a number");
    assert_message(GEMM, "v,l,bfloat16,1,,3,4\n", "kernels.csv:2: n: '' is not a number");
    assert_message(GEMM, "v,l,bfloat16,1,2.5,3,4\n", "kernels.csv:2: n: 2.5, expected a whole number from 1 to 1e12");
    assert_message(GQA, "v,l,bfloat16,fp8,8,8,128,-1,1,1,4\n",
                   "kernels.csv:2: window: -1, expected a whole number from 0 to 1e12");
    assert_message("engine,kernel,dtype,m,n,k\n", "v,l,bfloat16,1,2,3\n",
                   "kernels.csv:1: not a table of kernels: the nearest kind, gemm, needs a column 'latency_us'");

    struct k25_error error = {0};
    assert_null(k25_kernel_table_read("/nowhere/kernels.csv", &machine, &error));
    assert_int_equal(error.status, K25_BAD_INPUT);
}

/* ---- warm rows ---- */

static void assert_warm(const char *rows, const unsigned char *use, size_t count, double rate)
{
    struct k25_error error = {0};
    struct k25_kernel_scores scores;
    struct k25_priors own = priors;
    struct k25_kernel_table *table = parse(GEMM, rows);
    own.centre[K25_BANDWIDTH] = 1600.256 / 1597;
    assert_int_equal(table->rows, count);
    assert_true(k25_kernel_table_score(table, &own, &scores, &error));
    assert_within(scores.family[0].floor, 2e-6, 1e-18);
    assert_within(scores.family[0].cold_rate / rate, 1, 1e-12);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(scores.use[i], use[i]);
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(table);
}

static void test_warm(void **state)
{
    (void)state;
    /* No large row: DRAM gives 1597 GB/s x memory.bandwidth = 1600.256. 2 MiB after 2 us: cold is 2 + 1.3105, warm
     * below 2.9795. */
    static const unsigned char use[] = {K25_ROW_FITTED, K25_ROW_WARM, K25_ROW_SCORED};
    assert_warm("v,l,bfloat16,1,1,1,2\nv,l,bfloat16,2,1024,1024,2.97\nv,l,bfloat16,3,1024,1024,2.99\n", use, 3,
                1600.256e9);

    /* 256 MiB in 200 us at one row of x is the rate, the same at 65 rows is not looked at. 2 MiB: cold is
     * 2 + 1.5625, warm below 3.20625. A row of exactly 2 L2 is never warm. */
    static const unsigned char more[] = {K25_ROW_FITTED, K25_ROW_SCORED, K25_ROW_WARM, K25_ROW_FITTED, K25_ROW_SCORED};
    assert_warm("v,l,bfloat16,1,1,1,2\nv,l,bfloat16,1,16384,8192,200\nv,l,bfloat16,2,1024,1024,3.2\n"
                "v,l,bfloat16,3,1024,1024,3.21\nv,l,bfloat16,65,16384,8192,20\n",
                more, 5, 268435456 / 200e-6);
}

/* ---- closed loop ---- */

/* The table with the latencies that `truth` gives, fitted with wide priors: the parameters must come back. */
static void close_loop(char *text, const struct k25_params *truth, const int *ids, size_t count)
{
    static const double WIDE = 4;
    struct k25_error error = {0};
    struct k25_kernel_scores scores;
    struct k25_priors wide = priors;
    struct k25_kernel_table *table = k25_kernel_table_parse(text, strlen(text), "made.csv", &machine, &error);
    if (table == NULL)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < table->rows; i++)
        table->row[i].latency = k25_kernel_work_time(&table->row[i].work, truth, NULL);
    for (size_t i = 0; i < count; i++)
        wide.spread[ids[i]] = WIDE;
    if (!k25_kernel_table_score(table, &wide, &scores, &error))
        fail_msg("%s", error.message);
    for (int f = 0; f < table->families; f++) {
        const struct k25_kernel_score *score = &scores.family[f];
        assert_true(score->scored > 0 && score->median < 0.01 && !score->missed);
        for (size_t i = 0; i < count; i++) {
            double off = score->params.value[ids[i]] / truth->value[ids[i]] - 1;
            if (fabs(off) > 0.01)
                fail_msg("%s is off by %.2f %%", k25_param_names[ids[i]], 100 * off);
        }
    }
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(table);
}

static void test_closed_loop_gemm(void **state)
{
    static const int ids[] = {K25_GEMM_T0, K25_GEMM_MEM, K25_GEMM_MAC, K25_GEMM_K};
    static const int m[] = {1, 16, 64, 128, 256}, nk[] = {64, 512, 1536, 4096, 7168, 16384};
    static char text[20000];
    (void)state;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", GEMM);
    for (int i = 0; i < 5 * 6 * 6; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "v,l,bfloat16,%d,%d,%d,1\n", m[i / 36], nk[i / 6 % 6],
                                 nk[i % 6]);
    struct k25_params truth = centres;
    truth.value[K25_GEMM_T0] *= 1.2;
    truth.value[K25_GEMM_MEM] *= 0.9;
    truth.value[K25_GEMM_MAC] *= 0.8;
    truth.value[K25_GEMM_K] *= 1.3;
    close_loop(text, &truth, ids, 4);
}

static void test_closed_loop_collectives(void **state)
{
    static const int ring[] = {K25_NCCL_BASE,        K25_NCCL_HOP,        K25_NCCL_LL,  K25_NCCL_LL_SCALING,
                               K25_NCCL_SIMPLE_BASE, K25_NCCL_SIMPLE_HOP, K25_NCCL_ETA, K25_NCCL_RING};
    static char text[20000];
    (void)state;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", COLLECTIVE);
    for (int n = 2; n <= 8; n *= 2) {
        for (int bits = 8; bits < 28; bits++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "n,nccl,,all_reduce,half,%d,%d,1\n"
                                     "n,nccl,,all_reduce,half,%d,%d,1\n",
                                     n, 1 << bits, n, 3 << bits);
    }
    struct k25_params truth = centres;
    for (int i = 0; i < 8; i++)
        truth.value[ring[i]] *= i % 2 ? 1.1 : 0.9;
    close_loop(text, &truth, ring, 8);

    static const int oneshot[] = {K25_ONESHOT_ETA};
    used = (size_t)snprintf(text, sizeof text, "%s", COLLECTIVE);
    for (int bits = 10; bits < 20; bits++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "v,vLLM_custom_graph,graph,all_reduce,bfloat16,2,%d,1\n", 1 << bits);
    truth.value[K25_ONESHOT_ETA] *= 0.8;
    close_loop(text, &truth, oneshot, 1);
}

static void test_nothing_to_fit(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_kernel_scores scores;
    struct k25_kernel_table *table = parse(GEMM, "");
    assert_int_equal(table->families, 0);
    assert_true(k25_kernel_table_score(table, &priors, &scores, &error));
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(table);

    table = parse(GEMM, "v,l,int3,1,1,1,2\n");
    assert_true(k25_kernel_table_score(table, &priors, &scores, &error));
    assert_int_equal(scores.family[0].fitted + scores.family[0].scored + scores.family[0].warm, 0);
    assert_within(scores.family[0].median, 0, 0);
    assert_within(scores.family[0].floor, 0, 0);
    assert_false(scores.family[0].missed);
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(table);
}

/* ---- the measured tables ---- */

struct measured_table {
    const char *name;
    int bars;           /* families that have one */
    const char *part;   /* families with this in their name, */
    int tabulated;      /* so many, */
    double hidden_half; /* come within this by a residual table of the shown half */
};

static void check_measured(const struct k25_kernel_family *family, const struct k25_kernel_score *score)
{
    size_t skipped = 0;
    for (int reason = 0; reason < K25_SKIPS; reason++)
        skipped += family->skipped[reason];
    assert_int_equal(family->rows, skipped + score->warm + score->fitted + score->scored);
    if (family->bar == 0)
        return;
    print_message("%s: %zu rows, %zu warm, %zu scored, median %.2f %% (bar %.0f %%)\n", family->name, family->rows,
                  score->warm, score->scored, 100 * score->median, 100 * family->bar);
    assert_true(score->scored > 0);
    assert_false(score->missed);
}

/* Every family of the table that has a bar must reach it; the formula with a residual table on top is better. */
static void test_measured(void **state)
{
    const struct measured_table *want = *state;
    char path[512];
    snprintf(path, sizeof path, K25_SOURCE_DIR "/calib/kernels_measured/%s.csv.gz", want->name);
    struct k25_error error = {0};
    struct k25_kernel_scores scores;
    struct k25_kernel_table *table = k25_kernel_table_read(path, &machine, &error);
    if (table == NULL || !k25_kernel_table_score(table, &priors, &scores, &error))
        fail_msg("%s", error.message);
    int bars = 0, tabulated = 0;
    for (int i = 0; i < table->families; i++) {
        const struct k25_kernel_score *score = &scores.family[i];
        check_measured(&table->family[i], score);
        bars += table->family[i].bar != 0;
        if (want->part == NULL || strstr(table->family[i].name, want->part) == NULL || !score->tabulated)
            continue;
        print_message("%s: formula %.2f %%, with its table %.2f %%\n", table->family[i].name, 100 * score->median,
                      100 * score->residual_median);
        assert_true(score->residual_median <= want->hidden_half);
        assert_true(score->residual_mean < score->mean && score->residual_p90 < score->p90);
        tabulated++;
    }
    assert_int_equal(bars, want->bars);
    assert_int_equal(tabulated, want->tabulated);
    k25_kernel_scores_free(&scores);
    k25_kernel_table_free(table);
}

int main(void)
{
    static struct measured_table measured[] = {{"gemm", 1, " bfloat16", 1, 0.04},    {"moe", 2, "int4_wo", 2, 0.05},
                                               {"mla_decode", 4, "module", 4, 0.05}, {"mla_absorb", 0, NULL, 0, 0},
                                               {"attention_decode", 0, NULL, 0, 0},  {"collective", 5, NULL, 0, 0}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_moe),
        cmocka_unit_test(test_power_law),
        cmocka_unit_test(test_mla),
        cmocka_unit_test(test_absorb_and_gqa),
        cmocka_unit_test(test_collective),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_closed_loop_gemm),
        cmocka_unit_test(test_closed_loop_collectives),
        cmocka_unit_test(test_nothing_to_fit),
        {"test_measured gemm", test_measured, NULL, NULL, &measured[0]},
        {"test_measured moe", test_measured, NULL, NULL, &measured[1]},
        {"test_measured mla_decode", test_measured, NULL, NULL, &measured[2]},
        {"test_measured mla_absorb", test_measured, NULL, NULL, &measured[3]},
        {"test_measured attention_decode", test_measured, NULL, NULL, &measured[4]},
        {"test_measured collective", test_measured, NULL, NULL, &measured[5]},
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
