/* Any bytes at all into the reader of calibration sets: a set that prints to a file of the same set, or an error
 * that names the file. The reader takes a path, so the bytes go through a file in memory. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calib/fit/calibration.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Loads `size` bytes as a set; the file lives only in memory. */
static bool load(const void *bytes, size_t size, struct k25_calibration *set, struct k25_error *error)
{
    char path[64];
    struct k25_inputs inputs = {0};
    int file = memfd_create("set", 0);
    require(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool ok = k25_calibration_load(path, set, &inputs, error);
    close(file);
    k25_inputs_free(&inputs);
    require(ok || (error->status == K25_BAD_INPUT && strncmp(error->message, path, strlen(path)) == 0));
    return ok;
}

static void check(const struct k25_calibration *set)
{
    struct k25_error error = {0};
    struct k25_calibration again;
    struct k25_priors priors = {0};
    struct k25_params params;
    k25_params_resolve(&priors, set, &params);
    for (int id = 0; id < K25_PARAMS; id++) {
        require(!set->set[id] || (isfinite(set->value[id]) && set->value[id] > 0 && set->log_sd[id] >= 0));
        require(params.value[id] == (set->set[id] ? set->value[id] : 0));
    }
    for (size_t i = 0; i < set->covariances * set->covariances; i++)
        require(isfinite(set->covariance[i]));
    char *text = k25_calibration_print(set, &error);
    require(text != NULL);
    require(load(text, strlen(text), &again, &error));
    require(strcmp(again.name, set->name) == 0 && strcmp(again.source, set->source) == 0);
    require(strcmp(again.model, set->model) == 0 && strcmp(again.machine, set->machine) == 0);
    require(again.covariances == set->covariances && memcmp(again.set, set->set, sizeof set->set) == 0);
    char *second = k25_calibration_print(&again, &error);
    require(second != NULL && strcmp(text, second) == 0);
    free(text);
    free(second);
    k25_calibration_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k25_error error = {0};
    struct k25_calibration set;
    if (load(data, size, &set, &error)) {
        check(&set);
        k25_calibration_free(&set);
    }
    return 0;
}
