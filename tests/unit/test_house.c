/* The house: no include runs upward, every room has its page, headers are guarded by their path, only cli prints or
 * leaves. */
#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* From the ground up. */
static const char *const floors[] = {"base", "hw", "model", "calib", "scenarios", "cli"};
enum { FLOORS = sizeof floors / sizeof floors[0], CLI = FLOORS - 1 };

/* Every folder with code, lowest first: a file includes headers of its own room and of rooms above it in this list. */
static const char *const rooms[] = {
    "base",
    "hw/params",
    "hw/gpus",
    "hw/topology",
    "hw/kernel",
    "hw/collective",
    "model/arch",
    "model/plan",
    "model/step",
    "model/predict",
    "model/hf",
    "calib/rules",
    "calib/trace",
    "calib/capture",
    "calib/readers/text",
    "calib/readers/bench",
    "calib/readers/nccl",
    "calib/readers/nsys",
    "calib/readers/profiler",
    "calib/fit",
    "calib/kernels",
    "calib/evidence",
    "scenarios/library",
    "scenarios/points",
    "scenarios/sweep",
    "scenarios/plan",
    "scenarios/check",
    "cli",
    "cli/mpi",
    "cli/render",
    "cli/commands",
    "cli/commands/calibrate",
    "cli/commands/explain",
    "cli/commands/inspect",
    "cli/commands/recommend",
    "cli/commands/sweep",
    "cli/commands/validate",
};
enum { ROOMS = sizeof rooms / sizeof rooms[0] };

/* The room of a file: its folder. -1: no folder of the list. */
static int room_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (int i = 0; slash != NULL && i < ROOMS; i++)
        if (strlen(rooms[i]) == (size_t)(slash - path) && strncmp(path, rooms[i], (size_t)(slash - path)) == 0)
            return i;
    return -1;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int c = getc(file); c != EOF; c = getc(file))
        putc(c, out);
    fclose(file);
    fclose(out);
    return text;
}

static bool is_code(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0);
}

/* Whether a file, by its path below the root and its text, is as it should be; returns the number of faults. */
typedef int checker(const char *name, const char *text);

/* Calls `check` for every .c and .h in and below a folder; returns how many there are. */
static int visit(const char *folder, checker *check, int *wrong)
{
    char path[1024], name[512];
    snprintf(path, sizeof path, K25_SOURCE_DIR "/%s", folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int files = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR) {
            files += visit(name, check, wrong);
        } else if (is_code(name)) {
            snprintf(path, sizeof path, K25_SOURCE_DIR "/%s", name);
            char *text = read_all(path);
            *wrong += check(name, text);
            free(text);
            files++;
        }
    }
    closedir(dir);
    return files;
}

/* What a line includes with quotes, in `out`; false when it includes nothing that way. */
static bool included(const char *line, char *out, size_t size)
{
    line += strspn(line, " \t");
    if (*line++ != '#')
        return false;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7) != 0)
        return false;
    line += 7;
    line += strspn(line, " \t");
    if (*line++ != '"')
        return false;
    snprintf(out, size, "%.*s", (int)strcspn(line, "\"\n"), line);
    return true;
}

/* What is wrong with a file of room `own` that includes `file`; NULL: nothing. */
static const char *include_fault(int own, const char *file)
{
    int other = room_of(file);
    if (other < 0)
        return "is in no room of the list in tests/unit/test_house.c";
    if (other > own)
        return "lies above";
    if (other != own && strcmp(strrchr(file, '/'), "/internal.h") == 0)
        return "is internal to another room";
    if (other != own && strncmp(rooms[own], "cli/commands/", 13) == 0 &&
        strncmp(rooms[other], "cli/commands/", 13) == 0)
        return "belongs to another command";
    return NULL;
}

