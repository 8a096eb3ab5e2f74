/* k25sim calibrate: parameters fitted to what was measured, as a calibration set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "calib/fit/advice.h"
#include "cli/commands/calibrate/evidence.h"
#include "cli/commands/calibrate/residuals.h"
#include "cli/render/answer.h"
#include "cli/render/render.h"
#include "cli/render/report.h"
#include "cli/render/sentences.h"

static struct {
    char **points, **where, **set, **only, **captures, **summaries, **nccl_tests, **kernels, **families, **benches;
    const char *start, *out, *rules, *folds, *discrepancy, *accept;
    int lenient;
} given;

static const struct poptOption options[] = {
    {"capture", '\0', POPT_ARG_ARGV, &given.captures, 0,
     "traces of torch.profiler: a file, or a folder of ranks (may be repeated)", "PATH"},
    {"summary", '\0', POPT_ARG_ARGV, &given.summaries, 0, "profiler_out_N.txt or a key_averages table", "FILE"},
    {"nccl-tests", '\0', POPT_ARG_ARGV, &given.nccl_tests, 0, "output of nccl-tests", "FILE"},
    {"kernels", '\0', POPT_ARG_ARGV, &given.kernels, 0, "a table of measured kernels", "FILE.csv"},
    {"kernel-family", '\0', POPT_ARG_ARGV, &given.families, 0,
     "only kernels with this in the name of their family (may be repeated)", "PART"},
    {"bench", '\0', POPT_ARG_ARGV, &given.benches, 0, "result of a load test (vLLM, SGLang)", "FILE.json"},
    {"points", '\0', POPT_ARG_ARGV, &given.points, 0, "measured points", "FILE.csv"},
    {"where", '\0', POPT_ARG_ARGV, &given.where, 0, "only points with this value (may be repeated)", "COLUMN=VALUE"},
    {"set", '\0', POPT_ARG_ARGV, &given.set, 0, "override a key of the scenario; a parameter set so stays fixed",
     "KEY=VALUE"},
    {"start", '\0', POPT_ARG_STRING, &given.start, 0, "start from this calibration set, not from the priors", "SET"},
    {"only", '\0', POPT_ARG_ARGV, &given.only, 0,
     "fit only parameters whose name starts so (may be repeated); the others stay as they start", "NAME"},
    {"cv", '\0', POPT_ARG_STRING, &given.folds, 0, "held-out errors by K folds (evidence by evidence if there is more)",
     "K"},
    {"rules", '\0', POPT_ARG_STRING, &given.rules, 0, "kernel classes of your own", "RULES.yaml"},
    {"model-error", '\0', POPT_ARG_STRING, &given.discrepancy, 0,
     "how far the model may be off on a number of a capture, in per cent (default 2)", "PERCENT"},
    {"lenient", '\0', POPT_ARG_NONE, &given.lenient, 0, "keep what is good of damaged files", NULL},
    {"accept", '\0', POPT_ARG_STRING, &given.accept, 0,
     "write the set although evidence is not of this scenario or cannot be, with this reason in it", "WHY"},
    {"output", 'o', POPT_ARG_STRING, &given.out, 0, "where to write the set", "SET.yaml"},
    CLI_FORCE,
    POPT_TABLEEND,
};

static const double KNOWN = 0.95; /* posterior / prior spread below which the data have narrowed a parameter */
static const double OPEN = 0.9;   /* ... and above which they have not determined it */
static const double MOVED = 0.1;  /* of the prior spread: a move worth keeping */

/* What the fit works on and what came of it. */
struct calibration {
    const struct k25_scenario *scenario;
    struct k25_question question;
    struct cli_evidence evidence;
    struct cli_residuals tables;
    struct k25_priors priors;
    bool fixed[K25_PARAMS]; /* by --only */
    struct k25_fit fit;
    double noise; /* relative, of one measured step */
};

