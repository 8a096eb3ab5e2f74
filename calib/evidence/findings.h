/* What is wrong with evidence, one sentence a finding: what the evidence says, what the scenario says, what to change.
 */
#ifndef K25_CALIB_EVIDENCE_FINDINGS_H
#define K25_CALIB_EVIDENCE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "calib/fit/calibration.h"

struct k25_finding {
    bool warning; /* worth knowing, no reason to refuse */
    char text[K25_DOUBT_BYTES];
};

#define K25_MAX_FINDINGS 32
struct k25_findings {
    size_t count, more; /* kept; beyond the room for them */
    size_t errors;      /* of all, those that are no warnings */
    struct k25_finding list[K25_MAX_FINDINGS];
};

void k25_find(struct k25_findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void k25_find_warning(struct k25_findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True when there is no finding but warnings. Else K25_BAD_INPUT with the findings, as many as an error holds. */
bool k25_findings_pass(const struct k25_findings *findings, struct k25_error *error);

/* Notes in a set that it was written all the same: the reason and the findings, warnings left out. */
void k25_findings_accept(const struct k25_findings *findings, const char *why, struct k25_calibration *set);

#endif
