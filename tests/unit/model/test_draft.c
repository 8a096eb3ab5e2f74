/* Drafts: the operators, weights and caches of every method, and what the host pays, by hand. */
#include "tests/unit/question_check.h"

static struct k25_prediction p, q; /* too large for a stack */
static const struct k25_step *const step = &p.step_work;

static struct k25_plan_speculation speculate(int tokens)
{
    return (struct k25_plan_speculation){
        .method = K25_SPEC_NGRAM, .tokens = tokens, .verify = K25_VERIFY_SHARED, .drafting = K25_DRAFT_SERIAL};
}

struct eagle {
    struct k25_architecture architecture;
    struct k25_weights weights;
    struct k25_draft draft;
};

static void open_draft(struct eagle *eagle, const char *name)
{
    struct k25_error error = {0};
    char path[512];
    snprintf(path, sizeof path, ZOO "%s.yaml", name);
    if (!k25_architecture_load(path, &eagle->architecture, NULL, &error))
        fail_msg("%s", error.message);
    snprintf(path, sizeof path, ZOO "%s.bf16.yaml", name);
    if (!k25_weights_load(path, &eagle->weights, NULL, &error))
        fail_msg("%s", error.message);
    eagle->draft = (struct k25_draft){&eagle->architecture, &eagle->weights};
}

static void open_eagle(struct box *box, struct eagle *eagle)
{
    open_kimi(box);
    open_draft(eagle, "kimi-k2.6-eagle3-mla");
    box->plan.batch = 3;
    box->plan.speculation = speculate(3);
    box->plan.speculation.method = K25_SPEC_EAGLE3;
}

/* One pass of the EAGLE-3 draft at TP8: a dense MLA layer whose first projection sees 2 x 7168. */
static const struct line eagle_pass[] = {
    {"embedding", 0, 0},     {"allreduce_embedding", 0, 0}, {"attention_norm", 0, 0}, {"qkv_a", 2112, 14336},
    {"qkv_a_norm", 0, 0},    {"q_b", 1536, 1536},           {"absorb_k", 512, 128},   {"rope_and_cache_write", 0, 0},
    {"mla_attention", 0, 0}, {"absorb_v", 128, 512},        {"o_proj", 7168, 1024},   {"allreduce_attention", 0, 0},
    {"ffn_norm", 0, 0},      {"ffn_gate_up", 4608, 7168},   {"ffn_activation", 0, 0}, {"ffn_down", 7168, 2304},
    {"allreduce_ffn", 0, 0}, {"final_norm", 0, 0},          {"lm_head", 20480, 7168}, {"gather_logits", 0, 0},
    {"sampling", 0, 0}};
enum { PASS = sizeof eagle_pass / sizeof *eagle_pass };

static void eagle3_fuses_once_and_passes_k_times(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    answer(&box, &eagle.draft, &params, &p);
    static const struct line fuse = {"fuse_hidden", 7168, 3 * 7168};
    assert_lines(step, 0, &fuse, 1);
    assert_true(step->op[0].rows == 16 && step->op[0].calls == 1);
    assert_lines(step, 1, eagle_pass, PASS);
    assert_lines(step, 1 + PASS, eagle_pass, PASS);
    for (size_t i = 0; i < 1 + 2 * PASS; i++) {
        const struct k25_operator *op = &step->op[i];
        bool again = i > PASS, logits = op->id == K25_OPERATOR_LM_HEAD || op->id == K25_OPERATOR_SAMPLING ||
                                        op->id == K25_OPERATOR_GATHER_LOGITS;
        assert_true(op->part == K25_PART_DRAFT && op->calls == (again ? 2 : 1));
        assert_true(op->rows == (logits ? 3 : again ? 4 : 16)); /* 12 tokens as 16, then 3 as 4 */
        assert_string_equal(op->layers, again ? "draft again" : "draft");
    }
    assert_true(step->op[1 + 2 * PASS].part == K25_PART_HEAD);
    assert_true(only_op(step, "draft again", "allreduce_ffn")->message == 4 * 14336);
    assert_true(only_op(step, "draft again", "gather_logits")->message == 3 * 40960);
    assert_true(p.allreduces == 123 + 3 * 3);
    /* attention over k + 1 rows of a sequence, then one */
    assert_true(only_op(step, "draft", "mla_attention")->call.items == 6);
    assert_true(only_op(step, "draft again", "mla_attention")->call.items == 3);
    assert_true(step->kv_per_token == 62 * 1152);
}

