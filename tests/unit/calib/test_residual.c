/* Residual tables: values between, at and beyond the sites by hand; made of kernel tables; in a calibration set
 * and back; in a prediction. What they are worth on measured kernels: test_kernel_table.c. */
#include "tests/unit/physics_check.h"

#include "calib/fit/calibration.h"
#include "calib/kernels/residual.h"

static struct k25_machine machine;
static struct k25_priors priors;
static struct k25_params centres;

static int prepare(void **state)
{
    static struct k25_machine_parts parts;
    struct k25_error error = {0};
    if (enter_folder(state) != 0)
        return -1;
    bool ok = k25_library_parts(&(const struct k25_library){K25_SOURCE_DIR}, &parts, NULL, &error) &&
              k25_machine_load(K25_SOURCE_DIR "/hw/machines/rtx-pro-6000-8x-two-socket.yaml", &parts, &machine, NULL,
                               &error) &&
              k25_priors_load(K25_SOURCE_DIR "/hw/params/params.yaml", &priors, NULL, &error);
    memcpy(centres.value, priors.centre, sizeof centres.value);
    if (!ok)
        print_error("%s\n", error.message);
    return ok ? 0 : -1;
}

static void set_sites(struct k25_residuals *residuals, enum k25_kernel_class class, const double (*rows)[4],
                      size_t count)
{
    struct k25_residual_site site[64];
    struct k25_error error = {0};
    for (size_t i = 0; i < count; i++)
        site[i] = (struct k25_residual_site){{rows[i][0], rows[i][1], rows[i][2]}, rows[i][3], {0}};
    assert_true(k25_residuals_set(residuals, class, site, count, &error));
}

static double at(const struct k25_residuals *residuals, enum k25_kernel_class class, double x, double y, double z)
{
    struct k25_kernel_call call = {.class = class, .shape = {x, y, z}};
    return k25_residual(residuals, &call);
}

/* ---- the value ---- */

static void without_sites_it_is_zero(void **state)
{
    (void)state;
    struct k25_residuals residuals = {0};
    assert_within(at(NULL, K25_KERNEL_MLA, 1, 100, 8), 0, 0);
    assert_within(at(&residuals, K25_KERNEL_MLA, 1, 100, 8), 0, 0);
    assert_int_equal(k25_residuals_count(&residuals), 0);
    assert_int_equal(k25_residuals_count(NULL), 0);
    static const double one[][4] = {{1, 100, 8, 0.5}};
    set_sites(&residuals, K25_KERNEL_MLA, one, 1);
    assert_int_equal(k25_residuals_count(&residuals), 1);
    assert_within(at(&residuals, K25_KERNEL_GEMM_BF16, 1, 100, 8), 0, 0); /* another class */
    assert_within(at(&residuals, K25_KERNEL_MLA, 0, 100, 8), 0, 0);       /* a call without a shape */
    set_sites(&residuals, K25_KERNEL_MLA, one, 0);
    assert_int_equal(k25_residuals_count(&residuals), 0);
    k25_residuals_free(&residuals);
}

/* MLA reaches 4 along each logarithm. One site of 0.4: (1 - d)^2 of it. */
static void one_site_fades(void **state)
{
    (void)state;
    struct k25_residuals residuals = {0};
    static const double one[][4] = {{1, 1000, 8, 0.4}};
    set_sites(&residuals, K25_KERNEL_MLA, one, 1);
    assert_within(at(&residuals, K25_KERNEL_MLA, 1, 1000, 8), 0.4, 1e-15);
    assert_within(at(&residuals, K25_KERNEL_MLA, exp(1), 1000, 8), 0.4 * 0.75 * 0.75, 1e-12);
    assert_within(at(&residuals, K25_KERNEL_MLA, 1, 1000 * exp(-2), 8), 0.1, 1e-12);
    /* 3/4 and 4/4 along two coordinates: 5/4 away */
    assert_within(at(&residuals, K25_KERNEL_MLA, exp(3), 1000, 8 * exp(4)), 0, 0);
    assert_within(at(&residuals, K25_KERNEL_MLA, exp(4.001), 1000, 8), 0, 0);
    assert_true(at(&residuals, K25_KERNEL_MLA, exp(3.9), 1000, 8) > 0);
    k25_residuals_free(&residuals);

    /* products hear half as far along n and k */
    set_sites(&residuals, K25_KERNEL_GEMM_BF16, one, 1);
    assert_within(at(&residuals, K25_KERNEL_GEMM_BF16, exp(2), 1000, 8), 0.1, 1e-12);
    assert_within(at(&residuals, K25_KERNEL_GEMM_BF16, 1, 1000 * exp(1), 8), 0.1, 1e-12);
    k25_residuals_free(&residuals);
}

