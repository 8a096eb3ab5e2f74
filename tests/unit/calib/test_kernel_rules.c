/* Kernel classes: the names that catch naive rules, a user's file in front, every fault. */
#include "calib/rules/kernel_rules.h"
#include "tests/unit/evidence_check.h"

static struct k25_kernel_rules *house;

static int load_house(void **state)
{
    struct k25_error error = {0};
    (void)state;
    house = k25_kernel_rules_load(K25_SOURCE_DIR "/calib/rules/kernels.yaml", NULL, &error);
    if (house == NULL)
        print_error("%s\n", error.message);
    return house == NULL;
}

static int free_house(void **state)
{
    (void)state;
    k25_kernel_rules_free(house);
    return 0;
}

static const char *class_of(const struct k25_kernel_rules *rules, const char *name)
{
    return k25_kernel_rules_describe(rules, k25_kernel_rules_class(rules, name))->name;
}

/* A word of another class stands in each of these names. */
static const struct {
    const char *name, *class;
} traps[] = {
    {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int> > >(x)", "attention"},
    {"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaKernel<int> >(x)", "mla"},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<GroupProblemShape<int> > >(x)", "moe_gemm"},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(x)", "dense_gemm"},
    {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(int)", "kv_write"},
    {"void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>(int)", "kv_write"},
    {"void flashinfer::RopeQuantizeAppendPagedKVCacheKernel<int>(int)", "kv_write"},
    {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "allreduce"},
    {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(int)", "allreduce"},
    {"void tensorrt_llm::rmsNormLamport<8>(int)", "allreduce"},
    {"void one_shot_all_reduce_norm_kernel<8>(int)", "allreduce"},
    {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", "allreduce"},
    {"void <unnamed>::multimem_all_reduce_kernel<c10::BFloat16, (int)16>(T1 *)", "allreduce"},
    {"ipc_topo_rsag8_push_param_kernel", "allreduce"},
    {"push_oneshot_param_kernel", "allreduce"},
    {"void marlin_moe_wna16::Marlin<1125899906909960l, 256>(int4 const*)", "moe_gemm"},
    {"void marlin::Marlin<1125899906909960l, 256>(int4 const*)", "dense_gemm"},
    {"gptq_marlin_repack_kernel<4>", "other"},
    {"bmm_E4m3_E4m3E4m3_Fp32_t128x32x128u2_s6_et64x32_m64x32x32", "moe_gemm"},
    {"nvjet_tst_64x8_64x16_2x1_v_bz_NNT", "dense_gemm"},
    {"nvjet_sm120_qqtst_mma_64x32x128", "dense_gemm"},
    {"_fwd_grouped_kernel_stage1", "mla"},
    {"_fwd_kernel_stage2", "mla"},
    {"fmhaSm100fKernel_QkvBfloat16OBfloat16HQk576HV512HVPerCta128", "mla"},
    {"fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausal", "attention"},
    {"triton_red_fused__to_copy_add_addmm_as_strided_fmha_v3_fwd_mean_mul_neg_pow_rsqrt_7", "norm"},
    {"triton_poi_fused_constant_pad_nd_moe_forward_0", "elementwise"},
    {"void fbgemm_gpu::permute_2D_data_kernel<false>(int)", "other"},
    {"void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>(float*)", "sampling"},
    {"void flashinfer::sampling::RadixTopKMaskLogitsKernel_MultiCTA<1>(int)", "sampling"},
    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, int> "
     ">(x)",
     "sampling"},
    {"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<int> > "
     ">(x)",
     "reduce"},
    {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(int)::x>(int)", "copy"},
    {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)", "elementwise"},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<UnaryOpFunctor<long>, "
     "at::native::Copy<long, "
     "long> >(int)",
     "copy"},
    {"void vllm::topKPerRowDecode<1024>(float const*)", "sparse_index"},
    {"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)", "sampling"},
    {"void vllm::moe::topkGatingSoftmax<8, 256>(float const*)", "routing"},
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "allreduce"},
    {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "allgather"},
    {"ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)", "comm_other"},
    {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "alltoall"},
    {"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16", "allreduce"},
    {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "allreduce"},
    {"std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
     "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
     "norm"},
    {"std::enable_if<T2>(int)0&&vllm::_typeConvert<T1>::exists, void>::type "
     "vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *)",
     "norm"},
    {"_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16EEvPS3_i.kd", "activation"},
    {"Memcpy DtoD (Device -> Device)", "copy"},
    {"Memset (Device)", "memset"},
    {"void somebody::new_thing<int>(int)", "other"},
    {"", "other"},
};

static void collisions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++) {
        const char *class = class_of(house, traps[i].name);
        if (strcmp(class, traps[i].class) != 0)
            fail_msg("%s: %s, expected %s", traps[i].name, class, traps[i].class);
    }
}