/* Elements of the EAGLE-3 draft on a rank: fusion, down-projections, q_b, kv_b, o, dense network; embedding and
 * head. */
#define EAGLE_FIXED (3 * 7168 * 7168.0 + 2112 * 14336.0)
#define EAGLE_SHARDED (1536 * 12288.0 + 64 * 512 * 256.0 + 8192 * 7168.0 + 3 * 7168 * 18432.0 + 2 * 163840.0 * 7168)

static void eagle3_holds_its_own_weights(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    for (int k = 1; k <= 4; k++) { /* once, whatever the passes */
        box.plan.speculation.tokens = k;
        box.plan.speculation.method = K25_SPEC_EAGLE3;
        answer(&box, &eagle.draft, &params, &p);
        box.plan.speculation.method = K25_SPEC_NGRAM;
        answer(&box, NULL, &params, &q);
        assert_close(p.memory.weights - q.memory.weights, 2 * (EAGLE_FIXED + EAGLE_SHARDED / 8), 1e-9);
        assert_true(step->kv_per_token - q.step_work.kv_per_token == 1152);
    }
}

static void a_pipeline_drafts_on_its_last_stage(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    box.plan.tp = 4;
    box.plan.pp = 2;
    answer(&box, &eagle.draft, &params, &p);
    box.plan.speculation.method = K25_SPEC_NONE;
    answer(&box, NULL, &params, &q);
    assert_close(p.memory.weights - q.memory.weights, 2 * (EAGLE_FIXED + EAGLE_SHARDED / 4), 1e-9);
}

static void only_the_first_layer_of_eagle3_is_wider(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    eagle.architecture.layers[0].count = 3;
    answer(&box, &eagle.draft, &params, &p);
    double wide[2] = {0}, narrow[2] = {0};
    for (size_t i = 0; i < step->count; i++) {
        const struct k25_operator *op = &step->op[i];
        if (op->part == K25_PART_DRAFT && op->id == K25_OPERATOR_QKV_A)
            (op->k == 14336 ? wide : narrow)[strcmp(op->layers, "draft") != 0] += op->calls;
    }
    assert_true(wide[0] == 1 && narrow[0] == 2 && wide[1] == 2 && narrow[1] == 4);
    assert_true(step->kv_per_token == 64 * 1152);
}

static void a_separate_model_runs_all_its_layers(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle llama;
    open_kimi(&box);
    open_draft(&llama, "llama-3.1-70b");
    box.plan.speculation = speculate(4);
    box.plan.speculation.method = K25_SPEC_DRAFT;
    answer(&box, &llama.draft, &params, &p);
    /* nothing in front of the embedding; 80 layers, three more passes; 64 + 2 x 8 heads of 128 over 8 ranks */
    assert_string_equal(k25_operator_names[step->op[0].id], "embedding");
    const struct k25_operator *first = only_op(step, "draft", "qkv"), *again = only_op(step, "draft again", "qkv");
    assert_true(first->n == 1280 && first->k == 8192 && first->calls == 80 && first->copies == 80);
    assert_true(again->calls == 240 && again->copies == 0 && first->rows == 8 && again->rows == 1);
    /* a cache of its own beside the target's: 80 x 2 x 1 x 128 x 2 B */
    assert_true(step->kv_per_token == 61 * 1152 + 80 * 512);
}

