/* What is said about an answer in words. */
#ifndef K25_CLI_RENDER_NOTES_H
#define K25_CLI_RENDER_NOTES_H

#include "cli/render/answer.h"
#include "cli/render/sentences.h"

/* Replaces `sentences` by what the answer takes for granted: the author's list, the definitions, what levers and
 * speculation did, where the parameters come from. */
void cli_assumptions(const struct cli_answer *answer, struct cli_sentences *sentences);

/* Replaces `sentences` by the reasons to trust the answer less. */
void cli_notes(const struct cli_answer *answer, struct cli_sentences *sentences);

#endif