/* Half of a reach along one logarithm leaves a quarter of a lone site's value. */
static void every_class_has_its_reach(void **state)
{
    (void)state;
    static const struct {
        enum k25_kernel_class class;
        double reach[K25_SHAPE];
    } cases[] = {
        {K25_KERNEL_GEMM_BF16, {4, 2, 2}}, {K25_KERNEL_GEMM_FP8, {4, 2, 2}}, {K25_KERNEL_GEMM_FP4, {4, 2, 2}},
        {K25_KERNEL_GEMM_INT4, {4, 2, 2}}, {K25_KERNEL_MOE_BF16, {4, 4, 2}}, {K25_KERNEL_MOE_FP8, {4, 4, 2}},
        {K25_KERNEL_MOE_INT4, {4, 4, 2}},  {K25_KERNEL_MOE_FP4, {4, 4, 2}},  {K25_KERNEL_MLA, {4, 4, 4}},
    };
    static const double one[][4] = {{1000, 1000, 1000, 0.4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_residuals residuals = {0};
        assert_true(k25_residual_class(cases[i].class));
        set_sites(&residuals, cases[i].class, one, 1);
        for (int axis = 0; axis < K25_SHAPE; axis++) {
            double shape[K25_SHAPE] = {1000, 1000, 1000};
            shape[axis] *= exp(cases[i].reach[axis] / 2);
            assert_within(at(&residuals, cases[i].class, shape[0], shape[1], shape[2]), 0.1, 1e-12);
        }
        k25_residuals_free(&residuals);
    }
    assert_false(k25_residual_class(K25_KERNEL_GQA));
    assert_false(k25_residual_class(K25_KERNEL_CLASSES));
}

/* Two sites 1/2 apart with 0.2 and 0.4: K = [1 1/4; 1/4 1], K^-1 r = [0.1 0.35] / 0.9375. Halfway each covariance
 * is 9/16: 0.5625 x 0.45 / 0.9375 = 0.27. */
static void two_sites_are_interpolated(void **state)
{
    (void)state;
    struct k25_residuals residuals = {0};
    const double two[][4] = {{1, 1000, 8, 0.2}, {exp(2), 1000, 8, 0.4}};
    set_sites(&residuals, K25_KERNEL_MLA, two, 2);
    assert_within(at(&residuals, K25_KERNEL_MLA, 1, 1000, 8), 0.2, 1e-12);
    assert_within(at(&residuals, K25_KERNEL_MLA, exp(2), 1000, 8), 0.4, 1e-12);
    assert_within(at(&residuals, K25_KERNEL_MLA, exp(1), 1000, 8), 0.27, 1e-12);
    k25_residuals_free(&residuals);
}

/* The site of one_site_fades: d = ln(x) / 4 away the value is 0.4 (1 - d)^2, whose slope in ln x is -0.2 (1 - d). */
static void slopes_of_one_site(void **state)
{
    (void)state;
    struct k25_residuals residuals = {0};
    static const double one[][4] = {{1, 1000, 8, 0.4}};
    double slope[K25_SHAPE] = {7, 7, 7};
    struct k25_kernel_call call = {.class = K25_KERNEL_MLA, .shape = {exp(1), 1000, 8}};
    assert_true(k25_residual_slope(&residuals, &call, slope) == 0); /* no table */
    assert_true(slope[0] == 0 && slope[1] == 0 && slope[2] == 0);
    set_sites(&residuals, K25_KERNEL_MLA, one, 1);
    assert_within(k25_residual_slope(&residuals, &call, slope), 0.4 * 0.75 * 0.75, 1e-12);
    assert_within(slope[0], -0.15, 1e-12);
    assert_true(slope[1] == 0 && slope[2] == 0);
    call = (struct k25_kernel_call){.class = K25_KERNEL_MLA, .shape = {1, 1000 * exp(-2), 8}};
    k25_residual_slope(&residuals, &call, slope);
    assert_within(slope[1], 0.1, 1e-12); /* on the other side */
    call.shape[1] = 1000;                /* the tip: the mean of both sides */
    assert_within(k25_residual_slope(&residuals, &call, slope), 0.4, 1e-12);
    assert_true(slope[0] == 0 && slope[1] == 0 && slope[2] == 0);
    call.shape[1] = 1000 * exp(5); /* out of reach */
    assert_true(k25_residual_slope(&residuals, &call, slope) == 0 && slope[1] == 0);
    k25_residuals_free(&residuals);
}

static double distance_from(const double at[K25_SHAPE], const double row[4])
{
    double sum = 0;
    for (int i = 0; i < K25_SHAPE; i++)
        sum += pow(log(row[i] / at[i]) / 4, 2);
    return sum;
}

static const double *here; /* of by_distance */

static int by_distance(const void *a, const void *b)
{
    double x = distance_from(here, a), y = distance_from(here, b);
    return (x > y) - (x < y);
}

/* Of many sites in reach the twelve nearest count, wherever they are in the tree: a table of these alone says the same.
 */
static void the_nearest_sites_count(void **state)
{
    (void)state;
    enum { SITES = 60 };
    uint64_t seed = 90;
    for (int round = 0; round < 200; round++) {
        struct k25_residuals all = {0}, nearest = {0};
        double rows[SITES][4], point[K25_SHAPE];
        for (int i = 0; i < SITES; i++) {
            for (int axis = 0; axis < K25_SHAPE; axis++)
                rows[i][axis] = exp(4 * uniform(&seed));
            rows[i][3] = normal(&seed);
        }
        for (int axis = 0; axis < K25_SHAPE; axis++)
            point[axis] = exp(4 * uniform(&seed));
        set_sites(&all, K25_KERNEL_MLA, (const double(*)[4])rows, SITES);
        here = point;
        qsort(rows, SITES, sizeof *rows, by_distance);
        set_sites(&nearest, K25_KERNEL_MLA, (const double(*)[4])rows, 12);
        assert_within(at(&all, K25_KERNEL_MLA, point[0], point[1], point[2]),
                      at(&nearest, K25_KERNEL_MLA, point[0], point[1], point[2]), 1e-9);
        k25_residuals_free(&all);
        k25_residuals_free(&nearest);
    }
}

static void sites_of_one_shape_are_one(void **state)
{
    (void)state;
    struct k25_residuals residuals = {0};
    static const double sites[][4] = {{1, 9, 8, 0.1}, {2, 9, 8, 0.7}, {1, 9, 8, 0.3}};
    set_sites(&residuals, K25_KERNEL_MOE_INT4, sites, 3);
    assert_int_equal(residuals.table[K25_KERNEL_MOE_INT4].count, 2);
    assert_within(at(&residuals, K25_KERNEL_MOE_INT4, 1, 9, 8), 0.2, 1e-12);
    k25_residuals_free(&residuals);
}

/* A field of sites: exact at each, whatever their order; between, near a smooth field. */
static void a_field_is_met_at_every_site(void **state)
{
    (void)state;
    struct k25_residuals forth = {0}, back = {0};
    double sites[60][4], reverse[60][4];
    for (int i = 0; i < 60; i++) {
        double x = i % 5, y = i / 5 % 4, z = i / 20;
        const double site[] = {exp2(x), exp2(2 * y), exp2(z), 0.1 * x - 0.05 * y + 0.02 * z};
        memcpy(sites[i], site, sizeof site);
        memcpy(reverse[59 - i], site, sizeof site);
    }
    set_sites(&forth, K25_KERNEL_GEMM_FP8, (const double(*)[4])sites, 60);
    set_sites(&back, K25_KERNEL_GEMM_FP8, (const double(*)[4])reverse, 60);
    for (int i = 0; i < 60; i++) {
        double value = at(&forth, K25_KERNEL_GEMM_FP8, sites[i][0], sites[i][1], sites[i][2]);
        assert_within(value, sites[i][3], 1e-9);
    }
    double between = at(&forth, K25_KERNEL_GEMM_FP8, exp2(1.5), exp2(3), exp2(1));
    assert_true(fabs(between - (0.1 * 1.5 - 0.05 * 1.5 + 0.02)) < 0.02);
    assert_within(at(&back, K25_KERNEL_GEMM_FP8, exp2(1.5), exp2(3), exp2(1)), between, 0);
    k25_residuals_free(&forth);
    k25_residuals_free(&back);
}

/* ---- made of a kernel table ---- */

static struct k25_kernel_table *parse(const char *text)
{
    struct k25_error error = {0};
    struct k25_kernel_table *table = k25_kernel_table_parse(text, strlen(text), "made.csv", &machine, &error);
    if (table == NULL)
        fail_msg("%s", error.message);
    return table;
}

static void a_product_measured_twice_as_long(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_residuals residuals = {0};
    size_t rows;
    struct k25_kernel_table *table = parse("engine,kernel,dtype,m,n,k,latency_us\n"
                                           "v,l,bfloat16,1,4096,7168,1\n"
                                           "v,l,bfloat16,2,4096,7168,1\n");
    const bool take[] = {true, false};
    double formula = k25_kernel_work_time(&table->row[0].work, &centres, NULL);
    table->row[0].latency = 2 * formula;
    assert_int_equal(k25_residual_family_class(table, 0), K25_KERNEL_GEMM_BF16);
    assert_true(k25_residuals_build(table, 0, take, &centres, &residuals, &rows, &error));
    assert_int_equal(rows, 1);
    assert_within(at(&residuals, K25_KERNEL_GEMM_BF16, 1, 4096, 7168), log(2), 1e-12);
    double with = k25_kernel_work_time_with(&table->row[0].work, &centres, &residuals);
    assert_within(with / formula, 2, 1e-12);

    table->row[0].latency = 1000 * formula; /* something else was measured: a factor of 8 at most */
    assert_true(k25_residuals_build(table, 0, take, &centres, &residuals, NULL, &error));
    assert_within(at(&residuals, K25_KERNEL_GEMM_BF16, 1, 4096, 7168), log(8), 1e-12);
    k25_residuals_free(&residuals);
    k25_kernel_table_free(table);
}

/* What a block takes beyond the formulas is the attention's, and the block then comes out as measured. */
static void a_block_is_booked_on_its_attention(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_residuals residuals = {0};
    struct k25_kernel_table *table =
        parse("engine,kernel,scope,dtype,kv_dtype,proj_dtype,heads,batch,context,latency_us\n"
              "v,TRITON_MLA,module,bfloat16,bfloat16,bfloat16,16,4,4096,1\n");
    const bool take[] = {true};
    const struct k25_kernel_work *work = &table->row[0].work;
    double formula = k25_kernel_work_time(work, &centres, NULL);
    struct k25_kernel_call call = k25_mla_call(&work->mla.attention, &centres);
    double attention = k25_kernel_cost(&call, &machine.gpu, &centres).time;
    table->row[0].latency = formula + attention / 2;
    assert_true(k25_residuals_build(table, 0, take, &centres, &residuals, NULL, &error));
    assert_within(at(&residuals, K25_KERNEL_MLA, 4, 4096, 16), log(1.5), 1e-9);
    assert_within(k25_kernel_work_time_with(work, &centres, &residuals) / table->row[0].latency, 1, 1e-12);
    k25_residuals_free(&residuals);
    k25_kernel_table_free(table);
}

static void other_kernels_have_none(void **state)
{
    (void)state;
    struct k25_error error = {0};
    struct k25_residuals residuals = {0};
    size_t rows = 7;
    const bool take[] = {true};
    struct k25_kernel_table *table = parse("engine,kernel,op,dtype,heads,tokens,latency_us\n"
                                           "v,absorb,mla_gen_pre,bfloat16,16,4,9\n");
    assert_int_equal(k25_residual_family_class(table, 0), K25_KERNEL_CLASSES);
    assert_true(k25_residuals_build(table, 0, take, &centres, &residuals, &rows, &error));
    assert_int_equal(rows, 0);
    assert_int_equal(k25_residuals_count(&residuals), 0);
    k25_kernel_table_free(table);
}

/* More rows than a table keeps: the first stays, and the spacing is even. */
static void a_large_table_is_thinned(void **state)
{
    (void)state;
    enum { ROWS = 2 * K25_MAX_SITES };
    struct k25_error error = {0};
    struct k25_residuals residuals = {0};
    size_t rows, used, size = 40 * (size_t)ROWS;
    char *text = malloc(size);
    bool *take = malloc(ROWS * sizeof *take);
    assert_true(text != NULL && take != NULL);
    used = (size_t)snprintf(text, size, "engine,kernel,dtype,m,n,k,latency_us\n");
    for (int i = 0; i < ROWS; i++) {
        used += (size_t)snprintf(text + used, size - used, "v,l,bfloat16,1,64,%d,%d\n", i + 1, 50);
        take[i] = true;
    }
    struct k25_kernel_table *table = parse(text);
    assert_true(k25_residuals_build(table, 0, take, &centres, &residuals, &rows, &error));
    assert_int_equal(rows, ROWS);
    const struct k25_residual_table *made = &residuals.table[K25_KERNEL_GEMM_BF16];
    assert_int_equal(made->count, K25_MAX_SITES);
    for (size_t i = 0; i < made->count; i++)
        assert_int_equal((int)made->site[i].shape[2] % 2, 1);
    k25_residuals_free(&residuals);
    k25_kernel_table_free(table);
    free(take);
    free(text);
}

/* ---- in a calibration set ---- */

static const char HEAD[] = "k25sim: calibration\nversion: 1\nname: mybox\nsource: tables\nparameters: {}\n";

static bool load(const char *rest, struct k25_calibration *set, struct k25_error *error)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s", HEAD, rest);
    put_text("set.yaml", text);
    return k25_calibration_load("set.yaml", set, NULL, error);
}

