/* What the tests of plans beyond plain tensor parallelism share: every parameter and switch given here, so that no
 * default has a say, and the ways they look at a step. */
#ifndef K25_TESTS_QUESTION_CHECK_H
#define K25_TESTS_QUESTION_CHECK_H

#include "tests/unit/physics_check.h"

#define TWO_SOCKET "rtx-pro-6000-8x-two-socket"

static inline struct k25_params round_params(void)
{
    static const struct {
        int id;
        double value;
    } set[] = {{K25_MOE_FALLBACK, 3},    {K25_MLA_GATHERED, 1},     {K25_INDEXER_T0, 10},       {K25_INDEXER_MEM, 0.6},
               {K25_LINEAR_T0, 7},       {K25_LINEAR_MEM, 0.75},    {K25_ROUTING_OVERLAP, 0.4}, {K25_DRAFT_PASS, 150},
               {K25_DRAFT_SEQUENCE, 10}, {K25_POWER_EXPONENT, 0.8}, {K25_ROUTING_CV, 1}};
    struct k25_params params = fixed_params();
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        params.value[set[i].id] = set[i].value * k25_param_info[set[i].id].scale;
    return params;
}

/* An architecture and scheme on eight GPUs at TP8, one sequence of 6400 tokens. */
static inline void open_box(struct box *box, const char *name, const char *scheme)
{
    make_box(box, name, scheme, TWO_SOCKET);
    box->plan = (struct k25_plan){
        .tp = 8,
        .ep = 1,
        .dp = 1,
        .dcp = 1,
        .pp = 1,
        .batch = 1,
        .context = 6400,
        .kv_dtype = K25_KV_BF16,
        .dcp_exchange = K25_DCP_GATHER,
        .expert_exchange = K25_EXPERTS_ALLTOALL,
        .memory_utilisation = 0.92,
        .allreduce = {.limit[K25_BACKEND_ONESHOT].max_bytes = 57344},
        .graph = {K25_GRAPH_FULL, 512},
        .speculation = {.method = K25_SPEC_NONE, .verify = K25_VERIFY_SHARED, .drafting = K25_DRAFT_SERIAL},
        .levers = {.link_bandwidth = 1, .link_latency = 1, .skew = 1}};
}

static inline void open_kimi(struct box *box)
{
    open_box(box, "kimi-k2.5", "int4_g32");
}

/* The question without a draft, answered; fails when the plan is refused. */
static inline void answer(const struct box *box, const struct k25_draft *draft, const struct k25_params *params,
                          struct k25_prediction *p)
{
    struct k25_error error = {0};
    struct k25_question question;
    if (!k25_question_make(&box->architecture, &box->weights, draft, &box->machine, &box->plan, NULL, &question,
                           &error))
        fail_msg("%s", error.message);
    k25_predict(&question, params, p);
}

/* The plan is refused in these words. */
static inline void refuse(const struct box *box, const char *message)
{
    struct k25_error error = {0};
    struct k25_question question;
    assert_false(
        k25_question_make(&box->architecture, &box->weights, NULL, &box->machine, &box->plan, NULL, &question, &error));
    assert_int_equal(error.status, K25_BAD_INPUT);
    assert_string_equal(error.message, message);
}

/* The operator of that name in a group of layers; fails unless there is exactly one. */
static inline const struct k25_operator *only_op(const struct k25_step *step, const char *layers, const char *name)
{
    const struct k25_operator *found = NULL;
    for (size_t i = 0; i < step->count; i++) {
        if (strcmp(k25_operator_names[step->op[i].id], name) != 0 || strcmp(step->op[i].layers, layers) != 0)
            continue;
        if (found != NULL)
            fail_msg("%s %s twice", layers, name);
        found = &step->op[i];
    }
    if (found == NULL)
        fail_msg("no %s %s", layers, name);
    return found;
}

static inline bool has_op(const struct k25_step *step, const char *name)
{
    for (size_t i = 0; i < step->count; i++) {
        if (strcmp(k25_operator_names[step->op[i].id], name) == 0)
            return true;
    }
    return false;
}

/* Calls a step of a kind of collective among some ranks. */
static inline double count_calls(const struct k25_step *step, enum k25_operator_kind kind, enum k25_ranks ranks)
{
    double calls = 0;
    for (size_t i = 0; i < step->count; i++)
        calls += step->op[i].kind == kind && step->op[i].ranks == ranks ? step->op[i].calls : 0;
    return calls;
}

/* One line of a list of operators written out by hand. */
struct line {
    const char *name;
    double n, k;
};

/* Operators from `first` on are these, in this order. */
static inline void assert_lines(const struct k25_step *step, size_t first, const struct line *lines, size_t count)
{
    assert_true(first + count <= step->count);
    for (size_t i = 0; i < count; i++) {
        const struct k25_operator *op = &step->op[first + i];
        if (strcmp(k25_operator_names[op->id], lines[i].name) != 0 || op->n != lines[i].n || op->k != lines[i].k)
            fail_msg("%s n %g k %g where %s n %g k %g was expected", k25_operator_names[op->id], op->n, op->k,
                     lines[i].name, lines[i].n, lines[i].k);
    }
}

#endif
