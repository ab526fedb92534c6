/* SPDX-License-Identifier: MIT */

#include "cli/names.h"

#include <stdlib.h>
#include <string.h>

int bel__names_copy(const struct bel_value *reply, struct cli_names *out)
{
    size_t bytes = 1;
    *out = (struct cli_names){0};
    for (size_t i = 0; i < reply->count; i++) {
        bytes += reply->items[i].text.bytes;
    }
    out->memory = malloc(bytes);
    out->items = calloc(reply->count + 1, sizeof out->items[0]);
    if (out->memory == NULL || out->items == NULL) return BEL_ENOMEM;
    char *place = out->memory;
    for (size_t i = 0; i < reply->count; i++) {
        struct bel_view name = reply->items[i].text;
        if (name.bytes > 0) memcpy(place, name.data, name.bytes);
        out->items[i] = (struct bel_view){place, name.bytes};
        place += name.bytes;
    }
    out->count = reply->count;
    return 0;
}

void bel__names_finish(struct cli_names *names)
{
    free(names->memory);
    free(names->items);
}
