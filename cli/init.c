#include "cli/cli.h"
static const struct poptOption options[]={POPT_TABLEEND};
const struct cli_command cli_init={.name="init",.arguments="",.summary="",.details="",.options=options};
