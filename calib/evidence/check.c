#include "calib/evidence/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calib/evidence/floors.h"
#include "hw/gpus/name.h"

/* Measured below this share of a floor is impossible: links and clocks a little above their data sheets are not. */
static const double FLOOR_SHARE = 0.8;

static const char OTHER_MACHINE[] = "choose the machine that was measured (--set machine=...), or leave the file out";

void k25_check_gpu(struct k25_check *check, const char *name, const char *gpu)
{
    const struct k25_machine *machine = check->question->machine;
    switch (k25_gpu_match(&machine->gpu, gpu)) {
    case K25_GPU_OTHER:
        k25_find(check->findings, "%.80s: measured on GPU '%.60s', the scenario's machine %.40s has '%s'; %s", name,
                 gpu, machine->name, machine->gpu.name, OTHER_MACHINE);
        break;
    case K25_GPU_OTHER_EDITION:
        k25_find_warning(check->findings,
                         "%.80s: measured on the edition '%.60s', the scenario's machine %.40s has '%s'", name, gpu,
                         machine->name, machine->gpu.name);
        break;
    case K25_GPU_UNTOLD:
    case K25_GPU_SAME:
        break;
    }
}

void k25_check_engine(struct k25_check *check, const char *name, const char *engine)
{
    for (enum k25_engine i = 0; i < K25_ENGINES; i++) {
        size_t length = strlen(k25_engine_names[i]);
        bool whole = engine[length < strlen(engine) ? length : strlen(engine)] == '\0' ||
                     strchr(" -_", engine[length < strlen(engine) ? length : strlen(engine)]) != NULL;
        if (strncasecmp(engine, k25_engine_names[i], length) != 0 || !whole)
            continue;
        if (check->engine == K25_ENGINES) {
            check->engine = i;
            snprintf(check->engine_of, sizeof check->engine_of, "%.100s", name);
        } else if (check->engine != i) {
            k25_find(check->findings,
                     "%.80s: measured with %s, but %.100s with %s, and a set is of one engine's build; leave one out",
                     name, k25_engine_names[i], check->engine_of, k25_engine_names[check->engine]);
        }
    }
}

/* ---- nccl-tests ---- */

/* Time, bytes and rate of a row say one thing three times; printed rates have two decimals. */
static bool row_agrees(const struct k25_nccl_row *row, const struct k25_nccl_time *time, int ranks, double *factor)
{
    static const double ROUNDING = 0.006, NEAR = 0.1;
    double rate = (double)row->bytes / time->us * 1e-3;
    *factor = 2.0 * (ranks - 1) / ranks;
    if (!(time->us > 0) || !isfinite(time->algbw))
        return true;
    if (fabs(time->algbw - rate) > NEAR * rate + ROUNDING)
        return false;
    return !isfinite(time->busbw) || fabs(time->busbw - *factor * time->algbw) <= NEAR * time->busbw + 2 * ROUNDING;
}

/* The first row that cannot be, and how many there are. */
static void check_nccl_rows(struct k25_check *check, const char *name, const struct k25_nccl_run *run, int ranks,
                            const struct k25_group *group)
{
    const struct k25_nccl_row *fast = NULL, *odd = NULL;
    size_t fasts = 0;
    double at = 0, least = 0, factor = 0;
    for (size_t i = 0; i < run->rows; i++) {
        const struct k25_nccl_row *row = &run->row[i];
        const struct k25_nccl_time *time = isfinite(row->out_of_place.us) ? &row->out_of_place : &row->in_place;
        if (row->bytes == 0 || row->wrong || !(time->us > 0))
            continue;
        double floor = k25_allreduce_floor((double)row->bytes, group, check->params);
        if (time->us * 1e-6 < FLOOR_SHARE * floor && fasts++ == 0) {
            fast = row;
            at = time->us;
            least = floor * 1e6;
        }
        if (odd == NULL && !row_agrees(row, time, ranks, &factor))
            odd = row;
    }
    if (fast != NULL)
        k25_find(check->findings,
                 "%.80s:%d: %.4g us for an AllReduce of %llu bytes on %d GPUs, but the wires of %.40s alone take %.3g "
                 "us (path latency and link bandwidth; %zu of %zu rows are below): were several launches averaged, as "
                 "nccl-tests does with -G, or is the unit another? Leave the file out",
                 name, fast->line, at, (unsigned long long)fast->bytes, ranks, check->question->machine->name, least,
                 fasts, run->rows);
    if (odd != NULL)
        k25_find(check->findings,
                 "%.80s:%d: time, bytes and rates of the row do not belong together for %d ranks (algbw is bytes / "
                 "time, busbw %.4g times that); was the file edited, or is the unit or number of ranks another?",
                 name, odd->line, ranks, factor);
}

