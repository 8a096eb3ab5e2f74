/* The machine files: what the shipped ones say, overriding, printing, and every message about a bad one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw/topology/machine.h"
#include "scenarios/library/library.h"
#include "tests/unit/number_check.h"

static const struct k25_library library = {K25_SOURCE_DIR};
static struct k25_machine_parts parts;

static int load_defaults(void **state)
{
    struct k25_error error;
    (void)state;
    return k25_library_parts(&library, &parts, NULL, &error) ? 0 : -1;
}

static void load_shipped(const char *name, struct k25_machine *machine, struct k25_inputs *inputs)
{
    char path[256];
    struct k25_error error = {0};
    snprintf(path, sizeof path, "%s/hw/machines/%s.yaml", K25_SOURCE_DIR, name);
    if (!k25_machine_load(path, &parts, machine, inputs, &error))
        fail_msg("%s", error.message);
    assert_string_equal(machine->name, name);
}

static bool same_machine(const struct k25_machine *a, const struct k25_machine *b)
{
    bool same = strcmp(a->name, b->name) == 0 && strcmp(a->source, b->source) == 0 && a->gpus == b->gpus &&
                a->p2p == b->p2p && a->host_staging_latency_us == b->host_staging_latency_us &&
                strcmp(a->gpu.name, b->gpu.name) == 0 && a->gpu.sms == b->gpu.sms &&
                a->gpu.memory_mib == b->gpu.memory_mib && a->gpu.bandwidth_gbs == b->gpu.bandwidth_gbs &&
                a->gpu.l2_mib == b->gpu.l2_mib && a->gpu.peak_bf16_tflops == b->gpu.peak_bf16_tflops &&
                a->gpu.peak_fp8_tflops == b->gpu.peak_fp8_tflops && a->gpu.peak_fp4_tflops == b->gpu.peak_fp4_tflops &&
                a->gpu.power_w == b->gpu.power_w && strcmp(a->topology, b->topology) == 0 &&
                a->assumed_links == b->assumed_links && a->vertices == b->vertices && a->links == b->links;
    for (size_t i = 0; same && i < a->vertices; i++)
        same = strcmp(a->vertex[i].name, b->vertex[i].name) == 0 && a->vertex[i].kind == b->vertex[i].kind;
    for (size_t i = 0; same && i < a->links; i++)
        same = a->link[i].from == b->link[i].from && a->link[i].to == b->link[i].to &&
               a->link[i].kind == b->link[i].kind && a->link[i].bandwidth == b->link[i].bandwidth &&
               a->link[i].latency == b->link[i].latency;
    return same;
}

static void check_round_trip(const struct k25_machine *machine)
{
    struct k25_error error = {0};
    struct k25_machine again;
    char *text = k25_machine_print(machine, &error);
    assert_non_null(text);
    if (!k25_machine_parse(text, strlen(text), "printed", &parts, &again, NULL, &error))
        fail_msg("%s", error.message);
    assert_true(same_machine(machine, &again));
    free(text);
}

/* ---- what is shipped ---- */

