/* Paths, groups and the one-line form, with numbers worked by hand from the figures of hw/topology/links.yaml:
 * us: GPU end 0.29, switch 0.1, root 0.282, internal 0.005, xGMI 0.08, NVLink 0.18 a GPU; GB/s: PCIe 5 56,
 * xGMI 51. So a link costs: GPU-switch 0.34, GPU-root 0.431, switch-root 0.191, switch-switch 0.1. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static struct k25_machine make(const char *text)
{
    struct k25_machine machine = {.p2p = true, .host_staging_latency_us = 14};
    struct k25_error error = {0};
    if (!k25_machine_synthetic(text, &parts.links, &machine, &error))
        fail_msg("%s", error.message);
    return machine;
}

static void check_path(const struct k25_machine *machine, int a, int b, enum k25_path_class class, int hops, double us,
                       double gbs)
{
    struct k25_path path;
    assert_true(k25_machine_path(machine, a, b, &path));
    assert_string_equal(k25_path_class_names[path.class], k25_path_class_names[class]);
    assert_int_equal(path.hops, hops);
    assert_within(path.latency * 1e6, us, 1e-9);
    assert_within(path.bandwidth / 1e9, gbs, 1e-9);
}

static void check_group(const struct k25_machine *machine, int n, double ring_us, double ring_gbs, double peer_us,
                        double peer_gbs, enum k25_path_class worst)
{
    struct k25_group group;
    struct k25_error error = {0};
    assert_true(k25_machine_group(machine, n, &group, &error));
    assert_int_equal(group.n, n);
    assert_within(group.ring_latency * 1e6, ring_us, 1e-9);
    assert_within(group.ring_bandwidth / 1e9, ring_gbs, 1e-9);
    assert_within(group.peer_latency * 1e6, peer_us, 1e-9);
    assert_within(group.peer_bandwidth / 1e9, peer_gbs, 1e-9);
    assert_int_equal(group.worst_class, worst);
    assert_int_equal(group.nvlink, worst == K25_PATH_NVLINK);
}

/* ---- paths ---- */

static void test_direct_attach(void **state)
{
    (void)state;
    struct k25_machine machine = make("2 socket, 4 gpu each, pcie5");
    /* GPU root socket root GPU: 0.431 + 0.005 + 0.005 + 0.431; across: the xGMI on top, and its 51 GB/s */
    check_path(&machine, 0, 3, K25_PATH_NODE, 4, 0.872, 56);
    check_path(&machine, 3, 4, K25_PATH_SYS, 5, 0.952, 51);
    check_path(&machine, 7, 0, K25_PATH_SYS, 5, 0.952, 51);
    struct k25_path path;
    assert_false(k25_machine_path(&machine, 2, 2, &path));
    assert_false(k25_machine_path(&machine, 0, 8, &path));
    assert_false(k25_machine_path(&machine, -1, 0, &path));
}

static void test_switches(void **state)
{
    (void)state;
    struct k25_machine machine = make("1 socket, 2 switch, 4 gpu each, pcie5");
    check_path(&machine, 0, 3, K25_PATH_PIX, 2, 0.68, 56);
    /* separate roots, as measured: 1.072 = 2 (0.34 + 0.191 + 0.005) */
    check_path(&machine, 0, 4, K25_PATH_NODE, 6, 1.072, 56);
    machine = make("1 socket, 1 switch, 2 switch each, 4 gpu each, pcie5");
    check_path(&machine, 0, 4, K25_PATH_PXB, 4, 0.88, 56); /* 2 (0.34 + 0.1) */
}

static void test_nvlink(void **state)
{
    (void)state;
    struct k25_machine machine = make("2 socket, 4 gpu each, pcie5, nvlink");
    check_path(&machine, 0, 7, K25_PATH_NVLINK, 2, 0.36, 450); /* 2 x 0.18; 18 NVLinks of 25 */
    check_group(&machine, 8, 0.36, 450, 0.36, 450, K25_PATH_NVLINK);
}

static int add(struct k25_machine *machine, enum k25_vertex_kind kind, const char *name)
{
    int vertex = -1;
    struct k25_error error;
    assert_true(k25_machine_add_vertex(machine, kind, name, &vertex, &error));
    return vertex;
}

