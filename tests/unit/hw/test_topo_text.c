/* The reader of `nvidia-smi topo -m`: texts as drivers print them, every message, and random matrices whose
 * classes must come back out of the graph. */
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

static bool parse(const char *text, struct k25_machine *machine, struct k25_error *error)
{
    *machine = (struct k25_machine){.p2p = true};
    return k25_machine_parse_topo(text, strlen(text), "topo.txt", &parts.links, machine, error);
}

static struct k25_machine read_topo(const char *text)
{
    struct k25_machine machine;
    struct k25_error error = {0};
    if (!parse(text, &machine, &error))
        fail_msg("%s", error.message);
    assert_true(machine.assumed_links);
    return machine;
}

static enum k25_path_class class_between(const struct k25_machine *machine, int a, int b)
{
    struct k25_path path;
    assert_true(k25_machine_path(machine, a, b, &path));
    return path.class;
}

#define LEGEND                                                                                                         \
    "\nLegend:\n\n  X    = Self\n"                                                                                     \
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"         \
    "  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n\n"

/* Two sockets, direct attach, with a NIC; underlined header, tabs: what a terminal gets. */
static const char direct_attach[] =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNODE\tSYS\tSYS\tNODE\t0-63,128-191\t0\t\tN/A\n"
    "GPU1\tNODE\t X \tSYS\tSYS\tPHB\t0-63,128-191\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tNODE\tSYS\t64-127,192-255\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNODE\t X \tSYS\t64-127,192-255\t1\t\tN/A\n"
    "NIC0\tNODE\tPHB\tSYS\tSYS\t X \t\t\t\t\n" LEGEND;

/* A tree of switches: 0 and 1 on one, 2 below the same top switch, 3 at the same root, 4 at another root. */
static const char tree[] = "        GPU0    GPU1    GPU2    GPU3    GPU4    CPU Affinity    NUMA Affinity\r\n"
                           "GPU0     X      PIX     PXB     PHB     NODE    0-31            0\r\n"
                           "GPU1    PIX      X      PXB     PHB     NODE    0-31            0\r\n"
                           "GPU2    PXB     PXB      X      PHB     NODE    0-31            0\r\n"
                           "GPU3    PHB     PHB     PHB      X      NODE    0-31            0\r\n"
                           "GPU4    NODE    NODE    NODE    NODE     X      0-31            0\r\n" LEGEND;

static void test_direct_attach(void **state)
{
    (void)state;
    struct k25_machine machine = read_topo(direct_attach);
    assert_int_equal(machine.gpus, 4);
    assert_int_equal(machine.vertices, 10); /* 4 GPUs, 4 roots, 2 sockets */
    assert_int_equal(machine.links, 9);
    assert_int_equal(class_between(&machine, 0, 1), K25_PATH_NODE);
    assert_int_equal(class_between(&machine, 1, 2), K25_PATH_SYS);
    assert_int_equal(class_between(&machine, 2, 3), K25_PATH_NODE);
    /* the same figures as "2 socket, 2 gpu each, pcie5": 0.431 + 0.005 + 0.08 + 0.005 + 0.431 us, 51 GB/s */
    struct k25_path path;
    assert_true(k25_machine_path(&machine, 0, 3, &path));
    assert_within(path.latency * 1e6, 0.952, 1e-9);
    assert_within(path.bandwidth / 1e9, 51, 1e-9);
}

static void test_tree(void **state)
{
    (void)state;
    struct k25_machine machine = read_topo(tree);
    assert_int_equal(machine.gpus, 5);
    /* 5 GPUs; switches: the pair's, GPU2's and the top one; 2 roots; 1 socket */
    assert_int_equal(machine.vertices, 11);
    assert_int_equal(class_between(&machine, 0, 1), K25_PATH_PIX);
    assert_int_equal(class_between(&machine, 1, 2), K25_PATH_PXB);
    assert_int_equal(class_between(&machine, 2, 3), K25_PATH_PHB);
    assert_int_equal(class_between(&machine, 3, 4), K25_PATH_NODE);
}

