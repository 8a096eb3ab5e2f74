/* Public captures that do not come along: some are megabytes, and they belong to others. Programs that read them are
 * reported as skipped where the folder is not there; the same traits in files of a few lines are tested beside each
 * reader. The folder is K25_SHARED/data/captures, K25_SHARED being ../shared beside the checkout unless the environment
 * says otherwise. */
#ifndef K25_TESTS_PUBLIC_CHECK_H
#define K25_TESTS_PUBLIC_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { K25_TEST_SKIPPED = 77 }; /* SKIP_RETURN_CODE of tests/CMakeLists.txt */

/* The path of a file of that folder, until the next call. */
static inline const char *public_file(const char *name)
{
    static char path[1024];
    const char *shared = getenv("K25_SHARED");
    snprintf(path, sizeof path, "%s/data/captures/%s", shared != NULL ? shared : K25_SOURCE_DIR "/../shared", name);
    return path;
}

static inline bool public_files_are_there(void)
{
    bool there = access(public_file(""), R_OK) == 0;
    if (!there)
        printf("no folder %s (K25_SHARED names another place): nothing is tested\n", public_file(""));
    return there;
}

#endif