/* The joint distribution: of the fit, and of what the fit left alone in the set it started from, as it was there. */
static bool take_covariance(const struct calibration *c, struct k25_calibration *set, struct k25_error *error)
{
    const struct k25_fit *fit = &c->fit;
    const struct k25_calibration *start = &c->scenario->calibration;
    size_t kept = 0, rows[K25_PARAMS];
    for (size_t i = 0; c->scenario->calibrated && i < start->covariances; i++) {
        bool fitted = false;
        for (size_t j = 0; j < fit->free; j++)
            fitted = fitted || fit->id[j] == start->covaries[i];
        if (!fitted)
            rows[kept++] = i;
    }
    size_t n = fit->free + kept;
    set->covariances = n;
    set->covariance = calloc(n * n + 1, sizeof *set->covariance);
    if (set->covariance == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < n; i++) {
        set->covaries[i] = i < fit->free ? fit->id[i] : start->covaries[rows[i - fit->free]];
        for (size_t j = 0; j < n; j++) {
            if (i < fit->free && j < fit->free)
                set->covariance[i * n + j] = fit->covariance[i * fit->free + j];
            else if (i >= fit->free && j >= fit->free)
                set->covariance[i * n + j] =
                    start->covariance[rows[i - fit->free] * start->covariances + rows[j - fit->free]];
        }
    }
    return true;
}

static void take_parameters(const struct calibration *c, struct k25_calibration *set)
{
    const struct k25_fit *fit = &c->fit;
    const struct k25_calibration *start = &c->scenario->calibration;
    for (int id = 0; id < K25_PARAMS; id++) {
        /* What the set started from stays in it. */
        set->set[id] = c->scenario->calibrated && start->set[id];
        set->value[id] = fit->params.value[id];
        set->log_sd[id] = c->fixed[id] ? start->log_sd[id] : fit->log_sd[id];
    }
    for (size_t j = 0; j < fit->free; j++) {
        enum k25_param id = fit->id[j];
        double spread = c->priors.spread[id];
        double moved = fabs(log(fit->params.value[id] / c->priors.centre[id]));
        set->set[id] = set->set[id] || fit->log_sd[id] < KNOWN * spread || moved > MOVED * spread;
    }
    /* A few parameters fitted to other rows leave what is known of the noise of the first. */
    set->noise = given.only != NULL && c->scenario->calibrated && start->noise > 0 ? start->noise : c->noise;
}

static struct k25_range joined(struct k25_range a, struct k25_range b)
{
    if (a.high <= 0 || b.high <= 0)
        return a.high <= 0 ? b : a;
    return (struct k25_range){fmin(a.low, b.low), fmax(a.high, b.high)};
}

/* Where the values come from: this evidence, and behind it that of the set the fit started from. */
static void describe(const struct calibration *c, struct k25_calibration *set)
{
    const struct cli_evidence *e = &c->evidence;
    const struct k25_calibration *start = c->scenario->calibrated ? &c->scenario->calibration : NULL;
    if (e->pair != NULL)
        snprintf(set->source, sizeof set->source, "%zu rows of %.100s variant %.40s", e->pair->count, e->pair->group,
                 e->pair->variant);
    size_t used = strlen(set->source);
    size_t others = e->count - (e->pair != NULL ? e->pair->count : 0);
    if (others > 0)
        used += (size_t)snprintf(set->source + used, sizeof set->source - used,
                                 "%s%zu numbers of captures, tables and "
                                 "tests",
                                 used > 0 ? ", " : "", others);
    set->evidences = (size_t)(e->sources < K25_MAX_EVIDENCE ? e->sources : K25_MAX_EVIDENCE);
    memcpy(set->evidence, e->file, set->evidences * sizeof *e->file);
    set->batch = e->batch;
    for (size_t i = 0; e->pair != NULL && i < e->pair->count; i++) {
        if (e->pair->point[i]->acceptance.cells > 0)
            set->acceptance = e->pair->point[i]->acceptance;
    }
    set->context = e->context;
    set->tp = (struct k25_range){c->question.plan.tp, c->question.plan.tp};
    if (start != NULL) {
        snprintf(set->source + used, sizeof set->source - used, ", after %.300s", start->source);
        for (size_t i = 0; i < start->evidences && set->evidences < K25_MAX_EVIDENCE; i++)
            set->evidence[set->evidences++] = start->evidence[i];
        set->batch = joined(set->batch, start->batch);
        set->context = joined(set->context, start->context);
        set->tp = joined(set->tp, start->tp);
        snprintf(set->accepted, sizeof set->accepted, "%s", start->accepted);
        set->doubts = start->doubts;
        memcpy(set->doubt, start->doubt, sizeof set->doubt);
    }
    if (e->findings.errors > 0)
        k25_findings_accept(&e->findings, given.accept, set);
    snprintf(set->program, sizeof set->program, "%s", K25_VERSION);
    cli_stem(given.out, set->name, sizeof set->name);
    snprintf(set->model, sizeof set->model, "%s", c->scenario->architecture.name);
    snprintf(set->machine, sizeof set->machine, "%s", c->scenario->machine.name);
}