static void test_nvswitch(void **state)
{
    (void)state;
    /* 3 x 18 NVLinks are more than a GPU's 18: they go to an NVSwitch, 18 x 25 GB/s */
    struct k25_machine machine = read_topo("\tGPU0\tGPU1\tGPU2\tGPU3\n"
                                           "GPU0\t X \tNV18\tNV18\tNV18\nGPU1\tNV18\t X \tNV18\tNV18\n"
                                           "GPU2\tNV18\tNV18\t X \tNV18\nGPU3\tNV18\tNV18\tNV18\t X \n");
    struct k25_path path;
    assert_true(k25_machine_path(&machine, 0, 3, &path));
    assert_int_equal(path.class, K25_PATH_NVLINK);
    assert_int_equal(path.hops, 2);
    assert_within(path.bandwidth / 1e9, 450, 1e-9);
    assert_within(path.latency * 1e6, 0.36, 1e-9);
    machine.p2p = false; /* below the NVLinks lies one socket */
    assert_int_equal(class_between(&machine, 0, 3), K25_PATH_NODE);
}

static void test_nvlink_bridges(void **state)
{
    (void)state;
    /* pairs with a bridge of 4 NVLinks; NVLinks are no part of the PCIe groups */
    struct k25_machine machine = read_topo("\tGPU0\tGPU1\tGPU2\tGPU3\n"
                                           "GPU0\t X \tNV4\tSYS\tSYS\nGPU1\tNV4\t X \tSYS\tSYS\n"
                                           "GPU2\tSYS\tSYS\t X \tNV4\nGPU3\tSYS\tSYS\tNV4\t X \n");
    struct k25_path path;
    assert_true(k25_machine_path(&machine, 0, 1, &path));
    assert_int_equal(path.class, K25_PATH_NVLINK);
    assert_int_equal(path.hops, 1);
    assert_within(path.bandwidth / 1e9, 100, 1e-9); /* 4 x 25 */
    assert_int_equal(class_between(&machine, 1, 2), K25_PATH_SYS);
    int sockets = 0;
    for (size_t i = 0; i < machine.vertices; i++)
        sockets += machine.vertex[i].kind == K25_V_SOCKET;
    assert_int_equal(sockets, 2);
}

static void test_one_gpu(void **state)
{
    (void)state;
    struct k25_machine machine = read_topo("\tGPU0\tCPU Affinity\nGPU0\t X \t0-15\n");
    assert_int_equal(machine.gpus, 1);
}

static void test_messages(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "topo.txt:1:1: no line starts with GPU0; expected the output of nvidia-smi topo -m"},
        {"Failed to initialize NVML\n",
         "topo.txt:1:1: no line starts with GPU0; expected the output of nvidia-smi topo -m"},
        {"  GPU0 GPU2\n", "topo.txt:1:8: expected GPU1, found GPU2"},
        {"  GPU0 GPU1\nGPU0 X PIX\n", "topo.txt:3:1: the file ends after 1 of 2 GPU rows"},
        {"  GPU0 GPU1\nGPU0 X PIX\n\nGPU2 PIX X\n", "topo.txt:4:1: expected the row of GPU1, found GPU2"},
        {"  GPU0 GPU1\nGPU0 X\nGPU1 PIX X\n", "topo.txt:2:7: the row of GPU0 has 1 of 2 links"},
        {"  GPU0 GPU1\nGPU0 PIX PIX\nGPU1 PIX X\n", "topo.txt:2:6: expected X on the diagonal, found PIX"},
        {"  GPU0 GPU1\nGPU0 X X\nGPU1 PIX X\n", "topo.txt:2:8: X is off the diagonal"},
        {"  GPU0 GPU1\nGPU0 X PBX\nGPU1 PIX X\n",
         "topo.txt:2:8: unknown link 'PBX', did you mean 'PIX'?; expected X, NV#, PIX, PXB, PHB, NODE or SYS"},
        {"  GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n",
         "topo.txt:2:8: unknown link 'NV0'; expected X, NV#, PIX, PXB, PHB, NODE or SYS"},
        {"  GPU0 GPU1\nGPU0 X NODE\nGPU1 SYS X\n", "topo.txt:3:6: GPU1 to GPU0 is SYS, but GPU0 to GPU1 is NODE"},
        {"  GPU0 GPU1\nGPU0 X NV4\nGPU1 NV2 X\n", "topo.txt:3:6: GPU1 to GPU0 is NV2, but GPU0 to GPU1 is NV4"},
        {"  GPU0 GPU1 GPU2\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n",
         "topo.txt:4:6: GPU2 to GPU0 is SYS, but other links join them by PIX or nearer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k25_machine machine;
        struct k25_error error = {0};
        assert_false(parse(cases[i].text, &machine, &error));
        assert_int_equal(error.status, K25_BAD_INPUT);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(machine.gpus, 0); /* untouched */
    }
}