/* A file lies in a room; an include in quotes names a room of ours, and none above the file's own. */
static int check_includes(const char *name, const char *text)
{
    char file[256];
    int wrong = 0, number = 1, own = room_of(name);
    if (own < 0)
        print_message("%s: its folder is in no room of the list in tests/unit/test_house.c\n", name);
    for (const char *line = text; own >= 0 && line != NULL && *line != '\0'; number++) {
        const char *fault = included(line, file, sizeof file) ? include_fault(own, file) : NULL;
        if (fault != NULL)
            print_message("%s:%d: \"%s\" %s\n", name, number, file, fault);
        wrong += fault != NULL;
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return wrong + (own < 0);
}

static void no_include_runs_upward(void **state)
{
    (void)state;
    int wrong = 0;
    for (int floor = 0; floor < FLOORS; floor++)
        assert_true(visit(floors[floor], check_includes, &wrong) > 0); /* a test that reads nothing finds nothing */
    assert_int_equal(wrong, 0);
}

/* What a room is for, what it may call, where to start: a page that is read, so a short one. */
static void rooms_have_a_readme(void **state)
{
    (void)state;
    enum { MOST_LINES = 8 };
    for (int room = 0; room < ROOMS; room++) {
        char path[1024];
        snprintf(path, sizeof path, K25_SOURCE_DIR "/%s/README.md", rooms[room]);
        if (access(path, R_OK) != 0)
            fail_msg("%s: missing", path);
        char *text = read_all(path);
        int lines = 0;
        for (const char *c = text; *c != '\0'; c++)
            lines += *c == '\n';
        if (lines > MOST_LINES)
            fail_msg("%s: %d lines, expected at most %d", path, lines, MOST_LINES);
        free(text);
    }
}

/* Overwrites comments, texts and characters by spaces; newlines stay, so that line numbers hold. */
static void blank(char *text)
{
    enum place { CODE, BLOCK, LINE, TEXT, CHARACTER } in = CODE;
    for (char *c = text; *c != '\0'; c++) {
        enum place now = in;
        char here = *c, next = c[1];
        if (in == CODE && here == '/' && (next == '*' || next == '/'))
            in = next == '*' ? BLOCK : LINE;
        else if (in == CODE && (here == '"' || here == '\''))
            in = here == '"' ? TEXT : CHARACTER;
        else if (in == BLOCK && here == '*' && next == '/')
            in = CODE;
        else if ((in == LINE && here == '\n') || (in == TEXT && here == '"') || (in == CHARACTER && here == '\''))
            in = CODE;
        bool pair = (now == CODE && (in == BLOCK || in == LINE)) || (now == BLOCK && in == CODE) ||
                    ((now == TEXT || now == CHARACTER) && here == '\\' && next != '\0');
        if ((now != CODE || in != CODE) && here != '\n')
            *c = ' ';
        if (pair) {
            c++;
            *c = *c == '\n' ? '\n' : ' ';
        }
    }
}

/* A call of `word` begins at `at`: an identifier of its own, and '(' behind it unless any use counts. */
static bool uses(const char *text, const char *at, const char *word, bool any)
{
    size_t length = strlen(word);
    if (strncmp(at, word, length) != 0 || (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
        return false;
    if (isalnum((unsigned char)at[length]) || at[length] == '_')
        return false;
    const char *after = at + length + strspn(at + length, " \t\n");
    return any || *after == '(';
}

/* A library says nothing by itself and does not end the program: it returns, with a struct k25_error. */
static int check_silence(const char *name, const char *text)
{
    static const struct {
        const char *word;
        bool any;
    } forbidden[] = {{"printf", false}, {"vprintf", false},    {"puts", false},  {"putchar", false},
                     {"perror", false}, {"stdout", true},      {"stderr", true}, {"exit", false},
                     {"_exit", false},  {"quick_exit", false}, {"abort", false}, {"assert", false},
                     {"err", false},    {"errx", false},       {"warn", false},  {"warnx", false},
                     {"getenv", false}, {"setlocale", false},  {"system", false}};
    char *code = strdup(text);
    int wrong = 0, number = 1;
    blank(code);
    for (const char *at = code; *at != '\0'; at++) {
        number += *at == '\n';
        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
            if (!uses(code, at, forbidden[i].word, forbidden[i].any))
                continue;
            print_message("%s:%d: %s in a library\n", name, number, forbidden[i].word);
            wrong++;
        }
    }
    free(code);
    return wrong;
}

static void only_cli_prints_and_leaves(void **state)
{
    (void)state;
    int wrong = 0;
    for (int floor = 0; floor < CLI; floor++)
        visit(floors[floor], check_silence, &wrong);
    assert_int_equal(wrong, 0);
}

/* A variable of a library that can change is global state; constants and thread-local ones are not. */
static int check_state(const char *name, const char *text)
{
    char *code = strdup(text);
    int wrong = 0, number = 0;
    blank(code);
    char *rest = code;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        number++;
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, "static ", 7) != 0 || strstr(at, "const ") != NULL || strchr(at, '(') != NULL)
            continue;
        print_message("%s:%d: a variable that lives on: %s\n", name, number, at);
        wrong++;
    }
    free(code);
    return wrong;
}

static void no_global_state(void **state)
{
    (void)state;
    int wrong = 0;
    for (int floor = 0; floor < CLI; floor++)
        visit(floors[floor], check_state, &wrong);
    assert_int_equal(wrong, 0);
}

