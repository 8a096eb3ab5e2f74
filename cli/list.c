#include "cli/cli.h"
static const struct poptOption options[]={POPT_TABLEEND};
const struct cli_command cli_list={.name="list",.arguments="",.summary="",.details="",.options=options};
