/* Whole files in (gzip too) and out (complete or not at all). */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <isa-l/igzip_lib.h>

#include "base/file.h"
#include "tests/unit/base_check.h"

enum { ROOM = 1 << 20 };

/* The file as it must come back. */
static void expect_read(const char *path, const void *bytes, size_t size)
{
    struct k25_error error = {0};
    size_t got = 0;
    char *text = k25_file_read(path, ROOM, &got, &error);
    assert_string_equal(error.message, "");
    assert_non_null(text);
    assert_int_equal(got, size);
    assert_memory_equal(text, bytes, size);
    assert_int_equal(text[size], '\0');
    free(text);
}

static void refuse_read(const char *path, size_t limit, enum k25_status status, const char *message)
{
    struct k25_error error = {0};
    size_t size;
    assert_null(k25_file_read(path, limit, &size, &error));
    assert_error(error, status, message);
}

/* How many names the working folder holds: nothing temporary may be left. */
static int names_here(void)
{
    DIR *folder = opendir(".");
    int count = -2;
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* One gzip member at `out`. */
static size_t member(const unsigned char *bytes, size_t size, unsigned char *out, size_t room)
{
    static struct isal_zstream stream; /* 64 kB and more */
    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.flush = NO_FLUSH;
    stream.next_in = (uint8_t *)(uintptr_t)bytes;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out;
    stream.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    return stream.total_out;
}

static void reads_plain(void **state)
{
    (void)state;
    static char big[300000];
    uint64_t seed = 25;
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (char)chance(&seed);
    }
    big[0] = 'x';
    static const size_t sizes[] = {0, 1, 2, 65535, 65536, 65537, 131072, sizeof big};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_file("plain", big, sizes[i]);
        expect_read("plain", big, sizes[i]);
    }
}

static void reads_standard_input(void **state)
{
    (void)state;
    int before = dup(STDIN_FILENO), ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    expect_read("-", "abc", 3);
    expect_read("-", "", 0);
    dup2(before, STDIN_FILENO);
    close(before);
}

static void limit_is_exact(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'a', sizeof text);
    put_file("big", text, sizeof text);
    size_t size;
    char *bytes = k25_file_read("big", sizeof text, &size, NULL);
    assert_non_null(bytes);
    free(bytes);
    refuse_read("big", 1999, K25_BAD_INPUT, "big: larger than 1,999 bytes, the most that is read");
    unsigned char packed[4000];
    put_file("big.gz", packed, member((unsigned char *)text, sizeof text, packed, sizeof packed));
    bytes = k25_file_read("big.gz", sizeof text, &size, NULL);
    assert_non_null(bytes);
    free(bytes);
    refuse_read("big.gz", 1999, K25_BAD_INPUT, "big.gz: larger than 1,999 bytes, the most that is read");
    refuse_read("/dev/zero", 100000, K25_BAD_INPUT, "/dev/zero: larger than 100,000 bytes, the most that is read");
    put_file("none", "", 0);
    bytes = k25_file_read("none", 0, &size, NULL);
    assert_non_null(bytes);
    free(bytes);
    bytes = k25_file_read("big", SIZE_MAX, &size, NULL);
    assert_non_null(bytes);
    free(bytes);
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    refuse_read("x.yaml", 10, K25_BAD_INPUT, "x.yaml: no such file");
    refuse_read("", 10, K25_BAD_INPUT, "'': no such file");
    put_file("plain", "a", 1);
    refuse_read("plain/x", 10, K25_BAD_INPUT, "plain/x: no such file");
    mkdir("folder", 0777);
    refuse_read("folder", 10, K25_BAD_INPUT, "folder: is a folder, expected a file");
    assert_int_equal(symlink("loop", "loop"), 0);
    refuse_read("loop", 10, K25_RESOURCE, "loop: cannot open: Too many levels of symbolic links");
    refuse_read("/proc/self/mem", 10, K25_RESOURCE, "/proc/self/mem: cannot read: Input/output error");
}

