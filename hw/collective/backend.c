#include "hw/collective/internal.h"

#include <stddef.h>

const char *const k25_backend_names[K25_BACKENDS + 1] = {
#define X(id, key, words) [K25_BACKEND_NCCL_##id] = "NCCL " words,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
#define X(id, key, words) [K25_BACKEND_##id] = words,
        K25_CUSTOM_LIST(X)
#undef X
};

const char *const k25_backend_keys[K25_BACKENDS + 1] = {
#define X(id, key, words) [K25_BACKEND_NCCL_##id] = "nccl_" #key,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
#define X(id, key, words) [K25_BACKEND_##id] = #key,
        K25_CUSTOM_LIST(X)
#undef X
};

const char *const k25_nccl_protocols[K25_NCCL_PROTOCOLS] = {
#define X(id, key, words) [K25_BACKEND_NCCL_##id] = words,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
};

const char *const k25_engine_names[K25_ENGINES + 1] = {[K25_VLLM] = "vllm", [K25_SGLANG] = "sglang", NULL};

const struct k25_backend_info *const k25_backend_info[K25_BACKENDS] = {
#define X(id, key, words) [K25_BACKEND_NCCL_##id] = &k25_nccl_##key,
    K25_NCCL_PROTOCOL_LIST(X)
#undef X
#define X(id, key, words) [K25_BACKEND_##id] = &k25_##key,
        K25_CUSTOM_LIST(X)
#undef X
};