/* Tables of kernels become residual tables around the fitted parameters; classes that they say nothing of keep the
 * tables of the set that the fit started from. */
static bool take_residuals(struct calibration *c, struct k25_calibration *set, struct k25_error *error)
{
    const struct k25_residuals *before = k25_scenario_residuals(c->scenario);
    for (enum k25_kernel_class class = 0; before != NULL && class < K25_KERNEL_CLASSES; class ++) {
        const struct k25_residual_table *table = &before->table[class];
        if (table->count > 0 && !k25_residuals_set(&set->residuals, class, table->site, table->count, error))
            return false;
    }
    return cli_residuals_make(&c->tables, &c->scenario->priors, &c->fit.params, &set->residuals, error);
}

/* Asked before the fit, which takes its time, and again when the set is written. A set says which version wrote it. */
static bool may_write(const struct calibration *c, struct k25_error *error)
{
    const struct k25_inputs *const read[] = {&c->scenario->inputs, &c->evidence.read, NULL};
    return cli_may_write(given.out, "\nprogram:", read, error);
}

static bool write_set(struct calibration *c, struct k25_calibration *set, struct k25_error *error)
{
    take_parameters(c, set);
    describe(c, set);
    if (!take_covariance(c, set, error) || !take_residuals(c, set, error))
        return false;
    char *text = k25_calibration_print(set, error);
    bool ok = text != NULL && may_write(c, error) && k25_file_write(given.out, text, strlen(text), error);
    free(text);
    return ok;
}

/* Errors of rows by some parameters, or by predictions made elsewhere (`predicted` not NULL). */
static bool print_score(const char *what, const struct calibration *c, const struct k25_params *params,
                        const struct k25_held_out *predicted, struct k25_error *error)
{
    const struct cli_evidence *e = &c->evidence;
    struct k25_score score;
    double *values = calloc(2 * e->count + 1, sizeof *values), *measured = values + e->count;
    size_t inside = 0;
    if (values == NULL)
        return k25_fail(error, K25_RESOURCE, "out of memory");
    for (size_t i = 0; i < e->count; i++) {
        values[i] = predicted != NULL ? predicted[i].predicted : e->row[i].predict(e->row[i].context, params, NULL);
        measured[i] = e->row[i].measured;
        inside += predicted != NULL && fabs(log(values[i] / measured[i])) <= K25_Z90 * predicted[i].sd;
    }
    k25_score(values, measured, e->count, &score);
    printf("  %-8s median %5.2f %%, mean %5.2f %%, worst %5.2f %% (%s), bias %+.2f %%", what, score.median * 100,
           score.mean * 100, score.worst * 100, e->label[score.worst_index], score.bias * 100);
    if (predicted != NULL)
        printf("; %zu of %zu in their 90 %% interval", inside, e->count);
    printf("\n");
    free(values);
    return true;
}