static void link_up(struct k25_machine *machine, int from, int to, enum k25_link_kind kind, double gbs, double us)
{
    struct k25_error error;
    struct k25_link link = {from, to, kind, gbs * 1e9, us * 1e-6};
    assert_true(k25_machine_add_link(machine, link, &error));
}

static void test_tie_goes_to_fewest_links(void **state)
{
    struct k25_machine machine = {.p2p = true};
    (void)state;
    add(&machine, K25_V_GPU, "a");
    add(&machine, K25_V_GPU, "b");
    for (int i = 0; i < 3; i++)
        add(&machine, K25_V_SWITCH, (const char *[]){"s", "t", "u"}[i]);
    /* a-s-t-b and a-u-b both take 0.6 us, though 0.1 + 0.2 + 0.3 and 0.3 + 0.3 differ in the last bit */
    link_up(&machine, 0, 2, K25_L_PCIE, 10, 0.1);
    link_up(&machine, 2, 3, K25_L_PCIE, 10, 0.2);
    link_up(&machine, 3, 1, K25_L_PCIE, 10, 0.3);
    link_up(&machine, 0, 4, K25_L_PCIE, 30, 0.3);
    link_up(&machine, 4, 1, K25_L_PCIE, 20, 0.3);
    check_path(&machine, 0, 1, K25_PATH_PIX, 2, 0.6, 20);
    check_path(&machine, 1, 0, K25_PATH_PIX, 2, 0.6, 20);
}

static double lone_gbs(const struct k25_machine *machine, int n)
{
    struct k25_group group;
    struct k25_error error = {0};
    assert_true(k25_machine_group(machine, n, &group, &error));
    return group.lone_bandwidth / 1e9;
}

/* One rank that reads all others gets what its own link lets through, if the paths behind it are as wide. */
static void test_one_reader_alone(void **state)
{
    (void)state;
    struct k25_machine machine = make("2 socket, 4 gpu each, pcie5");
    assert_within(lone_gbs(&machine, 2), 56, 1e-9);
    assert_within(lone_gbs(&machine, 8), 56, 1e-9); /* four flows of 8 GB/s cross 51 */
    assert_true(isinf(lone_gbs(&machine, 1)));
    for (size_t i = 0; i < machine.links; i++) {
        if (machine.link[i].kind == K25_L_SOCKET)
            machine.link[i].bandwidth = 7e9;
    }
    assert_within(lone_gbs(&machine, 8), 7 * 7 / 4.0, 1e-9); /* each of seven flows is as slow as a fourth of it */
    for (size_t i = 0; i < machine.links; i++) {
        if (machine.link[i].from == 0 || machine.link[i].to == 0)
            machine.link[i].bandwidth = 3e9;
    }
    assert_within(lone_gbs(&machine, 8), 3, 1e-9); /* the slowest reader counts */
    check_group(&machine, 2, 0.872, 3, 0.872, 3, K25_PATH_NODE);
    k25_machine_clear(&machine);
    assert_true(machine.gpus == 0 && machine.vertices == 0 && machine.links == 0 && machine.topology[0] == '\0');
}

/* Two switches in a row, without one above them. */
static void test_two_switches_are_several(void **state)
{
    struct k25_machine machine = {.p2p = true};
    (void)state;
    add(&machine, K25_V_GPU, "a");
    add(&machine, K25_V_GPU, "b");
    add(&machine, K25_V_SWITCH, "s");
    add(&machine, K25_V_SWITCH, "t");
    link_up(&machine, 0, 2, K25_L_PCIE, 10, 0.1);
    link_up(&machine, 2, 3, K25_L_PCIE, 10, 0.1);
    link_up(&machine, 3, 1, K25_L_PCIE, 10, 0.1);
    check_path(&machine, 0, 1, K25_PATH_PXB, 3, 0.3, 10);
}

