#include "scenarios/library/library.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/list.h"
#include "base/text.h"

/* The value of the key 'k25sim' in files of the kind. A file's name does not show its kind: glm-5.1.yaml is an
 * architecture, not the scheme "1" of glm-5. */
const char *const k25_files_names[K25_FILES_COUNT + 1] = {
    [K25_FILES_ARCHITECTURE] = "architecture",
    [K25_FILES_WEIGHTS] = "weights",
    [K25_FILES_MACHINE] = "machine",
    [K25_FILES_GPU] = "gpu",
    [K25_FILES_CALIBRATION] = "calibration",
    [K25_FILES_SCENARIO] = "scenario",
    [K25_FILES_SWEEP] = "sweep",
};

static const char *const folders[K25_FILES_COUNT] = {
    [K25_FILES_ARCHITECTURE] = "model/zoo", [K25_FILES_WEIGHTS] = "model/zoo",
    [K25_FILES_MACHINE] = "hw/machines",    [K25_FILES_GPU] = "hw/gpus",
    [K25_FILES_CALIBRATION] = "calib/sets", [K25_FILES_SCENARIO] = "scenarios",
    [K25_FILES_SWEEP] = "scenarios",
};

static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') != NULL || (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

static bool fits(int length, size_t size, struct k25_error *error)
{
    return (length >= 0 && (size_t)length < size) || k25_fail(error, K25_BAD_INPUT, "a file name is too long");
}

/* Whether the first line that starts with "k25sim:" gives this kind; a search for that line, without parsing. */
static bool is_of_kind(const struct k25_library *library, enum k25_files kind, const char *stem)
{
    char path[1024];
    size_t size;
    int length = snprintf(path, sizeof path, "%s/%s/%s.yaml", library->root, folders[kind], stem);
    char *text = length > 0 && (size_t)length < sizeof path ? k25_file_read(path, 1 << 22, &size, NULL) : NULL;
    const char *word = text == NULL ? NULL : strncmp(text, "k25sim:", 7) == 0 ? text : strstr(text, "\nk25sim:");
    bool same = false;
    if (word != NULL) {
        word = strchr(word, ':') + 1;
        word += strspn(word, " ");
        size_t width = strcspn(word, " \r\n#");
        same = width == strlen(k25_files_names[kind]) && strncmp(word, k25_files_names[kind], width) == 0;
    }
    free(text);
    return same;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(char ***names, size_t *count, char *name)
{
    char **added = name == NULL ? NULL : K25_LIST_ADD(*names, *count);
    if (added == NULL)
        free(name);
    else
        *added = name;
    return added != NULL;
}

char **k25_library_list(const struct k25_library *library, enum k25_files kind, size_t *count, struct k25_error *error)
{
    char folder[1024];
    if (!fits(snprintf(folder, sizeof folder, "%s/%s", library->root, folders[kind]), sizeof folder, error))
        return NULL;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        k25_fail(error, K25_RESOURCE, "%s: cannot be read", folder);
        return NULL;
    }
    char **names = NULL;
    size_t used = 0;
    bool ok = true;
    for (struct dirent *entry = readdir(dir); ok && entry != NULL; entry = readdir(dir)) {
        char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".yaml") != 0)
            continue;
        *dot = '\0';
        if (is_of_kind(library, kind, entry->d_name))
            ok = add_name(&names, &used, k25_copy(entry->d_name));
    }
    closedir(dir);
    *count = used;
    if (ok && K25_LIST_ADD(names, used) != NULL) { /* the NULL at the end */
        qsort(names, *count, sizeof *names, by_name);
        return names;
    }
    for (size_t i = 0; i < *count; i++)
        free(names[i]);
    free(names);
    k25_fail(error, K25_RESOURCE, "out of memory");
    return NULL;
}

void k25_library_free(char **names)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        free(names[i]);
    free(names);
}

/* "unknown machine 'x', did you mean 'y'?; ..." */
static bool not_found(const struct k25_library *library, enum k25_files kind, const char *stem, struct k25_error *error)
{
    char hint[160];
    size_t count = 0;
    char **names = k25_library_list(library, kind, &count, NULL);
    const char *const none[] = {NULL};
    k25_did_you_mean(stem, names != NULL ? (const char *const *)names : none, hint, sizeof hint);
    k25_library_free(names);
    return k25_fail(error, K25_BAD_INPUT, "unknown %s '%s'%s; `k25sim list %s%s` shows what there is",
                    k25_files_names[kind], stem, hint, k25_files_names[kind], kind == K25_FILES_WEIGHTS ? "" : "s");
}

bool k25_library_find(const struct k25_library *library, enum k25_files kind, const char *name,
                      const char *architecture, const char *from, char *path, size_t size, struct k25_error *error)
{
    if (is_path(name))
        return k25_path_beside(from, name, path, size) || k25_fail(error, K25_BAD_INPUT, "a file name is too long");
    char stem[256];
    int length = kind == K25_FILES_WEIGHTS ? snprintf(stem, sizeof stem, "%s.%s", architecture, name)
                                           : snprintf(stem, sizeof stem, "%s", name);
    if (!fits(length, sizeof stem, error) ||
        !fits(snprintf(path, size, "%s/%s/%s.yaml", library->root, folders[kind], stem), size, error))
        return false;
    /* A file of another kind, or an invalid one, counts as found: the error of its reader is more precise than
     * "unknown". */
    bool there = k25_file_exists(path);
    if (there && kind == K25_FILES_WEIGHTS)
        there = is_of_kind(library, kind, stem);
    return there || not_found(library, kind, stem, error);
}

const char *k25_library_table(const struct k25_library *library, const char *name, char *path, size_t size)
{
    if (strcmp(name, "-") == 0 || k25_file_exists(name) || name[0] == '/' ||
        !fits(snprintf(path, size, "%s/%s", library->root, name), size, NULL))
        return name;
    return k25_file_exists(path) ? path : name;
}

bool k25_library_params(const struct k25_library *library, char *path, size_t size)
{
    return fits(snprintf(path, size, "%s/hw/params/params.yaml", library->root), size, NULL);
}

bool k25_library_links(const struct k25_library *library, char *path, size_t size)
{
    return fits(snprintf(path, size, "%s/hw/topology/links.yaml", library->root), size, NULL);
}

static bool find_gpu(const void *context, const char *name, const char *from, char *path, size_t size,
                     struct k25_error *error)
{
    return k25_library_find(context, K25_FILES_GPU, name, "", from, path, size, error);
}

bool k25_library_parts(const struct k25_library *library, struct k25_machine_parts *parts, struct k25_inputs *inputs,
                       struct k25_error *error)
{
    char path[1024];
    parts->gpus = (struct k25_gpu_finder){find_gpu, library};
    return (k25_library_links(library, path, sizeof path) ||
            k25_fail(error, K25_BAD_INPUT, "a file name is too long")) &&
           k25_link_defaults_load(path, &parts->links, inputs, error);
}
