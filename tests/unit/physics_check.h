/* What the tests of the physics share: parameters with round values, a GPU with round figures, and whole questions
 * built from the zoo. Priors are tuned against data; no test of a formula may move with them. */
#ifndef K25_TESTS_PHYSICS_CHECK_H
#define K25_TESTS_PHYSICS_CHECK_H

#include "tests/unit/model_check.h"

#include <math.h>

#include "base/yaml.h"
#include "model/predict/predict.h"
#include "scenarios/library/library.h"

/* In the units of the files. Near the measured ones, so that no term drowns the others. */
static const double fixed_values[K25_PARAMS] = {
    [K25_P_NORM] = 4,
    [K25_KERNEL_SCALE] = 1,
    [K25_BANDWIDTH] = 0.9,
    [K25_GEMM_T0] = 2,
    [K25_GEMM_MEM] = 0.9,
    [K25_GEMM_MAC] = 0.6,
    [K25_GEMM_K] = 6,
    [K25_FP8_T0] = 5,
    [K25_FP8_MEM] = 0.9,
    [K25_FP8_MAC] = 0.4,
    [K25_FP8_K] = 10,
    [K25_FP4_T0] = 6,
    [K25_FP4_MEM] = 0.7,
    [K25_FP4_MAC] = 0.5,
    [K25_FP4_K] = 12,
    [K25_INT4_T0] = 4,
    [K25_INT4_MEM] = 0.8,
    [K25_INT4_MAC] = 0.5,
    [K25_INT4_K] = 7,
    [K25_K_SPLIT] = 600,
    [K25_BMM_T0] = 4,
    [K25_ELEMENT_T0] = 2,
    [K25_MOE_INT4_T0] = 25,
    [K25_MOE_INT4_MEM] = 0.9,
    [K25_MOE_INT4_MAC] = 0.7,
    [K25_MOE_FP4_T0] = 26,
    [K25_MOE_FP4_MEM] = 0.8,
    [K25_MOE_FP4_MAC] = 0.3,
    [K25_MOE_FP8_T0] = 22,
    [K25_MOE_FP8_MEM] = 0.85,
    [K25_MOE_FP8_MAC] = 0.2,
    [K25_MOE_BF16_T0] = 28,
    [K25_MOE_BF16_MEM] = 0.95,
    [K25_MOE_BF16_MAC] = 0.25,
    [K25_MOE_K] = 2,
    [K25_MOE_REREAD] = 0.3,
    [K25_MOE_ACTIVATION] = 5,
    [K25_MOE_GROUPED_ACTIVATION] = 5,
    [K25_MOE_EXPERT] = 60,
    [K25_MOE_FALLBACK] = 3,
    [K25_MLA_T0] = 14,
    [K25_MLA_BATCHED] = 10,
    [K25_MLA_SEQUENCE] = 80,
    [K25_MLA_TOKEN] = 75,
    [K25_MLA_MEM] = 0.8,
    [K25_MLA_SPLITS] = 64,
    [K25_MLA_SPLIT_TOKENS] = 512,
    [K25_MLA_GATHERED] = 64,
    [K25_INDEXER_T0] = 10,
    [K25_INDEXER_MEM] = 0.6,
    [K25_LINEAR_T0] = 7,
    [K25_LINEAR_MEM] = 0.75,
    [K25_GQA_T0] = 9,
    [K25_GQA_TILE] = 12,
    [K25_GQA_TOKEN] = 20,
    [K25_GQA_MEM] = 0.95,
    [K25_GQA_SPLIT_TOKENS] = 128,
    [K25_NCCL_BASE] = 4,
    [K25_NCCL_HOP] = 0.5,
    [K25_NCCL_LL] = 0.4,
    [K25_NCCL_LL_SCALING] = 0.5,
    [K25_NCCL_LL_NORM] = 1.2,
    [K25_NCCL_LL_MAX] = 500,
    [K25_NCCL_LL128_HOP] = 0.2,
    [K25_NCCL_SIMPLE_BASE] = 8,
    [K25_NCCL_SIMPLE_HOP] = 3,
    [K25_NCCL_ETA] = 0.8,
    [K25_NCCL_RING] = 0.9,
    [K25_ONESHOT_BASE] = 2,
    [K25_ONESHOT_PEER] = 0.5,
    [K25_ONESHOT_ETA] = 0.75,
    [K25_ONESHOT_SHARED] = 0.9,
    [K25_NCCL_GATHER] = 1,
    [K25_GATHER_VOLUME] = 1,
    [K25_GATHER_LL_MAX] = 140,
    [K25_INDEXER_PICK] = 8,
    [K25_SKEW_SIGMA] = 0.5,
    [K25_SKEW_RHO] = 0.01,
    [K25_SKEW_LAG] = 0.4,
    [K25_ROUTING_CV] = 1,
    [K25_ROUTING_OVERLAP] = 0.4,
    [K25_DRAFT_PASS] = 150,
    [K25_DRAFT_SEQUENCE] = 10,
    [K25_POWER_EXPONENT] = 0.8,
    [K25_STEP_FLOORS] = 1,
    [K25_GRAPH_GAP] = 0.3,
    [K25_EAGER_LAUNCH] = 4,
    [K25_HOST_STEP] = 300,
    [K25_HOST_SEQUENCE] = 3,
    [K25_RESERVE] = 3,
};