static void a_set_carries_its_tables(void **state)
{
    (void)state;
    static const char tables[] = "residuals:\n"
                                 "  - class: gemm_bf16\n"
                                 "    sites:\n"
                                 "      - [1, 2112, 7168, 0.0312]\n"
                                 "      - [8, 2112, 7168, -0.25]\n"
                                 "  - class: moe_int4\n"
                                 "    sites:\n"
                                 "      - [1.333333333, 8, 256, 1.5]\n";
    struct k25_error error = {0};
    struct k25_calibration set;
    if (!load(tables, &set, &error))
        fail_msg("%s", error.message);
    assert_int_equal(k25_residuals_count(&set.residuals), 2);
    assert_within(at(&set.residuals, K25_KERNEL_GEMM_BF16, 8, 2112, 7168), -0.25, 1e-12);
    assert_within(at(&set.residuals, K25_KERNEL_MOE_INT4, 1.333333333, 8, 256), 1.5, 1e-12);
    char *printed = k25_calibration_print(&set, &error);
    assert_non_null(printed);
    assert_non_null(strstr(printed, tables));
    k25_calibration_free(&set);
    assert_int_equal(k25_residuals_count(&set.residuals), 0);

    put_text("set.yaml", printed);
    assert_true(k25_calibration_load("set.yaml", &set, NULL, &error));
    char *again = k25_calibration_print(&set, &error);
    assert_string_equal(again, printed);
    k25_calibration_free(&set);
    free(printed);
    free(again);
}

