/* SPDX-License-Identifier: MIT */
#include "redis/link/info.h"

#include <stdio.h>
#include <string.h>

void bel__info_find(struct bel_view info, const char *name, char *out, size_t room)
{
    const char *at = info.data, *end = at + info.bytes;
    size_t name_bytes = strlen(name);
    out[0] = 0;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == NULL) line_end = end;
        size_t bytes = (size_t)(line_end - at);
        if (bytes > name_bytes && memcmp(at, name, name_bytes) == 0 && at[name_bytes] == ':') {
            size_t value = bytes - name_bytes - 1;
            if (value > 0 && at[bytes - 1] == '\r') value--;
            (void)snprintf(out, room, "%.*s", (int)value, at + name_bytes + 1);
            return;
        }
        at = line_end + 1;
    }
}
