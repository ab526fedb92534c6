/* SPDX-License-Identifier: MIT */

/* The first page of LIMIT has the names that may be meant. */
#include "cli/resource_hint.h"

#include "core/similar.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 256, /* more than any resource has */
};

/* Writes the most similar resource to `out`; nothing if there is none. */
static void find_similar(struct bel_client *client, const char *resource, char out[NAME_BYTES])
{
    const struct bel_view args[] = {BEL_VIEW("LIMIT"), BEL_VIEW("COUNT"), BEL_VIEW("1000")};
    const struct bel_value *reply;
    struct bel_similar similar;
    char name[NAME_BYTES];
    if (bel_client_call(client, args, 3, &reply) != 0) return;
    if (reply->type != BEL_VALUE_LIST || reply->count != 2) return;
    bel__similar_begin(&similar, resource);
    for (size_t i = 0; i < reply->items[1].count; i++) {
        const struct bel_value *value = bel_value_find(&reply->items[1].items[i], "name");
        if (value == NULL || value->text.bytes == 0 || value->text.bytes >= sizeof name) continue;
        memcpy(name, value->text.data, value->text.bytes);
        name[value->text.bytes] = '\0';
        similar.name = NULL;
        bel__similar_offer(&similar, name, name);
        if (similar.name != NULL) memcpy(out, name, value->text.bytes + 1);
    }
}

void bel__resource_hint(struct bel_client *client, struct bel_view resource)
{
    char name[NAME_BYTES], best[NAME_BYTES] = "";
    if (resource.bytes == 0 || resource.bytes >= sizeof name) return;
    memcpy(name, resource.data, resource.bytes);
    name[resource.bytes] = '\0';
    find_similar(client, name, best);
    if (best[0] != '\0') {
        fprintf(stderr, "belfry: NOTFOUND resource '%s' does not exist; did you mean '%s'?\n", name,
                best);
    } else {
        fprintf(stderr,
                "belfry: NOTFOUND resource '%s' does not exist; belfry limit shows the resources\n",
                name);
    }
}
