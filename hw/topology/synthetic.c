/* The one-line form of a topology: "2 socket, 4 gpu each, pcie5". See hw/topology/machine.h for its grammar. */
#include "hw/topology/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define EXPECTED                                                                                                       \
    "expected \"[N socket,] [N switch [each],]... N gpu [each], pcie4|pcie5 [, nvlink]\" or \"N gpu, nvlink\""

enum { MAX_LEVELS = 6, MAX_WORDS = 3, WORD = 32 };

/* "4 gpu each" */
struct level {
    enum k25_vertex_kind kind;
    int count;
    bool each;
    int total;
};

struct form {
    const char *text;
    struct level level[MAX_LEVELS]; /* from the sockets down to the GPUs */
    int levels;
    const struct k25_link_figures *pcie;
    bool nvlink;
};

struct item {
    char word[MAX_WORDS][WORD];
    int words;
};

static bool bad_word(const struct form *form, const char *word, struct k25_error *error)
{
    static const char *const known[] = {"gpu", "switch", "socket", "each", "pcie4", "pcie5", "nvlink", NULL};
    char hint[64] = "";
    const char *nearest = k25_nearest(word, known);
    if (nearest && strcmp(nearest, word) != 0) /* no hint for a known word in the wrong place */
        snprintf(hint, sizeof hint, ", did you mean '%s'?", nearest);
    return k25_fail(error, K25_BAD_INPUT, "\"%s\": unexpected '%s'%s; %s", form->text, word, hint, EXPECTED);
}

/* Reads the words up to the next comma and skips it. */
static bool next_item(const struct form *form, const char **at, struct item *item, struct k25_error *error)
{
    item->words = 0;
    for (;;) {
        while (isspace((unsigned char)**at))
            ++*at;
        if (**at == '\0' || **at == ',')
            break;
        char word[WORD];
        size_t length = strcspn(*at, ", \t\r\n\v\f");
        snprintf(word, sizeof word, "%.*s", (int)(length < WORD ? length : WORD - 1), *at);
        if (item->words == MAX_WORDS || length >= WORD)
            return bad_word(form, word, error);
        memcpy(item->word[item->words++], word, WORD);
        *at += length;
    }
    if (item->words == 0)
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": nothing before %s; %s", form->text,
                        **at == ',' ? "a comma" : "the end", EXPECTED);
    return true;
}

/* The kind of a noun, singular or plural; false when it is not one that can be counted. */
static bool noun_kind(const char *word, enum k25_vertex_kind *kind)
{
    static const enum k25_vertex_kind kinds[] = {K25_V_GPU, K25_V_SWITCH, K25_V_SOCKET};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(k25_vertex_kind_names[kinds[i]]);
        const char *rest = word + length;
        if (strncmp(word, k25_vertex_kind_names[kinds[i]], length) == 0 &&
            (*rest == '\0' || strcmp(rest, kinds[i] == K25_V_SWITCH ? "es" : "s") == 0)) {
            *kind = kinds[i];
            return true;
        }
    }
    return false;
}

static bool read_link_word(struct form *form, const struct item *item, const struct k25_link_defaults *defaults,
                           struct k25_error *error)
{
    const char *word = item->word[0];
    if (strcmp(word, "pcie4") == 0 && !form->pcie)
        form->pcie = &defaults->pcie4;
    else if (strcmp(word, "pcie5") == 0 && !form->pcie)
        form->pcie = &defaults->pcie5;
    else if (strcmp(word, "nvlink") == 0 && !form->nvlink)
        form->nvlink = true;
    else
        return bad_word(form, word, error);
    return item->words == 1 || bad_word(form, item->word[1], error);
}

static bool read_level(struct form *form, const struct item *item, struct k25_error *error)
{
    long long count;
    if (!k25_parse_int(item->word[0], &count))
        return bad_word(form, item->word[0], error);
    if (count < 1 || count > K25_MAX_GPUS)
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": a count of %s is not between 1 and %d", form->text,
                        item->word[0], K25_MAX_GPUS);
    enum k25_vertex_kind kind = K25_V_GPU;
    bool noun = item->words > 1 && noun_kind(item->word[1], &kind);
    const struct level *above = form->levels > 0 ? &form->level[form->levels - 1] : NULL;
    /* sockets come first, GPUs end the list */
    if (!noun || (above && (kind == K25_V_SOCKET || above->kind == K25_V_GPU)) || form->levels == MAX_LEVELS)
        return bad_word(form, item->word[item->words > 1], error);
    if (item->words > 2 && (strcmp(item->word[2], "each") != 0 || !above))
        return bad_word(form, item->word[2], error);
    struct level level = {.kind = kind, .count = (int)count, .each = item->words > 2, .total = (int)count};
    if (level.each)
        level.total *= above->total;
    else if (above && level.total % above->total != 0)
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": %d %s do not spread evenly over %d %s", form->text, level.total,
                        k25_vertex_kind_names[kind], above->total, k25_vertex_kind_names[above->kind]);
    if (level.total > K25_MAX_GPUS)
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": %d %s are more than %d", form->text, level.total,
                        k25_vertex_kind_names[kind], K25_MAX_GPUS);
    form->level[form->levels++] = level;
    return true;
}

