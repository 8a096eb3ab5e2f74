/* Processes started together by mpirun. */
#ifndef K25_CLI_COMMANDS_SWEEP_TEAM_H
#define K25_CLI_COMMANDS_SWEEP_TEAM_H

#include "scenarios/sweep/run.h"

struct cli_team {
    struct k25_sweep_team team;
    void *module; /* NULL: one process alone */
    void (*close)(void *context);
};

/* Joins the others when this process was started by mpirun. A program without MPI that finds itself started
 * several times is an error: every copy would do all the work. */
bool cli_team_open(struct cli_team *team, struct k25_error *error);
void cli_team_close(struct cli_team *team);

#endif
