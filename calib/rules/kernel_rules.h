/* What a kernel is for, from its name: ordered rules in YAML (calib/rules/kernels.yaml), the first that matches
 * decides.
 *
 *     classes:
 *       allreduce: {group: AllReduce, collective: true}
 *       moe_gemm: {group: MoE_GEMM, bucket: experts}
 *     rules:
 *       - class: allreduce
 *         base: [cross_device_reduce, nccl & allreduce]    # any of them
 *         name: ["^void cutlass::device_kernel & group_gemm"]
 *         regex: ["_tp[0-9]+_ar$"]
 *
 * A pattern is a list of parts joined by " & " that must all hold: a part occurs, "^part" starts the text, "!part"
 * does not occur. `base` looks at the base name, `name` at the whole of it, both in lower case; `regex` is a POSIX
 * extended expression on the whole name, upper and lower case alike. The base name is what is left without "void
 * ", "std::enable_if<...>::type ", "(anonymous namespace)" and "<unnamed>" (both become "{anon}"), cut at the
 * first '<' or
 * '('; a mangled name (_Z...) stays whole.
 *
 * A second file of the same form is put in front: its rules are asked first, its classes are added. Class 0 is
 * "other": no rule matched. Names of one capture are few, so a caller asks once a name and keeps the answer.
 */
#ifndef K25_CALIB_RULES_KERNEL_RULES_H
#define K25_CALIB_RULES_KERNEL_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_KERNEL_NAME_BYTES 16384 /* a longer name is judged by its start */

/* Kernels of one sort in a step, as far as classes of names can tell them apart: what the fit compares. */
enum k25_bucket {
    K25_BUCKET_PRODUCTS, /* matrix products outside the experts, the absorption of kv_b among them */
    K25_BUCKET_EXPERTS,  /* the routed experts with their sorting and summing */
    K25_BUCKET_ATTENTION,
    K25_BUCKET_SMALL, /* everything else that is no collective */
    K25_BUCKET_NONE,  /* collectives, and what is no kernel of a decode step */
    K25_BUCKETS,
};
extern const char *const k25_bucket_names[K25_BUCKETS + 1]; /* NULL-terminated */

struct k25_rule_class {
    const char *name;       /* "moe_gemm" */
    const char *group;      /* "MoE_GEMM": a coarser bin for reports */
    bool collective;        /* ranks wait for each other in it */
    enum k25_bucket bucket; /* when the file does not say: none of a collective, else small kernels */
};

struct k25_kernel_rules; /* constant once loaded: any number of threads may ask */

/* `extra_path` may be NULL. */
struct k25_kernel_rules *k25_kernel_rules_load(const char *path, const char *extra_path, struct k25_error *error);
/* From text; `extra` may be NULL. The names stand for the files in messages. */
struct k25_kernel_rules *k25_kernel_rules_parse(const char *text, size_t size, const char *name, const char *extra,
                                                size_t extra_size, const char *extra_name, struct k25_error *error);
void k25_kernel_rules_free(struct k25_kernel_rules *rules);

/* The number of the class of a kernel, copy or memset, 0 for none. */
int k25_kernel_rules_class(const struct k25_kernel_rules *rules, const char *name);
/* The same, and the rule that said so: its file and line; an empty file and 0 when no rule did. */
int k25_kernel_rules_explain(const struct k25_kernel_rules *rules, const char *name, const char **file, int *line);

int k25_kernel_rules_classes(const struct k25_kernel_rules *rules);
const struct k25_rule_class *k25_kernel_rules_describe(const struct k25_kernel_rules *rules, int class);
/* The number of a class by its name, -1: there is none. */
int k25_kernel_rules_find(const struct k25_kernel_rules *rules, const char *class_name);

/* The base name in lower case, as the rules see it. Returns `out`. */
char *k25_kernel_base_name(const char *name, char *out, size_t size);

#endif
