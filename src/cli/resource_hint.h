/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_RESOURCE_HINT_H
#define BEL_CLI_RESOURCE_HINT_H

/* resource_hint - says which resource may be meant, after a command that found none. */

#include "belfry/client.h"

/* Prints that a resource does not exist to standard error, and the name of a similar one. */
void bel__resource_hint(struct bel_client *client, struct bel_view resource);

#endif
