/* SPDX-License-Identifier: MIT */

/* The first page of LIMIT has the names that may be meant. */
#include "cli/resource_hint.h"

#include "cli/similar_name.h"

#include <stdio.h>
#include <string.h>

void bel__resource_hint(struct bel_client *client, struct bel_view resource)
{
    const struct bel_view list[] = {BEL_VIEW("LIMIT"), BEL_VIEW("COUNT"), BEL_VIEW("1000")};
    char name[CLI_NAME_BYTES], best[CLI_NAME_BYTES];
    if (resource.bytes == 0 || resource.bytes >= sizeof name) return;
    memcpy(name, resource.data, resource.bytes);
    name[resource.bytes] = '\0';
    bel__similar_name(client, list, 3, "name", name, best);
    if (best[0] != '\0') {
        fprintf(stderr, "belfry: NOTFOUND resource '%s' does not exist; did you mean '%s'?\n", name,
                best);
    } else {
        fprintf(stderr,
                "belfry: NOTFOUND resource '%s' does not exist; belfry limit shows the resources\n",
                name);
    }
}
