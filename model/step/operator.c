#include "model/step/operator.h"

const char *const k25_operator_names[K25_OPERATORS + 1] = {
#define X(id, name) [K25_OPERATOR_##id] = #name,
    K25_OPERATOR_LIST(X)
#undef X
};

const char *const k25_operator_kind_names[K25_OP_KINDS + 1] = {
    [K25_OP_KERNEL] = "kernel",       [K25_OP_ALLREDUCE] = "allreduce",
    [K25_OP_ALLGATHER] = "allgather", [K25_OP_REDUCESCATTER] = "reducescatter",
    [K25_OP_ALLTOALL] = "alltoall",   [K25_OP_SEND] = "send",
};

const char *const k25_part_names[K25_PARTS + 1] = {
    [K25_PART_ATTENTION] = "attention",
    [K25_PART_FFN] = "ffn",
    [K25_PART_HEAD] = "head",
    [K25_PART_DRAFT] = "draft",
};
