#include "calib/rules/operators.h"

#include <stddef.h>

/* Products, experts and attention are named by the class of their kernel, which follows the format of the weights. */
static const char *const class_names[K25_KERNEL_CLASSES] = {
    [K25_KERNEL_GEMM_BF16] = "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN",
    [K25_KERNEL_GEMM_FP8] = "void cutlass::device_kernel<scaled_mm_fp8_gemm>(Params)",
    [K25_KERNEL_GEMM_FP4] = "void cutlass::device_kernel<nvfp4_scaled_mm_gemm>(Params)",
    [K25_KERNEL_GEMM_INT4] = "void marlin::Marlin<gptq_marlin_gemm>(int4 const*)",
    [K25_KERNEL_BMM] = "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_gemm_batched>(Params)",
    [K25_KERNEL_ELEMENTWISE] = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>(int)",
    [K25_KERNEL_MOE_BF16] = "fused_moe_kernel",
    [K25_KERNEL_MOE_FP8] = "fused_moe_kernel",
    [K25_KERNEL_MOE_INT4] = "void marlin_moe_wna16::Marlin<128, 1, 8>(int4 const*)",
    [K25_KERNEL_MOE_FP4] = "fused_moe_kernel",
    [K25_KERNEL_MLA] = "_fwd_grouped_kernel_stage1",
    [K25_KERNEL_GQA] = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits>(Flash_fwd_params)",
    [K25_KERNEL_INDEXER] = "void deep_gemm::sm100_fp8_paged_mqa_logits<1u, 64u, 128u>(unsigned int)",
    [K25_KERNEL_LINEAR] = "fused_recurrent_gated_delta_rule_fwd_kernel",
};

#define COLLECTIVE(class, name)                                                                                        \
    {                                                                                                                  \
        class, K25_BUCKET_NONE, name                                                                                   \
    }
