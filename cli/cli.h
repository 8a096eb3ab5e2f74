/* The program k25sim: commands over libk25sim. A command is one file with a table of options, examples, and a
 * function that answers; main.c finds it, reads the options and reports what went wrong. */
#ifndef K25_CLI_CLI_H
#define K25_CLI_CLI_H

#include <popt.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "scenarios/library/library.h"

/* What every command is given. */
struct cli {
    struct k25_library library;
};

struct cli_command {
    const char *name;
    const char *arguments;            /* "SCENARIO", for the usage line */
    const char *summary;              /* one line */
    const char *details;              /* what help prints below the options: lines with their newlines, examples last */
    size_t least, most;               /* how many arguments it takes */
    const struct poptOption *options; /* the values stand in static variables of the command's file */

    /* Answers on standard output. Returns K25_OK, or K25_NEGATIVE when that is the answer, or the status of the
     * filled `error`. `arguments` ends with NULL. */
    enum k25_status (*run)(const struct cli *cli, const char *const *arguments, struct k25_error *error);
};

extern const struct cli_command cli_predict, cli_list, cli_init, cli_check, cli_import, cli_validate, cli_calibrate,
    cli_inspect, cli_simulate, cli_explain, cli_sweep, cli_serve, cli_recommend;

/* The status of a filled error: `return cli_failed(error)`. */
enum k25_status cli_failed(const struct k25_error *error);

/* A command that was called wrongly: the message, and where to read how it is called. */
enum k25_status cli_misused(const struct cli_command *command, struct k25_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the options of a command and checks the number of its arguments. What is left of `argv` is found with
 * poptGetArgs(*context); the caller frees the context, also after a failure. `help` is set when --help was given.
 */
bool cli_read_options(const struct cli_command *command, int argc, const char **argv, int *help, poptContext *context,
                      struct k25_error *error);

/* --data, in front of the command or behind it; NULL: not given. */
extern const char *cli_data_folder;

/* The command line from the name of the command on; ends with NULL. */
extern const char *const *cli_words;

/* ---- files that commands write (cli/output.c) ---- */

/* --force. A command that writes files has CLI_FORCE in its table of options. */
extern int cli_force;
#define CLI_FORCE                                                                                                      \
    {                                                                                                                  \
        "force", '\0', POPT_ARG_NONE, &cli_force, 0, "write over a file that is there, unless it is an input", NULL    \
    }

/* Fails with K25_BAD_INPUT when `path` is a file that the command reads: a word of the command line or a file of `read`
 * names it (same device and inode). `read` ends with NULL and may be NULL. */
bool cli_is_no_input(const char *path, const struct k25_inputs *const *read, struct k25_error *error);

/* Fails also, without --force, when `path` exists and is not of the command's own making: its first 16 KB do not
 * have `mark`, which is NULL for what people edit afterwards and for what says nothing of its maker. */
bool cli_may_write(const char *path, const char *mark, const struct k25_inputs *const *read, struct k25_error *error);

/* Writes a text file without a mark. Every file that a command writes goes through here, or through cli_may_write
 * before the library writes it. */
bool cli_write(const char *path, const char *text, const struct k25_inputs *const *read, struct k25_error *error);

/* What `k25sim help COMMAND` prints. */
void cli_print_help(const struct cli_command *command);

enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV, CLI_FORMATS };
extern const char *const cli_format_names[CLI_FORMATS + 1]; /* NULL-terminated */

/* `text` is the value of --format, NULL: CLI_TABLE. */
bool cli_format(const struct cli_command *command, const char *text, enum cli_format *format, struct k25_error *error);

/* The length of a list that ends with NULL; NULL is the empty list. */
size_t cli_count(const char *const *list);

/* `path` without folders and without ".yaml" and the like: a name for what stands in it. */
void cli_stem(const char *path, char *out, size_t size);

#endif