/* Every header is guarded by a name that follows from its path, so that no two can shut each other out. */
static int check_guard(const char *name, const char *text)
{
    char guard[256] = "#ifndef K25_";
    size_t used = strlen(guard);
    if (strcmp(strrchr(name, '.'), ".h") != 0)
        return 0;
    for (const char *c = name; *c != '\0' && used + 1 < sizeof guard; c++)
        guard[used++] = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    guard[used] = '\0';
    if (strstr(text, guard) != NULL)
        return 0;
    print_message("%s:1: expected %s\n", name, guard);
    return 1;
}

static void headers_are_guarded(void **state)
{
    (void)state;
    int wrong = 0;
    for (int floor = 0; floor < FLOORS; floor++)
        visit(floors[floor], check_guard, &wrong);
    assert_int_equal(wrong, 0);
}

/* Lists grow by K25_LIST_ADD. What else grows are buffers of bytes, tables that are found by an index, and lists whose
 * entries are used again. */
static int check_lists(const char *name, const char *text)
{
    static const char *const others[] = {"base/list.c",
                                         "base/file.c",
                                         "calib/trace/write.c",
                                         "calib/trace/deliver.c",
                                         "calib/trace/names.c",
                                         "calib/capture/rank.c",
                                         "calib/capture/replay.c",
                                         "scenarios/sweep/chunk.c",
                                         "scenarios/sweep/run.c",
                                         "scenarios/sweep/store.c",
                                         "scenarios/sweep/summary.c",
                                         "cli/mpi/k25sim_mpi.c"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(name, others[i]) == 0)
            return 0;
    }
    char *code = strdup(text);
    int wrong = 0, number = 1;
    blank(code);
    for (const char *at = code; *at != '\0'; at++) {
        number += *at == '\n';
        if (!uses(code, at, "realloc", false) && !uses(code, at, "reallocarray", false))
            continue;
        print_message("%s:%d: grows an array by hand, expected K25_LIST_ADD\n", name, number);
        wrong++;
    }
    free(code);
    return wrong;
}

static void lists_grow_in_one_way(void **state)
{
    (void)state;
    int wrong = 0;
    for (int floor = 0; floor < FLOORS; floor++)
        visit(floors[floor], check_lists, &wrong);
    assert_int_equal(wrong, 0);
}

/* The checks above find what they are for. */
static void the_checks_bite(void **state)
{
    (void)state;
    print_message("the next lines are meant to be found:\n");
    assert_int_equal(
        check_includes("hw/kernel/a.c", "#include <x.h>\n#include \"hw/params/b.h\"\n#include \"base/c.h\"\n"), 0);
    assert_int_equal(check_includes("hw/kernel/a.c", "#include \"hw/kernel/internal.h\"\n"), 0);
    assert_int_equal(check_includes("hw/kernel/a.c", "#include \"hw/params/internal.h\"\n"), 1);
    assert_int_equal(check_includes("hw/kernel/a.c", "#include \"hw/collective/a.h\"\n"), 1);
    assert_int_equal(check_includes("hw/kernel/a.c", "\n # include  \"model/arch/b.h\" // no\n#include \"b.h\"\n"), 2);
    assert_int_equal(check_includes("hw/attic/a.c", ""), 1);
    assert_int_equal(check_includes("cli/commands/sweep/a.c", "#include \"cli/commands/explain/b.h\"\n"), 1);
    assert_int_equal(check_silence("hw/a.c", "/* printf( */ fprintf(f); snprintf(s); \"exit(1)\"; '\"'; puts_x(); x = "
                                             "'\\''; // abort()\n"),
                     0);
    assert_int_equal(check_silence("hw/a.c", "printf(\"\\\"\");\nfputs(s, stderr);\n exit (1);"), 3);
    assert_int_equal(check_state("hw/a.c", "static const int a = 1;\nstatic int f(void);\n"), 0);
    assert_int_equal(check_state("hw/a.c", "    static int calls;\n"), 1);
    assert_int_equal(check_lists("hw/a.c", "p = realloc(p, n);\nq = reallocarray (q, n, 1); /* realloc( */\n"), 2);
    assert_int_equal(check_lists("base/list.c", "p = realloc(p, n);\n"), 0);
    assert_int_equal(check_guard("hw/a_b.h", "#ifndef K25_HW_A_B_H\n"), 0);
    assert_int_equal(check_guard("hw/a.h", "#ifndef A_H\n"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_include_runs_upward),
        cmocka_unit_test(rooms_have_a_readme),
        cmocka_unit_test(only_cli_prints_and_leaves),
        cmocka_unit_test(no_global_state),
        cmocka_unit_test(lists_grow_in_one_way),
        cmocka_unit_test(headers_are_guarded),
        cmocka_unit_test(the_checks_bite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
