/* SPDX-License-Identifier: MIT */

/* Accessors of reply values. */
#include "belfry/value.h"

#include <assert.h>
#include <string.h>

/* Returns the length of the code of an error text: upper-case letters and digits up to a space or
 * the end; 0 if there is no code. */
static size_t code_bytes(struct bel_view text)
{
    const char *data = text.data;
    size_t bytes = 0;
    while (bytes < text.bytes && ((data[bytes] >= 'A' && data[bytes] <= 'Z') ||
                                  (bytes > 0 && data[bytes] >= '0' && data[bytes] <= '9'))) {
        bytes++;
    }
    return bytes == text.bytes || data[bytes] == ' ' ? bytes : 0;
}

struct bel_view bel_value_code(const struct bel_value *error)
{
    assert(error->type == BEL_VALUE_ERROR);
    return (struct bel_view){error->text.data, code_bytes(error->text)};
}

struct bel_view bel_value_message(const struct bel_value *error)
{
    assert(error->type == BEL_VALUE_ERROR);
    size_t skipped = code_bytes(error->text);
    if (skipped > 0 && skipped < error->text.bytes) skipped++;
    return (struct bel_view){(const char *)error->text.data + skipped, error->text.bytes - skipped};
}

bool bel_value_is(const struct bel_value *value, const char *text)
{
    size_t bytes = strlen(text);
    if (value->type != BEL_VALUE_TEXT && value->type != BEL_VALUE_STATUS) return false;
    return value->text.bytes == bytes && memcmp(value->text.data, text, bytes) == 0;
}

const struct bel_value *bel_value_find(const struct bel_value *map, const char *name)
{
    if (map->type != BEL_VALUE_MAP && map->type != BEL_VALUE_LIST) return NULL;
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (bel_value_is(&map->items[i], name)) return &map->items[i + 1];
    }
    return NULL;
}
