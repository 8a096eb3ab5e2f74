#include "scenarios/sweep/expression.h"

#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muParserDLL.h>

#include "base/text.h"

enum { WORD = 128, NAMES = 512, DEPTH = 64 };
enum { AS_TIMES = 6, FROM_LEFT = 0 }; /* prMUL_DIV and oaLEFT of muParserDef.h, which is C++ */

static const char *const functions[] = {"abs", "exp", "ln", "log2", "log10", "max", "min", "rint", "sqrt", NULL};

/* The functions of muParser that are used. */
struct library {
    void *handle;
    muParserHandle_t (*create)(int type);
    void (*release)(muParserHandle_t parser);
    void (*on_error)(muParserHandle_t parser, muErrorHandler_t handler);
    void (*name_characters)(muParserHandle_t parser, const muChar_t *characters);
    void (*variable)(muParserHandle_t parser, const muChar_t *name, muFloat_t *value);
    void (*constant)(muParserHandle_t parser, const muChar_t *name, muFloat_t value);
    void (*infix)(muParserHandle_t parser, const muChar_t *name, muFun1_t function, muBool_t optimise);
    void (*operator)(muParserHandle_t parser, const muChar_t *name, muFun2_t function, muInt_t precedence,
                     muInt_t associativity, muBool_t optimise);
    void (*expression)(muParserHandle_t parser, const muChar_t *text);
    muFloat_t (*evaluate)(muParserHandle_t parser);
    muBool_t (*failed)(muParserHandle_t parser);
    muInt_t (*position)(muParserHandle_t parser);
};

struct k25_expression {
    struct library library;
    muParserHandle_t parser;
};

/* The text, its position in the file, and its symbols. */
struct source {
    const char *text, *file;
    int line, column;
    const struct k25_symbol *symbols;
    bool *used;
    struct k25_error *error;
};

static bool fail(const struct source *source, size_t at, const char *what)
{
    return k25_fail_at(source->error, source->file, source->line, source->column + (int)at, "%s", what);
}

