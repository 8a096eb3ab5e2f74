/* Any bytes at all as a file of rules in front of a small one, and as the name of a kernel. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calib/rules/kernel_rules.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char house[] = "k25sim: kernels\nversion: 1\nclasses: {a: {group: A}}\nrules:\n"
                            "  - {class: a, base: [gemm, ^b & !c], name: [\"<x\"], regex: [\"^z[0-9]+$\"]}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_kernel_rules *rules =
        k25_kernel_rules_parse(house, sizeof house - 1, "house.yaml", (const char *)data, size, "fuzz.yaml", &error);
    if (rules == NULL) {
        require(error.status == K25_BAD_INPUT && strncmp(error.message, "fuzz.yaml:", 10) == 0);
        rules = k25_kernel_rules_parse(house, sizeof house - 1, "house.yaml", NULL, 0, NULL, &error);
    }
    char *name = calloc(1, size + 1), base[64];
    require(rules != NULL && name != NULL);
    memcpy(name, data, size);
    int class = k25_kernel_rules_class(rules, name);
    require(class >= 0 && class < k25_kernel_rules_classes(rules));
    require(k25_kernel_rules_find(rules, k25_kernel_rules_describe(rules, class)->name) == class);
    require(strlen(k25_kernel_base_name(name, base, sizeof base)) < sizeof base);
    free(name);
    k25_kernel_rules_free(rules);
    return 0;
}