static void test_import_from_file(void **state)
{
    char path[] = "/tmp/k25_topo_XXXXXX";
    struct k25_machine machine = {.p2p = true};
    struct k25_error error = {0};
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    fputs(direct_attach, out);
    fclose(out);
    assert_true(k25_machine_import_topo(path, &parts.links, &machine, &error));
    assert_int_equal(machine.gpus, 4);
    remove(path);
    assert_false(k25_machine_import_topo(path, &parts.links, &machine, &error));
}

/* What is imported and printed reads back with the same classes, and still says that its links are assumed. */
static void test_printed_import_loads(void **state)
{
    struct k25_error error = {0};
    struct k25_machine again;
    (void)state;
    struct k25_machine machine = read_topo(tree);
    machine.gpu = (struct k25_gpu){
        .name = "G", .sms = 1, .memory_mib = 1, .bandwidth_gbs = 1, .l2_mib = 1, .peak_bf16_tflops = 1, .power_w = 1};
    char *text = k25_machine_print(&machine, &error);
    assert_non_null(text);
    if (!k25_machine_parse(text, strlen(text), "printed", &parts, &again, NULL, &error))
        fail_msg("%s", error.message);
    free(text);
    assert_true(again.assumed_links);
    for (int a = 0; a < machine.gpus; a++)
        for (int b = 0; b < machine.gpus; b++)
            if (a != b)
                assert_int_equal(class_between(&again, a, b), class_between(&machine, a, b));
}

/* ---- random matrices ---- */

static uint64_t seed;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* Each GPU gets a place (socket, root, top switch, leaf); where two places part decides their class, so the
 * classes nest as they do in a real tree. Some pairs get NVLinks on top. */
static void random_matrix(int n, int classes[][K25_MAX_GPUS])
{
    int place[K25_MAX_GPUS][4], width[4], nvlinks = below(3) == 0;
    for (int level = 0; level < 4; level++)
        width[level] = 1 + below(level == 0 ? 4 : 3);
    for (int g = 0; g < n; g++)
        for (int level = 0; level < 4; level++)
            place[g][level] = below(width[level]);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;
            while (same < 4 && place[a][same] == place[b][same])
                same++;
            classes[a][b] = classes[b][a] = K25_PATH_SYS - same; /* 4 alike: PIX */
            if (nvlinks && below(4) == 0)
                classes[a][b] = classes[b][a] = K25_PATH_NVLINK;
        }
}

static void print_matrix(FILE *out, int n, int classes[][K25_MAX_GPUS])
{
    fputs("\t\x1b[4m", out);
    for (int a = 0; a < n; a++)
        fprintf(out, "GPU%d\t", a);
    fputs("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n", out);
    for (int a = 0; a < n; a++) {
        fprintf(out, "GPU%d", a);
        for (int b = 0; b < n; b++)
            if (a == b)
                fputs("\t X ", out);
            else
                fprintf(out, "\t%s%s", k25_path_class_names[classes[a][b]],
                        classes[a][b] == K25_PATH_NVLINK ? "2" : "");
        fputs("\t0-63\t0\t\tN/A\n", out);
    }
    fputs(LEGEND, out);
}

static void test_random_matrices_come_back(void **state)
{
    (void)state;
    seed = 20260801;
    for (int round = 0; round < 2000; round++) {
        static int classes[K25_MAX_GPUS][K25_MAX_GPUS];
        int n = 1 + below(16);
        char *text = NULL;
        size_t size = 0;
        random_matrix(n, classes);
        FILE *out = open_memstream(&text, &size);
        print_matrix(out, n, classes);
        fclose(out);
        struct k25_machine machine = read_topo(text);
        free(text);
        assert_int_equal(machine.gpus, n);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                if (a != b)
                    assert_int_equal(class_between(&machine, a, b), classes[a][b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_attach),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_nvswitch),
        cmocka_unit_test(test_nvlink_bridges),
        cmocka_unit_test(test_one_gpu),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_import_from_file),
        cmocka_unit_test(test_printed_import_loads),
        cmocka_unit_test(test_random_matrices_come_back),
    };
    return cmocka_run_group_tests(tests, load_defaults, NULL);
}
