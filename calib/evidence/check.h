/* Evidence against the scenario, before anything is fitted: GPU, number of ranks, model, AllReduce kernels, engine, and
 * what no machine of that kind can have measured. Each function adds its findings; `name` is the file's, for messages.
 */
#ifndef K25_CALIB_EVIDENCE_CHECK_H
#define K25_CALIB_EVIDENCE_CHECK_H

#include "calib/capture/capture.h"
#include "calib/evidence/findings.h"
#include "calib/fit/observe.h"
#include "calib/kernels/table.h"
#include "calib/readers/bench/bench.h"
#include "calib/readers/nccl/nccl_tests.h"
#include "calib/readers/profiler/table.h"
#include "calib/rules/kernel_rules.h"

/* What evidence is held against. */
struct k25_check {
    const struct k25_question *question;
    const struct k25_params *params; /* any valid set: what is predicted of them are numbers of calls and floors */
    struct k25_findings *findings;
    enum k25_engine engine; /* that the evidence so far says; K25_ENGINES: none of it does */
    char engine_of[128];    /* what said so */
};

/* A name of a GPU out of `name` ("rank 0 of capture"). */
void k25_check_gpu(struct k25_check *check, const char *name, const char *gpu);

/* Two sources of different engines contradict each other: a scenario says none. `engine` as any source writes it,
 * "vllm 0.24.0" or "sglang"; other words are passed over. */
void k25_check_engine(struct k25_check *check, const char *name, const char *engine);

void k25_check_capture(struct k25_check *check, const char *name, const struct k25_capture *capture);
void k25_check_table(struct k25_check *check, const char *name, const struct k25_profiler_table *table,
                     const struct k25_kernel_rules *rules);
void k25_check_nccl(struct k25_check *check, const char *name, const struct k25_nccl_tests *tests);
void k25_check_bench(struct k25_check *check, const char *name, const struct k25_bench *bench);
void k25_check_kernels(struct k25_check *check, const char *name, const struct k25_kernel_table *table);
/* What was measured faster than wires and data sheets allow, of all observations. */
void k25_check_floors(struct k25_check *check, const struct k25_observations *observations);

#endif