static void mtp_borrows_embedding_and_head(void **state)
{
    (void)state;
    static const struct line pass[] = {{"embedding", 0, 0},
                                       {"allreduce_embedding", 0, 0},
                                       {"mtp_norms", 0, 0},
                                       {"mtp_projection", 6144, 12288},
                                       {"attention_norm", 0, 0},
                                       {"qkv_a", 2624, 6144},
                                       {"qkv_a_norm", 0, 0},
                                       {"q_b", 2048, 2048},
                                       {"indexer_q", 4096, 2048},
                                       {"indexer_k", 160, 6144},
                                       {"indexer_quantise", 0, 0},
                                       {"indexer_scores", 0, 0},
                                       {"indexer_top_k", 0, 0},
                                       {"absorb_k", 512, 192},
                                       {"rope_and_cache_write", 0, 0},
                                       {"mla_attention", 0, 0},
                                       {"absorb_v", 256, 512},
                                       {"o_proj", 6144, 2048},
                                       {"allreduce_attention", 0, 0},
                                       {"ffn_norm", 0, 0},
                                       {"router", 256, 6144},
                                       {"top_k", 0, 0},
                                       {"routed_experts", 256, 6144},
                                       {"shared_gate_up", 512, 6144},
                                       {"shared_activation", 0, 0},
                                       {"shared_down", 6144, 256},
                                       {"add_shared", 0, 0},
                                       {"allreduce_ffn", 0, 0},
                                       {"final_norm", 0, 0},
                                       {"lm_head", 19360, 6144},
                                       {"gather_logits", 0, 0},
                                       {"sampling", 0, 0}};
    enum { COUNT = sizeof pass / sizeof *pass };
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5", "fp8");
    box.plan.batch = 4;
    answer(&box, NULL, &params, &q);
    box.plan.speculation = speculate(2);
    box.plan.speculation.method = K25_SPEC_MTP;
    answer(&box, NULL, &params, &p);
    assert_lines(step, 0, pass, COUNT);
    assert_lines(step, COUNT, pass, COUNT);
    assert_true(only_op(step, "draft", "router")->rows == 16 && only_op(step, "draft again", "router")->rows == 4);
    assert_true(only_op(step, "draft", "lm_head")->read == 19360 * 6144 * 2.0);
    assert_true(step->kv_per_token == 79 * (1152 + 132));
    /* projection, qkv_a, indexer and router on every rank; q_b, kv_b, o and the experts an eighth; FP8 with a
     * scale of 4 B for 16384 */
    double whole = 2 * 6144 * 6144.0 + 2624 * 6144.0 + 4096 * 2048.0 + 160 * 6144.0 + 256 * 6144.0;
    double shared = 2048 * 16384.0 + 512 * 64 * 448.0 + 16384 * 6144.0 + 257 * 3 * 6144 * 2048.0;
    assert_close(p.memory.weights - q.memory.weights, (whole + shared / 8) * (1 + 4.0 / 16384), 1e-9);
}

static void a_draft_on_every_rank_talks_to_none(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    box.plan.speculation.draft_tp = 1;
    box.plan.dcp = 2;
    answer(&box, &eagle.draft, &params, &p);
    for (size_t i = 0; i < step->count; i++)
        assert_true(step->op[i].part != K25_PART_DRAFT || step->op[i].kind == K25_OP_KERNEL);
    const struct k25_operator *op = only_op(step, "draft", "mla_attention");
    assert_true(op->call.shape[2] == 64 && op->call.shape[1] == 6400); /* its own cache, whole */
    assert_true(step->kv_per_token == 61 * 1152 / 2.0 + 1152);
    assert_true(only_op(step, "draft", "q_b")->n == 12288 && only_op(step, "draft", "lm_head")->n == 163840);
    box.plan.speculation.method = K25_SPEC_NGRAM;
    answer(&box, NULL, &params, &q);
    assert_close(p.memory.weights - q.memory.weights, 2 * (EAGLE_FIXED + EAGLE_SHARDED), 1e-9);
}

static void a_module_on_every_rank_has_all_experts(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    open_box(&box, "glm-5", "fp8");
    box.plan.ep = 8;
    box.plan.speculation = speculate(2);
    box.plan.speculation.method = K25_SPEC_MTP;
    box.plan.speculation.draft_tp = 1;
    for (int dp = 0; dp < 2; dp++) {
        box.plan.attention_dp = dp;
        answer(&box, NULL, &params, &p);
        for (size_t i = 0; i < step->count; i++)
            assert_true(step->op[i].part != K25_PART_DRAFT || step->op[i].kind == K25_OP_KERNEL);
        const struct k25_operator *op = only_op(step, "draft", "routed_experts");
        assert_true(op->n == 2048);
        assert_close(op->resident, 256 * 3 * 6144 * 2048.0 * (1 + 4.0 / 16384), 1e-12);
        /* the target's slices of embedding and head are not enough, unless it has them whole */
        op = only_op(step, "draft", "lm_head");
        assert_true(op->n == 154880 && op->copies == !dp && only_op(step, "draft", "embedding")->copies == !dp);
    }
}

