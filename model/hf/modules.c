/* The tensor classes that a list of module patterns names.
 *
 * Checkpoints list the unquantised modules by name, with * or as regular expressions, in the names of one family.
 * Here all modules of the model are enumerated, each under all its known names, and every pattern is tried on every
 * one: a class is in the list, or not, or in part, and a pattern without a match is detected.
 */
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hf/internal.h"

enum where { EVERY, IN_MLA, IN_GQA, IN_DELTA, IN_INDEXER, IN_DENSE, IN_MOE };

#define MINOR K25_TENSORS /* norms, biases and matrices too small to decide the format of their class */
#define NAMES 4
#define MAX_PATTERNS 4096 /* each is tried on every module; GLM-5's list, the longest known, has 712 */

struct part {
    enum where where;
    enum k25_tensor class;    /* or MINOR */
    const char *names[NAMES]; /* below "layers.N."; the spellings of different families */
};

static const struct part parts[] = {
    {EVERY, MINOR, {"input_layernorm"}},
    {EVERY, MINOR, {"post_attention_layernorm"}},
    {IN_MLA, K25_T_ATTENTION, {"self_attn.q_a_proj", "self_attn.q_proj"}},
    {IN_MLA, K25_T_ATTENTION, {"self_attn.q_b_proj", "self_attn.q_proj"}},
    {IN_MLA, K25_T_ATTENTION, {"self_attn.kv_a_proj_with_mqa"}},
    {IN_MLA, K25_T_ATTENTION, {"self_attn.kv_b_proj"}},
    {IN_MLA, K25_T_ATTENTION, {"self_attn.o_proj"}},
    {IN_MLA, MINOR, {"self_attn.q_a_layernorm"}},
    {IN_MLA, MINOR, {"self_attn.kv_a_layernorm"}},
    {IN_GQA, K25_T_ATTENTION, {"self_attn.q_proj", "self_attn.qkv_proj"}},
    {IN_GQA, K25_T_ATTENTION, {"self_attn.k_proj", "self_attn.qkv_proj"}},
    {IN_GQA, K25_T_ATTENTION, {"self_attn.v_proj", "self_attn.qkv_proj"}},
    {IN_GQA, K25_T_ATTENTION, {"self_attn.o_proj"}},
    {IN_GQA, MINOR, {"self_attn.q_norm"}},
    {IN_GQA, MINOR, {"self_attn.k_norm"}},
    {IN_DELTA, K25_T_LINEAR_ATTENTION, {"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", "self_attn.q_proj"}},
    {IN_DELTA, K25_T_LINEAR_ATTENTION, {"linear_attn.in_proj_z", "linear_attn.in_proj_qkvz", "self_attn.v_proj"}},
    {IN_DELTA, K25_T_LINEAR_ATTENTION, {"linear_attn.out_proj", "self_attn.o_proj"}},
    {IN_DELTA, MINOR, {"linear_attn.in_proj_a", "linear_attn.in_proj_ba"}},
    {IN_DELTA, MINOR, {"linear_attn.in_proj_b", "linear_attn.in_proj_ba"}},
    {IN_DELTA, MINOR, {"linear_attn.conv1d"}},
    {IN_DELTA, MINOR, {"linear_attn.norm"}},
    {IN_INDEXER, K25_T_INDEXER, {"self_attn.indexer.wq_b"}},
    {IN_INDEXER, K25_T_INDEXER, {"self_attn.indexer.wk"}},
    {IN_INDEXER, MINOR, {"self_attn.indexer.weights_proj", "self_attn.indexers_proj"}},
    {IN_INDEXER, MINOR, {"self_attn.indexer.k_norm"}},
    {IN_INDEXER, MINOR, {"self_attn.indexer.k_norm.bias"}},
    {IN_DENSE, K25_T_DENSE_FFN, {"mlp.gate_proj", "mlp.gate_up_proj"}},
    {IN_DENSE, K25_T_DENSE_FFN, {"mlp.up_proj", "mlp.gate_up_proj"}},
    {IN_DENSE, K25_T_DENSE_FFN, {"mlp.down_proj"}},
    {IN_MOE, K25_T_ROUTER, {"mlp.gate", "block_sparse_moe.gate", "mlp.router"}},
    {IN_MOE, MINOR, {"mlp.gate.e_score_correction_bias", "block_sparse_moe.e_score_correction_bias"}},
    {IN_MOE,
     K25_T_ROUTED_EXPERTS,
     {"mlp.experts.%d.gate_proj", "block_sparse_moe.experts.%d.w1", "mlp.experts.gate_up_proj"}},
    {IN_MOE,
     K25_T_ROUTED_EXPERTS,
     {"mlp.experts.%d.up_proj", "block_sparse_moe.experts.%d.w3", "mlp.experts.gate_up_proj"}},
    {IN_MOE,
     K25_T_ROUTED_EXPERTS,
     {"mlp.experts.%d.down_proj", "block_sparse_moe.experts.%d.w2", "mlp.experts.down_proj"}},
    {IN_MOE,
     K25_T_SHARED_EXPERTS,
     {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "block_sparse_moe.shared_experts.gate_proj"}},
    {IN_MOE,
     K25_T_SHARED_EXPERTS,
     {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj", "block_sparse_moe.shared_experts.up_proj"}},
    {IN_MOE,
     K25_T_SHARED_EXPERTS,
     {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj", "block_sparse_moe.shared_experts.down_proj"}},
    {IN_MOE, MINOR, {"mlp.shared_expert_gate"}},
};
#define PARTS (sizeof parts / sizeof parts[0])

/* Outside the layers. The vision tower is not part of the model here, but lists may name it. */
static const struct {
    enum k25_tensor class; /* or MINOR */
    const char *name;
} roots[] = {
    {K25_T_EMBEDDING, "embed_tokens"},
    {K25_T_LM_HEAD, "lm_head"},
    {MINOR, "norm"},
    {MINOR, "mtp.fc"},
    {MINOR, "mtp.norm"},
    {MINOR, "mtp.pre_fc_norm_embedding"},
    {MINOR, "mtp.pre_fc_norm_hidden"},
    {MINOR, "vision_tower"},
    {MINOR, "mm_projector"},
    {MINOR, "visual"},
};

/* In an MTP module, below its layer. */
static const char *const mtp_parts[] = {"eh_proj",          "enorm",       "hnorm", "shared_head.norm",
                                        "shared_head.head", "embed_tokens"};

struct pattern {
    const struct k25_yaml_node *node;
    const char *glob; /* without the leading "model." and "language_model."; NULL for a regular expression */
    regex_t regex;
    bool compiled, used;
};

struct list {
    const struct k25_hf_config *config;
    const char *file, *path;
    struct pattern *patterns;
    size_t count;
    struct k25_hf_coverage *coverage;
};

static const char *without_model(const char *name)
{
    static const char *const heads[] = {"language_model.", "model."};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(heads[i]);
        if (strncmp(name, heads[i], length) == 0)
            return without_model(name + length);
    }
    return name;
}

/* Whether `glob` matches `name` from its start up to its end or up to a dot: "layers.3.mlp" names all below it. */
static bool glob_prefix(const char *glob, const char *name)
{
    const char *star = NULL, *again = NULL;
    for (;;) {
        if (*glob == '*') {
            star = ++glob;
            again = name;
            if (*glob == '\0')
                return true;
        } else if (*glob == '\0' && (*name == '\0' || *name == '.')) {
            return true;
        } else if (*glob != '\0' && *name != '\0' && (*glob == *name || *glob == '?')) {
            glob++;
            name++;
        } else {
            if (!star || *again == '\0')
                return false;
            glob = star;
            name = ++again;
        }
    }
}

/* A pattern may start at any component: "gate" names "layers.3.mlp.gate" and not "layers.3.mlp.gate_proj". */
static bool glob_matches(const char *glob, const char *name)
{
    while (name) {
        if (glob_prefix(glob, name))
            return true;
        if (*glob == '*')
            return false; /* the expression has been tried at every start already */
        name = strchr(name, '.');
        if (name)
            name++;
    }
    return false;
}

static bool regex_matches(const regex_t *regex, const char *name)
{
    static const char *const heads[] = {"model.", "language_model.model.", "model.language_model.", "language_model.",
                                        ""};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char full[192];
        snprintf(full, sizeof full, "%s%s", heads[i], name);
        if (regexec(regex, full, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

static bool pattern_matches(const struct pattern *pattern, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pattern->glob ? glob_matches(pattern->glob, names[i]) : regex_matches(&pattern->regex, names[i]))
            return true;
    return false;
}

/* One module under all its names. */
static void try_module(struct list *list, enum k25_tensor class, const char *const *names, size_t count)
{
    struct k25_hf_coverage *coverage = list->coverage;
    bool hit = false;
    for (size_t i = 0; i < list->count; i++) {
        struct pattern *pattern = &list->patterns[i];
        if ((hit && pattern->used) || !pattern_matches(pattern, names, count))
            continue;
        pattern->used = hit = true;
    }
    if (class == MINOR)
        return;
    char *first = hit ? coverage->first_hit[class] : coverage->first_miss[class];
    if (first[0] == '\0')
        snprintf(first, sizeof coverage->first_hit[class], "%s", names[0]);
    coverage->all[class]++;
    coverage->hit[class] += hit;
}

static bool applies(const struct k25_hf_config *c, const struct k25_layers *layer, const struct part *part)
{
    bool shared = c->n_shared_experts > 0 || c->num_shared_experts > 0 || c->shared_expert_intermediate_size > 0 ||
                  c->shared_intermediate_size > 0;
    switch (part->where) {
    case EVERY:
        return true;
    case IN_MLA:
        return layer->attention == K25_MLA;
    case IN_GQA:
        return layer->attention == K25_GQA;
    case IN_DELTA:
        return layer->attention == K25_GATED_DELTA;
    case IN_INDEXER:
        return layer->indexer && !layer->shared_indexer;
    case IN_DENSE:
        return layer->ffn == K25_DENSE;
    case IN_MOE:
        return layer->ffn == K25_MOE && (part->class != K25_T_SHARED_EXPERTS || shared);
    }
    return false;
}

/* `mtp` is the index of a module, -1 for a layer of the main model. A module has the format of its feed-forward part,
 * which contains nearly all of its weights; the rest of it is minor. */
static void try_part(struct list *list, const struct part *part, int layer, int mtp, enum k25_tensor class, int expert)
{
    char room[2 * NAMES][96];
    const char *names[2 * NAMES];
    size_t count = 0;
    for (int i = 0; i < NAMES && part->names[i]; i++) {
        char below[64];
        const char *number = strstr(part->names[i], "%d");
        if (number)
            snprintf(below, sizeof below, "%.*s%d%s", (int)(number - part->names[i]), part->names[i], expert,
                     number + 2);
        else
            snprintf(below, sizeof below, "%s", part->names[i]);
        snprintf(room[count], sizeof room[count], "layers.%d.%s", layer, below);
        names[count] = room[count];
        count++;
        if (mtp < 0)
            continue;
        snprintf(room[count], sizeof room[count], "mtp.layers.%d.%s", mtp, below);
        names[count] = room[count];
        count++;
    }
    try_module(list, class, names, count);
}

static void try_layer(struct list *list, const struct k25_layers *kind, int layer, int mtp, bool counted)
{
    const struct k25_hf_config *c = list->config;
    int experts = c->n_routed_experts > 0 ? c->n_routed_experts : c->num_experts;
    if (experts == 0)
        experts = c->num_local_experts;
    for (size_t i = 0; i < PARTS; i++) {
        enum k25_tensor class = parts[i].class;
        if (!applies(c, kind, &parts[i]))
            continue;
        if (mtp >= 0)
            class = class == K25_T_ROUTED_EXPERTS || class == K25_T_DENSE_FFN ? K25_T_MTP : MINOR;
        if (!counted)
            class = MINOR;
        try_part(list, &parts[i], layer, mtp, class, 0);
        /* Only the first and the last expert are tried, in place of all. */
        if (parts[i].class == K25_T_ROUTED_EXPERTS && experts > 1)
            try_part(list, &parts[i], layer, mtp, class, experts - 1);
    }
    for (size_t i = 0; mtp >= 0 && i < sizeof mtp_parts / sizeof mtp_parts[0]; i++) {
        struct part part = {EVERY, MINOR, {mtp_parts[i]}};
        try_part(list, &part, layer, mtp, MINOR, 0);
    }
}

static void try_model(struct list *list, int mtp_layers)
{
    const struct k25_hf_config *c = list->config;
    int n = c->num_hidden_layers;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        try_module(list, roots[i].class, &roots[i].name, 1);
    for (int i = 0; i < n; i++)
        try_layer(list, &c->layer[i], i, -1, true);
    /* Lists may name a module that this config does not have; it is then ignored. */
    for (int i = 0; i < mtp_layers || i < 1; i++)
        try_layer(list, &c->layer[n - 1], n + i, i, i < mtp_layers);
}

/* Converts Python regular expressions to POSIX extended ones, as far as such lists use them. Counted repeats, which
 * glibc expands, and back-references, which make matching exponential, are refused. */
static const char *translate(const char *python, char *out, size_t size)
{
    bool bracket = false;
    size_t n = 0;
    out[n++] = '^';
    out[n++] = '(';
    for (const char *at = python; *at; at++) {
        if (n + 8 > size)
            return "it is too long";
        if (*at == '{')
            return "counted repeats are not supported";
        if (*at == '\\' && bracket)
            return "escapes between brackets are not supported";
        if (*at == '[')
            bracket = true;
        if (*at == ']')
            bracket = false;
        if (at[0] == '(' && at[1] == '?') {
            if (at[2] != ':')
                return "(? is not supported";
            out[n++] = '(';
            at += 2;
        } else if (at[0] == '\\' && at[1] == 'd') {
            memcpy(out + n, "[0-9]", 5);
            n += 5;
            at++;
        } else if (at[0] == '\\') {
            if (at[1] == '\0' || (isalnum((unsigned char)at[1]) && !strchr("wWsSb", at[1])))
                return "this escape is not supported";
            out[n++] = *at++;
            out[n++] = *at;
        } else {
            out[n++] = *at;
        }
    }
    out[n++] = ')';
    out[n] = '\0';
    return NULL;
}

static bool compile(const struct list *list, const struct k25_yaml_node *node, struct pattern *pattern,
                    struct k25_error *error)
{
    char posix[512], reason[128];
    const char *why = NULL;
    pattern->node = node;
    if (node->kind != K25_YAML_SCALAR || node->text[0] == '\0')
        return k25_fail_at(error, list->file, node->line, node->column, "%s: expected the name of a module",
                           list->path);
    if (strncmp(node->text, "re:", 3) != 0) {
        pattern->glob = without_model(node->text);
        if (strchr(node->text, '['))
            why = "brackets are not supported";
    } else if (!(why = translate(node->text + 3, posix, sizeof posix))) {
        int code = regcomp(&pattern->regex, posix, REG_EXTENDED | REG_NOSUB);
        pattern->compiled = code == 0;
        if (code != 0) {
            regerror(code, &pattern->regex, reason, sizeof reason);
            why = reason;
        }
    }
    return !why ? true
                : k25_fail_at(error, list->file, node->line, node->column, "%s: cannot read the pattern '%.200s': %s",
                              list->path, node->text, why);
}

static bool check_used(const struct list *list, struct k25_error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct k25_yaml_node *node = list->patterns[i].node;
        if (!list->patterns[i].used)
            return k25_fail_at(error, list->file, node->line, node->column,
                               "%s: '%.200s' names no module of this model", list->path, node->text);
    }
    return true;
}

bool k25_hf_cover(const struct k25_hf_config *config, const struct k25_yaml_node *patterns, int mtp_layers,
                  const char *file, const char *path, struct k25_hf_coverage *coverage, struct k25_error *error)
{
    struct list list = {.config = config, .file = file, .path = path, .coverage = coverage};
    size_t room = patterns ? patterns->count : 0;
    bool done = true;
    memset(coverage, 0, sizeof *coverage);
    if (patterns && patterns->kind != K25_YAML_SEQUENCE)
        return k25_fail_at(error, file, patterns->line, patterns->column, "%s: expected a list, found %s", path,
                           k25_yaml_kind_name(patterns->kind));
    if (room > MAX_PATTERNS)
        return k25_fail_at(error, file, patterns->line, patterns->column, "%s: %zu entries, at most %d are read", path,
                           room, MAX_PATTERNS);
    list.patterns = calloc(room + 1, sizeof *list.patterns);
    if (!list.patterns)
        return k25_fail(error, K25_RESOURCE, "%s: out of memory", file);
    while (done && list.count < room) {
        done = compile(&list, patterns->values[list.count], &list.patterns[list.count], error);
        list.count++;
    }
    if (done) {
        try_model(&list, mtp_layers);
        done = check_used(&list, error);
    }
    for (size_t i = 0; i < list.count; i++)
        if (list.patterns[i].compiled)
            regfree(&list.patterns[i].regex);
    free(list.patterns);
    return done;
}
