/* Tables of measured kernels and collectives, and how well the formulas of hw/ describe them.
 *
 * A table is a CSV file with one measured latency a row; the columns say which kind it is:
 *
 *   gemm         engine kernel dtype m n k
 *   moe          engine kernel dtype tokens hidden intermediate experts topk tp ep routing
 *   mla_decode   engine kernel scope dtype kv_dtype proj_dtype heads batch context
 *   mla_absorb   engine kernel op dtype heads tokens
 *   attention    engine kernel dtype kv_dtype heads kv_heads head_dim window batch context
 *   collective   engine backend mode op dtype gpus bytes
 *
 * and latency_us in all of them. Rows whose column gpu, where there is one, names another GPU than the machine's are
 * left out. A row becomes an observation whose prediction calls only hw/kernel/kernel.h or
 * hw/collective/collective.h. Rows that those cannot price are counted with the reason; a cell that is not a number is
 * an error.
 *
 * Rows of one engine, kernel and data types are a family with separate parameters. Scoring a family:
 *
 *   1. rows whose weights or cache stayed in the L2 between replays are set aside (k25_kernel_table_score)
 *   2. the rest is sorted by shape and numbered; even rows are fitted, odd rows are predicted and give the errors
 *   3. the odd rows also give the errors with a residual table (hw/kernel/residual.h) of the even rows added
 */
#ifndef K25_CALIB_KERNELS_TABLE_H
#define K25_CALIB_KERNELS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "calib/fit/fit.h"
#include "calib/kernels/work.h"
#include "hw/params/params.h"
#include "hw/topology/machine.h"

enum k25_table_kind {
    K25_TABLE_GEMM,
    K25_TABLE_MOE,
    K25_TABLE_MLA,
    K25_TABLE_ABSORB,
    K25_TABLE_GQA,
    K25_TABLE_COLLECTIVE,
    K25_TABLE_KINDS,
};
extern const char *const k25_table_kind_names[K25_TABLE_KINDS + 1]; /* NULL-terminated */

/* Why a row is not priced. */
enum k25_skip {
    K25_SKIP_DTYPE,
    K25_SKIP_ROUTING,
    K25_SKIP_SHARD,
    K25_SKIP_SCOPE,
    K25_SKIP_ROWS,
    K25_SKIP_OP,
    K25_SKIP_BACKEND,
    K25_SKIP_EAGER,
    K25_SKIP_FALLBACK,
    K25_SKIP_GPUS,
    K25_SKIP_OTHER_GPU,
    K25_SKIPS, /* it is priced */
};
extern const char *const k25_skip_reasons[K25_SKIPS + 1]; /* for people; NULL-terminated */

#define K25_ROW_KEYS 8
struct k25_kernel_row {
    int line, family;
    double key[K25_ROW_KEYS]; /* the shape, in the order that rows are sorted by */
    double traffic;           /* bytes of weights or cache, which may be in the L2; 0: not applicable */
    bool cold_line;           /* few rows of x and balanced: traffic / latency is a rate of the DRAM */
    double latency;           /* s */
    struct k25_kernel_work work;
};

struct k25_kernel_family {
    char name[192]; /* "vllm 0.24.0 torch.nn.functional.linear bfloat16" */
    int group;      /* families of one group share their parameters and are fitted together */
    size_t rows;    /* in the table, skipped ones too */
    size_t skipped[K25_SKIPS];
    double bar;             /* target: the largest acceptable median error; 0: none */
    double floor;           /* s, fastest latency for the cold line when not the family's own fastest row; 0: its own */
    double cold_percentile; /* of traffic / latency of the large rows: the rate of the cold line */
};

struct k25_kernel_table {
    enum k25_table_kind kind;
    struct k25_gpu gpu;
    char named_gpu[64], other_gpu[64]; /* as the column gpu has them: the last that is the machine's, that is not; "" */
    struct k25_kernel_row *row;        /* priced ones; by family, then by shape, then by line */
    size_t rows;
    struct k25_kernel_family *family; /* in the order of the file */
    int families, groups;
};

/* Reads the table `path`. `machine` has the GPU and links that it was measured on and must outlive the table;
 * collectives run on its first ranks. The caller frees the table with k25_kernel_table_free. Returns NULL with
 * K25_BAD_INPUT and the position of a fault, or with K25_RESOURCE. */
struct k25_kernel_table *k25_kernel_table_read(const char *path, const struct k25_machine *machine,
                                               struct k25_error *error);
/* The same from `size` bytes of text; `name` is the name of the file in messages. */
struct k25_kernel_table *k25_kernel_table_parse(const char *text, size_t size, const char *name,
                                                const struct k25_machine *machine, struct k25_error *error);
void k25_kernel_table_free(struct k25_kernel_table *table);

/* Returns a row as an observation with relative noise `sigma`; it points into the table. */
struct k25_observation k25_kernel_observation(const struct k25_kernel_row *row, double sigma);

enum k25_row_use { K25_ROW_WARM, K25_ROW_FITTED, K25_ROW_SCORED, K25_ROW_USES };
extern const char *const k25_row_use_names[K25_ROW_USES + 1]; /* NULL-terminated */

struct k25_kernel_score {
    size_t warm, fitted, scored;
    double floor, cold_rate;       /* s and bytes/s of the cold line; 0 for collectives */
    double median, mean, p90, max; /* |predicted - measured| / measured of the scored rows; 0: there are none */
    bool missed;                   /* median above the family's bar */
    bool tabulated;                /* the residual errors below are valid; false: the kernels have no residual table */
    double residual_median, residual_mean, residual_p90;
    size_t free; /* parameters fitted, their numbers in `id` */
    int id[K25_PARAMS];
    struct k25_params params;
    double log_sd[K25_PARAMS]; /* standard deviation of ln(parameter) */
};

struct k25_kernel_scores {
    struct k25_kernel_score *family; /* table->families */
    enum k25_row_use *use;           /* of each row of the table */
    double *predicted;               /* s, of each row */
};

/* A row is warm, and neither fitted nor scored, when
 *
 *     X < 2 L2   and   latency < 0.9 (floor + X / rate)
 *
 * with X its traffic, floor the family's fastest row (18 us for MLA modules), and rate the median (MLA: 90th
 * percentile) of X / latency over the rows with X >= 2 L2 and at most 64 rows of x (INT4 experts: balanced ones);
 * without any such row, the rate given by memory.bandwidth. The rate of the DRAM and kernel.scale stay at their prior:
 * with one family they cannot be separated from the family's shares. The caller frees `scores` with
 * k25_kernel_scores_free. Returns false with the error of the fit or with K25_RESOURCE when out of memory. */
bool k25_kernel_table_score(const struct k25_kernel_table *table, const struct k25_priors *priors,
                            struct k25_kernel_scores *scores, struct k25_error *error);
/* Sets only which rows are warm, fitted and scored: use[i] for row i of the table. */
bool k25_kernel_table_split(const struct k25_kernel_table *table, const struct k25_priors *priors,
                            enum k25_row_use *use, struct k25_error *error);
void k25_kernel_scores_free(struct k25_kernel_scores *scores);

#endif