static void base_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"void Vllm::A<int>(x)", "vllm::a"},
        {"void (anonymous namespace)::b<int>(x)", "{anon}::b"},
        {"<unnamed>::b(x)", "{anon}::b"},
        {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(x)", "internal::gemvx::kernel"},
        {"void std::enable_if<(8>(0)), void>::type c<int>", "c"},
        {"std::enable_if<cut...", "std::enable_if"},
        {"_ZN1aILi3EE(x)", "_zn1aili3ee(x)"},
        {"Memcpy HtoD (Pageable -> Device)", "memcpy htod "},
        {"", ""},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(k25_kernel_base_name(cases[i][0], out, sizeof out), cases[i][1]);
    assert_string_equal(k25_kernel_base_name("void (anonymous namespace)::abc", out, 4), "");
    assert_string_equal(k25_kernel_base_name("abcdef", out, 4), "abc");
}

static void long_names(void **state)
{
    (void)state;
    char *name = malloc(100000);
    assert_non_null(name);
    memset(name, 'x', 99999);
    name[99999] = '\0';
    memcpy(name, "void my_rmsnorm<", 16);
    assert_string_equal(class_of(house, name), "norm");
    free(name);
}

static void classes(void **state)
{
    (void)state;
    assert_int_equal(k25_kernel_rules_find(house, "other"), 0);
    assert_int_equal(k25_kernel_rules_find(house, "nothing"), -1);
    static const char *const waits[] = {"allreduce", "allgather", "reducescatter", "alltoall", "p2p", "comm_other"};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        assert_true(k25_kernel_rules_describe(house, k25_kernel_rules_find(house, waits[i]))->collective);
    const struct k25_rule_class *gemm = k25_kernel_rules_describe(house, k25_kernel_rules_find(house, "moe_gemm"));
    assert_string_equal(gemm->group, "MoE_GEMM");
    assert_false(gemm->collective);
    const char *file;
    int line;
    assert_int_equal(k25_kernel_rules_explain(house, "no such kernel", &file, &line), 0);
    assert_string_equal(file, "");
    k25_kernel_rules_explain(house, "nvjet_x", &file, &line);
    assert_string_equal(file, K25_SOURCE_DIR "/calib/rules/kernels.yaml");
    assert_true(line > 1);
}

#define START "k25sim: kernels\nversion: 1\n"
#define MAIN START "classes:\n  norm: {group: N}\nrules:\n  - class: norm\n    base: [norm, ab & !abc & ^x]\n"

static struct k25_kernel_rules *parse(const char *text, const char *extra, struct k25_error *error)
{
    *error = (struct k25_error){0};
    return k25_kernel_rules_parse(text, strlen(text), "a.yaml", extra, extra == NULL ? 0 : strlen(extra), "b.yaml",
                                  error);
}

static void patterns(void **state)
{
    (void)state;
    struct k25_error error;
    struct k25_kernel_rules *rules =
        parse(START "classes:\n  first: {}\n  second: {collective: true}\nrules:\n"
                    "  - {class: first, base: \"XA & !b\"}\n"
                    "  - {class: second, name: [\"^xa & <b\"], regex: [\"^q[0-9]+_ar$\", \"Z{3}\"]}\n",
              NULL, &error);
    if (rules == NULL)
        fail_msg("%s", error.message);
    assert_int_equal(k25_kernel_rules_classes(rules), 3);
    assert_string_equal(class_of(rules, "yxa<b>"), "first"); /* the base name ends before the b */
    assert_string_equal(class_of(rules, "xab<b>"), "second");
    assert_string_equal(class_of(rules, "yxab<b>"), "other");
    assert_string_equal(class_of(rules, "Q12_AR"), "second");
    assert_string_equal(class_of(rules, "q12_arx"), "other");
    assert_string_equal(class_of(rules, "azzz"), "second");
    assert_string_equal(k25_kernel_rules_describe(rules, 1)->group, "first");
    assert_true(k25_kernel_rules_describe(rules, 2)->collective);
    k25_kernel_rules_free(rules);
    k25_kernel_rules_free(NULL);
}