/* Any number of members of any size: their borders fall everywhere in the chunks that are read. */
static void reads_members(void **state)
{
    (void)state;
    uint64_t seed = 25;
    static unsigned char text[400000], packed[800000];
    for (int round = 0; round < 60; round++) {
        size_t used = 0, out = 0, members = 1 + chance(&seed) % 6;
        for (size_t i = 0; i < members; i++) {
            size_t size = chance(&seed) % 3 == 0 ? chance(&seed) % 3 : chance(&seed) % 60000;
            uint64_t letters = 1 + chance(&seed) % 255;
            for (size_t k = 0; k < size; k++) {
                text[used + k] = (unsigned char)(chance(&seed) % letters);
            }
            out += member(text + used, size, packed + out, sizeof packed - out);
            used += size;
        }
        if (round % 2 == 0) {
            size_t padding = chance(&seed) % 100000;
            memset(packed + out, 0, padding);
            out += padding;
        }
        put_file("t.gz", packed, out);
        expect_read("t.gz", text, used);
    }
}

static void damaged_gzip(void **state)
{
    (void)state;
    static unsigned char packed[100], bad[200];
    size_t size = member((const unsigned char *)"hello hello hello", 17, packed, sizeof packed);
    for (size_t cut = 2; cut < size; cut++) { /* wherever it is cut off */
        put_file("t.gz", packed, cut);
        refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file is cut off, its last part is missing");
        memcpy(bad, packed, size);
        memcpy(bad + size, packed, cut);
        put_file("t.gz", bad, size + cut);
        refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file is cut off, its last part is missing");
    }
    for (size_t at = size - 8; at < size; at++) { /* checksum and length */
        memcpy(bad, packed, size);
        bad[at] ^= 1;
        put_file("t.gz", bad, size);
        refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file is damaged: its checksum does not match");
    }
    memcpy(bad, packed, size);
    bad[2] = 7; /* method */
    put_file("t.gz", bad, size);
    refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file is damaged: a header is wrong");
    memcpy(bad, packed, size);
    bad[10] = 7; /* final block of the reserved type 3 */
    put_file("t.gz", bad, size);
    refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file is damaged: its data cannot be inflated");
    memcpy(bad, packed, size);
    memcpy(bad + size, "\0\0junk", 6);
    put_file("t.gz", bad, size + 6);
    refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file has other data after its last member");
    memcpy(bad + size, "junk", 4);
    put_file("t.gz", bad, size + 4);
    refuse_read("t.gz", 1000, K25_BAD_INPUT, "t.gz: the gzip file has other data after its last member");
}

static void writes_and_replaces(void **state)
{
    (void)state;
    struct k25_error error = {0};
    int before = names_here();
    umask(027);
    assert_true(k25_file_write("out", "one", 3, &error));
    expect_read("out", "one", 3);
    struct stat about;
    stat("out", &about);
    assert_int_equal(about.st_mode & 07777, 0640);
    umask(022);
    assert_true(k25_file_write("out", "", 0, &error));
    expect_read("out", "", 0);
    stat("out", &about);
    assert_int_equal(about.st_mode & 07777, 0644);
    mkdir("sub", 0777);
    assert_true(k25_file_write("sub/out", "two", 3, &error));
    assert_true(k25_file_write("./sub/../out", "two", 3, &error));
    char name[252];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(k25_file_write(name, "long", 4, &error));
    expect_read(name, "long", 4);
    assert_int_equal(names_here(), before + 3);
}

static void writing_follows_links(void **state)
{
    (void)state;
    struct stat about;
    mkdir("links", 0777);
    assert_int_equal(symlink("links/target", "link"), 0);
    assert_int_equal(symlink("link", "link2"), 0);
    assert_true(k25_file_write("link2", "x", 1, NULL)); /* dangling */
    expect_read("links/target", "x", 1);
    assert_true(k25_file_write("link2", "yy", 2, NULL));
    expect_read("links/target", "yy", 2);
    lstat("link2", &about);
    assert_true(S_ISLNK(about.st_mode));
    lstat("link", &about);
    assert_true(S_ISLNK(about.st_mode));
}

