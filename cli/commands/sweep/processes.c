/* MPI is in a module (cli/mpi/), so that a prediction does not start a library of many megabytes. */
#include "cli/commands/sweep/processes.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many processes the launcher started. */
static long launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    for (int i = 0; variables[i] != NULL; i++) {
        const char *text = getenv(variables[i]);
        if (text != NULL)
            return strtol(text, NULL, 10);
    }
    return 1;
}

/* In the program's folder in a build tree, in ../lib/k25sim of it when installed. */
static void *load(char *path, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    int folder = slash != NULL ? (int)(slash - program) : 0;
    static const char *const places[] = {"k25sim_mpi.so", "../lib/k25sim/k25sim_mpi.so", NULL};
    for (int i = 0; places[i] != NULL; i++) {
        snprintf(path, size, "%.*s/%s", folder, program, places[i]);
        if (access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* global: Open MPI's own plug-ins look for it */
    }
    return NULL;
}

bool cli_processes_open(struct cli_processes *processes, struct k25_error *error)
{
    memset(processes, 0, sizeof *processes);
    if (launched() <= 1)
        return true;
    char path[PATH_MAX + 64];
    bool (*open)(struct k25_sweep_processes *) = NULL;
    processes->module = load(path, sizeof path);
    if (processes->module == NULL)
        return k25_fail(error, K25_RESOURCE,
                        "started as one of several processes, but this program is built without MPI "
                        "(K25SIM_MPI), or its module cannot be loaded: %s",
                        path);
    void *found = dlsym(processes->module, "k25sim_mpi_open"), *close = dlsym(processes->module, "k25sim_mpi_close");
    memcpy(&open, &found, sizeof found);
    memcpy(&processes->close, &close, sizeof close);
    return (open != NULL && processes->close != NULL && open(&processes->all)) ||
           k25_fail(error, K25_RESOURCE, "MPI does not start");
}

void cli_processes_close(struct cli_processes *processes)
{
    if (processes->module != NULL && processes->close != NULL)
        processes->close(processes->all.context);
    processes->module = NULL;
}