static bool parse(struct form *form, const struct k25_link_defaults *defaults, struct k25_error *error)
{
    for (const char *at = form->text;; at++) {
        struct item item;
        enum k25_vertex_kind kind;
        if (!next_item(form, &at, &item, error))
            return false;
        bool counted = isdigit((unsigned char)item.word[0][0]) || item.word[0][0] == '-' ||
                       (item.words > 1 && noun_kind(item.word[1], &kind));
        if (counted ? !read_level(form, &item, error) : !read_link_word(form, &item, defaults, error))
            return false;
        if (*at == '\0')
            break;
    }
    if (form->levels == 0 || form->level[form->levels - 1].kind != K25_V_GPU)
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": no GPUs; %s", form->text, EXPECTED);
    if (!form->pcie && (!form->nvlink || form->levels > 1))
        return k25_fail(error, K25_BAD_INPUT, "\"%s\": no pcie4 or pcie5; %s", form->text, EXPECTED);
    return true;
}

static bool add_many(struct k25_machine *machine, enum k25_vertex_kind kind, int count, int *first,
                     struct k25_error *error)
{
    int number = 0;
    for (size_t i = 0; i < machine->vertices; i++)
        number += machine->vertex[i].kind == kind; /* a second level of switches continues the numbers */
    *first = (int)machine->vertices;
    for (int i = 0; i < count; i++) {
        char name[32];
        int vertex;
        snprintf(name, sizeof name, "%s%d", k25_vertex_kind_names[kind], number + i);
        if (!k25_machine_add_vertex(machine, kind, name, &vertex, error))
            return false;
    }
    return true;
}

/* Builds the PCIe tree, level by level, with a root between a socket and what is below it. */
static bool build_pcie(const struct form *form, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                       struct k25_error *error)
{
    bool named = form->level[0].kind == K25_V_SOCKET;
    int above_total = named ? form->level[0].total : 1, above;
    if (!add_many(machine, K25_V_SOCKET, above_total, &above, error))
        return false;
    for (int a = 0; a < above_total; a++)
        for (int b = a + 1; b < above_total; b++)
            if (!k25_machine_join(machine, above + a, above + b, form->pcie, 0, defaults, error))
                return false;
    for (int l = named; l < form->levels; l++) {
        const struct level *level = &form->level[l];
        int first = 0, root = -1; /* the GPUs are at 0 already */
        if (level->kind != K25_V_GPU && !add_many(machine, level->kind, level->total, &first, error))
            return false;
        if (l == named && !add_many(machine, K25_V_ROOT, level->total, &root, error))
            return false;
        for (int i = 0; i < level->total; i++) {
            int parent = above + i / (level->total / above_total);
            if (root >= 0 && !k25_machine_join(machine, root + i, parent, form->pcie, 0, defaults, error))
                return false;
            if (!k25_machine_join(machine, first + i, root >= 0 ? root + i : parent, form->pcie, 0, defaults, error))
                return false;
        }
        above = first;
        above_total = level->total;
    }
    return true;
}

bool k25_machine_synthetic(const char *text, const struct k25_link_defaults *defaults, struct k25_machine *machine,
                           struct k25_error *error)
{
    struct form form = {.text = text};
    struct k25_machine built = *machine;
    k25_machine_clear(&built);
    if (snprintf(built.topology, sizeof built.topology, "%s", text) >= (int)sizeof built.topology)
        return k25_fail(error, K25_BAD_INPUT, "a topology of one line has at most %zu characters",
                        sizeof built.topology - 1);
    if (!parse(&form, defaults, error))
        return false;
    int first, nvswitch;
    if (!add_many(&built, K25_V_GPU, form.level[form.levels - 1].total, &first, error) ||
        (form.pcie && !build_pcie(&form, defaults, &built, error)))
        return false;
    if (form.nvlink && !add_many(&built, K25_V_NVSWITCH, 1, &nvswitch, error))
        return false;
    double nvlink_gbs = built.gpu.nvlink_gbs > 0 ? built.gpu.nvlink_gbs / 2 /* of both directions */
                                                 : defaults->nvlinks * defaults->nvlink.bandwidth_gbs;
    for (int gpu = 0; form.nvlink && gpu < built.gpus; gpu++)
        if (!k25_machine_join(&built, gpu, nvswitch, NULL, nvlink_gbs, defaults, error))
            return false;
    if (!k25_machine_check(&built, error))
        return false;
    built.assumed_links = true;
    *machine = built;
    return true;
}
