#include "cli/cli.h"
static const struct poptOption options[]={POPT_TABLEEND};
const struct cli_command cli_check={.name="check",.arguments="",.summary="",.details="",.options=options};
