/* Processes started together by mpirun. */
#ifndef K25_CLI_COMMANDS_SWEEP_PROCESSES_H
#define K25_CLI_COMMANDS_SWEEP_PROCESSES_H

#include "scenarios/sweep/run.h"

struct cli_processes {
    struct k25_sweep_processes all;
    void *module; /* NULL: one process alone */
    void (*close)(void *context);
};

/* Joins the others when this process was started by mpirun. A program without MPI that finds itself started
 * several times is an error: every copy would do all the work. */
bool cli_processes_open(struct cli_processes *processes, struct k25_error *error);
void cli_processes_close(struct cli_processes *processes);

#endif