static void writes_to_what_is_no_file(void **state)
{
    (void)state;
    struct k25_error error = {0};
    int ends[2];
    char name[32], got[4] = "";
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    assert_true(k25_file_write(name, "abc", 3, &error));
    assert_int_equal(read(ends[0], got, sizeof got), 3);
    assert_string_equal(got, "abc");
    close(ends[0]);
    close(ends[1]);
    assert_true(k25_file_write("/dev/null", "abc", 3, &error));
    assert_false(k25_file_write("/dev/full", "abc", 3, &error));
    assert_error(error, K25_RESOURCE, "/dev/full: cannot write: No space left on device");
    /* A descriptor of a file: the file stays the same one. */
    int fd = open("descriptor", O_RDWR | O_CREAT, 0666);
    struct stat before, after;
    fstat(fd, &before);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_true(k25_file_write(name, "abc", 3, &error));
    stat("descriptor", &after);
    assert_int_equal(before.st_ino, after.st_ino);
    expect_read("descriptor", "abc", 3);
    close(fd);
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    struct k25_error error = {0};
    mkdir("folder", 0777);
    assert_false(k25_file_write("folder", "x", 1, &error));
    assert_error(error, K25_BAD_INPUT, "folder: is a folder, expected a file");
    assert_false(k25_file_write("", "x", 1, &error));
    assert_error(error, K25_BAD_INPUT, "'': cannot write to an empty name");
    assert_false(k25_file_write("no/where", "x", 1, &error));
    assert_error(error, K25_RESOURCE, "no/where: cannot write: its folder does not exist");
    assert_int_equal(symlink("ring2", "ring1"), 0);
    assert_int_equal(symlink("ring1", "ring2"), 0);
    assert_false(k25_file_write("ring1", "x", 1, &error));
    assert_error(error, K25_RESOURCE, "ring1: cannot write: Too many levels of symbolic links");
    put_file("plain", "a", 1);
    assert_false(k25_file_write("plain/x", "x", 1, &error));
    assert_error(error, K25_RESOURCE, "plain/x: cannot write: Not a directory");
}

static void paths_beside(void **state)
{
    (void)state;
    char out[16];
    assert_true(k25_path_beside("a/b/plan.yaml", "x.yaml", out, sizeof out));
    assert_string_equal(out, "a/b/x.yaml");
    assert_true(k25_path_beside("plan.yaml", "x.yaml", out, sizeof out));
    assert_string_equal(out, "x.yaml");
    assert_true(k25_path_beside("a/plan.yaml", "/x.yaml", out, sizeof out));
    assert_string_equal(out, "/x.yaml");
    assert_true(k25_path_beside("/plan.yaml", "x.yaml", out, sizeof out));
    assert_string_equal(out, "/x.yaml");
    assert_true(k25_path_beside("a/b", "123456789abcd", out, sizeof out)); /* 15 and the zero */
    assert_false(k25_path_beside("a/b", "123456789abcde", out, sizeof out));
}

static void existence(void **state)
{
    (void)state;
    put_file("here", "", 0);
    mkdir("folder", 0777);
    assert_true(k25_file_exists("here"));
    assert_false(k25_file_exists("not here"));
    assert_false(k25_file_exists("folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_plain),
        cmocka_unit_test(reads_standard_input),
        cmocka_unit_test(limit_is_exact),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(reads_members),
        cmocka_unit_test(damaged_gzip),
        cmocka_unit_test(writes_and_replaces),
        cmocka_unit_test(writing_follows_links),
        cmocka_unit_test(writes_to_what_is_no_file),
        cmocka_unit_test(what_cannot_be_written),
        cmocka_unit_test(paths_beside),
        cmocka_unit_test(existence),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
