/* SPDX-License-Identifier: MIT */

/* The program: everything is in the layers, and here they are put together. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return bel__cli_run(argc, argv);
}