static void test_shipped_two_socket(void **state)
{
    struct k25_machine machine;
    struct k25_inputs inputs = {0};
    (void)state;
    load_shipped("rtx-pro-6000-8x-two-socket", &machine, &inputs);
    assert_int_equal(machine.gpus, 8);
    assert_true(machine.p2p);
    assert_false(machine.assumed_links);
    assert_int_equal(machine.gpu.sms, 188);
    assert_within(k25_gpu_memory(&machine.gpu), 102641958912.0, 0); /* 97887 x 1048576 */
    assert_within(k25_gpu_bandwidth(&machine.gpu), 1.597e12, 0);
    assert_within(k25_gpu_l2(&machine.gpu), 134217728.0, 0); /* 128 x 1048576 */
    assert_within(k25_gpu_bf16(&machine.gpu), 467.8e12, 1);
    assert_within(k25_gpu_fp8(&machine.gpu), 935.6e12, 1);
    assert_within(k25_gpu_fp4(&machine.gpu), 1871.2e12, 1);
    const struct k25_input *input = k25_inputs_find(&inputs, "machine.gpu.bandwidth_gbs");
    assert_non_null(input);
    assert_string_equal(input->value, "1597");
    assert_string_equal(input->unit, "GB/s");
    assert_int_equal(input->origin, K25_FROM_FILE);
    assert_string_equal(input->file, K25_SOURCE_DIR "/hw/gpus/rtx-pro-6000-server.yaml");
    input = k25_inputs_find(&inputs, "machine.gpu");
    assert_non_null(input);
    assert_string_equal(input->value, "rtx-pro-6000-server");
    input = k25_inputs_find(&inputs, "machine.graph.links[16].bandwidth_gbs");
    assert_non_null(input); /* 8 GPU links, 8 internal ones, then the xGMI */
    assert_string_equal(input->value, "51");
    k25_inputs_free(&inputs);
}

static void test_shipped_counts(void **state)
{
    static const struct {
        const char *name;
        int gpus;
    } cases[] = {
        {"rtx-pro-6000-8x-two-socket", 8},
        {"rtx-pro-6000-8x-switches", 8},
        {"rtx-pro-6000-4x", 4},
        {"rtx-pro-6000-2x", 2},
        {"h200-8x-nvlink", 8},
        {"rtx-5090-4x", 4},
        {"rtx-pro-6000-workstation-8x-switches", 8},
        {"b200-8x-nvlink", 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_machine machine;
        load_shipped(cases[i].name, &machine, NULL);
        assert_int_equal(machine.gpus, cases[i].gpus);
        check_round_trip(&machine);
    }
}

static void test_shipped_h200(void **state)
{
    struct k25_machine machine;
    (void)state;
    load_shipped("h200-8x-nvlink", &machine, NULL);
    assert_int_equal(machine.gpu.sms, 132);
    assert_within(k25_gpu_bandwidth(&machine.gpu), 4.8e12, 0);
    assert_within(k25_gpu_bf16(&machine.gpu), 989.5e12, 1);
    assert_within(k25_gpu_fp4(&machine.gpu), 0, 0);
}

static void test_link_defaults(void **state)
{
    (void)state;
    assert_within(parts.links.pcie5.bandwidth_gbs, 56, 0);
    assert_within(parts.links.xgmi.bandwidth_gbs, 51, 0);
    assert_int_equal(parts.links.nvlinks, 18);
    /* the measured ping-pongs the file derives its latencies from: 0.68, 1.062 and 1.072 us */
    double pix = 2 * parts.links.pcie5.latency_us + parts.links.switch_latency_us;
    double phb = pix + parts.links.switch_latency_us + parts.links.root_latency_us;
    assert_within(pix, 0.68, 1e-9);
    assert_within(phb, 1.062, 1e-9);
    assert_within(phb + 2 * parts.links.internal.latency_us, 1.072, 1e-9);
}

/* ---- text ---- */

#define GPU_PART                                                                                                       \
    "k25sim: machine\nversion: 1\nname: box\nsource: a test\n"                                                         \
    "gpu: {name: G, sms: 100, memory_mib: 1024, bandwidth_gbs: 1000, l2_mib: 32, peak_bf16_tflops: 100,\n"             \
    "      power_w: 300}\n"                                                                                            \
    "host_staging_latency_us: 14\n"
/* what follows stands on line 8 */

static bool parse(const char *text, struct k25_machine *machine, struct k25_error *error)
{
    return k25_machine_parse(text, strlen(text), "box.yaml", &parts, machine, NULL, error);
}

static void test_defaults_of_keys(void **state)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    (void)state;
    assert_true(parse(GPU_PART "topology: \"4 gpu, pcie5\"\n", &machine, &error));
    assert_int_equal(machine.gpus, 4);
    assert_true(machine.p2p);
    assert_true(machine.assumed_links);
    assert_within(machine.gpu.peak_fp8_tflops, 0, 0);
    check_round_trip(&machine);
}

