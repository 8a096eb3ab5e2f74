/* Hugging Face `config.json` (with its quantization_config, or hf_quant_config.json beside it) as an architecture
 * and a quantisation scheme.
 *
 * Every key of the file is either understood, known to have no bearing on the cost of a decode step, or refused by
 * name with its line: a key dropped in silence has cost others 384 experts.
 */
#ifndef K25_MODEL_HF_HF_H
#define K25_MODEL_HF_HF_H

#include "base/yaml.h"
#include "model/arch/arch.h"
#include "model/arch/weights.h"

/* `name` is the name to give the architecture (NULL: taken from the path). `quant_path` names a separate
 * hf_quant_config.json, NULL when there is none. */
bool k25_hf_import(const char *path, const char *quant_path, const char *name, struct k25_architecture *architecture,
                   struct k25_weights *weights, struct k25_error *error);

/* The same from files already parsed; `quant` may be NULL. */
bool k25_hf_import_parsed(const struct k25_yaml *yaml, const struct k25_yaml *quant, const char *name,
                          struct k25_architecture *architecture, struct k25_weights *weights, struct k25_error *error);

#endif
