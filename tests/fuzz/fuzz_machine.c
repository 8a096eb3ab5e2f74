/* Any bytes at all into the reader of machine files: a machine that prints to a file of the same machine, or an
 * error that says something. The bytes are also tried as a one-line topology. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hw/topology/machine.h"

static struct k25_link_defaults defaults;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check(const struct k25_machine *machine)
{
    struct k25_error error = {0};
    struct k25_machine again;
    struct k25_group group;
    char *text = k25_machine_print(machine, &error);
    require(text != NULL);
    require(k25_machine_parse(text, strlen(text), "printed", &defaults, &again, NULL, &error));
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
    machine.gpu = (struct k25_gpu){"G", 1, 1, 1, 1, 1, 1, 1, 1};
    if (size >= sizeof text)
        return;
    for (size_t i = 0; i < size; i++) /* a form is a text of a YAML file: UTF-8 */
        text[i] = (char)(data[i] & 0x7f);
    text[size] = '\0';
    if (k25_machine_synthetic(text, &defaults, &machine, &error))
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
    if (defaults.nvlinks == 0)
        require(k25_link_defaults_load(K25_SOURCE_DIR "/hw/topology/links.yaml", &defaults, NULL, &error));
    if (k25_machine_parse((const char *)data, size, "fuzz.yaml", &defaults, &machine, &inputs, &error))
        check(&machine);
    else
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.yaml:", 10) == 0);
    k25_inputs_free(&inputs);
    try_form(data, size);
    return 0;
}