static void mistakes_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"residuals: 3\n", "set.yaml:6:12: residuals: expected a list of tables"},
        {"residuals:\n  - {class: gemm_bf61, sites: [[1, 2, 3, 0]]}\n",
         "set.yaml:7:13: residuals.class: unknown value 'gemm_bf61', expected one of gemm_bf16, gemm_fp8, "
         "gemm_fp4, gemm_int4, bmm, elementwise, moe_bf16, moe_fp8, moe_int4, moe_fp4, mla, gqa, "
         "indexer, linear, did you mean 'gemm_bf16'?"},
        {"residuals:\n  - {class: bmm, sites: [[1, 2, 3, 0]]}\n",
         "set.yaml:7:5: residuals: kernels of class bmm have no table"},
        {"residuals:\n  - {class: mla, sites: [[1, 2, 3, 0]]}\n  - {class: mla, sites: [[1, 2, 3, 0]]}\n",
         "set.yaml:8:5: residuals: a second table of class mla"},
        {"residuals:\n  - {class: mla, sites: []}\n", "set.yaml:7:25: residuals: expected a list of 1 to 4000 sites"},
        {"residuals:\n  - {class: mla, sites: [[1, 2, 3]]}\n",
         "set.yaml:7:26: residuals: expected a list of three numbers of the shape and a logarithm"},
        {"residuals:\n  - {class: mla, sites: [[1, two, 3, 0]]}\n", "set.yaml:7:30: residuals: expected a number"},
        {"residuals:\n  - {class: mla, sites: [[1, 2, 0, 0]]}\n",
         "set.yaml:7:33: residuals: 0, expected a number above 0, up to 1e12"},
        {"residuals:\n  - {class: mla, sites: [[1, 2, 3, 11]]}\n",
         "set.yaml:7:36: residuals: 11, expected a logarithm from -10 to 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_error error = {0};
        struct k25_calibration set;
        assert_false(load(cases[i].text, &set, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(k25_residuals_count(&set.residuals), 0);
    }
}

/* ---- in a prediction ---- */

static void a_prediction_takes_them(void **state)
{
    (void)state;
    static struct box box;
    static struct k25_prediction plain, with;
    struct k25_residuals residuals = {0};
    struct k25_params params = fixed_params();
    kimi_box(&box);
    struct k25_question question = ask(&box);
    assert_null(question.residuals);
    k25_predict(&question, &params, &plain);
    size_t i = 0;
    while (plain.step_work.op[i].kind != K25_OP_KERNEL || plain.step_work.op[i].call.class != K25_KERNEL_MLA)
        i++;
    const struct k25_kernel_call *call = &plain.step_work.op[i].call;
    assert_true(call->shape[0] == question.plan.batch && call->shape[1] == question.plan.context);
    const double site[][4] = {{call->shape[0], call->shape[1], call->shape[2], log(1.5)}};
    set_sites(&residuals, K25_KERNEL_MLA, site, 1);
    question.residuals = &residuals;
    k25_predict(&question, &params, &with);
    assert_close(with.op[i].time, 1.5 * plain.op[i].time, 1e-12);
    assert_true(with.kernels > plain.kernels && with.step > plain.step);
    k25_residuals_free(&residuals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_sites_it_is_zero),         cmocka_unit_test(one_site_fades),
        cmocka_unit_test(two_sites_are_interpolated),       cmocka_unit_test(slopes_of_one_site),
        cmocka_unit_test(every_class_has_its_reach),        cmocka_unit_test(the_nearest_sites_count),
        cmocka_unit_test(sites_of_one_shape_are_one),       cmocka_unit_test(a_field_is_met_at_every_site),
        cmocka_unit_test(a_product_measured_twice_as_long), cmocka_unit_test(a_block_is_booked_on_its_attention),
        cmocka_unit_test(other_kernels_have_none),          cmocka_unit_test(a_large_table_is_thinned),
        cmocka_unit_test(a_set_carries_its_tables),         cmocka_unit_test(mistakes_have_a_position),
        cmocka_unit_test(a_prediction_takes_them),
    };
    return cmocka_run_group_tests(tests, prepare, leave_folder);
}