static void test_gpus_come_first(void **state)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    (void)state;
    assert_true(parse(GPU_PART "graph:\n  vertices:\n    - {name: s, kind: switch}\n    - {name: b, kind: gpu}\n"
                               "    - {name: a, kind: gpu}\n"
                               "  links:\n"
                               "    - {from: s, to: a, kind: pcie, bandwidth_gbs: 10, latency_us: 0.5}\n"
                               "    - {from: b, to: s, kind: pcie, bandwidth_gbs: 20, latency_us: 0.25}\n",
                      &machine, &error));
    assert_int_equal(machine.gpus, 2);
    assert_string_equal(machine.vertex[0].name, "b"); /* file order among GPUs is rank order */
    assert_string_equal(machine.vertex[1].name, "a");
    assert_string_equal(machine.vertex[2].name, "s");
    assert_within(machine.link[1].bandwidth, 20e9, 0);
    assert_within(machine.link[1].latency, 0.25e-6, 1e-20);
    check_round_trip(&machine);
}

static void test_odd_names_survive_printing(void **state)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    (void)state;
    assert_true(parse(GPU_PART "topology: \"1 gpu, pcie5\"\n", &machine, &error));
    strcpy(machine.name, "a \"b\" \\ \t: #\x01 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    strcpy(machine.source, "");
    check_round_trip(&machine);
}

#define TWO                                                                                                            \
    "graph:\n  vertices: [{name: gpu0, kind: gpu}, {name: gpu1, kind: gpu}, {name: root0, kind: root}]\n  "            \
    "links:\n"
#define LINK(from, to, kind) "    - {from: " from ", to: " to ", kind: " kind ", bandwidth_gbs: 56, latency_us: 1}\n"

static void test_messages(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {GPU_PART, "box.yaml:1:1: a machine has either 'topology' or 'graph', this one has neither"},
        {GPU_PART "topology: \"4 gpu, pcie5\"\n" TWO LINK("gpu0", "root0", "pcie"),
         "box.yaml:10:3: a machine has either 'topology' or 'graph', this one has both"},
        {GPU_PART "topology: 4 gppu, pcie5\n",
         "box.yaml:8:11: machine.topology: \"4 gppu, pcie5\": unexpected 'gppu', did you mean 'gpu'?; expected "
         "\"[N socket,] [N switch "
         "[each],]... N gpu [each], pcie4|pcie5 [, nvlink]\" or \"N gpu, nvlink\""},
        {GPU_PART "graph: {vertices: [], links: []}\n", "box.yaml:8:8: machine.graph: the machine has no GPU"},
        {GPU_PART "graph: {vertices: 3, links: []}\n",
         "box.yaml:8:19: machine.graph.vertices: expected a list, found a value"},
        {GPU_PART "graph: {vertices: []}\n", "box.yaml:8:8: missing key 'links' in machine.graph"},
        {GPU_PART TWO LINK("gpu0", "root0", "pcie"), "box.yaml:9:3: machine.graph: no links lead from gpu0 to gpu1"},
        {GPU_PART TWO LINK("gpu0", "rot0", "pcie"),
         "box.yaml:11:24: machine.graph.links[0].to: no vertex is called 'rot0', did you mean 'root0'?"},
        {GPU_PART TWO LINK("gpu0", "root0", "nvlink"),
         "box.yaml:11:7: machine.graph.links[0]: a link of kind nvlink cannot join gpu0 (gpu) and root0 (root)"},
        {GPU_PART TWO LINK("gpu0", "root0", "pcie") LINK("root0", "gpu0", "pcie"),
         "box.yaml:12:7: machine.graph.links[1]: root0 and gpu0 are joined twice; give parallel links as one, "
         "with "
         "their bandwidths added"},
        {GPU_PART TWO LINK("gpu0", "gpu0", "nvlink"),
         "box.yaml:11:7: machine.graph.links[0]: a link joins gpu0 to itself"},
        {GPU_PART "graph: {vertices: [{name: a, kind: gpu}, {name: a, kind: switch}], links: []}\n",
         "box.yaml:8:42: machine.graph.vertices[1]: two vertices are called 'a'"},
        {GPU_PART "p2p: false\n" TWO LINK("gpu0", "root0", "pcie") LINK("gpu1", "root0", "pcie"),
         "box.yaml:10:3: machine.graph: no links lead from gpu0 to gpu1 by way of a socket, whose memory data "
         "passes "
         "through without P2P"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_machine machine;
        struct k25_error error = {0};
        assert_false(parse(cases[i].text, &machine, &error));
        assert_int_equal(error.status, K25_BAD_INPUT);
        assert_string_equal(error.message, cases[i].message);
    }
}

