/* Files that commands write: none of them is what the command reads, and none is somebody else's. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"

enum { HEAD = 16384 }; /* bytes in which a file says who made it */

int cli_force;

static bool is_file(const char *path, const struct stat *file)
{
    struct stat about;
    return stat(path, &about) == 0 && about.st_dev == file->st_dev && about.st_ino == file->st_ino;
}

/* The name of a file in a word of the command line: x of "x", "--key=x", "machine=x" after --set, "-ox". */
static const char *name_in(const char *word)
{
    const char *equals = strchr(word, '=');
    bool brief = word[0] == '-' && word[1] != '-' && word[1] != '\0';
    return equals != NULL ? equals + 1 : brief ? word + 2 : word;
}

static bool is_standard_input(const struct stat *file)
{
    struct stat about;
    return fstat(STDIN_FILENO, &about) == 0 && about.st_dev == file->st_dev && about.st_ino == file->st_ino;
}

/* The word that gave `path` itself is passed over, once. A name may have an equals sign of its own. */
static bool is_input(const char *path, const struct stat *file, const struct k25_inputs *const *read)
{
    bool passed = false;
    for (const char *const *word = cli_words; word != NULL && *word != NULL; word++) {
        const char *name = name_in(*word);
        if (!passed && (strcmp(*word, path) == 0 || strcmp(name, path) == 0))
            passed = true;
        else if (is_file(*word, file) || is_file(name, file) || (strcmp(*word, "-") == 0 && is_standard_input(file)))
            return true;
    }
    for (; read != NULL && *read != NULL; read++) {
        for (size_t i = 0; i < (*read)->files; i++) {
            if (is_file((*read)->file[i].path, file))
                return true;
        }
    }
    return false;
}

static bool is_made_here(const char *path, const char *mark)
{
    char head[HEAD + 1];
    FILE *file = mark != NULL ? fopen(path, "rb") : NULL;
    size_t size = file != NULL ? fread(head, 1, HEAD, file) : 0;
    head[size] = '\0';
    if (file != NULL)
        fclose(file);
    return size > 0 && strstr(head, mark) != NULL;
}

bool cli_is_no_input(const char *path, const struct k25_inputs *const *read, struct k25_error *error)
{
    struct stat file;
    return stat(path, &file) != 0 || !S_ISREG(file.st_mode) || !is_input(path, &file, read) ||
           k25_fail(error, K25_BAD_INPUT,
                    "%s: is read by this command, which writes over none of its inputs; choose "
                    "another name for what it writes",
                    path);
}

bool cli_may_write(const char *path, const char *mark, const struct k25_inputs *const *read, struct k25_error *error)
{
    struct stat file;
    if (!cli_is_no_input(path, read, error))
        return false;
    /* New, or a device; folders are refused by the writer. */
    return stat(path, &file) != 0 || !S_ISREG(file.st_mode) || cli_force || is_made_here(path, mark) ||
           k25_fail(error, K25_BAD_INPUT, "%s: is there already; --force writes over it", path);
}

bool cli_write(const char *path, const char *text, const struct k25_inputs *const *read, struct k25_error *error)
{
    return cli_may_write(path, NULL, read, error) && k25_file_write(path, text, strlen(text), error);
}
