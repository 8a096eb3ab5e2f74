#include "cli/cli.h"
static const struct poptOption options[]={POPT_TABLEEND};
const struct cli_command cli_calibrate={.name="calibrate",.arguments="",.summary="",.details="",.options=options};