static void test_no_gpu_forwards(void **state)
{
    struct k25_machine machine = {.p2p = true};
    struct k25_error error = {0};
    (void)state;
    for (int i = 0; i < 3; i++)
        add(&machine, K25_V_GPU, (const char *[]){"gpu0", "gpu1", "gpu2"}[i]);
    link_up(&machine, 0, 1, K25_L_NVLINK, 100, 0.1);
    link_up(&machine, 1, 2, K25_L_NVLINK, 100, 0.1);
    assert_false(k25_machine_check(&machine, &error));
    assert_string_equal(error.message, "no links lead from gpu0 to gpu2");
    struct k25_group group;
    assert_false(k25_machine_group(&machine, 3, &group, &error));
    assert_string_equal(error.message, "no links lead from gpu0 to gpu2");
    add(&machine, K25_V_ROOT, "root0");
    link_up(&machine, 0, 3, K25_L_PCIE, 20, 1);
    link_up(&machine, 2, 3, K25_L_PCIE, 20, 1);
    check_path(&machine, 0, 2, K25_PATH_PHB, 2, 2, 20); /* not 0.2 us by way of gpu1 */
}

static void test_without_p2p(void **state)
{
    (void)state;
    struct k25_machine machine = make("2 socket, 2 gpu each, pcie5");
    machine.p2p = false;
    check_path(&machine, 0, 1, K25_PATH_NODE, 4, 14.872, 56);
    check_path(&machine, 0, 3, K25_PATH_SYS, 5, 14.952, 51);
    machine = make("1 socket, 1 switch, 2 gpu each, pcie5");
    check_path(&machine, 0, 1, K25_PATH_PIX, 2, 0.68, 56);
    machine.p2p = false;
    /* up to the socket and down again, 0.34 + 0.191 + 0.005 each way, through one root; both flows of the pair go
     * up the one uplink and come down it: 56 / 2 */
    check_path(&machine, 0, 1, K25_PATH_PHB, 6, 15.072, 56);
    check_group(&machine, 2, 15.072, 28, 15.072, 28, K25_PATH_PHB);
}

/* ---- groups ---- */

static void test_group_two_socket(void **state)
{
    (void)state;
    struct k25_machine machine = make("2 socket, 4 gpu each, pcie5");
    /* ring: 3->4 and 7->0 cross, one each way: (6 x 0.872 + 2 x 0.952) / 8
     * peers: 4 x 4 flows cross each way, 51 / 16 = 3.1875 < 56 / 7 = 8; 7 x 3.1875 */
    check_group(&machine, 8, 0.892, 51, 0.952, 22.3125, K25_PATH_SYS);
    /* one socket: 3 flows into each GPU, 3 x 56 / 3 */
    check_group(&machine, 4, 0.872, 56, 0.872, 56, K25_PATH_NODE);
    /* 4 + 1: 4 flows cross each way, 51 / 4 = 12.75 < 56 / 4; the ring crosses twice, once each way */
    check_group(&machine, 5, (3 * 0.872 + 2 * 0.952) / 5, 51, 0.952, 51, K25_PATH_SYS);
}

static void test_group_switches(void **state)
{
    (void)state;
    struct k25_machine machine = make("1 socket, 1 switch, 2 switch each, 4 gpu each, pcie5");
    /* ring: (6 x 0.68 + 2 x 0.88) / 8, one flow each way on the uplinks; peers: 16 flows up each: 7 x 56 / 16 */
    check_group(&machine, 8, 0.73, 56, 0.88, 24.5, K25_PATH_PXB);
    check_group(&machine, 4, 0.68, 56, 0.68, 56, K25_PATH_PIX);
    check_group(&machine, 2, 0.68, 56, 0.68, 56, K25_PATH_PIX);
}

static void test_group_of_one_and_too_many(void **state)
{
    struct k25_group group;
    struct k25_error error = {0};
    (void)state;
    struct k25_machine machine = make("4 gpu, pcie5");
    assert_true(k25_machine_group(&machine, 1, &group, &error));
    assert_within(group.ring_latency, 0, 0);
    assert_within(group.peer_latency, 0, 0);
    assert_true(isinf(group.ring_bandwidth) && isinf(group.peer_bandwidth));
    assert_false(group.nvlink);
    assert_false(k25_machine_group(&machine, 5, &group, &error));
    assert_string_equal(error.message, "a group of 5 GPUs does not fit a machine of 4");
    assert_false(k25_machine_group(&machine, 0, &group, &error));
    assert_string_equal(error.message, "a group of 0 GPUs does not fit a machine of 4");
}