static void the_host_pays_for_passes(void **state)
{
    (void)state;
    struct k25_params params = round_params(); /* 150 us a pass, 10 a sequence */
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    answer(&box, &eagle.draft, &params, &p);
    double serial = p.host, draft = p.draft;
    box.plan.speculation.drafting = K25_DRAFT_FUSED;
    answer(&box, &eagle.draft, &params, &p);
    assert_close(serial - p.host, 300e-6, 1e-9);
    box.plan.speculation.drafting = K25_DRAFT_ASYNC; /* the mean pass hides its share of the next */
    answer(&box, &eagle.draft, &params, &p);
    assert_true(draft / 3 > 150e-6);
    assert_close(serial - p.host, 450e-6, 1e-9);
    params.value[K25_DRAFT_PASS] = draft / 3 + 50e-6;
    answer(&box, &eagle.draft, &params, &p);
    assert_close(p.host - (serial - 450e-6), 150e-6, 1e-6);
    box.plan.speculation.drafting = K25_DRAFT_SERIAL;
    box.plan.speculation.method = K25_SPEC_NGRAM; /* once, however long the chain */
    params.value[K25_DRAFT_PASS] = 150e-6;
    answer(&box, NULL, &params, &p);
    assert_close(serial - p.host, 300e-6, 1e-9);
    assert_true(p.draft == 0 && step->op[0].part == K25_PART_HEAD);
    double sum = params.value[K25_HOST_STEP] + 3 * params.value[K25_HOST_SEQUENCE] + 150e-6 + 30e-6;
    box.plan.levers.skew = 0;
    answer(&box, NULL, &params, &p);
    assert_close(p.host, sum, 1e-12);
}

static void the_longest_step_has_room(void **state)
{
    (void)state;
    struct k25_params params = round_params();
    struct box box;
    struct eagle eagle;
    open_eagle(&box, &eagle);
    open_box(&box, "glm-5", "fp8"); /* an indexer; exchanges of DCP; a pipeline; a prompt */
    box.plan.tp = 4;
    box.plan.pp = box.plan.dcp = 2;
    box.plan.prefill.tokens = 8;
    box.plan.prefill.context = 100;
    box.plan.speculation = speculate(3);
    box.plan.speculation.method = K25_SPEC_EAGLE3;
    for (int i = 0; i < K25_MAX_LAYER_GROUPS; i++)
        box.architecture.layers[i] = box.architecture.layers[1];
    box.architecture.layer_groups = K25_MAX_LAYER_GROUPS;
    eagle.architecture = box.architecture;
    answer(&box, &eagle.draft, &params, &p);
    /* 37 operators a group, with embedding, send and head; 32 without the prompt for 9 groups of the first pass, and no
     * reordering of one row in the second */
    assert_int_equal(step->count, 8 * 37 + 2 + 1 + 4 + (9 * 32 + 2 + 4) + (9 * 30 + 2 + 4) + 1);
    assert_true(step->count <= K25_MAX_OPERATORS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eagle3_fuses_once_and_passes_k_times),
        cmocka_unit_test(eagle3_holds_its_own_weights),
        cmocka_unit_test(a_pipeline_drafts_on_its_last_stage),
        cmocka_unit_test(only_the_first_layer_of_eagle3_is_wider),
        cmocka_unit_test(a_separate_model_runs_all_its_layers),
        cmocka_unit_test(mtp_borrows_embedding_and_head),
        cmocka_unit_test(a_draft_on_every_rank_talks_to_none),
        cmocka_unit_test(a_module_on_every_rank_has_all_experts),
        cmocka_unit_test(the_host_pays_for_passes),
        cmocka_unit_test(the_longest_step_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
