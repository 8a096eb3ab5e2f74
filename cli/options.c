#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "scenarios/library/scenario.h"

const char *const cli_format_names[CLI_FORMATS + 1] = {[CLI_TABLE] = "table", [CLI_JSON] = "json", [CLI_CSV] = "csv"};

const char *cli_data_folder;
const char *const *cli_words;
static int help_asked;
static const struct poptOption common[] = {
    {"data", '\0', POPT_ARG_STRING, &cli_data_folder, 0, "the folder with hw/, model/, calib/ and scenarios/", "DIR"},
    {"help", 'h', POPT_ARG_NONE, &help_asked, 0, "print this help", NULL},
    POPT_TABLEEND,
};

enum { OPTIONS = 32 };

enum k25_status cli_failed(const struct k25_error *error)
{
    return error->status;
}

enum k25_status cli_misused(const struct cli_command *command, struct k25_error *error, const char *format, ...)
{
    char text[sizeof error->message - 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    k25_fail(error, K25_BAD_INPUT, "%s\ntry 'k25sim help %s'", text, command->name);
    return K25_BAD_INPUT;
}

/* The options of a command with those that every command has. */
static void all_options(const struct cli_command *command, struct poptOption out[OPTIONS])
{
    size_t count = 0;
    for (const struct poptOption *o = command->options; o->longName != NULL && count < OPTIONS - 3; o++)
        out[count++] = *o;
    for (const struct poptOption *o = common; o->longName != NULL; o++)
        out[count++] = *o;
    out[count] = (struct poptOption)POPT_TABLEEND;
}

/* What follows an option: `8` of --batch=8, or of --batch 8; "..." when nothing does. */
static const char *value_of(const char *given)
{
    const char *equals = strchr(given, '=');
    if (equals != NULL)
        return equals + 1;
    for (const char *const *word = cli_words; *word != NULL; word++) {
        if (strcmp(*word, given) == 0 && word[1] != NULL && word[1][0] != '-')
            return word[1];
    }
    return "...";
}

/* NULL: there is none of that name. */
static const struct poptOption *find_option(const struct poptOption *options, const char *name)
{
    while (options->longName != NULL && strcmp(options->longName, name) != 0)
        options++;
    return options->longName != NULL ? options : NULL;
}

/* The option --format of a command says which formats it has. */
static bool is_format(const struct poptOption *option, const char *word)
{
    size_t length = strlen(word);
    const char *at = option != NULL && length > 0 ? strstr(option->descrip, word) : NULL;
    while (at != NULL && ((at != option->descrip && at[-1] != ' ') || isalpha((unsigned char)at[length])))
        at = strstr(at + 1, word);
    for (const char *const *name = cli_format_names; at != NULL && *name != NULL; name++) {
        if (strcmp(*name, word) == 0)
            return true;
    }
    return false;
}

/* The key of a scenario that ends in a word; of several the one with the fewest parts. */
struct key_search {
    const char *word;
    char key[96]; /* empty: none */
    size_t parts;
};

static void compare_key(void *context, const char *path, const struct k25_field *field)
{
    (void)field;
    struct key_search *search = context;
    const char *dot = strrchr(path, '.');
    size_t parts = 1;
    for (const char *p = path; *p != '\0'; p++)
        parts += *p == '.';
    if (k25_is_name(search->word, dot != NULL ? dot + 1 : path) && (search->key[0] == '\0' || parts < search->parts)) {
        snprintf(search->key, sizeof search->key, "%s", path);
        search->parts = parts;
    }
}

/* What an unknown option may have meant: a format, a key of the scenario, an option with a slip in it. `given` is the
 * word of the command line, `bare` the name in it. */
static void hint_option(const struct poptOption *options, const char *given, const char *bare, char *out, size_t size)
{
    struct key_search search = {.word = bare};
    const char *names[OPTIONS], *nearest;
    size_t count = 0;
    out[0] = '\0';
    for (const struct poptOption *o = options; o->longName != NULL; o++)
        names[count++] = o->longName;
    names[count] = NULL;
    if (is_format(find_option(options, "format"), bare))
        snprintf(out, size, ", did you mean '--format %s'?", bare);
    k25_schema_visit(k25_scenario_fields, "", compare_key, &search);
    k25_schema_visit(k25_plan_fields, "plan", compare_key, &search);
    if (out[0] == '\0' && search.key[0] != '\0' && find_option(options, "set") != NULL)
        snprintf(out, size, ", did you mean '--set %s=%.60s'?", search.key, value_of(given));
    if (out[0] == '\0' && strlen(bare) > 1 && (nearest = k25_nearest(bare, names)) != NULL)
        snprintf(out, size, ", did you mean '--%s'?", nearest);
}

/* "unknown option '--fromat', did you mean '--format'?" */
static void fail_option(const struct cli_command *command, const struct poptOption *options, poptContext context,
                        int code, struct k25_error *error)
{
    const char *given = poptBadOption(context, POPT_BADOPTION_NOALIAS);
    int length = (int)strcspn(given, "=");
    if (code == POPT_ERROR_NOARG) {
        cli_misused(command, error, "option '%.*s' needs a value", length, given);
        return;
    }
    if (code != POPT_ERROR_BADOPT) {
        cli_misused(command, error, "option '%.*s': %s", length, given, poptStrerror(code));
        return;
    }
    char word[128], hint[192];
    snprintf(word, sizeof word, "%.*s", length, given);
    hint_option(options, given, word + strspn(word, "-"), hint, sizeof hint);
    cli_misused(command, error, "unknown option '%s'%s", word, hint);
}

bool cli_read_options(const struct cli_command *command, int argc, const char **argv, int *help, poptContext *context,
                      struct k25_error *error)
{
    static struct poptOption options[OPTIONS]; /* the context refers to it */
    all_options(command, options);
    cli_words = argv;
    *context = poptGetContext(NULL, argc, argv, options, 0);
    if (*context == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    int code = poptGetNextOpt(*context);
    *help = help_asked;
    if (*help)
        return true;
    if (code < -1) {
        fail_option(command, options, *context, code, error);
        return false;
    }
    size_t count = cli_count(poptGetArgs(*context));
    if (count < command->least)
        return cli_misused(command, error, "missing %s", command->arguments) == K25_OK;
    if (count > command->most)
        return cli_misused(command, error, "unexpected argument '%s'", poptGetArgs(*context)[command->most]) == K25_OK;
    return true;
}

void cli_print_help(const struct cli_command *command)
{
    struct poptOption options[OPTIONS];
    all_options(command, options);
    printf("k25sim %s: %s\n\nusage: k25sim %s %s%s[OPTION]...\n\noptions:\n", command->name, command->summary,
           command->name, command->arguments, command->arguments[0] != '\0' ? " " : "");
    for (const struct poptOption *o = options; o->longName != NULL; o++) {
        char text[64], brief[8] = "";
        if (o->shortName != '\0')
            snprintf(brief, sizeof brief, "-%c, ", o->shortName);
        snprintf(text, sizeof text, "%s--%s%s%s", brief, o->longName, o->argDescrip != NULL ? " " : "",
                 o->argDescrip != NULL ? o->argDescrip : "");
        printf("  %-28s %s\n", text, o->descrip);
    }
    printf("\n%s", command->details);
}

bool cli_format(const struct cli_command *command, const char *text, enum cli_format *format, struct k25_error *error)
{
    char hint[64];
    *format = CLI_TABLE;
    if (text == NULL)
        return true;
    for (int i = 0; cli_format_names[i] != NULL; i++) {
        if (strcmp(text, cli_format_names[i]) == 0) {
            *format = (enum cli_format)i;
            return true;
        }
    }
    k25_did_you_mean(text, cli_format_names, hint, sizeof hint);
    cli_misused(command, error, "--format %s: expected table, json or csv%s", text, hint);
    return false;
}

size_t cli_count(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

void cli_stem(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    /* Names of models have dots of their own. */
    static const char *const endings[] = {".yaml", ".json", ".txt", NULL};
    size_t length = strlen(base);
    for (int i = 0; endings[i] != NULL; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(base + length - ending, endings[i]) == 0) {
            length -= ending;
            break;
        }
    }
    snprintf(out, size, "%.*s", (int)length, base);
}