/* An AllReduce is named by its backend. NCCL prints the same name for an all-to-all and for a send to one neighbour. */
static const struct k25_operator_kernel collectives[K25_OP_KINDS] = {
    [K25_OP_KERNEL] = {0}, /* see `kernels` */
    [K25_OP_ALLREDUCE] = COLLECTIVE("allreduce", NULL),
    [K25_OP_ALLGATHER] = COLLECTIVE("allgather", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    [K25_OP_REDUCESCATTER] = COLLECTIVE("reducescatter", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"
                                                         "(ncclDevKernelArgsStorage<4096ul>)"),
    [K25_OP_ALLTOALL] = COLLECTIVE("alltoall", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
    [K25_OP_SEND] = COLLECTIVE("alltoall", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
};

#define PRODUCT                                                                                                        \
    {                                                                                                                  \
        "dense_gemm", K25_BUCKET_PRODUCTS, NULL                                                                        \
    }
#define EXPERTS                                                                                                        \
    {                                                                                                                  \
        "moe_gemm", K25_BUCKET_EXPERTS, NULL                                                                           \
    }
#define ATTENTION(class, name)                                                                                         \
    {                                                                                                                  \
        class, K25_BUCKET_ATTENTION, name                                                                              \
    }
#define SMALL(class, name)                                                                                             \
    {                                                                                                                  \
        class, K25_BUCKET_SMALL, name                                                                                  \
    }
#define NORM SMALL("norm", "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2")
#define RMS_NORM SMALL("norm", "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)")
#define ACTIVATION                                                                                                     \
    SMALL("activation", "void vllm::act_and_mul_kernel<c10::BFloat16, &(vllm::silu_kernel), true>(c10::BFloat16*)")
#define BY_KIND                                                                                                        \
    {                                                                                                                  \
        NULL, K25_BUCKET_NONE, NULL                                                                                    \
    }

/* A name of NULL is that of the kernel's class; a class of NULL is that of the collective's kind. */
static const struct k25_operator_kernel kernels[K25_OPERATORS] = {
    [K25_OPERATOR_EMBEDDING] = SMALL("embed", "void at::native::vectorized_gather_kernel<16, long>(char*, char*)"),
    [K25_OPERATOR_ALLREDUCE_EMBEDDING] = BY_KIND,
    [K25_OPERATOR_FUSE_HIDDEN] = PRODUCT,
    [K25_OPERATOR_MTP_NORMS] = NORM,
    [K25_OPERATOR_MTP_PROJECTION] = PRODUCT,
    [K25_OPERATOR_ATTENTION_NORM] = NORM,
    [K25_OPERATOR_QKV_A] = PRODUCT,
    [K25_OPERATOR_QKV_A_NORM] = RMS_NORM,
    [K25_OPERATOR_KV_A_NORM] = RMS_NORM,
    [K25_OPERATOR_Q_B] = PRODUCT,
    [K25_OPERATOR_INDEXER_Q] = PRODUCT,
    [K25_OPERATOR_INDEXER_K] = PRODUCT,
    [K25_OPERATOR_INDEXER_QUANTISE] =
        SMALL("kv_write", "void vllm::indexer_k_quant_and_cache_kernel<__nv_bfloat16>(__nv_bfloat16 const*)"),
    [K25_OPERATOR_INDEXER_SCORES] = ATTENTION("sparse_index", NULL),
    [K25_OPERATOR_INDEXER_TOP_K] = ATTENTION("sparse_index", "void vllm::topKPerRowDecode<512, true>(float const*)"),
    [K25_OPERATOR_PREFILL_INDEXER_SCORES] = ATTENTION("sparse_index", NULL),
    [K25_OPERATOR_GATHER_PICKS] = BY_KIND,
    [K25_OPERATOR_MERGE_PICKS] = ATTENTION("sparse_index", "void vllm::topKPerRowDecode<512, true>(float const*)"),
    [K25_OPERATOR_PREFILL_INDEXER_TOP_K] =
        ATTENTION("sparse_index", "void vllm::topKPerRowPrefill<512, true>(float const*)"),
    [K25_OPERATOR_ABSORB_K] = PRODUCT,
    [K25_OPERATOR_QKV] = PRODUCT,
    [K25_OPERATOR_QK_NORM] = RMS_NORM,
    [K25_OPERATOR_ALLREDUCE_QK_NORM] = BY_KIND,
    [K25_OPERATOR_ROPE_AND_CACHE_WRITE] =
        SMALL("kv_write", "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>(__nv_bfloat16 const*)"),
    [K25_OPERATOR_GATHER_QUERIES] = BY_KIND,
    [K25_OPERATOR_REORDER_QUERIES] = SMALL("elementwise", NULL),
    [K25_OPERATOR_MLA_ATTENTION] = ATTENTION("mla", NULL),
    [K25_OPERATOR_GQA_ATTENTION] = ATTENTION("attention", NULL),
    [K25_OPERATOR_PREFILL_KV_B] = PRODUCT,
    [K25_OPERATOR_GATHER_PREFILL_CACHE] = BY_KIND,
    [K25_OPERATOR_PREFILL_ATTENTION] =
        ATTENTION("attention", "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits>(Flash_fwd_params)"),
    [K25_OPERATOR_EXCHANGE_OUTPUTS] = BY_KIND,
    [K25_OPERATOR_GATHER_LSE] = BY_KIND,
    [K25_OPERATOR_MERGE_OUTPUTS] = ATTENTION("attention", "_correct_attn_cp_out_kernel"),
    [K25_OPERATOR_REORDER_OUTPUTS] = SMALL("elementwise", NULL),
    [K25_OPERATOR_SCATTER_OUTPUTS] = BY_KIND,
    [K25_OPERATOR_ABSORB_V] = PRODUCT,
    [K25_OPERATOR_OUTPUT_GATE] = SMALL("elementwise", "triton_poi_fused_mul_sigmoid_4"),
    [K25_OPERATOR_O_PROJ] = PRODUCT,
    [K25_OPERATOR_LINEAR_IN] = PRODUCT,
    [K25_OPERATOR_CONVOLUTION] = ATTENTION("linear_attn", "_causal_conv1d_update_kernel"),
    [K25_OPERATOR_DELTA_RULE] = ATTENTION("linear_attn", NULL),
    [K25_OPERATOR_PREFILL_DELTA_RULE] = ATTENTION("linear_attn", "chunk_gated_delta_rule_fwd_kernel_h_blockdim64"),
    [K25_OPERATOR_GATED_NORM] = SMALL("norm", "layer_norm_fwd_kernel"),
    [K25_OPERATOR_LINEAR_OUT] = PRODUCT,
    [K25_OPERATOR_ALLREDUCE_ATTENTION] = BY_KIND,
    [K25_OPERATOR_FFN_NORM] = NORM,
    [K25_OPERATOR_FFN_GATE_UP] = PRODUCT,
    [K25_OPERATOR_FFN_ACTIVATION] = ACTIVATION,
    [K25_OPERATOR_FFN_DOWN] = PRODUCT,
    [K25_OPERATOR_ROUTER] = PRODUCT,
    [K25_OPERATOR_TOP_K] = SMALL("routing", "void vllm::moe::grouped_topk_fused_kernel<float>(float*)"),
    [K25_OPERATOR_DISPATCH] = BY_KIND,
    [K25_OPERATOR_ROUTED_EXPERTS] = EXPERTS,
    [K25_OPERATOR_COMBINE] = BY_KIND,
    [K25_OPERATOR_SHARED_GATE_UP] = PRODUCT,
    [K25_OPERATOR_SHARED_ACTIVATION] = ACTIVATION,
    [K25_OPERATOR_SHARED_DOWN] = PRODUCT,
    [K25_OPERATOR_ADD_SHARED] = SMALL("elementwise", NULL),
    [K25_OPERATOR_ALLREDUCE_FFN] = BY_KIND,
    [K25_OPERATOR_SEND_STAGE] = BY_KIND,
    [K25_OPERATOR_FINAL_NORM] = NORM,
    [K25_OPERATOR_LM_HEAD] = PRODUCT,
    [K25_OPERATOR_GATHER_LOGITS] = BY_KIND,
    [K25_OPERATOR_SAMPLING] = SMALL("sampling", "void at::native::reduce_kernel<512, 1, ArgMaxOps>(ReduceOp)"),
};

struct k25_operator_kernel k25_operator_kernel(const struct k25_operator *op, enum k25_backend backend)
{
    bool collective = op->kind != K25_OP_KERNEL;
    struct k25_operator_kernel kernel = collective ? collectives[op->kind] : kernels[op->id];
    if (op->kind == K25_OP_ALLREDUCE)
        kernel.name = k25_backend_info[backend]->kernel;
    if (!collective && kernel.name == NULL)
        kernel.name = class_names[op->call.class];
    return kernel;
}
