/* Every allocation and every system call of base/ made to fail, one after the other.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=read,--wrap=write,--wrap=fsync,--wrap=close,
 * --wrap=rename; without, the tests say that they are skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/schema.h"
#include "tests/unit/base_check.h"

enum call { NONE, MEMORY, READ, WRITE, SYNC, CLOSE, RENAME };

static enum call failing; /* which call */
static int countdown;     /* how many of them still succeed */
static bool happened;

static bool strikes(enum call call)
{
    if (failing != call || countdown-- != 0) {
        return false;
    }
    happened = true;
    errno = call == MEMORY ? ENOMEM : EIO;
    return true;
}

#define REAL(result, name, ...)                                                                                        \
    extern result __real_##name(__VA_ARGS__) __attribute__((weak));                                                    \
    result __wrap_##name(__VA_ARGS__);                                                                                 \
    result __wrap_##name(__VA_ARGS__)

REAL(void *, malloc, size_t size)
{
    return strikes(MEMORY) ? NULL : __real_malloc(size);
}
REAL(void *, calloc, size_t count, size_t size)
{
    return strikes(MEMORY) ? NULL : __real_calloc(count, size);
}
REAL(void *, realloc, void *old, size_t size)
{
    return strikes(MEMORY) ? NULL : __real_realloc(old, size);
}
REAL(ssize_t, read, int fd, void *bytes, size_t size)
{
    return strikes(READ) ? -1 : __real_read(fd, bytes, size);
}
/* Writes at most three bytes at a time, as a system may. */
REAL(ssize_t, write, int fd, const void *bytes, size_t size)
{
    return strikes(WRITE) ? -1 : __real_write(fd, bytes, failing == WRITE && size > 3 ? 3 : size);
}
REAL(int, fsync, int fd)
{
    return strikes(SYNC) ? -1 : __real_fsync(fd);
}
REAL(int, close, int fd)
{
    bool strike = strikes(CLOSE);
    int result = __real_close(fd); /* the descriptor is gone even when close fails */
    errno = strike ? EIO : errno;
    return strike ? -1 : result;
}
REAL(int, rename, const char *from, const char *to)
{
    return strikes(RENAME) ? -1 : __real_rename(from, to);
}

static void need_wraps(void)
{
    if (__real_malloc == NULL || __real_rename == NULL) {
        print_message("SKIPPED: linked without -Wl,--wrap=malloc and the like, see the head of this file\n");
        skip();
    }
}

/* Runs `work` with the first, second, ... call failing until none is left to fail. Returns how many there were. */
static int fail_each(enum call call, bool (*work)(struct k25_error *), const char *message_end)
{
    for (int n = 0;; n++) {
        struct k25_error error = {0};
        happened = false;
        countdown = n;
        failing = call;
        bool good = work(&error);
        failing = NONE;
        if (!happened) {
            assert_string_equal(error.message, "");
            assert_true(good);
            return n;
        }
        assert_false(good);
        assert_int_equal(error.status, K25_RESOURCE);
        assert_non_null(strstr(error.message, message_end));
    }
}

static bool read_yaml(struct k25_error *error)
{
    struct k25_yaml *yaml = k25_yaml_read("in.yaml", NULL, error);
    bool good = yaml != NULL;
    k25_yaml_free(yaml);
    return good;
}

static bool read_csv(struct k25_error *error)
{
    struct k25_csv *csv = k25_csv_read("in.csv", error);
    bool good = csv != NULL;
    k25_csv_free(csv);
    return good;
}

static bool set_members(struct k25_error *error)
{
    static const struct k25_field fields[] = {{.key = "a", .type = K25_INT, .fallback = "3"}, {0}};
    struct k25_inputs inputs = {0};
    int record = 7;
    bool good = k25_schema_load(fields, "p", NULL, "x", &record, &inputs, error);
    assert_int_equal(record, good ? 3 : 7);
    if (good) {
        good = k25_schema_set(fields, "p", "a", "5", &record, &inputs, error);
        assert_int_equal(record, good ? 5 : 3);
        assert_string_equal(k25_inputs_find(&inputs, "p.a")->value, good ? "5" : "3");
    }
    k25_inputs_free(&inputs);
    return good;
}

static bool write_file(struct k25_error *error)
{
    return k25_file_write("out", "new text", 8, error);
}

static bool write_device(struct k25_error *error)
{
    return k25_file_write("/dev/null", "new text", 8, error);
}

static void memory_runs_out(void **state)
{
    (void)state;
    need_wraps();
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < 300; i++) { /* more than the first room of every list */
        used += (size_t)snprintf(text + used, sizeof text - used, "k%d: &a 1\n", i);
    }
    put_file("in.yaml", text, used);
    for (size_t i = 0; i < used; i++) {
        text[i] = i % 2 ? '\n' : 'a';
    }
    put_file("in.csv", text, used);
    assert_true(fail_each(MEMORY, read_yaml, "out of memory") > 8);
    assert_true(fail_each(MEMORY, read_csv, "out of memory") > 8);
    assert_true(fail_each(MEMORY, set_members, "out of memory") > 8);
}

static void reading_fails(void **state)
{
    (void)state;
    need_wraps();
    put_file("in.yaml", "a: 1\n", 5);
    put_file("in.csv", "a\n1\n", 4);
    assert_int_equal(fail_each(READ, read_yaml, "in.yaml: cannot read: Input/output error"), 2);
    assert_int_equal(fail_each(READ, read_csv, "in.csv: cannot read: Input/output error"), 2);
}

static void leaves_the_old(enum call call, int times)
{
    put_file("out", "old", 3);
    for (int n = 0; n < times; n++) {
        struct k25_error error = {0};
        countdown = n;
        failing = call;
        bool good = write_file(&error);
        failing = NONE;
        assert_false(good);
        assert_error(error, K25_RESOURCE, "out: cannot write: Input/output error");
        size_t size;
        char *bytes = k25_file_read("out", 100, &size, NULL);
        assert_string_equal(bytes, "old");
        free(bytes);
        DIR *folder = opendir(".");
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            assert_null(strstr(entry->d_name, ".out."));
        }
        closedir(folder);
    }
}

static void writing_fails(void **state)
{
    (void)state;
    need_wraps();
    leaves_the_old(WRITE, 3); /* eight bytes, three at a time */
    leaves_the_old(SYNC, 1);
    leaves_the_old(CLOSE, 1);
    leaves_the_old(RENAME, 1);
    assert_int_equal(fail_each(WRITE, write_device, "/dev/null: cannot write: Input/output error"), 3);
    assert_int_equal(fail_each(CLOSE, write_device, "/dev/null: cannot write: Input/output error"), 1);
    /* The folder's own sync comes when the file is in place: it fails unheard. */
    struct k25_error error = {0};
    countdown = 1;
    failing = SYNC;
    assert_true(write_file(&error));
    failing = NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(reading_fails),
        cmocka_unit_test(writing_fails),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
