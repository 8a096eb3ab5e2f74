#include "calib/evidence/traits.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calib/rules/operators.h"

/* The class that AllReduces have in the rules. */
static const char *allreduce_class(void)
{
    const struct k25_operator op = {.kind = K25_OP_ALLREDUCE};
    return k25_operator_kernel(&op, 0).class;
}

/* NCCL ends the name of an AllReduce with its protocol: "..._RING_LL(", "..._TREE_SIMPLE(". */
static bool names_protocol(const char *base, const char *protocol)
{
    size_t length = strlen(base), size = strlen(protocol);
    return length > size && base[length - size - 1] == '_' && strcasecmp(base + length - size, protocol) == 0;
}

/* A name without its namespaces: engines copy each other's kernels. */
static const char *last_part(const char *base)
{
    const char *part = base;
    for (const char *at = strstr(base, "::"); at != NULL; at = strstr(part, "::"))
        part = at + 2;
    return part;
}

static void count_allreduce(struct k25_traits *traits, const char *name, double calls)
{
    char base[256], known[256];
    k25_kernel_base_name(name, base, sizeof base);
    if (strstr(base, "nccl") != NULL) {
        int protocol = K25_BACKEND_NCCL_LL; /* older names say none */
        for (int i = 0; i < K25_NCCL_PROTOCOLS; i++)
            protocol = names_protocol(base, k25_nccl_protocols[i]) ? i : protocol;
        traits->allreduce[protocol] += calls;
        return;
    }
    for (int i = K25_NCCL_PROTOCOLS; i < K25_BACKENDS; i++) {
        k25_kernel_base_name(k25_backend_info[i]->kernel, known, sizeof known);
        if (strcmp(last_part(base), last_part(known)) == 0) {
            traits->allreduce[i] += calls;
            return;
        }
    }
    traits->other_custom += calls;
}

/* `most`: the calls of the AllReduce kernel that is named so far. */
static void count(struct k25_traits *traits, const char *name, int class, double calls, double ns, double *most)
{
    if (class >= K25_TRAIT_CLASSES)
        return;
    traits->calls[class] += calls;
    traits->ns[class] += ns;
    if (strcmp(k25_kernel_rules_describe(traits->rules, class)->name, allreduce_class()) != 0)
        return;
    count_allreduce(traits, name, calls);
    if (calls > *most) {
        char base[256];
        *most = calls;
        snprintf(traits->allreduce_name, sizeof traits->allreduce_name, "%.95s",
                 k25_kernel_base_name(name, base, sizeof base));
    }
}

void k25_traits_of_capture(const struct k25_capture *capture, struct k25_traits *traits)
{
    double most = 0;
    int ranks = 0;
    *traits = (struct k25_traits){.rules = capture->rules};
    for (int r = 0; r < capture->ranks; r++)
        ranks += capture->rank[r].kept > 0;
    for (int r = 0; r < capture->ranks; r++) {
        const struct k25_rank *rank = &capture->rank[r];
        double steps = (double)rank->kept * ranks;
        for (size_t i = 0; rank->kept > 0 && i < rank->kernels; i++) {
            const struct k25_capture_kernel *kernel = &rank->kernel[i];
            if (kernel->kind == K25_TRACE_KERNEL && kernel->step_calls > 0)
                count(traits, kernel->name, kernel->class, (double)kernel->step_calls / steps,
                      (double)kernel->step_ns / steps, &most);
        }
        traits->cut = traits->cut || rank->cut;
    }
}

void k25_traits_of_table(const struct k25_profiler_table *table, const struct k25_kernel_rules *rules, double steps,
                         struct k25_traits *traits)
{
    double most = 0;
    *traits = (struct k25_traits){.rules = rules, .cut = true};
    for (size_t i = 0; i < table->rows; i++) {
        const struct k25_profiler_row *row = &table->row[i];
        if (row->level == K25_LEVEL_KERNEL && row->self_device_ns > 0)
            count(traits, row->name, k25_kernel_rules_class(rules, row->name),
                  row->calls > 0 ? (double)row->calls / steps : 0, (double)row->self_device_ns / steps, &most);
    }
}

void k25_traits_of_prediction(const struct k25_prediction *prediction, const struct k25_kernel_rules *rules,
                              struct k25_traits *traits)
{
    *traits = (struct k25_traits){.rules = rules};
    for (size_t i = 0; i < prediction->step_work.count; i++) {
        const struct k25_operator *op = &prediction->step_work.op[i];
        const struct k25_priced *priced = &prediction->op[i];
        int class = k25_kernel_rules_find(rules, k25_operator_kernel(op, priced->backend).class);
        if (op->kind == K25_OP_ALLREDUCE)
            traits->allreduce[priced->backend] += op->calls;
        if (class < 0 || class >= K25_TRAIT_CLASSES)
            continue;
        traits->calls[class] += op->calls;
        traits->ns[class] += priced->time * 1e9;
    }
}

double k25_traits_bucket(const struct k25_traits *traits, enum k25_bucket bucket, const double *of)
{
    int classes = k25_kernel_rules_classes(traits->rules);
    double sum = 0;
    for (int i = 0; i < classes && i < K25_TRAIT_CLASSES; i++)
        sum += k25_kernel_rules_describe(traits->rules, i)->bucket == bucket ? of[i] : 0;
    return sum;
}

double k25_traits_class(const struct k25_traits *traits, const char *class, const double *of)
{
    int i = k25_kernel_rules_find(traits->rules, class);
    return i >= 0 && i < K25_TRAIT_CLASSES ? of[i] : 0;
}

double k25_traits_nccl(const struct k25_traits *traits)
{
    double calls = 0;
    for (int i = 0; i < K25_NCCL_PROTOCOLS; i++)
        calls += traits->allreduce[i];
    return calls;
}

double k25_traits_allreduces(const struct k25_traits *traits)
{
    double calls = traits->other_custom;
    for (int i = 0; i < K25_BACKENDS; i++)
        calls += traits->allreduce[i];
    return calls;
}
