/* The module that joins a sweep to processes on other machines (cli/commands/sweep/processes.c loads it). */
#ifndef K25_CLI_MPI_K25SIM_MPI_H
#define K25_CLI_MPI_K25SIM_MPI_H

#include "scenarios/sweep/run.h"

bool k25sim_mpi_open(struct k25_sweep_processes *processes);
void k25sim_mpi_close(void *context);

#endif
