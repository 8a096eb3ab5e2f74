/* k25sim init: a scenario to start from, written from the tables of the format, so that it can never go stale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "cli/cli.h"
#include "scenarios/library/scenario.h"

static const struct poptOption options[] = {
    CLI_FORCE,
    POPT_TABLEEND,
};

/* Keys that have no default, and where another value makes the better start. */
static const struct {
    const char *key, *value;
} examples[] = {
    {"title", "\"one line for people\""},
    {"architecture", "kimi-k2.5"},
    {"weights", "int4_g32"},
    {"machine", "rtx-pro-6000-8x-two-socket"},
    {"plan.tp", "8"},
    {"plan.batch", "1"},
    {"plan.context", "1024"},
};

struct writer {
    FILE *out;
    const char *name; /* of the scenario */
    char folder[256]; /* the mapping that the last key stood in: "plan.allreduce" */
};

static const char *example(const struct writer *writer, const char *path, const struct k25_field *field)
{
    if (strcmp(path, "name") == 0)
        return writer->name;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (strcmp(path, examples[i].key) == 0)
            return examples[i].value;
    }
    return field->fallback == NULL ? "" : field->fallback[0] == '\0' ? "\"\"" : field->fallback;
}

static int depth_of(const char *path)
{
    int depth = 0;
    for (; *path != '\0'; path++)
        depth += *path == '.';
    return depth;
}

/* The mappings that `path` stands in and the key before it did not. */
static void open_folders(struct writer *writer, const char *path)
{
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        size_t length = (size_t)(dot - path);
        bool open = strncmp(writer->folder, path, length) == 0 &&
                    (writer->folder[length] == '.' || writer->folder[length] == '\0');
        char head[256];
        snprintf(head, sizeof head, "%.*s", (int)length, path);
        const char *last = strrchr(head, '.');
        if (!open)
            fprintf(writer->out, "%*s%s:\n", depth_of(head) * 2, "", last != NULL ? last + 1 : head);
    }
    const char *dot = strrchr(path, '.');
    snprintf(writer->folder, sizeof writer->folder, "%.*s", dot != NULL ? (int)(dot - path) : 0, path);
}

static void write_range(FILE *out, const struct k25_field *field)
{
    if (field->type == K25_BOOL)
        fprintf(out, "; true or false");
    for (int i = 0; field->type == K25_ENUM && field->names[i] != NULL; i++)
        fprintf(out, "%s%s", i == 0 ? "; one of " : ", ", field->names[i]);
    bool number = field->type == K25_INT || field->type == K25_REAL;
    if (number && field->max >= 1e6)
        fprintf(out, "; at least %.15g", field->min); /* a limit against slips of the pen, not against use */
    else if (number && field->max > 0)
        fprintf(out, "; %.15g to %.15g", field->min, field->max);
    if (field->unit != NULL && field->unit[0] != '\0')
        fprintf(out, " (%s)", field->unit);
    fprintf(out, field->fallback == NULL ? "; required" : "");
}

static void write_key(void *context, const char *path, const struct k25_field *field)
{
    struct writer *writer = context;
    open_folders(writer, path);
    const char *dot = strrchr(path, '.');
    char text[512];
    snprintf(text, sizeof text, "%*s%s: %s", depth_of(path) * 2, "", dot != NULL ? dot + 1 : path,
             example(writer, path, field));
    fprintf(writer->out, "%-40s # %s", text, field->doc);
    write_range(writer->out, field);
    fprintf(writer->out, "\n");
}

/* A scenario of that name; the caller frees. */
static char *starter(const char *name, struct k25_error *error)
{
    struct k25_printer printer;
    if (!k25_print_open(&printer, error))
        return NULL;
    struct writer writer = {printer.out, name, ""};
    fprintf(printer.out,
            "# A scenario of k25sim: one question. `k25sim predict FILE` answers it, `k25sim check FILE` checks it.\n"
            "# Keys with a default may be left out. Names: `k25sim list models`, `machines`, `calibrations`.\n"
            "k25sim: scenario\nversion: 1\n");
    k25_schema_visit(k25_scenario_fields, "", write_key, &writer);
    fprintf(printer.out, "assumptions: [] # sentences printed beside the answer\n");
    k25_schema_visit(k25_plan_fields, "plan", write_key, &writer);
    return k25_print_close(&printer, error);
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    (void)cli;
    const char *path = arguments[0];
    char name[64] = "my-scenario";
    if (path != NULL)
        cli_stem(path, name, sizeof name);
    char *text = starter(name, error);
    bool ok = text != NULL;
    if (ok && path == NULL)
        fputs(text, stdout);
    else if (ok && (ok = cli_write(path, text, NULL, error)))
        printf("%s written; next: k25sim predict %s\n", path, path);
    free(text);
    return ok ? K25_OK : cli_failed(error);
}

const struct cli_command cli_init = {
    .name = "init",
    .arguments = "[FILE]",
    .summary = "write a commented scenario to start from",
    .details = "Every key with its meaning, range and default. Without FILE it goes to standard output.\n"
               "\n"
               "examples:\n"
               "  k25sim init my-box.yaml\n"
               "  k25sim init | less\n",
    .least = 0,
    .most = 1,
    .options = options,
    .run = run,
};