static void test_other_kind_of_file(void **state)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    (void)state;
    assert_false(k25_machine_load(K25_SOURCE_DIR "/hw/topology/links.yaml", &parts, &machine, NULL, &error));
    assert_non_null(strstr(error.message, "k25sim: the file is of kind 'link_defaults', expected 'machine'"));
    assert_false(k25_machine_load("/nonexistent/x.yaml", &parts, &machine, NULL, &error));
}

/* ---- overriding ---- */

static void test_set(void **state)
{
    struct k25_machine machine, before;
    struct k25_error error = {0};
    struct k25_inputs inputs = {0};
    (void)state;
    load_shipped("rtx-pro-6000-8x-two-socket", &machine, &inputs);
    assert_true(k25_machine_set(&machine, "gpu.bandwidth_gbs", "1597", &parts, &inputs, &error));
    assert_within(machine.gpu.bandwidth_gbs, 1597, 0);
    assert_int_equal(k25_inputs_find(&inputs, "machine.gpu.bandwidth_gbs")->origin, K25_FROM_OVERRIDE);
    assert_true(k25_machine_set(&machine, "p2p", "false", &parts, &inputs, &error));
    assert_false(machine.p2p);
    assert_true(k25_machine_set(&machine, "topology", "2 socket, 2 gpu each, pcie4", &parts, &inputs, &error));
    assert_int_equal(machine.gpus, 4);
    assert_true(machine.assumed_links);
    before = machine;
    assert_false(k25_machine_set(&machine, "topology", "4 gpu", &parts, &inputs, &error));
    assert_string_equal(error.message,
                        "--set machine.topology=4 gpu: \"4 gpu\": no pcie4 or pcie5; expected \"[N socket,] [N switch "
                        "[each],]... N gpu [each], pcie4|pcie5 [, nvlink]\" or \"N gpu, nvlink\"");
    assert_true(same_machine(&machine, &before)); /* a failure leaves it alone */
    assert_false(k25_machine_set(&machine, "gpu.smss", "3", &parts, &inputs, &error));
    assert_string_equal(error.message,
                        "--set machine.gpu.smss=3: unknown key 'smss' in machine.gpu, did you mean 'sms'?");
    k25_inputs_free(&inputs);
}

static void test_set_p2p_needs_socket(void **state)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    (void)state;
    load_shipped("h200-8x-nvlink", &machine, NULL);
    assert_false(k25_machine_set(&machine, "p2p", "false", &parts, NULL, &error));
    assert_string_equal(error.message,
                        "--set machine.p2p=false: no links lead from gpu0 to gpu1 by way of a socket, whose memory "
                        "data passes through without P2P");
    assert_true(machine.p2p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_two_socket),
        cmocka_unit_test(test_shipped_counts),
        cmocka_unit_test(test_shipped_h200),
        cmocka_unit_test(test_link_defaults),
        cmocka_unit_test(test_defaults_of_keys),
        cmocka_unit_test(test_gpus_come_first),
        cmocka_unit_test(test_odd_names_survive_printing),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_other_kind_of_file),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_p2p_needs_socket),
    };
    return cmocka_run_group_tests(tests, load_defaults, NULL);
}
