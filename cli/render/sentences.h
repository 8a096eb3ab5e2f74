/* Sentences that are printed with an answer. */
#ifndef K25_CLI_RENDER_SENTENCES_H
#define K25_CLI_RENDER_SENTENCES_H

#include <stddef.h>

#include "calib/fit/calibration.h"

#define CLI_SENTENCES 32
struct cli_sentences {
    size_t count;
    char text[CLI_SENTENCES][K25_DOUBT_BYTES];
};

/* Adds one; what is too long is cut, what is too many left out. */
void cli_say(struct cli_sentences *sentences, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints them for people, one below the other, under a title; nothing when there are none. */
void cli_print_sentences(const char *title, const struct cli_sentences *sentences);

#endif
