/* k25sim import: files of others as files of ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "hw/topology/machine.h"
#include "model/hf/hf.h"

static struct {
    const char *quant, *name, *gpu, *out;
} given;

static const struct poptOption options[] = {
    {"output", 'o', POPT_ARG_STRING, &given.out, 0, "where to write", "FILE.yaml"},
    {"name", '\0', POPT_ARG_STRING, &given.name, 0, "name of what is imported; default: from the file", "NAME"},
    {"quant", '\0', POPT_ARG_STRING, &given.quant, 0, "hf: a separate hf_quant_config.json", "FILE.json"},
    {"gpu", '\0', POPT_ARG_STRING, &given.gpu, 0, "topo: the GPU; default: rtx-pro-6000-server", "GPU"},
    CLI_FORCE,
    POPT_TABLEEND,
};

/* What the matrix does not say: the GPU, where --gpu does not, and the cost of doing without P2P. */
static const char *const usual_gpu = "rtx-pro-6000-server", *const usual_machine = "rtx-pro-6000-8x-two-socket";

static bool write(const char *path, char *text, struct k25_error *error)
{
    bool ok = text != NULL && cli_write(path, text, NULL, error);
    free(text);
    return ok;
}

/* The scheme stands beside the architecture: kimi.yaml and kimi.int4_g32.yaml. */
static bool weights_path(const char *path, const char *scheme, char *out, size_t size, struct k25_error *error)
{
    size_t length = strlen(path);
    if (length <= 5 || strcmp(path + length - 5, ".yaml") != 0)
        return k25_fail(error, K25_BAD_INPUT, "-o %s: expected a name that ends in .yaml", path);
    int used = snprintf(out, size, "%.*s.%s.yaml", (int)(length - 5), path, scheme);
    return (used > 0 && (size_t)used < size) || k25_fail(error, K25_BAD_INPUT, "a file name is too long");
}

static enum k25_status import_hf(const char *path, struct k25_error *error)
{
    struct k25_architecture architecture;
    struct k25_weights weights;
    char beside[1024], name[64];
    if (given.gpu != NULL)
        return cli_misused(&cli_import, error, "--gpu is for import topo");
    if (given.out == NULL)
        return cli_misused(&cli_import, error,
                           "import hf needs -o FILE.yaml: it writes two files, the architecture and "
                           "the weights beside it");
    cli_stem(given.out, name, sizeof name);
    if (!k25_hf_import(path, given.quant, given.name != NULL ? given.name : name, &architecture, &weights, error) ||
        !weights_path(given.out, weights.name, beside, sizeof beside, error) ||
        !cli_may_write(beside, NULL, NULL, error) || /* both or none */
        !write(given.out, k25_architecture_print(&architecture, error), error) ||
        !write(beside, k25_weights_print(&weights, error), error))
        return cli_failed(error);
    printf("%s: architecture %s, %d layers, %.1f B parameters, %.1f B active\n", given.out, architecture.name,
           k25_layer_count(&architecture), k25_total_parameters(&architecture) / 1e9,
           k25_active_parameters(&architecture) / 1e9);
    printf("%s: weights %s, checkpoint %.1f GB\n", beside, weights.name,
           k25_checkpoint_bytes(&architecture, &weights) / 1e9);
    char sibling[1024];
    if (given.quant == NULL && k25_path_beside(path, "hf_quant_config.json", sibling, sizeof sibling) &&
        k25_file_exists(sibling))
        printf("note: %s was not read; if it belongs to this checkpoint, pass it with --quant\n", sibling);
    const char *unsupported = k25_architecture_unsupported(&architecture);
    if (unsupported != NULL)
        printf("predict refuses it so far: its %s is not supported yet\n", unsupported);
    return K25_OK;
}

/* The name of the machine: what was asked for, or that of the file. */
static void name_machine(const char *path, struct k25_machine *machine)
{
    char stem[64];
    cli_stem(given.out != NULL ? given.out : path, stem, sizeof stem);
    snprintf(machine->name, sizeof machine->name, "%s", given.name != NULL ? given.name : stem);
    const char *slash = strrchr(path, '/');
    snprintf(machine->source, sizeof machine->source,
             "nvidia-smi topo -m: %.150s; link figures assumed (hw/topology/links.yaml)",
             slash != NULL ? slash + 1 : path);
}

static enum k25_status import_topo(const struct cli *cli, const char *path, struct k25_error *error)
{
    static struct k25_machine machine; /* too large for a stack */
    struct k25_machine_parts parts;
    const char *gpu = given.gpu != NULL ? given.gpu : usual_gpu;
    char file[1024];
    if (given.quant != NULL)
        return cli_misused(&cli_import, error, "--quant is for import hf");
    if (!k25_library_parts(&cli->library, &parts, NULL, error) ||
        !k25_library_find(&cli->library, K25_FILES_MACHINE, usual_machine, "", "", file, sizeof file, error) ||
        !k25_machine_load(file, &parts, &machine, NULL, error) ||
        !k25_library_find(&cli->library, K25_FILES_GPU, gpu, "", "", file, sizeof file, error) ||
        !k25_machine_set(&machine, "gpu", gpu, &parts, NULL, error) ||
        !k25_machine_import_topo(path, &parts.links, &machine, error))
        return cli_failed(error);
    name_machine(path, &machine);
    char *text = k25_machine_print(&machine, error);
    if (text == NULL)
        return cli_failed(error);
    if (given.out == NULL) {
        printf("# latency and bandwidth of the links are assumed, not measured\n%s", text);
        free(text);
        return K25_OK;
    }
    if (!write(given.out, text, error))
        return cli_failed(error);
    printf("%s: machine %s, %dx %s\n", given.out, machine.name, machine.gpus, machine.gpu.name);
    printf("latency and bandwidth of the links: assumed, not measured\n");
    return K25_OK;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    static const char *const formats[] = {"hf", "topo", NULL};
    char hint[64];
    if (strcmp(arguments[0], "hf") == 0)
        return import_hf(arguments[1], error);
    if (strcmp(arguments[0], "topo") == 0)
        return import_topo(cli, arguments[1], error);
    return cli_misused(&cli_import, error, "unknown format '%s'%s: expected hf or topo", arguments[0],
                       k25_did_you_mean(arguments[0], formats, hint, sizeof hint));
}

const struct cli_command cli_import = {
    .name = "import",
    .arguments = "hf|topo FILE",
    .summary = "a Hugging Face config as an architecture, or nvidia-smi topo -m as a machine",
    .details = "hf    reads a config.json with its quantization_config and writes FILE.yaml, the\n"
               "      architecture, and beside it FILE.SCHEME.yaml, how the checkpoint stores the tensors.\n"
               "      Keys it does not understand are refused by name.\n"
               "topo  reads the matrix that `nvidia-smi topo -m` prints (- for standard input). It has no\n"
               "      word on which GPU it is: --gpu says so (`k25sim list gpus`; default\n"
               "      rtx-pro-6000-server), with it the generation of PCIe. The figures of the links are\n"
               "      assumed (hw/topology/links.yaml). Without -o the machine goes to standard output.\n"
               "\n"
               "examples:\n"
               "  k25sim import hf config.json -o my-model.yaml\n"
               "  nvidia-smi topo -m | k25sim import topo - --gpu rtx-4090 -o my-box.yaml\n",
    .least = 2,
    .most = 2,
    .options = options,
    .run = run,
};
