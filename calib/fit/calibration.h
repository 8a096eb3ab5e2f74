/* A calibration set: the parameters of one box and engine build, with where each value came from.
 *
 * Read from calib/NAME.yaml (docs/formats.md). Parameters that a set does not name keep their prior.
 */
#ifndef K25_CALIB_FIT_CALIBRATION_H
#define K25_CALIB_FIT_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/inputs.h"
#include "hw/kernel/residual.h"
#include "hw/params/params.h"
#include "model/predict/uncertainty.h"

/* Where the data lay; a prediction far outside is an extrapolation. Both ends 0: not stated. */
struct k25_range {
    double low, high;
};

/* What measured cells that speculate had in common: the mean tokens of a step, on the scale of logarithms. */
struct k25_acceptance {
    char method[16]; /* plan.speculation.method; "" when none speculated */
    double chain;    /* plan.speculation.tokens */
    double tokens;   /* exp of the mean of ln(tokens a step) */
    double cells;    /* that it is the mean of */
};

/* One file or folder that went in. */
struct k25_calibration_evidence {
    char file[128];   /* without its folder */
    char crc64[20];   /* ECMA-182 checksum of its bytes, inflated; of a capture: of its ranks' sizes and kernel sums */
    int observations; /* rows of the fit that came from it */
};

#define K25_MAX_EVIDENCE 64
/* Findings against the evidence that a set was written in spite of (calib/evidence/findings.h). */
#define K25_MAX_DOUBTS 32
#define K25_DOUBT_BYTES 512
/* The most sites of a residual table: nine such tables still are a file that base/yaml.h reads. */
#define K25_MAX_SITES 4000

struct k25_calibration {
    char name[64];
    char source[512]; /* what was measured, by whom */
    char model[64];   /* architecture the data came from; "" when not stated */
    char machine[64];
    double noise; /* relative residual of one step-time measurement, 0 = not stated */
    struct k25_range batch, context, tp;
    struct k25_acceptance acceptance;
    char program[32]; /* version that wrote the set; "" by hand */
    size_t evidences;
    struct k25_calibration_evidence evidence[K25_MAX_EVIDENCE];
    char accepted[256]; /* why evidence with findings against it was taken all the same; "" when there were none */
    size_t doubts;
    char doubt[K25_MAX_DOUBTS][K25_DOUBT_BYTES];
    bool set[K25_PARAMS];
    double value[K25_PARAMS];            /* SI */
    double log_sd[K25_PARAMS];           /* standard deviation of ln(value), 0 = not stated */
    size_t covariances;                  /* rows of `covariance`; 0 = none */
    enum k25_param covaries[K25_PARAMS]; /* the parameter of each row */
    double *covariance;                  /* covariances x covariances, of ln(value), row by row */
    struct k25_residuals residuals;      /* on top of the formulas at these values */
};

bool k25_calibration_load(const char *path, struct k25_calibration *calibration, struct k25_inputs *inputs,
                          struct k25_error *error);
void k25_calibration_free(struct k25_calibration *calibration);

/* The set in its own format, ready to be written; the caller frees. */
char *k25_calibration_print(const struct k25_calibration *calibration, struct k25_error *error);

/* Prior centres with the set's values on top. `calibration` may be NULL. */
void k25_params_resolve(const struct k25_priors *priors, const struct k25_calibration *calibration,
                        struct k25_params *params);

/* The joint distribution of the parameters: the set's covariance where it has one, the stated log_sd of a value without
 * covariance, and the prior's spread for what the set does not name. A value that states no spread is taken as exact.
 * `calibration` may be NULL. */
void k25_uncertainty_resolve(const struct k25_priors *priors, const struct k25_calibration *calibration,
                             struct k25_uncertainty *uncertainty);

#endif
