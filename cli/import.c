#include "cli/cli.h"
static const struct poptOption options[]={POPT_TABLEEND};
const struct cli_command cli_import={.name="import",.arguments="",.summary="",.details="",.options=options};
