/* Any bytes at all into the reader of `nvidia-smi topo -m`: a machine whose every pair has a path, the same after
 * printing and reading, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hw/topology/machine.h"
#include "scenarios/library/library.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_pairs(const struct k25_machine *machine, const struct k25_machine *again)
{
    require(machine->gpus >= 1 && machine->gpus == again->gpus && machine->links == again->links);
    for (int a = 0; a < machine->gpus && a < 9; a++)
        for (int b = 0; b < machine->gpus; b++) {
            struct k25_path path, back, read;
            if (a == b)
                continue;
            require(k25_machine_path(machine, a, b, &path) && k25_machine_path(machine, b, a, &back));
            require(path.class == back.class && path.latency > 0 && path.bandwidth > 0);
            require(k25_machine_path(again, a, b, &read) && read.class == path.class);
        }
    struct k25_group group;
    require(k25_machine_group(machine, machine->gpus, &group, NULL));
    require(group.ring_bandwidth > 0 && group.peer_bandwidth > 0 && group.peer_latency >= group.ring_latency * 0.999);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct k25_library library = {K25_SOURCE_DIR};
    static struct k25_machine_parts parts;
    struct k25_error error = {0};
    if (parts.links.nvlinks == 0)
        require(k25_library_parts(&library, &parts, NULL, &error));
    struct k25_machine machine = {.name = "fuzz", .p2p = true}, again;
    machine.gpu = (struct k25_gpu){
        .name = "G", .sms = 1, .memory_mib = 1, .bandwidth_gbs = 1, .l2_mib = 1, .peak_bf16_tflops = 1, .power_w = 1};
    if (!k25_machine_parse_topo((const char *)data, size, "topo.txt", &parts.links, &machine, &error)) {
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "topo.txt:", 9) == 0);
        return 0;
    }
    char *text = k25_machine_print(&machine, &error);
    require(text != NULL);
    require(k25_machine_parse(text, strlen(text), "printed", &parts, &again, NULL, &error));
    free(text);
    check_pairs(&machine, &again);
    return 0;
}