void k25_check_nccl(struct k25_check *check, const char *name, const struct k25_nccl_tests *tests)
{
    const struct k25_machine *machine = check->question->machine;
    const char *gpu = "";
    for (size_t r = 0; r < tests->runs; r++) {
        const struct k25_nccl_run *run = &tests->run[r];
        int ranks = run->ranks > 0 ? run->ranks : run->gpus;
        struct k25_group group;
        struct k25_error none;
        if (strcmp(run->device, gpu) != 0)
            k25_check_gpu(check, name, gpu = run->device);
        if (strcmp(run->op, "all_reduce") != 0 || ranks < 2)
            continue;
        if (ranks > machine->gpus)
            k25_find(check->findings, "%.80s: an AllReduce of %d ranks, the scenario's machine %.40s has %d GPUs; %s",
                     name, ranks, machine->name, machine->gpus, OTHER_MACHINE);
        else if (k25_machine_group(machine, ranks, &group, &none))
            check_nccl_rows(check, name, run, ranks, &group);
    }
}

/* ---- load tests ---- */

/* Families of models that served names carry. */
static const char *const families[] = {"kimi",    "llama",   "qwen",  "glm",     "deepseek", "minimax",
                                       "mixtral", "mistral", "gemma", "gpt-oss", "mimo",     NULL};

static const char *find_family(const char *name)
{
    for (int i = 0; families[i] != NULL; i++)
        if (strcasestr(name, families[i]) != NULL)
            return families[i];
    return NULL;
}

void k25_check_bench(struct k25_check *check, const char *name, const struct k25_bench *bench)
{
    const char *ours = check->question->architecture->name, *family = find_family(ours);
    for (size_t r = 0; r < bench->runs; r++) {
        const struct k25_bench_run *run = &bench->run[r];
        k25_check_engine(check, name, run->backend);
        /* A distilled model has two families in its name. */
        if (r > 0 || family == NULL || find_family(run->model) == NULL || strcasestr(run->model, family) != NULL)
            continue;
        k25_find(check->findings,
                 "%.80s: a load test of model '%.100s', the scenario's is '%.60s'; choose the scenario of that model "
                 "(--set architecture=..., weights=...), or leave the file out",
                 name, run->model, ours);
    }
}

/* ---- tables of kernels ---- */

/* Products and experts whose weights the L2 cannot hold run no faster than the DRAM gives them. */
void k25_check_kernels(struct k25_check *check, const char *name, const struct k25_kernel_table *table)
{
    static const double SOME = 0.02; /* of the rows: a slip of the clock happens */
    const struct k25_gpu *gpu = &check->question->machine->gpu;
    const struct k25_kernel_row *worst = NULL;
    size_t cold = 0, fast = 0;
    double least = 1;
    /* Rows of other GPUs are left out of a table that has some of ours. */
    k25_check_gpu(check, name, table->named_gpu[0] == '\0' ? table->other_gpu : table->named_gpu);
    for (size_t i = 0; i < table->rows; i++) {
        const struct k25_kernel_row *row = &table->row[i];
        if (row->traffic < 2 * k25_gpu_l2(gpu))
            continue;
        double share = row->latency * k25_gpu_bandwidth(gpu) / row->traffic;
        cold++;
        fast += share < FLOOR_SHARE;
        if (share < least) {
            least = share;
            worst = row;
        }
    }
    if ((double)fast > SOME * (double)cold)
        k25_find(
            check->findings,
            "%.80s:%d: %.4g us for %.4g MB of weights or cache, but '%s' reads %.4g GB/s, which takes %.4g us (%zu "
            "of %zu rows are below); is the table of another GPU or in another unit? %s",
            name, worst->line, worst->latency * 1e6, worst->traffic * 1e-6, gpu->name, gpu->bandwidth_gbs,
            worst->traffic / k25_gpu_bandwidth(gpu) * 1e6, fast, cold, OTHER_MACHINE);
}

/* ---- everything ---- */

void k25_check_floors(struct k25_check *check, const struct k25_observations *observations)
{
    const struct k25_machine *machine = check->question->machine;
    for (size_t i = 0; i < observations->count; i++) {
        const struct k25_observed *o = &observations->list[i];
        double floor = o->kind == K25_OBSERVED_BURST ? 0 : k25_observed_floor(o, check->params);
        if (o->measured >= FLOOR_SHARE * floor)
            continue;
        k25_find(check->findings,
                 "%s: %.5g us, but the bytes of the scenario's step at the rates of %.40s (%g GB/s of '%s', its links) "
                 "take %.5g us; is it of another model, plan or machine? Choose the scenario that was measured",
                 o->label, o->measured * 1e6, machine->name, machine->gpu.bandwidth_gbs, machine->gpu.name,
                 floor * 1e6);
    }
}
