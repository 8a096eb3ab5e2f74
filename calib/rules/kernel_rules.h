/* Classes of kernels by their names: ordered rules in YAML (calib/rules/kernels.yaml), of which the first that matches
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
 * A second file of the same form can extend the first: its rules are tried first, its classes are added. Class 0 is
 * "other": no rule matched. Matching takes time: a caller classifies each name once and keeps the result.
 */
#ifndef K25_CALIB_RULES_KERNEL_RULES_H
#define K25_CALIB_RULES_KERNEL_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_KERNEL_NAME_BYTES 16384 /* of a longer name only the start is matched */

/* Kernels of a step summed up for the fit, as far as the classes of names distinguish them. */
enum k25_bucket {
    K25_BUCKET_PRODUCTS, /* matrix products outside the experts, with the absorption of kv_b */
    K25_BUCKET_EXPERTS,  /* the routed experts with their sorting and summing */
    K25_BUCKET_ATTENTION,
    K25_BUCKET_SMALL, /* all others except collectives */
    K25_BUCKET_NONE,  /* collectives, and work that is not a kernel of a decode step */
    K25_BUCKETS,
};
extern const char *const k25_bucket_names[K25_BUCKETS + 1]; /* NULL-terminated */

struct k25_rule_class {
    const char *name;       /* "moe_gemm" */
    const char *group;      /* "MoE_GEMM": a coarser bin for reports */
    bool collective;        /* ranks wait for each other in it */
    enum k25_bucket bucket; /* default: none for a collective, else small kernels */
};

struct k25_kernel_rules; /* constant after loading, so it can be used by several threads */

/* Loads the rules of `path`, extended by those of `extra_path` (may be NULL). The caller frees them with
 * k25_kernel_rules_free. Returns NULL with K25_BAD_INPUT and the position of a fault, or with K25_RESOURCE. */
struct k25_kernel_rules *k25_kernel_rules_load(const char *path, const char *extra_path, struct k25_error *error);
/* The same from texts of `size` and `extra_size` bytes; `extra` may be NULL. `name` and `extra_name` are the names of
 * the files in messages. */
struct k25_kernel_rules *k25_kernel_rules_parse(const char *text, size_t size, const char *name, const char *extra,
                                                size_t extra_size, const char *extra_name, struct k25_error *error);
/* NULL is allowed. */
void k25_kernel_rules_free(struct k25_kernel_rules *rules);

/* Returns the number of the class of a kernel, copy or memset; 0: no rule matches. */
int k25_kernel_rules_class(const struct k25_kernel_rules *rules, const char *name);
/* The same, and the file and line of the rule that matches; "" and 0 when none does. `*file` belongs to the rules. */
int k25_kernel_rules_explain(const struct k25_kernel_rules *rules, const char *name, const char **file, int *line);

/* The number of classes, with class 0. */
int k25_kernel_rules_classes(const struct k25_kernel_rules *rules);
/* The class with number `class`, 0 to k25_kernel_rules_classes - 1; belongs to the rules. */
const struct k25_rule_class *k25_kernel_rules_describe(const struct k25_kernel_rules *rules, int class);
/* Returns the number of the class with a name, -1 when there is none. */
int k25_kernel_rules_find(const struct k25_kernel_rules *rules, const char *class_name);

/* Writes the base name of a kernel in lower case, as the rules match it, to `out` (`size` bytes, cut to fit). Returns
 * `out`. */
char *k25_kernel_base_name(const char *name, char *out, size_t size);

#endif