static bool load(struct library *library, struct k25_error *error)
{
    /* Never unloaded: memory that its C++ initialisers allocate would leak at each unloading. */
    library->handle = dlopen("libmuparser.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library->handle == NULL)
        return k25_fail(error, K25_RESOURCE,
                        "expressions need libmuparser.so.2, which cannot be loaded "
                        "(Debian: apt-get install libmuparser2v5)");
    const struct {
        const char *name;
        void *member;
    } symbols[] = {{"mupCreate", &library->create}, {"mupRelease", &library->release},
                   {"mupSetErrorHandler", &library->on_error}, {"mupDefineNameChars", &library->name_characters},
                   {"mupDefineVar", &library->variable}, {"mupDefineConst", &library->constant},
                   {"mupDefineInfixOprt", &library->infix},
                   {
                       "mupDefineOprt",
                       &library->operator},
                       {"mupSetExpr", &library->expression},
                       {"mupEval", &library->evaluate},
                       {"mupError", &library->failed},
                       {"mupGetErrorPos", &library->position},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(library->handle, symbols[i].name);
        if (found == NULL)
            return k25_fail(error, K25_RESOURCE, "libmuparser.so.2 has no function %s", symbols[i].name);
        memcpy(symbols[i].member, &found, sizeof found);
    }
    return true;
}

/* muParser needs a handler; the error is read after the call. */
static void ignore(muParserHandle_t parser)
{
    (void)parser;
}

static double negate(double value)
{
    return value == 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static int find(const struct k25_symbol *symbols, const char *name)
{
    for (int i = 0; symbols[i].name != NULL; i++) {
        if (strcmp(symbols[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* The index of a word of an enum, -1: it has no such word. */
static int find_word(const struct k25_symbol *symbol, const char *word)
{
    for (int i = 0; symbol->words != NULL && symbol->words[i] != NULL; i++) {
        if (strcmp(symbol->words[i], word) == 0)
            return i;
    }
    return -1;
}

static bool unknown(const struct source *source, size_t at, const char *word)
{
    const char *names[NAMES + 1];
    size_t count = 0;
    char hint[160];
    for (int i = 0; source->symbols[i].name != NULL && count < NAMES; i++)
        names[count++] = source->symbols[i].name;
    for (int i = 0; source->symbols[i].name != NULL; i++) {
        for (int w = 0; source->used[i] && source->symbols[i].words != NULL && source->symbols[i].words[w] != NULL;
             w++) {
            if (count < NAMES)
                names[count++] = source->symbols[i].words[w];
        }
    }
    names[count] = NULL;
    k25_did_you_mean(word, names, hint, sizeof hint);
    return k25_fail_at(source->error, source->file, source->line, source->column + (int)at, "unknown name '%s'%s%s",
                       word, hint, hint[0] != '\0' ? "" : ", expected an output or a key of the plan");
}

/* Reads the next name, number or sign at `*at` into `word`, "" at the end; `*at` is set to its end. */
static bool next(const struct source *source, size_t *at, size_t *start, char word[WORD])
{
    const char *text = source->text;
    *at += strspn(text + *at, " \t\n");
    *start = *at;
    size_t length = 0;
    if (isdigit((unsigned char)text[*at]) || text[*at] == '.') {
        char *end;
        (void)strtod(text + *at, &end);
        length = (size_t)(end - (text + *at));
        if (length == 0 || is_word(*end) || memchr(text + *at, 'x', length) != NULL ||
            memchr(text + *at, 'X', length) != NULL)
            return fail(source, *at, "not a number");
    } else if (is_word(text[*at])) {
        while (is_word(text[*at + length]))
            length++;
    } else if (text[*at] != '\0') {
        static const char *const signs[] = {"<=", ">=", "==", "!=", "&&", "||", "<", ">", "!", "+", "-",
                                            "*",  "/",  "%",  "^",  "?",  ":",  "(", ")", ",", NULL};
        for (int i = 0; signs[i] != NULL && length == 0; i++) {
            if (strncmp(text + *at, signs[i], strlen(signs[i])) == 0)
                length = strlen(signs[i]);
        }
        if (length == 0)
            return fail(source, *at,
                        text[*at] == '=' ? "'=' alone is no comparison, expected '=='"
                                         : "expected a name, a number or an operator");
    }
    if (length >= WORD)
        return fail(source, *at, "the name is too long");
    memcpy(word, text + *at, length);
    word[length] = '\0';
    *at += length;
    return true;
}

static bool is_function(const char *word)
{
    for (int i = 0; functions[i] != NULL; i++) {
        if (strcmp(functions[i], word) == 0)
            return true;
    }
    return false;
}

/* First pass: marks the symbols that occur and checks the depth of parentheses. */
static bool scan_symbols(const struct source *source)
{
    char word[WORD];
    int depth = 0;
    for (size_t at = 0, start = 0;;) {
        if (!next(source, &at, &start, word))
            return false;
        if (word[0] == '\0')
            return true;
        depth += word[0] == '(' ? 1 : word[0] == ')' ? -1 : 0;
        if (depth > DEPTH)
            return fail(source, start, "parentheses nest too deep");
        int symbol = find(source->symbols, word);
        if (symbol >= 0)
            source->used[symbol] = true;
    }
}

/* Defines a word as its number; all enums in the expression that have the word must give it the same number. */
static bool define_word(const struct source *source, const struct k25_expression *e, size_t at, const char *word)
{
    int value = -1;
    for (int i = 0; source->symbols[i].name != NULL; i++) {
        int here = source->used[i] ? find_word(&source->symbols[i], word) : -1;
        if (here >= 0 && value >= 0 && here != value)
            return fail(
                source, at,
                "the word means different things to the keys of this expression; write one expression for each");
        value = here >= 0 ? here : value;
    }
    if (value < 0)
        return unknown(source, at, word);
    e->library.constant(e->parser, word, value);
    return true;
}

/* Second pass: a name that is not a symbol must be a function or a word. */
static bool scan_words(const struct source *source, const struct k25_expression *e)
{
    char word[WORD];
    bool any = false;
    for (size_t at = 0, start = 0;; any = true) {
        if (!next(source, &at, &start, word))
            return false;
        if (word[0] == '\0')
            return any || fail(source, 0, "an empty expression");
        bool name = isalpha((unsigned char)word[0]) || word[0] == '_';
        size_t after = at + strspn(source->text + at, " \t\n");
        if (!name || find(source->symbols, word) >= 0 || (is_function(word) && source->text[after] == '('))
            continue;
        if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
            e->library.constant(e->parser, word, word[0] == 't');
        else if (!define_word(source, e, start, word))
            return false;
    }
}

static bool prepare(const struct source *source, struct k25_expression *e)
{
    static const double nothing = 0; /* bound when the expression is only checked */
    if (!load(&e->library, source->error))
        return false;
    const struct library *library = &e->library;
    e->parser = library->create(muBASETYPE_FLOAT);
    if (e->parser == NULL)
        return k25_fail(source->error, K25_RESOURCE, "out of memory");
    library->on_error(e->parser, ignore);
    library->name_characters(e->parser, "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.");
    library->infix(e->parser, "!", negate, 1);
    library->operator(e->parser, "%", fmod, AS_TIMES, FROM_LEFT, 1);
    if (!scan_symbols(source))
        return false;
    for (int i = 0; source->symbols[i].name != NULL; i++) {
        const double *value = source->symbols[i].value != NULL ? source->symbols[i].value : &nothing;
        if (source->used[i])
            library->variable(e->parser, source->symbols[i].name, (double *)(uintptr_t)value);
    }
    if (!scan_words(source, e))
        return false;
    library->expression(e->parser, source->text);
    library->evaluate(e->parser);
    if (!library->failed(e->parser))
        return true;
    int at = library->position(e->parser);
    size_t length = strlen(source->text);
    return fail(source, at < 0 || (size_t)at > length ? length : (size_t)at,
                at < 0 || (size_t)at >= length ? "the expression ends too early"
                                               : "the expression does not go on like this");
}

struct k25_expression *k25_expression_compile(const char *text, const struct k25_symbol *symbols, bool *used,
                                              const char *file, int line, int column, struct k25_error *error)
{
    size_t count = 0;
    while (symbols[count].name != NULL)
        count++;
    struct source source = {text, file, line, column, symbols, used, error};
    bool *own = calloc(count + 1, sizeof *own);
    struct k25_expression *e = calloc(1, sizeof *e);
    if (used == NULL)
        source.used = own;
    else
        memset(used, 0, count * sizeof *used);
    bool ok = own != NULL && e != NULL
                  ? strlen(text) < K25_EXPRESSION_SIZE || fail(&source, 0, "the expression is too long")
                  : k25_fail(error, K25_RESOURCE, "out of memory");
    ok = ok && prepare(&source, e);
    free(own);
    if (ok)
        return e;
    k25_expression_free(e);
    return NULL;
}

double k25_expression_value(const struct k25_expression *e)
{
    return e->library.evaluate(e->parser);
}

void k25_expression_free(struct k25_expression *e)
{
    if (e == NULL)
        return;
    if (e->parser != NULL)
        e->library.release(e->parser);
    if (e->library.handle != NULL)
        dlclose(e->library.handle);
    free(e);
}
