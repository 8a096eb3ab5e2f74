/* Expressions over named numbers: "tpot_ms <= 25 && plan.dcp <= plan.tp".
 *
 * muParser compiles and evaluates them; it is loaded when the first one is compiled, so that commands without
 * expressions start without the C++ library. Arithmetic is that of doubles: + - * / % ^, comparisons, && || !, ?:,
 * parentheses, and the functions abs, exp, ln, log2, log10, max, min, rint and sqrt. A comparison is 1 or 0. A
 * number that is nothing (NAN) makes every comparison false.
 */
#ifndef K25_SCENARIOS_SWEEP_EXPRESSION_H
#define K25_SCENARIOS_SWEEP_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define K25_EXPRESSION_SIZE 512

/* What an expression may name. `words`: the texts of an enum in the order of its numbers, NULL: a plain number. An
 * expression that names the symbol may use the words too (`plan.kv_dtype == fp8`). */
struct k25_symbol {
    const char *name;
    const char *const *words;
    const double *value; /* where an evaluation finds it; may be NULL when the expression is only checked */
};

struct k25_expression;

/* `symbols` ends with a name of NULL; `used`, unless NULL, has one entry for each and is set for those that the
 * expression names. Errors carry the position, `column` being that of the first character of `text`. One
 * expression serves one thread. */
struct k25_expression *k25_expression_compile(const char *text, const struct k25_symbol *symbols, bool *used,
                                              const char *file, int line, int column, struct k25_error *error);
double k25_expression_value(const struct k25_expression *expression);
void k25_expression_free(struct k25_expression *expression);

#endif
