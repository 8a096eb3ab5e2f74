/* Expressions over named numbers: "tpot_ms <= 25 && plan.dcp <= plan.tp".
 *
 * muParser compiles and evaluates them; it is loaded when the first one is compiled, so that commands without
 * expressions start without the C++ library. Arithmetic is that of doubles: + - * / % ^, comparisons, && || !, ?:,
 * parentheses, and the functions abs, exp, ln, log2, log10, max, min, rint and sqrt. A comparison is 1 or 0. With NAN
 * (an output that does not apply) every comparison is false.
 */
#ifndef K25_SCENARIOS_SWEEP_EXPRESSION_H
#define K25_SCENARIOS_SWEEP_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_EXPRESSION_SIZE 512

/* A variable of expressions. */
struct k25_symbol {
    const char *name;
    const char *const *words; /* of an enum: its names by value, which an expression with this symbol may use too
                                 (`plan.kv_dtype == fp8`); NULL: a plain number */
    const double *value;      /* read by each evaluation; NULL: the expression is only checked */
};

struct k25_expression;

/* Compiles `text`, at most K25_EXPRESSION_SIZE - 1 bytes. `symbols` ends with a name of NULL; their values must outlive
 * the expression. `used` (may be NULL) has one flag for each symbol; the flags of those that occur in the text are set.
 * `file`, `line` and `column` are the position of the first character, for errors. The caller frees the expression with
 * k25_expression_free. Returns NULL with K25_BAD_INPUT and the position of the fault, or with K25_RESOURCE when
 * muParser cannot be loaded or out of memory. */
struct k25_expression *k25_expression_compile(const char *text, const struct k25_symbol *symbols, bool *used,
                                              const char *file, int line, int column, struct k25_error *error);
/* Evaluates an expression with the current values of its symbols. An expression is for one thread at a time. */
double k25_expression_value(const struct k25_expression *expression);
/* NULL is allowed. */
void k25_expression_free(struct k25_expression *expression);

#endif
