#include "cli/render/sentences.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/render/table.h"

void cli_say(struct cli_sentences *sentences, const char *format, ...)
{
    if (sentences->count == CLI_SENTENCES)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentences->text[sentences->count++], sizeof sentences->text[0], format, arguments);
    va_end(arguments);
}

void cli_print_sentences(const char *title, const struct cli_sentences *sentences)
{
    if (sentences->count > 0)
        printf("\n%s\n", title);
    for (size_t i = 0; i < sentences->count; i++) {
        printf("  - ");
        cli_print_wrapped(sentences->text[i], 4);
    }
}