static inline struct k25_params fixed_params(void)
{
    struct k25_params params;
    for (int id = 0; id < K25_PARAMS; id++)
        params.value[id] = fixed_values[id] * k25_param_info[id].scale;
    return params;
}

static inline struct k25_gpu round_gpu(void)
{
    return (struct k25_gpu){.name = "round",
                            .sms = 100,
                            .memory_mib = 98304,
                            .bandwidth_gbs = 1000,
                            .l2_mib = 100,
                            .peak_bf16_tflops = 500,
                            .peak_fp8_tflops = 1000,
                            .peak_fp4_tflops = 2000,
                            .power_w = 500};
}

/* Everything a question refers to. */
struct box {
    struct k25_architecture architecture;
    struct k25_weights weights;
    struct k25_machine machine;
    struct k25_plan plan;
};

/* A plan as its file gives it, with the defaults of the schema. */
static inline struct k25_plan plan_of(const char *text)
{
    struct k25_error error = {0};
    struct k25_plan plan = {0};
    struct k25_yaml *yaml = k25_yaml_parse(text, strlen(text), "plan.yaml", &error);
    if (yaml == NULL ||
        !k25_schema_load(k25_plan_fields, "plan", k25_yaml_root(yaml), "plan.yaml", &plan, NULL, &error))
        fail_msg("%s", error.message);
    k25_yaml_free(yaml);
    return plan;
}

/* An architecture of the zoo with a scheme, on a machine of hw/machines; a plan of the formats' defaults. */
static inline void make_box(struct box *box, const char *name, const char *scheme, const char *machine)
{
    struct k25_error error = {0};
    struct k25_machine_parts parts;
    char path[512];
    snprintf(path, sizeof path, ZOO "%s.yaml", name);
    if (!k25_architecture_load(path, &box->architecture, NULL, &error))
        fail_msg("%s", error.message);
    snprintf(path, sizeof path, ZOO "%s.%s.yaml", name, scheme);
    if (!k25_weights_load(path, &box->weights, NULL, &error))
        fail_msg("%s", error.message);
    snprintf(path, sizeof path, K25_SOURCE_DIR "/hw/machines/%s.yaml", machine);
    if (!k25_library_parts(&(const struct k25_library){K25_SOURCE_DIR}, &parts, NULL, &error) ||
        !k25_machine_load(path, &parts, &box->machine, NULL, &error))
        fail_msg("%s", error.message);
    box->plan = plan_of("{tp: 8, batch: 1, context: 1024}");
}

static inline void kimi_box(struct box *box)
{
    make_box(box, "kimi-k2.5", "int4_g32", "rtx-pro-6000-8x-two-socket");
}

static inline struct k25_question ask(const struct box *box)
{
    struct k25_error error = {0};
    struct k25_question question;
    if (!k25_question_make(&box->architecture, &box->weights, NULL, &box->machine, &box->plan, NULL, &question, &error))
        fail_msg("%s", error.message);
    return question;
}

static inline void predict_box(const struct box *box, const struct k25_params *params, struct k25_prediction *p)
{
    struct k25_question question = ask(box);
    k25_predict(&question, params, p);
}

static inline double step_of(const struct box *box, const struct k25_params *params)
{
    static struct k25_prediction p;
    predict_box(box, params, &p);
    return p.step;
}

/* The nth operator of that name from 0 (one a group of layers); fails when there is none. */
static inline const struct k25_operator *find_op(const struct k25_step *step, const char *name, int nth)
{
    for (size_t i = 0; i < step->count; i++) {
        if (strcmp(k25_operator_names[step->op[i].id], name) == 0 && nth-- == 0)
            return &step->op[i];
    }
    fail_msg("no operator %s", name);
    return NULL;
}

/* xorshift64: the same sequence everywhere. */
static inline double uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Box and Muller. */
static inline double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(1 - uniform(state)));
    return radius * cos(2 * M_PI * uniform(state));
}

#endif