/* The shipped files say of their machines what the one-line forms with the default figures say. */
static void test_shipped_machines_agree(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"rtx-pro-6000-8x-two-socket", "2 socket, 4 gpu each, pcie5"},
        {"rtx-pro-6000-8x-switches", "1 socket, 1 switch, 2 switch each, 4 gpu each, pcie5"},
        {"rtx-pro-6000-4x", "4 gpu, pcie5"},
        {"rtx-pro-6000-2x", "1 socket, 1 switch, 2 gpu each, pcie5"},
        {"h200-8x-nvlink", "8 gpu, nvlink"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[256];
        struct k25_machine shipped;
        struct k25_machine machine = make(cases[i].text);
        struct k25_error error = {0};
        snprintf(file, sizeof file, "%s/hw/machines/%s.yaml", K25_SOURCE_DIR, cases[i].name);
        assert_true(k25_machine_load(file, &parts, &shipped, NULL, &error));
        assert_int_equal(shipped.gpus, machine.gpus);
        for (int n = 2; n <= machine.gpus; n++) {
            struct k25_group group;
            assert_true(k25_machine_group(&machine, n, &group, &error));
            check_group(&shipped, n, group.ring_latency * 1e6, group.ring_bandwidth / 1e9, group.peer_latency * 1e6,
                        group.peer_bandwidth / 1e9, group.worst_class);
        }
    }
}

/* ---- the one-line form ---- */

