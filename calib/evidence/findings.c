#include "calib/evidence/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(struct k25_findings *findings, bool warning, const char *format, va_list arguments)
{
    findings->errors += !warning;
    if (findings->count == K25_MAX_FINDINGS) {
        findings->more++;
        return;
    }
    struct k25_finding *added = &findings->list[findings->count++];
    added->warning = warning;
    vsnprintf(added->text, sizeof added->text, format, arguments);
}

void k25_find(struct k25_findings *findings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(findings, false, format, arguments);
    va_end(arguments);
}

void k25_find_warning(struct k25_findings *findings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(findings, true, format, arguments);
    va_end(arguments);
}

bool k25_findings_pass(const struct k25_findings *findings, struct k25_error *error)
{
    enum { LAST = 160 }; /* bytes kept for the lines that end the message */
    char text[sizeof error->message - LAST];
    size_t used = 0, told = 0;
    text[0] = '\0';
    if (findings->errors == 0)
        return true;
    for (size_t i = 0; i < findings->count; i++) {
        const struct k25_finding *finding = &findings->list[i];
        if (finding->warning || (told > 0 && used + strlen(finding->text) + 2 > sizeof text))
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", told > 0 ? "\n" : "", finding->text);
        used = used < sizeof text ? used : sizeof text - 1;
        told++;
    }
    char others[48] = "";
    if (told < findings->errors)
        snprintf(others, sizeof others, "\nand %zu more of the kind", findings->errors - told);
    return k25_fail(error, K25_BAD_INPUT, "%s%s\n--accept WHY writes the set all the same, with the reason in it", text,
                    others);
}

void k25_findings_accept(const struct k25_findings *findings, const char *why, struct k25_calibration *set)
{
    snprintf(set->accepted, sizeof set->accepted, "%s", why);
    for (size_t i = 0; i < findings->count && set->doubts < K25_MAX_DOUBTS; i++) {
        if (!findings->list[i].warning)
            memcpy(set->doubt[set->doubts++], findings->list[i].text, sizeof set->doubt[0]);
    }
}
