#include "base/print.h"

#include <stdlib.h>
#include <string.h>

bool k25_print_open(struct k25_printer *printer, struct k25_error *error)
{
    printer->text = NULL;
    printer->size = 0;
    printer->out = open_memstream(&printer->text, &printer->size);
    return printer->out ? true : k25_fail(error, K25_RESOURCE, "out of memory");
}

char *k25_print_close(struct k25_printer *printer, struct k25_error *error)
{
    bool failed = ferror(printer->out) != 0;
    if (fclose(printer->out) != 0)
        failed = true; /* the last write happens here */
    if (!failed)
        return printer->text;
    free(printer->text);
    k25_fail(error, K25_RESOURCE, "out of memory");
    return NULL;
}

void k25_print_quoted(FILE *out, const char *value)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)value; *at;) {
        if (*at < 0x80) {
            bool plain = *at >= ' ' && *at != 0x7f;
            fprintf(out, plain ? "%s%c" : "%s\\x%02x", *at == '"' || *at == '\\' ? "\\" : "", *at);
            at++;
            continue;
        }
        unsigned long code = *at >= 0xf0 ? *at & 0x07 : *at >= 0xe0 ? *at & 0x0f : *at & 0x1f;
        for (at++; (*at & 0xc0) == 0x80; at++) /* texts are UTF-8: the YAML reader refuses anything else */
            code = code << 6 | (*at & 0x3f);
        fprintf(out, "\\U%08lx", code);
    }
    fputc('"', out);
}

void k25_print_text(FILE *out, const char *key, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    /* What YAML 1.1 reads as something other than text. */
    static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", NULL};
    size_t length = strlen(value);
    fprintf(out, "%s: ", key);
    bool word = length > 0 && strspn(value, plain) == length && strchr("abcdefghijklmnopqrstuvwxyz", value[0]);
    for (int i = 0; word && reserved[i] != NULL; i++)
        word = strcmp(value, reserved[i]) != 0;
    if (word) {
        fprintf(out, "%s\n", value);
        return;
    }
    k25_print_quoted(out, value);
    fputc('\n', out);
}

void k25_print_real(FILE *out, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    for (char *at = text; *at; at++)
        if (*at == ',')
            *at = '.';
    fputs(text, out);
}