static void test_forms(void **state)
{
    static const struct {
        const char *text;
        int gpus, vertices, links, first, last; /* classes from GPU 0 to the next and to the last */
    } cases[] = {
        {"2 socket, 4 gpu each, pcie5", 8, 18, 17, K25_PATH_NODE, K25_PATH_SYS},
        {"  2 sockets ,8 gpus,pcie4 ", 8, 18, 17, K25_PATH_NODE, K25_PATH_SYS},
        {"1 socket, 2 switch, 4 gpu each, pcie5", 8, 13, 12, K25_PATH_PIX, K25_PATH_NODE},
        {"2 socket, 2 switches, 4 gpu each, pcie5", 8, 14, 13, K25_PATH_PIX, K25_PATH_SYS},
        {"1 switch, 2 switch each, 4 gpu each, pcie5", 8, 13, 12, K25_PATH_PIX, K25_PATH_PXB},
        {"4 gpu, pcie5", 4, 9, 8, K25_PATH_NODE, K25_PATH_NODE},
        {"8 gpu, nvlink", 8, 9, 8, K25_PATH_NVLINK, K25_PATH_NVLINK},
        {"2 socket, 4 gpu each, pcie5, nvlink", 8, 19, 25, K25_PATH_NVLINK, K25_PATH_NVLINK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_machine machine = make(cases[i].text);
        struct k25_path path;
        assert_int_equal(machine.gpus, cases[i].gpus);
        assert_int_equal(machine.vertices, cases[i].vertices);
        assert_int_equal(machine.links, cases[i].links);
        assert_true(machine.assumed_links);
        assert_string_equal(machine.topology, cases[i].text);
        assert_true(k25_machine_path(&machine, 0, 1, &path));
        assert_int_equal(path.class, cases[i].first);
        assert_true(k25_machine_path(&machine, 0, machine.gpus - 1, &path));
        assert_int_equal(path.class, cases[i].last);
    }
    struct k25_machine one = make("1 gpu, pcie5");
    assert_int_equal(one.gpus, 1);
}

#define EXPECTED                                                                                                       \
    "expected \"[N socket,] [N switch [each],]... N gpu [each], pcie4|pcie5 [, nvlink]\" or \"N gpu, nvlink\""

static void test_bad_forms(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "\"\": nothing before the end; " EXPECTED},
        {"4 gpu,, pcie5", "\"4 gpu,, pcie5\": nothing before a comma; " EXPECTED},
        {"4 gpu, pcie5,", "\"4 gpu, pcie5,\": nothing before the end; " EXPECTED},
        {"4 gpuu, pcie5", "\"4 gpuu, pcie5\": unexpected 'gpuu', did you mean 'gpu'?; " EXPECTED},
        {"4 gpu, pcie6", "\"4 gpu, pcie6\": unexpected 'pcie6', did you mean 'pcie4'?; " EXPECTED},
        {"four gpu, pcie5", "\"four gpu, pcie5\": unexpected 'four'; " EXPECTED},
        {"4 gpu pcie5", "\"4 gpu pcie5\": unexpected 'pcie5'; " EXPECTED},
        {"4 gpu each, pcie5", "\"4 gpu each, pcie5\": unexpected 'each'; " EXPECTED},
        {"4 gpu, 2 socket, pcie5", "\"4 gpu, 2 socket, pcie5\": unexpected 'socket'; " EXPECTED},
        {"0 gpu, pcie5", "\"0 gpu, pcie5\": a count of 0 is not between 1 and 64"},
        {"-1 gpu, pcie5", "\"-1 gpu, pcie5\": a count of -1 is not between 1 and 64"},
        {"4 socket, 6 gpu, pcie5", "\"4 socket, 6 gpu, pcie5\": 6 gpu do not spread evenly over 4 socket"},
        {"8 socket, 16 gpu each, pcie5", "\"8 socket, 16 gpu each, pcie5\": 128 gpu are more than 64"},
        {"2 socket, pcie5", "\"2 socket, pcie5\": no GPUs; " EXPECTED},
        {"4 gpu", "\"4 gpu\": no pcie4 or pcie5; " EXPECTED},
        {"2 socket, 4 gpu each, nvlink", "\"2 socket, 4 gpu each, nvlink\": no pcie4 or pcie5; " EXPECTED},
        {"2 socket, 60 switch, 60 gpu, pcie5", "a machine has at most 160 vertices"},
        {"32 socket, 32 gpu, pcie5", "a machine has at most 320 links"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_machine machine = {.p2p = true, .gpus = 7};
        struct k25_error error = {0};
        assert_false(k25_machine_synthetic(cases[i].text, &parts.links, &machine, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.status, K25_BAD_INPUT);
        assert_int_equal(machine.gpus, 7); /* untouched */
    }
}

/* GB/s that the slowest rank gets alone and with all others. */
static void check_reads(const char *topology, int n, double lone_gbs, double peer_gbs)
{
    struct k25_machine machine = make(topology);
    struct k25_group group;
    struct k25_error error = {0};
    assert_true(k25_machine_group(&machine, n, &group, &error));
    assert_within(group.lone_bandwidth / 1e9, lone_gbs, 1e-9);
    assert_within(group.peer_bandwidth / 1e9, peer_gbs, 1e-9);
}

static void test_reads_alone_and_together(void **state)
{
    (void)state;
    /* Links of their own: nothing to share. */
    check_reads("4 gpu, pcie5", 4, 56, 56);
    /* 4 x 4 flows through one uplink of 56: 3.5 each, 7 of them. Alone 4 of the 7 flows take it: the GPU's own link
     * is the narrower, 8 a flow against 14. */
    check_reads("1 socket, 2 switch, 4 gpu each, pcie5", 8, 56, 24.5);
    /* 16 flows across the sockets at 51: 3.1875 each; alone 4 of them at 12.75. */
    check_reads("2 socket, 4 gpu each, pcie5", 8, 56, 7 * 51 / 16.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_alone_and_together),
        cmocka_unit_test(test_direct_attach),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_nvlink),
        cmocka_unit_test(test_tie_goes_to_fewest_links),
        cmocka_unit_test(test_one_reader_alone),
        cmocka_unit_test(test_two_switches_are_several),
        cmocka_unit_test(test_no_gpu_forwards),
        cmocka_unit_test(test_without_p2p),
        cmocka_unit_test(test_group_two_socket),
        cmocka_unit_test(test_group_switches),
        cmocka_unit_test(test_group_of_one_and_too_many),
        cmocka_unit_test(test_shipped_machines_agree),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_bad_forms),
    };
    return cmocka_run_group_tests(tests, load_defaults, NULL);
}
