/* SPDX-License-Identifier: MIT */

/* The program: everything is in the layers, and here they are put together. */
#include "cli/cli.h"
#include "server/serve.h"

#include <stddef.h>

int main(int argc, char **argv)
{
    static const struct cli_verb others[] = {
        {"serve", bel__serve, "runs a server"},
        {NULL, NULL, NULL},
    };
    return bel__cli_run(argc, argv, others);
}
