/* Any bytes at all into the reader of machine files: a machine that prints to a file of the same machine, or an
 * error that says something. The bytes are also tried as a one-line topology. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hw/topology/machine.h"
#include "scenarios/library/library.h"

static const struct k25_library library = {K25_SOURCE_DIR};
static struct k25_machine_parts parts;

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* GPUs of the library alone: a path of the input is not opened. */
static bool find_gpu(const void *context, const char *name, const char *from, char *path, size_t size,
                     struct k25_error *error)
{
    if (strchr(name, '/') != NULL || strstr(name, ".yaml") != NULL)
        return k25_fail(error, K25_BAD_INPUT, "no paths here");
    return k25_library_find(context, K25_FILES_GPU, name, "", from, path, size, error);
}

static void check(const struct k25_machine *machine)
{
    struct k25_error error = {0};
    struct k25_machine again;
    struct k25_group group;
    char *text = k25_machine_print(machine, &error);
    require(text != NULL);
    require(k25_machine_parse(text, strlen(text), "printed", &parts, &again, NULL, &error));
    require(strcmp(machine->name, again.name) == 0 && strcmp(machine->source, again.source) == 0);
    require(strcmp(machine->topology, again.topology) == 0 && machine->assumed_links == again.assumed_links);
    require(machine->gpus == again.gpus && machine->vertices == again.vertices && machine->links == again.links);
    char *second = k25_machine_print(&again, &error);
    require(second != NULL && strcmp(text, second) == 0);
    free(text);
    free(second);
    require(machine->gpus >= 1 && k25_machine_check(machine, &error));
    require(k25_machine_group(machine, machine->gpus, &group, &error));
    require(group.ring_bandwidth > 0 && group.peer_bandwidth > 0);
}

static void try_form(const uint8_t *data, size_t size)
{
    char text[160];
    struct k25_error error = {0};
    struct k25_machine machine = {.name = "fuzz", .p2p = true};
    machine.gpu = (struct k25_gpu){
        .name = "G", .sms = 1, .memory_mib = 1, .bandwidth_gbs = 1, .l2_mib = 1, .peak_bf16_tflops = 1, .power_w = 1};
    if (size >= sizeof text)
        return;
    for (size_t i = 0; i < size; i++) /* a form is a text of a YAML file: UTF-8 */
        text[i] = (char)(data[i] & 0x7f);
    text[size] = '\0';
    if (k25_machine_synthetic(text, &parts.links, &machine, &error))
        check(&machine);
    else
        require(error.status == K25_BAD_INPUT && error.message[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_machine machine;
    struct k25_inputs inputs = {0};
    if (parts.links.nvlinks == 0)
        require(k25_library_parts(&library, &parts, NULL, &error));
    parts.gpus.find = find_gpu;
    if (k25_machine_parse((const char *)data, size, "fuzz.yaml", &parts, &machine, &inputs, &error))
        check(&machine);
    else
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.yaml:", 10) == 0);
    k25_inputs_free(&inputs);
    try_form(data, size);
    return 0;
}
