/* Finds the command, the folder of the data, and the words for what went wrong. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"

static const struct cli_command *const commands[] = {
    &cli_predict,  &cli_explain,   &cli_sweep, &cli_serve, &cli_recommend, &cli_inspect, &cli_simulate,
    &cli_validate, &cli_calibrate, &cli_list,  &cli_init,  &cli_check,     &cli_import,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int version_asked, help_asked;
static const struct poptOption global_options[] = {
    {"data", '\0', POPT_ARG_STRING, &cli_data_folder, 0, NULL, NULL},
    {"version", '\0', POPT_ARG_NONE, &version_asked, 0, NULL, NULL},
    {"help", 'h', POPT_ARG_NONE, &help_asked, 0, NULL, NULL},
    POPT_TABLEEND,
};

static void print_overview(void)
{
    printf("k25sim: where one decode step of a large language model spends its time on PCIe-connected GPUs\n\n"
           "usage: k25sim [--data DIR] COMMAND [ARGUMENT]... [OPTION]...\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("  %-10s %s\n  %-10s %s\n", "help", "how a command is called, with examples", "version",
           "the version of this program");
    printf("\noptions before the command:\n"
           "  --data DIR   the folder with hw/, model/, calib/ and scenarios/\n"
           "\nexamples:\n"
           "  k25sim predict tp8_bs1                         where the step goes\n"
           "  k25sim predict tp8_bs1 --set plan.batch=32     the same box with 32 sequences\n"
           "  k25sim list machines                           what there is\n"
           "  k25sim init my-box.yaml                        a scenario to start from\n"
           "\nexit status: 0 done, 1 the answer is no (does not fit, bar missed), 2 bad input or usage,\n"
           "3 input, output or resources failed\n");
}

/* A message that says where it happened needs no program's name in front. */
static bool has_position(const char *message)
{
    const char *colon = strchr(message, ':');
    return colon != NULL && colon[1] >= '0' && colon[1] <= '9';
}

static enum k25_status complain(const char *command, const struct k25_error *error)
{
    fflush(stdout);
    if (has_position(error->message))
        fprintf(stderr, "%s\n", error->message);
    else
        fprintf(stderr, "k25sim%s%s: %s\n", command[0] != '\0' ? " " : "", command, error->message);
    return error->status;
}

static bool is_built_in(const char *name)
{
    return strcmp(name, "help") == 0 || strcmp(name, "version") == 0;
}

static const struct cli_command *find_command(const char *name, struct k25_error *error)
{
    const char *names[COMMANDS + 3];
    char hint[64];
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i]->name;
        if (strcmp(name, names[i]) == 0)
            return commands[i];
    }
    names[COMMANDS] = "help";
    names[COMMANDS + 1] = "version";
    names[COMMANDS + 2] = NULL;
    k25_did_you_mean(name, names, hint, sizeof hint);
    if (hint[0] != '\0') {
        k25_fail(error, K25_BAD_INPUT, "unknown command '%s'%s\ntry 'k25sim help'", name, hint);
        return NULL;
    }
    char list[256] = "";
    for (size_t i = 0, used = 0; names[i] != NULL && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    k25_fail(error, K25_BAD_INPUT, "unknown command '%s', expected one of %s\ntry 'k25sim help'", name, list);
    return NULL;
}

/* Installed, the data lies in ../share/k25sim of the program; in a build tree it is the source. */
static bool find_data(struct cli *cli, struct k25_error *error)
{
    char *root = cli->library.root, file[sizeof cli->library.root + 32];
    size_t size = sizeof cli->library.root;
    struct stat about;
    if (cli_data_folder != NULL) {
        if (strlen(cli_data_folder) >= size)
            return k25_fail(error, K25_BAD_INPUT, "--data: the name of the folder is too long");
        snprintf(root, size, "%s", cli_data_folder);
        snprintf(file, sizeof file, "%s/hw/params/params.yaml", root);
        return stat(file, &about) == 0 ||
               k25_fail(error, K25_BAD_INPUT, "--data %s: there is no %s", cli_data_folder, file);
    }
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) {
        int used = snprintf(root, size, "%.*s/../share/k25sim", (int)(slash - program), program);
        if (used > 0 && (size_t)used < size && stat(root, &about) == 0)
            return true;
    }
    snprintf(root, size, "%s", K25_SOURCE_DIR);
    return true;
}