static void file_in_front(void **state)
{
    (void)state;
    struct k25_error error;
    const char *file;
    int line;
    struct k25_kernel_rules *rules =
        parse(MAIN,
              START "classes:\n  mine: {group: M}\nrules:\n  - {class: mine, base: my_norm}\n"
                    "  - {class: other, base: \"not_a_norm\"}\n",
              &error);
    if (rules == NULL)
        fail_msg("%s", error.message);
    assert_string_equal(class_of(rules, "a_norm"), "norm");
    assert_string_equal(class_of(rules, "my_norm"), "mine");
    assert_int_equal(k25_kernel_rules_explain(rules, "my_norm", &file, &line), k25_kernel_rules_find(rules, "mine"));
    assert_string_equal(file, "b.yaml");
    assert_int_equal(line, 6);
    assert_int_equal(k25_kernel_rules_explain(rules, "not_a_norm", &file, &line), 0);
    assert_int_equal(line, 7);
    k25_kernel_rules_explain(rules, "a_norm", &file, &line);
    assert_string_equal(file, "a.yaml");
    k25_kernel_rules_free(rules);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *extra, *message;
    } cases[] = {
        {"k25sim: machine\nversion: 1\n", NULL, NULL},
        {START, NULL, "a.yaml:1:1: rules: expected a list of rules"},
        {START "rulez: []\n", NULL, "a.yaml:3:1: unknown key 'rulez', did you mean 'rules'?"},
        {START "rules: {}\n", NULL, "a.yaml:3:8: rules: expected a list of rules"},
        {START "classes: []\nrules: []\n", NULL, "a.yaml:3:10: classes: expected a mapping"},
        {START "classes: {a: b}\nrules: []\n", NULL,
         "a.yaml:3:14: class 'a': expected a mapping of group, collective and bucket"},
        {START "classes: {a: {bucket: expert}}\nrules: []\n", NULL,
         "a.yaml:3:23: class 'a': bucket: unknown value 'expert', expected one of products, experts, attention, small "
         "kernels, none, did you mean 'experts'?"},
        {START "classes: {a: {bucket: [experts]}}\nrules: []\n", NULL,
         "a.yaml:3:23: class 'a': bucket: unknown value '', expected one of products, experts, attention, small "
         "kernels, none"},
        {START "classes: {a: {group: []}}\nrules: []\n", NULL, "a.yaml:3:22: class 'a': group: expected a name"},
        {START "classes: {a: {collective: maybe}}\nrules: []\n", NULL,
         "a.yaml:3:27: class 'a': collective: expected "
         "true or false"},
        {START "classes: {a: {grup: x}}\nrules: []\n", NULL, "a.yaml:3:15: unknown key 'grup', did you mean 'group'?"},
        {START "rules: [x]\n", NULL, "a.yaml:3:9: a rule: expected a mapping of class and base, name or regex"},
        {START "rules: [{base: x}]\n", NULL, "a.yaml:3:9: class: expected the name of a class"},
        {START "rules: [{class: othr, base: x}]\n", NULL, "a.yaml:3:17: unknown class 'othr', did you mean 'other'?"},
        {START "rules: [{class: other}]\n", NULL, "a.yaml:3:9: a rule without patterns: expected base, name or regex"},
        {START "rules: [{class: other, bse: x}]\n", NULL, "a.yaml:3:24: unknown key 'bse', did you mean 'base'?"},
        {START "rules: [{class: other, base: [[]]}]\n", NULL, "a.yaml:3:31: base: expected patterns in a list"},
        {START "rules: [{class: other, base: \"\"}]\n", NULL, "a.yaml:3:30: base: expected patterns in a list"},
        {START "rules: [{class: other, base: \"a & ^\"}]\n", NULL,
         "a.yaml:3:30: 'a & ^': a part of this pattern is "
         "empty"},
        {START "rules: [{class: other, base: a & b & c & d & e & f & g & h & i}]\n", NULL,
         "a.yaml:3:30: 'a & b & c & d & e & f & g & h & i': more than 8 parts in one pattern"},
        {START "rules: [{class: other, regex: \"a(\"}]\n", NULL,
         "a.yaml:3:31: no regular expression: Unmatched ( or "
         "\\("},
        {MAIN, START "classes: {norm: {}}\nrules: []\n", "b.yaml:3:11: class 'norm' is there already"},
        {MAIN, START "rules: [{class: nrm, base: x}]\n", "b.yaml:3:17: unknown class 'nrm', did you mean 'norm'?"},
        {MAIN, "x", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct k25_error error;
        assert_null(parse(cases[i].text, cases[i].extra, &error));
        if (cases[i].message != NULL)
            assert_bad_input(error, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
    }
    struct k25_error error = {0};
    assert_null(k25_kernel_rules_load("/nonexistent/k.yaml", NULL, &error));
    assert_says(error, "/nonexistent/k.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collisions), cmocka_unit_test(base_names), cmocka_unit_test(long_names),
        cmocka_unit_test(classes),    cmocka_unit_test(patterns),   cmocka_unit_test(file_in_front),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, load_house, free_house);
}
