/* SPDX-License-Identifier: MIT */
#include "redis/servers/slot.h"

#include "core/crc16.h"

#include <string.h>

/* Returns the hash tag of a key; the whole key if it has none or an empty one. */
static struct bel_view tag_of(struct bel_view key)
{
    const char *text = key.data;
    const char *open = key.bytes > 0 ? memchr(text, '{', key.bytes) : NULL;
    if (open == NULL) return key;
    const char *first = open + 1;
    const char *close = memchr(first, '}', key.bytes - (size_t)(first - text));
    if (close == NULL || close == first) return key;
    return (struct bel_view){first, (size_t)(close - first)};
}

uint16_t bel__slot_of(struct bel_view key)
{
    struct bel_view tag = tag_of(key);
    return bel__crc16(0, tag.data, tag.bytes) % BEL_SLOTS;
}
