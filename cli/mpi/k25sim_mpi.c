#include "cli/mpi/k25sim_mpi.h"

#include <stdlib.h>

#include <mpi.h>

enum { PIECE = 1 << 30 /* bytes of one message: MPI counts them with an int */, SIZE_TAG = 1, BYTES_TAG };

struct buffer {
    char *bytes;
    size_t room;
};

static int first_with(void *context, bool flag)
{
    (void)context;
    int rank, size, lowest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int mine = flag ? rank : size;
    MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return lowest < size ? lowest : -1;
}

static uint64_t broadcast(void *context, uint64_t number)
{
    (void)context;
    MPI_Bcast(&number, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return number;
}

static bool send_bytes(void *context, const char *bytes, size_t size, struct k25_error *error)
{
    (void)context;
    (void)error; /* MPI ends the program when a message cannot be sent */
    uint64_t length = size;
    MPI_Send(&length, 1, MPI_UINT64_T, 0, SIZE_TAG, MPI_COMM_WORLD);
    for (size_t at = 0; at < size; at += PIECE)
        MPI_Send(bytes + at, size - at < PIECE ? (int)(size - at) : PIECE, MPI_CHAR, 0, BYTES_TAG, MPI_COMM_WORLD);
    return true;
}

static bool receive_bytes(void *context, int from, const char **bytes, size_t *size, struct k25_error *error)
{
    struct buffer *buffer = context;
    uint64_t length;
    MPI_Recv(&length, 1, MPI_UINT64_T, from, SIZE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (length > buffer->room) {
        char *larger = realloc(buffer->bytes, (size_t)length);
        if (larger == NULL) {
            k25_fail(error, K25_RESOURCE, "out of memory");
            MPI_Abort(MPI_COMM_WORLD, K25_RESOURCE); /* the sender waits for somebody to take its bytes */
            return false;
        }
        buffer->bytes = larger;
        buffer->room = (size_t)length;
    }
    for (size_t at = 0; at < length; at += PIECE)
        MPI_Recv(buffer->bytes + at, length - at < PIECE ? (int)(length - at) : PIECE, MPI_CHAR, from, BYTES_TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *bytes = buffer->bytes;
    *size = (size_t)length;
    return true;
}

bool k25sim_mpi_open(struct k25_sweep_processes *processes)
{
    int level;
    struct buffer *buffer = calloc(1, sizeof *buffer);
    /* Messages are sent between parallel regions, by the thread that came here. */
    if (buffer == NULL || MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_FUNNELED) {
        free(buffer);
        return false;
    }
    *processes = (struct k25_sweep_processes){.context = buffer,
                                              .first_with = first_with,
                                              .broadcast = broadcast,
                                              .send = send_bytes,
                                              .receive = receive_bytes};
    MPI_Comm_rank(MPI_COMM_WORLD, &processes->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes->count);
    return true;
}

void k25sim_mpi_close(void *context)
{
    struct buffer *buffer = context;
    if (buffer != NULL) {
        free(buffer->bytes);
        free(buffer);
        MPI_Finalize();
    }
}
