/* Import of a Hugging Face `config.json` (with its quantization_config, or a separate hf_quant_config.json) as an
 * architecture and a quantisation scheme.
 *
 * Every key of the file is either read, known to have no effect on the cost of a decode step, or refused by name with
 * its line: ignoring unknown keys could lose, say, all experts of a model.
 */
#ifndef K25_MODEL_HF_HF_H
#define K25_MODEL_HF_HF_H

#include "base/yaml.h"
#include "model/arch/arch.h"
#include "model/arch/weights.h"

/* Reads the config at `path` into `architecture` and `weights`. `name` becomes the name of the architecture (NULL:
 * taken from the path). `quant_path` is a separate hf_quant_config.json, NULL when there is none. Fails with
 * K25_BAD_INPUT and the position for unknown keys, values and families, K25_RESOURCE for read errors and out of memory.
 */
bool k25_hf_import(const char *path, const char *quant_path, const char *name, struct k25_architecture *architecture,
                   struct k25_weights *weights, struct k25_error *error);

/* As k25_hf_import, from parsed files; `quant` may be NULL. */
bool k25_hf_import_parsed(const struct k25_yaml *yaml, const struct k25_yaml *quant, const char *name,
                          struct k25_architecture *architecture, struct k25_weights *weights, struct k25_error *error);

#endif