/* Folds: the sources, where there are several; else row i belongs to fold i modulo K. */
static bool print_held_out(const struct calibration *c, int folds, struct k25_error *error)
{
    const struct cli_evidence *e = &c->evidence;
    int *fold = calloc(e->count + 1, sizeof *fold);
    struct k25_held_out *held_out = calloc(e->count + 1, sizeof *held_out);
    bool ok = fold != NULL && held_out != NULL;
    if (!ok)
        k25_fail(error, K25_RESOURCE, "out of memory");
    bool by_source = e->sources >= folds;
    folds = by_source ? e->sources : folds;
    for (size_t i = 0; ok && i < e->count; i++)
        fold[i] = by_source ? e->source[i] : (int)(i % (size_t)folds);
    ok = ok && k25_hold_out(&c->priors, e->row, e->count, fold, folds, held_out, error) &&
         print_score("held out", c, NULL, held_out, error);
    free(held_out);
    free(fold);
    return ok;
}

/* In words what the data left open. */
static void print_open(const struct calibration *c)
{
    const struct k25_fit *fit = &c->fit;
    char names[2048] = "";
    size_t used = 0, count = 0;
    for (size_t j = 0; j < fit->free; j++) {
        enum k25_param id = fit->id[j];
        if (fit->log_sd[id] < OPEN * c->priors.spread[id] || used + 80 > sizeof names)
            continue;
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", count > 0 ? ", " : "", k25_param_info[id].name);
        count++;
    }
    printf("the data determine %zu of the %zu parameters that they depend on; still as open as %.0f %% of the "
           "prior:\n  ",
           fit->free - count, fit->free, OPEN * 100);
    cli_print_wrapped(count > 0 ? names : "none", 2);
}

/* And what to measure next. */
static void print_advice(const struct calibration *c)
{
    static struct k25_uncertainty u; /* too large for a stack */
    struct k25_advice advice[K25_MAX_ADVICE];
    double now;
    k25_fit_uncertainty(&c->priors, &c->fit, 0, &u);
    size_t count = k25_advise(&c->question, &c->fit.params, &u, advice, &now);
    const struct k25_fitted_rows rows = cli_evidence_rows(&c->evidence);
    double scatter = k25_residual_scatter(&c->fit, &rows);
    printf("\nthe step of this scenario is known to +- %.1f %% (90 %%, %s)", 164 * fmax(now, scatter),
           scatter > now ? "as well as the fit describes the evidence" : "without the noise of a test");
    printf(count > 0 ? "; what would narrow it most:\n" : "; no further measurement would narrow it by much\n");
    for (size_t i = 0; i < count && i < 3; i++)
        printf("  +- %.1f %%  %s\n", 164 * advice[i].sd_after, advice[i].what);
}

static const struct cli_column columns[] = {
    {"parameter", "parameter", CLI_TEXT, 0},
    {"prior", "before", CLI_FIGURE, 0},
    {"value", "fitted", CLI_FIGURE, 0},
    {"unit", "unit", CLI_TEXT, 0},
    {"prior_spread", "spread before", CLI_FIGURE, 0},
    {"spread", "spread", CLI_FIGURE, 0},
    {NULL, NULL, CLI_TEXT, 0},
};

static bool print_parameters(const struct calibration *c, const struct k25_calibration *set, struct k25_error *error)
{
    struct cli_table table;
    cli_table_open(&table, columns);
    for (int id = 0; id < K25_PARAMS; id++) {
        const struct k25_param_info *info = &k25_param_info[id];
        if (!set->set[id])
            continue;
        cli_table_text(&table, "%s", info->name);
        cli_table_number(&table, c->priors.centre[id] / info->scale);
        cli_table_number(&table, set->value[id] / info->scale);
        cli_table_text(&table, "%s", info->unit);
        cli_table_number(&table, c->priors.spread[id]);
        cli_table_number(&table, set->log_sd[id]);
    }
    printf("\n");
    bool ok = cli_table_print(&table, error);
    cli_table_close(&table);
    return ok;
}