/* Output that did not arrive is a failure, however well everything else went. */
static enum k25_status flush_output(const char *command, enum k25_status status)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout) != 0;
    const char *why = errno != 0 ? strerrordesc_np(errno) : NULL;
    if (!failed)
        return status;
    struct k25_error error;
    k25_fail(&error, K25_RESOURCE, "cannot write to standard output%s%s", why != NULL ? ": " : "",
             why != NULL ? why : "");
    return complain(command, &error);
}

static enum k25_status run_help(const char *const *arguments)
{
    struct k25_error error;
    if (arguments[0] == NULL || is_built_in(arguments[0])) {
        print_overview();
        return K25_OK;
    }
    const struct cli_command *command = find_command(arguments[0], &error);
    if (command == NULL)
        return complain("help", &error);
    cli_print_help(command);
    return K25_OK;
}

static enum k25_status run_command(const struct cli_command *command, int argc, const char **argv)
{
    struct k25_error error;
    struct cli cli;
    poptContext context = NULL;
    int help = 0;
    enum k25_status status;
    if (!cli_read_options(command, argc, argv, &help, &context, &error)) {
        status = complain(command->name, &error);
    } else if (help) {
        cli_print_help(command);
        status = K25_OK;
    } else if (!find_data(&cli, &error)) {
        status = complain(command->name, &error);
    } else {
        static const char *const none[] = {NULL};
        const char **arguments = poptGetArgs(context);
        error.message[0] = '\0';
        status = command->run(&cli, arguments != NULL ? (const char *const *)arguments : none, &error);
        /* A negative answer may have been printed as a result, or come as an error with its reason. */
        if (status != K25_OK && error.message[0] != '\0')
            complain(command->name, &error);
    }
    poptFreeContext(context);
    return status;
}

static enum k25_status run(const char **arguments)
{
    const char *name = version_asked ? "version" : help_asked || arguments == NULL ? "help" : arguments[0];
    static const char *none[] = {NULL};
    const char **rest = version_asked || help_asked || arguments == NULL ? none : arguments + 1;
    if (strcmp(name, "help") == 0)
        return run_help((const char *const *)rest);
    if (strcmp(name, "version") == 0 && rest[0] != NULL) {
        struct k25_error error;
        k25_fail(&error, K25_BAD_INPUT, "takes no argument, found '%s'", rest[0]);
        return complain("version", &error);
    }
    if (strcmp(name, "version") == 0) {
        printf("k25sim %s\n", K25_VERSION);
        return K25_OK;
    }
    struct k25_error error;
    const struct cli_command *command = find_command(name, &error);
    return command == NULL ? complain("", &error)
                           : run_command(command, (int)cli_count((const char *const *)arguments), arguments);
}

/* An option in front of the command. */
static void fail_option(poptContext context, int code, struct k25_error *error)
{
    static const char *const names[] = {"--data", "--version", "--help", NULL};
    const char *given = poptBadOption(context, POPT_BADOPTION_NOALIAS);
    char hint[64] = "";
    if (code == POPT_ERROR_BADOPT && k25_did_you_mean(given, names, hint, sizeof hint)[0] == '\0')
        snprintf(hint, sizeof hint, "; options of a command follow its name");
    k25_fail(error, K25_BAD_INPUT, "%s '%s'%s\ntry 'k25sim help'", poptStrerror(code), given, hint);
}

int main(int argc, const char **argv)
{
    /* Options behind the command are the command's. */
    poptContext context = poptGetContext(NULL, argc, argv, global_options, POPT_CONTEXT_POSIXMEHARDER);
    struct k25_error error;
    enum k25_status status;
    int code = poptGetNextOpt(context);
    if (code < -1) {
        fail_option(context, code, &error);
        status = complain("", &error);
    } else {
        status = run(poptGetArgs(context));
    }
    poptFreeContext(context);
    return (int)flush_output("", status);
}