/* What --only leaves out keeps its value. False when a name starts no parameter. */
static bool fix_others(struct calibration *c, struct k25_error *error)
{
    char hint[80];
    for (char **name = given.only; name != NULL && *name != NULL; name++) {
        bool known = false; /* "" starts every name and would fix none */
        for (int id = 0; id < K25_PARAMS; id++)
            known = known || (**name != '\0' && strncmp(k25_param_info[id].name, *name, strlen(*name)) == 0);
        if (!known) {
            cli_misused(&cli_calibrate, error, "--only %s: no parameter starts so%s", *name,
                        k25_did_you_mean(*name, k25_param_names, hint, sizeof hint));
            return false;
        }
    }
    for (int id = 0; given.only != NULL && id < K25_PARAMS; id++) {
        c->fixed[id] = true;
        for (char **name = given.only; *name != NULL; name++)
            c->fixed[id] = c->fixed[id] && strncmp(k25_param_info[id].name, *name, strlen(*name)) != 0;
        if (c->fixed[id])
            c->priors.spread[id] = 0;
    }
    return true;
}

/* Points know their noise only roughly, so its size is fitted; other evidence comes with its own. */
static bool solve(struct calibration *c, struct k25_error *error)
{
    struct cli_evidence *e = &c->evidence;
    bool points_only = e->pair != NULL && e->pair->count == e->count;
    cli_progress("fitting %zu rows", e->count);
    bool ok = points_only ? k25_fit_solve_noise(&c->priors, e->row, e->count, NULL, &c->fit, error)
                          : k25_fit_solve(&c->priors, e->row, e->count, NULL, &c->fit, error);
    cli_progress(NULL);
    const struct k25_fitted_rows rows = cli_evidence_rows(e);
    if (ok) {
        k25_check_fit(&c->scenario->priors, &c->fit, &rows, &c->evidence.findings);
        ok = (given.accept != NULL || k25_findings_pass(&e->findings, error)) &&
             (points_only || k25_fit_widen(&c->priors, e->count, &c->fit, error));
    }
    c->noise = CLI_POINT_NOISE * (ok ? c->fit.noise_scale : 1);
    return ok;
}

static void print_findings(const struct k25_findings *findings)
{
    struct cli_sentences sentences = {0};
    for (size_t i = 0; i < findings->count; i++)
        cli_say(&sentences, "%s", findings->list[i].text);
    cli_print_sentences(findings->errors > 0 ? "accepted in spite of" : "to be trusted less", &sentences);
}

static bool report(const struct calibration *c, const struct k25_calibration *set, int folds, struct k25_error *error)
{
    struct k25_params start;
    memcpy(start.value, c->priors.centre, sizeof start.value);
    printf("%s: %s\n", given.out, set->source);
    if (!print_score("before", c, &start, NULL, error) || !print_score("fitted", c, &c->fit.params, NULL, error) ||
        (folds > 0 && !print_held_out(c, folds, error)) || !print_parameters(c, set, error) ||
        !cli_residuals_print(&c->tables, error))
        return false;
    print_findings(&c->evidence.findings);
    printf("\n");
    print_open(c);
    print_advice(c);
    return true;
}

/* The scenario with the overrides and the set to start from. */
static size_t overrides(const char *set[K25_MAX_SET + 1], char start[1024])
{
    size_t count = cli_count((const char *const *)given.set);
    count = count < K25_MAX_SET ? count : K25_MAX_SET - 1;
    for (size_t i = 0; i < count; i++)
        set[i] = given.set[i];
    if (given.start != NULL) {
        snprintf(start, 1024, "calibration=%s", given.start);
        set[count++] = start;
    }
    set[count] = NULL;
    return count;
}

static bool read_numbers(int *folds, double *discrepancy, struct k25_error *error)
{
    long long k = 0;
    if (given.folds != NULL && (!k25_parse_int(given.folds, &k) || k < 2 || k > 1000)) {
        cli_misused(&cli_calibrate, error, "--cv %s: expected a number of folds from 2 to 1000", given.folds);
        return false;
    }
    *folds = (int)k;
    *discrepancy = 2;
    if (given.discrepancy != NULL &&
        (!k25_parse_real(given.discrepancy, discrepancy) || *discrepancy < 0 || *discrepancy > 100)) {
        cli_misused(&cli_calibrate, error, "--model-error %s: expected a percentage", given.discrepancy);
        return false;
    }
    *discrepancy /= 100;
    return true;
}

static bool calibrate(const struct cli *cli, const char *name, struct k25_error *error)
{
    static struct k25_scenario scenario; /* too large for a stack */
    static struct calibration c;
    static struct k25_calibration set;
    const char *overriding[K25_MAX_SET + 1];
    char start[1024];
    int folds;
    struct cli_evidence_options how = {.where = (const char *const *)given.where,
                                       .set = overriding,
                                       .rules = given.rules,
                                       .lenient = given.lenient != 0,
                                       .accept = given.accept != NULL,
                                       .families = (const char *const *)given.families};
    const struct cli_evidence_files files = {
        (const char *const *)given.points,    (const char *const *)given.captures,
        (const char *const *)given.summaries, (const char *const *)given.nccl_tests,
        (const char *const *)given.kernels,   (const char *const *)given.benches,
    };
    size_t count = overrides(overriding, start);
    c.scenario = &scenario;
    bool ok = read_numbers(&folds, &how.discrepancy, error) &&
              k25_scenario_load(&cli->library, name, overriding, count, &scenario, error) &&
              k25_scenario_question(&scenario, &c.question, error) &&
              cli_evidence_read(cli, name, &scenario, &c.question, &files, &how, &c.evidence, error) &&
              cli_residuals_choose(&c.evidence, how.families, &c.tables, error);
    if (ok) {
        cli_starting_priors(&scenario, &c.priors);
        ok = may_write(&c, error) && fix_others(&c, error) && solve(&c, error) && write_set(&c, &set, error) &&
             report(&c, &set, folds, error);
    }
    k25_fit_free(&c.fit);
    k25_calibration_free(&set);
    cli_evidence_free(&c.evidence);
    k25_scenario_free(&scenario);
    return ok;
}

static enum k25_status run(const struct cli *cli, const char *const *arguments, struct k25_error *error)
{
    if (given.points == NULL && given.captures == NULL && given.summaries == NULL && given.nccl_tests == NULL &&
        given.kernels == NULL && given.benches == NULL)
        return cli_misused(&cli_calibrate, error,
                           "nothing to fit: give evidence with --capture, --points, --nccl-tests, ...");
    if (given.accept != NULL && given.accept[0] == '\0')
        return cli_misused(&cli_calibrate, error, "--accept: expected the reason, which goes into the set");
    if (given.families != NULL && given.kernels == NULL)
        return cli_misused(&cli_calibrate, error, "--kernel-family chooses among --kernels, and there are none");
    if (given.out == NULL)
        return cli_misused(&cli_calibrate, error, "missing -o SET.yaml, the file to write");
    return calibrate(cli, arguments[0], error) ? K25_OK : cli_failed(error);
}

const struct cli_command cli_calibrate = {
    .name = "calibrate",
    .arguments = "SCENARIO",
    .summary = "fit the parameters to what was measured of a box, and write a calibration set",
    .details = "SCENARIO describes the box and the build; what the evidence says itself (batch and context of a\n"
               "capture, columns of points) wins. All evidence enters one fit, the maximum a posteriori: priors\n"
               "of hw/params/params.yaml against every number with its noise, outliers weighted down. Points must be\n"
               "of one group and variant. The set holds the parameters that the data have moved or narrowed,\n"
               "their covariance, where the data lay, and the files with checksums: the same inputs give the\n"
               "same bytes. Tables of kernels also leave residual tables in the set: what was measured on top\n"
               "of the formulas, by one family of kernels a class. It ends with what the data left open and\n"
               "what to measure next.\n"
               "\n"
               "Evidence of another GPU, model or plan, numbers that wires and data sheets rule out, and evidence\n"
               "that the fit cannot describe or that contradicts other evidence are errors that say what is wrong;\n"
               "--accept WHY writes the set all the same, with the reason and the findings in it.\n"
               "\n"
               "examples:\n"
               "  k25sim calibrate my-box.yaml --capture profile/ -o my-box-set.yaml\n"
               "  k25sim calibrate my-box.yaml --capture profile/ --nccl-tests all_reduce.txt --cv 5 -o set.yaml\n"
               "  k25sim calibrate kimi-k26-v4 --points points.csv --where dcp=1 -o v4.yaml\n",
    .least = 1,
    .most = 1,
    .options = options,
    .run = run,
};
